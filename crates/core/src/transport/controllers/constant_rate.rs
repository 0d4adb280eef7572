//! A constant rate, within a constant window if one is given: no congestion control.

use super::{Ack, Allowance, Controller, Mechanism, Path, Reliability, Transport};
use crate::base::schema::positive_if_given;
use crate::base::units::{Bytes, Rate};
use crate::model::packet::Format;

crate::parameters! {
    /// Constant rate: sends at its rate whatever happens. The baseline without congestion control,
    /// and the source of open-loop traffic in checks of queues against theory.
    pub struct Config {
        /// The rate, headers included, within the host's line rate; none for that.
        pub rate: Option<Rate> = None, where positive_if_given;
        /// Payload that may be in flight, though one packet always may; none for no bound. At line
        /// rate in a lossless class this is pause frames alone, as [timely15] compares with.
        pub window: Option<Bytes> = None, where positive_if_given;
        /// How data is made reliable.
        pub reliability: Reliability = Reliability::selective_repeat();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let rate = path.initial_rate.or(self.rate).unwrap_or(path.line_rate);
        let rate = rate.min(path.line_rate);
        let window = self.window.map(|window| window.max(path.format.payload));
        Box::new(ConstantRate { rate, window: window.unwrap_or(Bytes(u64::MAX)) })
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism::paced(&self.reliability)
    }
}

struct ConstantRate {
    rate: Rate,
    window: Bytes,
}

impl Controller for ConstantRate {
    fn on_ack(&mut self, _ack: &Ack) {}

    fn allowance(&self) -> Allowance {
        Allowance { window: self.window, ..Allowance::rate(self.rate.bps()) }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("rate_bps", self.rate.bps())]
    }
}

//! A constant rate, whatever happens: no congestion control.

use super::{Ack, Allowance, Controller, Mechanism, Path, Reliability, Transport};
use crate::packet::Format;
use crate::parameters::positive_if_given;
use crate::units::Rate;

crate::parameters! {
    /// Constant rate: sends at its rate whatever happens. The baseline without congestion control,
    /// and the source of open-loop traffic in checks of queues against theory.
    pub struct Config {
        /// The rate, headers included, within the host's line rate; none for that.
        pub rate: Option<Rate> = None, where positive_if_given;
        /// How data is made reliable.
        pub reliability: Reliability = Reliability::selective_repeat();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let rate = path.initial_rate.or(self.rate).unwrap_or(path.line_rate);
        Box::new(ConstantRate(rate.min(path.line_rate)))
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism::paced(&self.reliability)
    }
}

struct ConstantRate(Rate);

impl Controller for ConstantRate {
    fn on_ack(&mut self, _ack: &Ack) {}

    fn allowance(&self) -> Allowance {
        Allowance::rate(self.0.bps())
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("rate_bps", self.0.bps())]
    }
}

//! Constant rate, with an optional constant window: no congestion control.

use super::{Ack, Allowance, Controller, Mechanism, Path, Reliability, Transport};
use crate::base::schema::positive_if_given;
use crate::base::units::{Bytes, Rate};
use crate::model::packet::Format;

crate::parameters! {
    /// Constant rate: sends at a fixed rate without congestion control. A baseline, and the source of
    /// open-loop traffic in checks against queueing theory.
    pub struct Config {
        /// Rate including headers, at most the host's line rate; on `link`, whose flows end
        /// at routers, it may exceed the rate of the link (none: line rate).
        pub rate: Option<Rate> = None, where positive_if_given;
        /// Maximum payload in flight, but at least one packet (none: unlimited). At line rate in a
        /// lossless class flow control is by pause frames alone, the baseline of [timely15].
        pub window: Option<Bytes> = None, where positive_if_given;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::selective_repeat();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let rate = path.initial_rate.or(self.rate).unwrap_or(path.line_rate);
        let rate = rate.min(path.max_pacing_rate);
        let window = self.window.map(|window| window.max(path.format.payload));
        Box::new(ConstantRate { rate, window: window.unwrap_or(Bytes(u64::MAX)) })
    }

    fn takes_initial_rate(&self) -> bool {
        true
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

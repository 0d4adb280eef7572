//! TCP: one packet more a round trip, half the window at a loss.
//!
//! Source: RFC 5681. Which losses it notices at once and which wait for the time-out is its recovery:
//! SACK (RFC 6675), NewReno (RFC 6582) or Reno.

use super::{Ack, Controller, Loss, Mechanism, Path, Reliability, Transport};
use crate::base::schema::defaults;
use crate::model::packet::Format;
use crate::transport::blocks::tcp::window::{self, Law, Window};

crate::parameters! {
    /// TCP: slow start, then one packet a round trip; half the window at a loss or mark (RFC 5681).
    /// `reliability.recovery` makes it TCP SACK (`selective_repeat`), NewReno or Reno.
    pub struct Config {
        /// How the window begins and is bounded.
        pub window: Window = defaults();
        /// Whether routers may mark instead of dropping (RFC 3168).
        pub ecn: bool = false;
        /// How data is made reliable.
        pub reliability: Reliability = Reliability::internet();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        window::controller(&self.window, Reno, path)
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        window::mechanism(&self.reliability, self.ecn)
    }
}

/// RFC 5681 §3.1.
pub struct Reno;

impl Law for Reno {
    fn increase(&mut self, window: f64, acked: f64, _ack: &Ack) -> f64 {
        window + acked / window
    }

    fn decrease(&mut self, window: f64, _loss: &Loss) -> f64 {
        window / 2.0
    }
}

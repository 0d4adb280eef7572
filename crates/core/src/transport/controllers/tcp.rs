//! TCP (Reno): one packet more per RTT, half the window at a loss (RFC 5681).
//!
//! The recovery algorithm decides which losses are detected at once and which by timeout: SACK (RFC 6675),
//! NewReno (RFC 6582) or Reno.

use super::{Ack, Controller, Loss, Mechanism, Path, Reliability, Transport};
use crate::base::schema::defaults;
use crate::model::packet::Format;
use crate::transport::blocks::tcp::window::{self, Window, WindowLaw};

crate::parameters! {
    /// TCP: slow start, then one packet more per RTT; half the window at a loss or mark (RFC 5681).
    /// `reliability.recovery` makes it TCP SACK (`selective_repeat`), NewReno or Reno.
    pub struct Config {
        /// Initial congestion window, slow start and maximum window.
        pub window: Window = defaults();
        /// If true, packets are ECN-capable: routers may mark instead of drop (RFC 3168).
        pub ecn: bool = false;
        /// Loss recovery and retransmission timeouts.
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

/// Window law of TCP (RFC 5681 §3.1).
pub struct Reno;

impl WindowLaw for Reno {
    fn increase(&mut self, cwnd: f64, acked: f64, _ack: &Ack) -> f64 {
        cwnd + acked / cwnd
    }

    fn decrease(&mut self, cwnd: f64, _loss: &Loss) -> f64 {
        cwnd / 2.0
    }
}

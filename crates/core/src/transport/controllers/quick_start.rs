//! Quick-Start: asks routers in the SYN for a rate to start with, then TCP.
//!
//! Source: RFC 4782. What all routers approve is the window of the first round trip, in which packets
//! leave evenly. If one of them is lost, all is as if nothing had been asked.

use super::tcp::Reno;
use super::{Controller, Mechanism, Path, Reliability, Transport};
use crate::base::schema::{Problem, defaults};
use crate::base::units::Rate;
use crate::model::packet::{Format, Header};
use crate::router;
use crate::router::quick_start::{encode_rate, decode_rate};
use crate::transport::blocks::tcp::paced_start::{self, AfterLoss, PacedStart, Size};
use crate::transport::blocks::tcp::window::Window;

crate::parameters! {
    /// Quick-Start: the SYN asks for a rate, routers approve what they have to spare, and TCP starts
    /// with a window of as much, paced over a round trip (RFC 4782).
    pub struct Config {
        /// What the SYN asks for, rounded down to 40 kb/s times a power of two from 2 to 32768 (RFC 4782
        /// §3.1); none asks for the rate of the sender's line.
        pub request: Option<Rate> = None, where codable;
        /// How the window begins where nothing is approved, grows and is bounded.
        pub window: Window = defaults();
        /// Whether routers may mark instead of dropping (RFC 3168).
        pub ecn: bool = false;
        /// How data is made reliable.
        pub reliability: Reliability = Reliability::internet();
    }
    check |config| {
        if !config.reliability.handshake {
            let message = "must be true: the SYN asks for the rate";
            return Err(Problem::new("reliability.handshake", message));
        }
        Ok(())
    }
}

/// At least the lowest rate that a SYN can ask for.
pub fn codable(request: &Option<Rate>) -> Result<(), &'static str> {
    match request {
        Some(rate) if encode_rate(*rate) == 0 => Err("80 Kbps or more"),
        Some(_) | None => Ok(()),
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let code = encode_rate(self.request.unwrap_or(path.line_rate).min(path.line_rate));
        let request = Header::QuickStart { code };
        let rate = |code| decode_rate(code as u8);
        let size = Size::Approved { request, rate };
        let flight = PacedStart { size, after_loss: AfterLoss::Initial };
        paced_start::controller(&self.window, Reno, flight, path)
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism { has_header: true, ..paced_start::mechanism(&self.reliability, self.ecn) }
    }

    fn router(&self) -> Option<router::Config> {
        Some(router::Config::quick_start(defaults()))
    }
}

//! `JumpStart`: all that waits to be sent, evenly over the first round trip, then TCP.
//!
//! Source: [jumpstart07]. There is no slow start: as many packets as there are, or as the receiver takes,
//! follow one another evenly in the round trip after the handshake. Losses are repaired as TCP does, and
//! what the window is then counts only what came through.

use super::tcp::Reno;
use super::{Controller, Mechanism, Path, Reliability, Transport};
use crate::base::schema::{Problem, defaults};
use crate::model::packet::Format;
use crate::transport::blocks::tcp::paced_start::{self, AfterLoss, PacedStart, Size};
use crate::transport::blocks::tcp::window::Window;

crate::parameters! {
    /// `JumpStart`: sends all that waits, up to the receiver's window, evenly over the first round trip,
    /// and goes on as TCP does ([jumpstart07]).
    pub struct Config {
        /// How the window is bounded, and how it begins where the SYN was lost.
        pub window: Window = defaults();
        /// Whether routers may mark instead of dropping (RFC 3168).
        pub ecn: bool = false;
        /// How data is made reliable.
        pub reliability: Reliability = Reliability::internet();
    }
    check |config| {
        if !config.reliability.handshake {
            let message = "must be true: the SYN gives the round-trip time";
            return Err(Problem::new("reliability.handshake", message));
        }
        Ok(())
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let waiting = path.size.map_or(f64::INFINITY, |size| path.format.packets(size) as f64);
        let taken = self.reliability.receive_window.map_or(f64::INFINITY, f64::from);
        let size = Size::Packets(waiting.min(taken));
        let flight = PacedStart { size, after_loss: AfterLoss::HalfOfArrived };
        paced_start::controller(&self.window, Reno, flight, path)
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        paced_start::mechanism(&self.reliability, self.ecn)
    }
}

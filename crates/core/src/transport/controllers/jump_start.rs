//! Jump Start: sends all waiting data evenly over the first RTT, then continues as TCP ([jumpstart07]).
//!
//! There is no slow start: the packets that are waiting, up to the receiver's window, are paced over the RTT
//! after the handshake. Loss recovery is TCP's. The window after losses counts only the packets that arrived.

use super::tcp::Reno;
use super::{Controller, Mechanism, Path, Reliability, Transport};
use crate::base::schema::{Problem, defaults, positive_if_given};
use crate::base::units::Bytes;
use crate::model::packet::Format;
use crate::transport::blocks::tcp::paced_start::{self, AfterLoss, FlightSize, PacedStart};
use crate::transport::blocks::tcp::window::Window;

crate::parameters! {
    /// Jump Start: paces all waiting data, up to the receiver's window, over the first RTT, and then
    /// continues as TCP ([jumpstart07]).
    pub struct Config {
        /// Receive window that the SYN-ACK advertises, which limits the data of the first RTT (RFC 7323
        /// §2.2: at most 65 535 B, since it is not scaled; none: `reliability.receive_window`).
        pub syn_window: Option<Bytes> = None, where positive_if_given;
        /// Maximum window, and initial window after a lost SYN.
        pub window: Window = defaults();
        /// If true, packets are ECN-capable: routers may mark instead of drop (RFC 3168).
        pub ecn: bool = false;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::internet();
    }
    check |config| {
        if !config.reliability.handshake {
            let message = "must be true: the SYN measures the RTT";
            return Err(Problem::new("reliability.handshake", message));
        }
        Ok(())
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let waiting = path.size.map_or(f64::INFINITY, |size| path.format.packets(size) as f64);
        let receive_window = self.reliability.receive_window.map_or(f64::INFINITY, f64::from);
        let syn_window = self
            .syn_window
            .map_or(f64::INFINITY, |window| (window.0 / path.format.payload.0).max(1) as f64);
        let size = FlightSize::Packets(waiting.min(receive_window).min(syn_window));
        let flight = PacedStart { size, after_loss: AfterLoss::HalfOfArrived };
        paced_start::controller(&self.window, Reno, flight, path)
    }

    fn needs_own_connection(&self) -> bool {
        true
    }

    fn own_reliability(&self) -> &'static [&'static str] {
        &["handshake"]
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        paced_start::mechanism(&self.reliability, self.ecn)
    }
}

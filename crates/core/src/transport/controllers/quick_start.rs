//! Quick-Start: requests an initial rate from routers in the SYN, then continues as TCP (RFC 4782).
//!
//! The rate that all routers approve gives the window of the first RTT, over which packets are paced. If one
//! of them is lost, the flow continues as without Quick-Start, with the initial window in slow start. The
//! window of Quick-Start was then too large; [`Config::limit_ssthresh`] makes slow start take that into
//! account.

use super::tcp::Reno;
use super::{Controller, Mechanism, Path, Reliability, Signalling, Transport};
use crate::base::schema::{Bounds, Problem, defaults};
use crate::base::units::Rate;
use crate::model::packet::{Format, Header};
use crate::router;
use crate::router::quick_start::{decode_rate, encode_rate};
use crate::transport::blocks::tcp::paced_start::{self, AfterLoss, FlightSize, PacedStart};
use crate::transport::blocks::tcp::window::Window;

crate::parameters! {
    /// Quick-Start: the SYN requests a rate, routers approve up to their spare capacity, and TCP starts
    /// with the window of that rate, paced over one RTT (RFC 4782).
    pub struct Config {
        /// Requested rate, rounded down to 40 kb/s times a power of two from 2 to 32768 (RFC 4782
        /// §3.1; none: line rate).
        pub request: Option<Rate> = None, where codable;
        /// If true, ssthresh after a loss in the first RTT is at most half of the packets of that RTT that
        /// arrived (RFC 4782 §4; ns-2 leaves ssthresh unchanged).
        pub limit_ssthresh: bool = false;
        /// Initial window without an approval, slow start and maximum window.
        pub window: Window = defaults();
        /// If true, packets are ECN-capable: routers may mark instead of drop (RFC 3168).
        pub ecn: bool = false;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::internet();
    }
    check |config| {
        if !config.reliability.handshake {
            let message = "must be true: the SYN requests the rate";
            return Err(Problem::new("reliability.handshake", message));
        }
        Ok(())
    }
}

/// The lowest rate that a SYN can request, or more.
pub fn codable() -> Bounds {
    Bounds::at_least(80_000.0)
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let code = encode_rate(self.request.unwrap_or(path.line_rate).min(path.line_rate));
        let request = Header::QuickStart { code };
        let rate = |code| decode_rate(code as u8);
        let size = FlightSize::Approved { request, rate };
        let after_loss =
            if self.limit_ssthresh { AfterLoss::InitialWithSsthresh } else { AfterLoss::Initial };
        let flight = PacedStart { size, after_loss };
        paced_start::controller(&self.window, Reno, flight, path)
    }

    fn own_reliability(&self) -> &'static [&'static str] {
        &["handshake"]
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism {
            signalling: Signalling::Header,
            ..paced_start::mechanism(&self.reliability, self.ecn)
        }
    }

    fn router(&self) -> Option<router::Config> {
        Some(router::Config::quick_start(defaults()))
    }
}

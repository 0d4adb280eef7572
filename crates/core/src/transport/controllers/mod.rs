//! The transports, one file each: a congestion controller with its parameters.

pub mod bbr;
pub mod bbr3;
pub mod constant_rate;
pub mod copa;
pub mod cubic;
pub mod d2tcp;
pub mod d3;
pub mod dcqcn;
pub mod dctcp;
pub mod expresspass;
pub mod fair_share;
pub mod fast;
pub mod high_speed_tcp;
pub mod homa;
pub mod hpcc;
pub mod jump_start;
pub mod ndp;
pub mod patched_timely;
pub mod pcp;
pub mod pdq;
pub mod pfabric;
pub mod phost;
pub mod pias;
pub mod powertcp;
pub mod python;
pub mod quic;
pub mod quick_start;
pub mod rcp;
pub mod scalable_tcp;
pub mod swift;
pub mod tcp;
pub mod theta_powertcp;
pub mod timely;
pub mod uet;
pub mod vegas;
pub mod xcp;

pub use crate::queueing::{DesignRates, Priorities};
use crate::transport::unlimited;
pub use crate::transport::{
    Ack, AckPolicy, Allowance, Arrival, CachedRate, CongestionSignal, Controller, Credit,
    CreditHost, CreditScheduler, CreditUse, ExternalStack, Gaps, InboundFlow, Loss, MarkFeedback,
    Mechanism, MissingSegments, NullController, Opened, OutgoingPacket, PacingPolicy, Path,
    Recovery, Reliability, Restart, Signalling, TrainPacket, Transport, WindowReduction,
};

crate::family! {
    /// The transports, by their names in scenarios.
    pub enum Config as dyn Transport named "transport" {
        bbr, bbr3, constant_rate, copa, cubic, d2tcp, d3, dcqcn, dctcp, expresspass, fair_share,
        fast, high_speed_tcp, homa, hpcc, jump_start, ndp, patched_timely, pcp, pdq, pfabric, phost,
        pias, powertcp, python, quic, quick_start, rcp, scalable_tcp, swift, tcp, theta_powertcp,
        timely, uet, vegas, xcp,
    }
    known_as {
        "reno" => tcp, "newreno" => tcp, "new_reno" => tcp, "tcp_reno" => tcp, "tcp_newreno" => tcp,
        "sack" => tcp, "hstcp" => high_speed_tcp, "highspeed" => high_speed_tcp, "scalable" => scalable_tcp,
        "bbrv1" => bbr, "tcp_cubic" => cubic, "cbr" => constant_rate,
        "eqds" => uet {
            control = "rccc", credit_rate = 0.98556, pull_bytes = "4096 B", initial_packets = 50
        },
    }
}

impl Config {
    /// Returns the names of the transports that need no external code: all but Python controllers and
    /// QUIC.
    pub fn built_in() -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().copied().filter(|name| !["python", "quic"].contains(name))
    }

    /// Returns the name in messages: that of the class for a Python controller.
    pub fn title(&self) -> &str {
        match self {
            Self::python(config) => config.controller.name(),
            other => other.name(),
        }
    }
}

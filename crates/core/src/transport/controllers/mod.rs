//! Transports: a congestion controller each, over one sender and one receiver that all of them
//! share.

use crate::base::units::{Bytes, Rate};
use crate::model::packet::Format;
use crate::queueing::disciplines;
use crate::router;

pub mod bbr;
pub mod bbr3;
pub mod constant_rate;
pub mod copa;
pub mod cubic;
pub mod d2tcp;
pub mod d3;
pub mod dcqcn;
pub mod dctcp;
pub mod fair_share;
pub mod fast;
pub mod high_speed_tcp;
pub mod jump_start;
pub mod patched_timely;
pub mod pcp;
pub mod pdq;
pub mod pfabric;
pub mod pias;
pub mod python;
pub mod quic;
pub mod quick_start;
pub mod rcp;
pub mod scalable_tcp;
pub mod swift;
pub mod tcp;
pub mod timely;
pub mod vegas;
pub mod xcp;

pub use crate::transport::{
    Ack, Allowance, CachedPathState, CongestionSignal, Controller, ExternalStack, Feedback, Loss,
    Mechanism, Opened, OutgoingPacket, Path, Recovery, Reliability, TrainPacket, Unasked,
};

crate::family! {
    /// Every transport, by the name a scenario gives it.
    pub enum Config as dyn Transport {
        bbr, bbr3, constant_rate, copa, cubic, d2tcp, d3, dcqcn, dctcp, fair_share, fast,
        high_speed_tcp, jump_start, patched_timely, pcp, pdq, pfabric, pias, python, quic, quick_start,
        rcp, scalable_tcp, swift, tcp, timely, vegas, xcp,
    }
}

impl Config {
    /// The names of the transports that are whole by themselves: Python's are so with a class that a
    /// scenario names, and QUIC with a library.
    pub fn built_in() -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().copied().filter(|name| !["python", "quic"].contains(name))
    }
}

/// A kind of transport.
pub trait Transport {
    /// The controller of a flow that starts on `path`.
    fn controller(&self, path: &Path) -> Box<dyn Controller>;

    /// How its sender and receiver work.
    fn mechanism(&self, format: &Format) -> Mechanism;

    /// The queue at switches that it was designed for; a scenario may choose another.
    fn queue(&self) -> disciplines::Config {
        unlimited()
    }

    /// The controller that it needs at every port, if it needs one.
    fn router(&self) -> Option<router::Config> {
        None
    }

    /// What priorities its packets have.
    fn priorities(&self) -> Priorities {
        Priorities::Classes(1)
    }

    /// What a user should know of these parameters on a network whose slowest link has this rate,
    /// although they are allowed.
    fn warning(&self, _slowest: Rate, _format: &Format) -> Option<String> {
        None
    }

    /// Whether it has no purpose without deadlines.
    fn needs_deadlines(&self) -> bool {
        false
    }

    /// Whether all packets of a flow must take one path, and what answers them the same path back.
    fn needs_one_path(&self) -> bool {
        false
    }

    /// How large the segments are that it sends and measures as one; none if it knows only packets.
    fn segment(&self) -> Option<Bytes> {
        None
    }

    /// How large a full packet must be on the wire.
    fn least_packet(&self) -> Bytes {
        Bytes::ZERO
    }

    /// Whether a stack from elsewhere sends and receives in place of the sender and the receiver that others
    /// share.
    fn has_own_stack(&self) -> bool {
        false
    }

    /// That stack, if it is there.
    fn stack(&self) -> Option<&dyn ExternalStack> {
        None
    }

    /// The queue at hosts' own ports; a scenario may choose another.
    fn host_queue(&self) -> disciplines::Config {
        unlimited()
    }
}

/// First in, first out, whatever comes.
fn unlimited() -> disciplines::Config {
    disciplines::Config::drop_tail(disciplines::drop_tail::Config { capacity: None })
}

/// What priorities a transport's packets have; 0 goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priorities {
    /// So many, counted from 0.
    Classes(u32),
    /// Any number.
    Numbers,
}

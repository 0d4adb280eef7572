//! The two ends of a flow: a sender and a receiver that all transports share, the controllers that say
//! how much may be sent, and what these are made of.

pub mod blocks;
pub mod controller;
pub mod controllers;
pub mod endpoint;
#[cfg(test)]
pub(crate) mod fixture;
pub mod mechanism;
pub mod recovery;

pub use self::controller::{
    Ack, Allowance, CachedPathState, CongestionSignal, Controller, Loss, Opened, OutgoingPacket,
    Path, TrainPacket,
};
pub use self::endpoint::external_stack::{Ecn, End, ExternalStack, Outgoing, Unasked};
pub use self::mechanism::{Feedback, Mechanism, Recovery, Reliability, Timer};

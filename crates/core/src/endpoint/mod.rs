//! The two ends of a flow: a sender and a receiver that all transports share, the controllers that say
//! how much may be sent, and what these are made of.

pub mod aggregation;
pub mod bottleneck;
pub mod bounds;
pub mod compensation;
pub mod controller;
pub mod deadline;
pub mod delivery;
pub mod first_flight;
#[cfg(test)]
pub(crate) mod fixture;
pub mod hystart;
pub mod ledger;
pub mod mechanism;
pub mod pacing;
pub mod policer;
pub mod prr;
pub mod rack;
pub mod ranges;
pub mod receiver;
pub mod rtt;
pub mod scoreboard;
pub mod sender;
pub mod sliding;
pub mod stack;
pub mod tail;
pub mod throttle;
pub mod ticks;
pub mod train;
pub mod undo;
pub mod window;

pub use controller::{Ack, Allowance, Beside, Controller, Leaving, Loss, Memo, Opened, Path, Sign};
pub use mechanism::{Feedback, Mechanism, Recovery, Reliability, Timer};
pub use stack::{Ecn, End, Outgoing, Stack, Unasked};

//! The sender and the receiver of a flow, which all transports share.

pub mod breakdown;
pub mod external_stack;
pub mod pacing;
pub mod receiver;
pub mod rtt;
pub mod sender;
pub mod timer_ticks;

//! Sender and receiver of a flow, shared by all transports.

pub mod breakdown;
pub mod external_stack;
pub mod pacing;
pub mod receiver;
mod recent_blocks;
pub mod rtt;
pub mod sender;
pub mod timer_ticks;

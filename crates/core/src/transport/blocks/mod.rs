//! Building blocks that several congestion controllers share.

pub mod bbr;
pub mod deadline;
pub mod pcp;
pub mod tcp;

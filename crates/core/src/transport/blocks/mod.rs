//! Building blocks that several congestion controllers share.

pub mod bbr;
pub mod deadline;
pub mod path_scaled;
pub mod pcp;
pub mod power;
pub mod router_probes;
pub mod tcp;
pub mod telemetry;
pub mod uet;

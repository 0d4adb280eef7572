//! A deterministic packet-level simulator of congestion control, judged by flow completion time.

pub mod flow;
pub mod ideal;
pub mod packet;
pub mod parameters;
pub mod random;
mod table;
pub mod topology;
pub mod units;
pub mod workload;

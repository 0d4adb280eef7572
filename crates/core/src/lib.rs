//! A deterministic packet-level simulator of congestion control, judged by flow completion time.
//!
//! A [`Scenario`](run::scenario::Scenario) is parsed from plain data and run; the results are columns of
//! flow records and a summary. A run is a pure function of scenario, seed and version.

pub mod base;
pub mod breakdown;
pub mod ideal;
pub mod load_balancing;
pub mod model;
pub mod network;
pub mod queueing;
pub mod record;
pub mod router;
pub mod run;
pub mod schedule;
pub mod simulation;
pub mod topology;
pub mod traffic;
pub mod transport;

/// Version of the simulator; part of every result.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

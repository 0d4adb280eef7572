//! A deterministic packet-level simulator of congestion control, judged by flow completion time.
//!
//! A [`Scenario`](scenario::Scenario) is parsed from plain data and run; the results are columns of
//! flow records and a summary. A run is a pure function of scenario, seed and version.

pub mod account;
pub mod agenda;
pub mod alone;
pub mod demand;
pub mod dynamics;
pub mod endpoint;
pub mod estimate;
pub mod flow;
pub mod fluid;
pub mod graph;
pub mod host;
pub mod ideal;
pub mod kernel;
pub mod network;
pub mod packet;
pub mod parameters;
pub mod queue;
pub mod random;
pub mod record;
pub mod router;
pub mod run;
pub mod scenario;
pub mod sharing;
pub mod simulation;
pub mod topology;
pub mod transport;
pub mod units;
pub mod waiting;
pub mod watch;
pub mod workload;

/// Version of the simulator; part of every result.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

//! A deterministic packet-level simulator of congestion control, judged by flow completion time.
//!
//! A [`Scenario`](scenario::Scenario) is parsed from plain data and run; the results are columns of
//! flow records and a summary. A run is a pure function of scenario, seed and version.

pub mod alone;
pub mod buffer;
pub mod counters;
pub mod directory;
pub mod event;
pub mod flow;
pub mod fluid;
pub mod host;
pub mod ideal;
pub mod loss;
pub mod network;
pub mod packet;
pub mod parameters;
pub mod pauses;
pub mod port;
pub mod queue;
pub mod random;
pub mod recorder;
pub mod ring;
pub mod router;
pub mod routes;
pub mod rtts;
pub mod run;
pub mod scenario;
pub mod schedule;
pub mod simulation;
pub mod store;
mod table;
pub mod topology;
pub mod traffic;
pub mod transmitter;
pub mod transport;
pub mod units;
pub mod watchdog;
pub mod workload;

/// Version of the simulator; part of every result.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

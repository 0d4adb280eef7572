//! Data types of the simulated world: flows, packets, telemetry, networks, host clocks and ideal FCTs.

pub mod flow;
pub mod flow_totals;
pub mod graph;
pub mod host_clock;
pub mod ideal_fct;
pub mod packet;
pub mod telemetry;

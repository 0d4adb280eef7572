//! Integration tests, in one binary so that the core is linked once.

mod common;

mod accounts;
mod bbr;
mod control_laws;
mod deadlines;
mod deadlocks;
mod delay_laws;
mod delay_traces;
mod engines;
mod errors;
mod explicit_rates;
mod failures;
mod fair_share;
mod fairness;
mod families;
mod first_flights;
mod golden;
mod hosts;
mod invariants;
mod liveness;
mod loads;
mod lossless;
mod oracles;
mod pauses;
mod pcp;
mod priorities;
mod rate_traces;
mod readers;
mod recovery;
mod routing;
mod stacks;
mod tcp_laws;
mod tidy;
mod traffic_classes;
mod warnings;

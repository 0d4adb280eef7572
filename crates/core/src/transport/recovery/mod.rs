//! Loss detection and recovery: scoreboard, RACK, tail loss probes, SLEEK, PRR and spurious losses.

pub mod prr;
pub mod rack;
pub mod scoreboard;
pub mod segment_set;
pub mod segment_timers;
pub mod sleek;
pub mod spurious;
pub mod tail_loss_probe;

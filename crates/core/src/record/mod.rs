//! What a run tells: flow records, samples over time and round-trip times.

pub mod recorder;
pub mod rtts;

pub use recorder::{Config, Recorder, Samples};

//! What a run tells: flow records and accounts, samples over time and round-trip times.

pub mod breakdown;
pub mod chains;
pub mod recorder;
pub mod rtts;

pub use self::breakdown::Breakdowns;
pub use self::chains::Chains;
pub use self::recorder::{Config, Recorder, Samples};

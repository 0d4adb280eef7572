//! What a run tells: flow records and accounts, samples over time and round-trip times.

pub mod accounts;
pub mod chains;
pub mod recorder;
pub mod rtts;

pub use accounts::Accounts;
pub use chains::Chains;
pub use recorder::{Config, Recorder, Samples};

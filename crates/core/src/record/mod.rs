//! Results of a run: flow records, FCT breakdowns, samples over time and RTTs.

pub mod breakdown;
pub mod chains;
pub mod flow_columns;
pub mod recorder;
pub mod rtts;

pub use self::breakdown::Breakdowns;
pub use self::chains::Chains;
pub use self::flow_columns::FlowColumns;
pub use self::recorder::{Config, Recorder, Samples};

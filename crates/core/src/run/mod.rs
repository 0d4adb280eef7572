//! Runs of a scenario: parsing, checks, the estimate, building, execution and the summary.

mod build;
pub mod catalogue;
mod checks;
pub mod environment;
pub mod estimate;
mod execute;
mod fitted;
mod ideal_run;
mod link_loads;
mod prepared;
mod queue_warnings;
pub mod scenario;
mod summary;
mod warnings;

use serde_json::Value;

pub use self::prepared::Prepared;

use crate::record::{Breakdowns, Chains, FlowColumns, LinkColumns, Record, Samples};

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Results {
    /// The flow records.
    pub flows: FlowColumns,
    /// Names of the flows' classes.
    pub classes: Vec<String>,
    /// Counters of the links.
    pub links: LinkColumns,
    /// The samples.
    pub samples: Samples,
    /// FCT breakdowns of finished flows, if the scenario requests them.
    pub account: Option<Breakdowns>,
    /// Chains of causes of the flows for which the scenario requests them.
    pub chains: Chains,
    /// Recorded tables, if the scenario requests them.
    pub record: Option<Record>,
    /// The complete scenario, counts, warnings and stuck flows.
    pub summary: Value,
}

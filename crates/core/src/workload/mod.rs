//! Which flows start when, between whom, and how large they are.

use crate::flow::FlowSpec;
use crate::packet::Format;
use crate::parameters::Problem;
use crate::topology::Graph;

/// What a workload may know of the run.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The network.
    pub graph: &'a Graph,
    /// Sizes of packets, for loads that count headers and sizes given in packets.
    pub format: &'a Format,
    /// Seed of the run.
    pub seed: u64,
}

/// A kind of workload.
pub trait Workload {
    /// Opens the stream of its flows.
    fn open(&self, context: &Context<'_>) -> Result<Flows, Problem>;
}

/// The flows of a workload, in order of start.
pub struct Flows {
    /// Names of the classes that flows refer to; at least one.
    pub classes: Vec<String>,
    /// What load this is, for people: the rate offered, where it is counted; empty if it has none.
    pub load: String,
    /// The flows, with ids 0, 1, 2 … and starts that never go back.
    pub flows: Box<dyn Iterator<Item = FlowSpec> + Send>,
}

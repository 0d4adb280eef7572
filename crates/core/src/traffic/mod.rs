//! What workloads are made of: when flows start, between whom, how large they are, and what follows them.

pub(crate) mod arrivals;
pub(crate) mod estimate;
pub mod generators;
pub(crate) mod host_pairs;
pub(crate) mod rpc_calls;
pub mod sizes;

pub use self::arrivals::LoadCounts;
pub use self::estimate::WorkloadEstimate;
pub use self::host_pairs::Pairs;

use std::collections::BTreeMap;

use crate::base::random::Random;
use crate::base::schema::Problem;
use crate::base::units::Time;
use crate::model::flow::{FlowSpec, HostId};
use crate::model::graph::Graph;
use crate::model::packet::Format;

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

/// The flows of a workload, in order of start.
pub struct Flows {
    /// Names of the classes that flows refer to; at least one.
    pub classes: Vec<String>,
    /// What load this is, for people: the rate offered, where it is counted; empty if it has none.
    pub load: String,
    /// Whether flows may have deadlines.
    pub has_deadlines: bool,
    /// The flows, with starts that never go back; their ids are 0, 1, 2 …, but where others follow them.
    pub flows: Box<dyn Iterator<Item = FlowSpec> + Send>,
    /// What follows flows that have been delivered; none if nothing does.
    pub sequel: Option<Box<dyn Dependencies>>,
}

/// Flows that follow others: responses, and the next requests of those who wait for them.
pub trait Dependencies: Send {
    /// The flow that follows one which has just been delivered; it starts now or later. Its id is no
    /// other's, and depends on the workload alone.
    fn after(&mut self, ended: &FlowSpec, now: Time) -> Option<FlowSpec>;
}

impl Context<'_> {
    /// The stream for one purpose; every purpose has its own, so that changing one leaves the
    /// others.
    pub(crate) fn random(&self, purpose: &str) -> Random {
        Random::new(self.seed, &format!("workload/{purpose}"))
    }

    /// The hosts' number of a flow, if there are such hosts and they differ.
    pub(crate) fn check_ends(&self, source: HostId, target: HostId) -> Result<(), Problem> {
        check_ends(self.graph.host_count(), source, target)
    }
}

/// Whether there are such hosts, of so many, and they differ.
pub(crate) fn check_ends(hosts: HostId, source: HostId, target: HostId) -> Result<(), Problem> {
    for (field, host) in [("source", source), ("target", target)] {
        if host >= hosts {
            let message = format!("there is no host {host}; hosts are 0 to {}", hosts - 1);
            return Err(Problem::new(field, message));
        }
    }
    if source == target {
        let message = format!("must differ from `source`, which is {source} too");
        return Err(Problem::new("target", message));
    }
    Ok(())
}

impl Flows {
    /// A finite set of flows without a load, put in order and numbered.
    pub(crate) fn of(classes: Vec<String>, mut flows: Vec<FlowSpec>) -> Self {
        flows.sort_by_key(|flow| flow.start);
        let has_deadlines = flows.iter().any(|flow| flow.deadline.is_some());
        Self { has_deadlines, ..Self::in_order(classes, flows.into_iter()) }
    }

    /// Flows without a load and without deadlines in order of start, to be numbered.
    pub(crate) fn in_order(
        classes: Vec<String>,
        flows: impl Iterator<Item = FlowSpec> + Send + 'static,
    ) -> Self {
        let numbered = (0..).zip(flows).map(|(id, flow)| FlowSpec { id, ..flow });
        Self {
            classes,
            load: String::new(),
            has_deadlines: false,
            flows: Box::new(numbered),
            sequel: None,
        }
    }
}

/// A long-lived flow of the first class, with nothing else said about it.
pub(crate) fn plain(source: HostId, target: HostId, start: Time) -> FlowSpec {
    FlowSpec {
        id: 0,
        source,
        target,
        size: None,
        start,
        stop: None,
        class: 0,
        deadline: None,
        initial_rate: None,
        reply: None,
        called: None,
    }
}

/// The most classes that flows may have: what is told of each is for people.
pub const MOST_CLASSES: usize = 1024;

/// The classes of flows, numbered in the order in which they are first named.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    pub(crate) names: Vec<String>,
    known: BTreeMap<String, u16>,
}

impl Classes {
    /// The index of a class, which is added if it is new.
    pub(crate) fn index(&mut self, name: &str) -> Result<u16, Problem> {
        if let Some(index) = self.known.get(name) {
            return Ok(*index);
        }
        let index = self.names.len();
        if index >= MOST_CLASSES {
            let message = format!("`{name}` is one class too many: there may be {MOST_CLASSES}");
            return Err(Problem::new("class", message));
        }
        self.names.push(name.to_owned());
        self.known.insert(name.to_owned(), index as u16);
        Ok(index as u16)
    }
}

//! Workload generation: arrival processes, host pairs, flow size distributions and dependencies
//! between flows.

pub(crate) mod arrivals;
pub(crate) mod by_distance;
pub mod collectives;
pub(crate) mod demand;
pub(crate) mod estimate;
pub mod generators;
pub(crate) mod host_pairs;
pub mod hosts;
pub(crate) mod rpc_calls;
pub mod sizes;

pub use self::arrivals::LoadCounts;
pub use self::demand::Demand;
pub use self::estimate::WorkloadEstimate;
pub use self::host_pairs::HostPairs;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::base::random::Random;
use crate::base::schema::Problem;
use crate::base::units::{Bytes, Duration, Time};
use crate::model::flow::{Connection, FlowSpec, HostId};
use crate::model::graph::Graph;
use crate::model::packet::Format;

/// Inputs of a workload generator.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadContext<'a> {
    /// The network.
    pub graph: &'a Graph,
    /// Packet sizes, for loads that count headers and for flow sizes given in packets.
    pub format: &'a Format,
    /// Seed of the run.
    pub seed: u64,
    /// True if all packets of a flow take one path.
    pub takes_one_path: bool,
}

/// The flows of a workload, in order of start.
pub struct FlowStream {
    /// Names of the flow classes, by class index; at least one.
    pub classes: Vec<String>,
    /// Description of the offered load; empty if the workload has none.
    pub load: String,
    /// True if flows may have deadlines.
    pub has_deadlines: bool,
    /// True if flows may share persistent connections.
    pub has_connections: bool,
    /// The flows, in order of start. Flow IDs are 0, 1, 2 …, except in workloads with dependencies.
    pub flows: Box<dyn Iterator<Item = FlowSpec> + Send>,
    /// Flows that start when other flows are delivered or acknowledged, if any.
    pub dependencies: Option<Box<dyn Dependencies>>,
}

/// Flows that depend on other flows: RPC responses, the next requests of a closed loop, flows after
/// others in a trace, and messages of collective operations.
///
/// A host knows only of the flows that it sends or receives, so a flow depends on those of its own
/// source. New flows are appended to `next`. They start at `now` or later. Their IDs are unique and
/// depend on the workload alone.
pub trait Dependencies: Send {
    /// Starts the flows that follow `delivered`, which has just been delivered. Their source is the
    /// target of `delivered`.
    fn on_delivery(&mut self, delivered: &FlowSpec, now: Time, next: &mut Vec<FlowSpec>);

    /// Starts the flows that follow `sent`, whose sender has just closed: all its data are
    /// acknowledged, or it was terminated. Their source is the source of `sent`.
    fn on_sent(&mut self, _sent: &FlowSpec, _now: Time, _next: &mut Vec<FlowSpec>) {}

    /// Returns classes and the start from which their flows are no longer measured, at the end of a run.
    fn measured_until(&self) -> Vec<(u16, Time)> {
        Vec::new()
    }
}

/// Collective operation of several ranks, whose messages are the flows of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Name of the class.
    pub class: String,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of messages.
    pub messages: u64,
    /// Number of steps.
    pub steps: u32,
    /// Payload of all messages.
    pub payload: Bytes,
    /// Start of the first rank that waits for no message.
    pub start: Time,
    /// Time that a rank computes before it sends a message of the steps in `computed`.
    pub compute: Duration,
    /// Steps before whose messages ranks compute.
    pub computed: Range<u32>,
    /// Lower bound on the duration, from `start`.
    pub bound: Duration,
}

/// Parameters of a workload generator.
pub trait Workload {
    /// Generates the flows.
    fn generate(&self, context: &WorkloadContext<'_>) -> Result<FlowStream, Problem>;

    /// Estimates the size of the workload without generating it.
    fn estimate(&self, context: &WorkloadContext<'_>) -> Result<WorkloadEstimate, Problem>;

    /// Estimates the flows that start before `limit`.
    fn estimate_until(
        &self,
        context: &WorkloadContext<'_>,
        limit: Time,
    ) -> Result<WorkloadEstimate, Problem> {
        Ok(self.estimate(context)?.truncated(limit))
    }

    /// Returns the mean traffic that the workload offers while flows arrive; none if it defines no rate.
    fn demands(&self, _context: &WorkloadContext<'_>) -> Result<Vec<Demand>, Problem> {
        Ok(Vec::new())
    }

    /// Returns the last arrival up to `limit`, if many flows arrive one after another at a mean rate.
    fn last_arrival(
        &self,
        _context: &WorkloadContext<'_>,
        _limit: Time,
    ) -> Result<Option<Time>, Problem> {
        Ok(None)
    }

    /// Returns the end of random arrivals if it is a default: neither a time nor a number ends them.
    fn default_end(&self) -> Option<Time> {
        None
    }

    /// Returns the number of flows, if the workload gives it or lists them.
    fn number(&self) -> Option<u64> {
        None
    }

    /// Returns the classes of the flows with an initial rate.
    fn classes_with_initial_rate(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Returns the collective operations among the flows.
    fn jobs(&self, _context: &WorkloadContext<'_>) -> Result<Vec<Job>, Problem> {
        Ok(Vec::new())
    }

    /// Returns warnings of assumptions, each with its field.
    fn warnings(&self, _format: &Format) -> Vec<String> {
        Vec::new()
    }
}

/// Returns the warnings of size distributions, each with the field of its distribution.
pub(crate) fn size_warnings(fields: &[(&str, &sizes::Config)], format: &Format) -> Vec<String> {
    let warning = |(field, sizes): &(&str, &sizes::Config)| {
        sizes.warning(format).map(|warning| format!("{field}: {warning}"))
    };
    fields.iter().filter_map(warning).collect()
}

impl WorkloadContext<'_> {
    /// Returns the random stream for one purpose. Each purpose has its own stream, so that a change
    /// to one does not affect the others.
    pub(crate) fn random(&self, purpose: &str) -> Random {
        Random::new(self.seed, &format!("workload/{purpose}"))
    }
}

impl FlowStream {
    /// A finite set of flows without a load, sorted by start and numbered.
    pub(crate) fn sorted(classes: Vec<String>, mut flows: Vec<FlowSpec>) -> Self {
        flows.sort_by_key(|flow| flow.start);
        let has_deadlines = flows.iter().any(|flow| flow.deadline.is_some());
        let has_connections = flows.iter().any(|flow| flow.connection.is_some());
        Self { has_deadlines, has_connections, ..Self::numbered(classes, flows.into_iter()) }
    }

    /// Numbers flows that are already in order of start, without a load and without deadlines.
    pub(crate) fn numbered(
        classes: Vec<String>,
        flows: impl Iterator<Item = FlowSpec> + Send + 'static,
    ) -> Self {
        let numbered = (0..).zip(flows).map(|(id, flow)| FlowSpec { id, ..flow });
        Self {
            classes,
            load: String::new(),
            has_deadlines: false,
            has_connections: false,
            flows: Box::new(numbered),
            dependencies: None,
        }
    }
}

/// Returns a long-lived flow of the first class, with default values for all other fields.
pub(crate) fn flow_between(source: HostId, target: HostId, start: Time) -> FlowSpec {
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
        connection: None,
        step: None,
    }
}

/// Returns the connection of an arrival, of `connections` between a client and a server that arrivals use in
/// turn; `None` if every flow has a connection of its own.
pub(crate) fn connection_in_turn(connections: Option<u32>, arrival: u64) -> Option<Connection> {
    let number = arrival % u64::from(connections?);
    Some(Connection { number, from_server: false })
}

/// Maximum number of flow classes. Summaries list every class, so more would not be readable.
pub const MAX_CLASSES: usize = 1024;

/// Name of all flows in tables beside those of classes.
const ALL_FLOWS: &str = "all";

/// Flow classes, numbered in order of first use.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowClasses {
    pub(crate) names: Vec<String>,
    indices: BTreeMap<String, u16>,
}

impl FlowClasses {
    /// Returns the index of a class; adds the class if it is new.
    pub(crate) fn index(&mut self, name: &str) -> Result<u16, Problem> {
        if let Some(index) = self.indices.get(name) {
            return Ok(*index);
        }
        if name == ALL_FLOWS {
            let message = format!("must not be `{ALL_FLOWS}`, which names all flows");
            return Err(Problem::new("class", message));
        }
        let index = self.names.len();
        if index >= MAX_CLASSES {
            let message = format!("`{name}` exceeds the limit of {MAX_CLASSES} classes");
            return Err(Problem::new("class", message));
        }
        self.names.push(name.to_owned());
        self.indices.insert(name.to_owned(), index as u16);
        Ok(index as u16)
    }
}

//! What a run will need, estimated before anything of it is built.
//!
//! The bytes were measured (docs/performance.md). They are what the core takes and what the lab takes of the
//! results; of what depends on how the network fares (live flows, when the run ends) the estimate is central,
//! neither the least nor the most. So a run that fits may still grow, and is watched while it does.

use rustc_hash::FxHashSet;
use serde_json::{Value, json};

use crate::base::schema::Problem;
use crate::base::units::Time;
use crate::model::flow::HostId;
use crate::model::graph::{Graph, Link, NodeId, Paths};
use crate::model::packet::FlowNumber;
use crate::run::scenario::{Model, Scenario};
use crate::simulation::Simulation;
use crate::traffic::{WorkloadContext, WorkloadEstimate};

/// A node and a link of the graph, with their names, and a port with its queue.
const NODE: f64 = 150.0;
const LINK: f64 = 4_000.0;
/// What a node knows of a host to which flows run: its distance, and how many paths lead there.
const NODE_AND_TARGET: f64 = 10.0;
/// A record in the core, in a column that grows, and in the tables of the lab.
const RECORD: f64 = 200.0;
/// A sample, in the same places.
const SAMPLE: f64 = 60.0;
/// What a live flow has besides its two ends: a controller, what is in flight, its place in other tables.
const BESIDE_LIVE: f64 = 500.0;
/// A row of an account, in the same places as a record.
const ACCOUNT: f64 = 900.0;
/// What a live flow has of a stack of its own, as measured of QUIC's.
const OF_STACK: f64 = 31_000.0;
/// What a live flow has of an account: its own, and those of some ten packets in flight.
const OF_ACCOUNT: f64 = 6_000.0;
/// What an ideal keeps of a flow until the end.
const OF_IDEAL: f64 = 150.0;

/// What a run will need.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Flows that start.
    pub flows: f64,
    /// Whether it is known that so many will, if time allows.
    pub is_counted: bool,
    /// Most flows in progress at a time.
    pub live_flows: f64,
    /// Packets and their ACKs that links carry, each counted at each link; none in an ideal.
    pub packet_hops: f64,
    /// Samples taken.
    pub samples: f64,
    /// When the run will be over, roughly.
    pub ends: Time,
    /// When it is over at the latest.
    pub limit: Time,
    /// What each part of it takes in memory, in bytes: the field that asks for it, what it is, and how much.
    pub parts: [(&'static str, String, f64); 4],
    /// What is still there when the run is over: the results.
    pub results: f64,
}

impl Estimate {
    /// All memory it needs, in bytes.
    pub fn bytes(&self) -> f64 {
        self.parts.iter().map(|(_, _, bytes)| bytes).sum()
    }

    /// The estimate as plain data.
    pub fn show(&self) -> Value {
        json!({
            "bytes": self.bytes(),
            "result_bytes": self.results,
            "flows": self.is_counted.then_some(self.flows),
            "live_flows": self.live_flows,
            "packet_hops": self.packet_hops,
            "samples": self.samples,
            "ends_s": self.ends.seconds(),
            "limit_s": self.limit.seconds(),
        })
    }
}

impl Scenario {
    /// What a run on so many threads will need.
    pub fn estimate(&self, threads: u32) -> Result<Estimate, Problem> {
        self.estimate_on(&self.graph()?, threads)
    }

    /// Refuses what will need more than so many bytes of memory, or more flows than can be told apart.
    pub(crate) fn check_size(&self, graph: &Graph, memory: Option<u64>) -> Result<(), Problem> {
        let estimate = self.estimate_on(graph, 1)?;
        if estimate.is_counted && estimate.flows > f64::from(FlowNumber::MAX) {
            let message = format!(
                "{} flows; there may be no more than {}",
                count(estimate.flows),
                FlowNumber::MAX
            );
            return Err(Problem::new("workload", message));
        }
        let Some(memory) = memory.filter(|memory| estimate.bytes() > *memory as f64) else {
            return Ok(());
        };
        let largest = estimate.parts.iter().max_by(|one, other| one.2.total_cmp(&other.2));
        let (field, what, bytes) = largest.unwrap_or_else(|| unreachable!("four parts"));
        let message = format!(
            "needs about {} of memory, {} of it for {what}, and {} may be used",
            size(estimate.bytes()),
            size(*bytes),
            size(memory as f64),
        );
        Err(Problem::new(*field, message))
    }

    fn estimate_on(&self, graph: &Graph, threads: u32) -> Result<Estimate, Problem> {
        let context = WorkloadContext { graph, format: &self.packet, seed: self.seed };
        let offer = self.workload.estimate(&context).map_err(|problem| problem.within("workload"))?;
        let offer = offer.truncated(self.time_limit);
        // What the links of all hosts carry together.
        let rate = graph.access_rate().bps() / 8.0;
        let live_flows = offer.live_flows(rate, graph.hosts.len() as f64);
        let ends = offer.end_time(rate).min(self.time_limit);
        let samples = self.samples_until(ends, &offer);
        let (nodes, links) = (graph.nodes.len() as f64, graph.links.len() as f64);
        let targets = offer.flows.min(graph.hosts.len() as f64);
        let network = nodes * (NODE + targets * NODE_AND_TARGET) + links * LINK;
        let (account, of_account) = if self.account { (ACCOUNT, OF_ACCOUNT) } else { (0.0, 0.0) };
        let has_stack = self.transport.as_ref().is_some_and(|most| most.has_own_stack());
        let of_stack = if has_stack { OF_STACK } else { 0.0 };
        let of_live = BESIDE_LIVE + of_account + of_stack;
        let live = match self.model {
            Model::Packet => live_flows * (Simulation::BYTES_PER_LIVE_FLOW as f64 + of_live),
            Model::Ideal(_) => offer.flows * OF_IDEAL,
        };
        let packet_hops = match self.model {
            Model::Packet => self.packets_until(ends, &offer, graph) * 2.0 * mean_distance(graph),
            Model::Ideal(_) => 0.0,
        };
        let (records, of_samples) = (offer.flows * (RECORD + account), samples * SAMPLE);
        let flows = count(offer.flows);
        Ok(Estimate {
            flows: offer.flows,
            is_counted: offer.is_fixed,
            live_flows,
            packet_hops,
            samples,
            ends,
            limit: self.time_limit,
            parts: [
                ("topology", format!("{links} links"), network * f64::from(threads)),
                ("workload", format!("{flows} flows"), records + offer.stored_bytes),
                ("workload", format!("{} flows at a time", count(live_flows)), live),
                ("samples.interval", format!("{} samples", count(samples)), of_samples),
            ],
            results: 0.5 * (records + of_samples),
        })
    }

    /// How many packets of payload there will be: what is offered, and what flows without end fill.
    fn packets_until(&self, ends: Time, offer: &WorkloadEstimate, graph: &Graph) -> f64 {
        let lasts = offer.concurrent > 0.0 && offer.payload == 0.0;
        let filled = if lasts { most_carried(graph) / 8.0 * ends.seconds() } else { 0.0 };
        (offer.payload + filled) / self.packet.payload.0 as f64
    }

    /// How many samples there will be.
    fn samples_until(&self, ends: Time, offer: &WorkloadEstimate) -> f64 {
        let Some(samples) = &self.samples else { return 0.0 };
        // Controllers and routers have some gauges each, and a round trip six numbers.
        let probes = 1 + samples.links.len() + 2 * samples.queues.len() + 3 * samples.flows.len();
        let packets = offer.payload / offer.flows.max(1.0) / self.packet.payload.0 as f64;
        ends.seconds() / samples.interval.seconds() * probes as f64
            + 6.0 * packets * samples.rtt_flows.len() as f64
    }
}

/// What flows can fill, in bits a second: a load of 1, all that senders send, or all that receivers receive.
fn most_carried(graph: &Graph) -> f64 {
    let (senders, receivers) = match graph.senders {
        Some(senders) => graph.hosts.split_at(senders as usize),
        None => (&graph.hosts[..], &graph.hosts[..]),
    };
    let all_at = |hosts: &[NodeId], end: fn(&Link) -> NodeId| -> f64 {
        let hosts: FxHashSet<_> = hosts.iter().copied().collect();
        let links = graph.links.iter().filter(|link| hosts.contains(&end(link)));
        links.map(|link| link.rate.bps()).sum()
    };
    let (sent, received) = (all_at(senders, |link| link.from), all_at(receivers, |link| link.to));
    graph.load.rate.bps().min(sent).min(received)
}

/// How many links are between the first host and another, on average.
fn mean_distance(graph: &Graph) -> f64 {
    let mut paths = Paths::new(graph);
    let hops = (1..graph.hosts.len()).filter_map(|target| paths.hops(0, target as HostId));
    let (sum, count) =
        hops.fold((0.0, 0.0), |(sum, count), hops| (sum + f64::from(hops), count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

/// A number of things, in three digits if they are many.
fn count(number: f64) -> String {
    match number {
        1e6.. => format!("{number:.3e}"),
        _ => format!("{number:.0}"),
    }
}

/// An amount of memory, in two digits.
fn size(bytes: f64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB")];
    let (unit, name) = units.into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1e3, "KB"));
    let digits = usize::from(bytes / unit < 10.0);
    format!("{:.digits$} {name}", bytes / unit)
}

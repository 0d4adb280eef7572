//! Estimate of what a run needs, before its network is built.
//!
//! The constants were measured (docs/performance.md). They cover the memory of the core, and of the Python
//! package for the results. For quantities that depend on the network's behaviour (live flows, end of the
//! run) the estimate is central, neither a lower nor an upper bound: a run that fits may still grow, so its
//! memory is monitored.

use rustc_hash::FxHashSet;
use serde_json::{Value, json};

use crate::base::schema::Problem;
use crate::base::units::Time;
use crate::model::flow::HostId;
use crate::model::graph::{Graph, Link, NodeId, Paths};
use crate::model::packet::FlowNumber;
use crate::run::scenario::{Model, Scenario};
use crate::simulation::Simulation;
use crate::traffic::WorkloadEstimate;

/// Bytes for each node of the graph, with its name.
const NODE: f64 = 150.0;
/// Bytes for each link of the graph, with its port, queue and packets, and its counters as columns: in the
/// core and in the Python package.
const LINK: f64 = 3_000.0;
/// Bytes for each link of an ideal, which has neither packets nor their counters, in the same places.
const LINK_OF_IDEAL: f64 = 300.0;
/// Bytes for each flow record: in the core, in a growing column, and in the tables of the Python package.
const RECORD: f64 = 200.0;
/// Bytes for each sample, in the same places.
const SAMPLE: f64 = 60.0;
/// Bytes for each recorded packet, in the core and in the tables of the Python package.
const RECORDED_PACKET: f64 = 200.0;
/// Bytes for each link and bin of its counters, in the same places.
const LINK_BIN: f64 = 200.0;
/// Bytes for each live flow besides its two ends: controller, packets in flight, slots in other tables.
const LIVE_FLOW: f64 = 500.0;
/// Bytes for each row of the breakdown, in the same places as a record.
const BREAKDOWN_ROW: f64 = 900.0;
/// Bytes for each live flow's external stack, as measured for QUIC.
const EXTERNAL_STACK: f64 = 31_000.0;
/// Bytes for each live flow's breakdown, with those of some ten packets in flight.
const LIVE_BREAKDOWN: f64 = 6_000.0;
/// Bytes for each flow of an ideal, which are kept until the end.
const IDEAL_FLOW: f64 = 150.0;

/// Estimate of what a run needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Flows that start.
    pub flows: f64,
    /// True if this number of flows starts, provided there is time.
    pub is_counted: bool,
    /// Payload of all flows with a size, in bytes.
    pub payload: f64,
    /// Most flows in progress at the same time.
    pub live_flows: f64,
    /// Packets and ACKs, each counted at every link that carries it; 0 for an ideal.
    pub packet_hops: f64,
    /// Samples taken.
    pub samples: f64,
    /// Estimated end of the run.
    pub ends: Time,
    /// Latest end of the run.
    pub limit: Time,
    /// Memory in parts: the field that requests it, a description, and bytes. The first part is the network.
    pub parts: [(&'static str, String, f64); 5],
    /// Bytes of the results, which remain after the run.
    pub results: f64,
}

impl Estimate {
    /// Returns the total memory in bytes.
    pub fn bytes(&self) -> f64 {
        self.parts.iter().map(|(_, _, bytes)| bytes).sum()
    }

    /// Returns the estimate for a run on this number of threads, each of which has its own network.
    #[must_use]
    pub fn on_threads(mut self, threads: u32) -> Self {
        self.parts[0].2 *= f64::from(threads);
        self
    }

    /// Checks that the run needs no more than `memory` bytes, and that every flow can have a number.
    pub fn check(&self, memory: Option<u64>) -> Result<(), Problem> {
        if self.is_counted && self.flows > f64::from(FlowNumber::MAX) {
            let message = format!(
                "{} flows; there may be no more than {}",
                count(self.flows),
                FlowNumber::MAX
            );
            return Err(Problem::new("workload", message));
        }
        let Some(memory) = memory.filter(|memory| self.bytes() > *memory as f64) else {
            return Ok(());
        };
        let largest = self.parts.iter().max_by(|one, other| one.2.total_cmp(&other.2));
        let (field, what, bytes) = largest.unwrap_or_else(|| unreachable!("there are five parts"));
        let message = format!(
            "needs about {} of memory, {} of it for {what}, and {} may be used",
            size(self.bytes()),
            size(*bytes),
            size(memory as f64),
        );
        Err(Problem::new(*field, message))
    }

    /// Returns the estimate as plain data.
    pub fn show(&self) -> Value {
        json!({
            "bytes": self.bytes(),
            "result_bytes": self.results,
            "flows": self.is_counted.then_some(self.flows),
            "payload_bytes": self.payload,
            "live_flows": self.live_flows,
            "packet_hops": self.packet_hops,
            "samples": self.samples,
            "ends_s": self.ends.seconds(),
            "limit_s": self.limit.seconds(),
        })
    }
}

impl Scenario {
    /// Estimates a run on one thread.
    pub(super) fn estimate_on(&self, graph: &Graph) -> Result<Estimate, Problem> {
        let context = self.workload_context(graph);
        let workload = self.workload.estimate_until(&context, self.time_limit);
        let workload = workload.map_err(|problem| problem.within("workload"))?;
        // Bytes a second that all hosts' links carry together.
        let rate = graph.access_rate().bps() / 8.0;
        let live_flows = workload.live_flows(rate, graph.hosts.len() as f64);
        let ends = workload.end_time(rate).min(self.time_limit);
        let samples = self.samples_until(ends, &workload);
        let (nodes, links) = (graph.nodes.len() as f64, graph.links.len() as f64);
        let targets = workload.flows.min(graph.hosts.len() as f64);
        let mut paths = Paths::new(graph);
        let link = match self.model {
            Model::Packet => LINK,
            Model::Ideal(_) => LINK_OF_IDEAL,
        };
        let network = nodes * NODE + paths.table_bytes(targets) + links * link;
        let (breakdown_row, live_breakdown) =
            if self.account { (BREAKDOWN_ROW, LIVE_BREAKDOWN) } else { (0.0, 0.0) };
        let has_stack = self.transport.as_ref().is_some_and(|main| main.has_own_stack());
        let stack = if has_stack { EXTERNAL_STACK } else { 0.0 };
        let live_flow = Simulation::BYTES_PER_LIVE_FLOW as f64 + LIVE_FLOW + live_breakdown + stack;
        let kept = workload.flows / f64::from(self.flows_per_record);
        let live = match self.model {
            Model::Packet => live_flows * live_flow,
            Model::Ideal(_) => workload.flows.min(kept + live_flows) * IDEAL_FLOW,
        };
        let packet_hops = match self.model {
            Model::Packet => {
                self.packets_until(ends, &workload, graph) * 2.0 * mean_distance(graph, &mut paths)
            }
            Model::Ideal(_) => 0.0,
        };
        let records = kept * (RECORD + breakdown_row);
        let sample_bytes = samples * SAMPLE;
        let (recorded, record_bytes) = self.record_until(&workload, live_flows, links);
        let flows = count(workload.flows);
        Ok(Estimate {
            flows: workload.flows,
            is_counted: workload.is_fixed,
            payload: workload.payload,
            live_flows,
            packet_hops,
            samples,
            ends,
            limit: self.time_limit,
            parts: [
                ("topology", format!("{links} links"), network),
                (
                    "workload",
                    format!("{flows} flows and their records (`flows_per_record`)"),
                    records + workload.stored_bytes,
                ),
                ("workload", format!("{} flows at a time", count(live_flows)), live),
                ("samples.interval", format!("{} samples", count(samples)), sample_bytes),
                ("record.packets", format!("{} recorded packets", count(recorded)), record_bytes),
            ],
            results: 0.5 * (records + sample_bytes + record_bytes),
        })
    }

    /// Returns the number of packets with payload: those of sized flows, and what long-lived flows can carry
    /// beside them.
    fn packets_until(&self, ends: Time, workload: &WorkloadEstimate, graph: &Graph) -> f64 {
        let bytes = |rate: f64| rate / 8.0 * ends.seconds();
        let of_host = graph.access_rate().bps() / graph.hosts.len() as f64;
        let carried = workload.payload + workload.filled_hosts * bytes(of_host);
        let payload = workload.payload.max(carried.min(bytes(capacity(graph))));
        self.packets(payload, workload.flows)
    }

    /// Returns the number of packets of flows with this payload together. The last one of each is half full.
    fn packets(&self, payload: f64, flows: f64) -> f64 {
        (payload / self.packet.payload.0 as f64 + flows / 2.0).max(flows)
    }

    /// Returns the number of packets that are recorded, or logged while their flows are in progress, and the
    /// memory of all records.
    fn record_until(&self, workload: &WorkloadEstimate, live_flows: f64, links: f64) -> (f64, f64) {
        let (Some(record), Model::Packet) = (&self.record, &self.model) else { return (0.0, 0.0) };
        // With an ACK for each.
        let packets = 2.0 * self.packets(workload.payload, workload.flows);
        let of_flow = packets / workload.flows.max(1.0);
        let most = f64::from(record.packets);
        let live =
            live_flows * record.share(workload.flows) * of_flow.min(record.bounds()[1] as f64);
        // Logged until there are twice as many.
        let hops = if record.hops.is_empty() { 0.0 } else { 2.0 * most };
        let recorded = packets.min(most + live) + hops;
        (recorded, recorded * RECORDED_PACKET + links * f64::from(record.bins) * LINK_BIN)
    }

    /// Returns the number of samples.
    fn samples_until(&self, ends: Time, workload: &WorkloadEstimate) -> f64 {
        let Some(samples) = &self.samples else { return 0.0 };
        // Controllers and routers have some gauges each. An RTT is recorded as six numbers.
        let probes = 1 + samples.links.len() + 2 * samples.queues.len() + 3 * samples.flows.len();
        let packets = self.packets(workload.payload / workload.flows.max(1.0), 1.0);
        ends.seconds() / samples.interval.seconds() * probes as f64
            + 6.0 * packets * samples.rtt_flows.len() as f64
    }
}

/// Returns the rate that flows can fill, in bits a second: the least of the rate of a load of 1, the senders'
/// links and the receivers' links.
fn capacity(graph: &Graph) -> f64 {
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

/// Returns the mean number of links from the first host to the others.
fn mean_distance(graph: &Graph, paths: &mut Paths) -> f64 {
    let hops = (1..graph.hosts.len()).filter_map(|target| paths.hops(0, target as HostId));
    let (sum, count) =
        hops.fold((0.0, 0.0), |(sum, count), hops| (sum + f64::from(hops), count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

/// Formats a number, with three digits from a million on.
fn count(number: f64) -> String {
    match number {
        1e6.. => format!("{number:.3e}"),
        _ => format!("{number:.0}"),
    }
}

/// Formats an amount of memory, with two digits.
fn size(bytes: f64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB")];
    let (unit, name) = units.into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1e3, "KB"));
    let digits = usize::from(bytes / unit < 10.0);
    format!("{:.digits$} {name}", bytes / unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::port::Port;
    use crate::run::Prepared;

    #[test]
    fn links_of_a_large_idle_network_have_room_for_their_ports() {
        let scenario = json!({
            "environment": "paper", "topology": { "kind": "fat_tree", "k": 8 }, "transport": "dctcp",
            "workload": { "kind": "permutation", "size": "1 KB" },
        });
        let prepared = Prepared::parse(&scenario.to_string(), Vec::new()).unwrap();
        let [(field, description, bytes), ..] = prepared.estimate(1).unwrap().parts;
        assert_eq!((field, &*description), ("topology", "768 links"));
        // A port has a queue, a ring of packets in flight and random streams on the heap besides, and its
        // counters are columns.
        let least = size_of::<Link>() + size_of::<Port>();
        let per_link = bytes / 768.0;
        assert!(per_link >= 2.0 * least as f64, "{per_link} bytes for {least} without the heap");
        assert!(per_link <= 7.0 * least as f64, "{per_link} bytes for {least} without the heap");
    }

    /// Returns the estimate of a workload on a fat-tree for 20 ms.
    fn estimate_of(workload: &Value) -> Estimate {
        let scenario = json!({
            "topology": { "kind": "fat_tree", "k": 8, "rate": "100 Gbps" }, "transport": "dcqcn",
            "time_limit": "20 ms", "workload": workload,
        });
        let prepared = Prepared::parse(&scenario.to_string(), Vec::new()).unwrap();
        prepared.estimate(1).unwrap()
    }

    #[test]
    fn the_estimate_of_a_mixed_workload_is_the_sum_of_its_parts() {
        // The first would go on for a second, the second stops after 5 ms, the third stops with the run.
        let parts = [
            json!({ "kind": "incast", "fan_in": 60, "size": "500 KB", "load": 0.02 }),
            json!({
                "kind": "poisson", "load": 0.3, "stop": "5 ms",
                "sizes": { "kind": "empirical", "table": "fb_hadoop" },
            }),
            json!({
                "kind": "poisson", "load": 0.1, "stop": "20 ms",
                "sizes": { "kind": "fixed", "size": "1 MB" },
            }),
        ];
        let mixed = estimate_of(&json!({ "kind": "mixed", "parts": parts }));
        let sum =
            |of: fn(&Estimate) -> f64| parts.iter().map(|part| of(&estimate_of(part))).sum::<f64>();
        let flows = sum(|estimate| estimate.flows);
        let hops = sum(|estimate| estimate.packet_hops);
        assert!((mixed.flows / flows - 1.0).abs() < 1e-9, "{} of {flows} flows", mixed.flows);
        assert!((mixed.packet_hops / hops - 1.0).abs() < 1e-9, "{} of {hops}", mixed.packet_hops);
    }

    #[test]
    fn a_flow_of_a_few_bytes_is_a_packet() {
        let hops = |size: &str| {
            let rows: Vec<_> = (1..9)
                .map(|target| json!({ "source": 0, "target": target, "size": size }))
                .collect();
            estimate_of(&json!({ "kind": "flows", "flows": rows })).packet_hops
        };
        assert!((hops("1 MB") / hops("10 B") / 1000.0 - 1.0).abs() < 0.05);
    }

    #[test]
    fn the_estimate_of_a_trace_is_that_of_its_flows() {
        let text =
            "# comment\nsize_bytes, start_s, source, target\n3000000,0,0,9\n 5000000, 1e-3, 1, 9\n";
        let trace =
            estimate_of(&json!({ "kind": "trace", "file": { "name": "flows.csv", "text": text } }));
        let flows = estimate_of(&json!({ "kind": "flows", "flows": [
            { "source": 0, "target": 9, "size": "3 MB" },
            { "source": 1, "target": 9, "size": "5 MB", "start": "1 ms" },
        ] }));
        assert!((trace.payload - 8e6).abs() < 1e-6, "{}", trace.payload);
        let ratio = trace.packet_hops / flows.packet_hops;
        // The flows of a trace, each of which has a packet that is half full, are estimated from its size.
        assert!((ratio - 1.0).abs() < 1e-3, "{ratio}");
    }

    #[test]
    fn long_lived_flows_fill_the_network_beside_others() {
        let short = json!({
            "kind": "poisson", "load": 0.1, "stop": "20 ms", "sizes": { "kind": "fixed", "size": "1 MB" },
        });
        let long = json!({ "kind": "long_lived" });
        let both = estimate_of(&json!({ "kind": "mixed", "parts": [short, long] }));
        let hops = estimate_of(&long).packet_hops;
        assert!((both.packet_hops / hops - 1.0).abs() < 0.01, "{} of {hops}", both.packet_hops);
        assert!(hops > 5.0 * estimate_of(&short).packet_hops);
        let few = json!({ "kind": "flows", "flows": [
            { "source": 0, "target": 9 }, { "source": 1, "target": 9, "start": "10 ms" },
            { "source": 0, "target": 8 },
        ] });
        let share = estimate_of(&few).packet_hops / hops;
        assert!((share * 128.0 / 2.0 - 1.0).abs() < 1e-5, "{share} for 2 of 128 hosts");
        // Connections of calls beside them are no long-lived flows.
        let calls = json!({
            "kind": "rpc", "request": { "kind": "fixed", "size": "64 KB" },
            "response": { "kind": "fixed", "size": "64 B" },
            "pattern": { "load": 0.1, "peers": 16, "connections": 1, "stop": "20 ms" },
        });
        let beside = estimate_of(&json!({ "kind": "mixed", "parts": [few, calls] })).packet_hops;
        let sum = estimate_of(&few).packet_hops + estimate_of(&calls).packet_hops;
        assert!((beside / sum - 1.0).abs() < 1e-9, "{beside} of {sum}");
    }
}

//! Omniscient scheduler: SRPT over host ports, each used by one flow at a time.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::units::Duration;
use crate::ideal::{FluidFlow, FluidLinks, FluidScheduler, Ideal};
use crate::model::graph::Graph;

crate::parameters! {
    /// The omniscient greedy scheduler that [pfabric13] uses as its baseline. The network is one
    /// big switch, and only the host ports limit throughput. At every arrival and departure, flows
    /// are considered in order of remaining size, headers included, ties by flow number. A flow takes its
    /// source and destination port exclusively if no earlier flow has either of them; otherwise it
    /// waits.
    ///
    /// The fabric between the host ports never limits how many flows are active at once, but the
    /// slowest link of a path limits the rate of the flow. Flows may cross a dumbbell's bottleneck
    /// in parallel, and links may carry more than their rate, which a run reports if it holds in the
    /// mean (`srpt` shares every link). In a
    /// topology without access links, the link is both ports, and this is SRPT. Long-lived flows
    /// come last. This is not a lower bound on the completion time of individual flows; its mean
    /// completion time is at most about twice the optimum.
    pub struct Config {}
}

impl Ideal for Config {
    fn scheduler(&self, links: usize) -> Box<dyn FluidScheduler> {
        Box::new(Omniscient::new(links))
    }

    fn warning(&self, graph: &Graph, link_bytes: &[f64], elapsed: Duration) -> Option<String> {
        let used = (0_u32..).zip(link_bytes).map(|(id, bytes)| {
            let rate = graph.links[id as usize].rate.bps();
            (id, bytes * 8.0 / rate / elapsed.seconds().max(f64::MIN_POSITIVE))
        });
        let (link, used) = used.max_by(|one, other| one.1.total_cmp(&other.1))?;
        // The sum of a million flows is exact to 1e-9.
        (used > 1.0 + 1e-6).then(|| {
            format!(
                "`omniscient` carried {used:.2} times the rate of {}: it schedules the ports of hosts only, \
                 so no network reaches these completion times (`srpt` shares every link)",
                graph.link_name(link)
            )
        })
    }
}

/// A matching of flows to ports.
///
/// The scheduler needs the matching in which every waiting flow finds a flow with a higher priority
/// at one of its ports. The greedy choice gives this matching, and it is unique, because the order
/// is total. Over time only served flows get shorter, so the matching stays valid until a flow
/// arrives or departs. Then only the ports that lose a flow have to be checked, and the ports that
/// preempted flows release: a chain in which each step improves the matching, so it ends. A check
/// of a port considers at most the first waiting flow per opposite port, however many flows wait.
#[derive(Debug)]
struct Omniscient {
    /// Indexed by access link (first or last link of a path).
    ports: Vec<Port>,
    /// Active flows by flow number.
    flows: BTreeMap<usize, ScheduledFlow>,
    /// Waiting flows, by their two ports.
    waiting: BTreeMap<[usize; 2], BTreeSet<SrptKey>>,
    /// Departure times at current rates, and flow numbers. Times are encoded as in [`SrptKey`].
    departures: BTreeSet<(u64, usize)>,
}

#[derive(Clone, Debug, Default)]
struct Port {
    served: Option<usize>,
    /// First waiting flow for this port and each other port.
    first: BTreeSet<SrptKey>,
}

/// Priority of a flow: remaining size as the bits of a positive float, which sort in the same
/// order, and flow number.
type SrptKey = (u64, usize);

/// Lower than the priority of any flow.
const LOWEST_PRIORITY: SrptKey = (u64::MAX, usize::MAX);

/// A flow with its state at `updated_at`.
#[derive(Debug)]
struct ScheduledFlow {
    flow: FluidFlow,
    updated_at: f64,
}

impl ScheduledFlow {
    fn srpt_key(&self, now: f64) -> SrptKey {
        (self.flow.remaining_after(now - self.updated_at).to_bits(), self.flow.number())
    }

    /// Returns the first and the last link of the path, which may be the same.
    fn ports(&self) -> [usize; 2] {
        let links = &self.flow.links;
        [links[0] as usize, links[links.len() - 1] as usize]
    }

    /// Returns the departure time at the current rate, and the flow number.
    fn departure(&self) -> (u64, usize) {
        ((self.updated_at + self.flow.time_left(self.updated_at)).to_bits(), self.flow.number())
    }
}

impl Omniscient {
    fn new(links: usize) -> Self {
        Self {
            ports: vec![Port::default(); links],
            flows: BTreeMap::new(),
            waiting: BTreeMap::new(),
            departures: BTreeSet::new(),
        }
    }

    /// Returns the key of the flow that a port serves. A flow needs a smaller key to preempt it.
    fn served_key(&self, port: usize, now: f64) -> SrptKey {
        self.ports[port].served.map_or(LOWEST_PRIORITY, |number| self.flows[&number].srpt_key(now))
    }

    /// Assigns ports that lost their flow, and ports released by preempted flows, to the waiting
    /// flows of highest priority.
    fn rematch(&mut self, ports: impl IntoIterator<Item = usize>, now: f64) {
        let mut lost: Vec<usize> = ports.into_iter().collect();
        while let Some(port) = lost.pop() {
            let Some(number) = self.preempting_flow(port, now) else { continue };
            for port in self.flows[&number].ports() {
                if let Some(displaced) = self.ports[port].served {
                    lost.extend(self.flows[&displaced].ports().into_iter().filter(|p| *p != port));
                    self.set_rate(displaced, 0.0, now);
                }
            }
            self.set_rate(number, self.flows[&number].flow.bottleneck, now);
        }
    }

    /// Returns the first flow waiting for a port that has priority over the flows served at both
    /// its ports.
    fn preempting_flow(&self, port: usize, now: f64) -> Option<usize> {
        let mut waiting = self.ports[port].first.range(..self.served_key(port, now));
        let may_go = |srpt_key: &&SrptKey| {
            self.flows[&srpt_key.1]
                .ports()
                .into_iter()
                .all(|port| **srpt_key < self.served_key(port, now))
        };
        waiting.find(may_go).map(|(_, number)| *number)
    }

    /// Changes the rate of a flow.
    fn set_rate(&mut self, number: usize, rate: f64, now: f64) {
        let mut scheduled = self.remove(number, now);
        scheduled.flow.rate = rate;
        self.insert(scheduled, now);
    }

    /// Adds a flow that waits or is served.
    fn insert(&mut self, scheduled: ScheduledFlow, now: f64) {
        let (number, ports, srpt_key) =
            (scheduled.flow.number(), scheduled.ports(), scheduled.srpt_key(now));
        if scheduled.flow.rate > 0.0 {
            for port in ports {
                self.ports[port].served = Some(number);
            }
        } else {
            self.update_waiting(ports, |queue| queue.insert(srpt_key));
        }
        self.departures.insert(scheduled.departure());
        self.flows.insert(number, scheduled);
    }

    /// Removes a flow and updates its state to `now`.
    fn remove(&mut self, number: usize, now: f64) -> ScheduledFlow {
        let mut scheduled = self.flows.remove(&number).expect("unknown flow number");
        let (ports, srpt_key) = (scheduled.ports(), scheduled.srpt_key(now));
        self.departures.remove(&scheduled.departure());
        if scheduled.flow.rate > 0.0 {
            for port in ports {
                self.ports[port].served = None;
            }
        } else {
            self.update_waiting(ports, |queue| queue.remove(&srpt_key));
        }
        scheduled.flow.advance(scheduled.updated_at, now - scheduled.updated_at);
        scheduled.updated_at = now;
        scheduled
    }

    /// Changes the waiting flows of two ports and updates the first waiting flow at both.
    fn update_waiting(
        &mut self,
        ports: [usize; 2],
        change: impl FnOnce(&mut BTreeSet<SrptKey>) -> bool,
    ) {
        let queue = self.waiting.entry(ports).or_default();
        let before = queue.first().copied();
        change(queue);
        let after = queue.first().copied();
        if before != after {
            for port in ports {
                let first = &mut self.ports[port].first;
                before.map(|srpt_key| first.remove(&srpt_key));
                first.extend(after);
            }
        }
    }
}

impl FluidScheduler for Omniscient {
    fn admit(&mut self, flow: FluidFlow, _links: &FluidLinks, now: f64) {
        let scheduled = ScheduledFlow { flow, updated_at: now };
        let [port, _] = scheduled.ports();
        self.insert(scheduled, now);
        self.rematch([port], now);
    }

    fn serve(&mut self, _links: &FluidLinks, _now: f64, until: f64) -> Option<(FluidFlow, f64)> {
        let (bits, number) = *self.departures.first()?;
        let departure = f64::from_bits(bits);
        if !departure.is_finite() || departure > until {
            return None;
        }
        let scheduled = self.remove(number, departure);
        self.rematch(scheduled.ports(), departure);
        Some((scheduled.flow, departure))
    }

    fn close(&mut self, now: f64) -> Vec<FluidFlow> {
        let flows = std::mem::take(&mut self.flows).into_values();
        let current = |mut scheduled: ScheduledFlow| {
            scheduled.flow.advance(scheduled.updated_at, now - scheduled.updated_at);
            scheduled.flow
        };
        flows.map(current).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::{Duration, Rate, Time};
    use crate::ideal::allocation::AllocationScheduler;
    use crate::ideal::fixture::{
        empty_graph, fcts_on_link, one_link, poisson, run_over, sized_flow,
    };
    use crate::ideal::models::srpt;
    use crate::ideal::{Allocation, IdealOutcome};
    use crate::model::flow::{self, FlowSpec};
    use crate::model::graph::Graph;
    use proptest::prelude::*;

    /// Reference implementation: considers all flows, in order, at every event.
    struct GreedyReference;

    impl Ideal for GreedyReference {
        fn scheduler(&self, _links: usize) -> Box<dyn FluidScheduler> {
            Box::new(AllocationScheduler::new(GreedyReference))
        }
    }

    impl Allocation for GreedyReference {
        fn allocate(&mut self, flows: &mut [FluidFlow], _links: &FluidLinks) {
            flows.sort_by(|a, b| {
                a.remaining().total_cmp(&b.remaining()).then(a.number().cmp(&b.number()))
            });
            let mut taken = BTreeSet::new();
            for flow in flows {
                let ports = [flow.links[0], flow.links[flow.links.len() - 1]];
                let is_free = ports.iter().all(|port| !taken.contains(port));
                flow.rate = if is_free { flow.bottleneck } else { 0.0 };
                if is_free {
                    taken.extend(ports);
                }
            }
        }
    }

    /// Hosts with these rates around a switch; at 8 Gb/s a byte takes one nanosecond.
    fn star(gbps: &[u64]) -> Graph {
        let mut graph = empty_graph();
        let switch = graph.add_switch("switch");
        for (i, rate) in gbps.iter().enumerate() {
            let host = graph.add_host(i.to_string());
            graph.connect(host, switch, Rate::from_gbps(*rate), Duration::ZERO);
        }
        graph
    }

    /// A flow of `size` bytes that starts at `start` nanoseconds.
    fn between(ends: (u32, u32), id: u64, start: u64, size: u64) -> FlowSpec {
        FlowSpec { source: ends.0, target: ends.1, ..sized_flow(id, start * 1000, size) }
    }

    fn run_on_star(
        ideal: &dyn Ideal,
        graph: &Graph,
        flows: &[FlowSpec],
        limit: Time,
    ) -> IdealOutcome {
        run_over(ideal, graph, flows, limit, |spec, links| {
            links.extend([2 * spec.source, 2 * spec.target + 1]);
        })
    }

    /// Waiting times of the flows, in nanoseconds.
    fn waiting_times(graph: &Graph, flows: &[FlowSpec]) -> Vec<f64> {
        let outcome = run_on_star(&Config {}, graph, flows, Time::NEVER);
        let wait = |r: &flow::FlowRecord| r.fct.unwrap().0.abs_diff(r.ideal_fct.0) as f64 / 1e3;
        outcome.records.iter().map(wait).collect()
    }

    #[test]
    fn flows_wait_while_a_shorter_flow_uses_one_of_their_ports() {
        let graph = star(&[8; 4]);
        // Flow 1 has the same source as flow 0, flow 2 the same target as flow 1. Flow 1 waits, so
        // flow 2 can start.
        let flows =
            [between((0, 1), 0, 0, 1000), between((0, 2), 1, 0, 2000), between((3, 2), 2, 0, 3000)];
        // At 1 us flows 1 and 2 both have 2000 B left, and flow 1 has the smaller number.
        assert_eq!(waiting_times(&graph, &flows), [0.0, 1000.0, 2000.0]);
    }

    #[test]
    fn a_shorter_flow_takes_two_ports_and_frees_two_others() {
        let graph = star(&[8; 6]);
        let flows = [
            between((0, 1), 0, 0, 5000),
            between((2, 3), 1, 0, 5000),
            between((4, 1), 2, 0, 6000),
            between((2, 5), 3, 0, 6000),
            // Preempts flows 0 and 1. Their other ports, 1 and 2, are then free. Flow 2 takes port
            // 1, but no flow takes source port 2, because this flow sends from it.
            between((2, 1), 4, 1000, 500),
            between((0, 3), 5, 1000, 100),
        ];
        // Flow 4 is served for 500 ns, flow 5 for 100 ns. Then flows 0 and 1 resume; flows 2 and 3
        // follow at 5.5 us and take 6 us.
        assert_eq!(waiting_times(&graph, &flows), [500.0, 500.0, 5500.0, 5500.0, 0.0, 0.0]);
    }

    #[test]
    fn what_a_flow_that_is_interrupted_leaves_free_is_taken_at_once() {
        let graph = star(&[8; 6]);
        let flows = [
            between((0, 1), 0, 0, 2000),
            between((2, 1), 1, 0, 3000),
            between((2, 3), 2, 0, 4000),
            between((0, 4), 3, 1000, 500),
        ];
        // At first flow 1 waits for target 1, and flow 2 sends from 2. Flow 3 preempts flow 0 for
        // 500 ns; flow 1 gets its target and preempts flow 2 for 500 ns. Then flow 0 preempts flow
        // 1, and flow 2 resumes, because its 2000 B left at 2.5 us are less than the 2500 B of flow
        // 1.
        assert_eq!(waiting_times(&graph, &flows), [500.0, 4000.0, 500.0, 0.0]);
    }

    #[test]
    fn slow_port_blocks_a_fast_port() {
        // 4000 B to the slow host take 4 us and block the fast source for that time.
        let graph = star(&[16, 8, 16]);
        let flows = [between((0, 1), 0, 0, 4000), between((0, 2), 1, 1000, 8000)];
        assert_eq!(waiting_times(&graph, &flows), [0.0, 3000.0]);
    }

    #[test]
    fn long_lived_flows_come_last_and_may_stop_while_waiting() {
        let long_lived = |id, ends, stop| FlowSpec { size: None, stop, ..between(ends, id, 0, 0) };
        let flows = [
            long_lived(0, (0, 1), None),
            long_lived(1, (0, 2), Some(Time(2_000_000))),
            between((0, 1), 2, 1000, 3000),
        ];
        let outcome = run_on_star(&Config {}, &star(&[8; 3]), &flows, Time(10_000_000));
        let delivered: Vec<_> = outcome.records.iter().map(|r| r.delivered.0).collect();
        // Flow 0 sends except for 3 us, and 1 us of its data is still in flight to a second switch
        // port.
        assert_eq!(delivered, [6000, 0, 3000]);
        assert_eq!(outcome.records[2].fct, Some(outcome.records[2].ideal_fct));
        assert_eq!(outcome.link_bytes[0] as u64, 10_000);
    }

    #[test]
    fn serves_a_backlog_of_100_000_flows() {
        // A scan of all flows at every event would take quadratic time.
        let graph = star(&[8; 4]);
        let flows: Vec<_> = (0..100_000)
            .map(|id| {
                let source = id as u32 % 4;
                let target = (source + 1 + id as u32 / 4 % 3) % 4;
                between((source, target), id, 0, 1 + id * 7919 % 10_007)
            })
            .collect();
        let outcome = run_on_star(&Config {}, &graph, &flows, Time::NEVER);
        assert!(outcome.records.iter().all(|record| record.fct.is_some()));
        let busiest = (0..4).map(|port| outcome.link_bytes[2 * port]).fold(0.0, f64::max);
        // The port sends a byte per nanosecond and is rarely idle.
        assert!(outcome.end.0 as f64 / 1e3 / busiest < 1.5, "{:?}", outcome.end);
    }

    type RandomFlow = (u64, u64, u32, u32);

    /// Inter-arrival times in nanoseconds, sizes in bytes and two different hosts of six.
    fn random_flows() -> impl Strategy<Value = Vec<RandomFlow>> {
        prop::collection::vec((0_u64..3000, 0_u64..6000, 0_u32..6, 0_u32..5), 1..60)
    }

    fn flows(drawn: &[RandomFlow]) -> Vec<FlowSpec> {
        let mut start = 0;
        (0..)
            .zip(drawn)
            .map(|(id, (gap, size, source, other))| {
                start += gap;
                let target = if other < source { *other } else { other + 1 };
                between((*source, target), id, start, *size)
            })
            .collect()
    }

    proptest! {
        #[test]
        fn matches_the_greedy_reference(
            rates in prop::collection::vec(prop::sample::select(vec![2_u64, 4, 8]), 6),
            drawn in random_flows(),
            limit in 1_u64..200_000,
        ) {
            // With these rates every time is a whole number of picoseconds, so nothing is rounded.
            let (graph, flows) = (star(&rates), flows(&drawn));
            for limit in [Time(limit * 1000), Time::NEVER] {
                let ours = run_on_star(&Config {}, &graph, &flows, limit);
                prop_assert_eq!(ours, run_on_star(&GreedyReference, &graph, &flows, limit));
            }
        }

        #[test]
        fn waiting_flows_find_higher_priority_at_a_port(
            rates in prop::collection::vec(1_u64..20, 12),
            drawn in random_flows(),
        ) {
            let mut links = FluidLinks::new(rates.into_iter().map(Rate::from_gbps));
            let (mut scheduler, mut now) = (Omniscient::new(12), 0.0);
            for spec in flows(&drawn) {
                while let Some((_, left)) = scheduler.serve(&links, now, spec.start.0 as f64) {
                    now = left;
                    prop_assert_eq!(blocked_without_cause(&scheduler, now), None);
                }
                now = spec.start.0 as f64;
                let mut flow = links.add_flow(vec![spec.source, 6 + spec.target]);
                (flow.record, flow.total) = (spec.id as usize, spec.size.unwrap().0 as f64 * 8e12);
                scheduler.admit(flow, &links, now);
                prop_assert_eq!(blocked_without_cause(&scheduler, now), None);
            }
        }

        #[test]
        fn is_srpt_on_one_link(seed: u64, load in 0.2..1.2) {
            let flows = poisson(seed, load, 300);
            let ours = fcts_on_link(&Config {}, &one_link(), &flows);
            for (one, other) in ours.iter().zip(fcts_on_link(&srpt::Config {}, &one_link(), &flows)) {
                prop_assert!(one.0.abs_diff(other.0) <= 1, "{one:?} {other:?}");
            }
        }
    }

    /// Returns a waiting flow without a flow of higher priority at either port.
    fn blocked_without_cause(scheduler: &Omniscient, now: f64) -> Option<usize> {
        let could_go = |scheduled: &&ScheduledFlow| {
            let is_first = |port| scheduled.srpt_key(now) < scheduler.served_key(port, now);
            scheduled.flow.rate == 0.0 && scheduled.ports().into_iter().all(is_first)
        };
        scheduler.flows.values().find(could_go).map(|scheduled| scheduled.flow.number())
    }
}

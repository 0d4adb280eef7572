//! The omniscient scheduler: the shortest flows first, each over two ports that it has to itself.

use std::collections::{BTreeMap, BTreeSet};

use super::{Flow, Ideal, Links, Service};

crate::parameters! {
    /// The greedy scheduler that [pfabric13] holds itself against, which knows everything at once:
    /// the network is one big switch, of which only the hosts' own ports limit what flows get. At
    /// every arrival and departure, flows in order of what they have left on the wire, ties by
    /// number, each take both their ports whole, if none before them has; the others wait.
    ///
    /// The fabric between the hosts' ports is taken never to limit how many flows run at once,
    /// though a flow's own slowest link limits how fast it goes: over a dumbbell's bottleneck flows
    /// may pass side by side, and links may carry more than their rate (`srpt` shares every link). On
    /// a topology without access links the cable is both ports, and this is SRPT. Flows without end
    /// come last. It bounds no flow from below; its mean completion time is at most about twice the
    /// least one possible.
    pub struct Config {}
}

impl Ideal for Config {
    fn open(&self, links: usize) -> Box<dyn Service> {
        Box::new(Omniscient::new(links))
    }
}

/// A matching of ports by flows.
///
/// What is wanted is the matching in which every flow that waits finds at one of its ports a flow
/// before it: greedy choice gives one, and there is no other, as the order is total. As time passes
/// only flows that are served get shorter, so it stays what is wanted until a flow comes or leaves.
/// Then only the ports that lose a flow have to be looked at, and those that the flows taken instead
/// leave in turn: a chain, of which each link makes the matching better, so it ends. To look at a
/// port is to look at the first flow to or from each other port at most, however many wait.
#[derive(Debug)]
struct Omniscient {
    /// By the link by which flows leave or reach a host.
    ports: Vec<Port>,
    /// By number.
    flows: BTreeMap<usize, Timed>,
    /// Flows that wait, by their two ports.
    waiting: BTreeMap<[usize; 2], BTreeSet<Rank>>,
    /// When flows leave, if nothing comes between, and their numbers; instants as in [`Rank`].
    departures: BTreeSet<(u64, usize)>,
}

#[derive(Clone, Debug, Default)]
struct Port {
    served: Option<usize>,
    /// The first flow that waits for this port and another, for each other.
    first: BTreeSet<Rank>,
}

/// A flow's place in the order: what it has left, as the bits of a positive float, which sort as it
/// does, and its number.
type Rank = (u64, usize);

/// After every flow.
const LAST: Rank = (u64::MAX, usize::MAX);

/// A flow as it was at an instant.
#[derive(Debug)]
struct Timed {
    flow: Flow,
    at: f64,
}

impl Timed {
    fn rank(&self, now: f64) -> Rank {
        (self.flow.remaining_after(now - self.at).to_bits(), self.flow.number())
    }

    /// The ports it needs: the first and the last link of its way, which may be one.
    fn ports(&self) -> [usize; 2] {
        let links = &self.flow.links;
        [links[0] as usize, links[links.len() - 1] as usize]
    }

    /// When it leaves if it goes on like this, and its number.
    fn departure(&self) -> (u64, usize) {
        ((self.at + self.flow.time_left(self.at)).to_bits(), self.flow.number())
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

    /// What a flow must come before to be served at a port.
    fn bar(&self, port: usize, now: f64) -> Rank {
        self.ports[port].served.map_or(LAST, |number| self.flows[&number].rank(now))
    }

    /// Gives ports that lost their flow, and those that lose theirs by that, to the flows that come
    /// first.
    fn rematch(&mut self, ports: impl IntoIterator<Item = usize>, now: f64) {
        let mut lost: Vec<usize> = ports.into_iter().collect();
        while let Some(port) = lost.pop() {
            let Some(number) = self.claimant(port, now) else { continue };
            for claimed in self.flows[&number].ports() {
                if let Some(displaced) = self.ports[claimed].served {
                    lost.extend(
                        self.flows[&displaced].ports().into_iter().filter(|p| *p != claimed),
                    );
                    self.change(displaced, 0.0, now);
                }
            }
            self.change(number, self.flows[&number].flow.bottleneck, now);
        }
    }

    /// The first flow waiting for a port that comes before those served at both its ports.
    fn claimant(&self, port: usize, now: f64) -> Option<usize> {
        let mut waiting = self.ports[port].first.range(..self.bar(port, now));
        let may_go = |rank: &&Rank| {
            self.flows[&rank.1].ports().into_iter().all(|port| **rank < self.bar(port, now))
        };
        waiting.find(may_go).map(|(_, number)| *number)
    }

    /// Serves a flow at another rate from now on.
    fn change(&mut self, number: usize, rate: f64, now: f64) {
        let mut timed = self.take(number, now);
        timed.flow.rate = rate;
        self.put(timed, now);
    }

    /// Adds a flow that waits or is served.
    fn put(&mut self, timed: Timed, now: f64) {
        let (number, ports, rank) = (timed.flow.number(), timed.ports(), timed.rank(now));
        if timed.flow.rate > 0.0 {
            for port in ports {
                self.ports[port].served = Some(number);
            }
        } else {
            self.queue(ports, |queue| queue.insert(rank));
        }
        self.departures.insert(timed.departure());
        self.flows.insert(number, timed);
    }

    /// Removes a flow, brought up to date.
    fn take(&mut self, number: usize, now: f64) -> Timed {
        let mut timed = self.flows.remove(&number).expect("a number of a flow");
        let (ports, rank) = (timed.ports(), timed.rank(now));
        self.departures.remove(&timed.departure());
        if timed.flow.rate > 0.0 {
            for port in ports {
                self.ports[port].served = None;
            }
        } else {
            self.queue(ports, |queue| queue.remove(&rank));
        }
        timed.flow.advance(now - timed.at);
        timed.at = now;
        timed
    }

    /// Changes who waits for two ports, and tells both who is first then.
    fn queue(&mut self, ports: [usize; 2], change: impl FnOnce(&mut BTreeSet<Rank>) -> bool) {
        let queue = self.waiting.entry(ports).or_default();
        let before = queue.first().copied();
        change(queue);
        let after = queue.first().copied();
        if before != after {
            for port in ports {
                let first = &mut self.ports[port].first;
                before.map(|rank| first.remove(&rank));
                first.extend(after);
            }
        }
    }
}

impl Service for Omniscient {
    fn admit(&mut self, flow: Flow, now: f64) {
        let timed = Timed { flow, at: now };
        let [port, _] = timed.ports();
        self.put(timed, now);
        self.rematch([port], now);
    }

    fn serve(&mut self, _links: &Links, _now: f64, until: f64) -> Option<(Flow, f64)> {
        let (bits, number) = *self.departures.first()?;
        let then = f64::from_bits(bits);
        if !then.is_finite() || then > until {
            return None;
        }
        let timed = self.take(number, then);
        self.rematch(timed.ports(), then);
        Some((timed.flow, then))
    }

    fn close(&mut self, now: f64) -> Vec<Flow> {
        let flows = std::mem::take(&mut self.flows).into_values();
        let current = |mut timed: Timed| {
            timed.flow.advance(now - timed.at);
            timed.flow
        };
        flows.map(current).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::run_control::RunControl;
    use crate::base::units::{Duration, Rate, Time};
    use crate::ideal::allocation::Fluid;
    use crate::ideal::fixture::{BARE, completions, no_network, one_link, poisson, sized};
    use crate::ideal::models::{Allocation, Outcome, Setting, run, srpt};
    use crate::model::flow::{self, FlowSpec};
    use crate::model::graph::Graph;
    use proptest::prelude::*;

    /// The definition at its word: walks all flows, in order, at every event.
    struct Greedy;

    impl Ideal for Greedy {
        fn open(&self, _links: usize) -> Box<dyn Service> {
            Box::new(Fluid::new(Greedy))
        }
    }

    impl Allocation for Greedy {
        fn allocate(&mut self, flows: &mut [Flow], _links: &Links) {
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

    /// Hosts of these rates around a switch; a byte lasts a nanosecond at 8 Gb/s.
    fn star(gbps: &[u64]) -> Graph {
        let mut graph = no_network();
        let switch = graph.add_switch("switch");
        for (i, rate) in gbps.iter().enumerate() {
            let host = graph.add_host(i.to_string());
            graph.connect(host, switch, Rate::from_gbps(*rate), Duration::ZERO);
        }
        graph
    }

    /// A flow of `size` bytes that starts at `start` nanoseconds.
    fn between(ends: (u32, u32), id: u64, start: u64, size: u64) -> FlowSpec {
        FlowSpec { source: ends.0, target: ends.1, ..sized(id, start * 1000, size) }
    }

    fn run_on_star(ideal: &dyn Ideal, graph: &Graph, flows: &[FlowSpec], limit: Time) -> Outcome {
        let setting = Setting { graph, format: &BARE, limit, watch: &RunControl::default() };
        run(ideal, setting, flows.iter().copied(), |spec, links| {
            links.extend([2 * spec.source, 2 * spec.target + 1]);
        })
    }

    /// What flows wait for others, in nanoseconds.
    fn waits(graph: &Graph, flows: &[FlowSpec]) -> Vec<f64> {
        let outcome = run_on_star(&Config {}, graph, flows, Time::NEVER);
        let wait = |r: &flow::FlowRecord| r.fct.unwrap().0.abs_diff(r.ideal_fct.0) as f64 / 1e3;
        outcome.records.iter().map(wait).collect()
    }

    #[test]
    fn a_flow_waits_while_a_shorter_one_has_either_of_its_ports() {
        let graph = star(&[8; 4]);
        // The second shares its source with the first, the third its target with the second, which
        // does not run: the third need not wait.
        let flows =
            [between((0, 1), 0, 0, 1000), between((0, 2), 1, 0, 2000), between((3, 2), 2, 0, 3000)];
        // At 1 us the second has 2000 B left and the third as many, but a larger number.
        assert_eq!(waits(&graph, &flows), [0.0, 1000.0, 2000.0]);
    }

    #[test]
    fn a_shorter_flow_takes_two_ports_and_frees_two_others() {
        let graph = star(&[8; 6]);
        let flows = [
            between((0, 1), 0, 0, 5000),
            between((2, 3), 1, 0, 5000),
            between((4, 1), 2, 0, 6000),
            between((2, 5), 3, 0, 6000),
            // Interrupts the first two. The others' ports 1 and 2 are free of them then; of 1 the
            // third takes hold, of 2 nobody, since this one sends from it.
            between((2, 1), 4, 1000, 500),
            between((0, 3), 5, 1000, 100),
        ];
        // The fifth is served for 500 ns, the sixth for 100. Then the first two go on; the third
        // and the fourth follow them, until 5.5 us, and take 6 us.
        assert_eq!(waits(&graph, &flows), [500.0, 500.0, 5500.0, 5500.0, 0.0, 0.0]);
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
        // At first the second waits for target 1, and the third sends from 2. The fourth interrupts
        // the first for 500 ns; the second gets its target, and interrupts the third for as long.
        // Then the first interrupts the second, and the third goes on, which with 2000 B left at
        // 2.5 us comes before the second with 2500 B.
        assert_eq!(waits(&graph, &flows), [500.0, 4000.0, 500.0, 0.0]);
    }

    #[test]
    fn a_slow_port_holds_a_fast_one() {
        // 4000 B to the slow host last 4 us and keep the fast source from sending anything else.
        let graph = star(&[16, 8, 16]);
        let flows = [between((0, 1), 0, 0, 4000), between((0, 2), 1, 1000, 8000)];
        assert_eq!(waits(&graph, &flows), [0.0, 3000.0]);
    }

    #[test]
    fn flows_without_end_come_last_and_may_stop_while_they_wait() {
        let endless = |id, ends, stop| FlowSpec { size: None, stop, ..between(ends, id, 0, 0) };
        let flows = [
            endless(0, (0, 1), None),
            endless(1, (0, 2), Some(Time(2_000_000))),
            between((0, 1), 2, 1000, 3000),
        ];
        let outcome = run_on_star(&Config {}, &star(&[8; 3]), &flows, Time(10_000_000));
        let delivered: Vec<_> = outcome.records.iter().map(|r| r.delivered.0).collect();
        // The first sends but for 3 us, and 1 us of it is still under way to a second switch port.
        assert_eq!(delivered, [6000, 0, 3000]);
        assert_eq!(outcome.records[2].fct, Some(outcome.records[2].ideal_fct));
        assert_eq!(outcome.link_bytes[0] as u64, 10_000);
    }

    #[test]
    fn a_backlog_of_a_hundred_thousand_flows_is_served() {
        // Were all flows looked at each time, this would be as many times as many steps.
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
        // A byte a nanosecond, and nothing idles for long.
        assert!(outcome.end.0 as f64 / 1e3 / busiest < 1.5, "{:?}", outcome.end);
    }

    type Drawn = (u64, u64, u32, u32);

    /// Gaps in nanoseconds, sizes in bytes and two different hosts of six.
    fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
        prop::collection::vec((0_u64..3000, 0_u64..6000, 0_u32..6, 0_u32..5), 1..60)
    }

    fn flows(drawn: &[Drawn]) -> Vec<FlowSpec> {
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
        fn it_is_the_greedy_choice_among_all_flows(
            rates in prop::collection::vec(prop::sample::select(vec![2_u64, 4, 8]), 6),
            drawn in drawn(),
            limit in 1_u64..200_000,
        ) {
            // With such rates every instant is a whole number of picoseconds: nothing is rounded.
            let (graph, flows) = (star(&rates), flows(&drawn));
            for limit in [Time(limit * 1000), Time::NEVER] {
                let ours = run_on_star(&Config {}, &graph, &flows, limit);
                prop_assert_eq!(ours, run_on_star(&Greedy, &graph, &flows, limit));
            }
        }

        #[test]
        fn who_waits_finds_a_flow_before_it_at_one_of_its_ports(
            rates in prop::collection::vec(1_u64..20, 12),
            drawn in drawn(),
        ) {
            let mut links = Links::new(rates.into_iter().map(Rate::from_gbps));
            let (mut service, mut now) = (Omniscient::new(12), 0.0);
            for spec in flows(&drawn) {
                while let Some((_, left)) = service.serve(&links, now, spec.start.0 as f64) {
                    now = left;
                    prop_assert_eq!(in_vain(&service, now), None);
                }
                now = spec.start.0 as f64;
                let mut flow = links.join(vec![spec.source, 6 + spec.target]);
                (flow.record, flow.wire) = (spec.id as usize, spec.size.unwrap().0 as f64 * 8e12);
                service.admit(flow, now);
                prop_assert_eq!(in_vain(&service, now), None);
            }
        }

        #[test]
        fn on_one_link_it_is_srpt(seed: u64, load in 0.2..1.2) {
            let flows = poisson(seed, load, 300);
            let ours = completions(&Config {}, &one_link(), &flows);
            for (one, other) in ours.iter().zip(completions(&srpt::Config {}, &one_link(), &flows)) {
                prop_assert!(one.0.abs_diff(other.0) <= 1, "{one:?} {other:?}");
            }
        }
    }

    /// A flow that waits though at neither port a flow before it is served.
    fn in_vain(service: &Omniscient, now: f64) -> Option<usize> {
        let could_go = |timed: &&Timed| {
            let is_first = |port| timed.rank(now) < service.bar(port, now);
            timed.flow.rate == 0.0 && timed.ports().into_iter().all(is_first)
        };
        service.flows.values().find(could_go).map(|timed| timed.flow.number())
    }
}

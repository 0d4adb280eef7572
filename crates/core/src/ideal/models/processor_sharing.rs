//! Processor sharing: every link is shared equally among its flows.

use crate::ideal::departures::Departures;
use crate::ideal::{FluidFlow, FluidLinks, FluidScheduler, Ideal};
use crate::model::graph::LinkId;

crate::parameters! {
    /// Every link divides its rate equally among its flows, and a flow gets the smallest share of
    /// its links. Rate that a flow cannot use is not redistributed (`max_min` does that). On a
    /// single bottleneck this is exact processor sharing.
    pub struct Config {}
}

impl Ideal for Config {
    fn scheduler(&self, links: usize) -> Box<dyn FluidScheduler> {
        Box::new(ProcessorSharing::new(links))
    }
}

/// Active flows by link.
///
/// An arrival lowers only the rates above the new share of one of its links, and a departure raises only
/// rates equal to the old share. An event therefore costs a look at the rates of the flows on its own links,
/// however large the network is. Rates and shares, of which an event reads many, are side by side: with 10^5
/// hosts the time is that of cache misses.
#[derive(Debug)]
struct ProcessorSharing {
    /// Flows by slot; slots of departed flows are reused.
    flows: Vec<Option<SharingFlow>>,
    /// Rate of each flow, by slot.
    rates: Vec<f64>,
    free: Vec<u32>,
    /// Slots of the flows on each link.
    on_link: Vec<Vec<u32>>,
    /// Share of each flow on each link.
    shares: Vec<f64>,
    departures: Departures,
}

/// A flow with its state at `updated_at`.
#[derive(Debug)]
struct SharingFlow {
    flow: FluidFlow,
    updated_at: f64,
}

impl SharingFlow {
    fn advance_to(&mut self, now: f64) {
        self.flow.advance(self.updated_at, now - self.updated_at);
        self.updated_at = now;
    }
}

impl ProcessorSharing {
    fn new(links: usize) -> Self {
        Self {
            flows: Vec::new(),
            rates: Vec::new(),
            free: Vec::new(),
            on_link: vec![Vec::new(); links],
            shares: vec![f64::INFINITY; links],
            departures: Departures::default(),
        }
    }

    /// Returns the smallest share of the links of `flow`.
    fn rate(&self, flow: &FluidFlow) -> f64 {
        let shares = flow.links.iter().map(|link| self.shares[*link as usize]);
        shares.fold(f64::INFINITY, f64::min)
    }

    /// Changes the rate of the flow in `slot`.
    fn set_rate(&mut self, slot: u32, rate: f64, now: f64) {
        let sharing = self.flows[slot as usize].as_mut().expect("a listed flow is active");
        sharing.advance_to(now);
        sharing.flow.rate = rate;
        self.rates[slot as usize] = rate;
        self.departures.update(slot, &sharing.flow, now);
    }

    /// Removes the flow in `slot`, which departs first, and updates the rates of the flows it shared with.
    fn remove(&mut self, slot: u32, links: &FluidLinks, now: f64) -> FluidFlow {
        self.departures.remove_first();
        let mut sharing = self.flows[slot as usize].take().expect("the flow is active");
        self.free.push(slot);
        sharing.advance_to(now);
        for link in &sharing.flow.links {
            let on_link = &mut self.on_link[*link as usize];
            let i = on_link.iter().position(|other| *other == slot).expect("listed on its links");
            on_link.swap_remove(i);
            self.shares[*link as usize] = share(links, *link, on_link.len());
        }
        for link in &sharing.flow.links {
            let count = self.on_link[*link as usize].len();
            let old = share(links, *link, count + 1);
            for i in 0..count {
                let other = self.on_link[*link as usize][i];
                if self.rates[other as usize].to_bits() == old.to_bits() {
                    let flow = self.flows[other as usize].as_ref();
                    let rate = self.rate(&flow.expect("a listed flow is active").flow);
                    self.set_rate(other, rate, now);
                }
            }
        }
        sharing.flow
    }
}

/// Returns the share of each of `count` flows on a link.
fn share(links: &FluidLinks, link: LinkId, count: usize) -> f64 {
    links.capacity[link as usize] / count as f64
}

impl FluidScheduler for ProcessorSharing {
    fn admit(&mut self, mut flow: FluidFlow, links: &FluidLinks, now: f64) {
        let slot = self.free.pop().unwrap_or(self.flows.len() as u32);
        for link in &flow.links {
            let others = self.on_link[*link as usize].len();
            let share = share(links, *link, others + 1);
            for i in 0..others {
                let other = self.on_link[*link as usize][i];
                if self.rates[other as usize] > share {
                    self.set_rate(other, share, now);
                }
            }
            self.on_link[*link as usize].push(slot);
            self.shares[*link as usize] = share;
        }
        flow.rate = self.rate(&flow);
        self.departures.insert(slot, &flow, now);
        if slot as usize == self.flows.len() {
            self.flows.push(None);
            self.rates.push(0.0);
        }
        self.rates[slot as usize] = flow.rate;
        self.flows[slot as usize] = Some(SharingFlow { flow, updated_at: now });
    }

    fn serve(&mut self, links: &FluidLinks, _now: f64, until: f64) -> Option<(FluidFlow, f64)> {
        let (slot, departure) = self.departures.first()?;
        if !departure.is_finite() || departure > until {
            return None;
        }
        Some((self.remove(slot, links, departure), departure))
    }

    fn close(&mut self, now: f64) -> Vec<FluidFlow> {
        let current = |mut sharing: SharingFlow| {
            sharing.advance_to(now);
            sharing.flow
        };
        std::mem::take(&mut self.flows).into_iter().flatten().map(current).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::run_control::RunControl;
    use crate::base::units::{Duration, Rate, Time};
    use crate::ideal::allocation::AllocationScheduler;
    use crate::ideal::fixture::{
        ALWAYS, NO_HEADERS, empty_graph, fcts_on_link, flows_from_gaps, one_link, poisson,
        sized_flow,
    };
    use crate::ideal::{Allocation, IdealSetup, run};
    use crate::model::flow::FlowSpec;
    use crate::model::flow_totals::KeptRecords;
    use crate::model::graph::Graph;
    use proptest::prelude::*;

    #[test]
    fn two_flows_share_equally() {
        // A byte takes one nanosecond. Flow 0 sends 1000 B at full rate; then both flows have half
        // the rate until flow 1 ends at 3 us; flow 0 sends its last 1000 B at full rate.
        let flows = [sized_flow(0, 0, 3000), sized_flow(1, 1_000_000, 1000)];
        let fcts = fcts_on_link(&Config {}, &one_link(), &flows);
        assert_eq!(fcts, [Duration::from_nanos(4000), Duration::from_nanos(2000)]);
    }

    /// FCTs by the virtual-time algorithm: in one unit of virtual time every active flow sends one
    /// byte, so a flow departs a fixed virtual time after its arrival.
    fn fcts_by_virtual_time(flows: &[FlowSpec]) -> Vec<f64> {
        const PER_BYTE: f64 = 1000.0;
        let (mut now, mut virtual_now) = (0.0, 0.0);
        let mut active: Vec<(f64, usize)> = Vec::new();
        let mut fcts = vec![0.0; flows.len()];
        let starts = flows.iter().map(|flow| flow.start.0 as f64).chain([f64::INFINITY]);
        for (next, start) in starts.enumerate() {
            while let Some((tag, i)) = active.first().copied() {
                let departure = now + (tag - virtual_now) * PER_BYTE * active.len() as f64;
                if departure > start {
                    break;
                }
                (now, virtual_now) = (departure, tag);
                fcts[i] = now - flows[i].start.0 as f64;
                active.remove(0);
            }
            if next < flows.len() {
                virtual_now += (start - now) / PER_BYTE / (active.len().max(1) as f64);
                now = start;
                active.push((virtual_now + flows[next].size.unwrap().0 as f64, next));
                active.sort_by(|a, b| a.0.total_cmp(&b.0));
            }
        }
        fcts
    }

    proptest! {
        #[test]
        fn one_link_matches_the_virtual_time_algorithm(
            flows in prop::collection::vec((0_u64..2_000_000, 1_u64..3_000), 1..60),
        ) {
            let flows = flows_from_gaps(flows);
            let fcts = fcts_on_link(&Config {}, &one_link(), &flows);
            for (fct, exact) in fcts.iter().zip(fcts_by_virtual_time(&flows)) {
                prop_assert!((fct.0 as f64 - exact).abs() <= 1.0, "{fct:?}, expected {exact}");
            }
        }
    }

    /// Mean slowdown per quartile of flow size, over several seeds.
    fn slowdown_by_quartile(graph: &Graph, load: f64) -> [f64; 4] {
        let mut all: Vec<(u64, f64)> = Vec::new();
        for seed in 0..20 {
            let flows = poisson(seed, load, 50_000);
            let fcts = fcts_on_link(&Config {}, graph, &flows);
            all.extend(flows.iter().zip(fcts).map(|(flow, fct)| {
                let size = flow.size.unwrap().0;
                (size, fct.0 as f64 / (size * 1000) as f64)
            }));
        }
        all.sort_by_key(|(size, _)| *size);
        let quartile = all.len() / 4;
        std::array::from_fn(|i| {
            let part = &all[i * quartile..(i + 1) * quartile];
            part.iter().map(|(_, slowdown)| slowdown).sum::<f64>() / quartile as f64
        })
    }

    #[test]
    fn mean_slowdown_is_one_over_one_minus_load_at_every_size() {
        for (load, tolerance) in [(0.5, 0.02), (0.8, 0.03)] {
            for slowdown in slowdown_by_quartile(&one_link(), load) {
                let error = slowdown * (1.0 - load) - 1.0;
                assert!(error.abs() < tolerance, "load {load}: mean slowdown {slowdown}");
            }
        }
    }

    /// Reference implementation: recomputes all rates at every event.
    #[derive(Debug)]
    struct Reference;

    impl Ideal for Reference {
        fn scheduler(&self, _links: usize) -> Box<dyn FluidScheduler> {
            Box::new(AllocationScheduler::new(Reference))
        }
    }

    impl Allocation for Reference {
        fn allocate(&mut self, flows: &mut [FluidFlow], links: &FluidLinks) {
            for flow in flows {
                let share =
                    |link: &LinkId| share(links, *link, links.flows[*link as usize] as usize);
                flow.rate = flow.links.iter().map(share).fold(f64::INFINITY, f64::min);
            }
        }
    }

    #[test]
    fn unused_rate_is_not_redistributed() {
        let mut links = FluidLinks::new([Rate(90), Rate(20)]);
        let mut sharing = ProcessorSharing::new(2);
        for route in [vec![0, 1], vec![0, 1], vec![0]] {
            sharing.admit(links.add_flow(route), &links, 0.0);
        }
        assert_eq!([0, 1, 2].map(|slot| sharing.rates[slot] as u64), [10, 10, 30]);
    }

    /// Gap to the previous start in picoseconds, size, and cables of a flow.
    type DrawnFlow = (u64, u64, Vec<LinkId>);

    /// Rates of eight cables, and flows.
    fn network() -> impl Strategy<Value = (Vec<u64>, Vec<DrawnFlow>)> {
        let cables = prop::sample::subsequence((0..8).collect::<Vec<LinkId>>(), 1..5);
        (
            prop::collection::vec(1_000_000_000_u64..9_000_000_000, 8),
            prop::collection::vec((0_u64..2_000_000, 0_u64..30_000, cables), 1..60),
        )
    }

    proptest! {
        #[test]
        fn fcts_and_link_bytes_are_those_of_the_reference((rates, flows) in network()) {
            let mut graph = empty_graph();
            for (i, rate) in rates.iter().enumerate() {
                let (from, to) = (graph.add_host(format!("a{i}")), graph.add_host(format!("b{i}")));
                graph.connect(from, to, Rate(*rate), Duration::ZERO);
            }
            let specs = flows_from_gaps(flows.iter().map(|(gap, size, _)| (*gap, *size)));
            let run = |ideal: &dyn Ideal| {
                let (graph, format, watch) = (&graph, &NO_HEADERS, &RunControl::default());
                let (limit, kept) = (Time::NEVER, KeptRecords::default());
                let (measured, common) = (ALWAYS, None);
                let setup = IdealSetup { graph, format, limit, kept, measured, common, watch, threads: 1 };
                run(ideal, setup, specs.iter().copied(), |spec, links| {
                    links.extend(flows[spec.id as usize].2.iter().map(|cable| 2 * cable));
                })
            };
            let (outcome, reference) = (run(&Config {}), run(&Reference));
            for (record, reference) in outcome.records.iter().zip(&reference.records) {
                let (fct, expected) = (record.fct.unwrap().0, reference.fct.unwrap().0);
                prop_assert!(fct.abs_diff(expected) <= 1, "flow {}: {fct}, {expected}", record.spec.id);
            }
            for (bytes, expected) in outcome.measured_bytes.iter().zip(&reference.measured_bytes) {
                prop_assert!((bytes - expected).abs() <= 1e-6 * expected);
            }
        }

        #[test]
        fn every_flow_has_its_smallest_share_and_no_link_exceeds_its_rate((rates, flows) in network()) {
            let mut links = FluidLinks::new(rates.iter().map(|rate| Rate(*rate)));
            let mut sharing = ProcessorSharing::new(rates.len());
            let mut now = 0.0;
            for (number, (gap, size, route)) in flows.into_iter().enumerate() {
                let start = now + gap as f64;
                while let Some((departed, time)) = sharing.serve(&links, now, start) {
                    now = time;
                    for link in &departed.links {
                        links.flows[*link as usize] -= 1;
                    }
                }
                now = start;
                let mut flow = links.add_flow(route);
                (flow.record, flow.total) = (number, size as f64 * 8e12);
                sharing.admit(flow, &links, now);
                let mut used = vec![0.0; rates.len()];
                for SharingFlow { flow, .. } in sharing.flows.iter().flatten() {
                    let mut expected = [links.add_flow(flow.links.clone())];
                    flow.links.iter().for_each(|link| links.flows[*link as usize] -= 1);
                    Reference.allocate(&mut expected, &links);
                    prop_assert_eq!(flow.rate.to_bits(), expected[0].rate.to_bits());
                    flow.links.iter().for_each(|link| used[*link as usize] += flow.rate);
                }
                for (used, capacity) in used.iter().zip(&links.capacity) {
                    prop_assert!(*used <= capacity * (1.0 + 1e-9));
                }
            }
        }
    }
}

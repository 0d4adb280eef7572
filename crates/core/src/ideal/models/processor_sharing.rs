//! Processor sharing: every link is shared equally among its flows.

use crate::ideal::allocation::AllocationScheduler;
use crate::ideal::{Allocation, FluidFlow, FluidLinks, FluidScheduler, Ideal};

crate::parameters! {
    /// Every link divides its rate equally among its flows, and a flow gets the smallest share of
    /// its links. Rate that a flow cannot use is not redistributed (`max_min` does that). On a
    /// single bottleneck this is exact processor sharing.
    pub struct Config {}
}

impl Ideal for Config {
    fn scheduler(&self, _links: usize) -> Box<dyn FluidScheduler> {
        Box::new(AllocationScheduler::new(ProcessorSharing))
    }
}

#[derive(Debug)]
struct ProcessorSharing;

impl Allocation for ProcessorSharing {
    fn allocate(&mut self, flows: &mut [FluidFlow], links: &FluidLinks) {
        let share = |link: usize| links.capacity[link] / f64::from(links.flows[link]);
        for flow in flows {
            flow.rate =
                flow.links.iter().map(|link| share(*link as usize)).fold(f64::INFINITY, f64::min);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::{Duration, Rate};
    use crate::ideal::fixture::{fcts_on_link, flows_from_gaps, one_link, poisson, sized_flow};
    use crate::model::flow::FlowSpec;
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

    #[test]
    fn unused_rate_is_not_redistributed() {
        let mut links = FluidLinks::new([Rate(90), Rate(20)]);
        let mut flows = [vec![0, 1], vec![0, 1], vec![0]].map(|route| links.add_flow(route));
        ProcessorSharing.allocate(&mut flows, &links);
        assert_eq!(flows.map(|flow| flow.rate as u64), [10, 10, 30]);
    }
}

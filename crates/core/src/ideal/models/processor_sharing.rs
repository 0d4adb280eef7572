//! Processor sharing: every link is shared equally among the flows on it.

use super::{Allocation, Flow, Ideal, Links, Service};
use crate::ideal::allocation::Fluid;

crate::parameters! {
    /// Every link shares its rate equally among the flows on it, and a flow gets the least of its
    /// links' shares; what others cannot use is not shared out again (`max_min` does that). On one
    /// bottleneck this is processor sharing exactly.
    pub struct Config {}
}

impl Ideal for Config {
    fn open(&self, _links: usize) -> Box<dyn Service> {
        Box::new(Fluid::new(ProcessorSharing))
    }
}

#[derive(Debug)]
struct ProcessorSharing;

impl Allocation for ProcessorSharing {
    fn allocate(&mut self, flows: &mut [Flow], links: &Links) {
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
    use crate::ideal::fixture::{completions, in_turn, one_link, poisson, sized};
    use crate::model::flow::FlowSpec;
    use crate::model::graph::Graph;
    use proptest::prelude::*;

    #[test]
    fn two_flows_share_by_halves_as_worked_by_hand() {
        // A byte lasts a nanosecond. Alone, the first flow sends 1000 B; then both have half until
        // the second has its 1000 B at 3 us; the first sends its last 1000 B alone.
        let flows = [sized(0, 0, 3000), sized(1, 1_000_000, 1000)];
        let fcts = completions(&Config {}, &one_link(), &flows);
        assert_eq!(fcts, [Duration::from_nanos(4000), Duration::from_nanos(2000)]);
    }

    /// Completion times by the virtual-time algorithm: in a unit of virtual time every flow present
    /// sends a byte, so a flow leaves a fixed virtual time after it came.
    fn by_virtual_time(flows: &[FlowSpec]) -> Vec<f64> {
        const PER_BYTE: f64 = 1000.0;
        let (mut now, mut virtual_now) = (0.0, 0.0);
        let mut present: Vec<(f64, usize)> = Vec::new();
        let mut fcts = vec![0.0; flows.len()];
        let starts = flows.iter().map(|flow| flow.start.0 as f64).chain([f64::INFINITY]);
        for (next, start) in starts.enumerate() {
            while let Some((tag, i)) = present.first().copied() {
                let leaves = now + (tag - virtual_now) * PER_BYTE * present.len() as f64;
                if leaves > start {
                    break;
                }
                (now, virtual_now) = (leaves, tag);
                fcts[i] = now - flows[i].start.0 as f64;
                present.remove(0);
            }
            if next < flows.len() {
                virtual_now += (start - now) / PER_BYTE / (present.len().max(1) as f64);
                now = start;
                present.push((virtual_now + flows[next].size.unwrap().0 as f64, next));
                present.sort_by(|a, b| a.0.total_cmp(&b.0));
            }
        }
        fcts
    }

    proptest! {
        #[test]
        fn one_link_follows_the_virtual_time_algorithm(
            flows in prop::collection::vec((0_u64..2_000_000, 1_u64..3_000), 1..60),
        ) {
            let flows = in_turn(flows);
            let fcts = completions(&Config {}, &one_link(), &flows);
            for (fct, exact) in fcts.iter().zip(by_virtual_time(&flows)) {
                prop_assert!((fct.0 as f64 - exact).abs() <= 1.0, "{fct:?} is not {exact}");
            }
        }
    }

    /// Mean slowdown of the flows of each quarter by size, over several seeds.
    fn slowdown_by_quarter(graph: &Graph, load: f64) -> [f64; 4] {
        let mut all: Vec<(u64, f64)> = Vec::new();
        for seed in 0..20 {
            let flows = poisson(seed, load, 50_000);
            let fcts = completions(&Config {}, graph, &flows);
            all.extend(flows.iter().zip(fcts).map(|(flow, fct)| {
                let size = flow.size.unwrap().0;
                (size, fct.0 as f64 / (size * 1000) as f64)
            }));
        }
        all.sort_by_key(|(size, _)| *size);
        let quarter = all.len() / 4;
        std::array::from_fn(|i| {
            let part = &all[i * quarter..(i + 1) * quarter];
            part.iter().map(|(_, slowdown)| slowdown).sum::<f64>() / quarter as f64
        })
    }

    #[test]
    fn the_mean_slowdown_is_one_over_one_minus_load_at_every_size() {
        for (load, tolerance) in [(0.5, 0.02), (0.8, 0.03)] {
            for slowdown in slowdown_by_quarter(&one_link(), load) {
                let error = slowdown * (1.0 - load) - 1.0;
                assert!(error.abs() < tolerance, "load {load}: mean slowdown {slowdown}");
            }
        }
    }

    #[test]
    fn what_another_link_denies_a_flow_is_not_shared_out() {
        let mut links = Links::new([Rate(90), Rate(20)]);
        let mut flows = [vec![0, 1], vec![0, 1], vec![0]].map(|route| links.join(route));
        ProcessorSharing.allocate(&mut flows, &links);
        assert_eq!(flows.map(|flow| flow.rate as u64), [10, 10, 30]);
    }
}

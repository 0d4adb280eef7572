//! Shortest remaining processing time (SRPT).

use crate::ideal::allocation::AllocationScheduler;
use crate::ideal::{Allocation, FluidFlow, FluidLinks, FluidScheduler, Ideal};

crate::parameters! {
    /// Shortest remaining processing time: in order of remaining size, headers included, each flow takes
    /// all the rate that its links have left. On one link this is SRPT, which minimises the mean
    /// completion time (Schrage 1968). On a fabric it is the greedy ideal to which pFabric (SIGCOMM
    /// 2013) is compared, and not a lower bound on the completion time of individual flows.
    pub struct Config {}
}

impl Ideal for Config {
    fn scheduler(&self, links: usize) -> Box<dyn FluidScheduler> {
        Box::new(AllocationScheduler::new(Srpt { left: vec![0.0; links] }))
    }
}

/// Rate left on each link, in bits per second.
#[derive(Debug)]
struct Srpt {
    left: Vec<f64>,
}

impl Allocation for Srpt {
    fn allocate(&mut self, flows: &mut [FluidFlow], links: &FluidLinks) {
        sort(flows);
        for link in flows.iter().flat_map(|flow| &flow.links) {
            self.left[*link as usize] = links.capacity[*link as usize];
        }
        for flow in flows {
            let left = flow.links.iter().map(|link| self.left[*link as usize]);
            flow.rate = left.fold(f64::INFINITY, f64::min);
            for link in &flow.links {
                self.left[*link as usize] -= flow.rate;
            }
        }
    }
}

/// Sorts by remaining size, ties by flow number. Insertion sort, since only the newest flow and
/// overtaking flows are out of order.
fn sort(flows: &mut [FluidFlow]) {
    let before = |a: &FluidFlow, b: &FluidFlow| {
        a.remaining().total_cmp(&b.remaining()).then(a.number().cmp(&b.number())).is_lt()
    };
    for i in 1..flows.len() {
        if before(&flows[i], &flows[i - 1]) {
            let position = flows[..i].partition_point(|earlier| before(earlier, &flows[i]));
            flows[position..=i].rotate_right(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::{Duration, Rate};
    use crate::ideal::fixture::{fcts_on_link, flows_from_gaps, one_link, poisson, sized_flow};
    use crate::ideal::models::processor_sharing;
    use proptest::prelude::*;

    #[test]
    fn shorter_flows_preempt_longer_flows() {
        // A byte takes one nanosecond. At 1 us flow 0 has 2000 B left.
        let flows =
            [sized_flow(0, 0, 3000), sized_flow(1, 1_000_000, 500), sized_flow(2, 1_000_000, 2001)];
        let fcts = fcts_on_link(&Config {}, &one_link(), &flows);
        assert_eq!(fcts, [3500, 500, 4501].map(Duration::from_nanos));
    }

    #[test]
    fn flows_take_the_rate_that_shorter_flows_leave() {
        let mut links = FluidLinks::new([Rate(10), Rate(10), Rate(40)]);
        let mut flows =
            [vec![0, 2], vec![0, 2], vec![1, 2], vec![2]].map(|route| links.add_flow(route));
        Srpt { left: vec![0.0; 3] }.allocate(&mut flows, &links);
        assert_eq!(flows.map(|flow| flow.rate as u64), [10, 0, 10, 20]);
    }

    #[test]
    fn mean_fct_matches_schrage_and_miller() {
        // Exponential sizes of mean 1: [schrage66], integrated numerically.
        let expected = [(0.5, 1.4254), (0.7, 1.8746), (0.8, 2.3528), (0.9, 3.5521)];
        for (load, expected) in expected {
            let (mut sum, mut count) = (0.0, 0.0);
            for seed in 0..20 {
                let fcts = fcts_on_link(&Config {}, &one_link(), &poisson(seed, load, 50_000));
                sum += fcts.iter().map(|fct| fct.0 as f64).sum::<f64>();
                count += fcts.len() as f64;
            }
            // The mean size is 100 KB, at one byte per nanosecond.
            let mean = sum / count / 1e8;
            assert!((mean / expected - 1.0).abs() < 0.03, "load {load}: {mean}, not {expected}");
        }
    }

    proptest! {
        #[test]
        fn srpt_minimises_the_mean_fct_on_one_link(
            flows in prop::collection::vec((0_u64..2_000_000, 1_u64..3_000), 1..60),
        ) {
            let flows = flows_from_gaps(flows);
            let sum = |ideal: &dyn Ideal| -> u64 {
                fcts_on_link(ideal, &one_link(), &flows).iter().map(|fct| fct.0).sum()
            };
            // Each FCT is rounded to a picosecond.
            let (srpt, sharing) = (sum(&Config {}), sum(&processor_sharing::Config {}));
            prop_assert!(srpt <= sharing + flows.len() as u64);
        }
    }
}

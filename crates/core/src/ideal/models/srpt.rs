//! Shortest remaining processing time: the flow with the least left to send goes first.

use super::{Allocation, Flow, Ideal, Links, Service};
use crate::ideal::allocation::Fluid;

crate::parameters! {
    /// Shortest remaining processing time, as an omniscient scheduler: flows in order of what they
    /// have left on the wire each take all that their links still offer. On one link this is SRPT,
    /// which has the least mean completion time of all (Schrage 1968); on a fabric it is the greedy
    /// ideal that pFabric (SIGCOMM 2013) is held against, which bounds no flow from below.
    pub struct Config {}
}

impl Ideal for Config {
    fn open(&self, links: usize) -> Box<dyn Service> {
        Box::new(Fluid::new(Srpt { left: vec![0.0; links] }))
    }
}

/// What every link still offers, in bits a second.
#[derive(Debug)]
struct Srpt {
    left: Vec<f64>,
}

impl Allocation for Srpt {
    fn allocate(&mut self, flows: &mut [Flow], links: &Links) {
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

/// Sorts by what is left to send, ties by number. By insertion, since only the newest flow and
/// those that overtake are out of order.
fn sort(flows: &mut [Flow]) {
    let before = |a: &Flow, b: &Flow| {
        a.remaining().total_cmp(&b.remaining()).then(a.number().cmp(&b.number())).is_lt()
    };
    for i in 1..flows.len() {
        if before(&flows[i], &flows[i - 1]) {
            let place = flows[..i].partition_point(|earlier| before(earlier, &flows[i]));
            flows[place..=i].rotate_right(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::{Duration, Rate};
    use crate::ideal::fixture::{completions, in_turn, one_link, poisson, sized};
    use crate::ideal::models::processor_sharing;
    use proptest::prelude::*;

    #[test]
    fn a_shorter_flow_interrupts_and_a_longer_one_waits() {
        // A byte lasts a nanosecond. At 1 us the first flow has 2000 B left.
        let flows = [sized(0, 0, 3000), sized(1, 1_000_000, 500), sized(2, 1_000_000, 2001)];
        let fcts = completions(&Config {}, &one_link(), &flows);
        assert_eq!(fcts, [3500, 500, 4501].map(Duration::from_nanos));
    }

    #[test]
    fn flows_take_what_the_shorter_ones_leave_of_their_links() {
        let mut links = Links::new([Rate(10), Rate(10), Rate(40)]);
        let mut flows =
            [vec![0, 2], vec![0, 2], vec![1, 2], vec![2]].map(|route| links.join(route));
        Srpt { left: vec![0.0; 3] }.allocate(&mut flows, &links);
        assert_eq!(flows.map(|flow| flow.rate as u64), [10, 0, 10, 20]);
    }

    #[test]
    fn the_mean_is_that_of_schrage_and_miller() {
        // Exponential sizes of mean 1: [schrage66], integrated numerically.
        let expected = [(0.5, 1.4254), (0.7, 1.8746), (0.8, 2.3528), (0.9, 3.5521)];
        for (load, expected) in expected {
            let (mut sum, mut count) = (0.0, 0.0);
            for seed in 0..20 {
                let fcts = completions(&Config {}, &one_link(), &poisson(seed, load, 50_000));
                sum += fcts.iter().map(|fct| fct.0 as f64).sum::<f64>();
                count += fcts.len() as f64;
            }
            // The mean size is 100 KB at a byte a nanosecond.
            let mean = sum / count / 1e8;
            assert!((mean / expected - 1.0).abs() < 0.03, "load {load}: {mean}, not {expected}");
        }
    }

    proptest! {
        #[test]
        fn on_one_link_no_mean_is_below_that_of_srpt(
            flows in prop::collection::vec((0_u64..2_000_000, 1_u64..3_000), 1..60),
        ) {
            let flows = in_turn(flows);
            let sum = |ideal: &dyn Ideal| -> u64 {
                completions(ideal, &one_link(), &flows).iter().map(|fct| fct.0).sum()
            };
            // Each completion time is rounded to a picosecond.
            let (srpt, sharing) = (sum(&Config {}), sum(&processor_sharing::Config {}));
            prop_assert!(srpt <= sharing + flows.len() as u64);
        }
    }
}

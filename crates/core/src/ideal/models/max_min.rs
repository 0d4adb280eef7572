//! Max-min fairness.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::ideal::allocation::AllocationScheduler;
use crate::ideal::{Allocation, FluidFlow, FluidLinks, FluidScheduler, Ideal};
use crate::model::graph::LinkId;

crate::parameters! {
    /// Max-min fair rates over the whole network, computed by progressive filling (Bertsekas and
    /// Gallager, Data Networks, section 6.5): the rates that ideal fair queueing at every link
    /// gives to backlogged flows.
    pub struct Config {}
}

impl Ideal for Config {
    fn scheduler(&self, links: usize) -> Box<dyn FluidScheduler> {
        Box::new(AllocationScheduler::new(MaxMin::new(links)))
    }
}

/// Working storage, indexed by link unless noted.
#[derive(Debug)]
struct MaxMin {
    /// Remaining rate of the link.
    left: Vec<f64>,
    /// Number of flows on the link without a rate.
    unfixed: Vec<u32>,
    /// Index of the link's first flow in `crossing`.
    first: Vec<usize>,
    /// Flow indices, grouped by link.
    crossing: Vec<u32>,
    /// Links that may have flows without a rate, smallest fair share first. The share is a lower
    /// bound, computed when the link was last updated, and is stored as the bits of a positive
    /// float, which sort in the same order.
    open: BinaryHeap<Reverse<(u64, LinkId)>>,
}

impl MaxMin {
    fn new(links: usize) -> Self {
        Self {
            left: vec![0.0; links],
            unfixed: vec![0; links],
            first: vec![0; links],
            crossing: Vec::new(),
            open: BinaryHeap::new(),
        }
    }

    /// Lists the flows of every link and clears their rates.
    fn index(&mut self, flows: &mut [FluidFlow], links: &FluidLinks) {
        self.crossing.clear();
        for (i, flow) in (0..).zip(flows) {
            flow.rate = f64::INFINITY;
            for id in &flow.links {
                let link = *id as usize;
                if self.unfixed[link] == 0 {
                    self.left[link] = links.capacity[link];
                    let share = self.left[link] / f64::from(links.flows[link]);
                    self.open.push(Reverse((share.to_bits(), *id)));
                    self.first[link] = self.crossing.len();
                    self.crossing.resize(self.crossing.len() + links.flows[link] as usize, 0);
                }
                self.crossing[self.first[link] + self.unfixed[link] as usize] = i;
                self.unfixed[link] += 1;
            }
        }
    }

    /// Returns the link with the smallest fair share, and the share.
    fn tightest(&mut self) -> Option<(usize, f64)> {
        while let Some(mut top) = self.open.peek_mut() {
            let Reverse((bound, id)) = *top;
            let link = id as usize;
            if self.unfixed[link] == 0 {
                PeekMut::pop(top);
                continue;
            }
            // Shares only grow as flows get their rates, so the first link with an up-to-date share
            // has the smallest.
            let share = self.left[link] / f64::from(self.unfixed[link]);
            if share.to_bits() <= bound {
                return Some((link, share));
            }
            *top = Reverse((share.to_bits(), id));
        }
        None
    }
}

impl Allocation for MaxMin {
    fn allocate(&mut self, flows: &mut [FluidFlow], links: &FluidLinks) {
        self.index(flows, links);
        while let Some((link, share)) = self.tightest() {
            let first = self.first[link];
            for i in &self.crossing[first..first + links.flows[link] as usize] {
                let flow = &mut flows[*i as usize];
                if flow.rate.is_finite() {
                    continue;
                }
                flow.rate = share;
                for link in &flow.links {
                    self.left[*link as usize] -= share;
                    self.unfixed[*link as usize] -= 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Rate;
    use proptest::prelude::*;

    fn rates(capacities: &[u64], routes: &[Vec<LinkId>]) -> Vec<f64> {
        let mut links = FluidLinks::new(capacities.iter().map(|rate| Rate(*rate)));
        let mut flows: Vec<_> = routes.iter().map(|route| links.add_flow(route.clone())).collect();
        let mut allocation = MaxMin::new(capacities.len());
        // The second call checks that the first leaves no state behind.
        allocation.allocate(&mut flows, &links);
        allocation.allocate(&mut flows, &links);
        flows.iter().map(|flow| flow.rate).collect()
    }

    #[test]
    fn parking_lot_gives_every_flow_half() {
        let routes = [vec![0, 1, 2, 3], vec![0], vec![1], vec![2], vec![3]];
        for rate in rates(&[10_000; 4], &routes) {
            assert!((rate - 5_000.0).abs() < 1e-9, "{rate}");
        }
    }

    #[test]
    fn unused_rate_is_redistributed() {
        let routes = [vec![0, 1], vec![1], vec![1]];
        assert_eq!(
            rates(&[10, 100], &routes).iter().map(|r| *r as u64).collect::<Vec<_>>(),
            [10, 45, 45]
        );
    }

    fn network() -> impl Strategy<Value = (Vec<u64>, Vec<Vec<LinkId>>)> {
        let all: Vec<LinkId> = (0..9).collect();
        (
            prop::collection::vec(1_000_000_u64..100_000_000_000, 9),
            prop::collection::vec(prop::sample::subsequence(all, 1..6), 1..40),
        )
    }

    proptest! {
        #[test]
        fn rates_are_feasible_and_every_flow_has_a_bottleneck((capacities, routes) in network()) {
            let rates = rates(&capacities, &routes);
            let on = |link| {
                let crossing = routes.iter().zip(&rates).filter(move |(r, _)| r.contains(&link));
                crossing.map(|(_, rate)| *rate)
            };
            let full = |link: LinkId| on(link).sum::<f64>() / capacities[link as usize] as f64;
            for link in 0..capacities.len() as LinkId {
                prop_assert!(full(link) < 1.0 + 1e-9, "link {} carries {}", link, full(link));
            }
            for (route, rate) in routes.iter().zip(&rates) {
                let bottleneck = route.iter().find(|link| {
                    let largest = on(**link).fold(0.0, f64::max);
                    full(**link) > 1.0 - 1e-9 && largest <= rate * (1.0 + 1e-9)
                });
                prop_assert!(bottleneck.is_some(), "no bottleneck for a flow over {:?} at {}", route, rate);
            }
        }
    }
}

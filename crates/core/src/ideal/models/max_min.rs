//! Max-min fairness: nobody's rate can grow but at the cost of somebody who has no more.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::{Allocation, Flow, Ideal, Links, Service};
use crate::ideal::allocation::Fluid;
use crate::model::graph::LinkId;

crate::parameters! {
    /// The max-min fair rates over the whole network, found by progressive filling (Bertsekas and
    /// Gallager, Data Networks, section 6.5): what perfect fair queueing at every link would give
    /// to flows that always have something to send.
    pub struct Config {}
}

impl Ideal for Config {
    fn open(&self, links: usize) -> Box<dyn Service> {
        Box::new(Fluid::new(MaxMin::new(links)))
    }
}

/// Working storage, by link where not said otherwise.
#[derive(Debug)]
struct MaxMin {
    /// What is left of the link's rate.
    left: Vec<f64>,
    /// Flows on the link that have no rate yet.
    unfixed: Vec<u32>,
    /// Where the link's flows begin in `crossing`.
    first: Vec<usize>,
    /// Indices of flows, link by link.
    crossing: Vec<u32>,
    /// The links that may have unfixed flows, the least share first: what the link offered each of
    /// them when last looked at, as the bits of a positive float, which sort as it does.
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

    /// Lists the flows of every link, none of which has a rate.
    fn index(&mut self, flows: &mut [Flow], links: &Links) {
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

    /// The link that offers its unfixed flows the least, and how much.
    fn tightest(&mut self) -> Option<(usize, f64)> {
        while let Some(mut top) = self.open.peek_mut() {
            let Reverse((known, id)) = *top;
            let link = id as usize;
            if self.unfixed[link] == 0 {
                PeekMut::pop(top);
                continue;
            }
            // Shares only grow as flows are fixed, so the least is the first that is up to date.
            let share = self.left[link] / f64::from(self.unfixed[link]);
            if share.to_bits() <= known {
                return Some((link, share));
            }
            *top = Reverse((share.to_bits(), id));
        }
        None
    }
}

impl Allocation for MaxMin {
    fn allocate(&mut self, flows: &mut [Flow], links: &Links) {
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
        let mut links = Links::new(capacities.iter().map(|rate| Rate(*rate)));
        let mut flows: Vec<_> = routes.iter().map(|route| links.join(route.clone())).collect();
        let mut allocation = MaxMin::new(capacities.len());
        // Twice, for nothing may be left over from one time to the next.
        allocation.allocate(&mut flows, &links);
        allocation.allocate(&mut flows, &links);
        flows.iter().map(|flow| flow.rate).collect()
    }

    #[test]
    fn a_parking_lot_gives_everybody_half() {
        let routes = [vec![0, 1, 2, 3], vec![0], vec![1], vec![2], vec![3]];
        for rate in rates(&[10_000; 4], &routes) {
            assert!((rate - 5_000.0).abs() < 1e-9, "{rate}");
        }
    }

    #[test]
    fn what_a_flow_cannot_use_goes_to_the_others() {
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
        fn rates_fit_and_every_flow_has_a_bottleneck((capacities, routes) in network()) {
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
                prop_assert!(bottleneck.is_some(), "a flow over {:?} at {} has none", route, rate);
            }
        }
    }
}

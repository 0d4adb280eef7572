//! ECMP with weights: a hash of the flow, by the rates of links.

use rustc_hash::FxHashMap;

use crate::base::random::Random;
use crate::load_balancing::{LoadBalancer, LoadBalancerKind, NextHops, SwitchInfo, flow_hash};
use crate::model::graph::LinkId;
use crate::model::packet::Packet;

crate::parameters! {
    /// One next hop of every flow at a switch, by a hash that gives each link to a next hop a share in
    /// proportion to its rate: ECMP with weights for degraded links. A switch knows the rates of its own
    /// links; `flow_hash` weights next hops by the number of paths behind them. Data and ACKs of a flow are
    /// hashed separately.
    pub struct Config {}
}

impl LoadBalancerKind for Config {
    fn build(&self, switch: &SwitchInfo<'_>, mut random: Random) -> Box<dyn LoadBalancer> {
        let rate = |id: &LinkId| u128::from(switch.graph.links[*id as usize].rate.0);
        let rates = switch.links.iter().map(|id| (*id, rate(id))).collect();
        Box::new(WeightedEcmp { seed: random.below(u64::MAX), rates })
    }
}

/// State of one switch.
struct WeightedEcmp {
    /// Hash seed: as with `ecmp`, it depends on the seed of the run and on the switch.
    seed: u64,
    /// Rates of the switch's links, in bits per second.
    rates: FxHashMap<LinkId, u128>,
}

impl LoadBalancer for WeightedEcmp {
    fn choose(&mut self, packet: &Packet, next_hops: &mut NextHops<'_>) -> usize {
        let weight = |link: &LinkId| self.rates[link];
        let sum: u128 = next_hops.links.iter().map(weight).sum();
        let mut point = (u128::from(flow_hash(packet, self.seed)) * sum) >> 64;
        let chosen = next_hops.links.iter().position(|link| {
            let is_here = point < weight(link);
            point = point.saturating_sub(weight(link));
            is_here
        });
        chosen.unwrap_or_default()
    }
}

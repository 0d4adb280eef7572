//! Random next hop of every packet.

use crate::base::random::Random;
use crate::load_balancing::{LoadBalancer, LoadBalancerKind, NextHops, SwitchInfo};
use crate::model::packet::Packet;

crate::parameters! {
    /// Random next hop of every packet at every switch, each with the same probability: hashing of a random
    /// entropy value. Where switches have unequal numbers of paths, for instance after a failure, paths have
    /// unequal shares, unlike with `spray_random`.
    pub struct Config {}
}

impl LoadBalancerKind for Config {
    fn build(&self, _switch: &SwitchInfo<'_>, random: Random) -> Box<dyn LoadBalancer> {
        Box::new(RandomNextHop(random))
    }

    fn splits_bursts(&self) -> bool {
        true
    }
}

/// The random stream of a switch.
struct RandomNextHop(Random);

impl LoadBalancer for RandomNextHop {
    fn choose(&mut self, _packet: &Packet, next_hops: &mut NextHops<'_>) -> usize {
        self.0.below(next_hops.links.len() as u64) as usize
    }
}

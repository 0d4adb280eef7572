//! Flowlet switching with random next hops.
//!
//! Source: [letflow17] §3. A flow on a slow path has larger gaps between its windows and so changes its path
//! more often, which moves traffic to fast paths without a measurement of load.

use crate::base::random::Random;
use crate::base::schema::positive;
use crate::base::units::Duration;
use crate::load_balancing::flowlet_table::FlowletTable;
use crate::load_balancing::{LoadBalancer, LoadBalancerKind, NextHops, SwitchInfo};
use crate::model::packet::Packet;

crate::parameters! {
    /// Random next hop of every flowlet at every switch ([letflow17]): packets of a flow that follow each
    /// other within `gap` take the same next hop. Data and ACKs of a flow are separate flowlets.
    pub struct Config {
        /// Longest gap between packets of a flowlet. Packets overtake each other if the delays of two paths
        /// differ by more.
        pub gap: Duration = Duration::from_micros(500), where positive;
    }
}

impl LoadBalancerKind for Config {
    fn build(&self, _switch: &SwitchInfo<'_>, random: Random) -> Box<dyn LoadBalancer> {
        Box::new(Flowlets { table: FlowletTable::new(self.gap), random })
    }
}

/// State of one switch.
struct Flowlets {
    table: FlowletTable,
    random: Random,
}

impl LoadBalancer for Flowlets {
    fn choose(&mut self, packet: &Packet, next_hops: &mut NextHops<'_>) -> usize {
        let Self { table, random } = self;
        let links = next_hops.links;
        let choose = |_| links[random.below(links.len() as u64) as usize];
        let link = table.link(packet, next_hops.now, links, choose);
        links.iter().position(|other| *other == link).unwrap_or_default()
    }
}

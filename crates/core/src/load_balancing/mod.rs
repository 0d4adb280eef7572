//! Load balancing by switches: the choice of the next hop of each packet.

mod flowlet_table;
pub mod policies;

use crate::base::random::{Random, mix};
use crate::base::units::Time;
use crate::model::graph::{Graph, LinkId, NodeId};
use crate::model::packet::Packet;

/// Configuration of a load balancer.
pub trait LoadBalancerKind {
    /// Builds the load balancer of a switch with its own random stream.
    fn build(&self, switch: &SwitchInfo<'_>, random: Random) -> Box<dyn LoadBalancer>;

    /// Returns true if consecutive packets of a flow take different paths, however close they follow each
    /// other.
    fn splits_bursts(&self) -> bool {
        false
    }

    /// Returns true if packets carry an overlay header between the leaves of their hosts. Every switch then
    /// handles every packet, also with a single next hop.
    fn uses_overlay(&self) -> bool {
        false
    }

    /// Checks that the load balancer is made for a network.
    fn check(&self, _graph: &Graph) -> Result<(), String> {
        Ok(())
    }
}

/// Switch of a load balancer.
pub struct SwitchInfo<'a> {
    /// The network.
    pub graph: &'a Graph,
    /// Node of the switch.
    pub node: NodeId,
    /// Links on which the switch transmits.
    pub links: &'a [LinkId],
}

/// Header of a packet between the leaves of its hosts (CONGA's fields in a VXLAN header).
#[derive(Clone, Copy, Debug, Default)]
pub struct Overlay {
    /// Leaf of the source: its index among the switches.
    pub source: u32,
    /// Leaf of the target.
    pub target: u32,
    /// Uplink of the source's leaf that the packet took.
    pub uplink: u16,
    /// Highest congestion metric on the path so far.
    pub congestion: u8,
    /// Metric of a path in the other direction.
    pub feedback: Option<Feedback>,
}

/// Congestion metric of the path from the leaf that reads this to the one that has written it.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// Uplink of the reading leaf.
    pub uplink: u16,
    /// Metric.
    pub metric: u8,
}

/// Returns a hash of the flow and the direction of a packet.
fn flow_hash(packet: &Packet, seed: u64) -> u64 {
    mix(seed ^ mix(u64::from(packet.flow) << 1 | u64::from(packet.kind.is_answer())))
}

/// Next hops of a packet at a switch: those on shortest paths to its target.
pub struct NextHops<'a> {
    /// Current time.
    pub now: Time,
    /// Links to the next hops, in ascending order; two at least, unless packets carry an overlay header.
    pub links: &'a [LinkId],
    /// True if the packet has arrived from its host.
    pub is_first: bool,
    /// True if the next hop is the target of the packet.
    pub is_last: bool,
    /// Overlay header, if load balancers use one and the hosts of the packet have different leaves.
    pub overlay: Option<Overlay>,
    /// Returns the bytes that wait for a link, without the packet in transmission.
    pub backlog: &'a mut dyn FnMut(LinkId) -> u64,
}

/// Load balancer of one switch. It reads packets and the queues of its own switch.
pub trait LoadBalancer: Send {
    /// Chooses the next hop of a packet that has arrived: an index into `next_hops.links`.
    fn choose(&mut self, packet: &Packet, next_hops: &mut NextHops<'_>) -> usize;
}

#[cfg(test)]
mod tests;

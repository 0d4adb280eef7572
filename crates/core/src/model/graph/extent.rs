//! Extent of a network: its longest delay between hosts, and the range of its link rates.

use super::{Graph, Link, LinkId, NodeId};
use crate::base::units::{Bytes, Duration, Rate};
use crate::model::packet::Format;

/// Longest delay between hosts and range of the link rates of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Longest propagation delay, one way, over the shortest paths in hops from a host that sends to a host
    /// that receives. A bound, if delays are random. With the least delays of links, if they change.
    pub longest_delay: Duration,
    /// Transmission time of 1000 bytes over all links of that path, one after the other.
    pub kilobyte_time: Duration,
    /// Number of links of that path.
    pub links: u32,
    /// Lowest link rate. The largest rate of a link, if it changes.
    pub slowest: Rate,
    /// Highest link rate.
    pub fastest: Rate,
    /// True if the network has switches; false if flows start and end on routers.
    pub has_switches: bool,
}

impl Extent {
    /// Returns the extent of a network whose links have these rates, each with the number of its links on
    /// the path of the longest delay.
    pub fn new<const N: usize>(longest_delay: Duration, rates: [(Rate, u32); N]) -> Self {
        let [slowest, fastest] = range(rates.map(|(rate, _)| rate));
        let on_path = rates.map(|(rate, links)| rate.transmit(KILOBYTE) * u64::from(links));
        let kilobyte_time = on_path.into_iter().fold(Duration::ZERO, |sum, time| sum + time);
        let links = rates.iter().map(|(_, links)| links).sum();
        Self { longest_delay, kilobyte_time, links, slowest, fastest, has_switches: true }
    }

    /// Returns the RTT of a full packet and its ACK over the longest path in an empty network.
    pub fn base_rtt(&self, format: &Format) -> Duration {
        self.longest_delay * 2 + self.serialisation(format.full() + format.ack)
    }

    /// Returns the transmission time of a packet over all links of the longest path, one after the other.
    pub fn serialisation(&self, packet: Bytes) -> Duration {
        let thousandths = u128::from(self.kilobyte_time.0) * u128::from(packet.0);
        Duration((thousandths / 1000) as u64)
    }
}

/// Bytes whose transmission time, in whole picoseconds, is exact enough for rates of terabits a second.
const KILOBYTE: Bytes = Bytes(1000);

/// Delay of a path, the transmission time of 1000 bytes over its links, and their number.
type PathDelay = (Duration, Duration, u32);

fn path_delay(link: &Link) -> PathDelay {
    (link.delay, link.rate.transmit(KILOBYTE), 1)
}

fn sum(one: PathDelay, other: PathDelay) -> PathDelay {
    (one.0 + other.0, one.1 + other.1, one.2 + other.2)
}

/// Lowest and highest rate.
fn range(rates: impl IntoIterator<Item = Rate>) -> [Rate; 2] {
    let widen = |[low, high]: [Rate; 2], rate: Rate| [low.min(rate), high.max(rate)];
    rates
        .into_iter()
        .map(|rate| [rate; 2])
        .reduce(|range, [rate, _]| widen(range, rate))
        .unwrap_or_default()
}

impl Graph {
    /// Returns the extent of this network. Time: links times nodes to which hosts with one link are
    /// connected, and times hosts with several links.
    pub fn extent(&self) -> Extent {
        let [slowest, fastest] = range(self.links.iter().map(|link| link.rate));
        let has_switches = self.nodes.iter().any(|node| !node.is_host);
        let (longest_delay, kilobyte_time, links) = self.longest_delay();
        Extent { longest_delay, kilobyte_time, links, slowest, fastest, has_switches }
    }

    /// Longest delay over the shortest paths from a sender to a receiver.
    fn longest_delay(&self) -> PathDelay {
        let mut outgoing: Vec<Vec<LinkId>> = vec![Vec::new(); self.nodes.len()];
        for (id, link) in (0..).zip(&self.links) {
            outgoing[link.from as usize].push(id);
        }
        let senders = self.senders.unwrap_or(self.host_count()) as usize;
        // The paths of hosts at one switch differ in their first link only.
        let mut starts: Vec<(NodeId, NodeId, PathDelay)> = Vec::new();
        for &host in &self.hosts[..senders] {
            let start = match outgoing[host as usize][..] {
                [only] if !self.nodes[self.links[only as usize].to as usize].is_host => {
                    let link = &self.links[only as usize];
                    (link.to, host, path_delay(link))
                }
                _ => (host, host, PathDelay::default()),
            };
            starts.push(start);
        }
        starts.sort_unstable_by_key(|&(node, _, delay)| (node, std::cmp::Reverse(delay)));
        let receivers = &self.hosts[self.senders.unwrap_or(0) as usize..];
        let mut longest = PathDelay::default();
        for hosts in starts.chunk_by(|(one, ..), (other, ..)| one == other) {
            let from = self.delays_from(hosts[0].0, &outgoing);
            for receiver in receivers {
                let Some(delay) = from[*receiver as usize] else { continue };
                // The farthest host of this switch, other than the receiver.
                if let Some((.., first)) = hosts.iter().find(|(_, host, _)| host != receiver) {
                    longest = longest.max(sum(*first, delay));
                }
            }
        }
        longest
    }

    /// Longest delay over the shortest paths from a node to each node, if a path exists. No path leads
    /// through a host.
    fn delays_from(&self, start: NodeId, outgoing: &[Vec<LinkId>]) -> Vec<Option<PathDelay>> {
        let mut delays: Vec<Option<PathDelay>> = vec![None; self.nodes.len()];
        delays[start as usize] = Some(PathDelay::default());
        let mut frontier = vec![start];
        while !frontier.is_empty() {
            let mut next: Vec<(NodeId, PathDelay)> = Vec::new();
            for &node in &frontier {
                if node != start && self.nodes[node as usize].is_host {
                    continue;
                }
                let before = delays[node as usize].unwrap_or_default();
                for &id in &outgoing[node as usize] {
                    let link = &self.links[id as usize];
                    if delays[link.to as usize].is_none() {
                        next.push((link.to, sum(before, path_delay(link))));
                    }
                }
            }
            next.sort_unstable_by(|one, other| other.cmp(one));
            next.dedup_by_key(|(node, _)| *node);
            frontier.clear();
            for (node, delay) in next {
                delays[node as usize] = Some(delay);
                frontier.push(node);
            }
        }
        delays
    }
}

//! Extent of a network: its longest delay between hosts, and the range of its link rates.

use super::{Graph, LinkId, NodeId};
use crate::base::units::{Duration, Rate};

/// Longest delay between hosts and range of the link rates of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Longest propagation delay, one way, over the shortest paths in hops from a host that sends to a host
    /// that receives. A bound, if delays are random. The longest, if delays change.
    pub longest_delay: Duration,
    /// Lowest link rate. The largest rate of a link, if it changes.
    pub slowest: Rate,
    /// Highest link rate.
    pub fastest: Rate,
    /// True if the network has switches; false if flows start and end on routers.
    pub has_switches: bool,
}

impl Extent {
    /// Returns the extent of a network whose links have these rates, one or more.
    pub fn new<const N: usize>(longest_delay: Duration, rates: [Rate; N]) -> Self {
        let [slowest, fastest] = range(rates);
        Self { longest_delay, slowest, fastest, has_switches: true }
    }
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
        Extent { longest_delay: self.longest_delay(), slowest, fastest, has_switches }
    }

    /// Longest delay over the shortest paths from a sender to a receiver.
    fn longest_delay(&self) -> Duration {
        let mut outgoing: Vec<Vec<LinkId>> = vec![Vec::new(); self.nodes.len()];
        for (id, link) in (0..).zip(&self.links) {
            outgoing[link.from as usize].push(id);
        }
        let senders = self.senders.unwrap_or(self.host_count()) as usize;
        // The paths of hosts at one switch differ in their first link only.
        let mut starts: Vec<(NodeId, NodeId, Duration)> = Vec::new();
        for &host in &self.hosts[..senders] {
            let start = match outgoing[host as usize][..] {
                [only] if !self.nodes[self.links[only as usize].to as usize].is_host => {
                    let link = &self.links[only as usize];
                    (link.to, host, link.longest_delay())
                }
                _ => (host, host, Duration::ZERO),
            };
            starts.push(start);
        }
        starts.sort_unstable_by_key(|&(node, _, delay)| (node, std::cmp::Reverse(delay)));
        let receivers = &self.hosts[self.senders.unwrap_or(0) as usize..];
        let mut longest = Duration::ZERO;
        for hosts in starts.chunk_by(|(one, ..), (other, ..)| one == other) {
            let from = self.delays_from(hosts[0].0, &outgoing);
            for receiver in receivers {
                let Some(delay) = from[*receiver as usize] else { continue };
                // The farthest host of this switch, other than the receiver.
                if let Some((.., first)) = hosts.iter().find(|(_, host, _)| host != receiver) {
                    longest = longest.max(*first + delay);
                }
            }
        }
        longest
    }

    /// Longest delay over the shortest paths from a node to each node, if a path exists. No path leads
    /// through a host.
    fn delays_from(&self, start: NodeId, outgoing: &[Vec<LinkId>]) -> Vec<Option<Duration>> {
        let mut delays: Vec<Option<Duration>> = vec![None; self.nodes.len()];
        delays[start as usize] = Some(Duration::ZERO);
        let mut frontier = vec![start];
        while !frontier.is_empty() {
            let mut next: Vec<(NodeId, Duration)> = Vec::new();
            for &node in &frontier {
                if node != start && self.nodes[node as usize].is_host {
                    continue;
                }
                let before = delays[node as usize].unwrap_or_default();
                for &id in &outgoing[node as usize] {
                    let link = &self.links[id as usize];
                    if delays[link.to as usize].is_none() {
                        next.push((link.to, before + link.longest_delay()));
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

//! A network cut into groups of nodes, which in a window of time cannot influence each other.
//!
//! If no link between two groups has less delay than a window lasts, whatever comes to a group within the
//! window is on a wire already when it begins. So each group can be served by itself, in any order, from the
//! window's beginning to its end ([dons23] and [unison24] cut networks in this way, too).

use std::collections::BTreeSet;

use crate::base::units::{Bytes, Duration};
use crate::model::graph::{Graph, LinkId, NodeId};

/// Which nodes are served together, and for how long.
#[derive(Clone, Debug)]
pub struct WindowPlan {
    /// How long a window lasts at most.
    pub window: Duration,
    /// By node.
    groups: Vec<u32>,
    /// By link: the group at its end; none if it begins there too.
    ends: Vec<Option<u32>>,
    /// The links between groups, by the group at their end, and where those of each group begin.
    inbound: Vec<LinkId>,
    first: Vec<u32>,
}

/// Windows are this long at most: times within one fit 32 bits.
const LONGEST: Duration = Duration(u32::MAX as u64);

impl WindowPlan {
    /// Cuts all links that have at least the delay of a window.
    pub fn new(graph: &Graph, window: Duration) -> Self {
        let mut groups: Vec<u32> = (0..graph.nodes.len() as u32).collect();
        for link in graph.links.iter().filter(|link| link.delay < window) {
            let (one, other) = (root(&groups, link.from), root(&groups, link.to));
            groups[one.max(other) as usize] = one.min(other);
        }
        let mut numbers = vec![u32::MAX; groups.len()];
        let mut count = 0;
        for node in 0..groups.len() {
            let root = root(&groups, node as NodeId) as usize;
            if numbers[root] == u32::MAX {
                numbers[root] = count;
                count += 1;
            }
            numbers[node] = numbers[root];
        }
        let group = |node: NodeId| numbers[node as usize];
        let ends: Vec<Option<u32>> = graph
            .links
            .iter()
            .map(|link| (group(link.from) != group(link.to)).then_some(group(link.to)))
            .collect();
        let mut inbound: Vec<LinkId> = (0..graph.links.len() as LinkId).collect();
        inbound.retain(|link| ends[*link as usize].is_some());
        inbound.sort_by_key(|link| ends[*link as usize]);
        let begin =
            |group| inbound.partition_point(|link| ends[*link as usize] < Some(group)) as u32;
        let first = (0..=count).map(begin).collect();
        Self { window: window.min(LONGEST), groups: numbers, ends, inbound, first }
    }

    /// The windows for a network, if there are such as are worth it: links between groups carry more than a
    /// packet in each. Otherwise an event for each packet costs no more.
    pub fn worthwhile(graph: &Graph, packet: Bytes) -> Option<Self> {
        let carried = |window: Duration| {
            let cut = graph.links.iter().filter(|link| link.delay >= window);
            let packets = cut
                .clone()
                .map(|link| link.rate.carries(window.min(LONGEST)).0 as f64 / packet.0 as f64);
            packets.sum::<f64>() / cut.count().max(1) as f64
        };
        let window = delays(graph).into_iter().find(|delay| carried(*delay) >= PACKETS)?;
        Some(Self::new(graph, window))
    }

    /// The finest windows that there can be for a network.
    pub fn finest(graph: &Graph) -> Self {
        Self::new(graph, delays(graph).first().copied().unwrap_or(LONGEST))
    }

    /// How many groups there are.
    pub fn groups(&self) -> usize {
        self.first.len() - 1
    }

    /// How many links the network has.
    pub fn links(&self) -> usize {
        self.ends.len()
    }

    /// The group of a node.
    pub fn group(&self, node: NodeId) -> usize {
        self.groups[node as usize] as usize
    }

    /// The group at the end of a link, if it begins in another.
    pub fn end(&self, link: LinkId) -> Option<usize> {
        self.ends[link as usize].map(|group| group as usize)
    }

    /// The links that lead to a group from others.
    pub fn inbound(&self, group: usize) -> &[LinkId] {
        &self.inbound[self.first[group] as usize..self.first[group + 1] as usize]
    }
}

/// A link between groups carries so many full packets a window on average, or windows are not worth it
/// (docs/performance.md).
const PACKETS: f64 = 1.5;

/// The delays of a network's links, without those that have none.
fn delays(graph: &Graph) -> BTreeSet<Duration> {
    graph.links.iter().map(|link| link.delay).filter(|delay| *delay > Duration::ZERO).collect()
}

/// The node that stands for those joined with `node`.
fn root(groups: &[u32], mut node: NodeId) -> NodeId {
    while groups[node as usize] != node {
        node = groups[node as usize];
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Rate;
    use crate::model::graph::LoadReference;

    /// Two hosts on a switch each; a cable of 200 ns joins the switches, and longer ones the hosts.
    fn graph(rate: Rate) -> Graph {
        let mut graph = Graph::new(LoadReference { rate, what: "a host".to_owned() });
        let (left, right) = (graph.add_switch("left"), graph.add_switch("right"));
        graph.connect(left, right, rate, Duration::from_nanos(200));
        for (i, switch) in [left, left, right, right].into_iter().enumerate() {
            let host = graph.add_host(format!("host{i}"));
            graph.connect(host, switch, rate, Duration::from_micros(2));
        }
        graph
    }

    #[test]
    fn what_links_shorter_than_a_window_join_is_served_together() {
        let graph = graph(Rate::from_gbps(10));
        let finest = WindowPlan::finest(&graph);
        assert_eq!((finest.groups(), finest.window), (6, Duration::from_nanos(200)));
        assert!((0..10).all(|link| finest.end(link).is_some()));
        let coarse = WindowPlan::new(&graph, Duration::from_micros(2));
        assert_eq!(coarse.groups(), 5);
        assert_eq!(coarse.group(0), coarse.group(1));
        assert_eq!((coarse.end(0), coarse.end(1)), (None, None));
        let switches = coarse.group(0);
        assert_eq!(coarse.inbound(switches).len(), 4);
        for link in 0..10 {
            let into: Vec<_> =
                (0..5).filter(|group| coarse.inbound(*group).contains(&link)).collect();
            assert_eq!(into, Vec::from_iter(coarse.end(link)));
        }
    }

    #[test]
    fn windows_are_worth_it_where_links_carry_more_than_a_packet_in_each() {
        let packet = Bytes(1000);
        let window = |gbps| {
            WindowPlan::worthwhile(&graph(Rate::from_gbps(gbps)), packet).map(|cut| cut.window)
        };
        assert_eq!(window(1), None, "250 B in 2 us");
        assert_eq!(window(10), Some(Duration::from_micros(2)), "2500 B, and 250 B in 200 ns");
        assert_eq!(window(100), Some(Duration::from_nanos(200)));
    }
}

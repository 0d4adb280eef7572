//! Window plan: groups of nodes that cannot affect each other within a window of time.
//!
//! If every link between groups has at least the delay of a window, all packets that arrive at a group within
//! a window are in flight when the window starts. Hence each group can be run separately and in any order
//! from the start of the window to its end ([dons23] and [unison24] partition networks in this way, too).

use std::collections::BTreeSet;
use std::ops::Range;

use crate::base::units::{Bytes, Duration};
use crate::model::graph::{Graph, LinkId, NodeId};

/// Groups of nodes and the length of windows.
#[derive(Clone, Debug)]
pub struct WindowPlan {
    /// Maximum length of a window.
    pub window: Duration,
    /// Group of each node.
    group_by_node: Vec<u32>,
    /// By link: the group at its end, if the link starts in another group.
    end_groups: Vec<Option<u32>>,
    /// Links between groups, sorted by the group at their end, and the index of the first link of each group.
    inbound: Vec<LinkId>,
    first: Vec<u32>,
}

/// Maximum length of windows, so that times within a window fit in 32 bits.
const MAX_WINDOW: Duration = Duration(u32::MAX as u64);

impl WindowPlan {
    /// Separates nodes at all links that have at least the delay of a window.
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
        let end_groups: Vec<Option<u32>> = graph
            .links
            .iter()
            .map(|link| (group(link.from) != group(link.to)).then_some(group(link.to)))
            .collect();
        let mut inbound: Vec<LinkId> = (0..graph.links.len() as LinkId).collect();
        inbound.retain(|link| end_groups[*link as usize].is_some());
        inbound.sort_by_key(|link| end_groups[*link as usize]);
        let begin =
            |group| inbound.partition_point(|link| end_groups[*link as usize] < Some(group)) as u32;
        let first = (0..=count).map(begin).collect();
        Self { window: window.min(MAX_WINDOW), group_by_node: numbers, end_groups, inbound, first }
    }

    /// Returns the window plan of a network if windows are faster than events: links between groups carry
    /// more than a packet per window, or somewhat less where the ports outgrow the cache.
    pub fn worthwhile(graph: &Graph, packet: Bytes) -> Option<Self> {
        let carried = |window: Duration| {
            let cut_links = graph.links.iter().filter(|link| link.delay >= window);
            let packets = cut_links
                .clone()
                .map(|link| link.rate.carries(window.min(MAX_WINDOW)).0 as f64 / packet.0 as f64);
            packets.sum::<f64>() / cut_links.count().max(1) as f64
        };
        let is_large = graph.links.len() >= MANY_LINKS;
        let least = if is_large { MIN_PACKETS_AT_MANY_LINKS } else { MIN_PACKETS };
        let window = delays(graph).into_iter().find(|delay| carried(*delay) >= least)?;
        Some(Self::new(graph, window))
    }

    /// Returns the plan with the shortest windows.
    pub fn finest(graph: &Graph) -> Self {
        Self::new(graph, delays(graph).first().copied().unwrap_or(MAX_WINDOW))
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.first.len() - 1
    }

    /// Number of links.
    pub fn links(&self) -> usize {
        self.end_groups.len()
    }

    /// True if the ports outgrow the cache.
    pub fn has_many_links(&self) -> bool {
        self.links() >= MANY_LINKS
    }

    /// Group of a node.
    pub fn group(&self, node: NodeId) -> usize {
        self.group_by_node[node as usize] as usize
    }

    /// Group at the end of a link, if the link starts in another group.
    pub fn end(&self, link: LinkId) -> Option<usize> {
        self.end_groups[link as usize].map(|group| group as usize)
    }

    /// Links to consecutive groups from other groups.
    pub fn inbound(&self, groups: Range<usize>) -> &[LinkId] {
        &self.inbound[self.first[groups.start] as usize..self.first[groups.end] as usize]
    }

    /// Returns consecutive groups from `group` on with about `READ_AHEAD` links.
    pub fn groups_ahead(&self, group: usize) -> Range<usize> {
        let last = self.first[group] + READ_AHEAD;
        let following = self.first[group + 1..].iter().take_while(|first| **first < last).count();
        group..group + following.max(1)
    }
}

/// Full packets that a link between groups must carry per window on average, for windows to be faster than
/// events (docs/performance.md).
const MIN_PACKETS: f64 = 1.5;

/// The same where the ports do not fit in the cache: windows read the ports of a node while they are near,
/// and events in the order of time (docs/performance.md).
const MIN_PACKETS_AT_MANY_LINKS: f64 = 0.5;

/// Number of links whose ports outgrow a second-level cache of 1 MB.
const MANY_LINKS: usize = 4096;

/// Number of links whose arrivals are read ahead together: many misses overlap, and the lines of memory still
/// fit in the cache (docs/performance.md).
const READ_AHEAD: u32 = 64;

/// Nonzero delays of a network's links.
fn delays(graph: &Graph) -> BTreeSet<Duration> {
    graph.links.iter().map(|link| link.delay).filter(|delay| *delay > Duration::ZERO).collect()
}

/// Representative of the nodes joined with `node`.
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

    /// Two hosts per switch. A cable of 200 ns connects the switches, and longer cables connect the hosts.
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
    fn links_shorter_than_a_window_join_groups() {
        let graph = graph(Rate::from_gbps(10));
        let finest = WindowPlan::finest(&graph);
        assert_eq!((finest.groups(), finest.window), (6, Duration::from_nanos(200)));
        assert!((0..10).all(|link| finest.end(link).is_some()));
        let coarse = WindowPlan::new(&graph, Duration::from_micros(2));
        assert_eq!(coarse.groups(), 5);
        assert_eq!(coarse.group(0), coarse.group(1));
        assert_eq!((coarse.end(0), coarse.end(1)), (None, None));
        let switches = coarse.group(0);
        assert_eq!(coarse.inbound(switches..switches + 1).len(), 4);
        for link in 0..10 {
            let into: Vec<_> =
                (0..5).filter(|group| coarse.inbound(*group..*group + 1).contains(&link)).collect();
            assert_eq!(into, Vec::from_iter(coarse.end(link)));
        }
    }

    #[test]
    fn all_groups_are_read_ahead_once_in_spans_of_some_links() {
        let mut graph = graph(Rate::from_gbps(1));
        for switch in 0..2 {
            for i in 0..READ_AHEAD {
                let host = graph.add_host(format!("more{switch}_{i}"));
                graph.connect(host, switch, Rate::from_gbps(1), Duration::from_micros(1));
            }
        }
        let plan = WindowPlan::finest(&graph);
        let mut spans = Vec::new();
        while spans.iter().sum::<usize>() < plan.groups() {
            let groups = plan.groups_ahead(spans.iter().sum());
            assert!(groups.len() == 1 || plan.inbound(groups.clone()).len() < READ_AHEAD as usize);
            spans.push(groups.len());
        }
        assert_eq!(spans, [1, 1, 63, 63, 6], "switches, and hosts with a link each");
    }

    #[test]
    fn windows_are_worthwhile_if_links_carry_more_than_a_packet_in_each() {
        let packet = Bytes(1000);
        let window = |gbps| {
            WindowPlan::worthwhile(&graph(Rate::from_gbps(gbps)), packet).map(|cut| cut.window)
        };
        assert_eq!(window(1), None, "250 B in 2 us");
        assert_eq!(window(10), Some(Duration::from_micros(2)), "2500 B, and 250 B in 200 ns");
        assert_eq!(window(100), Some(Duration::from_nanos(200)));
    }

    #[test]
    fn windows_are_worthwhile_with_less_than_a_packet_in_each_if_there_are_many_links() {
        let star = |hosts| {
            let rate = Rate::from_gbps(10);
            let mut graph = Graph::new(LoadReference { rate, what: "a host".to_owned() });
            let switch = graph.add_switch("switch");
            for i in 0..hosts {
                let host = graph.add_host(format!("host{i}"));
                graph.connect(host, switch, rate, Duration::from_micros(1));
            }
            WindowPlan::worthwhile(&graph, Bytes(1500)).is_some()
        };
        assert_eq!([100, MANY_LINKS / 2].map(star), [false, true], "1250 B in 1 us");
    }
}

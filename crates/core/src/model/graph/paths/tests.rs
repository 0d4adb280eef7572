//! Tests of shortest paths against a search of all paths.

use super::*;
use crate::base::units::{Duration, Rate};
use crate::model::graph::LoadReference;
use proptest::prelude::*;

/// Graphs of a few switches, many of which have the same neighbours, and hosts with one to three cables to
/// switches or earlier hosts.
fn graph() -> impl Strategy<Value = Graph> {
    let cables = prop::collection::vec((0_u32..3, 0_u32..3), 1..8);
    let hosts = prop::collection::vec(prop::collection::vec(0_u32..9, 1..4), 2..5);
    (cables, hosts).prop_map(|(cables, hosts)| {
        let mut graph = Graph::new(LoadReference::pending());
        let connect = |graph: &mut Graph, a: NodeId, b: NodeId| {
            if a != b {
                graph.connect(a, b, Rate::from_gbps(1), Duration::ZERO);
            }
        };
        for i in 0..6 {
            graph.add_switch(format!("s{i}"));
        }
        // Switches 0 to 2 and 3 to 5 are pairwise alike, unless hosts with several cables differ.
        for (a, b) in cables {
            connect(&mut graph, a, 3 + b);
            connect(&mut graph, (a + 1) % 3, 3 + b);
        }
        for cables in hosts {
            let host = graph.add_host(format!("h{}", graph.hosts.len()));
            for to in cables {
                connect(&mut graph, host, to.min(host));
            }
        }
        graph
    })
}

/// All shortest paths between two nodes in order of their links.
fn shortest(graph: &Graph, from: NodeId, to: NodeId) -> Vec<Vec<LinkId>> {
    let mut paths = vec![(from, Vec::new())];
    for _ in 0..graph.nodes.len() {
        let mut longer = Vec::new();
        for (node, path) in paths {
            for (id, link) in (0..).zip(&graph.links) {
                let may_pass = link.to == to || !graph.nodes[link.to as usize].is_host;
                let is_new =
                    path.iter().all(|before| graph.links[*before as usize].from != link.to);
                if link.from == node && may_pass && is_new {
                    longer.push((link.to, [&path[..], &[id]].concat()));
                }
            }
        }
        let found: Vec<_> = longer.iter().filter(|(node, _)| *node == to).collect();
        if !found.is_empty() {
            return found.into_iter().map(|(_, path)| path.clone()).collect();
        }
        paths = longer;
    }
    Vec::new()
}

proptest! {
    #[test]
    fn paths_are_all_shortest_ones_in_order(graph in graph()) {
        let mut paths = Paths::new(&graph);
        let hosts = 0..graph.host_count();
        for (source, target) in hosts.clone().flat_map(|one| hosts.clone().map(move |other| (one, other))) {
            if source == target {
                continue;
            }
            let [from, to] = [source, target].map(|host| graph.hosts[host as usize]);
            let expected = shortest(&graph, from, to);
            prop_assert_eq!(paths.count(source, target), expected.len() as u64);
            let hops = expected.first().map(|path| path.len() as u16);
            prop_assert_eq!(paths.hops(source, target), hops);
            let mut links = Vec::new();
            for (choice, path) in (0..).zip(&expected) {
                links.clear();
                paths.append(source, target, choice, &mut links);
                prop_assert_eq!(&links, path);
            }
            if expected.is_empty() {
                continue;
            }
            links.clear();
            paths.append_all(source, target, LinkId::MAX, &mut links);
            let ended = expected.iter().flat_map(|path| [&path[..], &[LinkId::MAX]].concat());
            prop_assert!(ended.eq(links.iter().copied()), "{links:?}");
            // The links that leave a node on any of the paths are its next hops.
            let choose = |node: NodeId, number: usize| 5 * node as usize % number;
            let (mut node, mut chosen) = (from, Vec::new());
            while node != to {
                let leaves = |link: &&LinkId| graph.links[**link as usize].from == node;
                let mut next: Vec<_> = expected.iter().flatten().filter(leaves).collect();
                next.sort_unstable();
                next.dedup();
                chosen.push(*next[choose(node, next.len())]);
                node = graph.links[chosen[chosen.len() - 1] as usize].to;
            }
            links.clear();
            paths.append_hop_by_hop(source, target, choose, &mut links);
            prop_assert_eq!(&links, &chosen);
        }
    }
}

//! A network's nodes dealt out to the parts of a run, each of which a thread serves.

use std::sync::Arc;

use super::WindowPlan;
use crate::model::graph::{Graph, NodeId};

/// One of the parts of a run, and which nodes each of them has.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Its number.
    pub number: u32,
    /// How many there are.
    pub parts: u32,
    /// By node: the part that has it.
    of: Arc<[u32]>,
}

impl Partition {
    /// The only part, which has all nodes.
    pub fn whole(graph: &Graph) -> Self {
        Self { number: 0, parts: 1, of: vec![0; graph.nodes.len()].into() }
    }

    /// Deals the groups of a cut out to so many parts: hosts by their numbers, which topologies give
    /// neighbours in turn; then each switch to the part that most of its cables lead to, and of several to
    /// the one with least to do.
    pub fn deal(graph: &Graph, cut: &WindowPlan, parts: u32) -> Vec<Self> {
        let mut of_group: Vec<Option<u32>> = vec![None; cut.groups()];
        for (i, host) in graph.hosts.iter().enumerate() {
            let part = (i * parts as usize / graph.hosts.len()) as u32;
            of_group[cut.group(*host)].get_or_insert(part);
        }
        let neighbours = neighbours(graph, cut);
        let load = |group: usize| neighbours[group].iter().map(|(_, bps)| bps).sum::<u64>();
        let mut loads = vec![0_u64; parts as usize];
        for (group, part) in of_group.iter().enumerate() {
            if let Some(part) = part {
                loads[*part as usize] += load(group);
            }
        }
        // From the hosts inwards. What no cable joins to a host has nothing to do.
        loop {
            let mut has_dealt = false;
            for group in 0..cut.groups() {
                let mut near = vec![0_u64; parts as usize];
                for (neighbour, bps) in &neighbours[group] {
                    if let Some(part) = of_group[*neighbour] {
                        near[part as usize] += bps;
                    }
                }
                if of_group[group].is_some() || near.iter().all(|bps| *bps == 0) {
                    continue;
                }
                let best = (0..parts as usize)
                    .max_by_key(|part| (near[*part], std::cmp::Reverse(loads[*part])));
                let part = best.unwrap_or_default();
                of_group[group] = Some(part as u32);
                loads[part] += load(group);
                has_dealt = true;
            }
            if !has_dealt {
                break;
            }
        }
        let nodes = 0..graph.nodes.len() as NodeId;
        let of: Arc<[u32]> =
            nodes.map(|node| of_group[cut.group(node)].unwrap_or_default()).collect();
        (0..parts).map(|number| Self { number, parts, of: Arc::clone(&of) }).collect()
    }

    /// Whether there are others.
    pub fn has_others(&self) -> bool {
        self.parts > 1
    }

    /// The part that has a node.
    pub fn of(&self, node: NodeId) -> u32 {
        self.of[node as usize]
    }

    /// Whether this part has a node.
    pub fn owns(&self, node: NodeId) -> bool {
        self.of(node) == self.number
    }
}

/// By group: the groups that its cables lead to, with their rates.
fn neighbours(graph: &Graph, cut: &WindowPlan) -> Vec<Vec<(usize, u64)>> {
    let mut neighbours = vec![Vec::new(); cut.groups()];
    for link in &graph.links {
        neighbours[cut.group(link.from)].push((cut.group(link.to), link.rate.0));
    }
    neighbours
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::{Duration, Rate};
    use crate::model::graph::LoadReference;

    /// Two racks of four hosts, each below a switch, and a switch above both.
    fn racks() -> Graph {
        let rate = Rate::from_gbps(10);
        let mut graph = Graph::new(LoadReference { rate, what: "a host".to_owned() });
        let top = graph.add_switch("top");
        for rack in 0..2 {
            let switch = graph.add_switch(format!("rack{rack}"));
            graph.connect(switch, top, rate, Duration::from_micros(1));
            for host in 0..4 {
                let host = graph.add_host(format!("host{rack}_{host}"));
                graph.connect(host, switch, rate, Duration::from_micros(1));
            }
        }
        graph
    }

    #[test]
    fn neighbours_stay_together_and_every_node_is_in_one_part() {
        let graph = racks();
        let parts = Partition::deal(&graph, &WindowPlan::finest(&graph), 2);
        let owners = |part: &Partition| {
            let nodes = 0..graph.nodes.len() as NodeId;
            nodes.filter(|node| part.owns(*node)).collect::<Vec<_>>()
        };
        assert_eq!(parts.iter().map(|part| part.number).collect::<Vec<_>>(), [0, 1]);
        // Nodes: the switch above, which may go to either, then each rack's with its hosts.
        assert_eq!(owners(&parts[0]), [1, 2, 3, 4, 5]);
        assert_eq!(owners(&parts[1]), [0, 6, 7, 8, 9, 10]);
        assert!(parts.iter().all(|part| part.of(9) == 1 && part.has_others()));
    }

    #[test]
    fn the_only_part_has_all() {
        let graph = racks();
        let whole = Partition::whole(&graph);
        assert!((0..graph.nodes.len() as NodeId).all(|node| whole.owns(node)));
        assert!(!whole.has_others());
    }
}

//! A network's nodes dealt out to the parts of a run, each of which a thread serves.

use std::sync::Arc;

use super::Cut;
use crate::graph::{Graph, NodeId};

/// One of the parts of a run, and which nodes each of them has.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its number.
    pub number: u32,
    /// How many there are.
    pub parts: u32,
    /// By node: the part that has it.
    of: Arc<[u32]>,
}

impl Part {
    /// The only part, which has all nodes.
    pub fn whole(graph: &Graph) -> Self {
        Self { number: 0, parts: 1, of: vec![0; graph.nodes.len()].into() }
    }

    /// Deals the groups of a cut out to so many parts: hosts by their numbers, which topologies give
    /// neighbours in turn; then each switch to the part that most of its cables lead to, and of several to
    /// the one with least to do.
    pub fn deal(graph: &Graph, cut: &Cut, parts: u32) -> Vec<Self> {
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
fn neighbours(graph: &Graph, cut: &Cut) -> Vec<Vec<(usize, u64)>> {
    let mut neighbours = vec![Vec::new(); cut.groups()];
    for link in &graph.links {
        neighbours[cut.group(link.from)].push((cut.group(link.to), link.rate.0));
    }
    neighbours
}

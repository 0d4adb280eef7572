//! Partitions of a network's nodes, each of which runs on one thread.

use std::sync::Arc;

use super::WindowPlan;
use crate::model::graph::{Graph, NodeId};

/// Partition of a run, and the assignment of nodes to partitions.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Number of this partition.
    pub number: u32,
    /// Number of partitions.
    pub count: u32,
    /// Partition of each node.
    owners: Arc<[u32]>,
}

impl Partition {
    /// Returns a single partition with all nodes.
    pub fn whole(graph: &Graph) -> Self {
        Self { number: 0, count: 1, owners: vec![0; graph.nodes.len()].into() }
    }

    /// Assigns the groups of a window plan to partitions: hosts by number, because topologies number
    /// neighbours consecutively; then each switch to the partition to which most of its capacity leads. Ties
    /// go to the partition with the least load.
    pub fn assign(graph: &Graph, plan: &WindowPlan, count: u32) -> Vec<Self> {
        let mut partition_by_group: Vec<Option<u32>> = vec![None; plan.groups()];
        for (i, host) in graph.hosts.iter().enumerate() {
            let partition = (i * count as usize / graph.hosts.len()) as u32;
            partition_by_group[plan.group(*host)].get_or_insert(partition);
        }
        let neighbours = neighbours(graph, plan);
        let load = |group: usize| neighbours[group].iter().map(|(_, bps)| bps).sum::<u64>();
        let mut loads = vec![0_u64; count as usize];
        for (group, partition) in partition_by_group.iter().enumerate() {
            if let Some(partition) = partition {
                loads[*partition as usize] += load(group);
            }
        }
        // From the hosts inwards. A node without a path to a host has no load.
        loop {
            let mut has_assigned = false;
            for group in 0..plan.groups() {
                let mut adjacent = vec![0_u64; count as usize];
                for (neighbour, bps) in &neighbours[group] {
                    if let Some(partition) = partition_by_group[*neighbour] {
                        adjacent[partition as usize] += bps;
                    }
                }
                if partition_by_group[group].is_some() || adjacent.iter().all(|bps| *bps == 0) {
                    continue;
                }
                let best = (0..count as usize).max_by_key(|partition| {
                    (adjacent[*partition], std::cmp::Reverse(loads[*partition]))
                });
                let partition = best.unwrap_or_default();
                partition_by_group[group] = Some(partition as u32);
                loads[partition] += load(group);
                has_assigned = true;
            }
            if !has_assigned {
                break;
            }
        }
        let nodes = 0..graph.nodes.len() as NodeId;
        let owners: Arc<[u32]> =
            nodes.map(|node| partition_by_group[plan.group(node)].unwrap_or_default()).collect();
        (0..count).map(|number| Self { number, count, owners: Arc::clone(&owners) }).collect()
    }

    /// Returns true if the run has several partitions.
    pub fn has_others(&self) -> bool {
        self.count > 1
    }

    /// Partition of a node.
    pub fn owner(&self, node: NodeId) -> u32 {
        self.owners[node as usize]
    }

    /// Returns true if a node is in this partition.
    pub fn owns(&self, node: NodeId) -> bool {
        self.owner(node) == self.number
    }
}

/// Neighbours of each group, with the rates of the links to them.
fn neighbours(graph: &Graph, plan: &WindowPlan) -> Vec<Vec<(usize, u64)>> {
    let mut neighbours = vec![Vec::new(); plan.groups()];
    for link in &graph.links {
        neighbours[plan.group(link.from)].push((plan.group(link.to), link.rate.0));
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
    fn racks_stay_together_and_every_node_is_in_one_partition() {
        let graph = racks();
        let partitions = Partition::assign(&graph, &WindowPlan::finest(&graph), 2);
        let owners = |partition: &Partition| {
            let nodes = 0..graph.nodes.len() as NodeId;
            nodes.filter(|node| partition.owns(*node)).collect::<Vec<_>>()
        };
        assert_eq!(partitions.iter().map(|partition| partition.number).collect::<Vec<_>>(), [0, 1]);
        // The top switch may be in either partition. Each rack is a switch followed by its hosts.
        assert_eq!(owners(&partitions[0]), [1, 2, 3, 4, 5]);
        assert_eq!(owners(&partitions[1]), [0, 6, 7, 8, 9, 10]);
        assert!(
            partitions.iter().all(|partition| partition.owner(9) == 1 && partition.has_others())
        );
    }

    #[test]
    fn a_single_partition_owns_all_nodes() {
        let graph = racks();
        let whole = Partition::whole(&graph);
        assert!((0..graph.nodes.len() as NodeId).all(|node| whole.owns(node)));
        assert!(!whole.has_others());
    }
}

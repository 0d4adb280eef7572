//! Division of traffic among shortest paths, link by link.

use rustc_hash::FxHashMap;

use super::{Paths, ToRoot, Towards, UNREACHED};
use crate::model::graph::{LinkId, NodeId};

/// Division of traffic among shortest paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// Each node sends an equal share to each next hop.
    NextHops,
    /// Each path carries an equal share.
    Paths,
}

/// Amounts that nodes send on.
struct Pending<'a> {
    /// Amounts by node.
    amounts: &'a mut [f64],
    /// Nodes with an amount, by distance.
    nodes: Vec<Vec<NodeId>>,
}

impl Pending<'_> {
    fn add(&mut self, distance: usize, node: NodeId, amount: f64) {
        let sum = &mut self.amounts[node as usize];
        if *sum == 0.0 {
            self.nodes.resize_with(self.nodes.len().max(distance + 1), Vec::new);
            self.nodes[distance].push(node);
        }
        *sum += amount;
    }
}

impl Paths {
    /// Adds to `loads`, by link, what every node of `sources` sends to nodes that have this table, each of
    /// which receives its share of every amount. Paths do not lead through a host. A node without a path
    /// sends nothing. Several targets may receive only from nodes that are not their twins. `amounts` are
    /// zeros by node, before and after.
    pub(crate) fn spread(
        &self,
        table: &[ToRoot],
        [sources, targets]: [&[(NodeId, f64)]; 2],
        split: Split,
        amounts: &mut [f64],
        loads: &mut [f64],
    ) {
        // The last hops to all targets are alike.
        let towards = Towards { root: targets[0].0, table };
        let shares: FxHashMap<NodeId, f64> = targets.iter().copied().collect();
        let mut pending = Pending { amounts, nodes: Vec::new() };
        for (source, amount) in sources {
            let (distance, _) = self.distance_and_count(towards, *source);
            if distance < UNREACHED {
                pending.add(usize::from(distance), *source, *amount);
            }
        }
        // No node sends before those that are farther away.
        for distance in (1..pending.nodes.len()).rev() {
            for node in std::mem::take(&mut pending.nodes[distance]) {
                let amount = std::mem::take(&mut pending.amounts[node as usize]);
                if distance == 1 {
                    let cables =
                        self.outgoing(node).iter().filter(|(_, next)| *next == towards.root);
                    let each = amount / cables.count() as f64;
                    for (link, next) in self.outgoing(node) {
                        loads[*link as usize] += each * shares.get(next).unwrap_or(&0.0);
                    }
                    continue;
                }
                let mut send = |link: LinkId, next, part| {
                    loads[link as usize] += part;
                    pending.add(distance - 1, next, part);
                };
                if let Some((link, next, _)) = self.only_hop(towards, node) {
                    send(link, next, amount);
                    continue;
                }
                let share = match split {
                    Split::NextHops => amount / self.next_hops(towards, node).count() as f64,
                    Split::Paths => amount / self.distance_and_count(towards, node).1 as f64,
                };
                for (link, next, paths) in self.next_hops(towards, node) {
                    let part = if split == Split::Paths { share * paths as f64 } else { share };
                    send(link, next, part);
                }
            }
        }
    }
}

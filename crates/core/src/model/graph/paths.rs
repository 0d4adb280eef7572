//! Shortest paths in hops, computed once per target and cached.

use super::{Graph, LinkId, NodeId};
use crate::model::flow::HostId;

/// Distance of a node without a path to the target.
const UNREACHED: u16 = u16::MAX;

/// Shortest paths between the hosts of a graph. No path leads through a host, because hosts do not forward.
///
/// The links of a path in reverse order, each `^ 1`, are a shortest path of the other direction.
#[derive(Clone, Debug)]
pub struct Paths {
    hosts: Vec<NodeId>,
    forwards: Vec<bool>,
    /// Index of the first link of each node in `outgoing`, with one entry more than there are nodes.
    first: Vec<u32>,
    /// Links by the transmitting node, each with the receiving node.
    outgoing: Vec<(LinkId, NodeId)>,
    towards: Vec<Option<Towards>>,
}

/// Division of traffic among shortest paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// Each node sends an equal share to each next hop.
    NextHops,
    /// Each path carries an equal share.
    Paths,
}

/// Distances and path counts of all nodes to a target.
#[derive(Clone, Debug)]
struct Towards {
    /// Hops to the target.
    distance: Box<[u16]>,
    /// Number of shortest paths to the target, saturating.
    count: Box<[u64]>,
}

impl Paths {
    /// Returns the paths of `graph`.
    pub fn new(graph: &Graph) -> Self {
        Self::over(graph, |_| true)
    }

    /// Returns the paths of `graph` over the links that `may_take` permits: both directions of a cable, or
    /// neither.
    pub fn over(graph: &Graph, may_take: impl Fn(LinkId) -> bool) -> Self {
        let mut first = vec![0; graph.nodes.len() + 1];
        let links = || (0..).zip(&graph.links).filter(|(id, _)| may_take(*id));
        for (_, link) in links() {
            first[link.from as usize + 1] += 1;
        }
        for node in 0..graph.nodes.len() {
            first[node + 1] += first[node];
        }
        let mut free = first.clone();
        let mut outgoing = vec![(0, 0); first[graph.nodes.len()] as usize];
        for (id, link) in links() {
            let slot = &mut free[link.from as usize];
            outgoing[*slot as usize] = (id, link.to);
            *slot += 1;
        }
        Self {
            hosts: graph.hosts.clone(),
            forwards: graph.nodes.iter().map(|node| !node.is_host).collect(),
            first,
            outgoing,
            towards: vec![None; graph.hosts.len()],
        }
    }

    /// Number of shortest paths from `source` to `target`; zero if there is no path.
    pub fn count(&mut self, source: HostId, target: HostId) -> u64 {
        let node = self.hosts[source as usize];
        self.towards(target).count[node as usize]
    }

    /// Number of hops from `source` to `target`, if there is a path.
    pub fn hops(&mut self, source: HostId, target: HostId) -> Option<u16> {
        // Cables and paths lead both ways, so one search from the source covers all its targets.
        let node = self.hosts[target as usize];
        let hops = self.towards(source).distance[node as usize];
        (hops < UNREACHED).then_some(hops)
    }

    /// Appends the links of shortest path number `choice`, below [`count`](Self::count), to `links`.
    pub fn append(
        &mut self,
        source: HostId,
        target: HostId,
        mut choice: u64,
        links: &mut Vec<LinkId>,
    ) {
        let count = self.count(source, target);
        assert!(choice < count, "path {choice} of {count} from host {source} to host {target}");
        let end = self.hosts[target as usize];
        let mut node = self.hosts[source as usize];
        let towards = self.towards[target as usize].as_ref().expect("found when counted");
        while node != end {
            // The choice counts the paths over one next node after those over another.
            for (link, next) in self.next_hops(towards, node, end) {
                let count = towards.count[next as usize];
                if choice < count {
                    links.push(link);
                    node = next;
                    break;
                }
                choice -= count;
            }
        }
    }

    /// Appends the links of the shortest path on which `choose` selects each next hop: it receives the node
    /// and the number of next hops on shortest paths, and returns a number below that. There must be a path.
    pub fn append_hop_by_hop(
        &mut self,
        source: HostId,
        target: HostId,
        choose: impl Fn(NodeId, usize) -> usize,
        links: &mut Vec<LinkId>,
    ) {
        assert!(self.count(source, target) > 0, "no path from host {source} to host {target}");
        let end = self.hosts[target as usize];
        let mut node = self.hosts[source as usize];
        let towards = self.towards[target as usize].as_ref().expect("found when counted");
        while node != end {
            let number = self.next_hops(towards, node, end).count();
            let chosen = self.next_hops(towards, node, end).nth(choose(node, number));
            let (link, next) = chosen.expect("a choice is below the number of next hops");
            links.push(link);
            node = next;
        }
    }

    /// Adds to `loads`, by link, what every node of `amounts` sends to `target` over shortest paths, which
    /// start at any node and do not lead through a host. Clears the amounts. A node without a path sends
    /// nothing.
    pub(crate) fn spread(
        &self,
        target: NodeId,
        split: Split,
        amounts: &mut [f64],
        loads: &mut [f64],
    ) {
        let (towards, order) = self.search_in_order(target);
        for &node in order[1..].iter().rev() {
            let amount = std::mem::take(&mut amounts[node as usize]);
            if amount == 0.0 {
                continue;
            }
            let next_hops = || self.next_hops(&towards, node, target);
            let share = match split {
                Split::NextHops => amount / next_hops().count() as f64,
                Split::Paths => amount / towards.count[node as usize] as f64,
            };
            for (link, next) in next_hops() {
                let paths = towards.count[next as usize] as f64;
                let part = if split == Split::Paths { share * paths } else { share };
                loads[link as usize] += part;
                amounts[next as usize] += part;
            }
        }
        amounts.fill(0.0);
    }

    /// Returns the links from a node on shortest paths to `end`, each with the receiving node.
    fn next_hops(
        &self,
        towards: &Towards,
        node: NodeId,
        end: NodeId,
    ) -> impl Iterator<Item = (LinkId, NodeId)> {
        let nearer = towards.distance[node as usize] - 1;
        self.outgoing(node).iter().copied().filter(move |(_, next)| {
            let leads = *next == end || self.forwards[*next as usize];
            leads && towards.distance[*next as usize] == nearer
        })
    }

    fn outgoing(&self, node: NodeId) -> &[(LinkId, NodeId)] {
        let node = node as usize;
        &self.outgoing[self.first[node] as usize..self.first[node + 1] as usize]
    }

    fn towards(&mut self, target: HostId) -> &Towards {
        let index = target as usize;
        if self.towards[index].is_none() {
            self.towards[index] = Some(self.search(self.hosts[index]));
        }
        self.towards[index].as_ref().expect("just found")
    }

    fn search(&self, target: NodeId) -> Towards {
        self.search_in_order(target).0
    }

    /// Breadth-first search from the target, with the nodes in order of distance. Cables lead both ways, so
    /// it follows outgoing links.
    fn search_in_order(&self, target: NodeId) -> (Towards, Vec<NodeId>) {
        let nodes = self.forwards.len();
        let mut distance = vec![UNREACHED; nodes].into_boxed_slice();
        let mut count = vec![0_u64; nodes].into_boxed_slice();
        let mut queue = Vec::with_capacity(nodes);
        distance[target as usize] = 0;
        count[target as usize] = 1;
        queue.push(target);
        let mut done = 0;
        while let Some(&node) = queue.get(done) {
            done += 1;
            if node != target && !self.forwards[node as usize] {
                continue;
            }
            let (further, paths) = (distance[node as usize] + 1, count[node as usize]);
            for &(_, next) in self.outgoing(node) {
                let next = next as usize;
                if distance[next] == UNREACHED {
                    distance[next] = further;
                    queue.push(next as NodeId);
                }
                if distance[next] == further {
                    count[next] = count[next].saturating_add(paths);
                }
            }
        }
        (Towards { distance, count }, queue)
    }
}

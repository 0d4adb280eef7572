//! Shortest paths in hops, computed once per attachment switch and cached.

use std::cmp::Ordering;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Graph, LinkId, Node, NodeId};
use crate::model::flow::HostId;

/// Distance of a node without a path to the target.
const UNREACHED: u16 = u16::MAX;

/// Index of a host in tables of switches.
const HOST: u32 = u32::MAX;

/// Shortest paths between the hosts of a graph. No path leads through a host, because hosts do not forward.
///
/// The links of a path in reverse order, each `^ 1`, are a shortest path of the other direction.
#[derive(Clone, Debug)]
pub struct Paths {
    hosts: Vec<NodeId>,
    /// Hosts with a link.
    linked: Vec<NodeId>,
    /// Index among the switches by node, or [`HOST`].
    switch: Vec<u32>,
    switches: usize,
    /// Index of the first link of each node in `outgoing`, with one entry more than there are nodes.
    first: Vec<u32>,
    /// Links by the transmitting node, each with the receiving node.
    outgoing: Vec<(LinkId, NodeId)>,
    /// Receiving node of each link.
    receiver: Vec<NodeId>,
    /// Tables by root. The hosts of a switch that have no other cable share its table, so that a large
    /// network has a table for each rack and not for each host.
    towards: FxHashMap<NodeId, Towards>,
}

/// Division of traffic among shortest paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// Each node sends an equal share to each next hop.
    NextHops,
    /// Each path carries an equal share.
    Paths,
}

/// Distances and path counts of all switches to a root: the only neighbour of the target host, if that is a
/// switch, and otherwise the target host.
#[derive(Clone, Debug)]
struct Towards {
    root: NodeId,
    /// Hops to the root.
    distance: Box<[u16]>,
    /// Number of shortest paths to the root, saturating.
    count: Box<[u64]>,
    /// A link on a shortest path to the root.
    link: Box<[LinkId]>,
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
        let mut switches = 0;
        let index = |node: &Node| {
            switches += u32::from(!node.is_host);
            if node.is_host { HOST } else { switches - 1 }
        };
        let switch = graph.nodes.iter().map(index).collect();
        let has_link = |host: &NodeId| first[*host as usize] < first[*host as usize + 1];
        Self {
            hosts: graph.hosts.clone(),
            linked: graph.hosts.iter().copied().filter(has_link).collect(),
            switch,
            switches: switches as usize,
            first,
            outgoing,
            receiver: graph.links.iter().map(|link| link.to).collect(),
            towards: FxHashMap::default(),
        }
    }

    /// Returns the memory of the tables of `targets` hosts, in bytes.
    pub(crate) fn table_bytes(&self, targets: f64) -> f64 {
        let roots: FxHashSet<_> = self.hosts.iter().map(|host| self.root(*host)).collect();
        let entry = size_of::<u16>() + size_of::<u64>() + size_of::<LinkId>();
        targets.min(roots.len() as f64) * (self.switches * entry) as f64
    }

    /// Number of shortest paths from `source` to another host; zero if none connects them.
    pub fn count(&mut self, source: HostId, target: HostId) -> u64 {
        self.search_once(target);
        let (towards, source, _) = self.ends(source, target);
        self.distance_and_count(towards, source).1
    }

    /// Number of hops from `source` to another host, if there is a path.
    pub fn hops(&mut self, source: HostId, target: HostId) -> Option<u16> {
        // Cables and paths lead both ways, so one search from the source covers all its targets.
        self.search_once(source);
        let (towards, target, source) = self.ends(target, source);
        let (hops, _) = self.distance_and_count(towards, target);
        (hops < UNREACHED).then(|| hops + u16::from(towards.root != source))
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
        let (towards, mut node, end) = self.ends(source, target);
        while node != towards.root {
            // The choice counts the paths over one next node after those over another.
            let is_chosen = |(_, _, count): &(LinkId, NodeId, u64)| {
                let is_chosen = choice < *count;
                choice -= if is_chosen { 0 } else { *count };
                is_chosen
            };
            let (link, next, _) = self.only_hop(towards, node).unwrap_or_else(|| {
                let chosen = self.next_hops(towards, node).find(is_chosen);
                chosen.expect("a choice is below the number of paths")
            });
            links.push(link);
            node = next;
        }
        links.extend(self.last_link(towards, end));
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
        let (towards, mut node, end) = self.ends(source, target);
        while node != towards.root {
            let (link, next, _) = self.only_hop(towards, node).unwrap_or_else(|| {
                let number = self.next_hops(towards, node).count();
                let chosen = self.next_hops(towards, node).nth(choose(node, number));
                chosen.expect("a choice is below the number of next hops")
            });
            links.push(link);
            node = next;
        }
        links.extend(self.last_link(towards, end));
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
        let (towards, order) = self.search(target);
        // Hosts come first, because no path leads through one.
        let sources = self.linked.iter().chain(order[1..].iter().rev());
        for &node in sources.filter(|node| **node != target) {
            let amount = std::mem::take(&mut amounts[node as usize]);
            if amount == 0.0 {
                continue;
            }
            let share = match split {
                Split::NextHops => amount / self.next_hops(&towards, node).count() as f64,
                Split::Paths => amount / self.distance_and_count(&towards, node).1 as f64,
            };
            for (link, next, paths) in self.next_hops(&towards, node) {
                let part = if split == Split::Paths { share * paths as f64 } else { share };
                loads[link as usize] += part;
                amounts[next as usize] += part;
            }
        }
        amounts.fill(0.0);
    }

    /// Returns the next hop of a switch with a single shortest path, as `next_hops` does. A core switch may
    /// have a thousand ports, which need no search.
    fn only_hop(&self, towards: &Towards, node: NodeId) -> Option<(LinkId, NodeId, u64)> {
        let switch = self.switch[node as usize];
        let is_only = switch != HOST && towards.count[switch as usize] == 1;
        is_only.then(|| {
            let link = towards.link[switch as usize];
            (link, self.receiver[link as usize], 1)
        })
    }

    /// Returns the links from a node on shortest paths to the root, each with the receiving node and the
    /// number of paths from there.
    fn next_hops(
        &self,
        towards: &Towards,
        node: NodeId,
    ) -> impl Iterator<Item = (LinkId, NodeId, u64)> {
        let (distance, _) = self.distance_and_count(towards, node);
        self.neighbours(towards, node).filter_map(move |(link, next, (next_distance, count))| {
            (next_distance < distance).then_some((link, next, count))
        })
    }

    /// Returns the links from a node to the root and to switches that have a path there, each with the
    /// receiving node, its distance and its number of paths.
    fn neighbours(
        &self,
        towards: &Towards,
        node: NodeId,
    ) -> impl Iterator<Item = (LinkId, NodeId, (u16, u64))> {
        let leads = |next| next == towards.root || self.switch[next as usize] != HOST;
        let leading = self.outgoing(node).iter().filter(move |(_, next)| leads(*next));
        leading
            .map(|(link, next)| (*link, *next, self.distance_and_count(towards, *next)))
            .filter(|(_, _, (distance, _))| *distance < UNREACHED)
    }

    /// Returns the hops from a node to the root, and the number of shortest paths.
    fn distance_and_count(&self, towards: &Towards, node: NodeId) -> (u16, u64) {
        if node == towards.root {
            return (0, 1);
        }
        match self.switch[node as usize] {
            HOST => {
                let add = |(least, sum): (u16, u64), (distance, count): (u16, u64)| {
                    let hops = distance + 1;
                    match hops.cmp(&least) {
                        Ordering::Less => (hops, count),
                        Ordering::Equal => (least, sum.saturating_add(count)),
                        Ordering::Greater => (least, sum),
                    }
                };
                self.neighbours(towards, node).map(|(.., next)| next).fold((UNREACHED, 0), add)
            }
            switch => (towards.distance[switch as usize], towards.count[switch as usize]),
        }
    }

    /// Returns the table of `target`, which has been computed, and the nodes of the two hosts.
    fn ends(&self, source: HostId, target: HostId) -> (&Towards, NodeId, NodeId) {
        let (source, target) = (self.hosts[source as usize], self.hosts[target as usize]);
        (&self.towards[&self.root(target)], source, target)
    }

    /// Returns the root of the paths to a host.
    fn root(&self, host: NodeId) -> NodeId {
        match self.outgoing(host) {
            [(_, next)] if self.switch[*next as usize] != HOST => *next,
            _ => host,
        }
    }

    /// Returns the link from the root to a target that is not the root.
    fn last_link(&self, towards: &Towards, target: NodeId) -> Option<LinkId> {
        (towards.root != target).then(|| self.outgoing(target)[0].0 ^ 1)
    }

    fn outgoing(&self, node: NodeId) -> &[(LinkId, NodeId)] {
        let node = node as usize;
        &self.outgoing[self.first[node] as usize..self.first[node + 1] as usize]
    }

    /// Computes the table of `target` if it is the first host of its root.
    fn search_once(&mut self, target: HostId) {
        let root = self.root(self.hosts[target as usize]);
        if !self.towards.contains_key(&root) {
            let (towards, _) = self.search(root);
            self.towards.insert(root, towards);
        }
    }

    /// Breadth-first search from a root over switches. Returns them in order of distance, behind the root.
    /// Cables lead both ways, so it follows outgoing links.
    fn search(&self, root: NodeId) -> (Towards, Vec<NodeId>) {
        let mut distance = vec![UNREACHED; self.switches].into_boxed_slice();
        let mut count = vec![0_u64; self.switches].into_boxed_slice();
        let mut link = vec![0; self.switches].into_boxed_slice();
        let mut queue = Vec::with_capacity(self.switches + 1);
        queue.push(root);
        let mut done = 0;
        while let Some(&node) = queue.get(done) {
            done += 1;
            let (further, paths) = match self.switch[node as usize] {
                _ if node == root => (1, 1),
                switch => (distance[switch as usize] + 1, count[switch as usize]),
            };
            if further == UNREACHED {
                break;
            }
            for &(from_node, next) in self.outgoing(node) {
                let switch = self.switch[next as usize];
                if next == root || switch == HOST {
                    continue;
                }
                let switch = switch as usize;
                if distance[switch] == UNREACHED {
                    distance[switch] = further;
                    link[switch] = from_node ^ 1;
                    queue.push(next);
                }
                if distance[switch] == further {
                    count[switch] = count[switch].saturating_add(paths);
                }
            }
        }
        (Towards { root, distance, count, link }, queue)
    }
}

//! Shortest paths in hops, computed once for all switches with the same neighbours and cached.

mod spread;

use std::cmp::Ordering;

use rustc_hash::{FxHashMap, FxHashSet};

pub(crate) use self::spread::Split;
use super::{Graph, LinkId, NodeId};
use crate::model::flow::HostId;

/// Distance of a node without a path to the target.
const UNREACHED: u16 = u16::MAX;

/// Set of twins of a host, which has none.
const HOST: u32 = u32::MAX;

/// Shortest paths between the hosts of a graph. No path leads through a host, because hosts do not forward.
///
/// The links of a path in reverse order, each `^ 1`, are a shortest path of the other direction.
#[derive(Clone, Debug)]
pub struct Paths {
    hosts: Vec<NodeId>,
    /// Set of twins of each node, or [`HOST`]. Twins are switches with cables to the same switches and the
    /// same hosts with several cables, as the edge switches of a pod: any other node is equally far from all
    /// of them, over as many paths.
    twins: Vec<u32>,
    /// A switch of each set of twins.
    representative: Vec<NodeId>,
    /// Index of the first link of each node in `outgoing`, with one entry more than there are nodes.
    first: Vec<u32>,
    /// Index behind the last link of each node to a switch; those to hosts follow.
    first_to_host: Vec<u32>,
    /// Links by the transmitting node, each with the receiving node.
    outgoing: Vec<(LinkId, NodeId)>,
    /// Tables by target: the representative of the twins to which the only neighbour of the target host
    /// belongs, or a host with several cables. A large network has so a table for each pod and not for each
    /// host.
    tables: FxHashMap<NodeId, Table>,
}

/// Shortest paths from each set of twins to a root, which is a host or another switch.
pub(crate) type Table = Box<[ToRoot]>;

/// Shortest paths from a switch to a root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToRoot {
    /// Number of shortest paths, saturating.
    count: u64,
    /// Next node of one of the paths, unless that is the root.
    next: NodeId,
    /// Hops.
    distance: u16,
}

/// Paths to a root: the only neighbour of the target host, if that is a switch, and otherwise the target
/// host.
#[derive(Clone, Copy, Debug)]
struct Towards<'a> {
    root: NodeId,
    table: &'a [ToRoot],
}

impl Paths {
    /// Returns the paths of `graph`.
    pub fn new(graph: &Graph) -> Self {
        Self::over(graph, |_| true)
    }

    /// Returns the paths of `graph` over the links that `may_take` permits: both directions of a cable, or
    /// neither.
    pub fn over(graph: &Graph, may_take: impl Fn(LinkId) -> bool) -> Self {
        let nodes = graph.nodes.len();
        let is_host = |node: NodeId| graph.nodes[node as usize].is_host;
        let links = || (0..).zip(&graph.links).filter(|(id, _)| may_take(*id));
        let mut first = vec![0; nodes + 1];
        for (_, link) in links() {
            first[link.from as usize + 1] += 1;
        }
        for node in 0..nodes {
            first[node + 1] += first[node];
        }
        let mut first_to_host = first[..nodes].to_vec();
        for (_, link) in links().filter(|(_, link)| !is_host(link.to)) {
            first_to_host[link.from as usize] += 1;
        }
        let mut free = [first.clone(), first_to_host.clone()];
        let mut outgoing = vec![(0, 0); first[nodes] as usize];
        for (id, link) in links() {
            let slot = &mut free[usize::from(is_host(link.to))][link.from as usize];
            outgoing[*slot as usize] = (id, link.to);
            *slot += 1;
        }
        let mut paths = Self {
            hosts: graph.hosts.clone(),
            twins: vec![HOST; nodes],
            representative: Vec::new(),
            first,
            first_to_host,
            outgoing,
            tables: FxHashMap::default(),
        };
        paths.find_twins((0..nodes as NodeId).filter(|node| !is_host(*node)));
        paths
    }

    /// Finds the switches that are twins.
    fn find_twins(&mut self, switches: impl Iterator<Item = NodeId>) {
        let mut sets = FxHashMap::default();
        for switch in switches {
            let has_own_table = |host: &NodeId| self.root(*host) == *host;
            let hosts = self.to_hosts(switch).iter().map(|(_, host)| *host).filter(has_own_table);
            let mut neighbours: Vec<_> =
                self.to_switches(switch).iter().map(|(_, next)| *next).chain(hosts).collect();
            neighbours.sort_unstable();
            let twins = *sets.entry(neighbours).or_insert_with(|| {
                self.representative.push(switch);
                self.representative.len() as u32 - 1
            });
            self.twins[switch as usize] = twins;
        }
    }

    /// Returns the memory of the tables of `targets` hosts, in bytes.
    pub(crate) fn table_bytes(&self, targets: f64) -> f64 {
        let keys: FxHashSet<_> = self.hosts.iter().map(|host| self.key(self.root(*host))).collect();
        targets.min(keys.len() as f64) * (self.representative.len() * size_of::<ToRoot>()) as f64
    }

    /// Number of shortest paths from `source` to another host; zero if none connects them.
    pub fn count(&mut self, source: HostId, target: HostId) -> u64 {
        self.search_once(target);
        self.distance_and_count(self.towards(target), self.hosts[source as usize]).1
    }

    /// Number of hops from `source` to another host, if there is a path.
    pub fn hops(&mut self, source: HostId, target: HostId) -> Option<u16> {
        // Cables and paths lead both ways, so one search from the source covers all its targets.
        self.search_once(source);
        let towards = self.towards(source);
        let (hops, _) = self.distance_and_count(towards, self.hosts[target as usize]);
        (hops < UNREACHED).then(|| hops + u16::from(towards.root != self.hosts[source as usize]))
    }

    /// Appends the links of shortest path number `choice`, below [`count`](Self::count), to `links`.
    pub fn append(
        &mut self,
        source: HostId,
        target: HostId,
        mut choice: u64,
        links: &mut Vec<LinkId>,
    ) {
        let [mut node, end] = [source, target].map(|host| self.hosts[host as usize]);
        self.search_once(target);
        let towards = self.towards(target);
        let (_, count) = self.distance_and_count(towards, node);
        assert!(choice < count, "path {choice} of {count} from host {source} to host {target}");
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

    /// Appends the links of all shortest paths in the order of their numbers, each with `end` behind it.
    pub fn append_all(
        &mut self,
        source: HostId,
        target: HostId,
        end: LinkId,
        links: &mut Vec<LinkId>,
    ) {
        self.search_once(target);
        let [node, target_node] = [source, target].map(|host| self.hosts[host as usize]);
        let towards = self.towards(target);
        let last = self.last_link(towards, target_node);
        self.extend(towards, node, &mut Vec::with_capacity(8), &mut |path| {
            links.extend_from_slice(path);
            links.extend(last);
            links.push(end);
        });
    }

    /// Hands over all shortest paths to the root that begin with `path`, which ends at `node`.
    fn extend(
        &self,
        towards: Towards<'_>,
        node: NodeId,
        path: &mut Vec<LinkId>,
        found: &mut impl FnMut(&[LinkId]),
    ) {
        if node == towards.root {
            return found(path);
        }
        let mut follow = |link, next| {
            path.push(link);
            self.extend(towards, next, path, found);
            path.pop();
        };
        match self.only_hop(towards, node) {
            Some((link, next, _)) => follow(link, next),
            None => self.next_hops(towards, node).for_each(|(link, next, _)| follow(link, next)),
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
        let [mut node, end] = [source, target].map(|host| self.hosts[host as usize]);
        self.search_once(target);
        let towards = self.towards(target);
        let (_, count) = self.distance_and_count(towards, node);
        assert!(count > 0, "no path from host {source} to host {target}");
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

    /// Returns the next hop of a node with one link, or of a switch with a single shortest path, as
    /// `next_hops` does. A core switch may have a thousand ports, which need no search.
    fn only_hop(&self, towards: Towards<'_>, node: NodeId) -> Option<(LinkId, NodeId, u64)> {
        if let [(link, next)] = self.outgoing(node) {
            return Some((*link, *next, self.distance_and_count(towards, *next).1));
        }
        let twins = self.twins[node as usize];
        if twins == HOST {
            return None;
        }
        let ToRoot { count, next, distance } = towards.table[twins as usize];
        let next = if distance == 1 { towards.root } else { next };
        (count == 1).then(|| (self.link(node, next), next, 1))
    }

    /// Returns the link of the only cable between two nodes.
    fn link(&self, from: NodeId, to: NodeId) -> LinkId {
        let (there, back) = (self.outgoing(from), self.outgoing(to));
        let link = if there.len() <= back.len() {
            there.iter().find(|(_, next)| *next == to).map(|(link, _)| *link)
        } else {
            back.iter().find(|(_, next)| *next == from).map(|(link, _)| *link ^ 1)
        };
        link.expect("a cable joins the nodes")
    }

    /// Returns the links from a node on shortest paths to the root, each with the receiving node and the
    /// number of paths from there.
    fn next_hops<'a>(
        &'a self,
        towards: Towards<'a>,
        node: NodeId,
    ) -> impl Iterator<Item = (LinkId, NodeId, u64)> {
        let (distance, _) = self.distance_and_count(towards, node);
        self.neighbours(towards, node).filter_map(move |(link, next, (next_distance, count))| {
            (next_distance < distance).then_some((link, next, count))
        })
    }

    /// Returns the links from a node to the root and to switches that have a path there, each with the
    /// receiving node, its distance and its number of paths.
    fn neighbours<'a>(
        &'a self,
        towards: Towards<'a>,
        node: NodeId,
    ) -> impl Iterator<Item = (LinkId, NodeId, (u16, u64))> {
        let is_to_host = self.is_host(towards.root);
        let links = if is_to_host { self.outgoing(node) } else { self.to_switches(node) };
        let leads = move |next| !is_to_host || next == towards.root || !self.is_host(next);
        let leading = links.iter().filter(move |(_, next)| leads(*next));
        leading
            .map(move |(link, next)| (*link, *next, self.distance_and_count(towards, *next)))
            .filter(|(_, _, (distance, _))| *distance < UNREACHED)
    }

    /// Returns the hops from a node to the root, and the number of shortest paths.
    fn distance_and_count(&self, towards: Towards<'_>, node: NodeId) -> (u16, u64) {
        if node == towards.root {
            return (0, 1);
        }
        match self.twins[node as usize] {
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
            twins => {
                let ToRoot { distance, count, .. } = towards.table[twins as usize];
                (distance, count)
            }
        }
    }

    fn is_host(&self, node: NodeId) -> bool {
        self.twins[node as usize] == HOST
    }

    /// Returns the root of the paths to a host.
    fn root(&self, host: NodeId) -> NodeId {
        match (self.to_switches(host), self.to_hosts(host)) {
            ([(_, next)], []) => *next,
            _ => host,
        }
    }

    /// Returns the node that has the table of a root: the same for twins.
    pub(crate) fn key(&self, root: NodeId) -> NodeId {
        match self.twins[root as usize] {
            HOST => root,
            twins => self.representative[twins as usize],
        }
    }

    /// Returns the link from the root to a target that is not the root.
    fn last_link(&self, towards: Towards<'_>, target: NodeId) -> Option<LinkId> {
        (towards.root != target).then(|| self.outgoing(target)[0].0 ^ 1)
    }

    fn outgoing(&self, node: NodeId) -> &[(LinkId, NodeId)] {
        &self.outgoing[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }

    fn to_switches(&self, node: NodeId) -> &[(LinkId, NodeId)] {
        let node = node as usize;
        &self.outgoing[self.first[node] as usize..self.first_to_host[node] as usize]
    }

    fn to_hosts(&self, node: NodeId) -> &[(LinkId, NodeId)] {
        let node = node as usize;
        &self.outgoing[self.first_to_host[node] as usize..self.first[node + 1] as usize]
    }

    /// Computes the table of a target if it is the first host that needs it.
    fn search_once(&mut self, target: HostId) {
        let root = self.root(self.hosts[target as usize]);
        let key = self.key(root);
        if !self.tables.contains_key(&key) {
            self.tables.insert(key, self.search(root));
        }
    }

    /// Returns the paths to a target, whose table has been computed.
    fn towards(&self, target: HostId) -> Towards<'_> {
        let root = self.root(self.hosts[target as usize]);
        Towards { root, table: &self.tables[&self.key(root)] }
    }

    /// Returns the table of a root: a switch, or a host with several cables. Breadth-first search over sets
    /// of twins. Cables lead both ways, so it follows outgoing links. The entry of the root's own set is that
    /// of its twins.
    pub(crate) fn search(&self, root: NodeId) -> Table {
        let unreached = ToRoot { count: 0, next: root, distance: UNREACHED };
        let mut table = vec![unreached; self.representative.len()].into_boxed_slice();
        let mut queue = Vec::with_capacity(table.len());
        for (_, next) in self.to_switches(root) {
            let twins = self.twins[*next as usize];
            let entry = &mut table[twins as usize];
            if entry.distance == UNREACHED {
                entry.distance = 1;
                queue.push(twins);
            }
            entry.count += u64::from(self.representative[twins as usize] == *next);
        }
        let mut done = 0;
        while let Some(&twins) = queue.get(done) {
            done += 1;
            let node = self.representative[twins as usize];
            let ToRoot { distance, .. } = table[twins as usize];
            if distance + 1 == UNREACHED {
                break;
            }
            for (_, next) in self.to_switches(node) {
                let twins = self.twins[*next as usize];
                let entry = &mut table[twins as usize];
                if entry.distance == UNREACHED {
                    *entry = ToRoot { count: 0, next: node, distance: distance + 1 };
                    queue.push(twins);
                }
            }
        }
        for twins in queue {
            let ToRoot { distance, .. } = table[twins as usize];
            if distance == 1 {
                continue;
            }
            let neighbours = self.to_switches(self.representative[twins as usize]).iter();
            let nearer = neighbours.map(|(_, next)| table[self.twins[*next as usize] as usize]);
            let nearer = nearer.filter(|entry| entry.distance < distance);
            let count = nearer.fold(0, |sum: u64, entry| sum.saturating_add(entry.count));
            table[twins as usize].count = count;
        }
        table
    }
}

#[cfg(test)]
mod tests;

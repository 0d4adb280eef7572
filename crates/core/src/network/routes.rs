//! Routes: the path of every flow as a sequence of links, found when the flow starts.
//!
//! A packet follows its route by counting hops, without a lookup by destination. Where switches choose the
//! next hop, it counts along a [tree] of paths.

mod allocator;
pub mod tree;

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use self::allocator::{RouteAllocator, copy};
use self::tree::{Branches, tree};
use crate::base::prefetch::prefetch_at;
use crate::base::random::{index_below, mix};
use crate::base::units::{Bytes, Duration, Rate};
use crate::model::flow::{HostId, PathKey};
use crate::model::graph::{Graph, LinkId, NodeId, Paths, Split};
use crate::model::packet::Format;

crate::choices! {
    /// Distribution of packets over paths of equal cost.
    pub enum Routing {
        /// Every flow takes one path, chosen by a hash of the seed and the flow among all shortest paths
        /// alike: switches that weight next hops by their number of paths (WCMP). After a failure, only
        /// flows on the failed cable take another path.
        FlowHash = "flow_hash",
        /// Every flow takes one path. At each node, a hash of source, target, flow and a seed of the node
        /// chooses among the next hops on shortest paths, each with an equal share (ECMP, hash-threshold of
        /// RFC 2992 §2). After a failure the hash chooses among the next hops that are left, so other
        /// flows change paths too. ACKs take the reverse path, as with symmetric hashing.
        Ecmp = "ecmp",
        /// Like `ecmp`, with the same hash seed at every node: nodes in a row choose alike, and a part of
        /// the links has no traffic (polarisation).
        EcmpEqualSeeds = "ecmp_equal_seeds",
        /// Every packet takes the next path in turn, starting anywhere. All packets of a flow in one
        /// direction have one turn: if ACKs and credits alternate, and the number of paths is even, ACKs
        /// take one half of the paths and credits the other.
        SprayRoundRobin = "spray_round_robin",
        /// Every packet takes a random path.
        SprayRandom = "spray_random",
        /// Every packet takes the path that its entropy value names. The sending host chooses the value
        /// (`entropy`), and the receiver returns it. Answers take random paths.
        Entropy = "entropy",
    }
}

impl Routing {
    /// Names of the rules by which all packets of a flow take one path, for messages.
    pub const ONE_PATH: &str = "\"flow_hash\" or \"ecmp\"";

    /// Division of the traffic of many flows among shortest paths. With equal seeds, the division by switches
    /// with seeds of their own: a lower bound of the largest share.
    pub(crate) fn split(self) -> Split {
        match self {
            Self::Ecmp | Self::EcmpEqualSeeds => Split::NextHops,
            Self::FlowHash | Self::SprayRoundRobin | Self::SprayRandom | Self::Entropy => {
                Split::Paths
            }
        }
    }

    /// Returns true if all packets of a flow take one path, and their ACKs the reverse path.
    pub fn takes_one_path(self) -> bool {
        matches!(self, Self::FlowHash | Self::Ecmp | Self::EcmpEqualSeeds)
    }
}

/// End of a path.
pub const END: LinkId = LinkId::MAX;

/// Paths that the packets of a flow take in one direction. The paths of the reverse direction stand behind
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    first: u32,
    /// Length of each path with its [`END`].
    stride: u32,
    paths: u32,
}

impl Route {
    /// Returns the reverse route.
    fn reverse(self) -> Self {
        Self { first: self.first + self.paths * self.stride, ..self }
    }

    /// Returns the position of the next link of a packet that turns back at the port of the link at
    /// `position`: that of the reverse path of the same path. None at the first link of a path, and if the
    /// position is not on this route.
    pub fn turning_point(self, position: u32) -> Option<u32> {
        let offset =
            position.checked_sub(self.first).filter(|at| *at < self.paths * self.stride)?;
        let (path, hop) = (offset / self.stride, offset % self.stride);
        let end = self.reverse().first + (path + 1) * self.stride - 1;
        (hop > 0).then(|| end - hop)
    }

    /// Returns this route and the reverse route.
    pub fn both(self) -> [Self; 2] {
        [self, self.reverse()]
    }
}

/// Selection of a path for each packet of a flow in one direction.
#[derive(Clone, Copy, Debug)]
pub struct PathSelector {
    route: Route,
    choice: Choice,
    /// If true, entropy values are numbers of paths.
    numbers_paths: bool,
    /// The last path; or with random paths, the state of the flow's random sequence.
    state: u64,
}

/// Choice of the path of a packet without an entropy value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    InTurn,
    Random,
    /// Path of the entropy value 0.
    First,
}

impl PathSelector {
    /// Selects paths of another route from now on.
    pub fn set_route(&mut self, route: Route) {
        self.route = route;
    }

    /// Returns the number of paths.
    pub fn paths(&self) -> u32 {
        self.route.paths
    }

    /// Lets entropy values be numbers of paths.
    #[must_use]
    pub fn with_numbers(self) -> Self {
        Self { numbers_paths: true, ..self }
    }

    /// Selects one path for all packets without an entropy value.
    #[must_use]
    pub fn with_one_path(self) -> Self {
        Self { choice: Choice::First, ..self }
    }

    /// Returns the position of the first link of the next packet's path.
    pub fn start(&mut self) -> u32 {
        let Route { first, stride, paths } = self.route;
        if paths == 1 {
            return first;
        }
        let (paths, next) = (u64::from(paths), self.state.wrapping_add(1));
        let path = match self.choice {
            Choice::First => return self.start_at(0),
            Choice::Random => {
                self.state = next;
                index_below(mix(next), paths)
            }
            Choice::InTurn => {
                self.state = next % paths;
                self.state
            }
        };
        first + path as u32 * stride
    }

    /// Returns the position of the first link of the path that an entropy value names: its number, or a hash
    /// of the flow and the value, as the hashes of the switches along the path combine to one.
    pub fn start_at(&self, entropy: u16) -> u32 {
        let Route { first, stride, paths } = self.route;
        if self.numbers_paths {
            return first + u32::from(entropy) % paths * stride;
        }
        let hash = mix(self.state ^ mix(u64::from(entropy)));
        first + index_below(hash, u64::from(paths)) as u32 * stride
    }
}

/// All paths between two hosts.
#[derive(Clone, Copy, Debug)]
struct Sprayed {
    count: u32,
    /// Position of the paths.
    first: u32,
    /// Changes of the avoided cables until they were found.
    changes: u32,
}

/// All routes in use. Each path is a sequence of links that ends with [`END`].
///
/// The memory of a flow's route is reused when the flow has ended, so that the table that every hop reads
/// stays small (docs/performance.md). With spraying, all paths of a pair of hosts are kept.
pub struct Routes {
    routing: Routing,
    seed: u64,
    paths: Paths,
    /// Paths that avoid the cables in `avoided`, if there are any.
    detours: Option<Paths>,
    /// Cables that routing avoids, each by its link with the even number.
    avoided: BTreeSet<LinkId>,
    /// Number of changes of `avoided`.
    changes: u32,
    hops: Vec<LinkId>,
    allocator: RouteAllocator,
    /// First position and length of the entries written since [`take_changes`](Self::take_changes).
    written: Vec<(u32, u32)>,
    /// Branches of the trees along which switches move packets, if they choose next hops.
    branches: Option<Branches>,
    /// With several paths a flow, by pair of hosts.
    sprayed: FxHashMap<(HostId, HostId), Sprayed>,
    /// Positions of free memory for a path and its reverse, by the length of one of them.
    free: BTreeMap<u32, Vec<u32>>,
    /// Paths that are being found, with their reverse.
    found: Vec<LinkId>,
}

impl Routes {
    /// Returns the routes through `graph`, without a flow, for partition `part` of `parts`. Each partition
    /// finds the routes of its own flows.
    pub fn new(graph: &Graph, routing: Routing, seed: u64, (part, parts): (u32, u32)) -> Self {
        Self {
            routing,
            seed,
            paths: Paths::new(graph),
            detours: None,
            avoided: BTreeSet::new(),
            changes: 0,
            hops: Vec::new(),
            allocator: RouteAllocator::new(part, parts),
            written: Vec::new(),
            branches: None,
            sprayed: FxHashMap::default(),
            free: BTreeMap::new(),
            found: Vec::new(),
        }
    }

    /// Returns the routes through `graph` for packets whose next hop switches choose, at these branches.
    pub fn with_branches(graph: &Graph, branches: Branches, seed: u64, part: (u32, u32)) -> Self {
        let routes = Self::new(graph, Routing::SprayRoundRobin, seed, part);
        Self { branches: Some(branches), ..routes }
    }

    /// Returns the link at `position`; or an entry of [`BRANCH`](tree::BRANCH) or more, as [`END`] is.
    pub fn link(&self, position: u32) -> LinkId {
        self.hops[position as usize]
    }

    /// Returns the link at `position`, as [`link`](Self::link) does; `None` if no route has it, as for pause
    /// frames.
    pub fn find(&self, position: u32) -> Option<LinkId> {
        self.hops.get(position as usize).copied()
    }

    /// Reads the link at `position` ahead. With a million flows each route is a cache miss.
    pub fn read_ahead(&self, position: u32) {
        prefetch_at(&self.hops, position as usize);
    }

    /// Finds the route of a flow and the reverse route, which takes the same paths backwards.
    ///
    /// # Panics
    /// If no path joins the hosts; topologies are connected.
    pub fn allocate(&mut self, source: HostId, target: HostId, key: impl Into<PathKey>) -> Route {
        let (paths, first) = if self.routing.takes_one_path() {
            self.find_one(source, target, key.into());
            (1, self.store())
        } else {
            self.all(source, target)
        };
        let path = self.hops[first as usize..].split(|link| *link == END).next();
        let stride = path.map_or(0, <[LinkId]>::len) as u32 + 1;
        Route { first, stride, paths }
    }

    /// Returns the path of a flow, the first if it has several, without storing it.
    pub fn path(&mut self, source: HostId, target: HostId, key: impl Into<PathKey>) -> &[LinkId] {
        let links = if self.routing.takes_one_path() {
            self.find_one(source, target, key.into());
            &self.found[..]
        } else {
            let (_, first) = self.all(source, target);
            &self.hops[first as usize..]
        };
        links.split(|link| *link == END).next().unwrap_or_default()
    }

    /// Avoids a cable from the next [`converge`](Self::converge) on, or uses it again.
    pub fn set_avoided(&mut self, cable: LinkId, is_avoided: bool) {
        if is_avoided {
            self.avoided.insert(cable);
        } else {
            self.avoided.remove(&cable);
        }
    }

    /// Computes paths after changes of the avoided cables. Live flows keep their route until
    /// [`reroute`](Self::reroute).
    pub fn converge(&mut self, graph: &Graph) {
        let avoided = &self.avoided;
        self.detours = (!avoided.is_empty())
            .then(|| Paths::over(graph, |link| !avoided.contains(&(link & !1))));
        self.changes += 1;
    }

    /// Returns the route that a flow must take in place of `route`; `None` if it keeps that.
    pub fn reroute(
        &mut self,
        route: Route,
        source: HostId,
        target: HostId,
        key: impl Into<PathKey>,
    ) -> Option<Route> {
        let key = key.into();
        if self.routing.takes_one_path() {
            self.find_one(source, target, key);
            if self.is_at(route.first) {
                return None;
            }
        }
        let new = self.allocate(source, target, key);
        (new != route).then_some(new)
    }

    /// Finds the path of a flow and its reverse.
    fn find_one(&mut self, source: HostId, target: HostId, key: PathKey) {
        let PathKey { number, is_reversed } = key;
        let (source, target) = if is_reversed { (target, source) } else { (source, target) };
        self.found.clear();
        if self.routing == Routing::FlowHash {
            self.find_among_paths(source, target, number);
        } else {
            self.find_hop_by_hop(source, target, number);
        }
        self.found.push(END);
        self.mirror();
        if is_reversed {
            let length = self.found.len() / 2;
            self.found.rotate_left(length);
        }
    }

    /// Finds the path on which the hash of the flow selects every next hop, of those that are not avoided;
    /// if all paths are, of all.
    fn find_hop_by_hop(&mut self, source: HostId, target: HostId, flow: u64) {
        let key = mix(mix(flow) ^ ((u64::from(source) << 32) | u64::from(target)));
        let (seed, is_equal) = (self.seed, self.routing == Routing::EcmpEqualSeeds);
        let choose = |node: NodeId, number: usize| {
            let seed = if is_equal { seed } else { mix(seed ^ mix(u64::from(node))) };
            index_below(mix(key ^ seed), number as u64) as usize
        };
        let Self { paths, detours, found, .. } = self;
        let up = detours.as_mut().and_then(|up| (up.count(source, target) > 0).then_some(up));
        up.unwrap_or(paths).append_hop_by_hop(source, target, choose, found);
    }

    /// Finds the path that the hash of the flow selects of all, unless it is avoided. Otherwise one of the
    /// shortest paths that are left; without any, the first choice.
    fn find_among_paths(&mut self, source: HostId, target: HostId, flow: u64) {
        let hash = mix(self.seed ^ mix(flow));
        let Self { paths, detours, avoided, found, .. } = self;
        let count = paths.count(source, target);
        assert!(count > 0, "no path joins hosts {source} and {target}");
        paths.append(source, target, hash % count, found);
        if let Some(detours) = detours
            && found.iter().any(|link| avoided.contains(&(link & !1)))
        {
            let count = detours.count(source, target);
            if count > 0 {
                found.clear();
                // By another hash: the flows of the avoided path have hashes in common, modulo the
                // number of paths, and would all select the same detour.
                detours.append(source, target, mix(hash) % count, found);
            }
        }
    }

    /// Finds all paths between two hosts that are not avoided, or all paths if each is. Returns their
    /// number and position.
    fn all(&mut self, source: HostId, target: HostId) -> (u32, u32) {
        let before = self.sprayed.get(&(source, target)).copied();
        if let Some(Sprayed { count, first, changes }) = before
            && changes == self.changes
        {
            return (count, first);
        }
        let Self { paths, detours, found, .. } = self;
        let up = detours.as_mut().and_then(|up| (up.count(source, target) > 0).then_some(up));
        let paths = up.unwrap_or(paths);
        let count = paths.count(source, target);
        assert!(count > 0, "no path joins hosts {source} and {target}");
        found.clear();
        paths.append_all(source, target, END, found);
        let count = count as u32;
        self.mirror();
        self.append_trees(count as usize);
        let before = before.map(|before| before.first).filter(|first| self.is_at(*first));
        let first = before.unwrap_or_else(|| self.write());
        self.sprayed.insert((source, target), Sprayed { count, first, changes: self.changes });
        (count, first)
    }

    /// Appends the trees of the paths that were found in both directions, if switches choose next hops: the
    /// distance to the second tree, the number of roots of each, and the trees.
    fn append_trees(&mut self, count: usize) {
        let Some(branches) = self.branches else { return };
        let stride = self.found.len() / (2 * count);
        let directions = self.found.chunks_exact(count * stride).map(|paths| {
            tree(paths.chunks_exact(stride).map(|path| &path[..stride - 1]).collect(), branches)
        });
        let trees: Vec<_> = directions.collect();
        self.found.push(3 + trees[0].0.len() as u32);
        self.found.extend(trees.iter().map(|(_, roots)| *roots));
        for (entries, _) in &trees {
            self.found.extend(entries);
        }
    }

    /// Returns the paths, or roots of a tree, of which a flow's packets take one in each direction. A host
    /// with several cables sends all packets of a flow over one of them.
    pub fn of_packets(&self, route: Route, flow: u64) -> [Route; 2] {
        if self.branches.is_none() {
            return route.both();
        }
        let header = route.first + 2 * route.paths * route.stride;
        let [second, roots @ ..] = [0, 1, 2].map(|offset| self.hops[(header + offset) as usize]);
        let hash = mix(self.seed ^ mix(flow));
        let root = |first: u32, roots: u32| {
            let number = (hash % u64::from(roots)) as u32;
            Route { first: first + 2 * number, stride: 2, paths: 1 }
        };
        [root(header + 3, roots[0]), root(header + second, roots[1])]
    }

    /// True if the paths that were found stand at `first`.
    fn is_at(&self, first: u32) -> bool {
        self.hops[first as usize..].starts_with(&self.found)
    }

    /// Returns the path selection of a flow's packets for `route` and for the reverse route.
    pub fn selectors(&self, route: Route, flow: u64) -> [PathSelector; 2] {
        let hash = mix(self.seed ^ mix(flow));
        let is_random = matches!(self.routing, Routing::SprayRandom | Routing::Entropy);
        let selector = |route: Route, stream: u64| {
            let state = if is_random { mix(hash ^ stream) } else { hash % u64::from(route.paths) };
            let choice = if is_random { Choice::Random } else { Choice::InTurn };
            PathSelector { route, choice, numbers_paths: false, state }
        };
        let [forward, reverse] = self.of_packets(route, flow);
        [selector(forward, 0), selector(reverse, 1)]
    }

    /// Returns the paths of a route, each as its links.
    pub fn links(&self, route: Route) -> impl Iterator<Item = &[LinkId]> + Clone {
        let (first, stride) = (route.first as usize, route.stride as usize);
        self.hops[first..first + route.paths as usize * stride]
            .chunks_exact(stride)
            .map(move |path| &path[..stride - 1])
    }

    /// Returns the rate of the first link of a route.
    pub fn line_rate(&self, graph: &Graph, route: Route) -> Rate {
        let first = self.links(route).next().map_or(0, |path| path[0]);
        graph.links[first as usize].rate
    }

    /// Returns the rate at which data arrives at the host where a route begins, by that host's clock.
    pub fn arrival_rate(&self, graph: &Graph, route: Route) -> Rate {
        let first = self.links(route).next().map_or(0, |path| path[0]);
        graph.opposite_rate(first)
    }

    /// Returns true if all packets of a flow take one path, until it is rerouted.
    pub fn takes_one_path(&self) -> bool {
        self.routing.takes_one_path()
    }

    /// Returns the time of a packet of `bytes` over an empty network, on the slowest path.
    pub fn longest_packet_time(
        &self,
        graph: &Graph,
        route: Route,
        format: &Format,
        bytes: Bytes,
    ) -> Duration {
        let mut paths = self.links(route);
        let first = paths.next().unwrap_or_default();
        let others = paths.filter(|path| !graph.are_alike(path, first));
        others
            .map(|path| graph.packet_time(path, format, bytes))
            .fold(graph.packet_time(first, format, bytes), Duration::max)
    }

    /// Releases the route of a flow that has ended, and the reverse route.
    pub fn release(&mut self, route: Route) {
        if self.routing.takes_one_path() {
            self.free.entry(route.stride).or_default().push(route.first);
        }
    }

    /// Stores the path that was found in free memory. Returns its position.
    fn store(&mut self) -> u32 {
        let stride = self.found.len() as u32 / 2;
        if let Some(first) = self.free.get_mut(&stride).and_then(Vec::pop) {
            self.hops[first as usize..][..self.found.len()].copy_from_slice(&self.found);
            self.allocator.record(&mut self.written, first, self.found.len());
            return first;
        }
        self.write()
    }

    /// Stores the paths that were found in new memory. Returns their position.
    fn write(&mut self) -> u32 {
        let first = self.allocator.take(self.found.len(), self.hops.len());
        copy(&mut self.hops, first, &self.found);
        self.allocator.record(&mut self.written, first, self.found.len());
        first
    }

    /// Takes the changes since the last call: positions, and the links there.
    pub fn take_changes(&mut self) -> Vec<(u32, Vec<LinkId>)> {
        let changes = self.written.drain(..).map(|(first, len)| {
            let hops = &self.hops[first as usize..][..len as usize];
            (first, hops.to_vec())
        });
        changes.collect()
    }

    /// Applies the changes of another partition.
    pub fn apply(&mut self, changes: &[(u32, Vec<LinkId>)]) {
        for (first, hops) in changes {
            copy(&mut self.hops, *first, hops);
        }
    }

    /// Appends the reverse of the paths that were found.
    fn mirror(&mut self) {
        let end = self.found.len();
        let mut start = 0;
        while start < end {
            let length = self.found[start..].iter().position(|link| *link == END).unwrap_or(0);
            for hop in (start..start + length).rev() {
                self.found.push(self.found[hop] ^ 1);
            }
            self.found.push(END);
            start += length + 1;
        }
    }
}

#[cfg(test)]
mod tests;

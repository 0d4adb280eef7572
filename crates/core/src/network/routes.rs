//! Where packets go: every flow's way through the network as a run of ports, found when it starts.
//!
//! A packet follows its route by counting hops: no look-up and no table in the loop.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;

use crate::base::random::mix;
use crate::base::units::{Bytes, Duration, Rate};
use crate::model::flow::HostId;
use crate::model::graph::{Graph, Link, LinkId, Paths};
use crate::model::ideal_fct::{IdealFct, ideal_fct, ideal_fct_spread};
use crate::model::packet::Format;

crate::choices! {
    /// How packets spread over paths of equal cost.
    pub enum Routing {
        /// Every flow takes one path, chosen by a hash of the seed and the flow (ECMP).
        FlowHash = "flow_hash",
        /// Every packet takes the next path in turn, starting anywhere.
        SprayRoundRobin = "spray_round_robin",
        /// Every packet takes a random path.
        SprayRandom = "spray_random",
    }
}

/// Ends a route.
pub const END: LinkId = LinkId::MAX;

/// The paths that one flow's packets take in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    first: u32,
    /// Length of each path with its [`END`].
    stride: u32,
    paths: u32,
}

impl Route {
    /// The way back of a way there, whose paths stand behind it.
    fn back(self) -> Self {
        Self { first: self.first + self.paths * self.stride, ..self }
    }

    /// The ways there and back of a way there.
    pub fn both(self) -> [Self; 2] {
        [self, self.back()]
    }
}

/// Gives each packet of a flow in one direction its path.
#[derive(Clone, Copy, Debug)]
pub struct PathSelector {
    way: Route,
    is_random: bool,
    /// The path taken last; or the number of a draw of the flow's own.
    turn: u64,
}

impl PathSelector {
    /// The packets that are yet to start take another way.
    pub fn turn_to(&mut self, way: Route) {
        self.way = way;
    }

    /// Where the next packet starts.
    pub fn start(&mut self) -> u32 {
        let Route { first, stride, paths } = self.way;
        if paths == 1 {
            return first;
        }
        let (paths, turn) = (u64::from(paths), self.turn.wrapping_add(1));
        let path = if self.is_random {
            self.turn = turn;
            ((u128::from(mix(turn)) * u128::from(paths)) >> 64) as u64
        } else {
            self.turn = turn % paths;
            self.turn
        };
        first + path as u32 * stride
    }
}

/// All routes in use, each a run of links that ends with [`END`].
///
/// The route of a flow that has ended makes room for another, so that what is read at every hop stays small
/// (docs/performance.md). All paths of a pair of hosts, over which packets are sprayed, are kept.
pub struct Routes {
    routing: Routing,
    seed: u64,
    paths: Paths,
    /// Those that avoid the cables that are known to be down, each by the first of its links, if any are.
    detours: Option<Paths>,
    down: BTreeSet<LinkId>,
    /// How often that has changed.
    changes: u32,
    hops: Vec<LinkId>,
    room: Room,
    /// What was written since it was last told, from where on and how long.
    news: Vec<(u32, u32)>,
    /// Where the paths of a pair of hosts start, for spraying, and after how many changes that was so.
    known: BTreeMap<(HostId, HostId), (u32, u32)>,
    /// Where there is room for a path there and back, by the length of either.
    free: BTreeMap<u32, Vec<u32>>,
    /// A path there and back that is being found.
    found: Vec<LinkId>,
}

/// So many hops are a page: many more than all paths between two hosts have.
const PAGE: u32 = 1 << 18;

/// Where a part writes what is new: pages of its own, so that positions mean the same to all parts.
struct Room {
    next: u32,
    left: u32,
    parts: u32,
}

impl Room {
    /// Room for so many hops, where `written` have been written.
    fn take(&mut self, hops: usize, written: usize) -> u32 {
        if self.parts == 1 {
            return written as u32;
        }
        let hops = hops as u32;
        assert!(hops <= PAGE, "two hosts have more equal paths than parts of a run can share");
        if hops > self.left {
            self.next += self.left + (self.parts - 1) * PAGE;
            self.left = PAGE;
        }
        self.next += hops;
        self.left -= hops;
        self.next - hops
    }

    /// Notes what other parts are to be told, if there are any.
    fn tell(&self, news: &mut Vec<(u32, u32)>, first: u32, hops: usize) {
        if self.parts > 1 {
            news.push((first, hops as u32));
        }
    }
}

/// Writes `new` from `first` on.
fn copy(hops: &mut Vec<LinkId>, first: u32, new: &[LinkId]) {
    let first = first as usize;
    if first + new.len() > hops.len() {
        hops.resize(first + new.len(), END);
    }
    hops[first..first + new.len()].copy_from_slice(new);
}

impl Routes {
    /// Routes through `graph`. Of `parts` that each find the routes of some flows and tell the others, this
    /// is number `part`.
    pub fn new(graph: &Graph, routing: Routing, seed: u64, (part, parts): (u32, u32)) -> Self {
        Self {
            routing,
            seed,
            paths: Paths::new(graph),
            detours: None,
            down: BTreeSet::new(),
            changes: 0,
            hops: Vec::new(),
            room: Room { next: part * PAGE, left: PAGE, parts },
            news: Vec::new(),
            known: BTreeMap::new(),
            free: BTreeMap::new(),
            found: Vec::new(),
        }
    }

    /// The link at `position`, or [`END`].
    pub fn link(&self, position: u32) -> LinkId {
        self.hops[position as usize]
    }

    /// Brings the link at a position into a near cache. With a million flows each packet's way is far off: a
    /// processor that reads those of a whole window at once waits for all of them together
    /// (docs/performance.md).
    pub fn read_ahead(&self, position: u32) {
        black_box(self.hops.get(position as usize).copied());
    }

    /// The way of a flow there; the way back mirrors it.
    ///
    /// # Panics
    /// If no path joins the hosts, which no topology lets happen.
    pub fn way(&mut self, source: HostId, target: HostId, flow: u64) -> Route {
        let (paths, first) = if self.routing == Routing::FlowHash {
            self.find_one(source, target, flow);
            (1, self.place())
        } else {
            self.all(source, target)
        };
        let path = self.hops[first as usize..].split(|link| *link == END).next();
        let stride = path.map_or(0, <[LinkId]>::len) as u32 + 1;
        let paths = paths as u32;
        Route { first, stride, paths }
    }

    /// A cable is known to be down, or to be up again.
    pub fn learn(&mut self, cable: LinkId, is_down: bool) {
        if is_down {
            self.down.insert(cable);
        } else {
            self.down.remove(&cable);
        }
    }

    /// Finds ways anew after what was learnt; those of flows in progress are to be asked for
    /// ([`renew`](Self::renew)).
    pub fn converge(&mut self, graph: &Graph) {
        let down = &self.down;
        self.detours =
            (!down.is_empty()).then(|| Paths::over(graph, |link| !down.contains(&(link & !1))));
        self.changes += 1;
    }

    /// The way there that a flow is to take in place of `there`; none if that is as good as ever.
    pub fn renew(
        &mut self,
        there: Route,
        source: HostId,
        target: HostId,
        flow: u64,
    ) -> Option<Route> {
        if self.routing == Routing::FlowHash {
            self.find_one(source, target, flow);
            if self.is_at(there.first) {
                return None;
            }
        }
        let way = self.way(source, target, flow);
        (way != there).then_some(way)
    }

    /// Finds the path of a flow and the way back: the one of all that its hash chooses, as long as that is
    /// not known to be down; else one of the shortest that are left; and if none is, the first all the same.
    fn find_one(&mut self, source: HostId, target: HostId, flow: u64) {
        let hash = mix(self.seed ^ mix(flow));
        let Self { paths, detours, down, found, .. } = self;
        let count = paths.count(source, target);
        assert!(count > 0, "a topology has hosts that nothing joins: {source} and {target}");
        found.clear();
        paths.append(source, target, hash % count, found);
        if let Some(detours) = detours
            && found.iter().any(|link| down.contains(&(link & !1)))
        {
            let count = detours.count(source, target);
            if count > 0 {
                found.clear();
                // By another hash: by the same, those of one path might all choose the same other.
                detours.append(source, target, mix(hash) % count, found);
            }
        }
        found.push(END);
        self.mirror();
    }

    /// All paths between two hosts that are not known to be down, or all there are if each is: how many, and
    /// where they stand.
    fn all(&mut self, source: HostId, target: HostId) -> (u64, u32) {
        let Self { paths, detours, found, .. } = self;
        let up = detours.as_mut().and_then(|up| (up.count(source, target) > 0).then_some(up));
        let paths = up.unwrap_or(paths);
        let count = paths.count(source, target);
        assert!(count > 0, "a topology has hosts that nothing joins: {source} and {target}");
        let known = self.known.get(&(source, target)).copied();
        if let Some((first, changes)) = known
            && changes == self.changes
        {
            return (count, first);
        }
        found.clear();
        for choice in 0..count {
            paths.append(source, target, choice, found);
            found.push(END);
        }
        self.mirror();
        let known = known.map(|(first, _)| first).filter(|first| self.is_at(*first));
        let first = known.unwrap_or_else(|| self.write());
        self.known.insert((source, target), (first, self.changes));
        (count, first)
    }

    /// Whether what was found stands at `first`.
    fn is_at(&self, first: u32) -> bool {
        self.hops[first as usize..].starts_with(&self.found)
    }

    /// How a flow's packets are spread over the ways there and back.
    pub fn spread(&self, there: Route, flow: u64) -> [PathSelector; 2] {
        let hash = mix(self.seed ^ mix(flow));
        let is_random = self.routing == Routing::SprayRandom;
        let spread = |way: Route, stream: u64| {
            let turn = if is_random { mix(hash ^ stream) } else { hash % u64::from(way.paths) };
            PathSelector { way, is_random, turn }
        };
        [spread(there, 0), spread(there.back(), 1)]
    }

    /// The paths of a way, each as its links.
    pub fn links(&self, way: Route) -> impl Iterator<Item = &[LinkId]> {
        let (first, stride) = (way.first as usize, way.stride as usize);
        self.hops[first..first + way.paths as usize * stride]
            .chunks_exact(stride)
            .map(move |path| &path[..stride - 1])
    }

    /// Line rate of the host that a way starts at.
    pub fn line_rate(&self, graph: &Graph, way: Route) -> Rate {
        let first = self.links(way).next().map_or(0, |path| path[0]);
        graph.links[first as usize].rate
    }

    /// What a flow of `size` spends its time on over an empty network where it goes these ways.
    pub fn ideal_fct(
        &self,
        graph: &Graph,
        ways: impl Iterator<Item = Route>,
        format: &Format,
        size: Bytes,
    ) -> IdealFct {
        let of_link = |link: &LinkId| {
            let Link { rate, delay, .. } = graph.links[*link as usize];
            (rate, delay)
        };
        let paths: Vec<&[LinkId]> = ways.flat_map(|way| self.links(way)).collect();
        if let [path] = paths[..] {
            return ideal_fct(path.iter().map(of_link), format, size);
        }
        let of_path = |path: &&[LinkId]| {
            let hop = |link: &LinkId| {
                let (rate, delay) = of_link(link);
                (rate, delay, paths.iter().all(|other| other.contains(link)))
            };
            let hops: Vec<_> = path.iter().map(hop).collect();
            ideal_fct_spread(&hops, format, size)
        };
        paths.iter().map(of_path).min_by_key(IdealFct::total).unwrap_or_default()
    }

    /// How long a packet of `bytes` takes over an empty network.
    pub fn packet_time(&self, graph: &Graph, way: Route, bytes: Bytes) -> Duration {
        let path = self.links(way).next().unwrap_or_default();
        path.iter().fold(Duration::ZERO, |sum, link| {
            let link = &graph.links[*link as usize];
            sum + link.rate.transmit(bytes) + link.delay
        })
    }

    /// The way of a flow is no longer needed, nor the way back.
    pub fn release(&mut self, there: Route) {
        if self.routing == Routing::FlowHash {
            self.free.entry(there.stride).or_default().push(there.first);
        }
    }

    /// Puts the path that was found where there is room.
    fn place(&mut self) -> u32 {
        let stride = self.found.len() as u32 / 2;
        if let Some(first) = self.free.get_mut(&stride).and_then(Vec::pop) {
            self.hops[first as usize..][..self.found.len()].copy_from_slice(&self.found);
            self.room.tell(&mut self.news, first, self.found.len());
            return first;
        }
        self.write()
    }

    /// Writes what was found where nothing has been written; says where.
    fn write(&mut self) -> u32 {
        let first = self.room.take(self.found.len(), self.hops.len());
        copy(&mut self.hops, first, &self.found);
        self.room.tell(&mut self.news, first, self.found.len());
        first
    }

    /// What was written since this was last asked, and where.
    pub fn news(&mut self) -> Vec<(u32, Vec<LinkId>)> {
        let news = self.news.drain(..).map(|(first, len)| {
            let hops = &self.hops[first as usize..][..len as usize];
            (first, hops.to_vec())
        });
        news.collect()
    }

    /// Takes in what another part has written.
    pub fn hear(&mut self, news: &[(u32, Vec<LinkId>)]) {
        for (first, hops) in news {
            copy(&mut self.hops, *first, hops);
        }
    }

    /// Puts the same paths backwards behind those that were found.
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

//! Networks as graphs: nodes, cables and the equal-cost paths between hosts.

mod degraded;
mod delay_trace;
mod extent;
mod failures;
mod link_trace;
mod loss;
mod names;
mod paths;
mod rate_trace;

pub use self::degraded::DegradedLinks;
pub use self::delay_trace::DelayTrace;
pub use self::extent::Extent;
pub use self::failures::{Change, Failure, LinkState};
pub use self::link_trace::LinkTrace;
pub use self::loss::{Bursts, Loss, Victim};
pub(crate) use self::names::LinkNames;
pub use self::paths::Paths;
pub(crate) use self::paths::{Split, Table};
pub use self::rate_trace::RateTrace;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::units::{Bytes, Duration, Rate};
use crate::model::flow::HostId;
use crate::model::packet::Format;

/// Index of a node of a graph.
pub type NodeId = u32;

/// Index of a directed link; `link ^ 1` is the other direction of the same cable.
pub type LinkId = u32;

/// Host or switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name, unique in the graph.
    pub name: String,
    /// True for a host, where flows start and end.
    pub is_host: bool,
}

/// One direction of a cable.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Node that transmits.
    pub from: NodeId,
    /// Node that receives.
    pub to: NodeId,
    /// Line rate; the largest, if it changes.
    pub rate: Rate,
    /// Rate as a function of time, if it changes.
    pub trace: Option<Arc<RateTrace>>,
    /// Propagation delay; the shortest, if it changes.
    pub delay: Duration,
    /// Delay as a function of time, if it changes.
    pub delays: Option<Arc<DelayTrace>>,
    /// Loss model.
    pub loss: Loss,
}

impl Link {
    /// Longest delay.
    pub fn longest_delay(&self) -> Duration {
        self.delays.as_ref().map_or(self.delay, |trace| trace.longest())
    }
}

/// Reference of loads: the rate of a load of 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadReference {
    /// Rate of a load of 1.
    pub rate: Rate,
    /// Description of the links in `rate`.
    pub what: String,
}

/// Network: nodes, links and the reference of loads.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// All nodes.
    pub nodes: Vec<Node>,
    /// All links; the two directions of a cable are adjacent.
    pub links: Vec<Link>,
    /// Numbers, from 1, of cables that join the same two nodes, by their even link.
    pub parallel: BTreeMap<LinkId, u32>,
    /// Nodes of the hosts by [`HostId`].
    pub hosts: Vec<NodeId>,
    /// Number of hosts that only send, the first ones; the others only receive. `None` if all hosts do both.
    pub senders: Option<HostId>,
    /// Reference of loads.
    pub load: LoadReference,
    /// Rates that links had before their hosts' tolerance lowered them.
    pub nominal_rates: BTreeMap<LinkId, Rate>,
    /// True if flows start and end on routers: their links then have switches' queues, and there is no NIC
    /// wait.
    pub hosts_are_routers: bool,
}

impl Graph {
    /// Returns a network without nodes.
    pub fn new(load: LoadReference) -> Self {
        Self {
            nodes: Vec::new(),
            links: Vec::new(),
            parallel: BTreeMap::new(),
            hosts: Vec::new(),
            senders: None,
            load,
            nominal_rates: BTreeMap::new(),
            hosts_are_routers: false,
        }
    }

    /// Adds a host.
    pub fn add_host(&mut self, name: impl Into<String>) -> NodeId {
        let node = self.add(name.into(), true);
        self.hosts.push(node);
        node
    }

    /// Adds a switch.
    pub fn add_switch(&mut self, name: impl Into<String>) -> NodeId {
        self.add(name.into(), false)
    }

    fn add(&mut self, name: String, is_host: bool) -> NodeId {
        self.nodes.push(Node { name, is_host });
        self.nodes.len() as NodeId - 1
    }

    /// Connects two nodes by a cable with equal directions. Returns the link from `a` to `b`.
    pub fn connect(&mut self, a: NodeId, b: NodeId, rate: Rate, delay: Duration) -> LinkId {
        let link =
            |from, to| Link { from, to, rate, trace: None, delay, delays: None, loss: Loss::None };
        self.links.extend([link(a, b), link(b, a)]);
        self.links.len() as LinkId - 2
    }

    /// Sets the rate of a link as a function of time. Loads refer to its mean.
    pub(crate) fn follow(&mut self, link: LinkId, trace: RateTrace) {
        let what = format!("{}, on average over its trace", self.link_name(link));
        self.load = LoadReference { rate: trace.mean(), what };
        let link = &mut self.links[link as usize];
        link.rate = trace.largest();
        link.trace = Some(Arc::new(trace));
    }

    /// Sets the delay of a cable as a function of time, for both directions.
    pub(crate) fn delay_by(&mut self, link: LinkId, trace: DelayTrace) {
        let trace = Arc::new(trace);
        for link in [link, link ^ 1] {
            let link = &mut self.links[link as usize];
            link.delay = trace.least();
            link.delays = Some(Arc::clone(&trace));
        }
    }

    /// Numbers the cables that join the same two nodes, in order of links.
    pub(crate) fn number_parallel_cables(&mut self) {
        let mut cables: BTreeMap<_, Vec<LinkId>> = BTreeMap::new();
        for (id, link) in (0..).zip(&self.links).step_by(2) {
            cables.entry((link.from.min(link.to), link.from.max(link.to))).or_default().push(id);
        }
        cables.retain(|_, ids| ids.len() > 1);
        self.parallel = cables.into_values().flat_map(|ids| ids.into_iter().zip(1..)).collect();
    }

    /// Name of a link: `from->to`, with the number of its cable if several cables join the two nodes.
    pub fn link_name(&self, link: LinkId) -> String {
        let name = self.link_ends(link).join("->");
        match self.parallel.get(&(link & !1)) {
            Some(cable) => format!("{name} (cable {cable})"),
            None => name,
        }
    }

    /// Names of the nodes that a link joins.
    pub fn link_ends(&self, link: LinkId) -> [&str; 2] {
        let Link { from, to, .. } = self.links[link as usize];
        [from, to].map(|node| &*self.nodes[node as usize].name)
    }

    /// Names of all links.
    pub fn link_names(&self) -> Vec<String> {
        (0..).zip(&self.links).map(|(id, _)| self.link_name(id)).collect()
    }

    /// Name of a host.
    pub fn host_name(&self, host: HostId) -> &str {
        &self.nodes[self.hosts[host as usize] as usize].name
    }

    /// Number of hosts.
    pub fn host_count(&self) -> HostId {
        self.hosts.len() as HostId
    }

    /// Rate of a link without the tolerance of its host.
    pub fn nominal_rate(&self, link: LinkId) -> Rate {
        self.nominal_rates.get(&link).copied().unwrap_or(self.links[link as usize].rate)
    }

    /// Returns true if the links of two paths have the same rates and delays, as in symmetric networks.
    pub fn are_alike(&self, path: &[LinkId], other: &[LinkId]) -> bool {
        let of_link = |link: &LinkId| {
            let Link { rate, delay, .. } = self.links[*link as usize];
            (rate, delay)
        };
        path.iter().map(of_link).eq(other.iter().map(of_link))
    }

    /// Returns the time of a packet of `bytes` over a path of the empty network.
    pub fn packet_time(&self, path: &[LinkId], format: &Format, bytes: Bytes) -> Duration {
        path.iter().fold(Duration::ZERO, |sum, link| {
            let Link { rate, delay, .. } = self.links[*link as usize];
            sum + format.transmission_time(rate, bytes) + delay
        })
    }

    /// Rate of the opposite link of the cable by the clock of the node that transmits on `link`, to which
    /// a host's tolerance applies: the rate at which that node permits others to send to it.
    pub fn opposite_rate(&self, link: LinkId) -> Rate {
        let [nominal, opposite] =
            [link, link ^ 1].map(|link| u128::from(self.nominal_rate(link).0));
        let own = u128::from(self.links[link as usize].rate.0);
        Rate((opposite * own / nominal) as u64)
    }

    /// Returns true for a link from a host's NIC.
    pub fn is_from_host(&self, link: &Link) -> bool {
        self.nodes[link.from as usize].is_host && !self.hosts_are_routers
    }

    /// Returns true if the link leads to a host, which forwards nothing.
    pub fn is_to_host(&self, link: &Link) -> bool {
        self.nodes[link.to as usize].is_host && !self.hosts_are_routers
    }

    /// Sum of the rates of all links from hosts.
    pub fn access_rate(&self) -> Rate {
        let from_hosts = self.links.iter().filter(|link| self.nodes[link.from as usize].is_host);
        Rate(from_hosts.fold(0, |sum, link| sum.saturating_add(link.rate.0)))
    }

    /// Returns the same network with the access links of all hosts as its reference of loads.
    #[must_use]
    pub(crate) fn loaded_by_hosts(mut self) -> Self {
        self.load.rate = self.access_rate();
        self.load.what = format!("the access links of all {} hosts together", self.hosts.len());
        self
    }
}

impl LoadReference {
    /// Placeholder until the access links are known.
    pub(crate) fn pending() -> Self {
        Self { rate: Rate::default(), what: String::new() }
    }
}

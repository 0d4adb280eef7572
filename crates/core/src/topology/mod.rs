//! Networks as graphs: nodes, cables and the equal-cost paths between hosts.

use crate::flow::HostId;
use crate::parameters::Problem;
use crate::units::{Duration, Rate};

/// Index of a node of a graph.
pub type NodeId = u32;

/// Index of a directed link; `link ^ 1` is the other direction of the same cable.
pub type LinkId = u32;

/// A host or a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name, unique in the graph.
    pub name: String,
    /// Whether flows begin and end here.
    pub is_host: bool,
}

/// One direction of a cable.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Node that transmits.
    pub from: NodeId,
    /// Node that receives.
    pub to: NodeId,
    /// Line rate.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// Probability that a packet is lost on the way.
    pub loss: f64,
}

/// What a load of 1 means on a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadReference {
    /// The rate that a load of 1 offers.
    pub rate: Rate,
    /// Which links that is, for people.
    pub what: String,
}

/// A network: nodes, links, and what its load refers to.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// All nodes.
    pub nodes: Vec<Node>,
    /// All links, the two directions of a cable side by side.
    pub links: Vec<Link>,
    /// The hosts, by [`HostId`].
    pub hosts: Vec<NodeId>,
    /// What a load of 1 means here.
    pub load: LoadReference,
}

/// A kind of network.
pub trait Topology {
    /// The network.
    fn graph(&self) -> Result<Graph, Problem>;
}

impl Graph {
    /// A network without nodes yet; a load of 1 offers `load`.
    pub fn new(load: LoadReference) -> Self {
        Self { nodes: Vec::new(), links: Vec::new(), hosts: Vec::new(), load }
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

    /// Joins two nodes by a cable that is the same in both directions; returns the link from `a` to `b`.
    pub fn connect(&mut self, a: NodeId, b: NodeId, rate: Rate, delay: Duration) -> LinkId {
        let link = |from, to| Link { from, to, rate, delay, loss: 0.0 };
        self.links.extend([link(a, b), link(b, a)]);
        self.links.len() as LinkId - 2
    }

    /// A link's name: `from->to`.
    pub fn link_name(&self, link: LinkId) -> String {
        let Link { from, to, .. } = self.links[link as usize];
        format!("{}->{}", self.nodes[from as usize].name, self.nodes[to as usize].name)
    }
}

/// The shortest paths (in hops) of a graph, found once a target and then kept.
#[derive(Debug)]
pub struct Paths {
    // TODO(helper)
}

impl Paths {
    /// Prepares the paths of `graph`.
    pub fn new(graph: &Graph) -> Self {
        let _ = graph;
        Self {}
    }

    /// How many shortest paths lead from `source` to `target`: zero if none does.
    pub fn count(&mut self, source: HostId, target: HostId) -> u64 {
        let _ = (source, target);
        todo!()
    }

    /// Appends the links of shortest path number `choice` (below [`count`](Self::count)) to `links`.
    pub fn append(&mut self, source: HostId, target: HostId, choice: u64, links: &mut Vec<LinkId>) {
        let _ = (source, target, choice, links);
        todo!()
    }
}

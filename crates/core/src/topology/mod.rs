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

/// The shortest paths (in hops) of a graph, found once a target and then kept. Hosts do not forward.
#[derive(Debug)]
pub struct Paths {
    hosts: Vec<NodeId>,
    is_host: Vec<bool>,
    /// Links that leave a node, by node, with where they lead.
    leaving: Vec<Vec<(LinkId, NodeId)>>,
    /// Links that reach a node come from these, by node.
    before: Vec<Vec<NodeId>>,
    /// By target.
    towards: Vec<Option<Towards>>,
}

/// The way to one target, seen from every node.
#[derive(Debug)]
struct Towards {
    hops: Vec<u16>,
    /// How many shortest paths there are.
    count: Vec<u64>,
}

const UNREACHED: u16 = u16::MAX;

impl Paths {
    /// Prepares the paths of `graph`.
    pub fn new(graph: &Graph) -> Self {
        let mut leaving = vec![Vec::new(); graph.nodes.len()];
        let mut before = vec![Vec::new(); graph.nodes.len()];
        for (link, Link { from, to, .. }) in (0..).zip(&graph.links) {
            leaving[*from as usize].push((link, *to));
            before[*to as usize].push(*from);
        }
        Self {
            hosts: graph.hosts.clone(),
            is_host: graph.nodes.iter().map(|node| node.is_host).collect(),
            leaving,
            before,
            towards: graph.hosts.iter().map(|_| None).collect(),
        }
    }

    /// How many shortest paths lead from `source` to `target`: zero if none does.
    pub fn count(&mut self, source: HostId, target: HostId) -> u64 {
        let node = self.hosts[source as usize] as usize;
        self.find(target).count[node]
    }

    /// Appends the links of shortest path number `choice` (below [`count`](Self::count)) to `links`.
    pub fn append(&mut self, source: HostId, target: HostId, choice: u64, links: &mut Vec<LinkId>) {
        self.find(target);
        let (mut at, end) = (self.hosts[source as usize], self.hosts[target as usize]);
        let mut choice = choice;
        let Some(towards) = &self.towards[target as usize] else { return };
        while at != end {
            let left = towards.hops[at as usize];
            let mut onward = self.leaving[at as usize]
                .iter()
                .filter(|(_, next)| towards.hops[*next as usize] < left);
            let Some((link, next)) = onward.find(|(_, next)| {
                let paths = towards.count[*next as usize];
                let here = choice < paths;
                if !here {
                    choice -= paths;
                }
                here
            }) else {
                return;
            };
            links.push(*link);
            at = *next;
        }
    }

    /// A breadth-first search backwards from the target.
    fn find(&mut self, target: HostId) -> &Towards {
        let Self { hosts, is_host, leaving, before, towards } = self;
        towards[target as usize].get_or_insert_with(|| {
            let end = hosts[target as usize];
            let mut hops = vec![UNREACHED; leaving.len()];
            let mut count = vec![0_u64; leaving.len()];
            (hops[end as usize], count[end as usize]) = (0, 1);
            let mut ring = vec![end];
            let mut reached = Vec::new();
            while !ring.is_empty() {
                for node in ring.iter().filter(|node| **node == end || !is_host[**node as usize]) {
                    let here = hops[*node as usize];
                    for previous in &before[*node as usize] {
                        let at = *previous as usize;
                        if hops[at] == UNREACHED {
                            hops[at] = here + 1;
                            reached.push(*previous);
                        }
                        if hops[at] == here + 1 {
                            count[at] = count[at].saturating_add(count[*node as usize]);
                        }
                    }
                }
                ring = std::mem::take(&mut reached);
            }
            Towards { hops, count }
        })
    }
}

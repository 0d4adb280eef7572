//! Forwarding: over the path that the host has chosen, or over next hops that switches choose.

use serde_json::Value;

use super::Network;
use super::overlay::OverlayTable;
use super::routes::tree::Branches;
use super::routes::{Routes, Routing};
use crate::base::random::Random;
use crate::base::schema::json_schema::{Definitions, either};
use crate::base::schema::{Parameter, Problem, did_you_mean, first_sentence, name_here, wrong};
use crate::base::units::Time;
use crate::load_balancing::policies::Config;
use crate::load_balancing::{LoadBalancer, NextHops, Overlay, SwitchInfo};
use crate::model::graph::{Graph, LinkId, Split};
use crate::model::packet::Packet;

/// Choice among paths of equal cost.
#[derive(Clone, Debug, PartialEq)]
pub enum Forwarding {
    /// The host chooses the path of a packet.
    FromHost(Routing),
    /// Every switch chooses the next hop of a packet.
    PerHop(Config),
}

impl Forwarding {
    /// Returns true if all packets of a flow take one path, and their ACKs the reverse path.
    pub fn takes_one_path(&self) -> bool {
        matches!(self, Self::FromHost(routing) if routing.takes_one_path())
    }

    /// Returns true if hosts choose paths by entropy values.
    pub fn uses_entropy(&self) -> bool {
        *self == Self::FromHost(Routing::Entropy)
    }

    /// Returns true if packets of a flow overtake each other all the time.
    pub fn sprays(&self) -> bool {
        match self {
            Self::FromHost(routing) => !routing.takes_one_path(),
            Self::PerHop(policy) => policy.splits_bursts(),
        }
    }

    /// Division of the traffic of many flows among shortest paths. That of load balancers depends on the
    /// traffic; the division by next hops stands for it.
    pub(crate) fn split(&self) -> Split {
        match self {
            Self::FromHost(routing) => routing.split(),
            Self::PerHop(_) => Split::NextHops,
        }
    }

    /// Returns the routes of flows for an ideal, in which each flow takes one path: by ECMP, if packets of a
    /// flow take several or switches choose.
    pub(crate) fn ideal_routes(&self, graph: &Graph, seed: u64) -> Routes {
        let routing = match self {
            Self::FromHost(routing) if routing.takes_one_path() => *routing,
            _ => Routing::Ecmp,
        };
        Routes::new(graph, routing, seed, (0, 1))
    }

    /// Returns the routes of flows for partition `part` of `parts`.
    pub(crate) fn routes(&self, graph: &Graph, seed: u64, part: (u32, u32)) -> Routes {
        match self {
            Self::FromHost(routing) => Routes::new(graph, *routing, seed, part),
            Self::PerHop(policy) => {
                let branches =
                    if policy.uses_overlay() { Branches::All } else { Branches::Several };
                Routes::with_branches(graph, branches, seed, part)
            }
        }
    }

    /// Returns the load balancers of all switches, if they choose next hops.
    pub(crate) fn load_balancers(
        &self,
        graph: &Graph,
        seed: u64,
    ) -> Result<Option<Box<LoadBalancers>>, Problem> {
        let Self::PerHop(policy) = self else { return Ok(None) };
        policy
            .check(graph)
            .map_err(|message| Problem::new("routing", format!("`{}` {message}", policy.name())))?;
        let mut links = vec![Vec::new(); graph.nodes.len()];
        for (id, link) in (0..).zip(&graph.links) {
            links[link.from as usize].push(id);
        }
        let mut by_switch = Vec::new();
        let mut index = vec![0; graph.nodes.len()];
        for (node, links) in
            (0..).zip(&links).filter(|(node, _)| !graph.nodes[*node as usize].is_host)
        {
            index[node as usize] = by_switch.len() as u32;
            let random = Random::new(seed, &format!("load_balancer/{node}"));
            by_switch.push(policy.build(&SwitchInfo { graph, node, links }, random));
        }
        let ends = graph.links.iter().map(|link| index[link.to as usize]).collect();
        let overlays = policy.uses_overlay().then(|| OverlayTable::new(graph));
        Ok(Some(Box::new(LoadBalancers { by_switch, ends, overlays, links: Vec::new() })))
    }
}

impl Parameter for Forwarding {
    fn allowed() -> String {
        let policies = Config::NAMES.iter().map(|name| format!(", \"{name}\""));
        Routing::allowed() + &policies.collect::<String>()
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        let kind = value.as_str().or(value["kind"].as_str()).ok_or_else(|| wrong::<Self>(value))?;
        if Config::NAMES.contains(&kind) {
            return Config::read(value).map(Self::PerHop);
        }
        if value.is_string() && Routing::WORDS.contains(&kind) {
            return Routing::read(value).map(Self::FromHost);
        }
        let names = Routing::WORDS.iter().chain(Config::NAMES).copied();
        let hint = name_here(kind, Config::KNOWN_AS).unwrap_or_else(|| did_you_mean(kind, names));
        let mut problem = wrong::<Self>(value);
        problem.message += &hint;
        Err(problem)
    }
    fn show(&self) -> Value {
        match self {
            Self::FromHost(routing) => routing.show(),
            Self::PerHop(policy) => policy.show(),
        }
    }
    fn schema(_default: Option<&Self>, definitions: &mut Definitions) -> Value {
        let words = Routing::schema(None, definitions);
        either([words, Config::schema(None, definitions)])
    }
    fn meanings() -> Vec<(&'static str, String)> {
        let policies = Config::catalogue().into_iter();
        let policies = policies.map(|it| (it.name, first_sentence(&it.about).to_owned()));
        Routing::meanings().into_iter().chain(policies).collect()
    }
}

/// Load balancers of all switches.
pub struct LoadBalancers {
    by_switch: Vec<Box<dyn LoadBalancer>>,
    /// Index of the receiving switch by link.
    ends: Box<[u32]>,
    /// Overlay headers, if the load balancers use them.
    pub(super) overlays: Option<OverlayTable>,
    /// Next hops of the packet that is being forwarded.
    links: Vec<LinkId>,
}

impl Network {
    /// Lets the switch at the end of `link` choose the next hop of a packet, whose position has the entry
    /// `entry`. Returns the link to it. Not inlined, because most packets take paths that hosts choose.
    #[inline(never)]
    pub(super) fn choose_next_hop(
        &mut self,
        packet: &mut Packet,
        link: LinkId,
        entry: u32,
        now: Time,
    ) -> LinkId {
        let Self { routes, ports, load_balancers, from_host, .. } = self;
        let branch = routes.branch(packet.next_hop, entry);
        let mut choice = 0;
        if let Some(LoadBalancers { by_switch, ends, overlays, links }) =
            load_balancers.as_deref_mut()
        {
            links.clear();
            links.extend(routes.next_hops(&branch));
            if links.len() > 1 || overlays.is_some() {
                let (switch, last) = (ends[link as usize], routes.last_link(&branch));
                let (is_first, is_last) = (from_host[link as usize], links[0] == last);
                let overlay = match overlays {
                    Some(_) if is_first && !is_last => {
                        let target = ends[last as usize ^ 1];
                        Some(Overlay { source: switch, target, ..Overlay::default() })
                    }
                    Some(overlays) => overlays.detach(packet, link),
                    None => None,
                };
                let backlog = &mut |link: LinkId| ports[link as usize].backlog(now).bytes;
                let mut next_hops = NextHops { now, links, is_first, is_last, overlay, backlog };
                choice = by_switch[switch as usize].choose(packet, &mut next_hops);
                if let (Some(overlays), Some(overlay), false) =
                    (overlays, next_hops.overlay, is_last)
                {
                    overlays.attach(packet, overlay);
                }
            }
        }
        packet.next_hop = routes.position(&branch, choice);
        routes.link(packet.next_hop)
    }
}

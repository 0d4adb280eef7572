//! Mean traffic that a workload offers between hosts, and what it puts on each link.

use std::collections::BTreeMap;
use std::ops::Range;

use super::by_distance::TargetsByDistance;
use super::host_pairs::{HostPairs, HostRoles};
use crate::base::schema::Problem;
use crate::base::units::Time;
use crate::model::flow::HostId;
use crate::model::graph::{Graph, LinkId, NodeId, Paths, Split, Table};

/// Mean traffic of a part of a workload.
#[derive(Clone, Debug)]
pub struct Demand {
    /// Field that sets the rate.
    pub(crate) field: String,
    /// Rate on the link, headers included, in bits per second.
    pub(crate) bps: f64,
    pub(crate) pairs: DemandPairs,
    /// Start of the arrivals.
    pub(crate) start: Time,
    /// End of the arrivals, unless their number ends them.
    pub(crate) end: Time,
    /// True if links may be offered more than their rates.
    pub(crate) may_exceed: bool,
}

/// Pairs of hosts that share a demand in equal parts.
#[derive(Clone, Debug)]
pub(crate) enum DemandPairs {
    /// Every source with every target other than itself.
    All(HostRoles),
    /// These sources and targets.
    Listed(Vec<(HostId, HostId)>),
}

impl DemandPairs {
    /// Returns the pairs of a rule, in groups with their shares of the traffic; none for a rule without a
    /// closed form.
    pub(crate) fn of_rule(
        rule: HostPairs,
        shares: Option<&[f64]>,
        graph: &Graph,
    ) -> Result<Vec<(f64, Self)>, Problem> {
        let roles = HostRoles::from_graph(graph)?;
        let pairs = match rule {
            HostPairs::Topology => Self::All(roles),
            HostPairs::Any => Self::All(roles.all_hosts()),
            HostPairs::Opposite => {
                let pair = |source| (source, roles.opposite(source));
                Self::Listed(roles.sources.clone().map(pair).collect())
            }
            HostPairs::Longest => return Ok(Vec::new()),
            HostPairs::ByDistance => {
                let mut targets = TargetsByDistance::new(shares.unwrap_or_default(), graph)?;
                let groups = targets.pairs().into_iter();
                return Ok(groups.map(|(share, pairs)| (share, Self::Listed(pairs))).collect());
            }
        };
        Ok(vec![(1.0, pairs)])
    }
}

impl Demand {
    /// Returns true if flows arrive at this time.
    fn is_active(&self, time: Time) -> bool {
        self.start <= time && time < self.end
    }
}

/// Mean rate that demands offer to each link, in bits per second, at the time at which they offer most to
/// some link in proportion to its rate.
pub(crate) fn highest_loads(demands: &[Demand], graph: &Graph, split: Split) -> Vec<f64> {
    let mut fabric = Fabric::new(graph, split);
    let of_each: Vec<Vec<f64>> = demands.iter().map(|demand| fabric.loads(demand)).collect();
    let at = |time: Time| {
        let mut loads = vec![0.0; graph.links.len()];
        let all = demands.iter().zip(&of_each).filter(|(demand, _)| demand.is_active(time));
        for (_, more) in all {
            loads.iter_mut().zip(more).for_each(|(sum, bps)| *sum += bps);
        }
        loads
    };
    let most = |loads: &[f64]| {
        let shares = loads.iter().enumerate().map(|(id, bps)| bps / mean_rate(graph, id as LinkId));
        shares.fold(0.0, f64::max)
    };
    let starts = demands.iter().map(|demand| at(demand.start));
    let highest = starts.max_by(|one, other| most(one).total_cmp(&most(other)));
    highest.unwrap_or_else(|| vec![0.0; graph.links.len()])
}

/// Mean rate of a link in bits per second.
pub(crate) fn mean_rate(graph: &Graph, link: LinkId) -> f64 {
    let link = &graph.links[link as usize];
    link.trace.as_ref().map_or(link.rate, |trace| trace.mean()).bps()
}

/// Links between the switches of a network. Hosts with one link to a switch are counted there.
struct Fabric<'a> {
    graph: &'a Graph,
    split: Split,
    paths: Paths,
    /// By host: its link to a switch, if that is its only link.
    access: Vec<Option<LinkId>>,
    /// Traffic of every node while it is spread.
    amounts: Vec<f64>,
}

impl<'a> Fabric<'a> {
    fn new(graph: &'a Graph, split: Split) -> Self {
        let mut first: Vec<Option<LinkId>> = vec![None; graph.nodes.len()];
        let mut degree = vec![0; graph.nodes.len()];
        for (id, link) in (0..).zip(&graph.links) {
            first[link.from as usize].get_or_insert(id);
            degree[link.from as usize] += 1;
        }
        let access = |&node: &NodeId| {
            let link = first[node as usize].filter(|_| degree[node as usize] == 1)?;
            let leads_to_host = graph.nodes[graph.links[link as usize].to as usize].is_host;
            (!leads_to_host).then_some(link)
        };
        let access: Vec<Option<LinkId>> = graph.hosts.iter().map(access).collect();
        let mut is_access = vec![false; graph.links.len()];
        for link in access.iter().flatten() {
            is_access[*link as usize] = true;
            is_access[(*link ^ 1) as usize] = true;
        }
        let paths = Paths::over(graph, |link| !is_access[link as usize]);
        Self { graph, split, paths, access, amounts: vec![0.0; graph.nodes.len()] }
    }

    /// Node at which the traffic of a host enters and leaves.
    fn node(&self, host: HostId) -> NodeId {
        let link = self.access[host as usize];
        link.map_or(self.graph.hosts[host as usize], |link| self.graph.links[link as usize].to)
    }

    /// Mean rate that a demand offers to each link.
    fn loads(&mut self, demand: &Demand) -> Vec<f64> {
        let mut loads = vec![0.0; self.graph.links.len()];
        match &demand.pairs {
            DemandPairs::All(roles) => self.add_all(roles, demand.bps, &mut loads),
            DemandPairs::Listed(pairs) => self.add_listed(pairs, demand.bps, &mut loads),
        }
        loads
    }

    fn add_all(&mut self, roles: &HostRoles, bps: f64, loads: &mut [f64]) {
        let (sources, targets) = (&roles.sources, &roles.targets);
        let both = sources.clone().filter(|host| targets.contains(host)).count();
        let pair = bps / (sources.len() * targets.len() - both) as f64;
        for source in sources.clone() {
            let others = targets.len() - usize::from(targets.contains(&source));
            self.add_access(source, false, pair * others as f64, loads);
        }
        for target in targets.clone() {
            let others = sources.len() - usize::from(sources.contains(&target));
            self.add_access(target, true, pair * others as f64, loads);
        }
        let [from, to] = [sources, targets].map(|hosts| self.count_by_twins(hosts));
        for (key, targets) in &to {
            let table = self.paths.search(*key);
            let receivers: f64 = targets.iter().map(|(_, receivers)| receivers).sum();
            let shares: Vec<_> =
                targets.iter().map(|(target, number)| (*target, number / receivers)).collect();
            let all = from.iter().filter(|(other, _)| *other != key).flat_map(|(_, nodes)| nodes);
            let all: Vec<_> =
                all.map(|(node, senders)| (*node, pair * senders * receivers)).collect();
            self.spread(&table, [&all, &shares], loads);
            // A switch sends nothing to itself, so twins receive from different twins.
            let beside = from.get(key).map_or(&[][..], Vec::as_slice);
            for (target, receivers) in targets {
                let others = beside.iter().filter(|(node, _)| node != target);
                let others: Vec<_> =
                    others.map(|(node, senders)| (*node, pair * senders * receivers)).collect();
                self.spread(&table, [&others, &[(*target, 1.0)]], loads);
            }
        }
    }

    fn spread(&mut self, table: &Table, ends: [&[(NodeId, f64)]; 2], loads: &mut [f64]) {
        self.paths.spread(table, ends, self.split, &mut self.amounts, loads);
    }

    /// Nodes at which the traffic of hosts enters and leaves, each with their number, by the node that has
    /// the table of paths to them.
    fn count_by_twins(&self, hosts: &Range<HostId>) -> BTreeMap<NodeId, Vec<(NodeId, f64)>> {
        let mut counts = BTreeMap::new();
        for host in hosts.clone() {
            *counts.entry(self.node(host)).or_insert(0.0) += 1.0;
        }
        let mut twins: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (node, count) in counts {
            twins.entry(self.paths.key(node)).or_default().push((node, count));
        }
        twins
    }

    fn add_listed(&mut self, pairs: &[(HostId, HostId)], bps: f64, loads: &mut [f64]) {
        let pair = bps / pairs.len() as f64;
        let mut between: Vec<(NodeId, NodeId)> = Vec::new();
        for &(source, target) in pairs {
            self.add_access(source, false, pair, loads);
            self.add_access(target, true, pair, loads);
            between.push((self.node(target), self.node(source)));
        }
        between.retain(|(target, source)| target != source);
        between.sort_unstable();
        let key = |(target, _): &(NodeId, NodeId)| self.paths.key(*target);
        between.sort_by_key(key);
        let by_table: Vec<_> = between.chunk_by(|one, other| key(one) == key(other)).collect();
        for pairs in by_table {
            let table = self.paths.search(pairs[0].0);
            for pairs in pairs.chunk_by(|(one, _), (other, _)| one == other) {
                let sources: Vec<_> = pairs.iter().map(|(_, source)| (*source, pair)).collect();
                self.spread(&table, [&sources, &[(pairs[0].0, 1.0)]], loads);
            }
        }
    }

    /// Adds traffic to the access link of a host, if it has one: of data that it receives or sends.
    fn add_access(&self, host: HostId, receives: bool, bps: f64, loads: &mut [f64]) {
        if let Some(link) = self.access[host as usize] {
            loads[(link ^ LinkId::from(receives)) as usize] += bps;
        }
    }
}

#[cfg(test)]
mod tests;

//! Selection of the source and target of each flow.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::base::random::Random;
use crate::base::schema::Problem;
use crate::model::flow::HostId;
use crate::model::graph::{Graph, Paths};
use crate::traffic::by_distance::TargetsByDistance;

crate::choices! {
    /// Rule that selects the source and target of a flow.
    pub enum HostPairs {
        /// A random sender and a random receiver if the topology distinguishes senders from
        /// receivers, else any two hosts.
        Topology = "topology",
        /// Any two hosts, whatever their roles in the topology.
        Any = "any",
        /// A random sender i and the host opposite it: receiver i, or host i + n/2 (mod n) if all n
        /// hosts of the topology send and receive.
        Opposite = "opposite",
        /// A random sender and a random one of the receivers with the largest hop count from it, so
        /// that flows cross the whole network.
        Longest = "longest",
        /// A random host and another at a distance (hop count) that is drawn with the probabilities
        /// in `shares`. The traffic of a part of a network has so the locality of the whole.
        ByDistance = "by_distance",
    }
}

impl HostPairs {
    /// Returns true if hosts send and receive whatever their roles in the topology.
    pub(crate) fn ignores_roles(self) -> bool {
        matches!(self, Self::Any | Self::ByDistance)
    }
}

/// Hosts that send and hosts that receive: two disjoint ranges, or all hosts in both.
#[derive(Clone, Debug)]
pub(crate) struct HostRoles {
    pub(crate) sources: Range<HostId>,
    pub(crate) targets: Range<HostId>,
}

impl HostRoles {
    /// Returns the roles that the topology defines.
    pub(crate) fn from_graph(graph: &Graph) -> Result<Self, Problem> {
        let hosts = graph.host_count();
        match graph.senders {
            None if hosts >= 2 => Ok(Self { sources: 0..hosts, targets: 0..hosts }),
            Some(senders) if (1..hosts).contains(&senders) => {
                Ok(Self { sources: 0..senders, targets: senders..hosts })
            }
            None | Some(_) => Err(Problem::new("", "needs a topology with two hosts or more")),
        }
    }

    /// Gives all hosts both roles.
    pub(crate) fn all_hosts(self) -> Self {
        let all = self.sources.start..self.targets.end;
        Self { sources: all.clone(), targets: all }
    }

    fn are_disjoint(&self) -> bool {
        self.sources != self.targets
    }

    /// Returns the host opposite a source.
    pub(crate) fn opposite(&self, source: HostId) -> HostId {
        let targets = self.targets.len() as HostId;
        if self.are_disjoint() {
            self.targets.start + source % targets
        } else {
            (source + targets / 2) % targets
        }
    }

    /// Returns a random target other than `source`.
    fn sample_target(&self, source: HostId, random: &mut Random) -> HostId {
        if self.are_disjoint() {
            return pick(&self.targets, random);
        }
        let others = self.targets.start..self.targets.end - 1;
        let target = pick(&others, random);
        if target >= source { target + 1 } else { target }
    }
}

fn pick(range: &Range<HostId>, random: &mut Random) -> HostId {
    range.start + random.below(range.len() as u64) as HostId
}

/// Samples the source and target of flows.
#[derive(Clone, Debug)]
pub(crate) struct PairSampler {
    pub(crate) roles: HostRoles,
    rule: TargetRule,
    /// Limited target sets, or none if a source may send to any target.
    peers: Option<PeerSets>,
}

/// A limited set of targets for each source.
#[derive(Clone, Debug)]
struct PeerSets {
    number: u32,
    /// Target sets of the sources that have sent so far.
    by_source: BTreeMap<HostId, Vec<HostId>>,
    random: Random,
}

/// Rule that selects the target of a source.
#[derive(Clone, Debug)]
enum TargetRule {
    Any,
    Opposite,
    /// The farthest targets of each source, computed when first needed.
    Longest(Box<Paths>, BTreeMap<HostId, Vec<HostId>>),
    ByDistance(TargetsByDistance),
}

impl PairSampler {
    /// Returns the largest number of pairs of a source and one of at most `peers` targets.
    pub(crate) fn max_pairs(&self, peers: Option<u32>) -> f64 {
        let targets = match self.rule {
            TargetRule::Opposite => 1.0,
            TargetRule::Any | TargetRule::Longest(..) | TargetRule::ByDistance(_) => {
                self.roles.targets.len() as f64
            }
        };
        self.roles.sources.len() as f64 * targets.min(peers.map_or(f64::INFINITY, f64::from))
    }

    /// Returns the largest number of hosts that may be targets.
    pub(crate) fn max_targets(&self) -> u32 {
        let HostRoles { sources, targets } = &self.roles;
        let number = match self.rule {
            TargetRule::Opposite => targets.len().min(sources.len()),
            TargetRule::Any | TargetRule::Longest(..) | TargetRule::ByDistance(_) => targets.len(),
        };
        number as u32
    }

    /// Returns the sampler of a rule. `shares` go with `by_distance`.
    pub(crate) fn new(
        pairs: HostPairs,
        shares: Option<&[f64]>,
        graph: &Graph,
    ) -> Result<Self, Problem> {
        let roles = HostRoles::from_graph(graph)?;
        if shares.is_some() != (pairs == HostPairs::ByDistance) {
            let message = "goes with `pairs = \"by_distance\"`, which needs it";
            return Err(Problem::new("shares", message));
        }
        let (roles, rule) = match pairs {
            HostPairs::Topology => (roles, TargetRule::Any),
            HostPairs::Any => (roles.all_hosts(), TargetRule::Any),
            HostPairs::Opposite => (roles, TargetRule::Opposite),
            HostPairs::Longest => {
                (roles, TargetRule::Longest(Box::new(Paths::new(graph)), BTreeMap::new()))
            }
            HostPairs::ByDistance => {
                let shares = shares.unwrap_or_default();
                (roles.all_hosts(), TargetRule::ByDistance(TargetsByDistance::new(shares, graph)?))
            }
        };
        Ok(Self { roles, rule, peers: None })
    }

    /// Limits every source to `number` targets, drawn from `random`; fewer if the rule allows
    /// fewer.
    pub(crate) fn with_peers(self, number: Option<u32>, random: Random) -> Self {
        let peers = number.map(|number| PeerSets { number, by_source: BTreeMap::new(), random });
        Self { peers, ..self }
    }

    /// Samples a source and its target.
    pub(crate) fn sample(&mut self, random: &mut Random) -> (HostId, HostId) {
        let source = pick(&self.roles.sources, random);
        (source, self.sample_target(source, random))
    }

    /// Samples the target of a source. Draws a random number even if the target is fixed, so that
    /// later draws do not depend on the rule.
    pub(crate) fn sample_target(&mut self, source: HostId, random: &mut Random) -> HostId {
        let Self { roles, rule, peers } = self;
        match peers {
            None => rule.sample_target(roles, source, random),
            Some(peers) => {
                let targets = peers.targets_of(source, || rule.all_targets(roles, source));
                targets[random.below(targets.len() as u64) as usize]
            }
        }
    }
}

impl TargetRule {
    fn sample_target(&mut self, roles: &HostRoles, source: HostId, random: &mut Random) -> HostId {
        match self {
            Self::Any => roles.sample_target(source, random),
            Self::Opposite => {
                roles.sample_target(source, random);
                roles.opposite(source)
            }
            Self::Longest(paths, by_source) => {
                let far = by_source.entry(source).or_insert_with(|| farthest(paths, source, roles));
                far[random.below(far.len() as u64) as usize]
            }
            Self::ByDistance(targets) => targets.sample(source, random),
        }
    }

    /// Returns all targets that the rule allows for a source.
    fn all_targets(&mut self, roles: &HostRoles, source: HostId) -> Vec<HostId> {
        match self {
            Self::Any => roles.targets.clone().filter(|target| *target != source).collect(),
            Self::Opposite => vec![roles.opposite(source)],
            Self::Longest(paths, _) => farthest(paths, source, roles),
            Self::ByDistance(targets) => targets.all(source),
        }
    }
}

impl PeerSets {
    /// Returns the target set of a source, drawn from `all` at its first use.
    fn targets_of(&mut self, source: HostId, all: impl FnOnce() -> Vec<HostId>) -> &[HostId] {
        let Self { number, by_source, random } = self;
        by_source.entry(source).or_insert_with(|| {
            let mut all = all();
            random.shuffle(&mut all);
            all.truncate(*number as usize);
            all
        })
    }
}

/// Returns the targets with the largest hop count from `source`.
fn farthest(paths: &mut Paths, source: HostId, roles: &HostRoles) -> Vec<HostId> {
    let others = roles.targets.clone().filter(|target| *target != source);
    let hops: Vec<_> = others.map(|target| (paths.hops(source, target), target)).collect();
    let most = hops.iter().map(|(hops, _)| *hops).max().flatten();
    hops.into_iter().filter(|(hops, _)| *hops == most).map(|(_, target)| target).collect()
}

//! Between whom flows run.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::base::random::Random;
use crate::base::schema::Problem;
use crate::model::flow::HostId;
use crate::model::graph::{Graph, Paths};

crate::choices! {
    /// How the two ends of a flow are chosen.
    pub enum Pairs {
        /// A random sender and a random receiver where the topology tells them apart, else any two
        /// hosts.
        Topology = "topology",
        /// Any two hosts, whatever the topology says.
        Any = "any",
        /// A random sender and the host opposite it: receiver i for sender i; where the topology
        /// has no senders, the host half way round.
        Opposite = "opposite",
        /// A random sender, and a random one of the receivers that are as far from it as any, in hops:
        /// flows then cross the whole network.
        Longest = "longest",
    }
}

/// The hosts that send and those that receive: apart, or all of them both.
#[derive(Clone, Debug)]
pub(crate) struct Sides {
    pub(crate) sources: Range<HostId>,
    pub(crate) targets: Range<HostId>,
}

impl Sides {
    /// As the topology has them.
    pub(crate) fn of(graph: &Graph) -> Result<Self, Problem> {
        let hosts = graph.host_count();
        match graph.senders {
            None if hosts >= 2 => Ok(Self { sources: 0..hosts, targets: 0..hosts }),
            Some(senders) if (1..hosts).contains(&senders) => {
                Ok(Self { sources: 0..senders, targets: senders..hosts })
            }
            None | Some(_) => Err(Problem::new("", "needs a topology with two hosts or more")),
        }
    }

    /// All hosts on both sides.
    fn merged(self) -> Self {
        let all = self.sources.start..self.targets.end;
        Self { sources: all.clone(), targets: all }
    }

    fn are_apart(&self) -> bool {
        self.sources != self.targets
    }

    /// The host opposite a source.
    pub(crate) fn opposite(&self, source: HostId) -> HostId {
        let targets = self.targets.len() as HostId;
        if self.are_apart() {
            self.targets.start + source % targets
        } else {
            (source + targets / 2) % targets
        }
    }

    /// A random target other than `source`.
    fn target(&self, source: HostId, random: &mut Random) -> HostId {
        if self.are_apart() {
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

/// Draws the ends of one flow after another.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    pub(crate) sides: Sides,
    choice: Choice,
    /// None if a source may have any.
    peers: Option<Peers>,
}

/// The few targets of each source.
#[derive(Clone, Debug)]
struct Peers {
    number: u32,
    /// Of sources that have asked.
    known: BTreeMap<HostId, Vec<HostId>>,
    random: Random,
}

/// How the target of a source is chosen.
#[derive(Clone, Debug)]
enum Choice {
    Any,
    Opposite,
    /// The targets that are farthest from each source, found when they are first asked for.
    Longest(Box<Paths>, BTreeMap<HostId, Vec<HostId>>),
}

impl Ends {
    pub(crate) fn new(pairs: Pairs, graph: &Graph) -> Result<Self, Problem> {
        let sides = Sides::of(graph)?;
        let (sides, choice) = match pairs {
            Pairs::Topology => (sides, Choice::Any),
            Pairs::Any => (sides.merged(), Choice::Any),
            Pairs::Opposite => (sides, Choice::Opposite),
            Pairs::Longest => {
                (sides, Choice::Longest(Box::new(Paths::new(graph)), BTreeMap::new()))
            }
        };
        Ok(Self { sides, choice, peers: None })
    }

    /// Lets every source have only so many targets, drawn from `random`; or all, if there are fewer.
    pub(crate) fn with_peers(self, number: Option<u32>, random: Random) -> Self {
        let peers = number.map(|number| Peers { number, known: BTreeMap::new(), random });
        Self { peers, ..self }
    }

    /// A random source and its target.
    pub(crate) fn draw(&mut self, random: &mut Random) -> (HostId, HostId) {
        let source = pick(&self.sides.sources, random);
        (source, self.target(source, random))
    }

    /// The target of a source. Drawn even if there is no choice, so that no other draw depends on it.
    pub(crate) fn target(&mut self, source: HostId, random: &mut Random) -> HostId {
        let Self { sides, choice, peers } = self;
        match peers {
            None => choice.target(sides, source, random),
            Some(peers) => {
                let own = peers.of(source, || choice.targets(sides, source));
                own[random.below(own.len() as u64) as usize]
            }
        }
    }
}

impl Choice {
    fn target(&mut self, sides: &Sides, source: HostId, random: &mut Random) -> HostId {
        match self {
            Self::Any => sides.target(source, random),
            Self::Opposite => {
                sides.target(source, random);
                sides.opposite(source)
            }
            Self::Longest(paths, known) => {
                let far = known.entry(source).or_insert_with(|| farthest(paths, source, sides));
                far[random.below(far.len() as u64) as usize]
            }
        }
    }

    /// All targets that a source may have.
    fn targets(&mut self, sides: &Sides, source: HostId) -> Vec<HostId> {
        match self {
            Self::Any => sides.targets.clone().filter(|target| *target != source).collect(),
            Self::Opposite => vec![sides.opposite(source)],
            Self::Longest(paths, _) => farthest(paths, source, sides),
        }
    }
}

impl Peers {
    /// The peers of a source, drawn from all that it may have when it first asks.
    fn of(&mut self, source: HostId, all: impl FnOnce() -> Vec<HostId>) -> &[HostId] {
        let Self { number, known, random } = self;
        known.entry(source).or_insert_with(|| {
            let mut all = all();
            random.shuffle(&mut all);
            all.truncate(*number as usize);
            all
        })
    }
}

/// Those targets that are as far from `source` as any.
fn farthest(paths: &mut Paths, source: HostId, sides: &Sides) -> Vec<HostId> {
    let others = sides.targets.clone().filter(|target| *target != source);
    let hops: Vec<_> = others.map(|target| (paths.hops(source, target), target)).collect();
    let most = hops.iter().map(|(hops, _)| *hops).max().flatten();
    hops.into_iter().filter(|(hops, _)| *hops == most).map(|(_, target)| target).collect()
}

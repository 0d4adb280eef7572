//! Between whom flows run.

use std::ops::Range;

use crate::flow::HostId;
use crate::parameters::Problem;
use crate::random::Random;
use crate::topology::Graph;

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
    }
}

/// The hosts that send and those that receive: apart, or all of them both.
#[derive(Clone, Debug)]
pub(super) struct Sides {
    pub(super) sources: Range<HostId>,
    pub(super) targets: Range<HostId>,
}

impl Sides {
    /// As the topology has them.
    pub(super) fn of(graph: &Graph) -> Result<Self, Problem> {
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
    pub(super) fn opposite(&self, source: HostId) -> HostId {
        let targets = self.targets.len() as HostId;
        if self.are_apart() {
            self.targets.start + source % targets
        } else {
            (source + targets / 2) % targets
        }
    }

    /// A random source and a random target other than it.
    fn draw(&self, random: &mut Random) -> (HostId, HostId) {
        let pick = |range: &Range<HostId>, random: &mut Random| {
            range.start + random.below(range.len() as u64) as HostId
        };
        let source = pick(&self.sources, random);
        if self.are_apart() {
            return (source, pick(&self.targets, random));
        }
        let others = self.targets.start..self.targets.end - 1;
        let target = pick(&others, random);
        (source, if target >= source { target + 1 } else { target })
    }
}

/// Draws the ends of one flow after another.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    sides: Sides,
    is_opposite: bool,
    random: Random,
}

impl Ends {
    pub(super) fn new(pairs: Pairs, graph: &Graph, random: Random) -> Result<Self, Problem> {
        let sides = Sides::of(graph)?;
        let (sides, is_opposite) = match pairs {
            Pairs::Topology => (sides, false),
            Pairs::Any => (sides.merged(), false),
            Pairs::Opposite => (sides, true),
        };
        Ok(Self { sides, is_opposite, random })
    }

    pub(super) fn draw(&mut self) -> (HostId, HostId) {
        let (source, target) = self.sides.draw(&mut self.random);
        (source, if self.is_opposite { self.sides.opposite(source) } else { target })
    }
}

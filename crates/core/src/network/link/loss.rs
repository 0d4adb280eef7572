//! Which packets a link loses, at its end.

use std::sync::Arc;

use crate::base::random::Random;
use crate::model::graph::{self, Graph, LinkId, Loss, Victim};
use crate::model::packet::{Kind, Packet};
use crate::network::port::Port;
use crate::network::port::counters::Counters;

/// What decides it.
#[derive(Debug)]
pub enum Losses {
    /// Nothing is lost.
    None,
    /// Each packet is, with this probability.
    Random(f64, Random),
    /// Every so many-th is: the period, and how many have come.
    Every(u64, u64),
    /// More are in some stretches than in others.
    Bursts(Bursts),
    /// Some that are known.
    Chosen(Chosen),
}

impl Losses {
    /// The losses of a link of which `loss` is said; `stream` gives a random stream to those that draw.
    pub fn new(loss: &Loss, stream: impl FnOnce() -> Random) -> Self {
        match loss {
            Loss::None => Self::None,
            Loss::Random(probability) => Self::Random(*probability, stream()),
            Loss::Every(period) => Self::Every(*period, 0),
            Loss::Bursts(law) => Self::Bursts(Bursts::new(law.clone(), stream())),
            Loss::Chosen(victims) => Self::Chosen(Chosen::new(victims)),
        }
    }

    /// Whether anything is ever lost.
    pub fn are_possible(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether the packet that has come now is lost. Frames never are.
    pub fn take(&mut self, packet: &Packet) -> bool {
        let is_protected = packet.kind.is_frame();
        let is_lost = match self {
            Self::None => false,
            Self::Random(probability, random) => !is_protected && random.uniform() < *probability,
            Self::Every(period, came) => {
                *came += 1;
                came.is_multiple_of(*period)
            }
            Self::Bursts(bursts) => !is_protected && bursts.take(),
            Self::Chosen(chosen) => chosen.take(packet),
        };
        is_lost && !is_protected
    }
}

/// What a failure of the link does to what is on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outage {
    is_down: bool,
    /// So many packets were on the link when it failed or came back, and have yet to come to its end.
    doomed: u64,
}

impl Outage {
    /// The link fails or is back, with so many packets on it.
    pub fn set_link_state(&mut self, is_down: bool, on_wire: u64) {
        *self = Self { is_down, doomed: on_wire };
    }

    /// Whether the packet that has come now is lost.
    pub fn take(&mut self) -> bool {
        let is_doomed = self.doomed > 0;
        self.doomed -= u64::from(is_doomed);
        is_doomed || self.is_down
    }
}

/// A channel that is good or bad.
#[derive(Debug)]
pub struct Bursts {
    law: graph::Bursts,
    random: Random,
    is_bad: bool,
}

impl Bursts {
    fn new(law: graph::Bursts, mut random: Random) -> Self {
        let is_bad = random.uniform() < law.share();
        Self { law, random, is_bad }
    }

    /// Whether the next packet is lost.
    fn take(&mut self) -> bool {
        let Self { law, random, is_bad } = self;
        *is_bad ^= random.uniform() < if *is_bad { law.leave } else { law.enter };
        random.uniform() < if *is_bad { law.loss_bad } else { law.loss_good }
    }
}

/// The packets that are chosen to be lost.
#[derive(Debug)]
pub struct Chosen {
    victims: Arc<[Victim]>,
    /// How many copies of a segment have come, where its first victim stands.
    came: Box<[u32]>,
}

impl Chosen {
    fn new(victims: &Arc<[Victim]>) -> Self {
        Self { victims: Arc::clone(victims), came: vec![0; victims.len()].into() }
    }

    /// Whether the packet that has come now is one of them.
    fn take(&mut self, packet: &Packet) -> bool {
        let (flow, segment) = match packet.kind {
            Kind::Data | Kind::Datagram => (packet.flow, packet.sequence + 1),
            Kind::Syn => (packet.flow, 0),
            _ => return false,
        };
        let first = Victim { flow, segment, time: 0 };
        let at = self.victims.partition_point(|victim| *victim < first);
        let known = self.victims.get(at).map(|victim| (victim.flow, victim.segment));
        if known != Some((flow, segment)) {
            return false;
        }
        self.came[at] += 1;
        self.victims.binary_search(&Victim { time: self.came[at], ..first }).is_ok()
    }
}

/// Says which links did not lose all packets that were chosen.
pub fn warnings(graph: &Graph, ports: &[Port]) -> Vec<String> {
    let of_link = |id: usize| {
        let Loss::Chosen(victims) = &graph.links[id].loss else { return None };
        let Counters { lost, cut_off, .. } = ports[id].counters;
        let all = victims.len();
        let missed = all as u64 - (lost - cut_off);
        let name = graph.link_name(id as LinkId);
        (missed > 0).then(|| {
            format!("{missed} of the {all} packets that {name} was to lose never came to its end")
        })
    };
    (0..ports.len()).filter_map(of_link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Time;
    use crate::model::packet::Format;

    /// Which of so many packets a channel loses.
    fn lost(law: graph::Bursts, packets: usize) -> Vec<bool> {
        let mut losses = Losses::new(&Loss::Bursts(law), || Random::new(1, "loss"));
        let format: Format = crate::base::schema::defaults();
        let packet = format.control(Kind::Data, 0, Time::ZERO);
        (0..packets).map(|_| losses.take(&packet)).collect()
    }

    /// Asserts that an estimate is no further off than four standard errors.
    fn assert_estimates(estimate: f64, expected: f64, variance: f64, count: usize) {
        let error = (variance / count as f64).sqrt();
        let off = (estimate - expected).abs();
        assert!(off < 4.0 * error, "{estimate} is {:.1} errors off {expected}", off / error);
    }

    #[test]
    fn bursts_lose_the_stationary_share() {
        let law = graph::Bursts { enter: 0.01, leave: 0.3, loss_good: 0.001, loss_bad: 0.5 };
        let lost = lost(law, 500_000);
        let (bad, rate) = (0.01 / 0.31, 0.01 / 0.31 * 0.5 + 0.3 / 0.31 * 0.001);
        let estimate = lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64;
        // Losses k packets apart have the covariance of the states there, which falls as 0.69^k.
        let covariances = bad * (1.0 - bad) * (0.5_f64 - 0.001).powi(2) * 0.69 / (1.0 - 0.69);
        let variance = rate * (1.0 - rate) + 2.0 * covariances;
        assert_estimates(estimate, rate, variance, lost.len());
    }

    #[test]
    fn bursts_are_as_long_as_the_channel_stays_bad() {
        let law = graph::Bursts { enter: 0.02, leave: 0.2, loss_good: 0.0, loss_bad: 1.0 };
        let lost = lost(law, 500_000);
        let bursts: Vec<_> = lost.chunk_by(|one, next| one == next).filter(|run| run[0]).collect();
        let packets: usize = bursts.iter().map(|burst| burst.len()).sum();
        // Lengths are geometric.
        let variance = (1.0 - 0.2) / 0.2_f64.powi(2);
        assert_estimates(packets as f64 / bursts.len() as f64, 5.0, variance, bursts.len());
    }

    #[test]
    fn what_is_on_a_link_when_it_fails_or_comes_back_is_lost_and_all_between() {
        let mut outage = Outage::default();
        assert!(!outage.take());
        outage.set_link_state(true, 2);
        assert_eq!([(); 4].map(|()| outage.take()), [true; 4]);
        outage.set_link_state(false, 2);
        assert_eq!([(); 4].map(|()| outage.take()), [true, true, false, false]);
    }

    #[test]
    fn those_copies_are_lost_that_are_chosen_and_no_others() {
        let victim = |(flow, segment, time)| Victim { flow, segment, time };
        let chosen = [(0, 0, 2), (0, 3, 1), (0, 3, 3), (7, 3, 2)].map(victim);
        let mut losses = Losses::new(&Loss::Chosen(chosen.into()), || unreachable!("no chance"));
        let format: Format = crate::base::schema::defaults();
        let mut lost = |kind, flow, sequence| {
            let packet = Packet { sequence, ..format.control(kind, flow, Time::ZERO) };
            [(); 4].map(|()| losses.take(&packet))
        };
        assert_eq!(lost(Kind::Ack, 0, 2), [false; 4], "answers pass");
        assert_eq!(lost(Kind::Data, 0, 2), [true, false, true, false]);
        assert_eq!(lost(Kind::Data, 7, 2), [false, true, false, false]);
        assert_eq!(lost(Kind::Syn, 0, 0), [false, true, false, false]);
        for (kind, flow, sequence) in
            [(Kind::Data, 0, 1), (Kind::Data, 1, 2), (Kind::Probe, 7, 2), (Kind::Data, 9, 2)]
        {
            assert_eq!(lost(kind, flow, sequence), [false; 4]);
        }
    }
}

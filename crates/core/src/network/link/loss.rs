//! Losses on a link, decided when a packet arrives at its end.

use std::sync::Arc;

use crate::base::random::Random;
use crate::model::graph::{self, Graph, LinkId, Loss, Victim};
use crate::model::packet::{Kind, Packet};
use crate::network::port::Port;
use crate::network::port::counters::Counters;

/// Loss process of a link.
#[derive(Debug)]
pub enum Losses {
    /// No packet is lost.
    None,
    /// Each packet is lost with this probability.
    Random(f64, Random),
    /// One packet of each period is lost.
    Every {
        /// Number of packets in a period.
        period: u64,
        /// Number of packets that have arrived. Excludes pause frames, unless they can be lost.
        arrived: u64,
    },
    /// Packets are lost in bursts.
    Bursts(Bursts),
    /// Chosen packets are lost.
    Chosen(Chosen),
}

impl Losses {
    /// Returns the process of a link with the parameter `loss`. Processes that draw use `stream`.
    pub fn new(loss: &Loss, stream: impl FnOnce() -> Random) -> Self {
        match loss {
            Loss::None => Self::None,
            Loss::Random(probability) => Self::Random(*probability, stream()),
            Loss::Every(period) => Self::Every { period: *period, arrived: 0 },
            Loss::Bursts(law) => Self::Bursts(Bursts::new(law.clone(), stream())),
            Loss::Chosen(victims) => Self::Chosen(Chosen::new(victims)),
        }
    }

    /// True if a packet can be lost.
    pub fn are_possible(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Decides if the packet that arrives is lost. Unless `loses_frames`, pause frames are neither lost nor
    /// counted.
    pub fn take(&mut self, packet: &Packet, loses_frames: bool) -> bool {
        if packet.kind.is_frame() && !loses_frames {
            return false;
        }
        match self {
            Self::None => false,
            Self::Random(probability, random) => random.uniform() < *probability,
            Self::Every { period, arrived } => {
                *arrived += 1;
                arrived.is_multiple_of(*period)
            }
            Self::Bursts(bursts) => bursts.take(),
            Self::Chosen(chosen) => chosen.take(packet),
        }
    }
}

/// Losses by failures of a link.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outage {
    is_down: bool,
    /// Number of packets that were in flight when the link failed or came back, and have yet to arrive.
    doomed: u64,
}

impl Outage {
    /// Takes the link down or up.
    pub fn set_link_state(&mut self, is_down: bool, in_flight: u64) {
        *self = Self { is_down, doomed: in_flight };
    }

    /// Decides if the packet that arrives is lost.
    pub fn take(&mut self) -> bool {
        let is_doomed = self.doomed > 0;
        self.doomed -= u64::from(is_doomed);
        is_doomed || self.is_down
    }
}

/// Gilbert-Elliott channel ([gilbert60], [elliott63]).
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

    /// Decides if the next packet is lost.
    fn take(&mut self) -> bool {
        let Self { law, random, is_bad } = self;
        *is_bad ^= random.uniform() < if *is_bad { law.leave } else { law.enter };
        random.uniform() < if *is_bad { law.loss_bad } else { law.loss_good }
    }
}

/// Packets that are chosen to be lost.
#[derive(Debug)]
pub struct Chosen {
    victims: Arc<[Victim]>,
    /// Number of copies of a segment that have arrived, at the index of its first victim.
    arrived: Box<[u32]>,
}

impl Chosen {
    fn new(victims: &Arc<[Victim]>) -> Self {
        Self { victims: Arc::clone(victims), arrived: vec![0; victims.len()].into() }
    }

    /// Decides if the packet that arrives is one of them.
    fn take(&mut self, packet: &Packet) -> bool {
        let (flow, segment) = match packet.kind {
            Kind::Data | Kind::Datagram => (packet.flow, packet.sequence + 1),
            Kind::Syn => (packet.flow, 0),
            _ => return false,
        };
        let first = Victim { flow, segment, time: 0 };
        let at = self.victims.partition_point(|victim| *victim < first);
        let victim = self.victims.get(at).map(|victim| (victim.flow, victim.segment));
        if victim != Some((flow, segment)) {
            return false;
        }
        self.arrived[at] += 1;
        self.victims.binary_search(&Victim { time: self.arrived[at], ..first }).is_ok()
    }
}

/// Returns warnings about links that did not lose all chosen packets.
pub fn warnings(graph: &Graph, ports: &[Port]) -> Vec<String> {
    let of_link = |id: usize| {
        let Loss::Chosen(victims) = &graph.links[id].loss else { return None };
        let Counters { lost, cut_off, .. } = ports[id].counters;
        let all = victims.len();
        let missed = all as u64 - (lost - u64::from(cut_off));
        let name = graph.link_name(id as LinkId);
        (missed > 0).then(|| {
            format!(
                "{missed} of the {all} packets that {name} was to lose never arrived at its end"
            )
        })
    };
    (0..ports.len()).filter_map(of_link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Time;
    use crate::model::packet::Format;

    /// Returns the packets that a channel loses.
    fn lost(law: graph::Bursts, packets: usize) -> Vec<bool> {
        let mut losses = Losses::new(&Loss::Bursts(law), || Random::new(1, "loss"));
        let format: Format = crate::base::schema::defaults();
        let packet = format.control(Kind::Data, 0, Time::ZERO);
        (0..packets).map(|_| losses.take(&packet, false)).collect()
    }

    /// Asserts that an estimate is within four standard errors.
    fn assert_estimates(estimate: f64, expected: f64, variance: f64, count: usize) {
        let error = (variance / count as f64).sqrt();
        let off = (estimate - expected).abs();
        assert!(
            off < 4.0 * error,
            "{estimate} is {:.1} standard errors from {expected}",
            off / error
        );
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
    fn a_failure_loses_packets_in_flight_at_its_begin_and_end_and_all_between() {
        let mut outage = Outage::default();
        assert!(!outage.take());
        outage.set_link_state(true, 2);
        assert_eq!([(); 4].map(|()| outage.take()), [true; 4]);
        outage.set_link_state(false, 2);
        assert_eq!([(); 4].map(|()| outage.take()), [true, true, false, false]);
    }

    #[test]
    fn every_nth_packet_is_lost_and_frames_are_not_counted() {
        let mut losses = Losses::new(&Loss::Every(3), || unreachable!("it does not draw"));
        let format: Format = crate::base::schema::defaults();
        let mut take = |kind| losses.take(&format.control(kind, 0, Time::ZERO), false);
        let kinds = [Kind::Data, Kind::Pause, Kind::Ack, Kind::Resume, Kind::Data, Kind::Data];
        assert_eq!(kinds.map(&mut take), [false, false, false, false, true, false]);
        let kinds = [Kind::Data, Kind::Pause, Kind::Data];
        assert_eq!(kinds.map(&mut take), [false, false, true], "not the frame");
        let mut take = |kind| losses.take(&format.control(kind, 0, Time::ZERO), true);
        let kinds = [Kind::Data, Kind::Pause, Kind::Resume];
        assert_eq!(kinds.map(&mut take), [false, false, true], "frames as other packets");
    }

    #[test]
    fn exactly_the_chosen_copies_are_lost() {
        let victim = |(flow, segment, time)| Victim { flow, segment, time };
        let chosen = [(0, 0, 2), (0, 3, 1), (0, 3, 3), (7, 3, 2)].map(victim);
        let mut losses =
            Losses::new(&Loss::Chosen(chosen.into()), || unreachable!("it does not draw"));
        let format: Format = crate::base::schema::defaults();
        let mut lost = |kind, flow, sequence| {
            let packet = Packet { sequence, ..format.control(kind, flow, Time::ZERO) };
            [(); 4].map(|()| losses.take(&packet, false))
        };
        assert_eq!(lost(Kind::Ack, 0, 2), [false; 4], "ACKs are not chosen");
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

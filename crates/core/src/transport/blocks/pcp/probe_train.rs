//! Probes: short trains of evenly spaced packets, and what their one-way delays say.
//!
//! Source: [pcp06] §3.1. A train at a rate that the path has to spare keeps its delays; one at a higher
//! rate builds a queue, and each of its packets takes longer than the one before. A constant error of the
//! clocks cancels, and what happens on the way back does not matter.

use crate::base::random::Random;
use crate::base::units::{Duration, Time};
use crate::transport::TrainPacket;

crate::choices! {
    /// How the slope of a train's one-way delays is judged.
    pub enum Acceptance {
        /// One draw from the normal distribution of the slope and its standard error: a train over a full
        /// but steady link passes every other time, which gives newcomers a chance ([pcp06] §3.1
        /// says that the variance counts; the form of the draw is ours).
        Gaussian = "gaussian",
        /// The slope alone.
        Slope = "slope",
        /// The slope and its standard error together: the careful reading.
        Careful = "careful",
    }
}

/// The straight line through the delays of a train by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// Seconds of delay a second.
    pub slope: f64,
    /// Standard error of the slope.
    pub error: f64,
}

impl Slope {
    /// The line through points of send time and delay, if there are three or more.
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (centre, level) = (mean(|point| point.0), mean(|point| point.1));
        let spread: f64 = points.iter().map(|(x, _)| (x - centre).powi(2)).sum();
        if points.len() < 3 || spread == 0.0 {
            return None;
        }
        let slope = points.iter().map(|(x, y)| (x - centre) * (y - level)).sum::<f64>() / spread;
        let residual = |(x, y): &(f64, f64)| (y - level - slope * (x - centre)).powi(2);
        let variance = points.iter().map(residual).sum::<f64>() / (count - 2.0);
        Some(Self { slope, error: (variance / spread).sqrt() })
    }

    /// Whether the delays do not grow, or by no more than `tolerance`.
    pub fn is_flat(self, acceptance: Acceptance, tolerance: f64, random: &mut Random) -> bool {
        let judged = match acceptance {
            Acceptance::Gaussian => random.normal(self.slope, self.error),
            Acceptance::Slope => self.slope,
            Acceptance::Careful => self.slope + self.error,
        };
        judged <= tolerance
    }
}

/// What a train consists of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// How many packets.
    pub packets: u32,
    /// What each is: a segment of the flow, or padding.
    pub each: TrainPacket,
    /// Time from one to the next.
    pub gap: Duration,
    /// How long after the last packet its answer is given up.
    pub patience: Duration,
}

/// How a train has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ended {
    /// All answers are there.
    Answered(Slope),
    /// Packets or answers were lost, or are late.
    Lost,
    /// The flow had nothing more to send before the train was complete, which says nothing.
    CutShort,
}

/// A train on its way.
#[derive(Clone, Debug)]
pub struct ProbeTrain {
    shape: Shape,
    /// Packets whose time has come, and when the next one's does.
    ripe: u32,
    due: Time,
    /// Packets handed over, the first and the last of them when.
    handed: u32,
    first: Time,
    last: Time,
    /// Packets whose delays are to come. If it carries data, those that the flow sends in between count:
    /// they are as large, and meet the same queue.
    expected: u32,
    points: Vec<(f64, f64)>,
}

impl ProbeTrain {
    /// A train whose first packet is due.
    pub fn new(shape: Shape, now: Time) -> Self {
        Self {
            shape,
            ripe: 1,
            due: now + shape.gap,
            handed: 0,
            first: now,
            last: now,
            expected: 0,
            points: Vec::with_capacity(2 * shape.packets as usize),
        }
    }

    fn carries_data(&self) -> bool {
        self.shape.each == TrainPacket::Segment
    }

    /// When the next packet is due, or after the last the answers are late.
    pub fn next_timer(&self) -> Time {
        if self.ripe < self.shape.packets {
            self.due
        } else {
            // `due` lies a gap after the last packet.
            self.due + self.shape.patience
        }
    }

    /// Time has passed; says how the train has ended, if it is over.
    pub fn on_timer(&mut self, now: Time) -> Option<Ended> {
        if now < self.next_timer() {
            return None;
        }
        if self.ripe < self.shape.packets {
            self.ripe += 1;
            self.due = now + self.shape.gap;
            return None;
        }
        Some(if self.handed < self.shape.packets { Ended::CutShort } else { Ended::Lost })
    }

    /// The packet that is due.
    pub fn beside(&mut self, now: Time) -> Option<TrainPacket> {
        if self.handed >= self.ripe {
            return None;
        }
        if self.handed == 0 {
            self.first = now;
        }
        self.handed += 1;
        self.last = now;
        self.expected += u32::from(!self.carries_data());
        Some(self.shape.each)
    }

    /// The flow has sent a segment, in this train or between its packets.
    pub fn on_sent(&mut self, now: Time) {
        let is_between = self.handed > 0 && (self.handed < self.shape.packets || now <= self.last);
        self.expected += u32::from(self.carries_data() && is_between);
    }

    /// An answer tells the delay of a packet; says how the train has ended, if it is over.
    pub fn on_answer(&mut self, sent_at: Time, delay: f64, is_of_probe: bool) -> Option<Ended> {
        let is_complete = self.handed == self.shape.packets;
        let is_ours = is_of_probe != self.carries_data()
            && self.handed > 0
            && sent_at >= self.first
            && (sent_at <= self.last || !is_complete);
        if !is_ours {
            return None;
        }
        self.points.push((sent_at.since(self.first).seconds(), delay));
        let is_answered = is_complete && self.points.len() >= self.expected as usize;
        is_answered.then(|| Slope::fit(&self.points).map_or(Ended::Lost, Ended::Answered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::{Bytes, Rate};

    const LINK: Rate = Rate::from_mbps(40);
    const FULL: Bytes = Bytes(1250);

    /// How a train of full packets at this rate ends on a link that small packets load at a steady rate.
    fn sent_over(cross: Rate, rate: Rate) -> Slope {
        let small = Bytes(125);
        let gap = rate.transmit(FULL);
        let shape = Shape { packets: 20, each: TrainPacket::Segment, gap, patience: gap * 100 };
        let mut train = ProbeTrain::new(shape, Time::ZERO);
        let (mut free, mut comes) = (Time::ZERO, Time::ZERO);
        let mut ended = None;
        for i in 0..20 {
            let now = Time::ZERO + gap * i;
            if i > 0 {
                assert_eq!(train.next_timer(), now);
                assert_eq!(train.on_timer(now), None);
            }
            assert_eq!(train.beside(now), Some(TrainPacket::Segment));
            assert_eq!(train.beside(now), None, "one at a time");
            train.on_sent(now);
            while cross.0 > 1 && comes <= now {
                free = free.max(comes) + LINK.transmit(small);
                comes = comes + cross.transmit(small);
            }
            free = free.max(now) + LINK.transmit(FULL);
            ended = train.on_answer(now, free.since(now).seconds(), false);
        }
        match ended {
            Some(Ended::Answered(slope)) => slope,
            other => panic!("{other:?}"),
        }
    }

    fn passes(slope: Slope) -> usize {
        let mut random = Random::new(1, "test");
        (0..1000).filter(|_| slope.is_flat(Acceptance::Gaussian, 0.01, &mut random)).count()
    }

    #[test]
    fn an_idle_link_lets_every_train_pass_up_to_its_rate_and_none_above() {
        for share in [0.1, 0.5, 1.0] {
            let slope = sent_over(Rate(1), Rate::from_bps(40e6 * share));
            assert!(slope.slope.abs() < 1e-9 && slope.error < 1e-9, "{slope:?}");
            assert_eq!(passes(slope), 1000);
        }
        for share in [1.05, 1.5, 3.0] {
            let slope = sent_over(Rate(1), Rate::from_bps(40e6 * share));
            // Every packet waits L/C - L/r longer than the one L/r before it: (r - C)/C.
            assert!((slope.slope - (share - 1.0)).abs() < 1e-6, "{slope:?}");
            assert_eq!(passes(slope), 0);
        }
    }

    #[test]
    fn beside_steady_traffic_a_train_passes_if_there_is_room_for_both() {
        for cross in [10, 20, 30] {
            let room = 40 - cross;
            let below = sent_over(Rate::from_mbps(cross), Rate::from_bps(room as f64 * 0.9e6));
            assert!(passes(below) > 900, "{cross}: {below:?}");
            let above = sent_over(Rate::from_mbps(cross), Rate::from_bps(room as f64 * 1.2e6));
            assert!(passes(above) < 10, "{cross}: {above:?}");
        }
    }

    #[test]
    fn delays_that_scatter_about_a_level_pass_every_other_time_unless_one_is_careful() {
        let points: Vec<_> =
            (0..8).map(|i| (f64::from(i), f64::from([1, 0, 0, 1][i as usize % 4]))).collect();
        let slope = Slope::fit(&points).unwrap();
        assert!(slope.slope.abs() < 1e-12 && slope.error > 0.05);
        let mut random = Random::new(1, "test");
        let mut count = |acceptance| {
            (0..1000).filter(|_| slope.is_flat(acceptance, 0.001, &mut random)).count()
        };
        assert!((450..550).contains(&count(Acceptance::Gaussian)));
        assert_eq!((count(Acceptance::Slope), count(Acceptance::Careful)), (1000, 0));
    }

    #[test]
    fn the_slope_and_its_error_are_those_of_least_squares() {
        // By hand: means 1.5 and 1; Sxx 5, Sxy 3; residuals -0.1, 0.3, -0.3, 0.1.
        let fit = Slope::fit(&[(0.0, 0.0), (1.0, 1.0), (2.0, 1.0), (3.0, 2.0)]).unwrap();
        assert!((fit.slope - 0.6).abs() < 1e-12);
        assert!((fit.error - (0.2_f64 / 2.0 / 5.0).sqrt()).abs() < 1e-12);
        assert_eq!(Slope::fit(&[(0.0, 0.0), (1.0, 1.0)]), None);
    }

    #[test]
    fn a_train_with_an_answer_missing_is_lost_and_one_without_data_says_nothing() {
        let at = |us| Time::ZERO + Duration::from_micros(us);
        let padding = TrainPacket::Padding(Bytes(250));
        let (gap, patience) = (Duration::from_micros(100), Duration::from_micros(1000));
        let shape = Shape { packets: 3, each: padding, gap, patience };
        for taken in [3, 1] {
            let mut train = ProbeTrain::new(shape, at(0));
            for i in 0..3 {
                assert_eq!(train.on_timer(at(100 * i)), None);
                if i < taken {
                    assert_eq!(train.beside(at(100 * i)), Some(padding));
                }
            }
            // Data between its packets is none of it.
            train.on_sent(at(50));
            assert_eq!(train.on_answer(at(50), 0.1, false), None);
            assert_eq!(train.on_answer(at(0), 0.1, true), None);
            assert_eq!(train.next_timer(), at(300 + 1000));
            let ended = if taken == 3 { Ended::Lost } else { Ended::CutShort };
            assert_eq!(train.on_timer(at(1300)), Some(ended));
        }
    }
}

//! Probe trains: short trains of evenly spaced packets, judged by the slope of their one-way delays
//! ([pcp06] §3.1).
//!
//! A train at a rate that the path has to spare has constant delays. A train at a higher rate builds a queue,
//! and each packet has a longer delay than the one before. A constant clock offset cancels out, and the
//! reverse path has no effect.

use crate::base::random::Random;
use crate::base::units::{Duration, Time};
use crate::transport::TrainPacket;

crate::choices! {
    /// Acceptance test of the slope of a train's one-way delays.
    pub enum Acceptance {
        /// One sample of the normal distribution of the slope and its standard error: a train over a
        /// full but steady link passes every other time, which gives new flows a chance ([pcp06] §3.1
        /// uses the variance; this form of the test is our own).
        Gaussian = "gaussian",
        /// The slope alone.
        Slope = "slope",
        /// The slope plus its standard error.
        Careful = "careful",
    }
}

/// Least-squares line through the one-way delays of a train.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// Slope, in seconds of delay per second.
    pub slope: f64,
    /// Standard error of the slope.
    pub error: f64,
}

impl Slope {
    /// Fits the line through points of send time and delay; none for fewer than three points.
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
        let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
        let sum_sq_x: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
        if points.len() < 3 || sum_sq_x == 0.0 {
            return None;
        }
        let slope = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / sum_sq_x;
        let residual = |(x, y): &(f64, f64)| (y - mean_y - slope * (x - mean_x)).powi(2);
        let variance = points.iter().map(residual).sum::<f64>() / (count - 2.0);
        Some(Self { slope, error: (variance / sum_sq_x).sqrt() })
    }

    /// True if the slope is at most `tolerance` by this test.
    pub fn is_flat(self, acceptance: Acceptance, tolerance: f64, random: &mut Random) -> bool {
        let tested = match acceptance {
            Acceptance::Gaussian => random.normal(self.slope, self.error),
            Acceptance::Slope => self.slope,
            Acceptance::Careful => self.slope + self.error,
        };
        tested <= tolerance
    }
}

/// Parameters of a train.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainShape {
    /// Number of packets.
    pub packets: u32,
    /// Packets of the train: segments of the flow, or padding.
    pub each: TrainPacket,
    /// Spacing of the packets.
    pub spacing: Duration,
    /// Time after the last packet at which missing answers count as lost.
    pub timeout: Duration,
}

/// Result of a train.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrainResult {
    /// All packets are answered.
    Answered(Slope),
    /// Packets or answers were lost, or are late.
    Lost,
    /// The flow had too little data for the train: no result.
    CutShort,
}

/// A train in progress.
#[derive(Clone, Debug)]
pub struct ProbeTrain {
    shape: TrainShape,
    /// Packets that are due so far, and the time of the next.
    due_packets: u32,
    due: Time,
    /// Packets sent, and the times of the first and the last.
    sent_packets: u32,
    first: Time,
    last: Time,
    /// Number of delays expected. In a train of data, segments that the flow sends between the packets
    /// count too: they have the same size and pass the same queue.
    expected: u32,
    points: Vec<(f64, f64)>,
}

impl ProbeTrain {
    /// Train whose first packet is due.
    pub fn new(shape: TrainShape, now: Time) -> Self {
        Self {
            shape,
            due_packets: 1,
            due: now + shape.spacing,
            sent_packets: 0,
            first: now,
            last: now,
            expected: 0,
            points: Vec::with_capacity(2 * shape.packets as usize),
        }
    }

    fn carries_data(&self) -> bool {
        self.shape.each == TrainPacket::Segment
    }

    /// Time at which the next packet is due, or after the last packet, at which answers are late.
    pub fn next_timer(&self) -> Time {
        if self.due_packets < self.shape.packets {
            self.due
        } else {
            // `due` is one spacing after the last packet.
            self.due + self.shape.timeout
        }
    }

    /// Handles the timer. Returns the result if the train is over.
    pub fn on_timer(&mut self, now: Time) -> Option<TrainResult> {
        if now < self.next_timer() {
            return None;
        }
        if self.due_packets < self.shape.packets {
            self.due_packets += 1;
            self.due = now + self.shape.spacing;
            return None;
        }
        Some(if self.sent_packets < self.shape.packets {
            TrainResult::CutShort
        } else {
            TrainResult::Lost
        })
    }

    /// Returns the packet that is due.
    pub fn next_packet(&mut self, now: Time) -> Option<TrainPacket> {
        if self.sent_packets >= self.due_packets {
            return None;
        }
        if self.sent_packets == 0 {
            self.first = now;
        }
        self.sent_packets += 1;
        self.last = now;
        self.expected += u32::from(!self.carries_data());
        Some(self.shape.each)
    }

    /// Handles a segment sent by the flow, in the train or between its packets.
    pub fn on_sent(&mut self, now: Time) {
        let is_between =
            self.sent_packets > 0 && (self.sent_packets < self.shape.packets || now <= self.last);
        self.expected += u32::from(self.carries_data() && is_between);
    }

    /// Handles an answer with the delay of a packet. Returns the result if the train is over.
    pub fn on_answer(
        &mut self,
        sent_at: Time,
        delay: f64,
        is_probe_ack: bool,
    ) -> Option<TrainResult> {
        let is_complete = self.sent_packets == self.shape.packets;
        let is_counted = is_probe_ack != self.carries_data()
            && self.sent_packets > 0
            && sent_at >= self.first
            && (sent_at <= self.last || !is_complete);
        if !is_counted {
            return None;
        }
        self.points.push((sent_at.since(self.first).seconds(), delay));
        let is_answered = is_complete && self.points.len() >= self.expected as usize;
        is_answered
            .then(|| Slope::fit(&self.points).map_or(TrainResult::Lost, TrainResult::Answered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::{Bytes, Rate};

    const LINK: Rate = Rate::from_mbps(40);
    const FULL: Bytes = Bytes(1250);

    /// Slope of a train of full packets at this rate over a link loaded by small packets at a constant rate.
    fn sent_over(cross: Rate, rate: Rate) -> Slope {
        let small = Bytes(125);
        let spacing = rate.transmit(FULL);
        let shape =
            TrainShape { packets: 20, each: TrainPacket::Segment, spacing, timeout: spacing * 100 };
        let mut train = ProbeTrain::new(shape, Time::ZERO);
        let (mut free, mut next_arrival) = (Time::ZERO, Time::ZERO);
        let mut result = None;
        for i in 0..20 {
            let now = Time::ZERO + spacing * i;
            if i > 0 {
                assert_eq!(train.next_timer(), now);
                assert_eq!(train.on_timer(now), None);
            }
            assert_eq!(train.next_packet(now), Some(TrainPacket::Segment));
            assert_eq!(train.next_packet(now), None, "one at a time");
            train.on_sent(now);
            while cross.0 > 1 && next_arrival <= now {
                free = free.max(next_arrival) + LINK.transmit(small);
                next_arrival = next_arrival + cross.transmit(small);
            }
            free = free.max(now) + LINK.transmit(FULL);
            result = train.on_answer(now, free.since(now).seconds(), false);
        }
        match result {
            Some(TrainResult::Answered(slope)) => slope,
            other => panic!("{other:?}"),
        }
    }

    fn passes(slope: Slope) -> usize {
        let mut random = Random::new(1, "test");
        (0..1000).filter(|_| slope.is_flat(Acceptance::Gaussian, 0.01, &mut random)).count()
    }

    #[test]
    fn over_an_idle_link_trains_pass_up_to_its_rate() {
        for share in [0.1, 0.5, 1.0] {
            let slope = sent_over(Rate(1), Rate::from_bps(40e6 * share));
            assert!(slope.slope.abs() < 1e-9 && slope.error < 1e-9, "{slope:?}");
            assert_eq!(passes(slope), 1000);
        }
        for share in [1.05, 1.5, 3.0] {
            let slope = sent_over(Rate(1), Rate::from_bps(40e6 * share));
            // Each packet waits L/C - L/r longer than the packet L/r before: (r - C)/C.
            assert!((slope.slope - (share - 1.0)).abs() < 1e-6, "{slope:?}");
            assert_eq!(passes(slope), 0);
        }
    }

    #[test]
    fn with_constant_cross_traffic_a_train_passes_if_the_link_has_capacity_for_both() {
        for cross in [10, 20, 30] {
            let spare = 40 - cross;
            let below = sent_over(Rate::from_mbps(cross), Rate::from_bps(spare as f64 * 0.9e6));
            assert!(passes(below) > 900, "{cross}: {below:?}");
            let above = sent_over(Rate::from_mbps(cross), Rate::from_bps(spare as f64 * 1.2e6));
            assert!(passes(above) < 10, "{cross}: {above:?}");
        }
    }

    #[test]
    fn noisy_delays_pass_every_other_time_unless_the_test_is_careful() {
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
    fn the_slope_and_its_error_are_the_least_squares_estimates() {
        // By hand: means 1.5 and 1; Sxx 5, Sxy 3; residuals -0.1, 0.3, -0.3, 0.1.
        let fit = Slope::fit(&[(0.0, 0.0), (1.0, 1.0), (2.0, 1.0), (3.0, 2.0)]).unwrap();
        assert!((fit.slope - 0.6).abs() < 1e-12);
        assert!((fit.error - (0.2_f64 / 2.0 / 5.0).sqrt()).abs() < 1e-12);
        assert_eq!(Slope::fit(&[(0.0, 0.0), (1.0, 1.0)]), None);
    }

    #[test]
    fn a_train_with_a_missing_answer_is_lost_and_an_incomplete_train_has_no_result() {
        let at = |us| Time::ZERO + Duration::from_micros(us);
        let padding = TrainPacket::Padding(Bytes(250));
        let (spacing, timeout) = (Duration::from_micros(100), Duration::from_micros(1000));
        let shape = TrainShape { packets: 3, each: padding, spacing, timeout };
        for sent in [3, 1] {
            let mut train = ProbeTrain::new(shape, at(0));
            for i in 0..3 {
                assert_eq!(train.on_timer(at(100 * i)), None);
                if i < sent {
                    assert_eq!(train.next_packet(at(100 * i)), Some(padding));
                }
            }
            // Data between the packets of a padding train does not count.
            train.on_sent(at(50));
            assert_eq!(train.on_answer(at(50), 0.1, false), None);
            assert_eq!(train.on_answer(at(0), 0.1, true), None);
            assert_eq!(train.next_timer(), at(300 + 1000));
            let result = if sent == 3 { TrainResult::Lost } else { TrainResult::CutShort };
            assert_eq!(train.on_timer(at(1300)), Some(result));
        }
    }
}

//! XCP's router: distributes spare capacity over packets as changes of the throughput of their
//! flows.
//!
//! Sources: [xcp02] §3.5; the Internet-Draft of the protocol and its ns-2 module, which express the
//! algorithm in throughput instead of windows. Positive feedback of a packet, the increase of the
//! window divided by the RTT, is proportional to the time between the flow's packets (RTT over
//! window). Negative feedback is proportional to the packet size.

use super::{FlowInfo, PortInfo, PortView, Router, RouterKind};
use crate::base::random::Random;
use crate::base::schema::{positive, positive_fraction};
use crate::base::units::{Duration, Rate, Time};
use crate::model::packet::{Header, Packet};

crate::choices! {
    /// Distribution of feedback over packets.
    pub enum FeedbackRule {
        /// As in the paper: the feedback per packet follows from the last interval, for any number
        /// of packets in this interval.
        Published = "published",
        /// As in the later draft: the total feedback of an interval is limited.
        Residue = "residue",
    }
}

crate::parameters! {
    /// XCP's router: distributes spare capacity, and shuffles a tenth of the traffic among flows,
    /// by feedback in packet headers ([xcp02]).
    pub struct Config {
        /// Gain of the spare capacity ([xcp02]: 0.4).
        pub alpha: f64 = 0.4, where positive;
        /// Gain of the queue ([xcp02]: 0.226, which is sqrt(2) alpha^2).
        pub beta: f64 = 0.226, where positive;
        /// Fraction of the traffic that is shuffled among flows per control interval ([xcp02]:
        /// 0.1).
        pub gamma: f64 = 0.1, where positive_fraction;
        /// Distribution of feedback over packets.
        pub rule: FeedbackRule = FeedbackRule::Residue;
        /// First control interval, and the one that follows an interval without packets that carry
        /// an RTT (ns-2: 50 ms).
        pub initial_interval: Duration = Duration::from_millis(50), where positive;
        /// Lower bound on control intervals, which are RTTs. The minimum queue is measured for at least
        /// twice as long, and the first intervals last at least four times as long (ns-2: 1, 2 and 4 ms).
        pub min_interval: Duration = Duration::from_millis(1), where positive;
    }
}

/// Upper bound on RTTs in packets, in seconds (draft and ns-2).
const MAX_RTT: f64 = 1.0;

impl Config {
    fn build_for(&self, rate: Rate, mut random: Random) -> Xcp {
        let interval = self.initial_interval.seconds();
        let min_interval = self.min_interval.seconds();
        // ns-2 starts the clocks of each router at random times.
        let mut first = |span: f64| random.normal(span, 0.2 * span).max(4.0 * min_interval);
        let (ends, span) = (first(interval), first(interval / 2.0));
        Xcp {
            alpha: self.alpha,
            beta: self.beta,
            gamma: self.gamma,
            rule: self.rule,
            capacity: rate.bps() / 8.0,
            initial_interval: interval,
            min_interval,
            rtt: interval,
            interval: ends,
            interval_ends: Time::ZERO + Duration::from_seconds(ends),
            bytes: 0.0,
            spacing: 0.0,
            rtt_spacing: 0.0,
            positive: FeedbackPool::default(),
            negative: FeedbackPool::default(),
            persistent_queue: 0.0,
            min_queue: 0.0,
            queue_interval_ends: Time::ZERO + Duration::from_seconds(span),
        }
    }
}

impl RouterKind for Config {
    fn build(&self, port: PortInfo, random: Random) -> Box<dyn Router> {
        Box::new(self.build_for(port.rate, random))
    }

    fn warning(&self) -> Option<String> {
        // [xcp02] theorem 1. The tolerance of beta covers its rounded constant.
        let alpha_limit = std::f64::consts::PI / (4.0 * std::f64::consts::SQRT_2);
        let stable_beta = self.alpha * self.alpha * std::f64::consts::SQRT_2;
        let is_stable = self.alpha < alpha_limit && (self.beta / stable_beta - 1.0).abs() < 0.05;
        (!is_stable).then(|| {
            format!(
                "router: alpha = {}, beta = {} is not known to be stable: XCP's analysis requires alpha \
                 below {alpha_limit:.3} and beta = {stable_beta:.3} for this alpha",
                self.alpha, self.beta
            )
        })
    }
}

/// Feedback to distribute in this interval, as a change of throughput.
#[derive(Clone, Copy, Debug, Default)]
struct FeedbackPool {
    residue: f64,
    scale: f64,
}

impl FeedbackPool {
    fn new(amount: f64, parts: f64) -> Self {
        Self { residue: amount, scale: if parts > 0.0 { amount / parts } else { 0.0 } }
    }
}

/// State of one port, in bytes and seconds.
struct Xcp {
    alpha: f64,
    beta: f64,
    gamma: f64,
    rule: FeedbackRule,
    capacity: f64,
    initial_interval: f64,
    min_interval: f64,
    /// Mean RTT.
    rtt: f64,
    /// Length and end of the control interval.
    interval: f64,
    interval_ends: Time,
    /// Sums over the packets of this interval: bytes, times between packets, and the latter times
    /// RTTs.
    bytes: f64,
    spacing: f64,
    rtt_spacing: f64,
    /// Positive and negative feedback of this interval.
    positive: FeedbackPool,
    negative: FeedbackPool,
    /// Persistent queue, minimum queue in the current queue interval, and the end of this interval.
    persistent_queue: f64,
    min_queue: f64,
    queue_interval_ends: Time,
}

impl Router for Xcp {
    fn on_arrival(&mut self, packet: &mut Packet, _flow_info: &FlowInfo, _now: Time) {
        self.bytes += f64::from(packet.bytes);
        if let Header::Xcp { rtt, spacing, .. } = packet.header()
            && rtt > 0.0
        {
            self.spacing += f64::from(spacing);
            self.rtt_spacing += f64::from(rtt).min(MAX_RTT) * f64::from(spacing);
        }
    }

    fn on_departure(&mut self, packet: &mut Packet, view: PortView) {
        self.min_queue = self.min_queue.min(view.backlog as f64);
        let bytes = f64::from(packet.bytes);
        if let Header::Xcp { rtt, spacing, feedback } = packet.header() {
            let allotted = if rtt > 0.0 {
                self.feedback(f64::from(spacing), bytes, f64::from(feedback)) as f32
            } else {
                feedback.min(0.0)
            };
            packet.write_feedback(allotted);
        }
    }

    fn next_tick(&self) -> Time {
        self.interval_ends.min(self.queue_interval_ends)
    }

    fn on_tick(&mut self, view: PortView) {
        if self.queue_interval_ends <= view.now {
            self.persistent_queue = self.min_queue;
            self.min_queue = view.backlog as f64;
            let span =
                ((self.rtt - self.min_queue / self.capacity) / 2.0).max(2.0 * self.min_interval);
            self.queue_interval_ends = view.now + Duration::from_seconds(span);
        }
        if self.interval_ends <= view.now {
            self.end_control_interval();
            self.interval_ends = view.now + Duration::from_seconds(self.interval);
        }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("persistent_queue_bytes", self.persistent_queue)]
    }
}

impl Xcp {
    /// Computes the feedback of the next control interval.
    fn end_control_interval(&mut self) {
        let input = self.bytes / self.interval;
        self.rtt = if self.spacing > 0.0 {
            self.rtt_spacing / self.spacing
        } else {
            self.initial_interval
        };
        if self.bytes > 0.0 {
            // [xcp02] eq. 1 over the interval, and the shuffled traffic of §3.5.2.
            let spare =
                self.alpha * (self.capacity - input) - self.beta * self.persistent_queue / self.rtt;
            let shuffled = (self.gamma * input - spare.abs()).max(0.0);
            self.positive = FeedbackPool::new(spare.max(0.0) + shuffled, self.spacing);
            self.negative = FeedbackPool::new((-spare).max(0.0) + shuffled, self.bytes);
        } else {
            // As in ns-2, `Te_timeout`: without traffic nothing is allotted.
            (self.positive, self.negative) = (FeedbackPool::default(), FeedbackPool::default());
        }
        (self.bytes, self.spacing, self.rtt_spacing) = (0.0, 0.0, 0.0);
        self.interval = self.rtt.max(self.min_interval);
    }

    /// Returns the change of throughput for a packet whose sender requests `desired`.
    fn feedback(&mut self, spacing: f64, bytes: f64, desired: f64) -> f64 {
        let (positive, negative) = (self.positive.scale * spacing, self.negative.scale * bytes);
        if self.rule == FeedbackRule::Published {
            return desired.min(positive - negative);
        }
        let mut positive = positive.min(self.positive.residue);
        let mut negative = negative.min(self.negative.residue);
        let feedback = positive - negative;
        if desired < feedback {
            // Feedback that the sender does not use remains for others.
            negative = (negative + feedback - desired).min(self.negative.residue);
            positive = desired + negative;
        }
        let draw = |pool: &mut FeedbackPool, amount: f64| {
            pool.residue = (pool.residue - amount).max(0.0);
            if pool.residue == 0.0 {
                pool.scale = 0.0;
            }
        };
        draw(&mut self.positive, positive);
        draw(&mut self.negative, negative);
        desired.min(feedback)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use crate::model::packet::{Format, Kind};
    use crate::router::tests::FLOW;
    use serde_json::json;

    fn data(rtt: f32, spacing: f32) -> Packet {
        let format: Format = defaults();
        Packet { bytes: 1000, ..format.control(Kind::Data, 0, Time::ZERO) }
            .with_header(Header::Xcp { rtt, spacing, feedback: f32::INFINITY })
    }

    /// Returns the feedback of `departures` equal packets on a link of 1 Gb/s, after one interval for each
    /// number of `arrivals`.
    fn feedback(rule: &str, arrivals: &[u32], departures: u32) -> Vec<f64> {
        let config = Config::read(&json!({ "rule": rule })).unwrap();
        let mut router = config.build_for(Rate::from_gbps(1), Random::new(1, "router"));
        router.interval = 0.1;
        for count in arrivals {
            for _ in 0..*count {
                router.on_arrival(&mut data(0.1, 0.01), &FLOW, Time::ZERO);
            }
            router.end_control_interval();
        }
        let depart = |_| {
            let mut packet = data(0.1, 0.01);
            router.on_departure(&mut packet, PortView { now: Time::ZERO, backlog: 0 });
            f64::from(packet.header().feedback())
        };
        (0..departures).map(depart).collect()
    }

    #[test]
    fn spare_capacity_is_shared_and_bounded_by_the_residue() {
        // 1000 packets in 100 ms are 10 MB/s of 125 MB/s. 40 % of the rest is distributed over 1000
        // packets.
        let expected = 0.4 * (125e6 - 10e6) / 1000.0;
        let published = feedback("published", &[1000], 2000);
        for one in &published {
            assert!((one / expected - 1.0).abs() < 1e-4, "{one} is not {expected}");
        }
        let residue = feedback("residue", &[1000], 2000);
        let (sum, available) = (residue.iter().sum::<f64>(), expected * 1000.0);
        assert!((sum / available - 1.0).abs() < 1e-3, "{sum} is not {available}");
        assert!(residue[1500].abs() < f64::EPSILON, "the pool is empty");
    }

    #[test]
    fn an_interval_without_packets_allots_nothing() {
        for rule in ["published", "residue"] {
            assert!(feedback(rule, &[1000], 1)[0] > 0.0, "{rule}");
            assert!(feedback(rule, &[1000, 0], 1)[0].abs() < f64::EPSILON, "{rule}");
        }
    }

    #[test]
    fn unstable_gains_give_a_warning() {
        let warning = |config| Config::read(&config).unwrap().warning();
        assert_eq!(warning(json!({})), None);
        assert!(warning(json!({ "alpha": 0.6 })).unwrap().contains("below 0.555"));
        assert!(warning(json!({ "beta": 0.5 })).is_some());
    }
}

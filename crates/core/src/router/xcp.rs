//! XCP's router: divides spare capacity over packets as changes of their flows' throughput.
//!
//! Sources: [xcp02] §3.5; the internet-draft of the protocol and its ns-2 module, which state the same
//! rule in throughput instead of windows: what the paper gives to a flow's window, divided by its
//! round-trip time, is a change proportional to the time between the flow's packets (its round-trip time
//! over its window), and what it takes is one proportional to the packet's size.

use super::{FlowInfo, PortInfo, PortView, Router, RouterKind};
use crate::base::random::Random;
use crate::base::schema::{positive, positive_fraction};
use crate::base::units::{Duration, Rate, Time};
use crate::model::packet::{Header, Packet};

crate::choices! {
    /// How feedback is handed out.
    pub enum Rule {
        /// As the paper has it: every packet gets its share of what was measured in the last interval,
        /// however many packets come in this one.
        Published = "published",
        /// As the later draft has it: no more is handed out in an interval than there is.
        Residue = "residue",
    }
}

crate::parameters! {
    /// XCP's router: hands out spare capacity, and moves a tenth of the traffic from flow to flow, as
    /// feedback in packets' headers ([xcp02]).
    pub struct Config {
        /// Gain of the spare capacity ([xcp02]: 0.4).
        pub alpha: f64 = 0.4, where positive;
        /// Gain of the queue ([xcp02]: 0.226, which is alpha squared times the root of 2).
        pub beta: f64 = 0.226, where positive;
        /// Share of the traffic that is moved from flow to flow in each interval ([xcp02]: 0.1).
        pub gamma: f64 = 0.1, where positive_fraction;
        /// How feedback is handed out.
        pub rule: Rule = Rule::Residue;
        /// The first interval, and the one after an interval without packets that carry a round-trip
        /// time (ns-2: 50 ms).
        pub initial_interval: Duration = Duration::from_millis(50), where positive;
    }
}

/// Round-trip times above this count as this (draft and ns-2).
const MOST_RTT: f64 = 1.0;
/// The least control interval, the least span over which the least queue is sought, and the least first
/// interval, in seconds (ns-2).
const LEAST: f64 = 1e-3;
const LEAST_SPAN: f64 = 2e-3;
const LEAST_FIRST: f64 = 4e-3;

impl Config {
    fn open(&self, rate: Rate, mut random: Random) -> Xcp {
        let interval = self.initial_interval.seconds();
        // ns-2 starts each router's clocks at times of their own.
        let mut first = |span: f64| random.normal(span, 0.2 * span).max(LEAST_FIRST);
        let (ends, span) = (first(interval), first(interval / 2.0));
        Xcp {
            alpha: self.alpha,
            beta: self.beta,
            gamma: self.gamma,
            rule: self.rule,
            capacity: rate.bps() / 8.0,
            initial_interval: interval,
            rtt: interval,
            interval: ends,
            interval_ends: Time::ZERO + Duration::from_seconds(ends),
            bytes: 0.0,
            spacing: 0.0,
            rtt_spacing: 0.0,
            give: Pool::default(),
            take: Pool::default(),
            queue: 0.0,
            least: 0.0,
            span_ends: Time::ZERO + Duration::from_seconds(span),
        }
    }
}

impl RouterKind for Config {
    fn build(&self, port: PortInfo, random: Random) -> Box<dyn Router> {
        Box::new(self.open(port.rate, random))
    }

    fn warning(&self) -> Option<String> {
        // [xcp02] theorem 1; beta may stray a little from the rule, whose constant is rounded.
        let most = std::f64::consts::PI / (4.0 * std::f64::consts::SQRT_2);
        let rule = self.alpha * self.alpha * std::f64::consts::SQRT_2;
        let is_stable = self.alpha < most && (self.beta / rule - 1.0).abs() < 0.05;
        (!is_stable).then(|| {
            format!(
                "router: alpha = {}, beta = {} is not known to be stable: XCP's analysis asks for alpha \
                 below {most:.3} and beta = {rule:.3} for this alpha",
                self.alpha, self.beta
            )
        })
    }
}

/// Throughput to hand out in this interval, and each packet's share of it.
#[derive(Clone, Copy, Debug, Default)]
struct Pool {
    left: f64,
    share: f64,
}

impl Pool {
    fn of(amount: f64, parts: f64) -> Self {
        Self { left: amount, share: if parts > 0.0 { amount / parts } else { 0.0 } }
    }
}

/// The state of one port; bytes and seconds.
struct Xcp {
    alpha: f64,
    beta: f64,
    gamma: f64,
    rule: Rule,
    capacity: f64,
    initial_interval: f64,
    /// Mean round-trip time.
    rtt: f64,
    /// The control interval, and when it ends.
    interval: f64,
    interval_ends: Time,
    /// Sums over the packets of this interval: bytes, times between packets, those times round-trip
    /// times.
    bytes: f64,
    spacing: f64,
    rtt_spacing: f64,
    /// What this interval gives to packets, and what it takes.
    give: Pool,
    take: Pool,
    /// The persistent queue, the least in this span so far, and when the span ends.
    queue: f64,
    least: f64,
    span_ends: Time,
}

impl Router for Xcp {
    fn on_arrival(&mut self, packet: &mut Packet, _flow_info: &FlowInfo, _now: Time) {
        self.bytes += f64::from(packet.bytes);
        if let Header::Xcp { rtt, spacing, .. } = packet.header()
            && rtt > 0.0
        {
            self.spacing += f64::from(spacing);
            self.rtt_spacing += f64::from(rtt).min(MOST_RTT) * f64::from(spacing);
        }
    }

    fn on_departure(&mut self, packet: &mut Packet, view: PortView) {
        self.least = self.least.min(view.backlog as f64);
        let bytes = f64::from(packet.bytes);
        if let Header::Xcp { rtt, spacing, feedback } = packet.header() {
            let allotted = if rtt > 0.0 {
                self.allot(f64::from(spacing), bytes, f64::from(feedback)) as f32
            } else {
                feedback.min(0.0)
            };
            packet.write_feedback(allotted);
        }
    }

    fn next_tick(&self) -> Time {
        self.interval_ends.min(self.span_ends)
    }

    fn on_tick(&mut self, view: PortView) {
        if self.span_ends <= view.now {
            self.queue = self.least;
            self.least = view.backlog as f64;
            let span = ((self.rtt - self.least / self.capacity) / 2.0).max(LEAST_SPAN);
            self.span_ends = view.now + Duration::from_seconds(span);
        }
        if self.interval_ends <= view.now {
            self.control();
            self.interval_ends = view.now + Duration::from_seconds(self.interval);
        }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("persistent_queue_bytes", self.queue)]
    }
}

impl Xcp {
    /// The end of an interval: what the next one gives and takes.
    fn control(&mut self) {
        let input = self.bytes / self.interval;
        self.rtt = if self.spacing > 0.0 {
            self.rtt_spacing / self.spacing
        } else {
            self.initial_interval
        };
        if self.bytes > 0.0 {
            // [xcp02] eq. 1 over the interval, and the shuffled traffic of §3.5.2.
            let spare = self.alpha * (self.capacity - input) - self.beta * self.queue / self.rtt;
            let shuffled = (self.gamma * input - spare.abs()).max(0.0);
            self.give = Pool::of(spare.max(0.0) + shuffled, self.spacing);
            self.take = Pool::of((-spare).max(0.0) + shuffled, self.bytes);
        }
        (self.bytes, self.spacing, self.rtt_spacing) = (0.0, 0.0, 0.0);
        self.interval = self.rtt.max(LEAST);
    }

    /// The change of throughput for a packet whose sender wishes for `wished`.
    fn allot(&mut self, spacing: f64, bytes: f64, wished: f64) -> f64 {
        let (give, take) = (self.give.share * spacing, self.take.share * bytes);
        if self.rule == Rule::Published {
            return wished.min(give - take);
        }
        let mut give = give.min(self.give.left);
        let mut take = take.min(self.take.left);
        let feedback = give - take;
        if wished < feedback {
            // What the sender does not want stays for others.
            take = (take + feedback - wished).min(self.take.left);
            give = wished + take;
        }
        let draw = |pool: &mut Pool, amount: f64| {
            pool.left = (pool.left - amount).max(0.0);
            if pool.left == 0.0 {
                pool.share = 0.0;
            }
        };
        draw(&mut self.give, give);
        draw(&mut self.take, take);
        wished.min(feedback)
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

    /// The feedback that `go` equal packets get in the interval after one in which `came` filled a part of
    /// a link of 1 Gb/s.
    fn feedback(rule: &str, came: u32, go: u32) -> Vec<f64> {
        let config = Config::read(&json!({ "rule": rule })).unwrap();
        let mut router = config.open(Rate::from_gbps(1), Random::new(1, "router"));
        router.interval = 0.1;
        for _ in 0..came {
            router.on_arrival(&mut data(0.1, 0.01), &FLOW, Time::ZERO);
        }
        router.control();
        let depart = |_| {
            let mut packet = data(0.1, 0.01);
            router.on_departure(&mut packet, PortView { now: Time::ZERO, backlog: 0 });
            f64::from(packet.header().feedback())
        };
        (0..go).map(depart).collect()
    }

    #[test]
    fn spare_capacity_is_shared_and_with_residues_no_more_than_there_is() {
        // 1000 packets in 100 ms are 10 MB/s of 125; 40 % of the rest is handed out over 1000 packets.
        let expected = 0.4 * (125e6 - 10e6) / 1000.0;
        let published = feedback("published", 1000, 2000);
        for one in &published {
            assert!((one / expected - 1.0).abs() < 1e-4, "{one} is not {expected}");
        }
        let residue = feedback("residue", 1000, 2000);
        let (sum, wanted) = (residue.iter().sum::<f64>(), expected * 1000.0);
        assert!((sum / wanted - 1.0).abs() < 1e-3, "{sum} is not {wanted}");
        assert!(residue[1500].abs() < f64::EPSILON, "the pool is empty");
    }

    #[test]
    fn gains_off_the_rule_are_warned_of() {
        let warning = |config| Config::read(&config).unwrap().warning();
        assert_eq!(warning(json!({})), None);
        assert!(warning(json!({ "alpha": 0.6 })).unwrap().contains("below 0.555"));
        assert!(warning(json!({ "beta": 0.5 })).is_some());
    }
}

//! RED, random early detection: marks or drops packets at random by the average queue length.
//!
//! Sources: [floyd93], [floyd01] (Adaptive RED, automatic parameters), RFC 3168 §7 (drops at high
//! probabilities), and ns-2.35 for open choices. Queue lengths and thresholds are in packets of
//! mean size.

use serde_json::Value;

use super::{Admission, Capacity, Limit, LinkScale, PortQueue, QueueKind, QueueState, Verdict};
use crate::base::random::Random;
use crate::base::schema::json_schema::{Definitions, pattern, quantity_form};
use crate::base::schema::{
    Parameter, Problem, fraction, fraction_if_given, positive, positive_fraction, wrong,
};
use crate::base::units::{Bytes, DATA_UNITS, Duration, Rate, Time, parse_quantity};
use crate::model::packet::{Flags, Packet};

crate::parameters! {
    /// RED: marks or drops arriving packets with a probability that grows with the average queue
    /// length ([floyd93]). Parameters can be automatic and adaptive ([floyd01]).
    ///
    /// As in ns-2.35, the packet in transmission is not in the queue, and a packet that finds fewer
    /// than two packets is neither marked nor dropped early. Deviations: idle time decays the
    /// average in proportion to its length, as in [floyd93], where ns-2 counts whole packets; and
    /// the gentle part starts at the adapted probability, where ns-2 keeps the slope of the first
    /// part.
    pub struct Config {
        /// Average queue length below which no packet is marked. `none`: a third of `max_threshold`
        /// or, without it, half of the data sent in `target_delay`, at least 5 packets ([floyd01]).
        pub min_threshold: Option<Threshold> = None;
        /// Average queue length at which packets are marked with probability `max_p`. `none`: three
        /// times `min_threshold` ([floyd01]).
        pub max_threshold: Option<Threshold> = None;
        /// Target queueing delay of automatic thresholds (ns-2: 5 ms).
        pub target_delay: Duration = Duration::from_millis(5);
        /// Weight of each arrival in the average (`w_q`). `none`: averages over ten times `rtt`, 1
        /// - exp(-1 / n), where n is the number of packets that the link carries in this time
        /// ([floyd01]).
        pub weight: Option<f64> = None, where positive_fraction;
        /// RTT for the automatic weight ([floyd01]: 100 ms). ns-2 uses three times the delay of the
        /// link plus the transmission time of a packet, if that is longer.
        pub rtt: Duration = Duration::from_millis(100), where positive;
        /// Mean packet size, headers included, which converts bytes and idle time into packets
        /// ([rcp06]: 1000 B; ns-2: 500 B).
        pub mean_packet: Bytes = Bytes(1000), where positive;
        /// Unit of the average queue length ([floyd93] has both; ns-2: bytes).
        pub count_in: CountIn = CountIn::Packets;
        /// Marking probability at `max_threshold` (ns-2: 0.1); the initial value if `adaptive`.
        pub max_p: f64 = 0.1, where positive_fraction;
        /// If true, the probability rises from `max_p` at `max_threshold` to 1 at twice
        /// `max_threshold` ([floyd01], ns-2). Otherwise it is 1 from `max_threshold` on
        /// ([floyd93]).
        pub gentle: bool = true;
        /// If true, `max_p` adapts to keep the average halfway between the thresholds ([floyd01];
        /// ns-2: false).
        pub adaptive: bool = false;
        /// Minimum time between adaptations, which take place on arrivals ([floyd01]: 0.5 s).
        pub interval: Duration = Duration::from_millis(500), where positive;
        /// Lower bound of the adapted `max_p`. `none`: 0.01 ([floyd01]) or, on fast links, one
        /// packet of 1000 B in 100 ms (ns-2).
        pub bottom: Option<f64> = None, where fraction_if_given;
        /// Upper bound of the adapted `max_p` ([floyd01]: 0.5).
        pub top: f64 = 0.5, where positive_fraction;
        /// If true, the distance between marks is uniform between 1/p and 2/p packets (ns-2).
        /// Otherwise it is uniform between 1 and 1/p packets ([floyd93] §7).
        pub wait: bool = true;
        /// If true, ECN-capable packets are marked instead of dropped (RFC 3168 §5).
        pub ecn: bool = true;
        /// Probability, before spacing, from which ECN-capable packets are dropped as well (RFC
        /// 3168 §7). At 1 only packets beyond the whole profile are dropped; ns-2.35 has 0.1.
        pub mark_up_to: f64 = 1.0, where fraction;
        /// Capacity in bytes or packets. `none`: no limit of its own.
        pub capacity: Option<Capacity> = None;
    }
    check |red| {
        if let (Some(min), Some(max)) = (red.min_threshold, red.max_threshold)
            && max.packets(red.mean_packet) <= min.packets(red.mean_packet)
        {
            let message = format!("must be above `min_threshold`, which is {min}");
            return Err(Problem::new("max_threshold", message));
        }
        let bottom = red.bottom.unwrap_or(0.0);
        if bottom > red.top {
            return Err(Problem::new("bottom", format!("must not be above `top`, {}", red.top)));
        }
        if red.adaptive && !(bottom..=red.top).contains(&red.max_p) {
            let message = format!("must be from `bottom` to `top`, {bottom} to {}", red.top);
            return Err(Problem::new("max_p", message));
        }
        Ok(())
    }
}

crate::choices! {
    /// Unit of the average queue length.
    pub enum CountIn {
        /// Packets of any size.
        Packets = "packets",
        /// Bytes. The marking probability is then proportional to the packet size.
        Bytes = "bytes",
    }
}

/// Threshold of the average queue length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// Bytes, headers included.
    Bytes(Bytes),
    /// Packets; fractions are allowed.
    Packets(f64),
}

impl Threshold {
    /// Returns the threshold in packets of `mean` size.
    fn packets(self, mean: Bytes) -> f64 {
        match self {
            Self::Bytes(bytes) => bytes.bits() / mean.bits(),
            Self::Packets(packets) => packets,
        }
    }
}

impl std::fmt::Display for Threshold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Packets(packets) => write!(f, "{packets} packets"),
        }
    }
}

impl Parameter for Threshold {
    fn allowed() -> String {
        "a queue above zero in data or packets, such as \"20 KB\" or \"62.5 packets\"".to_owned()
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        let read = |text: &str| match text.strip_suffix("packets").or(text.strip_suffix("packet")) {
            Some(number) => number.trim().parse().ok().map(Self::Packets),
            None => parse_quantity(text, DATA_UNITS).map(|bytes| Self::Bytes(Bytes(bytes))),
        };
        let is_valid = |read: &Self| (f64::MIN_POSITIVE..1e18).contains(&read.packets(Bytes(1)));
        value.as_str().and_then(read).filter(is_valid).ok_or_else(|| wrong::<Self>(value))
    }
    fn show(&self) -> Value {
        self.to_string().into()
    }
    fn schema(_default: Option<&Self>, _definitions: &mut Definitions) -> Value {
        let number = r"\s*\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?";
        pattern(&format!(r"({number}\s*packets?|{})", quantity_form(DATA_UNITS)))
    }
}

impl QueueKind for Config {
    fn build(&self, scale: LinkScale) -> PortQueue {
        PortQueue::OnArrival(Box::new(self.build_red(scale)))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }

    fn marks(&self) -> bool {
        self.ecn
    }
}

impl Config {
    fn build_red(&self, scale: LinkScale) -> Red {
        let rate = scale.rate;
        let mean_packet = self.mean_packet.0 as f64;
        let packets_per_second = rate.bps() / self.mean_packet.bits();
        let weight = self.weight.unwrap_or_else(|| {
            let memory = 10.0 * self.rtt.seconds() * packets_per_second;
            -(-1.0 / memory).exp_m1()
        });
        let adaptation = Adaptation {
            bottom: self.bottom.unwrap_or_else(|| (80_000.0 / rate.bps()).min(0.01)),
            top: self.top,
            interval: self.interval,
            next: Time::ZERO + self.interval,
        };
        Red {
            profile: self.profile(packets_per_second),
            adaptation: self.adaptive.then_some(adaptation),
            average: 0.0,
            weight,
            rate,
            decay_per_second: -(-weight).ln_1p() * packets_per_second,
            last_size: Bytes::ZERO,
            mean_packet,
            count_in: self.count_in,
            count: 0.0,
            spacing: if self.wait { 1.0 } else { 0.0 },
            marks_below: if self.ecn { self.mark_up_to } else { 0.0 },
            capacity: scale.limit(self.capacity),
        }
    }

    /// Returns the profile for a link that carries `packets_per_second`.
    fn profile(&self, packets_per_second: f64) -> RedProfile {
        let packets = |threshold: Option<Threshold>| Some(threshold?.packets(self.mean_packet));
        let (min, max) = (packets(self.min_threshold), packets(self.max_threshold));
        let target = self.target_delay.seconds() * packets_per_second;
        let min = min.or(max.map(|max| max / 3.0)).unwrap_or((target / 2.0).max(5.0));
        let max = max.unwrap_or(3.0 * min);
        RedProfile { min, max, max_p: self.max_p, gentle: self.gentle }
    }
}

/// Marking probability by average queue length.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RedProfile {
    min: f64,
    max: f64,
    max_p: f64,
    gentle: bool,
}

impl RedProfile {
    /// Returns the marking probability `p_b`.
    fn probability(&self, average: f64) -> f64 {
        let Self { min, max, max_p, gentle } = *self;
        if average < min {
            0.0
        } else if average < max {
            max_p * (average - min) / (max - min)
        } else if gentle && average < 2.0 * max {
            max_p + (1.0 - max_p) * (average - max) / max
        } else {
            1.0
        }
    }
}

/// Adaptation of `max_p` to the average queue length.
#[derive(Clone, Copy, Debug)]
struct Adaptation {
    bottom: f64,
    top: f64,
    interval: Duration,
    /// Earliest time of the next step.
    next: Time,
}

impl Adaptation {
    /// Adapts `max_p` if a step is due and the average is outside the target range ([floyd01]).
    fn step(&mut self, profile: &mut RedProfile, average: f64, now: Time) {
        if now < self.next {
            return;
        }
        let RedProfile { min, max, max_p, .. } = *profile;
        let margin = 0.4 * (max - min);
        profile.max_p = if average < min + margin && max_p > self.bottom {
            (0.9 * max_p).max(self.bottom)
        } else if average > max - margin && max_p < self.top {
            (max_p + (0.25 * max_p).min(0.01)).min(self.top)
        } else {
            return;
        };
        self.next = now + self.interval;
    }
}

/// State of one queue.
struct Red {
    profile: RedProfile,
    adaptation: Option<Adaptation>,
    average: f64,
    weight: f64,
    rate: Rate,
    /// Decay rate of the average while the link is idle.
    decay_per_second: f64,
    /// Size of the last enqueued packet. If the queue is empty, this packet departed last.
    last_size: Bytes,
    mean_packet: f64,
    count_in: CountIn,
    /// Packets since the last mark, or since the average exceeded `min` (`count` in [floyd93]).
    count: f64,
    /// Minimum distance between marks, in units of 1/p.
    spacing: f64,
    /// Probability below which ECN-capable packets are marked instead of dropped.
    marks_below: f64,
    capacity: Option<Limit>,
}

impl Red {
    /// Returns a size in packets of mean size.
    fn size_in_packets(&self, packets: u32, bytes: u64) -> f64 {
        match self.count_in {
            CountIn::Packets => f64::from(packets),
            CountIn::Bytes => bytes as f64 / self.mean_packet,
        }
    }

    /// Updates the average. Idle time counts as samples of an empty queue, one per packet that
    /// could have been transmitted.
    fn sample(&mut self, state: &QueueState) {
        if state.backlog.packets == 0 {
            let idle = state.now.since(state.last_departure + self.rate.transmit(self.last_size));
            if idle > Duration::ZERO {
                self.average *= (-self.decay_per_second * idle.seconds()).exp();
            }
        }
        let queue = self.size_in_packets(state.backlog.packets, state.backlog.bytes);
        self.average += self.weight * (queue - self.average);
    }

    /// Returns true if a packet of `size` mean sizes is selected for marking, at one in 1 /
    /// `probability` packets.
    fn is_selected(&mut self, probability: f64, size: f64, random: &mut Random) -> bool {
        self.count += size;
        // Rest of the interval in which the next mark is placed, in units of 1 / probability.
        let left = 1.0 + self.spacing - self.count * probability;
        let is_due = left <= 0.0 || probability >= 1.0;
        let may_mark = left <= 1.0;
        is_due || (may_mark && random.uniform() < probability / left * size)
    }

    fn decide(&mut self, packet: &Packet, state: &QueueState, random: &mut Random) -> Verdict {
        if self.capacity.is_some_and(|capacity| !capacity.fits(state.backlog, packet.bytes)) {
            self.count = 0.0;
            return Verdict::Drop;
        }
        if self.average < self.profile.min || state.backlog.packets < 2 {
            self.count = 0.0;
            return Verdict::Accept;
        }
        let probability = self.profile.probability(self.average);
        let size = self.size_in_packets(1, u64::from(packet.bytes));
        if !self.is_selected(probability, size, random) {
            return Verdict::Accept;
        }
        self.count = 0.0;
        if probability < self.marks_below && packet.flags.has(Flags::ECN_CAPABLE) {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }
}

impl Admission for Red {
    fn admit(&mut self, packet: &Packet, state: &QueueState, random: &mut Random) -> Verdict {
        self.sample(state);
        if let Some(adaptation) = &mut self.adaptation {
            adaptation.step(&mut self.profile, self.average, state.now);
        }
        let verdict = self.decide(packet, state, random);
        if verdict != Verdict::Drop {
            self.last_size = Bytes(u64::from(packet.bytes));
        }
        verdict
    }
}

#[cfg(test)]
mod tests;

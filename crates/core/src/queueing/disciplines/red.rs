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
mod tests {
    use serde_json::json;

    use super::*;
    use crate::base::schema::defaults;
    use crate::model::packet::{Format, Kind};
    use crate::queueing::blocks::fixture::SCALE;
    use crate::queueing::disciplines::Backlog;

    const RATE: Rate = Rate::from_mbps(200);
    /// Transmission time of a packet of mean size at this rate.
    const PACKET_TIME: Duration = Duration::from_micros(40);

    fn red(change: &Value) -> Red {
        Config::read(change).unwrap().build_red(LinkScale { rate: RATE, ..SCALE })
    }

    fn packet(bytes: u16) -> Packet {
        let packet = defaults::<Format>().control(Kind::Data, 0, Time::ZERO);
        Packet { bytes, flags: Flags::ECN_CAPABLE, ..packet }
    }

    /// State that a packet finds while the queue does not become empty.
    fn backlogged(packets: u32, now: Time) -> QueueState {
        let bytes = 1000 * u64::from(packets);
        QueueState { now, backlog: Backlog { bytes, packets }, last_departure: now }
    }

    /// Returns the next verdict at time zero with `packets` as average and instantaneous queue
    /// length.
    fn verdict_at(red: &mut Red, packets: u32, bytes: u16, random: &mut Random) -> Verdict {
        red.average = f64::from(packets);
        red.admit(&packet(bytes), &backlogged(packets, Time::ZERO), random)
    }

    /// Returns many distances between marks, in packets.
    fn gaps(change: &Value, packets: u32) -> Vec<f64> {
        let (mut red, mut random) = (red(change), Random::new(1, "gaps"));
        let mut gap = || {
            let mut distance = 1.0;
            while verdict_at(&mut red, packets, 1000, &mut random) == Verdict::Accept {
                distance += 1.0;
            }
            distance
        };
        gap();
        std::iter::repeat_with(gap).take(20_000).collect()
    }

    fn close(value: f64, expected: f64, tolerance: f64) {
        let error = (value / expected - 1.0).abs();
        assert!(error <= tolerance, "{value} is {error} off {expected}");
    }

    #[test]
    fn marks_have_the_configured_probability_and_uniform_spacing() {
        for wait in [false, true] {
            let change = json!({
                "min_threshold": "50 packets", "max_threshold": "150 packets", "wait": wait,
            });
            for (average, p) in [(60, 0.01_f64), (70, 0.02), (100, 0.05), (225, 0.55)] {
                let mut gaps = gaps(&change, average);
                gaps.sort_by(f64::total_cmp);
                let from = if wait { (1.0 / p).ceil() } else { 1.0 };
                let beyond = if wait { 2.0 / p } else { 1.0 / p };
                assert!(gaps[0] >= from && gaps[gaps.len() - 1] <= beyond.ceil(), "{average}");
                if p < 0.1 {
                    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
                    close(mean, if wait { 1.5 / p - 0.5 } else { 0.5 / p }, 0.03);
                    let span = beyond - from;
                    for quarter in 1..4 {
                        let share = f64::from(quarter) / 4.0;
                        let found = gaps[(share * gaps.len() as f64) as usize];
                        let off = (found - from - share * span).abs();
                        assert!(off <= 0.02 * span + 1.0, "{average}, {wait}: {found} at {share}");
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_is_marked_below_min_threshold_and_everything_is_dropped_beyond_the_profile() {
        let (mut red, mut random) = (red(&json!({ "count_in": "bytes" })), Random::new(1, "ends"));
        for _ in 0..1000 {
            assert_eq!(verdict_at(&mut red, 62, 1000, &mut random), Verdict::Accept);
            assert_eq!(verdict_at(&mut red, 376, 40, &mut random), Verdict::Drop);
        }
        // No early drop while fewer than two packets are queued.
        red.average = 400.0;
        assert_eq!(
            red.admit(&packet(40), &backlogged(1, Time::ZERO), &mut random),
            Verdict::Accept
        );
    }

    #[test]
    fn the_gentle_profile_rises_to_one_at_twice_max_threshold() {
        let profile = |gentle| RedProfile { min: 50.0, max: 150.0, max_p: 0.1, gentle };
        let at = |gentle, average| (1e6 * profile(gentle).probability(average)).round() / 1e6;
        let averages = [49.9, 50.0, 100.0, 149.999, 150.0, 225.0, 300.0];
        let rising = averages.map(|average| at(true, average).to_string());
        assert_eq!(rising, ["0", "0", "0.05", "0.099999", "0.1", "0.55", "1"]);
        let jumping = averages.map(|average| at(false, average).to_string());
        assert_eq!(jumping, ["0", "0", "0.05", "0.099999", "1", "1", "1"]);
    }

    #[test]
    fn idle_time_counts_as_samples_of_an_empty_queue() {
        let change = json!({ "weight": 0.002 });
        let (mut idle, mut sampled) = (red(&change), red(&change));
        let mut random = Random::new(1, "idle");
        let left = Time::ZERO + PACKET_TIME * 10;
        for red in [&mut idle, &mut sampled] {
            red.average = 50.0;
            red.admit(&packet(500), &backlogged(3, left), &mut random);
        }
        let before = idle.average;
        assert!((before - (50.0 - 0.002 * 47.0)).abs() < 1e-12);
        // The last packet is in transmission for half a packet time. The link is then idle for 70
        // packet times.
        let ends = left + PACKET_TIME / 2;
        let empty = |now| QueueState { now, backlog: Backlog::default(), last_departure: left };
        idle.admit(&packet(1000), &empty(ends + PACKET_TIME * 70), &mut random);
        for _ in 0..=70 {
            sampled.admit(&packet(500), &empty(ends), &mut random);
        }
        close(idle.average, sampled.average, 1e-12);
        close(idle.average, before * 0.998_f64.powi(71), 1e-12);
    }

    #[test]
    fn automatic_parameters_equal_those_of_ns_2() {
        // Values of ns-2.35 at 200 Mb/s, 50 ms of propagation delay and packets of 1000 B.
        let change = json!({ "adaptive": true, "rtt": "150.12 ms" });
        let Red { profile, weight, adaptation, .. } = red(&change);
        assert_eq!(
            (profile.min.to_string(), profile.max.to_string()),
            ("62.5".into(), "187.5".into())
        );
        assert_eq!(format!("{weight:.2e}"), "2.66e-5");
        assert_eq!(adaptation.unwrap().bottom.to_string(), "0.0004");
        // On a slow link min is at least five packets, and bottom at most 0.01.
        let slow = LinkScale { rate: Rate::from_mbps(1), ..SCALE };
        let slow = Config::read(&change).unwrap().build_red(slow);
        assert_eq!((slow.profile.min, slow.profile.max), (5.0, 15.0));
        assert_eq!(slow.adaptation.unwrap().bottom.to_string(), "0.01");
        // One threshold determines the other.
        let upper = red(&json!({ "max_threshold": "30 KB" })).profile;
        assert_eq!((upper.min, upper.max), (10.0, 30.0));
    }

    #[test]
    fn max_p_adapts_twice_a_second_within_its_bounds() {
        let change = json!({
            "min_threshold": "50 packets", "max_threshold": "150 packets", "weight": 1.0,
            "adaptive": true, "bottom": 0.085, "top": 0.13,
        });
        let (mut red, mut random) = (red(&change), Random::new(1, "adapts"));
        let mut after = |packets, milliseconds| {
            let now = Time::ZERO + Duration::from_millis(milliseconds);
            red.admit(&packet(1000), &backlogged(packets, now), &mut random);
            format!("{:.6}", red.profile.max_p)
        };
        // The target range is 90 to 110 packets.
        let expected = [
            (111, 499, "0.100000"),
            (111, 500, "0.110000"),
            (111, 999, "0.110000"),
            (111, 1000, "0.120000"),
            (110, 1700, "0.120000"),
            (90, 1900, "0.120000"),
            (111, 1901, "0.130000"),
            (111, 2500, "0.130000"),
            (89, 2600, "0.117000"),
            (89, 3000, "0.117000"),
            (89, 3100, "0.105300"),
            (89, 9000, "0.094770"),
            (89, 9500, "0.085293"),
            (0, 10_000, "0.085000"),
            (0, 10_500, "0.085000"),
        ];
        for (packets, milliseconds, max_p) in expected {
            assert_eq!(after(packets, milliseconds), max_p, "{milliseconds} ms");
        }
    }

    #[test]
    fn a_small_max_p_increases_by_a_quarter() {
        let mut profile = RedProfile { min: 50.0, max: 150.0, max_p: 0.02, gentle: true };
        let interval = Duration::from_millis(500);
        let mut adaptation = Adaptation { bottom: 0.01, top: 0.5, interval, next: Time::ZERO };
        adaptation.step(&mut profile, 120.0, Time::ZERO);
        close(profile.max_p, 0.025, 1e-12);
    }

    #[test]
    fn selected_packets_are_marked_if_allowed_and_otherwise_dropped() {
        let verdict_of = |change: &Value, packets, flags| {
            let mut change = change.clone();
            change["min_threshold"] = json!("50 packets");
            change["max_threshold"] = json!("150 packets");
            let (mut red, mut random) = (red(&change), Random::new(1, "chosen"));
            let packet = Packet { flags, ..packet(1000) };
            let mut verdict = || {
                red.average = f64::from(packets);
                red.admit(&packet, &backlogged(packets, Time::ZERO), &mut random)
            };
            std::iter::repeat_with(&mut verdict).find(|v| *v != Verdict::Accept).unwrap()
        };
        let ns_2 = json!({ "mark_up_to": 0.1 });
        // The probability is 0.099 at 149 packets, 0.106 at 151 and 0.994 at 299.
        for (change, packets, expected) in [
            (json!({}), 299, Verdict::Mark),
            (json!({}), 300, Verdict::Drop),
            (json!({ "ecn": false }), 60, Verdict::Drop),
            (ns_2.clone(), 149, Verdict::Mark),
            (ns_2, 151, Verdict::Drop),
        ] {
            assert_eq!(
                verdict_of(&change, packets, Flags::ECN_CAPABLE),
                expected,
                "{change} {packets}"
            );
            assert_eq!(
                verdict_of(&change, packets, Flags::NONE),
                Verdict::Drop,
                "{change} {packets}"
            );
        }
    }

    #[test]
    fn with_bytes_as_unit_larger_packets_are_marked_more_often() {
        let change = json!({
            "min_threshold": "50 KB", "max_threshold": "150 KB", "count_in": "bytes", "wait": false,
        });
        let (mut red, mut random) = (red(&change), Random::new(1, "bytes"));
        let mut marks = [0.0, 0.0];
        for i in 0..2_000_000 {
            // Sizes are random, since alternating sizes would synchronise with the spacing.
            let is_large = usize::from(random.below(2) == 0);
            let bytes = [500, 1500][is_large];
            let backlog = Backlog { bytes: 55_000, packets: 7 + i % 2 };
            let state = QueueState { backlog, ..backlogged(0, Time::ZERO) };
            red.average = 55.0;
            let verdict = red.admit(&packet(bytes), &state, &mut random);
            marks[is_large] += f64::from(u8::from(verdict != Verdict::Accept));
            assert!((red.average - 55.0).abs() < 1e-9, "{}", red.average);
        }
        close(marks[1] / marks[0], 3.0, 0.05);
        // The probability per mean packet is about that of counting in packets.
        close((marks[0] + marks[1]) / 2_000_000.0, 2.0 * 0.005, 0.05);
    }

    #[test]
    fn a_full_queue_drops_at_any_average() {
        let (mut red, mut random) =
            (red(&json!({ "capacity": "4 packets" })), Random::new(1, "full"));
        let verdict = |red: &mut Red, packets, random: &mut Random| {
            red.admit(&packet(1000), &backlogged(packets, Time::ZERO), random)
        };
        assert_eq!(verdict(&mut red, 3, &mut random), Verdict::Accept);
        assert_eq!(verdict(&mut red, 4, &mut random), Verdict::Drop);
    }

    #[test]
    fn thresholds_may_be_fractions_of_packets() {
        for (text, packets) in [("62.5 packets", 62.5), ("1 packet", 1.0), ("20.5 KB", 20.5)] {
            let threshold = Threshold::read(&json!(text)).unwrap();
            assert_eq!(
                (threshold.packets(Bytes(1000)), threshold.show()),
                (packets, { json!(text.replace("1 packet", "1 packets")) })
            );
        }
        for wrong in
            ["0 packets", "-1 packets", "NaN packets", "inf packets", "5", "0 B", "packets"]
        {
            assert!(Threshold::read(&json!(wrong)).is_err(), "{wrong}");
        }
    }
}

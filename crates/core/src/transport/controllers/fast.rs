//! FAST: a window that keeps alpha packets of each flow in queues ([fast04], [fast06]).
//!
//! [timely15] compares with FAST*, the same law over TIMELY's segments. In equilibrium `x_i q = alpha_i`,
//! with `x_i` the flow's rate and `q` its queueing delay: a shared queue holds the sum of the alphas,
//! whatever the RTTs, and rates are proportionally fair with weights alpha. A flow that starts behind a
//! standing queue overestimates its base RTT and gets a larger share.
//!
//! Left out: pacing of window changes over an RTT ([fast06]).
//!
//! Our reading of FAST*: each completed segment gives one RTT sample without the segment's serialisation
//! delay, and the rate is the window over that RTT. So feedback is delayed by the time of a segment. Unless
//! that is short compared with the queueing delay (alpha large against a segment), rates oscillate and the
//! link idles at times.

use super::timely::{SegmentRate, Segments};
use super::{
    Ack, Allowance, CachedRate, CongestionSignal, Controller, Loss, Mechanism, Path, Reliability,
    Transport,
};
use crate::base::schema::{positive, positive_fraction, positive_if_given};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::packet::Format;

crate::parameters! {
    /// FAST TCP: keeps alpha packets of each flow in queues, by measuring the queueing delay ([fast04],
    /// [fast06]); with `segments` it is FAST* of [timely15], which paces.
    pub struct Config {
        /// alpha, the number of packets that a flow keeps in queues (own choice: the sources set it by
        /// the capacity of their links, up to some thousands).
        pub alpha: f64 = 20.0, where positive;
        /// gamma, the fraction of the distance to its target that the window moves in one update
        /// ([fast06]: up to 1; authors' simulator: 0.5).
        pub gamma: f64 = 0.5, where positive_fraction;
        /// Period of window updates (none: every other RTT, so that an update has taken effect before
        /// the next; [fast04]'s prototype: 20 ms).
        pub period: Option<Duration> = None, where positive_if_given;
        /// Multiplicative increase: the window doubles while the minimum queueing delay of a period is
        /// at most this (none: never). Deviation: [fast06] requires a mean delay of 0, but packets sent
        /// back to back always delay each other.
        pub multiplicative_below: Option<Duration> = Some(Duration::ZERO);
        /// Initial window, in packets (RFC 6928: 10). FAST* starts at a rate instead.
        pub initial_window: u32 = 10, where positive;
        /// Maximum window, in packets (none: 1 GiB, the largest receive window of TCP, RFC 7323 §2.3).
        pub max_window: Option<u32> = None, where positive_if_given;
        /// FAST*: segments and their pacing (none: a window without pacing).
        pub segments: Option<Segments> = None;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::selective_repeat();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let law = FastLaw::new(self, path);
        let Some(segments) = &self.segments else {
            return Box::new(WindowFast {
                law,
                packet: path.format.payload.0 as f64,
                window: f64::from(self.initial_window),
            });
        };
        // The gradient is not used.
        let control = SegmentRate::new(segments, 1.0, path.base_rtt, path);
        let packet_bits = path.format.on_wire(path.format.payload).bits();
        Box::new(PacedFast { law, control, packet_bits, window: None })
    }

    fn mechanism(&self, format: &Format) -> Mechanism {
        match &self.segments {
            None => Mechanism::plain(&self.reliability),
            Some(segments) => segments.mechanism(&self.reliability, format),
        }
    }

    fn takes_initial_rate(&self) -> bool {
        self.segments.is_some()
    }

    fn segment_size(&self) -> Option<Bytes> {
        self.segments.as_ref().map(|segments| segments.size)
    }
}

/// Replaces an RTT of 0, which a coarse clock may measure, in seconds.
const MIN_RTT: f64 = 1e-12;

/// Largest receive window of TCP, in bytes (RFC 7323 §2.3). Without a bound the window of a flow that it does
/// not limit would double without end.
const MAX_RECEIVE_WINDOW: f64 = (1_u64 << 30) as f64;

/// Update rule of the window; windows in packets, times in seconds.
struct FastLaw {
    config: Config,
    max_window: f64,
    /// None before the first sample.
    delays: Option<Delays>,
    /// The round ends when all segments before this one are acknowledged.
    round_end: u32,
    /// True in the second of the two rounds between updates.
    is_second_round: bool,
    /// Time of the next update, if updates have a period.
    next_update: Time,
}

/// RTTs of a flow, in seconds.
#[derive(Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "the names of the paper")]
struct Delays {
    /// Minimum of all samples (baseRTT).
    base_rtt: f64,
    /// Base RTT at the last update.
    previous_base_rtt: f64,
    /// Minimum since the last update.
    min_rtt: f64,
    /// Moving average.
    avg_rtt: f64,
}

impl FastLaw {
    fn new(config: &Config, path: &Path) -> Self {
        let largest = MAX_RECEIVE_WINDOW / path.format.payload.0 as f64;
        Self {
            config: config.clone(),
            max_window: config.max_window.map_or(largest, f64::from),
            delays: None,
            round_end: 0,
            is_second_round: false,
            next_update: path.start,
        }
    }

    /// Adds an RTT sample, in seconds, with its weight in the moving average.
    fn sample(&mut self, rtt: f64, weight: f64) {
        let rtt = rtt.max(MIN_RTT);
        let delays = self.delays.unwrap_or(Delays {
            base_rtt: rtt,
            previous_base_rtt: f64::INFINITY,
            min_rtt: rtt,
            avg_rtt: rtt,
        });
        self.delays = Some(Delays {
            base_rtt: delays.base_rtt.min(rtt),
            min_rtt: delays.min_rtt.min(rtt),
            avg_rtt: delays.avg_rtt + weight * (rtt - delays.avg_rtt),
            ..delays
        });
    }

    /// True if an update is due.
    fn is_update_due(&mut self, ack: &Ack) -> bool {
        if let Some(period) = self.config.period {
            let is_due = ack.now >= self.next_update;
            if is_due {
                self.next_update = ack.now + period;
            }
            return is_due;
        }
        if ack.cumulative < self.round_end {
            return false;
        }
        self.round_end = ack.next;
        self.is_second_round = !self.is_second_round;
        !self.is_second_round
    }

    /// Returns the updated window ([fast04], [fast06]).
    fn update(&mut self, window: f64) -> f64 {
        let Some(delays) = &mut self.delays else { return window };
        let Config { alpha, gamma, multiplicative_below, .. } = self.config;
        // If the base RTT has fallen since the last update, the queue is draining, but it is not
        // necessarily empty.
        let min_queueing_delay = delays.min_rtt - delays.previous_base_rtt;
        let is_empty = multiplicative_below
            .is_some_and(|below| (0.0..=below.seconds()).contains(&min_queueing_delay));
        (delays.previous_base_rtt, delays.min_rtt) = (delays.base_rtt, f64::INFINITY);
        let target = delays.base_rtt / delays.avg_rtt * window + alpha;
        let updated = (1.0 - gamma) * window + gamma * target;
        let doubled = 2.0 * window;
        let window = if is_empty { doubled } else { doubled.min(updated) };
        window.min(self.max_window)
    }

    fn gauges(&self, window_bytes: f64) -> Vec<(&'static str, f64)> {
        let (base_rtt, average) =
            self.delays.map_or((0.0, 0.0), |delays| (delays.base_rtt, delays.avg_rtt));
        vec![
            ("window_bytes", window_bytes),
            ("base_rtt_s", base_rtt),
            ("queueing_delay_s", (average - base_rtt).max(0.0)),
        ]
    }
}

/// FAST: controls a window.
struct WindowFast {
    law: FastLaw,
    /// Payload of a packet.
    packet: f64,
    window: f64,
}

impl Controller for WindowFast {
    fn on_ack(&mut self, ack: &Ack) {
        // [fast06]: a moving average over a third of a window, and at least over four packets.
        self.law.sample(ack.rtt.seconds(), (3.0 / self.window).min(0.25));
        if self.law.is_update_due(ack) && !ack.is_recovering {
            let updated = self.law.update(self.window).max(1.0);
            self.window = if ack.is_window_limited() { updated } else { updated.min(self.window) };
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window = match loss.signal {
            CongestionSignal::DetectedLoss | CongestionSignal::EcnMark => {
                (self.window / 2.0).max(1.0)
            }
            CongestionSignal::Timeout => 1.0,
        };
    }

    fn allowance(&self) -> Allowance {
        // Rounding up half a byte lets through a packet that the window just holds.
        Allowance::window(self.window * self.packet + 0.5)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.law.gauges(self.window * self.packet)
    }
}

/// FAST*: controls the rate of paced segments.
struct PacedFast {
    law: FastLaw,
    control: SegmentRate,
    /// Size of a full packet on the link.
    packet_bits: f64,
    /// None before the first segment.
    window: Option<f64>,
}

impl PacedFast {
    /// Sets the rate to one window per `rtt` seconds, and the window to the resulting rate.
    fn set_window(&mut self, window: f64, rtt: f64) {
        self.control.set_rate(window * self.packet_bits / rtt);
        self.window = Some(self.control.rate * rtt / self.packet_bits);
    }
}

impl Controller for PacedFast {
    fn on_ack(&mut self, ack: &Ack) {
        let Some(sample) = self.control.on_ack(ack) else { return };
        let rtt = sample.rtt.max(MIN_RTT);
        self.law.sample(rtt, 1.0);
        let mut window = self.window.unwrap_or(self.control.rate * rtt / self.packet_bits);
        if self.law.is_update_due(ack) {
            window = self.law.update(window);
        }
        self.set_window(window, rtt);
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.control.set_rate(self.control.rate / 2.0);
        self.window = self.window.map(|window| window / 2.0);
    }

    fn allowance(&self) -> Allowance {
        Allowance::rate(self.control.rate)
    }

    fn cached_rate(&self) -> Option<CachedRate> {
        self.control.cached_rate()
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let packet = self.packet_bits / 8.0;
        let mut gauges = vec![("rate_bps", self.control.rate)];
        gauges.extend(self.law.gauges(self.window.unwrap_or(0.0) * packet));
        gauges
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::base::schema::Parameter;
    use crate::transport::fixture::{ack, loss, path};

    fn fast(config: &Value) -> Box<dyn Controller> {
        Config::read(config).unwrap().controller(&path())
    }

    /// Plays ACKs with these RTTs in microseconds, each of which ends a round. Returns the windows in
    /// packets of 960 B.
    fn windows(flow: &mut dyn Controller, rtts_us: &[u64]) -> Vec<f64> {
        let mut windows = Vec::new();
        for (i, rtt) in (1..).zip(rtts_us) {
            let now = Time::ZERO + Duration::from_micros(1000 * i);
            flow.on_ack(&Ack { now, rtt: Duration::from_micros(*rtt), ..ack(i as u32, i as u32) });
            windows.push((flow.gauges()[0].1 / 0.96).round() / 1e3);
        }
        windows
    }

    #[test]
    fn every_other_rtt_the_window_moves_half_the_distance_to_its_target() {
        let mut flow = fast(&json!({ "alpha": 6, "initial_window": 40 }));
        // The average moves by 3/40 of the difference: 100, 103, 106, ... us. The first update is in the
        // second round.
        let average = 100.0 + 40.0 * 3.0 / 40.0;
        let first = f64::midpoint(40.0, 100.0 / average * 40.0 + 6.0);
        let rounded = (first * 1e3).round() / 1e3;
        assert_eq!(windows(&mut *flow, &[100, 140, 140]), [40.0, rounded, rounded]);
    }

    #[test]
    fn the_window_at_most_doubles_and_does_so_while_the_queue_is_empty() {
        let mut flow = fast(&json!({ "alpha": 100 }));
        assert_eq!(windows(&mut *flow, &[100, 100]), [10.0, 20.0], "60, but for the bound");
        // Far above alpha the window still doubles, if one packet has not queued.
        let mut flow = fast(&json!({ "alpha": 1, "initial_window": 64 }));
        assert_eq!(windows(&mut *flow, &[100, 100, 100, 130])[1..], [64.5, 64.5, 129.0]);
        let never = json!({ "alpha": 1, "initial_window": 64, "multiplicative_below": "none" });
        assert_eq!(windows(&mut *fast(&never), &[100; 4])[3..], [65.0]);
        // A falling base RTT does not indicate an empty queue.
        let mut flow = fast(&json!({ "alpha": 1, "initial_window": 64 }));
        let last = windows(&mut *flow, &[200, 200, 180, 160])[3];
        assert!(last < 65.0, "{last}");
    }

    #[test]
    fn the_update_period_and_the_maximum_window_are_parameters() {
        let config = json!({ "alpha": 4, "period": "3 ms", "max_window": 13, "initial_window": 8 });
        let steps = windows(&mut *fast(&config), &[100; 7]);
        assert_eq!(steps, [10.0, 10.0, 10.0, 13.0, 13.0, 13.0, 13.0]);
    }

    #[test]
    fn a_window_that_does_not_limit_the_flow_stays_below_1_gib() {
        // All RTTs are equal, so every other RTT the window doubles.
        let mut flow = fast(&json!({}));
        let last = *windows(&mut *flow, &vec![100; 3000]).last().unwrap();
        assert!((last * 960.0 / f64::from(1 << 30) - 1.0).abs() < 1e-6, "{last}");
        let mut paced = fast(&json!({ "segments": {} }));
        assert!(windows(&mut *paced, &vec![100; 3000]).iter().all(|window| window.is_finite()));
    }

    #[test]
    fn losses_halve_the_window_and_timeouts_reset_it_to_one_packet() {
        let mut flow = fast(&json!({ "initial_window": 20 }));
        let loss = |signal| loss(signal, Bytes(19_200));
        flow.on_loss(&loss(CongestionSignal::DetectedLoss));
        assert_eq!(flow.allowance().window, Bytes(9_600));
        flow.on_loss(&loss(CongestionSignal::Timeout));
        assert_eq!(flow.allowance().window, Bytes(960));
    }

    #[test]
    fn segments_pace_the_window_over_one_rtt() {
        // A segment is ten packets of 1000 B on the link, and starts at half of 1 Gb/s; in 100 us and a
        // packet's 8 us there are 6.25 packets at that rate.
        let segments = json!({ "size": "9600 B" });
        let config = Config::read(&json!({ "alpha": 5, "segments": segments })).unwrap();
        let mut flow = config.controller(&Path { other_flows: 1, ..path() });
        let mut rate = |rtt_us: u64| {
            let rtt = Duration::from_micros(rtt_us + 8);
            flow.on_ack(&Ack { bytes: Bytes(9_600), rtt, ..ack(10, 10) });
            flow.gauges()[0].1 / 1e6
        };
        assert!((rate(100) - 500.0).abs() < 1e-9);
        let window = 6.25 + 0.5 * (5.0 - 6.25 / 5.0);
        assert!((rate(125) - window * 8_000.0 / 125.0).abs() < 1e-9);
        assert!((rate(250) - window * 8_000.0 / 250.0).abs() < 1e-9, "one update in two RTTs");
        assert_eq!(config.mechanism(&path().format).acks.every, 10);
    }
}

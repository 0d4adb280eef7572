//! FAST: a window that keeps a given amount of each flow's data in queues.
//!
//! Sources: [fast04] and [fast06] for the window; [timely15] compares with FAST*, the same rule over
//! TIMELY's segments. In equilibrium `x_i q = alpha_i`, where `q` is the queueing delay on the flow's
//! way: flows share a queue of the sum of their alphas, whatever their round-trip times, and rates are
//! proportionally fair with weights alpha. A flow that starts behind a standing queue takes that for
//! part of its base round-trip time and gets more.
//!
//! Left out: the pacing that spreads a change of the window over a round trip ([fast06]).
//!
//! FAST* as read here: each completed segment gives one round-trip time, without the segment's own
//! serialisation, and the rate is the window divided by it. So feedback is late by a segment's time.
//! Unless that is short against the queueing delay, that is alpha large against a segment, rates swing
//! and the link idles at times.

use super::timely::{Engine, Segments};
use super::{
    Ack, Allowance, CachedPathState, CongestionSignal, Controller, Loss, Mechanism, Path,
    Reliability, Transport,
};
use crate::base::schema::{positive, positive_fraction, positive_if_given};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::packet::Format;

crate::parameters! {
    /// FAST TCP: keeps alpha packets of each flow in queues, by the queueing delay it sees ([fast04],
    /// [fast06]); with `segments` it is FAST* of [timely15], which paces.
    pub struct Config {
        /// alpha, the payload that a flow keeps in queues, in packets (own choice: the sources set it
        /// by the capacity of their links, up to some thousands).
        pub alpha: f64 = 20.0, where positive;
        /// gamma, the share of the way to its aim that the window goes in a step ([fast06]: up to 1;
        /// authors' simulator: 0.5).
        pub gamma: f64 = 0.5, where positive_fraction;
        /// How often the window is steered; none for every other round trip, so that a change has
        /// taken hold before the next ([fast04]'s prototype: 20 ms).
        pub period: Option<Duration> = None, where positive_if_given;
        /// While the least queueing delay of a period is no more than this, the window doubles
        /// instead; none for never. Deviation: [fast06] asks that no delay is seen on average; packets
        /// that leave together always delay each other.
        pub multiplicative_below: Option<Duration> = Some(Duration::ZERO);
        /// Initial window, in packets (RFC 6928: 10). FAST* starts at a rate instead.
        pub initial_window: u32 = 10, where positive;
        /// Most that the window may be, in packets; none for no bound.
        pub max_window: Option<u32> = None, where positive_if_given;
        /// FAST*: how data is cut into segments and paced; none for a window without pacing.
        pub segments: Option<Segments> = None;
        /// How data is made reliable.
        pub reliability: Reliability = Reliability::selective_repeat();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let law = Law::new(self, path.start);
        let Some(segments) = &self.segments else {
            return Box::new(Windowed {
                law,
                packet: path.format.payload.0 as f64,
                window: f64::from(self.initial_window),
            });
        };
        // Its gradient is not used.
        let engine = Engine::new(segments, 1.0, path.base_rtt, path);
        let packet_bits = path.format.on_wire(path.format.payload).bits();
        Box::new(Paced { law, engine, packet_bits, window: None })
    }

    fn mechanism(&self, format: &Format) -> Mechanism {
        match &self.segments {
            None => Mechanism::plain(&self.reliability),
            Some(segments) => segments.mechanism(&self.reliability, format),
        }
    }

    fn segment(&self) -> Option<Bytes> {
        self.segments.as_ref().map(|segments| segments.size)
    }
}

/// What a round-trip time of nothing, which a poor clock may measure, is taken for, in seconds.
const LEAST_RTT: f64 = 1e-12;

/// When to make a step and how long it is; windows in packets, times in seconds.
struct Law {
    config: Config,
    most: f64,
    /// Since the first sample.
    delays: Option<Delays>,
    /// This round trip ends when everything before this segment is acknowledged.
    round_ends: u32,
    /// In the second of the two round trips between steps.
    is_second: bool,
    /// When the next step is due, if steps have a period.
    next_step: Time,
}

/// The round-trip times of a flow, in seconds.
#[derive(Clone, Copy)]
struct Delays {
    /// Least ever seen.
    base: f64,
    /// The same when the last step was made.
    known_base: f64,
    /// Least since the last step.
    least: f64,
    /// Moving average.
    average: f64,
}

impl Law {
    fn new(config: &Config, start: Time) -> Self {
        Self {
            config: config.clone(),
            most: config.max_window.map_or(f64::INFINITY, f64::from),
            delays: None,
            round_ends: 0,
            is_second: false,
            next_step: start,
        }
    }

    /// Takes in a round-trip time in seconds, with its weight in the average.
    fn sample(&mut self, rtt: f64, weight: f64) {
        let rtt = rtt.max(LEAST_RTT);
        let seen = self.delays.unwrap_or(Delays {
            base: rtt,
            known_base: f64::INFINITY,
            least: rtt,
            average: rtt,
        });
        self.delays = Some(Delays {
            base: seen.base.min(rtt),
            least: seen.least.min(rtt),
            average: seen.average + weight * (rtt - seen.average),
            ..seen
        });
    }

    /// Whether the next step is due.
    fn is_due(&mut self, ack: &Ack) -> bool {
        if let Some(period) = self.config.period {
            let is_due = ack.now >= self.next_step;
            if is_due {
                self.next_step = ack.now + period;
            }
            return is_due;
        }
        if ack.cumulative < self.round_ends {
            return false;
        }
        self.round_ends = ack.next;
        self.is_second = !self.is_second;
        !self.is_second
    }

    /// The window after a step from `window` ([fast04], [fast06]).
    fn step(&mut self, window: f64) -> f64 {
        let Some(delays) = &mut self.delays else { return window };
        let Config { alpha, gamma, multiplicative_below, .. } = self.config;
        // If the base has fallen since the last step the queue is falling, which does not say that it
        // is empty.
        let least_delay = delays.least - delays.known_base;
        let is_empty = multiplicative_below
            .is_some_and(|below| (0.0..=below.seconds()).contains(&least_delay));
        (delays.known_base, delays.least) = (delays.base, f64::INFINITY);
        let aim = delays.base / delays.average * window + alpha;
        let steered = (1.0 - gamma) * window + gamma * aim;
        let doubled = 2.0 * window;
        let stepped = if is_empty { doubled } else { doubled.min(steered) };
        stepped.min(self.most)
    }

    fn gauges(&self, window_bytes: f64) -> Vec<(&'static str, f64)> {
        let (base, average) = self.delays.map_or((0.0, 0.0), |seen| (seen.base, seen.average));
        vec![
            ("window_bytes", window_bytes),
            ("base_rtt_s", base),
            ("queueing_delay_s", (average - base).max(0.0)),
        ]
    }
}

/// FAST: a window.
struct Windowed {
    law: Law,
    /// Payload of a packet.
    packet: f64,
    window: f64,
}

impl Controller for Windowed {
    fn on_ack(&mut self, ack: &Ack) {
        // [fast06]: an average over a third of a window, and at least over four packets.
        self.law.sample(ack.rtt.seconds(), (3.0 / self.window).min(0.25));
        if self.law.is_due(ack) && !ack.is_recovering {
            self.window = self.law.step(self.window).max(1.0);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window = match loss.sign {
            CongestionSignal::Gap | CongestionSignal::Mark => (self.window / 2.0).max(1.0),
            CongestionSignal::Timeout => 1.0,
        };
    }

    fn allowance(&self) -> Allowance {
        // A packet that fits but for rounding fits.
        Allowance::window(self.window * self.packet + 0.5)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.law.gauges(self.window * self.packet)
    }
}

/// FAST*: the rate of paced segments.
struct Paced {
    law: Law,
    engine: Engine,
    /// A full packet on the wire.
    packet_bits: f64,
    /// Since the first segment.
    window: Option<f64>,
}

impl Paced {
    /// Sends a window in `rtt` seconds; what the bounds of the rate leave of the window.
    fn send(&mut self, window: f64, rtt: f64) {
        self.engine.set_rate(window * self.packet_bits / rtt);
        self.window = Some(self.engine.rate * rtt / self.packet_bits);
    }
}

impl Controller for Paced {
    fn on_ack(&mut self, ack: &Ack) {
        let Some(completion) = self.engine.complete(ack) else { return };
        let rtt = completion.rtt.max(LEAST_RTT);
        self.law.sample(rtt, 1.0);
        let mut window = self.window.unwrap_or(self.engine.rate * rtt / self.packet_bits);
        if self.law.is_due(ack) {
            window = self.law.step(window);
        }
        self.send(window, rtt);
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.engine.set_rate(self.engine.rate / 2.0);
        self.window = self.window.map(|window| window / 2.0);
    }

    fn allowance(&self) -> Allowance {
        Allowance::rate(self.engine.rate)
    }

    fn memo(&self) -> Option<CachedPathState> {
        self.engine.memo()
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let packet = self.packet_bits / 8.0;
        let mut gauges = vec![("rate_bps", self.engine.rate)];
        gauges.extend(self.law.gauges(self.window.unwrap_or(0.0) * packet));
        gauges
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::base::schema::Parameter;
    use crate::transport::fixture::{ack, path};

    fn fast(config: &Value) -> Box<dyn Controller> {
        Config::read(config).unwrap().controller(&path())
    }

    /// Packets of 960 B in the window after ACKs with these round-trip times in microseconds, each of which
    /// ends a round trip.
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
    fn every_other_round_trip_it_goes_half_the_way_to_its_aim() {
        let mut flow = fast(&json!({ "alpha": 6, "initial_window": 40 }));
        // The average moves by 3/40 of the difference: 100, 103, 106, ... us; the first step is made in
        // the second round trip.
        let average = 100.0 + 40.0 * 3.0 / 40.0;
        let first = f64::midpoint(40.0, 100.0 / average * 40.0 + 6.0);
        let rounded = (first * 1e3).round() / 1e3;
        assert_eq!(windows(&mut *flow, &[100, 140, 140]), [40.0, rounded, rounded]);
    }

    #[test]
    fn it_no_more_than_doubles_and_does_so_while_the_queue_is_seen_empty() {
        let mut flow = fast(&json!({ "alpha": 100 }));
        assert_eq!(windows(&mut *flow, &[100, 100]), [10.0, 20.0], "60, but for the bound");
        // Far above alpha it still doubles, if one packet has not waited.
        let mut flow = fast(&json!({ "alpha": 1, "initial_window": 64 }));
        assert_eq!(windows(&mut *flow, &[100, 100, 100, 130])[1..], [64.5, 64.5, 129.0]);
        let never = json!({ "alpha": 1, "initial_window": 64, "multiplicative_below": "none" });
        assert_eq!(windows(&mut *fast(&never), &[100; 4])[3..], [65.0]);
        // A base that falls is no sign of that.
        let mut flow = fast(&json!({ "alpha": 1, "initial_window": 64 }));
        let last = windows(&mut *flow, &[200, 200, 180, 160])[3];
        assert!(last < 65.0, "{last}");
    }

    #[test]
    fn it_can_be_told_how_often_to_step_and_how_far_the_window_goes() {
        let config = json!({ "alpha": 4, "period": "3 ms", "max_window": 13, "initial_window": 8 });
        let steps = windows(&mut *fast(&config), &[100; 7]);
        assert_eq!(steps, [10.0, 10.0, 10.0, 13.0, 13.0, 13.0, 13.0]);
    }

    #[test]
    fn losses_halve_and_time_outs_leave_a_packet() {
        let mut flow = fast(&json!({ "initial_window": 20 }));
        let loss = |sign| Loss { now: Time::ZERO, flight: Bytes(19_200), lost: Bytes::ZERO, sign };
        flow.on_loss(&loss(CongestionSignal::Gap));
        assert_eq!(flow.allowance().window, Bytes(9_600));
        flow.on_loss(&loss(CongestionSignal::Timeout));
        assert_eq!(flow.allowance().window, Bytes(960));
    }

    #[test]
    fn segments_pace_the_same_window_over_a_round_trip() {
        // A segment is ten packets of 1000 B on the wire, and starts at half of 1 Gb/s; 100 us and a
        // packet's 8 us are 6.25 packets at that rate.
        let segments = json!({ "size": "9600 B" });
        let config = Config::read(&json!({ "alpha": 5, "segments": segments })).unwrap();
        let mut flow = config.controller(&Path { others: 1, ..path() });
        let mut rate = |rtt_us: u64| {
            let rtt = Duration::from_micros(rtt_us + 8);
            flow.on_ack(&Ack { bytes: Bytes(9_600), rtt, ..ack(10, 10) });
            flow.gauges()[0].1 / 1e6
        };
        assert!((rate(100) - 500.0).abs() < 1e-9);
        let window = 6.25 + 0.5 * (5.0 - 6.25 / 5.0);
        assert!((rate(125) - window * 8_000.0 / 125.0).abs() < 1e-9);
        assert!((rate(250) - window * 8_000.0 / 250.0).abs() < 1e-9, "one step in two round trips");
        assert_eq!(config.mechanism(&path().format).ack_every, 10);
    }
}

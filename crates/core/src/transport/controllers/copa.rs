//! Copa: a window that follows a target rate, the inverse of the queueing delay.
//!
//! Source: [copa18] §2, and two implementations where that leaves something open: the authors'
//! simulator, and mvfst. Each flow aims at the rate `1 / (delta d)`, where `d` is the queueing delay
//! that it sees. So rates are equal, and each flow keeps about `1 / delta` packets in the queue, which
//! swings about that and is nearly empty every five round trips or so: then all flows see the wire's
//! round-trip time. If it does not empty, somebody else fills it, and delta is steered as TCP steers its
//! window.
//!
//! Copa flows alone may take each other for that where all they keep in the queue, `1 / delta` each, is
//! no less than what the path holds: then windows hardly hang on the delay, the queue no longer swings,
//! and every delta falls until packets are lost. `competitive = false` leaves delta where it is.
//!
//! As in [copa18] a loss by itself does nothing to the window. Left out: the authors' simulator reduces
//! it where losses are many.

use std::cmp::Reverse;

use super::{
    Ack, Allowance, CongestionSignal, Controller, Loss, Mechanism, Path, Reliability, Transport,
};
use crate::base::schema::positive;
use crate::base::units::{Duration, Rate, Time};
use crate::model::packet::Format;
use crate::transport::blocks::bbr::max_filter::MaxFilter;
use crate::transport::endpoint::rtt::smooth;

crate::parameters! {
    /// Copa: a window that goes towards the rate `1 / (delta d)`, with `d` the queueing delay, and is paced
    /// ([copa18]).
    pub struct Config {
        /// delta, the inverse of the packets that each flow keeps in queues on average ([copa18]: 0.5).
        pub delta: f64 = 0.5, where positive;
        /// Whether delta falls while others fill the queue ([copa18] §2.2: competitive mode).
        pub competitive: bool = true;
        /// How long the least round-trip time counts ([copa18]: 10 s).
        pub min_rtt_window: Duration = Duration::from_millis(10_000), where positive;
        /// Initial window, in packets, which is not paced (RFC 6928: 10).
        pub initial_window: u32 = 10, where positive;
        /// How data is made reliable.
        pub reliability: Reliability = Reliability::internet();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        Box::new(Copa {
            config: self.clone(),
            packet: path.format.payload.0 as f64,
            packet_bits: path.format.on_wire(path.format.payload).bits(),
            line_rate: path.line_rate,
            window: f64::from(self.initial_window),
            is_in_slow_start: true,
            velocity: Velocity::new(true, f64::from(self.initial_window)),
            delays: Delays::default(),
            seen: None,
            inverse_delta: 1.0 / self.delta,
            round_ends: 0,
            has_lost: false,
        })
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism::paced_window(&self.reliability)
    }
}

/// The window is no smaller, in packets (authors' simulator).
const LEAST_WINDOW: f64 = 2.0;

/// The velocity doubles once the window has gone on in the same direction for so many round trips.
const STEADY: u32 = 3;

/// The queue is nearly empty below this share of how far it has swung.
const NEARLY: f64 = 0.1;

/// The state of one flow.
struct Copa {
    config: Config,
    /// Payload of a packet, and all of it on the wire.
    packet: f64,
    packet_bits: f64,
    line_rate: Rate,
    /// In packets.
    window: f64,
    is_in_slow_start: bool,
    velocity: Velocity,
    delays: Delays,
    /// Since the first ACK.
    seen: Option<Seen>,
    /// 1 / delta.
    inverse_delta: f64,
    /// This round trip ends when this segment, the first that was sent in it, is acknowledged.
    round_ends: u32,
    /// Whether there was a loss in this round trip.
    has_lost: bool,
}

/// How fast the window moves.
#[derive(Clone, Copy)]
struct Velocity {
    /// In units of `1 / delta` packets a round trip.
    value: f64,
    /// Whether the window grew in the last round trip.
    is_upwards: bool,
    /// Round trips since it last turned.
    steady: u32,
    /// The window when the round trip began.
    window: f64,
}

impl Velocity {
    /// The window begins to move from here.
    fn new(is_upwards: bool, window: f64) -> Self {
        Self { value: 1.0, is_upwards, steady: 0, window }
    }

    /// A round trip is over, and the window is this now.
    fn turn(&mut self, window: f64) {
        let is_upwards = window > self.window;
        if is_upwards != self.is_upwards {
            *self = Self::new(is_upwards, window);
            return;
        }
        self.steady += 1;
        if self.steady >= STEADY {
            self.value *= 2.0;
        }
        self.window = window;
    }
}

/// The round-trip times that a flow remembers.
#[derive(Default)]
struct Delays {
    smoothed: Option<Duration>,
    longest: MaxFilter<Time, Reverse<Duration>>,
    standing: MaxFilter<Time, Reverse<Duration>>,
    recent: MaxFilter<Time, Reverse<Duration>>,
    most: MaxFilter<Time, Duration>,
}

/// What they say now.
#[derive(Clone, Copy)]
struct Seen {
    /// Least of a long time.
    least: Duration,
    /// Least of half a round trip.
    standing: Duration,
    /// Least of five round trips.
    recent: Duration,
    /// Most of four round trips.
    most: Duration,
}

impl Seen {
    /// Whether a flow of this window has seen the queue nearly empty of late. Own choice: a packet of each
    /// flow in it is still nearly empty, for where a few packets are all that waits, delays are not finer.
    fn has_emptied(&self, window: f64) -> bool {
        let swing = self.most.saturating_sub(self.least).seconds();
        let packet = self.standing.seconds() / window;
        self.recent.saturating_sub(self.least).seconds() <= (NEARLY * swing).max(packet)
    }
}

impl Delays {
    fn sample(&mut self, now: Time, rtt: Duration, long: Duration) -> Seen {
        let smoothed = smooth(self.smoothed, rtt);
        self.smoothed = Some(smoothed);
        let least = |of: &mut MaxFilter<_, _>, span| {
            of.add(now, Reverse(rtt), |then| now.since(then) > span);
            of.largest().map_or(rtt, |Reverse(least)| least)
        };
        self.most.add(now, rtt, |then| now.since(then) > smoothed * 4);
        Seen {
            least: least(&mut self.longest, long),
            standing: least(&mut self.standing, smoothed / 2),
            recent: least(&mut self.recent, smoothed * 5),
            most: self.most.largest().unwrap_or(rtt),
        }
    }
}

impl Copa {
    /// Once a round trip: the velocity, and 1 / delta.
    fn turn(&mut self, seen: &Seen) {
        if !self.is_in_slow_start {
            self.velocity.turn(self.window);
        }
        let friendly = 1.0 / self.config.delta;
        let is_alone = seen.has_emptied(self.window) || !self.config.competitive;
        // [copa18] §2.2: a packet more a round trip without loss.
        self.inverse_delta = match (is_alone, self.has_lost) {
            (true, _) => friendly,
            (false, true) => self.inverse_delta,
            (false, false) => self.inverse_delta + 1.0,
        };
        self.has_lost = false;
    }

    /// The window after so many packets have been acknowledged.
    fn step(&mut self, acked: f64, seen: &Seen) {
        let queueing = (seen.standing - seen.least).seconds();
        // window / standing <= 1 / (delta queueing), without divisions by 0.
        let is_below_target =
            self.window * queueing <= self.inverse_delta * seen.standing.seconds();
        if self.is_in_slow_start && is_below_target {
            self.window += acked;
            return;
        }
        // It does not set out against its direction at the velocity that it has reached (mvfst): it would be
        // gone before the round trip is over.
        let turns = is_below_target != self.velocity.is_upwards && self.velocity.value > 1.0;
        if self.is_in_slow_start || turns {
            self.is_in_slow_start = false;
            self.velocity = Velocity::new(is_below_target, self.window);
        }
        // Authors' simulator: the window no more than doubles in a round trip.
        let step = (self.velocity.value * self.inverse_delta / self.window).min(1.0) * acked;
        let moved = if is_below_target { self.window + step } else { self.window - step };
        self.window = moved.max(LEAST_WINDOW);
    }
}

impl Controller for Copa {
    fn on_ack(&mut self, ack: &Ack) {
        let seen = self.delays.sample(ack.now, ack.rtt, self.config.min_rtt_window);
        self.seen = Some(seen);
        if ack.cumulative > self.round_ends {
            self.round_ends = ack.next;
            self.turn(&seen);
        }
        self.step(ack.bytes.0 as f64 / self.packet, &seen);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.inverse_delta = (self.inverse_delta / 2.0).max(1.0 / self.config.delta);
        self.has_lost = true;
        match loss.sign {
            CongestionSignal::Gap | CongestionSignal::Mark => {}
            // Own choice: what is known of the path is out of date.
            CongestionSignal::Timeout => {
                self.window = LEAST_WINDOW;
                self.velocity = Velocity::new(true, self.window);
                self.is_in_slow_start = true;
            }
        }
    }

    fn allowance(&self) -> Allowance {
        // A packet that fits but for rounding fits.
        let window = Allowance::window(self.window * self.packet + 0.5);
        // [copa18] §2.1: twice as fast as the window needs, so that pacing holds nothing back.
        let rate = self.seen.map(|Seen { standing, .. }| {
            let rate = 2.0 * self.window * self.packet_bits / standing.seconds().max(1e-12);
            Rate::from_bps(rate).min(self.line_rate)
        });
        Allowance { rate, ..window }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let queueing = |seen: Seen| (seen.standing - seen.least).seconds();
        vec![
            ("window_bytes", self.window * self.packet),
            ("queueing_delay_s", self.seen.map_or(0.0, queueing)),
            ("velocity", self.velocity.value),
            ("delta", 1.0 / self.inverse_delta),
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::base::schema::Parameter;
    use crate::base::units::Bytes;
    use crate::transport::fixture::{ack, path};

    /// A flow of packets of 960 B, 1000 B on the wire, that has sent all that its window lets go.
    struct Flow {
        controller: Box<dyn Controller>,
        now: Time,
        acknowledged: u32,
    }

    fn copa(config: &Value) -> Flow {
        let controller = Config::read(config).unwrap().controller(&path());
        Flow { controller, now: Time::ZERO, acknowledged: 0 }
    }

    impl Flow {
        fn window(&self) -> f64 {
            self.controller.gauges()[0].1 / 960.0
        }

        fn gauge(&self, wanted: &str) -> f64 {
            let gauges = self.controller.gauges();
            gauges.into_iter().find(|(name, _)| *name == wanted).unwrap().1
        }

        /// A round trip of so many microseconds, in which all that is in flight is acknowledged, one by
        /// one, and what the window lets go follows. Returns the window.
        fn round(&mut self, rtt_us: u64) -> f64 {
            let rtt = Duration::from_micros(rtt_us);
            let packets = self.window() as u32;
            for _ in 0..packets {
                self.now = self.now + rtt / u64::from(packets);
                self.acknowledged += 1;
                let next = self.acknowledged - 1 + self.window() as u32;
                self.controller.on_ack(&Ack { now: self.now, rtt, ..ack(self.acknowledged, next) });
            }
            self.window()
        }

        fn lose(&mut self, sign: CongestionSignal) {
            self.controller.on_loss(&Loss {
                now: self.now,
                flight: Bytes(960),
                lost: Bytes::ZERO,
                sign,
            });
        }
    }

    fn assert_near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value} is not {expected}");
    }

    #[test]
    fn slow_start_doubles_until_the_rate_exceeds_its_target() {
        let mut flow = copa(&json!({}));
        assert_near(flow.round(100), 20.0, 1e-9);
        assert_near(flow.round(100), 40.0, 1e-9);
        // 40 packets in 110 us are more than 1 / (0.5 * 10 us), so it ends with the first step down; once all
        // of half a round trip is that long.
        let ended = flow.round(110);
        assert!(ended < 80.0, "{ended}");
        let down = flow.round(110);
        assert!(down < ended, "{down}");
        assert!(flow.round(100) < down + 40.0, "and it does not come back");
    }

    #[test]
    fn the_window_goes_towards_its_target_by_velocity_over_delta_a_round_trip() {
        for (delta, step) in [(0.5, 2.0), (0.1, 10.0)] {
            let mut flow = copa(&json!({ "delta": delta, "initial_window": 100 }));
            flow.round(100);
            flow.round(200);
            let before = flow.round(200);
            assert_near(before - flow.round(200), step, 0.05 * step);
        }
    }

    #[test]
    fn the_velocity_doubles_after_three_round_trips_in_one_direction_and_turns_back_to_one() {
        let mut flow = copa(&json!({ "initial_window": 1000, "competitive": false }));
        // Slow start ends within the second round trip, which counts.
        flow.round(100);
        flow.round(200);
        let velocities = [(); 6].map(|()| {
            flow.round(200);
            flow.gauge("velocity")
        });
        assert_eq!(velocities.to_vec(), [1.0, 1.0, 2.0, 4.0, 8.0, 16.0]);
        // The first step upwards is a slow one.
        flow.round(100);
        assert_near(flow.gauge("velocity"), 1.0, 0.0);
    }

    #[test]
    fn it_paces_at_twice_the_rate_of_its_window() {
        let mut flow = copa(&json!({ "initial_window": 3 }));
        assert_eq!(flow.controller.allowance().rate, None, "nothing is known yet");
        flow.round(100);
        // 6 packets of 8000 bits, twice in 100 us, are 960 Mb/s.
        assert_eq!(flow.controller.allowance().rate, Some(Rate::from_mbps(960)));
        flow.round(100);
        assert_eq!(flow.controller.allowance().rate, Some(Rate::from_gbps(1)), "the line's");
    }

    #[test]
    fn while_the_queue_never_empties_delta_falls_and_losses_raise_it() {
        let mut flow = copa(&json!({}));
        flow.round(100);
        let deltas = [(); 8].map(|()| {
            flow.round(300);
            1.0 / flow.gauge("delta")
        });
        assert_near(deltas[2], 2.0, 1e-9);
        assert_near(deltas[7] - deltas[6], 1.0, 1e-9);
        let before = deltas[7];
        flow.lose(CongestionSignal::Gap);
        assert_near(1.0 / flow.gauge("delta"), (before / 2.0).max(2.0), 1e-9);
        flow.round(100);
        flow.round(100);
        assert_near(flow.gauge("delta"), 0.5, 1e-9);
        let mut never = copa(&json!({ "competitive": false }));
        never.round(100);
        (0..20).for_each(|_| _ = never.round(300));
        assert_near(never.gauge("delta"), 0.5, 1e-9);
    }

    #[test]
    fn losses_leave_the_window_alone_and_time_outs_begin_again() {
        let mut flow = copa(&json!({ "initial_window": 20 }));
        flow.lose(CongestionSignal::Gap);
        assert_near(flow.window(), 20.0, 1e-9);
        flow.lose(CongestionSignal::Timeout);
        assert_near(flow.window(), 2.0, 1e-9);
        // In slow start.
        assert_near(flow.round(100), 4.0, 1e-9);
    }
}

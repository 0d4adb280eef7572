//! Copa: a window that follows a target rate, the inverse of the queueing delay ([copa18] §2).
//!
//! Where the paper is silent: the authors' simulator, and mvfst. The target rate of a flow is
//! `1 / (delta d_q)`, with `d_q` its queueing delay. So flows have equal rates, and each keeps about
//! `1 / delta` packets in the queue. The queue oscillates and is nearly empty about every five RTTs, so that
//! all flows measure the RTT of the path. If the queue does not empty, a buffer-filling flow shares the
//! bottleneck, and competitive mode adapts delta as TCP adapts its window.
//!
//! Copa flows alone may enter competitive mode if the data they keep in the queue, `1 / delta` packets each,
//! is at least the bandwidth-delay product: windows then hardly depend on the delay, the queue no longer
//! oscillates, and every delta falls until packets are lost. `competitive = false` keeps delta constant.
//!
//! As in [copa18] a loss alone does not change the window. Left out: the authors' simulator reduces the
//! window at a high loss rate.

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
    /// Copa: a paced window that follows the target rate `1 / (delta d_q)`, with `d_q` the queueing
    /// delay ([copa18]).
    pub struct Config {
        /// delta, the inverse of the mean number of packets that each flow keeps in queues ([copa18]:
        /// 0.5).
        pub delta: f64 = 0.5, where positive;
        /// If true, delta falls while buffer-filling flows share the queue (competitive mode,
        /// [copa18] §2.2).
        pub competitive: bool = true;
        /// Length of the minimum RTT filter ([copa18]: 10 s).
        pub min_rtt_window: Duration = Duration::from_millis(10_000), where positive;
        /// Initial window, in packets, sent without pacing (RFC 6928: 10).
        pub initial_window: u32 = 10, where positive;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::internet();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        Box::new(Copa {
            config: self.clone(),
            packet: path.format.payload.0 as f64,
            packet_bits: path.format.on_wire(path.format.payload).bits(),
            max_pacing_rate: path.max_pacing_rate,
            window: f64::from(self.initial_window),
            is_in_slow_start: true,
            velocity: Velocity::new(true, f64::from(self.initial_window)),
            filters: DelayFilters::default(),
            delays: None,
            inverse_delta: 1.0 / self.delta,
            round_start: path.start,
            has_loss: false,
        })
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism::paced_window(&self.reliability)
    }
}

/// Minimum window, in packets (authors' simulator).
const MIN_WINDOW: f64 = 2.0;

/// RTTs in one direction after which the velocity doubles.
const STEADY_ROUNDS: u32 = 3;

/// The queue is nearly empty below this fraction of its oscillation.
const NEARLY_EMPTY: f64 = 0.1;

/// State of one flow.
struct Copa {
    config: Config,
    /// Payload of a packet, and size of a full packet on the link.
    packet: f64,
    packet_bits: f64,
    max_pacing_rate: Rate,
    /// Congestion window, in packets.
    window: f64,
    is_in_slow_start: bool,
    velocity: Velocity,
    filters: DelayFilters,
    /// Delays at the last ACK.
    delays: Option<Delays>,
    /// 1 / delta.
    inverse_delta: f64,
    /// The round ends after the smoothed RTT.
    round_start: Time,
    /// True if there was a loss in this round.
    has_loss: bool,
}

/// Velocity of the window.
#[derive(Clone, Copy)]
struct Velocity {
    /// In units of `1 / delta` packets per RTT.
    value: f64,
    /// True if the window grew in the last round.
    is_up: bool,
    /// Rounds since the last change of direction.
    steady_rounds: u32,
    /// Window at the start of the round.
    window: f64,
}

impl Velocity {
    /// Velocity of 1 from this window on.
    fn new(is_up: bool, window: f64) -> Self {
        Self { value: 1.0, is_up, steady_rounds: 0, window }
    }

    /// Updates the velocity at the end of a round.
    fn end_round(&mut self, window: f64) {
        let is_up = window > self.window;
        if is_up != self.is_up {
            *self = Self::new(is_up, window);
            return;
        }
        self.steady_rounds += 1;
        if self.steady_rounds >= STEADY_ROUNDS {
            self.value *= 2.0;
        }
        self.window = window;
    }
}

/// Filters of the RTT.
#[derive(Default)]
struct DelayFilters {
    srtt: Option<Duration>,
    min_rtt: MaxFilter<Time, Reverse<Duration>>,
    standing: MaxFilter<Time, Reverse<Duration>>,
    recent: MaxFilter<Time, Reverse<Duration>>,
    max: MaxFilter<Time, Duration>,
}

/// Filtered RTTs at an ACK.
#[derive(Clone, Copy)]
struct Delays {
    /// Minimum over `min_rtt_window` (`RTT_min`).
    min: Duration,
    /// Minimum over half an RTT (`RTT_standing`).
    standing: Duration,
    /// Minimum over five RTTs.
    recent: Duration,
    /// Maximum over four RTTs.
    max: Duration,
}

impl Delays {
    /// True if the queue was nearly empty in the last five RTTs, for a flow of this window. Own choice: a
    /// queue of one packet per flow is nearly empty too, since delays of short queues are no finer.
    fn has_emptied(&self, window: f64) -> bool {
        let oscillation = self.max.saturating_sub(self.min).seconds();
        let packet = self.standing.seconds() / window;
        self.recent.saturating_sub(self.min).seconds() <= (NEARLY_EMPTY * oscillation).max(packet)
    }
}

impl DelayFilters {
    fn sample(&mut self, now: Time, rtt: Duration, min_rtt_window: Duration) -> Delays {
        let srtt = smooth(self.srtt, rtt);
        self.srtt = Some(srtt);
        let minimum = |filter: &mut MaxFilter<_, _>, span| {
            filter.add(now, Reverse(rtt), |time| now.since(time) > span);
            filter.max().map_or(rtt, |Reverse(rtt)| rtt)
        };
        self.max.add(now, rtt, |time| now.since(time) > srtt * 4);
        Delays {
            min: minimum(&mut self.min_rtt, min_rtt_window),
            standing: minimum(&mut self.standing, srtt / 2),
            recent: minimum(&mut self.recent, srtt * 5),
            max: self.max.max().unwrap_or(rtt),
        }
    }
}

impl Copa {
    /// Updates the velocity and delta at the end of a round.
    fn end_round(&mut self, delays: &Delays) {
        if !self.is_in_slow_start {
            self.velocity.end_round(self.window);
        }
        let default_mode = 1.0 / self.config.delta;
        let is_default_mode = delays.has_emptied(self.window) || !self.config.competitive;
        // [copa18] §2.2: one packet more per RTT without loss.
        self.inverse_delta = match (is_default_mode, self.has_loss) {
            (true, _) => default_mode,
            (false, true) => self.inverse_delta,
            (false, false) => self.inverse_delta + 1.0,
        };
        self.has_loss = false;
    }

    /// Changes the window for the packets that an ACK acknowledges.
    fn step(&mut self, ack: &Ack, delays: &Delays) {
        let acked = ack.bytes.0 as f64 / self.packet;
        let queueing = (delays.standing - delays.min).seconds();
        // window / RTT_standing <= 1 / (delta d_q), without division by 0.
        let is_below_target =
            self.window * queueing <= self.inverse_delta * delays.standing.seconds();
        if self.is_in_slow_start && is_below_target {
            if ack.permits_growth(self.window * self.packet, true) {
                self.window += acked;
            }
            return;
        }
        // A change of direction starts at velocity 1 (mvfst): at a high velocity the window would be gone
        // before the round is over.
        let reverses = is_below_target != self.velocity.is_up && self.velocity.value > 1.0;
        if self.is_in_slow_start || reverses {
            self.is_in_slow_start = false;
            self.velocity = Velocity::new(is_below_target, self.window);
        }
        // Authors' simulator: the window at most doubles in an RTT.
        let step = (self.velocity.value * self.inverse_delta / self.window).min(1.0) * acked;
        let increase = if ack.is_window_limited() { step } else { 0.0 };
        let window = if is_below_target { self.window + increase } else { self.window - step };
        self.window = window.max(MIN_WINDOW);
    }
}

impl Controller for Copa {
    fn on_ack(&mut self, ack: &Ack) {
        let delays = self.filters.sample(ack.now, ack.rtt, self.config.min_rtt_window);
        self.delays = Some(delays);
        // mvfst (`checkAndUpdateDirection`): a round is a time. The cumulative acknowledgement stands still
        // while losses are repaired.
        if self.filters.srtt.is_some_and(|srtt| ack.now.since(self.round_start) >= srtt) {
            self.round_start = ack.now;
            self.end_round(&delays);
        }
        self.step(ack, &delays);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.inverse_delta = (self.inverse_delta / 2.0).max(1.0 / self.config.delta);
        self.has_loss = true;
        match loss.signal {
            CongestionSignal::DetectedLoss | CongestionSignal::EcnMark => {}
            // Own choice: the path may have changed.
            CongestionSignal::Timeout => {
                self.window = MIN_WINDOW;
                self.velocity = Velocity::new(true, self.window);
                self.is_in_slow_start = true;
            }
        }
    }

    fn allowance(&self) -> Allowance {
        // Rounding up half a byte lets through a packet that the window just holds.
        let window = Allowance::window(self.window * self.packet + 0.5);
        // [copa18] §2.1: twice the rate of the window, so that pacing does not delay packets.
        let rate = self.delays.map(|Delays { standing, .. }| {
            let rate = 2.0 * self.window * self.packet_bits / standing.seconds().max(1e-12);
            Rate::from_bps(rate).min(self.max_pacing_rate)
        });
        Allowance { rate, ..window }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let queueing = |delays: Delays| (delays.standing - delays.min).seconds();
        vec![
            ("window_bytes", self.window * self.packet),
            ("queueing_delay_s", self.delays.map_or(0.0, queueing)),
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
    use crate::transport::fixture::{ack, loss, path};

    /// Flow of packets of 960 B, 1000 B on the link, that always fills its window.
    struct Flow {
        controller: Box<dyn Controller>,
        now: Time,
        acknowledged: u32,
        /// If true, the first packet is lost, and only SACKs acknowledge others.
        is_missing_one: bool,
    }

    fn copa(config: &Value) -> Flow {
        let controller = Config::read(config).unwrap().controller(&path());
        Flow { controller, now: Time::ZERO, acknowledged: 0, is_missing_one: false }
    }

    impl Flow {
        fn window(&self) -> f64 {
            self.controller.gauges()[0].1 / 960.0
        }

        fn gauge(&self, gauge_name: &str) -> f64 {
            let gauges = self.controller.gauges();
            gauges.into_iter().find(|(name, _)| *name == gauge_name).unwrap().1
        }

        /// Plays one round with this RTT: all packets in flight are acknowledged one by one, and the
        /// window is filled again. Returns the window.
        fn round(&mut self, rtt_us: u64) -> f64 {
            let rtt = Duration::from_micros(rtt_us);
            let packets = self.window() as u32;
            for _ in 0..packets {
                self.now = self.now + rtt / u64::from(packets);
                self.acknowledged += 1;
                let next = self.acknowledged - 1 + self.window() as u32;
                let cumulative = if self.is_missing_one { 0 } else { self.acknowledged };
                self.controller.on_ack(&Ack { now: self.now, rtt, ..ack(cumulative, next) });
            }
            self.window()
        }

        fn lose(&mut self, signal: CongestionSignal) {
            self.controller.on_loss(&Loss { now: self.now, ..loss(signal, Bytes(960)) });
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
        // 40 packets in 110 us exceed 1 / (0.5 * 10 us), so slow start ends with a step down, once the
        // minimum over half an RTT is 110 us.
        let window = flow.round(110);
        assert!(window < 80.0, "{window}");
        let next = flow.round(110);
        assert!(next < window, "{next}");
        assert!(flow.round(100) < next + 40.0, "slow start does not resume");
    }

    #[test]
    fn the_window_moves_towards_its_target_by_velocity_over_delta_per_rtt() {
        for (delta, step) in [(0.5, 2.0), (0.1, 10.0)] {
            let mut flow = copa(&json!({ "delta": delta, "initial_window": 100 }));
            flow.round(100);
            flow.round(200);
            let before = flow.round(200);
            assert_near(before - flow.round(200), step, 0.05 * step);
        }
    }

    #[test]
    fn the_velocity_doubles_after_three_rounds_in_one_direction_and_resets_at_a_turn() {
        let mut flow = copa(&json!({ "initial_window": 1000, "competitive": false }));
        // Slow start ends within the second round, which counts.
        flow.round(100);
        flow.round(200);
        let velocities = [(); 6].map(|()| {
            flow.round(200);
            flow.gauge("velocity")
        });
        assert_eq!(velocities.to_vec(), [1.0, 1.0, 2.0, 4.0, 8.0, 16.0]);
        // The first step upwards has velocity 1.
        flow.round(100);
        assert_near(flow.gauge("velocity"), 1.0, 0.0);
    }

    #[test]
    fn rounds_end_while_the_cumulative_acknowledgement_stands_still() {
        let mut flow = copa(&json!({ "initial_window": 1000, "competitive": false }));
        flow.round(100);
        flow.round(200);
        flow.is_missing_one = true;
        (0..6).for_each(|_| _ = flow.round(200));
        assert!(flow.gauge("velocity") >= 8.0, "{}", flow.gauge("velocity"));
    }

    #[test]
    fn the_pacing_rate_is_twice_the_rate_of_the_window() {
        let mut flow = copa(&json!({ "initial_window": 3 }));
        assert_eq!(flow.controller.allowance().rate, None, "no RTT sample yet");
        flow.round(100);
        // 6 packets of 8000 bits, twice in 100 us, are 960 Mb/s.
        assert_eq!(flow.controller.allowance().rate, Some(Rate::from_mbps(960)));
        flow.round(100);
        assert_eq!(flow.controller.allowance().rate, Some(Rate::from_gbps(1)), "the line rate");
    }

    #[test]
    fn delta_falls_while_the_queue_never_empties_and_losses_raise_it() {
        let mut flow = copa(&json!({}));
        flow.round(100);
        let deltas = [(); 8].map(|()| {
            flow.round(300);
            1.0 / flow.gauge("delta")
        });
        assert_near(deltas[2], 2.0, 1e-9);
        assert_near(deltas[7] - deltas[6], 1.0, 1e-9);
        let before = deltas[7];
        flow.lose(CongestionSignal::DetectedLoss);
        assert_near(1.0 / flow.gauge("delta"), (before / 2.0).max(2.0), 1e-9);
        flow.round(100);
        flow.round(100);
        assert_near(flow.gauge("delta"), 0.5, 1e-9);
        let mut fixed = copa(&json!({ "competitive": false }));
        fixed.round(100);
        (0..20).for_each(|_| _ = fixed.round(300));
        assert_near(fixed.gauge("delta"), 0.5, 1e-9);
    }

    #[test]
    fn a_loss_keeps_the_window_and_a_timeout_restarts_slow_start() {
        let mut flow = copa(&json!({ "initial_window": 20 }));
        flow.lose(CongestionSignal::DetectedLoss);
        assert_near(flow.window(), 20.0, 1e-9);
        flow.lose(CongestionSignal::Timeout);
        assert_near(flow.window(), 2.0, 1e-9);
        // In slow start.
        assert_near(flow.round(100), 4.0, 1e-9);
    }
}

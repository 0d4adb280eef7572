//! BBR, version 3: the model of version 1, and bounds on what is in flight that losses teach.
//!
//! Source: [bbr26], draft-ietf-ccwg-bbr. A flow probes for bandwidth every two to three seconds, or as
//! often as a TCP of its window would, until data comes no faster or more than 2 % of it is lost. What was
//! in flight then is a long-term bound; between probes it keeps below it, and any loss sets short-term
//! bounds from what came through in that round trip.
//!
//! Left out: the allowance for aggregated ACKs, undoing what turns out to be no loss, restarts from idle
//! (flows have data as long as they live) and ECN, which the draft leaves open. Deviation: what was in
//! flight at a loss is taken from the packet whose ACK shows the loss, which left three packets later.

use super::{
    Ack, Allowance, Controller, Loss, Mechanism, Opened, Path, Recovery, Reliability, Transport,
};
use crate::base::random::Random;
use crate::base::schema::{
    above_one, at_least_one, below_one, positive, positive_fraction, proper_fraction,
};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::packet::Format;
use crate::transport::blocks::bbr::delivery_rate::{FullPipe, Sample};
use crate::transport::blocks::bbr::inflight_bounds::{InflightBounds, LossRound, Tolerance};
use crate::transport::blocks::bbr::path_model::{LeastRtt, PathModel};
use crate::transport::blocks::bbr::window::{BbrWindow, Stay};

crate::parameters! {
    /// BBR, version 3: paces at the largest delivery rate of the last two probes, within bounds on the
    /// bandwidth and on what is in flight that losses set ([bbr26]).
    pub struct Config {
        /// Initial window, in packets (RFC 6928: 10).
        pub initial_window: u32 = 10, where positive;
        /// Gain of the pace in Startup ([bbr26]: 4 ln 2).
        pub startup_gain: f64 = 2.77, where above_one;
        /// Gain of the window, but for probes ([bbr26]: 2).
        pub window_gain: f64 = 2.0, where at_least_one;
        /// The pipe is full if the bandwidth does not grow by this factor ([bbr26]: 1.25) ...
        pub full_growth: f64 = 1.25, where above_one;
        /// ... in so many round trips ([bbr26]: 3).
        pub full_rounds: u32 = 3, where positive;
        /// Startup ends by losses only after so many ACKs of one round trip have told of some ([bbr26]:
        /// 6 gaps).
        pub startup_losses: u32 = 6, where positive;
        /// Gain of the pace in Drain ([bbr26]: 0.5).
        pub drain_gain: f64 = 0.5, where proper_fraction;
        /// Drain lasts no more round trips than this ([bbr26]: 3).
        pub drain_rounds: u32 = 3, where positive;
        /// Gain of the pace after a probe ([bbr26]: 0.9).
        pub down_gain: f64 = 0.9, where proper_fraction;
        /// Gain of the pace of a probe ([bbr26]: 1.25).
        pub up_gain: f64 = 1.25, where above_one;
        /// Gain of the window of a probe ([bbr26]: 2.25).
        pub up_window_gain: f64 = 2.25, where at_least_one;
        /// Share of what is in flight that may be lost while probing ([bbr26]: 2 %).
        pub loss_threshold: f64 = 0.02, where proper_fraction;
        /// What a round trip with losses leaves of a bound at least ([bbr26]: 0.7).
        pub beta: f64 = 0.7, where positive_fraction;
        /// Share of the long-term bound that is left to others between probes ([bbr26]: 0.15).
        pub headroom: f64 = 0.15, where below_one;
        /// Least time from one probe to the next ([bbr26]: 2 s); up to `probe_spread` more is drawn.
        pub probe_wait: Duration = Duration::from_millis(2_000), where positive;
        /// Spread of that time ([bbr26]: 1 s).
        pub probe_spread: Duration = Duration::from_millis(1_000);
        /// A probe comes no later than after so many round trips, or after as many as the window has
        /// packets ([bbr26]: 63).
        pub probe_rounds: u32 = 63, where positive;
        /// By how much less than the bandwidth a flow paces ([bbr26]: 1 %).
        pub margin: f64 = 0.01, where below_one;
        /// How long a least round-trip time counts ([bbr26]: 10 s).
        pub min_rtt_window: Duration = Duration::from_millis(10_000), where positive;
        /// After how long without a lower round-trip time one is looked for ([bbr26]: 5 s).
        pub probe_rtt_interval: Duration = Duration::from_millis(5_000), where positive;
        /// How long the window is least to find it ([bbr26]: 200 ms).
        pub probe_rtt_duration: Duration = Duration::from_millis(200), where positive;
        /// Gain of the window then ([bbr26]: 0.5).
        pub probe_rtt_gain: f64 = 0.5, where positive_fraction;
        /// Least window, in packets ([bbr26]: 4).
        pub min_window: u32 = 4, where positive;
        /// How many packets leave without a pace at first (Linux: 10; own choice: 0).
        pub unpaced: u32 = 0;
        /// How many packets leave at once (own choice: 1).
        pub burst: u32 = 1, where positive;
        /// How data is made reliable.
        pub reliability: Reliability = Reliability::internet();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        Box::new(self.open(path))
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism {
            burst: Some(self.burst),
            unpaced: self.unpaced,
            ..Mechanism::paced_window(&self.reliability)
        }
    }
}

impl Config {
    /// The state of a flow that starts on `path`.
    fn open(&self, path: &Path) -> Bbr3 {
        let throttle =
            BbrWindow::new(path, self.initial_window, self.min_window, self.startup_gain);
        let plateau = FullPipe::new(self.full_growth, self.full_rounds);
        let tells_each_loss =
            matches!(self.reliability.recovery, Recovery::SelectiveRepeat | Recovery::Rack);
        // The present cycle and the one before.
        let model = PathModel::new(path, throttle, plateau, 2);
        Bbr3 {
            config: self.clone(),
            cycle: 0,
            state: State::Startup,
            is_ending: false,
            state_from: path.start,
            rounds: 0,
            wait: self.probe_wait,
            // Until it has been seen nothing is missed.
            low_rtt: LeastRtt::missed(Time::NEVER),
            round: LossRound::default(),
            tolerance: Tolerance { share: self.loss_threshold, tells_each_loss },
            bounds: InflightBounds::new(model.packet, model.throttle.least()),
            model,
            is_of_probe: false,
            was_too_high: false,
            was_careful: false,
            random: Random::new(path.seed, "transport/bbr3"),
        }
    }
}

/// What a flow is at.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Looking for the bandwidth by doubling the rate.
    Startup,
    /// Draining the queue that this has left.
    Drain,
    /// Draining the queue of a probe.
    Down,
    /// Sending as fast as data comes.
    Cruise,
    /// Filling the pipe before a probe.
    Refill,
    /// Probing for bandwidth.
    Up,
    /// Looking for the round-trip time.
    ProbeRtt(Stay),
}

/// The state of one flow; payload in bytes.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Bbr3 {
    config: Config,
    /// Its clock counts cycles of probing.
    model: PathModel,
    cycle: u32,
    state: State,
    /// A probe is over, and for a round trip ACKs still tell how it went.
    is_ending: bool,
    /// When the cycle began.
    state_from: Time,
    /// Round trips since Drain or the last probe.
    rounds: u32,
    wait: Duration,
    /// The least round-trip time since it was last looked for.
    low_rtt: LeastRtt,
    round: LossRound,
    tolerance: Tolerance,
    bounds: InflightBounds,
    /// ACKs tell of data sent while probing, which has not been answered yet.
    is_of_probe: bool,
    /// The last probe lost too much.
    was_too_high: bool,
    /// The last probe ended early because the one before had lost too much.
    was_careful: bool,
    random: Random,
}

// The model.
impl Bbr3 {
    /// The bandwidth-delay product, by the bandwidth within its short-term bound.
    fn product(&self) -> f64 {
        self.rate() * self.model.rtt().seconds()
    }

    fn rate(&self) -> f64 {
        self.model.bandwidth().min(self.bounds.rate())
    }

    /// The bandwidth-delay product, within the window.
    fn target(&self) -> f64 {
        self.product().min(self.model.throttle.window())
    }

    /// What `gain` bandwidth-delay products allow in flight.
    fn in_flight(&self, product: f64, gain: f64) -> f64 {
        let more = if matches!(self.state, State::Up) { 2.0 * self.model.packet } else { 0.0 };
        (gain * product).max(self.model.throttle.least()) + more
    }

    /// The long-term bound less what is left to others.
    fn with_headroom(&self) -> f64 {
        self.bounds.with_headroom(self.config.headroom)
    }

    fn is_probing(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    fn is_in_cycle(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// Takes a sample in; says whether it ends a round trip of the losses.
    fn learn(&mut self, sample: &Sample, ack: &Ack) -> bool {
        self.note_loss(sample, ack);
        let is_over = self.round.on_sample(sample, self.model.delivery.delivered());
        self.model.learn(sample, self.cycle);
        if is_over && self.round.has_loss() && !self.is_probing() {
            let (bandwidth, window) = (self.model.bandwidth(), self.model.throttle.window());
            self.bounds.shorten(&self.round, self.config.beta, bandwidth, window);
        }
        if sample.starts_round {
            self.rounds = self.rounds.saturating_add(1);
        }
        is_over
    }

    fn note_loss(&mut self, sample: &Sample, ack: &Ack) {
        if ack.lost == 0 {
            return;
        }
        self.round.on_loss(self.model.delivery.delivered());
        if self.is_of_probe && self.tolerance.is_exceeded(sample) {
            self.answer_too_high(sample, ack);
        }
    }

    /// A probe has lost too much: what was in flight when losses crossed the threshold is the bound.
    fn answer_too_high(&mut self, sample: &Sample, ack: &Ack) {
        self.was_too_high = true;
        self.is_of_probe = false;
        if !sample.is_limited {
            let now_lost = f64::from(ack.lost) * self.model.packet;
            let crossing = self.tolerance.crossing(sample, now_lost);
            self.bounds.set_long(crossing.max(self.config.beta * self.target()));
        }
        if matches!(self.state, State::Up) {
            self.go_down(ack.now);
        }
    }

    fn watch_rtt(&mut self, ack: &Ack) -> bool {
        let Config { probe_rtt_interval, min_rtt_window, .. } = self.config;
        let seen = LeastRtt::seen(ack.rtt, ack.now);
        let is_due = self.low_rtt.give_way(seen, ack.now, probe_rtt_interval);
        self.model.least_rtt.give_way(self.low_rtt, ack.now, min_rtt_window);
        is_due
    }
}

// The cycle.
impl Bbr3 {
    /// Goes on from Startup and Drain.
    fn advance_start(&mut self, ack: &Ack, sample: &Sample, is_over: bool) {
        let model = &mut self.model;
        if sample.starts_round && !sample.is_limited && !model.plateau.is_reached() {
            model.plateau.on_round(sample.rate.unwrap_or(0.0));
            model.has_been_full |= model.plateau.is_reached();
        }
        if matches!(self.state, State::Startup) {
            let is_lossy = if self.tolerance.tells_each_loss {
                is_over && self.round.events >= self.config.startup_losses
            } else {
                ack.lost > 0
            };
            if is_lossy && ack.is_recovering && self.tolerance.is_exceeded(sample) {
                self.model.has_been_full = true;
                self.bounds.set_long(self.product().max(self.round.delivered));
            }
            if self.model.has_been_full {
                self.state = State::Drain;
                self.rounds = 0;
            }
        }
        let is_drained = self.model.delivery.in_flight() <= self.in_flight(self.product(), 1.0);
        let has_lasted = self.rounds > self.config.drain_rounds;
        if matches!(self.state, State::Drain) && (is_drained || has_lasted) {
            self.go_down(ack.now);
        }
    }

    /// Goes on in the cycle of probing.
    fn advance_cycle(&mut self, ack: &Ack, sample: &Sample) {
        if !self.model.has_been_full || self.adapt_long(ack, sample) {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(ack.now) => self.refill(),
            State::Down if self.is_time_to_cruise() => self.state = State::Cruise,
            State::Refill if sample.starts_round => {
                self.is_of_probe = true;
                self.go_up(sample);
            }
            State::Up => {
                if self.is_time_to_go_down(sample) {
                    self.was_too_high = false;
                    self.go_down(ack.now);
                }
            }
            State::Startup
            | State::Drain
            | State::Down
            | State::Cruise
            | State::Refill
            | State::ProbeRtt(_) => {}
        }
    }

    /// Follows what ACKs tell of the last probe; says whether the next begins at once.
    fn adapt_long(&mut self, ack: &Ack, sample: &Sample) -> bool {
        if self.is_ending && sample.starts_round {
            self.is_of_probe = false;
            self.is_ending = false;
            if self.is_in_cycle() && !sample.is_limited {
                self.cycle += 1;
            }
            if self.is_in_cycle() && self.was_careful && !self.was_too_high {
                self.refill();
                return true;
            }
        }
        if !self.tolerance.is_exceeded(sample) && self.bounds.long().is_finite() {
            self.bounds.raise(sample.in_flight);
            let window = self.model.throttle.window();
            // Only a probe that fills the bound may raise it further.
            let is_bound = self.is_window_full() && window >= self.bounds.long();
            if matches!(self.state, State::Up) && is_bound {
                self.bounds.climb(ack.bytes.0 as f64, window, sample.starts_round);
            }
        }
        false
    }

    fn go_down(&mut self, now: Time) {
        self.round.forget();
        self.rounds = self.random.below(2) as u32;
        let spread = self.random.uniform() * self.config.probe_spread.seconds();
        self.wait = self.config.probe_wait + Duration::from_seconds(spread);
        self.state_from = now;
        self.is_ending = true;
        self.model.delivery.start_round();
        self.state = State::Down;
    }

    fn refill(&mut self) {
        self.bounds.forget_short();
        self.was_careful = false;
        self.is_ending = false;
        self.model.delivery.start_round();
        self.state = State::Refill;
    }

    fn go_up(&mut self, sample: &Sample) {
        self.model.delivery.start_round();
        self.model.plateau.restart(sample.rate.unwrap_or(0.0));
        self.state = State::Up;
        self.bounds.begin_climb(self.model.throttle.window());
    }

    fn is_time_to_probe(&self, now: Time) -> bool {
        let rounds = (self.target() / self.model.packet).min(f64::from(self.config.probe_rounds));
        now.since(self.state_from) > self.wait || f64::from(self.rounds) >= rounds
    }

    fn is_time_to_cruise(&self) -> bool {
        let product = self.model.bandwidth() * self.model.rtt().seconds();
        let in_flight = self.model.delivery.in_flight();
        in_flight <= self.with_headroom() && in_flight <= self.in_flight(product, 1.0)
    }

    fn is_time_to_go_down(&mut self, sample: &Sample) -> bool {
        if self.was_too_high && self.model.delivery.in_flight() >= self.bounds.long() {
            self.was_careful = true;
            return true;
        }
        if self.is_window_full() && self.model.throttle.window() >= self.bounds.long() {
            // The bound limits the rate, not the path.
            self.model.plateau.restart(sample.rate.unwrap_or(0.0));
            return false;
        }
        self.model.plateau.is_reached()
    }

    /// Whether the window kept the last packet from leaving.
    fn is_window_full(&self) -> bool {
        self.model.delivery.was_in_flight() + self.model.packet > self.model.throttle.window()
    }

    /// Looks for the round-trip time if it is due.
    fn probe_rtt(&mut self, ack: &Ack, is_due: bool, starts_round: bool) {
        if is_due && !self.is_paused() {
            self.model.throttle.save(false);
            self.state = State::ProbeRtt(Stay::default());
            self.is_ending = true;
            self.model.delivery.start_round();
        }
        let most = (self.probe_rtt_window(), self.config.probe_rtt_duration);
        let State::ProbeRtt(stay) = &mut self.state else { return };
        if !stay.is_over(ack.now, starts_round, most, &mut self.model.delivery) {
            return;
        }
        self.low_rtt.renew(ack.now);
        self.model.throttle.restore();
        self.bounds.forget_short();
        if self.model.has_been_full {
            // What is in flight is below the bandwidth-delay product already.
            self.go_down(ack.now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    fn is_paused(&self) -> bool {
        matches!(self.state, State::ProbeRtt(_))
    }
}

// What may be sent.
impl Bbr3 {
    /// The gains of pace and window.
    fn gains(&self) -> (f64, f64) {
        let config = &self.config;
        match self.state {
            State::Startup => (config.startup_gain, config.window_gain),
            State::Drain => (config.drain_gain, config.window_gain),
            State::Down => (config.down_gain, config.window_gain),
            State::Cruise | State::Refill => (1.0, config.window_gain),
            State::Up => (config.up_gain, config.up_window_gain),
            State::ProbeRtt(_) => (1.0, config.probe_rtt_gain),
        }
    }

    fn probe_rtt_window(&self) -> f64 {
        (self.config.probe_rtt_gain * self.product()).max(self.model.throttle.least())
    }

    fn set_throttle(&mut self, ack: &Ack) {
        let (pace, window) = self.gains();
        self.model.pace(ack, pace * self.rate(), self.config.margin);
        self.model.open(ack, self.in_flight(self.product(), window));
        if self.is_paused() {
            self.model.throttle.bound(self.probe_rtt_window());
        }
        let bound = match self.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::Down | State::Refill | State::Up => self.bounds.long(),
            State::Cruise | State::ProbeRtt(_) => self.with_headroom(),
        };
        self.model.throttle.bound(bound.min(self.bounds.in_flight()));
    }
}

impl Controller for Bbr3 {
    fn on_open(&mut self, opened: &Opened) {
        self.model.on_open(opened, self.config.startup_gain);
        self.low_rtt = self.model.least_rtt;
    }

    fn on_sent(&mut self, now: Time, bytes: Bytes) {
        self.model.delivery.on_sent(now, bytes);
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.bytes == Bytes::ZERO {
            return;
        }
        let sample = self.model.on_ack(ack);
        if let Some(sample) = &sample {
            let is_over = self.learn(sample, ack);
            self.advance_start(ack, sample, is_over);
            self.advance_cycle(ack, sample);
            if is_over {
                self.round.go_on(sample);
            }
        }
        let is_due = self.watch_rtt(ack);
        self.probe_rtt(ack, is_due, sample.is_some_and(|sample| sample.starts_round));
        self.set_throttle(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.model.on_loss(loss, self.is_paused());
    }

    fn on_spurious_loss(&mut self, _now: Time) {
        self.model.throttle.on_spurious_loss();
    }

    fn allowance(&self) -> Allowance {
        self.model.throttle.allowance()
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.model.gauges()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use crate::transport::fixture::{SAMPLE, ack, path};

    const PACKET: f64 = 960.0;

    /// A flow that cruises at 100 Mb/s of payload, with a round trip of 7.68 ms, which are 100 packets, and
    /// a window of 200.
    fn bbr() -> Bbr3 {
        let config = Config { initial_window: 200, ..defaults() };
        let mut bbr = config.open(&Path { seed: 1, ..path() });
        bbr.state = State::Cruise;
        bbr.wait = Duration::from_millis(2_500);
        bbr.model.has_been_full = true;
        bbr.model.least_rtt = LeastRtt::seen(Duration::from_micros(7680), Time::ZERO);
        bbr.model.learn(&Sample { rate: Some(100e6 / 8.0), ..SAMPLE }, 0);
        bbr
    }

    /// A sample that neither ends a round nor raises anything.
    fn sample(in_flight: f64, lost: f64) -> Sample {
        Sample {
            rate: Some(1e6),
            delivered: 10.0 * PACKET,
            in_flight: in_flight * PACKET,
            lost: lost * PACKET,
            ..SAMPLE
        }
    }

    fn assert_packets(bytes: f64, packets: f64) {
        assert!((bytes / PACKET - packets).abs() < 1e-6, "{} is not {packets}", bytes / PACKET);
    }

    #[test]
    fn a_probe_that_loses_too_much_ends_and_leaves_what_was_in_flight_as_the_bound() {
        let mut bbr = bbr();
        (bbr.state, bbr.is_of_probe) = (State::Up, true);
        let one = Ack { lost: 1, ..ack(1, 2) };
        bbr.note_loss(&sample(150.0, 3.0), &one);
        assert!(matches!(bbr.state, State::Up), "three of 150 are not more than 2 %");
        bbr.note_loss(&sample(150.0, 4.0), &one);
        assert!(matches!(bbr.state, State::Down) && bbr.was_too_high);
        // Of the 149 before it 2.98 may be lost, and 3 were.
        assert_packets(bbr.bounds.long(), 149.0);
        assert_packets(bbr.with_headroom(), 0.85 * 149.0);
        bbr.note_loss(&sample(50.0, 9.0), &one);
        assert_packets(bbr.bounds.long(), 149.0);
        // No less than seven tenths of the bandwidth-delay product.
        bbr.is_of_probe = true;
        bbr.note_loss(&sample(50.0, 9.0), &one);
        assert_packets(bbr.bounds.long(), 70.0);
    }

    #[test]
    fn after_such_a_probe_the_next_ends_at_the_bound_and_the_one_after_raises_it() {
        let mut bbr = bbr();
        (bbr.state, bbr.was_too_high) = (State::Up, true);
        bbr.bounds.set_long(100.0 * PACKET);
        (0..100).for_each(|_| bbr.model.delivery.on_sent(Time::ZERO, Bytes(1000)));
        bbr.advance_cycle(&ack(1, 2), &sample(100.0, 0.0));
        assert!(matches!(bbr.state, State::Down) && bbr.was_careful && !bbr.was_too_high);
        // A round trip later it is known that nothing was lost.
        bbr.advance_cycle(&ack(1, 2), &Sample { starts_round: true, ..sample(100.0, 0.0) });
        assert!(matches!(bbr.state, State::Refill));
        bbr.model.throttle.bound(100.0 * PACKET);
        bbr.advance_cycle(&ack(1, 2), &Sample { starts_round: true, ..sample(100.0, 0.0) });
        assert!(matches!(bbr.state, State::Up));
        // It fills the bound, and a round trip of ACKs raises it by a packet.
        let full = Ack { in_flight: Bytes(960 * 100), ..ack(1, 2) };
        for _ in 0..2 {
            bbr.model.delivery.on_ack(&full, Duration::ZERO);
        }
        (0..100).for_each(|_| bbr.advance_cycle(&full, &sample(50.0, 0.0)));
        assert!(matches!(bbr.state, State::Up));
        assert_packets(bbr.bounds.long(), 101.0);
    }

    #[test]
    fn a_probe_waits_for_two_to_three_seconds_or_for_as_many_round_trips_as_packets() {
        let mut bbr = bbr();
        let mut waits = Vec::new();
        for _ in 0..100 {
            bbr.go_down(Time::ZERO);
            waits.push(bbr.wait.seconds());
            assert!(bbr.rounds <= 1);
        }
        assert!(waits.iter().all(|wait| (2.0..3.0).contains(wait)));
        assert!(waits.iter().any(|wait| *wait < 2.2) && waits.iter().any(|wait| *wait > 2.8));
        bbr.rounds = 0;
        assert!(!bbr.is_time_to_probe(Time::ZERO + Duration::from_millis(2_000)));
        assert!(bbr.is_time_to_probe(Time::ZERO + Duration::from_millis(3_000)));
        for (rounds, packets, is_time) in [(62, 100, false), (63, 100, true), (20, 20, true)] {
            bbr.rounds = rounds;
            bbr.model.throttle = BbrWindow::new(&path(), packets, 4, 1.0);
            assert_eq!(bbr.is_time_to_probe(Time::ZERO), is_time, "{rounds} of {packets}");
        }
    }

    #[test]
    fn startup_ends_by_losses_if_there_are_many_in_a_round_trip_of_a_repair() {
        let ends = |events, lost, is_recovering| {
            let mut bbr = bbr();
            (bbr.state, bbr.model.has_been_full) = (State::Startup, false);
            (bbr.round.events, bbr.round.delivered) = (events, 120.0 * PACKET);
            (0..190).for_each(|_| bbr.model.delivery.on_sent(Time::ZERO, Bytes(1000)));
            bbr.advance_start(&Ack { is_recovering, ..ack(1, 2) }, &sample(200.0, lost), true);
            matches!(bbr.state, State::Drain).then_some(bbr.bounds.long())
        };
        assert_eq!(ends(5, 5.0, true), None);
        assert_eq!(ends(6, 4.0, true), None);
        assert_eq!(ends(6, 5.0, false), None);
        assert_packets(ends(6, 5.0, true).unwrap(), 120.0);
    }

    #[test]
    fn parameters_that_make_no_sense_are_explained() {
        for (field, value, must) in [
            ("startup_gain", json!(0.5), "must be above 1, not 0.5"),
            ("down_gain", json!(1.0), "must be above 0 and below 1, not 1.0"),
            ("headroom", json!(1.0), "must be from 0 to below 1, not 1.0"),
            ("beta", json!(0.0), "must be above 0 and at most 1, not 0.0"),
            ("loss_threshold", json!(2.0), "must be above 0 and below 1, not 2.0"),
            ("probe_rtt_interval", json!("0 s"), "must be above zero, not \"0 ps\""),
        ] {
            let problem = Config::read(&json!({ field: value })).unwrap_err();
            assert_eq!(problem.to_string(), format!("{field}: {must}"));
        }
    }
}

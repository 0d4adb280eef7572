//! BBR version 3: the path model of version 1, with bounds on inflight derived from losses ([bbr26]).
//!
//! Source: draft-ietf-ccwg-bbr. A flow probes for bandwidth every two to three seconds, or as often as a Reno
//! flow of its window would need. A probe ends when the delivery rate no longer grows or more than 2 % is
//! lost; the data then in flight becomes the long-term bound `inflight_hi`. Between probes inflight stays
//! below it, and any loss lowers the short-term bounds to the data delivered in that round.
//!
//! Left out: restarts from idle, and ECN, which the draft leaves open. Packets leave one by one, not in send
//! quanta, so `extra_acked` and the offload budget are parameters. Deviation: the inflight at a loss is taken
//! from the packet whose ACK reveals the loss, which was sent three packets later.
//!
//! A large rate reduction over a large buffer goes unnoticed for long, as by the draft's pseudocode: the
//! former bandwidth is forgotten only after two whole probes, and `ProbeBW_UP` lasts three rounds, each as
//! long as the queue, so that `ProbeRTT`, due every five seconds, interrupts it. The samples after `ProbeRTT`
//! count as application-limited, so they do not end the cycle either, and its window, half of a
//! bandwidth-delay product that is too large, does not drain the queue, so the minimum RTT grows.

use super::{
    Ack, Allowance, Controller, Loss, Mechanism, Opened, PacingPolicy, Path, Recovery, Reliability,
    Transport,
};
use crate::base::random::Random;
use crate::base::schema::{
    above_one, at_least_one, below_one, positive, positive_fraction, proper_fraction,
};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::packet::Format;
use crate::transport::blocks::bbr::ack_aggregation::ExtraAcked;
use crate::transport::blocks::bbr::delivery_rate::{FullPipe, RateSample};
use crate::transport::blocks::bbr::inflight_bounds::{
    InflightBounds, LossRound, LossTolerance, SavedBounds,
};
use crate::transport::blocks::bbr::path_model::{MinRtt, PathModel};
use crate::transport::blocks::bbr::window::{BbrWindow, ProbeRtt};

crate::parameters! {
    /// BBR version 3: paces at the maximum delivery rate of the last two probe cycles, within bounds
    /// on bandwidth and inflight that losses set ([bbr26]).
    pub struct Config {
        /// Initial window, in packets (RFC 6928: 10).
        pub initial_window: u32 = 10, where positive;
        /// Pacing gain in Startup ([bbr26]: 4 ln 2).
        pub startup_gain: f64 = 2.77, where above_one;
        /// Window gain outside `ProbeBW_UP` and `ProbeRTT` ([bbr26]: 2).
        pub window_gain: f64 = 2.0, where at_least_one;
        /// The pipe is full if the bandwidth grows by less than this factor ([bbr26]: 1.25) ...
        pub full_growth: f64 = 1.25, where above_one;
        /// ... in this number of rounds ([bbr26]: 3).
        pub full_rounds: u32 = 3, where positive;
        /// Number of ACKs in one round that must report losses before losses end Startup ([bbr26]: 6
        /// loss events).
        pub startup_losses: u32 = 6, where positive;
        /// Pacing gain in Drain ([bbr26]: 0.5).
        pub drain_gain: f64 = 0.5, where proper_fraction;
        /// Maximum duration of Drain, in rounds ([bbr26]: 3).
        pub drain_rounds: u32 = 3, where positive;
        /// Pacing gain in `ProbeBW_DOWN` ([bbr26]: 0.9).
        pub down_gain: f64 = 0.9, where proper_fraction;
        /// Pacing gain in `ProbeBW_UP` ([bbr26]: 1.25).
        pub up_gain: f64 = 1.25, where above_one;
        /// Window gain in `ProbeBW_UP` ([bbr26]: 2.25).
        pub up_window_gain: f64 = 2.25, where at_least_one;
        /// Loss rate tolerated while probing, as a fraction of inflight ([bbr26]: 2 %).
        pub loss_threshold: f64 = 0.02, where proper_fraction;
        /// Factor of the short-term bounds' decrease per round with losses ([bbr26]: 0.7).
        pub beta: f64 = 0.7, where positive_fraction;
        /// Fraction of the long-term bound left to other flows between probes ([bbr26]: 0.15).
        pub headroom: f64 = 0.15, where below_one;
        /// Minimum time between probes ([bbr26]: 2 s); up to `probe_spread` is added at random.
        pub probe_wait: Duration = Duration::from_millis(2_000), where positive;
        /// Maximum random time added to `probe_wait` ([bbr26]: 1 s).
        pub probe_spread: Duration = Duration::from_millis(1_000);
        /// Maximum number of rounds between probes; a window of fewer packets lowers it to that number
        /// ([bbr26]: 63).
        pub probe_rounds: u32 = 63, where positive;
        /// Pacing margin: fraction by which the pacing rate is below the bandwidth ([bbr26]: 1 %).
        pub margin: f64 = 0.01, where below_one;
        /// Length of the minimum RTT filter ([bbr26]: 10 s).
        pub min_rtt_window: Duration = Duration::from_millis(10_000), where positive;
        /// Time without a lower RTT after which `ProbeRTT` starts ([bbr26]: 5 s).
        pub probe_rtt_interval: Duration = Duration::from_millis(5_000), where positive;
        /// Duration of `ProbeRTT` ([bbr26]: 200 ms).
        pub probe_rtt_duration: Duration = Duration::from_millis(200), where positive;
        /// Window gain in `ProbeRTT` ([bbr26]: 0.5).
        pub probe_rtt_gain: f64 = 0.5, where positive_fraction;
        /// Minimum window, in packets ([bbr26]: 4).
        pub min_window: u32 = 4, where positive;
        /// Minimum of inflight in send quanta (`BBR.offload_budget`), each of which has the data of 1 ms at
        /// the pacing rate, at least two packets and at most 64 KiB ([bbr26] for TCP: 3; own choice: 0, for
        /// hosts without segmentation offload).
        pub offload_quanta: u32 = 0;
        /// If true, adds `extra_acked` to the window: the data recently acknowledged beyond the bandwidth
        /// ([bbr26]: true; own choice: false, for paths that do not aggregate ACKs).
        pub aggregation: bool = false;
        /// Number of packets sent without pacing at the start (Linux: 10; own choice: 0).
        pub unpaced: u32 = 0;
        /// Number of packets sent back to back (own choice: 1).
        pub burst: u32 = 1, where positive;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::internet();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        Box::new(self.open(path))
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism {
            pacing: Some(PacingPolicy { burst: self.burst, spacing: None, unpaced: self.unpaced }),
            ..Mechanism::paced_window(&self.reliability)
        }
    }
}

impl Config {
    /// State of a flow that starts on `path`.
    fn open(&self, path: &Path) -> Bbr3 {
        let window = BbrWindow::new(path, self.initial_window, self.min_window, self.startup_gain);
        let full_pipe = FullPipe::new(self.full_growth, self.full_rounds);
        let counts_losses =
            matches!(self.reliability.recovery, Recovery::SelectiveRepeat | Recovery::Rack);
        // The current probe cycle and the one before.
        let model = PathModel::new(path, window, full_pipe, 2);
        Bbr3 {
            config: self.clone(),
            cycle_count: 0,
            state: State::Startup,
            is_probe_stopping: false,
            cycle_start: path.start,
            rounds_since_probe: 0,
            probe_wait: self.probe_wait,
            // Never expires before the first sample.
            probe_rtt_min: MinRtt::unknown_since(Time::NEVER),
            loss_round: LossRound::default(),
            loss_tolerance: LossTolerance { loss_thresh: self.loss_threshold, counts_losses },
            bounds: InflightBounds::new(model.packet, model.window.min_cwnd()),
            model,
            has_probe_samples: false,
            prev_probe_too_high: false,
            stopped_risky_probe: false,
            extra_acked: self.aggregation.then(|| Box::new(ExtraAcked::new(path.start))),
            saved_bounds: SavedBounds::default(),
            undo_state: None,
            random: Random::new(path.seed, "transport/bbr3"),
        }
    }
}

/// State that losses ended, and that follows again if they were spurious (`BBR.undo_state`).
#[derive(Clone, Copy, Debug)]
enum UndoState {
    Startup,
    Up,
}

/// State of BBR's state machine.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Probes for bandwidth by doubling the rate every round.
    Startup,
    /// Drains the queue of Startup.
    Drain,
    /// `ProbeBW_DOWN`: drains the queue of a probe.
    Down,
    /// `ProbeBW_CRUISE`: paces at the bandwidth.
    Cruise,
    /// `ProbeBW_REFILL`: fills the pipe before a probe.
    Refill,
    /// `ProbeBW_UP`: probes for bandwidth.
    Up,
    /// Measures the minimum RTT.
    ProbeRtt(ProbeRtt),
}

/// State of one flow; payload in bytes.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Bbr3 {
    config: Config,
    /// Its clock counts probe cycles.
    model: PathModel,
    cycle_count: u32,
    state: State,
    /// True in the round after a probe, whose ACKs are of packets of the probe (`ACKS_PROBE_STOPPING`).
    is_probe_stopping: bool,
    /// Start of the probe cycle.
    cycle_start: Time,
    /// Rounds since Drain or since the last probe.
    rounds_since_probe: u32,
    probe_wait: Duration,
    /// Minimum RTT since the last `ProbeRTT` (`probe_rtt_min_delay`).
    probe_rtt_min: MinRtt,
    loss_round: LossRound,
    loss_tolerance: LossTolerance,
    bounds: InflightBounds,
    /// True if ACKs are of packets of a probe that has not exceeded the loss tolerance.
    has_probe_samples: bool,
    /// True if the last probe lost too much.
    prev_probe_too_high: bool,
    /// True if the last probe ended early because the one before lost too much.
    stopped_risky_probe: bool,
    /// Boxed, since most flows do not use it.
    extra_acked: Option<Box<ExtraAcked>>,
    /// Bounds before the last loss recovery, and the state that it ended.
    saved_bounds: SavedBounds,
    undo_state: Option<UndoState>,
    random: Random,
}

// The model.
impl Bbr3 {
    /// Bandwidth-delay product at the bounded bandwidth.
    fn bdp(&self) -> f64 {
        self.bw() * self.model.rtt().seconds()
    }

    fn bw(&self) -> f64 {
        self.model.bandwidth().min(self.bounds.bw_lo())
    }

    /// Bandwidth-delay product, at most the window.
    fn target_inflight(&self) -> f64 {
        self.bdp().min(self.model.window.cwnd())
    }

    /// Inflight of `gain` bandwidth-delay products.
    fn inflight(&self, bdp: f64, gain: f64) -> f64 {
        self.quantized(gain * bdp)
    }

    /// Returns an inflight with the budgets for offload and for a probe (`QuantizationBudget`).
    fn quantized(&self, inflight: f64) -> f64 {
        let probe_bytes =
            if matches!(self.state, State::Up) { 2.0 * self.model.packet } else { 0.0 };
        let offload_budget = self.model.offload_budget(self.config.offload_quanta);
        inflight.max(offload_budget).max(self.model.window.min_cwnd()) + probe_bytes
    }

    /// Updates the estimate of `extra_acked`.
    fn update_extra_acked(&mut self, ack: &Ack) {
        let (bandwidth, window) = (self.bw(), self.model.window.cwnd());
        let round = (self.model.delivery.rounds(), self.model.full_bw_reached);
        if let Some(extra_acked) = &mut self.extra_acked {
            extra_acked.update((ack.now, ack.bytes), round, bandwidth, window);
        }
    }

    /// Long-term bound less the headroom.
    fn with_headroom(&self) -> f64 {
        self.bounds.with_headroom(self.config.headroom)
    }

    fn is_probing(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    fn is_in_probe_bw(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// Updates the model with a sample. Returns true if the loss round is over.
    fn update_model(&mut self, sample: &RateSample, ack: &Ack) -> bool {
        self.handle_loss(sample, ack);
        let is_over = self.loss_round.on_sample(sample, self.model.delivery.delivered());
        self.model.update_max_bw(sample, self.cycle_count);
        if is_over && self.loss_round.has_loss() && !self.is_probing() {
            let (bandwidth, window) = (self.model.bandwidth(), self.model.window.cwnd());
            self.bounds.lower_short_term(&self.loss_round, self.config.beta, bandwidth, window);
        }
        if sample.starts_round {
            self.rounds_since_probe = self.rounds_since_probe.saturating_add(1);
        }
        is_over
    }

    fn handle_loss(&mut self, sample: &RateSample, ack: &Ack) {
        if ack.lost == 0 {
            return;
        }
        self.loss_round.on_loss(self.model.delivery.delivered());
        if self.has_probe_samples && self.loss_tolerance.is_exceeded(sample) {
            self.handle_inflight_too_high(sample, ack);
        }
    }

    /// Handles a probe that lost too much: the inflight at the loss threshold becomes the long-term bound.
    fn handle_inflight_too_high(&mut self, sample: &RateSample, ack: &Ack) {
        self.prev_probe_too_high = true;
        self.has_probe_samples = false;
        if !sample.is_app_limited {
            let newly_lost = f64::from(ack.lost) * self.model.packet;
            let inflight = self.loss_tolerance.inflight_at_threshold(sample, newly_lost);
            self.bounds.set_inflight_hi(inflight.max(self.config.beta * self.target_inflight()));
        }
        if matches!(self.state, State::Up) {
            self.undo_state = Some(UndoState::Up);
            self.start_probe_down(ack.now);
        }
    }

    fn update_min_rtt(&mut self, ack: &Ack) -> bool {
        let Config { probe_rtt_interval, min_rtt_window, .. } = self.config;
        let sample = MinRtt::sample(ack.rtt, ack.now);
        let is_due = self.probe_rtt_min.update(sample, ack.now, probe_rtt_interval);
        self.model.min_rtt.update(self.probe_rtt_min, ack.now, min_rtt_window);
        is_due
    }
}

// The cycle.
impl Bbr3 {
    /// Handles transitions of Startup and Drain.
    fn update_startup(&mut self, ack: &Ack, sample: &RateSample, is_over: bool) {
        let model = &mut self.model;
        if sample.starts_round && !sample.is_app_limited && !model.full_pipe.is_full() {
            model.full_pipe.on_round(sample.rate.unwrap_or(0.0));
            model.full_bw_reached |= model.full_pipe.is_full();
        }
        if matches!(self.state, State::Startup) {
            let is_lossy = if self.loss_tolerance.counts_losses {
                is_over && self.loss_round.loss_events >= self.config.startup_losses
            } else {
                ack.lost > 0
            };
            if is_lossy && ack.is_recovering && self.loss_tolerance.is_exceeded(sample) {
                self.undo_state = Some(UndoState::Startup);
                self.model.full_bw_reached = true;
                self.bounds.set_inflight_hi(self.bdp().max(self.loss_round.inflight_latest));
            }
            if self.model.full_bw_reached {
                self.state = State::Drain;
                self.rounds_since_probe = 0;
            }
        }
        let is_drained = self.model.delivery.in_flight() <= self.inflight(self.bdp(), 1.0);
        let is_too_long = self.rounds_since_probe > self.config.drain_rounds;
        if matches!(self.state, State::Drain) && (is_drained || is_too_long) {
            self.start_probe_down(ack.now);
        }
    }

    /// Handles transitions of `ProbeBW`.
    fn update_probe_bw(&mut self, ack: &Ack, sample: &RateSample) {
        if !self.model.full_bw_reached || self.adapt_inflight_hi(ack, sample) {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(ack.now) => {
                self.start_probe_refill();
            }
            State::Down if self.is_time_to_cruise() => self.state = State::Cruise,
            State::Refill if sample.starts_round => {
                self.has_probe_samples = true;
                self.start_probe_up(sample);
            }
            State::Up => {
                if self.is_time_to_end_probe(sample) {
                    self.prev_probe_too_high = false;
                    self.start_probe_down(ack.now);
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

    /// Adapts the long-term bound to the ACKs of the last probe. Returns true if a new probe starts at once.
    fn adapt_inflight_hi(&mut self, ack: &Ack, sample: &RateSample) -> bool {
        if self.is_probe_stopping && sample.starts_round {
            self.has_probe_samples = false;
            self.is_probe_stopping = false;
            if self.is_in_probe_bw() && !sample.is_app_limited {
                self.cycle_count += 1;
            }
            if self.is_in_probe_bw() && self.stopped_risky_probe && !self.prev_probe_too_high {
                self.start_probe_refill();
                return true;
            }
        }
        if !self.loss_tolerance.is_exceeded(sample) && self.bounds.inflight_hi().is_finite() {
            self.bounds.raise_inflight_hi(sample.in_flight);
            let window = self.model.window.cwnd();
            // Only a probe that uses the bound fully may raise it further.
            let is_bound_full = self.is_window_full() && window >= self.bounds.inflight_hi();
            if matches!(self.state, State::Up) && is_bound_full {
                self.bounds.probe_inflight_hi_upward(
                    ack.bytes.0 as f64,
                    window,
                    sample.starts_round,
                );
            }
        }
        false
    }

    fn start_probe_down(&mut self, now: Time) {
        self.loss_round.reset();
        self.rounds_since_probe = self.random.below(2) as u32;
        let spread = self.random.uniform() * self.config.probe_spread.seconds();
        self.probe_wait = self.config.probe_wait + Duration::from_seconds(spread);
        self.cycle_start = now;
        self.is_probe_stopping = true;
        self.model.delivery.start_round();
        self.state = State::Down;
    }

    fn start_probe_refill(&mut self) {
        self.bounds.reset_short_term();
        self.stopped_risky_probe = false;
        self.is_probe_stopping = false;
        self.model.delivery.start_round();
        self.state = State::Refill;
    }

    fn start_probe_up(&mut self, sample: &RateSample) {
        self.model.delivery.start_round();
        self.model.full_pipe.restart(sample.rate.unwrap_or(0.0));
        self.state = State::Up;
        self.bounds.begin_probe_up(self.model.window.cwnd());
    }

    fn is_time_to_probe(&self, now: Time) -> bool {
        let rounds =
            (self.target_inflight() / self.model.packet).min(f64::from(self.config.probe_rounds));
        now.since(self.cycle_start) > self.probe_wait
            || f64::from(self.rounds_since_probe) >= rounds
    }

    fn is_time_to_cruise(&self) -> bool {
        let bdp = self.model.bandwidth() * self.model.rtt().seconds();
        let in_flight = self.model.delivery.in_flight();
        in_flight <= self.with_headroom() && in_flight <= self.inflight(bdp, 1.0)
    }

    fn is_time_to_end_probe(&mut self, sample: &RateSample) -> bool {
        if self.prev_probe_too_high && self.model.delivery.in_flight() >= self.bounds.inflight_hi()
        {
            self.stopped_risky_probe = true;
            return true;
        }
        if self.is_window_full() && self.model.window.cwnd() >= self.bounds.inflight_hi() {
            // The bound limits the rate, not the path: the pipe is not full.
            self.model.full_pipe.restart(sample.rate.unwrap_or(0.0));
            return false;
        }
        self.model.full_pipe.is_full()
    }

    /// True if the window kept the last packet from being sent.
    fn is_window_full(&self) -> bool {
        self.model.delivery.was_in_flight() + self.model.packet > self.model.window.cwnd()
    }

    /// Enters or leaves `ProbeRTT`.
    fn update_probe_rtt(&mut self, ack: &Ack, is_due: bool, starts_round: bool) {
        if is_due && !self.is_probing_rtt() {
            self.model.window.save_cwnd(false);
            self.state = State::ProbeRtt(ProbeRtt::default());
            self.is_probe_stopping = true;
            self.model.delivery.start_round();
        }
        let limits = (self.probe_rtt_window(), self.config.probe_rtt_duration);
        let State::ProbeRtt(probe_rtt) = &mut self.state else { return };
        if !probe_rtt.is_over(ack.now, starts_round, limits, &mut self.model.delivery) {
            return;
        }
        self.probe_rtt_min.refresh(ack.now);
        self.model.window.restore_cwnd();
        self.bounds.reset_short_term();
        if self.model.full_bw_reached {
            // Inflight is below the bandwidth-delay product already.
            self.start_probe_down(ack.now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    fn is_probing_rtt(&self) -> bool {
        matches!(self.state, State::ProbeRtt(_))
    }
}

// Control parameters.
impl Bbr3 {
    /// Pacing gain and window gain.
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
        (self.config.probe_rtt_gain * self.bdp()).max(self.model.window.min_cwnd())
    }

    fn set_control_parameters(&mut self, ack: &Ack) {
        let (pacing_gain, cwnd_gain) = self.gains();
        self.model.set_pacing_rate(ack, pacing_gain * self.bw(), self.config.margin);
        let extra_acked = self.extra_acked.as_ref().map_or(0.0, |extra| extra.allowance());
        self.model.set_cwnd(ack, self.quantized(cwnd_gain * self.bdp() + extra_acked));
        if self.is_probing_rtt() {
            self.model.window.bound_cwnd(self.probe_rtt_window());
        }
        let bound = match self.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::Down | State::Refill | State::Up => self.bounds.inflight_hi(),
            State::Cruise | State::ProbeRtt(_) => self.with_headroom(),
        };
        self.model.window.bound_cwnd(bound.min(self.bounds.inflight_lo()));
    }
}

impl Controller for Bbr3 {
    fn on_open(&mut self, opened: &Opened) {
        self.model.on_open(opened, self.config.startup_gain);
        self.probe_rtt_min = self.model.min_rtt;
    }

    fn on_sent(&mut self, now: Time, bytes: Bytes) -> Option<Allowance> {
        self.model.delivery.on_sent(now, bytes);
        None
    }

    fn on_app_limited(&mut self) {
        self.model.delivery.mark_app_limited();
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.bytes == Bytes::ZERO {
            return;
        }
        let sample = self.model.on_ack(ack);
        if let Some(sample) = &sample {
            let is_over = self.update_model(sample, ack);
            self.update_extra_acked(ack);
            self.update_startup(ack, sample, is_over);
            self.update_probe_bw(ack, sample);
            if is_over {
                self.loss_round.start_next(sample);
            }
        }
        let is_due = self.update_min_rtt(ack);
        self.update_probe_rtt(ack, is_due, sample.is_some_and(|sample| sample.starts_round));
        self.set_control_parameters(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.model.on_loss(loss, self.is_probing_rtt());
    }

    fn save_state(&mut self, _now: Time) {
        (self.saved_bounds, self.undo_state) = (self.bounds.save(), None);
    }

    fn on_spurious_loss(&mut self, _now: Time) {
        self.model.window.on_spurious_loss();
        self.loss_round.forget_losses();
        self.model.full_pipe.restart(0.0);
        self.bounds.restore(self.saved_bounds);
        match (self.undo_state.take(), self.state) {
            (Some(UndoState::Startup), State::ProbeRtt(_)) => self.model.full_bw_reached = false,
            (Some(UndoState::Startup), _) => {
                self.model.full_bw_reached = false;
                self.state = State::Startup;
            }
            (Some(UndoState::Up), State::Up | State::ProbeRtt(_)) | (None, _) => {}
            (Some(UndoState::Up), _) => self.start_probe_refill(),
        }
    }

    fn allowance(&self) -> Allowance {
        self.model.window.allowance()
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.model.gauges()
    }
}

#[cfg(test)]
mod tests;

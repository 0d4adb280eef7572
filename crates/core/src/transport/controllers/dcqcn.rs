//! DCQCN: congestion notification packets (CNPs) reduce the rate; a timer and a byte counter raise it
//! ([dcqcn15], [ecndelay16]).
//!
//! Where the authors' simulator differs from the paper, a parameter selects, with the paper as the default.
//! The alpha timer needs no event: between CNPs alpha only decays, so it is updated when next used.
//!
//! NVIDIA's NICs ship a variant (DOCA's "DCQCN CC Parameters"): the example `dcqcn_connectx` has its values.

use super::{
    Ack, AckPolicy, Allowance, Controller, DesignRates, MarkFeedback, Mechanism, Path, Reliability,
    Transport,
};
use crate::base::schema::{Problem, fraction, positive, positive_fraction, positive_if_given};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::Format;
use crate::queueing::disciplines;
use crate::transport::blocks::path_scaled::{FlowRate, RateWindow, WindowSize};

crate::choices! {
    /// Time at which a receiver sends a CNP.
    pub enum NotifyAt {
        /// At a marked packet, unless the last CNP is younger than the interval.
        Mark = "mark",
        /// At the tick of a free-running clock, if a packet was marked since the last tick.
        Tick = "tick",
        /// In the ACK of each marked packet, without CNPs (simulator of [hpcc19]). Needs `ack_every = 1`.
        Ack = "ack",
    }
}

crate::choices! {
    /// Updates of alpha.
    pub enum AlphaUpdate {
        /// A rise at each CNP, and a decay after each `alpha_timer` without one ([dcqcn15]).
        EachCnp = "each_cnp",
        /// One update per `alpha_timer`, from the first CNP on: a rise if a CNP arrived in this period,
        /// otherwise a decay (NVIDIA's NICs, and the simulator of [hpcc19]).
        Periodic = "periodic",
    }
}

crate::choices! {
    /// Order of the updates at a CNP.
    pub enum UpdateOrder {
        /// The rate is reduced, then alpha rises.
        CutFirst = "cut_first",
        /// Alpha rises, then the rate is reduced.
        AlphaFirst = "alpha_first",
    }
}

crate::choices! {
    /// Condition on which the target rate is set to the current rate.
    pub enum TargetClamp {
        /// At every CNP.
        Always = "always",
        /// Only if the byte counter or the timer has raised the rate since the last CNP.
        AfterIncrease = "after_increase",
    }
}

crate::choices! {
    /// Start of hyper increase, with F fast-recovery stages.
    pub enum HyperFrom {
        /// Both the timer and the byte counter are beyond F; the first step is one increment.
        BeyondF = "beyond_f",
        /// Both have reached F.
        AtF = "at_f",
        /// The timer is beyond F; each step is one increment (simulator of [hpcc19], without a byte counter).
        Timer = "timer",
    }
}

crate::parameters! {
    /// DCQCN: rate control by congestion notification packets (CNPs) for RDMA ([dcqcn15],
    /// [ecndelay16]).
    pub struct Config {
        /// g, the weight of the newest observation in alpha ([dcqcn15]: 1/256).
        pub gain: f64 = 1.0 / 256.0, where positive_fraction;
        /// Initial alpha ([ecndelay16]: 1; authors' simulator: 0.5).
        pub initial_alpha: f64 = 1.0, where fraction;
        /// N, the minimum interval between CNPs of a receiver ([dcqcn15]: 50 us).
        pub notification_interval: Duration = Duration::from_micros(50), where positive;
        /// Time at which a receiver sends a CNP (authors' simulator: tick).
        pub notify_at: NotifyAt = NotifyAt::Mark;
        /// Updates of alpha (NVIDIA's NICs: periodic).
        pub alpha_update: AlphaUpdate = AlphaUpdate::EachCnp;
        /// If true, alpha is `initial_alpha` again at the first CNP after the flow was at line rate (NVIDIA's
        /// NICs: true).
        pub reset_alpha: bool = false;
        /// K, the time without a CNP after which alpha decays ([dcqcn15]: 55 us), or the
        /// period of its updates (NVIDIA's NICs: 1 us).
        pub alpha_timer: Duration = Duration::from_micros(55), where positive;
        /// T, the period of the rate increase timer ([dcqcn15]: 55 us).
        pub rate_timer: Duration = Duration::from_micros(55), where positive;
        /// B, the byte counter of the rate increase ([dcqcn15]: 10 MB).
        pub byte_counter: Bytes = Bytes(10_000_000), where positive;
        /// F, the number of fast-recovery stages ([dcqcn15]: 5).
        pub fast_recovery_stages: u32 = 5;
        /// `R_AI`, the additive increase ([dcqcn15]: 40 Mb/s).
        pub additive_increase: FlowRate = FlowRate::from_mbps(40), where positive;
        /// `R_HAI`, the hyper increase (authors' simulator: 200 Mb/s; [dcqcn15] gives no value).
        pub hyper_increase: FlowRate = FlowRate::from_mbps(200), where positive;
        /// Start of hyper increase (authors' simulator: `at_f`).
        pub hyper_from: HyperFrom = HyperFrom::BeyondF;
        /// Order of the updates at a CNP (authors' simulator: `alpha_first`).
        pub order: UpdateOrder = UpdateOrder::CutFirst;
        /// Condition on which the target rate is set to the current rate (authors' simulator: either).
        pub clamp_target: TargetClamp = TargetClamp::Always;
        /// Period of a clock that starts at the first CNP, and reduces the rate at a tick if a CNP arrived
        /// since the last tick (NVIDIA's NICs, simulator of [hpcc19]: 4 us; none: every CNP reduces the
        /// rate).
        pub cut_interval: Option<Duration> = None, where positive_if_given;
        /// Minimum factor of the rate in one reduction (NVIDIA's NICs: 0.5).
        pub least_factor: f64 = 0.0, where fraction;
        /// Rate that the first CNP after line rate sets, instead of a reduction by alpha (none: reduction, as
        /// NVIDIA's NICs are shipped).
        pub first_cnp_rate: Option<FlowRate> = None, where positive_if_given;
        /// Window at line rate, which shrinks with the rate (DCQCN+w of [hpcc19]: 1 BDP; none: no window).
        /// Needs `ack_every = 1`.
        pub window: Option<WindowSize> = None, where positive_if_given;
        /// Minimum rate ([dcqcn15] gives none; authors' simulator: 100 Mb/s).
        pub min_rate: FlowRate = FlowRate::from_mbps(10), where positive;
        /// Number of packets per ACK (authors' simulator: 256).
        pub ack_every: u32 = 16, where positive;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::go_back_n();
    }
    check |dcqcn| {
        if dcqcn.window.is_some() && dcqcn.ack_every > 1 {
            let message = "needs ack_every = 1: a window may be less than the packets of an ACK";
            return Err(Problem::new("window", message));
        }
        if dcqcn.notify_at == NotifyAt::Ack && dcqcn.ack_every > 1 {
            let message = "\"ack\" needs ack_every = 1: an ACK reports the mark of one packet";
            return Err(Problem::new("notify_at", message));
        }
        let is_short = dcqcn.alpha_timer <= dcqcn.notification_interval
            && dcqcn.notify_at != NotifyAt::Ack;
        if is_short && dcqcn.alpha_update == AlphaUpdate::EachCnp {
            let interval = dcqcn.notification_interval;
            let message = format!(
                "must be longer than notification_interval, which is {interval} ([dcqcn15]), or give \
                 alpha_update = \"periodic\""
            );
            return Err(Problem::new("alpha_timer", message));
        }
        Ok(())
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let line = path.line_rate.bps();
        let rate = path.initial_rate.map_or(line, |rate| rate.bps().min(line));
        Box::new(Dcqcn {
            line_rate: line,
            min_rate: self.min_rate.bps(line).min(line),
            current_rate: rate,
            target_rate: rate,
            alpha: self.initial_alpha,
            alpha_updated_at: None,
            has_cnp: false,
            first_cnp: None,
            pending_cut: Time::NEVER,
            window: RateWindow::new(self.window, path),
            timer: if rate < line { path.start + self.rate_timer } else { Time::NEVER },
            timer_stage: 0,
            byte_stage: 0,
            bytes_left: self.byte_counter.0,
            config: self.clone(),
        })
    }

    /// [dcqcn15] chose its additive increase for NICs of 40 Gb/s.
    fn design_rates(&self) -> Option<DesignRates> {
        let is_published = self.additive_increase == FlowRate::from_mbps(40);
        is_published.then(|| DesignRates::one("additive_increase", Rate::from_gbps(40)))
    }

    fn needs_lossless_network(&self) -> bool {
        true
    }

    fn takes_initial_rate(&self) -> bool {
        true
    }

    fn min_rate(&self) -> Option<(&'static str, FlowRate)> {
        Some(("min_rate", self.min_rate))
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        let interval = self.notification_interval;
        let endpoint = match self.window {
            None => Mechanism::paced(&self.reliability),
            Some(_) => Mechanism::paced_window(&self.reliability),
        };
        Mechanism {
            ecn_capable: true,
            acks: AckPolicy {
                every: self.ack_every,
                feedback: match self.notify_at {
                    NotifyAt::Mark => MarkFeedback::Cnp { interval },
                    NotifyAt::Tick => MarkFeedback::PeriodicCnp { interval },
                    NotifyAt::Ack => MarkFeedback::Echo,
                },
                ..AckPolicy::default()
            },
            ..endpoint
        }
    }

    fn queue(&self) -> disciplines::Config {
        disciplines::Config::dcqcn_red(disciplines::dcqcn_red::Config {
            kmin: disciplines::Capacity::Bytes(5_000),
            kmax: disciplines::Capacity::Bytes(200_000),
            pmax: 0.01,
            mark_at: disciplines::MarkAt::Departure,
            capacity: None,
        })
    }
}

/// State of one flow at its sender; rates in bits per second.
struct Dcqcn {
    config: Config,
    line_rate: f64,
    min_rate: f64,
    /// `R_C`, the current rate.
    current_rate: f64,
    /// `R_T`, the target rate.
    target_rate: f64,
    alpha: f64,
    /// Time of the last update of alpha; none before the first CNP.
    alpha_updated_at: Option<Time>,
    /// True if a CNP arrived since the last periodic update of alpha.
    has_cnp: bool,
    /// Start of the clock of reductions.
    first_cnp: Option<Time>,
    /// Tick of the next reduction.
    pending_cut: Time,
    window: RateWindow,
    /// Expiry of the rate increase timer; [`Time::NEVER`] at the line rate, before the first CNP.
    timer: Time,
    timer_stage: u32,
    byte_stage: u32,
    bytes_left: u64,
}

impl Controller for Dcqcn {
    fn on_ack(&mut self, ack: &Ack) {
        // Without CNPs.
        if ack.marked && self.config.notify_at == NotifyAt::Ack {
            self.on_notification(ack.now);
        }
    }

    fn on_notification(&mut self, now: Time) {
        let was_at_line_rate = self.timer == Time::NEVER;
        if was_at_line_rate && self.config.reset_alpha {
            (self.alpha, self.alpha_updated_at, self.has_cnp) =
                (self.config.initial_alpha, None, false);
        }
        self.advance_alpha(now);
        if self.config.order == UpdateOrder::AlphaFirst {
            self.raise_alpha();
        }
        let clock = *self.first_cnp.get_or_insert(now);
        match (self.config.first_cnp_rate.filter(|_| was_at_line_rate), self.config.cut_interval) {
            (Some(rate), _) => {
                let rate = rate.bps(self.line_rate).clamp(self.min_rate, self.current_rate);
                (self.current_rate, self.target_rate) = (rate, rate);
                self.restart_increase(now);
            }
            (None, None) => self.cut(now),
            (None, Some(period)) => {
                let next_tick = clock + period * (now.since(clock).0 / period.0 + 1);
                self.pending_cut = self.pending_cut.min(next_tick);
            }
        }
        if self.config.order == UpdateOrder::CutFirst {
            self.raise_alpha();
        }
        match self.config.alpha_update {
            AlphaUpdate::EachCnp => self.alpha_updated_at = Some(now),
            AlphaUpdate::Periodic => drop(self.alpha_updated_at.get_or_insert(now)),
        }
    }

    fn on_sent(&mut self, _now: Time, bytes: Bytes) -> Option<Allowance> {
        if self.timer == Time::NEVER {
            return None;
        }
        self.bytes_left = self.bytes_left.saturating_sub(bytes.0);
        if self.bytes_left > 0 {
            return None;
        }
        self.bytes_left = self.config.byte_counter.0;
        self.byte_stage += 1;
        self.increase();
        Some(self.allowance())
    }

    fn on_timer(&mut self, now: Time) {
        if now >= self.pending_cut {
            self.advance_alpha(now);
            self.cut(now);
        }
        if now >= self.timer {
            self.timer = now + self.config.rate_timer;
            self.timer_stage += 1;
            self.increase();
        }
    }

    fn next_timer(&self) -> Time {
        self.timer.min(self.pending_cut)
    }

    fn allowance(&self) -> Allowance {
        self.window.allowance(self.current_rate)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("rate_bps", self.current_rate),
            ("target_bps", self.target_rate),
            ("alpha", self.alpha),
        ]
    }
}

impl Dcqcn {
    /// Updates alpha for the periods of the alpha timer since the last update.
    fn advance_alpha(&mut self, now: Time) {
        let Some(from) = self.alpha_updated_at else { return };
        let periods = now.since(from).0 / self.config.alpha_timer.0;
        let mut decays = periods;
        if periods > 0 && std::mem::take(&mut self.has_cnp) {
            self.alpha += self.config.gain * (1.0 - self.alpha);
            decays -= 1;
        }
        for _ in 0..decays {
            self.alpha *= 1.0 - self.config.gain;
            if self.alpha < 1e-9 {
                break;
            }
        }
        self.alpha_updated_at = Some(from + self.config.alpha_timer * periods);
    }

    /// Raises alpha for a CNP, now or at the next periodic update.
    fn raise_alpha(&mut self) {
        match self.config.alpha_update {
            AlphaUpdate::EachCnp => self.alpha += self.config.gain * (1.0 - self.alpha),
            AlphaUpdate::Periodic => self.has_cnp = true,
        }
    }

    /// Reduces the rate in proportion to alpha.
    fn cut(&mut self, now: Time) {
        let has_risen =
            self.timer_stage > 0 || self.byte_stage > 0 || self.alpha_updated_at.is_none();
        if self.config.clamp_target == TargetClamp::Always || has_risen {
            self.target_rate = self.current_rate;
        }
        let factor = (1.0 - self.alpha / 2.0).max(self.config.least_factor);
        self.current_rate = (self.current_rate * factor).max(self.min_rate);
        self.restart_increase(now);
    }

    /// Starts the increase anew after a reduction.
    fn restart_increase(&mut self, now: Time) {
        self.pending_cut = Time::NEVER;
        (self.timer_stage, self.byte_stage) = (0, 0);
        self.bytes_left = self.config.byte_counter.0;
        self.timer = now + self.config.rate_timer;
    }

    /// Rate increase at an event of the timer or the byte counter ([dcqcn15]).
    fn increase(&mut self) {
        let stages = self.config.fast_recovery_stages;
        let max_stage = self.timer_stage.max(self.byte_stage);
        let min_stage = self.timer_stage.min(self.byte_stage);
        let hyper_steps = match self.config.hyper_from {
            HyperFrom::BeyondF => min_stage.saturating_sub(stages),
            HyperFrom::AtF => (min_stage + 1).saturating_sub(stages),
            HyperFrom::Timer => u32::from(self.timer_stage > stages),
        };
        if hyper_steps > 0 {
            self.target_rate +=
                f64::from(hyper_steps) * self.config.hyper_increase.bps(self.line_rate);
        } else if max_stage >= stages {
            self.target_rate += self.config.additive_increase.bps(self.line_rate);
        }
        self.target_rate = self.target_rate.min(self.line_rate);
        self.current_rate = f64::midpoint(self.current_rate, self.target_rate).min(self.line_rate);
        if self.line_rate - self.current_rate < 1.0 {
            // At line rate the timer and the counter stop until the next CNP.
            self.current_rate = self.line_rate;
            self.timer = Time::NEVER;
        }
    }
}

#[cfg(test)]
mod tests;

//! DCQCN: congestion notification packets (CNPs) reduce the rate; a timer and a byte counter raise it
//! ([dcqcn15], [ecndelay16]).
//!
//! Where the authors' simulator differs from the paper, a parameter selects, with the paper as the default.
//! The alpha timer needs no event: between CNPs alpha only decays, so it is updated when next used.

use super::{
    Ack, AckPolicy, Allowance, Controller, DesignRates, MarkFeedback, Mechanism, Path, Reliability, Transport,
};
use crate::base::schema::{Problem, fraction, positive, positive_fraction};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::Format;
use crate::queueing::disciplines;
use crate::transport::blocks::path_scaled::FlowRate;

crate::choices! {
    /// Time at which a receiver sends a CNP.
    pub enum NotifyAt {
        /// At a marked packet, unless the last CNP is younger than the interval.
        Mark = "mark",
        /// At the tick of a free-running clock, if a packet was marked since the last tick.
        Tick = "tick",
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
        /// K, the time without a CNP after which alpha decays ([dcqcn15]: 55 us).
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
        /// Minimum rate ([dcqcn15] gives none; authors' simulator: 100 Mb/s).
        pub min_rate: FlowRate = FlowRate::from_mbps(10), where positive;
        /// Number of packets per ACK (authors' simulator: 256).
        pub ack_every: u32 = 16, where positive;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::go_back_n();
    }
    check |dcqcn| {
        if dcqcn.alpha_timer <= dcqcn.notification_interval {
            let interval = dcqcn.notification_interval;
            let message = format!(
                "must be longer than notification_interval, which is {interval} ([dcqcn15])"
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
            timer: Time::NEVER,
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

    fn mechanism(&self, _format: &Format) -> Mechanism {
        let interval = self.notification_interval;
        Mechanism {
            ecn_capable: true,
            acks: AckPolicy {
                every: self.ack_every,
                feedback: match self.notify_at {
                    NotifyAt::Mark => MarkFeedback::Cnp { interval },
                    NotifyAt::Tick => MarkFeedback::PeriodicCnp { interval },
                },
                ..AckPolicy::default()
            },
            ..Mechanism::paced(&self.reliability)
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
    /// Expiry of the rate increase timer.
    timer: Time,
    timer_stage: u32,
    byte_stage: u32,
    bytes_left: u64,
}

impl Controller for Dcqcn {
    fn on_ack(&mut self, _ack: &Ack) {}

    fn on_notification(&mut self, now: Time) {
        self.decay_alpha(now);
        if self.config.order == UpdateOrder::AlphaFirst {
            self.raise_alpha();
        }
        let has_risen =
            self.timer_stage > 0 || self.byte_stage > 0 || self.alpha_updated_at.is_none();
        if self.config.clamp_target == TargetClamp::Always || has_risen {
            self.target_rate = self.current_rate;
        }
        self.current_rate = (self.current_rate * (1.0 - self.alpha / 2.0)).max(self.min_rate);
        if self.config.order == UpdateOrder::CutFirst {
            self.raise_alpha();
        }
        self.alpha_updated_at = Some(now);
        (self.timer_stage, self.byte_stage) = (0, 0);
        self.bytes_left = self.config.byte_counter.0;
        self.timer = now + self.config.rate_timer;
    }

    fn on_sent(&mut self, _now: Time, bytes: Bytes) {
        if self.timer == Time::NEVER {
            return;
        }
        self.bytes_left = self.bytes_left.saturating_sub(bytes.0);
        if self.bytes_left == 0 {
            self.bytes_left = self.config.byte_counter.0;
            self.byte_stage += 1;
            self.increase();
        }
    }

    fn on_timer(&mut self, now: Time) {
        self.timer = now + self.config.rate_timer;
        self.timer_stage += 1;
        self.increase();
    }

    fn next_timer(&self) -> Time {
        self.timer
    }

    fn allowance(&self) -> Allowance {
        Allowance::rate(self.current_rate)
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
    /// Alpha timer: one decay per period since the last update.
    fn decay_alpha(&mut self, now: Time) {
        let Some(from) = self.alpha_updated_at else { return };
        let periods = now.since(from).0 / self.config.alpha_timer.0;
        for _ in 0..periods {
            self.alpha *= 1.0 - self.config.gain;
            if self.alpha < 1e-9 {
                break;
            }
        }
        self.alpha_updated_at = Some(from + self.config.alpha_timer * periods);
    }

    fn raise_alpha(&mut self) {
        self.alpha += self.config.gain * (1.0 - self.alpha);
    }

    /// Rate increase at an event of the timer or the byte counter ([dcqcn15]).
    fn increase(&mut self) {
        let stages = self.config.fast_recovery_stages;
        let max_stage = self.timer_stage.max(self.byte_stage);
        let min_stage = self.timer_stage.min(self.byte_stage);
        let hyper_steps = match self.config.hyper_from {
            HyperFrom::BeyondF => min_stage.saturating_sub(stages),
            HyperFrom::AtF => (min_stage + 1).saturating_sub(stages),
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
mod tests {
    #![expect(clippy::float_cmp, reason = "the formulas give exactly these numbers")]

    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use serde_json::json;

    fn flow(config: &serde_json::Value) -> Box<dyn Controller> {
        Config::read(config).unwrap().controller(&Path::new(
            Rate::from_gbps(10),
            Duration::from_micros(10),
            Format { header: Bytes(48), ack: Bytes(64), ..defaults() },
        ))
    }

    /// Current and target rate in Gb/s, and alpha.
    fn state(flow: &dyn Controller) -> [f64; 3] {
        let gauges = flow.gauges();
        [gauges[0].1 / 1e9, gauges[1].1 / 1e9, gauges[2].1]
    }

    fn fire(flow: &mut dyn Controller, times: u32) {
        for _ in 0..times {
            let now = flow.next_timer();
            if now < Time::NEVER {
                flow.on_timer(now);
            }
        }
    }

    #[test]
    fn the_first_cnp_halves_the_rate() {
        let mut flow = flow(&json!({}));
        flow.on_notification(Time::ZERO);
        assert_eq!(state(&*flow), [5.0, 10.0, 1.0]);
    }

    #[test]
    fn the_reduction_uses_alpha_before_or_after_its_rise() {
        for (order, expected) in
            [("cut_first", 7.5), ("alpha_first", 10.0 * (1.0 - 0.501_953_125 / 2.0))]
        {
            let mut flow = flow(&json!({"initial_alpha": 0.5, "order": order}));
            flow.on_notification(Time::ZERO);
            assert_eq!(state(&*flow)[0], expected, "{order}");
        }
    }

    #[test]
    fn alpha_decays_once_per_period_without_cnps() {
        let mut flow = flow(&json!({}));
        flow.on_notification(Time::ZERO);
        flow.on_notification(Time::ZERO + Duration::from_micros(55 * 3 + 10));
        let decayed = (255.0_f64 / 256.0).powi(3);
        let [rate, _, alpha] = state(&*flow);
        assert!((rate - 5.0 * (1.0 - decayed / 2.0)).abs() < 1e-12);
        assert!((alpha - (decayed * 255.0 + 1.0) / 256.0).abs() < 1e-12);
    }

    #[test]
    fn recovery_is_fast_then_additive_then_hyper() {
        let mut flow = flow(&json!({"byte_counter": "1 MB"}));
        for _ in 0..4 {
            flow.on_notification(Time::ZERO);
        }
        let [rate, target, _] = state(&*flow);
        fire(&mut *flow, 4);
        assert_eq!(state(&*flow)[1], target, "fast recovery keeps the target rate");
        let gap = (target - rate) / 16.0;
        assert!(
            (target - state(&*flow)[0] - gap).abs() < 1e-9,
            "and halves the distance each time"
        );
        fire(&mut *flow, 1);
        assert!(
            (state(&*flow)[1] - (target + 0.04)).abs() < 1e-9,
            "then the target rate rises by 40 Mb/s"
        );
        for _ in 0..5 {
            flow.on_sent(Time::ZERO, Bytes(1_000_000));
        }
        let before = state(&*flow)[1];
        fire(&mut *flow, 1);
        assert!(
            (state(&*flow)[1] - before - 0.04).abs() < 1e-9,
            "still: the byte counter is only at F"
        );
        flow.on_sent(Time::ZERO, Bytes(1_000_000));
        assert!((state(&*flow)[1] - before - 0.24).abs() < 1e-9, "then by 200 Mb/s");
    }

    #[test]
    fn the_timer_stops_at_line_rate() {
        let mut flow = flow(&json!({"initial_alpha": 0.1, "min_rate": "1 Gbps"}));
        flow.on_notification(Time::ZERO);
        fire(&mut *flow, 40);
        assert_eq!(state(&*flow)[0], 10.0);
        assert_eq!(flow.next_timer(), Time::NEVER);
    }
}

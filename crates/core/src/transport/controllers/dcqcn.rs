//! DCQCN: a rate cut by congestion notifications, and raised by a timer and a byte counter.
//!
//! Source: [dcqcn15] and [ecndelay16]. Where the authors' simulator does otherwise, a parameter
//! chooses, and the paper is the default. The alpha timer needs no event: between notifications
//! alpha only decays, so it is brought up to date when it is next used.

use super::{Ack, Allowance, Controller, Feedback, Mechanism, Path, Reliability, Transport};
use crate::base::schema::{Problem, fraction, positive, positive_fraction};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::Format;
use crate::queueing::disciplines;

crate::choices! {
    /// When a receiver sends a notification.
    pub enum NotifyAt {
        /// At a marked packet, unless the last notification is younger than the interval.
        Mark = "mark",
        /// At the tick of a free-running clock, if anything was marked since the last tick.
        Tick = "tick",
    }
}

crate::choices! {
    /// Which comes first at a notification.
    pub enum Order {
        /// The rate is cut, then alpha rises.
        CutFirst = "cut_first",
        /// Alpha rises, then the rate is cut.
        AlphaFirst = "alpha_first",
    }
}

crate::choices! {
    /// When the target rate falls to the current rate.
    pub enum Clamp {
        /// At every notification.
        Always = "always",
        /// Only if the byte counter or the timer has raised the rate since the last one.
        AfterIncrease = "after_increase",
    }
}

crate::choices! {
    /// When the increase becomes hyper, with F fast-recovery stages.
    pub enum HyperFrom {
        /// When timer and byte counter are both beyond F; the first step is one increment.
        BeyondF = "beyond_f",
        /// When both have reached F.
        AtF = "at_f",
    }
}

crate::parameters! {
    /// DCQCN: rate control by congestion notifications for RDMA ([dcqcn15], [ecndelay16]).
    pub struct Config {
        /// g, the weight of the newest observation in alpha ([dcqcn15]: 1/256).
        pub gain: f64 = 1.0 / 256.0, where positive_fraction;
        /// alpha at the start ([ecndelay16]: 1; authors' simulator: 0.5).
        pub initial_alpha: f64 = 1.0, where fraction;
        /// A receiver sends at most one notification in this time ([dcqcn15]: 50 us).
        pub notification_interval: Duration = Duration::from_micros(50), where positive;
        /// When a receiver sends a notification (authors' simulator: tick).
        pub notify_at: NotifyAt = NotifyAt::Mark;
        /// alpha decays after this long without a notification ([dcqcn15]: 55 us).
        pub alpha_timer: Duration = Duration::from_micros(55), where positive;
        /// T: the rate rises after every such time ([dcqcn15]: 55 us).
        pub rate_timer: Duration = Duration::from_micros(55), where positive;
        /// B: and after every so many bytes sent ([dcqcn15]: 10 MB).
        pub byte_counter: Bytes = Bytes(10_000_000), where positive;
        /// F: stages of fast recovery ([dcqcn15]: 5).
        pub fast_recovery_stages: u32 = 5;
        /// `R_AI`, the additive increase ([dcqcn15]: 40 Mb/s).
        pub additive_increase: Rate = Rate::from_mbps(40), where positive;
        /// `R_HAI`, the hyper increase (authors' simulator: 200 Mb/s; [dcqcn15] gives no number).
        pub hyper_increase: Rate = Rate::from_mbps(200), where positive;
        /// When the increase becomes hyper (authors' simulator: `at_f`).
        pub hyper_from: HyperFrom = HyperFrom::BeyondF;
        /// Which comes first at a notification (authors' simulator: `alpha_first`).
        pub order: Order = Order::CutFirst;
        /// When the target rate falls to the current rate (authors' simulator can do either).
        pub clamp_target: Clamp = Clamp::Always;
        /// Least rate ([dcqcn15] gives none; authors' simulator: 100 Mb/s).
        pub min_rate: Rate = Rate::from_mbps(10), where positive;
        /// The receiver acknowledges every so many packets (authors' simulator: 256).
        pub ack_every: u32 = 16, where positive;
        /// How data is made reliable.
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
            line,
            least: self.min_rate.bps().min(line),
            rate,
            target: rate,
            alpha: self.initial_alpha,
            alpha_from: None,
            timer: Time::NEVER,
            timer_stage: 0,
            byte_stage: 0,
            bytes_left: self.byte_counter.0,
            config: self.clone(),
        })
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        let interval = self.notification_interval;
        Mechanism {
            ecn_capable: true,
            ack_every: self.ack_every,
            feedback: match self.notify_at {
                NotifyAt::Mark => Feedback::Notify { interval },
                NotifyAt::Tick => Feedback::NotifyAtTicks { interval },
            },
            ..Mechanism::paced(&self.reliability)
        }
    }

    fn queue(&self) -> disciplines::Config {
        disciplines::Config::dcqcn_red(disciplines::dcqcn_red::Config {
            kmin: Bytes(5_000),
            kmax: Bytes(200_000),
            pmax: 0.01,
            mark_at: disciplines::MarkAt::Departure,
            capacity: None,
        })
    }
}

/// The state of one flow at its sender; rates in bits a second.
struct Dcqcn {
    config: Config,
    line: f64,
    least: f64,
    /// `R_C`.
    rate: f64,
    /// `R_T`.
    target: f64,
    alpha: f64,
    /// When alpha was last up to date; none before the first notification.
    alpha_from: Option<Time>,
    /// When the rate timer fires.
    timer: Time,
    timer_stage: u32,
    byte_stage: u32,
    bytes_left: u64,
}

impl Controller for Dcqcn {
    fn on_ack(&mut self, _ack: &Ack) {}

    fn on_notification(&mut self, now: Time) {
        self.decay_alpha(now);
        if self.config.order == Order::AlphaFirst {
            self.raise_alpha();
        }
        let has_risen = self.timer_stage > 0 || self.byte_stage > 0 || self.alpha_from.is_none();
        if self.config.clamp_target == Clamp::Always || has_risen {
            self.target = self.rate;
        }
        self.rate = (self.rate * (1.0 - self.alpha / 2.0)).max(self.least);
        if self.config.order == Order::CutFirst {
            self.raise_alpha();
        }
        self.alpha_from = Some(now);
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
        Allowance::rate(self.rate)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("rate_bps", self.rate), ("target_bps", self.target), ("alpha", self.alpha)]
    }
}

impl Dcqcn {
    /// The alpha timer: one decay for every period since the last change.
    fn decay_alpha(&mut self, now: Time) {
        let Some(from) = self.alpha_from else { return };
        let periods = now.since(from).0 / self.config.alpha_timer.0;
        for _ in 0..periods {
            self.alpha *= 1.0 - self.config.gain;
            if self.alpha < 1e-9 {
                break;
            }
        }
        self.alpha_from = Some(from + self.config.alpha_timer * periods);
    }

    fn raise_alpha(&mut self) {
        self.alpha += self.config.gain * (1.0 - self.alpha);
    }

    /// One event of the timer or the byte counter ([dcqcn15]).
    fn increase(&mut self) {
        let stages = self.config.fast_recovery_stages;
        let most = self.timer_stage.max(self.byte_stage);
        let least = self.timer_stage.min(self.byte_stage);
        let hyper_steps = match self.config.hyper_from {
            HyperFrom::BeyondF => least.saturating_sub(stages),
            HyperFrom::AtF => (least + 1).saturating_sub(stages),
        };
        if hyper_steps > 0 {
            self.target += f64::from(hyper_steps) * self.config.hyper_increase.bps();
        } else if most >= stages {
            self.target += self.config.additive_increase.bps();
        }
        self.target = self.target.min(self.line);
        self.rate = f64::midpoint(self.rate, self.target).min(self.line);
        if self.line - self.rate < 1.0 {
            // At line rate again: nothing to count until the next notification.
            self.rate = self.line;
            self.timer = Time::NEVER;
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "the law gives exactly these numbers")]

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

    /// Rate and target in Gb/s, and alpha.
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
    fn the_first_notification_halves_the_rate() {
        let mut flow = flow(&json!({}));
        flow.on_notification(Time::ZERO);
        assert_eq!(state(&*flow), [5.0, 10.0, 1.0]);
    }

    #[test]
    fn the_cut_uses_alpha_before_or_after_its_rise() {
        for (order, expected) in
            [("cut_first", 7.5), ("alpha_first", 10.0 * (1.0 - 0.501_953_125 / 2.0))]
        {
            let mut flow = flow(&json!({"initial_alpha": 0.5, "order": order}));
            flow.on_notification(Time::ZERO);
            assert_eq!(state(&*flow)[0], expected, "{order}");
        }
    }

    #[test]
    fn alpha_decays_once_a_period_without_notifications() {
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
        assert_eq!(state(&*flow)[1], target, "fast recovery leaves the target alone");
        let gap = (target - rate) / 16.0;
        assert!(
            (target - state(&*flow)[0] - gap).abs() < 1e-9,
            "and halves the distance each time"
        );
        fire(&mut *flow, 1);
        assert!(
            (state(&*flow)[1] - (target + 0.04)).abs() < 1e-9,
            "then the target rises by 40 Mb/s"
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
    fn back_at_line_rate_nothing_is_counted() {
        let mut flow = flow(&json!({"initial_alpha": 0.1, "min_rate": "1 Gbps"}));
        flow.on_notification(Time::ZERO);
        fire(&mut *flow, 40);
        assert_eq!(state(&*flow)[0], 10.0);
        assert_eq!(flow.next_timer(), Time::NEVER);
    }
}

//! Rate compensation: senders that detect a queue slow down until it has drained ([pcp06] §3.2 and §3.5).
//!
//! The formulas follow from the fluid model of a FIFO link, since the paper's formulas were not available.
//! Packets sent with spacing d that arrive with spacing d' > d pass a link whose load is d'/d times its
//! capacity: if all senders slow down by d/d', the queue stops growing. Delays that exceed the minimum by q
//! mean a queue that drains in a time T if all senders slow down by q/T.

use crate::base::schema::{at_least_one, fraction, not_negative, positive, positive_fraction};
use crate::base::units::{Duration, Time};

crate::choices! {
    /// Signals of a queue.
    pub enum QueueSignal {
        /// Larger spacing and longer delay, multiplied.
        Product = "product",
        /// The stronger signal of the two.
        Largest = "largest",
        /// Longer delay only.
        Delay = "delay",
        /// Larger spacing only.
        Gap = "gap",
    }
}

crate::parameters! {
    /// Reaction of a sender to a queue.
    pub struct Config {
        /// Signals of a queue.
        pub form: QueueSignal = QueueSignal::Product;
        /// Maximum fraction of the rate that one reduction takes.
        pub most: f64 = 0.5, where positive_fraction;
        /// Excess of the delay over the minimum that does not count as a queue, as a fraction of the
        /// RTT (0.02: two packet times of the paper's link).
        pub allowance: f64 = 0.02, where not_negative;
        /// Time in which the queue is to drain, in RTTs.
        pub drain: f64 = 1.25, where positive;
        /// Duration of an observation, in RTTs.
        pub period: f64 = 0.25, where positive;
        /// Time without observations after a reduction, in RTTs, since packets sent before it are still
        /// arriving.
        pub settle: f64 = 0.75, where not_negative;
        /// Minimum fraction by which the queue must shrink for a reduction to count as successful, since
        /// a queue that others keep full varies at random.
        pub relief: f64 = 0.1, where fraction;
        /// Number of consecutive unsuccessful reductions after which other senders are taken as
        /// non-cooperative ([pcp06] §3.5: several).
        pub tries: u32 = 12, where positive;
        /// Factor by which reductions are weaker among non-cooperative senders ([pcp06] §3.5: ten).
        pub weakening: f64 = 10.0, where at_least_one;
    }
}

/// Delays observed in one period, in seconds.
#[derive(Clone, Copy, Debug)]
struct Observation {
    end: Time,
    first: (Time, f64),
    last: (Time, f64),
    max: f64,
}

/// Rate compensation of one sender.
#[derive(Clone, Debug)]
pub struct RateCompensation {
    config: Config,
    min_delay: f64,
    observation: Option<Observation>,
    /// No observation starts before this time.
    resumes_at: Time,
    /// Queueing delay at the last reduction, if the last observation caused one.
    queue: Option<f64>,
    /// Number of consecutive unsuccessful reductions.
    failures: u32,
}

impl RateCompensation {
    /// State of a new flow; `min_delay` is in seconds, infinite if unknown.
    pub fn new(config: &Config, min_delay: f64) -> Self {
        Self {
            config: config.clone(),
            min_delay,
            observation: None,
            resumes_at: Time::ZERO,
            queue: None,
            failures: 0,
        }
    }

    /// Minimum delay observed, in seconds.
    pub fn min_delay(&self) -> f64 {
        self.min_delay
    }

    /// Strength of reductions: 1, or less among non-cooperative senders.
    pub fn strength(&self) -> f64 {
        if self.failures >= self.config.tries { 1.0 / self.config.weakening } else { 1.0 }
    }

    /// Handles the one-way delay of a data packet, in seconds. Returns, at the end of an observation, the
    /// factor of the rate.
    pub fn on_delay(&mut self, now: Time, sent: Time, delay: f64, rtt: Duration) -> Option<f64> {
        self.min_delay = self.min_delay.min(delay);
        if now < self.resumes_at {
            return None;
        }
        let point = (sent, delay);
        let observation = self.observation.get_or_insert(Observation {
            end: now + Duration::from_seconds(self.config.period * rtt.seconds()),
            first: point,
            last: point,
            max: delay,
        });
        observation.last = point;
        observation.max = observation.max.max(delay);
        if now < observation.end {
            return None;
        }
        let observation = *observation;
        self.observation = None;
        Some(self.conclude(now, &observation, rtt))
    }

    fn conclude(&mut self, now: Time, observation: &Observation, rtt: Duration) -> f64 {
        let rtt_s = rtt.seconds();
        let allowed = self.config.allowance * rtt_s;
        let queue = observation.max - self.min_delay;
        let delay_reduction = ((queue - allowed) / (self.config.drain * rtt_s)).clamp(0.0, 1.0);
        let growth = observation.last.1 - observation.first.1 - allowed;
        let arrived = observation.last.0.since(observation.first.0).seconds() + growth;
        let gap_reduction = if growth > 0.0 { (growth / arrived).clamp(0.0, 1.0) } else { 0.0 };
        let reduction = match self.config.form {
            QueueSignal::Product => 1.0 - (1.0 - gap_reduction) * (1.0 - delay_reduction),
            QueueSignal::Largest => gap_reduction.max(delay_reduction),
            QueueSignal::Delay => delay_reduction,
            QueueSignal::Gap => gap_reduction,
        };
        if let Some(before) = self.queue {
            self.failures = if queue < (1.0 - self.config.relief) * before {
                0
            } else {
                self.failures.saturating_add(1)
            };
        }
        self.queue = (reduction > 0.0).then_some(queue);
        if reduction > 0.0 {
            self.resumes_at = now + Duration::from_seconds(self.config.settle * rtt_s);
        } else {
            self.failures = 0;
        }
        1.0 - reduction.min(self.config.most) * self.strength()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use serde_json::{Value, json};

    const RTT: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn compensation(change: &Value) -> RateCompensation {
        let mut config =
            json!({ "allowance": 0, "drain": 1, "period": 1, "settle": 0, "tries": 3 });
        config.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        RateCompensation::new(&Config::read(&config).unwrap(), f64::INFINITY)
    }

    /// Returns the factor after an observation in which delays change linearly, in milliseconds.
    fn after(compensation: &mut RateCompensation, start: u64, from: f64, to: f64) -> f64 {
        let factors: Vec<f64> = (0..=10_u32)
            .filter_map(|i| {
                let now = start + 10 * u64::from(i);
                let delay = (from + (to - from) * f64::from(i) / 10.0) * 1e-3;
                compensation.on_delay(at(now), at(now - 50), delay, RTT)
            })
            .collect();
        assert_eq!(factors.len(), 1, "once per observation");
        factors[0]
    }

    #[test]
    fn a_constant_delay_keeps_the_rate_and_a_queue_is_drained_in_one_rtt() {
        let mut product = compensation(&json!({}));
        let assert_factor =
            |factor: f64, expected: f64| assert!((factor - expected).abs() < 1e-9, "{factor}");
        assert_factor(after(&mut product, 100, 50.0, 50.0), 1.0);
        // A standing queue of 20 ms: a fifth of the RTT.
        assert_factor(after(&mut product, 300, 70.0, 70.0), 0.8);
        // The data of 100 ms arrives in 125 ms: the link is overloaded by a quarter.
        let mut gap_reduction = compensation(&json!({ "form": "gap" }));
        assert_factor(after(&mut gap_reduction, 100, 50.0, 75.0), 0.8);
        let mut both = compensation(&json!({ "most": 0.9 }));
        assert_factor(after(&mut both, 100, 50.0, 75.0), 0.8 * 0.75);
        let mut largest = compensation(&json!({ "form": "largest", "most": 0.9 }));
        assert_factor(after(&mut largest, 100, 50.0, 75.0), 0.75);
        assert_factor(after(&mut compensation(&json!({})), 100, 50.0, 150.0), 0.5);
        let mut tolerant = compensation(&json!({ "allowance": 0.05 }));
        assert_factor(after(&mut tolerant, 100, 50.0, 55.0), 1.0);
    }

    #[test]
    fn a_known_minimum_delay_reveals_a_standing_queue() {
        let assert_factor =
            |factor: f64, expected: f64| assert!((factor - expected).abs() < 1e-9, "{factor}");
        let mut unknown = compensation(&json!({}));
        assert_factor(after(&mut unknown, 100, 70.0, 70.0), 1.0);
        assert_factor(unknown.min_delay(), 0.07);
        let mut informed = RateCompensation { min_delay: 0.05, ..compensation(&json!({})) };
        assert_factor(after(&mut informed, 100, 70.0, 70.0), 0.8);
        assert_factor(informed.min_delay(), 0.05);
    }

    #[test]
    fn a_queue_that_others_keep_full_weakens_reductions_until_it_shrinks() {
        let mut tit_for_tat = compensation(&json!({}));
        after(&mut tit_for_tat, 100, 50.0, 50.0);
        let mut strengths = Vec::new();
        for round in 1..=6_u32 {
            // Others take the released rate, and the queue grows by 1 ms per RTT.
            let delay = 70.0 + f64::from(round);
            after(&mut tit_for_tat, 100 + 200 * u64::from(round), delay, delay);
            strengths.push(tit_for_tat.strength());
        }
        assert_eq!(strengths, [1.0, 1.0, 1.0, 0.1, 0.1, 0.1]);
        let factor = after(&mut tit_for_tat, 1500, 76.0, 76.0);
        assert!((factor - (1.0 - 0.026)).abs() < 1e-9, "{factor}: a tenth");
        after(&mut tit_for_tat, 1700, 60.0, 60.0);
        assert!(tit_for_tat.strength() > 0.9, "other senders have stopped");
    }
}

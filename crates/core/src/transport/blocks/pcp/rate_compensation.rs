//! Rate compensation: senders that see a queue slow down until it has drained.
//!
//! Source: [pcp06] §3.2 and §3.5 for what is seen and what it is for; the formulas follow from the fluid
//! model of a first-in-first-out link, since the paper's own were not at hand. Packets that leave a time d
//! apart and arrive d' > d apart find a link on which d'/d times its rate arrives: if all slow down by
//! d/d', the queue stops growing. Delays that exceed the least by q are a queue that drains in a time T if
//! all slow down by q/T.

use crate::base::schema::{at_least_one, fraction, not_negative, positive, positive_fraction};
use crate::base::units::{Duration, Time};

crate::choices! {
    /// Which signs of a queue count.
    pub enum Form {
        /// Wider gaps and longer delays, one after the other.
        Product = "product",
        /// The stronger of the two.
        Largest = "largest",
        /// Longer delays alone.
        Delay = "delay",
        /// Wider gaps alone.
        Gap = "gap",
    }
}

crate::parameters! {
    /// How a sender slows down when packets take longer.
    pub struct Config {
        /// Which signs of a queue count.
        pub form: Form = Form::Product;
        /// Most that the rate falls by at once.
        pub most: f64 = 0.5, where positive_fraction;
        /// How much longer than the least, as a share of the round-trip time, packets may take without
        /// being a queue: 0.02 is two packet times of the paper's link.
        pub allowance: f64 = 0.02, where not_negative;
        /// In how many round trips the queue is to drain.
        pub drain: f64 = 1.25, where positive;
        /// For how many round trips it looks before it acts.
        pub period: f64 = 0.25, where positive;
        /// For how many round trips after it has slowed down a sender does not look, as packets sent
        /// before tell the old news.
        pub settle: f64 = 0.75, where not_negative;
        /// Slowing down has shrunk the queue if at least this share of it is gone, for a queue that others
        /// keep full shrinks a little by chance.
        pub relief: f64 = 0.1, where fraction;
        /// After so many round trips in a row whose slowing down has not shrunk the queue, others do
        /// not play along ([pcp06] §3.5: several).
        pub tries: u32 = 12, where positive;
        /// By how much less a sender slows down among such others ([pcp06] §3.5: ten).
        pub weakening: f64 = 10.0, where at_least_one;
    }
}

/// What packets of one round trip have shown; delays in seconds.
#[derive(Clone, Copy, Debug)]
struct Round {
    until: Time,
    first: (Time, f64),
    last: (Time, f64),
    most: f64,
}

/// What one sender knows of the queue.
#[derive(Clone, Debug)]
pub struct RateCompensation {
    config: Config,
    least: f64,
    round: Option<Round>,
    /// No round begins before.
    looks_from: Time,
    /// The queue when it last slowed down, if it did so in the last round.
    queue: Option<f64>,
    /// How many times in a row that was in vain.
    in_vain: u32,
}

impl RateCompensation {
    /// Nothing has been seen, but the least delay may be known, in seconds; else it is infinite.
    pub fn new(config: &Config, least: f64) -> Self {
        Self {
            config: config.clone(),
            least,
            round: None,
            looks_from: Time::ZERO,
            queue: None,
            in_vain: 0,
        }
    }

    /// The least delay that is known, in seconds.
    pub fn least(&self) -> f64 {
        self.least
    }

    /// How strong it is: 1, or less among senders that do not play along.
    pub fn strength(&self) -> f64 {
        if self.in_vain >= self.config.tries { 1.0 / self.config.weakening } else { 1.0 }
    }

    /// A data packet took `delay` seconds. Once a round trip says by what to multiply the rate.
    pub fn on_delay(&mut self, now: Time, sent: Time, delay: f64, rtt: Duration) -> Option<f64> {
        self.least = self.least.min(delay);
        if now < self.looks_from {
            return None;
        }
        let here = (sent, delay);
        let round = self.round.get_or_insert(Round {
            until: now + Duration::from_seconds(self.config.period * rtt.seconds()),
            first: here,
            last: here,
            most: delay,
        });
        round.last = here;
        round.most = round.most.max(delay);
        if now < round.until {
            return None;
        }
        let round = *round;
        self.round = None;
        Some(self.conclude(now, &round, rtt))
    }

    fn conclude(&mut self, now: Time, round: &Round, rtt: Duration) -> f64 {
        let rtt_s = rtt.seconds();
        let allowed = self.config.allowance * rtt_s;
        let queue = round.most - self.least;
        let by_delay = ((queue - allowed) / (self.config.drain * rtt_s)).clamp(0.0, 1.0);
        let growth = round.last.1 - round.first.1 - allowed;
        let arrived = round.last.0.since(round.first.0).seconds() + growth;
        let by_gap = if growth > 0.0 { (growth / arrived).clamp(0.0, 1.0) } else { 0.0 };
        let cut = match self.config.form {
            Form::Product => 1.0 - (1.0 - by_gap) * (1.0 - by_delay),
            Form::Largest => by_gap.max(by_delay),
            Form::Delay => by_delay,
            Form::Gap => by_gap,
        };
        if let Some(before) = self.queue {
            self.in_vain = if queue < (1.0 - self.config.relief) * before {
                0
            } else {
                self.in_vain.saturating_add(1)
            };
        }
        self.queue = (cut > 0.0).then_some(queue);
        if cut > 0.0 {
            self.looks_from = now + Duration::from_seconds(self.config.settle * rtt_s);
        } else {
            self.in_vain = 0;
        }
        1.0 - cut.min(self.config.most) * self.strength()
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

    /// What it does after a round trip in which delays went from one to another, in milliseconds.
    fn after(compensation: &mut RateCompensation, start: u64, from: f64, to: f64) -> f64 {
        let factors: Vec<f64> = (0..=10_u32)
            .filter_map(|i| {
                let now = start + 10 * u64::from(i);
                let delay = (from + (to - from) * f64::from(i) / 10.0) * 1e-3;
                compensation.on_delay(at(now), at(now - 50), delay, RTT)
            })
            .collect();
        assert_eq!(factors.len(), 1, "once a round trip");
        factors[0]
    }

    #[test]
    fn a_steady_delay_changes_nothing_and_a_queue_is_drained_in_a_round_trip() {
        let mut plain = compensation(&json!({}));
        let keeps =
            |factor: f64, expected: f64| assert!((factor - expected).abs() < 1e-9, "{factor}");
        keeps(after(&mut plain, 100, 50.0, 50.0), 1.0);
        // A standing queue of 20 ms: a fifth of the round trip.
        keeps(after(&mut plain, 300, 70.0, 70.0), 0.8);
        // What was sent in 100 ms arrives in 125 ms: the link is overloaded by a quarter.
        let mut by_gap = compensation(&json!({ "form": "gap" }));
        keeps(after(&mut by_gap, 100, 50.0, 75.0), 0.8);
        let mut both = compensation(&json!({ "most": 0.9 }));
        keeps(after(&mut both, 100, 50.0, 75.0), 0.8 * 0.75);
        let mut largest = compensation(&json!({ "form": "largest", "most": 0.9 }));
        keeps(after(&mut largest, 100, 50.0, 75.0), 0.75);
        keeps(after(&mut compensation(&json!({})), 100, 50.0, 150.0), 0.5);
        let mut tolerant = compensation(&json!({ "allowance": 0.05 }));
        keeps(after(&mut tolerant, 100, 50.0, 55.0), 1.0);
    }

    #[test]
    fn whoever_knows_the_least_delay_sees_the_queue_that_it_starts_behind() {
        let keeps =
            |factor: f64, expected: f64| assert!((factor - expected).abs() < 1e-9, "{factor}");
        let mut stranger = compensation(&json!({}));
        keeps(after(&mut stranger, 100, 70.0, 70.0), 1.0);
        keeps(stranger.least(), 0.07);
        let mut told = RateCompensation { least: 0.05, ..compensation(&json!({})) };
        keeps(after(&mut told, 100, 70.0, 70.0), 0.8);
        keeps(told.least(), 0.05);
    }

    #[test]
    fn a_queue_that_others_keep_full_weakens_it_until_the_queue_shrinks() {
        let mut tit_for_tat = compensation(&json!({}));
        after(&mut tit_for_tat, 100, 50.0, 50.0);
        let mut strengths = Vec::new();
        for round in 1..=6_u32 {
            // Others take what it gives up, and the queue grows by 1 ms a round trip.
            let delay = 70.0 + f64::from(round);
            after(&mut tit_for_tat, 100 + 200 * u64::from(round), delay, delay);
            strengths.push(tit_for_tat.strength());
        }
        assert_eq!(strengths, [1.0, 1.0, 1.0, 0.1, 0.1, 0.1]);
        let factor = after(&mut tit_for_tat, 1500, 76.0, 76.0);
        assert!((factor - (1.0 - 0.026)).abs() < 1e-9, "{factor}: a tenth");
        after(&mut tit_for_tat, 1700, 60.0, 60.0);
        assert!(tit_for_tat.strength() > 0.9, "the others have gone");
    }
}

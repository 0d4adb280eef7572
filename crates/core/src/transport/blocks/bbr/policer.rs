//! Policer detection: finds a token-bucket policer on the path and paces at its rate, as Linux's BBR
//! (`tcp_bbr.c`, long-term bandwidth sampling).
//!
//! A policer drops traffic above its rate and queues nothing. If at least a fifth of the data is lost over
//! two consecutive intervals with the same delivery rate, that rate is taken as the policer's. The flow
//! keeps to it for 48 rounds and then probes again.

use crate::base::units::{Bytes, Duration, Time};

/// Rounds of a sampling interval: minimum (`bbr_lt_intvl_min_rtts`) and maximum.
const MIN_ROUNDS: u32 = 4;
const MAX_ROUNDS: u32 = 4 * MIN_ROUNDS;
/// Lost over delivered data from which an interval counts (`bbr_lt_loss_thresh`).
const LOSS_THRESHOLD: f64 = 50.0 / 256.0;
/// Two rates are equal within an eighth (`bbr_lt_bw_ratio`) or 4 kb/s (`bbr_lt_bw_diff`).
const RATE_RATIO: f64 = 1.0 / 8.0;
const RATE_DIFFERENCE: f64 = 500.0;
/// Rounds for which the rate is used (`bbr_lt_bw_max_rtts`).
const RATE_ROUNDS: u32 = 48;
/// Minimum duration of an interval.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// Observation at an ACK or a timeout.
#[derive(Clone, Copy, Debug)]
pub struct PolicerSample {
    /// Time of the observation.
    pub now: Time,
    /// Newly delivered payload.
    pub delivered: Bytes,
    /// Newly lost payload.
    pub lost: Bytes,
    /// True if a round starts.
    pub starts_round: bool,
    /// True if the sender, not the network, limited the rate.
    pub is_app_limited: bool,
}

/// State of policer detection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Policer {
    /// Start of the sampling interval. The first interval starts with a loss, when the bucket is empty.
    interval_start: Option<Time>,
    delivered: u64,
    lost: u64,
    /// Rounds of the interval, or rounds since the rate is in use.
    rounds: u32,
    /// Delivery rate of the interval before, in bytes per second.
    previous_rate: Option<f64>,
    rate: Option<f64>,
}

impl Policer {
    /// The policer's rate in bytes of payload per second, while in use.
    pub fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// Handles an observation. Returns true if the rate is no longer used, which needs `may_end`.
    pub fn update(&mut self, sample: &PolicerSample, may_end: bool) -> bool {
        if self.rate.is_some() {
            self.rounds += u32::from(may_end && sample.starts_round);
            let is_over = self.rounds >= RATE_ROUNDS;
            if is_over {
                *self = Self::default();
            }
            return is_over;
        }
        match self.interval_start {
            None if sample.lost > Bytes::ZERO => self.start_interval(sample.now),
            None => {}
            Some(start) => self.update_interval(sample, start),
        }
        false
    }

    fn start_interval(&mut self, now: Time) {
        *self = Self {
            interval_start: Some(now),
            previous_rate: self.previous_rate,
            ..Self::default()
        };
    }

    fn update_interval(&mut self, sample: &PolicerSample, start: Time) {
        self.delivered += sample.delivered.0;
        self.lost += sample.lost.0;
        self.rounds += u32::from(sample.starts_round);
        if sample.is_app_limited || self.rounds > MAX_ROUNDS {
            *self = Self::default();
            return;
        }
        let is_lossy =
            self.lost as f64 >= LOSS_THRESHOLD * self.delivered as f64 && self.delivered > 0;
        let interval = sample.now - start;
        // An interval ends with a loss: without one the bucket may still hold tokens.
        if self.rounds < MIN_ROUNDS
            || sample.lost == Bytes::ZERO
            || !is_lossy
            || interval < MIN_INTERVAL
        {
            return;
        }
        let rate = self.delivered as f64 / interval.seconds();
        let is_equal =
            |before: f64| (rate - before).abs() <= (RATE_RATIO * before).max(RATE_DIFFERENCE);
        if let Some(before) = self.previous_rate.filter(|before| is_equal(*before)) {
            *self = Self { rate: Some(f64::midpoint(before, rate)), ..Self::default() };
        } else {
            self.previous_rate = Some(rate);
            self.start_interval(sample.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Observation at the end of a round of 10 ms.
    fn sample(round: u64, delivered: u64, lost: u64) -> PolicerSample {
        let now = Time::ZERO + Duration::from_millis(10 * round);
        let (delivered, lost) = (Bytes(delivered), Bytes(lost));
        PolicerSample { now, delivered, lost, starts_round: true, is_app_limited: false }
    }

    /// Plays rounds with this delivered and lost payload each. Returns true if the use of the rate has ended.
    fn pass(policer: &mut Policer, from: u64, rounds: u64, delivered: u64, lost: u64) -> bool {
        (from..from + rounds).any(|round| policer.update(&sample(round, delivered, lost), true))
    }

    #[test]
    fn a_rate_seen_in_two_lossy_intervals_is_used_for_48_rounds() {
        let mut policer = Policer::default();
        // The first loss starts an interval; four rounds later each of two intervals ends.
        pass(&mut policer, 0, 8, 10_000, 2_500);
        assert_eq!(policer.rate(), None);
        pass(&mut policer, 8, 1, 10_000, 2_500);
        assert_eq!(policer.rate(), Some(1e6), "10 kB in each 10 ms");
        assert!(!pass(&mut policer, 9, 47, 10_000, 0));
        assert!(pass(&mut policer, 56, 1, 10_000, 0));
        assert_eq!(policer.rate(), None);
    }

    #[test]
    fn few_losses_unequal_rates_and_limited_senders_do_not_reveal_a_policer() {
        let mut few = Policer::default();
        pass(&mut few, 0, 60, 10_000, 1_900);
        assert_eq!(few.rate(), None);
        let mut other = Policer::default();
        pass(&mut other, 0, 5, 10_000, 2_500);
        pass(&mut other, 5, 4, 12_000, 3_000);
        assert_eq!(other.rate(), None, "a fifth more than before");
        let mut limited = Policer::default();
        pass(&mut limited, 0, 8, 10_000, 2_500);
        limited.update(&PolicerSample { is_app_limited: true, ..sample(8, 9, 9) }, true);
        pass(&mut limited, 9, 8, 10_000, 2_500);
        assert_eq!(limited.rate(), None, "detection starts again");
    }

    #[test]
    fn the_rate_stays_in_use_until_its_end_is_allowed() {
        let mut policer = Policer::default();
        pass(&mut policer, 0, 9, 10_000, 2_500);
        assert!((9..200).all(|round| !policer.update(&sample(round, 1, 0), false)));
        assert_eq!(policer.rate(), Some(1e6));
    }
}

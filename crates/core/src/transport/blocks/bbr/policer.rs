//! Whether a policer on the path lets through no more than a rate, as Linux's BBR tells (`tcp_bbr.c`).
//!
//! A policer drops what is above its rate and queues nothing. So when a fifth of what is sent is lost over
//! some round trips, and the same rate comes through twice, that rate is taken for the policer's. It is held
//! for a while; then more is tried again.

use crate::base::units::{Bytes, Duration, Time};

/// An interval has at least so many round trips, and at most four times as many.
const LEAST_ROUNDS: u32 = 4;
const MOST_ROUNDS: u32 = 4 * LEAST_ROUNDS;
/// Which share of what comes through must be lost.
const LOST: f64 = 50.0 / 256.0;
/// Two rates are the same that differ by an eighth, or by 4 kb/s.
const SAME_SHARE: f64 = 1.0 / 8.0;
const SAME_BYTES: f64 = 500.0;
/// For so many round trips the rate is held.
const HELD_ROUNDS: u32 = 48;
/// The shortest interval.
const LEAST: Duration = Duration::from_millis(1);

/// What an ACK, or a time-out, tells.
#[derive(Clone, Copy, Debug)]
pub struct PolicerVerdict {
    /// When.
    pub now: Time,
    /// Payload that has come through.
    pub came: Bytes,
    /// Payload that is lost.
    pub lost: Bytes,
    /// Whether a round trip begins.
    pub starts_round: bool,
    /// Whether less was sent than the network would have let through.
    pub is_limited: bool,
}

/// What is known of a policer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Policer {
    /// Since when the present interval lasts: the first begins with a loss, when there are no tokens left.
    began: Option<Time>,
    came: u64,
    lost: u64,
    /// Round trips of the interval, or since the rate is held.
    rounds: u32,
    /// Payload that came through in a second in the interval before.
    before: Option<f64>,
    held: Option<f64>,
}

impl Policer {
    /// The rate that is held, in bytes of payload a second, if one is.
    pub fn rate(&self) -> Option<f64> {
        self.held
    }

    /// Takes in what an ACK tells; says whether the rate has been held long enough, if that may end now.
    pub fn learn(&mut self, told: &PolicerVerdict, may_end: bool) -> bool {
        if self.held.is_some() {
            self.rounds += u32::from(may_end && told.starts_round);
            let is_over = self.rounds >= HELD_ROUNDS;
            if is_over {
                *self = Self::default();
            }
            return is_over;
        }
        match self.began {
            None if told.lost > Bytes::ZERO => self.begin(told.now),
            None => {}
            Some(began) => self.sample(told, began),
        }
        false
    }

    fn begin(&mut self, now: Time) {
        *self = Self { began: Some(now), before: self.before, ..Self::default() };
    }

    fn sample(&mut self, told: &PolicerVerdict, began: Time) {
        self.came += told.came.0;
        self.lost += told.lost.0;
        self.rounds += u32::from(told.starts_round);
        if told.is_limited || self.rounds > MOST_ROUNDS {
            *self = Self::default();
            return;
        }
        let is_lossy = self.lost as f64 >= LOST * self.came as f64 && self.came > 0;
        let lasted = told.now - began;
        // An interval ends with a loss: until then tokens may have been there.
        if self.rounds < LEAST_ROUNDS || told.lost == Bytes::ZERO || !is_lossy || lasted < LEAST {
            return;
        }
        let rate = self.came as f64 / lasted.seconds();
        let is_same = |before: f64| (rate - before).abs() <= (SAME_SHARE * before).max(SAME_BYTES);
        if let Some(before) = self.before.filter(|before| is_same(*before)) {
            *self = Self { held: Some(f64::midpoint(before, rate)), ..Self::default() };
        } else {
            self.before = Some(rate);
            self.begin(told.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an ACK tells at the end of a round trip of 10 ms.
    fn told(round: u64, came: u64, lost: u64) -> PolicerVerdict {
        let now = Time::ZERO + Duration::from_millis(10 * round);
        let (came, lost) = (Bytes(came), Bytes(lost));
        PolicerVerdict { now, came, lost, starts_round: true, is_limited: false }
    }

    /// Lets so many round trips pass, in each of which so much comes through and is lost; says whether
    /// holding the rate has ended.
    fn pass(policer: &mut Policer, from: u64, rounds: u64, came: u64, lost: u64) -> bool {
        (from..from + rounds).any(|round| policer.learn(&told(round, came, lost), true))
    }

    #[test]
    fn a_rate_that_comes_through_twice_with_a_fifth_lost_is_held_for_its_round_trips() {
        let mut policer = Policer::default();
        // The first loss begins an interval; four round trips on each of two end.
        pass(&mut policer, 0, 8, 10_000, 2_500);
        assert_eq!(policer.rate(), None);
        pass(&mut policer, 8, 1, 10_000, 2_500);
        assert_eq!(policer.rate(), Some(1e6), "10 kB in each 10 ms");
        assert!(!pass(&mut policer, 9, 47, 10_000, 0));
        assert!(pass(&mut policer, 56, 1, 10_000, 0));
        assert_eq!(policer.rate(), None);
    }

    #[test]
    fn fewer_losses_other_rates_and_senders_that_hold_back_tell_of_none() {
        let mut few = Policer::default();
        pass(&mut few, 0, 60, 10_000, 1_900);
        assert_eq!(few.rate(), None);
        let mut other = Policer::default();
        pass(&mut other, 0, 5, 10_000, 2_500);
        pass(&mut other, 5, 4, 12_000, 3_000);
        assert_eq!(other.rate(), None, "a fifth more than before");
        let mut limited = Policer::default();
        pass(&mut limited, 0, 8, 10_000, 2_500);
        limited.learn(&PolicerVerdict { is_limited: true, ..told(8, 9, 9) }, true);
        pass(&mut limited, 9, 8, 10_000, 2_500);
        assert_eq!(limited.rate(), None, "all begins anew");
    }

    #[test]
    fn a_rate_is_held_on_while_nobody_may_end_it() {
        let mut policer = Policer::default();
        pass(&mut policer, 0, 9, 10_000, 2_500);
        assert!((9..200).all(|round| !policer.learn(&told(round, 1, 0), false)));
        assert_eq!(policer.rate(), Some(1e6));
    }
}

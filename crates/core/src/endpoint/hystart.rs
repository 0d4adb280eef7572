//! HyStart++: the first slow start ends when round-trip times grow, before anything is lost (RFC 9406).

use super::Ack;
use crate::units::Duration;

/// RFC 9406 §4.3.
const LEAST_THRESHOLD: Duration = Duration::from_millis(4);
const MOST_THRESHOLD: Duration = Duration::from_millis(16);
const DIVISOR: u64 = 8;
const SAMPLES: u32 = 8;
const SLOWER: f64 = 4.0;
const SLOW_ROUNDS: u32 = 5;

/// The state of one slow start.
#[derive(Clone, Copy, Debug)]
pub struct HyStart {
    /// The round ends when everything before this segment is acknowledged.
    round_ends: u32,
    /// The least round-trip time of the last round and of this one, and the samples of this one.
    last: Duration,
    current: Duration,
    samples: u32,
    /// In conservative slow start: the least round-trip time when it began, and the rounds in it.
    conservative: Option<(Duration, u32)>,
}

impl Default for HyStart {
    fn default() -> Self {
        Self { round_ends: 0, last: FOREVER, current: FOREVER, samples: 0, conservative: None }
    }
}

const FOREVER: Duration = Duration(u64::MAX);

impl HyStart {
    /// By how much to grow for `acked` packets.
    pub fn growth(&mut self, acked: f64, ack: &Ack) -> f64 {
        if ack.cumulative > self.round_ends {
            self.round_ends = ack.next;
            self.last = self.current;
            (self.current, self.samples) = (FOREVER, 0);
            if let Some((_, rounds)) = &mut self.conservative {
                *rounds += 1;
            }
        }
        self.current = self.current.min(ack.rtt);
        self.samples += 1;
        self.judge();
        if self.conservative.is_some() { acked / SLOWER } else { acked }
    }

    /// Enters or leaves conservative slow start.
    fn judge(&mut self) {
        if self.samples < SAMPLES || self.current == FOREVER || self.last == FOREVER {
            return;
        }
        match self.conservative {
            None => {
                let threshold =
                    Duration(self.last.0 / DIVISOR).clamp(LEAST_THRESHOLD, MOST_THRESHOLD);
                if self.current >= self.last + threshold {
                    self.conservative = Some((self.current, 0));
                }
            }
            Some((baseline, _)) if self.current < baseline => self.conservative = None,
            Some(_) => {}
        }
    }

    /// Whether congestion avoidance is to begin.
    pub fn is_over(&self) -> bool {
        self.conservative.is_some_and(|(_, rounds)| rounds >= SLOW_ROUNDS)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::ACK;
    use super::*;

    /// Rounds of ten ACKs, each round with its round-trip time in milliseconds; returns what the last ACK
    /// of each lets the window grow by, and whether slow start is over.
    fn rounds(rtts: &[u64]) -> (Vec<f64>, bool) {
        let mut hystart = HyStart::default();
        let mut cumulative = 0;
        let growth = rtts.iter().map(|rtt| {
            let end = cumulative + 10;
            let mut last = 0.0;
            while cumulative < end {
                cumulative += 1;
                let rtt = Duration::from_millis(*rtt);
                last = hystart.growth(1.0, &Ack { rtt, cumulative, next: end + 1, ..ACK });
            }
            last
        });
        (growth.collect(), hystart.is_over())
    }

    #[test]
    fn a_growing_round_trip_time_slows_it_down_and_ends_it_after_five_rounds() {
        assert_eq!(rounds(&[100, 105, 110, 115]), (vec![1.0; 4], false), "below an eighth");
        let grown = [100, 100, 113, 113, 113];
        assert_eq!(rounds(&grown), (vec![1.0, 1.0, 0.25, 0.25, 0.25], false));
        assert!(rounds(&[100, 100, 113, 113, 113, 113, 113, 113]).1);
    }

    #[test]
    fn it_goes_back_if_the_round_trip_time_was_a_false_alarm() {
        assert_eq!(rounds(&[100, 113, 101]).0, [1.0, 0.25, 1.0]);
    }
}

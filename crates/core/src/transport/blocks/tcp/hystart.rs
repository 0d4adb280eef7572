//! When the first slow start ends before anything is lost: when round-trip times grow, or ACKs come in a
//! train that is as long as the path (HyStart).

use crate::base::units::{Duration, Time};
use crate::transport::Ack;

crate::choices! {
    /// What ends slow start before a loss.
    pub enum Kind {
        /// Growing round-trip times, after five rounds of slower growth that show whether that was a false
        /// alarm (HyStart++, RFC 9406).
        PlusPlus = "plus_plus",
        /// Growing round-trip times, or a train of ACKs as long as half the least one, at once; in every slow
        /// start (Linux's `tcp_cubic.c`).
        Linux = "linux",
    }
}

const FOREVER: Duration = Duration(u64::MAX);

/// Samples of a round that show what its round-trip time is (RFC 9406 §4.3, Linux).
const SAMPLES: u32 = 8;

/// By how much a round-trip time must exceed one to have grown (RFC 9406 §4.3, Linux).
fn threshold(rtt: Duration) -> Duration {
    Duration(rtt.0 / 8).clamp(Duration::from_millis(4), Duration::from_millis(16))
}

/// The state of one slow start.
#[derive(Clone, Copy, Debug)]
pub enum HyStart {
    /// RFC 9406's.
    PlusPlus(PlusPlus),
    /// Linux's.
    Linux(Linux),
}

impl HyStart {
    /// That of a flow that has just started.
    pub fn new(kind: Kind) -> Self {
        match kind {
            Kind::PlusPlus => Self::PlusPlus(PlusPlus::default()),
            Kind::Linux => Self::Linux(Linux::default()),
        }
    }

    /// By how much to grow a window of so many packets for `acked`.
    pub fn growth(&mut self, window: f64, acked: f64, ack: &Ack) -> f64 {
        match self {
            Self::PlusPlus(state) => state.growth(acked, ack),
            Self::Linux(state) => {
                state.look(window, ack);
                acked
            }
        }
    }

    /// Whether congestion avoidance is to begin.
    pub fn is_over(&self) -> bool {
        match self {
            Self::PlusPlus(state) => state.is_over(),
            Self::Linux(state) => state.is_over,
        }
    }

    /// A loss has come; says whether it watches over the next slow start as well.
    pub fn on_loss(&mut self) -> bool {
        match self {
            Self::PlusPlus(_) => false,
            Self::Linux(state) => {
                *state = Linux { least: state.least, ..Linux::default() };
                true
            }
        }
    }
}

/// RFC 9406 §4.3.
const SLOWER: f64 = 4.0;
const SLOW_ROUNDS: u32 = 5;

/// The state of HyStart++.
#[derive(Clone, Copy, Debug)]
pub struct PlusPlus {
    /// The round ends when everything before this segment is acknowledged.
    round_ends: u32,
    /// The least round-trip time of the last round and of this one, and the samples of this one.
    last: Duration,
    current: Duration,
    samples: u32,
    /// In conservative slow start: the least round-trip time when it began, and the rounds in it.
    conservative: Option<(Duration, u32)>,
}

impl Default for PlusPlus {
    fn default() -> Self {
        Self { round_ends: 0, last: FOREVER, current: FOREVER, samples: 0, conservative: None }
    }
}

impl PlusPlus {
    fn growth(&mut self, acked: f64, ack: &Ack) -> f64 {
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
            None if self.current >= self.last + threshold(self.last) => {
                self.conservative = Some((self.current, 0));
            }
            Some((baseline, _)) if self.current < baseline => self.conservative = None,
            None | Some(_) => {}
        }
    }

    fn is_over(&self) -> bool {
        self.conservative.is_some_and(|(_, rounds)| rounds >= SLOW_ROUNDS)
    }
}

/// Linux: the window from which it watches, and how far apart the ACKs of a train are.
const LEAST_WINDOW: f64 = 16.0;
const TRAIN_GAP: Duration = Duration::from_millis(2);

/// What Linux adds to the least round-trip time before it halves it, at all but high rates.
const TRAIN_MARGIN: Duration = Duration::from_millis(1);

/// The state of Linux's HyStart.
#[derive(Clone, Copy, Debug)]
pub struct Linux {
    /// The round ends when everything before this segment is acknowledged.
    round_ends: u32,
    begun: Time,
    /// The last ACK of the train.
    train: Time,
    /// The least round-trip time ever, and in this round; and the samples of the round.
    least: Duration,
    current: Duration,
    samples: u32,
    is_over: bool,
}

impl Default for Linux {
    fn default() -> Self {
        Self {
            round_ends: 0,
            begun: Time::ZERO,
            train: Time::ZERO,
            least: FOREVER,
            current: FOREVER,
            samples: 0,
            is_over: false,
        }
    }
}

impl Linux {
    fn look(&mut self, window: f64, ack: &Ack) {
        self.least = self.least.min(ack.rtt);
        if ack.cumulative > self.round_ends {
            self.round_ends = ack.next;
            (self.begun, self.train) = (ack.now, ack.now);
            (self.current, self.samples) = (FOREVER, 0);
        }
        if window < LEAST_WINDOW {
            return;
        }
        if ack.now.since(self.train) <= TRAIN_GAP {
            self.train = ack.now;
            self.is_over |= ack.now.since(self.begun) > (self.least + TRAIN_MARGIN) / 2;
        }
        self.current = self.current.min(ack.rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
        } else {
            self.is_over |= self.current > self.least + threshold(self.least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::fixture::ACK;

    /// Rounds of ten ACKs, each round with its round-trip time in milliseconds; returns what the last ACK
    /// of each lets the window grow by, and whether slow start is over.
    fn rounds(rtts: &[u64]) -> (Vec<f64>, bool) {
        let mut hystart = PlusPlus::default();
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

    /// Whether Linux ends slow start in a round of so many ACKs, so far apart and with these round-trip times
    /// in milliseconds, after one of 100 ms.
    fn linux_ends(window: f64, acks: u32, gap: f64, rtt: impl Fn(u32) -> u64) -> bool {
        let mut hystart = HyStart::new(Kind::Linux);
        let at = |ms: f64| Time::ZERO + Duration::from_seconds(ms / 1e3);
        let first =
            Ack { now: at(0.0), rtt: Duration::from_millis(100), cumulative: 1, next: 10, ..ACK };
        hystart.growth(window, 1.0, &first);
        for i in 0..acks {
            let now = at(100.0 + gap * f64::from(i));
            let rtt = Duration::from_millis(rtt(i));
            let ack = Ack { now, rtt, cumulative: 11 + i, next: 1000, ..ACK };
            assert!(hystart.growth(window, 1.0, &ack) >= 1.0, "it never slows down");
        }
        hystart.is_over()
    }

    #[test]
    fn linux_ends_it_by_a_train_of_half_a_round_trip() {
        // (100 ms + 1 ms) / 2 after the first ACK of the round.
        assert!(!linux_ends(16.0, 51, 1.0, |_| 100));
        assert!(linux_ends(16.0, 52, 1.0, |_| 100));
        assert!(!linux_ends(16.0, 52, 2.1, |_| 100), "that is no train");
        assert!(!linux_ends(15.0, 52, 1.0, |_| 100), "nor does it watch small windows");
    }

    #[test]
    fn linux_ends_it_by_a_delay_that_eight_samples_show() {
        // An eighth of 100 ms more.
        assert!(linux_ends(16.0, 9, 3.0, |_| 113));
        assert!(!linux_ends(16.0, 9, 3.0, |_| 112));
        assert!(!linux_ends(16.0, 8, 3.0, |_| 113), "too few samples");
        assert!(!linux_ends(16.0, 9, 3.0, |i| if i == 3 { 105 } else { 113 }), "the least counts");
    }
}

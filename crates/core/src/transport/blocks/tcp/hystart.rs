//! HyStart: leaves slow start before a loss, when RTTs grow or when an ACK train spans the path
//! (RFC 9406; Linux's `tcp_cubic.c`).

use crate::base::units::{Duration, Time};
use crate::transport::{Ack, CongestionSignal};

crate::choices! {
    /// Rule that ends slow start before a loss.
    pub enum HyStartVariant {
        /// RTT increase, confirmed by five rounds of conservative slow start (HyStart++, RFC 9406). Applies
        /// to the first slow start of a flow (§4.3).
        PlusPlus = "plus_plus",
        /// RTT increase, or an ACK train longer than half the minimum RTT. Ends slow start at once, and
        /// applies again after a timeout (Linux's `tcp_cubic.c`).
        Linux = "linux",
    }
}

const INFINITE: Duration = Duration(u64::MAX);

/// RTT samples that a round needs (RFC 9406 §4.3: `N_RTT_SAMPLE`; Linux: `HYSTART_MIN_SAMPLES`).
const N_RTT_SAMPLE: u32 = 8;

/// Returns the RTT increase that counts as congestion: an eighth, within 4 to 16 ms (RFC 9406 §4.3, Linux).
fn rtt_threshold(rtt: Duration) -> Duration {
    Duration(rtt.0 / 8).clamp(Duration::from_millis(4), Duration::from_millis(16))
}

/// State of HyStart.
#[derive(Clone, Copy, Debug)]
pub enum HyStart {
    /// HyStart++ (RFC 9406).
    PlusPlus(PlusPlus),
    /// HyStart of Linux's CUBIC.
    Linux(Linux),
}

impl HyStart {
    /// State of a new flow.
    pub fn new(variant: HyStartVariant) -> Self {
        match variant {
            HyStartVariant::PlusPlus => Self::PlusPlus(PlusPlus::default()),
            HyStartVariant::Linux => Self::Linux(Linux::default()),
        }
    }

    /// Returns the increase of `cwnd`, in packets, for `acked` packets.
    pub fn growth(&mut self, window: f64, acked: f64, ack: &Ack) -> f64 {
        match self {
            Self::PlusPlus(state) => state.growth(acked, ack),
            Self::Linux(state) => {
                state.update(window, ack);
                acked
            }
        }
    }

    /// True if it has ended a slow start: later ones end at ssthresh.
    pub fn is_over(&self) -> bool {
        match self {
            Self::PlusPlus(state) => state.is_over(),
            Self::Linux(state) => state.is_over,
        }
    }

    /// Handles a loss. Returns true if HyStart also applies to the next slow start.
    pub fn on_loss(&mut self, signal: CongestionSignal) -> bool {
        match self {
            Self::PlusPlus(_) => false,
            Self::Linux(state) => {
                // `cubictcp_state`: only a timeout resets all state.
                if signal == CongestionSignal::Timeout {
                    *state = Linux::default();
                }
                true
            }
        }
    }
}

/// `CSS_GROWTH_DIVISOR` and `CSS_ROUNDS` (RFC 9406 §4.3).
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;

/// State of HyStart++, with the names of RFC 9406 §4.2.
#[derive(Clone, Copy, Debug)]
pub struct PlusPlus {
    /// The round ends when all segments before this one are acknowledged.
    window_end: u32,
    /// Minimum RTTs of the last and of the current round, and the RTT samples of the current one.
    last_round_min_rtt: Duration,
    current_round_min_rtt: Duration,
    rtt_sample_count: u32,
    /// In conservative slow start (CSS): the baseline RTT, and the number of CSS rounds so far.
    css: Option<(Duration, u32)>,
}

impl Default for PlusPlus {
    fn default() -> Self {
        Self {
            window_end: 0,
            last_round_min_rtt: INFINITE,
            current_round_min_rtt: INFINITE,
            rtt_sample_count: 0,
            css: None,
        }
    }
}

impl PlusPlus {
    fn growth(&mut self, acked: f64, ack: &Ack) -> f64 {
        if ack.cumulative > self.window_end {
            self.window_end = ack.next;
            self.last_round_min_rtt = self.current_round_min_rtt;
            (self.current_round_min_rtt, self.rtt_sample_count) = (INFINITE, 0);
            if let Some((_, rounds)) = &mut self.css {
                *rounds += 1;
            }
        }
        self.current_round_min_rtt = self.current_round_min_rtt.min(ack.rtt);
        self.rtt_sample_count += 1;
        self.update_phase();
        if self.css.is_some() { acked / CSS_GROWTH_DIVISOR } else { acked }
    }

    /// Enters or leaves conservative slow start.
    fn update_phase(&mut self) {
        if self.rtt_sample_count < N_RTT_SAMPLE
            || self.current_round_min_rtt == INFINITE
            || self.last_round_min_rtt == INFINITE
        {
            return;
        }
        match self.css {
            None if self.current_round_min_rtt
                >= self.last_round_min_rtt + rtt_threshold(self.last_round_min_rtt) =>
            {
                self.css = Some((self.current_round_min_rtt, 0));
            }
            Some((baseline, _)) if self.current_round_min_rtt < baseline => self.css = None,
            None | Some(_) => {}
        }
    }

    fn is_over(&self) -> bool {
        self.css.is_some_and(|(_, rounds)| rounds >= CSS_ROUNDS)
    }
}

/// Linux: window from which HyStart applies, and largest spacing of the ACKs of a train.
const LOW_WINDOW: f64 = 16.0;
const ACK_DELTA: Duration = Duration::from_millis(2);

/// Linux adds this time to the minimum RTT before halving it, except at high pacing rates.
const TRAIN_MARGIN: Duration = Duration::from_millis(1);

/// State of Linux's HyStart.
#[derive(Clone, Copy, Debug)]
pub struct Linux {
    /// The round ends when all segments before this one are acknowledged.
    window_end: u32,
    round_start: Time,
    /// Arrival of the last ACK of the train.
    last_ack: Time,
    /// Minimum RTTs of the flow and of the round, and the RTT samples of the round.
    min_rtt: Duration,
    current_round_min_rtt: Duration,
    rtt_sample_count: u32,
    is_over: bool,
}

impl Default for Linux {
    fn default() -> Self {
        Self {
            window_end: 0,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            min_rtt: INFINITE,
            current_round_min_rtt: INFINITE,
            rtt_sample_count: 0,
            is_over: false,
        }
    }
}

impl Linux {
    fn update(&mut self, window: f64, ack: &Ack) {
        self.min_rtt = self.min_rtt.min(ack.rtt);
        if ack.cumulative > self.window_end {
            self.window_end = ack.next;
            (self.round_start, self.last_ack) = (ack.now, ack.now);
            (self.current_round_min_rtt, self.rtt_sample_count) = (INFINITE, 0);
        }
        if window < LOW_WINDOW {
            return;
        }
        if ack.now.since(self.last_ack) <= ACK_DELTA {
            self.last_ack = ack.now;
            self.is_over |= ack.now.since(self.round_start) > (self.min_rtt + TRAIN_MARGIN) / 2;
        }
        self.current_round_min_rtt = self.current_round_min_rtt.min(ack.rtt);
        if self.rtt_sample_count < N_RTT_SAMPLE {
            self.rtt_sample_count += 1;
        } else {
            self.is_over |= self.current_round_min_rtt > self.min_rtt + rtt_threshold(self.min_rtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::fixture::ACK;

    /// Plays rounds of ten ACKs, with one RTT in milliseconds per round. Returns the increase at the last ACK
    /// of each round, and true if slow start is over.
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
    fn an_rtt_increase_slows_growth_and_ends_slow_start_after_five_rounds() {
        assert_eq!(
            rounds(&[100, 105, 110, 115]),
            (vec![1.0; 4], false),
            "less than an eighth more"
        );
        let grown = [100, 100, 113, 113, 113];
        assert_eq!(rounds(&grown), (vec![1.0, 1.0, 0.25, 0.25, 0.25], false));
        assert!(rounds(&[100, 100, 113, 113, 113, 113, 113, 113]).1);
    }

    #[test]
    fn slow_start_resumes_if_the_rtt_falls_below_the_baseline() {
        assert_eq!(rounds(&[100, 113, 101]).0, [1.0, 0.25, 1.0]);
    }

    /// True if Linux ends slow start in a round of `acks` ACKs with this spacing and these RTTs, all in
    /// milliseconds, after a round with an RTT of 100 ms.
    fn linux_ends(window: f64, acks: u32, gap: f64, rtt: impl Fn(u32) -> u64) -> bool {
        let mut hystart = HyStart::new(HyStartVariant::Linux);
        let at = |ms: f64| Time::ZERO + Duration::from_seconds(ms / 1e3);
        let first =
            Ack { now: at(0.0), rtt: Duration::from_millis(100), cumulative: 1, next: 10, ..ACK };
        hystart.growth(window, 1.0, &first);
        for i in 0..acks {
            let now = at(100.0 + gap * f64::from(i));
            let rtt = Duration::from_millis(rtt(i));
            let ack = Ack { now, rtt, cumulative: 11 + i, next: 1000, ..ACK };
            assert!(hystart.growth(window, 1.0, &ack) >= 1.0, "growth never slows");
        }
        hystart.is_over()
    }

    #[test]
    fn linux_ends_slow_start_at_an_ack_train_of_half_an_rtt() {
        // (100 ms + 1 ms) / 2 after the first ACK of the round.
        assert!(!linux_ends(16.0, 51, 1.0, |_| 100));
        assert!(linux_ends(16.0, 52, 1.0, |_| 100));
        assert!(!linux_ends(16.0, 52, 2.1, |_| 100), "too far apart for a train");
        assert!(!linux_ends(15.0, 52, 1.0, |_| 100), "too small a window");
    }

    #[test]
    fn linux_ends_slow_start_at_an_rtt_increase_in_eight_samples() {
        // An eighth of 100 ms more.
        assert!(linux_ends(16.0, 9, 3.0, |_| 113));
        assert!(!linux_ends(16.0, 9, 3.0, |_| 112));
        assert!(!linux_ends(16.0, 8, 3.0, |_| 113), "too few samples");
        assert!(
            !linux_ends(16.0, 9, 3.0, |i| if i == 3 { 105 } else { 113 }),
            "the minimum counts"
        );
    }
}

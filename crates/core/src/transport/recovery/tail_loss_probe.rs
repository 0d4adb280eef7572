//! Tail loss probes (TLP, RFC 8985 §7): detect losses at the end of a flight, after which no further
//! segment triggers a SACK.
//!
//! The detection does not rely on D-SACK. The case of a delivered original and a delivered probe is
//! recognised by an ACK that acknowledges no new data (§7.4.2).

use crate::base::units::{Duration, Time};
use crate::transport::endpoint::timer_ticks;

/// Margin added to two RTTs for late timers (Linux: 2 ms).
const MARGIN: Duration = Duration::from_millis(2);

/// A probe in flight.
#[derive(Clone, Copy, Debug)]
struct ProbeInFlight {
    /// The end of the data sent by then (`TLP.end_seq`).
    end: u32,
    /// True if the probe is a retransmission (`TLP.is_retrans`).
    is_retransmit: bool,
}

/// Tail loss probes of one sender.
#[derive(Clone, Copy, Debug)]
pub struct TailLossProbe {
    /// Worst-case delay of an ACK, added to the timeout of a single segment in flight.
    max_ack_delay: Duration,
    timer_tick: Duration,
    /// Time when the probe timer expires; [`Time::NEVER`] if it is not armed.
    expires: Time,
    /// True if a probe is to be sent now.
    is_due: bool,
    probe: Option<ProbeInFlight>,
}

impl TailLossProbe {
    /// Creates a disarmed probe timer.
    pub fn new(max_ack_delay: Duration, timer_tick: Duration) -> Self {
        Self { max_ack_delay, timer_tick, expires: Time::NEVER, is_due: false, probe: None }
    }

    /// Returns when the probe timer expires.
    pub fn next_timer(&self) -> Time {
        self.expires
    }

    /// Returns true if a probe is to be sent now.
    pub fn is_due(&self) -> bool {
        self.is_due
    }

    /// Arms the probe timer: two RTTs from now, but no later than the RTO.
    pub fn arm(&mut self, now: Time, smoothed: Duration, flight: u32, timeout: Time) {
        let margin = if flight == 1 { self.max_ack_delay } else { MARGIN };
        self.expires =
            timer_ticks::expiry(now, smoothed * 2 + margin, self.timer_tick).min(timeout);
        self.is_due = false;
    }

    /// Disarms the probe timer.
    pub fn disarm(&mut self) {
        self.expires = Time::NEVER;
        self.is_due = false;
    }

    /// Handles the probe timer: requests a probe if the timer has expired and no probe is in flight.
    /// Returns true if a probe is requested.
    pub fn on_timer(&mut self, now: Time) -> bool {
        let has_expired = self.expires <= now;
        if has_expired {
            self.expires = Time::NEVER;
            self.is_due = self.probe.is_none();
        }
        has_expired && self.is_due
    }

    /// Records that the probe was sent.
    pub fn on_sent(&mut self, end: u32, is_retransmit: bool) {
        self.is_due = false;
        self.probe = Some(ProbeInFlight { end, is_retransmit });
    }

    /// Returns true if a probe was sent and is not acknowledged.
    pub fn is_in_flight(&self) -> bool {
        self.probe.is_some()
    }

    /// Handles an RTO, which declares the probe lost too.
    pub fn on_timeout(&mut self) {
        self.disarm();
        self.probe = None;
    }

    /// Handles an ACK; `is_new` is true if the ACK acknowledges or reports something new. Returns
    /// true if the probe has repaired a loss, for which the window must be reduced (§7.4.2).
    pub fn on_ack(&mut self, cumulative: u32, is_new: bool) -> bool {
        let Some(probe) = self.probe.filter(|probe| cumulative >= probe.end) else { return false };
        if probe.is_retransmit && cumulative == probe.end && is_new {
            // If both copies were delivered, an ACK without new data follows.
            return false;
        }
        self.probe = None;
        probe.is_retransmit && cumulative > probe.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn armed(flight: u32, timeout: u64) -> TailLossProbe {
        let mut probe_timer = TailLossProbe::new(Duration::from_millis(200), Duration::ZERO);
        probe_timer.arm(at(0), Duration::from_millis(100), flight, at(timeout));
        probe_timer
    }

    #[test]
    fn timer_is_two_rtts_and_the_ack_delay_but_at_most_the_rto() {
        assert_eq!(armed(2, 1000).next_timer(), at(202));
        assert_eq!(armed(1, 1000).next_timer(), at(400));
        assert_eq!(armed(1, 300).next_timer(), at(300));
    }

    #[test]
    fn at_most_one_probe_is_in_flight() {
        let mut probe_timer = armed(2, 1000);
        assert!(!probe_timer.on_timer(at(201)));
        assert!(probe_timer.on_timer(at(202)) && probe_timer.is_due());
        probe_timer.on_sent(10, true);
        probe_timer.arm(at(202), Duration::from_millis(100), 2, at(1000));
        assert!(!probe_timer.on_timer(at(404)), "the first is not acknowledged");
        probe_timer.on_timeout();
        probe_timer.arm(at(1000), Duration::from_millis(100), 2, at(2000));
        assert!(probe_timer.on_timer(at(1202)));
    }

    #[test]
    fn only_a_retransmission_that_filled_a_gap_reports_a_loss() {
        let probed = |is_retransmit| {
            let mut probe_timer = armed(2, 1000);
            probe_timer.on_sent(10, is_retransmit);
            assert!(!probe_timer.on_ack(9, true));
            probe_timer
        };
        let mut repaired = probed(true);
        assert!(!repaired.on_ack(10, true), "still ambiguous");
        assert!(repaired.on_ack(11, true), "one copy was delivered");
        let mut needless = probed(true);
        assert!(!needless.on_ack(10, true));
        assert!(!needless.on_ack(10, false), "the other copy was delivered, too");
        assert!(!needless.on_ack(11, true));
        assert!(!probed(false).on_ack(11, true), "the probe was new data");
    }
}

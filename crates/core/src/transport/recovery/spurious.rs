//! Detection of spurious losses, and restoration of the window.
//!
//! Three signals show that a loss was spurious. Eifel: an ACK advances the cumulative acknowledgement
//! and echoes a timestamp from before the first retransmission (RFC 3522; response: RFC 4015).
//! D-SACK: the receiver reports that every retransmission was a duplicate (RFC 2883, RFC 3708).
//! F-RTO: after a timeout, a segment is acknowledged that was never retransmitted (RFC 5682 §3). The
//! response is that of Linux (`tcp_input.c`), which undoes a reduction at once and in full.
//!
//! Deviation: Linux undoes a fast recovery only when no retransmission is in flight.

use crate::base::units::Time;

/// State for the detection of one spurious loss.
#[derive(Clone, Copy, Debug)]
pub struct SpuriousLoss {
    /// True if F-RTO is enabled.
    frto: bool,
    /// True if F-RTO is testing the current timeout.
    is_testing_timeout: bool,
    /// True if no ACK has advanced the cumulative acknowledgement since a timeout.
    is_stalled: bool,
    /// Cumulative acknowledgement when the loss was detected (`undo_marker` in Linux); `None` if
    /// the window has not been reduced.
    undo_marker: Option<u32>,
    /// Time when the first segment was retransmitted since no retransmission was in flight
    /// (`retrans_stamp` in Linux); before, that of the first timeout of a SYN.
    first_retransmit_at: Time,
    /// End of the retransmitted data.
    retransmits_end: u32,
    /// Retransmissions since then, and D-SACK reports of them.
    retransmits: u32,
    duplicate_sacks: u32,
}

impl SpuriousLoss {
    /// Creates the state of a sender without losses.
    pub fn new(frto: bool) -> Self {
        Self {
            frto,
            is_testing_timeout: false,
            is_stalled: false,
            undo_marker: None,
            first_retransmit_at: Time::NEVER,
            retransmits_end: 0,
            retransmits: 0,
            duplicate_sacks: 0,
        }
    }

    /// Records a loss that is detected at the cumulative acknowledgement `cumulative`. Earlier
    /// retransmissions may still be in flight and still count.
    pub fn begin(&mut self, cumulative: u32) {
        self.undo_marker = Some(cumulative);
        if cumulative >= self.retransmits_end {
            (self.first_retransmit_at, self.retransmits, self.duplicate_sacks) =
                (Time::NEVER, 0, 0);
        }
    }

    /// Records a timeout, which may interrupt a fast recovery (`is_recovering`) or the recovery from
    /// an earlier timeout (`has_timed_out`). Returns true if the timeout starts a new loss;
    /// otherwise undoing it restores the state before the first loss.
    pub fn on_timeout(
        &mut self,
        cumulative: u32,
        is_recovering: bool,
        has_timed_out: bool,
    ) -> bool {
        let is_new = !(is_recovering || has_timed_out && self.is_stalled);
        // RFC 5682 §3.2: F-RTO does not apply to a timeout during another recovery.
        self.is_testing_timeout =
            self.frto && (self.is_stalled || !(is_recovering || has_timed_out));
        self.is_stalled = true;
        if is_new {
            self.begin(cumulative);
        }
        is_new
    }

    /// Records a timeout of a SYN.
    pub fn on_syn_timeout(&mut self, now: Time) {
        self.first_retransmit_at = self.first_retransmit_at.min(now);
    }

    /// Returns true if a SYN sent at `sent_at`, which was answered, is the first one: its timeout was
    /// spurious (`tcp_try_undo_spurious_syn` in Linux).
    pub fn is_first_syn(&self, sent_at: Time) -> bool {
        sent_at < self.first_retransmit_at
    }

    /// Records a retransmission.
    pub fn on_retransmit(&mut self, sequence: u32, now: Time) {
        self.retransmits_end = self.retransmits_end.max(sequence + 1);
        self.first_retransmit_at = self.first_retransmit_at.min(now);
        self.retransmits += 1;
    }

    /// Records an advance of the cumulative acknowledgement.
    pub fn on_advance(&mut self) {
        self.is_stalled = false;
    }

    /// Records a D-SACK report of segments before `end`.
    pub fn on_duplicate_sack(&mut self, end: u32) {
        self.duplicate_sacks += u32::from(self.undo_marker.is_some_and(|marker| end > marker));
    }

    /// Returns true if every retransmission was a duplicate.
    pub fn were_retransmits_spurious(&self) -> bool {
        self.undo_marker.is_some()
            && self.retransmits > 0
            && self.duplicate_sacks >= self.retransmits
    }

    /// Returns true if `sent_at` is before the first retransmission.
    pub fn predates_retransmits(&self, sent_at: Time) -> bool {
        self.undo_marker.is_some() && self.retransmits > 0 && sent_at < self.first_retransmit_at
    }

    /// Returns true if F-RTO is testing the current timeout.
    pub fn is_testing_timeout(&self) -> bool {
        self.is_testing_timeout
    }

    /// Confirms the current timeout as a loss.
    pub fn confirm_timeout(&mut self) {
        self.is_testing_timeout = false;
    }

    /// Discards the state: a reduction can no longer be undone.
    pub fn clear(&mut self) {
        (self.undo_marker, self.is_testing_timeout) = (None, false);
    }
}

/// Congestion window and ssthresh before a loss, in any unit.
#[derive(Clone, Copy, Debug, Default)]
pub struct SavedWindow {
    window: f64,
    ssthresh: f64,
}

impl SavedWindow {
    /// Saves the current values; ssthresh as at least three quarters of the window (Linux,
    /// `tcp_current_ssthresh`).
    pub fn new(window: f64, ssthresh: f64) -> Self {
        Self { window, ssthresh: ssthresh.max(0.75 * window) }
    }

    /// Restores the saved values, unless the current values are larger.
    pub fn restore(self, window: &mut f64, ssthresh: &mut f64) {
        *window = window.max(self.window);
        *ssthresh = ssthresh.max(self.ssthresh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Duration;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// Retransmits segment 5 at 100 ms and segment 15 at 110 ms.
    fn retransmitted() -> SpuriousLoss {
        let mut spurious = SpuriousLoss::new(false);
        spurious.begin(5);
        spurious.on_retransmit(5, at(100));
        spurious.on_retransmit(15, at(110));
        spurious
    }

    #[test]
    fn a_retransmission_of_an_earlier_recovery_is_not_an_original() {
        let mut spurious = retransmitted();
        spurious.begin(12);
        spurious.on_retransmit(25, at(200));
        assert!(!spurious.predates_retransmits(at(110)), "retransmission of segment 15");
        assert!(spurious.predates_retransmits(at(99)));
        let mut spurious = retransmitted();
        spurious.begin(16);
        spurious.on_retransmit(25, at(200));
        assert!(spurious.predates_retransmits(at(110)), "segment 15 is acknowledged");
    }

    #[test]
    fn losses_are_spurious_only_if_every_retransmission_is_a_duplicate() {
        let mut spurious = retransmitted();
        spurious.on_duplicate_sack(6);
        assert!(!spurious.were_retransmits_spurious());
        spurious.on_duplicate_sack(4);
        assert!(!spurious.were_retransmits_spurious(), "reported before this loss");
        spurious.on_duplicate_sack(16);
        assert!(spurious.were_retransmits_spurious());
        spurious.clear();
        assert!(!spurious.were_retransmits_spurious() && !spurious.predates_retransmits(at(1)));
    }
}

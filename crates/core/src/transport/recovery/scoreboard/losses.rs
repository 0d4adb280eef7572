//! Loss detection: by selective acknowledgements (RFC 6675), by time (RACK, RFC 8985), and by a timeout.

use super::{AckOutcome, RecoveryState, Scoreboard};
use crate::base::units::{Duration, Time};
use crate::transport::Recovery;
use crate::transport::endpoint::timer_ticks;

impl Scoreboard {
    /// Handles RACK's reordering timer.
    pub fn on_timer(&mut self, now: Time) -> AckOutcome {
        if now < self.reordering_timer {
            return AckOutcome::default();
        }
        let lost = self.detect_losses_by_time(now);
        AckOutcome {
            lost,
            starts_recovery: lost > 0 && self.enter_recovery(),
            ..AckOutcome::default()
        }
    }

    /// Sets the smoothed RTT, which limits RACK's reordering window.
    pub fn set_smoothed_rtt(&mut self, smoothed: Option<Duration>) {
        if let Some(rack) = &mut self.rack {
            rack.set_smoothed_rtt(smoothed);
        }
    }

    /// Marks lost segments by RACK. Returns the number of segments newly marked. The detection is
    /// urgent during recovery, and when enough segments are sacked to start one (RFC 8985 §6.2
    /// step 4).
    pub(super) fn detect_losses_by_time(&mut self, now: Time) -> u32 {
        let Some(rack) = &mut self.rack else { return 0 };
        let has_threshold =
            self.duplicate_acks.is_some_and(|threshold| self.sacked.count() >= threshold);
        let is_urgent = self.state != RecoveryState::Open || has_threshold;
        let before = self.lost.count();
        let due = rack.detect_losses(now, is_urgent, |sequence| {
            self.lost.insert(sequence, sequence + 1);
        });
        self.reordering_timer = match due {
            Time::NEVER => Time::NEVER,
            due => timer_ticks::expiry(now, due.since(now), self.timer_tick),
        };
        self.lost.count() - before
    }

    /// Marks sequence gaps lost with enough sacked segments beyond them (RFC 6675 §4, `IsLost`).
    /// Returns the number of segments newly marked.
    pub(super) fn detect_losses_by_sack(&mut self) -> u32 {
        let Some(threshold) = self.duplicate_acks else { return 0 };
        if self.sacked.count() < threshold {
            return 0;
        }
        let mut beyond = 0;
        let mut limit = self.cumulative;
        for range in self.sacked.ranges().rev() {
            beyond += range.1 - range.0;
            if beyond >= threshold {
                limit = range.0;
                break;
            }
        }
        if let Some(last_resort) = &mut self.last_resort {
            last_resort.doubled.remove(0, limit);
        }
        let from = self.gaps_checked.max(self.cumulative);
        if limit <= from {
            return 0;
        }
        self.gaps_checked = limit;
        self.mark_lost(from, limit)
    }

    /// Marks every segment of `from..to` lost that is not sacked. Returns the number of segments
    /// newly marked.
    pub(super) fn mark_lost(&mut self, from: u32, to: u32) -> u32 {
        let Self { sacked, lost, .. } = self;
        let before = lost.count();
        sacked.gaps(from, to, |from, to| {
            lost.insert(from, to);
        });
        lost.count() - before
    }

    /// Notes that a timer has revealed the loss of a segment.
    pub fn note_timed_out(&mut self, sequence: u32) {
        let timed_out = self.timed_out.get_or_insert_default();
        timed_out.remove(0, self.cumulative);
        timed_out.insert(sequence, sequence + 1);
    }

    /// Notes that a timer has revealed all losses that are known now.
    pub fn note_all_timed_out(&mut self) {
        let timed_out = self.timed_out.get_or_insert_default();
        timed_out.remove(0, self.cumulative);
        self.lost.ranges().for_each(|(from, to)| {
            timed_out.insert(from, to);
        });
    }

    /// Returns true if a timer has revealed the loss of a segment that is sent again now.
    pub fn take_timed_out(&mut self, sequence: u32) -> bool {
        let was_noted = self.timed_out.as_mut().map(|set| set.remove(sequence, sequence + 1));
        self.state == RecoveryState::Timeout || was_noted.is_some_and(|count| count > 0)
    }

    /// Handles a timeout: all segments in flight are lost, except recent ones with RACK (RFC 8985
    /// §6.3). Returns the number of segments newly marked.
    pub fn on_timeout(&mut self, now: Time) -> u32 {
        self.state = RecoveryState::Timeout;
        self.recovery_point = self.highest;
        self.retransmits_now = false;
        self.prefers_new = false;
        self.partial_acks = 0;
        self.duplicates = 0;
        self.reordering_timer = Time::NEVER;
        if let Some(last_resort) = &mut self.last_resort {
            last_resort.doubled.remove(0, self.next);
        }
        let before = self.lost.count();
        if self.recovery == Recovery::GoBackN {
            let lost = self.flight_size();
            self.next = self.cumulative;
            return lost;
        }
        if let Self { rack: Some(rack), sacked, lost, cumulative, .. } = self {
            sacked.gaps(*cumulative, self.next, |from, to| {
                let is_lost =
                    |segment: &u32| segment == cumulative || rack.is_overdue(*segment, now);
                (from..to).filter(is_lost).for_each(|segment| {
                    lost.insert(segment, segment + 1);
                });
            });
            self.retransmits_now = true;
        } else {
            self.gaps_checked = self.next;
            self.mark_lost(self.cumulative, self.next);
        }
        self.lost.count() - before
    }
}

//! Scoreboard of a sender: segments that are acknowledged, delivered out of order, lost, in flight.
//!
//! Implements loss recovery for all transports: SACK (RFC 6675), RACK (RFC 8985, in `rack`), NewReno
//! (RFC 6582), Reno (RFC 5681 §3.2) and go-back-N. Without SACK each duplicate ACK shows that one
//! segment has left the network. Its subtraction from the segments in flight is equivalent to the
//! window inflation of the RFCs. The cost of an ACK does not grow with the window.

mod losses;
mod next_seg;
mod reports;
mod sleek;

use self::next_seg::LastResort;
use super::rack::Rack;
use super::segment_set::SegmentSet;
use super::segment_timers::SegmentTimers;
use crate::base::units::{Duration, Time};
use crate::model::packet::SACK_BLOCKS;
use crate::transport::{Recovery, Reliability};

/// State of loss recovery, as in Linux (`TCP_CA_Open`, `TCP_CA_Recovery`, `TCP_CA_Loss`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecoveryState {
    /// No recovery.
    Open,
    /// Fast recovery: losses that ACKs revealed are retransmitted.
    Recovery,
    /// Recovery from a timeout, which declared all segments in flight lost.
    Timeout,
}

/// Effect of an ACK on the scoreboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent results")]
pub struct AckOutcome {
    /// Segments that are newly delivered, in order or not.
    pub delivered: u32,
    /// True if the last segment, which may be short, is among them.
    pub has_last: bool,
    /// Segments by which the cumulative acknowledgement advanced.
    pub advanced: u32,
    /// Segments that are newly declared lost.
    pub lost: u32,
    /// True if the ACK starts a recovery: it reveals the first loss in this window of data.
    pub starts_recovery: bool,
    /// True if a segment was delivered that was sent before the recovery and never retransmitted
    /// (only with RACK).
    pub has_original: bool,
    /// True if the ACK carries a D-SACK.
    pub has_duplicate_sack: bool,
    /// True if the ACK has a SACK block that it does not repeat.
    pub has_new_block: bool,
}

/// State of all segments of a flow.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent options and states")]
pub struct Scoreboard {
    recovery: Recovery,
    duplicate_acks: Option<u32>,
    /// True if receivers send D-SACKs.
    uses_duplicate_sack: bool,
    /// True if ACKs repeat SACK blocks.
    repeats_blocks: bool,
    /// The number of segments.
    total: u32,
    /// Segments beyond `cumulative` that the receiver accepts; `u32::MAX` for no limit.
    receive_window: u32,
    /// All segments before this one are acknowledged (SND.UNA).
    cumulative: u32,
    /// The next segment to send, apart from retransmissions (SND.NXT).
    next: u32,
    /// The end of the segments sent so far (`HighData` in RFC 6675).
    highest: u32,
    /// Segments beyond `cumulative` that SACKs have reported.
    sacked: SegmentSet,
    /// Segments that have left the network according to duplicate ACKs, without SACK.
    duplicates: u32,
    /// Segments that are lost and not yet retransmitted.
    lost: SegmentSet,
    /// Those of them that a timer revealed, if one did; not those of a recovery from a timeout. Boxed, since
    /// most flows have none.
    timed_out: Option<Box<SegmentSet>>,
    /// Sequence gaps before this segment have been declared lost.
    gaps_checked: u32,
    state: RecoveryState,
    /// The recovery ends when all segments before this one are acknowledged (`RecoveryPoint` in
    /// RFC 6675).
    recovery_point: u32,
    /// True if the first lost segment is sent regardless of the window (fast retransmit).
    retransmits_now: bool,
    /// True if all lost segments are (SLEEK).
    retransmits_all: bool,
    /// True if retransmissions wait for new data (F-RTO).
    prefers_new: bool,
    /// Partial ACKs of the current recovery, without SACK.
    partial_acks: u32,
    /// State of `NextSeg`'s rules 3 and 4, if enabled. Boxed, since most flows do not use them.
    last_resort: Option<Box<LastResort>>,
    /// Number of received segments according to the receiver, if ACKs count them.
    received: Option<u32>,
    /// Timers of single segments, if they have some. Boxed, since most flows do not use them.
    segment_timers: Option<Box<SegmentTimers>>,
    /// RACK state, and its reordering timer; [`Time::NEVER`] if the timer is not armed.
    rack: Option<Box<Rack>>,
    reordering_timer: Time,
    timer_tick: Duration,
}

impl Scoreboard {
    /// Creates the scoreboard of a flow of `total` segments.
    pub fn new(total: u32, reliability: &Reliability) -> Self {
        Self {
            recovery: reliability.recovery,
            duplicate_acks: reliability.duplicate_acks,
            uses_duplicate_sack: reliability.duplicate_sack,
            repeats_blocks: reliability.sack_blocks > 1,
            total,
            receive_window: reliability.receive_window.unwrap_or(u32::MAX),
            cumulative: 0,
            next: 0,
            highest: 0,
            sacked: SegmentSet::default(),
            duplicates: 0,
            lost: SegmentSet::default(),
            timed_out: None,
            gaps_checked: 0,
            state: RecoveryState::Open,
            recovery_point: 0,
            retransmits_now: false,
            retransmits_all: false,
            prefers_new: false,
            partial_acks: 0,
            last_resort: reliability.rescue.then(Box::default),
            received: None,
            segment_timers: None,
            rack: (reliability.recovery == Recovery::Rack).then(Box::default),
            reordering_timer: Time::NEVER,
            timer_tick: reliability.timer_tick,
        }
    }

    /// Returns the number of segments.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Returns the number of segments that are not known to be delivered.
    pub fn remaining(&self) -> u32 {
        self.total - self.cumulative - self.sacked.count()
    }

    /// Returns the first segment that is not acknowledged (SND.UNA).
    pub fn cumulative(&self) -> u32 {
        self.cumulative
    }

    /// Returns the end of the segments sent so far.
    pub fn highest(&self) -> u32 {
        self.highest
    }

    /// Returns true if all segments are acknowledged.
    pub fn is_done(&self) -> bool {
        self.cumulative >= self.total
    }

    /// Returns true if a segment that was sent is not acknowledged.
    pub fn has_unacknowledged(&self) -> bool {
        self.cumulative < self.highest
    }

    /// Returns true during fast recovery.
    pub fn is_recovering(&self) -> bool {
        self.state == RecoveryState::Recovery
    }

    /// Returns true during the recovery from a timeout.
    pub fn has_timed_out(&self) -> bool {
        self.state == RecoveryState::Timeout
    }

    /// Ends the flow after the segments sent so far and `more` new ones.
    pub fn stop(&mut self, more: u32) {
        self.total = self.highest + more;
    }

    /// Appends segments to the flow.
    pub fn append(&mut self, segments: u32) {
        self.total += segments;
    }

    /// Returns the estimated number of segments in flight (`pipe` in RFC 6675).
    pub fn in_flight(&self) -> u32 {
        if let Some(received) = self.received {
            // NACKs advance the cumulative acknowledgement, but report no count.
            let received = received.max(self.cumulative);
            return self.next.saturating_sub(received + self.lost.count());
        }
        let departed = self.sacked.count() + self.lost.count() + self.duplicates;
        let doubled =
            self.last_resort.as_ref().map_or(0, |last_resort| last_resort.doubled.count());
        (self.next - self.cumulative + doubled).saturating_sub(departed)
    }

    /// Returns the number of segments sent and not yet acknowledged, lost or not (`FlightSize` in
    /// RFC 5681).
    pub fn flight_size(&self) -> u32 {
        self.next - self.cumulative
    }

    /// Returns true if new data was sent since the start of the recovery.
    pub fn has_sent_new(&self) -> bool {
        self.highest > self.recovery_point
    }

    /// Returns true outside recovery if no segment is known to be missing.
    pub fn is_in_order(&self) -> bool {
        self.state == RecoveryState::Open && self.sacked.is_empty()
    }

    /// Returns true if the current recovery, without SACK, has had more than one partial ACK.
    pub fn has_further_partial_acks(&self) -> bool {
        self.state == RecoveryState::Recovery && self.partial_acks > 1
    }

    /// Returns true if `sent_at` is before the last transmission of the first unacknowledged
    /// segment (only with RACK).
    pub fn predates_first(&self, sent_at: Time) -> bool {
        self.rack
            .as_ref()
            .and_then(|rack| rack.first_sent_at())
            .is_some_and(|first| sent_at < first)
    }

    /// Returns when RACK's reordering timer expires.
    pub fn next_timer(&self) -> Time {
        self.reordering_timer
    }

    /// Records the transmission of a segment: the candidate, or a probe. Returns true if it is a
    /// retransmission.
    #[inline]
    pub fn on_sent(&mut self, sequence: u32, now: Time) -> bool {
        self.retransmits_now = self.retransmits_all;
        if let Some(rack) = &mut self.rack {
            rack.on_sent(sequence, now);
        }
        if self.lost.remove(sequence, sequence + 1) == 0 {
            if sequence == self.next {
                self.next += 1;
            } else {
                self.on_last_resort_sent(sequence);
            }
        }
        if let Some(timers) = &mut self.segment_timers {
            timers.on_sent(sequence, now);
            self.update_segment_timers();
        }
        let is_retransmit = sequence < self.highest;
        self.highest = self.highest.max(self.next);
        is_retransmit
    }

    /// Handles an ACK: all segments before `sequence` were received, and those of the SACK blocks, most
    /// recent first. The ACK echoes the timestamp `echo`.
    pub fn on_ack(
        &mut self,
        sequence: u32,
        blocks: &[(u32, u32)],
        now: Time,
        echo: Time,
    ) -> AckOutcome {
        let advanced = sequence.saturating_sub(self.cumulative);
        let mut outcome = match self.recovery {
            Recovery::SelectiveRepeat | Recovery::Rack => self.on_sack(sequence, blocks, now, echo),
            Recovery::NewReno | Recovery::Reno => self.on_plain_ack(sequence),
            Recovery::GoBackN => self.advance(sequence),
        };
        if self.state != RecoveryState::Open && self.cumulative >= self.recovery_point {
            self.state = RecoveryState::Open;
            self.duplicates = 0;
            self.prefers_new = false;
            if let Some(rack) = &mut self.rack {
                rack.on_recovery_end();
            }
        }
        outcome.advanced = advanced;
        outcome.starts_recovery = outcome.starts_recovery && self.enter_recovery();
        self.update_segment_timers();
        outcome
    }

    /// Enters fast recovery, unless there was a recovery in this window of data. Returns true if it
    /// does.
    fn enter_recovery(&mut self) -> bool {
        let is_new = self.cumulative >= self.recovery_point;
        if is_new {
            self.state = RecoveryState::Recovery;
            self.recovery_point = self.highest;
            self.retransmits_now = true;
            self.partial_acks = 0;
            if let Some(last_resort) = &mut self.last_resort {
                last_resort.is_spent = false;
            }
        }
        is_new
    }

    fn on_sack(
        &mut self,
        sequence: u32,
        blocks: &[(u32, u32)],
        now: Time,
        echo: Time,
    ) -> AckOutcome {
        let mut original = None;
        if let Some(rack) = &mut self.rack {
            self.sacked.gaps(self.cumulative, sequence, |from, to| {
                original = original.or(rack.on_delivered(from, to, now, echo));
            });
        }
        let mut outcome = self.advance(sequence);
        if let Some(rack) = &mut self.rack {
            rack.on_cumulative_ack(self.cumulative);
        }
        if let Some(last_resort) = &mut self.last_resort {
            last_resort.doubled.remove(0, self.cumulative);
        }
        let mut new = 0;
        if let [block] = blocks {
            new = self.sack(*block, now, &mut original, &mut outcome);
        } else {
            // In the order of segments, since RACK takes the reverse order for reordering.
            let mut ascending = [(0, 0); SACK_BLOCKS];
            ascending[..blocks.len()].copy_from_slice(blocks);
            ascending.sort_unstable();
            for block in ascending {
                new += self.sack(block, now, &mut original, &mut outcome);
            }
        }
        outcome.has_original = original.is_some_and(|sequence| sequence < self.recovery_point);
        let (first, others) = blocks.split_first().unwrap_or((&(0, 0), &[]));
        let (has_block, is_repeating) = (first.0 < first.1, self.repeats_blocks);
        outcome.has_new_block = if is_repeating { new > 0 } else { has_block };
        // RFC 2883 §4: below the cumulative acknowledgement, or within the next block. A single block that
        // is not repeated is a duplicate if it reports nothing new.
        let is_within = |other: &(u32, u32)| other.0 <= first.0 && first.1 <= other.1;
        let is_duplicate = has_block
            && if is_repeating {
                first.1 <= sequence || others.iter().any(is_within)
            } else {
                new == 0
            };
        outcome.has_duplicate_sack = is_duplicate && self.uses_duplicate_sack;
        if let Some(rack) = self.rack.as_mut().filter(|_| outcome.has_duplicate_sack) {
            rack.on_duplicate_sack(self.cumulative, self.next);
        }
        outcome.lost = if self.rack.is_none() {
            self.detect_losses_by_sack()
        } else {
            self.detect_losses_by_time(now)
        };
        outcome.starts_recovery = outcome.lost > 0;
        outcome
    }

    /// Records the segments of a SACK block as delivered. Returns the number of new ones.
    #[inline]
    fn sack(
        &mut self,
        block: (u32, u32),
        now: Time,
        original: &mut Option<u32>,
        outcome: &mut AckOutcome,
    ) -> u32 {
        let (from, to) = (block.0.max(self.cumulative), block.1);
        if from < to { self.sack_range((from, to), now, original, outcome) } else { 0 }
    }

    fn sack_range(
        &mut self,
        (from, to): (u32, u32),
        now: Time,
        original: &mut Option<u32>,
        outcome: &mut AckOutcome,
    ) -> u32 {
        if let Some(rack) = &mut self.rack {
            self.sacked.gaps(from, to, |from, to| {
                *original = original.or(rack.on_delivered(from, to, now, Time::NEVER));
            });
        }
        if let Some(last_resort) = &mut self.last_resort {
            last_resort.doubled.remove(from, to);
        }
        let last_was_sacked = self.repeats_blocks && self.sacked_end() == self.total;
        self.lost.remove(from, to);
        let new = self.sacked.insert(from, to);
        outcome.delivered += new;
        outcome.has_last |= outcome.delivered > 0 && to == self.total && !last_was_sacked;
        new
    }

    /// Undoes a spurious recovery: clears the loss marks and leaves recovery. Returns the losses that
    /// RACK still detects.
    pub fn undo(&mut self, now: Time) -> AckOutcome {
        let was_fast_recovery = self.state == RecoveryState::Recovery;
        self.state = RecoveryState::Open;
        self.recovery_point = self.cumulative;
        self.retransmits_now = false;
        self.prefers_new = false;
        if let Some(rack) = &mut self.rack {
            let lost = self.lost.ranges().flat_map(|(from, to)| from..to);
            lost.for_each(|sequence| rack.unmark_lost(sequence));
            if was_fast_recovery {
                rack.on_reordering();
            }
        }
        self.lost.remove(0, self.next);
        let lost = self.detect_losses_by_time(now);
        AckOutcome {
            lost,
            starts_recovery: lost > 0 && self.enter_recovery(),
            ..AckOutcome::default()
        }
    }

    /// Advances the cumulative acknowledgement to `sequence`.
    fn advance(&mut self, sequence: u32) -> AckOutcome {
        if sequence <= self.cumulative {
            return AckOutcome::default();
        }
        let last_was_sacked =
            self.sacked.ranges().next_back().is_some_and(|range| range.1 == self.total);
        let already_sacked = self.sacked.remove(0, sequence);
        self.lost.remove(0, sequence);
        let delivered = sequence - self.cumulative - already_sacked;
        self.cumulative = sequence;
        self.next = self.next.max(sequence);
        let has_last = sequence == self.total && !last_was_sacked;
        AckOutcome { delivered, has_last, ..AckOutcome::default() }
    }

    fn on_plain_ack(&mut self, sequence: u32) -> AckOutcome {
        if sequence > self.cumulative {
            return self.on_new_ack(sequence);
        }
        if sequence < self.cumulative || self.next == self.cumulative {
            return AckOutcome::default();
        }
        let Some(threshold) = self.duplicate_acks else { return AckOutcome::default() };
        let is_blocked = self.recovery_point > 0 && self.cumulative <= self.recovery_point;
        match self.state {
            RecoveryState::Recovery => self.duplicates += 1,
            // Limited transmit (RFC 3042). Until an ACK exceeds the last recovery point, duplicate
            // ACKs may result from needless retransmissions and start no recovery (RFC 6582 §3.2
            // step 2).
            RecoveryState::Open if self.duplicates + 1 < threshold || !is_blocked => {
                self.duplicates += 1;
            }
            RecoveryState::Open | RecoveryState::Timeout => {}
        }
        let is_loss =
            self.state == RecoveryState::Open && self.duplicates == threshold && !is_blocked;
        if is_loss {
            self.lost.insert(self.cumulative, self.cumulative + 1);
        }
        AckOutcome { lost: u32::from(is_loss), starts_recovery: is_loss, ..AckOutcome::default() }
    }

    /// Handles an ACK for new data, without SACK.
    fn on_new_ack(&mut self, sequence: u32) -> AckOutcome {
        let mut outcome = self.advance(sequence);
        let is_partial = self.state == RecoveryState::Recovery && sequence < self.recovery_point;
        if is_partial && self.recovery == Recovery::NewReno {
            // RFC 6582 §3.2 step 3: the next segment is lost too; deflate the window by the
            // acknowledged data, less the retransmitted segment.
            self.duplicates = self.duplicates.saturating_sub(outcome.delivered - 1);
            self.lost.insert(sequence, sequence + 1);
            outcome.lost = 1;
            self.retransmits_now = true;
            self.partial_acks += 1;
        } else {
            self.duplicates = 0;
            if self.state == RecoveryState::Recovery {
                self.state = RecoveryState::Open;
            }
        }
        outcome
    }
}

#[cfg(test)]
mod tests;

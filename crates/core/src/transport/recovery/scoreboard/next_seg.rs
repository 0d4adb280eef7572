//! Choice of the next segment to send: `NextSeg` of RFC 6675 §4.

use super::Scoreboard;
use crate::transport::recovery::segment_set::SegmentSet;

/// State of `NextSeg`'s rules 3 and 4, which the RFC calls a last resort.
#[derive(Clone, Debug, Default)]
pub(super) struct LastResort {
    /// Segments that rule 3 has retransmitted and that are not lost: `SetPipe` counts both transmissions.
    pub(super) doubled: SegmentSet,
    /// True if rule 4 was applied in this recovery (`RescueRxt` is `RecoveryPoint`).
    pub(super) is_spent: bool,
}

impl Scoreboard {
    /// Returns the next segment to send within the receive window (`NextSeg` in RFC 6675), and true if it is
    /// sent regardless of the congestion window.
    #[inline]
    pub fn candidate(&self) -> Option<(u32, bool)> {
        let is_accepted = self.next - self.cumulative < self.receive_window;
        match self.lost.first() {
            Some(lost) if !self.prefers_new => Some((lost, self.retransmits_now)),
            _ if self.next < self.total && is_accepted => Some((self.next, false)),
            _ if self.last_resort.is_some() => self.last_resort().map(|sequence| (sequence, false)),
            _ => None,
        }
    }

    /// Returns the number of segments that were not sent, or are lost.
    pub fn unsent(&self) -> u32 {
        self.total - self.next + self.lost.count()
    }

    /// Returns true if retransmissions wait for new data.
    pub fn prefers_new(&self) -> bool {
        self.prefers_new
    }

    /// Sets if retransmissions wait for new data.
    pub fn set_prefers_new(&mut self, prefers_new: bool) {
        self.prefers_new = prefers_new;
    }

    /// Marks a segment lost that the receiver lacks, if it was sent and has not arrived since. Returns true
    /// if it was not known to be lost.
    pub fn mark_missing(&mut self, sequence: u32) -> bool {
        let was_sent = (self.cumulative..self.next).contains(&sequence);
        let is_missing = was_sent && self.sacked.range_of(sequence).is_none();
        is_missing && self.lost.insert(sequence, sequence + 1) > 0
    }

    /// Returns the segment that rule 3 or 4 of `NextSeg` permits: a gap below the highest SACK, or once per
    /// recovery the last segment (RFC 6675 §4).
    ///
    /// Deviation: rule 4 applies only if the last segment is not sacked. The RFC would otherwise repeat at
    /// once the retransmission of the highest gap.
    #[inline(never)]
    fn last_resort(&self) -> Option<u32> {
        let last_resort = self.last_resort.as_ref().filter(|_| self.is_recovering())?;
        let sacked_end = self.sacked_end();
        let from = self.gaps_checked.max(self.cumulative);
        let gap = self.sacked.range_of(from).map_or(from, |range| range.1);
        let last = self.next - 1;
        if gap < sacked_end {
            return Some(gap);
        }
        (!last_resort.is_spent && sacked_end <= last).then_some(last)
    }

    /// Returns the end of the highest SACK.
    pub(super) fn sacked_end(&self) -> u32 {
        self.sacked.ranges().next_back().map_or(self.cumulative, |range| range.1)
    }

    /// Records the transmission of a segment by rule 3 or 4 of `NextSeg`. Rule 1 does not repeat it
    /// (`HighRxt`).
    pub(super) fn on_last_resort_sent(&mut self, sequence: u32) {
        let sacked_end = self.sacked_end();
        let Some(last_resort) = &mut self.last_resort else { return };
        if sequence < sacked_end {
            last_resort.doubled.insert(sequence, sequence + 1);
            self.gaps_checked = self.gaps_checked.max(sequence + 1);
        } else {
            last_resort.is_spent = true;
        }
    }
}

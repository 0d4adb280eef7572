//! Reports of receivers besides ACKs: NACKs, and counts of segments; and timers of single segments (UEC 1.0).

use super::{AckOutcome, Scoreboard};
use crate::base::units::Time;
use crate::transport::Recovery;

impl Scoreboard {
    /// Counts data in flight by the segments that ACKs report, and times each segment.
    pub fn count_received(&mut self) {
        self.received = Some(0);
        self.segment_timers = Some(Box::default());
    }

    /// Handles the number of received segments that an ACK reports, modulo 65536. Returns its increase.
    pub fn on_report(&mut self, reported: u16) -> u32 {
        let Some(received) = &mut self.received else { return 0 };
        // An ACK that another has overtaken reports less.
        let increase = reported.wrapping_sub(*received as u16).cast_signed().max(0);
        *received += u32::from(increase.unsigned_abs());
        u32::from(increase.unsigned_abs())
    }

    /// Returns when the segment was sent that has been in flight for the longest time, if segments have
    /// timers.
    pub fn oldest_sent_at(&self) -> Option<Time> {
        self.segment_timers.as_ref().and_then(|timers| timers.oldest()).map(|oldest| oldest.0)
    }

    /// Handles the timeout of the segment that has been in flight for the longest time: it is lost.
    pub fn on_segment_timeout(&mut self) {
        if let Some((_, sequence)) = self.segment_timers.as_ref().and_then(|timers| timers.oldest())
        {
            self.lost.insert(sequence, sequence + 1);
            self.note_timed_out(sequence);
            self.update_segment_timers();
        }
    }

    /// Removes the timers of segments that are not in flight.
    #[inline]
    pub(super) fn update_segment_timers(&mut self) {
        let Self { segment_timers, sacked, lost, cumulative, .. } = self;
        if let Some(timers) = segment_timers {
            let is_in_flight = |sequence| {
                sequence >= *cumulative
                    && sacked.range_of(sequence).is_none()
                    && lost.range_of(sequence).is_none()
            };
            timers.discard(*cumulative, is_in_flight);
        }
    }

    /// Handles the return of a segment's header: the segment is lost.
    pub fn on_returned(&mut self, segment: u32) {
        self.mark_missing(segment);
        self.update_segment_timers();
    }

    /// Handles a NACK. From a go-back-N receiver: restarts from the first missing segment. Otherwise the
    /// segment `trimmed` is lost.
    pub fn on_nack(&mut self, sequence: u32, trimmed: u32, now: Time) -> AckOutcome {
        let outcome = self.on_ack(sequence, &[], now, Time::NEVER);
        if self.recovery != Recovery::GoBackN {
            let before = self.lost.count();
            self.on_returned(trimmed);
            return AckOutcome { lost: self.lost.count() - before, ..outcome };
        }
        let was_ahead = self.next > self.cumulative;
        let starts_recovery = was_ahead && self.enter_recovery();
        let lost = self.flight_size();
        self.next = self.cumulative;
        AckOutcome { lost, starts_recovery, ..outcome }
    }
}

//! Which losses may turn out to be none, and what is given back then.
//!
//! Three things tell (RFC 4015 is about the first): an ACK that acknowledges something in order and echoes
//! the time stamp of what left before anything was sent again (RFC 3522); reports of the receiver that all
//! that was sent again has come twice (RFC 2883, RFC 3708); and, after a time-out, something that comes
//! although it was never sent again (F-RTO, RFC 5682 §3). What follows is what Linux does (`tcp_input.c`),
//! which undoes a reduction at once and whole.
//!
//! Deviation: Linux waits with undoing a repair until nothing is on its way that was sent again.

use crate::base::units::Time;

/// What a sender knows of a loss that may have been none.
#[derive(Clone, Copy, Debug)]
pub struct SpuriousLoss {
    /// Whether time-outs are doubted by new data (F-RTO), and whether the present one is.
    frto: bool,
    doubts: bool,
    /// Nothing has been acknowledged in order since a time-out.
    is_stalled: bool,
    /// What was acknowledged in order when the loss was noticed; none if nothing is left to undo.
    from: Option<u32>,
    /// When something was first sent again, since nothing that was is on its way; and the end of that.
    first_copy: Time,
    copies_end: u32,
    /// Segments sent again since then, and reports of what came again.
    copies: u32,
    duplicates: u32,
}

impl SpuriousLoss {
    /// Nothing has been lost.
    pub fn new(frto: bool) -> Self {
        Self {
            frto,
            doubts: false,
            is_stalled: false,
            from: None,
            first_copy: Time::NEVER,
            copies_end: 0,
            copies: 0,
            duplicates: 0,
        }
    }

    /// A loss is noticed when all before `cumulative` is acknowledged. What was sent again before it may
    /// still be on its way, and is no original.
    pub fn begin(&mut self, cumulative: u32) {
        self.from = Some(cumulative);
        if cumulative >= self.copies_end {
            (self.first_copy, self.copies, self.duplicates) = (Time::NEVER, 0, 0);
        }
    }

    /// A time-out comes, while a gap is repaired or while what the last time-out took for lost is. Says
    /// whether it is a loss of its own; otherwise what was before the first is to be restored.
    pub fn on_timeout(&mut self, cumulative: u32, is_repair: bool, has_timed_out: bool) -> bool {
        let is_new = !(is_repair || has_timed_out && self.is_stalled);
        // RFC 5682 §3.2: not if it ends another repair.
        self.doubts = self.frto && (self.is_stalled || !(is_repair || has_timed_out));
        self.is_stalled = true;
        if is_new {
            self.begin(cumulative);
        }
        is_new
    }

    /// A segment is sent again.
    pub fn on_copy(&mut self, sequence: u32, now: Time) {
        self.copies_end = self.copies_end.max(sequence + 1);
        self.first_copy = self.first_copy.min(now);
        self.copies += 1;
    }

    /// Something is acknowledged in order.
    pub fn on_advance(&mut self) {
        self.is_stalled = false;
    }

    /// The receiver reports that segments before `end` have come again.
    pub fn on_duplicate(&mut self, end: u32) {
        self.duplicates += u32::from(self.from.is_some_and(|from| end > from));
    }

    /// Whether all that was sent again has come twice.
    pub fn were_copies_needless(&self) -> bool {
        self.from.is_some() && self.copies > 0 && self.duplicates >= self.copies
    }

    /// Whether what left at this time did so before anything was sent again.
    pub fn is_before_copies(&self, sent_at: Time) -> bool {
        self.from.is_some() && self.copies > 0 && sent_at < self.first_copy
    }

    /// Whether the present time-out is in doubt.
    pub fn doubts(&self) -> bool {
        self.doubts
    }

    /// The present time-out was right.
    pub fn trust(&mut self) {
        self.doubts = false;
    }

    /// Nothing is left to undo.
    pub fn forget(&mut self) {
        (self.from, self.doubts) = (None, false);
    }
}

/// A window, and where slow start ends, before a loss; in any unit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Before {
    window: f64,
    ssthresh: f64,
}

impl Before {
    /// As they are now. Slow start would be back at three quarters of the window at least (Linux).
    pub fn new(window: f64, ssthresh: f64) -> Self {
        Self { window, ssthresh: ssthresh.max(0.75 * window) }
    }

    /// Makes them what they were, unless they are larger by now.
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

    /// Segment 5 is sent again at 100 ms, and 15 at 110 ms.
    fn repaired() -> SpuriousLoss {
        let mut undo = SpuriousLoss::new(false);
        undo.begin(5);
        undo.on_copy(5, at(100));
        undo.on_copy(15, at(110));
        undo
    }

    #[test]
    fn what_was_sent_again_in_a_repair_before_is_no_original_in_the_next() {
        let mut undo = repaired();
        undo.begin(12);
        undo.on_copy(25, at(200));
        assert!(!undo.is_before_copies(at(110)), "segment 15 again");
        assert!(undo.is_before_copies(at(99)));
        let mut undo = repaired();
        undo.begin(16);
        undo.on_copy(25, at(200));
        assert!(undo.is_before_copies(at(110)), "it has been acknowledged");
    }

    #[test]
    fn all_that_was_sent_again_must_have_come_twice() {
        let mut undo = repaired();
        undo.on_duplicate(6);
        assert!(!undo.were_copies_needless());
        undo.on_duplicate(4);
        assert!(!undo.were_copies_needless(), "that was before");
        undo.on_duplicate(16);
        assert!(undo.were_copies_needless());
        undo.forget();
        assert!(!undo.were_copies_needless() && !undo.is_before_copies(at(1)));
    }
}

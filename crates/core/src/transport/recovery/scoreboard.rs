//! What a sender knows of its segments: acknowledged, received beyond a gap, lost, in flight.
//!
//! Loss recovery is here, once for all transports: SACK (RFC 6675), RACK (RFC 8985, in `rack`), NewReno
//! (RFC 6582), Reno (RFC 5681 §3.2) and go-back-N. Without SACK every duplicate ACK tells that
//! one segment has left the network; taking it out of what is in flight is the inflation of the window that
//! the RFCs describe. The cost of an ACK does not grow with the window.

use super::rack::Rack;
use super::segment_set::SegmentSet;
use crate::base::units::{Duration, Time};
use crate::transport::endpoint::timer_ticks;
use crate::transport::{Recovery, Reliability};

/// Where recovery from losses stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is being repaired.
    Open,
    /// A gap is being repaired.
    Recovering,
    /// A time-out has declared all that was in flight lost.
    TimedOut,
}

/// What an ACK has told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct AckOutcome {
    /// Segments now known to be received that were not before.
    pub received: u32,
    /// Whether the last segment, which may be short, is among them.
    pub has_last: bool,
    /// By how many segments the cumulative acknowledgement moved.
    pub advanced: u32,
    /// Segments that it shows to be lost.
    pub lost: u32,
    /// Whether it reveals a loss, and the first one in this window of data.
    pub loss: bool,
    /// Whether something has come that was sent before the repair or time-out and never again; only RACK
    /// knows.
    pub original: bool,
    /// Whether it reports what came again.
    pub duplicate: bool,
}

/// The state of all segments of a flow.
#[derive(Clone, Debug)]
pub struct Scoreboard {
    recovery: Recovery,
    duplicate_acks: Option<u32>,
    /// Whether receivers report what comes again.
    hears_duplicates: bool,
    /// How many segments there are.
    total: u32,
    /// The receiver has everything before this.
    cumulative: u32,
    /// The next segment to send, if none is to be sent again.
    next: u32,
    /// The end of what has ever been sent.
    highest: u32,
    /// Segments beyond `cumulative` that the receiver has; only SACK knows.
    received: SegmentSet,
    /// Segments that have left the network as duplicate ACKs tell, without SACK.
    duplicates: u32,
    /// Segments that are lost and not yet sent again.
    lost: SegmentSet,
    /// Gaps before this have been judged.
    judged: u32,
    phase: Phase,
    /// A new repair starts when everything before this is acknowledged.
    recovery_ends: u32,
    /// The first lost segment goes out at once, whatever the window.
    owed: bool,
    /// What is lost waits until new data has been tried (F-RTO).
    tries_new: bool,
    /// How many ACKs have each acknowledged a part of what is being repaired, without SACK.
    parts: u32,
    /// When segments left, for RACK, and when it is to judge them again; [`Time::NEVER`] if only an ACK
    /// makes it.
    rack: Option<Box<Rack>>,
    judges_at: Time,
    timer_tick: Duration,
}

impl Scoreboard {
    /// Of a flow of `total` segments that has sent none.
    pub fn new(total: u32, reliability: &Reliability) -> Self {
        Self {
            recovery: reliability.recovery,
            duplicate_acks: reliability.duplicate_acks,
            hears_duplicates: reliability.duplicate_sack,
            total,
            cumulative: 0,
            next: 0,
            highest: 0,
            received: SegmentSet::default(),
            duplicates: 0,
            lost: SegmentSet::default(),
            judged: 0,
            phase: Phase::Open,
            recovery_ends: 0,
            owed: false,
            tries_new: false,
            parts: 0,
            rack: (reliability.recovery == Recovery::Rack).then(Box::default),
            judges_at: Time::NEVER,
            timer_tick: reliability.timer_tick,
        }
    }

    /// How many segments there are to send.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// How many segments the receiver is not known to have.
    pub fn remaining(&self) -> u32 {
        self.total - self.cumulative - self.received.count()
    }

    /// The receiver has everything before this.
    pub fn cumulative(&self) -> u32 {
        self.cumulative
    }

    /// The end of what has ever been sent.
    pub fn highest(&self) -> u32 {
        self.highest
    }

    /// Whether the receiver is known to have everything.
    pub fn is_done(&self) -> bool {
        self.cumulative >= self.total
    }

    /// Whether anything that was sent is not acknowledged.
    pub fn has_unanswered(&self) -> bool {
        self.cumulative < self.highest
    }

    /// Whether a gap is being repaired.
    pub fn is_recovering(&self) -> bool {
        self.phase == Phase::Recovering
    }

    /// Whether what a time-out has declared lost is being sent again.
    pub fn has_timed_out(&self) -> bool {
        self.phase == Phase::TimedOut
    }

    /// Sends nothing new from now on.
    pub fn stop(&mut self) {
        self.total = self.highest;
    }

    /// Segments in flight, as far as the sender knows (RFC 6675's pipe).
    pub fn in_flight(&self) -> u32 {
        let gone = self.received.count() + self.lost.count() + self.duplicates;
        (self.next - self.cumulative).saturating_sub(gone)
    }

    /// Segments sent and not yet acknowledged, lost or not (RFC 5681's FlightSize).
    pub fn flight_size(&self) -> u32 {
        self.next - self.cumulative
    }

    /// The segment that is next in line, and whether it must go whatever the window.
    pub fn candidate(&self) -> Option<(u32, bool)> {
        match self.lost.first() {
            Some(lost) if !self.tries_new => Some((lost, self.owed)),
            _ => (self.next < self.total).then_some((self.next, false)),
        }
    }

    /// Whether what is lost waits until new data has been tried.
    pub fn tries_new(&self) -> bool {
        self.tries_new
    }

    /// Lets what is lost wait until new data has been tried, or no longer.
    pub fn try_new(&mut self, tries: bool) {
        self.tries_new = tries;
    }

    /// Whether something has been sent that was not when the present repair or time-out began.
    pub fn has_sent_new(&self) -> bool {
        self.highest > self.recovery_ends
    }

    /// Whether every ACK has been in order since the last repair, so that nothing is known to be missing.
    pub fn is_in_order(&self) -> bool {
        self.phase == Phase::Open && self.received.is_empty()
    }

    /// Whether a segment is repaired each round trip, without SACK, and this is not the first.
    pub fn repairs_further(&self) -> bool {
        self.phase == Phase::Recovering && self.parts > 1
    }

    /// Whether something that left at this time did so before the first segment that is missing last left;
    /// only RACK knows.
    pub fn left_before_first(&self, sent_at: Time) -> bool {
        self.rack.as_ref().and_then(|rack| rack.first_left()).is_some_and(|left| sent_at < left)
    }

    /// When RACK is to judge again, if no ACK comes.
    pub fn judges_at(&self) -> Time {
        self.judges_at
    }

    /// Notes that a segment has been sent: the candidate, or a probe. Says whether it had been before.
    pub fn sent(&mut self, sequence: u32, now: Time) -> bool {
        self.owed = false;
        if let Some(rack) = &mut self.rack {
            rack.on_sent(sequence, now);
        }
        if self.lost.remove(sequence, sequence + 1) == 0 && sequence == self.next {
            self.next += 1;
        }
        let is_retransmit = sequence < self.highest;
        self.highest = self.highest.max(self.next);
        is_retransmit
    }

    /// Takes an ACK in: everything before `sequence` has been received, and a run beyond it. It echoes the
    /// time stamp `echo`.
    pub fn on_ack(
        &mut self,
        sequence: u32,
        block: (u32, u32),
        now: Time,
        echo: Time,
    ) -> AckOutcome {
        let advanced = sequence.saturating_sub(self.cumulative);
        let mut told = match self.recovery {
            Recovery::SelectiveRepeat | Recovery::Rack => self.on_sack(sequence, block, now, echo),
            Recovery::NewReno | Recovery::Reno => self.on_plain_ack(sequence),
            Recovery::GoBackN => self.advance(sequence),
        };
        if self.phase != Phase::Open && self.cumulative >= self.recovery_ends {
            self.phase = Phase::Open;
            self.duplicates = 0;
            self.tries_new = false;
            if let Some(rack) = &mut self.rack {
                rack.on_repaired();
            }
        }
        told.advanced = advanced;
        told.loss = told.loss && self.begin_recovery();
        told
    }

    /// Takes a NACK of a go-back-N receiver in: starts again from the gap.
    pub fn on_nack(&mut self, sequence: u32, now: Time) -> AckOutcome {
        let told = self.on_ack(sequence, (0, 0), now, Time::NEVER);
        let was_ahead = self.next > self.cumulative;
        let loss = was_ahead && self.begin_recovery();
        let lost = self.flight_size();
        self.next = self.cumulative;
        AckOutcome { lost, loss, ..told }
    }

    /// A repair begins, unless one is under way in this window of data.
    fn begin_recovery(&mut self) -> bool {
        let is_new = self.cumulative >= self.recovery_ends;
        if is_new {
            self.phase = Phase::Recovering;
            self.recovery_ends = self.highest;
            self.owed = true;
            self.parts = 0;
        }
        is_new
    }

    fn on_sack(&mut self, sequence: u32, block: (u32, u32), now: Time, echo: Time) -> AckOutcome {
        let mut original = None;
        if let Some(rack) = &mut self.rack {
            self.received.holes(self.cumulative, sequence, |from, to| {
                original = original.or(rack.on_come(from, to, now, echo));
            });
        }
        let mut told = self.advance(sequence);
        let (from, to) = (block.0.max(self.cumulative), block.1);
        if let Some(rack) = &mut self.rack {
            rack.forget_before(self.cumulative);
            self.received.holes(from, to, |from, to| {
                original = original.or(rack.on_come(from, to, now, Time::NEVER));
            });
        }
        told.original = original.is_some_and(|sequence| sequence < self.recovery_ends);
        let mut is_known = block.0 < block.1;
        if from < to {
            self.lost.remove(from, to);
            let new = self.received.insert(from, to);
            told.received += new;
            is_known = new == 0;
            told.has_last |= told.received > 0 && to == self.total;
        }
        told.duplicate = is_known && self.hears_duplicates;
        if let Some(rack) = self.rack.as_mut().filter(|_| told.duplicate) {
            rack.on_duplicate(self.cumulative, self.next);
        }
        told.lost = if self.rack.is_none() { self.judge_gaps() } else { self.judge_times(now) };
        told.loss = told.lost > 0;
        told
    }

    /// What was taken for lost in a repair or at a time-out may still come, and the next loss is a new one.
    /// Says what RACK takes for lost nevertheless.
    pub fn undo(&mut self, now: Time) -> AckOutcome {
        let was_repair = self.phase == Phase::Recovering;
        self.phase = Phase::Open;
        self.recovery_ends = self.cumulative;
        self.owed = false;
        self.tries_new = false;
        if let Some(rack) = &mut self.rack {
            let lost = self.lost.runs().flat_map(|(from, to)| from..to);
            lost.for_each(|sequence| rack.take_back(sequence));
            if was_repair {
                rack.on_overtaken();
            }
        }
        self.lost.remove(0, self.next);
        let lost = self.judge_times(now);
        AckOutcome { lost, loss: lost > 0 && self.begin_recovery(), ..AckOutcome::default() }
    }

    /// RACK judges what is overdue by now, without an ACK.
    pub fn on_time(&mut self, now: Time) -> AckOutcome {
        if now < self.judges_at {
            return AckOutcome::default();
        }
        let lost = self.judge_times(now);
        AckOutcome { lost, loss: lost > 0 && self.begin_recovery(), ..AckOutcome::default() }
    }

    /// Declares lost what left so long before what has come that it is overdue; says how many segments that
    /// are. It hurries in a repair, and when as many have come beyond a gap as would start one (RFC 8985
    /// §6.2 step 4).
    fn judge_times(&mut self, now: Time) -> u32 {
        let Some(rack) = &mut self.rack else { return 0 };
        let is_gap = self.duplicate_acks.is_some_and(|wanted| self.received.count() >= wanted);
        let hurries = self.phase != Phase::Open || is_gap;
        let before = self.lost.count();
        let due = rack.judge(now, hurries, |sequence| {
            self.lost.insert(sequence, sequence + 1);
        });
        self.judges_at = match due {
            Time::NEVER => Time::NEVER,
            due => timer_ticks::end(now, due.since(now), self.timer_tick),
        };
        self.lost.count() - before
    }

    /// The receiver has everything before `sequence`.
    fn advance(&mut self, sequence: u32) -> AckOutcome {
        if sequence <= self.cumulative {
            return AckOutcome::default();
        }
        let knew_last = self.received.runs().next_back().is_some_and(|run| run.1 == self.total);
        let known = self.received.remove(0, sequence);
        self.lost.remove(0, sequence);
        let received = sequence - self.cumulative - known;
        self.cumulative = sequence;
        self.next = self.next.max(sequence);
        let has_last = sequence == self.total && !knew_last;
        AckOutcome { received, has_last, ..AckOutcome::default() }
    }

    fn on_plain_ack(&mut self, sequence: u32) -> AckOutcome {
        if sequence > self.cumulative {
            return self.on_new_ack(sequence);
        }
        if sequence < self.cumulative || self.next == self.cumulative {
            return AckOutcome::default();
        }
        let Some(wanted) = self.duplicate_acks else { return AckOutcome::default() };
        let is_guarded = self.recovery_ends > 0 && self.cumulative <= self.recovery_ends;
        match self.phase {
            Phase::Recovering => self.duplicates += 1,
            // The first duplicates let new data go (RFC 3042). Unless more than the window of the last
            // repair is acknowledged they may come from what was sent twice, and no more follows from
            // them (RFC 6582 §3.2 step 2).
            Phase::Open if self.duplicates + 1 < wanted || !is_guarded => self.duplicates += 1,
            Phase::Open | Phase::TimedOut => {}
        }
        let is_loss = self.phase == Phase::Open && self.duplicates == wanted && !is_guarded;
        if is_loss {
            self.lost.insert(self.cumulative, self.cumulative + 1);
        }
        AckOutcome { lost: u32::from(is_loss), loss: is_loss, ..AckOutcome::default() }
    }

    /// An ACK for new data, without SACK.
    fn on_new_ack(&mut self, sequence: u32) -> AckOutcome {
        let mut told = self.advance(sequence);
        let is_partial = self.phase == Phase::Recovering && sequence < self.recovery_ends;
        if is_partial && self.recovery == Recovery::NewReno {
            // RFC 6582 §3.2 step 3: the next segment is lost too; deflate by what was acknowledged, less
            // the segment that was repaired.
            self.duplicates = self.duplicates.saturating_sub(told.received - 1);
            self.lost.insert(sequence, sequence + 1);
            told.lost = 1;
            self.owed = true;
            self.parts += 1;
        } else {
            self.duplicates = 0;
            if self.phase == Phase::Recovering {
                self.phase = Phase::Open;
            }
        }
        told
    }

    /// Declares gaps lost that enough received segments lie beyond (RFC 6675 §4, `IsLost`); says how
    /// many segments that are.
    fn judge_gaps(&mut self) -> u32 {
        let Some(wanted) = self.duplicate_acks else { return 0 };
        if self.received.count() < wanted {
            return 0;
        }
        let mut beyond = 0;
        let mut limit = self.cumulative;
        for run in self.received.runs().rev() {
            beyond += run.1 - run.0;
            if beyond >= wanted {
                limit = run.0;
                break;
            }
        }
        let from = self.judged.max(self.cumulative);
        if limit <= from {
            return 0;
        }
        self.judged = limit;
        self.declare_lost(from, limit)
    }

    /// Marks every segment from `from` up to `to` lost that the receiver does not have; says how many were
    /// not.
    fn declare_lost(&mut self, from: u32, to: u32) -> u32 {
        let Self { received, lost, .. } = self;
        let before = lost.count();
        received.holes(from, to, |from, to| {
            lost.insert(from, to);
        });
        lost.count() - before
    }

    /// Nothing has been acknowledged for too long: all that was in flight is lost, but for what RACK finds
    /// too young (RFC 8985 §6.3). Says how many segments were not known to be.
    pub fn on_timeout(&mut self, now: Time) -> u32 {
        self.phase = Phase::TimedOut;
        self.recovery_ends = self.highest;
        self.owed = false;
        self.tries_new = false;
        self.parts = 0;
        self.duplicates = 0;
        self.judges_at = Time::NEVER;
        let before = self.lost.count();
        if self.recovery == Recovery::GoBackN {
            let lost = self.flight_size();
            self.next = self.cumulative;
            return lost;
        }
        if let Self { rack: Some(rack), received, lost, cumulative, .. } = self {
            received.holes(*cumulative, self.next, |from, to| {
                let is_lost = |at: &u32| at == cumulative || rack.is_overdue(*at, now);
                (from..to).filter(is_lost).for_each(|at| {
                    lost.insert(at, at + 1);
                });
            });
            self.owed = true;
        } else {
            self.judged = self.next;
            self.declare_lost(self.cumulative, self.next);
        }
        self.lost.count() - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::ZERO;

    /// A flow of a hundred segments that has sent the first `sent`.
    fn board(recovery: Recovery, duplicate_acks: Option<u32>, sent: u32) -> Scoreboard {
        let reliability =
            Reliability { recovery, duplicate_acks, ..Reliability::selective_repeat() };
        let mut board = Scoreboard::new(100, &reliability);
        send(&mut board, sent);
        board
    }

    /// Sends so many segments; says which.
    fn send(board: &mut Scoreboard, segments: u32) -> Vec<u32> {
        let next = |_| {
            let (sequence, _) = board.candidate().unwrap();
            board.sent(sequence, NOW);
            sequence
        };
        (0..segments).map(next).collect()
    }

    #[test]
    fn segments_beyond_a_gap_are_counted_not_acks() {
        let mut board = board(Recovery::SelectiveRepeat, Some(3), 10);
        // The same two, told four times, are no sign; a third is.
        for _ in 0..4 {
            assert!(!board.on_ack(0, (1, 3), NOW, NOW).loss);
        }
        assert_eq!(board.in_flight(), 8);
        let told = board.on_ack(0, (1, 4), NOW, NOW);
        assert_eq!((told.loss, told.received, told.advanced), (true, 1, 0));
        assert_eq!(board.candidate(), Some((0, true)), "at once");
        assert_eq!(board.in_flight(), 6, "of ten three have come and one is lost");
        assert!(board.sent(0, NOW), "it had been sent before");
        assert_eq!((board.in_flight(), board.flight_size()), (7, 10));
        // A second gap is a loss when as many lie beyond it.
        board.on_ack(0, (7, 9), NOW, NOW);
        assert_eq!(board.candidate(), Some((10, false)));
        board.on_ack(0, (7, 10), NOW, NOW);
        assert_eq!(send(&mut board, 4), [4, 5, 6, 10]);
    }

    #[test]
    fn a_repair_ends_when_all_that_was_sent_before_it_is_acknowledged() {
        for recovery in [Recovery::SelectiveRepeat, Recovery::NewReno] {
            let mut board = board(recovery, Some(3), 10);
            for to in 2..5 {
                board.on_ack(0, (1, to), NOW, NOW);
            }
            assert!(board.is_recovering());
            send(&mut board, 3);
            board.on_ack(9, (0, 0), NOW, NOW);
            assert!(board.is_recovering(), "{recovery:?}");
            board.on_ack(10, (0, 0), NOW, NOW);
            assert!(!board.is_recovering(), "{recovery:?}");
        }
    }

    #[test]
    fn a_time_out_declares_lost_what_has_not_come_and_later_news_take_it_back() {
        let mut board = board(Recovery::SelectiveRepeat, Some(3), 10);
        board.on_ack(2, (5, 7), NOW, NOW);
        assert_eq!(board.on_timeout(NOW), 6, "2 to 4, and 7 to 9");
        assert_eq!(board.in_flight(), 0);
        assert_eq!(send(&mut board, 2), [2, 3]);
        assert_eq!(board.in_flight(), 2);
        assert_eq!(board.clone().on_timeout(NOW), 2, "of the others it was known");
        // 8 and 9 were not lost after all.
        assert!(!board.on_ack(2, (8, 10), NOW, NOW).loss, "the time-out has been answered already");
        assert_eq!(send(&mut board, 3), [4, 7, 10]);
    }

    #[test]
    fn without_sack_duplicates_after_a_time_out_start_no_repair() {
        for recovery in [Recovery::NewReno, Recovery::Reno] {
            let mut board = board(recovery, Some(3), 10);
            board.on_timeout(NOW);
            assert_eq!(send(&mut board, 2), [0, 1], "{recovery:?}");
            // The receiver has 1 to 9: what is sent again comes as a duplicate.
            board.on_ack(10, (0, 0), NOW, NOW);
            send(&mut board, 5);
            (0..5).for_each(|_| assert!(!board.on_ack(9, (0, 0), NOW, NOW).loss, "{recovery:?}"));
            assert_eq!(send(&mut board, 1), [15], "{recovery:?}");
        }
    }

    #[test]
    fn go_back_n_starts_again_from_the_gap_and_reduces_once_a_window() {
        let mut board = board(Recovery::GoBackN, Some(3), 10);
        assert!(board.on_nack(3, NOW).loss);
        assert_eq!(send(&mut board, 3), [3, 4, 5]);
        assert!(!board.on_nack(4, NOW).loss, "within the same window");
        assert_eq!(send(&mut board, 7), (4..11).collect::<Vec<_>>());
        board.on_ack(11, (0, 0), NOW, NOW);
        send(&mut board, 5);
        assert!(board.on_nack(12, NOW).loss, "the next window");
    }

    #[test]
    fn no_number_of_duplicates_is_a_loss_if_that_is_what_was_asked() {
        for recovery in [Recovery::SelectiveRepeat, Recovery::NewReno, Recovery::Reno] {
            let mut board = board(recovery, None, 10);
            (0..8)
                .for_each(|i| assert!(!board.on_ack(0, (1, 2 + i), NOW, NOW).loss, "{recovery:?}"));
            assert_eq!(board.candidate(), Some((10, false)), "{recovery:?}");
        }
    }
}

//! What a sender makes of losses, marks and time-outs: it repairs and slows down, and takes that back if
//! nothing was lost.

use super::{Sender, Stage};
use crate::base::units::{Bytes, Time};
use crate::model::packet::{Kind, Packet};
use crate::transport::recovery::prr::ProportionalRateReduction;
use crate::transport::recovery::scoreboard::AckOutcome;
use crate::transport::{CongestionSignal, Controller, Feedback, Loss, Recovery};

impl Sender {
    /// Whether an ACK tells of a mark. One that counts them, and acknowledges so many packets that other ACKs
    /// must have been lost, may tell of eight that are not seen, and is taken to (RFC 9768 §3.2.2.5).
    pub(super) fn tells_of_mark(&mut self, packet: &Packet, told: AckOutcome) -> bool {
        let counts = self.mechanism.feedback == Feedback::Count;
        if !counts || !matches!(packet.kind, Kind::Ack | Kind::Nack) {
            return packet.is_marked();
        }
        let recovery = self.mechanism.reliability.recovery;
        let has_sack = matches!(recovery, Recovery::SelectiveRepeat | Recovery::Rack);
        let known = std::mem::replace(&mut self.marks, packet.flags.count());
        self.marks != known || has_sack && told.received >= 8
    }

    /// Whether the receiver is told that a mark has been answered (RFC 3168).
    fn answers_echo(&self) -> bool {
        self.mechanism.feedback == Feedback::EchoUntilReduced
    }

    /// Whether to answer a mark: once a window of data, and not while a loss is being repaired, which
    /// has been answered already (RFC 3168 §6.1.2).
    pub(super) fn is_due_for_mark(&self, marked: bool) -> bool {
        marked
            && self.mechanism.feedback.is_answered_as_loss()
            && !self.board.is_recovering()
            && self.board.cumulative() > self.reduced_until
    }

    /// A gap is to be repaired.
    pub(super) fn repair(&mut self, now: Time, flight: u32, controller: &mut dyn Controller) {
        if let Some(undo) = &mut self.undo {
            undo.begin(self.board.cumulative());
            controller.save_state(now);
        }
        self.slow_down(now, flight, CongestionSignal::Gap, controller);
    }

    /// What may be sent shrinks for a loss or mark: at once, or in proportion.
    pub(super) fn slow_down(
        &mut self,
        now: Time,
        flight: u32,
        sign: CongestionSignal,
        controller: &mut dyn Controller,
    ) {
        let before = controller.allowance().window;
        self.reduce(now, flight, sign, controller);
        if self.mechanism.shrinks_in_proportion {
            let segments = |window: Bytes| (window.0 / u64::from(self.full)) as u32;
            let target = controller.allowance().window;
            self.reduction =
                Some(ProportionalRateReduction::new(segments(before), segments(target)));
        }
    }

    /// Lets the window of a repair follow what has come, and that of the round trip after a mark.
    pub(super) fn shrink(&mut self, told: AckOutcome) {
        let is_over = self.board.cumulative() >= self.reduced_until;
        if !self.board.is_recovering() && is_over {
            self.reduction = None;
        } else if let Some(reduction) = &mut self.reduction {
            let is_good = told.advanced > 0 && told.lost == 0;
            reduction.on_ack(told.received, self.board.in_flight(), is_good);
        }
    }

    pub(super) fn reduce(
        &mut self,
        now: Time,
        flight: u32,
        sign: CongestionSignal,
        controller: &mut dyn Controller,
    ) {
        self.mark_reduced();
        controller.on_loss(&Loss { now, flight: self.bytes(flight), lost: Bytes::ZERO, sign });
    }

    /// Marks of what has been sent so far are answered.
    fn mark_reduced(&mut self) {
        self.reduced_until = self.board.highest();
        self.owes_notice = self.answers_echo();
    }

    /// Lets time pass: finds what is overdue, probes, or runs the time-out, if that is due.
    pub fn on_time(&mut self, now: Time, controller: &mut dyn Controller) {
        if !self.has_unanswered() || self.is_over() {
            return;
        }
        let flight = self.board.flight_size();
        let told = self.board.on_time(now);
        self.found_lost += told.lost;
        if told.loss {
            self.repair(now, flight, controller);
            self.shrink(AckOutcome { received: 1, ..told });
        }
        if self.tail.as_mut().is_some_and(|tail| tail.on_time(now)) {
            self.timeout_from = now;
        }
        if now < self.times_out_at() {
            return;
        }
        self.timeouts += 1;
        self.timeout_from = now;
        self.timed = None;
        if self.stage == Stage::Opening {
            if self.timeouts > self.mechanism.reliability.linear_syns {
                self.rtt.back_off();
            }
            self.stage = Stage::Closed;
            return;
        }
        self.rtt.back_off();
        if let Some(undo) = &mut self.undo {
            let (is_repair, has_timed_out) =
                (self.board.is_recovering(), self.board.has_timed_out());
            if undo.on_timeout(self.board.cumulative(), is_repair, has_timed_out) {
                controller.save_state(now);
            }
        }
        let lost = self.board.on_timeout(now);
        self.reduction = None;
        if let Some(tail) = &mut self.tail {
            tail.on_timeout();
        }
        self.mark_reduced();
        let (flight, lost) = (self.bytes(flight), self.bytes(lost));
        controller.on_loss(&Loss { now, flight, lost, sign: CongestionSignal::Timeout });
    }

    /// Takes back what the last loss has cost, if an ACK shows that it was none; says what has been told
    /// then. A gap was being repaired or a time-out before it came, or neither.
    pub(super) fn reconsider(
        &mut self,
        now: Time,
        packet: &Packet,
        block: (u32, u32),
        (told, marked): (AckOutcome, bool),
        (was_repairing, had_timed_out): (bool, bool),
        controller: &mut dyn Controller,
    ) -> AckOutcome {
        let echo = self.echo_of(packet);
        let answers_mark = marked && self.mechanism.feedback.is_answered_as_loss();
        let Some(undo) = &mut self.undo else { return told };
        let has_advanced = told.advanced > 0;
        if has_advanced {
            undo.on_advance();
        }
        if told.duplicate {
            undo.on_duplicate(block.1);
        }
        if answers_mark {
            // What a mark would have cost stays lost (Linux).
            undo.forget();
        }
        let is_spurious = undo.were_copies_needless() && (has_advanced || !had_timed_out)
            || has_advanced && (was_repairing || had_timed_out) && undo.is_before_copies(echo)
            || had_timed_out && undo.doubts() && told.original;
        if !is_spurious {
            if had_timed_out && undo.doubts() {
                self.doubt_timeout(has_advanced, block.0 < block.1);
            }
            return told;
        }
        undo.forget();
        self.reduction = None;
        self.owes_notice = false;
        self.reduced_until = self.board.cumulative();
        let AckOutcome { lost, loss, .. } = self.board.undo(now);
        controller.on_spurious_loss(now);
        AckOutcome { lost, loss, ..told }
    }

    /// The first ACK after a time-out in doubt lets new data go before more is sent again; if the next tells
    /// of a gap, the time-out was right (RFC 5682 §3.1).
    fn doubt_timeout(&mut self, has_advanced: bool, has_block: bool) {
        if self.board.has_sent_new() {
            self.board.try_new(false);
            if !has_advanced || has_block {
                self.trust_timeout();
            }
        } else if has_advanced && self.board.has_timed_out() {
            self.board.try_new(true);
        }
    }

    /// The present time-out was right: what it has taken for lost is sent again.
    pub(super) fn trust_timeout(&mut self) {
        self.board.try_new(false);
        if let Some(undo) = &mut self.undo {
            undo.trust();
        }
    }
}

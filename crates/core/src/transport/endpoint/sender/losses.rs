//! Response of a sender to losses, ECN marks and timeouts: recovery, window reduction, and its undo if
//! the loss was spurious.

use super::{Sender, SenderState};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::packet::{AckOptions, Kind, Packet};
use crate::transport::recovery::prr::ProportionalRateReduction;
use crate::transport::recovery::scoreboard::AckOutcome;
use crate::transport::{CongestionSignal, Controller, Loss, MarkFeedback};

impl Sender {
    /// Returns true if an ACK reports a new ECN mark. With mark counts but without AccECN's option, an
    /// ACK for eight packets or more may hide a wrap of the counter after ACK loss, and is assumed to
    /// (RFC 9768 §3.2.2.5).
    pub(super) fn has_new_mark(
        &mut self,
        packet: &Packet,
        options: Option<&AckOptions>,
        outcome: AckOutcome,
    ) -> bool {
        let has_counts = self.mechanism.acks.feedback == MarkFeedback::AccurateEcn;
        if !has_counts || !matches!(packet.kind, Kind::Ack | Kind::Nack) {
            return packet.is_marked();
        }
        if self.mechanism.has_accurate_ecn_option() {
            // An ACK that another has overtaken has a lower count.
            let marks = options.map_or(0, |options| options.marks).max(self.mark_count);
            return std::mem::replace(&mut self.mark_count, marks) < marks;
        }
        let recovery = self.mechanism.reliability.recovery;
        let previous = std::mem::replace(&mut self.mark_count, packet.flags.count().into());
        self.mark_count != previous || recovery.has_sack() && outcome.delivered >= 8
    }

    /// Returns true if the sender confirms window reductions with CWR (RFC 3168).
    fn sends_cwr(&self) -> bool {
        self.mechanism.acks.feedback == MarkFeedback::EchoUntilCwr
    }

    /// Returns true if the window is to be reduced for a mark: once per window of data, and not during
    /// recovery, which has reduced the window already (RFC 3168 §6.1.2).
    pub(super) fn responds_to_mark(&self, marked: bool) -> bool {
        marked
            && self.mechanism.acks.feedback.is_handled_as_loss()
            && !self.scoreboard.is_recovering()
            && self.scoreboard.cumulative() > self.reduced_until
    }

    /// Returns true if the window was reduced for a mark after the first missing segment was sent. A loss of
    /// that segment does not reduce it again (RFC 3168 §6.1.2).
    fn has_reduced_for_mark(&self) -> bool {
        self.scoreboard.cumulative() < self.marked_until
    }

    /// Handles the start of a fast recovery.
    pub(super) fn enter_recovery(
        &mut self,
        now: Time,
        flight: u32,
        controller: &mut dyn Controller,
    ) {
        if let Some(spurious_loss) = &mut self.spurious_loss {
            spurious_loss.begin(self.scoreboard.cumulative());
            controller.save_state(now);
        }
        if self.has_reduced_for_mark() {
            self.reduced_until = self.scoreboard.highest();
        } else {
            self.reduce_sending(now, flight, CongestionSignal::DetectedLoss, controller);
        }
    }

    /// Reduces the window for a loss or mark, at once or with PRR.
    pub(super) fn reduce_sending(
        &mut self,
        now: Time,
        flight: u32,
        signal: CongestionSignal,
        controller: &mut dyn Controller,
    ) {
        let full = Bytes(u64::from(self.full_payload));
        let previous = controller.allowance().packets(full);
        self.reduce_window(now, flight, signal, controller);
        if self.mechanism.uses_prr {
            let target = controller.allowance().packets(full);
            self.rate_reduction = Some(ProportionalRateReduction::new(previous, target));
        }
    }

    /// Updates PRR for an ACK, or ends it after the recovery or the RTT after a mark.
    pub(super) fn update_rate_reduction(&mut self, outcome: AckOutcome) {
        let is_complete = self.scoreboard.cumulative() >= self.reduced_until;
        if !self.scoreboard.is_recovering() && is_complete {
            self.rate_reduction = None;
        } else if let Some(reduction) = &mut self.rate_reduction {
            let is_safe = outcome.advanced > 0 && outcome.lost == 0;
            reduction.on_ack(outcome.delivered, self.scoreboard.in_flight(), is_safe);
        }
    }

    /// Reduces the window at once: notifies the controller.
    pub(super) fn reduce_window(
        &mut self,
        now: Time,
        flight: u32,
        signal: CongestionSignal,
        controller: &mut dyn Controller,
    ) {
        self.record_reduction();
        if signal == CongestionSignal::EcnMark {
            self.marked_until = self.reduced_until;
        }
        controller.on_loss(&Loss {
            now,
            flight: self.bytes(flight),
            lost: Bytes::ZERO,
            signal,
            cumulative: self.scoreboard.cumulative(),
            is_repeated: false,
        });
    }

    /// Records that the window was reduced for the data sent so far.
    fn record_reduction(&mut self) {
        self.reduced_until = self.scoreboard.highest();
        self.owes_cwr = self.sends_cwr();
    }

    /// Notes losses that the answer to a tail loss probe has revealed: there was no gap when its timer
    /// expired.
    #[inline]
    pub(super) fn note_probed_losses(&mut self, outcome: AckOutcome) {
        if outcome.lost > 0 && self.tail_probe.as_ref().is_some_and(|probe| probe.is_in_flight()) {
            self.scoreboard.note_all_timed_out();
        }
    }

    /// Detects losses by SLEEK, after the controller has handled an ACK.
    #[inline(never)]
    pub(super) fn detect_losses_by_count(
        &mut self,
        now: Time,
        rtt: Duration,
        answers_probe: bool,
        controller: &dyn Controller,
    ) {
        let (Some(sleek), Some(bounds)) = (&mut self.sleek, controller.loss_bounds()) else {
            return;
        };
        let has_probed_loss = answers_probe && rtt < bounds.base_rtt + bounds.delay;
        let board = &mut self.scoreboard;
        board.detect_losses_by_count(&bounds, has_probed_loss);
        let is_unsent = board.highest() < board.total();
        sleek.on_ack(now, &bounds, is_unsent, board.has_unacknowledged());
    }

    /// Handles the timers that have expired: reordering timer, probe timer and RTO.
    pub fn on_timer(&mut self, now: Time, controller: &mut dyn Controller) {
        if self.is_finished() {
            if self.fin_expiry() <= now {
                self.on_fin_timeout();
            }
            return;
        }
        if !self.has_unacknowledged() {
            return;
        }
        let flight = self.scoreboard.flight_size();
        let outcome = self.scoreboard.on_timer(now);
        self.unreported_losses += outcome.lost;
        self.note_probed_losses(outcome);
        if outcome.starts_recovery {
            self.enter_recovery(now, flight, controller);
            self.update_rate_reduction(AckOutcome { delivered: 1, ..outcome });
        }
        // No probe while the last packets have not left the host, as in Linux (`tcp_send_loss_probe`).
        let waits_for_nic = self.pacer.waits_for_nic(now);
        if self.tail_probe.as_ref().is_some_and(|probe| waits_for_nic && probe.next_timer() <= now)
        {
            self.arm_probe_timer(now);
        } else if self.tail_probe.as_mut().is_some_and(|probe| probe.on_timer(now)) {
            self.rto_start = now;
        }
        if now < self.rto_expiry() {
            return;
        }
        if self.state == SenderState::Established && self.has_segment_timers() {
            return self.on_segment_timeout(now, flight, controller);
        }
        self.timeouts += 1;
        self.rto_start = now;
        self.timed_segment = None;
        if self.state == SenderState::SynSent {
            if self.timeouts > self.mechanism.reliability.linear_syns {
                self.rtt.back_off();
            }
            if let Some(spurious_loss) = &mut self.spurious_loss {
                spurious_loss.on_syn_timeout(now);
            }
            self.state = SenderState::Closed;
            return;
        }
        if self.requests_lost_data() {
            return self.on_credit_timeout();
        }

        self.rtt.back_off();
        let is_repeated = self.mechanism.reliability.single_reduction
            && (self.scoreboard.is_recovering() || self.rate_reduction.is_some());
        if let Some(spurious_loss) = &mut self.spurious_loss {
            let (is_recovering, has_timed_out) =
                (self.scoreboard.is_recovering(), self.scoreboard.has_timed_out());
            if spurious_loss.on_timeout(self.scoreboard.cumulative(), is_recovering, has_timed_out)
            {
                controller.save_state(now);
            }
        }
        let lost = self.scoreboard.on_timeout(now);
        self.rate_reduction = None;
        if let Some(probe) = &mut self.tail_probe {
            probe.on_timeout();
        }
        self.record_reduction();
        let (flight, lost) = (self.bytes(flight), self.bytes(lost));
        controller.on_loss(&Loss {
            now,
            flight,
            lost,
            signal: CongestionSignal::Timeout,
            cumulative: self.scoreboard.cumulative(),
            is_repeated,
        });
    }

    /// Undoes the last window reduction if an ACK shows that the loss was spurious. Returns the
    /// outcome of the ACK after the undo. The booleans are the recovery state before the ACK.
    pub(super) fn detect_spurious_loss(
        &mut self,
        now: Time,
        packet: &Packet,
        block: (u32, u32),
        (outcome, marked): (AckOutcome, bool),
        (was_recovering, had_timed_out): (bool, bool),
        controller: &mut dyn Controller,
    ) -> AckOutcome {
        let echo = self.echoed_timestamp(packet);
        let reduces_for_mark = marked && self.mechanism.acks.feedback.is_handled_as_loss();
        let Some(spurious_loss) = &mut self.spurious_loss else { return outcome };
        let has_advanced = outcome.advanced > 0;
        if has_advanced {
            spurious_loss.on_advance();
        }
        if outcome.has_duplicate_sack {
            spurious_loss.on_duplicate_sack(block.1);
        }
        if reduces_for_mark {
            // Linux: no undo after an ECN mark.
            spurious_loss.clear();
        }
        let is_spurious = spurious_loss.were_retransmits_spurious()
            && (has_advanced || !had_timed_out)
            || has_advanced
                && (was_recovering || had_timed_out)
                && spurious_loss.predates_retransmits(echo)
            || had_timed_out && spurious_loss.is_testing_timeout() && outcome.has_original;
        if !is_spurious {
            if had_timed_out && spurious_loss.is_testing_timeout() {
                self.test_timeout(has_advanced, outcome.has_new_block);
            }
            return outcome;
        }
        spurious_loss.clear();
        self.rate_reduction = None;
        self.owes_cwr = false;
        self.reduced_until = self.scoreboard.cumulative();
        let AckOutcome { lost, starts_recovery, .. } = self.scoreboard.undo(now);
        controller.on_spurious_loss(now);
        AckOutcome { lost, starts_recovery, ..outcome }
    }

    /// Continues F-RTO: the first ACK after the timeout permits new data before further
    /// retransmissions. If the next ACK reports a gap, the timeout was not spurious (RFC 5682 §3.1).
    fn test_timeout(&mut self, has_advanced: bool, has_block: bool) {
        if self.scoreboard.has_sent_new() {
            self.scoreboard.set_prefers_new(false);
            if !has_advanced || has_block {
                self.confirm_timeout();
            }
        } else if has_advanced && self.scoreboard.has_timed_out() {
            self.scoreboard.set_prefers_new(true);
        }
    }

    /// Ends F-RTO: the timeout was not spurious, and its losses are retransmitted.
    pub(super) fn confirm_timeout(&mut self) {
        self.scoreboard.set_prefers_new(false);
        if let Some(spurious_loss) = &mut self.spurious_loss {
            spurious_loss.confirm_timeout();
        }
    }
}

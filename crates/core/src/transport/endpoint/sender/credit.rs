//! Credits at a sender: requests, and segments that the receiver lacks.

use super::{Fin, NextPacket, Sender};
use crate::base::units::{Bytes, Time};
use crate::transport::{CongestionSignal, Controller, CreditUse, Loss};

/// State of the requests for credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CreditState {
    /// The sender needs no credit.
    Unused,
    /// A request is to be sent.
    Due,
    /// The receiver knows the flow, or will learn of it from a packet that was sent.
    Requested,
}

impl CreditState {
    /// Returns the state at the start of a flow.
    pub(super) fn new(credit: CreditUse) -> Self {
        match credit {
            CreditUse::None | CreditUse::WithAcks => Self::Unused,
            CreditUse::Announced => Self::Due,
            CreditUse::Unannounced | CreditUse::PerPacket => Self::Requested,
        }
    }
}

impl Sender {
    /// Returns true if the sender needs credits of the receiving host.
    pub fn uses_credit(&self) -> bool {
        self.mechanism.credit != CreditUse::None
    }

    /// Returns true if the flow shares its host's port in turn.
    pub fn takes_turns(&self) -> bool {
        self.mechanism.turns.is_some()
    }

    /// Returns true if credits name the segments that the receiver lacks, so that timeouts lead to requests.
    pub(super) fn requests_lost_data(&self) -> bool {
        !matches!(self.mechanism.credit, CreditUse::None | CreditUse::WithAcks)
    }

    /// Returns the payload that is to be sent, for the first time or again; a shorter last segment counts as
    /// unsent.
    pub fn unsent(&self) -> Bytes {
        let shorter = u64::from(self.full_payload - self.last_payload);
        Bytes(self.bytes(self.scoreboard.unsent()).0.saturating_sub(shorter))
    }

    /// Lets the sender send a request, in answer to a credit.
    pub fn owe_request(&mut self) {
        self.credit = CreditState::Due;
    }

    /// Returns a request for credit, and restarts the timer for the next one.
    pub(super) fn request_credit(&mut self, now: Time) -> NextPacket {
        self.credit = CreditState::Requested;
        self.rto_start = now;
        if let Some(sleek) = &mut self.sleek {
            sleek.on_sent(now);
        }
        NextPacket::Request
    }

    /// Handles a credit: the receiver is active, and the segment that it lacks is lost if it was sent.
    /// Returns true if it was not known to be lost. `missed_request` is true if the receiver missed the first
    /// request.
    pub fn on_credit(&mut self, now: Time, segment: u32, missed_request: bool) -> bool {
        if self.is_finished() {
            return false;
        }
        // A flow that was stopped and has nothing to send awaits ACKs. Credits go on, as the receiver does
        // not know its end.
        if !self.was_stopped || self.scoreboard.unsent() > 0 {
            self.rto_start = now;
            if self.rtt.smoothed().is_none() {
                // No sample ends the back-off of a sender without ACKs: timeouts would add up over its life.
                self.rtt.end_back_off();
            }
        }
        if missed_request && self.scoreboard.highest() == 0 {
            self.credit_losses += 1;
        }
        let is_gap = self.mechanism.names_gaps && segment >= self.requested_until;
        let is_lost = self.scoreboard.mark_missing(segment);
        if is_lost && !is_gap {
            self.scoreboard.note_timed_out(segment);
            self.credit_losses += 1;
        }
        is_lost
    }

    /// Number of losses that timers have revealed. Of a sender by credit not every timeout is one: it may
    /// wait for its turn.
    pub fn timer_losses(&self) -> u32 {
        if self.requests_lost_data() { self.credit_losses } else { self.timeouts }
    }

    /// Handles the return of a segment's header: the segment is lost.
    pub fn on_returned(&mut self, segment: u32) {
        self.scoreboard.on_returned(segment);
    }

    /// Handles the timeout of a segment, which is to be sent again, or the time without one in flight. If
    /// nothing may be sent, the sender requests an ACK and credit, at most once per RTT: credits, or ACKs
    /// that open the window, were lost. A loss probe is such a request, too.
    pub(super) fn on_segment_timeout(
        &mut self,
        now: Time,
        flight: u32,
        controller: &mut dyn Controller,
    ) {
        if self.sleek.as_ref().is_some_and(|sleek| sleek.next_timer() <= now) {
            self.credit = CreditState::Due;
        }
        if now < self.segment_rto_expiry() {
            return;
        }
        if self.sleek.is_some()
            && self.scoreboard.is_recovering()
            && self.scoreboard.oldest_sent_at().is_some()
        {
            return self.scoreboard.restart_segment_timer(now);
        }
        let since = now - self.rto_start;
        if since >= self.timeout() {
            // The segments of a window time out one after the other, but back off together.
            self.rtt.back_off();
            self.rto_start = now;
        }
        if self.scoreboard.oldest_sent_at().is_some() {
            self.timeouts += 1;
            self.scoreboard.on_segment_timeout();
            controller.on_loss(&Loss {
                now,
                flight: self.bytes(flight),
                lost: self.bytes(1),
                signal: CongestionSignal::Timeout,
                cumulative: self.scoreboard.cumulative(),
                is_repeated: false,
            });
        }
        let is_blocked = self.candidate(controller.allowance()).is_none();
        if is_blocked && since >= self.rtt.smoothed().unwrap_or_default() {
            self.credit = CreditState::Due;
        }
    }

    /// Handles a timeout without news of the receiver: credits or the request were lost, or the ACK of all
    /// data. The answer to the next request restores them.
    pub(super) fn on_credit_timeout(&mut self) {
        self.rtt.back_off();
        self.credit = CreditState::Due;
        self.requested_until = self.scoreboard.highest();
    }

    /// Lets the sender end the credit of its flow, if it has any: the receiver, which does not know that no
    /// more data follows, would send credit for ever.
    pub(super) fn end_credit(&mut self) {
        if self.uses_credit() {
            self.fin = Fin::Due;
        }
    }

    /// Returns the FIN, if it is due. Receivers confirm the end of credit; a FIN to routers has no answer.
    pub(super) fn next_fin(&mut self, now: Time) -> Option<NextPacket> {
        let is_due = self.fin == Fin::Due;
        if is_due {
            self.fin = if self.uses_credit() { Fin::Unconfirmed } else { Fin::Settled };
            self.rto_start = now;
        }
        is_due.then_some(NextPacket::Fin)
    }

    /// Handles the confirmation of a FIN.
    pub fn on_fin_confirmed(&mut self) {
        if self.fin == Fin::Unconfirmed {
            self.fin = Fin::Settled;
        }
    }

    /// Returns when an unconfirmed FIN is to be sent again.
    pub(super) fn fin_expiry(&self) -> Time {
        if self.fin == Fin::Unconfirmed { self.rto_start + self.timeout() } else { Time::NEVER }
    }

    /// Handles the timeout of an unconfirmed FIN: it was lost, or its confirmation.
    pub(super) fn on_fin_timeout(&mut self) {
        self.timeouts += 1;
        self.rtt.back_off();
        self.fin = Fin::Due;
    }

    /// Returns true if a request repeats the first one, which no credit has answered.
    pub fn repeats_first_request(&self) -> bool {
        self.timeouts > 0 && self.scoreboard.highest() == 0
    }
}

//! The sending end of a flow: handshake, windows, pacing and time-outs, written once for all transports.
//!
//! It does no input or output: it is told of ACKs and of time passing, and asked for the next
//! segment.

mod losses;

use std::sync::Arc;

use super::pacing::{Pace, Pacing};
use super::rtt::Rtt;
use super::timer_ticks;
use crate::base::units::{Bytes, Duration, Time};
use crate::model::packet::{Format, Header, Kind, Packet};
use crate::transport::recovery::prr::ProportionalRateReduction;
use crate::transport::recovery::scoreboard::{AckOutcome, Scoreboard};
use crate::transport::recovery::spurious::SpuriousLoss;
use crate::transport::recovery::tail_loss_probe::TailLossProbe;
use crate::transport::{
    Ack, Allowance, CongestionSignal, Controller, Mechanism, Opened, Timer, TrainPacket,
};

/// What a sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The first half of a handshake.
    Syn,
    /// Data.
    Segment(Segment),
    /// A question to routers, without payload.
    Probe,
    /// A packet of this size without payload, for the receiver to answer.
    Padding(Bytes),
    /// The news to routers that the flow is over.
    Fin,
}

/// A segment to put into a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its number.
    pub sequence: u32,
    /// Its payload in bytes.
    pub payload: u32,
    /// Whether the receiver is to acknowledge it at once.
    pub wants_ack: bool,
    /// Whether it has been sent before.
    pub is_retransmit: bool,
    /// Whether it tells the receiver that a mark has been answered (CWR).
    pub has_reduced: bool,
}

/// Number of segments of a flow without end.
const ENDLESS: u32 = u32::MAX;

/// Where a sender is in its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The SYN is to be sent.
    Closed,
    /// The SYN has been sent.
    Opening,
    /// Data may be sent.
    Open,
    /// The flow is given up, and nothing is sent any more.
    GivenUp,
}

/// State of a sender.
#[derive(Debug)]
pub struct Sender {
    /// Payload of all segments but the last, and of the last.
    full: u32,
    last: u32,
    header: u32,
    stage: Stage,
    /// Routers are still to be told when the flow is over.
    owes_goodbye: bool,
    board: Scoreboard,
    mechanism: Arc<Mechanism>,

    rtt: Rtt,
    /// The segment that is being timed, if any is, and when it was sent.
    timed: Option<(u32, Time)>,
    /// When the time-out last started to run.
    timeout_from: Time,
    /// Probes for a lost tail, if they are sent. Apart, since most flows have none.
    tail: Option<Box<TailLossProbe>>,
    /// How the window shrinks while a gap is repaired, if it does so in proportion.
    reduction: Option<ProportionalRateReduction>,
    /// What may turn out to have been no loss, if that is looked for. Apart, since most flows have none.
    undo: Option<Box<SpuriousLoss>>,
    /// Segments that were found lost by the time, of which the controller is still to be told.
    found_lost: u32,

    /// Marks in ACKs up to this one have been answered.
    reduced_until: u32,
    /// The receiver is still to be told so.
    owes_notice: bool,
    /// How many marks ACKs have told of, modulo 8, if they count them.
    marks: u8,

    /// What has been handed to the host.
    pub pacing: Pacing,
    /// When routers were last asked.
    probed: Time,

    /// Data packets sent again.
    pub retransmits: u32,
    /// Time-outs.
    pub timeouts: u32,
}

impl Sender {
    /// A sender of `size` bytes of payload, or of payload without end.
    pub fn new(
        size: Option<Bytes>,
        mechanism: &Arc<Mechanism>,
        format: &Format,
        now: Time,
    ) -> Self {
        let reliability = &mechanism.reliability;
        let full = format.payload.0 as u32;
        let (total, last) = match size {
            None => (ENDLESS, full),
            Some(size) => {
                let total = format.packets(size);
                (total as u32, (size.0 - (total - 1) * format.payload.0) as u32)
            }
        };
        Self {
            full,
            last,
            header: format.header.0 as u32,
            stage: if reliability.handshake { Stage::Closed } else { Stage::Open },
            owes_goodbye: mechanism.sends_fin,
            board: Scoreboard::new(total, reliability),
            mechanism: Arc::clone(mechanism),
            rtt: Rtt::default(),
            timed: None,
            timeout_from: now,
            tail: reliability
                .tail_probe
                .map(|alone| Box::new(TailLossProbe::new(alone, reliability.timer_tick))),
            reduction: None,
            undo: reliability.undo.then(|| Box::new(SpuriousLoss::new(reliability.frto))),
            found_lost: 0,
            reduced_until: 0,
            marks: 0,
            owes_notice: false,
            pacing: Pacing::new(now),
            probed: now,
            retransmits: 0,
            timeouts: 0,
        }
    }

    /// Whether nothing is left to do: the receiver is known to have everything, or the flow is given up.
    pub fn is_done(&self) -> bool {
        self.is_over() && !self.owes_goodbye
    }

    fn is_over(&self) -> bool {
        self.board.is_done() || self.has_given_up()
    }

    /// Sends no data from now on, whatever the receiver lacks.
    pub fn give_up(&mut self) {
        self.stage = Stage::GivenUp;
    }

    /// Whether the flow was given up.
    pub fn has_given_up(&self) -> bool {
        self.stage == Stage::GivenUp
    }

    /// Payload that the receiver is not known to have; without end, if the flow is.
    pub fn remaining(&self) -> Bytes {
        if self.board.total() == ENDLESS {
            return Bytes(u64::MAX);
        }
        // The last segment is acknowledged last, but for losses: then this is off by less than a packet.
        let segments = self.board.remaining();
        Bytes(
            self.bytes(segments).0
                - u64::from(if segments > 0 { self.full - self.last } else { 0 }),
        )
    }

    /// All segments before this one have been acknowledged.
    pub fn cumulative(&self) -> u32 {
        self.board.cumulative()
    }

    /// Sends nothing new from now on: the end of a flow without end.
    pub fn stop(&mut self) {
        self.board.stop();
    }

    /// Whether data may be sent.
    pub fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Whether what a time-out has declared lost is being sent again.
    pub fn has_timed_out(&self) -> bool {
        self.board.has_timed_out()
    }

    fn bytes(&self, segments: u32) -> Bytes {
        Bytes(u64::from(segments) * u64::from(self.full))
    }

    /// What to send now, if the allowance lets anything go.
    #[inline]
    pub fn next(&mut self, now: Time, allowance: Allowance) -> Option<Output> {
        if self.is_over() {
            return std::mem::take(&mut self.owes_goodbye).then_some(Output::Fin);
        }
        match self.stage {
            Stage::Open => match self.next_segment(now, allowance) {
                None if self.next_probe(allowance) <= now => {
                    self.probed = now;
                    Some(Output::Probe)
                }
                segment => segment.map(Output::Segment),
            },
            Stage::Opening | Stage::GivenUp => None,
            Stage::Closed => {
                self.stage = Stage::Opening;
                self.timeout_from = now;
                Some(Output::Syn)
            }
        }
    }

    #[inline]
    fn next_segment(&mut self, now: Time, allowance: Allowance) -> Option<Segment> {
        if allowance.rate.is_some() && now < self.paced_until(allowance) {
            return None;
        }
        let segment = self.take_segment(now, allowance)?;
        if allowance.rate.is_some() {
            let bytes = segment.payload + self.header;
            self.pacing.on_sent(now, bytes, &self.mechanism);
            if self.mechanism.timer == Timer::FromLast {
                self.timeout_from = now;
            }
        }
        Some(segment)
    }

    /// Whether there is data to send.
    pub fn has_data(&self, allowance: Allowance) -> bool {
        self.stage == Stage::Open && self.candidate(allowance).is_some()
    }

    /// What a controller sends beside what the rate lets go: a segment leaves the pace of the others as it
    /// is.
    pub fn beside(&mut self, now: Time, what: TrainPacket, allowance: Allowance) -> Option<Output> {
        match what {
            TrainPacket::Segment => self.take_segment(now, allowance).map(Output::Segment),
            TrainPacket::Padding(bytes) => Some(Output::Padding(bytes)),
        }
    }

    /// The segment that is next in line, to be sent now.
    fn take_segment(&mut self, now: Time, allowance: Allowance) -> Option<Segment> {
        let sequence = self.candidate(allowance)?;
        let is_first = self.board.in_flight() == 0 && !self.has_unanswered();
        let is_retransmit = self.board.sent(sequence, now);
        let is_probe = self.wants_probe();
        // RFC 6298 §5.1; and what the time-out waits for, the first segment that is missing, has a whole one
        // from when it was last sent. Were that so of every repair, a flow that has many to send would never
        // notice that the first was lost again.
        if is_first || is_retransmit && sequence == self.board.cumulative() {
            self.start_timeout(now);
        }
        self.retransmits += u32::from(is_retransmit);
        self.time(sequence, is_retransmit, now);
        if let Some(reduction) = &mut self.reduction {
            reduction.on_sent();
        }
        if let Some(undo) = self.undo.as_mut().filter(|_| is_retransmit && !is_probe) {
            undo.on_copy(sequence, now);
        }
        if let Some(tail) = self.tail.as_mut().filter(|_| is_probe) {
            tail.on_sent(self.board.highest(), is_retransmit);
        } else if !is_retransmit {
            self.watch_tail(now);
        }
        let is_last = sequence + 1 == self.board.total();
        let payload = if is_last { self.last } else { self.full };
        let ends_group = (sequence + 1).is_multiple_of(self.mechanism.ack_every);
        let wants_ack = ends_group || is_retransmit || is_last;
        // RFC 3168 §6.1.2 asks for the first new packet. Deviation: after a time-out the first packet will
        // do. New data is then far off, and the echoes of an answered mark would keep the window from
        // growing until it comes.
        let has_reduced = self.owes_notice && (!is_retransmit || self.board.has_timed_out());
        self.owes_notice &= !has_reduced;
        Some(Segment { sequence, payload, wants_ack, is_retransmit, has_reduced })
    }

    /// The segment that is next in line, if the window has room. One packet may always be in flight. A probe
    /// takes new data, or else the last of what was sent (RFC 8985 §7.3).
    fn candidate(&self, allowance: Allowance) -> Option<u32> {
        let (cumulative, most) =
            (self.board.cumulative(), self.mechanism.reliability.receive_window);
        let is_taken = |sequence: u32| most.is_none_or(|most| sequence - cumulative < most);
        if self.wants_probe() {
            let is_new = |(sequence, _): &(u32, bool)| is_taken(*sequence);
            let new = self.board.candidate().filter(is_new);
            return Some(new.map_or(self.board.highest() - 1, |(sequence, _)| sequence));
        }
        let (sequence, is_owed) = self.board.candidate()?;
        let in_flight = self.board.in_flight();
        let window = self.reduction.map_or(allowance.window, |now| self.bytes(now.window()));
        let has_room = in_flight == 0 || self.bytes(in_flight + 1) <= window;
        (is_owed || has_room && is_taken(sequence)).then_some(sequence)
    }

    /// Lets the time-out run from now on; but it goes on if one segment after another is repaired without
    /// SACK and this is not the first (RFC 6582 §3.2): who has lost many would repair one a round trip for
    /// ever.
    fn start_timeout(&mut self, now: Time) {
        if !self.board.repairs_further() {
            self.timeout_from = now;
        }
    }

    /// Whether a probe for a lost tail is to leave, whatever the window.
    pub fn wants_probe(&self) -> bool {
        self.tail.as_ref().is_some_and(|tail| tail.is_wanted())
    }

    /// Waits from now on before it probes; or not at all, if there is nothing to probe for, or gaps tell of
    /// losses (RFC 8985 §7.2).
    fn watch_tail(&mut self, now: Time) {
        let Some(mut tail) = self.tail.take() else { return };
        match self.rtt.smoothed() {
            Some(smoothed) if self.board.is_in_order() && self.board.has_unanswered() => {
                tail.wait(now, smoothed, self.board.flight_size(), self.times_out_at());
            }
            _ => tail.rest(),
        }
        self.tail = Some(tail);
    }

    /// When the next packet may leave.
    fn paced_until(&self, allowance: Allowance) -> Time {
        self.pacing.until(self.pace_of_next(allowance))
    }

    /// What of its pace holds back the next packet.
    pub fn pace_of_next(&self, allowance: Allowance) -> Pace {
        match allowance.rate {
            Some(rate) if self.board.highest() >= self.mechanism.unpaced => {
                self.pacing.of_next(rate, &self.mechanism)
            }
            _ => Pace::default(),
        }
    }

    fn has_unanswered(&self) -> bool {
        self.board.has_unanswered() || self.stage == Stage::Opening
    }

    /// When something happens by itself: the pacing clock, a probe or the time-out.
    #[inline]
    pub fn deadline(&self, allowance: Allowance) -> Time {
        if self.is_over() {
            return Time::NEVER;
        }
        let timeout = if self.has_unanswered() { self.times_out_at() } else { Time::NEVER };
        let is_open = self.stage == Stage::Open;
        let timeout = if is_open { timeout.min(self.next_probe(allowance)) } else { timeout };
        let timeout = timeout.min(self.board.judges_at());
        let timeout = self.tail.as_ref().map_or(timeout, |tail| timeout.min(tail.due()));
        if is_open && allowance.rate.is_some() && self.candidate(allowance).is_some() {
            timeout.min(self.paced_until(allowance))
        } else {
            timeout
        }
    }

    /// When to ask routers next: while there is something to send and the allowance says how often.
    fn next_probe(&self, allowance: Allowance) -> Time {
        match allowance.probe {
            Some(interval) if self.board.candidate().is_some() => {
                self.probed.max(self.pacing.from()) + interval
            }
            _ => Time::NEVER,
        }
    }

    /// Times one new segment after another, if ACKs echo no time stamps (RFC 6298 §3).
    fn time(&mut self, sequence: u32, is_retransmit: bool, now: Time) {
        if is_retransmit {
            // Karn: an ACK could answer either copy.
            self.timed = self.timed.filter(|(timed, _)| *timed < sequence);
        } else if !self.has_timestamps() && self.timed.is_none() {
            self.timed = Some((sequence, now));
        }
    }

    /// Whether ACKs echo time stamps; otherwise one segment at a time is timed (Karn).
    fn has_timestamps(&self) -> bool {
        self.mechanism.reliability.timestamps
    }

    fn time_round_trip(&mut self, sent: Time, now: Time) {
        self.rtt.sample(sent, now, self.mechanism.reliability.clock_granularity);
    }

    /// Takes the sample that an ACK gives, if it gives one.
    fn sample(&mut self, now: Time, packet: &Packet) {
        if self.has_timestamps() {
            self.time_round_trip(packet.sent_at, now);
        } else if let Some((sequence, sent)) = self.timed
            && packet.sequence > sequence
        {
            self.timed = None;
            self.time_round_trip(sent, now);
        }
    }

    /// The handshake is complete; to the controller its last attempt took `rtt`.
    pub fn on_syn_ack(
        &mut self,
        now: Time,
        packet: &Packet,
        rtt: Duration,
        controller: &mut dyn Controller,
    ) {
        if self.stage != Stage::Opening {
            return;
        }
        self.stage = Stage::Open;
        let syn_was_lost = self.timeouts > self.mechanism.reliability.forgiven_syns;
        if self.has_timestamps() || self.timeouts == 0 {
            self.time_round_trip(packet.sent_at, now);
        }
        self.probed = now;
        let feedback = packet.header().feedback();
        controller.on_open(&Opened { now, rtt, feedback, syn_was_lost });
    }

    /// Takes an ACK or NACK in and tells the controller, to whom its round trip took `rtt`. Says whether it
    /// tells of a mark.
    #[inline]
    pub fn on_ack(
        &mut self,
        now: Time,
        packet: &Packet,
        rtt: Duration,
        controller: &mut dyn Controller,
    ) -> bool {
        let header = packet.header();
        let block = match header {
            Header::Ack { block, .. } => block,
            Header::Rcp { .. }
            | Header::Xcp { .. }
            | Header::Priority(_)
            | Header::Pdq { .. }
            | Header::D3 { .. }
            | Header::FairShare { .. }
            | Header::QuickStart { .. } => (0, 0),
        };
        let flight = self.board.flight_size();
        let (was_repairing, had_timed_out) =
            (self.board.is_recovering(), self.board.has_timed_out());
        let mut told = if packet.kind == Kind::Nack {
            self.board.on_nack(packet.sequence, now)
        } else if packet.kind == Kind::ProbeAck {
            // It acknowledges nothing, and so is no duplicate ACK.
            AckOutcome::default()
        } else {
            self.board.on_ack(packet.sequence, block, now, self.echo_of(packet))
        };
        let marked = self.tells_of_mark(packet, told);
        self.sample(now, packet);
        // RFC 6298 §5.3, RFC 6675 §6: only by what is acknowledged in order. Else what SACKs tell of new
        // data would put off for ever the time-out that a lost retransmission waits for. With RACK also by
        // news of what left before that (Linux, `tcp_clean_rtx_queue`).
        let is_older = || told.received > 0 && self.board.left_before_first(packet.sent_at);
        if told.advanced > 0 || is_older() {
            self.start_timeout(now);
        }
        if self.undo.is_some() {
            let was = (was_repairing, had_timed_out);
            told = self.reconsider(now, packet, block, (told, marked), was, controller);
        }
        let has_probed_loss = self.tail.as_mut().is_some_and(|tail| {
            tail.on_ack(self.board.cumulative(), told.received + told.lost > 0)
        });
        if told.loss {
            self.repair(now, flight, controller);
        } else if has_probed_loss && self.board.is_in_order() {
            self.reduce(now, flight, CongestionSignal::Gap, controller);
        } else if self.is_due_for_mark(marked) {
            self.slow_down(now, flight, CongestionSignal::Mark, controller);
        }
        if told.received > 0 {
            self.watch_tail(now);
            self.shrink(told);
        }
        controller.on_ack(&Ack {
            now,
            bytes: self.payload(told),
            advanced: told.advanced,
            delivered: told.received,
            rtt,
            marked,
            feedback: header.feedback(),
            sent_at: packet.sent_at,
            is_of_probe: packet.kind == Kind::ProbeAck,
            cumulative: self.board.cumulative(),
            next: self.board.highest(),
            is_recovering: self.board.is_recovering() || self.reduction.is_some(),
            lost: told.lost + std::mem::take(&mut self.found_lost),
            in_flight: self.bytes(self.board.in_flight()),
        });
        if self.board.tries_new() && self.candidate(controller.allowance()).is_none() {
            self.trust_timeout();
        }
        marked
    }

    /// The time stamp that an ACK echoes, or none.
    fn echo_of(&self, packet: &Packet) -> Time {
        if self.has_timestamps() { packet.sent_at } else { Time::NEVER }
    }

    /// Payload of the segments that an ACK has newly acknowledged.
    fn payload(&self, told: AckOutcome) -> Bytes {
        let short = if told.has_last { self.full - self.last } else { 0 };
        Bytes(self.bytes(told.received).0 - u64::from(short))
    }

    /// When the time-out comes, if nothing else does.
    fn times_out_at(&self) -> Time {
        timer_ticks::end(self.timeout_from, self.timeout(), self.mechanism.reliability.timer_tick)
    }

    /// How long until the time-out, for people who wonder why a flow is stuck.
    pub fn timeout(&self) -> Duration {
        self.rtt.timeout(&self.mechanism.reliability)
    }
}

#[cfg(test)]
mod tests;

//! The sending end of a flow: reliability, windows and pacing, written once for all transports.
//!
//! It does no input or output: it is told of ACKs and of time passing, and asked for the next
//! segment.

use super::ranges::Ranges;
use super::rtt::Rtt;
use super::{Ack, Allowance, Controller, Loss, Mechanism, Recovery, Sign};
use crate::packet::{Format, Kind, Packet};
use crate::units::{Bytes, Duration, Time};

/// What a sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The first half of a handshake.
    Syn,
    /// Data.
    Segment(Segment),
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
}

/// State of a sender.
#[derive(Debug)]
pub struct Sender {
    /// Segments to send; all full but the last.
    total: u32,
    full: u32,
    last: u32,
    header: u32,
    go_back_n: bool,
    duplicate_acks: Option<u32>,
    burst: u32,
    ack_every: u32,
    stage: Stage,

    /// The receiver has everything before this.
    cumulative: u32,
    /// The next segment to send, if none is to be sent again.
    next: u32,
    /// The end of what has ever been sent.
    highest: u32,
    /// Segments beyond `cumulative` that the receiver has.
    received: Ranges,
    /// Segments that are lost and not yet sent again.
    lost: Ranges,
    /// Gaps before this have been judged.
    judged: u32,
    /// A loss is being repaired until `cumulative` gets here.
    recovery_ends: u32,

    rtt: Rtt,
    /// When the time-out last started to run.
    timeout_from: Time,

    /// What has been handed to the host since `paced_from`, and what remains of the burst.
    paced_bytes: u32,
    paced_from: Time,
    burst_left: u32,
    /// When the host's port has sent all that this flow gave it; [`Time::NEVER`] while that is
    /// unknown.
    port_free: Time,
    in_port: u32,

    /// Data packets sent again.
    pub retransmits: u32,
    /// Time-outs.
    pub timeouts: u32,
}

impl Sender {
    /// A sender of `size` bytes of payload, or of payload without end.
    pub fn new(size: Option<Bytes>, mechanism: &Mechanism, format: &Format, now: Time) -> Self {
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
            total,
            full,
            last,
            header: format.header.0 as u32,
            go_back_n: reliability.recovery == Recovery::GoBackN,
            duplicate_acks: reliability.duplicate_acks,
            burst: mechanism.burst,
            ack_every: mechanism.ack_every,
            stage: if reliability.handshake { Stage::Closed } else { Stage::Open },
            cumulative: 0,
            next: 0,
            highest: 0,
            received: Ranges::default(),
            lost: Ranges::default(),
            judged: 0,
            recovery_ends: 0,
            rtt: Rtt::new(reliability.initial_rto, reliability.min_rto, reliability.max_rto),
            timeout_from: now,
            paced_bytes: 0,
            paced_from: now,
            burst_left: 0,
            port_free: Time::ZERO,
            in_port: 0,
            retransmits: 0,
            timeouts: 0,
        }
    }

    /// Whether the receiver is known to have everything.
    pub fn is_done(&self) -> bool {
        self.cumulative >= self.total
    }

    /// Sends nothing new from now on: the end of a flow without end.
    pub fn stop(&mut self) {
        self.total = self.highest;
    }

    /// Segments in flight, as far as the sender knows.
    fn in_flight(&self) -> u32 {
        self.next - self.cumulative - self.received.count() - self.lost.count()
    }

    /// Payload in flight, as far as the sender knows.
    pub fn in_flight_bytes(&self) -> Bytes {
        Bytes(u64::from(self.in_flight()) * u64::from(self.full))
    }

    fn payload(&self, sequence: u32) -> u32 {
        if sequence + 1 == self.total { self.last } else { self.full }
    }

    /// Payload of the segments from `from` up to `to`.
    fn payload_between(&self, from: u32, to: u32) -> u64 {
        let full = u64::from(to - from) * u64::from(self.full);
        let short = if to == self.total && to > from { self.full - self.last } else { 0 };
        full - u64::from(short)
    }

    /// What to send now, if the allowance lets anything go.
    pub fn next(&mut self, now: Time, allowance: Allowance) -> Option<Output> {
        match self.stage {
            Stage::Open => self.next_segment(now, allowance).map(Output::Segment),
            Stage::Opening => None,
            Stage::Closed => {
                self.stage = Stage::Opening;
                self.timeout_from = now;
                Some(Output::Syn)
            }
        }
    }

    fn next_segment(&mut self, now: Time, allowance: Allowance) -> Option<Segment> {
        if allowance.rate.is_some() && self.burst_left == 0 && now < self.paced_until(allowance) {
            return None;
        }
        let sequence = self.candidate(allowance)?;
        if self.in_flight() == 0 && !self.has_unanswered() {
            self.timeout_from = now;
        }
        if self.lost.remove(sequence, sequence + 1) == 0 {
            self.next += 1;
        }
        let is_retransmit = sequence < self.highest;
        self.retransmits += u32::from(is_retransmit);
        self.highest = self.highest.max(self.next);
        let payload = self.payload(sequence);
        if allowance.rate.is_some() {
            self.pace(now, payload + self.header);
        }
        let ends_group = (sequence + 1).is_multiple_of(self.ack_every);
        let wants_ack = ends_group || is_retransmit || sequence + 1 == self.total;
        Some(Segment { sequence, payload, wants_ack })
    }

    /// The segment that is next in line, if the window has room.
    fn candidate(&self, allowance: Allowance) -> Option<u32> {
        let in_flight = self.in_flight();
        let after = (u64::from(in_flight) + 1) * u64::from(self.full);
        if in_flight > 0 && after > allowance.window.0 {
            return None;
        }
        match self.lost.first() {
            None => (self.next < self.total).then_some(self.next),
            lost => lost,
        }
    }

    /// Starts or continues a burst. The time-out of a paced sender runs from the last packet sent:
    /// at a low rate the next ACK may be long in coming.
    fn pace(&mut self, now: Time, bytes: u32) {
        self.timeout_from = now;
        if self.burst_left == 0 {
            self.paced_from = now;
            self.paced_bytes = 0;
            self.burst_left = self.burst;
        }
        self.paced_bytes += bytes;
        self.burst_left -= 1;
    }

    /// When the next burst may start: the last one has had its time at the rate now allowed, and
    /// the host's port has sent it. So flows that share a port take turns instead of filling it.
    fn paced_until(&self, allowance: Allowance) -> Time {
        let Some(rate) = allowance.rate else { return Time::ZERO };
        let spaced = self.paced_from + rate.transmit(Bytes(u64::from(self.paced_bytes)));
        spaced.max(self.port_free)
    }

    /// The host's port has taken a packet and will have sent it at `ends`, if that is known yet.
    pub fn on_handed(&mut self, ends: Option<Time>) {
        if let Some(ends) = ends {
            self.port_free = ends;
        } else {
            self.in_port += 1;
            self.port_free = Time::NEVER;
        }
    }

    /// A packet that had to wait in the host's port will have been sent at `ends`.
    pub fn on_departure(&mut self, ends: Time) {
        self.in_port -= 1;
        if self.in_port == 0 {
            self.port_free = ends;
        }
    }

    fn has_unanswered(&self) -> bool {
        self.cumulative < self.highest || self.stage == Stage::Opening
    }

    /// When something happens by itself: the pacing clock or the time-out.
    pub fn deadline(&self, allowance: Allowance) -> Time {
        let timeout = if self.has_unanswered() {
            self.timeout_from + self.rtt.timeout()
        } else {
            Time::NEVER
        };
        let is_open = self.stage == Stage::Open;
        if is_open && allowance.rate.is_some() && self.candidate(allowance).is_some() {
            timeout.min(self.paced_until(allowance))
        } else {
            timeout
        }
    }

    /// The handshake is complete.
    pub fn on_syn_ack(&mut self, now: Time, packet: &Packet) {
        if self.stage == Stage::Opening {
            self.stage = Stage::Open;
            self.rtt.sample(now.since(packet.sent_at));
        }
    }

    /// Takes an ACK or NACK in and tells the controller.
    pub fn on_ack(&mut self, now: Time, packet: &Packet, controller: &mut dyn Controller) {
        let rtt = now.since(packet.sent_at);
        self.rtt.sample(rtt);
        let mut bytes = self.advance(packet.sequence);
        bytes += self.note_received(packet.block);
        if bytes > 0 {
            self.timeout_from = now;
        }
        let is_gap = if self.go_back_n {
            packet.kind == Kind::Nack && self.rewind()
        } else {
            self.judge_gaps()
        };
        if is_gap && self.cumulative >= self.recovery_ends {
            self.recovery_ends = self.highest;
            let in_flight = self.in_flight_bytes();
            controller.on_loss(&Loss { now, in_flight, sign: Sign::Gap });
        }
        controller.on_ack(&Ack {
            now,
            bytes: Bytes(bytes),
            rtt,
            marked: packet.is_marked(),
            cumulative: self.cumulative,
            next: self.highest,
            is_recovering: self.cumulative < self.recovery_ends,
        });
    }

    /// The receiver has everything before `sequence`; returns the payload that is new.
    fn advance(&mut self, sequence: u32) -> u64 {
        if sequence <= self.cumulative {
            return 0;
        }
        let known = self.received_bytes();
        self.received.remove(0, sequence);
        let known = known - self.received_bytes();
        self.lost.remove(0, sequence);
        let bytes = self.payload_between(self.cumulative, sequence) - known;
        self.cumulative = sequence;
        self.next = self.next.max(sequence);
        bytes
    }

    /// The receiver has a run of segments beyond a gap; returns the payload that is new.
    fn note_received(&mut self, (from, to): (u32, u32)) -> u64 {
        let from = from.max(self.cumulative);
        if from >= to {
            return 0;
        }
        let before = self.received_bytes();
        self.lost.remove(from, to);
        self.received.insert(from, to);
        self.received_bytes() - before
    }

    /// Payload of the segments beyond a gap that the receiver has.
    fn received_bytes(&self) -> u64 {
        let full = u64::from(self.received.count()) * u64::from(self.full);
        let has_last = self.received.runs().last().is_some_and(|run| run.1 == self.total);
        full - if has_last { u64::from(self.full - self.last) } else { 0 }
    }

    /// Declares gaps lost that enough received segments lie beyond (RFC 6675 §4, `IsLost`); says
    /// whether there was one.
    fn judge_gaps(&mut self) -> bool {
        let Some(wanted) = self.duplicate_acks else { return false };
        if self.received.count() < wanted {
            return false;
        }
        let mut beyond = 0;
        let mut limit = self.cumulative;
        for run in self.received.runs().iter().rev() {
            beyond += run.1 - run.0;
            if beyond >= wanted {
                limit = run.0;
                break;
            }
        }
        let from = self.judged.max(self.cumulative);
        if limit <= from {
            return false;
        }
        self.judged = limit;
        self.declare_lost(from, limit)
    }

    /// Marks every segment from `from` up to `to` lost that the receiver does not have.
    fn declare_lost(&mut self, from: u32, to: u32) -> bool {
        let Self { received, lost, .. } = self;
        let before = lost.count();
        received.holes(from, to, |from, to| {
            lost.insert(from, to);
        });
        lost.count() > before
    }

    /// Go-back-N: starts again from the gap; says whether there was anything beyond it.
    fn rewind(&mut self) -> bool {
        let was_ahead = self.next > self.cumulative;
        self.next = self.cumulative;
        was_ahead
    }

    /// Lets time pass: runs the time-out if it is due.
    pub fn on_time(&mut self, now: Time, controller: &mut dyn Controller) {
        let due = self.timeout_from + self.rtt.timeout();
        if !self.has_unanswered() || now < due {
            return;
        }
        let in_flight = self.in_flight_bytes();
        self.timeouts += 1;
        self.rtt.back_off();
        self.timeout_from = now;
        if self.stage == Stage::Opening {
            self.stage = Stage::Closed;
            return;
        }
        self.recovery_ends = self.highest;
        if self.go_back_n {
            self.rewind();
        } else {
            self.judged = self.next;
            self.declare_lost(self.cumulative, self.next);
        }
        controller.on_loss(&Loss { now, in_flight, sign: Sign::Timeout });
    }

    /// How long until the time-out, for people who wonder why a flow is stuck.
    pub fn timeout(&self) -> Duration {
        self.rtt.timeout()
    }
}

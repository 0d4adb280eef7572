//! The sending end of a flow: handshake, windows, pacing and time-outs, written once for all transports.
//!
//! It does no input or output: it is told of ACKs and of time passing, and asked for the next
//! segment.

use super::rtt::Rtt;
use super::scoreboard::{Scoreboard, Told};
use super::{Ack, Allowance, Controller, Feedback, Loss, Mechanism, Opened, Sign};
use crate::packet::{Format, Header, Kind, Packet};
use crate::units::{Bytes, Duration, Time};

/// What a sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The first half of a handshake.
    Syn,
    /// Data.
    Segment(Segment),
    /// A question to routers, without payload.
    Probe,
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
}

/// State of a sender.
#[derive(Debug)]
pub struct Sender {
    /// Payload of all segments but the last, and of the last.
    full: u32,
    last: u32,
    header: u32,
    burst: u32,
    ack_every: u32,
    receive_window: u32,
    /// Marks are answered once a window of data, and the receiver is told (RFC 3168).
    answers_echo: bool,
    stage: Stage,
    board: Scoreboard,

    rtt: Rtt,
    /// Whether ACKs echo time stamps; otherwise one segment at a time is timed (Karn).
    timestamps: bool,
    timed: Option<(u32, Time)>,
    /// When the time-out last started to run.
    timeout_from: Time,

    /// Marks in ACKs up to this one have been answered.
    reduced_until: u32,
    /// The receiver is still to be told so.
    owes_notice: bool,

    /// What has been handed to the host since `paced_from`, and what remains of the burst.
    paced_bytes: u32,
    paced_from: Time,
    burst_left: u32,
    /// When the host's port has sent all that this flow gave it; [`Time::NEVER`] while that is
    /// unknown.
    port_free: Time,
    in_port: u32,
    /// When routers were last asked.
    probed: Time,

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
            full,
            last,
            header: format.header.0 as u32,
            burst: mechanism.burst,
            ack_every: mechanism.ack_every,
            receive_window: reliability.receive_window.unwrap_or(u32::MAX),
            answers_echo: mechanism.feedback == Feedback::EchoUntilReduced,
            stage: if reliability.handshake { Stage::Closed } else { Stage::Open },
            board: Scoreboard::new(total, reliability),
            rtt: Rtt::new(reliability),
            timestamps: reliability.timestamps,
            timed: None,
            timeout_from: now,
            reduced_until: 0,
            owes_notice: false,
            paced_bytes: 0,
            paced_from: now,
            burst_left: 0,
            port_free: Time::ZERO,
            in_port: 0,
            probed: now,
            retransmits: 0,
            timeouts: 0,
        }
    }

    /// Whether the receiver is known to have everything.
    pub fn is_done(&self) -> bool {
        self.board.is_done()
    }

    /// Sends nothing new from now on: the end of a flow without end.
    pub fn stop(&mut self) {
        self.board.stop();
    }

    fn bytes(&self, segments: u32) -> Bytes {
        Bytes(u64::from(segments) * u64::from(self.full))
    }

    /// What to send now, if the allowance lets anything go.
    pub fn next(&mut self, now: Time, allowance: Allowance) -> Option<Output> {
        match self.stage {
            Stage::Open => match self.next_segment(now, allowance) {
                None if self.next_probe(allowance) <= now => {
                    self.probed = now;
                    Some(Output::Probe)
                }
                segment => segment.map(Output::Segment),
            },
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
        if self.board.in_flight() == 0 && !self.has_unanswered() {
            self.timeout_from = now;
        }
        let is_retransmit = self.board.sent(sequence);
        self.retransmits += u32::from(is_retransmit);
        self.time(sequence, is_retransmit, now);
        let is_last = sequence + 1 == self.board.total();
        let payload = if is_last { self.last } else { self.full };
        if allowance.rate.is_some() {
            self.pace(now, payload + self.header);
        }
        let ends_group = (sequence + 1).is_multiple_of(self.ack_every);
        let wants_ack = ends_group || is_retransmit || is_last;
        let has_reduced = self.owes_notice && !is_retransmit;
        self.owes_notice &= is_retransmit;
        Some(Segment { sequence, payload, wants_ack, is_retransmit, has_reduced })
    }

    /// The segment that is next in line, if the window has room. One packet may always be in flight.
    fn candidate(&self, allowance: Allowance) -> Option<u32> {
        let (sequence, is_owed) = self.board.candidate()?;
        let in_flight = self.board.in_flight();
        let has_room = in_flight == 0 || self.bytes(in_flight + 1) <= allowance.window;
        let is_wanted = sequence - self.board.cumulative() < self.receive_window;
        (is_owed || has_room && is_wanted).then_some(sequence)
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
        self.board.has_unanswered() || self.stage == Stage::Opening
    }

    /// When something happens by itself: the pacing clock, a probe or the time-out.
    pub fn deadline(&self, allowance: Allowance) -> Time {
        let timeout = if self.has_unanswered() {
            self.timeout_from + self.rtt.timeout()
        } else {
            Time::NEVER
        };
        let is_open = self.stage == Stage::Open;
        let timeout = if is_open { timeout.min(self.next_probe(allowance)) } else { timeout };
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
                self.probed.max(self.paced_from) + interval
            }
            _ => Time::NEVER,
        }
    }

    /// Times one new segment after another, if ACKs echo no time stamps (RFC 6298 §3).
    fn time(&mut self, sequence: u32, is_retransmit: bool, now: Time) {
        if is_retransmit {
            // Karn: an ACK could answer either copy.
            self.timed = self.timed.filter(|(timed, _)| *timed < sequence);
        } else if !self.timestamps && self.timed.is_none() {
            self.timed = Some((sequence, now));
        }
    }

    /// Takes the sample that an ACK gives, if it gives one.
    fn sample(&mut self, now: Time, packet: &Packet) {
        if self.timestamps {
            self.rtt.sample(packet.sent_at, now);
        } else if let Some((sequence, sent)) = self.timed
            && packet.sequence > sequence
        {
            self.timed = None;
            self.rtt.sample(sent, now);
        }
    }

    /// The handshake is complete.
    pub fn on_syn_ack(&mut self, now: Time, packet: &Packet, controller: &mut dyn Controller) {
        if self.stage != Stage::Opening {
            return;
        }
        self.stage = Stage::Open;
        let syn_was_lost = self.timeouts > 0;
        if self.timestamps || !syn_was_lost {
            self.rtt.sample(packet.sent_at, now);
        }
        self.probed = now;
        let (rtt, feedback) = (now.since(packet.sent_at), packet.header.feedback());
        controller.on_open(&Opened { now, rtt, feedback, syn_was_lost });
    }

    /// Takes an ACK or NACK in and tells the controller.
    pub fn on_ack(&mut self, now: Time, packet: &Packet, controller: &mut dyn Controller) {
        let block = match packet.header {
            Header::Ack { block, .. } => block,
            Header::None | Header::Rcp { .. } | Header::Xcp { .. } => (0, 0),
        };
        let flight = self.board.flight_size();
        let told = if packet.kind == Kind::Nack {
            self.board.on_nack(packet.sequence)
        } else {
            self.board.on_ack(packet.sequence, block)
        };
        self.sample(now, packet);
        if told.received > 0 {
            self.timeout_from = now;
        }
        if told.loss {
            self.reduce(now, flight, Sign::Gap, controller);
        } else if self.is_due_for_mark(packet) {
            self.reduce(now, flight, Sign::Mark, controller);
        }
        controller.on_ack(&Ack {
            now,
            bytes: self.payload(told),
            advanced: told.advanced,
            rtt: now.since(packet.sent_at),
            marked: packet.is_marked(),
            feedback: packet.header.feedback(),
            cumulative: self.board.cumulative(),
            next: self.board.highest(),
            is_recovering: self.board.is_recovering(),
        });
    }

    /// Payload of the segments that an ACK has newly acknowledged.
    fn payload(&self, told: Told) -> Bytes {
        let short = if told.has_last { self.full - self.last } else { 0 };
        Bytes(self.bytes(told.received).0 - u64::from(short))
    }

    /// Whether to answer a mark: once a window of data, and not while a loss is being repaired, which
    /// has been answered already (RFC 3168 §6.1.2).
    fn is_due_for_mark(&self, packet: &Packet) -> bool {
        self.answers_echo
            && packet.is_marked()
            && !self.board.is_recovering()
            && self.board.cumulative() > self.reduced_until
    }

    fn reduce(&mut self, now: Time, flight: u32, sign: Sign, controller: &mut dyn Controller) {
        self.reduced_until = self.board.highest();
        self.owes_notice = self.answers_echo;
        controller.on_loss(&Loss { now, flight: self.bytes(flight), sign });
    }

    /// Lets time pass: runs the time-out if it is due.
    pub fn on_time(&mut self, now: Time, controller: &mut dyn Controller) {
        let due = self.timeout_from + self.rtt.timeout();
        if !self.has_unanswered() || now < due {
            return;
        }
        self.timeouts += 1;
        self.rtt.back_off();
        self.timeout_from = now;
        self.timed = None;
        if self.stage == Stage::Opening {
            self.stage = Stage::Closed;
            return;
        }
        let flight = self.board.flight_size();
        self.board.on_timeout();
        self.reduce(now, flight, Sign::Timeout, controller);
    }

    /// How long until the time-out, for people who wonder why a flow is stuck.
    pub fn timeout(&self) -> Duration {
        self.rtt.timeout()
    }
}

//! The sending end of a flow: handshake, windows, pacing and time-outs, written once for all transports.
//!
//! It does no input or output: it is told of ACKs and of time passing, and asked for the next
//! segment.

use std::sync::Arc;

use super::rtt::Rtt;
use super::scoreboard::{Scoreboard, Told};
use super::{Ack, Allowance, Beside, Controller, Feedback, Loss, Mechanism, Opened, Sign};
use crate::packet::{Format, Header, Kind, Packet};
use crate::units::{Bytes, Duration, Rate, Time};

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

/// What holds back the next segment besides the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Until when the pace does.
    pub spaced: Time,
    /// Whether it waits until the host's port is free, too.
    pub awaits_port: bool,
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
            owes_goodbye: mechanism.says_goodbye,
            board: Scoreboard::new(total, reliability),
            mechanism: Arc::clone(mechanism),
            rtt: Rtt::default(),
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

    /// When the host's port has sent all that this flow gave it; [`Time::NEVER`] while that is unknown.
    pub fn port_free(&self) -> Time {
        self.port_free
    }

    fn bytes(&self, segments: u32) -> Bytes {
        Bytes(u64::from(segments) * u64::from(self.full))
    }

    /// What to send now, if the allowance lets anything go.
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

    fn next_segment(&mut self, now: Time, allowance: Allowance) -> Option<Segment> {
        if allowance.rate.is_some() && now < self.paced_until(allowance) {
            return None;
        }
        let segment = self.take_segment(now, allowance)?;
        if allowance.rate.is_some() {
            self.pace(now, segment.payload + self.header);
        }
        Some(segment)
    }

    /// Whether there is data to send.
    pub fn has_data(&self, allowance: Allowance) -> bool {
        self.stage == Stage::Open && self.candidate(allowance).is_some()
    }

    /// What a controller sends beside what the rate lets go: a segment leaves the pace of the others as it
    /// is.
    pub fn beside(&mut self, now: Time, what: Beside, allowance: Allowance) -> Option<Output> {
        match what {
            Beside::Segment => self.take_segment(now, allowance).map(Output::Segment),
            Beside::Padding(bytes) => Some(Output::Padding(bytes)),
        }
    }

    /// The segment that is next in line, to be sent now.
    fn take_segment(&mut self, now: Time, allowance: Allowance) -> Option<Segment> {
        let sequence = self.candidate(allowance)?;
        let is_first = self.board.in_flight() == 0 && !self.has_unanswered();
        let is_retransmit = self.board.sent(sequence);
        // The careful variant of RFC 6675 §6: a repair has a whole time-out from when it was last sent.
        if is_first || is_retransmit {
            self.timeout_from = now;
        }
        self.retransmits += u32::from(is_retransmit);
        self.time(sequence, is_retransmit, now);
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

    /// The segment that is next in line, if the window has room. One packet may always be in flight.
    fn candidate(&self, allowance: Allowance) -> Option<u32> {
        let (sequence, is_owed) = self.board.candidate()?;
        let in_flight = self.board.in_flight();
        let has_room = in_flight == 0 || self.bytes(in_flight + 1) <= allowance.window;
        let ahead = sequence - self.board.cumulative();
        let is_wanted =
            self.mechanism.reliability.receive_window.is_none_or(|window| ahead < window);
        (is_owed || has_room && is_wanted).then_some(sequence)
    }

    /// Starts or continues a burst. The time-out of a paced sender runs from the last packet sent:
    /// at a low rate the next ACK may be long in coming.
    fn pace(&mut self, now: Time, bytes: u32) {
        self.timeout_from = now;
        if self.burst_left == 0 {
            self.paced_from = now;
            self.paced_bytes = 0;
            self.burst_left = self.mechanism.burst.unwrap_or(1);
        }
        self.paced_bytes += bytes;
        self.burst_left -= 1;
    }

    /// When the next packet may leave. Within a burst that is at once, or as they are spaced. The next
    /// burst may start when the last one has had its time at the rate now allowed, and the host's port has
    /// sent it. So flows that share a port take turns instead of filling it.
    fn paced_until(&self, allowance: Allowance) -> Time {
        let Pace { spaced, awaits_port } = self.pace_of_next(allowance);
        if awaits_port { spaced.max(self.port_free) } else { spaced }
    }

    /// What of its pace holds back the next packet.
    pub fn pace_of_next(&self, allowance: Allowance) -> Pace {
        let Some(rate) = allowance.rate else { return Pace::default() };
        let bytes = Bytes(u64::from(self.paced_bytes));
        if self.burst_left > 0 {
            let spaced = |rate: Rate| rate.transmit(bytes);
            let spaced = self.paced_from + self.mechanism.spacing.map_or(Duration::ZERO, spaced);
            return Pace { spaced, awaits_port: false };
        }
        if rate.0 == 0 {
            return Pace { spaced: Time::NEVER, awaits_port: false };
        }
        Pace { spaced: self.paced_from + rate.transmit(bytes), awaits_port: true }
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

    /// A packet that had to wait in the host's port will have been sent at `ends`. Says whether it was the
    /// last: then more may be sent.
    pub fn on_departure(&mut self, ends: Time) -> bool {
        self.in_port -= 1;
        if self.in_port == 0 {
            self.port_free = ends;
        }
        self.in_port == 0
    }

    fn has_unanswered(&self) -> bool {
        self.board.has_unanswered() || self.stage == Stage::Opening
    }

    /// When something happens by itself: the pacing clock, a probe or the time-out.
    pub fn deadline(&self, allowance: Allowance) -> Time {
        if self.is_over() {
            return Time::NEVER;
        }
        let timeout =
            if self.has_unanswered() { self.timeout_from + self.timeout() } else { Time::NEVER };
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
        let syn_was_lost = self.timeouts > 0;
        if self.has_timestamps() || !syn_was_lost {
            self.time_round_trip(packet.sent_at, now);
        }
        self.probed = now;
        let feedback = packet.header().feedback();
        controller.on_open(&Opened { now, rtt, feedback, syn_was_lost });
    }

    /// Takes an ACK or NACK in and tells the controller, to whom its round trip took `rtt`.
    pub fn on_ack(
        &mut self,
        now: Time,
        packet: &Packet,
        rtt: Duration,
        controller: &mut dyn Controller,
    ) {
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
        let told = if packet.kind == Kind::Nack {
            self.board.on_nack(packet.sequence)
        } else if packet.kind == Kind::ProbeAck {
            // It acknowledges nothing, and so is no duplicate ACK.
            Told::default()
        } else {
            self.board.on_ack(packet.sequence, block)
        };
        self.sample(now, packet);
        // RFC 6298 §5.3, RFC 6675 §6: only by what is acknowledged in order. Else what SACKs tell of new
        // data would put off for ever the time-out that a lost retransmission waits for.
        if told.advanced > 0 {
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
            rtt,
            marked: packet.is_marked(),
            feedback: header.feedback(),
            sent_at: packet.sent_at,
            is_of_probe: packet.kind == Kind::ProbeAck,
            cumulative: self.board.cumulative(),
            next: self.board.highest(),
            is_recovering: self.board.is_recovering(),
            lost: told.lost,
            in_flight: self.bytes(self.board.in_flight()),
        });
    }

    /// Payload of the segments that an ACK has newly acknowledged.
    fn payload(&self, told: Told) -> Bytes {
        let short = if told.has_last { self.full - self.last } else { 0 };
        Bytes(self.bytes(told.received).0 - u64::from(short))
    }

    /// Whether marks are answered once a window of data, and the receiver is told (RFC 3168).
    fn answers_echo(&self) -> bool {
        self.mechanism.feedback == Feedback::EchoUntilReduced
    }

    /// Whether to answer a mark: once a window of data, and not while a loss is being repaired, which
    /// has been answered already (RFC 3168 §6.1.2).
    fn is_due_for_mark(&self, packet: &Packet) -> bool {
        self.answers_echo()
            && packet.is_marked()
            && !self.board.is_recovering()
            && self.board.cumulative() > self.reduced_until
    }

    fn reduce(&mut self, now: Time, flight: u32, sign: Sign, controller: &mut dyn Controller) {
        self.reduced_until = self.board.highest();
        self.owes_notice = self.answers_echo();
        controller.on_loss(&Loss { now, flight: self.bytes(flight), sign });
    }

    /// Lets time pass: runs the time-out if it is due.
    pub fn on_time(&mut self, now: Time, controller: &mut dyn Controller) {
        let due = self.timeout_from + self.timeout();
        if !self.has_unanswered() || self.is_over() || now < due {
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
        self.rtt.timeout(&self.mechanism.reliability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Flags;
    use crate::parameters::{Parameter, defaults};
    use crate::transport::{Config, Path};
    use serde_json::{Value, json};

    /// A TCP sender with a window of ten packets at first, told by hand what its receiver says. Times are in
    /// milliseconds, and a packet and its ACK take 100 of them.
    struct Tcp {
        sender: Sender,
        controller: Box<dyn Controller>,
        mechanism: Arc<Mechanism>,
        format: Format,
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn tcp(recovery: &str, rest: &Value) -> Tcp {
        let mut table = json!({
            "kind": "tcp",
            "reliability": { "recovery": recovery, "handshake": false },
        });
        for (key, value) in rest.as_object().unwrap() {
            if let (Value::Object(under), Value::Object(more)) = (&mut table[key], value) {
                under.extend(more.clone());
            } else {
                table[key] = value.clone();
            }
        }
        let config = Config::read(&table).unwrap();
        let format: Format = defaults();
        let mechanism = Arc::new(config.mechanism(&format));
        let controller = config.controller(&Path::new(
            Rate::from_gbps(1),
            Duration::from_millis(100),
            format.clone(),
        ));
        let sender = Sender::new(Some(Bytes(1_000_000)), &mechanism, &format, Time::ZERO);
        Tcp { sender, controller, mechanism, format }
    }

    impl Tcp {
        /// What it sends now.
        fn segments(&mut self, ms: u64) -> Vec<Segment> {
            let next = || match self.sender.next(at(ms), self.controller.allowance()) {
                Some(Output::Segment(segment)) => Some(segment),
                Some(other) => panic!("{other:?}"),
                None => None,
            };
            std::iter::from_fn(next).collect()
        }

        fn sent(&mut self, ms: u64) -> Vec<u32> {
            self.segments(ms).iter().map(|segment| segment.sequence).collect()
        }

        /// An ACK comes that answers a packet of 100 ms ago.
        fn hear(&mut self, ms: u64, cumulative: u32, block: (u32, u32), flags: Flags) {
            let sent_at = at(ms.saturating_sub(100));
            let ack = Packet {
                sequence: cumulative,
                flags,
                ..self.format.control(Kind::Ack, 0, sent_at)
            };
            let ack = ack.saying(Header::Ack { block, feedback: 0.0 });
            let rtt = at(ms).since(ack.sent_at);
            self.sender.on_ack(at(ms), &ack, rtt, &mut *self.controller);
        }

        /// What it sends on a plain ACK.
        fn ack(&mut self, ms: u64, cumulative: u32) -> Vec<u32> {
            self.hear(ms, cumulative, (0, 0), Flags::NONE);
            self.sent(ms)
        }

        /// What it sends on an ACK with a block.
        fn sack(&mut self, ms: u64, cumulative: u32, block: (u32, u32)) -> Vec<u32> {
            self.hear(ms, cumulative, block, Flags::NONE);
            self.sent(ms)
        }

        /// When its time-out runs out, in milliseconds.
        fn times_out(&self) -> u64 {
            self.sender.deadline(self.controller.allowance()).0 / Duration::from_millis(1).0
        }

        /// What it sends when its time-out runs out.
        fn time_out(&mut self) -> Vec<u32> {
            let ms = self.times_out();
            self.sender.on_time(at(ms), &mut *self.controller);
            self.sent(ms)
        }

        /// The window in packets.
        fn window(&self) -> f64 {
            self.controller.gauges()[0].1 / 1000.0
        }
    }

    fn assert_window(tcp: &Tcp, packets: f64) {
        assert!((tcp.window() - packets).abs() < 1e-9, "{} is not {packets}", tcp.window());
    }

    const NOTHING: [u32; 0] = [];

    #[test]
    fn sack_resends_the_first_loss_at_once_and_then_keeps_the_pipe_full() {
        let mut tcp = tcp("selective_repeat", &json!({}));
        assert_eq!(tcp.sent(0), (0..10).collect::<Vec<_>>());
        // Segments 0 and 2 are lost. The first two reports let one new segment go each (RFC 3042).
        assert_eq!(tcp.sack(100, 0, (1, 2)), [10]);
        assert_eq!(tcp.sack(101, 0, (3, 4)), [11]);
        // The third tells of the loss: half the window, and the first segment at once, although nine are
        // in flight.
        assert_eq!(tcp.sack(102, 0, (3, 5)), [0]);
        assert_window(&tcp, 5.0);
        // With the fourth, three have come from beyond segment 2: it is lost as well. It and the four that
        // have come are not in flight, which leaves seven of twelve; each further report takes one out.
        assert_eq!(tcp.sack(103, 0, (3, 6)), NOTHING);
        assert_eq!(tcp.sack(104, 0, (3, 7)), NOTHING);
        assert_eq!(tcp.sack(105, 0, (3, 8)), NOTHING);
        assert_eq!(tcp.sack(106, 0, (3, 9)), [2], "four are in flight");
        assert_eq!(tcp.sack(107, 0, (3, 10)), [12]);
        assert_window(&tcp, 5.0);
        // The first is repaired, then the second: growth goes on when all that was sent before is there.
        assert_eq!(tcp.sack(202, 2, (0, 0)), [13]);
        assert_window(&tcp, 5.0);
        tcp.ack(206, 12);
        assert_window(&tcp, 5.0 + 1.0 / 5.0);
    }

    #[test]
    fn a_second_loss_in_a_window_reduces_no_further_and_one_after_it_does() {
        let mut tcp = tcp("selective_repeat", &json!({}));
        tcp.sent(0);
        tcp.sack(100, 0, (1, 4));
        assert_window(&tcp, 5.0);
        tcp.sack(101, 0, (7, 10));
        assert_window(&tcp, 5.0);
        // 0 is repaired; 4 to 6 are still missing.
        tcp.sack(200, 4, (0, 0));
        assert_window(&tcp, 5.0);
        tcp.ack(201, 10);
        let before = tcp.window();
        tcp.sack(300, 10, (11, 14));
        assert_window(&tcp, (before.min(5.0) / 2.0).max(2.0));
    }

    #[test]
    fn a_lost_repair_waits_for_the_time_out_whatever_sacks_tell_of_new_data() {
        let mut tcp = tcp("selective_repeat", &json!({}));
        tcp.sent(0);
        tcp.ack(100, 1);
        assert_eq!(tcp.sack(102, 1, (2, 5)), [1], "and it is lost again");
        let due = tcp.times_out();
        assert_eq!(at(due), at(102) + tcp.sender.timeout(), "the repair has a whole time-out");
        for (ms, end) in [(110, 8), (120, 10), (210, 11), (220, 12)] {
            tcp.sack(ms, 1, (2, end));
            assert!(tcp.times_out() <= due, "{} ms after {ms} ms", tcp.times_out());
        }
        assert_eq!(tcp.time_out(), [1]);
        assert_eq!((tcp.sender.timeouts, tcp.sender.retransmits), (1, 2));
    }

    #[test]
    fn new_reno_repairs_one_loss_a_round_trip() {
        let mut tcp = tcp("new_reno", &json!({}));
        tcp.sent(0);
        // Segments 0, 3 and 7 are lost.
        assert_eq!(tcp.ack(100, 0), [10]);
        assert_eq!(tcp.ack(101, 0), [11]);
        assert_eq!(tcp.ack(102, 0), [0]);
        assert_window(&tcp, 5.0);
        let more: Vec<u32> = (103..107).flat_map(|ms| tcp.ack(ms, 0)).collect();
        // Seven of 0 to 9 have come: of twelve sent five are in flight.
        assert_eq!(more, NOTHING);
        assert_eq!(tcp.ack(200, 0), [12], "10 has come");
        assert_eq!(tcp.ack(201, 0), [13], "and 11");
        // Partial ACKs: the next gap at once, and no reduction.
        assert_eq!(tcp.ack(202, 3)[0], 3);
        assert_eq!(tcp.ack(302, 7)[0], 7);
        assert_window(&tcp, 5.0);
        assert_eq!((tcp.sender.retransmits, tcp.sender.timeouts), (3, 0));
        // All that had been sent is there.
        assert_eq!(tcp.ack(402, 12).first(), Some(&16));
        assert_window(&tcp, 5.0 + 1.0 / 5.0);
    }

    #[test]
    fn reno_stops_at_the_first_new_ack_and_a_second_loss_waits_for_the_time_out() {
        let mut tcp = tcp("reno", &json!({}));
        tcp.sent(0);
        // Segments 0 and 3 are lost.
        for ms in 100..102 {
            assert_eq!(tcp.ack(ms, 0).len(), 1);
        }
        assert_eq!(tcp.ack(102, 0), [0]);
        (103..108).for_each(|ms| drop(tcp.ack(ms, 0)));
        tcp.ack(202, 3);
        assert_eq!(tcp.sender.retransmits, 1);
        // However many duplicates follow.
        (203..220).for_each(|ms| drop(tcp.ack(ms, 3)));
        assert_eq!(tcp.sender.retransmits, 1);
        assert_eq!(tcp.time_out(), [3]);
        assert_window(&tcp, 1.0);
    }

    #[test]
    fn after_a_time_out_the_window_grows_from_one_packet_through_slow_start() {
        for recovery in ["selective_repeat", "new_reno", "reno"] {
            let mut tcp = tcp(recovery, &json!({}));
            tcp.sent(0);
            assert_eq!(tcp.times_out(), 1000, "{recovery}: the initial time-out");
            assert_eq!(tcp.time_out(), [0], "{recovery}");
            assert_window(&tcp, 1.0);
            assert_eq!(tcp.ack(1100, 1), [1, 2], "{recovery}");
            assert_eq!(tcp.ack(1200, 2), [3, 4], "{recovery}");
            assert_eq!(tcp.ack(1201, 3), [5, 6], "{recovery}");
            assert_eq!(tcp.ack(1300, 4), [7, 8], "{recovery}");
            // Half of the ten that were in flight: slow start ends here.
            assert_window(&tcp, 5.0);
            assert_eq!(tcp.ack(1301, 5), [9], "{recovery}");
            assert_window(&tcp, 5.0 + 1.0 / 5.0);
        }
    }

    #[test]
    fn time_outs_double_and_end_slow_start_no_earlier_than_the_first() {
        let mut tcp = tcp("selective_repeat", &json!({}));
        tcp.sent(0);
        for due in [1000, 3000, 7000, 15_000, 31_000, 63_000, 123_000, 183_000] {
            assert_eq!(tcp.times_out(), due);
            assert_eq!(tcp.time_out(), [0]);
        }
        // RFC 5681 §3.1: the same segment again holds ssthresh at half of the ten first in flight.
        (1..=4).for_each(|cumulative| drop(tcp.ack(183_100 + u64::from(cumulative), cumulative)));
        assert_window(&tcp, 5.0);
    }

    #[test]
    fn without_time_stamps_what_was_sent_twice_is_no_sample() {
        for timestamps in [true, false] {
            let mut tcp =
                tcp("selective_repeat", &json!({ "reliability": { "timestamps": timestamps } }));
            tcp.sent(0);
            tcp.time_out();
            tcp.ack(1100, 1);
            // A sample of 100 ms gives 100 + 4 * 50 ms; without one the second of the start stays doubled.
            let due = if timestamps { 300 } else { 2000 };
            assert_eq!(tcp.times_out(), 1100 + due);
            // Segments 1 to 9 were sent twice; the first that was not is timed.
            (2..=9).for_each(|cumulative| drop(tcp.ack(1200, cumulative)));
            assert_eq!(tcp.sender.timeout() == Duration::from_millis(2000), !timestamps);
            tcp.ack(1300, 11);
            assert!(tcp.sender.timeout() < Duration::from_millis(1000));
        }
    }

    #[test]
    fn without_time_stamps_a_repair_takes_the_clock_off_its_segment() {
        let plain = json!({ "reliability": { "timestamps": false } });
        let mut tcp = tcp("selective_repeat", &plain);
        tcp.sent(0);
        assert_eq!(tcp.sack(100, 0, (1, 4)), [0], "which is timed");
        tcp.ack(200, 10);
        assert_eq!(tcp.sender.timeout(), Duration::from_millis(1000), "no sample yet");
        tcp.ack(300, 11);
        assert_eq!(tcp.sender.timeout(), Duration::from_millis(100 + 4 * 50));
    }

    #[test]
    fn a_lost_syn_leaves_a_window_of_one_packet() {
        for lost in [0, 1, 2] {
            let mut tcp = tcp("selective_repeat", &json!({ "reliability": { "handshake": true } }));
            for _ in 0..lost {
                let allowance = tcp.controller.allowance();
                assert_eq!(tcp.sender.next(at(0), allowance), Some(Output::Syn));
                assert_eq!(tcp.sender.next(at(0), allowance), None);
                let due = tcp.times_out();
                tcp.sender.on_time(at(due), &mut *tcp.controller);
            }
            assert_eq!(tcp.sender.next(at(7000), tcp.controller.allowance()), Some(Output::Syn));
            assert_eq!(tcp.times_out(), 7000 + (1000 << lost));
            let answer = tcp.format.control(Kind::SynAck, 0, at(7000));
            let rtt = at(7100).since(answer.sent_at);
            tcp.sender.on_syn_ack(at(7100), &answer, rtt, &mut *tcp.controller);
            let expected = if lost == 0 { 10 } else { 1 };
            assert_eq!(tcp.sent(7100).len(), expected, "{lost} lost");
        }
    }

    #[test]
    fn a_mark_is_answered_once_a_window_and_the_receiver_is_told() {
        let mut tcp = tcp("selective_repeat", &json!({ "ecn": true }));
        tcp.sent(0);
        tcp.hear(100, 1, (0, 0), Flags::MARKED);
        assert_window(&tcp, 5.0);
        assert_eq!(tcp.segments(100), []);
        // The echo goes on: everything up to segment 10 was sent before the answer.
        for cumulative in 2..=5 {
            tcp.hear(100, cumulative, (0, 0), Flags::MARKED);
        }
        assert_eq!(tcp.segments(100), []);
        tcp.hear(101, 8, (0, 0), Flags::MARKED);
        let told: Vec<_> = tcp.segments(101).iter().map(|s| (s.sequence, s.has_reduced)).collect();
        assert_eq!(told, [(10, true), (11, false), (12, false)], "the first new segment says so");
        tcp.hear(102, 10, (0, 0), Flags::MARKED);
        let before = tcp.window();
        assert!((5.0..6.5).contains(&before), "{before}: still the first answer");
        tcp.sent(102);
        tcp.hear(201, 11, (0, 0), Flags::MARKED);
        assert!(tcp.window() < before / 2.0 + 0.5, "segment 10 left after it");
        assert_eq!(tcp.sender.retransmits, 0);
    }

    #[test]
    fn what_is_sent_again_is_not_ecn_capable_and_what_is_new_is() {
        let mut tcp = tcp("selective_repeat", &json!({ "ecn": true }));
        let mut segments = tcp.segments(0);
        tcp.hear(100, 0, (1, 4), Flags::NONE);
        segments.extend(tcp.segments(100));
        let of_segment = |segment: &Segment| {
            let packet = tcp.mechanism.data(&tcp.format, 0, at(0), *segment);
            (segment.sequence, packet.flags.has(Flags::ECN_CAPABLE))
        };
        let capable: Vec<_> = segments.iter().map(of_segment).collect();
        assert_eq!(capable[..10], (0..10).map(|sequence| (sequence, true)).collect::<Vec<_>>());
        assert_eq!(capable[10..], [(0, false)]);
        assert_eq!(tcp.format.control(Kind::Syn, 0, at(0)).flags, Flags::NONE);
    }

    #[test]
    fn no_more_is_sent_than_the_receiver_takes() {
        let mut tcp = tcp("selective_repeat", &json!({ "reliability": { "receive_window": 4 } }));
        assert_eq!(tcp.sent(0), [0, 1, 2, 3]);
        assert_eq!(tcp.ack(100, 1), [4]);
        // Segment 1 is lost: what lies beyond the window waits for it, and it does not.
        assert_eq!(tcp.sack(101, 1, (2, 5)), [1]);
        assert_eq!(tcp.ack(200, 5), [5, 6], "half of the four in flight");
    }

    #[test]
    fn a_coarse_sender_needs_three_duplicates_and_no_fewer() {
        for recovery in ["selective_repeat", "new_reno", "reno"] {
            let mut tcp = tcp(recovery, &json!({}));
            tcp.sent(0);
            // Reordering: 0 comes after 1 and 2.
            assert_eq!(tcp.sack(100, 0, (1, 2)), [10], "{recovery}");
            assert_eq!(tcp.sack(101, 0, (1, 3)), [11], "{recovery}");
            tcp.ack(102, 3);
            assert_eq!(tcp.sender.retransmits, 0, "{recovery}");
            assert!(tcp.window() > 10.5, "{recovery}: still slow start");
        }
    }
}

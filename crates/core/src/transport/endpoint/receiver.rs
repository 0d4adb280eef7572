//! Receiver of a flow: reassembly, acknowledgements and ECN feedback.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::base::units::Time;
use crate::model::packet::{Flags, Header, Kind, Packet};
use crate::transport::recovery::segment_set::SegmentSet;
use crate::transport::{MarkFeedback, Mechanism, Recovery};

/// Packets that a receiver sends in response to an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReceiverOutput {
    /// Acknowledgement to send.
    pub ack: Option<Acknowledgement>,
    /// True if a congestion notification packet (CNP) is to be sent.
    pub notification: bool,
    /// True if the event is the arrival of a new segment.
    pub is_new: bool,
}

/// Acknowledgement to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acknowledgement {
    /// ACK or NACK.
    pub kind: Kind,
    /// First missing segment.
    pub cumulative: u32,
    /// SACK block: the range beyond `cumulative` that contains the segment just received.
    pub block: (u32, u32),
    /// Blocks in a complete SACK option: all ranges beyond `cumulative`, and the D-SACK block.
    pub sack_blocks: usize,
    /// Time when the earliest acknowledged packet was sent (the timestamp to echo).
    pub sent_at: Time,
    /// ECN feedback: an echoed mark, or the count of marks.
    pub flags: Flags,
    /// Feedback that routers wrote into the acknowledged packets.
    pub feedback: f32,
}

/// A delayed ACK or compressed SACK: segments received and not yet acknowledged, either one segment in
/// order or several of one range beyond a gap.
#[derive(Clone, Copy, Debug)]
struct DelayedAck {
    /// The first of these segments, and when it was sent.
    sequence: u32,
    sent_at: Time,
    feedback: f32,
    count: u32,
    /// Time when the ACK is sent at the latest.
    expires: Time,
}

/// SACKs of a gap that are sent at once before compression begins, and the maximum number of segments per
/// compressed SACK (Linux: `TCP_FASTRETRANS_THRESH` and `tcp_comp_sack_nr`).
const IMMEDIATE_SACKS: u32 = 3;
const MAX_COMPRESSED: u32 = 44;

/// Receiver of a flow. The fields that every packet accesses come first.
#[derive(Debug)]
#[repr(C)]
pub struct Receiver {
    /// The next expected segment (RCV.NXT).
    expected: u32,
    /// True if ACKs carry ECE, until the sender responds with CWR (RFC 3168).
    echoes_mark: bool,
    /// Number of marked packets, with `AccECN`.
    mark_count: u32,
    /// Time when the next periodic CNP is due.
    notification_due: Time,
    mechanism: Arc<Mechanism>,
    /// Segments received out of order.
    out_of_order: SegmentSet,
    delayed_ack: Option<DelayedAck>,
    /// SACKs sent for the gap at `expected`.
    gap_sacks: u32,
    /// Time when the last NACK for the gap at `expected` was sent; [`Time::NEVER`] if none was.
    nacked_at: Time,
    /// Time when the next CNP is allowed, or when the clock of periodic CNPs started; [`Time::NEVER`] before
    /// the first mark or packet.
    notification_clock: Time,
}

impl Receiver {
    /// Creates the receiver of a flow.
    pub fn new(mechanism: &Arc<Mechanism>) -> Self {
        Self {
            mechanism: Arc::clone(mechanism),
            delayed_ack: None,
            gap_sacks: 0,
            expected: 0,
            out_of_order: SegmentSet::default(),
            nacked_at: Time::NEVER,
            echoes_mark: false,
            mark_count: 0,
            notification_clock: Time::NEVER,
            notification_due: Time::NEVER,
        }
    }

    /// Returns true if an ACK is delayed.
    pub fn has_delayed_ack(&self) -> bool {
        self.delayed_ack.is_some()
    }

    /// Handles a data packet.
    #[inline]
    pub fn on_data(&mut self, now: Time, packet: &Packet) -> ReceiverOutput {
        let notification = self.record_mark(now, packet);
        let (is_new, ack) = match packet.sequence.cmp(&self.expected) {
            Ordering::Less => (false, Some(self.acknowledge(packet, self.duplicate_block(packet)))),
            Ordering::Equal => (true, self.on_expected(now, packet)),
            Ordering::Greater if self.mechanism.reliability.recovery == Recovery::GoBackN => {
                (false, self.nack(now, packet))
            }
            Ordering::Greater => {
                let is_new = self.out_of_order.insert(packet.sequence, packet.sequence + 1) > 0;
                let range = || self.out_of_order.range_of(packet.sequence).unwrap_or_default();
                let block = if is_new { range() } else { self.duplicate_block(packet) };
                let is_compressed = is_new && self.compress_sack(now, packet, block);
                (is_new, (!is_compressed).then(|| self.acknowledge(packet, block)))
            }
        };
        ReceiverOutput { ack, notification, is_new }
    }

    /// Handles the next expected segment. The ACK is sent if the sender requests it and, with delayed
    /// ACKs, another segment is unacknowledged already. The ACK is not delayed for the first segments
    /// (quick ACKs), if there is a gap (RFC 5681 §4.2), or if the packet is marked.
    #[inline]
    fn on_expected(&mut self, now: Time, packet: &Packet) -> Option<Acknowledgement> {
        let had_gap = !self.out_of_order.is_empty();
        self.expected += 1;
        self.nacked_at = Time::NEVER;
        if let Some((_, to)) = self.out_of_order.range_of(self.expected) {
            self.out_of_order.remove(self.expected, to);
            self.expected = to;
        }
        self.gap_sacks = u32::from(!self.out_of_order.is_empty());
        let wants_ack = packet.flags.has(Flags::WANTS_ACK);
        match self.mechanism.reliability.delayed_ack.filter(|_| !self.is_quick(packet)) {
            Some(delay)
                if wants_ack && !had_gap && self.delayed_ack.is_none() && !packet.is_marked() =>
            {
                self.delay_ack(packet, now + delay);
                None
            }
            _ => (wants_ack || had_gap).then(|| self.acknowledge(packet, self.delayed_block())),
        }
    }

    /// Returns true if the segment is one of the first, which are acknowledged at once.
    fn is_quick(&self, packet: &Packet) -> bool {
        packet.sequence < self.mechanism.reliability.quick_acks
    }

    /// Returns true if the SACK of a new segment of the range `block` is compressed (delayed). It is not
    /// if a segment of another range is unacknowledged, since an ACK reports one range, nor if the packet
    /// is marked.
    fn compress_sack(&mut self, now: Time, packet: &Packet, block: (u32, u32)) -> bool {
        let Some(max_delay) = self.mechanism.reliability.sack_compression else { return false };
        if self.is_quick(packet) || packet.is_marked() {
            return false;
        }
        if self.gap_sacks < IMMEDIATE_SACKS {
            self.gap_sacks += 1;
            return false;
        }
        match &mut self.delayed_ack {
            None => {
                // Linux uses the receiver's RTT estimate, which is not modelled.
                let rtt = now.since(packet.sent_at) * 2;
                self.delay_ack(packet, now + max_delay.min(rtt / 20));
                true
            }
            Some(delayed) => {
                let is_compressed = (block.0..block.1).contains(&delayed.sequence)
                    && delayed.count < MAX_COMPRESSED;
                delayed.count += u32::from(is_compressed);
                is_compressed
            }
        }
    }

    /// Delays the ACK of a segment.
    fn delay_ack(&mut self, packet: &Packet, expires: Time) {
        let feedback = packet.header().feedback();
        let Packet { sequence, sent_at, .. } = *packet;
        self.delayed_ack = Some(DelayedAck { sequence, sent_at, feedback, count: 1, expires });
    }

    /// Returns the SACK block of the delayed ACK; empty for a segment in order.
    fn delayed_block(&self) -> (u32, u32) {
        let range =
            self.delayed_ack.and_then(|delayed| self.out_of_order.range_of(delayed.sequence));
        range.unwrap_or_default()
    }

    /// Returns the SACK block for a duplicate segment: the segment itself with D-SACK (RFC 2883),
    /// otherwise its range.
    fn duplicate_block(&self, packet: &Packet) -> (u32, u32) {
        if self.mechanism.reliability.duplicate_sack {
            (packet.sequence, packet.sequence + 1)
        } else {
            self.out_of_order.range_of(packet.sequence).unwrap_or_default()
        }
    }

    /// Returns a NACK for a go-back-N sender, unless one was sent within the NACK interval.
    fn nack(&mut self, now: Time, packet: &Packet) -> Option<Acknowledgement> {
        let interval = self.mechanism.reliability.nack_interval;
        if self.nacked_at != Time::NEVER && now.since(self.nacked_at) < interval {
            return None;
        }
        self.nacked_at = now;
        Some(Acknowledgement { kind: Kind::Nack, ..self.acknowledge(packet, (0, 0)) })
    }

    /// Returns the acknowledgement for `packet`, which includes the delayed ACK unless that belongs to
    /// another range.
    fn acknowledge(&mut self, packet: &Packet, block: (u32, u32)) -> Acknowledgement {
        let (expected, sacked) = (self.expected, block.0..block.1);
        let is_included = |sequence: u32| sequence < expected || sacked.contains(&sequence);
        let delayed = self.delayed_ack.take_if(|delayed| is_included(delayed.sequence));
        let feedback = match (delayed, packet.header()) {
            // XCP's feedback is a change of the window, and adds up; a later rate replaces an earlier one.
            (Some(delayed), Header::Xcp { feedback, .. }) => delayed.feedback + feedback,
            (_, header) => header.feedback(),
        };
        let has_duplicate = block.0 < block.1 && self.out_of_order.range_of(block.0) != Some(block);
        Acknowledgement {
            kind: Kind::Ack,
            cumulative: self.expected,
            block,
            sack_blocks: self.out_of_order.len() + usize::from(has_duplicate),
            // RFC 7323 §4.3: the timestamp of the earliest segment, so that the RTT includes the delay.
            sent_at: delayed.map_or(packet.sent_at, |delayed| delayed.sent_at),
            flags: self.mark_flags(packet.is_marked()),
            feedback,
        }
    }

    /// Returns the ECN feedback of an ACK for a packet.
    fn mark_flags(&self, is_marked: bool) -> Flags {
        match self.mechanism.acks.feedback {
            MarkFeedback::AccurateEcn => Flags::NONE.with_count(self.mark_count),
            MarkFeedback::EchoUntilCwr => Flags::NONE.with_if(Flags::MARKED, self.echoes_mark),
            MarkFeedback::Echo | MarkFeedback::Cnp { .. } | MarkFeedback::PeriodicCnp { .. } => {
                Flags::NONE.with_if(Flags::MARKED, is_marked)
            }
        }
    }

    /// Records the mark of a packet. Returns true if a CNP is to be sent now.
    #[inline]
    fn record_mark(&mut self, now: Time, packet: &Packet) -> bool {
        let is_marked = packet.is_marked();
        match self.mechanism.acks.feedback {
            MarkFeedback::Echo => false,
            MarkFeedback::AccurateEcn => {
                self.mark_count += u32::from(is_marked);
                false
            }
            MarkFeedback::EchoUntilCwr => {
                // RFC 3168 §6.1.3; a packet with CWR may be marked itself.
                self.echoes_mark =
                    is_marked || self.echoes_mark && !packet.flags.has(Flags::REDUCED);
                false
            }
            MarkFeedback::Cnp { interval } => {
                let is_due = is_marked
                    && (self.notification_clock == Time::NEVER || now >= self.notification_clock);
                if is_due {
                    self.notification_clock = now + interval;
                }
                is_due
            }
            MarkFeedback::PeriodicCnp { interval } => {
                let is_first = self.notification_clock == Time::NEVER;
                let from = self.notification_clock.min(now);
                self.notification_clock = from;
                if is_marked && !is_first && self.notification_due == Time::NEVER {
                    let ticks = now.since(from).0 / interval.0 + 1;
                    self.notification_due = from + interval * ticks;
                }
                is_marked && is_first
            }
        }
    }

    /// Returns when to call [`on_timer`](Self::on_timer): for a periodic CNP or a delayed ACK.
    pub fn next_timer(&self) -> Time {
        self.delayed_ack
            .map_or(self.notification_due, |delayed| delayed.expires.min(self.notification_due))
    }

    /// Handles the timers that have expired. Returns the packets to send.
    pub fn on_timer(&mut self, now: Time) -> ReceiverOutput {
        let notification = now >= self.notification_due;
        if notification {
            self.notification_due = Time::NEVER;
        }
        let block = self.delayed_block();
        let delayed = self.delayed_ack.take_if(|delayed| delayed.expires <= now);
        // ACKs of marked packets are not delayed.
        let flags = self.mark_flags(false);
        let ack = delayed.map(|DelayedAck { sent_at, feedback, .. }| Acknowledgement {
            kind: Kind::Ack,
            cumulative: self.expected,
            block,
            sack_blocks: self.out_of_order.len(),
            sent_at,
            flags,
            feedback,
        });
        ReceiverOutput { ack, notification, is_new: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::base::units::Duration;
    use crate::model::packet::Format;
    use crate::transport::Reliability;
    use crate::transport::blocks::tcp::window;
    use crate::transport::endpoint::sender::Segment;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn mechanism(delayed_ack: Option<Duration>) -> Arc<Mechanism> {
        let reliability = Reliability { delayed_ack, ..Reliability::internet() };
        Arc::new(window::mechanism(&reliability, true))
    }

    /// A segment sent 50 ms before its arrival.
    fn data(mechanism: &Mechanism, ms: u64, sequence: u32, flags: Flags) -> Packet {
        let format: Format = defaults();
        let segment = Segment {
            sequence,
            payload: 1000,
            wants_ack: true,
            is_retransmit: false,
            has_cwr: flags.has(Flags::REDUCED),
        };
        let mut packet = mechanism.data(&format, 0, at(ms - 50), segment);
        if flags.has(Flags::MARKED) {
            assert!(packet.mark(), "the packet is ECN-capable");
        }
        packet
    }

    /// Returns the cumulative acknowledgement and SACK block of a TCP receiver's ACK of a segment.
    fn ack_of(receiver: &mut Receiver, ms: u64, sequence: u32) -> Option<(u32, (u32, u32))> {
        let mechanism = mechanism(None);
        let output = receiver.on_data(at(ms), &data(&mechanism, ms, sequence, Flags::NONE));
        assert!(!output.notification);
        output.ack.map(|ack| (ack.cumulative, ack.block))
    }

    #[test]
    fn an_ack_is_delayed_to_the_second_segment_or_by_the_timer() {
        let mut receiver = Receiver::new(&mechanism(Some(Duration::from_millis(40))));
        assert_eq!(ack_of(&mut receiver, 100, 0), None);
        assert_eq!(receiver.next_timer(), at(140));
        assert_eq!(ack_of(&mut receiver, 101, 1), Some((2, (0, 0))));
        assert_eq!(receiver.next_timer(), Time::NEVER);
        assert_eq!(ack_of(&mut receiver, 110, 2), None);
        assert_eq!(receiver.on_timer(at(149)).ack, None, "before the timer");
        let late = receiver.on_timer(at(150)).ack.unwrap();
        // With the timestamp of the segment, so that the RTT includes the delay (RFC 7323 §4.3).
        assert_eq!((late.cumulative, late.sent_at), (3, at(60)));
        assert_eq!(receiver.on_timer(at(160)).ack, None, "sent only once");
    }

    #[test]
    fn quick_acks_are_not_delayed() {
        let delayed = mechanism(Some(Duration::from_millis(40)));
        let reliability = Reliability { quick_acks: 2, ..delayed.reliability.clone() };
        let mut receiver = Receiver::new(&Arc::new(window::mechanism(&reliability, true)));
        for sequence in 0..2 {
            assert_eq!(ack_of(&mut receiver, 100, sequence), Some((sequence + 1, (0, 0))));
        }
        assert_eq!(ack_of(&mut receiver, 100, 2), None);
        assert_eq!(ack_of(&mut receiver, 100, 3), Some((4, (0, 0))));
    }

    #[test]
    fn acks_of_a_gap_and_of_its_end_are_not_delayed() {
        let mut receiver = Receiver::new(&mechanism(Some(Duration::from_millis(40))));
        assert_eq!(ack_of(&mut receiver, 100, 0), None);
        assert_eq!(ack_of(&mut receiver, 101, 2), Some((1, (2, 3))));
        assert_eq!(receiver.next_timer(), Time::NEVER, "the ACK includes segment 0");
        assert_eq!(ack_of(&mut receiver, 102, 4), Some((1, (4, 5))));
        assert_eq!(ack_of(&mut receiver, 103, 3), Some((1, (2, 5))), "the merged range");
        assert_eq!(ack_of(&mut receiver, 104, 1), Some((5, (0, 0))));
        assert_eq!(
            ack_of(&mut receiver, 105, 1),
            Some((5, (0, 0))),
            "a duplicate is acknowledged at once (RFC 5681 §4.2)"
        );
        assert_eq!(ack_of(&mut receiver, 106, 5), None);
    }

    /// A receiver that lacks segment 0 and has sent SACKs of 1, 2 and 3; it compresses further SACKs.
    fn compressing() -> Receiver {
        let sack_compression = Some(Duration::from_millis(1));
        let reliability = Reliability { sack_compression, ..Reliability::internet() };
        let mut receiver = Receiver::new(&Arc::new(window::mechanism(&reliability, true)));
        for sequence in 1..=3 {
            assert_eq!(ack_of(&mut receiver, 100, sequence), Some((0, (1, sequence + 1))));
        }
        receiver
    }

    #[test]
    fn sacks_are_compressed_from_the_fourth_on() {
        let mut receiver = compressing();
        for sequence in 4..20 {
            assert_eq!(ack_of(&mut receiver, 101, sequence), None);
        }
        assert_eq!(receiver.next_timer(), at(102));
        let ack = receiver.on_timer(at(102)).ack.unwrap();
        assert_eq!((ack.cumulative, ack.block, ack.sack_blocks), (0, (1, 20), 1));
        assert_eq!(receiver.next_timer(), Time::NEVER);
        for sequence in 20..64 {
            assert_eq!(ack_of(&mut receiver, 103, sequence), None);
        }
        assert_eq!(ack_of(&mut receiver, 103, 64), Some((0, (1, 65))), "at most 44 segments");
    }

    #[test]
    fn an_ack_in_order_includes_a_compressed_sack_and_a_sack_of_another_range_does_not() {
        let mut receiver = compressing();
        assert_eq!(ack_of(&mut receiver, 101, 4), None);
        assert_eq!(ack_of(&mut receiver, 101, 6), Some((0, (6, 7))), "an ACK reports one range");
        assert_eq!(receiver.next_timer(), at(102));
        assert_eq!(ack_of(&mut receiver, 101, 0), Some((5, (0, 0))));
        assert_eq!(receiver.next_timer(), Time::NEVER);
        // The first ACK of a new gap was sent; segments from 6 on are beyond the gap.
        assert_eq!(ack_of(&mut receiver, 101, 7), Some((5, (6, 8))));
        assert_eq!(ack_of(&mut receiver, 101, 8), Some((5, (6, 9))));
        assert_eq!(ack_of(&mut receiver, 101, 9), None);
        assert_eq!(ack_of(&mut receiver, 101, 11), Some((5, (11, 12))));
        assert_eq!(ack_of(&mut receiver, 101, 5), Some((10, (0, 0))), "segment 5 fills the gap");
        assert_eq!(receiver.next_timer(), Time::NEVER);
    }

    #[test]
    fn a_sack_is_delayed_by_at_most_a_twentieth_of_the_rtt() {
        let sack_compression = Some(Duration::from_millis(40));
        let reliability = Reliability { sack_compression, ..Reliability::internet() };
        let mut receiver = Receiver::new(&Arc::new(window::mechanism(&reliability, true)));
        for sequence in 1..=4 {
            ack_of(&mut receiver, 100, sequence);
        }
        assert_eq!(receiver.next_timer(), at(105), "one-way delay of 50 ms");
    }

    #[test]
    fn a_mark_is_echoed_until_cwr() {
        let mechanism = mechanism(None);
        let mut receiver = Receiver::new(&mechanism);
        let mut echoes = |sequence, flags| {
            let packet = data(&mechanism, 100, sequence, flags);
            receiver.on_data(at(100), &packet).ack.unwrap().flags.has(Flags::MARKED)
        };
        assert!(!echoes(0, Flags::NONE));
        assert!(echoes(1, Flags::MARKED));
        assert!(echoes(2, Flags::NONE), "until CWR");
        assert!(!echoes(3, Flags::REDUCED));
        assert!(!echoes(4, Flags::NONE));
        assert!(echoes(5, Flags::MARKED));
        let both = Flags::MARKED.with_if(Flags::REDUCED, true);
        assert!(echoes(6, both), "a packet with CWR may be marked");
    }

    #[test]
    fn accurate_ecn_counts_marks_modulo_eight() {
        let reliability = Reliability { accurate_ecn: true, ..Reliability::internet() };
        let mechanism = Arc::new(window::mechanism(&reliability, true));
        let mut receiver = Receiver::new(&mechanism);
        let mut count = |sequence, flags| {
            let packet = data(&mechanism, 100, sequence, flags);
            receiver.on_data(at(100), &packet).ack.unwrap().flags.count()
        };
        assert_eq!((count(0, Flags::NONE), count(1, Flags::MARKED)), (0, 1));
        assert_eq!(count(2, Flags::NONE), 1, "marks are not echoed");
        let counts: Vec<_> = (3..12).map(|sequence| count(sequence, Flags::MARKED)).collect();
        assert_eq!(counts, [2, 3, 4, 5, 6, 7, 0, 1, 2]);
    }

    #[test]
    fn the_ack_of_a_marked_segment_is_not_delayed() {
        let mechanism = mechanism(Some(Duration::from_millis(40)));
        let mut receiver = Receiver::new(&mechanism);
        let packet = data(&mechanism, 100, 0, Flags::MARKED);
        assert!(
            receiver.on_data(at(100), &packet).ack.is_some_and(|ack| ack.flags.has(Flags::MARKED))
        );
    }

    #[test]
    fn a_delayed_ack_sums_changes_of_the_window_and_keeps_the_latest_rate() {
        let sum = |header: fn(f32) -> Header| {
            let mechanism = mechanism(Some(Duration::from_millis(40)));
            let mut receiver = Receiver::new(&mechanism);
            let mut ack_feedback = |sequence, feedback| {
                let plain = data(&mechanism, 100, sequence, Flags::NONE);
                let ack = receiver.on_data(at(100), &plain.with_header(header(feedback)));
                ack.ack.map(|ack| ack.feedback)
            };
            assert_eq!(ack_feedback(0, 3.0), None);
            ack_feedback(1, 4.0)
        };
        assert_eq!(sum(|feedback| Header::Xcp { rtt: 0.1, spacing: 0.01, feedback }), Some(7.0));
        assert_eq!(sum(|rate| Header::Rcp { rtt: 0.1, rate }), Some(4.0));
    }

    #[test]
    fn go_back_n_discards_out_of_order_segments_and_sends_one_nack() {
        let reliability =
            Reliability { recovery: Recovery::GoBackN, ..Reliability::selective_repeat() };
        let mut receiver = Receiver::new(&Arc::new(window::mechanism(&reliability, true)));
        assert_eq!(ack_of(&mut receiver, 100, 0), Some((1, (0, 0))));
        assert_eq!(ack_of(&mut receiver, 100, 2), Some((1, (0, 0))));
        assert_eq!(ack_of(&mut receiver, 100, 3), None);
        assert_eq!(ack_of(&mut receiver, 100, 1), Some((2, (0, 0))), "2 and 3 were discarded");
    }
}

//! Receiver of a flow: reassembly, acknowledgements and ECN feedback.

use std::cmp::Ordering;
use std::sync::Arc;

use super::recent_blocks::RecentBlocks;
use crate::base::prefetch::prefetch;
use crate::base::units::{Bytes, Time};
use crate::model::flow::Reordering;
use crate::model::packet::{AckOptions, Flags, Header, Kind, Packet};
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
    /// Entropy value of the packet just received, and the number of received segments, modulo 65536; none if
    /// the sender does not need them.
    pub entropy: Option<(u16, u16)>,
}

/// A delayed ACK or compressed SACK: segments received and not yet acknowledged, either one segment in
/// order or several of one range beyond a gap.
#[derive(Clone, Copy, Debug)]
struct DelayedAck {
    /// The first of these segments, and when it was sent.
    sequence: u32,
    sent_at: Time,
    feedback: f32,
    /// True if the segments were marked.
    is_marked: bool,
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
    /// True if ACKs may have options beyond their headers.
    pub has_options: bool,
    /// Number of marked packets, with AccECN.
    mark_count: u32,
    /// New bytes since the last ACK, with coalesced ACKs, and whether one is due after data in order.
    unacknowledged: u32,
    owes_ack: bool,
    /// Time when the next periodic CNP is due.
    notification_due: Time,
    mechanism: Arc<Mechanism>,
    /// Segments received out of order.
    out_of_order: SegmentSet,
    /// Blocks that ACKs repeat; none before the first gap.
    recent_blocks: Option<Box<RecentBlocks>>,
    delayed_ack: Option<DelayedAck>,
    /// SACKs sent for the gap at `expected`.
    gap_sacks: u32,
    /// Time when the last NACK for the gap at `expected` was sent; [`Time::NEVER`] if none was.
    nacked_at: Time,
    /// Time when the next CNP is allowed, or when the clock of periodic CNPs started; [`Time::NEVER`] before
    /// the first mark or packet.
    notification_clock: Time,
    /// Order of arrivals.
    pub reordering: Reordering,
    /// The highest segment that arrived beyond a gap, and when it was sent.
    highest: (u32, Time),
}

impl Receiver {
    /// Reads ahead what a packet changes.
    pub fn read_ahead(&self) {
        prefetch(&self.expected);
        prefetch(&self.out_of_order);
        prefetch(&self.reordering);
    }

    /// Creates the receiver of a flow.
    pub fn new(mechanism: &Arc<Mechanism>) -> Self {
        Self {
            mechanism: Arc::clone(mechanism),
            delayed_ack: None,
            gap_sacks: 0,
            expected: 0,
            out_of_order: SegmentSet::default(),
            recent_blocks: None,
            nacked_at: Time::NEVER,
            echoes_mark: false,
            has_options: mechanism.reliability.sack_blocks > 1
                || mechanism.has_accurate_ecn_option(),
            mark_count: 0,
            unacknowledged: 0,
            owes_ack: false,
            notification_clock: Time::NEVER,
            notification_due: Time::NEVER,
            reordering: Reordering::default(),
            highest: (0, Time::ZERO),
        }
    }

    /// Returns the first missing segment.
    pub fn cumulative(&self) -> u32 {
        self.expected
    }

    /// Returns true if an ACK is delayed.
    pub fn has_delayed_ack(&self) -> bool {
        self.delayed_ack.is_some()
    }

    /// Handles a data packet.
    #[inline]
    pub fn on_data(&mut self, now: Time, packet: &Packet) -> ReceiverOutput {
        let notification = self.record_mark(now, packet);
        if let Some(limit) = self.mechanism.acks.coalesced {
            let (is_new, ack) = self.on_coalesced(packet, limit);
            return ReceiverOutput { ack, notification, is_new };
        }
        let (is_new, ack) = match packet.sequence.cmp(&self.expected) {
            Ordering::Less => (false, Some(self.acknowledge(packet, self.duplicate_block(packet)))),
            Ordering::Equal => (true, self.on_expected(now, packet)),
            Ordering::Greater if self.mechanism.reliability.recovery == Recovery::GoBackN => {
                self.note_order(packet);
                (false, self.nack(now, packet))
            }
            Ordering::Greater => {
                self.note_order(packet);
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
        if had_gap || self.nacked_at < Time::NEVER {
            self.note_order(packet);
        }
        self.advance();
        self.nacked_at = Time::NEVER;
        self.gap_sacks = u32::from(!self.out_of_order.is_empty());
        if !had_gap
            && packet.is_marked()
            && self.mechanism.acks.feedback == MarkFeedback::Echo
            && let Some(delayed) = self.delayed_ack.take()
        {
            return Some(self.acknowledge_unmarked(now, delayed, packet));
        }
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

    /// Acknowledges an unmarked segment whose ACK was delayed when a marked one follows it. The ACK of that
    /// one is sent at once, too (RFC 8257 §3.2): one for both would count both as marked.
    fn acknowledge_unmarked(
        &mut self,
        now: Time,
        delayed: DelayedAck,
        marked: &Packet,
    ) -> Acknowledgement {
        self.delay_ack(marked, now);
        Acknowledgement {
            cumulative: marked.sequence,
            ..self.delayed_acknowledgement(&delayed, (0, 0))
        }
    }

    /// Counts a segment beyond or at a gap, if it was sent before a higher one that has arrived. A
    /// retransmission was sent after that.
    fn note_order(&mut self, packet: &Packet) {
        let (highest, sent_at) = self.highest;
        if packet.sequence > highest {
            self.highest = (packet.sequence, packet.sent_at);
        } else if packet.sequence < highest && packet.sent_at <= sent_at {
            let Reordering { packets, extent } = &mut self.reordering;
            *packets += 1;
            *extent = (*extent).max(highest - packet.sequence);
        }
    }

    /// Handles a data packet with coalesced ACKs: sends an ACK for `limit` of new data, for the first packet,
    /// marked ones and duplicates, if the sender requests it, and once more when the gap before such a
    /// request has closed (UEC 1.0 §3.5.12; uet-htsim).
    fn on_coalesced(&mut self, packet: &Packet, limit: Bytes) -> (bool, Option<Acknowledgement>) {
        let Packet { sequence, bytes, .. } = *packet;
        let is_first = self.expected == 0 && self.out_of_order.is_empty();
        let is_new = self.first_missing(sequence) == sequence;
        if is_new && (sequence > self.expected || !self.out_of_order.is_empty()) {
            self.note_order(packet);
        }
        if is_new && sequence == self.expected {
            self.advance();
        } else if is_new {
            self.out_of_order.insert(sequence, sequence + 1);
        }
        self.unacknowledged += if is_new { u32::from(bytes) } else { 0 };
        let (has_gap, wants_ack) =
            (!self.out_of_order.is_empty(), packet.flags.has(Flags::WANTS_ACK));
        let is_due = !is_new
            || is_first
            || wants_ack
            || packet.is_marked()
            || u64::from(self.unacknowledged) >= limit.0
            || self.owes_ack && !has_gap;
        self.owes_ack = has_gap && (self.owes_ack || wants_ack);
        let block = self.out_of_order.range_of(sequence).unwrap_or_default();
        (is_new, is_due.then(|| self.acknowledge(packet, block)))
    }

    /// Advances RCV.NXT past the expected segment, and those behind it.
    fn advance(&mut self) {
        self.expected += 1;
        if let Some((_, to)) = self.out_of_order.range_of(self.expected) {
            self.out_of_order.remove(self.expected, to);
            self.expected = to;
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
        let is_marked = packet.is_marked();
        let Packet { sequence, sent_at, .. } = *packet;
        self.delayed_ack =
            Some(DelayedAck { sequence, sent_at, feedback, is_marked, count: 1, expires });
    }

    /// Returns the SACK block of the delayed ACK; empty for a segment in order.
    #[inline]
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
        self.unacknowledged = 0;
        let has_duplicate = block.0 < block.1 && self.out_of_order.range_of(block.0) != Some(block);
        Acknowledgement {
            kind: Kind::Ack,
            cumulative: self.expected,
            block,
            sack_blocks: self.out_of_order.len() + usize::from(has_duplicate),
            // RFC 7323 §4.3: the timestamp of the earliest segment, so that the RTT includes the delay.
            sent_at: delayed.map_or(packet.sent_at, |delayed| delayed.sent_at),
            flags: self
                .mark_flags(packet.is_marked() || delayed.is_some_and(|delayed| delayed.is_marked)),
            feedback,
            entropy: self
                .mechanism
                .returns_entropy
                .then(|| (packet.entropy().unwrap_or(0), self.received())),
        }
    }

    /// Returns the number of received segments, modulo 65536.
    fn received(&self) -> u16 {
        (self.expected + self.out_of_order.count()) as u16
    }

    /// Returns the options of an acknowledgement to send, if it has any beyond its header.
    pub fn options(&mut self, acknowledgement: &mut Acknowledgement) -> Option<AckOptions> {
        let limit = self.mechanism.reliability.sack_blocks as usize;
        let marks = if self.mechanism.has_accurate_ecn_option() { self.mark_count } else { 0 };
        let mut blocks = [acknowledgement.block, (0, 0), (0, 0)];
        let repeats_blocks = limit > 1 && !self.out_of_order.is_empty();
        if repeats_blocks {
            let recent_blocks = self.recent_blocks.get_or_insert_default();
            blocks = recent_blocks.blocks(acknowledgement.block, &self.out_of_order, limit);
        }
        let entropy = acknowledgement.entropy.map(|(entropy, _)| entropy);
        let options = AckOptions { blocks, marks, entropy };
        if repeats_blocks {
            acknowledgement.block = blocks[0];
            acknowledgement.sack_blocks = options.sack_blocks();
        }
        (options.sack_blocks() > 1 || marks > 0).then_some(options)
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

    /// Handles the header of a trimmed packet: the NACK names the segment, unless that has arrived.
    pub fn on_trimmed(&mut self, packet: &Packet) -> ReceiverOutput {
        let segment = packet.sequence;
        let is_missing = self.first_missing(segment) == segment;
        let (kind, block) =
            if is_missing { (Kind::Nack, (segment, segment + 1)) } else { (Kind::Ack, (0, 0)) };
        // A NACK acknowledges nothing.
        let unacknowledged = if is_missing { self.unacknowledged } else { 0 };
        let acknowledgement = self.acknowledge(packet, block);
        self.unacknowledged = unacknowledged;
        let was_last_hop = is_missing && packet.flags.has(Flags::LAST_HOP);
        let flags = acknowledgement.flags.with_if(Flags::LAST_HOP, was_last_hop);
        let ack = Some(Acknowledgement { kind, flags, ..acknowledgement });
        ReceiverOutput { ack, ..ReceiverOutput::default() }
    }

    /// Returns the acknowledgement in answer to a request for credit.
    pub fn repeat_ack(&mut self, request: &Packet) -> ReceiverOutput {
        let acknowledgement = self.acknowledge(request, (0, 0));
        let is_flagged = self.mechanism.acks.coalesced.is_some();
        let flags = acknowledgement.flags.with_if(Flags::ANSWERS_REQUEST, is_flagged);
        let ack = Some(Acknowledgement { flags, ..acknowledgement });
        ReceiverOutput { ack, ..ReceiverOutput::default() }
    }

    /// Returns the first segment from `from` on that has not been received.
    pub fn first_missing(&self, from: u32) -> u32 {
        let from = from.max(self.expected);
        self.out_of_order.range_of(from).map_or(from, |range| range.1)
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
        let ack = delayed.map(|delayed| self.delayed_acknowledgement(&delayed, block));
        ReceiverOutput { ack, notification, is_new: false }
    }

    /// Returns the acknowledgement that was delayed.
    fn delayed_acknowledgement(&self, delayed: &DelayedAck, block: (u32, u32)) -> Acknowledgement {
        Acknowledgement {
            kind: Kind::Ack,
            cumulative: self.expected,
            block,
            sack_blocks: self.out_of_order.len(),
            sent_at: delayed.sent_at,
            flags: self.mark_flags(delayed.is_marked),
            feedback: delayed.feedback,
            entropy: None,
        }
    }
}

#[cfg(test)]
mod tests;

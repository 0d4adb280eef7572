//! Packets: small values stored in queues and links.

mod extensions;

use crate::base::schema::{positive, positive_if_given};
use crate::base::units::{Bytes, Time};

crate::parameters! {
    /// Packet sizes.
    pub struct Format {
        /// Payload of a full data packet.
        pub payload: Bytes = Bytes(1000), where positive;
        /// Headers of a data packet, all layers together.
        pub header: Bytes = Bytes(40);
        /// Size of an acknowledgement or another control packet, with headers.
        pub ack: Bytes = Bytes(40), where positive;
        /// Size of a SYN or SYN-ACK, which have options of their own (Linux: 60 B); none for the size of an
        /// `ack`.
        pub syn: Option<Bytes> = None, where positive_if_given;
        /// Size of a credit of a receiving host ([homa18], authors' simulator, a grant: 84 B); none for the
        /// size of an `ack`.
        pub credit: Option<Bytes> = None, where positive_if_given;
        /// Add SACK options to acknowledgements: 4 B, and 8 B for each block that a receiver would report, of
        /// which there are at most three (RFC 2018, with timestamps).
        pub sack: bool = false;
    }
}

impl Format {
    /// Number of packets that carry `payload`. A flow without payload still sends one.
    pub fn packets(&self, payload: Bytes) -> u64 {
        payload.0.div_ceil(self.payload.0).max(1)
    }

    /// Size of a full data packet. Saturates, because the checks of a scenario use it.
    pub fn full(&self) -> Bytes {
        Bytes(self.payload.0.saturating_add(self.header.0))
    }

    /// Size of a packet with `payload`, headers included.
    pub fn on_wire(&self, payload: Bytes) -> Bytes {
        Bytes(payload.0 + self.packets(payload) * self.header.0)
    }

    /// Size of the longest acknowledgement. Saturates.
    pub fn longest_ack(&self) -> Bytes {
        Bytes(self.ack.0.saturating_add(u64::from(self.sack_options(SACK_BLOCKS))))
    }

    /// Size of the SACK options of an ACK with this number of blocks, including a D-SACK block.
    pub fn sack_options(&self, runs: usize) -> u16 {
        if self.sack && runs > 0 { 4 + 8 * runs.min(SACK_BLOCKS) as u16 } else { 0 }
    }

    /// Returns a control packet of a flow without a route.
    pub fn control(&self, kind: Kind, flow: FlowNumber, sent_at: Time) -> Packet {
        let bytes = match kind {
            Kind::Syn | Kind::SynAck => self.syn.unwrap_or(self.ack),
            Kind::Credit => self.credit.unwrap_or(self.ack),
            _ => self.ack,
        };
        Packet {
            sent_at,
            flow,
            next_hop: 0,
            sequence: 0,
            packed: Packed::default(),
            bytes: bytes.0 as u16,
            kind,
            flags: Flags::NONE,
        }
    }
}

/// Number of a flow, as in packets.
pub type FlowNumber = u32;

/// Kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Payload.
    Data,
    /// Datagram of an external stack, sent by the source of the flow.
    Datagram,
    /// Opens a flow.
    Syn,
    /// Answers a [`Syn`](Self::Syn).
    SynAck,
    /// Requests feedback from routers without payload.
    Probe,
    /// Answers a [`Probe`](Self::Probe).
    ProbeAck,
    /// Requests credit from the receiving host, without payload.
    Request,
    /// Permits the sender to send data ([`Header::Credit`]).
    Credit,
    /// Acknowledges data.
    Ack,
    /// Reports a sequence gap to a go-back-N sender.
    Nack,
    /// DCQCN's congestion notification packet.
    Cnp,
    /// Datagram of an external stack, sent by the target of the flow.
    Return,
    /// Notifies routers of the end of the flow.
    Fin,
    /// Header of a data packet whose payload a queue has cut off.
    Trimmed,
    /// Header of a trimmed packet that found no room either, and returns to the sender.
    Returned,
    /// PFC: pause data on the link that leads to the sender of the frame.
    Pause,
    /// PFC: resume data.
    Resume,
}

impl Kind {
    /// Returns true for a control packet, which PFC never pauses and strict priority serves first. A trimmed
    /// packet counts as data.
    pub fn is_control(self) -> bool {
        !matches!(self, Self::Data | Self::Datagram | Self::Trimmed)
    }

    /// Returns true for a packet on the reverse path.
    pub fn is_answer(self) -> bool {
        use Kind::{Ack, Cnp, Credit, Nack, ProbeAck, Return, Returned, SynAck};
        matches!(self, SynAck | ProbeAck | Credit | Ack | Nack | Cnp | Return | Returned)
    }

    /// Returns true if this answers one packet of a flow in progress, so that it measures an RTT.
    pub fn is_acknowledgement(self) -> bool {
        matches!(self, Self::Ack | Self::Nack | Self::ProbeAck)
    }

    /// Returns true for a PFC frame, which has priority over all packets.
    pub fn is_frame(self) -> bool {
        matches!(self, Self::Pause | Self::Resume)
    }
}

/// Flags of a packet in one byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// No flags.
    pub const NONE: Self = Self(0);
    /// Routers may mark the packet (ECT).
    pub const ECN_CAPABLE: Self = Self(1);
    /// Data: a router has marked the packet (CE). ACK: the data that it acknowledges was marked (ECE).
    pub const MARKED: Self = Self(2);
    /// Data: the receiver must acknowledge the packet at once.
    pub const WANTS_ACK: Self = Self(4);
    /// Data: the sender has reduced its window after a mark (CWR).
    pub const REDUCED: Self = Self(8);
    /// ACK: answers a request for credit.
    pub const ANSWERS_REQUEST: Self = Self(8);
    /// Trimmed packet, and NACK: the packet was trimmed at the last hop.
    pub const LAST_HOP: Self = Self(8);

    /// Layout of the packed header, in the four highest bits.
    fn layout(self) -> u8 {
        self.0 >> 4
    }

    fn with_layout(self, layout: u8) -> Self {
        Self(self.0 & 0x0f | layout << 4)
    }

    /// Number of marks that an ACK reports, modulo 8 (`AccECN`'s field ACE), in the bits of all flags but the
    /// first.
    pub fn count(self) -> u8 {
        self.0 >> 1 & 7
    }

    /// Returns the flags with this number of marks.
    #[must_use]
    pub fn with_count(self, marks: u32) -> Self {
        Self(self.0 & !0x0e | (marks as u8 & 7) << 1)
    }

    /// Returns true if all flags of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the flags, with `other` if `condition` holds.
    #[must_use]
    pub fn with_if(self, other: Self, condition: bool) -> Self {
        if condition { Self(self.0 | other.0) } else { self }
    }

    /// Returns the flags without `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// Header of a packet besides its sequence number: for routers, which may write it, or for the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Header {
    /// Header of an ACK, and of packets without a header.
    Ack {
        /// Block of received segments beyond the ACK's number that contains the segment just received (RFC
        /// 2018, first block), start and end; may be empty.
        block: (u32, u32),
        /// Feedback of routers from the packet that the ACK answers.
        feedback: f32,
    },
    /// RCP, for routers.
    Rcp {
        /// RTT of the sender in seconds; 0 if it is unknown.
        rtt: f32,
        /// Minimum of the rates that routers on the path offer, in bytes per second.
        rate: f32,
    },
    /// XCP, for routers.
    Xcp {
        /// RTT of the sender in seconds; 0 if it is unknown.
        rtt: f32,
        /// Time between packets in seconds, averaged over an RTT.
        spacing: f32,
        /// Change of throughput that the sender requests and routers limit, in bytes per second.
        feedback: f32,
    },
    /// Priority queues: lower values are served first. Packets without a header have priority 0.
    Priority(u64),
    /// PDQ, for routers.
    Pdq {
        /// Grant of the routers so far.
        grant: Grant,
        /// Remaining payload, in seconds at the sender's line rate.
        remaining: f32,
        /// RTT of the sender in seconds.
        rtt: f32,
    },
    /// D3, for routers.
    D3 {
        /// Rate that the sender requests until its next request, in bytes per second.
        desired: f32,
        /// Minimum of the rates that routers on the path allocate, in bytes per second.
        allotted: f32,
    },
    /// Fair shares, for routers, which answer on the reverse path ([`Share`]).
    FairShare {
        /// Maximum rate of the flow at the sender and the routers so far, in bytes per second.
        limit: f32,
        /// True if the flow is about to end and no longer needs a share.
        leaves: bool,
    },
    /// Quick-Start, for routers.
    QuickStart {
        /// Rate that routers so far approve, in the code of RFC 4782 §3.1; 0 for none.
        code: u8,
    },
    /// Credit: that of a credit packet, or that by which a data packet is sent.
    Credit {
        /// Number of the credit.
        number: u32,
        /// Priority class of the data; 0 is the highest.
        class: u8,
    },
}

/// Maximum number of SACK blocks of an ACK, besides timestamps (RFC 2018 §3).
pub const SACK_BLOCKS: usize = 3;

/// Options of an ACK that do not fit its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckOptions {
    /// SACK blocks, most recent first, and empty blocks behind them (RFC 2018 §4).
    pub blocks: [(u32, u32); SACK_BLOCKS],
    /// Marked packets so far: the counter of `AccECN`'s option; 0 without that.
    ///
    /// Deviation: RFC 9768 §3.2.3 counts bytes.
    pub marks: u32,
    /// Entropy value of the packet that the ACK answers, if it is returned.
    pub entropy: Option<u16>,
}

impl AckOptions {
    /// Returns the number of SACK blocks.
    pub fn sack_blocks(&self) -> usize {
        self.blocks.iter().filter(|block| block.0 < block.1).count()
    }
}

/// Feedback of fair-share routers to a flow, on the reverse path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Minimum share of the flow at the routers so far, in bytes per second.
    pub rate: f64,
    /// Backlog of the flow at all these routers, in bytes.
    pub queued: f64,
}

/// Steps per octave of shares, from 1 B/s to 4 TB/s: a precision of 0.09 %.
const RATES: f64 = 768.0;
/// Largest number of steps. Above it the two numbers would not form a finite float.
const MOST_STEPS: u16 = 0x7f7f;
/// Steps per octave of bytes, up to 4 GB: a precision of 0.03 %.
const QUEUES: f64 = 2048.0;

impl Share {
    /// Feedback before any router has written it.
    pub const OPEN: Self = Self { rate: f64::MAX, queued: 0.0 };

    /// Encodes both values in one number of a header, on logarithmic scales of sixteen bits each. Shares are
    /// rounded down, so that the sum of shares does not exceed the capacity.
    pub fn number(self) -> f32 {
        // A decoded value is encoded to the same step again.
        let rate = 1.0 + (self.rate.max(1.0).log2() * RATES + 1e-3).floor();
        let queued = (self.queued + 1.0).log2() * QUEUES;
        f32::from_bits(both((rate as u16).min(MOST_STEPS), queued.round() as u16))
    }

    /// Decodes a number.
    pub fn of(number: f32) -> Self {
        let (rate, queued) = each(number.to_bits());
        Self {
            rate: (f64::from(rate.max(1) - 1) / RATES).exp2(),
            queued: (f64::from(queued) / QUEUES).exp2() - 1.0,
        }
    }
}

/// Grant of PDQ's routers to a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Grant {
    /// Transmit, at this number of bytes per second.
    Rate(f32),
    /// Pause.
    Pause {
        /// Router that pauses the flow: the number of its link.
        by: u16,
        /// Time to the next probe, in fifths of an RTT; 0 for the sender's choice.
        probe_after: u8,
    },
}

impl Grant {
    /// Encodes the grant in one number of a header: a rate, or a negative number of 24 bits for a pause,
    /// which a float represents exactly.
    pub fn number(self) -> f32 {
        match self {
            Self::Rate(rate) => rate,
            Self::Pause { by, probe_after } => {
                -((u32::from(by) << 8 | u32::from(probe_after)) as f32) - 1.0
            }
        }
    }

    /// Decodes a number.
    pub fn of(number: f32) -> Self {
        if number >= 0.0 {
            return Self::Rate(number);
        }
        let code = (-number - 1.0) as u32;
        Self::Pause { by: (code >> 8) as u16, probe_after: code as u8 }
    }
}

impl Header {
    /// Empty header.
    pub const NONE: Self = Self::Ack { block: (0, 0), feedback: 0.0 };

    /// Feedback that a receiver returns.
    pub fn feedback(self) -> f32 {
        match self {
            Self::Rcp { rate, .. } => rate,
            Self::Ack { feedback, .. } | Self::Xcp { feedback, .. } => feedback,
            Self::Priority(_) | Self::Credit { .. } => 0.0,
            Self::Pdq { grant, .. } => grant.number(),
            Self::D3 { allotted, .. } => allotted,
            Self::FairShare { .. } => Share::OPEN.number(),
            Self::QuickStart { code } => f32::from(code),
        }
    }
}

/// Header in eight bytes. Four of the flags contain its layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed(u32, u32);

/// Layouts of packed headers.
const BLOCK: u8 = 0;
/// Block of an ACK, relative to its number, and feedback.
const FEEDBACK: u8 = 1;
const RCP: u8 = 2;
/// XCP's two times in sixteen bits each, and feedback.
const XCP: u8 = 3;
/// Number of 64 bits.
const PRIORITY: u8 = 4;
/// PDQ's grant, and its two times in sixteen bits each.
const PDQ: u8 = 5;
const D3: u8 = 6;
const FAIR_SHARE: u8 = 7;
const QUICK_START: u8 = 8;
/// Row of an ACK's options in a table of the network, and feedback.
const OPTIONS: u8 = 9;
/// Block of an ACK, relative to its number, and row of the packet's telemetry in a table of the network.
const TELEMETRY: u8 = 12;
/// Rows of an ACK's options and of its telemetry.
const OPTIONS_AND_TELEMETRY: u8 = OPTIONS | TELEMETRY;
/// Number of a credit, and the class and the entropy value of the data.
const CREDIT: u8 = 11;
/// Block of an ACK, relative to its number; received segments and entropy value in sixteen bits each.
const ENTROPY: u8 = 10;

/// Encodes a time in seconds on a logarithmic scale of 2048 steps per octave, from 1 ns to 4.2 s: a precision
/// of 0.02 %.
fn coarse(seconds: f32) -> u16 {
    on_scale(seconds, 2048.0)
}

fn fine(steps: u16) -> f32 {
    off_scale(steps, 2048.0)
}

/// Steps per octave of the remaining payload, which may take hours: a precision of 0.04 %.
const LONG: f32 = 1024.0;

fn on_scale(seconds: f32, octave: f32) -> u16 {
    if seconds > 0.0 {
        ((seconds * 1e9).log2() * octave).round().clamp(1.0, 65_535.0) as u16
    } else {
        0
    }
}

fn off_scale(steps: u16, octave: f32) -> f32 {
    if steps > 0 { (f32::from(steps) / octave).exp2() * 1e-9 } else { 0.0 }
}

fn both(high: u16, low: u16) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}

fn each(word: u32) -> (u16, u16) {
    ((word >> 16) as u16, word as u16)
}

impl Packet {
    /// Unpacks the header.
    #[expect(clippy::inline_always, reason = "a call for it is 2 % of a run of TCP")]
    #[inline(always)]
    pub fn header(&self) -> Header {
        let Packed(first, second) = self.packed;
        match self.flags.layout() {
            BLOCK => Header::Ack { block: (first, second), feedback: 0.0 },
            FEEDBACK => {
                Header::Ack { block: self.absolute(first), feedback: f32::from_bits(second) }
            }
            RCP => Header::Rcp { rtt: f32::from_bits(first), rate: f32::from_bits(second) },
            PRIORITY => Header::Priority(self.priority()),
            PDQ => {
                let (remaining, rtt) = each(first);
                let grant = Grant::of(f32::from_bits(second));
                Header::Pdq { grant, remaining: off_scale(remaining, LONG), rtt: fine(rtt) }
            }
            D3 => Header::D3 { desired: f32::from_bits(first), allotted: f32::from_bits(second) },
            FAIR_SHARE => Header::FairShare { limit: f32::from_bits(first), leaves: second > 0 },
            QUICK_START => Header::QuickStart { code: first as u8 },
            OPTIONS => Header::Ack { block: (0, 0), feedback: f32::from_bits(second) },
            TELEMETRY | ENTROPY => Header::Ack { block: self.absolute(first), feedback: 0.0 },
            OPTIONS_AND_TELEMETRY => Header::NONE,
            CREDIT => Header::Credit { number: first, class: second as u8 },
            _ => {
                let (rtt, spacing) = each(first);
                let feedback = f32::from_bits(second);
                Header::Xcp { rtt: fine(rtt), spacing: fine(spacing), feedback }
            }
        }
    }

    /// Returns the packet with a header. The block of an ACK with feedback is limited to 65535 segments, and
    /// dropped if it begins further away. Transports with router feedback do not need it.
    #[must_use]
    pub fn with_header(mut self, header: Header) -> Self {
        let (layout, packed) = match header {
            Header::Ack { block, feedback: 0.0 } => (BLOCK, Packed(block.0, block.1)),
            Header::Ack { block, feedback } => {
                (FEEDBACK, Packed(self.relative(block), feedback.to_bits()))
            }
            Header::Rcp { rtt, rate } => (RCP, Packed(rtt.to_bits(), rate.to_bits())),
            Header::Xcp { rtt, spacing, feedback } => {
                (XCP, Packed(both(coarse(rtt), coarse(spacing)), feedback.to_bits()))
            }
            Header::Priority(number) => (PRIORITY, Packed((number >> 32) as u32, number as u32)),
            Header::Pdq { grant, remaining, rtt } => {
                let times = both(on_scale(remaining, LONG), coarse(rtt));
                (PDQ, Packed(times, grant.number().to_bits()))
            }
            Header::D3 { desired, allotted } => (D3, Packed(desired.to_bits(), allotted.to_bits())),
            Header::FairShare { limit, leaves } => {
                (FAIR_SHARE, Packed(limit.to_bits(), u32::from(leaves)))
            }
            Header::QuickStart { code } => (QUICK_START, Packed(u32::from(code), 0)),
            Header::Credit { number, class } => (CREDIT, Packed(number, u32::from(class))),
        };
        self.packed = packed;
        self.flags = self.flags.with_layout(layout);
        self
    }

    /// Encodes a block relative to the packet's number.
    fn relative(&self, (from, to): (u32, u32)) -> u32 {
        let beyond = from.checked_sub(self.sequence);
        let offset = beyond.and_then(|beyond| u16::try_from(beyond).ok());
        let length = (to - from).min(u32::from(u16::MAX)) as u16;
        offset.map_or(0, |offset| both(offset, length))
    }

    /// Decodes a block relative to the packet's number.
    fn absolute(&self, block: u32) -> (u32, u32) {
        let (offset, length) = each(block);
        let from = self.sequence + u32::from(offset);
        if length > 0 { (from, from + u32::from(length)) } else { (0, 0) }
    }

    /// Writes feedback of routers to the sender, if the header has a field for it.
    pub fn write_feedback(&mut self, feedback: f32) {
        if matches!(self.flags.layout(), FEEDBACK | RCP | XCP | PDQ | D3 | OPTIONS) {
            self.packed.1 = feedback.to_bits();
        }
    }

    /// Priority among waiting packets: lower values are served first.
    pub fn priority(&self) -> u64 {
        let Packed(first, second) = self.packed;
        match self.flags.layout() {
            PRIORITY => u64::from(first) << 32 | u64::from(second),
            CREDIT if self.kind == Kind::Data => u64::from(second as u8),
            _ => 0,
        }
    }
}

/// Packet. It is moved between queues and links by value: half a cache line, so that a hop accesses no other
/// memory (docs/performance.md).
///
/// A data packet carries one segment of a flow. Segments are counted from 0, and all but the last are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Time at which the sender passed the packet to its NIC; an ACK echoes that of the data that it
    /// acknowledges.
    pub sent_at: Time,
    /// Flow of the packet.
    pub flow: FlowNumber,
    /// Position on the route: index into the routes of the next port.
    pub next_hop: u32,
    /// Data: the segment. ACK and NACK: the first segment that the receiver has not received. Datagrams: the
    /// number sent before by its sender. Frames: the link.
    pub sequence: u32,
    /// Packed [`header`](Self::header).
    pub packed: Packed,
    /// Size, headers included.
    pub bytes: u16,
    /// Kind.
    pub kind: Kind,
    /// Flags.
    pub flags: Flags,
}

const _: () =
    assert!(size_of::<Packet>() <= 32, "a packet outgrew its place (docs/performance.md)");

impl Packet {
    /// Returns true if a router has marked the packet, or the packet echoes a mark.
    pub fn is_marked(&self) -> bool {
        self.flags.has(Flags::MARKED)
    }

    /// Marks the packet if it is ECN-capable. Returns true if it was not marked before.
    pub fn mark(&mut self) -> bool {
        let is_new = self.flags.has(Flags::ECN_CAPABLE) && !self.is_marked();
        self.flags = self.flags.with_if(Flags::MARKED, is_new);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(sequence: u32) -> Packet {
        let format: Format = crate::base::schema::defaults();
        Packet { sequence, ..format.control(Kind::Ack, 0, Time::ZERO) }
    }

    proptest! {
        #[test]
        fn headers_survive_packing(
            sequence in 0_u32..1_000_000, offset in 1_u32..100_000, length in 0_u32..100_000,
            rtt in 1e-7_f32..1.0, ratio in 1e-3_f32..1.0, feedback in -1e9_f32..1e9,
        ) {
            let block = (sequence + offset, sequence + offset + length);
            let plain = Header::Ack { block, feedback: 0.0 };
            prop_assert_eq!(packet(sequence).with_header(plain).header(), plain);
            let written = packet(sequence).with_header(Header::Ack { block, feedback });
            prop_assert!((written.header().feedback() - feedback).abs() < f32::EPSILON);
            if let Header::Ack { block: (from, to), .. } = written.header() {
                let is_all = offset < 65_536 && (1..65_536).contains(&length);
                let is_part = from == to || block.0 == from;
                prop_assert!(is_part && (!is_all || (from, to) == block));
                prop_assert!(to <= block.1, "no more than there is");
            }
            let (number, by) = (u64::from(offset) << 40 | u64::from(length), offset as u16);
            let pause = Grant::Pause { by, probe_after: length as u8 };
            for exact in [
                Header::Rcp { rtt, rate: feedback },
                Header::Priority(number),
                Header::D3 { desired: rtt, allotted: feedback },
                Header::FairShare { limit: rtt, leaves: length > 1000 },
                Header::QuickStart { code: length as u8 },
                Header::Pdq { grant: pause, remaining: 0.0, rtt: 0.0 },
                Header::Pdq { grant: Grant::Rate(feedback.abs()), remaining: 0.0, rtt: 0.0 },
            ] {
                prop_assert_eq!(packet(sequence).with_header(exact).header(), exact);
            }
            let written = packet(sequence).with_header(Header::Xcp { rtt, spacing: rtt * ratio, feedback });
            let Header::Xcp { rtt: read, spacing, .. } = written.header() else {
                return Err(TestCaseError::fail("another kind"));
            };
            prop_assert!((read / rtt - 1.0).abs() < 3e-4 && (spacing / (rtt * ratio) - 1.0).abs() < 3e-4);
        }
    }

    proptest! {
        #[test]
        fn shares_are_rounded_down_and_once_only(rate in 1.0..4e12_f64, queued in 0.0..4e9_f64) {
            let read = Share::of(Share { rate, queued }.number());
            prop_assert!(read.rate <= rate * 1.000_001 && read.rate > rate * 0.999, "{read:?}");
            prop_assert!((read.queued / queued - 1.0).abs() < 3e-4 || queued < 1.0, "{read:?}");
            prop_assert_eq!(Share::of(read.number()), read);
            prop_assert!(read.number().is_finite() && read.number() != 0.0);
        }
    }

    #[test]
    fn entropy_values_fit_into_the_headers_of_data_and_answers() {
        let block = Header::Ack { block: (9, 12), feedback: 0.0 };
        let ack = packet(7).with_header(block).with_entropy(65_535, 70);
        assert_eq!((ack.entropy(), ack.received(), ack.header()), (Some(65_535), Some(70), block));
        let credit = Header::Credit { number: u32::MAX, class: 7 };
        let data = Packet { kind: Kind::Data, ..packet(7) }.with_header(credit);
        let data = data.with_entropy(43_210, 0);
        assert_eq!((data.entropy(), data.header(), data.priority()), (Some(43_210), credit, 7));
    }

    #[test]
    fn control_packets_have_the_size_of_their_kind() {
        let plain: Format = crate::base::schema::defaults();
        let linux = Format { syn: Some(Bytes(60)), ack: Bytes(52), sack: true, ..plain.clone() };
        let bytes = |format: &Format, kind| format.control(kind, 0, Time::ZERO).bytes;
        let kinds = [Kind::Syn, Kind::SynAck, Kind::Credit, Kind::Ack];
        assert_eq!(kinds.map(|kind| bytes(&plain, kind)), [40, 40, 40, 40]);
        assert_eq!(kinds.map(|kind| bytes(&linux, kind)), [60, 60, 52, 52]);
        let homa = Format { credit: Some(Bytes(84)), ..plain.clone() };
        assert_eq!(kinds.map(|kind| bytes(&homa, kind)), [40, 40, 84, 40]);
        assert_eq!([0, 1, 3, 9].map(|runs| linux.sack_options(runs)), [0, 12, 28, 28]);
        assert_eq!(plain.sack_options(3), 0);
        assert_eq!(linux.longest_ack(), Bytes(80));
    }

    #[test]
    fn routers_write_feedback_into_headers_with_a_field_for_it() {
        let mut guided =
            packet(1).with_header(Header::Xcp { rtt: 0.0, spacing: 0.0, feedback: 7.0 });
        guided.write_feedback(-3.0);
        assert_eq!(guided.header(), Header::Xcp { rtt: 0.0, spacing: 0.0, feedback: -3.0 });
        let mut plain = packet(1);
        plain.write_feedback(-3.0);
        assert_eq!(plain.header(), Header::NONE);
    }
}

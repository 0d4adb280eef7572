//! Packets: small values that queues and wires hold in line.

use crate::base::schema::{positive, positive_if_given};
use crate::base::units::{Bytes, Time};

crate::parameters! {
    /// Sizes of packets on the wire.
    pub struct Format {
        /// Payload of a full data packet.
        pub payload: Bytes = Bytes(1000), where positive;
        /// Headers of a data packet, all layers together.
        pub header: Bytes = Bytes(40);
        /// An acknowledgement or another control packet, headers and all.
        pub ack: Bytes = Bytes(40), where positive;
        /// A SYN or its answer, which have options of their own (Linux: 60 B); none for as much as an `ack`.
        pub syn: Option<Bytes> = None, where positive_if_given;
        /// Whether an acknowledgement is 4 B longer, and by 8 B for each run of segments beyond a gap that a
        /// receiver would report in it, of which there are three at most (RFC 2018, with time stamps).
        pub sack: bool = false;
    }
}

impl Format {
    /// How many packets carry `payload`; a flow of nothing still sends one.
    pub fn packets(&self, payload: Bytes) -> u64 {
        payload.0.div_ceil(self.payload.0).max(1)
    }

    /// A full data packet on the wire; no number is too large, for scenarios are checked by this.
    pub fn full(&self) -> Bytes {
        Bytes(self.payload.0.saturating_add(self.header.0))
    }

    /// What `payload` takes on the wire.
    pub fn on_wire(&self, payload: Bytes) -> Bytes {
        Bytes(payload.0 + self.packets(payload) * self.header.0)
    }

    /// An acknowledgement that tells of as many runs as it can; no number is too large.
    pub fn longest_ack(&self) -> Bytes {
        Bytes(self.ack.0.saturating_add(u64::from(self.sack_options(3))))
    }

    /// By how much an ACK is longer that tells of so many runs beyond a gap, or of what came again.
    pub fn sack_options(&self, runs: usize) -> u16 {
        if self.sack && runs > 0 { 4 + 8 * runs.min(3) as u16 } else { 0 }
    }

    /// A control packet of a flow, whose way is still to be filled in.
    pub fn control(&self, kind: Kind, flow: FlowNumber, sent_at: Time) -> Packet {
        let bytes = match kind {
            Kind::Syn | Kind::SynAck => self.syn.unwrap_or(self.ack),
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

/// Number of a flow, as packets carry it.
pub type FlowNumber = u32;

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Payload.
    Data,
    /// Anything that a stack from elsewhere sends from a flow's source.
    Datagram,
    /// Opens a flow.
    Syn,
    /// Answers a [`Syn`](Self::Syn).
    SynAck,
    /// Asks routers for feedback without payload.
    Probe,
    /// Answers a [`Probe`](Self::Probe).
    ProbeAck,
    /// Acknowledges data.
    Ack,
    /// Reports a gap to a go-back-N sender.
    Nack,
    /// DCQCN's congestion notification.
    Cnp,
    /// Anything that a stack from elsewhere sends from a flow's target.
    Return,
    /// Tells routers that the flow is over.
    Fin,
    /// PFC: stop sending data on the link that leads here.
    Pause,
    /// PFC: go on.
    Resume,
}

impl Kind {
    /// Whether this is a control packet, which PFC never pauses and priority lets pass.
    pub fn is_control(self) -> bool {
        !matches!(self, Self::Data | Self::Datagram)
    }

    /// Whether this is on its way back from a receiver.
    pub fn is_answer(self) -> bool {
        use Kind::{Ack, Cnp, Nack, ProbeAck, Return, SynAck};
        matches!(self, SynAck | ProbeAck | Ack | Nack | Cnp | Return)
    }

    /// Whether this answers one packet of a flow in progress, so that it tells of a round trip.
    pub fn is_acknowledgement(self) -> bool {
        matches!(self, Self::Ack | Self::Nack | Self::ProbeAck)
    }

    /// Whether this is a frame between neighbours, which goes before all else.
    pub fn is_frame(self) -> bool {
        matches!(self, Self::Pause | Self::Resume)
    }
}

/// Yes-or-no facts about a packet, in one byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// Routers may mark it (ECT).
    pub const ECN_CAPABLE: Self = Self(1);
    /// Data: a router has marked it (CE). ACK: the data it answers was marked (ECE).
    pub const MARKED: Self = Self(2);
    /// Data: the receiver is to acknowledge it at once.
    pub const WANTS_ACK: Self = Self(4);
    /// Data: the sender has answered a mark (CWR).
    pub const REDUCED: Self = Self(8);

    /// How the header is packed: the four highest bits.
    fn layout(self) -> u8 {
        self.0 >> 4
    }

    fn with_layout(self, layout: u8) -> Self {
        Self(self.0 & 0x0f | layout << 4)
    }

    /// How many marks an ACK counts, modulo 8 (`AccECN`'s field ACE); instead of all flags but the first.
    pub fn count(self) -> u8 {
        self.0 >> 1 & 7
    }

    /// These, counting so many marks.
    #[must_use]
    pub fn with_count(self, marks: u32) -> Self {
        Self(self.0 & !0x0e | (marks as u8 & 7) << 1)
    }

    /// Whether all of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and, if `condition` holds, `other`.
    #[must_use]
    pub fn with_if(self, other: Self, condition: bool) -> Self {
        if condition { Self(self.0 | other.0) } else { self }
    }
}

/// What a packet says besides its sequence number: to routers, which may write it, or to the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Header {
    /// ACK, and everything that has nothing to say.
    Ack {
        /// The run of received segments beyond the ACK's number that holds the one just received (RFC
        /// 2018, first block), from and up to; empty if there is none.
        block: (u32, u32),
        /// What routers wrote into the packet that it answers.
        feedback: f32,
    },
    /// RCP, to routers.
    Rcp {
        /// The sender's round-trip time in seconds; 0 while it has none.
        rtt: f32,
        /// The least rate that a router on the way offers, in bytes a second.
        rate: f32,
    },
    /// XCP, to routers.
    Xcp {
        /// The sender's round-trip time in seconds; 0 while it has none.
        rtt: f32,
        /// Seconds between packets, on average over a round trip.
        spacing: f32,
        /// The change of throughput that the sender wishes and routers bound, in bytes a second.
        feedback: f32,
    },
    /// To queues that serve by priority: the smaller goes first. What says nothing has priority 0.
    Priority(u64),
    /// PDQ, to routers.
    Pdq {
        /// What the routers so far have granted.
        grant: Grant,
        /// What is left to send, in seconds at the sender's line rate.
        remaining: f32,
        /// The sender's round-trip time in seconds.
        rtt: f32,
    },
    /// D3, to routers.
    D3 {
        /// The rate that the sender asks for until it asks again, in bytes a second.
        desired: f32,
        /// The least rate that a router on the way allots, in bytes a second.
        allotted: f32,
    },
    /// Fair shares, to routers, which answer on the way back ([`Share`]).
    FairShare {
        /// What the sender and the routers so far let the flow have at most, in bytes a second.
        limit: f32,
        /// Whether the flow is about to end and no longer wants a share.
        leaves: bool,
    },
    /// Quick-Start, to routers.
    QuickStart {
        /// The rate that routers so far approve, as RFC 4782 §3.1 codes it; 0 for none.
        code: u8,
    },
}

/// What fair-share routers tell a flow, on the way back from its receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The least share that a router so far has for it, in bytes a second.
    pub rate: f64,
    /// What waits of it at all of them, in bytes.
    pub queued: f64,
}

/// Steps an octave for shares, which go from 1 B/s to 4 TB/s: 0.09 % exact.
const RATES: f64 = 768.0;
/// The largest number of steps: beyond it the two numbers side by side would be no finite float.
const MOST_STEPS: u16 = 0x7f7f;
/// Steps an octave for bytes, up to 4 GB: 0.03 % exact.
const QUEUES: f64 = 2048.0;

impl Share {
    /// What no router has written yet.
    pub const OPEN: Self = Self { rate: f64::MAX, queued: 0.0 };

    /// As the one number that headers carry: both on logarithmic scales, in sixteen bits each. Shares are
    /// rounded down, so that no more is shared out than there is.
    pub fn number(self) -> f32 {
        // What was on the scale stays where it was.
        let rate = 1.0 + (self.rate.max(1.0).log2() * RATES + 1e-3).floor();
        let queued = (self.queued + 1.0).log2() * QUEUES;
        f32::from_bits(both((rate as u16).min(MOST_STEPS), queued.round() as u16))
    }

    /// What a number says.
    pub fn of(number: f32) -> Self {
        let (rate, queued) = each(number.to_bits());
        Self {
            rate: (f64::from(rate.max(1) - 1) / RATES).exp2(),
            queued: (f64::from(queued) / QUEUES).exp2() - 1.0,
        }
    }
}

/// What PDQ's routers let a flow do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Grant {
    /// Send, at so many bytes a second.
    Rate(f32),
    /// Wait.
    Pause {
        /// The router that says so: the number of its link.
        by: u16,
        /// When to ask again, in fifths of a round trip; 0 for the sender's own choice.
        probe_after: u8,
    },
}

impl Grant {
    /// As the one number that headers carry: a rate, or below zero a pause, in 24 bits, which a float
    /// holds exactly.
    pub fn number(self) -> f32 {
        match self {
            Self::Rate(rate) => rate,
            Self::Pause { by, probe_after } => {
                -((u32::from(by) << 8 | u32::from(probe_after)) as f32) - 1.0
            }
        }
    }

    /// The grant that a number says.
    pub fn of(number: f32) -> Self {
        if number >= 0.0 {
            return Self::Rate(number);
        }
        let code = (-number - 1.0) as u32;
        Self::Pause { by: (code >> 8) as u16, probe_after: code as u8 }
    }
}

impl Header {
    /// Nothing.
    pub const NONE: Self = Self::Ack { block: (0, 0), feedback: 0.0 };

    /// The part that a receiver sends back.
    pub fn feedback(self) -> f32 {
        match self {
            Self::Rcp { rate, .. } => rate,
            Self::Ack { feedback, .. } | Self::Xcp { feedback, .. } => feedback,
            Self::Priority(_) => 0.0,
            Self::Pdq { grant, .. } => grant.number(),
            Self::D3 { allotted, .. } => allotted,
            Self::FairShare { .. } => Share::OPEN.number(),
            Self::QuickStart { code } => f32::from(code),
        }
    }
}

/// A header as packets carry it, in eight bytes; four of the flags tell which kind it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed(u32, u32);

/// How a header is packed.
const BLOCK: u8 = 0;
/// An ACK's block, counted from its number, and its feedback.
const FEEDBACK: u8 = 1;
const RCP: u8 = 2;
/// XCP's two times as sixteen bits each, and its feedback.
const XCP: u8 = 3;
/// A number of 64 bits.
const PRIORITY: u8 = 4;
/// PDQ's grant, and its two times as sixteen bits each.
const PDQ: u8 = 5;
const D3: u8 = 6;
const FAIR_SHARE: u8 = 7;
const QUICK_START: u8 = 8;

/// A time in seconds on a logarithmic scale of 2048 steps an octave, from 1 ns to 4.2 s: 0.02 % exact.
fn coarse(seconds: f32) -> u16 {
    on_scale(seconds, 2048.0)
}

fn fine(steps: u16) -> f32 {
    off_scale(steps, 2048.0)
}

/// Steps an octave for what is left to send, which may last hours: 0.04 % exact.
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
    /// What it says.
    #[expect(clippy::inline_always, reason = "a call for it is 2 % of a run of TCP")]
    #[inline(always)]
    pub fn header(&self) -> Header {
        let Packed(first, second) = self.packed;
        match self.flags.layout() {
            BLOCK => Header::Ack { block: (first, second), feedback: 0.0 },
            FEEDBACK => {
                let (offset, length) = each(first);
                let from = self.sequence + u32::from(offset);
                let block = if length > 0 { (from, from + u32::from(length)) } else { (0, 0) };
                Header::Ack { block, feedback: f32::from_bits(second) }
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
            _ => {
                let (rtt, spacing) = each(first);
                let feedback = f32::from_bits(second);
                Header::Xcp { rtt: fine(rtt), spacing: fine(spacing), feedback }
            }
        }
    }

    /// The same packet, saying this. Of the block of an ACK with feedback no more is said than 65535
    /// segments, and nothing if it begins further off: transports that routers guide can do without.
    #[must_use]
    pub fn with_header(mut self, header: Header) -> Self {
        let (layout, packed) = match header {
            Header::Ack { block, feedback: 0.0 } => (BLOCK, Packed(block.0, block.1)),
            Header::Ack { block: (from, to), feedback } => {
                let beyond = from.checked_sub(self.sequence);
                let offset = beyond.and_then(|beyond| u16::try_from(beyond).ok());
                let length = (to - from).min(u32::from(u16::MAX)) as u16;
                let near = offset.map_or(0, |offset| both(offset, length));
                (FEEDBACK, Packed(near, feedback.to_bits()))
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
        };
        self.packed = packed;
        self.flags = self.flags.with_layout(layout);
        self
    }

    /// Writes what routers tell the sender into a header that has a place for it.
    pub fn write_feedback(&mut self, feedback: f32) {
        if matches!(self.flags.layout(), FEEDBACK | RCP | XCP | PDQ | D3) {
            self.packed.1 = feedback.to_bits();
        }
    }

    /// Its place among packets that wait: the smaller goes first.
    pub fn priority(&self) -> u64 {
        let Packed(first, second) = self.packed;
        if self.flags.layout() == PRIORITY { u64::from(first) << 32 | u64::from(second) } else { 0 }
    }
}

/// A packet. It is moved from queue to wire to queue: half a cache line, so that a hop touches no other
/// memory on its account (docs/performance.md).
///
/// Data carries one segment of a flow; segments are counted from 0 and all but the last are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When the sender handed the packet to its host's port; an ACK echoes that of the data it answers.
    pub sent_at: Time,
    /// The flow it belongs to.
    pub flow: FlowNumber,
    /// Where it is on its way: index into the routes of the port that is to send it next.
    pub next_hop: u32,
    /// Data: its segment. ACK and NACK: the first segment that the receiver lacks. Datagrams: how many its
    /// sender has sent before. Frames: the link meant.
    pub sequence: u32,
    /// What else it says ([`header`](Self::header)).
    pub packed: Packed,
    /// Size on the wire.
    pub bytes: u16,
    /// What it is for.
    pub kind: Kind,
    /// What else is true of it.
    pub flags: Flags,
}

const _: () =
    assert!(size_of::<Packet>() <= 32, "a packet outgrew its place (docs/performance.md)");

impl Packet {
    /// Whether a router has marked it, or it echoes such a mark.
    pub fn is_marked(&self) -> bool {
        self.flags.has(Flags::MARKED)
    }

    /// Marks the packet if routers may; says whether that is new.
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
            let said = packet(sequence).with_header(Header::Ack { block, feedback });
            prop_assert!((said.header().feedback() - feedback).abs() < f32::EPSILON);
            if let Header::Ack { block: (from, to), .. } = said.header() {
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
            let said = packet(sequence).with_header(Header::Xcp { rtt, spacing: rtt * ratio, feedback });
            let Header::Xcp { rtt: told, spacing, .. } = said.header() else {
                return Err(TestCaseError::fail("another kind"));
            };
            prop_assert!((told / rtt - 1.0).abs() < 3e-4 && (spacing / (rtt * ratio) - 1.0).abs() < 3e-4);
        }
    }

    proptest! {
        #[test]
        fn shares_are_rounded_down_and_once_only(rate in 1.0..4e12_f64, queued in 0.0..4e9_f64) {
            let told = Share::of(Share { rate, queued }.number());
            prop_assert!(told.rate <= rate * 1.000_001 && told.rate > rate * 0.999, "{told:?}");
            prop_assert!((told.queued / queued - 1.0).abs() < 3e-4 || queued < 1.0, "{told:?}");
            prop_assert_eq!(Share::of(told.number()), told);
            prop_assert!(told.number().is_finite() && told.number() != 0.0);
        }
    }

    #[test]
    fn syns_and_acks_of_gaps_are_as_long_as_their_options_make_them() {
        let plain: Format = crate::base::schema::defaults();
        let linux = Format { syn: Some(Bytes(60)), ack: Bytes(52), sack: true, ..plain.clone() };
        let bytes = |format: &Format, kind| format.control(kind, 0, Time::ZERO).bytes;
        let kinds = [Kind::Syn, Kind::SynAck, Kind::Ack];
        assert_eq!(kinds.map(|kind| bytes(&plain, kind)), [40, 40, 40]);
        assert_eq!(kinds.map(|kind| bytes(&linux, kind)), [60, 60, 52]);
        assert_eq!([0, 1, 3, 9].map(|runs| linux.sack_options(runs)), [0, 12, 28, 28]);
        assert_eq!(plain.sack_options(3), 0);
        assert_eq!(linux.longest_ack(), Bytes(80));
    }

    #[test]
    fn routers_write_where_there_is_a_place() {
        let mut guided =
            packet(1).with_header(Header::Xcp { rtt: 0.0, spacing: 0.0, feedback: 7.0 });
        guided.write_feedback(-3.0);
        assert_eq!(guided.header(), Header::Xcp { rtt: 0.0, spacing: 0.0, feedback: -3.0 });
        let mut plain = packet(1);
        plain.write_feedback(-3.0);
        assert_eq!(plain.header(), Header::NONE);
    }
}

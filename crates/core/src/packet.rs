//! Packets: small values that queues and wires hold in line.

use crate::parameters::positive;
use crate::units::{Bytes, Time};

crate::parameters! {
    /// Sizes of packets on the wire.
    pub struct Format {
        /// Payload of a full data packet.
        pub payload: Bytes = Bytes(1000), where positive;
        /// Headers of a data packet, all layers together.
        pub header: Bytes = Bytes(40);
        /// An acknowledgement or another control packet, headers and all.
        pub ack: Bytes = Bytes(40), where positive;
    }
}

impl Format {
    /// How many packets carry `payload`; a flow of nothing still sends one.
    pub fn packets(&self, payload: Bytes) -> u64 {
        payload.0.div_ceil(self.payload.0).max(1)
    }

    /// What `payload` takes on the wire.
    pub fn on_wire(&self, payload: Bytes) -> Bytes {
        Bytes(payload.0 + self.packets(payload) * self.header.0)
    }

    /// A control packet of a flow, whose way is still to be filled in.
    pub fn control(&self, kind: Kind, flow: FlowSlot, sent_at: Time) -> Packet {
        Packet {
            sent_at,
            flow,
            next_hop: 0,
            sequence: 0,
            header: Header::None,
            bytes: self.ack.0 as u16,
            kind,
            flags: Flags::NONE,
        }
    }
}

/// Index of a live flow in the simulation.
pub type FlowSlot = u32;

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Payload.
    Data,
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
    /// PFC: stop sending data on the link that leads here.
    Pause,
    /// PFC: go on.
    Resume,
}

impl Kind {
    /// Whether this is a control packet, which PFC never pauses and priority lets pass.
    pub fn is_control(self) -> bool {
        self != Self::Data
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
    /// Nothing.
    None,
    /// ACK and SYN-ACK.
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
}

impl Header {
    /// The part that a receiver sends back.
    pub fn feedback(self) -> f32 {
        match self {
            Self::None => 0.0,
            Self::Rcp { rate, .. } => rate,
            Self::Ack { feedback, .. } | Self::Xcp { feedback, .. } => feedback,
        }
    }
}

/// A packet. It is moved from queue to wire to queue, so it is small, and a hop touches no other memory
/// on its account (docs/performance.md).
///
/// Data carries one segment of a flow; segments are counted from 0 and all but the last are full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// When the sender handed the packet to its host's port; an ACK echoes that of the data it answers.
    pub sent_at: Time,
    /// The flow it belongs to.
    pub flow: FlowSlot,
    /// Where it is on its way: index into the routes of its next port.
    pub next_hop: u32,
    /// Data: its segment. ACK and NACK: the first segment that the receiver lacks. Frames: the link meant.
    pub sequence: u32,
    /// What else it says.
    pub header: Header,
    /// Size on the wire.
    pub bytes: u16,
    /// What it is for.
    pub kind: Kind,
    /// What else is true of it.
    pub flags: Flags,
}

const _: () =
    assert!(size_of::<Packet>() <= 40, "a packet outgrew its place (docs/performance.md)");

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

//! Packets: small values stored in queues and links.

mod format;
mod header;
mod packed;

pub use format::Format;
pub use header::{AckOptions, Grant, Header, SACK_BLOCKS, Share};
pub use packed::Packed;

use crate::base::units::Time;

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
    /// Answers a [`Probe`](Self::Probe), or the [`Fin`](Self::Fin) of a flow with credit.
    ProbeAck,
    /// Requests credit from the receiving host, without payload.
    Request,
    /// Requests an ACK, without payload, from behind the data in queues (SLEEK).
    LossProbe,
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
    /// Notifies routers of the end of the flow, or its receiver of the end of the need for credit.
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
    /// packet counts as data, and a loss probe, which measures the delay of data.
    pub fn is_control(self) -> bool {
        !matches!(self, Self::Data | Self::Datagram | Self::Trimmed | Self::LossProbe)
    }

    /// Returns true if the flow may wait for the departure of such a packet from its host.
    pub fn is_awaited(self) -> bool {
        !self.is_control() && self != Self::LossProbe
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
    /// Request for credit: no credit has answered an earlier one. Credit: the receiver learned of the flow
    /// from such a request, so the earlier one was lost.
    pub const AFTER_TIMEOUT: Self = Self(4);
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

    /// Number of marks that an ACK reports, modulo 8 (AccECN's field ACE), in the bits of all flags but the
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

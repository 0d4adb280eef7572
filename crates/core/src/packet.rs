//! Packets, and the arena they live in.

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
}

/// Index of a packet in the arena.
pub type PacketId = u32;

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
}

/// A packet: small enough to stay within one cache line, since every hop touches it.
///
/// Data carries one segment of a flow; segments are counted from 0 and all but the last are full.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// When the sender handed the packet to its host's port; an ACK echoes that of the data it answers.
    pub sent_at: Time,
    /// The flow it belongs to.
    pub flow: FlowSlot,
    /// Where it starts: index into the routes of its first port.
    pub route: u32,
    /// Data: its segment. ACK and NACK: the first segment that the receiver lacks.
    pub sequence: u32,
    /// ACK: the run of received segments beyond `sequence` that holds the one just received (RFC 2018,
    /// first block), from and up to; empty if there is none.
    pub block: (u32, u32),
    /// Size on the wire, in bytes.
    pub wire_bytes: u16,
    /// Payload, in bytes.
    pub payload_bytes: u16,
    /// What it is for.
    pub kind: Kind,
    /// Whether routers may mark it (ECT).
    pub ecn_capable: bool,
    /// Data: a router has marked it (CE). ACK: the data it answers was marked (ECE).
    pub marked: bool,
    /// Data: the receiver is to acknowledge it at once.
    pub wants_ack: bool,
}

const _: () =
    assert!(size_of::<Packet>() <= 64, "a packet outgrew its cache line (docs/performance.md)");

/// What ports need to know of a packet: it travels by value, so that a hop need not touch the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The packet.
    pub id: PacketId,
    /// Where it is on its way: index into the routes of its next port.
    pub next_hop: u32,
    /// Size on the wire.
    pub bytes: u16,
    /// Whether routers may mark it.
    pub ecn_capable: bool,
    /// Whether it is a control packet.
    pub is_control: bool,
}

impl Tag {
    /// Whether this is a frame between neighbours (PFC), which goes before all else.
    pub fn is_frame(self) -> bool {
        self.next_hop == NEIGHBOUR
    }
}

/// The place in the routes that leads nowhere: where frames between neighbours are.
pub const NEIGHBOUR: u32 = 0;

/// The arena: events, queues and links hold ids of 4 bytes, and nothing is allocated once it is warm.
#[derive(Debug, Default)]
pub struct Packets {
    slots: Vec<Packet>,
    free: Vec<PacketId>,
}

impl Packets {
    /// Takes a packet in.
    pub fn insert(&mut self, packet: Packet) -> PacketId {
        if let Some(id) = self.free.pop() {
            self.slots[id as usize] = packet;
            return id;
        }
        self.slots.push(packet);
        self.slots.len() as PacketId - 1
    }

    /// Lets a packet go.
    pub fn remove(&mut self, id: PacketId) -> Packet {
        self.free.push(id);
        self.slots[id as usize]
    }

    /// Marks a packet; says whether it was not marked before.
    pub fn mark(&mut self, id: PacketId) -> bool {
        !std::mem::replace(&mut self.slots[id as usize].marked, true)
    }

    /// What ports need to know of a packet that is about to start.
    pub fn tag(&self, id: PacketId) -> Tag {
        let packet = &self.slots[id as usize];
        Tag {
            id,
            next_hop: packet.route,
            bytes: packet.wire_bytes,
            ecn_capable: packet.ecn_capable,
            is_control: packet.kind.is_control(),
        }
    }

    /// How many packets there are.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl std::ops::Index<PacketId> for Packets {
    type Output = Packet;
    fn index(&self, id: PacketId) -> &Packet {
        &self.slots[id as usize]
    }
}

impl std::ops::IndexMut<PacketId> for Packets {
    fn index_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.slots[id as usize]
    }
}

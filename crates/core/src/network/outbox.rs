//! Reports of the network to the simulation.

use crate::base::units::Time;
use crate::model::packet::{FlowNumber, Packet};

/// Departure of a packet that waited in its host's port, or its drop there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Flow of the packet.
    pub flow: FlowNumber,
    /// End of its transmission, or time of its drop.
    pub ends: Time,
}

/// Drop of a packet by a queue or a buffer, or its loss on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketLoss {
    /// Flow of the packet.
    pub flow: FlowNumber,
    /// Time of the loss.
    pub time: Time,
}

/// Reports that are yet to be processed. The memory is reused: a report costs no allocation.
#[derive(Default)]
pub struct Outbox {
    /// Departures from hosts' ports that were not predicted.
    pub departures: Vec<Departure>,
    /// Packets that were lost.
    pub losses: Vec<PacketLoss>,
    /// Packets that the queue of the port that is served has dropped. The network disposes of them
    /// before it returns.
    pub rejects: Vec<Packet>,
}

//! Reports of the network to the simulation.

use crate::base::random::Random;
use crate::base::units::Time;
use crate::model::packet::{FlowNumber, Packet};
use crate::queueing::Context;

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
    /// Packets that the queue of the port that is served has dropped or trimmed. The network disposes of
    /// them before it returns.
    pub rejects: Rejects,
    /// Headers that are about to return to their senders.
    pub returned: Vec<Packet>,
}

/// Packets that a queue has dropped or trimmed.
#[derive(Debug, Default)]
pub struct Rejects {
    /// Packets that were dropped.
    pub dropped: Vec<Packet>,
    /// Packets that were trimmed, as they were, but with the bytes that were cut off.
    pub trimmed: Vec<Packet>,
}

impl Rejects {
    /// Returns the environment of an operation of the queue.
    pub fn context<'a>(
        &'a mut self,
        now: Time,
        random: &'a mut Random,
        marks: &'a mut u64,
    ) -> Context<'a> {
        let Self { dropped, trimmed } = self;
        Context { now, random, dropped, trimmed, marks }
    }

    /// Returns true if no packet was dropped or trimmed.
    pub fn is_empty(&self) -> bool {
        self.dropped.is_empty() && self.trimmed.is_empty()
    }
}

//! Test fixture: a queue and its context.

use crate::base::random::Random;
use crate::base::schema::defaults;
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::{Flags, FlowNumber, Format, Kind, Packet};
use crate::queueing::disciplines::QueueKind;
use crate::queueing::{Context, LinkScale, PortQueue, Queue};

/// Port of 10 Gb/s in a network with a base RTT of 10 us, and full packets of 1538 B.
pub(crate) const SCALE: LinkScale = LinkScale {
    rate: Rate::from_gbps(10),
    opposite_rate: Rate::from_gbps(10),
    base_rtt: Duration::from_micros(10),
    packet: Bytes(1538),
    is_last_hop: false,
};

/// Creates an ECN-capable packet of `flow`.
pub(crate) fn packet(flow: FlowNumber, sequence: u32, bytes: u16) -> Packet {
    let format: Format = defaults();
    let flags = Flags::NONE.with_if(Flags::ECN_CAPABLE, true);
    Packet { sequence, bytes, flags, ..format.control(Kind::Data, flow, Time::ZERO) }
}

/// Queue under test and its context.
pub(crate) struct QueueFixture<Q: ?Sized> {
    pub(crate) now: Time,
    pub(crate) random: Random,
    pub(crate) marks: u64,
    pub(crate) trimmed: Vec<Packet>,
    pub(crate) queue: Box<Q>,
}

/// Builds the queue of a discipline that decides on departure.
pub(crate) fn fixture(discipline: &impl QueueKind) -> QueueFixture<dyn Queue> {
    match discipline.build(SCALE) {
        PortQueue::OnDeparture(queue) => QueueFixture::new(queue),
        PortQueue::OnArrival(_) => panic!("expected a queue that decides on departure"),
    }
}

impl<Q: Queue + ?Sized> QueueFixture<Q> {
    pub(crate) fn new(queue: Box<Q>) -> Self {
        let random = Random::new(1, "queue");
        Self { now: Time::ZERO, random, marks: 0, trimmed: Vec::new(), queue }
    }

    /// Enqueues a packet and returns the dropped packets.
    pub(crate) fn enqueue(&mut self, packet: Packet) -> Vec<Packet> {
        let Self { now, random, marks, trimmed, queue } = self;
        let mut dropped = Vec::new();
        let mut context = Context { now: *now, random, dropped: &mut dropped, trimmed, marks };
        queue.enqueue(packet, &mut context);
        dropped
    }

    /// Dequeues a packet. Returns the packet and the dropped packets.
    pub(crate) fn dequeue(&mut self) -> (Option<Packet>, Vec<Packet>) {
        let Self { now, random, marks, trimmed, queue } = self;
        let mut dropped = Vec::new();
        let mut context = Context { now: *now, random, dropped: &mut dropped, trimmed, marks };
        (queue.dequeue(&mut context), dropped)
    }

    /// Dequeues all packets and returns their flows and sequence numbers.
    pub(crate) fn drain(&mut self) -> Vec<(FlowNumber, u32)> {
        let popped = std::iter::from_fn(|| self.dequeue().0);
        popped.map(|packet| (packet.flow, packet.sequence)).collect()
    }
}

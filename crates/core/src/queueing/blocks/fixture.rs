//! A queue under test, with all that it may use.

use crate::base::random::Random;
use crate::base::schema::defaults;
use crate::base::units::{Rate, Time};
use crate::model::packet::{Flags, FlowNumber, Format, Kind, Packet};
use crate::queueing::disciplines::QueueKind;
use crate::queueing::{Context, PortQueue, Queue};

/// A packet of `flow` that routers may mark.
pub(crate) fn packet(flow: FlowNumber, sequence: u32, bytes: u16) -> Packet {
    let format: Format = defaults();
    let flags = Flags::NONE.with_if(Flags::ECN_CAPABLE, true);
    Packet { sequence, bytes, flags, ..format.control(Kind::Data, flow, Time::ZERO) }
}

/// A queue and its surroundings.
pub(crate) struct Bench<Q: ?Sized> {
    pub(crate) now: Time,
    pub(crate) random: Random,
    pub(crate) marks: u64,
    pub(crate) queue: Box<Q>,
}

/// The queue that a discipline builds, which must be served as packets depart.
pub(crate) fn bench(discipline: &impl QueueKind) -> Bench<dyn Queue> {
    match discipline.build(Rate::from_gbps(10)) {
        PortQueue::OnDeparture(queue) => Bench::new(queue),
        PortQueue::OnArrival(_) => panic!("it decides on departure"),
    }
}

impl<Q: Queue + ?Sized> Bench<Q> {
    pub(crate) fn new(queue: Box<Q>) -> Self {
        Self { now: Time::ZERO, random: Random::new(1, "queue"), marks: 0, queue }
    }

    /// Pushes a packet; gives what is dropped.
    pub(crate) fn push(&mut self, packet: Packet) -> Vec<Packet> {
        let Self { now, random, marks, queue } = self;
        let mut dropped = Vec::new();
        queue.enqueue(packet, &mut Context { now: *now, random, dropped: &mut dropped, marks });
        dropped
    }

    /// Pops a packet; gives what is dropped beside it.
    pub(crate) fn pop(&mut self) -> (Option<Packet>, Vec<Packet>) {
        let Self { now, random, marks, queue } = self;
        let mut dropped = Vec::new();
        let mut context = Context { now: *now, random, dropped: &mut dropped, marks };
        (queue.dequeue(&mut context), dropped)
    }

    /// Pops all that waits, and says of which flow each is and its number in it.
    pub(crate) fn empty(&mut self) -> Vec<(FlowNumber, u32)> {
        let popped = std::iter::from_fn(|| self.pop().0);
        popped.map(|packet| (packet.flow, packet.sequence)).collect()
    }
}

//! What queues are made of: rules that judge packets, lines in which they wait, and how the two go
//! together.
//!
//! A packet leaves the queue when its transmission starts; what is on the wire no longer waits.

pub mod blocks;
mod capacity;
pub mod disciplines;
mod fifo;
mod priority_counts;

pub use capacity::Capacity;
pub use fifo::{AdmissionGate, Fifo, PacketFifo};
pub use priority_counts::PriorityCounts;

use crate::base::random::Random;
use crate::base::units::{Bytes, Rate, Time};
use crate::model::packet::{FlowNumber, Packet};

/// How a discipline works, which decides what a hop costs.
pub enum PortQueue {
    /// First in, first out, and everything is decided when a packet arrives.
    OnArrival(Box<dyn Admission>),
    /// Anything else.
    OnDeparture(Box<dyn Queue>),
}

/// What waits in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Bytes on the wire.
    pub bytes: u64,
    /// Packets.
    pub packets: u32,
}

impl Backlog {
    /// Adds a packet of `bytes`.
    pub fn add(&mut self, bytes: u16) {
        self.bytes += u64::from(bytes);
        self.packets += 1;
    }

    /// Takes a packet of `bytes` away.
    pub fn remove(&mut self, bytes: u16) {
        self.bytes -= u64::from(bytes);
        self.packets -= 1;
    }
}

/// What becomes of a packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It waits its turn.
    Accept,
    /// It is marked, if it can be, and waits its turn.
    Mark,
    /// It is dropped.
    Drop,
}

/// What a packet finds when it arrives at a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueState {
    /// The present.
    pub now: Time,
    /// What waits.
    pub backlog: Backlog,
    /// When the last packet left the queue; if nothing waits, it has been empty since. Kept for rules that
    /// are always asked ([`Admission::accepts_all_below`]).
    pub last_departure: Time,
}

/// A rule that decides when a packet arrives.
pub trait Admission: Send {
    /// While the bytes that wait, with the packet that comes, are fewer than this, every packet is accepted
    /// unmarked, and ports need not ask. Nothing by default: they always ask.
    fn accepts_all_below(&self) -> u64 {
        0
    }

    /// Judges `packet`, by what it finds.
    fn admit(&mut self, packet: &Packet, state: &QueueState, random: &mut Random) -> Verdict;
}

/// What a queue may use while it handles a packet.
pub struct Context<'a> {
    /// The present.
    pub now: Time,
    /// The port's own random stream.
    pub random: &'a mut Random,
    /// Packets that the queue has dropped.
    pub dropped: &'a mut Vec<Packet>,
    /// How many packets the port has marked.
    pub marks: &'a mut u64,
}

impl Context<'_> {
    /// Marks a packet if routers may.
    pub fn mark(&mut self, packet: &mut Packet) {
        *self.marks += u64::from(packet.mark());
    }
}

/// A queue that may decide at any time.
pub trait Queue: Send {
    /// Takes a packet in, or drops it or others.
    fn enqueue(&mut self, packet: Packet, context: &mut Context<'_>);

    /// Gives up the packet to transmit next.
    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet>;

    /// What waits.
    fn backlog(&self) -> Backlog;

    /// Shows every packet that waits, in no particular order.
    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet));

    /// Whether what [`dequeue`](Self::dequeue) gives depends only on what waits, is never dropped and does not
    /// draw: ports may then ask for it later than they send it, and let what need not wait pass by.
    fn allows_lazy_service(&self) -> bool {
        false
    }

    /// A packet goes by, because nothing waits and the transmitter is free; told to patient queues only.
    fn on_bypass(&mut self, _packet: &Packet) {}

    /// Whether it weighs flows, and so wants to be told of each ([`register_flow`](Self::register_flow),
    /// [`unregister_flow`](Self::unregister_flow)).
    fn uses_flow_weights(&self) -> bool {
        false
    }

    /// A flow of this class has started, whose packets may come this way.
    fn register_flow(&mut self, _flow: FlowNumber, _class: &str) {}

    /// A flow has ended.
    fn unregister_flow(&mut self, _flow: FlowNumber) {}

    /// What has come and was dropped, by priority, if that is counted.
    fn priority_counts(&self) -> Option<&PriorityCounts> {
        None
    }
}

/// A kind of queue.
pub trait QueueKind {
    /// The queue of one port whose link has the given rate.
    fn build(&self, rate: Rate) -> PortQueue;

    /// The most it holds, if it has a limit of its own.
    fn capacity(&self) -> Option<Capacity>;

    /// What a flow may send before others have their turn, if that is limited: a full packet at least, or
    /// it might be passed over again and again.
    fn quantum(&self) -> Option<Bytes> {
        None
    }

    /// The classes of flows that it gives weights of their own, by name.
    fn weighted_classes(&self) -> Vec<&str> {
        Vec::new()
    }

    /// How many priorities it tells apart, if it looks at them and that is limited.
    fn priorities(&self) -> Option<u32> {
        None
    }
}

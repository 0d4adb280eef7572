//! Queues at ports: the traits of queue disciplines, the FIFO and its admission control.
//!
//! A packet leaves the queue when its transmission starts. The packet in transmission does not
//! count as queued.

pub mod blocks;
mod capacity;
pub mod disciplines;
mod fifo;
mod priority_counts;

pub use capacity::{Capacity, Limit, LinkScale};
pub use fifo::{AdmissionGate, Fifo, PacketFifo};
pub use priority_counts::PriorityCounts;

use crate::base::random::Random;
use crate::base::units::{Bytes, Rate, Time};
use crate::model::packet::{FlowNumber, Kind, Packet};

/// Queue of one port. Its kind determines the cost of a hop.
pub enum PortQueue {
    /// FIFO. An admission rule accepts, marks or drops each packet when it arrives.
    OnArrival(Box<dyn Admission>),
    /// Any other queue. It may also mark, drop or reorder when a packet departs.
    OnDeparture(Box<dyn Queue>),
}

/// Priorities of packets; 0 is the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priorities {
    /// Number of priority classes, counted from 0.
    Classes(u32),
    /// Any number.
    Numbers,
}

/// Queued bytes and packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Bytes, headers included.
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

    /// Removes a packet of `bytes`.
    pub fn remove(&mut self, bytes: u16) {
        self.bytes -= u64::from(bytes);
        self.packets -= 1;
    }
}

/// Decision of an admission rule about an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet is enqueued.
    Accept,
    /// The packet is ECN-marked if it is ECN-capable, and enqueued.
    Mark,
    /// The packet is dropped.
    Drop,
}

/// State of a queue at the arrival of a packet.
#[derive(Clone, Copy, Debug)]
pub struct QueueState {
    /// Current time.
    pub now: Time,
    /// Backlog without the arriving packet.
    pub backlog: Backlog,
    /// Time of the last departure. Maintained only for rules that are consulted for every packet
    /// ([`Admission::accepts_all_below`] is 0).
    pub last_departure: Time,
}

/// Admission rule, applied when a packet arrives.
pub trait Admission: Send {
    /// Returns the backlog in bytes, arriving packet included, below which every packet is accepted
    /// unmarked. Ports skip the rule below it. The default, 0, consults the rule for every packet.
    fn accepts_all_below(&self) -> u64 {
        0
    }

    /// Accepts, marks or drops `packet`.
    fn admit(&mut self, packet: &Packet, state: &QueueState, random: &mut Random) -> Verdict;
}

/// Environment of a queue operation.
pub struct Context<'a> {
    /// Current time.
    pub now: Time,
    /// Random stream of the port.
    pub random: &'a mut Random,
    /// Packets that the queue has dropped.
    pub dropped: &'a mut Vec<Packet>,
    /// Packets that the queue has trimmed, as they were, but with the bytes that were cut off.
    pub trimmed: &'a mut Vec<Packet>,
    /// Number of packets that the port has marked.
    pub marks: &'a mut u64,
}

impl Context<'_> {
    /// Marks a packet if it is ECN-capable.
    pub fn mark(&mut self, packet: &mut Packet) {
        *self.marks += u64::from(packet.mark());
    }

    /// Cuts the payload off a data packet, so that a header of up to `size` bytes remains.
    pub fn trim(&mut self, packet: &mut Packet, size: u16) {
        let cut = packet.bytes.saturating_sub(size);
        self.trimmed.push(Packet { bytes: cut, ..*packet });
        packet.bytes -= cut;
        packet.kind = Kind::Trimmed;
    }
}

/// Queue that may decide on arrival and on departure.
pub trait Queue: Send {
    /// Enqueues a packet. May drop this packet or queued ones.
    fn enqueue(&mut self, packet: Packet, context: &mut Context<'_>);

    /// Removes and returns the packet to transmit next.
    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet>;

    /// Returns the time until which the queue holds back all its packets, as only a shaper does. Called when
    /// [`dequeue`](Self::dequeue) has returned no packet, although packets are queued.
    fn held_until(&self) -> Time {
        Time::ZERO
    }

    /// Returns the backlog.
    fn backlog(&self) -> Backlog;

    /// Calls `visit` for every queued packet, in unspecified order.
    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet));

    /// Returns true if [`dequeue`](Self::dequeue) depends on the queued packets and the port's random
    /// numbers only, and drops no packet. The port may then dequeue later than the transmission
    /// starts, but before its next access to the queue, and let a packet bypass the empty queue when
    /// the link is idle.
    fn allows_lazy_service(&self) -> bool {
        false
    }

    /// Handles a packet that bypasses the empty queue because the link is idle. Called only if
    /// [`allows_lazy_service`](Self::allows_lazy_service) is true.
    fn on_bypass(&mut self, _packet: &Packet) {}

    /// Returns true if the trimmed packets that the queue drops go back to their senders.
    fn returns_headers(&self) -> bool {
        false
    }

    /// Returns true if flows have weights. Only then are [`register_flow`](Self::register_flow) and
    /// [`unregister_flow`](Self::unregister_flow) called.
    fn uses_flow_weights(&self) -> bool {
        false
    }

    /// Handles the start of a flow of `class` whose path may include this queue.
    fn register_flow(&mut self, _flow: FlowNumber, _class: &str) {}

    /// Handles the end of a flow.
    fn unregister_flow(&mut self, _flow: FlowNumber) {}

    /// Returns the arrivals and drops by priority, if the queue counts them.
    fn priority_counts(&self) -> Option<&PriorityCounts> {
        None
    }
}

/// Link rates for which an absolute parameter was designed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DesignRates {
    /// Name of the parameter.
    pub field: &'static str,
    /// Lowest rate.
    pub least: Rate,
    /// Highest rate.
    pub most: Rate,
}

impl DesignRates {
    /// Returns a parameter designed for one rate.
    pub fn one(field: &'static str, rate: Rate) -> Self {
        Self { field, least: rate, most: rate }
    }

    /// Returns the rates for which [dctcp10] gives links this marking threshold: 65 packets of 1500 B at 10
    /// Gb/s, 20 packets at 1 Gb/s and below. `None` for other thresholds.
    pub fn of_dctcp_threshold(threshold: Capacity) -> Option<Self> {
        const PACKET: u64 = 1500;
        let is_published = |packets: u32| {
            let bytes = Capacity::Bytes(u64::from(packets) * PACKET);
            [Capacity::Packets(packets), bytes].contains(&threshold)
        };
        if is_published(65) {
            return Some(Self::one("threshold", Rate::from_gbps(10)));
        }
        let (least, most) = (Rate(1), Rate::from_gbps(1));
        is_published(20).then_some(Self { field: "threshold", least, most })
    }
}

/// Configuration of a queue discipline.
pub trait QueueKind {
    /// Builds the queue of a port.
    fn build(&self, scale: LinkScale) -> PortQueue;

    /// Returns the capacity; `None` if the queue has no limit of its own.
    fn capacity(&self) -> Option<Capacity>;

    /// Returns the marking thresholds at a port, by parameter.
    fn thresholds(&self, _scale: LinkScale) -> Vec<(&'static str, Limit)> {
        Vec::new()
    }

    /// Returns true if the queue marks packets.
    fn marks(&self) -> bool {
        false
    }

    /// Returns the quantum of a round-robin discipline. It must be at least the largest packet, so
    /// that a round serves every backlogged flow.
    fn quantum(&self) -> Option<Bytes> {
        None
    }

    /// Returns the names of the flow classes that have weights.
    fn weighted_classes(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Returns the link rates for which an absolute parameter was designed, if they are known.
    fn design_rates(&self) -> Option<DesignRates> {
        None
    }

    /// Returns the priorities that the discipline distinguishes; `None` if it ignores them.
    fn priorities(&self) -> Option<Priorities> {
        None
    }
}

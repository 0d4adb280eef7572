//! Storage of a port's data packets.

use crate::base::units::Time;
use crate::model::packet::{FlowNumber, Packet};
use crate::network::switch::traffic_classes::Class;
use crate::queueing::blocks::class_scheduler::ClassScheduler;
use crate::queueing::{AdmissionGate, Context, PortQueue, PriorityCounts, Queue};

/// Queue of a port's data packets.
pub enum DataQueue {
    /// FIFO queue behind an admission rule. The packets wait in the transmitter.
    Fifo(AdmissionGate),
    /// Any other queue.
    Queue(Box<dyn Queue>),
    /// A queue for each traffic class.
    ClassScheduler(Box<ClassScheduler>),
}

impl DataQueue {
    /// Returns the storage for the queues of all traffic classes, which have these weights.
    pub fn new(mut queues: Vec<PortQueue>, weights: &[u32]) -> Self {
        let single = if queues.len() == 1 { queues.pop() } else { None };
        match single {
            Some(PortQueue::OnArrival(rule)) => Self::Fifo(AdmissionGate::new(rule)),
            Some(PortQueue::OnDeparture(queue)) => Self::Queue(queue),
            None => Self::ClassScheduler(Box::new(ClassScheduler::new(queues, weights))),
        }
    }

    /// True if a packet may be taken later than its transmission starts
    /// ([`Queue::allows_lazy_service`]).
    pub fn allows_lazy_service(&self) -> bool {
        match self {
            Self::Fifo(_) => true,
            Self::Queue(queue) => queue.allows_lazy_service(),
            Self::ClassScheduler(_) => false,
        }
    }

    /// Enqueues a packet of a class, or drops it or others. FIFO packets wait in the transmitter.
    pub fn push(&mut self, packet: Packet, class: Class, context: &mut Context<'_>) {
        match self {
            Self::Fifo(_) => {}
            Self::Queue(queue) => queue.enqueue(packet, context),
            Self::ClassScheduler(classes) => classes.enqueue(packet, class, context),
        }
    }

    /// Dequeues the packet to transmit next. FIFO packets wait in the transmitter.
    #[inline]
    pub fn pop(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        match self {
            Self::Fifo(_) => None,
            Self::Queue(queue) => queue.dequeue(context),
            Self::ClassScheduler(classes) => classes.dequeue(context),
        }
    }

    /// Returns the time until which all packets that are not paused are held back
    /// ([`Queue::held_until`]).
    pub fn held_until(&self) -> Time {
        match self {
            Self::Fifo(_) => Time::ZERO,
            Self::Queue(queue) => queue.held_until(),
            Self::ClassScheduler(classes) => classes.held_until(),
        }
    }

    /// True if a queue weighs flows.
    pub fn weighs(&self) -> bool {
        match self {
            Self::Fifo(_) => false,
            Self::Queue(queue) => queue.uses_flow_weights(),
            Self::ClassScheduler(classes) => classes.uses_flow_weights(),
        }
    }

    /// True if a queue returns headers to their senders.
    pub fn returns_headers(&self) -> bool {
        match self {
            Self::Fifo(_) => false,
            Self::Queue(queue) => queue.returns_headers(),
            Self::ClassScheduler(classes) => classes.returns_headers(),
        }
    }

    /// Registers a flow with the queues.
    pub fn register_flow(&mut self, flow: FlowNumber, class: &str) {
        match self {
            Self::Fifo(_) => {}
            Self::Queue(queue) => queue.register_flow(flow, class),
            Self::ClassScheduler(classes) => classes.register_flow(flow, class),
        }
    }

    /// Removes a flow from the queues.
    pub fn unregister_flow(&mut self, flow: FlowNumber) {
        match self {
            Self::Fifo(_) => {}
            Self::Queue(queue) => queue.unregister_flow(flow),
            Self::ClassScheduler(classes) => classes.unregister_flow(flow),
        }
    }

    /// Returns the counters of the queue by priority, if it has any.
    pub fn priority_counts(&self) -> Option<&PriorityCounts> {
        match self {
            Self::Queue(queue) => queue.priority_counts(),
            Self::Fifo(_) | Self::ClassScheduler(_) => None,
        }
    }
}

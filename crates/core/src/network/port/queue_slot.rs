//! Where data waits at a port.

use crate::model::packet::{FlowNumber, Packet};
use crate::network::switch::traffic_classes::Class;
use crate::queueing::blocks::class_scheduler::ClassScheduler;
use crate::queueing::{AdmissionGate, Context, PortQueue, PriorityCounts, Queue};

/// A port's store of data.
pub enum DataQueue {
    /// Before the transmitter, which keeps it first in, first out, behind a gate.
    Fifo(AdmissionGate),
    /// In a queue.
    Queue(Box<dyn Queue>),
    /// In a queue for each traffic class.
    ClassScheduler(Box<ClassScheduler>),
}

impl DataQueue {
    /// A store where each traffic class waits as it is given.
    pub fn new(mut behaviours: Vec<PortQueue>) -> Self {
        let alone = if behaviours.len() == 1 { behaviours.pop() } else { None };
        match alone {
            Some(PortQueue::OnArrival(rule)) => Self::Fifo(AdmissionGate::new(rule)),
            Some(PortQueue::OnDeparture(queue)) => Self::Queue(queue),
            None => Self::ClassScheduler(Box::new(ClassScheduler::new(behaviours))),
        }
    }

    /// Whether it may be asked for a packet later than that is sent ([`Queue::allows_lazy_service`]).
    pub fn allows_lazy_service(&self) -> bool {
        match self {
            Self::Fifo(_) => true,
            Self::Queue(queue) => queue.allows_lazy_service(),
            Self::ClassScheduler(_) => false,
        }
    }

    /// Takes a packet of a class into its queue, or drops it or others.
    pub fn push(&mut self, packet: Packet, class: Class, context: &mut Context<'_>) {
        match self {
            Self::Fifo(_) => {}
            Self::Queue(queue) => queue.enqueue(packet, context),
            Self::ClassScheduler(classes) => classes.enqueue(packet, class, context),
        }
    }

    /// Gives up the packet to transmit next, of those in queues.
    #[inline]
    pub fn pop(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        match self {
            Self::Fifo(_) => None,
            Self::Queue(queue) => queue.dequeue(context),
            Self::ClassScheduler(classes) => classes.dequeue(context),
        }
    }

    /// Whether it weighs flows.
    pub fn weighs(&self) -> bool {
        match self {
            Self::Fifo(_) => false,
            Self::Queue(queue) => queue.uses_flow_weights(),
            Self::ClassScheduler(classes) => classes.uses_flow_weights(),
        }
    }

    /// Tells its queues of a flow that starts.
    pub fn register_flow(&mut self, flow: FlowNumber, class: &str) {
        match self {
            Self::Fifo(_) => {}
            Self::Queue(queue) => queue.register_flow(flow, class),
            Self::ClassScheduler(classes) => classes.register_flow(flow, class),
        }
    }

    /// Tells its queues of a flow that has ended.
    pub fn unregister_flow(&mut self, flow: FlowNumber) {
        match self {
            Self::Fifo(_) => {}
            Self::Queue(queue) => queue.unregister_flow(flow),
            Self::ClassScheduler(classes) => classes.unregister_flow(flow),
        }
    }

    /// What its queue has counted by priority.
    pub fn priority_counts(&self) -> Option<&PriorityCounts> {
        match self {
            Self::Queue(queue) => queue.priority_counts(),
            Self::Fifo(_) | Self::ClassScheduler(_) => None,
        }
    }
}

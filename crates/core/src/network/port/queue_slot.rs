//! Where data waits at a port.

use crate::model::packet::{FlowNumber, Packet};
use crate::network::switch::traffic_classes::Class;
use crate::queueing::blocks::class_scheduler::Classes;
use crate::queueing::{Behaviour, Census, Context, Gate, Queue};

/// A port's store of data.
pub enum Store {
    /// Before the transmitter, which keeps it first in, first out, behind a gate.
    Fifo(Gate),
    /// In a queue.
    Queue(Box<dyn Queue>),
    /// In a queue for each traffic class.
    Classes(Box<Classes>),
}

impl Store {
    /// A store where each traffic class waits as it is given.
    pub fn new(mut behaviours: Vec<Behaviour>) -> Self {
        let alone = if behaviours.len() == 1 { behaviours.pop() } else { None };
        match alone {
            Some(Behaviour::OnArrival(rule)) => Self::Fifo(Gate::new(rule)),
            Some(Behaviour::OnDeparture(queue)) => Self::Queue(queue),
            None => Self::Classes(Box::new(Classes::new(behaviours))),
        }
    }

    /// Whether it may be asked for a packet later than that is sent ([`Queue::is_patient`]).
    pub fn is_patient(&self) -> bool {
        match self {
            Self::Fifo(_) => true,
            Self::Queue(queue) => queue.is_patient(),
            Self::Classes(_) => false,
        }
    }

    /// Takes a packet of a class into its queue, or drops it or others.
    pub fn push(&mut self, packet: Packet, class: Class, context: &mut Context<'_>) {
        match self {
            Self::Fifo(_) => {}
            Self::Queue(queue) => queue.push(packet, context),
            Self::Classes(classes) => classes.push(packet, class, context),
        }
    }

    /// Gives up the packet to transmit next, of those in queues.
    #[inline]
    pub fn pop(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        match self {
            Self::Fifo(_) => None,
            Self::Queue(queue) => queue.pop(context),
            Self::Classes(classes) => classes.pop(context),
        }
    }

    /// Whether it weighs flows.
    pub fn weighs(&self) -> bool {
        match self {
            Self::Fifo(_) => false,
            Self::Queue(queue) => queue.weighs(),
            Self::Classes(classes) => classes.weighs(),
        }
    }

    /// Tells its queues of a flow that starts.
    pub fn introduce(&mut self, flow: FlowNumber, class: &str) {
        match self {
            Self::Fifo(_) => {}
            Self::Queue(queue) => queue.introduce(flow, class),
            Self::Classes(classes) => classes.introduce(flow, class),
        }
    }

    /// Tells its queues of a flow that has ended.
    pub fn dismiss(&mut self, flow: FlowNumber) {
        match self {
            Self::Fifo(_) => {}
            Self::Queue(queue) => queue.dismiss(flow),
            Self::Classes(classes) => classes.dismiss(flow),
        }
    }

    /// What its queue has counted by priority.
    pub fn census(&self) -> Option<&Census> {
        match self {
            Self::Queue(queue) => queue.census(),
            Self::Fifo(_) | Self::Classes(_) => None,
        }
    }
}

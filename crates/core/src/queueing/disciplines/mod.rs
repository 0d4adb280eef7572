//! Queue disciplines: which packets wait, which are marked, which are dropped, which goes next.

use crate::base::units::{Bytes, Rate};

pub mod codel;
pub mod dcqcn_red;
pub mod drop_tail;
pub mod drr;
pub mod ecn_threshold;
pub mod fair_queueing;
pub mod fq_codel;
pub mod pfabric;
pub mod red;
pub mod sfq;
pub mod strict_priority;

pub use crate::queueing::blocks::marking::MarkAt;
pub use crate::queueing::{
    Admission, Backlog, Capacity, Context, PacketFifo, PortQueue, PriorityCounts, Queue,
    QueueState, Verdict,
};

crate::family! {
    /// Every queue discipline, by the name a scenario gives it.
    pub enum Config as dyn QueueKind {
        codel, dcqcn_red, drop_tail, drr, ecn_threshold, fair_queueing, fq_codel, pfabric, red, sfq,
        strict_priority,
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
    fn weighed(&self) -> Vec<&str> {
        Vec::new()
    }

    /// How many priorities it tells apart, if it looks at them and that is limited.
    fn classes(&self) -> Option<u32> {
        None
    }
}

//! Queue disciplines: which packets are enqueued, marked and dropped, and in which order they
//! depart.

pub mod codel;
pub mod composite;
pub mod credit_shaper;
pub mod dcqcn_red;
pub mod drop_tail;
pub mod drr;
pub mod ecn_threshold;
pub mod fair_queueing;
pub mod fq_codel;
pub mod pfabric;
pub mod red;
pub mod round_robin;
pub mod sfq;
pub mod strict_priority;

pub use crate::queueing::blocks::marking::MarkAt;
pub use crate::queueing::{
    Admission, Backlog, Capacity, Context, DesignRates, Limit, LinkScale, PacketFifo, PortQueue,
    Priorities, PriorityCounts, Queue, QueueKind, QueueState, Verdict,
};

crate::family! {
    /// Queue discipline, by its name in scenarios.
    pub enum Config as dyn QueueKind named "queue" {
        codel, composite, credit_shaper, dcqcn_red, drop_tail, drr, ecn_threshold, fair_queueing,
        fq_codel, pfabric, red, round_robin, sfq, strict_priority,
    }
    known_as {
        "fifo" => drop_tail, "tail_drop" => drop_tail, "taildrop" => drop_tail, "wred" => red, "dwrr" => drr,
        "ndp" => composite, "ecn" => ecn_threshold, "fq" => fair_queueing,
        "wfq" => fair_queueing, "priority" => strict_priority, "trimming" => composite,
    }
}

impl Config {
    /// Returns true if the queue limits the rate of credits.
    pub fn limits_credits(&self) -> bool {
        matches!(self, Self::credit_shaper(_))
    }
}

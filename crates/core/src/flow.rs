//! What a flow is before it runs, and what is known of it afterwards.

use crate::units::{Bytes, Duration, Rate, Time};

/// Index of a host among the hosts of a topology.
pub type HostId = u32;

/// One transfer that a workload asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Number of the flow, counted from 0 in order of start.
    pub id: u64,
    /// Host that sends.
    pub source: HostId,
    /// Host that receives; never the source.
    pub target: HostId,
    /// Payload to transfer; `None` sends until [`stop`](Self::stop).
    pub size: Option<Bytes>,
    /// When the flow starts.
    pub start: Time,
    /// When a long-lived flow stops sending.
    pub stop: Option<Time>,
    /// Index into the workload's class names.
    pub class: u16,
    /// Deadline, counted from the start.
    pub deadline: Option<Duration>,
    /// Rate a rate-based transport starts at instead of its own choice.
    pub initial_rate: Option<Rate>,
}

/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has every byte.
    Finished,
    /// The run ended first.
    Unfinished,
    /// A long-lived flow, which has no completion time.
    LongLived,
}

/// One row of the result: a flow and how it fared.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRecord {
    /// The flow.
    pub spec: FlowSpec,
    /// How it ended.
    pub outcome: Outcome,
    /// From the first packet sent (a SYN, if there is one) to the last payload byte at the
    /// receiver.
    pub fct: Option<Duration>,
    /// The same flow alone in the same network.
    pub ideal_fct: Duration,
    /// Payload that the receiver has.
    pub delivered: Bytes,
    /// Data packets sent again.
    pub retransmits: u32,
    /// Retransmission time-outs.
    pub timeouts: u32,
}

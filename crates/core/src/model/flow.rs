//! What a flow is before it runs, and what is known of it afterwards.

use crate::base::units::{Bytes, Duration, Rate, Time};

/// Index of a host among the hosts of a topology.
pub type HostId = u32;

/// One transfer that a workload asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowSpec {
    /// Number of the flow: counted from 0 in order of start, but where flows follow one another. Under
    /// every transport the same flow has the same.
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
    /// What the receiver is to send back, if this is a request.
    pub reply: Option<Reply>,
    /// When the request was sent, if this is the response.
    pub called: Option<Time>,
}

/// What the receiver of a request is to send back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Payload of the response.
    pub size: Bytes,
    /// How long it takes to serve the request.
    pub service: Duration,
    /// Index of the response into the workload's class names.
    pub class: u16,
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
    /// Its sender gave it up, because it could not meet its deadline.
    Terminated,
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
    /// From the same instant to the sender's knowledge that the receiver has all; none where there
    /// are no acknowledgements.
    pub acked: Option<Duration>,
    /// The same flow alone in the same network.
    pub ideal_fct: Duration,
    /// Payload that the receiver has.
    pub delivered: Bytes,
    /// Data packets sent again.
    pub retransmits: u32,
    /// Retransmission time-outs.
    pub timeouts: u32,
}

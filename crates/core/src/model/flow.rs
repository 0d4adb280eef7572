//! Specification of a flow and its record.

use crate::base::units::{Bytes, Duration, Rate, Time};

/// Index of a host among the hosts of a topology.
pub type HostId = u32;

/// Transfer requested by a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowSpec {
    /// Number of the flow, counted from 0 in order of start unless flows depend on others. Independent of the
    /// transport.
    pub id: u64,
    /// Sending host.
    pub source: HostId,
    /// Receiving host, which differs from the source.
    pub target: HostId,
    /// Payload to transfer; `None` for a long-lived flow, which sends until [`stop`](Self::stop).
    pub size: Option<Bytes>,
    /// Start time.
    pub start: Time,
    /// Time at which a long-lived flow stops sending.
    pub stop: Option<Time>,
    /// Index into the workload's class names.
    pub class: u16,
    /// Deadline after the start.
    pub deadline: Option<Duration>,
    /// Initial rate of a rate-based transport, instead of the transport's default.
    pub initial_rate: Option<Rate>,
    /// Response to send, if the flow is a request.
    pub reply: Option<Reply>,
    /// Start of the request, if the flow is a response.
    pub called: Option<Time>,
}

/// Response to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Payload of the response.
    pub size: Bytes,
    /// Service time of the request.
    pub service: Duration,
    /// Index of the response into the workload's class names.
    pub class: u16,
}

/// Outcome of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has all payload.
    Finished,
    /// The run ended before the flow.
    Unfinished,
    /// Long-lived flow, which has no FCT.
    LongLived,
    /// The sender gave up, because the flow could not meet its deadline.
    Terminated,
}

/// Record of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRecord {
    /// Specification of the flow.
    pub spec: FlowSpec,
    /// Outcome.
    pub outcome: Outcome,
    /// FCT: from the first packet sent (a SYN, if there is one) to the last payload byte received.
    pub fct: Option<Duration>,
    /// Time from the first packet sent until the sender received the acknowledgement of all payload, if there
    /// are acknowledgements.
    pub acked: Option<Duration>,
    /// Ideal FCT: at line rate over the idle path, without handshake or slow start.
    pub ideal_fct: Duration,
    /// Payload delivered.
    pub delivered: Bytes,
    /// Retransmitted data packets.
    pub retransmits: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
}

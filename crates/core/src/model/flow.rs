//! Specification of a flow and its record.

use crate::base::random::mix;
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
    /// Persistent connection that carries the flow; `None` for a connection of its own.
    pub connection: Option<Connection>,
    /// Step of the collective operation, from 0, if the flow belongs to one.
    pub step: Option<u32>,
}

/// Persistent connection that carries a flow, as one of several in a byte stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Number of the connection among those that a client opens to a server.
    pub number: u64,
    /// True if the flow travels from the server to the client: the handshake was the client's.
    pub from_server: bool,
}

/// Identification of one direction of a persistent connection: client, server, and connection.
pub type ConnectionKey = (HostId, HostId, u64, bool);

/// Input of the hash that selects the path of a flow.
#[derive(Clone, Copy, Debug)]
pub struct PathKey {
    /// Number of the flow, or a hash of the hosts and number of its connection.
    pub number: u64,
    /// If true, the flow takes the reverse of the path from its target to its source.
    pub is_reversed: bool,
}

impl From<u64> for PathKey {
    fn from(number: u64) -> Self {
        Self { number, is_reversed: false }
    }
}

impl FlowSpec {
    /// Returns the direction of the persistent connection that carries the flow.
    pub fn connection_key(&self) -> Option<ConnectionKey> {
        let Connection { number, from_server } = self.connection?;
        let (client, server) =
            if from_server { (self.target, self.source) } else { (self.source, self.target) };
        Some((client, server, number, from_server))
    }

    /// Returns the input of the hash that selects the flow's path. All flows of a connection have the same
    /// path, as packets have the same addresses and ports.
    pub fn path_key(&self) -> PathKey {
        let Some((client, server, number, is_reversed)) = self.connection_key() else {
            return self.id.into();
        };
        let hosts = (u64::from(client) << 32) | u64::from(server);
        PathKey { number: mix(mix(number) ^ hosts), is_reversed }
    }
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
    /// Packets of the flow, in both directions, that the network lost; `None` on a persistent connection,
    /// whose packets several flows share.
    pub lost: Option<u32>,
    /// Order in which data packets arrived; `None` on a persistent connection and with an external stack.
    pub reordering: Option<Reordering>,
}

/// Data packets that arrived later than packets sent after them (RFC 4737 §3); retransmissions and
/// duplicates do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reordering {
    /// Number of these packets.
    pub packets: u32,
    /// Largest number of segments from one of them to the highest that had arrived before.
    pub extent: u32,
}

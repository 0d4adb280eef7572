//! Event types.

use crate::model::flow::HostId;
use crate::model::graph::LinkId;
use crate::model::packet::FlowNumber;

/// Event of the simulation.
///
/// Simultaneous events are handled in the order of this list, and events of one type in the order of their
/// links or flows. Hence the order does not depend on the order of scheduling. Observers run before anything
/// changes. Departures precede arrivals, as they do where no event marks the end of a transmission. Flows act
/// after arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// Counters are read at a bound of the measured interval.
    ReadCounters,
    /// A bin of the counters of links ends.
    EndBin,
    /// The recorder takes samples.
    Sample,
    /// The watchdog checks for deadlocks of pauses.
    Watchdog,
    /// Links fail or recover, or routes converge.
    LinkChange,
    /// A transmitter becomes free while packets wait for it.
    Ready(LinkId),
    /// The queue of a port no longer holds back its packets.
    HoldEnd(LinkId),
    /// The control interval of a router ends.
    Tick(LinkId),
    /// The first packet in flight on a link arrives.
    Arrive(LinkId),
    /// The time of the pause of a lane (traffic class of a link) is over at its port. Later than arrivals, so
    /// that a frame that arrives just then prolongs the pause.
    PauseEnd(u32),
    /// The switch at the end of a lane repeats its pause frame.
    PauseFrame(u32),
    /// The timer of a flow's receiver expires.
    ReceiverTimer(FlowNumber),
    /// The timer of a credit scheduler expires, given by its number.
    Credit(u32),
    /// The port of a host has sent a packet, and the next of its flows by credit has its turn.
    Turn(HostId),
    /// The timer of a flow's sender expires.
    SenderTimer(FlowNumber),
    /// A flow starts.
    FlowStart(FlowNumber),
}

impl Event {
    /// First type in the order of simultaneous events.
    pub const FIRST: Self = Self::ReadCounters;
}

const _: () =
    assert!(size_of::<Event>() <= 8, "with its time an event fits 16 bytes (docs/performance.md)");

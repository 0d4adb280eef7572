//! Everything that happens in the simulator.

use crate::model::graph::LinkId;
use crate::model::packet::FlowNumber;

/// Something that happens at a time.
///
/// What happens at the same time happens in the order of this list, and of one kind in the order of the
/// numbers of links or flows: so it does not matter who scheduled what first. What is known of an instant
/// is taken before anything happens in it; packets leave before others come, as they do where nobody is
/// told that a transmitter is free; and flows act on what has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The recorder takes its samples.
    Sample,
    /// Somebody looks for pauses that cannot end.
    RunControl,
    /// Links fail or come back, or routes follow.
    Change,
    /// A transmitter becomes free while something waits for it.
    Ready(LinkId),
    /// A router's interval ends.
    Tick(LinkId),
    /// The first packet on a link reaches its end.
    Arrive(LinkId),
    /// The earliest deadline of a flow's receiver.
    Respond(FlowNumber),
    /// The earliest deadline of a flow's sender.
    Wake(FlowNumber),
    /// A flow starts.
    Start(FlowNumber),
}

impl Event {
    /// Nothing that happens at a time happens before this.
    pub const FIRST: Self = Self::Sample;
}

const _: () =
    assert!(size_of::<Event>() <= 8, "with its time an event fits 16 bytes (docs/performance.md)");

//! Everything that happens in the simulator.

use crate::graph::LinkId;
use crate::packet::FlowSlot;

/// Something that happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The workload's next flow starts.
    Start,
    /// A flow that follows another starts: the one of this number among those that are to.
    Follow(u32),
    /// The first packet on a link reaches its end.
    Arrive(LinkId),
    /// A transmitter becomes free while something waits for it.
    Ready(LinkId),
    /// A router's interval ends.
    Tick(LinkId),
    /// A flow's earliest deadline.
    Wake(FlowSlot),
    /// The recorder takes its samples.
    Sample,
    /// Somebody looks for pauses that cannot end.
    Watch,
}

const _: () =
    assert!(size_of::<Event>() <= 8, "with its time an event fits 16 bytes (docs/performance.md)");

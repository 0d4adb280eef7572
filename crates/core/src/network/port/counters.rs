//! Counters of a port, which must add up.

use crate::base::units::Time;
use crate::model::packet::Kind;

/// Packets and bytes that have passed a port. The fields that every departure touches stand first.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Counters {
    /// Packets that arrived at the port.
    pub arrived: u64,
    /// Packets whose transmission has started.
    pub departed: u64,
    /// Data packets among `departed`.
    pub data: u64,
    /// Bytes of `departed`.
    pub bytes: u64,
    /// Integral of the backlog over time, in byte-picoseconds.
    pub queue_area: u128,
    /// Time up to which `queue_area` is computed.
    accounted: Time,
    /// Largest backlog, in bytes.
    pub queue_max: u64,
    /// Packets that were marked.
    pub marked: u64,
    /// Packets that the queue or the shared buffer dropped.
    pub dropped: u64,
    /// Packets that were transmitted and lost on the link.
    pub lost: u64,
    /// Packets among `lost` that a failure of the link lost.
    pub cut_off: u64,
}

impl Counters {
    /// Adds a backlog of `bytes` since the last call.
    pub fn wait(&mut self, bytes: u64, now: Time) {
        let lasted = now - self.accounted;
        self.queue_area += u128::from(bytes) * u128::from(lasted.0);
        self.accounted = now;
    }

    /// Counts the start of a transmission.
    pub fn depart(&mut self, kind: Kind, bytes: u16) {
        self.departed += 1;
        self.data += u64::from(!kind.is_control());
        self.bytes += u64::from(bytes);
    }
}

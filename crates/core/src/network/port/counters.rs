//! What a port counts, which must add up.

use crate::base::units::Time;
use crate::model::packet::Kind;

/// What has passed through a port. What every departure touches stands first.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Counters {
    /// Packets that came.
    pub arrived: u64,
    /// Packets whose transmission has started.
    pub departed: u64,
    /// Data packets among the departed.
    pub data: u64,
    /// Bytes of the departed.
    pub bytes: u64,
    /// Integral of the waiting bytes over time, in byte-picoseconds.
    pub queue_area: u128,
    /// Up to when that is known.
    accounted: Time,
    /// Most bytes that ever waited.
    pub queue_max: u64,
    /// Packets that were marked.
    pub marked: u64,
    /// Packets that the queue or the buffer dropped.
    pub dropped: u64,
    /// Packets that were transmitted, and lost on the link.
    pub lost: u64,
    /// Those among them that were lost because the link had failed.
    pub cut_off: u64,
}

impl Counters {
    /// So many bytes have waited since this was last said.
    pub fn wait(&mut self, bytes: u64, now: Time) {
        let lasted = now - self.accounted;
        self.queue_area += u128::from(bytes) * u128::from(lasted.0);
        self.accounted = now;
    }

    /// A packet's transmission has started.
    pub fn depart(&mut self, kind: Kind, bytes: u16) {
        self.departed += 1;
        self.data += u64::from(!kind.is_control());
        self.bytes += u64::from(bytes);
    }
}

//! Counters of a port, which must add up.

use super::Port;
use crate::base::units::{Duration, Time};
use crate::model::packet::{Kind, Packet};

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
    /// Credits among `dropped`.
    pub dropped_credits: u32,
    /// Packets among `lost` that a failure of the link lost.
    pub cut_off: u32,
    /// Packets that were transmitted and lost on the link.
    pub lost: u64,
    /// Packets that the queue trimmed.
    pub trimmed: u64,
    /// Bytes that the queue cut off.
    pub trimmed_bytes: u64,
}

impl Counters {
    /// Adds a backlog of `bytes` since the last call.
    pub fn wait(&mut self, bytes: u64, now: Time) {
        let lasted = now - self.accounted;
        self.queue_area += u128::from(bytes) * u128::from(lasted.0);
        self.accounted = now;
    }

    /// Returns `queue_area` at `now`, with a backlog of `bytes` since the last change.
    fn queue_area_at(&self, bytes: u64, now: Time) -> u128 {
        self.queue_area + u128::from(bytes) * u128::from(now.since(self.accounted).0)
    }

    /// Counts a packet that the queue or the shared buffer drops.
    pub fn drop(&mut self, kind: Kind) {
        self.dropped += 1;
        self.dropped_credits += u32::from(kind == Kind::Credit);
    }

    /// Returns the number of dropped packets except credits.
    pub fn dropped_others(&self) -> u64 {
        self.dropped - u64::from(self.dropped_credits)
    }

    /// Counts the start of a transmission.
    pub fn depart(&mut self, kind: Kind, bytes: u16) {
        self.departed += 1;
        self.data += u64::from(!kind.is_control());
        self.bytes += u64::from(bytes);
    }
}

/// Counters of a port at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortTotals {
    /// Packets whose transmission has started.
    pub departed: u64,
    /// Bytes of `departed`.
    pub bytes: u64,
    /// Packets that were marked.
    pub marked: u64,
    /// Packets except credits that the queue or the shared buffer dropped.
    pub dropped: u64,
    /// Credits that they dropped.
    pub dropped_credits: u64,
    /// Packets that were transmitted and lost on the link.
    pub lost: u64,
    /// Pauses of all classes that have begun.
    pub pauses: u64,
    /// Time for which classes were paused, over all classes.
    pub paused: Duration,
    /// Integral of the backlog over time, in byte-picoseconds.
    pub queue_area: u128,
}

impl PortTotals {
    /// Returns the totals of a port that no longer changes, or that has been read at `now`.
    pub fn of(port: &Port, now: Time) -> Self {
        let Counters { departed, bytes, marked, dropped_credits, lost, .. } = port.counters;
        Self {
            departed,
            bytes,
            marked,
            dropped: port.counters.dropped_others(),
            dropped_credits: u64::from(dropped_credits),
            lost,
            pauses: port.pauses.iter().map(|pauses| pauses.count).sum(),
            paused: Duration(port.pauses.iter().map(|pauses| pauses.until(now).0).sum()),
            queue_area: port.counters.queue_area_at(port.transmitter.waiting.bytes, now),
        }
    }

    /// Returns the totals since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            departed: self.departed - earlier.departed,
            bytes: self.bytes - earlier.bytes,
            marked: self.marked - earlier.marked,
            dropped: self.dropped - earlier.dropped,
            dropped_credits: self.dropped_credits - earlier.dropped_credits,
            lost: self.lost - earlier.lost,
            pauses: self.pauses - earlier.pauses,
            paused: self.paused - earlier.paused,
            queue_area: self.queue_area - earlier.queue_area,
        }
    }

    /// Returns the sum of two totals.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            departed: self.departed + other.departed,
            bytes: self.bytes + other.bytes,
            marked: self.marked + other.marked,
            dropped: self.dropped + other.dropped,
            dropped_credits: self.dropped_credits + other.dropped_credits,
            lost: self.lost + other.lost,
            pauses: self.pauses + other.pauses,
            paused: self.paused + other.paused,
            queue_area: self.queue_area + other.queue_area,
        }
    }
}

impl Port {
    /// Returns the totals at `now`, and the largest backlog since the last call.
    pub fn take_totals(&mut self, now: Time) -> (PortTotals, u64) {
        let totals = self.totals(now);
        let waiting = self.transmitter.waiting.bytes;
        (totals, std::mem::replace(&mut self.counters.queue_max, waiting))
    }
}

impl Port {
    /// Counts packets that waited and that the queue has dropped.
    pub(super) fn count_drops(&mut self, rejects: &[Packet]) {
        for packet in rejects {
            self.counters.drop(packet.kind);
            self.transmitter.waiting.remove(packet.bytes);
        }
    }

    /// Counts packets that the queue has trimmed, whose headers wait.
    pub(super) fn count_trims(&mut self, cuts: &[Packet]) {
        self.counters.trimmed += cuts.len() as u64;
        for cut in cuts {
            self.counters.trimmed_bytes += u64::from(cut.bytes);
            self.transmitter.waiting.bytes -= u64::from(cut.bytes);
        }
    }

    /// Returns the bytes whose transmission has started.
    pub fn transmitted(&mut self, now: Time) -> u64 {
        self.advance_to(now);
        self.counters.bytes
    }

    /// Returns the counters at `now`.
    pub fn totals(&mut self, now: Time) -> PortTotals {
        self.advance_to(now);
        PortTotals::of(self, now)
    }
}

//! Pacing: the earliest departure of the next packet, by the rate and by the host's NIC.

use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::transport::PacingPolicy;

/// Limits on the departure of the next segment, apart from the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacingLimit {
    /// Earliest departure by the rate.
    pub earliest: Time,
    /// True if the segment also waits until the NIC has sent the flow's earlier packets.
    pub waits_for_nic: bool,
}

/// Pacing state of one sender.
#[derive(Debug)]
pub struct Pacer {
    /// Bytes on the link of the current burst.
    bytes: u32,
    /// Start of the current burst, and the packets left in it.
    burst_start: Time,
    burst_left: u32,
    /// Time when the NIC has sent all packets of this flow; [`Time::NEVER`] while that is unknown.
    nic_free: Time,
    /// Packets in the NIC queue without a known departure.
    queued_in_nic: u32,
}

impl Pacer {
    /// Creates the state of a sender that has sent no packets.
    pub fn new(now: Time) -> Self {
        Self { bytes: 0, burst_start: now, burst_left: 0, nic_free: Time::ZERO, queued_in_nic: 0 }
    }

    /// Returns the start of the last burst.
    pub fn burst_start(&self) -> Time {
        self.burst_start
    }

    /// Returns when the NIC has sent all packets of this flow; [`Time::NEVER`] while that is unknown.
    pub fn nic_free(&self) -> Time {
        self.nic_free
    }

    /// Records a paced packet of `bytes`, which starts or continues a burst.
    pub fn on_sent(&mut self, now: Time, bytes: u32, policy: PacingPolicy) {
        if self.burst_left == 0 {
            self.burst_start = now;
            self.bytes = 0;
            self.burst_left = policy.burst;
        }
        self.bytes += bytes;
        self.burst_left -= 1;
    }

    /// Returns the limits on the next packet at `rate`.
    #[inline]
    pub fn limit(&self, rate: Rate, policy: PacingPolicy) -> PacingLimit {
        let bytes = Bytes(u64::from(self.bytes));
        if self.burst_left > 0 {
            let offset = policy.spacing.map_or(Duration::ZERO, |rate| rate.transmit(bytes));
            return PacingLimit { earliest: self.burst_start + offset, waits_for_nic: false };
        }
        if rate.0 == 0 {
            return PacingLimit { earliest: Time::NEVER, waits_for_nic: false };
        }
        PacingLimit { earliest: self.burst_start + rate.transmit(bytes), waits_for_nic: true }
    }

    /// Returns the earliest departure within `limit`. The packets of a burst depart back to back or
    /// with their spacing. The next burst may start when the last one has had its time at the current
    /// rate and the NIC has sent it, so that flows share a NIC in turn instead of filling its queue.
    pub fn earliest_departure(&self, limit: PacingLimit) -> Time {
        let PacingLimit { earliest, waits_for_nic } = limit;
        if waits_for_nic { earliest.max(self.nic_free) } else { earliest }
    }

    /// Records that the NIC has enqueued a packet, whose transmission ends at `ends` if that is known.
    pub fn on_enqueued(&mut self, ends: Option<Time>) {
        if let Some(ends) = ends {
            self.nic_free = ends;
        } else {
            self.queued_in_nic += 1;
            self.nic_free = Time::NEVER;
        }
    }

    /// Records that the transmission of a packet that waited in the NIC queue ends at `ends`. Returns
    /// true if it was the last packet: then the flow may send again.
    pub fn on_departure(&mut self, ends: Time) -> bool {
        self.queued_in_nic -= 1;
        if self.queued_in_nic == 0 {
            self.nic_free = ends;
        }
        self.queued_in_nic == 0
    }
}

//! Bounds between the priorities of packets without grants, from the sizes of messages ([homa18] §3.4).

use std::collections::BTreeMap;

use crate::base::units::Bytes;
use crate::model::packet::Format;

/// Number of packets after which further messages are left out.
const MAX_PACKETS: u64 = 1_000_000;

/// Bytes that messages send.
pub(super) struct Load {
    /// Of packets with the priority of those without grants, and of grants, by the payload of the message
    /// that remains at the packet.
    by_remaining: BTreeMap<u64, f64>,
    /// Of packets without grants.
    unscheduled: f64,
    /// Of all data packets.
    total: f64,
}

impl Load {
    /// Adds up messages that send this number of packets without grants. With `tail_boost`, as many packets
    /// at the end of a message have the priority of packets without grants.
    pub(super) fn of(sizes: &[Bytes], unscheduled: u32, tail_boost: bool, format: &Format) -> Self {
        let mut load = Self { by_remaining: BTreeMap::new(), unscheduled: 0.0, total: 0.0 };
        let first = u64::from(unscheduled);
        let grant = format.credit.unwrap_or(format.ack).0 as f64;
        let mut added = 0;
        for size in sizes {
            let packets = format.packets(*size);
            let granted = packets.saturating_sub(first);
            load.total += format.on_wire(*size).0 as f64;
            *load.by_remaining.entry(0).or_default() += granted as f64 * grant;
            let last = if tail_boost { granted.max(first) } else { packets };
            for number in (0..first.min(packets)).chain(last..packets) {
                let remaining = size.0 - number * format.payload.0;
                let bytes = (remaining.min(format.payload.0) + format.header.0) as f64;
                *load.by_remaining.entry(remaining).or_default() += bytes;
                load.unscheduled += if number < first { bytes } else { 0.0 };
                added += 1;
            }
            if added > MAX_PACKETS {
                break;
            }
        }
        load
    }

    /// Returns the number of priorities for packets without grants: their share of the bytes, and at least
    /// one priority for each kind of packets.
    pub(super) fn levels(&self, priorities: u32) -> u32 {
        let share = self.unscheduled / self.total.max(1.0);
        (share * f64::from(priorities)).round().clamp(1.0, f64::from(priorities - 1)) as u32
    }

    /// Returns the bounds by which each of these priorities carries the same bytes, as in the authors'
    /// simulator.
    pub(super) fn cutoffs(&self, levels: u32) -> Vec<u64> {
        let total: f64 = self.by_remaining.values().sum();
        let largest = self.by_remaining.last_key_value().map(|(remaining, _)| *remaining);
        let mut cutoffs = Vec::new();
        let mut sum = 0.0;
        for (remaining, bytes) in &self.by_remaining {
            sum += bytes;
            let next = cutoffs.len() as u32 + 1;
            let is_full = sum * f64::from(levels) >= f64::from(next) * total;
            // All packets are at or below the largest one.
            if next < levels && is_full && Some(*remaining) < largest {
                cutoffs.push(*remaining);
            }
        }
        cutoffs
    }
}

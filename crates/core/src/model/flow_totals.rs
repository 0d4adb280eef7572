//! Totals of all flows, and the choice of those that have records.

use std::cmp::Ordering;

use super::flow::{FlowRecord, FlowSpec, Outcome};
use crate::base::random::mix;
use crate::base::units::{Bytes, Time};

/// Choice of the flows whose records are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptRecords {
    /// Number of flows of which one is kept.
    pub one_in: u32,
}

impl Default for KeptRecords {
    fn default() -> Self {
        Self { one_in: 1 }
    }
}

impl KeptRecords {
    /// Returns true for a flow whose record is kept: chosen by a hash of its number, so that all schemes keep
    /// the same flows, or long-lived.
    pub fn includes(self, spec: &FlowSpec) -> bool {
        mix(spec.id).is_multiple_of(u64::from(self.one_in)) || spec.size.is_none()
    }
}

/// Totals of all flows, with or without records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowTotals {
    /// Flows by outcome.
    outcomes: [u64; 4],
    /// Retransmitted data packets.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Data packets that arrived later than packets sent after them.
    pub reordered: u64,
    /// Payload of sized flows, and what long-lived flows delivered, in bytes.
    pub size_bytes: u64,
    /// Payload delivered, in bytes.
    pub delivered_bytes: u64,
    /// Starts and payload of flows of finite size.
    pub offered: OfferedBytes,
}

/// Payload of flows of finite size, and when they start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfferedBytes {
    /// First and last start; `None` without flows.
    pub starts: Option<(Time, Time)>,
    /// Payload of the flows of the first start.
    pub at_first: Bytes,
    /// Payload of all flows.
    pub all: Bytes,
}

impl OfferedBytes {
    fn add(&mut self, other: Self) {
        let (Some((first, last)), Some((of_first, of_last))) = (self.starts, other.starts) else {
            *self = if self.starts.is_some() { *self } else { other };
            return;
        };
        self.at_first = match first.cmp(&of_first) {
            Ordering::Less => self.at_first,
            Ordering::Equal => self.at_first + other.at_first,
            Ordering::Greater => other.at_first,
        };
        self.all += other.all;
        self.starts = Some((first.min(of_first), last.max(of_last)));
    }
}

impl FlowTotals {
    /// Adds a flow.
    pub fn add(&mut self, record: &FlowRecord) {
        self.outcomes[record.outcome as usize] += 1;
        self.retransmits += u64::from(record.retransmits);
        self.timeouts += u64::from(record.timeouts);
        self.reordered += record.reordering.map_or(0, |reordering| u64::from(reordering.packets));
        self.size_bytes += record.spec.size.unwrap_or(record.delivered).0;
        self.delivered_bytes += record.delivered.0;
        let FlowSpec { size, start, .. } = record.spec;
        if let (Some(size), true) = (size, record.outcome != Outcome::LongLived) {
            let starts = Some((start, start));
            self.offered.add(OfferedBytes { starts, at_first: size, all: size });
        }
    }

    /// Adds the totals of other flows.
    pub fn merge(&mut self, other: &Self) {
        for (own, other) in self.outcomes.iter_mut().zip(other.outcomes) {
            *own += other;
        }
        self.retransmits += other.retransmits;
        self.timeouts += other.timeouts;
        self.reordered += other.reordered;
        self.size_bytes += other.size_bytes;
        self.delivered_bytes += other.delivered_bytes;
        self.offered.add(other.offered);
    }

    /// Number of flows.
    pub fn flows(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    /// Number of flows with this outcome.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
    }
}

//! Arrivals and drops by priority.

use crate::base::units::Bytes;
use crate::model::packet::{Kind, Packet};

/// Counts of arrivals and drops by range of priority. Data packets and probes count, which
/// represent the data of their flow.
#[derive(Clone, Debug)]
pub struct PriorityCounts {
    /// Upper bounds (inclusive) of all ranges but the last, ascending.
    bounds: Vec<u64>,
    /// Arrivals by range.
    pub arrived: Vec<u64>,
    /// Drops by range.
    pub dropped: Vec<u64>,
}

impl PriorityCounts {
    /// Creates zero counts; `None` without bounds.
    pub fn new(bounds: &[Bytes]) -> Option<Self> {
        let ranges = bounds.len() + 1;
        let bounds: Vec<u64> = bounds.iter().map(|bound| bound.0).collect();
        (ranges > 1).then(|| Self { bounds, arrived: vec![0; ranges], dropped: vec![0; ranges] })
    }

    fn range(&self, packet: &Packet) -> Option<usize> {
        let (priority, counts) =
            (packet.priority(), [Kind::Data, Kind::Probe].contains(&packet.kind));
        counts.then(|| self.bounds.partition_point(|bound| *bound < priority))
    }

    /// Counts an arrival.
    pub fn count_arrival(&mut self, packet: &Packet) {
        if let Some(range) = self.range(packet) {
            self.arrived[range] += 1;
        }
    }

    /// Counts the drop of a packet whose arrival was counted.
    pub fn count_drop(&mut self, packet: &Packet) {
        if let Some(range) = self.range(packet) {
            self.dropped[range] += 1;
        }
    }
}

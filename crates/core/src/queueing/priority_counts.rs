//! Arrivals and drops by priority.

use crate::base::units::Bytes;
use crate::model::packet::{Kind, Packet};

/// Arrivals and drops of packets with a priority, counted by it: of data, and of probes, which stand for
/// their flow's data.
#[derive(Clone, Debug)]
pub struct PriorityCounts {
    /// Ends of all ranges but the last, ascending; each belongs to the range that it ends.
    bounds: Vec<u64>,
    /// How many came, a range each.
    pub arrived: Vec<u64>,
    /// How many of them were dropped.
    pub dropped: Vec<u64>,
}

impl PriorityCounts {
    /// Counts nothing yet; none if there are no bounds.
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

    /// A packet has come.
    pub fn count_arrival(&mut self, packet: &Packet) {
        if let Some(range) = self.range(packet) {
            self.arrived[range] += 1;
        }
    }

    /// A packet that had come was dropped.
    pub fn count_drop(&mut self, packet: &Packet) {
        if let Some(range) = self.range(packet) {
            self.dropped[range] += 1;
        }
    }
}

//! Packets on selected links as columns.

use super::packets::{ABSENT, SentPackets};
use crate::model::graph::LinkId;
use crate::network::breakdown::hop_log::LoggedHop;

/// Packets on links as columns, a row per packet, sorted by link and time.
#[derive(Clone, Debug, Default)]
pub struct Hops {
    /// Link.
    pub link: Vec<LinkId>,
    /// The packets; marked if they leave so, or report a mark.
    pub sent: SentPackets,
    /// Arrival at the port in picoseconds.
    pub came_ps: Vec<u64>,
    /// Start of the transmission in picoseconds; [`ABSENT`] if the packet was dropped.
    pub starts_ps: Vec<u64>,
    /// Bytes that waited at the port before the packet.
    pub queue_bytes: Vec<u64>,
    /// True if the packet was dropped.
    pub dropped: Vec<bool>,
}

impl Hops {
    /// Returns the table of these packets.
    pub fn new(hops: &[LoggedHop]) -> Self {
        let mut columns = Self::default();
        for LoggedHop { link, packet, begin, starts } in hops {
            columns.link.push(*link);
            columns.sent.push(packet);
            columns.came_ps.push(begin.came.0);
            columns.starts_ps.push(starts.map_or(ABSENT, |starts| starts.0));
            columns.queue_bytes.push(begin.queue);
            columns.dropped.push(starts.is_none());
        }
        columns
    }
}

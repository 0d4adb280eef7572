//! Packets on selected links as columns.

use super::packets::ABSENT;
use crate::model::graph::LinkId;
use crate::network::breakdown::hop_log::LoggedHop;

/// Packets on links as columns, a row per packet, sorted by link and time.
#[derive(Clone, Debug, Default)]
pub struct Hops {
    /// Link.
    pub link: Vec<LinkId>,
    /// Number of the flow.
    pub flow: Vec<u64>,
    /// Number of the kind in [`Packets::KINDS`](super::Packets::KINDS).
    pub kind: Vec<u8>,
    /// Segment, or the first segment that an ACK requests.
    pub number: Vec<u32>,
    /// First segment of an ACK's first SACK block; 0 without one.
    pub from: Vec<u32>,
    /// Segment after the last of the block.
    pub to: Vec<u32>,
    /// Size with headers.
    pub bytes: Vec<u16>,
    /// Number of sendings of the segment so far.
    pub copy: Vec<u16>,
    /// Number of the reason of the sending in [`Packets::REASONS`](super::Packets::REASONS).
    pub because: Vec<u8>,
    /// True if the packet is ECN-capable.
    pub ecn: Vec<bool>,
    /// True if the packet is marked as it leaves, or reports a mark.
    pub marked: Vec<bool>,
    /// Time of the sending in picoseconds.
    pub sent_ps: Vec<u64>,
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
            columns.flow.push(u64::from(packet.flow));
            columns.kind.push(packet.kind as u8);
            columns.number.push(packet.sequence);
            columns.from.push(packet.block.0);
            columns.to.push(packet.block.1);
            columns.bytes.push(packet.bytes);
            columns.copy.push(packet.copy);
            columns.because.push(packet.reason as u8);
            columns.ecn.push(packet.is_ecn_capable);
            columns.marked.push(packet.is_marked);
            columns.sent_ps.push(packet.sent.0);
            columns.came_ps.push(begin.came.0);
            columns.starts_ps.push(starts.map_or(ABSENT, |starts| starts.0));
            columns.queue_bytes.push(begin.queue);
            columns.dropped.push(starts.is_none());
        }
        columns
    }
}

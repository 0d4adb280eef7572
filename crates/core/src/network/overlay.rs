//! Overlay headers of the packets between leaves, for load balancers that use them.

use super::Network;
use super::side_table::SideTable;
use crate::load_balancing::Overlay;
use crate::model::graph::{Graph, LinkId};
use crate::model::packet::Packet;

/// Overlay header of a packet, and the sequence number whose place the number of its row takes: between
/// leaves no component reads that.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OverlayRow {
    overlay: Overlay,
    sequence: u32,
}

/// Table of one row for each packet with an overlay header: all packets on links between switches.
pub(super) struct OverlayTable {
    rows: SideTable<OverlayRow>,
    /// True if both ends of a link are switches, by link.
    is_inner: Box<[bool]>,
}

impl OverlayTable {
    /// Returns an empty table.
    pub(super) fn new(graph: &Graph) -> Self {
        let is_switch = |node| !graph.nodes[node as usize].is_host;
        let is_inner = graph.links.iter().map(|link| is_switch(link.from) && is_switch(link.to));
        Self { rows: SideTable::default(), is_inner: is_inner.collect() }
    }

    /// Adds an overlay header to a packet.
    pub(super) fn attach(&mut self, packet: &mut Packet, overlay: Overlay) {
        self.import(packet, OverlayRow { overlay, sequence: packet.sequence });
    }

    /// Adds the row of a packet from another partition.
    pub(super) fn import(&mut self, packet: &mut Packet, row: OverlayRow) {
        let number = self.rows.allocate(|_, _| ());
        self.rows[number] = row;
        packet.sequence = number as u32;
    }

    /// Returns true if a packet on a link, or waiting for it, has an overlay header.
    pub(super) fn covers(&self, packet: &Packet, link: LinkId) -> bool {
        self.is_inner[link as usize] && !packet.kind.is_frame()
    }

    /// Takes the row of a packet on a link or waiting for it, if it has an overlay header there.
    pub(super) fn take(&mut self, packet: &Packet, link: LinkId) -> Option<OverlayRow> {
        if !self.covers(packet, link) {
            return None;
        }
        let number = packet.sequence as usize;
        self.rows.release(number);
        Some(self.rows[number])
    }

    /// Removes the overlay header of a packet that has arrived at the end of a link, if it has one.
    pub(super) fn detach(&mut self, packet: &mut Packet, link: LinkId) -> Option<Overlay> {
        let row = self.take(packet, link)?;
        packet.sequence = row.sequence;
        Some(row.overlay)
    }
}

impl Network {
    /// Returns the table of overlay headers, if load balancers use them.
    pub(super) fn overlays(&mut self) -> Option<&mut OverlayTable> {
        self.load_balancers.as_mut()?.overlays.as_mut()
    }

    /// Takes over the number of overlay headers in use from a partition that has ended.
    pub(super) fn absorb_overlays(&mut self, other: &mut Self) {
        if let (Some(overlays), Some(others)) = (self.overlays(), other.overlays()) {
            overlays.rows.absorb(&others.rows);
        }
    }

    /// Asserts that all overlay headers have been taken.
    pub fn assert_no_overlays(&mut self) {
        let in_use = self.overlays().map_or(0, |overlays| overlays.rows.in_use());
        assert_eq!(in_use, 0, "overlay headers that were not freed");
    }
}

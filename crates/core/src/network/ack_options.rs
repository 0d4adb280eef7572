//! Options of the ACKs in the network that do not fit their headers.

use super::Network;
use super::side_table::SideTable;
use crate::model::packet::{AckOptions, Header, Packet};

/// Table of one row for each ACK with options.
#[derive(Default)]
pub(super) struct AckOptionTable {
    rows: SideTable<AckOptions>,
}

impl AckOptionTable {
    /// Returns an ACK with these options.
    pub(super) fn attach(&mut self, packet: Packet, options: AckOptions, feedback: f32) -> Packet {
        let row = self.rows.allocate(|_, _| ());
        self.rows[row] = options;
        packet.with_options(row as u32, feedback)
    }

    /// Takes the options of a packet that arrives, is lost or leaves the partition.
    #[inline]
    pub(super) fn take(&mut self, packet: &Packet) -> Option<AckOptions> {
        let row = packet.options_row()?;
        self.rows.release(row);
        Some(self.rows[row])
    }

    /// Returns the first SACK block of an ACK, which may be empty.
    pub(super) fn first_block(&self, packet: &Packet) -> (u32, u32) {
        if let Some(row) = packet.options_row() {
            return self.rows[row].blocks[0];
        }
        if let Header::Ack { block, .. } = packet.header() { block } else { (0, 0) }
    }

    /// Takes over the number of rows in use from a partition that has ended.
    pub(super) fn absorb(&mut self, other: &Self) {
        self.rows.absorb(&other.rows);
    }
}

impl Network {
    /// Returns an ACK with options beyond its header, until they are [taken](Self::take_options).
    pub fn with_options(&mut self, packet: Packet, options: AckOptions, feedback: f32) -> Packet {
        self.ack_options.attach(packet, options, feedback)
    }

    /// Takes the options of an ACK that has arrived, if it has any beyond its header.
    #[inline]
    pub fn take_options(&mut self, packet: &Packet) -> Option<AckOptions> {
        self.ack_options.take(packet)
    }

    /// Asserts that the options of all ACKs have been taken.
    pub fn assert_no_options(&self) {
        assert_eq!(self.ack_options.rows.in_use(), 0, "options of ACKs that were not freed");
    }
}

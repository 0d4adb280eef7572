//! Telemetry of the packets in the network.
//!
//! A port appends the telemetry of a packet whose transmission starts to a list beside its link. At the end
//! of the link the network moves it to the packet's stack, in a table beside the packets. The receiver
//! returns the stack with the ACK.

use super::Network;
use super::link::ring::Ring;
use super::side_table::SideTable;
use crate::base::units::{Bytes, Rate, Time};
use crate::model::packet::Packet;
use crate::model::telemetry::{HopTelemetry, TelemetryStack};

/// Telemetry of a port for the packets in flight on its link, in order.
pub(super) struct PortTelemetry {
    rate: Rate,
    in_flight: Ring<HopTelemetry>,
}

impl PortTelemetry {
    /// Returns the telemetry of a port at a link of this nominal rate.
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, in_flight: Ring::default() }
    }

    /// Handles the start of the transmission of a packet, when `transmitted` bytes have been transmitted,
    /// with the packet, and `queued` bytes wait.
    pub(super) fn start(&mut self, packet: &Packet, time: Time, transmitted: u64, queued: u64) {
        if packet.telemetry_row().is_some_and(|_| !packet.kind.is_control()) {
            let transmitted = Bytes(transmitted - u64::from(packet.bytes));
            let (queued, rate) = (Bytes(queued), self.rate);
            self.in_flight.push(HopTelemetry { time, transmitted, queued, rate });
        }
    }

    /// Takes the telemetry of a packet that has arrived at the end of the link; none if the packet collects
    /// none, or if another partition has taken it.
    fn take(&mut self, packet: &Packet) -> Option<HopTelemetry> {
        packet.telemetry_row().filter(|_| !packet.kind.is_control())?;
        let hop = self.in_flight.get(0).copied()?;
        self.in_flight.drop_first();
        Some(hop)
    }
}

/// Stacks of the packets in the network, by row.
pub(super) type TelemetryTable = SideTable<TelemetryStack>;

impl Network {
    /// Returns a data packet that collects telemetry.
    pub fn collect_telemetry(&mut self, packet: Packet) -> Packet {
        let row = self.telemetry.allocate(|_, _| ());
        self.telemetry[row].clear();
        packet.with_telemetry(row as u32)
    }

    /// Takes the telemetry that an ACK returns, or that a packet without an ACK has collected.
    #[inline]
    pub fn take_telemetry(&mut self, packet: &Packet) -> Option<&TelemetryStack> {
        let row = packet.telemetry_row()?;
        self.telemetry.release(row);
        Some(&self.telemetry[row])
    }

    /// Moves the telemetry of a packet that has arrived at the end of a link to its stack.
    pub(super) fn record_telemetry(
        port: Option<&mut PortTelemetry>,
        table: &mut TelemetryTable,
        packet: &Packet,
    ) {
        if let Some(hop) = port.and_then(|port| port.take(packet))
            && let Some(row) = packet.telemetry_row()
        {
            table[row].push(hop);
        }
    }

    /// Asserts that all stacks have been taken.
    pub fn assert_no_telemetry(&self) {
        assert_eq!(self.telemetry.in_use(), 0, "telemetry that was not freed");
    }
}

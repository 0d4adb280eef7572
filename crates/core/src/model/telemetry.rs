//! In-band network telemetry (INT): state of switches that data packets collect and ACKs return.

use crate::base::units::{Bytes, Rate, Time};

/// State of a switch's port at the start of the transmission of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopTelemetry {
    /// Start of the transmission.
    pub time: Time,
    /// Bytes that the port transmitted before, of packets of all kinds.
    pub transmitted: Bytes,
    /// Bytes that wait at the port, of packets of all kinds.
    pub queued: Bytes,
    /// Nominal rate of the port's link.
    pub rate: Rate,
}

/// Telemetry of the hops that a packet has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TelemetryStack {
    hops: [HopTelemetry; Self::CAPACITY],
    count: usize,
}

impl TelemetryStack {
    /// Maximum number of hops.
    pub const CAPACITY: usize = 8;

    /// Adds the telemetry of the next hop. A full stack stays as it is, like that of an INT packet whose
    /// remaining hop count is 0.
    pub fn push(&mut self, hop: HopTelemetry) {
        if let Some(next) = self.hops.get_mut(self.count) {
            *next = hop;
            self.count += 1;
        }
    }

    /// Removes all hops.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Returns the telemetry of the hops in the order of the path.
    pub fn hops(&self) -> &[HopTelemetry] {
        &self.hops[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_stack_keeps_the_first_hops() {
        let mut stack = TelemetryStack::default();
        let hop = |number| HopTelemetry { queued: Bytes(number), ..HopTelemetry::default() };
        (0..10).for_each(|number| stack.push(hop(number)));
        assert_eq!(stack.hops(), (0..8).map(hop).collect::<Vec<_>>());
        stack.clear();
        assert_eq!(stack.hops(), []);
    }
}

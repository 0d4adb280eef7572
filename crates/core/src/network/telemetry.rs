//! Telemetry of the packets in the network.
//!
//! A port appends the telemetry of a packet whose transmission starts to a list beside its link. At the end
//! of the link the network moves it to the packet's stack, in a table beside the packets. The receiver
//! returns the stack with the ACK.

use super::Network;
use super::link::ring::Ring;
use super::side_table::SideTable;
use crate::base::random::Random;
use crate::base::units::{Bytes, Rate, Time};
use crate::model::graph::LinkId;
use crate::model::packet::Packet;
use crate::model::telemetry::{Digest, HopTelemetry, TelemetryStack};

/// Telemetry of a port for the packets in flight on its link, in order.
pub(super) struct PortTelemetry {
    rate: Rate,
    in_flight: Ring<HopTelemetry>,
    average: Option<Box<AverageUtilisation>>,
}

/// Average utilisation of a port's link ([`Digest`]).
struct AverageUtilisation {
    digest: Digest,
    random: Random,
    /// Average; 1 for a full link without a queue.
    value: f64,
    /// Start of the last transmission, and its bytes.
    last: Option<(Time, u16)>,
    /// Codes of the packets in flight that collect telemetry, in order.
    codes: Ring<u16>,
}

impl AverageUtilisation {
    /// Handles the start of the transmission of a packet, when `queued` bytes wait.
    fn update(&mut self, packet: &Packet, time: Time, queued: u64, rate: Rate) {
        let Some((before, bytes)) = self.last.replace((time, packet.bytes)) else { return };
        if packet.kind.is_control() && !self.digest.counts_all {
            return;
        }
        let period = self.digest.period.seconds();
        let passed = time.since(before).seconds().min(period) / period;
        let periods = |bytes: u64| Bytes(bytes).bits() / rate.bps() / period;
        self.value =
            self.value * (1.0 - passed) + periods(queued) * passed + periods(u64::from(bytes));
    }
}

/// Returns true if the packet collects telemetry; an ACK only returns it.
fn collects(packet: &Packet) -> bool {
    !packet.kind.is_control() && packet.telemetry_row().is_some()
}

impl PortTelemetry {
    /// Returns the telemetry of a port at a link of this nominal rate.
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, in_flight: Ring::default(), average: None }
    }

    /// Averages the utilisation for digests from now on. Codes are rounded with `random`.
    pub(super) fn set_digest(&mut self, digest: Digest, random: Random) {
        let average =
            AverageUtilisation { digest, random, value: 0.0, last: None, codes: Ring::default() };
        self.average = Some(Box::new(average));
    }

    /// Handles the start of the transmission of a packet, when `transmitted` bytes have been transmitted,
    /// with the packet, and `queued` bytes wait.
    pub(super) fn start(&mut self, packet: &Packet, time: Time, transmitted: u64, queued: u64) {
        let collects = collects(packet);
        if let Some(average) = &mut self.average {
            average.update(packet, time, queued, self.rate);
            if collects {
                let code = average.digest.encode(average.value, &mut average.random);
                average.codes.push(code);
            }
        }
        if collects {
            let transmitted = Bytes(transmitted - u64::from(packet.bytes));
            let (queued, rate) = (Bytes(queued), self.rate);
            self.in_flight.push(HopTelemetry { time, transmitted, queued, rate });
        }
    }

    /// Takes the telemetry of a packet that has arrived at the end of the link; none if the packet collects
    /// none, or if another partition has taken it.
    fn take(&mut self, packet: &Packet) -> Option<(HopTelemetry, u16)> {
        if !collects(packet) {
            return None;
        }
        let hop = self.in_flight.get(0).copied()?;
        self.in_flight.drop_first();
        let code = self.average.as_mut().map_or(0, |average| {
            let code = average.codes.get(0).copied().unwrap_or_default();
            average.codes.drop_first();
            code
        });
        Some((hop, code))
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
        link: LinkId,
    ) {
        if let Some((hop, code)) = port.and_then(|port| port.take(packet))
            && let Some(row) = packet.telemetry_row()
        {
            table[row].push(hop, link);
            table[row].add_code(code);
        }
    }

    /// Asserts that all stacks have been taken.
    pub fn assert_no_telemetry(&self) {
        assert_eq!(self.telemetry.in_use(), 0, "telemetry that was not freed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::base::units::Duration;
    use crate::model::packet::{Format, Kind};

    /// Average after many packets of 100 ns at 80 Gb/s, data and ACKs in turn, `gap` transmissions apart.
    fn average(counts_all: bool, bytes: [u16; 2], queued: u64, gap: u64) -> f64 {
        // 1 us carries 10 000 B.
        let digest = Digest { base: 1.05, period: Duration::from_micros(1), counts_all };
        let format: Format = defaults();
        let packet = |kind, bytes| Packet { bytes, ..format.control(kind, 0, Time::ZERO) };
        let packets = [packet(Kind::Data, bytes[0]), packet(Kind::Ack, bytes[1])];
        let mut port = PortTelemetry::new(Rate::from_gbps(80));
        port.set_digest(digest, Random::new(1, "digest"));
        for number in 0..=400 {
            let time = Time::ZERO + Duration::from_nanos(100 * gap * number);
            port.start(&packets[number as usize % 2], time, 1000, queued);
        }
        port.average.unwrap().value
    }

    #[test]
    fn the_average_of_a_full_link_is_one_and_the_delay_of_its_queue_in_periods() {
        // Packets of all kinds count.
        for (queued, gap, expected) in [(0, 1, 1.0), (5_000, 1, 1.5), (0, 2, 0.5)] {
            let value = average(true, [1000, 1000], queued, gap);
            assert!((value - expected).abs() < 1e-9, "{value}, not {expected}");
        }
    }

    #[test]
    fn data_which_an_ack_follows_may_not_count() {
        // Half of the time is ACKs of half the size: 0.75 of the link, of which only the ACKs' half counts.
        let [all, others] = [true, false].map(|counts_all| average(counts_all, [1000, 500], 0, 1));
        assert!((all - 0.75).abs() < 0.02 && (others - 0.5).abs() < 1e-9, "{all}, {others}");
    }
}

//! Sizes of packets.

use super::{Flags, FlowNumber, Kind, Packed, Packet, SACK_BLOCKS};
use crate::base::schema::{positive, positive_if_given};
use crate::base::units::{Bytes, Duration, Rate, Time};

crate::parameters! {
    /// Packet sizes, and the unit of transmission times.
    pub struct Format {
        /// Payload of a full data packet.
        pub payload: Bytes = Bytes(1000), where positive;
        /// Headers of a data packet, all layers together.
        pub header: Bytes = Bytes(40);
        /// Size of an acknowledgement or another control packet, with headers.
        pub ack: Bytes = Bytes(40), where positive;
        /// Size of a SYN or SYN-ACK, which have options of their own (Linux: 60 B); none for the size of an
        /// `ack`.
        pub syn: Option<Bytes> = None, where positive_if_given;
        /// Size of a credit of a receiving host ([homa18], authors' simulator, a grant: 84 B); none for the
        /// size of an `ack`.
        pub credit: Option<Bytes> = None, where positive_if_given;
        /// Add SACK options to acknowledgements: 4 B, and 8 B for each block that a receiver would report, of
        /// which there are at most three (RFC 2018, with timestamps).
        pub sack: bool = false;
        /// Unit to which transmission times and the gaps of paced packets are rounded down, on links whose
        /// rate does not change (simulator of [hpcc19], as ns-3 counts nanoseconds: 1 ns); zero for
        /// picoseconds, to the nearest. At most 1 ns, since links would be faster than their rate.
        pub time_unit: Duration = Duration::ZERO, where |unit| {
            if *unit <= Duration::from_nanos(1) { Ok(()) } else { Err("1 ns or less") }
        };
    }
}

impl Format {
    /// Number of packets that carry `payload`. A flow without payload still sends one.
    pub fn packets(&self, payload: Bytes) -> u64 {
        payload.0.div_ceil(self.payload.0).max(1)
    }

    /// Payload of the last of the packets that carry `payload`.
    pub fn last_payload(&self, payload: Bytes) -> Bytes {
        Bytes(payload.0 - (self.packets(payload) - 1) * self.payload.0)
    }

    /// Size of a full data packet. Saturates, because the checks of a scenario use it.
    pub fn full(&self) -> Bytes {
        Bytes(self.payload.0.saturating_add(self.header.0))
    }

    /// Size of the longest data packet or plain ACK.
    pub fn longest(&self) -> Bytes {
        self.full().max(self.ack)
    }

    /// Size of a packet with `payload`, headers included.
    pub fn on_wire(&self, payload: Bytes) -> Bytes {
        Bytes(payload.0 + self.packets(payload) * self.header.0)
    }

    /// Returns the transmission time of `bytes` at `rate`.
    pub fn transmission_time(&self, rate: Rate, bytes: Bytes) -> Duration {
        rate.transmit(bytes).rounded_down(self.time_unit)
    }

    /// Size of the longest acknowledgement. Saturates.
    pub fn longest_ack(&self) -> Bytes {
        Bytes(self.ack.0.saturating_add(u64::from(self.sack_options(SACK_BLOCKS))))
    }

    /// Size of the SACK options of an ACK with this number of blocks, including a D-SACK block.
    pub fn sack_options(&self, runs: usize) -> u16 {
        if self.sack && runs > 0 { 4 + 8 * runs.min(SACK_BLOCKS) as u16 } else { 0 }
    }

    /// Returns a control packet of a flow without a route.
    pub fn control(&self, kind: Kind, flow: FlowNumber, sent_at: Time) -> Packet {
        let bytes = match kind {
            Kind::Syn | Kind::SynAck => self.syn.unwrap_or(self.ack),
            Kind::Credit => self.credit.unwrap_or(self.ack),
            _ => self.ack,
        };
        Packet {
            sent_at,
            flow,
            next_hop: 0,
            sequence: 0,
            packed: Packed::default(),
            bytes: bytes.0 as u16,
            kind,
            flags: Flags::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_packets_have_the_size_of_their_kind() {
        let plain: Format = crate::base::schema::defaults();
        let linux = Format { syn: Some(Bytes(60)), ack: Bytes(52), sack: true, ..plain.clone() };
        let bytes = |format: &Format, kind| format.control(kind, 0, Time::ZERO).bytes;
        let kinds = [Kind::Syn, Kind::SynAck, Kind::Credit, Kind::Ack];
        assert_eq!(kinds.map(|kind| bytes(&plain, kind)), [40, 40, 40, 40]);
        assert_eq!(kinds.map(|kind| bytes(&linux, kind)), [60, 60, 52, 52]);
        let homa = Format { credit: Some(Bytes(84)), ..plain.clone() };
        assert_eq!(kinds.map(|kind| bytes(&homa, kind)), [40, 40, 84, 40]);
        assert_eq!([0, 1, 3, 9].map(|runs| linux.sack_options(runs)), [0, 12, 28, 28]);
        assert_eq!(plain.sack_options(3), 0);
        assert_eq!(linux.longest_ack(), Bytes(80));
    }
}

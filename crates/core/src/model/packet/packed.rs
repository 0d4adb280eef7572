//! Packed headers: eight bytes and a layout for every [`Header`].

mod extensions;

use super::{Grant, Header, Kind, Packet};

/// Header in eight bytes. Four of the flags contain its layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed(u32, u32);

/// Layouts of packed headers.
const BLOCK: u8 = 0;
/// Block of an ACK, relative to its number, and feedback.
const FEEDBACK: u8 = 1;
const RCP: u8 = 2;
/// XCP's two times in sixteen bits each, and feedback.
const XCP: u8 = 3;
/// Number of 64 bits.
const PRIORITY: u8 = 4;
/// PDQ's grant, and its two times in sixteen bits each.
const PDQ: u8 = 5;
const D3: u8 = 6;
const FAIR_SHARE: u8 = 7;
const QUICK_START: u8 = 8;
/// Row of an ACK's options in a table of the network, and feedback.
const OPTIONS: u8 = 9;
/// Block of an ACK, relative to its number, and row of the packet's telemetry in a table of the network.
const TELEMETRY: u8 = 12;
/// Rows of an ACK's options and of its telemetry.
const OPTIONS_AND_TELEMETRY: u8 = OPTIONS | TELEMETRY;
/// Number of a credit, and the class and the entropy value of the data.
const CREDIT: u8 = 11;
/// Block of an ACK, relative to its number; received segments and entropy value in sixteen bits each.
const ENTROPY: u8 = 10;

/// Encodes a time in seconds on a logarithmic scale of 2048 steps per octave, from 1 ns to 4.2 s: a precision
/// of 0.02 %.
fn coarse(seconds: f32) -> u16 {
    on_scale(seconds, 2048.0)
}

fn fine(steps: u16) -> f32 {
    off_scale(steps, 2048.0)
}

/// Steps per octave of the remaining payload, which may take hours: a precision of 0.04 %.
const LONG: f32 = 1024.0;

fn on_scale(seconds: f32, octave: f32) -> u16 {
    if seconds > 0.0 {
        ((seconds * 1e9).log2() * octave).round().clamp(1.0, 65_535.0) as u16
    } else {
        0
    }
}

fn off_scale(steps: u16, octave: f32) -> f32 {
    if steps > 0 { (f32::from(steps) / octave).exp2() * 1e-9 } else { 0.0 }
}

pub(super) fn both(high: u16, low: u16) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}

pub(super) fn each(word: u32) -> (u16, u16) {
    ((word >> 16) as u16, word as u16)
}

impl Packet {
    /// Unpacks the header.
    #[expect(clippy::inline_always, reason = "a call for it is 2 % of a run of TCP")]
    #[inline(always)]
    pub fn header(&self) -> Header {
        let Packed(first, second) = self.packed;
        match self.flags.layout() {
            BLOCK => Header::Ack { block: (first, second), feedback: 0.0 },
            FEEDBACK => {
                Header::Ack { block: self.absolute(first), feedback: f32::from_bits(second) }
            }
            RCP => Header::Rcp { rtt: f32::from_bits(first), rate: f32::from_bits(second) },
            PRIORITY => Header::Priority(self.priority()),
            PDQ => {
                let (remaining, rtt) = each(first);
                let grant = Grant::of(f32::from_bits(second));
                Header::Pdq { grant, remaining: off_scale(remaining, LONG), rtt: fine(rtt) }
            }
            D3 => Header::D3 { desired: f32::from_bits(first), allotted: f32::from_bits(second) },
            FAIR_SHARE => Header::FairShare { limit: f32::from_bits(first), leaves: second > 0 },
            QUICK_START => Header::QuickStart { code: first as u8 },
            OPTIONS => Header::Ack { block: (0, 0), feedback: f32::from_bits(second) },
            TELEMETRY | ENTROPY => Header::Ack { block: self.absolute(first), feedback: 0.0 },
            OPTIONS_AND_TELEMETRY => Header::NONE,
            CREDIT => Header::Credit { number: first, class: second as u8 },
            _ => {
                let (rtt, spacing) = each(first);
                let feedback = f32::from_bits(second);
                Header::Xcp { rtt: fine(rtt), spacing: fine(spacing), feedback }
            }
        }
    }

    /// Returns the packet with a header. The block of an ACK with feedback is limited to 65535 segments, and
    /// dropped if it begins further away. Transports with router feedback do not need it.
    #[must_use]
    pub fn with_header(mut self, header: Header) -> Self {
        let (layout, packed) = match header {
            Header::Ack { block, feedback: 0.0 } => (BLOCK, Packed(block.0, block.1)),
            Header::Ack { block, feedback } => {
                (FEEDBACK, Packed(self.relative(block), feedback.to_bits()))
            }
            Header::Rcp { rtt, rate } => (RCP, Packed(rtt.to_bits(), rate.to_bits())),
            Header::Xcp { rtt, spacing, feedback } => {
                (XCP, Packed(both(coarse(rtt), coarse(spacing)), feedback.to_bits()))
            }
            Header::Priority(number) => (PRIORITY, Packed((number >> 32) as u32, number as u32)),
            Header::Pdq { grant, remaining, rtt } => {
                let times = both(on_scale(remaining, LONG), coarse(rtt));
                (PDQ, Packed(times, grant.number().to_bits()))
            }
            Header::D3 { desired, allotted } => (D3, Packed(desired.to_bits(), allotted.to_bits())),
            Header::FairShare { limit, leaves } => {
                (FAIR_SHARE, Packed(limit.to_bits(), u32::from(leaves)))
            }
            Header::QuickStart { code } => (QUICK_START, Packed(u32::from(code), 0)),
            Header::Credit { number, class } => (CREDIT, Packed(number, u32::from(class))),
        };
        self.packed = packed;
        self.flags = self.flags.with_layout(layout);
        self
    }

    /// Encodes a block relative to the packet's number.
    fn relative(&self, (from, to): (u32, u32)) -> u32 {
        let beyond = from.checked_sub(self.sequence);
        let offset = beyond.and_then(|beyond| u16::try_from(beyond).ok());
        let length = (to - from).min(u32::from(u16::MAX)) as u16;
        offset.map_or(0, |offset| both(offset, length))
    }

    /// Decodes a block relative to the packet's number.
    fn absolute(&self, block: u32) -> (u32, u32) {
        let (offset, length) = each(block);
        let from = self.sequence + u32::from(offset);
        if length > 0 { (from, from + u32::from(length)) } else { (0, 0) }
    }

    /// Writes feedback of routers to the sender, if the header has a field for it.
    pub fn write_feedback(&mut self, feedback: f32) {
        if matches!(self.flags.layout(), FEEDBACK | RCP | XCP | PDQ | D3 | OPTIONS) {
            self.packed.1 = feedback.to_bits();
        }
    }

    /// Priority among waiting packets: lower values are served first.
    pub fn priority(&self) -> u64 {
        let Packed(first, second) = self.packed;
        match self.flags.layout() {
            PRIORITY => u64::from(first) << 32 | u64::from(second),
            CREDIT if self.kind == Kind::Data => u64::from(second as u8),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Time;
    use crate::model::packet::Format;
    use proptest::prelude::*;

    fn packet(sequence: u32) -> Packet {
        let format: Format = crate::base::schema::defaults();
        Packet { sequence, ..format.control(Kind::Ack, 0, Time::ZERO) }
    }

    proptest! {
        #[test]
        fn headers_survive_packing(
            sequence in 0_u32..1_000_000, offset in 1_u32..100_000, length in 0_u32..100_000,
            rtt in 1e-7_f32..1.0, ratio in 1e-3_f32..1.0, feedback in -1e9_f32..1e9,
        ) {
            let block = (sequence + offset, sequence + offset + length);
            let plain = Header::Ack { block, feedback: 0.0 };
            prop_assert_eq!(packet(sequence).with_header(plain).header(), plain);
            let written = packet(sequence).with_header(Header::Ack { block, feedback });
            prop_assert!((written.header().feedback() - feedback).abs() < f32::EPSILON);
            if let Header::Ack { block: (from, to), .. } = written.header() {
                let is_all = offset < 65_536 && (1..65_536).contains(&length);
                let is_part = from == to || block.0 == from;
                prop_assert!(is_part && (!is_all || (from, to) == block));
                prop_assert!(to <= block.1, "no more than there is");
            }
            let (number, by) = (u64::from(offset) << 40 | u64::from(length), offset as u16);
            let pause = Grant::Pause { by, probe_after: length as u8 };
            for exact in [
                Header::Rcp { rtt, rate: feedback },
                Header::Priority(number),
                Header::D3 { desired: rtt, allotted: feedback },
                Header::FairShare { limit: rtt, leaves: length > 1000 },
                Header::QuickStart { code: length as u8 },
                Header::Pdq { grant: pause, remaining: 0.0, rtt: 0.0 },
                Header::Pdq { grant: Grant::Rate(feedback.abs()), remaining: 0.0, rtt: 0.0 },
            ] {
                prop_assert_eq!(packet(sequence).with_header(exact).header(), exact);
            }
            let written = packet(sequence).with_header(Header::Xcp { rtt, spacing: rtt * ratio, feedback });
            let Header::Xcp { rtt: read, spacing, .. } = written.header() else {
                return Err(TestCaseError::fail("another kind"));
            };
            prop_assert!((read / rtt - 1.0).abs() < 3e-4 && (spacing / (rtt * ratio) - 1.0).abs() < 3e-4);
        }
    }

    #[test]
    fn entropy_values_fit_into_the_headers_of_data_and_answers() {
        let block = Header::Ack { block: (9, 12), feedback: 0.0 };
        let ack = packet(7).with_header(block).with_entropy(65_535, 70);
        assert_eq!((ack.entropy(), ack.received(), ack.header()), (Some(65_535), Some(70), block));
        let credit = Header::Credit { number: u32::MAX, class: 7 };
        let data = Packet { kind: Kind::Data, ..packet(7) }.with_header(credit);
        let data = data.with_entropy(43_210, 0);
        assert_eq!((data.entropy(), data.header(), data.priority()), (Some(43_210), credit, 7));
    }

    #[test]
    fn routers_write_feedback_into_headers_with_a_field_for_it() {
        let mut guided =
            packet(1).with_header(Header::Xcp { rtt: 0.0, spacing: 0.0, feedback: 7.0 });
        guided.write_feedback(-3.0);
        assert_eq!(guided.header(), Header::Xcp { rtt: 0.0, spacing: 0.0, feedback: -3.0 });
        let mut plain = packet(1);
        plain.write_feedback(-3.0);
        assert_eq!(plain.header(), Header::NONE);
    }
}

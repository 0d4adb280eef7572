//! Extensions of packed headers: entropy values, and rows of tables beside the packets.

use super::{
    CREDIT, ENTROPY, Header, OPTIONS, OPTIONS_AND_TELEMETRY, Packed, Packet, TELEMETRY, both, each,
};

impl Packet {
    /// Returns the data packet or the ACK with a reference to its telemetry, which replaces feedback.
    #[must_use]
    pub fn with_telemetry(mut self, row: u32) -> Self {
        let (layout, first) = match self.header() {
            _ if self.options_row().is_some() => (OPTIONS_AND_TELEMETRY, self.packed.0),
            Header::Ack { block, .. } => (TELEMETRY, self.relative(block)),
            _ => unreachable!("the header of a packet with telemetry is that of an ACK"),
        };
        self.packed = Packed(first, row);
        self.flags = self.flags.with_layout(layout);
        self
    }

    /// Returns the row of the packet's telemetry, if it collects or returns any.
    #[inline]
    pub fn telemetry_row(&self) -> Option<usize> {
        (self.flags.layout() & TELEMETRY == TELEMETRY).then_some(self.packed.1 as usize)
    }

    /// Returns the packet with an entropy value, which replaces feedback; an answer also with the number of
    /// segments that the receiver has received, modulo 65536.
    #[must_use]
    pub fn with_entropy(mut self, entropy: u16, received: u16) -> Self {
        match self.header() {
            Header::Credit { number, class } => {
                self.packed = Packed(number, both(entropy, u16::from(class)));
            }
            Header::Ack { block, .. } if self.options_row().is_none() => {
                self.packed = Packed(self.relative(block), both(received, entropy));
                self.flags = self.flags.with_layout(ENTROPY);
            }
            _ => unreachable!("the header of a packet with an entropy value has room for it"),
        }
        self
    }

    /// Returns the entropy value of the packet, or that which its ACK returns, if it has one.
    pub fn entropy(&self) -> Option<u16> {
        match self.flags.layout() {
            ENTROPY => Some(each(self.packed.1).1),
            CREDIT => Some(each(self.packed.1).0),
            _ => None,
        }
    }

    /// Returns the number of segments that the receiver reports, modulo 65536, if it does.
    pub fn received(&self) -> Option<u16> {
        (self.flags.layout() == ENTROPY).then_some(each(self.packed.1).0)
    }

    /// Returns the ACK with a reference to its options, and with feedback.
    #[must_use]
    pub fn with_options(mut self, row: u32, feedback: f32) -> Self {
        self.packed = Packed(row, feedback.to_bits());
        self.flags = self.flags.with_layout(OPTIONS);
        self
    }

    /// Returns the row of the ACK's options, if it has any beyond its header.
    #[inline]
    pub fn options_row(&self) -> Option<usize> {
        let is_row = matches!(self.flags.layout(), OPTIONS | OPTIONS_AND_TELEMETRY);
        is_row.then_some(self.packed.0 as usize)
    }
}

//! Packets, and the arena they live in.

use crate::parameters::positive;
use crate::units::Bytes;

crate::parameters! {
    /// Sizes of packets on the wire.
    pub struct Format {
        /// Payload of a full data packet.
        pub payload: Bytes = Bytes(1000), where positive;
        /// Headers of a data packet, all layers together.
        pub header: Bytes = Bytes(40);
        /// An acknowledgement, headers and all.
        pub ack: Bytes = Bytes(40), where positive;
    }
}

impl Format {
    /// How many packets carry `payload`; a flow of nothing still sends one.
    pub fn packets(&self, payload: Bytes) -> u64 {
        payload.0.div_ceil(self.payload.0).max(1)
    }

    /// What `payload` takes on the wire.
    pub fn on_wire(&self, payload: Bytes) -> Bytes {
        Bytes(payload.0 + self.packets(payload) * self.header.0)
    }
}

//! Links: the transmitter, the packets in flight and the packets that a link loses.

pub mod loss;
pub mod ring;
pub mod transmitter;

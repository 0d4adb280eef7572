//! Tail drop: a packet that does not fit is dropped.

use crate::base::random::Random;
use crate::model::packet::Packet;
use crate::queueing::{Admission, Capacity, QueueState, Verdict};

/// Capacity of the queue; `None` for no limit.
#[derive(Clone, Copy, Debug)]
pub struct TailDrop(pub Option<Capacity>);

impl Admission for TailDrop {
    fn accepts_all_below(&self) -> u64 {
        match self.0 {
            None => u64::MAX,
            Some(Capacity::Bytes(limit)) => limit,
            Some(Capacity::Packets(_)) => 0,
        }
    }

    fn admit(&mut self, packet: &Packet, state: &QueueState, _random: &mut Random) -> Verdict {
        match self.0 {
            Some(capacity) if !capacity.fits(state.backlog, packet.bytes) => Verdict::Drop,
            _ => Verdict::Accept,
        }
    }
}

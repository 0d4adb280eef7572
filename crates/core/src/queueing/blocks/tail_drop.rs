//! Tail drop: a packet that does not fit is dropped.

use crate::base::random::Random;
use crate::model::packet::Packet;
use crate::queueing::{Admission, Limit, QueueState, Verdict};

/// Limit of the queue; `None` for none.
#[derive(Clone, Copy, Debug)]
pub struct TailDrop(pub Option<Limit>);

impl Admission for TailDrop {
    fn accepts_all_below(&self) -> u64 {
        match self.0 {
            None => u64::MAX,
            Some(Limit::Bytes(limit)) => limit,
            Some(Limit::Packets(_)) => 0,
        }
    }

    fn admit(&mut self, packet: &Packet, state: &QueueState, _random: &mut Random) -> Verdict {
        match self.0 {
            Some(capacity) if !capacity.fits(state.backlog, packet.bytes) => Verdict::Drop,
            _ => Verdict::Accept,
        }
    }
}

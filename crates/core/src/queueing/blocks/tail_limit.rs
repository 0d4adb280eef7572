//! The plainest rule: what does not fit is dropped.

use crate::base::random::Random;
use crate::model::packet::Packet;
use crate::queueing::{Admission, Capacity, QueueState, Verdict};

/// The most that waits, if there is such a limit.
#[derive(Clone, Copy, Debug)]
pub struct Limit(pub Option<Capacity>);

impl Admission for Limit {
    fn accepts_all_below(&self) -> u64 {
        match self.0 {
            None => u64::MAX,
            Some(Capacity::Bytes(most)) => most,
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

//! Drop-tail: first in, first out, and no room is no room.

use super::{Admission, Behaviour, Capacity, Discipline, Found, Verdict};
use crate::packet::Packet;
use crate::random::Random;
use crate::units::Rate;

crate::parameters! {
    /// Drop-tail: packets leave in the order they came; one that does not fit is dropped.
    pub struct Config {
        /// The most that waits, in bytes or packets; none for a queue without limit of its own.
        pub capacity: Option<Capacity> = None;
    }
}

impl Discipline for Config {
    fn build(&self, _rate: Rate) -> Behaviour {
        Behaviour::OnArrival(Box::new(Limit(self.capacity)))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }
}

/// The most that waits, if there is such a limit.
#[derive(Clone, Copy, Debug)]
pub struct Limit(pub Option<Capacity>);

impl Admission for Limit {
    fn quiet_below(&self) -> u64 {
        match self.0 {
            None => u64::MAX,
            Some(Capacity::Bytes(most)) => most,
            Some(Capacity::Packets(_)) => 0,
        }
    }

    fn admit(&mut self, packet: &Packet, found: &Found, _random: &mut Random) -> Verdict {
        match self.0 {
            Some(capacity) if !capacity.fits(found.backlog, packet.bytes) => Verdict::Drop,
            _ => Verdict::Accept,
        }
    }
}

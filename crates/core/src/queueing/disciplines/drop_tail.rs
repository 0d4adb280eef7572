//! Drop-tail: first in, first out, and no room is no room.

use super::{Capacity, PortQueue, QueueKind};
use crate::base::units::Rate;
use crate::queueing::blocks::tail_limit::Limit;

crate::parameters! {
    /// Drop-tail: packets leave in the order they came; one that does not fit is dropped.
    pub struct Config {
        /// The most that waits, in bytes or packets; none for a queue without limit of its own.
        pub capacity: Option<Capacity> = None;
    }
}

impl QueueKind for Config {
    fn build(&self, _rate: Rate) -> PortQueue {
        PortQueue::OnArrival(Box::new(Limit(self.capacity)))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }
}

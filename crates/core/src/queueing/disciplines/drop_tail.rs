//! Drop-tail: FIFO queue that drops arriving packets when it is full.

use super::{Capacity, PortQueue, QueueKind};
use crate::base::units::Rate;
use crate::queueing::blocks::tail_drop::TailDrop;

crate::parameters! {
    /// Drop-tail: FIFO queue that drops arriving packets when it is full.
    pub struct Config {
        /// Capacity in bytes or packets. `none`: no limit of its own.
        pub capacity: Option<Capacity> = None;
    }
}

impl QueueKind for Config {
    fn build(&self, _rate: Rate) -> PortQueue {
        PortQueue::OnArrival(Box::new(TailDrop(self.capacity)))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }
}

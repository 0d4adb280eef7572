//! Drop-tail: FIFO queue that drops arriving packets when it is full.

use super::{Capacity, LinkScale, PortQueue, QueueKind};
use crate::queueing::blocks::tail_drop::TailDrop;

crate::parameters! {
    /// Drop-tail: FIFO queue that drops arriving packets when it is full.
    pub struct Config {
        /// Capacity in bytes or packets. `none`: no limit of its own.
        pub capacity: Option<Capacity> = None;
    }
}

impl QueueKind for Config {
    fn build(&self, scale: LinkScale) -> PortQueue {
        PortQueue::OnArrival(Box::new(TailDrop(scale.limit(self.capacity))))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }
}

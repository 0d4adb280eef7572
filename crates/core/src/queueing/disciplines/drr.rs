//! Deficit round robin: flows take turns, each for a quantum of bytes.

use super::{Capacity, PortQueue, QueueKind};
use crate::base::schema::positive;
use crate::base::units::{Bytes, Rate};
use crate::queueing::blocks::deficit_round_robin::{ETHERNET, RoundRobin};
use crate::queueing::blocks::flow_table::Buckets;

crate::parameters! {
    /// Deficit round robin: a line for each flow, which take turns; a flow sends up to a quantum a turn,
    /// and what it does not use is added to its next ([drr95]). What two flows with packets waiting
    /// have sent differs by less than a quantum and two packets.
    pub struct Config {
        /// What a turn is worth, as bytes on the wire: at least a full packet, so that no turn is for
        /// nothing ([drr95] §3; Linux: a full Ethernet frame, 1514 B).
        pub quantum: Bytes = ETHERNET, where positive;
        /// The most that waits, all flows together, in bytes or packets: when it is full the last packet
        /// of the longest line is dropped ([drr95] §3); none for a queue without limit of its own.
        pub capacity: Option<Capacity> = None;
    }
}

impl QueueKind for Config {
    fn build(&self, _rate: Rate) -> PortQueue {
        let queue = RoundRobin::new(self.quantum, Buckets::new(None), self.capacity);
        PortQueue::OnDeparture(Box::new(queue))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }

    fn quantum(&self) -> Option<Bytes> {
        Some(self.quantum)
    }
}

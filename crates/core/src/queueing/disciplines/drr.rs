//! Deficit round robin over flows.

use super::{Capacity, LinkScale, PortQueue, QueueKind};
use crate::base::schema::positive;
use crate::base::units::Bytes;
use crate::queueing::blocks::deficit_round_robin::{DeficitRoundRobin, ETHERNET_FRAME};
use crate::queueing::blocks::flow_queues::FlowClassifier;

crate::parameters! {
    /// Deficit round robin: one queue per flow. Each flow sends up to a quantum of bytes per round,
    /// and its unused deficit carries over ([drr95]). The service of two backlogged flows differs
    /// by at most a quantum plus two packets.
    pub struct Config {
        /// Bytes that a flow may send per round, headers included; at least a full packet, so that
        /// each round serves every backlogged flow ([drr95] §3; Linux: a full Ethernet frame, 1514
        /// B).
        pub quantum: Bytes = ETHERNET_FRAME, where positive;
        /// Total capacity of all flows, in bytes or packets. When it is exceeded, the last packet
        /// of the longest flow queue is dropped ([drr95] §3). `none`: no limit of its own.
        pub capacity: Option<Capacity> = None;
    }
}

impl QueueKind for Config {
    fn build(&self, scale: LinkScale) -> PortQueue {
        let queue = DeficitRoundRobin::new(
            self.quantum,
            FlowClassifier::new(None),
            scale.limit(self.capacity),
        );
        PortQueue::OnDeparture(Box::new(queue))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }

    fn quantum(&self) -> Option<Bytes> {
        Some(self.quantum)
    }
}

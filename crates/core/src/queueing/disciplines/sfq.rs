//! Stochastic fair queueing: deficit round robin over buckets to which a hash assigns the flows.

use super::{Capacity, LinkScale, PortQueue, QueueKind};
use crate::base::schema::positive;
use crate::base::units::Bytes;
use crate::queueing::blocks::deficit_round_robin::{DeficitRoundRobin, ETHERNET_FRAME};
use crate::queueing::blocks::flow_queues::FlowClassifier;

crate::parameters! {
    /// Stochastic fair queueing: a hash assigns flows to buckets, which are served by deficit round
    /// robin ([sfq90]). The hash differs for each port and seed. One of n + 1 flows shares its
    /// bucket with probability 1 - (1 - 1 / buckets)^n.
    ///
    /// Deviation: the hash is fixed during a run, whereas [sfq90] perturbs it periodically. Packets
    /// of a flow stay in order, and different seeds sample different collisions.
    pub struct Config {
        /// Number of buckets (Linux: 1024).
        pub buckets: u32 = 1024, where positive;
        /// Bytes that a bucket may send per round, headers included; at least a full packet (Linux:
        /// a full Ethernet frame, 1514 B).
        pub quantum: Bytes = ETHERNET_FRAME, where positive;
        /// Total capacity of all buckets, in bytes or packets. When it is exceeded, the last packet
        /// of the longest bucket is dropped ([sfq90]). `none`: no limit of its own.
        pub capacity: Option<Capacity> = None;
    }
}

impl QueueKind for Config {
    fn build(&self, scale: LinkScale) -> PortQueue {
        let classifier = FlowClassifier::new(Some(self.buckets));
        PortQueue::OnDeparture(Box::new(DeficitRoundRobin::new(
            self.quantum,
            classifier,
            scale.limit(self.capacity),
        )))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }

    fn quantum(&self) -> Option<Bytes> {
        Some(self.quantum)
    }
}

//! Stochastic fair queueing: round robin over buckets, into which flows are put by chance.

use super::{Capacity, PortQueue, QueueKind};
use crate::base::schema::positive;
use crate::base::units::{Bytes, Rate};
use crate::queueing::blocks::deficit_round_robin::{ETHERNET, RoundRobin};
use crate::queueing::blocks::flow_table::Buckets;

crate::parameters! {
    /// Stochastic fair queueing: so many buckets take turns, and a hash puts each flow into one of them
    /// ([sfq90]). The hash is another at each port and under each seed. One of n + 1 flows shares its
    /// bucket with probability 1 - (1 - 1 / buckets)^n.
    ///
    /// Deviation: the hash stays the same throughout a run, where [sfq90] changes it now and then; flows
    /// that share a bucket are another sample under each seed, and packets keep their order.
    pub struct Config {
        /// How many buckets there are (Linux: 1024).
        pub buckets: u32 = 1024, where positive;
        /// What a turn is worth, as bytes on the wire: at least a full packet (Linux: a full Ethernet
        /// frame, 1514 B).
        pub quantum: Bytes = ETHERNET, where positive;
        /// The most that waits, all buckets together, in bytes or packets: when it is full the last packet
        /// of the longest is dropped ([sfq90]); none for a queue without limit of its own.
        pub capacity: Option<Capacity> = None;
    }
}

impl QueueKind for Config {
    fn build(&self, _rate: Rate) -> PortQueue {
        let buckets = Buckets::new(Some(self.buckets));
        PortQueue::OnDeparture(Box::new(RoundRobin::new(self.quantum, buckets, self.capacity)))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }

    fn quantum(&self) -> Option<Bytes> {
        Some(self.quantum)
    }
}

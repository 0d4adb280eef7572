//! DCTCP's ECN threshold: marks packets while the queue is longer than K.

use super::{Backlog, Capacity, PortQueue, QueueKind};
use crate::base::random::Random;
use crate::base::units::Rate;
use crate::queueing::blocks::marking::{self, MarkAt, MarkingRule};
use crate::queueing::blocks::tail_drop::TailDrop;

crate::parameters! {
    /// ECN threshold: drop-tail queue that marks by the instantaneous queue length ([dctcp10]
    /// §3.1).
    pub struct Config {
        /// K: packets are marked while the backlog exceeds this, without the packet itself and the
        /// packet in transmission. `none`: scales with the link rate, 65 packets of 1500 B at 10
        /// Gb/s ([dctcp10]), at least 20 packets.
        pub threshold: Option<Capacity> = None;
        /// Time of the marking decision.
        pub mark_at: MarkAt = MarkAt::Arrival;
        /// Capacity in bytes or packets. `none`: no limit of its own.
        pub capacity: Option<Capacity> = None;
    }
}

impl Config {
    fn threshold(&self, rate: Rate) -> Capacity {
        const PACKET: u64 = 1500;
        let packets = 65.0 * rate.bps() / Rate::from_gbps(10).bps();
        self.threshold.unwrap_or(Capacity::Bytes(PACKET * (packets.round() as u64).max(20)))
    }
}

impl QueueKind for Config {
    fn build(&self, rate: Rate) -> PortQueue {
        marking::build(StepMarking(self.threshold(rate)), self.mark_at, TailDrop(self.capacity))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }
}

struct StepMarking(Capacity);

impl MarkingRule for StepMarking {
    fn accepts_all_below(&self) -> u64 {
        match self.0 {
            Capacity::Bytes(threshold) => threshold,
            Capacity::Packets(_) => 0,
        }
    }

    fn should_mark(&self, backlog: Backlog, _random: &mut Random) -> bool {
        self.0.exceeded_by(backlog)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_threshold_scales_with_the_link_rate() {
        let config = Config { threshold: None, mark_at: MarkAt::Arrival, capacity: None };
        assert_eq!(config.threshold(Rate::from_gbps(10)), Capacity::Bytes(65 * 1500));
        assert_eq!(config.threshold(Rate::from_gbps(40)), Capacity::Bytes(260 * 1500));
        assert_eq!(config.threshold(Rate::from_gbps(1)), Capacity::Bytes(20 * 1500));
    }
}

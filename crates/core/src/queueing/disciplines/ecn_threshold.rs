//! The ECN threshold of DCTCP: mark every packet that finds, or leaves, more than K behind.

use super::{Backlog, Capacity, PortQueue, QueueKind};
use crate::base::random::Random;
use crate::base::units::Rate;
use crate::queueing::blocks::marking::{self, MarkAt, Rule};
use crate::queueing::blocks::tail_limit::Limit;

crate::parameters! {
    /// ECN threshold: drop-tail that marks by the instantaneous queue ([dctcp10] §3.1).
    pub struct Config {
        /// K: a packet is marked if more than this waits, itself and the packet on the wire not
        /// counted. None scales with the link: 65 packets of 1500 B at 10 Gb/s ([dctcp10]), never
        /// under 20.
        pub threshold: Option<Capacity> = None;
        /// The moment that decides.
        pub mark_at: MarkAt = MarkAt::Arrival;
        /// The most that waits, in bytes or packets; none for a queue without limit of its own.
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
        marking::build(Threshold(self.threshold(rate)), self.mark_at, Limit(self.capacity))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }
}

struct Threshold(Capacity);

impl Rule for Threshold {
    fn accepts_all_below(&self) -> u64 {
        match self.0 {
            Capacity::Bytes(threshold) => threshold,
            Capacity::Packets(_) => 0,
        }
    }

    fn marks(&self, backlog: Backlog, _random: &mut Random) -> bool {
        self.0.exceeded_by(backlog)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_threshold_follows_the_link_rate() {
        let config = Config { threshold: None, mark_at: MarkAt::Arrival, capacity: None };
        assert_eq!(config.threshold(Rate::from_gbps(10)), Capacity::Bytes(65 * 1500));
        assert_eq!(config.threshold(Rate::from_gbps(40)), Capacity::Bytes(260 * 1500));
        assert_eq!(config.threshold(Rate::from_gbps(1)), Capacity::Bytes(20 * 1500));
    }
}

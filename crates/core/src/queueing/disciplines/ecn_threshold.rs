//! DCTCP's ECN threshold: marks packets while the queue is longer than K.

use super::{Backlog, Capacity, DesignRates, Limit, LinkScale, PortQueue, QueueKind};
use crate::base::random::Random;
use crate::base::units::{Bytes, Rate};
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
        /// Minimum of a given `threshold` in bytes: at low rates a time, or a bandwidth-delay product, is
        /// less than a burst.
        pub least_threshold: Bytes = Bytes::ZERO;
        /// Time of the marking decision.
        pub mark_at: MarkAt = MarkAt::Arrival;
        /// If true, packets that are not ECN-capable are dropped where others are marked, as WRED of switches
        /// does (RFC 7567 §4.2.1). If false, only `capacity` and the switch's buffer limit them.
        pub drops_non_ect: bool = false;
        /// Capacity in bytes or packets. `none`: no limit of its own.
        pub capacity: Option<Capacity> = None;
    }
}

impl Config {
    fn threshold(&self, scale: LinkScale) -> Limit {
        const PACKET: u64 = 1500;
        let by_rate = || {
            let packets = 65.0 * scale.rate.bps() / Rate::from_gbps(10).bps();
            Limit::Bytes(PACKET * (packets.round() as u64).max(20))
        };
        let given = scale.limit(self.threshold);
        given.map_or_else(by_rate, |limit| limit.at_least(self.least_threshold))
    }
}

impl QueueKind for Config {
    fn build(&self, scale: LinkScale) -> PortQueue {
        let tail_drop = TailDrop(scale.limit(self.capacity));
        let rule = StepMarking(self.threshold(scale));
        marking::build(rule, self.mark_at, self.drops_non_ect, tail_drop)
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }

    fn marks(&self) -> bool {
        true
    }

    fn thresholds(&self, scale: LinkScale) -> Vec<(&'static str, Limit)> {
        vec![("threshold", self.threshold(scale))]
    }

    fn design_rates(&self) -> Option<DesignRates> {
        self.threshold.and_then(DesignRates::of_dctcp_threshold)
    }
}

struct StepMarking(Limit);

impl MarkingRule for StepMarking {
    fn accepts_all_below(&self) -> u64 {
        match self.0 {
            Limit::Bytes(threshold) => threshold,
            Limit::Packets(_) => 0,
        }
    }

    fn should_mark(&self, backlog: Backlog, _random: &mut Random) -> bool {
        self.0.exceeded_by(backlog)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use crate::model::packet::{Flags, Packet};
    use crate::queueing::Fifo;
    use crate::queueing::blocks::fixture::{QueueFixture, SCALE, packet};
    use serde_json::{Value, json};

    /// Threshold in packets of 1500 B at these rates.
    fn packets<const N: usize>(config: &Value, gbps: [u64; N]) -> [u64; N] {
        let config = Config::read(config).unwrap();
        gbps.map(|gbps| {
            let scale = LinkScale { rate: Rate::from_gbps(gbps), ..SCALE };
            let Limit::Bytes(bytes) = config.threshold(scale) else { panic!("not in bytes") };
            bytes / 1500
        })
    }

    #[test]
    fn the_default_threshold_scales_with_the_link_rate() {
        assert_eq!(packets(&json!({}), [1, 10, 40]), [20, 65, 260]);
    }

    #[test]
    fn a_threshold_as_a_time_scales_above_its_minimum() {
        // 24 us are 2 packets of 1500 B at 1 Gb/s, 20 at 10 Gb/s and 200 at 100 Gb/s.
        let config = json!({ "threshold": "24 us", "least_threshold": "30 KB" });
        assert_eq!(packets(&config, [1, 10, 100]), [20, 20, 200]);
        assert_eq!(packets(&json!({ "threshold": "24 us" }), [1, 10, 100]), [2, 20, 200]);
    }

    #[test]
    fn packets_that_are_not_ecn_capable_are_dropped_above_the_threshold_if_it_drops_them() {
        let of = |mark_at: &str, drops_non_ect: bool| {
            let config = json!({
                "threshold": "1 packet", "mark_at": mark_at, "drops_non_ect": drops_non_ect,
            });
            match Config::read(&config).unwrap().build(SCALE) {
                PortQueue::OnArrival(admission) => Box::new(Fifo::new(admission)),
                PortQueue::OnDeparture(queue) => queue,
            }
        };
        for mark_at in ["arrival", "departure"] {
            for drops_non_ect in [false, true] {
                let mut fixture = QueueFixture::new(of(mark_at, drops_non_ect));
                let mut dropped = 0;
                for sequence in 0..8 {
                    // Packets with odd numbers are not ECN-capable.
                    let mut packet = packet(0, sequence, 1500);
                    packet.flags = Flags::NONE.with_if(Flags::ECN_CAPABLE, sequence % 2 == 0);
                    dropped += fixture.enqueue(packet).len();
                }
                let mut departed = Vec::new();
                while let (Some(packet), drops) = fixture.dequeue() {
                    dropped += drops.len();
                    departed.push(packet);
                }
                let is_marked = |packet: &&Packet| packet.is_marked();
                assert_eq!(departed.iter().filter(is_marked).count(), 3, "{mark_at}");
                assert_eq!(dropped, if drops_non_ect { 3 } else { 0 }, "{mark_at}");
            }
        }
    }
}

//! Strict priority: one FIFO per class. A class is served only while all lower-numbered classes are
//! empty.

use super::{
    Backlog, Capacity, Context, DesignRates, Limit, LinkScale, PacketFifo, PortQueue, Priorities,
    Queue, QueueKind,
};
use crate::base::units::Bytes;
use crate::model::packet::Packet;

crate::choices! {
    /// Backlog that is compared with the marking threshold.
    pub enum MarkBy {
        /// Backlog of the port, so that all classes together keep the queue short.
        Port = "port",
        /// Backlog of the packet's class.
        Class = "class",
    }
}

/// Largest number of classes: one bit each.
const MAX_CLASSES: u32 = u64::BITS;

crate::parameters! {
    /// Strict priority: one FIFO per class of packets, the lowest number first. Packets in
    /// transmission are not preempted.
    pub struct Config {
        /// Number of classes, numbered from 0. Packets without a priority belong to class 0 (common
        /// switches: 8).
        pub classes: u32 = 8, where |classes| {
            if (1..=MAX_CLASSES).contains(classes) { Ok(()) } else { Err("from 1 to 64") }
        };
        /// Total capacity of all classes, in bytes or packets. Arriving packets that do not fit are
        /// dropped. `none`: no limit of its own.
        pub capacity: Option<Capacity> = None;
        /// K: packets that find a longer backlog are marked. `none`: no marking.
        pub threshold: Option<Capacity> = None;
        /// Minimum of `threshold` in bytes.
        pub least_threshold: Bytes = Bytes::ZERO;
        /// Backlog that is compared with `threshold` ([pias15]: that of the port).
        pub mark_by: MarkBy = MarkBy::Port;
    }
}

impl Config {
    fn threshold(&self, scale: LinkScale) -> Option<Limit> {
        scale.limit(self.threshold).map(|limit| limit.at_least(self.least_threshold))
    }
}

impl QueueKind for Config {
    fn build(&self, scale: LinkScale) -> PortQueue {
        PortQueue::OnDeparture(Box::new(StrictPriority {
            capacity: scale.limit(self.capacity),
            threshold: self.threshold(scale),
            mark_by: self.mark_by,
            queues: (0..self.classes).map(|_| PacketFifo::default()).collect(),
            occupied: 0,
            backlog: Backlog::default(),
        }))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }

    fn marks(&self) -> bool {
        self.threshold.is_some()
    }

    fn thresholds(&self, scale: LinkScale) -> Vec<(&'static str, Limit)> {
        self.threshold(scale).map(|limit| ("threshold", limit)).into_iter().collect()
    }

    fn design_rates(&self) -> Option<DesignRates> {
        self.threshold.and_then(DesignRates::of_dctcp_threshold)
    }

    fn priorities(&self) -> Option<Priorities> {
        Some(Priorities::Classes(self.classes))
    }
}

struct StrictPriority {
    capacity: Option<Limit>,
    threshold: Option<Limit>,
    mark_by: MarkBy,
    /// FIFOs by class.
    queues: Vec<PacketFifo>,
    /// One bit per class, set if its FIFO is not empty.
    occupied: u64,
    backlog: Backlog,
}

impl Queue for StrictPriority {
    fn enqueue(&mut self, mut packet: Packet, context: &mut Context<'_>) {
        let Self { capacity, threshold, mark_by, .. } = *self;
        if capacity.is_some_and(|capacity| !capacity.fits(self.backlog, packet.bytes)) {
            context.dropped.push(packet);
            return;
        }
        let class = packet.priority() as usize;
        assert!(class < self.queues.len(), "priority {class} of {} classes", self.queues.len());
        let backlog = match mark_by {
            MarkBy::Port => self.backlog,
            MarkBy::Class => self.queues[class].backlog(),
        };
        if threshold.is_some_and(|threshold| threshold.exceeded_by(backlog)) {
            context.mark(&mut packet);
        }
        self.queues[class].push(packet);
        self.occupied |= 1 << class;
        self.backlog.add(packet.bytes);
    }

    fn dequeue(&mut self, _context: &mut Context<'_>) -> Option<Packet> {
        let class = self.occupied.trailing_zeros() as usize;
        let queue = self.queues.get_mut(class)?;
        let packet = queue.pop()?;
        if queue.backlog().packets == 0 {
            self.occupied &= !(1 << class);
        }
        self.backlog.remove(packet.bytes);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.queues.iter().for_each(|queue| queue.for_each_packet(visit));
    }

    fn allows_lazy_service(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;
    use crate::base::schema::{Parameter, defaults};
    use crate::base::units::Time;
    use crate::model::packet::{Flags, Format, Header, Kind};
    use crate::queueing::blocks::fixture::SCALE;
    use proptest::prelude::*;
    use serde_json::json;

    fn packet(sequence: u32, bytes: u16, class: u64) -> Packet {
        let format: Format = defaults();
        let flags = Flags::NONE.with_if(Flags::ECN_CAPABLE, true);
        let control = format.control(Kind::Data, 0, Time::ZERO);
        Packet { sequence, bytes, flags, ..control }.with_header(Header::Priority(class))
    }

    /// Queue and its context.
    struct Fixture {
        queue: Box<dyn Queue>,
        random: Random,
        dropped: Vec<Packet>,
        trimmed: Vec<Packet>,
        marks: u64,
    }

    fn fixture(config: &serde_json::Value) -> Fixture {
        let config = Config::read(config).unwrap();
        let PortQueue::OnDeparture(queue) = config.build(SCALE) else {
            panic!("expected a queue that decides on departure");
        };
        let random = Random::new(1, "queue");
        Fixture { queue, random, dropped: Vec::new(), trimmed: Vec::new(), marks: 0 }
    }

    impl Fixture {
        fn context(&mut self) -> (&mut dyn Queue, Context<'_>) {
            let Self { queue, random, dropped, trimmed, marks } = self;
            (&mut **queue, Context { now: Time::ZERO, random, dropped, trimmed, marks })
        }

        /// Returns true if the packet is enqueued.
        fn enqueue(&mut self, packet: Packet) -> bool {
            let (queue, mut context) = self.context();
            queue.enqueue(packet, &mut context);
            self.dropped.pop().is_none()
        }

        fn dequeue(&mut self) -> Option<Packet> {
            let (queue, mut context) = self.context();
            queue.dequeue(&mut context)
        }
    }

    #[test]
    fn mark_by_selects_the_backlog_that_is_compared() {
        for (mark_by, marked) in [("port", [false, false, true, true]), ("class", [false; 4])] {
            let mut fixture = fixture(&json!({ "threshold": "1 packet", "mark_by": mark_by }));
            for class in [7, 6, 5, 0] {
                assert!(fixture.enqueue(packet(0, 1000, class)));
            }
            let marks: Vec<bool> = (0..4).map(|_| fixture.dequeue().unwrap().is_marked()).collect();
            // Class 0 arrived last and departs first.
            assert_eq!(marks, [marked[3], marked[2], marked[1], marked[0]], "{mark_by}");
            assert_eq!(fixture.marks, marked.iter().filter(|marked| **marked).count() as u64);
        }
        let mut fixture = fixture(&json!({ "threshold": "1 packet", "mark_by": "class" }));
        for sequence in 0..3 {
            fixture.enqueue(packet(sequence, 1000, 3));
        }
        let marks: Vec<bool> = (0..3).map(|_| fixture.dequeue().unwrap().is_marked()).collect();
        assert_eq!(marks, [false, false, true]);
    }

    #[test]
    #[should_panic(expected = "priority 8 of 8 classes")]
    fn an_out_of_range_priority_panics() {
        fixture(&json!({})).enqueue(packet(0, 1000, 8));
    }

    proptest! {
        #[test]
        fn the_first_packet_of_the_lowest_class_departs_and_packets_are_conserved(
            classes in 1_u32..=64,
            visits in prop::collection::vec((any::<bool>(), 40_u16..1500, 0_u64..64), 0..300),
        ) {
            let capacity = Limit::Bytes(9_000);
            let mut fixture = fixture(&json!({ "classes": classes, "capacity": "9 KB" }));
            let mut expected: Vec<Packet> = Vec::new();
            let empty = std::iter::repeat_n((false, 0, 0), visits.len());
            for (sequence, (arrives, bytes, class)) in (0..).zip(visits.iter().copied().chain(empty)) {
                if arrives {
                    let packet = packet(sequence, bytes, class % u64::from(classes));
                    let fits = capacity.fits(fixture.queue.backlog(), bytes);
                    prop_assert_eq!(fixture.enqueue(packet), fits);
                    if fits {
                        expected.push(packet);
                    }
                } else {
                    let order = |i: &usize| (expected[*i].priority(), expected[*i].sequence);
                    let first = (0..expected.len()).min_by_key(order);
                    prop_assert_eq!(fixture.dequeue(), first.map(|first| expected.remove(first)));
                }
                let bytes: u64 = expected.iter().map(|packet| u64::from(packet.bytes)).sum();
                let packets = expected.len() as u32;
                prop_assert_eq!(fixture.queue.backlog(), Backlog { bytes, packets });
                prop_assert!(bytes <= 9_000);
            }
            prop_assert!(expected.is_empty());
        }
    }
}

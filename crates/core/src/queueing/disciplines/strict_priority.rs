//! Strict priority: a line for each class, and nothing leaves while something more urgent waits.

use super::{Backlog, Capacity, Context, PacketFifo, PortQueue, Queue, QueueKind};
use crate::base::units::Rate;
use crate::model::packet::Packet;

crate::choices! {
    /// Which backlog marks.
    pub enum MarkBy {
        /// That of the whole port, so that all classes together keep it short.
        Port = "port",
        /// That of the packet's own class.
        Class = "class",
    }
}

/// Most classes: one bit each.
const MOST: u32 = u64::BITS;

crate::parameters! {
    /// Strict priority: a line for each class of packets, the lowest number first. What is being sent is
    /// not interrupted.
    pub struct Config {
        /// How many classes there are, counted from 0. Packets say theirs; what says none is of class 0
        /// (common switches: 8).
        pub classes: u32 = 8, where |classes| {
            if (1..=MOST).contains(classes) { Ok(()) } else { Err("from 1 to 64") }
        };
        /// The most that waits, all classes together, in bytes or packets: what does not fit is dropped as
        /// it comes; none for a queue without limit of its own.
        pub capacity: Option<Capacity> = None;
        /// K: a packet is marked if it finds more than this waiting; none never marks.
        pub threshold: Option<Capacity> = None;
        /// Which backlog is held against K ([pias15]: the port's).
        pub mark_by: MarkBy = MarkBy::Port;
    }
}

impl QueueKind for Config {
    fn build(&self, _rate: Rate) -> PortQueue {
        PortQueue::OnDeparture(Box::new(StrictPriority {
            config: self.clone(),
            lines: (0..self.classes).map(|_| PacketFifo::default()).collect(),
            occupied: 0,
            backlog: Backlog::default(),
        }))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }

    fn priorities(&self) -> Option<u32> {
        Some(self.classes)
    }
}

struct StrictPriority {
    config: Config,
    /// By class.
    lines: Vec<PacketFifo>,
    /// In which of them something waits: a bit for each.
    occupied: u64,
    backlog: Backlog,
}

impl Queue for StrictPriority {
    fn enqueue(&mut self, mut packet: Packet, context: &mut Context<'_>) {
        let Config { capacity, threshold, mark_by, .. } = self.config;
        if capacity.is_some_and(|capacity| !capacity.fits(self.backlog, packet.bytes)) {
            context.dropped.push(packet);
            return;
        }
        let class = packet.priority() as usize;
        assert!(class < self.lines.len(), "priority {class} of {} classes", self.lines.len());
        let found = match mark_by {
            MarkBy::Port => self.backlog,
            MarkBy::Class => self.lines[class].backlog(),
        };
        if threshold.is_some_and(|threshold| threshold.exceeded_by(found)) {
            context.mark(&mut packet);
        }
        self.lines[class].push(packet);
        self.occupied |= 1 << class;
        self.backlog.add(packet.bytes);
    }

    fn dequeue(&mut self, _context: &mut Context<'_>) -> Option<Packet> {
        let class = self.occupied.trailing_zeros() as usize;
        let line = self.lines.get_mut(class)?;
        let packet = line.pop()?;
        if line.backlog().packets == 0 {
            self.occupied &= !(1 << class);
        }
        self.backlog.remove(packet.bytes);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.lines.iter().for_each(|line| line.for_each_packet(visit));
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
    use proptest::prelude::*;
    use serde_json::json;

    fn packet(sequence: u32, bytes: u16, class: u64) -> Packet {
        let format: Format = defaults();
        let flags = Flags::NONE.with_if(Flags::ECN_CAPABLE, true);
        let plain = format.control(Kind::Data, 0, Time::ZERO);
        Packet { sequence, bytes, flags, ..plain }.with_header(Header::Priority(class))
    }

    /// A queue with all that it may use.
    struct Bench {
        queue: Box<dyn Queue>,
        random: Random,
        dropped: Vec<Packet>,
        marks: u64,
    }

    fn bench(config: &serde_json::Value) -> Bench {
        let config = Config::read(config).unwrap();
        let PortQueue::OnDeparture(queue) = config.build(Rate::from_gbps(10)) else {
            panic!("served as it departs");
        };
        Bench { queue, random: Random::new(1, "queue"), dropped: Vec::new(), marks: 0 }
    }

    impl Bench {
        fn context(&mut self) -> (&mut dyn Queue, Context<'_>) {
            let Self { queue, random, dropped, marks } = self;
            (&mut **queue, Context { now: Time::ZERO, random, dropped, marks })
        }

        /// Says whether the packet was taken in.
        fn push(&mut self, packet: Packet) -> bool {
            let (queue, mut context) = self.context();
            queue.enqueue(packet, &mut context);
            self.dropped.pop().is_none()
        }

        fn pop(&mut self) -> Option<Packet> {
            let (queue, mut context) = self.context();
            queue.dequeue(&mut context)
        }
    }

    #[test]
    fn the_port_or_the_class_decides_which_packets_are_marked() {
        for (mark_by, marked) in [("port", [false, false, true, true]), ("class", [false; 4])] {
            let mut bench = bench(&json!({ "threshold": "1 packet", "mark_by": mark_by }));
            for class in [7, 6, 5, 0] {
                assert!(bench.push(packet(0, 1000, class)));
            }
            let found: Vec<bool> = (0..4).map(|_| bench.pop().unwrap().is_marked()).collect();
            // Class 0 came last and leaves first.
            assert_eq!(found, [marked[3], marked[2], marked[1], marked[0]], "{mark_by}");
            assert_eq!(bench.marks, marked.iter().filter(|marked| **marked).count() as u64);
        }
        let mut bench = bench(&json!({ "threshold": "1 packet", "mark_by": "class" }));
        for sequence in 0..3 {
            bench.push(packet(sequence, 1000, 3));
        }
        let found: Vec<bool> = (0..3).map(|_| bench.pop().unwrap().is_marked()).collect();
        assert_eq!(found, [false, false, true]);
    }

    #[test]
    #[should_panic(expected = "priority 8 of 8 classes")]
    fn a_priority_beyond_the_classes_is_refused() {
        bench(&json!({})).push(packet(0, 1000, 8));
    }

    proptest! {
        #[test]
        fn the_first_of_the_lowest_class_leaves_and_nothing_is_lost_or_too_much(
            classes in 1_u32..=64,
            visits in prop::collection::vec((any::<bool>(), 40_u16..1500, 0_u64..64), 0..300),
        ) {
            let capacity = Capacity::Bytes(9_000);
            let mut bench = bench(&json!({ "classes": classes, "capacity": "9 KB" }));
            let mut waiting: Vec<Packet> = Vec::new();
            let empty = std::iter::repeat_n((false, 0, 0), visits.len());
            for (sequence, (comes, bytes, class)) in (0..).zip(visits.iter().copied().chain(empty)) {
                if comes {
                    let packet = packet(sequence, bytes, class % u64::from(classes));
                    let fits = capacity.fits(bench.queue.backlog(), bytes);
                    prop_assert_eq!(bench.push(packet), fits);
                    if fits {
                        waiting.push(packet);
                    }
                } else {
                    let order = |i: &usize| (waiting[*i].priority(), waiting[*i].sequence);
                    let first = (0..waiting.len()).min_by_key(order);
                    prop_assert_eq!(bench.pop(), first.map(|first| waiting.remove(first)));
                }
                let bytes: u64 = waiting.iter().map(|packet| u64::from(packet.bytes)).sum();
                let packets = waiting.len() as u32;
                prop_assert_eq!(bench.queue.backlog(), Backlog { bytes, packets });
                prop_assert!(bytes <= 9_000);
            }
            prop_assert!(waiting.is_empty());
        }
    }
}

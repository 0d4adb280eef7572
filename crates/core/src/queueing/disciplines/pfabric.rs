//! pFabric's queue: drops the worst packet and transmits the earliest packet of the best flow.
//!
//! Source: [pfabric13] §4.2; ties and the limit in bytes as in the authors' ns-2 module. The
//! smaller number is the better priority. Packets without a priority (ACKs) have priority 0.

use super::{
    Backlog, Capacity, Context, DesignRates, Limit, LinkScale, PortQueue, Priorities,
    PriorityCounts, Queue, QueueKind,
};
use crate::base::units::{Bytes, Rate};
use crate::model::packet::Packet;
use crate::queueing::blocks::priority_store::PriorityStore;

crate::parameters! {
    /// pFabric's queue: when it is full, the packet of the worst priority is dropped. The flow of
    /// the best priority is served first ([pfabric13] §4.2).
    pub struct Config {
        /// Capacity ([pfabric13] §5.4.3: two bandwidth-delay products, 36 KB). `none`: no limit of
        /// its own.
        pub capacity: Option<Capacity> = Some(Capacity::Bytes(36_000));
        /// If true, the earliest packet of the best flow is transmitted instead of its best packet.
        /// Otherwise a flow whose priority improves as it shrinks would transmit its newest packets
        /// first. Without effect if the priority of a flow is constant.
        pub starvation_prevention: bool = true;
        /// Upper bounds of priority ranges, as payload. The summary counts arrivals and drops of
        /// data packets and probes by range (in the authors' module probes are data packets of one
        /// byte). Empty: no counts.
        pub census: Vec<Bytes> = Vec::new();
    }
}

impl QueueKind for Config {
    fn build(&self, scale: LinkScale) -> PortQueue {
        PortQueue::OnDeparture(Box::new(PFabric {
            capacity: scale.limit(self.capacity),
            packets: PriorityStore::new(self.starvation_prevention),
            backlog: Backlog::default(),
            priority_counts: PriorityCounts::new(&self.census),
        }))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }

    /// Hosts of [pfabric13] have 10 Gb/s; its fabric of 40 Gb/s has the same queues.
    fn design_rates(&self) -> Option<DesignRates> {
        let is_published = self.capacity == Some(Capacity::Bytes(36_000));
        let (least, most) = (Rate::from_gbps(10), Rate::from_gbps(40));
        is_published.then_some(DesignRates { field: "capacity", least, most })
    }

    fn priorities(&self) -> Option<Priorities> {
        Some(Priorities::Numbers)
    }
}

/// State of a queue.
struct PFabric {
    capacity: Option<Limit>,
    packets: PriorityStore,
    backlog: Backlog,
    priority_counts: Option<PriorityCounts>,
}

impl Queue for PFabric {
    fn enqueue(&mut self, packet: Packet, context: &mut Context<'_>) {
        if let Some(priority_counts) = &mut self.priority_counts {
            priority_counts.count_arrival(&packet);
        }
        self.backlog.add(packet.bytes);
        self.packets.push(packet);
        while self.is_over_capacity()
            && let Some(dropped) = self.packets.pop_worst()
        {
            self.backlog.remove(dropped.bytes);
            if let Some(priority_counts) = &mut self.priority_counts {
                priority_counts.count_drop(&dropped);
            }
            context.dropped.push(dropped);
        }
    }

    fn dequeue(&mut self, _context: &mut Context<'_>) -> Option<Packet> {
        let best = self.packets.pop_best()?;
        self.backlog.remove(best.bytes);
        Some(best)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.packets.for_each_packet(visit);
    }

    fn allows_lazy_service(&self) -> bool {
        true
    }

    fn on_bypass(&mut self, packet: &Packet) {
        if let Some(priority_counts) = &mut self.priority_counts {
            priority_counts.count_arrival(packet);
        }
    }

    fn priority_counts(&self) -> Option<&PriorityCounts> {
        self.priority_counts.as_ref()
    }
}

impl PFabric {
    fn is_over_capacity(&self) -> bool {
        self.capacity.is_some_and(|capacity| capacity.exceeded_by(self.backlog))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;
    use crate::base::schema::{Parameter, defaults};
    use crate::base::units::Time;
    use crate::model::packet::{FlowNumber, Format, Header, Kind};
    use crate::queueing::blocks::fixture::SCALE;
    use proptest::prelude::*;
    use serde_json::json;

    fn queue(config: &serde_json::Value) -> Box<dyn Queue> {
        match Config::read(config).unwrap().build(SCALE) {
            PortQueue::OnDeparture(queue) => queue,
            PortQueue::OnArrival(_) => panic!("expected a queue that decides on departure"),
        }
    }

    fn packet(flow: FlowNumber, sequence: u32, priority: u64) -> Packet {
        let format: Format = defaults();
        let packet =
            Packet { sequence, bytes: 1000, ..format.control(Kind::Data, flow, Time::ZERO) };
        packet.with_header(Header::Priority(priority))
    }

    /// Enqueues a packet, or dequeues one. Returns the departed and the dropped packets.
    fn step(queue: &mut dyn Queue, packet: Option<Packet>) -> (Option<Packet>, Vec<Packet>) {
        let (mut random, mut dropped, mut marks) = (Random::new(1, "test"), Vec::new(), 0);
        let mut context = Context {
            now: Time::ZERO,
            random: &mut random,
            dropped: &mut dropped,
            trimmed: &mut Vec::new(),
            marks: &mut marks,
        };
        let popped = match packet {
            Some(packet) => {
                queue.enqueue(packet, &mut context);
                None
            }
            None => queue.dequeue(&mut context),
        };
        (popped, dropped)
    }

    fn drain(queue: &mut dyn Queue) -> Vec<(FlowNumber, u32)> {
        std::iter::from_fn(|| step(queue, None).0).map(|p| (p.flow, p.sequence)).collect()
    }

    #[test]
    fn the_best_flow_is_served_first_and_in_order() {
        let in_order = [(1, 0), (1, 1), (1, 2), (0, 0)];
        let best_first = [(1, 2), (1, 1), (0, 0), (1, 0)];
        for (is_enabled, expected) in [(true, in_order), (false, best_first)] {
            let mut queue = queue(&json!({ "starvation_prevention": is_enabled }));
            // The priority of flow 1 improves with each packet, and its earliest packet is worse
            // than that of flow 0.
            for packet in [packet(0, 0, 50), packet(1, 0, 60), packet(1, 1, 40), packet(1, 2, 20)] {
                step(&mut *queue, Some(packet));
            }
            assert_eq!(drain(&mut *queue), expected);
        }
    }

    #[test]
    fn the_worst_packet_is_dropped_and_the_latest_of_equals() {
        let mut queue = queue(&json!({ "capacity": "3000 B" }));
        for (flow, priority) in [(0, 5), (1, 9), (2, 9)] {
            assert!(step(&mut *queue, Some(packet(flow, 0, priority))).1.is_empty());
        }
        let dropped = |queue: &mut dyn Queue, packet| step(queue, Some(packet)).1[0].flow;
        assert_eq!(dropped(&mut *queue, packet(3, 0, 7)), 2);
        assert_eq!(dropped(&mut *queue, packet(4, 0, 9)), 4, "not better than the worst");
        assert_eq!(dropped(&mut *queue, packet(5, 0, 1)), 1);
        assert_eq!(drain(&mut *queue), [(5, 0), (0, 0), (3, 0)]);
    }

    #[test]
    fn packets_are_dropped_until_the_queue_fits() {
        let mut queue = queue(&json!({ "capacity": "1500 B" }));
        let format: Format = defaults();
        for _ in 0..37 {
            step(&mut *queue, Some(format.control(Kind::Ack, 0, Time::ZERO)));
        }
        let (_, dropped) = step(&mut *queue, Some(packet(1, 0, 3)));
        assert_eq!((dropped.len(), dropped[0].flow), (1, 1), "ACKs precede all data");
    }

    #[test]
    fn only_data_and_probes_are_counted_by_priority() {
        let mut queue = queue(&json!({ "capacity": "2500 B", "census": ["10 B", "20 B"] }));
        let probe = Packet { kind: Kind::Probe, ..packet(1, 0, 15) };
        let format: Format = defaults();
        let ack = format.control(Kind::Ack, 2, Time::ZERO);
        for packet in [packet(0, 0, 10), probe, ack, packet(3, 0, 30)] {
            step(&mut *queue, Some(packet));
        }
        let priority_counts = queue.priority_counts().unwrap();
        assert_eq!(
            (&*priority_counts.arrived, &*priority_counts.dropped),
            (&[1, 1, 1][..], &[0, 0, 1][..])
        );
    }

    /// Queue as described by its authors: a linear search of all packets.
    #[derive(Default)]
    struct LinearSearch(Vec<Packet>);

    impl LinearSearch {
        fn push(&mut self, packet: Packet, capacity: usize) -> Option<Packet> {
            self.0.push(packet);
            let worst = (0..self.0.len()).max_by_key(|i| self.0[*i].priority())?;
            (self.0.len() > capacity).then(|| self.0.remove(worst))
        }

        fn pop(&mut self) -> Option<Packet> {
            let best = self.0.iter().min_by_key(|packet| packet.priority())?.flow;
            let first = self.0.iter().position(|packet| packet.flow == best)?;
            Some(self.0.remove(first))
        }
    }

    proptest! {
        #[test]
        fn it_equals_a_linear_search(
            capacity in 1_usize..90,
            steps in prop::collection::vec(prop::option::weighted(0.7, (0_u32..9, 0_u64..12)), 1..400),
        ) {
            let mut queue = queue(&json!({ "capacity": format!("{} B", 1000 * capacity) }));
            let mut expected = LinearSearch::default();
            for (sequence, arrival) in (0..).zip(steps) {
                if let Some((flow, priority)) = arrival {
                    let packet = packet(flow, sequence, priority);
                    let (_, dropped) = step(&mut *queue, Some(packet));
                    prop_assert_eq!(dropped.first().copied(), expected.push(packet, capacity));
                } else {
                    prop_assert_eq!(step(&mut *queue, None).0, expected.pop());
                }
                prop_assert_eq!(queue.backlog().packets as usize, expected.0.len());
                prop_assert_eq!(queue.backlog().bytes as usize, 1000 * expected.0.len());
            }
        }
    }
}

//! Fair queueing: packets depart in the order of their finish rounds in a bit-by-bit round robin.
//!
//! Sources: [fq89] (finish numbers of a bit-by-bit round robin), [scfq94] (self-clocking: the round
//! number is the finish number of the packet in transmission).
//!
//! The exact round number depends on the flows that are backlogged in the bit-by-bit round robin,
//! not in this queue. It would have to be simulated at the link rate, and would continue while
//! pause frames or control packets block the queue. Self-clocking needs neither a rate nor a clock.
//! Over any interval the service of two backlogged flows differs by at most a packet of each, as in
//! [fq89]. A packet that arrives at an empty flow queue departs after at most one packet of each
//! other flow and the packet in transmission. For flows of equal weight this is within a packet of
//! the bit-by-bit finish time. A byte of a flow takes a number of rounds that is inversely
//! proportional to the flow's weight.

use std::collections::BTreeMap;

use rustc_hash::FxBuildHasher;

use super::{
    Backlog, Capacity, Context, Limit, LinkScale, PacketFifo, PortQueue, Queue, QueueKind,
};
use crate::model::packet::{FlowNumber, Packet};
use crate::queueing::blocks::calendar_queue::CalendarQueue;
use crate::queueing::blocks::flow_queues::{FlowQueues, LongestQueueDrop};

crate::choices! {
    /// Sharing of the capacity among flows.
    pub enum BufferSharing {
        /// All flows share the capacity. When it is exceeded, the longest flow queue drops.
        Shared = "common",
        /// Backlogged flows have equal shares of the capacity. A flow queue that grows above its
        /// share is also truncated to it ([pcp06] §4.1: a flow that exceeds its share of the buffer
        /// loses packets).
        Equal = "equal",
    }
}

crate::parameters! {
    /// Fair queueing: one queue per flow, served in the order of a bit-by-bit round robin ([fq89]),
    /// whose round number is taken from the packet in transmission ([scfq94]). Packets of a flow
    /// stay in order.
    pub struct Config {
        /// Total capacity of all flows, in bytes or packets. When it is exceeded, the last packet
        /// of the longest flow queue is dropped. `none`: no limit of its own.
        pub capacity: Option<Capacity> = None;
        /// Sharing of `capacity` among flows.
        pub room: BufferSharing = BufferSharing::Shared;
        /// Weights of flow classes by name, from 0.1 to 100. The throughputs of two backlogged
        /// flows are in the ratio of their weights. Flows of other classes have weight 1.
        pub weights: BTreeMap<String, f64> = BTreeMap::new(),
            where |weights| {
                let is_weight = |weight: &f64| (0.1..=100.0).contains(weight);
                if weights.values().all(is_weight) { Ok(()) } else { Err("weights from 0.1 to 100") }
            };
    }
}

impl QueueKind for Config {
    fn build(&self, scale: LinkScale) -> PortQueue {
        PortQueue::OnDeparture(Box::new(FairQueueing {
            weights: self.weights.clone(),
            max_weight: self.weights.values().fold(1.0, |max, weight| weight.max(max)),
            rounds_per_byte: RoundsPerByte::default(),
            flows: FlowQueues::default(),
            finish_rounds: CalendarQueue::default(),
            equally_shared: scale
                .limit(self.capacity)
                .filter(|_| self.room == BufferSharing::Equal),
            limit: LongestQueueDrop::new(scale.limit(self.capacity)),
            backlog: Backlog::default(),
        }))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }

    fn weighted_classes(&self) -> Vec<&str> {
        self.weights.keys().map(String::as_str).collect()
    }
}

#[expect(clippy::disallowed_types, reason = "accessed by key only")]
type RoundsPerByte = std::collections::HashMap<FlowNumber, f64, FxBuildHasher>;

struct FairQueueing {
    weights: BTreeMap<String, f64>,
    /// Largest weight.
    max_weight: f64,
    /// Rounds per byte of each registered flow. For other flows, 1.
    rounds_per_byte: RoundsPerByte,
    /// Queue of each backlogged flow. Other flows need no state: the finish round of their last
    /// packet is not after the current round.
    flows: FlowQueues<PacketFifo>,
    /// Finish round of the first packet of each queue. One round serves one byte of each flow of
    /// the largest weight. The current round is the finish round of the packet in transmission, so
    /// finish rounds are at most one packet ahead.
    finish_rounds: CalendarQueue,
    /// Capacity that flows share equally, if they do.
    equally_shared: Option<Limit>,
    limit: LongestQueueDrop,
    backlog: Backlog,
}

impl FairQueueing {
    /// Returns the queue that must drop a packet after an arrival at queue `index`.
    fn victim(&self, index: u32) -> Option<u32> {
        let queue = self.flows.get(index).backlog();
        // A queue exceeds 1/n of the capacity if n times its backlog exceeds the capacity.
        let queues = self.flows.active_count();
        let all =
            Backlog { bytes: queue.bytes * queues as u64, packets: queue.packets * queues as u32 };
        let is_above = self.equally_shared.is_some_and(|capacity| capacity.exceeded_by(all));
        if is_above { Some(index) } else { self.limit.victim(self.backlog) }
    }

    /// Returns the number of rounds that a packet takes.
    fn rounds(&self, packet: &Packet) -> u64 {
        match self.rounds_per_byte.get(&packet.flow) {
            None => u64::from(packet.bytes),
            Some(rounds_per_byte) => (f64::from(packet.bytes) * rounds_per_byte).round() as u64,
        }
    }
}

impl Queue for FairQueueing {
    fn enqueue(&mut self, packet: Packet, context: &mut Context<'_>) {
        let (index, is_new) = self.flows.get_or_insert(packet.flow);
        let queue = self.flows.get_mut(index);
        queue.push(packet);
        self.backlog.add(packet.bytes);
        self.limit.set_length(index, queue.backlog().bytes);
        if is_new {
            let due = self.finish_rounds.now() + self.rounds(&packet);
            self.finish_rounds.insert(index, due);
        }
        while let Some(victim) = self.victim(index) {
            let queue = self.flows.get_mut(victim);
            let rest = self.limit.drop_last(victim, queue, &mut self.backlog, context);
            let Some(rest) = rest else { return };
            if rest.packets == 0 {
                self.finish_rounds.remove(victim);
                self.flows.release(victim);
            }
        }
    }

    fn dequeue(&mut self, _context: &mut Context<'_>) -> Option<Packet> {
        let index = self.finish_rounds.first()?;
        let due = self.finish_rounds.due(index);
        self.finish_rounds.remove(index);
        self.finish_rounds.advance(due);
        let queue = self.flows.get_mut(index);
        let packet = queue.pop()?;
        self.backlog.remove(packet.bytes);
        self.limit.set_length(index, queue.backlog().bytes);
        match queue.first().copied() {
            Some(next) => self.finish_rounds.insert(index, due + self.rounds(&next)),
            None => self.flows.release(index),
        }
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.flows.states().for_each(|queue| queue.for_each_packet(visit));
    }

    fn allows_lazy_service(&self) -> bool {
        true
    }

    fn on_bypass(&mut self, packet: &Packet) {
        self.finish_rounds.advance(self.finish_rounds.now() + self.rounds(packet));
    }

    fn uses_flow_weights(&self) -> bool {
        !self.weights.is_empty()
    }

    fn register_flow(&mut self, flow: FlowNumber, class: &str) {
        self.rounds_per_byte
            .insert(flow, self.max_weight / self.weights.get(class).unwrap_or(&1.0));
    }

    fn unregister_flow(&mut self, flow: FlowNumber) {
        self.rounds_per_byte.remove(&flow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::blocks::fixture::{QueueFixture, fixture, packet};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, VecDeque};

    const LARGEST: u16 = 1500;

    /// Arrivals of packets of six flows, and departures.
    fn steps() -> impl Strategy<Value = Vec<Option<(u32, u16)>>> {
        let step = prop::option::weighted(0.6, (0_u32..6, 40_u16..=LARGEST));
        prop::collection::vec(step, 1..300)
    }

    fn queue(capacity: Option<Capacity>) -> QueueFixture<dyn Queue> {
        fixture(&Config { capacity, room: BufferSharing::Shared, weights: BTreeMap::new() })
    }

    #[test]
    fn flows_share_by_bytes_not_by_packets() {
        let mut fixture = queue(None);
        (0..4).for_each(|i| drop(fixture.enqueue(packet(0, i, 1000))));
        (0..8).for_each(|i| drop(fixture.enqueue(packet(1, i, 500))));
        let flows: Vec<_> = fixture.drain().into_iter().map(|(flow, _)| flow).collect();
        // Among packets of the same finish round, the one that became first of its queue earlier departs.
        assert_eq!(flows, [1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1]);
    }

    #[test]
    fn the_last_packet_of_the_longest_line_makes_room() {
        let mut fixture = queue(Some(Capacity::Packets(4)));
        (0..4).for_each(|i| assert_eq!(fixture.enqueue(packet(0, i, 1000)), []));
        for (flow, victim) in [(1, (0, 3)), (2, (0, 2)), (0, (0, 4)), (3, (0, 1)), (4, (4, 0))] {
            let sequence = if flow == 0 { 4 } else { 0 };
            let dropped = fixture.enqueue(packet(flow, sequence, 1000));
            assert_eq!(dropped.iter().map(|p| (p.flow, p.sequence)).collect::<Vec<_>>(), [victim]);
        }
        assert_eq!(fixture.drain(), [(0, 0), (1, 0), (2, 0), (3, 0)]);
        assert_eq!(fixture.queue.backlog(), Backlog::default());
    }

    #[test]
    fn with_equal_sharing_a_queue_above_its_share_is_truncated_to_it() {
        let config = Config {
            capacity: Some(Capacity::Packets(4)),
            room: BufferSharing::Equal,
            weights: BTreeMap::new(),
        };
        let mut fixture = fixture(&config);
        let mut drops = |flow, sequence| {
            let dropped = fixture.enqueue(packet(flow, sequence, 1000));
            dropped.iter().map(|p| (p.flow, p.sequence)).collect::<Vec<_>>()
        };
        // A single flow has the whole capacity.
        (0..3).for_each(|i| assert_eq!(drops(0, i), []));
        // Each flow has half of the capacity now. Flow 0 keeps its three packets until its next arrival.
        assert_eq!(drops(1, 0), []);
        assert_eq!(drops(0, 3), [(0, 3), (0, 2)]);
        assert_eq!(drops(1, 1), []);
        assert_eq!(drops(1, 2), [(1, 2)]);
        assert_eq!(fixture.drain(), [(0, 0), (1, 0), (0, 1), (1, 1)]);
    }

    #[test]
    fn a_queue_emptied_by_a_drop_is_removed() {
        let mut fixture = queue(Some(Capacity::Bytes(1500)));
        fixture.enqueue(packet(0, 0, 1400));
        assert_eq!(fixture.enqueue(packet(1, 0, 600)).len(), 1, "flow 0 has the longest queue");
        fixture.enqueue(packet(0, 1, 300));
        assert_eq!(fixture.drain(), [(0, 1), (1, 0)]);
    }

    #[test]
    fn packets_that_bypass_an_idle_port_advance_the_round() {
        let mut fixture = queue(None);
        // 1000 B of flow 0 are in transmission: its next packet has finish round 1000 + 1000, after flow 1's.
        fixture.queue.on_bypass(&packet(0, 0, 1000));
        fixture.enqueue(packet(0, 1, 1000));
        fixture.enqueue(packet(1, 0, 900));
        assert_eq!(fixture.drain(), [(1, 0), (0, 1)]);
    }

    proptest! {
        #[test]
        fn packets_depart_in_order_of_finish_rounds(steps in steps()) {
            let mut fixture = queue(None);
            // Sequence numbers and finish rounds by flow, and the last finish round of each flow.
            let mut expected: BTreeMap<u32, VecDeque<(u32, u64)>> = BTreeMap::new();
            let (mut due, mut round) = (BTreeMap::new(), 0);
            for (sequence, step) in (0..).zip(steps) {
                if let Some((flow, bytes)) = step {
                    fixture.enqueue(packet(flow, sequence, bytes));
                    let finish = round.max(*due.get(&flow).unwrap_or(&0)) + u64::from(bytes);
                    due.insert(flow, finish);
                    expected.entry(flow).or_default().push_back((sequence, finish));
                } else if let Some(popped) = fixture.dequeue().0 {
                    let first = expected.values().filter_map(|queue| queue.front()).map(|p| p.1).min();
                    let departed = expected.get_mut(&popped.flow).unwrap().pop_front().unwrap();
                    prop_assert_eq!((departed.0, Some(departed.1)), (popped.sequence, first));
                    round = departed.1;
                } else {
                    prop_assert!(expected.values().all(VecDeque::is_empty));
                }
            }
        }

        #[test]
        fn service_of_two_backlogged_flows_differs_by_at_most_a_packet_of_each(
            sizes in prop::collection::vec(prop::collection::vec(40_u16..=LARGEST, 60), 2..6),
        ) {
            let mut fixture = queue(None);
            let mut sent = vec![0_i64; sizes.len()];
            // Smallest and largest lead of one flow over another.
            let mut leads: BTreeMap<(usize, usize), (i64, i64)> = BTreeMap::new();
            for (flow, sizes) in sizes.iter().enumerate() {
                for (sequence, bytes) in (0..).zip(sizes) {
                    fixture.enqueue(packet(flow as u32, sequence, *bytes));
                }
            }
            while let Some(popped) = fixture.dequeue().0 {
                sent[popped.flow as usize] += i64::from(popped.bytes);
                if popped.sequence == 59 {
                    break;
                }
                for a in 0..sent.len() {
                    for b in 0..a {
                        let lead = sent[a] - sent[b];
                        let (min, max) = leads.entry((a, b)).or_insert((0, 0));
                        (*min, *max) = (lead.min(*min), lead.max(*max));
                        prop_assert!(*max - *min <= 2 * i64::from(LARGEST));
                    }
                }
            }
        }

        #[test]
        fn a_packet_of_a_new_flow_waits_for_at_most_one_packet_of_each_other_flow(
            steps in steps(), bytes in 40_u16..=LARGEST,
        ) {
            let mut fixture = queue(None);
            let mut others = std::collections::BTreeSet::new();
            for (sequence, step) in (0..).zip(steps) {
                match step {
                    // All packets have the same size: several shorter ones may precede a longer one.
                    Some((flow, _)) => drop(fixture.enqueue(packet(flow, sequence, bytes))),
                    None => drop(fixture.dequeue()),
                }
            }
            fixture.queue.for_each_packet(&mut |packet| {
                others.insert(packet.flow);
            });
            fixture.enqueue(packet(99, 0, bytes));
            let before = fixture.drain().iter().position(|(flow, _)| *flow == 99).unwrap();
            prop_assert!(before <= others.len(), "{before} of {}", others.len());
        }
    }
}

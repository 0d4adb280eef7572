//! Fair queueing: packets leave in the order in which they would if flows took turns bit by bit.
//!
//! Sources: [fq89] (finish numbers of a bit-by-bit round robin), [scfq94] (self-clocking: the number of the
//! round is read off the packet being sent).
//!
//! The true round number of a bit-by-bit round robin counts the flows that the round robin, not this queue,
//! still has to serve: it must be simulated beside the packets, at the line's rate, and runs on while pause
//! frames or control packets hold the line up. Self-clocking needs neither rate nor clock. What two flows
//! with packets waiting get over any time differs by less than a packet of each, as in [fq89]; and what
//! comes to an empty line of its own is sent after at most one packet of each other flow, and the one being
//! sent. For flows of equal weight that is within a packet of the bit-by-bit time. A flow of less weight than
//! another takes as many more rounds for a byte.

use std::collections::BTreeMap;

use rustc_hash::FxBuildHasher;

use super::{Backlog, Capacity, Context, PacketFifo, PortQueue, Queue, QueueKind};
use crate::base::units::Rate;
use crate::model::packet::{FlowNumber, Packet};
use crate::queueing::blocks::calendar_queue::CalendarQueue;
use crate::queueing::blocks::flow_table::{Flows, Limit};

crate::choices! {
    /// Whose a queue's room is.
    pub enum Room {
        /// Everybody's: packets are dropped when all of it is used, from the longest line.
        Common = "common",
        /// Shared out among the flows with packets waiting: a line that grows above its share is cut
        /// down to it as well ([pcp06] §4.1: a flow that exceeds its share of the buffer loses packets).
        Equal = "equal",
    }
}

crate::parameters! {
    /// Fair queueing: a line for each flow, served as if they took turns bit by bit ([fq89]), with the
    /// round number read off the packet being sent ([scfq94]). The packets of one flow keep their order.
    pub struct Config {
        /// The most that waits, all flows together, in bytes or packets: when it is full the last packet
        /// of the longest line is dropped; none for a queue without limit of its own.
        pub capacity: Option<Capacity> = None;
        /// Whose that room is.
        pub room: Room = Room::Common;
        /// Weights of flows by the name of their class, from 0.1 to 100: of two with packets waiting the one
        /// of twice the weight gets twice as much. Flows of other classes weigh 1.
        pub weights: BTreeMap<String, f64> = BTreeMap::new(),
            where |weights| {
                let is_weight = |weight: &f64| (0.1..=100.0).contains(weight);
                if weights.values().all(is_weight) { Ok(()) } else { Err("weights from 0.1 to 100") }
            };
    }
}

impl QueueKind for Config {
    fn build(&self, _rate: Rate) -> PortQueue {
        PortQueue::OnDeparture(Box::new(FairQueueing {
            weights: self.weights.clone(),
            greatest: self.weights.values().fold(1.0, |most, weight| weight.max(most)),
            pace: Paces::default(),
            flows: Flows::default(),
            rounds: CalendarQueue::default(),
            share_of: self.capacity.filter(|_| self.room == Room::Equal),
            limit: Limit::new(self.capacity),
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

#[expect(clippy::disallowed_types, reason = "nobody asks for its order")]
type Paces = std::collections::HashMap<FlowNumber, f64, FxBuildHasher>;

struct FairQueueing {
    weights: BTreeMap<String, f64>,
    /// The greatest weight.
    greatest: f64,
    /// The rounds that a byte takes of each flow that the queue was told of; of others, one.
    pace: Paces,
    /// A line for each flow with packets waiting. Others need no state: their last packets were due before
    /// the present round.
    flows: Flows<PacketFifo>,
    /// When the first packet of each line is due, in rounds that send every flow of the greatest weight a
    /// byte. The present one is that of the packet being sent, so that none is due later than what a packet
    /// takes from now.
    rounds: CalendarQueue,
    /// What lines have equal shares of, if they have.
    share_of: Option<Capacity>,
    limit: Limit,
    backlog: Backlog,
}

impl FairQueueing {
    /// The line that has to drop a packet, after one has come to this line.
    fn above(&self, number: u32) -> Option<u32> {
        let line = self.flows.state(number).backlog();
        // A line above a share of n exceeds the whole n times.
        let lines = self.flows.count();
        let all =
            Backlog { bytes: line.bytes * lines as u64, packets: line.packets * lines as u32 };
        let is_above = self.share_of.is_some_and(|room| room.exceeded_by(all));
        if is_above { Some(number) } else { self.limit.longest(self.backlog) }
    }

    /// The rounds that a packet takes.
    fn rounds(&self, packet: &Packet) -> u64 {
        match self.pace.get(&packet.flow) {
            None => u64::from(packet.bytes),
            Some(pace) => (f64::from(packet.bytes) * pace).round() as u64,
        }
    }
}

impl Queue for FairQueueing {
    fn enqueue(&mut self, packet: Packet, context: &mut Context<'_>) {
        let (number, is_new) = self.flows.join(packet.flow);
        let line = self.flows.state_mut(number);
        line.push(packet);
        self.backlog.add(packet.bytes);
        self.limit.note(number, line.backlog().bytes);
        if is_new {
            let due = self.rounds.now() + self.rounds(&packet);
            self.rounds.put(number, due);
        }
        while let Some(above) = self.above(number) {
            let line = self.flows.state_mut(above);
            let Some(packet) = line.pop_last() else { return };
            let left = line.backlog();
            self.backlog.remove(packet.bytes);
            self.limit.note(above, left.bytes);
            context.dropped.push(packet);
            if left.packets == 0 {
                self.rounds.take(above);
                self.flows.release(above);
            }
        }
    }

    fn dequeue(&mut self, _context: &mut Context<'_>) -> Option<Packet> {
        let number = self.rounds.first()?;
        let due = self.rounds.due(number);
        self.rounds.take(number);
        self.rounds.advance(due);
        let line = self.flows.state_mut(number);
        let packet = line.pop()?;
        self.backlog.remove(packet.bytes);
        self.limit.note(number, line.backlog().bytes);
        match line.first().copied() {
            Some(next) => self.rounds.put(number, due + self.rounds(&next)),
            None => self.flows.release(number),
        }
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.flows.states().for_each(|line| line.for_each_packet(visit));
    }

    fn allows_lazy_service(&self) -> bool {
        true
    }

    fn on_bypass(&mut self, packet: &Packet) {
        self.rounds.advance(self.rounds.now() + self.rounds(packet));
    }

    fn uses_flow_weights(&self) -> bool {
        !self.weights.is_empty()
    }

    fn register_flow(&mut self, flow: FlowNumber, class: &str) {
        self.pace.insert(flow, self.greatest / self.weights.get(class).unwrap_or(&1.0));
    }

    fn unregister_flow(&mut self, flow: FlowNumber) {
        self.pace.remove(&flow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::blocks::fixture::{Bench, bench, packet};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, VecDeque};

    const LARGEST: u16 = 1500;

    /// A packet of one of six flows comes, or one leaves.
    fn steps() -> impl Strategy<Value = Vec<Option<(u32, u16)>>> {
        let step = prop::option::weighted(0.6, (0_u32..6, 40_u16..=LARGEST));
        prop::collection::vec(step, 1..300)
    }

    fn queue(capacity: Option<Capacity>) -> Bench<dyn Queue> {
        bench(&Config { capacity, room: Room::Common, weights: BTreeMap::new() })
    }

    #[test]
    fn flows_take_turns_by_bytes_not_by_packets() {
        let mut bench = queue(None);
        (0..4).for_each(|i| drop(bench.push(packet(0, i, 1000))));
        (0..8).for_each(|i| drop(bench.push(packet(1, i, 500))));
        let flows: Vec<_> = bench.empty().into_iter().map(|(flow, _)| flow).collect();
        // Of packets that are due in the same round the one that is first of its line for longer leaves.
        assert_eq!(flows, [1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1]);
    }

    #[test]
    fn the_last_packet_of_the_longest_line_makes_room() {
        let mut bench = queue(Some(Capacity::Packets(4)));
        (0..4).for_each(|i| assert_eq!(bench.push(packet(0, i, 1000)), []));
        for (flow, victim) in [(1, (0, 3)), (2, (0, 2)), (0, (0, 4)), (3, (0, 1)), (4, (4, 0))] {
            let sequence = if flow == 0 { 4 } else { 0 };
            let dropped = bench.push(packet(flow, sequence, 1000));
            assert_eq!(dropped.iter().map(|p| (p.flow, p.sequence)).collect::<Vec<_>>(), [victim]);
        }
        assert_eq!(bench.empty(), [(0, 0), (1, 0), (2, 0), (3, 0)]);
        assert_eq!(bench.queue.backlog(), Backlog::default());
    }

    #[test]
    fn with_equal_shares_a_line_that_grows_above_its_share_is_cut_down_to_it() {
        let config = Config {
            capacity: Some(Capacity::Packets(4)),
            room: Room::Equal,
            weights: BTreeMap::new(),
        };
        let mut bench = bench(&config);
        let mut lost = |flow, sequence| {
            let dropped = bench.push(packet(flow, sequence, 1000));
            dropped.iter().map(|p| (p.flow, p.sequence)).collect::<Vec<_>>()
        };
        // Alone it has all of it.
        (0..3).for_each(|i| assert_eq!(lost(0, i), []));
        // A half each from now on: the one that has three keeps them until it asks for more.
        assert_eq!(lost(1, 0), []);
        assert_eq!(lost(0, 3), [(0, 3), (0, 2)]);
        assert_eq!(lost(1, 1), []);
        assert_eq!(lost(1, 2), [(1, 2)]);
        assert_eq!(bench.empty(), [(0, 0), (1, 0), (0, 1), (1, 1)]);
    }

    #[test]
    fn a_line_that_a_drop_empties_is_forgotten() {
        let mut bench = queue(Some(Capacity::Bytes(1500)));
        bench.push(packet(0, 0, 1400));
        assert_eq!(bench.push(packet(1, 0, 600)).len(), 1, "the first is longer");
        bench.push(packet(0, 1, 300));
        assert_eq!(bench.empty(), [(0, 1), (1, 0)]);
    }

    #[test]
    fn what_passes_an_idle_port_counts() {
        let mut bench = queue(None);
        // Flow 0 is being sent 1000 B: its next packet is due in round 1000 + 1000, not before flow 1's.
        bench.queue.on_bypass(&packet(0, 0, 1000));
        bench.push(packet(0, 1, 1000));
        bench.push(packet(1, 0, 900));
        assert_eq!(bench.empty(), [(1, 0), (0, 1)]);
    }

    proptest! {
        #[test]
        fn what_leaves_is_due_first_of_all(steps in steps()) {
            let mut bench = queue(None);
            // Every packet by flow, with the round in which it is due; and the last of each flow.
            let mut plain: BTreeMap<u32, VecDeque<(u32, u64)>> = BTreeMap::new();
            let (mut due, mut round) = (BTreeMap::new(), 0);
            for (sequence, step) in (0..).zip(steps) {
                if let Some((flow, bytes)) = step {
                    bench.push(packet(flow, sequence, bytes));
                    let finish = round.max(*due.get(&flow).unwrap_or(&0)) + u64::from(bytes);
                    due.insert(flow, finish);
                    plain.entry(flow).or_default().push_back((sequence, finish));
                } else if let Some(popped) = bench.pop().0 {
                    let first = plain.values().filter_map(|line| line.front()).map(|p| p.1).min();
                    let left = plain.get_mut(&popped.flow).unwrap().pop_front().unwrap();
                    prop_assert_eq!((left.0, Some(left.1)), (popped.sequence, first));
                    round = left.1;
                } else {
                    prop_assert!(plain.values().all(VecDeque::is_empty));
                }
            }
        }

        #[test]
        fn what_two_waiting_flows_get_differs_by_less_than_a_packet_of_each(
            sizes in prop::collection::vec(prop::collection::vec(40_u16..=LARGEST, 60), 2..6),
        ) {
            let mut bench = queue(None);
            let mut sent = vec![0_i64; sizes.len()];
            // The least and the greatest lead of one over another so far.
            let mut leads: BTreeMap<(usize, usize), (i64, i64)> = BTreeMap::new();
            for (flow, sizes) in sizes.iter().enumerate() {
                for (sequence, bytes) in (0..).zip(sizes) {
                    bench.push(packet(flow as u32, sequence, *bytes));
                }
            }
            while let Some(popped) = bench.pop().0 {
                sent[popped.flow as usize] += i64::from(popped.bytes);
                if popped.sequence == 59 {
                    break;
                }
                for a in 0..sent.len() {
                    for b in 0..a {
                        let lead = sent[a] - sent[b];
                        let (least, most) = leads.entry((a, b)).or_insert((0, 0));
                        (*least, *most) = (lead.min(*least), lead.max(*most));
                        prop_assert!(*most - *least <= 2 * i64::from(LARGEST));
                    }
                }
            }
        }

        #[test]
        fn what_comes_to_an_empty_line_waits_for_a_packet_of_each_other_flow_at_most(
            steps in steps(), bytes in 40_u16..=LARGEST,
        ) {
            let mut bench = queue(None);
            let mut others = std::collections::BTreeSet::new();
            for (sequence, step) in (0..).zip(steps) {
                match step {
                    // All of the same size: shorter ones may be as many as fit a longer one.
                    Some((flow, _)) => drop(bench.push(packet(flow, sequence, bytes))),
                    None => drop(bench.pop()),
                }
            }
            bench.queue.for_each_packet(&mut |packet| {
                others.insert(packet.flow);
            });
            bench.push(packet(99, 0, bytes));
            let before = bench.empty().iter().position(|(flow, _)| *flow == 99).unwrap();
            prop_assert!(before <= others.len(), "{before} of {}", others.len());
        }
    }
}

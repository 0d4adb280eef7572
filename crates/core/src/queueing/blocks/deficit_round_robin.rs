//! Deficit round robin: lines take turns, and what a turn does not use is saved for the next.
//!
//! Source: [drr95] §3. A line that comes to have something waiting goes to the end of the list, and starts
//! with nothing saved.

use std::collections::VecDeque;

use super::flow_table::{Buckets, Flows, Limit};
use crate::base::units::Bytes;
use crate::model::packet::Packet;
use crate::queueing::{Backlog, Capacity, Context, PacketFifo, Queue};

/// The longest packets that a common Ethernet carries: what a turn is worth unless it is said.
pub const ETHERNET: Bytes = Bytes(1514);

/// A line, and what it may still send.
#[derive(Default)]
struct Turns {
    line: PacketFifo,
    deficit: u64,
}

/// Lines in turn.
pub struct RoundRobin {
    quantum: u64,
    buckets: Buckets,
    flows: Flows<Turns>,
    /// The numbers of lines in the order of their turns. One that drops have emptied stays until then.
    active: VecDeque<u32>,
    /// Whether the first of them has its quantum of this turn.
    has_begun: bool,
    limit: Limit,
    backlog: Backlog,
}

impl RoundRobin {
    /// Without packets.
    pub fn new(quantum: Bytes, buckets: Buckets, capacity: Option<Capacity>) -> Self {
        Self {
            quantum: quantum.0,
            buckets,
            flows: Flows::default(),
            active: VecDeque::new(),
            has_begun: false,
            limit: Limit::new(capacity),
            backlog: Backlog::default(),
        }
    }

    /// The first line has nothing waiting: it goes, and saves nothing.
    fn leave(&mut self, number: u32) {
        self.flows.state_mut(number).deficit = 0;
        self.flows.release(number);
        self.active.pop_front();
        self.has_begun = false;
    }

    /// What each line in the list may still send.
    #[cfg(test)]
    fn deficits(&self) -> impl Iterator<Item = u64> {
        self.active.iter().map(|number| self.flows.state(*number).deficit)
    }
}

impl Queue for RoundRobin {
    fn enqueue(&mut self, packet: Packet, context: &mut Context<'_>) {
        let (number, is_new) = self.flows.join(self.buckets.key(packet.flow, context.random));
        let line = &mut self.flows.state_mut(number).line;
        line.push(packet);
        self.backlog.add(packet.bytes);
        self.limit.note(number, line.backlog().bytes);
        if is_new {
            self.active.push_back(number);
        }
        while let Some(longest) = self.limit.longest(self.backlog) {
            let line = &mut self.flows.state_mut(longest).line;
            let Some(packet) = line.pop_last() else { return };
            self.backlog.remove(packet.bytes);
            self.limit.note(longest, line.backlog().bytes);
            context.dropped.push(packet);
        }
    }

    fn dequeue(&mut self, _context: &mut Context<'_>) -> Option<Packet> {
        loop {
            let number = *self.active.front()?;
            let turns = self.flows.state_mut(number);
            let Some(bytes) = turns.line.first().map(|first| u64::from(first.bytes)) else {
                self.leave(number);
                continue;
            };
            if !self.has_begun {
                turns.deficit += self.quantum;
                self.has_begun = true;
            }
            if bytes > turns.deficit {
                self.active.pop_front();
                self.active.push_back(number);
                self.has_begun = false;
                continue;
            }
            turns.deficit -= bytes;
            let packet = turns.line.pop()?;
            let left = turns.line.backlog();
            self.backlog.remove(packet.bytes);
            self.limit.note(number, left.bytes);
            if left.packets == 0 {
                self.leave(number);
            }
            return Some(packet);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.flows.states().for_each(|turns| turns.line.for_each_packet(visit));
    }

    fn allows_lazy_service(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::blocks::fixture::{Bench, packet};
    use proptest::prelude::*;

    const LARGEST: u64 = 1500;

    fn round_robin(quantum: u64, capacity: Option<Capacity>) -> Bench<RoundRobin> {
        Bench::new(Box::new(RoundRobin::new(Bytes(quantum), Buckets::new(None), capacity)))
    }

    #[test]
    fn what_a_turn_does_not_use_is_saved() {
        let mut bench = round_robin(500, None);
        // As in figure 2 of the paper: 200 of 500 sent, and 300 saved, so that 750 can go next time.
        for (flow, sizes) in [(0, [200, 750, 20]), (1, [500, 500, 500]), (2, [200, 600, 100])] {
            for (sequence, bytes) in (0..).zip(sizes) {
                bench.push(packet(flow, sequence, bytes));
            }
        }
        let first: Vec<u64> = (0..2).map(|_| u64::from(bench.pop().0.unwrap().bytes)).collect();
        assert_eq!(first, [200, 500]);
        assert_eq!(bench.queue.deficits().collect::<Vec<_>>(), [0, 0, 300]);
        let second: Vec<_> = bench.empty();
        assert_eq!(second, [(2, 0), (0, 1), (0, 2), (1, 1), (2, 1), (2, 2), (1, 2)]);
    }

    #[test]
    fn flows_that_share_a_bucket_share_its_turn() {
        let queue = RoundRobin::new(ETHERNET, Buckets::new(Some(1)), None);
        let mut bench = Bench::new(Box::new(queue));
        for (flow, sequence) in [(0, 0), (0, 1), (1, 0), (0, 2)] {
            bench.push(packet(flow, sequence, 1500));
        }
        assert_eq!(bench.empty(), [(0, 0), (0, 1), (1, 0), (0, 2)]);
    }

    #[test]
    fn a_line_that_drops_have_emptied_keeps_its_turn_for_what_comes() {
        let mut bench = round_robin(1500, Some(Capacity::Bytes(1500)));
        bench.push(packet(0, 0, 1400));
        assert_eq!(bench.push(packet(1, 0, 600)).len(), 1, "the first is longer");
        bench.push(packet(2, 0, 300));
        bench.push(packet(0, 1, 300));
        assert_eq!(bench.empty(), [(0, 1), (1, 0), (2, 0)]);
        assert_eq!((bench.queue.backlog(), bench.queue.active.len()), (Backlog::default(), 0));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_no_deficit_reaches_a_quantum_and_a_packet(
            quantum in LARGEST..4000,
            steps in prop::collection::vec(
                prop::option::weighted(0.6, (0_u32..6, 40_u16..=LARGEST as u16)), 1..300,
            ),
        ) {
            let mut bench = round_robin(quantum, Some(Capacity::Bytes(20_000)));
            let (mut came, mut gone) = (0, 0);
            for (sequence, step) in (0..).zip(steps) {
                if let Some((flow, bytes)) = step {
                    came += 1;
                    gone += bench.push(packet(flow, sequence, bytes)).len();
                } else {
                    gone += usize::from(bench.pop().0.is_some());
                }
                let Bench { queue, .. } = &bench;
                prop_assert!(queue.deficits().all(|deficit| deficit < quantum + LARGEST));
                let mut shown = Backlog::default();
                queue.for_each_packet(&mut |packet| shown.add(packet.bytes));
                prop_assert_eq!(queue.backlog(), shown);
                prop_assert_eq!(came - gone, shown.packets as usize);
            }
            gone += bench.empty().len();
            prop_assert_eq!((came, bench.queue.active.len()), (gone, 0));
            // Whoever comes next starts with nothing saved.
            prop_assert!(bench.queue.flows.states().all(|turns| turns.deficit == 0));
        }

        #[test]
        fn what_two_waiting_flows_have_sent_differs_by_a_quantum_and_two_packets_at_most(
            quantum in LARGEST..4000,
            sizes in prop::collection::vec(prop::collection::vec(40_u16..=LARGEST as u16, 60), 2..6),
        ) {
            let mut bench = round_robin(quantum, None);
            for (flow, sizes) in sizes.iter().enumerate() {
                for (sequence, bytes) in (0..).zip(sizes) {
                    bench.push(packet(flow as u32, sequence, *bytes));
                }
            }
            let mut sent = vec![0_i64; sizes.len()];
            let mut leads = vec![(0_i64, 0_i64); sizes.len() * sizes.len()];
            while let Some(popped) = bench.pop().0 {
                sent[popped.flow as usize] += i64::from(popped.bytes);
                if popped.sequence == 59 {
                    break;
                }
                for (pair, (least, most)) in leads.iter_mut().enumerate() {
                    let lead = sent[pair / sizes.len()] - sent[pair % sizes.len()];
                    (*least, *most) = (lead.min(*least), lead.max(*most));
                    prop_assert!(*most - *least <= (2 * LARGEST + quantum).cast_signed());
                }
            }
        }
    }
}

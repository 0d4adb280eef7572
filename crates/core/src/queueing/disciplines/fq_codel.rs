//! `FQ-CoDel`: round robin in which flows that come anew go first, and `CoDel` in each line.
//!
//! Source: RFC 8290 §4; where it leaves a choice, Linux. `CoDel`'s exception for the last packets looks at
//! the flow's own line, as RFC 8289 has it; Deviation: Linux looks at the whole queue.

use std::collections::VecDeque;

use super::codel::{Controlled, Law};
use super::{Backlog, Capacity, Context, PortQueue, Queue, QueueKind};
use crate::base::schema::{defaults, positive, positive_if_given};
use crate::base::units::{Bytes, Rate};
use crate::model::packet::Packet;
use crate::queueing::blocks::deficit_round_robin::ETHERNET;
use crate::queueing::blocks::flow_table::{Buckets, Flows, Limit};

crate::parameters! {
    /// `FQ-CoDel`: lines take turns of a quantum, those that have just come to have packets first, and
    /// `CoDel` drops or marks in each by itself (RFC 8290). So a flow that sends less than a quantum a round
    /// hardly waits.
    pub struct Config {
        /// `CoDel`'s law, for each line (RFC 8290 §5.2; with ECN: §5.2.6).
        pub law: Law = Law { ecn: true, ..defaults() };
        /// How many lines there are, into which flows are put by a hash, another at each port and under
        /// each seed (RFC 8290 §5.2.4: 1024); none for one a flow.
        pub queues: Option<u32> = Some(1024), where positive_if_given;
        /// What a turn is worth, as bytes on the wire: at least a full packet (RFC 8290 §5.2.3: 1514 B).
        pub quantum: Bytes = ETHERNET, where positive;
        /// The most that waits, all lines together, in bytes or packets (RFC 8290 §5.2.5: 10240 packets);
        /// none for a queue without limit of its own.
        pub capacity: Option<Capacity> = Some(Capacity::Packets(10_240));
        /// When it is full, the first packets of the line with most bytes are dropped, half of its bytes,
        /// but at most so many packets at once (Linux: 64).
        pub drop_batch: u32 = 64, where positive;
    }
}

impl QueueKind for Config {
    fn build(&self, _rate: Rate) -> PortQueue {
        PortQueue::OnDeparture(Box::new(FqCoDel {
            config: self.clone(),
            buckets: Buckets::new(self.queues),
            flows: Flows::default(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            limit: Limit::new(self.capacity),
            backlog: Backlog::default(),
        }))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }

    fn quantum(&self) -> Option<Bytes> {
        Some(self.quantum)
    }
}

#[derive(Debug, Default)]
struct Flow {
    line: Controlled,
    /// What it may still send of its turn; below zero by what its last packet was over.
    credit: i64,
    /// Whether it is in one of the two lists. If not, nothing of it waits.
    is_listed: bool,
}

struct FqCoDel {
    config: Config,
    buckets: Buckets,
    flows: Flows<Flow>,
    /// Lines that have come to have packets, and have not had their turn.
    new: VecDeque<u32>,
    /// The other lines, in the order of their turns.
    old: VecDeque<u32>,
    limit: Limit,
    backlog: Backlog,
}

impl Queue for FqCoDel {
    fn enqueue(&mut self, packet: Packet, context: &mut Context<'_>) {
        let (number, _) = self.flows.join(self.buckets.key(packet.flow, context.random));
        let flow = self.flows.state_mut(number);
        flow.line.push(packet, context.now);
        self.backlog.add(packet.bytes);
        self.limit.note(number, flow.line.backlog().bytes);
        if !flow.is_listed {
            flow.is_listed = true;
            flow.credit = self.config.quantum.0.cast_signed();
            self.new.push_back(number);
        }
        while let Some(longest) = self.limit.longest(self.backlog) {
            self.overflow(longest, context);
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let flow = self.flows.state_mut(number);
            if flow.credit <= 0 {
                flow.credit += self.config.quantum.0.cast_signed();
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            let before = flow.line.backlog();
            let packet = flow.line.pop(&self.config.law, context);
            let after = flow.line.backlog();
            self.backlog.bytes -= before.bytes - after.bytes;
            self.backlog.packets -= before.packets - after.packets;
            if before != after {
                self.limit.note(number, after.bytes);
            }
            if let Some(packet) = packet {
                flow.credit -= i64::from(packet.bytes);
                return Some(packet);
            }
            list.pop_front();
            if is_new && !self.old.is_empty() {
                // Or a flow that sends a packet whenever its last has left would be new for ever.
                self.old.push_back(number);
            } else {
                self.leave(number);
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.flows.states().for_each(|flow| flow.line.for_each_packet(visit));
    }
}

impl FqCoDel {
    /// Drops from the longest line.
    fn overflow(&mut self, longest: u32, context: &mut Context<'_>) {
        let line = &mut self.flows.state_mut(longest).line;
        let half = line.backlog().bytes / 2;
        for _ in 0..self.config.drop_batch {
            let Some(packet) = line.overflow() else { break };
            self.backlog.remove(packet.bytes);
            context.dropped.push(packet);
            if line.backlog().bytes <= half {
                break;
            }
        }
        self.limit.note(longest, line.backlog().bytes);
    }

    /// A line without packets leaves the lists. Its number is let go unless its law remembers something,
    /// which it does for whoever comes under the same key next.
    fn leave(&mut self, number: u32) {
        let flow = self.flows.state_mut(number);
        flow.is_listed = false;
        if flow.line.forgets() {
            self.flows.release(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::{Duration, Time};
    use crate::model::packet::FlowNumber;
    use crate::queueing::blocks::fixture::{Bench, bench, packet};

    fn queue(capacity: u32) -> Bench<dyn Queue> {
        let capacity = Some(Capacity::Packets(capacity));
        bench(&Config { capacity, queues: None, ..defaults() })
    }

    fn fill(bench: &mut Bench<dyn Queue>, flow: FlowNumber, packets: u32) {
        (0..packets).for_each(|i| drop(bench.push(packet(flow, i, 1500))));
    }

    #[test]
    fn a_flow_that_comes_goes_before_those_that_stay() {
        let mut bench = queue(100);
        fill(&mut bench, 0, 5);
        fill(&mut bench, 1, 5);
        // A quantum is 14 B more than a packet: each begins with two, and then they take turns.
        let order: Vec<_> = (0..6).map(|_| bench.pop().0.unwrap().flow).collect();
        assert_eq!(order, [0, 0, 1, 1, 0, 1]);
        fill(&mut bench, 2, 1);
        assert_eq!(bench.empty(), [(2, 0), (0, 3), (1, 3), (0, 4), (1, 4)]);
    }

    #[test]
    fn who_comes_again_whenever_he_has_gone_starves_nobody() {
        let mut bench = queue(100);
        fill(&mut bench, 0, 50);
        bench.pop();
        let mut sent = [0; 2];
        for _ in 0..40 {
            fill(&mut bench, 1, 1);
            sent[bench.pop().0.unwrap().flow as usize] += 1;
        }
        assert!(sent[0] >= 18, "{sent:?}");
    }

    #[test]
    fn a_full_queue_drops_the_first_half_of_the_fattest_line_and_no_more_than_a_batch() {
        for (capacity, fat, dropped) in [(20, 12, 6), (300, 292, 64)] {
            let mut bench = queue(capacity);
            fill(&mut bench, 0, fat);
            fill(&mut bench, 1, 8);
            let gone = bench.push(packet(1, 8, 1500));
            let gone: Vec<_> = gone.iter().map(|packet| (packet.flow, packet.sequence)).collect();
            assert_eq!(gone, (0..dropped).map(|i| (0, i)).collect::<Vec<_>>());
            assert_eq!(bench.queue.backlog().packets, capacity + 1 - dropped);
        }
    }

    #[test]
    fn each_line_is_controlled_by_itself() {
        let law = Law { ecn: true, ..defaults() };
        let mut bench = bench(&Config { law, queues: None, ..defaults() });
        let (mut marked, mut sequence) = ([0; 2], 0);
        // Flow 0 has a queue of fifty packets, and flow 1 one packet at a time, for a second.
        for i in 0..1_000 {
            bench.now = Time::ZERO + Duration::from_millis(i);
            while bench.queue.backlog().packets < 50 {
                bench.push(packet(0, sequence, 1500));
                sequence += 1;
            }
            if i % 4 == 0 {
                bench.push(packet(1, i as u32, 1500));
            }
            let popped = bench.pop().0.unwrap();
            marked[popped.flow as usize] += u32::from(popped.is_marked());
        }
        assert!(marked[0] > 5, "{marked:?}");
        assert_eq!(marked[1], 0);
    }
}

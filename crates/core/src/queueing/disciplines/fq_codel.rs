//! FQ-CoDel: deficit round robin with priority for new flows, and CoDel in each flow queue.
//!
//! Source: RFC 8290 §4, and Linux where the RFC leaves a choice. CoDel's exception for the last
//! packets uses the backlog of the flow queue, as in RFC 8289. Deviation: Linux uses the backlog of
//! the whole queue.

use std::collections::VecDeque;

use super::codel::{CodelQueue, ControlLaw};
use super::{Backlog, Capacity, Context, LinkScale, PortQueue, Queue, QueueKind};
use crate::base::schema::{defaults, positive, positive_if_given};
use crate::base::units::Bytes;
use crate::model::packet::Packet;
use crate::queueing::blocks::deficit_round_robin::ETHERNET_FRAME;
use crate::queueing::blocks::flow_queues::{FlowClassifier, FlowQueues, LongestQueueDrop};

crate::parameters! {
    /// FQ-CoDel: deficit round robin over flow queues, with new flows first and CoDel in each
    /// flow queue (RFC 8290). A flow that sends less than a quantum per round has a short queueing
    /// delay.
    pub struct Config {
        /// CoDel's control law in each flow queue (RFC 8290 §5.2; with ECN: §5.2.6).
        pub law: ControlLaw = ControlLaw { ecn: true, ..defaults() };
        /// Number of flow queues. A hash, different for each port and seed, assigns flows to them
        /// (RFC 8290 §5.2.5: 1024). `none`: one queue per flow.
        pub queues: Option<u32> = Some(1024), where positive_if_given;
        /// Bytes that a flow queue may send per round, headers included; at least a full packet
        /// (RFC 8290 §5.2.4: 1514 B).
        pub quantum: Bytes = ETHERNET_FRAME, where positive;
        /// Total capacity of all flow queues, in bytes or packets (RFC 8290 §5.2.3: 10240 packets).
        /// `none`: no limit of its own.
        pub capacity: Option<Capacity> = Some(Capacity::Packets(10_240));
        /// Largest number of packets dropped at once from the head of the longest flow queue when
        /// the capacity is exceeded. Fewer are dropped if half of its bytes are gone before (Linux: 64).
        pub drop_batch: u32 = 64, where positive;
    }
}

impl QueueKind for Config {
    fn build(&self, scale: LinkScale) -> PortQueue {
        PortQueue::OnDeparture(Box::new(FqCoDel {
            config: self.clone(),
            classifier: FlowClassifier::new(self.queues),
            flows: FlowQueues::default(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            limit: LongestQueueDrop::new(scale.limit(self.capacity)),
            backlog: Backlog::default(),
        }))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }

    fn marks(&self) -> bool {
        self.law.ecn
    }

    fn quantum(&self) -> Option<Bytes> {
        Some(self.quantum)
    }
}

#[derive(Debug, Default)]
struct FlowQueue {
    packets: CodelQueue,
    /// Remaining credits in bytes. Negative after a packet that exceeded them.
    credits: i64,
    /// True if the queue is in one of the two lists. Otherwise it is empty.
    is_listed: bool,
}

struct FqCoDel {
    config: Config,
    classifier: FlowClassifier,
    flows: FlowQueues<FlowQueue>,
    /// Queues that became backlogged and have not used up their first quantum.
    new_flows: VecDeque<u32>,
    /// Other queues, in order of service.
    old_flows: VecDeque<u32>,
    limit: LongestQueueDrop,
    backlog: Backlog,
}

impl Queue for FqCoDel {
    fn enqueue(&mut self, packet: Packet, context: &mut Context<'_>) {
        let (index, _) =
            self.flows.get_or_insert(self.classifier.classify(packet.flow, context.random));
        let flow = self.flows.get_mut(index);
        flow.packets.push(packet, context.now);
        self.backlog.add(packet.bytes);
        self.limit.set_length(index, flow.packets.backlog().bytes);
        if !flow.is_listed {
            flow.is_listed = true;
            flow.credits = self.config.quantum.0.cast_signed();
            self.new_flows.push_back(index);
        }
        while let Some(victim) = self.limit.victim(self.backlog) {
            self.drop_batch(victim, context);
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let index = *list.front()?;
            let flow = self.flows.get_mut(index);
            if flow.credits <= 0 {
                flow.credits += self.config.quantum.0.cast_signed();
                list.pop_front();
                self.old_flows.push_back(index);
                continue;
            }
            let before = flow.packets.backlog();
            let packet = flow.packets.pop(&self.config.law, context);
            let after = flow.packets.backlog();
            self.backlog.bytes -= before.bytes - after.bytes;
            self.backlog.packets -= before.packets - after.packets;
            if before != after {
                self.limit.set_length(index, after.bytes);
            }
            if let Some(packet) = packet {
                flow.credits -= i64::from(packet.bytes);
                return Some(packet);
            }
            list.pop_front();
            if is_new && !self.old_flows.is_empty() {
                // RFC 8290 §4.2: prevents starvation by a flow that sends its next packet whenever its
                // queue is empty.
                self.old_flows.push_back(index);
            } else {
                self.deactivate(index);
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.flows.states().for_each(|flow| flow.packets.for_each_packet(visit));
    }
}

impl FqCoDel {
    /// Drops from the head of the longest queue.
    fn drop_batch(&mut self, victim: u32, context: &mut Context<'_>) {
        let packets = &mut self.flows.get_mut(victim).packets;
        let half = packets.backlog().bytes / 2;
        for _ in 0..self.config.drop_batch {
            let Some(packet) = packets.drop_head() else { break };
            self.backlog.remove(packet.bytes);
            context.dropped.push(packet);
            if packets.backlog().bytes <= half {
                break;
            }
        }
        self.limit.set_length(victim, packets.backlog().bytes);
    }

    /// Removes an empty queue from the lists. Its index is released unless its CoDel state affects
    /// later flows of the same key.
    fn deactivate(&mut self, index: u32) {
        let flow = self.flows.get_mut(index);
        flow.is_listed = false;
        if flow.packets.try_reset() {
            self.flows.release(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::{Duration, Time};
    use crate::model::packet::FlowNumber;
    use crate::queueing::blocks::fixture::{QueueFixture, fixture, packet};

    fn queue(capacity: u32) -> QueueFixture<dyn Queue> {
        let capacity = Some(Capacity::Packets(capacity));
        fixture(&Config { capacity, queues: None, ..defaults() })
    }

    fn fill(fixture: &mut QueueFixture<dyn Queue>, flow: FlowNumber, packets: u32) {
        (0..packets).for_each(|i| drop(fixture.enqueue(packet(flow, i, 1500))));
    }

    #[test]
    fn new_flows_precede_old_flows() {
        let mut fixture = queue(100);
        fill(&mut fixture, 0, 5);
        fill(&mut fixture, 1, 5);
        // The quantum exceeds a packet by 14 B: each flow starts with two packets, and then they
        // alternate.
        let order: Vec<_> = (0..6).map(|_| fixture.dequeue().0.unwrap().flow).collect();
        assert_eq!(order, [0, 0, 1, 1, 0, 1]);
        fill(&mut fixture, 2, 1);
        assert_eq!(fixture.drain(), [(2, 0), (0, 3), (1, 3), (0, 4), (1, 4)]);
    }

    #[test]
    fn a_flow_that_returns_after_each_packet_does_not_starve_others() {
        let mut fixture = queue(100);
        fill(&mut fixture, 0, 50);
        fixture.dequeue();
        let mut sent = [0; 2];
        for _ in 0..40 {
            fill(&mut fixture, 1, 1);
            sent[fixture.dequeue().0.unwrap().flow as usize] += 1;
        }
        assert!(sent[0] >= 18, "{sent:?}");
    }

    #[test]
    fn a_full_queue_drops_half_of_the_longest_queue_but_at_most_a_batch() {
        for (capacity, long, dropped) in [(20, 12, 6), (300, 292, 64)] {
            let mut fixture = queue(capacity);
            fill(&mut fixture, 0, long);
            fill(&mut fixture, 1, 8);
            let drops = fixture.enqueue(packet(1, 8, 1500));
            let drops: Vec<_> = drops.iter().map(|packet| (packet.flow, packet.sequence)).collect();
            assert_eq!(drops, (0..dropped).map(|i| (0, i)).collect::<Vec<_>>());
            assert_eq!(fixture.queue.backlog().packets, capacity + 1 - dropped);
        }
    }

    #[test]
    fn each_flow_queue_has_its_own_codel_state() {
        let law = ControlLaw { ecn: true, ..defaults() };
        let mut fixture = fixture(&Config { law, queues: None, ..defaults() });
        let (mut marked, mut sequence) = ([0; 2], 0);
        // For one second, flow 0 has a queue of fifty packets and flow 1 has one packet at a time.
        for i in 0..1_000 {
            fixture.now = Time::ZERO + Duration::from_millis(i);
            while fixture.queue.backlog().packets < 50 {
                fixture.enqueue(packet(0, sequence, 1500));
                sequence += 1;
            }
            if i % 4 == 0 {
                fixture.enqueue(packet(1, i as u32, 1500));
            }
            let popped = fixture.dequeue().0.unwrap();
            marked[popped.flow as usize] += u32::from(popped.is_marked());
        }
        assert!(marked[0] > 5, "{marked:?}");
        assert_eq!(marked[1], 0);
    }
}

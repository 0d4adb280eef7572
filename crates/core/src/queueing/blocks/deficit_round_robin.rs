//! Deficit round robin: each backlogged flow is served one quantum per round. Its unused deficit
//! carries over to the next round.
//!
//! Source: [drr95] §3. A flow that becomes backlogged joins the end of the active list with deficit
//! 0.

use std::collections::VecDeque;

use super::flow_queues::{FlowClassifier, FlowQueues, LongestQueueDrop};
use crate::base::units::Bytes;
use crate::model::packet::Packet;
use crate::queueing::{Backlog, Context, Limit, PacketFifo, Queue};

/// Size of a full Ethernet frame: the default quantum.
pub const ETHERNET_FRAME: Bytes = Bytes(1514);

/// Queue of a flow or bucket, and its deficit counter.
#[derive(Default)]
struct FlowQueue {
    packets: PacketFifo,
    deficit: u64,
}

/// Deficit round robin over flows or buckets.
pub struct DeficitRoundRobin {
    quantum: u64,
    classifier: FlowClassifier,
    flows: FlowQueues<FlowQueue>,
    /// Indices of the active queues in order of service. A queue that drops have emptied stays
    /// active until it is served.
    active: VecDeque<u32>,
    /// True if the first active queue has received its quantum of this round.
    has_quantum: bool,
    limit: LongestQueueDrop,
    backlog: Backlog,
}

impl DeficitRoundRobin {
    /// Creates an empty queue.
    pub fn new(quantum: Bytes, classifier: FlowClassifier, capacity: Option<Limit>) -> Self {
        Self {
            quantum: quantum.0,
            classifier,
            flows: FlowQueues::default(),
            active: VecDeque::new(),
            has_quantum: false,
            limit: LongestQueueDrop::new(capacity),
            backlog: Backlog::default(),
        }
    }

    /// Removes the first active queue, which is empty, and resets its deficit.
    fn deactivate(&mut self, index: u32) {
        self.flows.get_mut(index).deficit = 0;
        self.flows.release(index);
        self.active.pop_front();
        self.has_quantum = false;
    }

    /// Returns the deficits of the active queues.
    #[cfg(test)]
    fn deficits(&self) -> impl Iterator<Item = u64> {
        self.active.iter().map(|index| self.flows.get(*index).deficit)
    }
}

impl Queue for DeficitRoundRobin {
    fn enqueue(&mut self, packet: Packet, context: &mut Context<'_>) {
        let (index, is_new) =
            self.flows.get_or_insert(self.classifier.classify(packet.flow, context.random));
        let packets = &mut self.flows.get_mut(index).packets;
        packets.push(packet);
        self.backlog.add(packet.bytes);
        self.limit.set_length(index, packets.backlog().bytes);
        if is_new {
            self.active.push_back(index);
        }
        while let Some(longest) = self.limit.victim(self.backlog) {
            let packets = &mut self.flows.get_mut(longest).packets;
            let rest = self.limit.drop_last(longest, packets, &mut self.backlog, context);
            if rest.is_none() {
                return;
            }
        }
    }

    fn dequeue(&mut self, _context: &mut Context<'_>) -> Option<Packet> {
        loop {
            let index = *self.active.front()?;
            let flow = self.flows.get_mut(index);
            let Some(bytes) = flow.packets.first().map(|first| u64::from(first.bytes)) else {
                self.deactivate(index);
                continue;
            };
            if !self.has_quantum {
                flow.deficit += self.quantum;
                self.has_quantum = true;
            }
            if bytes > flow.deficit {
                self.active.pop_front();
                self.active.push_back(index);
                self.has_quantum = false;
                continue;
            }
            flow.deficit -= bytes;
            let packet = flow.packets.pop()?;
            let remaining = flow.packets.backlog();
            self.backlog.remove(packet.bytes);
            self.limit.set_length(index, remaining.bytes);
            if remaining.packets == 0 {
                self.deactivate(index);
            }
            return Some(packet);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.flows.states().for_each(|flow| flow.packets.for_each_packet(visit));
    }

    fn allows_lazy_service(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::blocks::fixture::{QueueFixture, packet};
    use proptest::prelude::*;

    const LARGEST: u64 = 1500;

    fn round_robin(quantum: u64, capacity: Option<Limit>) -> QueueFixture<DeficitRoundRobin> {
        QueueFixture::new(Box::new(DeficitRoundRobin::new(
            Bytes(quantum),
            FlowClassifier::new(None),
            capacity,
        )))
    }

    #[test]
    fn unused_deficit_carries_over() {
        let mut fixture = round_robin(500, None);
        // [drr95] Fig. 2: 200 of the quantum of 500 are sent, and 300 carry over, so 750 can be
        // sent in the next round.
        for (flow, sizes) in [(0, [200, 750, 20]), (1, [500, 500, 500]), (2, [200, 600, 100])] {
            for (sequence, bytes) in (0..).zip(sizes) {
                fixture.enqueue(packet(flow, sequence, bytes));
            }
        }
        let first: Vec<u64> =
            (0..2).map(|_| u64::from(fixture.dequeue().0.unwrap().bytes)).collect();
        assert_eq!(first, [200, 500]);
        assert_eq!(fixture.queue.deficits().collect::<Vec<_>>(), [0, 0, 300]);
        let second: Vec<_> = fixture.drain();
        assert_eq!(second, [(2, 0), (0, 1), (0, 2), (1, 1), (2, 1), (2, 2), (1, 2)]);
    }

    #[test]
    fn flows_of_one_bucket_share_its_quantum() {
        let queue = DeficitRoundRobin::new(ETHERNET_FRAME, FlowClassifier::new(Some(1)), None);
        let mut fixture = QueueFixture::new(Box::new(queue));
        for (flow, sequence) in [(0, 0), (0, 1), (1, 0), (0, 2)] {
            fixture.enqueue(packet(flow, sequence, 1500));
        }
        assert_eq!(fixture.drain(), [(0, 0), (0, 1), (1, 0), (0, 2)]);
    }

    #[test]
    fn a_queue_emptied_by_drops_stays_active() {
        let mut fixture = round_robin(1500, Some(Limit::Bytes(1500)));
        fixture.enqueue(packet(0, 0, 1400));
        assert_eq!(fixture.enqueue(packet(1, 0, 600)).len(), 1, "flow 0 has the longest queue");
        fixture.enqueue(packet(2, 0, 300));
        fixture.enqueue(packet(0, 1, 300));
        assert_eq!(fixture.drain(), [(0, 1), (1, 0), (2, 0)]);
        assert_eq!((fixture.queue.backlog(), fixture.queue.active.len()), (Backlog::default(), 0));
    }

    proptest! {
        #[test]
        fn packets_are_conserved_and_deficits_stay_below_a_quantum_plus_a_packet(
            quantum in LARGEST..4000,
            steps in prop::collection::vec(
                prop::option::weighted(0.6, (0_u32..6, 40_u16..=LARGEST as u16)), 1..300,
            ),
        ) {
            let mut fixture = round_robin(quantum, Some(Limit::Bytes(20_000)));
            let (mut arrived, mut departed_or_dropped) = (0, 0);
            for (sequence, step) in (0..).zip(steps) {
                if let Some((flow, bytes)) = step {
                    arrived += 1;
                    departed_or_dropped += fixture.enqueue(packet(flow, sequence, bytes)).len();
                } else {
                    departed_or_dropped += usize::from(fixture.dequeue().0.is_some());
                }
                let QueueFixture { queue, .. } = &fixture;
                prop_assert!(queue.deficits().all(|deficit| deficit < quantum + LARGEST));
                let mut visited = Backlog::default();
                queue.for_each_packet(&mut |packet| visited.add(packet.bytes));
                prop_assert_eq!(queue.backlog(), visited);
                prop_assert_eq!(arrived - departed_or_dropped, visited.packets as usize);
            }
            departed_or_dropped += fixture.drain().len();
            prop_assert_eq!((arrived, fixture.queue.active.len()), (departed_or_dropped, 0));
            // Deficits are reset when a queue is deactivated.
            prop_assert!(fixture.queue.flows.states().all(|flow| flow.deficit == 0));
        }

        #[test]
        fn service_of_two_backlogged_flows_differs_by_at_most_a_quantum_plus_two_packets(
            quantum in LARGEST..4000,
            sizes in prop::collection::vec(prop::collection::vec(40_u16..=LARGEST as u16, 60), 2..6),
        ) {
            let mut fixture = round_robin(quantum, None);
            for (flow, sizes) in sizes.iter().enumerate() {
                for (sequence, bytes) in (0..).zip(sizes) {
                    fixture.enqueue(packet(flow as u32, sequence, *bytes));
                }
            }
            let mut sent = vec![0_i64; sizes.len()];
            let mut leads = vec![(0_i64, 0_i64); sizes.len() * sizes.len()];
            while let Some(popped) = fixture.dequeue().0 {
                sent[popped.flow as usize] += i64::from(popped.bytes);
                if popped.sequence == 59 {
                    break;
                }
                for (pair, (min, max)) in leads.iter_mut().enumerate() {
                    let lead = sent[pair / sizes.len()] - sent[pair % sizes.len()];
                    (*min, *max) = (lead.min(*min), lead.max(*max));
                    prop_assert!(*max - *min <= (2 * LARGEST + quantum).cast_signed());
                }
            }
        }
    }
}

//! Round robin over flows, a packet each.

use super::{Backlog, Capacity, Context, LinkScale, PacketFifo, PortQueue, Queue, QueueKind};
use crate::model::packet::{FlowNumber, Packet};
use crate::queueing::blocks::flow_queues::{FlowQueues, LongestQueueDrop};

crate::parameters! {
    /// Round robin: one queue per flow, and a packet of each in turn, in the order in which the flows
    /// started (RFC 970; NICs of [hpcc19]'s simulator). Unlike under `drr`, a flow whose packets come one at
    /// a time keeps its place.
    pub struct Config {
        /// Total capacity of all flows, in bytes or packets. When it is exceeded, the last packet of the
        /// longest flow queue is dropped (RFC 970). `none`: no limit of its own.
        pub capacity: Option<Capacity> = None;
    }
}

impl QueueKind for Config {
    fn build(&self, scale: LinkScale) -> PortQueue {
        PortQueue::OnDeparture(Box::new(RoundRobin {
            flows: FlowQueues::default(),
            order: Vec::new(),
            last: 0,
            limit: LongestQueueDrop::new(scale.limit(self.capacity)),
            backlog: Backlog::default(),
        }))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }
}

struct RoundRobin {
    flows: FlowQueues<PacketFifo>,
    /// Flows with a queue and its index, in the order of their numbers. A queue that drops have emptied stays
    /// until its turn.
    order: Vec<(FlowNumber, u32)>,
    /// Flow of the last packet.
    last: FlowNumber,
    limit: LongestQueueDrop,
    backlog: Backlog,
}

impl Queue for RoundRobin {
    fn enqueue(&mut self, packet: Packet, context: &mut Context<'_>) {
        let (index, is_new) = self.flows.get_or_insert(packet.flow);
        if is_new {
            let place = self.order.partition_point(|(flow, _)| *flow < packet.flow);
            self.order.insert(place, (packet.flow, index));
        }
        let packets = self.flows.get_mut(index);
        packets.push(packet);
        self.backlog.add(packet.bytes);
        self.limit.set_length(index, packets.backlog().bytes);
        while let Some(longest) = self.limit.victim(self.backlog) {
            let packets = self.flows.get_mut(longest);
            let rest = self.limit.drop_last(longest, packets, &mut self.backlog, context);
            if rest.is_none() {
                return;
            }
        }
    }

    fn dequeue(&mut self, _context: &mut Context<'_>) -> Option<Packet> {
        loop {
            let next = self.order.partition_point(|(flow, _)| *flow <= self.last);
            let place = if next < self.order.len() { next } else { 0 };
            let (flow, index) = *self.order.get(place)?;
            let packets = self.flows.get_mut(index);
            let packet = packets.pop();
            let length = packets.backlog();
            self.limit.set_length(index, length.bytes);
            if length.packets == 0 {
                self.order.remove(place);
                self.flows.release(index);
            }
            if let Some(packet) = packet {
                self.last = flow;
                self.backlog.remove(packet.bytes);
                return Some(packet);
            }
        }
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
        self.last = packet.flow;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::queueing::blocks::fixture::{fixture, packet};

    #[test]
    fn each_flow_sends_a_packet_in_turn_in_the_order_of_numbers() {
        let mut queue = fixture(&defaults::<Config>());
        for (sequence, flow) in (0..).zip([7, 7, 3, 9, 3, 7]) {
            queue.enqueue(packet(flow, sequence, 1000));
        }
        assert_eq!(queue.drain(), [(3, 2), (7, 0), (9, 3), (3, 4), (7, 1), (7, 5)]);
    }

    #[test]
    fn flow_whose_packet_comes_later_keeps_its_place() {
        let mut queue = fixture(&defaults::<Config>());
        for flow in [1, 5, 8] {
            queue.enqueue(packet(flow, 0, 1000));
        }
        assert_eq!(queue.dequeue().0.map(|first| first.flow), Some(1));
        // Behind packets of 5 and 8, but its number is next.
        queue.enqueue(packet(2, 0, 1000));
        assert_eq!(queue.drain(), [(2, 0), (5, 0), (8, 0)]);
    }
}

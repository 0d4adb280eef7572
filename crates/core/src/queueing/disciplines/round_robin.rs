//! Round robin over flows, a packet each.

use super::{
    Backlog, Capacity, Context, Limit, LinkScale, PacketFifo, PortQueue, Queue, QueueKind,
};
use crate::model::packet::{FlowNumber, Packet};

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
        let capacity = scale.limit(self.capacity);
        PortQueue::OnDeparture(Box::new(RoundRobin { capacity, ..RoundRobin::default() }))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }
}

#[derive(Default)]
struct RoundRobin {
    capacity: Option<Limit>,
    /// Flows with packets, in the order of their numbers.
    flows: Vec<(FlowNumber, PacketFifo)>,
    /// Empty queues, whose memory is reused.
    unused: Vec<PacketFifo>,
    /// Flow of the last packet.
    last: FlowNumber,
    backlog: Backlog,
}

impl RoundRobin {
    /// Removes the last packet of the longest flow queue. Returns no packet if the arriving one is that.
    fn drop_from_longest(&mut self, arriving: &Packet) -> Option<Packet> {
        let length = |(flow, queue): &(FlowNumber, PacketFifo)| {
            let arrives = if *flow == arriving.flow { arriving.bytes } else { 0 };
            queue.backlog().bytes + u64::from(arrives)
        };
        let lengths = self.flows.iter().map(length).enumerate();
        let (place, longest) = lengths.max_by_key(|(_, length)| *length)?;
        if self.flows[place].0 == arriving.flow || longest < u64::from(arriving.bytes) {
            return None;
        }
        let packet = self.flows[place].1.pop_last()?;
        self.backlog.remove(packet.bytes);
        self.release_if_empty(place);
        Some(packet)
    }

    /// Keeps the memory of a flow queue that has become empty.
    fn release_if_empty(&mut self, place: usize) {
        if self.flows[place].1.backlog().packets == 0 {
            let (_, queue) = self.flows.remove(place);
            self.unused.push(queue);
        }
    }
}

impl Queue for RoundRobin {
    fn enqueue(&mut self, packet: Packet, context: &mut Context<'_>) {
        while self.capacity.is_some_and(|capacity| !capacity.fits(self.backlog, packet.bytes)) {
            let Some(dropped) = self.drop_from_longest(&packet) else {
                context.dropped.push(packet);
                return;
            };
            context.dropped.push(dropped);
        }
        self.backlog.add(packet.bytes);
        let place = self.flows.partition_point(|(flow, _)| *flow < packet.flow);
        if self.flows.get(place).is_none_or(|(flow, _)| *flow != packet.flow) {
            let queue = self.unused.pop().unwrap_or_default();
            self.flows.insert(place, (packet.flow, queue));
        }
        self.flows[place].1.push(packet);
    }

    fn dequeue(&mut self, _context: &mut Context<'_>) -> Option<Packet> {
        let next = self.flows.partition_point(|(flow, _)| *flow <= self.last);
        let place = if next < self.flows.len() { next } else { 0 };
        let (flow, queue) = self.flows.get_mut(place)?;
        self.last = *flow;
        let packet = queue.pop()?;
        self.release_if_empty(place);
        self.backlog.remove(packet.bytes);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.flows.iter().for_each(|(_, queue)| queue.for_each_packet(visit));
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
    use crate::base::random::Random;
    use crate::base::schema::Parameter;
    use crate::base::units::Time;
    use crate::model::packet::{Format, Kind};
    use crate::queueing::blocks::fixture::SCALE;
    use serde_json::json;

    /// Enqueues packets of these flows, with their positions as segments, and dequeues while `next` gives a
    /// flow whose packet comes meanwhile. Returns the flows and segments as they leave.
    fn order(flows: &[FlowNumber], mut comes: Vec<FlowNumber>) -> Vec<(FlowNumber, u32)> {
        let Ok(config) = Config::read(&json!({})) else { panic!("expected the defaults") };
        let PortQueue::OnDeparture(mut queue) = config.build(SCALE) else {
            panic!("expected a queue that decides on departure");
        };
        let format: Format = crate::base::schema::defaults();
        let packet =
            |flow, sequence| Packet { sequence, ..format.control(Kind::Data, flow, Time::ZERO) };
        let (mut random, mut marks) = (Random::new(1, "queue"), 0);
        let (mut dropped, mut trimmed) = (Vec::new(), Vec::new());
        let mut context = Context {
            now: Time::ZERO,
            random: &mut random,
            dropped: &mut dropped,
            trimmed: &mut trimmed,
            marks: &mut marks,
        };
        for (sequence, flow) in (0..).zip(flows) {
            queue.enqueue(packet(*flow, sequence), &mut context);
        }
        let mut left = Vec::new();
        comes.reverse();
        while let Some(packet_left) = queue.dequeue(&mut context) {
            left.push((packet_left.flow, packet_left.sequence));
            if let Some(flow) = comes.pop() {
                queue.enqueue(packet(flow, 100), &mut context);
            }
        }
        assert_eq!(queue.backlog(), Backlog::default());
        left
    }

    #[test]
    fn each_flow_sends_a_packet_in_turn_in_the_order_of_numbers() {
        let left = order(&[7, 7, 3, 9, 3, 7], Vec::new());
        assert_eq!(left, [(3, 2), (7, 0), (9, 3), (3, 4), (7, 1), (7, 5)]);
    }

    #[test]
    fn flow_whose_packet_comes_later_keeps_its_place() {
        // Flow 2 comes when flow 1 has left, behind packets of 5 and 8, but its number is next.
        let left = order(&[1, 5, 8], vec![2]);
        assert_eq!(left, [(1, 0), (2, 100), (5, 1), (8, 2)]);
    }
}

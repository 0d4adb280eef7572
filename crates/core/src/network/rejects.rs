//! Packets that queues reject: dropped ones, payload that was cut off, and headers that return to their
//! senders.

use super::breakdown::packet_log::LossCause;
use super::outbox::Departure;
use super::{Network, Routers};
use crate::model::graph::LinkId;
use crate::model::packet::{Kind, Packet};
use crate::schedule::Scheduler;

impl Network {
    /// Disposes of the packets that a port's queue has dropped or trimmed.
    pub(super) fn dispose_of_rejects(&mut self, link: LinkId, scheduler: &mut Scheduler) {
        while let Some(cut) = self.outbox.rejects.trimmed.pop() {
            self.ports[link as usize].on_drop(&cut);
            self.release(&cut, link, scheduler);
            if let Some(records) = &mut self.records {
                records.trim(&cut, link, scheduler.now());
            }
        }
        while let Some(packet) = self.outbox.rejects.dropped.pop() {
            self.ports[link as usize].record_reject(&packet);
            if packet.kind == Kind::Trimmed
                && let Some(header) = self.turn_back(packet, link)
            {
                self.release(&packet, link, scheduler);
                self.outbox.returned.push(header);
            } else {
                self.discard(&packet, link, scheduler);
            }
        }
        // Not before the queue's rejects are disposed of: other ports have rejects, too.
        while let Some(mut header) = self.outbox.returned.pop() {
            let [last, onward] = [1, 0].map(|back| self.routes.link(header.next_hop - back));
            if self.buffers.is_none() || self.admit(&header, last, onward, scheduler) {
                self.enqueue(&mut header, onward, scheduler);
            }
        }
    }

    /// Returns the header that goes back to its sender in place of a trimmed packet that the queue of `link`
    /// has dropped. None if the queue does not return headers, if that is the port of the sender, or if the
    /// packet is not on a path that its host has chosen and that is the present one.
    fn turn_back(&mut self, packet: Packet, link: LinkId) -> Option<Packet> {
        let routes = self.return_routes.as_ref()?;
        let port = &mut self.ports[link as usize];
        let slot = self.flow_table.slot(packet.flow).filter(|_| port.returns_headers())?;
        let next_hop = routes[slot as usize].turning_point(packet.next_hop)?;
        // The header leaves the switch by another port, and counts there.
        port.counters.arrived -= 1;
        port.counters.dropped -= 1;
        self.returned += 1;
        let mut header = Packet { kind: Kind::Returned, next_hop, ..packet };
        if let Some(records) = &mut self.records {
            records.turn_back(&mut header);
        }
        Some(header)
    }

    /// Disposes of a packet that a port's queue has dropped.
    pub(super) fn discard(&mut self, packet: &Packet, link: LinkId, scheduler: &mut Scheduler) {
        if self.routers != Routers::None {
            self.ports[link as usize].on_drop(packet);
        }
        self.release(packet, link, scheduler);
        if self.is_awaited && self.from_host[link as usize] && packet.kind.is_awaited() {
            let (flow, ends) = (packet.flow, scheduler.now());
            self.outbox.departures.push(Departure { flow, ends });
        }
        self.lose(packet, link, LossCause::Queue, scheduler.now());
    }
}

//! Nodes, ports and routes: the only place that moves packets. Pause frames live here.

use crate::buffer::{Buffers, Order, PAUSE_FRAME};
use crate::event::Event;
use crate::packet::{FlowSlot, Kind, NEIGHBOUR, Packet, PacketId, Packets, Tag};
use crate::port::{Arrival, Handed, Port, Sent};
use crate::routes::{END, Routes};
use crate::schedule::Schedule;
use crate::topology::LinkId;
use crate::units::Time;

/// The pending events of a simulation.
pub type Agenda = Schedule<Event>;

/// A packet that had to wait in its host's port has left it.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// The flow it belongs to.
    pub flow: FlowSlot,
    /// When its transmission ends.
    pub ends: Time,
}

/// The network with all that is in it.
pub struct Network {
    /// All packets.
    pub packets: Packets,
    /// By [`LinkId`].
    pub ports: Vec<Port>,
    /// Whether a link leads from a host, by [`LinkId`].
    pub from_host: Vec<bool>,
    /// The ways through.
    pub routes: Routes,
    /// Shared buffers of the switches, if they have any.
    pub buffers: Option<Buffers>,
    /// Whether control packets pass data, and the accounts of shared buffers.
    pub control_priority: bool,
    /// Flows of packets that were dropped or lost since the simulation last looked.
    pub losses: Vec<FlowSlot>,
    /// Packets that left their hosts' queues since the simulation last looked.
    pub departures: Vec<Departure>,
    /// Pause frames on their way.
    pub pause_frames: u64,
    /// Packets that a queue has just dropped.
    rejects: Vec<Tag>,
}

impl Network {
    /// A network of these ports, empty.
    pub fn new(
        ports: Vec<Port>,
        from_host: Vec<bool>,
        routes: Routes,
        buffers: Option<Buffers>,
        control_priority: bool,
    ) -> Self {
        Self {
            packets: Packets::default(),
            ports,
            from_host,
            routes,
            buffers,
            control_priority,
            losses: Vec::new(),
            departures: Vec::new(),
            pause_frames: 0,
            rejects: Vec::new(),
        }
    }

    /// Whether packets were lost or have left their hosts since the simulation last looked.
    pub fn has_news(&self) -> bool {
        !(self.losses.is_empty() && self.departures.is_empty())
    }

    /// Handles an arrival at the end of a link; returns the packet if that is the end of its way.
    pub fn arrive(&mut self, link: LinkId, agenda: &mut Agenda) -> Option<PacketId> {
        let Arrival { tag, is_lost, next } = self.ports[link as usize].arrive(agenda.now())?;
        if let Some(time) = next {
            agenda.push(time, Event::Arrive(link));
        }
        if is_lost {
            self.lose(tag.id);
            return None;
        }
        if tag.is_frame() {
            self.obey(tag.id, agenda);
            return None;
        }
        match self.routes.link(tag.next_hop) {
            END => Some(tag.id),
            onward => {
                self.offer(Tag { next_hop: tag.next_hop + 1, ..tag }, onward, agenda);
                None
            }
        }
    }

    /// Sends a packet from its host, whose port is the first of its route. Says when its transmission ends
    /// if that is settled already; otherwise a [`Departure`] will.
    pub fn send(&mut self, id: PacketId, agenda: &mut Agenda) -> Option<Time> {
        let tag = self.packets.tag(id);
        let link = self.routes.link(tag.next_hop);
        self.offer(Tag { next_hop: tag.next_hop + 1, ..tag }, link, agenda)
    }

    /// Handles a call that a port has asked for.
    pub fn ready(&mut self, link: LinkId, agenda: &mut Agenda) {
        self.ports[link as usize].called();
        self.serve(link, agenda);
    }

    /// Hands a packet to a port.
    fn offer(&mut self, tag: Tag, link: LinkId, agenda: &mut Agenda) -> Option<Time> {
        if self.buffers.is_some() && !self.admit(tag, link, agenda) {
            return None;
        }
        let port = &mut self.ports[link as usize];
        match port.hand(tag, agenda.now(), &mut self.packets, &mut self.rejects) {
            Handed::Sent(sent) => {
                depart(sent, link, agenda);
                Some(sent.ends)
            }
            Handed::Dropped => {
                self.discard(tag, link, agenda);
                None
            }
            Handed::Queued => {
                self.serve(link, agenda);
                None
            }
        }
    }

    /// Starts a port's next transmission if it can.
    fn serve(&mut self, link: LinkId, agenda: &mut Agenda) {
        let now = agenda.now();
        let sent = self.ports[link as usize].serve(now, &mut self.packets, &mut self.rejects);
        while let Some(tag) = self.rejects.pop() {
            self.discard(tag, link, agenda);
        }
        if let Some(sent) = sent {
            self.release(sent.tag, link, agenda);
            self.note_departure(sent.tag, link, sent.ends);
            depart(sent, link, agenda);
        }
        if let Some(time) = self.ports[link as usize].call(now) {
            agenda.push(time, Event::Ready(link));
        }
    }

    /// Disposes of a packet that a port's queue has dropped.
    fn discard(&mut self, tag: Tag, link: LinkId, agenda: &mut Agenda) {
        self.release(tag, link, agenda);
        self.note_departure(tag, link, agenda.now());
        self.lose(tag.id);
    }

    /// Notes that data has left its host's port.
    fn note_departure(&mut self, tag: Tag, link: LinkId, ends: Time) {
        if self.from_host[link as usize] && !tag.is_control {
            let flow = self.packets[tag.id].flow;
            self.departures.push(Departure { flow, ends });
        }
    }

    fn lose(&mut self, id: PacketId) {
        let packet = self.packets.remove(id);
        self.losses.push(packet.flow);
    }

    /// The link by which a packet now at the port of `link` came into a shared buffer that counts it.
    fn ingress(&self, tag: Tag, link: LinkId) -> Option<LinkId> {
        let passes = self.control_priority && tag.is_control;
        let is_counted = !self.from_host[link as usize] && !passes;
        is_counted.then(|| self.routes.link(tag.next_hop - 2))
    }

    /// Finds room for a packet in its switch's buffer, or drops it.
    fn admit(&mut self, tag: Tag, link: LinkId, agenda: &mut Agenda) -> bool {
        let (Some(ingress), Some(buffers)) = (self.ingress(tag, link), &mut self.buffers) else {
            return true;
        };
        let port = &mut self.ports[link as usize];
        let queued = port.backlog(agenda.now()).bytes;
        let admitted = buffers.admit(ingress, tag.bytes, queued);
        if !admitted {
            port.counters.arrived += 1;
            port.counters.dropped += 1;
            self.lose(tag.id);
        }
        self.order(ingress, agenda);
        admitted
    }

    /// Frees the room of a packet that leaves its switch's buffer.
    fn release(&mut self, tag: Tag, link: LinkId, agenda: &mut Agenda) {
        if self.buffers.is_none() {
            return;
        }
        let Some(ingress) = self.ingress(tag, link) else { return };
        if let Some(buffers) = &mut self.buffers {
            buffers.release(ingress, tag.bytes);
        }
        self.order(ingress, agenda);
    }

    /// Sends a pause frame to the neighbour at the other end of `link` if the buffers ask for it.
    fn order(&mut self, link: LinkId, agenda: &mut Agenda) {
        let kind = match self.buffers.as_mut().and_then(|buffers| buffers.order(link)) {
            None => return,
            Some(Order::Pause) => Kind::Pause,
            Some(Order::Resume) => Kind::Resume,
        };
        self.pause_frames += 1;
        let id = self.packets.insert(Packet {
            sent_at: agenda.now(),
            flow: FlowSlot::MAX,
            route: NEIGHBOUR,
            sequence: link,
            block: (0, 0),
            wire_bytes: PAUSE_FRAME.0 as u16,
            payload_bytes: 0,
            kind,
            ecn_capable: false,
            marked: false,
            wants_ack: false,
        });
        self.offer(self.packets.tag(id), link ^ 1, agenda);
    }

    /// Obeys a pause frame that has arrived.
    fn obey(&mut self, id: PacketId, agenda: &mut Agenda) {
        let frame = self.packets.remove(id);
        self.pause_frames -= 1;
        let port = &mut self.ports[frame.sequence as usize];
        if frame.kind == Kind::Pause {
            port.pause(agenda.now());
        } else {
            port.resume(agenda.now());
            self.serve(frame.sequence, agenda);
        }
    }
}

/// Schedules the arrival of a packet that has the link to itself.
fn depart(sent: Sent, link: LinkId, agenda: &mut Agenda) {
    if let Some(time) = sent.arrives_first {
        agenda.push(time, Event::Arrive(link));
    }
}

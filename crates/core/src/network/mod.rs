//! Nodes, ports and routes: the only place that moves packets. Pause frames live here.

pub mod breakdown;
pub mod flow_table;
pub mod link;
pub mod port;
pub mod routes;
pub mod switch;

use self::breakdown::packet_records::PacketRecords;
use self::flow_table::{FlowTable, Slot};
use self::link::transmitter::Sent;
use self::port::{EnqueueOutcome, Port, StartedTransmission};
use self::routes::{END, Route, Routes};
use self::switch::shared_buffer::{Buffers, PAUSE_FRAME};
use self::switch::traffic_classes::{LaneId, TrafficClasses};
use crate::base::units::{Duration, Time};
use crate::model::graph::{Graph, LinkId, NodeId};
use crate::model::packet::{Flags, FlowNumber, Kind, Packed, Packet};
use crate::router::FlowInfo;
use crate::schedule::{Event, Scheduler};

/// A packet that had to wait in its host's port has left it.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// The flow it belongs to.
    pub flow: FlowNumber,
    /// When its transmission ends.
    pub ends: Time,
}

/// What routers at ports read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Routers {
    /// There are none.
    None,
    /// What is handed to their ports.
    ReadOnTheWayThere,
    /// Also what answers it.
    ReadBothWays,
}

/// The network with all that is in it.
pub struct Network {
    /// By [`LinkId`].
    pub ports: Vec<Port>,
    /// Whether a link leads from a host's own port, by [`LinkId`].
    pub from_host: Vec<bool>,
    /// What of the traffic routers read.
    routers: Routers,
    /// Whether senders pace what they send, and wait until their host's port has sent it.
    is_paced: bool,
    /// Whether a queue weighs flows.
    weighs: bool,
    /// Where the flows in progress are kept.
    pub directory: FlowTable,
    /// What routers may know of the flows in progress, by place.
    flow_info: Vec<FlowInfo>,
    /// The ways through.
    pub routes: Routes,
    /// Shared buffers of the switches, if they have any.
    pub buffers: Option<Buffers>,
    /// Which traffic class each flow is in.
    pub traffic: TrafficClasses,
    /// Whether control packets pass data, and the accounts of shared buffers.
    pub control_priority: bool,
    /// Flows of packets that were dropped or lost since the simulation last looked, and when.
    pub losses: Vec<(FlowNumber, Time)>,
    /// Packets that left their hosts' queues since the simulation last looked.
    pub departures: Vec<Departure>,
    /// Pause frames on their way; of a part of a run, those that were sent less those that have come, which
    /// wraps around zero.
    pub pause_frames: u64,
    /// When the last of those that have come did so.
    pub last_frame: Time,
    /// Packets that a queue has just dropped.
    rejects: Vec<Packet>,
    /// What packets carry beside them, if accounts are kept.
    pub records: Option<Box<PacketRecords>>,
}

impl Network {
    /// A network of these ports, empty.
    pub fn new(
        ports: Vec<Port>,
        from_host: Vec<bool>,
        routes: Routes,
        buffers: Option<Buffers>,
        traffic: TrafficClasses,
        control_priority: bool,
        is_paced: bool,
    ) -> Self {
        Self {
            routers: if ports.iter().any(Port::reads_acks) {
                Routers::ReadBothWays
            } else if ports.iter().any(Port::is_routed) {
                Routers::ReadOnTheWayThere
            } else {
                Routers::None
            },
            is_paced,
            weighs: ports.iter().any(Port::weighs),
            directory: FlowTable::default(),
            flow_info: Vec::new(),
            ports,
            from_host,
            routes,
            buffers,
            traffic,
            control_priority,
            losses: Vec::new(),
            departures: Vec::new(),
            pause_frames: 0,
            last_frame: Time::ZERO,
            rejects: Vec::new(),
            records: None,
        }
    }

    /// Takes in a flow that starts, of which routers may know what `flow_info` says and whose queues may weigh it
    /// as they do its class; its packets go by `there`, and back.
    pub fn register_flow(
        &mut self,
        flow: FlowNumber,
        flow_info: FlowInfo,
        class: u16,
        name: &str,
        there: Route,
    ) -> Slot {
        let place = self.directory.join(flow);
        if self.routers != Routers::None {
            let index = place as usize;
            if index >= self.flow_info.len() {
                self.flow_info.resize(index + 1, flow_info);
            }
            self.flow_info[index] = flow_info;
        }
        self.traffic.classify(flow, class);
        self.set_route(flow, name, there);
        place
    }

    /// Packets of a flow of this class, which is in the network, may go by `there` from now on, and back.
    pub fn set_route(&mut self, flow: FlowNumber, name: &str, there: Route) {
        if self.weighs {
            for link in there.both().iter().flat_map(|way| self.routes.links(*way)).flatten() {
                self.ports[*link as usize].register_flow(flow, name);
            }
        }
    }

    /// Whether anything in the network wants to know of all flows that pass.
    pub fn tracks_flows(&self) -> bool {
        self.routers != Routers::None || self.weighs || self.traffic.numbers.len() > 1
    }

    /// Forgets a flow that has ended, whose packets went by these ways there, and back.
    pub fn unregister_flow(&mut self, flow: FlowNumber, ways: impl Iterator<Item = Route>) {
        if self.weighs {
            let ways = ways.flat_map(Route::both);
            for link in ways.flat_map(|way| self.routes.links(way)).flatten() {
                self.ports[*link as usize].unregister_flow(flow);
            }
        }
        self.directory.leave(flow);
    }

    /// What routers may know of the flow of a packet.
    fn about(&self, packet: &Packet) -> &FlowInfo {
        let place = self.directory.place(packet.flow);
        let place =
            place.unwrap_or_else(|| unreachable!("a flow stays until its packets have gone"));
        &self.flow_info[place as usize]
    }

    /// Takes the first packet on a link, which has come to its end, and schedules the next.
    #[inline]
    pub fn arrive(&mut self, link: LinkId, scheduler: &mut Scheduler) -> Packet {
        let port = &mut self.ports[link as usize];
        port.advance_to(scheduler.now());
        let packet = port.take();
        if let Some(time) = port.next_arrival() {
            scheduler.push_arrival(link, time);
        }
        packet
    }

    /// Hands on a packet that has come to the end of a link; returns it if that is the end of its way.
    #[inline]
    pub fn forward(
        &mut self,
        mut packet: Packet,
        link: LinkId,
        scheduler: &mut Scheduler,
    ) -> Option<Packet> {
        if self.ports[link as usize].is_watched()
            && self.is_lost(&mut packet, link, scheduler.now())
        {
            return None;
        }
        if packet.kind.is_frame() {
            self.on_pause_frame(&packet, scheduler);
            return None;
        }
        if self.routers == Routers::ReadBothWays && packet.kind.is_answer() {
            let flow_info = *self.about(&packet);
            self.ports[link as usize ^ 1].on_ack_return(&mut packet, &flow_info, scheduler.now());
        }
        match self.routes.link(packet.next_hop) {
            END => Some(packet),
            onward => {
                if self.buffers.is_none() || self.admit(&packet, link, onward, scheduler) {
                    self.enqueue(&mut packet, onward, scheduler);
                }
                None
            }
        }
    }

    /// Sends a packet from its host, whose port is the first of its route. Says until when the host's port
    /// keeps its flow waiting, if the port can tell; otherwise a [`Departure`] will. Where hosts are routers
    /// or senders do not pace, nobody waits.
    pub fn send(&mut self, mut packet: Packet, scheduler: &mut Scheduler) -> Option<Time> {
        let link = self.routes.link(packet.next_hop);
        let ends = self.enqueue(&mut packet, link, scheduler);
        if self.is_paced && self.from_host[link as usize] { ends } else { Some(scheduler.now()) }
    }

    /// How long pauses may last without being looked at, if there are any and they are ever looked at.
    pub fn watchdog(&self) -> Option<Duration> {
        self.buffers.as_ref().and_then(Buffers::watchdog)
    }

    /// When the router at a port first wants to be called; never, if there is none.
    pub fn first_tick(&self, link: LinkId) -> Time {
        self.ports[link as usize].next_tick()
    }

    /// Swaps what this network and another, of other parts of the run, have of the nodes that `is_other`.
    pub fn swap(&mut self, other: &mut Self, graph: &Graph, is_other: impl Fn(NodeId) -> bool) {
        let links = graph.links.iter().enumerate();
        for (id, _) in links.filter(|(_, link)| is_other(link.from)) {
            std::mem::swap(&mut self.ports[id], &mut other.ports[id]);
        }
        if let (Some(buffers), Some(others)) = (&mut self.buffers, &mut other.buffers) {
            buffers.swap(others, is_other);
        }
    }

    /// A link fails, or is back. With it its pauses end: no frame passes that could.
    pub fn set_link_state(&mut self, link: LinkId, is_down: bool, scheduler: &mut Scheduler) {
        let now = scheduler.now();
        self.ports[link as usize].set_link_state(is_down, now);
        for lane in self.traffic.lanes.of(link) {
            if self.ports[link as usize ^ 1].take_frame(lane, now) {
                self.pause_frames = self.pause_frames.wrapping_sub(1);
            }
            if let Some(buffers) = &mut self.buffers {
                buffers.forget_pause(lane);
            }
            let class = self.traffic.lanes.class(lane);
            if self.ports[link as usize].pauses()[usize::from(class)].is_on() {
                self.ports[link as usize].resume(class, now);
                self.serve(link, scheduler);
            }
        }
    }

    /// A router's time has come.
    pub fn tick(&mut self, link: LinkId, scheduler: &mut Scheduler) {
        let port = &mut self.ports[link as usize];
        port.tick(scheduler.now());
        scheduler.push(port.next_tick(), Event::Tick(link));
    }

    /// Handles a call that a port has asked for.
    pub fn ready(&mut self, link: LinkId, scheduler: &mut Scheduler) {
        self.ports[link as usize].called();
        self.serve(link, scheduler);
    }

    /// Hands a packet to a port.
    fn enqueue(
        &mut self,
        packet: &mut Packet,
        link: LinkId,
        scheduler: &mut Scheduler,
    ) -> Option<Time> {
        if self.routers != Routers::None && !packet.kind.is_frame() {
            let flow_info = *self.about(packet);
            self.ports[link as usize].on_enqueue(packet, &flow_info, scheduler.now());
        }
        let class = self.traffic.of(packet.flow);
        match self.ports[link as usize].enqueue(packet, class, scheduler.now(), &mut self.rejects) {
            EnqueueOutcome::Sent(sent) => {
                depart(sent, link, scheduler);
                if self.ports[link as usize].is_eager() {
                    self.release(packet, link, scheduler);
                }
                Some(sent.ends)
            }
            EnqueueOutcome::Dropped => {
                self.discard(packet, link, scheduler);
                None
            }
            EnqueueOutcome::Waits(ends) => {
                self.record_enqueue(packet, class, link, scheduler.now());
                ends
            }
            EnqueueOutcome::Queued => {
                self.record_enqueue(packet, class, link, scheduler.now());
                self.serve(link, scheduler);
                None
            }
        }
    }

    /// Starts a port's next transmission if it can.
    fn serve(&mut self, link: LinkId, scheduler: &mut Scheduler) {
        let now = scheduler.now();
        let served = self.ports[link as usize].serve(now, &mut self.rejects);
        while let Some(packet) = self.rejects.pop() {
            self.ports[link as usize].note_reject(&packet);
            self.discard(&packet, link, scheduler);
        }
        if let Some(StartedTransmission { packet, sent, is_awaited }) = served {
            self.release(&packet, link, scheduler);
            if is_awaited {
                self.departures.push(Departure { flow: packet.flow, ends: sent.ends });
            }
            depart(sent, link, scheduler);
        }
        if let Some(time) = self.ports[link as usize].call(now) {
            scheduler.push(time, Event::Ready(link));
        }
    }

    /// Disposes of a packet that a port's queue has dropped.
    fn discard(&mut self, packet: &Packet, link: LinkId, scheduler: &mut Scheduler) {
        if self.routers != Routers::None {
            self.ports[link as usize].on_drop(packet);
        }
        self.release(packet, link, scheduler);
        if self.is_paced && self.from_host[link as usize] && !packet.kind.is_control() {
            self.departures.push(Departure { flow: packet.flow, ends: scheduler.now() });
        }
        self.lose(packet, scheduler.now());
    }

    /// A packet is lost, at a port or at the end of its link.
    fn lose(&mut self, packet: &Packet, now: Time) {
        self.losses.push((packet.flow, now));
        if let Some(records) = &mut self.records {
            records.lose(packet);
        }
    }

    /// Whether a packet that has come to the end of a link is lost; notes for its account that it has come.
    /// Apart, because most links lose nothing.
    #[inline(never)]
    fn is_lost(&mut self, packet: &mut Packet, link: LinkId, now: Time) -> bool {
        let port = &mut self.ports[link as usize];
        if let Some(records) = &mut self.records
            && let Some(hop) = port.hop(packet, now).filter(|_| !packet.kind.is_frame())
        {
            records.hop(packet, &hop);
        }
        let is_lost = port.loses(packet);
        if is_lost && packet.kind.is_frame() {
            self.end_frame(now);
        } else if is_lost {
            self.lose(packet, now);
        }
        is_lost
    }

    /// A pause frame has come to the end of its link.
    fn end_frame(&mut self, now: Time) {
        self.pause_frames = self.pause_frames.wrapping_sub(1);
        self.last_frame = self.last_frame.max(now);
    }

    /// The lane by which a packet now at the port of `link` came into a shared buffer that counts it.
    pub fn ingress(&self, packet: &Packet, link: LinkId) -> Option<LaneId> {
        let passes = self.control_priority && packet.kind.is_control();
        let is_counted = !self.from_host[link as usize] && !passes;
        is_counted.then(|| self.traffic.lane(self.routes.link(packet.next_hop - 1), packet.flow))
    }

    /// Finds room in its switch's buffer for a packet that has come by the link `from` and goes to `link`, or
    /// drops it.
    #[inline]
    fn admit(
        &mut self,
        packet: &Packet,
        from: LinkId,
        link: LinkId,
        scheduler: &mut Scheduler,
    ) -> bool {
        if self.control_priority && packet.kind.is_control() {
            return true;
        }
        let class = self.traffic.of(packet.flow);
        let ingress = self.traffic.lanes.lane(from, class);
        let Some(buffers) = &mut self.buffers else { return true };
        let now = scheduler.now();
        if !buffers.is_watched(ingress) {
            let port = &mut self.ports[link as usize];
            let queued = || port.backlog_of(class, now).bytes;
            if buffers.admit_unwatched(ingress, packet.bytes, queued) {
                if cfg!(debug_assertions) {
                    self.assert_at_ease(ingress, packet.bytes, link, now);
                }
                return true;
            }
            self.count(ingress, now);
            self.watch(ingress, packet.bytes, link, scheduler);
        }
        let (Some(buffers), port) = (&mut self.buffers, &mut self.ports[link as usize]) else {
            return true;
        };
        let admitted = buffers.admit(ingress, packet.bytes, || port.backlog_of(class, now).bytes);
        if !admitted {
            port.counters.arrived += 1;
            port.counters.dropped += 1;
        }
        let pauses = buffers.pauses(ingress);
        if !admitted {
            self.lose(packet, now);
        }
        if pauses {
            self.tell(Kind::Pause, ingress, scheduler);
        }
        admitted
    }

    /// Counts anew what waits at the switch at the end of `ingress`.
    fn count(&mut self, ingress: LaneId, now: Time) {
        let Some(buffers) = &mut self.buffers else { return };
        buffers.forget(ingress);
        for place in 0..buffers.ports(ingress).len() {
            let port = &mut self.ports[buffers.ports(ingress)[place] as usize];
            port.backlog(now);
            port.visit_data(&mut |packet| {
                let from = self.routes.link(packet.next_hop - 1);
                buffers.hold(self.traffic.lane(from, packet.flow), packet.bytes);
            });
        }
    }

    /// Checks that exact accounts would let `bytes` in too that came by `ingress`, and not pause it.
    fn assert_at_ease(&mut self, ingress: LaneId, bytes: u16, link: LinkId, now: Time) {
        let most = self.buffers.clone();
        self.count(ingress, now);
        let class = self.traffic.lanes.class(ingress);
        let queued = self.ports[link as usize].backlog_of(class, now).bytes;
        if let Some(exact) = &mut self.buffers {
            let is_at_ease = exact.admit(ingress, bytes, || queued) && !exact.pauses(ingress);
            assert!(is_at_ease, "a switch that was not watched had to drop or pause");
        }
        self.buffers = most;
    }

    /// Watches the switch at the end of `ingress`, by which `bytes` have come that go to `link`, if it was
    /// found to hold much.
    fn watch(&mut self, ingress: LaneId, bytes: u16, link: LinkId, scheduler: &mut Scheduler) {
        let Some(buffers) = &mut self.buffers else { return };
        let (now, class) = (scheduler.now(), self.traffic.lanes.class(ingress));
        let queued = self.ports[link as usize].backlog_of(class, now).bytes;
        if !buffers.watch(ingress, bytes, queued) {
            return;
        }
        for link in buffers.ports(ingress) {
            let port = &mut self.ports[*link as usize];
            port.set_eager(true, now);
            if let Some(time) = port.call(now) {
                scheduler.push(time, Event::Ready(*link));
            }
        }
    }

    /// Frees the room of a packet that leaves its switch's buffer, if the switch is watched.
    fn release(&mut self, packet: &Packet, link: LinkId, scheduler: &mut Scheduler) {
        if self.buffers.is_none() {
            return;
        }
        let (Some(ingress), Some(buffers)) = (self.ingress(packet, link), &mut self.buffers) else {
            return;
        };
        if !buffers.is_watched(ingress) {
            return;
        }
        buffers.release(ingress, packet.bytes);
        if buffers.relax(ingress) {
            for link in buffers.ports(ingress) {
                self.ports[*link as usize].set_eager(false, scheduler.now());
            }
        }
        if buffers.resumes(ingress) {
            self.tell(Kind::Resume, ingress, scheduler);
        }
    }

    /// Checks the accounts of shared buffers at the end of a run.
    pub fn assert_buffers(&self) {
        let Some(buffers) = &self.buffers else { return };
        let mut waiting = vec![0; self.ports.len() * self.traffic.numbers.len()];
        for (link, port) in (0..).zip(&self.ports) {
            port.visit_data(&mut |packet| {
                if let Some(ingress) = self.ingress(packet, link) {
                    waiting[ingress as usize] += u64::from(packet.bytes);
                }
            });
        }
        buffers.assert_hold(&waiting);
    }

    /// Sends a pause frame for `lane` to the neighbour at its other end; or takes back the one before, which
    /// says the opposite, if it has not left yet.
    fn tell(&mut self, kind: Kind, lane: LaneId, scheduler: &mut Scheduler) {
        let back = self.traffic.lanes.link(lane) ^ 1;
        if self.ports[back as usize].take_frame(lane, scheduler.now()) {
            self.pause_frames = self.pause_frames.wrapping_sub(1);
            return;
        }
        self.pause_frames = self.pause_frames.wrapping_add(1);
        let mut frame = Packet {
            sent_at: scheduler.now(),
            flow: FlowNumber::MAX,
            next_hop: 0,
            sequence: lane,
            packed: Packed::default(),
            bytes: PAUSE_FRAME.0 as u16,
            kind,
            flags: Flags::NONE,
        };
        self.enqueue(&mut frame, back, scheduler);
    }

    /// Obeys a pause frame that has arrived.
    fn on_pause_frame(&mut self, frame: &Packet, scheduler: &mut Scheduler) {
        self.end_frame(scheduler.now());
        let (lanes, lane) = (self.traffic.lanes, frame.sequence);
        let (link, class) = (lanes.link(lane), lanes.class(lane));
        let port = &mut self.ports[link as usize];
        if frame.kind == Kind::Pause {
            port.pause(class, scheduler.now());
        } else {
            port.resume(class, scheduler.now());
            self.serve(link, scheduler);
        }
    }
}

/// Schedules the arrival of a packet that has the link to itself.
fn depart(sent: Sent, link: LinkId, scheduler: &mut Scheduler) {
    if let Some(time) = sent.arrives_first {
        scheduler.push_arrival(link, time);
    }
}

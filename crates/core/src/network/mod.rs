//! The network: ports, links, switch buffers and routes. Only this module moves packets, and it keeps
//! pause frames to itself.

mod ack_options;
pub mod breakdown;
pub mod flow_table;
pub mod forwarding;
pub mod link;
pub mod outbox;
mod overlay;
mod partition;
pub mod port;
pub mod read_ahead;
mod rejects;
pub mod routes;
pub mod side_table;
pub mod switch;
mod telemetry;
#[cfg(test)]
mod tests;

pub use self::partition::Shipment;

use self::ack_options::AckOptionTable;
use self::breakdown::hop_log::HopBegin;
use self::breakdown::packet_log::{Fate, LossCause, PacketLog};
use self::breakdown::packet_records::PacketRecords;
use self::flow_table::{FlowTable, Slot};
use self::forwarding::LoadBalancers;
use self::link::transmitter::Transmission;
use self::outbox::{Departure, Outbox, PacketLoss};
use self::port::{Passing, Port, PortOutcome};
use self::routes::tree::BRANCH;
use self::routes::{END, Route, Routes};
use self::switch::pause_timers::PauseTimers;
use self::switch::shared_buffer::Buffers;
use self::switch::traffic_classes::TrafficClasses;
use self::telemetry::TelemetryTable;
use crate::base::units::{Duration, Time};
use crate::model::graph::{LinkId, NodeId};
use crate::model::packet::{FlowNumber, Packet};
use crate::router::FlowInfo;
use crate::schedule::{Event, Scheduler};

/// Packets that the routers at ports read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Routers {
    /// None: there are no routers.
    None,
    /// Packets that are enqueued at their port.
    Enqueued,
    /// Those, and packets that return over the same cable.
    EnqueuedAndReturning,
}

/// Ports, links, buffers and routes, with all packets in them.
pub struct Network {
    /// By [`LinkId`].
    ports: Vec<Port>,
    /// If true, the link leads from a host's own port. By [`LinkId`].
    from_host: Vec<bool>,
    routers: Routers,
    /// If true, senders wait until their host's port has sent their packets: they pace, or share it in turn.
    is_awaited: bool,
    /// If true, a queue weighs flows.
    weighs: bool,
    flow_table: FlowTable,
    /// Information for routers about the live flows, by slot. Empty without routers.
    flow_info: Vec<FlowInfo>,
    /// Routes of the live flows, by slot, if a queue returns headers to their senders.
    return_routes: Option<Vec<Route>>,
    /// Headers that have turned back to their senders.
    returned: u64,
    routes: Routes,
    /// Load balancers, if switches choose next hops.
    load_balancers: Option<Box<LoadBalancers>>,
    buffers: Option<Buffers>,
    traffic: TrafficClasses,
    /// Packets that pass data, and that shared buffers do not count.
    passing: Passing,
    /// Reports to the simulation. A field, since with an argument more the calls of a hop would pass
    /// arguments on the stack.
    outbox: Outbox,
    /// Number of pause frames in the network. In a partition, frames sent less frames received, which
    /// wraps around zero.
    pause_frames: u64,
    /// Arrival of the last pause frame, or the end of the last pause that could expire.
    last_frame: Time,
    /// Timers of pauses, if they expire.
    pause_timers: Option<Box<PauseTimers>>,
    /// Records of packets for the FCT breakdown, if it is recorded.
    records: Option<Box<PacketRecords>>,
    ack_options: AckOptionTable,
    telemetry: TelemetryTable,
}

impl Network {
    /// Returns an empty network of these ports.
    pub fn new(
        ports: Vec<Port>,
        from_host: Vec<bool>,
        routes: Routes,
        buffers: Option<Buffers>,
        traffic: TrafficClasses,
        passing: Passing,
        is_awaited: bool,
    ) -> Self {
        Self {
            routers: if ports.iter().any(Port::reads_acks) {
                Routers::EnqueuedAndReturning
            } else if ports.iter().any(Port::is_routed) {
                Routers::Enqueued
            } else {
                Routers::None
            },
            is_awaited,
            weighs: ports.iter().any(Port::weighs),
            flow_table: FlowTable::default(),
            flow_info: Vec::new(),
            return_routes: ports.iter().any(Port::returns_headers).then(Vec::new),
            returned: 0,
            ports,
            from_host,
            routes,
            load_balancers: None,
            buffers,
            traffic,
            passing,
            outbox: Outbox::default(),
            pause_frames: 0,
            last_frame: Time::ZERO,
            pause_timers: None,
            records: None,
            ack_options: AckOptionTable::default(),
            telemetry: TelemetryTable::default(),
        }
    }

    /// Records packets for the FCT breakdown from now on.
    /// Logs packets in `log`, if there is one.
    pub fn keep_records(&mut self, log: Option<PacketLog>) {
        self.records = Some(Box::new(PacketRecords::new(log)));
    }

    /// Lets switches choose the next hops of packets with these load balancers, if there are any.
    pub(crate) fn set_load_balancers(&mut self, load_balancers: Option<Box<LoadBalancers>>) {
        self.load_balancers = load_balancers;
    }

    /// Returns all ports, by [`LinkId`].
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// Returns all ports, to read their counters up to the present.
    pub fn ports_mut(&mut self) -> &mut [Port] {
        &mut self.ports
    }

    /// Returns a port, to read its state up to the present.
    pub fn port_mut(&mut self, link: LinkId) -> &mut Port {
        &mut self.ports[link as usize]
    }

    /// Returns the routes.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Returns the routes, to allocate and release them.
    pub fn routes_mut(&mut self) -> &mut Routes {
        &mut self.routes
    }

    /// Returns the traffic classes.
    pub fn traffic(&self) -> &TrafficClasses {
        &self.traffic
    }

    /// Returns the records of packets, if they are kept.
    #[inline]
    pub fn records(&self) -> Option<&PacketRecords> {
        self.records.as_deref()
    }

    /// Returns the records of packets, if they are kept.
    #[inline]
    pub fn records_mut(&mut self) -> Option<&mut PacketRecords> {
        self.records.as_deref_mut()
    }

    /// Returns the slot of a live flow.
    #[inline]
    pub fn slot(&self, flow: FlowNumber) -> Option<Slot> {
        self.flow_table.slot(flow)
    }

    /// Returns the live flows and their slots, by number.
    pub fn flows(&self) -> impl Iterator<Item = (FlowNumber, Slot)> {
        self.flow_table.all()
    }

    /// Returns the slot of a flow of another partition, which gets one if it has none.
    pub fn slot_or_join(&mut self, flow: FlowNumber) -> Slot {
        self.flow_table.slot(flow).unwrap_or_else(|| self.flow_table.join(flow))
    }

    /// Returns the number of pause frames in the network; in a partition, frames sent less frames
    /// received, which wraps around zero.
    pub fn pause_frames(&self) -> u64 {
        self.pause_frames
    }

    /// Returns the arrival of the last pause frame, or the end of the last pause that could expire.
    pub fn last_frame(&self) -> Time {
        self.last_frame
    }

    /// Returns the number of headers that have turned back to their senders.
    pub fn returned(&self) -> u64 {
        self.returned
    }

    /// Takes the last report of a departure.
    #[inline]
    pub fn pop_departure(&mut self) -> Option<Departure> {
        self.outbox.departures.pop()
    }

    /// Takes the last report of a loss.
    pub fn pop_loss(&mut self) -> Option<PacketLoss> {
        self.outbox.losses.pop()
    }

    /// Returns the reports of losses.
    pub fn losses(&self) -> &[PacketLoss] {
        &self.outbox.losses
    }

    /// Adds reports of losses from another partition.
    pub fn add_losses(&mut self, losses: &[PacketLoss]) {
        self.outbox.losses.extend(losses);
    }

    /// Registers a flow that starts, whose packets take `route` and its reverse. Routers read
    /// `flow_info`. The class of the flow selects its traffic class, and `name` its weight in queues.
    pub fn register_flow(
        &mut self,
        flow: FlowNumber,
        flow_info: FlowInfo,
        class: u16,
        name: &str,
        route: Route,
    ) -> Slot {
        let slot = self.flow_table.join(flow);
        if self.routers != Routers::None {
            let index = slot as usize;
            if index >= self.flow_info.len() {
                self.flow_info.resize(index + 1, flow_info);
            }
            self.flow_info[index] = flow_info;
        }
        self.traffic.classify(flow, class);
        self.set_route(flow, name, route);
        slot
    }

    /// Registers a live flow with the queues on `route` and its reverse.
    pub fn set_route(&mut self, flow: FlowNumber, name: &str, route: Route) {
        if let Some(routes) = &mut self.return_routes
            && let Some(slot) = self.flow_table.slot(flow)
        {
            let index = slot as usize;
            routes.resize(routes.len().max(index + 1), route);
            routes[index] = route;
        }
        if self.weighs {
            for link in route.both().iter().flat_map(|way| self.routes.links(*way)).flatten() {
                self.ports[*link as usize].register_flow(flow, name);
            }
        }
    }

    /// True if a component of the network has state for each flow that passes.
    pub fn tracks_flows(&self) -> bool {
        let has_state = self.weighs || self.return_routes.is_some();
        self.routers != Routers::None || has_state || self.traffic.numbers.len() > 1
    }

    /// Removes a flow that has ended, whose packets took these routes and their reverse.
    pub fn unregister_flow(&mut self, flow: FlowNumber, routes: impl Iterator<Item = Route>) {
        if self.weighs {
            let routes = routes.flat_map(Route::both);
            for link in routes.flat_map(|route| self.routes.links(route)).flatten() {
                self.ports[*link as usize].unregister_flow(flow);
            }
        }
        self.flow_table.leave(flow);
    }

    /// Returns the information for routers about the flow of a packet.
    fn flow_info(&self, packet: &Packet) -> &FlowInfo {
        let slot = self.flow_table.slot(packet.flow);
        let slot = slot.unwrap_or_else(|| unreachable!("a flow outlives its packets"));
        &self.flow_info[slot as usize]
    }

    /// Takes the packet that has arrived at the end of a link. Returns the arrival of the next packet
    /// in flight, too, if there is one.
    #[inline]
    pub fn take_arrival(&mut self, link: LinkId) -> (Packet, Option<Time>) {
        let port = &mut self.ports[link as usize];
        (port.take(), port.next_arrival())
    }

    /// Takes the packet that has arrived at the end of a link, and schedules the next arrival.
    #[inline]
    pub fn arrive(&mut self, link: LinkId, scheduler: &mut Scheduler) -> Packet {
        self.ports[link as usize].advance_to(scheduler.now());
        let (packet, next) = self.take_arrival(link);
        if let Some(time) = next {
            scheduler.push_arrival(link, time);
        }
        packet
    }

    /// Forwards a packet that has arrived at the end of a link. Returns it if that is the end of its
    /// route.
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
        if self.routers == Routers::EnqueuedAndReturning && packet.kind.is_answer() {
            let flow_info = *self.flow_info(&packet);
            self.ports[link as usize ^ 1].on_ack_return(&mut packet, &flow_info, scheduler.now());
        }
        let mut onward = self.routes.link(packet.next_hop);
        if onward >= BRANCH {
            if onward == END {
                return Some(packet);
            }
            onward = self.choose_next_hop(&mut packet, link, onward, scheduler.now());
        }
        if self.buffers.is_none() || self.admit(&packet, link, onward, scheduler) {
            self.enqueue(&mut packet, onward, scheduler);
        }
        None
    }

    /// Sends a packet from its host, whose port is the first of its route. Returns the time until
    /// which the host's port delays the flow, if that is known; otherwise a [`Departure`] reports it.
    /// Without pacing, and where hosts are routers, the port does not delay flows.
    pub fn send(&mut self, mut packet: Packet, scheduler: &mut Scheduler) -> Option<Time> {
        let link = self.routes.link(packet.next_hop);
        let departs = self.enqueue(&mut packet, link, scheduler);
        if self.is_awaited && self.from_host[link as usize] {
            departs
        } else {
            Some(scheduler.now())
        }
    }

    /// Returns the switch that has dropped the most packets of paused traffic classes, and their number.
    pub fn most_overruns(&self) -> Option<(NodeId, u64)> {
        self.buffers.as_ref().and_then(Buffers::most_overruns)
    }

    /// Returns the duration of a pause after which the watchdog looks for deadlocks, if it is on.
    pub fn watchdog(&self) -> Option<Duration> {
        self.buffers.as_ref().and_then(Buffers::watchdog)
    }

    /// Returns the time of the first tick of a port's router; [`Time::NEVER`] without a router.
    pub fn first_tick(&self, link: LinkId) -> Time {
        self.ports[link as usize].next_tick()
    }

    /// Prepares a link for failures.
    pub fn may_fail(&mut self, link: LinkId) {
        self.ports[link as usize].may_fail();
    }

    /// Takes a link down, or up again. That ends its pauses, since resume frames are lost.
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
            if self.is_paused(lane) {
                self.resume(lane, scheduler);
            }
        }
    }

    /// Runs the tick of a port's router, and schedules the next.
    pub fn tick(&mut self, link: LinkId, scheduler: &mut Scheduler) {
        let port = &mut self.ports[link as usize];
        port.tick(scheduler.now());
        scheduler.push(port.next_tick(), Event::Tick(link));
    }

    /// Serves a port that has requested a call.
    pub fn ready(&mut self, link: LinkId, scheduler: &mut Scheduler) {
        self.ports[link as usize].on_call();
        self.serve(link, scheduler);
    }

    /// Serves a port whose queue no longer holds back its packets.
    pub fn end_hold(&mut self, link: LinkId, scheduler: &mut Scheduler) {
        self.ports[link as usize].on_release(scheduler.now());
        self.serve(link, scheduler);
    }

    /// Enqueues a packet at a port. Returns the end of its transmission, if that is known.
    fn enqueue(
        &mut self,
        packet: &mut Packet,
        link: LinkId,
        scheduler: &mut Scheduler,
    ) -> Option<Time> {
        let now = scheduler.now();
        if self.routers != Routers::None && !packet.kind.is_frame() {
            let flow_info = *self.flow_info(packet);
            self.ports[link as usize].on_enqueue(packet, &flow_info, now);
        }
        let class = self.traffic.of(packet.flow);
        let port = &mut self.ports[link as usize];
        let outcome = port.enqueue(packet, class, now, &mut self.outbox.rejects);
        match &outcome {
            PortOutcome::Started(transmission) => {
                let is_eager = port.is_eager();
                schedule_arrival(transmission, link, scheduler);
                if is_eager {
                    self.release(packet, link, scheduler);
                }
            }
            PortOutcome::Dropped => self.discard(packet, link, scheduler),
            PortOutcome::Waits | PortOutcome::WaitsUntil(_) => {
                if self.records.is_some() {
                    self.record_enqueue(packet, class, link, now);
                }
            }
            PortOutcome::Queued => {
                if self.records.is_some() {
                    self.record_enqueue(packet, class, link, now);
                }
                self.serve(link, scheduler);
            }
        }
        outcome.departs()
    }

    /// Starts a port's next transmission, if one may start, and schedules its next call.
    fn serve(&mut self, link: LinkId, scheduler: &mut Scheduler) {
        let now = scheduler.now();
        let port = &mut self.ports[link as usize];
        let started = port.serve(now, &mut self.outbox.rejects);
        if !self.outbox.rejects.is_empty() {
            self.dispose_of_rejects(link, scheduler);
        }
        if let Some((packet, transmission)) = started {
            self.release(&packet, link, scheduler);
            if transmission.is_reported {
                let (flow, ends) = (packet.flow, transmission.ends);
                self.outbox.departures.push(Departure { flow, ends });
            }
            schedule_arrival(&transmission, link, scheduler);
        }
        let port = &mut self.ports[link as usize];
        if let Some(time) = port.next_call(now) {
            scheduler.push(time, Event::Ready(link));
        } else if let Some(time) = port.next_release(now) {
            scheduler.push(time, Event::HoldEnd(link));
        }
    }

    /// Reports the loss of a packet, at a port or at the end of its link.
    fn lose(&mut self, packet: &Packet, link: LinkId, cause: LossCause, now: Time) {
        self.outbox.losses.push(PacketLoss { flow: packet.flow, time: now });
        if let Some(records) = &mut self.records {
            if matches!(cause, LossCause::Queue | LossCause::Buffer) && records.follows(link) {
                let queue = self.ports[link as usize].backlog(now).bytes;
                records.log_pass(packet, link, HopBegin { came: now, queue }, None);
            }
            records.lose(packet, Fate::Lost(now, link, cause));
        }
        self.ack_options.take(packet);
        self.take_telemetry(packet);
        if let Some(overlays) = self.overlays() {
            overlays.take(packet, link);
        }
    }

    /// Decides if a packet that has arrived at the end of a link is lost, and records its passage. Not
    /// inlined, because most links are lossless.
    #[inline(never)]
    fn is_lost(&mut self, packet: &mut Packet, link: LinkId, now: Time) -> bool {
        let port = &mut self.ports[link as usize];
        if let Some(records) = &mut self.records
            && let Some(hop) = &port.hop(packet, now)
            && !packet.kind.is_frame()
        {
            records.hop(packet, hop);
            if records.follows(link) {
                let begin = HopBegin { came: hop.starts, queue: 0 };
                records.log_pass(packet, link, begin, Some(hop.starts));
            }
        }
        Self::record_telemetry(port.telemetry(), &mut self.telemetry, packet, link);
        let cut_off = port.counters.cut_off;
        let is_lost = port.loses(packet, self.pause_timers.is_some());
        if is_lost && packet.kind.is_frame() {
            self.end_frame(now);
        } else if is_lost {
            let is_cut_off = port.counters.cut_off > cut_off;
            let cause = if is_cut_off { LossCause::Failure } else { LossCause::Link };
            self.lose(packet, link, cause, now);
        }
        is_lost
    }

    /// Counts a pause frame that has arrived at the end of its link.
    fn end_frame(&mut self, now: Time) {
        self.pause_frames = self.pause_frames.wrapping_sub(1);
        self.last_frame = self.last_frame.max(now);
    }

    /// Closes all ports and asserts that they and the buffers add up. Returns the number of packets that
    /// wait or are in flight.
    pub fn close(&mut self, now: Time) -> u64 {
        let in_ports = self.ports.iter_mut().map(|port| port.close(now)).sum();
        self.assert_buffers();
        in_ports
    }
}

/// Schedules the arrival of a packet, if it is the first in flight.
fn schedule_arrival(transmission: &Transmission, link: LinkId, scheduler: &mut Scheduler) {
    if transmission.is_first {
        scheduler.push_arrival(link, transmission.arrives);
    }
}

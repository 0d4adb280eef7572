//! Ports: a queue, a transmitter and the link behind it, with counters that must add up.

mod arrival;
mod calls;
pub mod counters;
mod observer;
pub mod pause_state;
pub mod queue_slot;
pub mod service;
#[cfg(test)]
mod tests;

use self::counters::Counters;
pub use self::observer::Hop;
use self::observer::Observer;
use self::pause_state::PauseState;
use self::queue_slot::DataQueue;
use self::service::{Service, ServiceMode};
use super::breakdown::port_activity::PortActivity;
use super::link::loss::{Losses, Outage};
use super::link::transmitter::{Transmission, Transmitter};
use super::outbox::Rejects;
use super::switch::traffic_classes::{Class, LaneId};
use super::telemetry::PortTelemetry;
use crate::base::random::Random;
use crate::base::units::{Duration, Time};
use crate::model::graph::Link;
use crate::model::packet::{FlowNumber, Kind, Packet};
use crate::queueing::{Backlog, PacketFifo, PortQueue, PriorityCounts};
use crate::router::Router;

/// Properties of a port that do not depend on its queue.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub struct PortConfig {
    /// Packets that pass data, in an unlimited queue of their own.
    pub passing: Passing,
    /// If true, flows wait for the departure of their packets.
    pub is_awaited: bool,
    /// If true, packets on the forward path get their timestamp when their transmission starts.
    pub stamps: bool,
    /// If true, the waits of packets are recorded for the FCT breakdown.
    pub keeps_account: bool,
    /// If true, packets collect telemetry when their transmission starts.
    pub has_telemetry: bool,
    /// Unit to which transmission times are rounded down.
    pub time_unit: Duration,
}

/// Packets that pass data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// No packets: all wait with data.
    None,
    /// Pause frames only.
    Frames,
    /// All control packets.
    Control,
}

impl Passing {
    /// Returns true if packets of this kind pass data.
    pub fn includes(self, kind: Kind) -> bool {
        match self {
            Self::None => false,
            Self::Frames => kind.is_frame(),
            Self::Control => kind.is_control(),
        }
    }
}

/// Queue of the packets that pass data. One byte with [`Passing`], for the room in [`Port`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ControlQueue {
    Absent,
    NoFrames,
    Frames,
    Empty,
    Waiting,
}

impl ControlQueue {
    /// Returns the empty queue of the packets that pass data.
    fn new(passing: Passing) -> Self {
        match passing {
            Passing::None => Self::Absent,
            Passing::Frames => Self::NoFrames,
            Passing::Control => Self::Empty,
        }
    }

    /// Returns true if packets of this kind wait in this queue.
    fn includes(self, kind: Kind) -> bool {
        match self {
            Self::Absent => Passing::None,
            Self::NoFrames | Self::Frames => Passing::Frames,
            Self::Empty | Self::Waiting => Passing::Control,
        }
        .includes(kind)
    }

    /// Returns true if a packet waits.
    fn is_waiting(self) -> bool {
        matches!(self, Self::Frames | Self::Waiting)
    }

    /// Returns the queue in which packets wait, or do not.
    fn with(self, is_waiting: bool) -> Self {
        match (self, is_waiting) {
            (Self::Absent, _) => Self::Absent,
            (Self::NoFrames | Self::Frames, false) => Self::NoFrames,
            (Self::NoFrames | Self::Frames, true) => Self::Frames,
            (Self::Empty | Self::Waiting, false) => Self::Empty,
            (Self::Empty | Self::Waiting, true) => Self::Waiting,
        }
    }
}

/// Fate of a packet at a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PortOutcome {
    /// Its transmission has started.
    Started(Transmission),
    /// It waits, and its transmission will end at this time.
    WaitsUntil(Time),
    /// It waits, and the end of its transmission is not known.
    Waits,
    /// It was put into a queue that must be [served](Port::serve) now. The queue may have dropped or
    /// trimmed it or another packet.
    Queued,
    /// It was dropped.
    Dropped,
}

impl PortOutcome {
    /// Returns the end of the packet's transmission, if that is known.
    pub fn departs(&self) -> Option<Time> {
        match self {
            Self::Started(transmission) => Some(transmission.ends),
            Self::WaitsUntil(ends) => Some(*ends),
            Self::Waits | Self::Queued | Self::Dropped => None,
        }
    }
}

/// One direction of a cable, with the queue in front of it.
///
/// A hop costs one event, the arrival at the end of the link: a waiting packet is not served when
/// the transmitter becomes free, but at the next access to the port, and then from the time when the
/// transmitter became free. No component can depend on the transmission before that access, since
/// the packet in transmission arrives later than its transmission ends (docs/performance.md). Where a
/// component needs departures at once, the port is eager: it requests a call when the transmitter is
/// free ([`Service`]).
///
/// Every hop touches two ports, and a large network has more ports than the cache holds. So the fields
/// that a hop needs stand first, and `is_paused`, `is_fifo` and `control` duplicate state of `pauses`,
/// `data` and `control_packets` in the same line of memory.
#[repr(C, align(64))]
pub struct Port {
    transmitter: Transmitter,
    service: Service,
    /// Below this backlog the queue accepts every packet unmarked, and is not consulted.
    quiet_below: u32,
    /// If true, a pause frame stops data. With several classes, their queues have this state.
    is_paused: bool,
    /// If true, data waits in a FIFO queue.
    is_fifo: bool,
    control: ControlQueue,
    observer: Observer,
    /// Packets and bytes that have passed.
    pub counters: Counters,
    /// State for the FCT breakdown.
    activity: Option<Box<PortActivity>>,
    telemetry: Option<Box<PortTelemetry>>,
    data: DataQueue,
    /// Control packets that pass data.
    control_packets: PacketFifo,
    /// By class.
    pauses: Box<[PauseState]>,
    router: Option<Box<dyn Router>>,
    /// Boxed, since most links are lossless.
    losses: Box<Losses>,
    outage: Outage,
    random: Random,
    /// Time of the pending event at the end of a hold ([`next_release`](Self::next_release)).
    released_at: Time,
}

const _: () =
    assert!(size_of::<Port>() == 448, "first lines of ports compete (docs/performance.md)");
const _: () = assert!(
    std::mem::offset_of!(Port, counters) == 128,
    "a hop touches three lines of a port (docs/performance.md)"
);

impl Port {
    /// Returns the port of `link`. Each traffic class has the queue and the weight with its number.
    /// Queues draw from `random`.
    pub fn new(
        link: &Link,
        queues: Vec<PortQueue>,
        weights: &[u32],
        router: Option<Box<dyn Router>>,
        config: PortConfig,
        random: Random,
        losses: Losses,
    ) -> Self {
        let PortConfig { passing, is_awaited, stamps, keeps_account, has_telemetry, time_unit } =
            config;
        let pauses = vec![PauseState::default(); queues.len()].into();
        let data = DataQueue::new(queues, weights);
        let (is_fifo, quiet_below) = match &data {
            DataQueue::Fifo(gate) => (true, gate.accepts_all_below()),
            _ => (false, 0),
        };
        let mut transmitter =
            Transmitter::new(link, stamps, keeps_account, losses.are_possible(), time_unit);
        transmitter.is_watched |= has_telemetry;
        Self {
            transmitter,
            service: Service::new(is_awaited, is_fifo, data.allows_lazy_service()),
            // The queue may be consulted above 4 GB, too.
            quiet_below: u32::try_from(quiet_below).unwrap_or(u32::MAX),
            is_paused: false,
            is_fifo,
            control: ControlQueue::new(passing),
            observer: match &router {
                Some(_) => Observer::Router,
                None if keeps_account || has_telemetry => Observer::Records,
                None => Observer::None,
            },
            counters: Counters::default(),
            activity: keeps_account.then(Box::default),
            telemetry: has_telemetry.then(|| Box::new(PortTelemetry::new(link.rate))),
            data,
            control_packets: PacketFifo::default(),
            pauses,
            router,
            losses: Box::new(losses),
            outage: Outage::default(),
            random,
            released_at: Time::NEVER,
        }
    }

    /// Delays each packet on the link by a random time of up to `most`, in order.
    pub fn set_jitter(&mut self, most: Duration, random: Random) {
        self.transmitter.set_jitter(most, random);
    }

    /// Makes the port eager while the buffer of its switch is watched.
    pub fn set_watched(&mut self, is_watched: bool, now: Time) {
        self.advance_to(now);
        if is_watched {
            self.service.on_watch();
        } else {
            self.service.on_unwatch();
        }
    }

    /// True if the port is served by events.
    pub fn is_eager(&self) -> bool {
        self.service.is_eager()
    }

    /// Takes a packet of a class: transmits it, lets it wait or drops it. The queue puts packets
    /// that it drops or trims into `rejects`.
    #[inline]
    pub fn enqueue(
        &mut self,
        packet: &mut Packet,
        class: Class,
        now: Time,
        rejects: &mut Rejects,
    ) -> PortOutcome {
        self.counters.arrived += 1;
        self.advance_to(now);
        let is_control = self.control.includes(packet.kind);
        let data = self.data_backlog();
        if self.is_fifo
            && !is_control
            && data.bytes + u64::from(packet.bytes) >= u64::from(self.quiet_below)
            && let DataQueue::Fifo(gate) = &mut self.data
        {
            let (random, marks) = (&mut self.random, &mut self.counters.marked);
            if !gate.admit(packet, data, &mut rejects.context(now, random, marks)) {
                self.counters.drop(packet.kind);
                return PortOutcome::Dropped;
            }
        }
        let may_go = self.transmitter.waiting.packets == 0 && (is_control || !self.is_paused);
        let is_free = self.transmitter.busy_until <= now;
        if is_free && may_go && self.service.mode() != ServiceMode::EagerQueue {
            if !self.is_fifo
                && !is_control
                && let DataQueue::Queue(queue) = &mut self.data
            {
                queue.on_bypass(packet);
            }
            let transmission = self.transmitter.send(packet, now);
            self.depart(packet.kind, packet.bytes, now, false);
            return PortOutcome::Started(transmission);
        }
        self.queue(packet, class, is_control, now, rejects);
        if self.is_eager() || is_free || !rejects.is_empty() {
            return PortOutcome::Queued;
        }
        let Self { service, transmitter, .. } = self;
        let busy_until = transmitter.busy_until;
        let end = |starts| transmitter.end(packet.bytes, starts);
        service.on_wait(busy_until, end).map_or(PortOutcome::Waits, PortOutcome::WaitsUntil)
    }

    /// True if a frame for a lane waits.
    pub fn has_frame(&mut self, lane: LaneId, now: Time) -> bool {
        self.advance_to(now);
        self.control_packets.has_frame(lane)
    }

    /// Takes back the frame for a lane, if it still waits, as if it had never been enqueued.
    pub fn take_frame(&mut self, lane: LaneId, now: Time) -> bool {
        self.advance_to(now);
        let Some(frame) = self.control_packets.remove_frame(lane) else { return false };
        self.update_queue_area(now);
        self.counters.arrived -= 1;
        self.transmitter.waiting.remove(frame.bytes);
        self.update_control();
        true
    }

    /// Puts a packet into its queue.
    #[inline]
    fn queue(
        &mut self,
        packet: &Packet,
        class: Class,
        is_control: bool,
        now: Time,
        rejects: &mut Rejects,
    ) {
        self.update_queue_area(now);
        // Transmissions that could start before have started.
        self.transmitter.busy_until = self.transmitter.busy_until.max(now);
        self.transmitter.waiting.add(packet.bytes);
        if is_control {
            self.control = self.control.with(true);
            if packet.kind.is_frame() {
                self.control_packets.push_frame(*packet);
            } else {
                self.control_packets.push(*packet);
            }
        } else if self.is_fifo {
            self.transmitter.append(packet);
        } else {
            let already = rejects.dropped.len();
            let (random, marks) = (&mut self.random, &mut self.counters.marked);
            self.data.push(*packet, class, &mut rejects.context(now, random, marks));
            self.count_drops(&rejects.dropped[already..]);
            self.count_trims(&rejects.trimmed);
        }
        self.counters.queue_max = self.counters.queue_max.max(self.transmitter.waiting.bytes);
    }

    /// Starts the next transmission, if the transmitter is free and a packet may go. Returns the packet
    /// as it waited.
    pub fn serve(&mut self, now: Time, rejects: &mut Rejects) -> Option<(Packet, Transmission)> {
        self.advance_to(now);
        if self.transmitter.busy_until > now || self.transmitter.waiting.packets == 0 {
            return None;
        }
        let transmission = self.start_next(now, rejects)?;
        let &mut packet = self.transmitter.last()?;
        let (is_awaited, is_in_line) =
            (packet.kind.is_awaited(), !self.control.includes(packet.kind));
        let is_reported = self.service.on_start(is_awaited, is_in_line);
        let packet = Packet { next_hop: packet.next_hop - 1, ..packet };
        Some((packet, Transmission { is_reported, ..transmission }))
    }

    /// Starts the next transmission at `starts`, if a packet may go.
    fn start_next(&mut self, starts: Time, rejects: &mut Rejects) -> Option<Transmission> {
        self.update_queue_area(starts);
        if self.control.is_waiting() {
            let packet = self.control_packets.pop()?;
            self.update_control();
            return Some(self.send(&packet, starts));
        }
        if self.is_paused {
            return None;
        }
        if self.is_fifo {
            let Packet { kind, bytes, .. } = *self.transmitter.first()?;
            let transmission = self.transmitter.start(starts)?;
            self.transmitter.waiting.remove(bytes);
            self.depart(kind, bytes, starts, true);
            return Some(transmission);
        }
        let already = rejects.dropped.len();
        let (random, marks) = (&mut self.random, &mut self.counters.marked);
        let packet = self.data.pop(&mut rejects.context(starts, random, marks));
        self.count_drops(&rejects.dropped[already..]);
        Some(self.send(&packet?, starts))
    }

    /// Starts the transmission of a packet that did not wait in the transmitter.
    fn send(&mut self, packet: &Packet, starts: Time) -> Transmission {
        let transmission = self.transmitter.send(packet, starts);
        self.transmitter.waiting.remove(packet.bytes);
        self.depart(packet.kind, packet.bytes, starts, true);
        transmission
    }

    /// PFC: stops data of a class.
    pub fn pause(&mut self, class: Class, now: Time) {
        self.advance_to(now);
        let backlog = self.data_backlog();
        self.service.on_pause(|| backlog.packets);
        match &mut self.data {
            DataQueue::ClassScheduler(classes) => classes.pause(class, true),
            _ => self.is_paused = true,
        }
        if let Some(activity) = &mut self.activity {
            activity.pause(class, now);
        }
        self.pauses[usize::from(class)].begin(now);
    }

    /// PFC: lets data of a class go on.
    pub fn resume(&mut self, class: Class, now: Time) {
        self.advance_to(now);
        self.transmitter.busy_until = self.transmitter.busy_until.max(now);
        match &mut self.data {
            DataQueue::ClassScheduler(classes) => classes.pause(class, false),
            _ => self.is_paused = false,
        }
        if let Some(activity) = &mut self.activity {
            activity.resume(class, now);
        }
        self.pauses[usize::from(class)].end(now);
    }

    /// True if the queue weighs flows.
    pub fn weighs(&self) -> bool {
        self.data.weighs()
    }

    /// True if the queue returns headers to their senders.
    pub fn returns_headers(&self) -> bool {
        self.data.returns_headers()
    }

    /// Registers a flow of this class with the queue.
    pub fn register_flow(&mut self, flow: FlowNumber, class: &str) {
        self.data.register_flow(flow, class);
    }

    /// Removes a flow that has ended from the queue.
    pub fn unregister_flow(&mut self, flow: FlowNumber) {
        self.data.unregister_flow(flow);
    }

    /// Returns the counters of the queue by priority, if it has any.
    pub fn priority_counts(&self) -> Option<&PriorityCounts> {
        self.data.priority_counts()
    }

    /// Returns the pauses of the port's data, by class.
    pub fn pauses(&self) -> &[PauseState] {
        &self.pauses
    }

    /// Visits the waiting data packets, in any order. Without a control queue, that includes control
    /// packets.
    pub fn visit_data(&self, visit: &mut dyn FnMut(&Packet)) {
        match &self.data {
            DataQueue::Fifo(_) => self.transmitter.waiting().for_each(visit),
            DataQueue::Queue(queue) => queue.for_each_packet(visit),
            DataQueue::ClassScheduler(classes) => classes.for_each_packet(visit),
        }
    }

    /// Returns the backlog of all packets.
    pub fn backlog(&mut self, now: Time) -> Backlog {
        self.advance_to(now);
        self.transmitter.waiting
    }

    /// Returns the backlog of a class; with one class, that of all packets.
    pub fn backlog_of(&mut self, class: Class, now: Time) -> Backlog {
        match &self.data {
            DataQueue::ClassScheduler(classes) => classes.backlog(class),
            _ => self.backlog(now),
        }
    }

    /// Brings the counters up to the end of the run and asserts that they add up. Returns the number
    /// of packets that wait or are in flight.
    pub fn close(&mut self, now: Time) -> u64 {
        let waiting = self.backlog(now);
        let mut data = Backlog::default();
        self.visit_data(&mut |packet| data.add(packet.bytes));
        assert_eq!(data, self.data_backlog(), "a port's backlog differs from its queue");
        self.update_queue_area(now);
        self.pauses.iter_mut().for_each(|pauses| pauses.end(now));
        let Counters { arrived, departed, dropped, .. } = self.counters;
        assert_eq!(
            arrived,
            departed + dropped + u64::from(waiting.packets),
            "a port's packets do not add up: arrived, departed + dropped + queued"
        );
        self.transmitter.in_flight() + u64::from(waiting.packets)
    }

    /// Returns the backlog without control packets that pass data.
    fn data_backlog(&self) -> Backlog {
        if !self.control.is_waiting() {
            return self.transmitter.waiting;
        }
        let control = self.control_packets.backlog();
        Backlog {
            bytes: self.transmitter.waiting.bytes - control.bytes,
            packets: self.transmitter.waiting.packets - control.packets,
        }
    }

    /// Updates `control` after a control packet has left its queue.
    fn update_control(&mut self) {
        self.control = self.control.with(self.control_packets.first().is_some());
    }

    /// Adds the backlog since the last change to the queue's integral over time.
    fn update_queue_area(&mut self, now: Time) {
        self.counters.wait(self.transmitter.waiting.bytes, now);
    }

    /// Starts the transmissions that are due by `now`, if the port is lazy. Every access to the port
    /// that depends on its queue or transmitter does so first.
    #[inline]
    pub fn advance_to(&mut self, now: Time) {
        if self.transmitter.waiting.packets > 0
            && self.transmitter.busy_until <= now
            && !self.is_eager()
        {
            self.start_overdue(now);
        }
    }

    /// Starts overdue transmissions. Not inlined, so that the check in
    /// [`advance_to`](Self::advance_to) costs no call.
    #[inline(never)]
    fn start_overdue(&mut self, now: Time) {
        let mut rejects = Rejects::default();
        while self.transmitter.waiting.packets > 0
            && self.transmitter.busy_until <= now
            && self.service.may_start_overdue(self.transmitter.in_flight())
        {
            if self.start_next(self.transmitter.busy_until, &mut rejects).is_none() {
                break;
            }
        }
        debug_assert!(rejects.is_empty(), "a queue with lazy service drops nothing on departure");
    }

    /// Counts the departure of a packet and notifies the gate and the observer.
    fn depart(&mut self, kind: Kind, bytes: u16, starts: Time, has_waited: bool) {
        self.counters.depart(kind, bytes);
        if self.quiet_below == 0
            && let DataQueue::Fifo(gate) = &mut self.data
            && !self.control.includes(kind)
        {
            gate.on_departure(starts);
        }
        if self.observer != Observer::None {
            self.notify(starts, has_waited);
        }
    }
}

/// True if not all waiting packets are paused.
fn may_go(control: ControlQueue, data: &DataQueue, is_paused: bool) -> bool {
    control.is_waiting()
        || match data {
            DataQueue::ClassScheduler(classes) => classes.may_go(),
            _ => !is_paused,
        }
}

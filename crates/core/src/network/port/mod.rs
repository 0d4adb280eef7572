//! A port: a queue, a transmitter and the link behind it, with counters that must add up.

mod arrival;
pub mod counters;
mod observer;
pub mod pause_state;
pub mod queue_slot;

use self::counters::Counters;
pub use self::observer::Hop;
use self::pause_state::PauseState;
use self::queue_slot::DataQueue;
use super::breakdown::port_activity::PortActivity;
use super::link::loss::{Losses, Outage};
use super::link::transmitter::{Sent, Transmitter};
use super::switch::traffic_classes::{Class, LaneId};
use crate::base::random::Random;
use crate::base::units::Time;
use crate::model::graph::Link;
use crate::model::packet::{FlowNumber, Kind, Packet};
use crate::queueing::{Backlog, Context, PacketFifo, PortQueue, PriorityCounts};
use crate::router::{FlowInfo, PortView, Router};

/// How a port is to be served.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct PortConfig {
    /// Whether control packets pass data, in a line of their own without limit.
    pub control_first: bool,
    /// Whether flows wait for their packets to leave.
    pub is_awaited: bool,
    /// Whether packets that are no answers get their time stamp here, when their transmission starts.
    pub stamps: bool,
    /// Whether accounts are kept of how long packets wait, and why.
    pub keeps_account: bool,
}

/// When a port is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServiceMode {
    /// When somebody looks.
    Lazy,
    /// When the transmitter is free.
    Eager,
    /// When the transmitter is free, and every packet goes through the store, which is not patient
    /// ([`DataQueue::allows_lazy_service`]).
    EagerQueue,
}

/// Who is told what leaves a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Observer {
    Nobody,
    /// Who keeps account.
    Account,
    /// A router, and who keeps account, if somebody does.
    Router,
}

/// What becomes of a packet handed to a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EnqueueOutcome {
    /// Its transmission has started.
    Sent(Sent),
    /// It waits, and will be sent when somebody looks; and when its transmission will end, if that is known.
    Waits(Option<Time>),
    /// It was put in a queue that has yet to be served; the queue may have dropped it or others.
    Queued,
    /// It was dropped.
    Dropped,
}

/// A transmission that a port has started when it was called.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartedTransmission {
    /// The packet, as it waited.
    pub packet: Packet,
    /// Its transmission.
    pub sent: Sent,
    /// Whether its flow waits to hear of it.
    pub is_awaited: bool,
}

/// One direction of a cable, with the queue before it.
///
/// A hop is one event, the arrival at the end of the link: what waits is not served when the transmitter
/// becomes free, but when somebody next looks at the port, and then from the time when it became free. That
/// is before anything can depend on it, since the packet being sent arrives later than its transmission ends
/// (docs/performance.md). Where departures matter to somebody at once, the port is *prompt*, and asks to be
/// called when the transmitter is free.
///
/// Every hop touches two ports, and a large network has more than a near cache holds: what a hop needs
/// stands first, and `is_paused`, `is_fifo` and `control_waits` say there what `pauses`, `data` and `control`
/// would tell from further off.
#[repr(C, align(64))]
pub struct Port {
    transmitter: Transmitter,
    mode: ServiceMode,
    /// Whether data must wait, by a pause frame; with several classes they know.
    is_paused: bool,
    /// Whether all data waits first in, first out, and not in a queue.
    is_fifo: bool,
    /// Whether control packets pass data, and whether any wait.
    control_first: bool,
    control_waits: bool,
    told: Observer,
    /// Whether what is on the wire goes on elsewhere ([`unload`](Self::unload)).
    is_cut: bool,
    /// Whether it matters when packets leave, and is foretold when they come.
    predicts_departures: bool,
    /// Below this backlog the discipline accepts everything unmarked and need not be asked.
    quiet_below: u64,
    /// What accounts need to know.
    activity: Option<Box<PortActivity>>,
    /// What has passed.
    pub counters: Counters,
    data: DataQueue,
    /// Control packets that pass data.
    control: PacketFifo,
    /// When all that waits will have been sent, if that is foretold: control packets that come later and
    /// pass, and pauses that begin later, are not in it.
    drains_at: Time,
    /// Whether flows wait for their packets to leave.
    is_awaited: bool,
    /// Of so many packets that wait first it has been foretold when they leave.
    predicted: u32,
    /// Whether the port has asked to be called when the transmitter is free.
    is_called: bool,
    /// By class.
    pauses: Box<[PauseState]>,
    router: Option<Box<dyn Router>>,
    /// Apart, since most links lose nothing.
    losses: Box<Losses>,
    outage: Outage,
    random: Random,
}

const _: () =
    assert!(size_of::<Port>() == 448, "first lines of ports compete (docs/performance.md)");

impl Port {
    /// A port on `link`, where each traffic class waits in a queue that behaves as given, drawing from
    /// `random`, and where packets are lost as `losses` has it.
    pub fn new(
        link: &Link,
        behaviours: Vec<PortQueue>,
        router: Option<Box<dyn Router>>,
        service: PortConfig,
        random: Random,
        losses: Losses,
    ) -> Self {
        let PortConfig { control_first, is_awaited, stamps, keeps_account } = service;
        let pauses = vec![PauseState::default(); behaviours.len()].into();
        let activity = keeps_account.then(Box::default);
        let data = DataQueue::new(behaviours);
        let (is_fifo, quiet_below) = match &data {
            DataQueue::Fifo(gate) => (true, gate.accepts_all_below()),
            _ => (false, 0),
        };
        let mut port = Self {
            transmitter: Transmitter::new(link, stamps, keeps_account, losses.are_possible()),
            mode: if data.allows_lazy_service() {
                ServiceMode::Lazy
            } else {
                ServiceMode::EagerQueue
            },
            is_paused: false,
            is_fifo,
            control_first,
            control_waits: false,
            told: match &router {
                Some(_) => Observer::Router,
                None if keeps_account => Observer::Account,
                None => Observer::Nobody,
            },
            is_cut: false,
            predicts_departures: is_awaited && is_fifo,
            quiet_below,
            activity,
            counters: Counters::default(),
            data,
            control: PacketFifo::default(),
            drains_at: Time::ZERO,
            is_awaited,
            predicted: 0,
            is_called: false,
            router,
            losses: Box::new(losses),
            outage: Outage::default(),
            random,
            pauses,
        };
        port.set_eager(false, Time::ZERO);
        port
    }

    /// Makes the port prompt or not, unless it has reasons of its own.
    pub fn set_eager(&mut self, is_prompt: bool, now: Time) {
        self.advance_to(now);
        self.mode = match self.mode {
            ServiceMode::EagerQueue => ServiceMode::EagerQueue,
            _ if is_prompt || (self.is_awaited && !self.predicts_departures) => ServiceMode::Eager,
            _ => ServiceMode::Lazy,
        };
    }

    /// Whether departures matter at once.
    pub fn is_eager(&self) -> bool {
        self.mode != ServiceMode::Lazy
    }

    /// Takes a packet of a class in.
    #[inline]
    pub fn enqueue(
        &mut self,
        packet: &mut Packet,
        class: Class,
        now: Time,
        dropped: &mut Vec<Packet>,
    ) -> EnqueueOutcome {
        self.counters.arrived += 1;
        self.advance_to(now);
        let is_control = self.control_first && packet.kind.is_control();
        let data = self.data_backlog();
        if self.is_fifo
            && !is_control
            && data.bytes + u64::from(packet.bytes) >= self.quiet_below
            && let DataQueue::Fifo(gate) = &mut self.data
        {
            let (random, marks) = (&mut self.random, &mut self.counters.marked);
            if !gate.admit(packet, data, &mut Context { now, random, dropped, marks }) {
                self.counters.dropped += 1;
                return EnqueueOutcome::Dropped;
            }
        }
        let may_go = self.transmitter.waiting.packets == 0 && (is_control || !self.is_paused);
        let is_free = self.transmitter.busy_until <= now;
        if is_free && may_go && self.mode != ServiceMode::EagerQueue {
            if !self.is_fifo
                && !is_control
                && let DataQueue::Queue(queue) = &mut self.data
            {
                queue.on_bypass(packet);
            }
            let sent = self.transmitter.send(packet, now);
            self.depart(packet.kind, packet.bytes, now, false);
            return EnqueueOutcome::Sent(sent);
        }
        self.queue(packet, class, is_control, now, dropped);
        if self.is_eager() || is_free || !dropped.is_empty() {
            return EnqueueOutcome::Queued;
        }
        if self.predicts_departures {
            let begins = self.drains_at.max(self.transmitter.busy_until);
            self.drains_at = self.transmitter.end(packet.bytes, begins);
            return EnqueueOutcome::Waits(Some(self.drains_at));
        }
        EnqueueOutcome::Waits(None)
    }

    /// Takes back the frame for a lane, if it still waits: as if it had never come.
    pub fn take_frame(&mut self, lane: LaneId, now: Time) -> bool {
        self.advance_to(now);
        let Some(frame) = self.control.remove_frame(lane) else { return false };
        self.account(now);
        self.counters.arrived -= 1;
        self.transmitter.waiting.remove(frame.bytes);
        self.control_waits = self.control.first().is_some();
        true
    }

    /// Puts a packet in its line.
    #[inline]
    fn queue(
        &mut self,
        packet: &Packet,
        class: Class,
        is_control: bool,
        now: Time,
        dropped: &mut Vec<Packet>,
    ) {
        self.account(now);
        // What could go before has gone.
        self.transmitter.busy_until = self.transmitter.busy_until.max(now);
        self.transmitter.waiting.add(packet.bytes);
        if is_control {
            self.control_waits = true;
            if packet.kind.is_frame() {
                self.control.push_frame(*packet);
            } else {
                self.control.push(*packet);
            }
        } else if self.is_fifo {
            self.transmitter.append(packet);
        } else {
            let already = dropped.len();
            let (random, marks) = (&mut self.random, &mut self.counters.marked);
            self.data.push(*packet, class, &mut Context { now, random, dropped, marks });
            self.note_drops(&dropped[already..]);
        }
        self.counters.queue_max = self.counters.queue_max.max(self.transmitter.waiting.bytes);
    }

    /// The queue has dropped packets that waited.
    fn note_drops(&mut self, dropped: &[Packet]) {
        self.counters.dropped += dropped.len() as u64;
        for packet in dropped {
            self.transmitter.waiting.remove(packet.bytes);
        }
    }

    /// Starts the next transmission, if the transmitter is free and something may go.
    pub fn serve(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<StartedTransmission> {
        self.advance_to(now);
        if self.transmitter.busy_until > now || self.transmitter.waiting.packets == 0 {
            return None;
        }
        let sent = self.start_next(now, dropped)?;
        let &mut packet = self.transmitter.last()?;
        let is_data = !packet.kind.is_control();
        let was_foretold = self.predicted > 0;
        self.predicted -= u32::from(is_data && was_foretold);
        Some(StartedTransmission {
            packet: Packet { next_hop: packet.next_hop - 1, ..packet },
            sent,
            is_awaited: self.is_awaited && is_data && !was_foretold,
        })
    }

    /// Starts the next transmission at `starts`, if something may go.
    fn start_next(&mut self, starts: Time, dropped: &mut Vec<Packet>) -> Option<Sent> {
        self.account(starts);
        if self.control_waits {
            let packet = self.control.pop()?;
            self.control_waits = self.control.first().is_some();
            return Some(self.send(&packet, starts));
        }
        if self.is_paused {
            return None;
        }
        if self.is_fifo {
            let Packet { kind, bytes, .. } = *self.transmitter.first()?;
            let sent = self.transmitter.start(starts)?;
            self.transmitter.waiting.remove(bytes);
            self.depart(kind, bytes, starts, true);
            return Some(sent);
        }
        let already = dropped.len();
        let (random, marks) = (&mut self.random, &mut self.counters.marked);
        let packet = self.data.pop(&mut Context { now: starts, random, dropped, marks });
        self.note_drops(&dropped[already..]);
        Some(self.send(&packet?, starts))
    }

    /// Sends a packet that waited in a queue of its own.
    fn send(&mut self, packet: &Packet, starts: Time) -> Sent {
        let sent = self.transmitter.send(packet, starts);
        self.transmitter.waiting.remove(packet.bytes);
        self.depart(packet.kind, packet.bytes, starts, true);
        sent
    }

    /// When to call [`serve`](Self::serve) next: `None` if nothing may go, if somebody will look in time
    /// anyway, or if the port has asked already.
    pub fn call(&mut self, now: Time) -> Option<Time> {
        if self.predicts_departures && !self.is_paused && self.transmitter.waiting.packets == 0 {
            self.set_eager(false, now);
        }
        let waits = self.transmitter.waiting.packets > 0;
        if !self.is_eager() || self.is_called || !waits || !self.may_go() {
            return None;
        }
        self.is_called = true;
        Some(self.transmitter.busy_until.max(now))
    }

    /// Whether no pause holds back all that waits.
    fn may_go(&self) -> bool {
        self.control_waits
            || match &self.data {
                DataQueue::ClassScheduler(classes) => classes.may_go(),
                _ => !self.is_paused,
            }
    }

    /// The call that [`call`](Self::call) asked for has come.
    pub fn called(&mut self) {
        self.is_called = false;
    }

    /// PFC: data of a class must wait from now on.
    pub fn pause(&mut self, class: Class, now: Time) {
        self.advance_to(now);
        if self.predicts_departures && !self.is_eager() {
            // Nobody can tell any more when what comes from now on will leave.
            self.predicted = self.data_backlog().packets;
            self.mode = ServiceMode::Eager;
        }
        match &mut self.data {
            DataQueue::ClassScheduler(classes) => classes.pause(class, true),
            _ => self.is_paused = true,
        }
        if let Some(activity) = &mut self.activity {
            activity.pause(class, now);
        }
        self.pauses[usize::from(class)].begin(now);
    }

    /// PFC: data of a class may go again.
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

    /// Shows a packet that is about to be handed in to the router.
    pub fn on_enqueue(&mut self, packet: &mut Packet, flow_info: &FlowInfo, now: Time) {
        self.advance_to(now);
        if let Some(router) = &mut self.router {
            router.on_arrival(packet, flow_info, now);
        }
    }

    /// Shows the router what has come back over the same cable.
    pub fn on_ack_return(&mut self, packet: &mut Packet, flow_info: &FlowInfo, now: Time) {
        self.advance_to(now);
        if let Some(router) = &mut self.router {
            router.on_ack_return(packet, flow_info, now);
        }
    }

    /// Tells the router that a packet it was shown was dropped.
    pub fn on_drop(&mut self, packet: &Packet) {
        if let Some(router) = &mut self.router {
            router.on_drop(packet);
        }
    }

    /// Whether the queue weighs flows.
    pub fn weighs(&self) -> bool {
        self.data.weighs()
    }

    /// Tells the queue of a flow that starts.
    pub fn register_flow(&mut self, flow: FlowNumber, class: &str) {
        self.data.register_flow(flow, class);
    }

    /// Tells the queue of a flow that has ended.
    pub fn unregister_flow(&mut self, flow: FlowNumber) {
        self.data.unregister_flow(flow);
    }

    /// Whether there is a router.
    pub fn is_routed(&self) -> bool {
        self.router.is_some()
    }

    /// Whether the router wants to see what comes back.
    pub fn reads_acks(&self) -> bool {
        self.router.as_ref().is_some_and(|router| router.reads_acks())
    }

    /// When the router's time comes next; never, if there is none.
    pub fn next_tick(&self) -> Time {
        self.router.as_ref().map_or(Time::NEVER, |router| router.next_tick())
    }

    /// The router's time has come.
    pub fn tick(&mut self, now: Time) {
        let waiting = self.backlog(now).bytes;
        if let Some(router) = &mut self.router {
            router.on_tick(PortView { now, backlog: waiting });
        }
    }

    /// What its queue has counted by priority.
    pub fn priority_counts(&self) -> Option<&PriorityCounts> {
        self.data.priority_counts()
    }

    /// The router's named numbers.
    pub fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.router.as_ref().map_or_else(Vec::new, |router| router.gauges())
    }

    /// How PFC has held the port's data back, by class.
    pub fn pauses(&self) -> &[PauseState] {
        &self.pauses
    }

    /// Shows the data that waits, in no particular order; that of a port without a line for control packets
    /// includes them.
    pub fn visit_data(&self, see: &mut dyn FnMut(&Packet)) {
        match &self.data {
            DataQueue::Fifo(_) => self.transmitter.waiting().for_each(see),
            DataQueue::Queue(queue) => queue.for_each_packet(see),
            DataQueue::ClassScheduler(classes) => classes.for_each_packet(see),
        }
    }

    /// What waits.
    pub fn backlog(&mut self, now: Time) -> Backlog {
        self.advance_to(now);
        self.transmitter.waiting
    }

    /// What waits in the queue of a class; with one class, all that waits.
    pub fn backlog_of(&mut self, class: Class, now: Time) -> Backlog {
        match &self.data {
            DataQueue::ClassScheduler(classes) => classes.backlog(class),
            _ => self.backlog(now),
        }
    }

    /// Bytes whose transmission has started.
    pub fn transmitted(&mut self, now: Time) -> u64 {
        self.advance_to(now);
        self.counters.bytes
    }

    /// Brings the counters up to the end of the run and checks that they add up; says how many packets are
    /// left, waiting or on the wire.
    pub fn close(&mut self, now: Time) -> u64 {
        let waiting = self.backlog(now);
        let mut data = Backlog::default();
        self.visit_data(&mut |packet| data.add(packet.bytes));
        assert_eq!(data, self.data_backlog(), "a port has lost count of what waits");
        self.account(now);
        self.pauses.iter_mut().for_each(|pauses| pauses.end(now));
        let Counters { arrived, departed, dropped, .. } = self.counters;
        assert_eq!(
            arrived,
            departed + dropped + u64::from(waiting.packets),
            "a port's packets do not add up: arrived, departed + dropped + queued"
        );
        self.transmitter.on_wire() + u64::from(waiting.packets)
    }

    /// What waits apart from control packets that pass data.
    fn data_backlog(&self) -> Backlog {
        if !self.control_waits {
            return self.transmitter.waiting;
        }
        let control = self.control.backlog();
        Backlog {
            bytes: self.transmitter.waiting.bytes - control.bytes,
            packets: self.transmitter.waiting.packets - control.packets,
        }
    }

    /// Notes what has waited since the last change.
    fn account(&mut self, now: Time) {
        self.counters.wait(self.transmitter.waiting.bytes, now);
    }

    /// Starts the transmissions that should have started by `now`, if nobody calls the port for them.
    #[inline]
    pub fn advance_to(&mut self, now: Time) {
        if self.transmitter.waiting.packets > 0
            && self.transmitter.busy_until <= now
            && !self.is_eager()
        {
            self.start_overdue(now);
        }
    }

    /// Apart, so that looking whether there is anything to do costs no call.
    #[inline(never)]
    fn start_overdue(&mut self, now: Time) {
        let mut dropped = Vec::new();
        while self.transmitter.waiting.packets > 0
            && self.transmitter.busy_until <= now
            // Without a packet on its way nobody would hear of those that follow.
            && (self.transmitter.on_wire() > 0 || self.is_cut)
        {
            if self.start_next(self.transmitter.busy_until, &mut dropped).is_none() {
                break;
            }
        }
        debug_assert!(dropped.is_empty(), "a patient queue drops nothing when it is served");
    }

    /// The transmission of a packet has started, that has waited or not.
    fn depart(&mut self, kind: Kind, bytes: u16, starts: Time, has_waited: bool) {
        self.counters.depart(kind, bytes);
        if self.quiet_below == 0
            && let DataQueue::Fifo(gate) = &mut self.data
            && !(self.control_first && kind.is_control())
        {
            gate.on_departure(starts);
        }
        if self.told != Observer::Nobody {
            self.tell(starts, has_waited);
        }
    }
}

//! A port: a queue, a transmitter and the link behind it, with counters that must add up.

use std::collections::VecDeque;

use crate::packet::{FlowSlot, Packet};
use crate::pauses::Pauses;
use crate::queue::{
    Admission, Backlog, Behaviour, Census, Context, Fifo, Found, Line, Queue, Verdict,
};
use crate::random::Random;
use crate::router::{About, Router, View};
use crate::topology::{Link, Loss};
use crate::units::{Bytes, Duration, Rate, Time};

/// What has passed through a port.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Counters {
    /// Packets that came.
    pub arrived: u64,
    /// Packets whose transmission has started.
    pub departed: u64,
    /// Data packets among the departed.
    pub data: u64,
    /// Bytes of the departed.
    pub bytes: u64,
    /// Integral of the waiting bytes over time, in byte-picoseconds.
    pub queue_area: u128,
    /// Most bytes that ever waited.
    pub queue_max: u64,
    /// Packets that were marked.
    pub marked: u64,
    /// Packets that the queue or the buffer dropped.
    pub dropped: u64,
    /// Packets that were transmitted, and lost on the link.
    pub lost: u64,
}

/// Whether control packets wait with the data or pass it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// One line for all; ports take the short way where they can.
    WithData,
    /// One line for all, and every packet's departure is seen: shared buffers need to know.
    Served,
    /// Strict priority, in a line of their own without limit.
    First,
}

/// How a port is to be served.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// What control packets do.
    pub control: Control,
    /// Whether it matters to somebody at once when a packet leaves.
    pub is_watched: bool,
    /// Whether packets that are no answers get their time stamp here, when their transmission starts.
    pub stamps: bool,
}

/// How a port serves its queue.
enum Lane {
    /// The discipline decides on arrival, so the departure is known at once and the packet goes straight
    /// onto the wire, from a start that may lie ahead: a hop is one event (docs/performance.md).
    Arrival(Box<dyn Admission>),
    /// The transmitter takes the next packet when it is free.
    Departure(Box<Served>),
}

/// The queues of a port that is served.
struct Served {
    control: Option<Line>,
    data: Box<dyn Queue>,
    /// Up to when `queue_area` is known.
    accounted: Time,
    /// Whether the port has asked to be called when the transmitter is free.
    called: bool,
    pauses: Pauses,
}

impl Served {
    fn backlog(&self) -> Backlog {
        let control = self.control.as_ref().map_or_else(Backlog::default, Line::backlog);
        let data = self.data.backlog();
        Backlog { bytes: control.bytes + data.bytes, packets: control.packets + data.packets }
    }
}

/// A packet on the wire, or scheduled to be.
#[derive(Clone, Copy, Debug)]
struct Flight {
    starts: Time,
    packet: Packet,
}

const _: () = assert!(size_of::<Flight>() <= 40, "wires outgrow the caches (docs/performance.md)");

/// A transmission that has been settled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    /// When its transmission ends.
    pub ends: Time,
    /// When it arrives, if nothing was on the link before it: then the link's next arrival is to be
    /// scheduled. Otherwise the arrival before it says when.
    pub arrives_first: Option<Time>,
}

/// What becomes of a packet handed to a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Handed {
    /// All is settled.
    Sent(Sent),
    /// It was put in a queue that has yet to be served; the queue may have dropped it or others.
    Queued,
    /// It was dropped.
    Dropped,
}

/// One direction of a cable, with the queue before it.
///
/// Every hop touches two of these, and a large network has more than a near cache holds: what a hop needs
/// stands first, in three cache lines (docs/performance.md).
#[repr(C, align(64))]
pub struct Port {
    /// What is on the wire, in order. Only its first is in the schedule, so that the schedule holds an
    /// event a link and not one a packet (docs/performance.md).
    wire: VecDeque<Flight>,
    /// So many of them have started.
    started: u32,
    /// Whether there is a router, and whether the link loses packets: both lie further off.
    is_routed: bool,
    is_lossy: bool,
    /// Whether the queue is served late: not when the transmitter becomes free, but when somebody next
    /// looks, which is before the packet being sent has arrived. That spares an event for every packet that
    /// waits.
    is_served_late: bool,
    stamps: bool,
    /// When the transmitter is free.
    busy_until: Time,
    delay: Duration,
    /// Below this backlog the discipline accepts everything unmarked and need not be asked.
    quiet_below: u64,
    /// How long the two sizes last transmitted take: divisions are slow, and sizes repeat.
    known: [(u16, Duration); 2],
    /// What waits, on ports that decide on arrival or are served late.
    backlog: Backlog,
    /// What has passed.
    pub counters: Counters,
    lane: Lane,
    /// When the last packet starts that the discipline was asked about and let in.
    left: Time,
    router: Option<Box<dyn Router>>,
    rate: Rate,
    loss: Loss,
    random: Random,
}

impl Port {
    /// A port on `link`, drawing from `random`.
    pub fn new(
        link: &Link,
        behaviour: Behaviour,
        router: Option<Box<dyn Router>>,
        service: Service,
        random: Random,
    ) -> Self {
        let Service { control, is_watched, stamps } = service;
        let may_be_late = control == Control::WithData && !is_watched;
        let served = |data: Box<dyn Queue>| {
            Lane::Departure(Box::new(Served {
                control: (control == Control::First).then(Line::default),
                data,
                accounted: Time::ZERO,
                called: false,
                pauses: Pauses::default(),
            }))
        };
        let (lane, quiet_below) = match behaviour {
            Behaviour::OnArrival(admission) if control == Control::WithData => {
                let quiet_below = admission.quiet_below();
                (Lane::Arrival(admission), quiet_below)
            }
            Behaviour::OnArrival(admission) => (served(Box::new(Fifo::new(admission))), 0),
            Behaviour::OnDeparture(queue) => (served(queue), 0),
        };
        let is_patient = matches!(&lane, Lane::Departure(served) if served.data.is_patient());
        Self {
            wire: VecDeque::new(),
            started: 0,
            is_routed: router.is_some(),
            is_lossy: link.loss != Loss::None,
            is_served_late: may_be_late && is_patient,
            stamps,
            busy_until: Time::ZERO,
            delay: link.delay,
            quiet_below,
            known: [(0, Duration::ZERO); 2],
            backlog: Backlog::default(),
            counters: Counters::default(),
            lane,
            left: Time::ZERO,
            router,
            rate: link.rate,
            loss: link.loss,
            random,
        }
    }

    /// Takes a packet in.
    pub fn hand(&mut self, packet: &mut Packet, now: Time, dropped: &mut Vec<Packet>) -> Handed {
        self.counters.arrived += 1;
        self.settle(now);
        let starts = self.busy_until.max(now);
        let after = self.backlog.bytes + u64::from(packet.bytes);
        if after >= self.quiet_below {
            let admission = match &mut self.lane {
                Lane::Arrival(admission) => admission,
                Lane::Departure(served) if self.is_served_late && self.busy_until <= now => {
                    served.data.pass(packet);
                    return Handed::Sent(self.transmit(packet, now, now));
                }
                Lane::Departure(_) => {
                    self.queue(*packet, now, dropped);
                    return Handed::Queued;
                }
            };
            let found = Found { now, backlog: self.backlog, left: self.left };
            match admission.admit(packet, &found, &mut self.random) {
                Verdict::Mark => self.counters.marked += u64::from(packet.mark()),
                Verdict::Accept => {}
                Verdict::Drop => {
                    self.counters.dropped += 1;
                    return Handed::Dropped;
                }
            }
            self.left = starts;
        }
        if starts > now {
            self.backlog.add(packet.bytes);
            self.counters.queue_max = self.counters.queue_max.max(after);
            self.counters.queue_area += u128::from(packet.bytes) * u128::from((starts - now).0);
        }
        Handed::Sent(self.transmit(packet, starts, now))
    }

    /// Puts a packet in the queue of a port that is served.
    fn queue(&mut self, packet: Packet, now: Time, dropped: &mut Vec<Packet>) {
        self.account(now);
        let already = dropped.len();
        if let Lane::Departure(served) = &mut self.lane {
            match &mut served.control {
                Some(line) if packet.kind.is_frame() => line.push_frame(packet),
                Some(line) if packet.kind.is_control() => line.push(packet),
                _ => {
                    let (random, marks) = (&mut self.random, &mut self.counters.marked);
                    served.data.push(packet, &mut Context { now, random, dropped, marks });
                }
            }
        }
        self.counters.dropped += (dropped.len() - already) as u64;
        self.note_backlog();
    }

    /// Keeps what waits at hand, on a port that is served late.
    fn note_backlog(&mut self) {
        if self.is_served_late
            && let Lane::Departure(served) = &self.lane
        {
            self.backlog = served.data.backlog();
        }
    }

    /// Starts the next transmission of a port that is served, if it is free and something may go.
    pub fn serve(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<(Packet, Sent)> {
        if self.busy_until > now || self.is_served_late {
            return None;
        }
        self.account(now);
        let already = dropped.len();
        let Lane::Departure(served) = &mut self.lane else { return None };
        let packet = match served.control.as_mut().and_then(Line::pop) {
            None if !served.pauses.is_on() => {
                let (random, marks) = (&mut self.random, &mut self.counters.marked);
                served.data.pop(&mut Context { now, random, dropped, marks })
            }
            urgent => urgent,
        };
        self.counters.dropped += (dropped.len() - already) as u64;
        packet.map(|packet| (packet, self.transmit(&packet, now, now)))
    }

    /// When to call [`serve`](Self::serve) next: `None` if nothing may go, or the port has asked already.
    pub fn call(&mut self, now: Time) -> Option<Time> {
        if self.is_served_late {
            return None;
        }
        let Lane::Departure(served) = &mut self.lane else { return None };
        let urgent = served.control.as_ref().is_some_and(|line| line.backlog().packets > 0);
        let may_go = urgent || (!served.pauses.is_on() && served.data.backlog().packets > 0);
        if !may_go || served.called {
            return None;
        }
        served.called = true;
        Some(self.busy_until.max(now))
    }

    /// The call that [`call`](Self::call) asked for has come.
    pub fn called(&mut self) {
        if let Lane::Departure(served) = &mut self.lane {
            served.called = false;
        }
    }

    /// Takes the packet that has come to the end of the link.
    pub fn arrive(&mut self, now: Time) -> Packet {
        if self.started == 0 || self.is_served_late {
            self.settle(now);
        }
        let Some(&Flight { packet, .. }) = self.wire.front() else {
            unreachable!("an arrival is scheduled for a packet on the wire")
        };
        self.wire.pop_front();
        self.started -= 1;
        packet
    }

    /// When the first packet on the wire comes to its end, if one is on its way.
    pub fn next_arrival(&mut self) -> Option<Time> {
        let Some(Flight { starts, packet }) = self.wire.front() else {
            // Starts over at the beginning of its memory, which is still in the cache.
            self.wire.clear();
            return None;
        };
        let (starts, bytes) = (*starts, packet.bytes);
        Some(starts + self.transmission(bytes) + self.delay)
    }

    /// Whether the packet that has just come to the end of the link is lost.
    pub fn loses(&mut self, packet: &Packet) -> bool {
        let is_lost = self.is_lossy
            // PFC frames are protected: a lost one would stop the link for ever.
            && !packet.kind.is_frame()
            && match self.loss {
                Loss::None => false,
                Loss::Random(probability) => self.random.uniform() < probability,
                // What has departed and is not on the wire any more has come.
                Loss::Every(period) => {
                    (self.counters.departed - u64::from(self.started)).is_multiple_of(period)
                }
            };
        self.counters.lost += u64::from(is_lost);
        is_lost
    }

    /// PFC: data must wait from now on.
    pub fn pause(&mut self, now: Time) {
        if let Lane::Departure(served) = &mut self.lane {
            served.pauses.begin(now);
        }
    }

    /// PFC: data may go again.
    pub fn resume(&mut self, now: Time) {
        if let Lane::Departure(served) = &mut self.lane {
            served.pauses.end(now);
        }
    }

    /// Shows a packet that is about to be handed in to the router.
    pub fn show(&mut self, packet: &mut Packet, about: &About, now: Time) {
        self.settle(now);
        if let Some(router) = &mut self.router {
            router.on_arrive(packet, about, now);
        }
    }

    /// Shows the router what has come back over the same cable.
    pub fn show_return(&mut self, packet: &mut Packet, about: &About, now: Time) {
        if let Some(router) = &mut self.router {
            router.on_return(packet, about, now);
        }
    }

    /// Tells the router that a packet it was shown was dropped.
    pub fn show_drop(&mut self, packet: &Packet) {
        if let Some(router) = &mut self.router {
            router.on_drop(packet);
        }
    }

    /// Whether the queue weighs flows.
    pub fn weighs(&self) -> bool {
        matches!(&self.lane, Lane::Departure(served) if served.data.weighs())
    }

    /// Tells the queue what flow a slot holds from now on.
    pub fn introduce(&mut self, flow: FlowSlot, class: &str) {
        if let Lane::Departure(served) = &mut self.lane {
            served.data.introduce(flow, class);
        }
    }

    /// Whether there is a router.
    pub fn is_routed(&self) -> bool {
        self.is_routed
    }

    /// Whether the router wants to see what comes back.
    pub fn hears_returns(&self) -> bool {
        self.router.as_ref().is_some_and(|router| router.hears_returns())
    }

    /// When the router's time comes next; never, if there is none.
    pub fn next_tick(&self) -> Time {
        self.router.as_ref().map_or(Time::NEVER, |router| router.next_tick())
    }

    /// The router's time has come.
    pub fn tick(&mut self, now: Time) {
        let waiting = self.backlog(now).bytes;
        if let Some(router) = &mut self.router {
            router.on_tick(View { now, waiting });
        }
    }

    /// What its queue has counted by priority.
    pub fn census(&self) -> Option<&Census> {
        match &self.lane {
            Lane::Arrival(_) => None,
            Lane::Departure(served) => served.data.census(),
        }
    }

    /// The router's named numbers.
    pub fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.router.as_ref().map_or_else(Vec::new, |router| router.gauges())
    }

    /// How PFC has held the port's data back.
    pub fn pauses(&self) -> Pauses {
        match &self.lane {
            Lane::Arrival(_) => Pauses::default(),
            Lane::Departure(served) => served.pauses,
        }
    }

    /// Shows the data that waits to be served, in no particular order.
    pub fn visit_data(&self, see: &mut dyn FnMut(&Packet)) {
        if let Lane::Departure(served) = &self.lane {
            served.data.visit(see);
        }
    }

    /// What waits.
    pub fn backlog(&mut self, now: Time) -> Backlog {
        self.settle(now);
        self.waiting()
    }

    /// Bytes whose transmission has started.
    pub fn transmitted(&mut self, now: Time) -> u64 {
        self.settle(now);
        self.counters.bytes
    }

    /// Brings the counters up to the end of the run and checks that they add up; says how many packets are
    /// left, waiting or on the wire.
    pub fn close(&mut self, now: Time) -> u64 {
        let waiting = self.backlog(now);
        self.account(now);
        self.resume(now);
        for Flight { starts, packet } in self.wire.range(self.started as usize..) {
            self.counters.queue_area -= u128::from(packet.bytes) * u128::from((*starts - now).0);
        }
        let Counters { arrived, departed, dropped, .. } = self.counters;
        assert_eq!(
            arrived,
            departed + dropped + u64::from(waiting.packets),
            "a port's packets do not add up: arrived, departed + dropped + queued"
        );
        let on_wire = self.wire.len() as u64;
        match self.lane {
            Lane::Arrival(_) => on_wire,
            Lane::Departure(_) => on_wire + u64::from(waiting.packets),
        }
    }

    fn waiting(&self) -> Backlog {
        match &self.lane {
            Lane::Arrival(_) => self.backlog,
            Lane::Departure(served) => served.backlog(),
        }
    }

    /// Notes what has waited since the last change, on a port that is served.
    fn account(&mut self, now: Time) {
        if let Lane::Departure(served) = &mut self.lane {
            let bytes = served.backlog().bytes;
            self.counters.queue_area += u128::from(bytes) * u128::from((now - served.accounted).0);
            self.counters.queue_max = self.counters.queue_max.max(bytes);
            served.accounted = now;
        }
    }

    /// Starts the transmissions that should have started by `now`, on a port that is served late.
    fn catch_up(&mut self, now: Time) {
        while self.busy_until <= now {
            let starts = self.busy_until;
            if self.backlog.packets == 0 {
                return;
            }
            self.account(starts);
            let Lane::Departure(served) = &mut self.lane else { return };
            let (random, marks) = (&mut self.random, &mut self.counters.marked);
            let mut dropped = Vec::new();
            let mut context = Context { now: starts, random, dropped: &mut dropped, marks };
            let Some(packet) = served.data.pop(&mut context) else { return };
            debug_assert!(dropped.is_empty(), "a patient queue drops nothing when it is served");
            self.note_backlog();
            self.transmit(&packet, starts, starts);
        }
    }

    /// Counts the transmissions that have started by `now`.
    fn settle(&mut self, now: Time) {
        if self.is_served_late {
            self.catch_up(now);
            return;
        }
        while let Some(Flight { starts, packet }) = self.wire.get(self.started as usize) {
            if *starts > now {
                return;
            }
            let starts = *starts;
            self.backlog.take(packet.bytes);
            self.counters.depart(packet);
            self.start(starts);
        }
    }

    /// Puts a packet onto the wire.
    fn transmit(&mut self, packet: &Packet, starts: Time, now: Time) -> Sent {
        let ends = starts + self.transmission(packet.bytes);
        self.busy_until = ends;
        let arrives_first = self.wire.is_empty().then_some(ends + self.delay);
        let sent_at = if self.stamps && !packet.kind.is_answer() { starts } else { packet.sent_at };
        let onward = Packet { next_hop: packet.next_hop + 1, sent_at, ..*packet };
        self.wire.push_back(Flight { starts, packet: onward });
        if starts == now {
            self.counters.depart(packet);
            self.start(starts);
        }
        Sent { ends, arrives_first }
    }

    /// The next transmission starts.
    fn start(&mut self, starts: Time) {
        if self.is_routed {
            self.stamp(starts);
        }
        self.started += 1;
    }

    /// Shows the packet whose transmission starts to the router. Apart, because ports without routers
    /// should not pay for it.
    #[cold]
    fn stamp(&mut self, starts: Time) {
        let view = View { now: starts, waiting: self.waiting().bytes };
        if let Some(router) = &mut self.router
            && let Some(flight) = self.wire.get_mut(self.started as usize)
        {
            router.on_depart(&mut flight.packet, view);
        }
    }

    /// How long `bytes` take at line rate.
    fn transmission(&mut self, bytes: u16) -> Duration {
        let [newest, other] = self.known;
        if newest.0 == bytes {
            return newest.1;
        }
        let known = if other.0 == bytes {
            other
        } else {
            (bytes, self.rate.transmit(Bytes(u64::from(bytes))))
        };
        self.known = [known, newest];
        known.1
    }
}

impl Counters {
    fn depart(&mut self, packet: &Packet) {
        self.departed += 1;
        self.data += u64::from(!packet.kind.is_control());
        self.bytes += u64::from(packet.bytes);
    }
}

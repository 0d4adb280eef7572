//! A port: a queue, a transmitter and the link behind it, with counters that must add up.

use std::collections::VecDeque;

use crate::packet::{Kind, PacketId, Packets};
use crate::queue::{Admission, Backlog, Behaviour, Context, Fifo, Line, Queue, Verdict};
use crate::random::Random;
use crate::topology::Link;
use crate::units::{Bytes, Duration, Rate, Time};

/// What has passed through a port.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Packets that came.
    pub arrived: u64,
    /// Packets whose transmission has started.
    pub departed: u64,
    /// Packets that the queue or the buffer dropped.
    pub dropped: u64,
    /// Packets that were transmitted, and lost on the link.
    pub lost: u64,
    /// Packets that were marked.
    pub marked: u64,
    /// Data packets among the departed.
    pub data: u64,
    /// Bytes of the departed.
    pub bytes: u64,
    /// Most bytes that ever waited.
    pub queue_max: u64,
    /// Integral of the waiting bytes over time, in byte-picoseconds.
    pub queue_area: u128,
    /// How often PFC paused the port.
    pub pauses: u64,
    /// How long it was paused in all.
    pub paused: Duration,
}

impl Counters {
    fn depart(&mut self, bytes: u32, is_data: bool) {
        self.departed += 1;
        self.data += u64::from(is_data);
        self.bytes += u64::from(bytes);
    }
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

/// How a port serves its queue.
enum Lane {
    /// The discipline decides on arrival, so the departure is known at once: a hop is one event, and what
    /// waits is a list of transmissions that have not started yet (docs/performance.md).
    Arrival { admission: Box<dyn Admission>, ahead: VecDeque<Ahead>, backlog: Backlog },
    /// The transmitter takes the next packet when it is free.
    Departure { control: Option<Line>, data: Box<dyn Queue> },
}

/// A transmission that lies ahead.
struct Ahead {
    starts: Time,
    bytes: u32,
    is_data: bool,
}

/// A packet on its way over the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The packet.
    pub id: PacketId,
    /// When its transmission ends.
    pub ends: Time,
    /// When it arrives; `None` if it is lost on the link.
    pub arrives: Option<Time>,
}

/// What becomes of a packet handed to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handed {
    /// All is settled: when it leaves and when it arrives.
    Sent(Sent),
    /// It was put in a queue that has yet to be served; the queue may have dropped it or others.
    Queued,
    /// It was dropped.
    Dropped,
}

/// One direction of a cable, with the queue before it.
pub struct Port {
    rate: Rate,
    delay: Duration,
    loss: f64,
    /// When the transmitter is free.
    busy_until: Time,
    /// The size last transmitted and how long it took: divisions are slow, and sizes repeat.
    last: (u32, Duration),
    lane: Lane,
    /// Whether the port has asked to be called when the transmitter is free.
    called: bool,
    paused_since: Option<Time>,
    /// Up to when `queue_area` is known, on ports that are served.
    accounted: Time,
    random: Random,
    /// What has passed.
    pub counters: Counters,
}

impl Port {
    /// A port on `link`, drawing from `random`.
    pub fn new(link: &Link, behaviour: Behaviour, control: Control, random: Random) -> Self {
        let departure = |data: Box<dyn Queue>| {
            let control = (control == Control::First).then(Line::default);
            Lane::Departure { control, data }
        };
        let lane = match behaviour {
            Behaviour::OnArrival(admission) if control == Control::WithData => {
                Lane::Arrival { admission, ahead: VecDeque::new(), backlog: Backlog::default() }
            }
            Behaviour::OnArrival(admission) => departure(Box::new(Fifo::new(admission))),
            Behaviour::OnDeparture(queue) => departure(queue),
        };
        Self {
            rate: link.rate,
            delay: link.delay,
            loss: link.loss,
            busy_until: Time::ZERO,
            last: (0, Duration::ZERO),
            lane,
            called: false,
            paused_since: None,
            accounted: Time::ZERO,
            random,
            counters: Counters::default(),
        }
    }

    /// Takes a packet in.
    pub fn hand(
        &mut self,
        id: PacketId,
        now: Time,
        packets: &mut Packets,
        dropped: &mut Vec<PacketId>,
    ) -> Handed {
        self.counters.arrived += 1;
        let Lane::Arrival { admission, ahead, backlog } = &mut self.lane else {
            self.queue(id, now, packets, dropped);
            return Handed::Queued;
        };
        settle(ahead, backlog, &mut self.counters, now);
        let packet = &mut packets[id];
        match admission.admit(packet, *backlog, &mut self.random) {
            Verdict::Mark if packet.ecn_capable && !packet.marked => {
                packet.marked = true;
                self.counters.marked += 1;
            }
            Verdict::Mark | Verdict::Accept => {}
            Verdict::Drop => {
                self.counters.dropped += 1;
                return Handed::Dropped;
            }
        }
        let (bytes, is_data) = (packet.wire_bytes, !packet.kind.is_control());
        let starts = self.busy_until.max(now);
        if starts == now {
            self.counters.depart(bytes, is_data);
        } else {
            backlog.add(bytes);
            ahead.push_back(Ahead { starts, bytes, is_data });
            self.counters.queue_max = self.counters.queue_max.max(backlog.bytes);
            self.counters.queue_area += u128::from(bytes) * u128::from((starts - now).0);
        }
        Handed::Sent(self.transmit(id, starts, bytes, packets))
    }

    /// Puts a packet in the queue of a port that is served.
    fn queue(
        &mut self,
        id: PacketId,
        now: Time,
        packets: &mut Packets,
        dropped: &mut Vec<PacketId>,
    ) {
        self.account(now);
        let already = dropped.len();
        if let Lane::Departure { control, data } = &mut self.lane {
            match (control, packets[id].kind) {
                (Some(line), Kind::Pause | Kind::Resume) => line.push_first(id, packets),
                (Some(line), kind) if kind.is_control() => line.push(id, packets),
                _ => {
                    let (random, marks) = (&mut self.random, &mut self.counters.marked);
                    data.push(id, &mut Context { packets, now, random, dropped, marks });
                }
            }
        }
        self.counters.dropped += (dropped.len() - already) as u64;
    }

    /// Starts the next transmission of a port that is served, if it is free and something may go.
    pub fn serve(
        &mut self,
        now: Time,
        packets: &mut Packets,
        dropped: &mut Vec<PacketId>,
    ) -> Option<Sent> {
        if self.busy_until > now {
            return None;
        }
        self.account(now);
        let already = dropped.len();
        let Lane::Departure { control, data } = &mut self.lane else { return None };
        let id = match control.as_mut().and_then(|line| line.pop(packets)) {
            None if self.paused_since.is_none() => {
                let (random, marks) = (&mut self.random, &mut self.counters.marked);
                data.pop(&mut Context { packets, now, random, dropped, marks })
            }
            urgent => urgent,
        };
        self.counters.dropped += (dropped.len() - already) as u64;
        let id = id?;
        let packet = &packets[id];
        let bytes = packet.wire_bytes;
        self.counters.depart(bytes, !packet.kind.is_control());
        Some(self.transmit(id, now, bytes, packets))
    }

    /// When to call [`serve`](Self::serve) next: `None` if nothing may go, or the port has asked already.
    pub fn call(&mut self, now: Time) -> Option<Time> {
        let Lane::Departure { control, data } = &self.lane else { return None };
        let urgent = control.as_ref().is_some_and(|line| line.backlog().packets > 0);
        let may_go = urgent || (self.paused_since.is_none() && data.backlog().packets > 0);
        if !may_go || self.called {
            return None;
        }
        self.called = true;
        Some(self.busy_until.max(now))
    }

    /// The call that [`call`](Self::call) asked for has come.
    pub fn called(&mut self) {
        self.called = false;
    }

    /// PFC: data must wait from now on.
    pub fn pause(&mut self, now: Time) {
        if self.paused_since.is_none() {
            self.paused_since = Some(now);
            self.counters.pauses += 1;
        }
    }

    /// PFC: data may go again.
    pub fn resume(&mut self, now: Time) {
        if let Some(since) = self.paused_since.take() {
            self.counters.paused += now - since;
        }
    }

    /// Whether PFC holds the port's data back.
    pub fn is_paused(&self) -> bool {
        self.paused_since.is_some()
    }

    /// What waits.
    pub fn backlog(&mut self, now: Time) -> Backlog {
        if let Lane::Arrival { ahead, backlog, .. } = &mut self.lane {
            settle(ahead, backlog, &mut self.counters, now);
        }
        self.waiting()
    }

    /// Brings the counters up to the end of the run and checks that they add up.
    pub fn close(&mut self, now: Time) {
        let waiting = self.backlog(now);
        if let Lane::Arrival { ahead, .. } = &self.lane {
            for Ahead { starts, bytes, .. } in ahead {
                self.counters.queue_area -= u128::from(*bytes) * u128::from((*starts - now).0);
            }
        } else {
            self.account(now);
        }
        if let Some(since) = self.paused_since {
            self.counters.paused += now - since;
        }
        let Counters { arrived, departed, dropped, .. } = self.counters;
        assert_eq!(
            arrived,
            departed + dropped + u64::from(waiting.packets),
            "a port's packets do not add up: arrived, departed + dropped + queued"
        );
    }

    /// The line rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    fn waiting(&self) -> Backlog {
        match &self.lane {
            Lane::Arrival { backlog, .. } => *backlog,
            Lane::Departure { control, data, .. } => {
                let control = control.as_ref().map_or_else(Backlog::default, Line::backlog);
                let data = data.backlog();
                Backlog {
                    bytes: control.bytes + data.bytes,
                    packets: control.packets + data.packets,
                }
            }
        }
    }

    /// Notes what has waited since the last change, on a port that is served.
    fn account(&mut self, now: Time) {
        let bytes = self.waiting().bytes;
        self.counters.queue_area += u128::from(bytes) * u128::from((now - self.accounted).0);
        self.counters.queue_max = self.counters.queue_max.max(bytes);
        self.accounted = now;
    }

    fn transmit(&mut self, id: PacketId, starts: Time, bytes: u32, packets: &Packets) -> Sent {
        if self.last.0 != bytes {
            self.last = (bytes, self.rate.transmit(Bytes(u64::from(bytes))));
        }
        let ends = starts + self.last.1;
        self.busy_until = ends;
        // PFC frames are protected: a lost one would stop the link for ever.
        let may_be_lost =
            self.loss > 0.0 && !matches!(packets[id].kind, Kind::Pause | Kind::Resume);
        if may_be_lost && self.random.uniform() < self.loss {
            self.counters.lost += 1;
            return Sent { id, ends, arrives: None };
        }
        Sent { id, ends, arrives: Some(ends + self.delay) }
    }
}

/// Counts the transmissions that have started by `now`.
fn settle(ahead: &mut VecDeque<Ahead>, backlog: &mut Backlog, counters: &mut Counters, now: Time) {
    while let Some(Ahead { starts, bytes, is_data }) = ahead.front() {
        if *starts > now {
            return;
        }
        counters.depart(*bytes, *is_data);
        backlog.take(*bytes);
        ahead.pop_front();
    }
}

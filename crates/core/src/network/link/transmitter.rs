//! A transmitter, the wire behind it, and the packets that wait for it first in, first out.

use std::sync::Arc;

use super::ring::Ring;
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::graph::{DelayTrace, Link, RateTrace};
use crate::model::packet::Packet;
use crate::queueing::Backlog;

/// A packet on the wire, or waiting for it.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// When it comes to the end of the link; not set before its transmission starts.
    pub arrives: Time,
    /// As it comes there.
    pub packet: Packet,
}

const _: () = assert!(size_of::<Flight>() <= 40, "wires outgrow the caches (docs/performance.md)");

/// A transmission that has started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    /// When it ends.
    pub ends: Time,
    /// When the packet arrives, if nothing was on the link before it: then the link's next arrival is to be
    /// scheduled. Otherwise the arrival before it says when.
    pub arrives_first: Option<Time>,
}

/// What sends one packet after the other.
///
/// What waits stands behind what is on the wire, in one line, so that a packet is not moved when its
/// transmission starts (docs/performance.md).
#[repr(C)]
pub struct Transmitter {
    /// In order. Only the first is in the schedule, once its transmission has started, so that the schedule
    /// holds an event a link and not one a packet (docs/performance.md).
    line: Ring<Flight>,
    /// When the last transmission ends, or the next may start.
    pub busy_until: Time,
    /// All that waits, in this line or elsewhere.
    pub waiting: Backlog,
    /// So many packets are on the wire.
    started: u32,
    stamps: bool,
    /// Whether they would, but for the account that is kept of them.
    pub stamps_aside: bool,
    /// Whether it matters who comes to the end of the link: to an account, or since it loses packets.
    pub is_watched: bool,
    /// Whether it is for the latter.
    pub may_lose: bool,
    durations: Durations,
}

impl Transmitter {
    /// The transmitter of `link`; `stamps` says whether packets that are no answers get their time stamp
    /// when their transmission starts, unless an account is kept; `may_lose` whether the link loses packets.
    pub fn new(link: &Link, stamps: bool, keeps_account: bool, may_lose: bool) -> Self {
        Self {
            line: Ring::default(),
            busy_until: Time::ZERO,
            waiting: Backlog::default(),
            started: 0,
            stamps: stamps && !keeps_account,
            stamps_aside: stamps && keeps_account,
            is_watched: may_lose || keeps_account,
            may_lose,
            durations: Durations::new(link),
        }
    }

    /// Lets a packet wait behind the others.
    pub fn append(&mut self, packet: &Packet) {
        self.line.push(Flight { arrives: Time::NEVER, packet: *packet });
    }

    /// The first packet that waits.
    pub fn first(&self) -> Option<&Packet> {
        self.line.get(self.started as usize).map(|flight| &flight.packet)
    }

    /// Starts the transmission of the first packet that waits, if one does.
    pub fn start(&mut self, starts: Time) -> Option<Sent> {
        let Flight { arrives, packet } = self.line.get_mut(self.started as usize)?;
        let crossing = self.durations.cross(packet.bytes, starts);
        *arrives = crossing.arrives;
        packet.next_hop += 1;
        if self.stamps && !packet.kind.is_answer() {
            packet.sent_at = starts;
        }
        Some(self.begin(crossing))
    }

    /// Starts the transmission of a packet that did not wait here.
    pub fn send(&mut self, packet: &Packet, starts: Time) -> Sent {
        let crossing = self.durations.cross(packet.bytes, starts);
        let sent_at = if self.stamps && !packet.kind.is_answer() { starts } else { packet.sent_at };
        let onward = Packet { next_hop: packet.next_hop + 1, sent_at, ..*packet };
        let flight = Flight { arrives: crossing.arrives, packet: onward };
        self.put(flight);
        self.begin(crossing)
    }

    /// Puts a packet behind those on the wire, and before those that wait.
    fn put(&mut self, flight: Flight) {
        if self.started as usize == self.line.len() {
            self.line.push(flight);
        } else {
            self.line.insert(self.started as usize, flight);
        }
    }

    /// A transmission has started.
    fn begin(&mut self, Crossing { ends, arrives }: Crossing) -> Sent {
        let arrives_first = (self.started == 0).then_some(arrives);
        self.busy_until = ends;
        self.started += 1;
        Sent { ends, arrives_first }
    }

    /// The packet whose transmission has started last, if it is still on the wire.
    pub fn last(&mut self) -> Option<&mut Packet> {
        let last = (self.started as usize).checked_sub(1)?;
        self.line.get_mut(last).map(|flight| &mut flight.packet)
    }

    /// Those that wait.
    pub fn waiting(&self) -> impl Iterator<Item = &Packet> {
        self.line.iter_from(self.started as usize).map(|flight| &flight.packet)
    }

    /// Those on the wire.
    pub fn flights(&self) -> impl Iterator<Item = &Flight> {
        self.line.iter_from(0).take(self.started as usize)
    }

    /// How many packets are on the wire.
    pub fn on_wire(&self) -> u64 {
        u64::from(self.started)
    }

    /// Takes the packet that has come to the end of the link.
    pub fn arrive(&mut self) -> Packet {
        let Some(&Flight { packet, .. }) = self.line.get(0) else {
            unreachable!("an arrival is scheduled for a packet on the wire")
        };
        self.line.drop_first();
        self.started -= 1;
        packet
    }

    /// Takes the first packet off the wire, if there is one: it goes on elsewhere.
    pub fn unload(&mut self) -> Option<Flight> {
        self.started = self.started.checked_sub(1)?;
        let flight = self.line.get(0).copied();
        self.line.drop_first();
        flight
    }

    /// Puts a packet on the wire that was transmitted elsewhere.
    pub fn load(&mut self, flight: Flight) {
        self.put(flight);
        self.started += 1;
    }

    /// When the first packet on the wire comes to its end, if there is one.
    pub fn next_arrival(&self) -> Option<Time> {
        self.line.get(0).filter(|_| self.started > 0).map(|first| first.arrives)
    }

    /// When a transmission of `bytes` ends that starts then.
    pub fn end(&mut self, bytes: u16, starts: Time) -> Time {
        self.durations.end(bytes, starts)
    }

    /// Whether the rate or the delay of the link changes.
    pub fn changes(&self) -> bool {
        self.durations.change
    }

    /// When the transmission of `bytes` started and ended that come to the end of the link now, if that can
    /// be told: if the link does not change.
    pub fn crossed(&mut self, bytes: u16, now: Time) -> Option<(Time, Time)> {
        let lasts = self.durations.lasts(bytes).ok()?;
        let ended = Time(now.0 - self.durations.delay.0);
        Some((Time(ended.0 - lasts.0), ended))
    }
}

/// How a packet crosses the link.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    /// When its transmission ends.
    ends: Time,
    /// When it comes to the end of the link.
    arrives: Time,
}

/// How long packets take. Remembers the last two sizes: divisions are slow, and sizes repeat.
struct Durations {
    /// Apart, because it is seldom asked.
    pace: Box<Pace>,
    sizes: [u16; 2],
    known: [Duration; 2],
    /// How long the wire delays, if that does not change.
    delay: Duration,
    /// Whether the link changes.
    change: bool,
}

/// How fast a link is.
enum Pace {
    Constant(Rate),
    Changing(Changing),
}

/// A link whose rate or delay changes.
struct Changing {
    rate: Rate,
    rates: Option<Arc<RateTrace>>,
    delay: Duration,
    delays: Option<Arc<DelayTrace>>,
    /// When the last packet arrives: no other may come before it.
    arrives: Time,
}

impl Changing {
    /// When a transmission of `bytes` ends that starts then.
    fn end(&self, bytes: u16, starts: Time) -> Time {
        let bytes = Bytes(u64::from(bytes));
        let constant = || starts + self.rate.transmit(bytes);
        self.rates.as_ref().map_or_else(constant, |trace| trace.transmit(bytes, starts))
    }

    fn cross(&mut self, bytes: u16, starts: Time) -> Crossing {
        let ends = self.end(bytes, starts);
        let delay = self.delays.as_ref().map_or(self.delay, |trace| trace.at(ends));
        self.arrives = self.arrives.max(ends + delay);
        Crossing { ends, arrives: self.arrives }
    }
}

impl Durations {
    fn new(link: &Link) -> Self {
        let Link { rate, delay, .. } = *link;
        let (rates, delays) = (link.trace.clone(), link.delays.clone());
        let change = rates.is_some() || delays.is_some();
        let pace = if change {
            Pace::Changing(Changing { rate, rates, delay, delays, arrives: Time::ZERO })
        } else {
            Pace::Constant(rate)
        };
        Self { pace: Box::new(pace), sizes: [0; 2], known: [Duration::ZERO; 2], delay, change }
    }

    /// How long a transmission of `bytes` takes, or what to ask on a link that changes: no size is remembered
    /// there, so each comes to ask.
    fn lasts(&mut self, bytes: u16) -> Result<Duration, &mut Changing> {
        if self.sizes[0] != bytes {
            self.sizes.swap(0, 1);
            self.known.swap(0, 1);
            if self.sizes[0] != bytes {
                match &mut *self.pace {
                    Pace::Constant(rate) => self.known[0] = rate.transmit(Bytes(u64::from(bytes))),
                    Pace::Changing(changing) => return Err(changing),
                }
                self.sizes[0] = bytes;
            }
        }
        Ok(self.known[0])
    }

    /// When a transmission of `bytes` ends that starts then.
    fn end(&mut self, bytes: u16, starts: Time) -> Time {
        match self.lasts(bytes) {
            Ok(lasts) => starts + lasts,
            Err(changing) => changing.end(bytes, starts),
        }
    }

    /// How a packet of `bytes` crosses the link whose transmission starts then.
    fn cross(&mut self, bytes: u16, starts: Time) -> Crossing {
        let delay = self.delay;
        match self.lasts(bytes) {
            Ok(lasts) => Crossing { ends: starts + lasts, arrives: starts + lasts + delay },
            Err(changing) => changing.cross(bytes, starts),
        }
    }
}

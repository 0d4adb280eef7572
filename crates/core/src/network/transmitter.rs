//! A transmitter, the wire behind it, and the packets that wait for it first in, first out.

use std::sync::Arc;

use super::ring::Ring;
use crate::graph::{Link, RateTrace};
use crate::packet::Packet;
use crate::units::{Bytes, Duration, Rate, Time};
use crate::waiting::Backlog;

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
    /// Whether it matters who comes to the end of the link: to an account, or since it loses packets.
    pub is_watched: bool,
    delay: Duration,
    durations: Durations,
}

impl Transmitter {
    /// The transmitter of `link`; `stamps` says whether packets that are no answers get their time stamp
    /// when their transmission starts, `is_watched` whether it matters who comes to the end of the link.
    pub fn new(link: &Link, stamps: bool, is_watched: bool) -> Self {
        Self {
            line: Ring::default(),
            busy_until: Time::ZERO,
            waiting: Backlog::default(),
            started: 0,
            stamps,
            is_watched,
            delay: link.delay,
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
        let ends = self.durations.end(packet.bytes, starts);
        *arrives = ends + self.delay;
        packet.next_hop += 1;
        if self.stamps && !packet.kind.is_answer() {
            packet.sent_at = starts;
        }
        Some(self.begin(ends))
    }

    /// Starts the transmission of a packet that did not wait here.
    pub fn send(&mut self, packet: &Packet, starts: Time) -> Sent {
        let ends = self.durations.end(packet.bytes, starts);
        let sent_at = if self.stamps && !packet.kind.is_answer() { starts } else { packet.sent_at };
        let onward = Packet { next_hop: packet.next_hop + 1, sent_at, ..*packet };
        let flight = Flight { arrives: ends + self.delay, packet: onward };
        self.put(flight);
        self.begin(ends)
    }

    /// Puts a packet behind those on the wire, and before those that wait.
    fn put(&mut self, flight: Flight) {
        if self.started as usize == self.line.len() {
            self.line.push(flight);
        } else {
            self.line.insert(self.started as usize, flight);
        }
    }

    /// A transmission that ends then has started.
    fn begin(&mut self, ends: Time) -> Sent {
        let arrives_first = (self.started == 0).then_some(ends + self.delay);
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

    /// How long the wire delays.
    pub fn delay(&self) -> Duration {
        self.delay
    }
}

/// How long packets take. Remembers the last two sizes: divisions are slow, and sizes repeat.
struct Durations {
    /// Apart, because it is seldom asked.
    pace: Box<Pace>,
    sizes: [u16; 2],
    known: [Duration; 2],
}

/// How fast a link is.
enum Pace {
    Constant(Rate),
    Changing(Arc<RateTrace>),
}

impl Durations {
    fn new(link: &Link) -> Self {
        let changing = link.trace.as_ref().map(|trace| Pace::Changing(Arc::clone(trace)));
        let pace = Box::new(changing.unwrap_or(Pace::Constant(link.rate)));
        Self { pace, sizes: [0; 2], known: [Duration::ZERO; 2] }
    }

    /// When a transmission of `bytes` ends that starts then.
    fn end(&mut self, bytes: u16, starts: Time) -> Time {
        if self.sizes[0] != bytes {
            self.sizes.swap(0, 1);
            self.known.swap(0, 1);
            if self.sizes[0] != bytes {
                let of_packet = Bytes(u64::from(bytes));
                match &*self.pace {
                    Pace::Constant(rate) => self.known[0] = rate.transmit(of_packet),
                    // No size is remembered: so each comes here.
                    Pace::Changing(trace) => return trace.transmit(of_packet, starts),
                }
                self.sizes[0] = bytes;
            }
        }
        starts + self.known[0]
    }
}

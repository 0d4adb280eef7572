//! Transmitter of a link, with the packets in flight and those that wait in a FIFO queue.

use std::sync::Arc;

use super::ring::Ring;
use crate::base::random::Random;
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::graph::{DelayTrace, Link, RateTrace};
use crate::model::packet::Packet;
use crate::queueing::Backlog;

/// Packet in flight, or waiting for its transmission.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// Arrival at the end of the link; not set before the transmission starts.
    pub arrives: Time,
    /// The packet as it arrives there.
    pub packet: Packet,
}

const _: () = assert!(size_of::<Flight>() <= 40, "links outgrow the caches (docs/performance.md)");

/// A transmission that has started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transmission {
    /// End of the transmission.
    pub ends: Time,
    /// Arrival of the packet at the end of the link.
    pub arrives: Time,
    /// True if no packet was in flight before: then the arrival must be scheduled. Otherwise the
    /// arrival of the packet before it schedules it.
    pub is_first: bool,
    /// True if the departure must be reported to the flow, since it was not predicted.
    pub is_reported: bool,
}

/// Transmitter of one packet after the other.
///
/// Waiting packets stand behind the packets in flight, in one ring, so that a packet is not moved when
/// its transmission starts (docs/performance.md).
#[repr(C)]
pub struct Transmitter {
    /// Packets in order. Only the arrival of the first is scheduled, once its transmission has
    /// started: so the event queue holds one event for each link, not for each packet
    /// (docs/performance.md).
    line: Ring<Flight>,
    /// End of the last transmission, or earliest start of the next.
    pub busy_until: Time,
    /// Backlog of all waiting packets, in this ring or elsewhere.
    pub waiting: Backlog,
    /// Number of packets in flight.
    started: u32,
    stamps: bool,
    /// If true, timestamps are recorded and not written, since packets have a record.
    pub stamps_aside: bool,
    /// If true, arrivals are recorded or can be losses.
    pub is_watched: bool,
    /// If true, arrivals can be losses.
    pub may_lose: bool,
    durations: Durations,
}

impl Transmitter {
    /// Returns the transmitter of `link`. With `stamps`, packets on the forward path get their
    /// timestamp when their transmission starts, unless they have a record. Transmission times are rounded
    /// down to `time_unit`.
    pub fn new(
        link: &Link,
        stamps: bool,
        keeps_account: bool,
        may_lose: bool,
        time_unit: Duration,
    ) -> Self {
        Self {
            line: Ring::default(),
            busy_until: Time::ZERO,
            waiting: Backlog::default(),
            started: 0,
            stamps: stamps && !keeps_account,
            stamps_aside: stamps && keeps_account,
            is_watched: may_lose || keeps_account,
            may_lose,
            durations: Durations::new(link, time_unit),
        }
    }

    /// Delays each packet on the link by a random time of up to `most`, in order.
    pub fn set_jitter(&mut self, most: Duration, random: Random) {
        self.durations.set_jitter(Jitter { most, random });
    }

    /// Reads ahead the first packet in flight, the first waiting packet and the end of the line.
    pub fn read_ahead(&self) {
        for at in [0, self.started as usize, self.line.len()] {
            self.line.read_ahead(at);
        }
    }

    /// Appends a packet to the waiting packets.
    pub fn append(&mut self, packet: &Packet) {
        self.line.push(Flight { arrives: Time::NEVER, packet: *packet });
    }

    /// Returns the first waiting packet.
    pub fn first(&self) -> Option<&Packet> {
        self.line.get(self.started as usize).map(|flight| &flight.packet)
    }

    /// Starts the transmission of the first waiting packet, if there is one.
    pub fn start(&mut self, starts: Time) -> Option<Transmission> {
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
    #[inline]
    pub fn send(&mut self, packet: &Packet, starts: Time) -> Transmission {
        let crossing = self.durations.cross(packet.bytes, starts);
        let sent_at = if self.stamps && !packet.kind.is_answer() { starts } else { packet.sent_at };
        let onward = Packet { next_hop: packet.next_hop + 1, sent_at, ..*packet };
        let flight = Flight { arrives: crossing.arrives, packet: onward };
        self.put(flight);
        self.begin(crossing)
    }

    /// Puts a packet behind the packets in flight, and before the waiting packets.
    fn put(&mut self, flight: Flight) {
        if self.started as usize == self.line.len() {
            self.line.push(flight);
        } else {
            self.line.insert(self.started as usize, flight);
        }
    }

    /// Counts a transmission that has started.
    fn begin(&mut self, Crossing { ends, arrives }: Crossing) -> Transmission {
        let is_first = self.started == 0;
        self.busy_until = ends;
        self.started += 1;
        Transmission { ends, arrives, is_first, is_reported: false }
    }

    /// Returns the packet whose transmission has started last, if it is still in flight.
    pub fn last(&mut self) -> Option<&mut Packet> {
        let last = (self.started as usize).checked_sub(1)?;
        self.line.get_mut(last).map(|flight| &mut flight.packet)
    }

    /// Returns the waiting packets.
    pub fn waiting(&self) -> impl Iterator<Item = &Packet> {
        self.line.iter_from(self.started as usize).map(|flight| &flight.packet)
    }

    /// Returns the packets in flight.
    pub fn flights(&self) -> impl Iterator<Item = &Flight> {
        self.line.iter_from(0).take(self.started as usize)
    }

    /// Returns the number of packets in flight.
    pub fn in_flight(&self) -> u64 {
        u64::from(self.started)
    }

    /// Takes the packet that has arrived at the end of the link.
    pub fn arrive(&mut self) -> Packet {
        let Some(&Flight { packet, .. }) = self.line.get(0) else {
            unreachable!("an arrival is scheduled for a packet in flight")
        };
        self.line.drop_first();
        self.started -= 1;
        packet
    }

    /// Takes the first packet in flight, if there is one, for another partition.
    pub fn unload(&mut self) -> Option<Flight> {
        self.started = self.started.checked_sub(1)?;
        let flight = self.line.get(0).copied();
        self.line.drop_first();
        flight
    }

    /// Adds a packet in flight that another partition has transmitted.
    pub fn load(&mut self, flight: Flight) {
        self.put(flight);
        self.started += 1;
    }

    /// Returns the arrival time of the first packet in flight.
    pub fn next_arrival(&self) -> Option<Time> {
        self.line.get(0).filter(|_| self.started > 0).map(|first| first.arrives)
    }

    /// Returns the end of a transmission of `bytes` that starts at `starts`.
    pub fn end(&mut self, bytes: u16, starts: Time) -> Time {
        self.durations.end(bytes, starts)
    }

    /// True if the rate or the delay of the link changes.
    pub fn changes(&self) -> bool {
        self.durations.change
    }

    /// Returns start and end of the transmission of `bytes` that arrive at the end of the link now;
    /// `None` if the link changes.
    pub fn crossed(&mut self, bytes: u16, now: Time) -> Option<(Time, Time)> {
        let lasts = self.durations.lasts(bytes).ok()?;
        let ended = Time(now.0 - self.durations.delay.0);
        Some((Time(ended.0 - lasts.0), ended))
    }
}

/// Times of a packet on the link.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    /// End of its transmission.
    ends: Time,
    /// Arrival at the end of the link.
    arrives: Time,
}

/// Transmission times and delay of a link. Caches the transmission times of the last two sizes:
/// divisions are slow, and sizes repeat.
struct Durations {
    /// Boxed, because it is rarely read.
    speed: Box<Speed>,
    sizes: [u16; 2],
    lasts: [Duration; 2],
    /// Propagation delay, if it does not change.
    delay: Duration,
    /// If true, the rate or the delay changes.
    change: bool,
}

/// Rate of a link.
enum Speed {
    Constant { rate: Rate, time_unit: Duration },
    Changing(Changing),
}

/// A link whose rate or delay changes.
struct Changing {
    rate: Rate,
    time_unit: Duration,
    rates: Option<Arc<RateTrace>>,
    delay: Duration,
    delays: Option<Arc<DelayTrace>>,
    jitter: Option<Jitter>,
    /// Arrival of the last packet: no later packet may arrive before it.
    arrives: Time,
}

/// Random addition to the delay of a link.
struct Jitter {
    most: Duration,
    random: Random,
}

impl Jitter {
    fn draw(&mut self) -> Duration {
        Duration(self.random.below(self.most.0 + 1))
    }
}

impl Changing {
    /// Returns a link with this delay, whose rate and delay may follow traces.
    fn new(
        (rate, rates): (Rate, Option<Arc<RateTrace>>),
        (delay, delays): (Duration, Option<Arc<DelayTrace>>),
        time_unit: Duration,
    ) -> Self {
        Self { rate, time_unit, rates, delay, delays, jitter: None, arrives: Time::ZERO }
    }

    /// Returns the end of a transmission of `bytes` that starts at `starts`.
    fn end(&self, bytes: u16, starts: Time) -> Time {
        let bytes = Bytes(u64::from(bytes));
        let constant = || starts + self.rate.transmit(bytes).rounded_down(self.time_unit);
        self.rates.as_ref().map_or_else(constant, |trace| trace.transmit(bytes, starts))
    }

    fn cross(&mut self, bytes: u16, starts: Time) -> Crossing {
        let ends = self.end(bytes, starts);
        let delay = self.delays.as_ref().map_or(self.delay, |trace| trace.at(ends));
        let jitter = self.jitter.as_mut().map_or(Duration::ZERO, Jitter::draw);
        self.arrives = self.arrives.max(ends + delay + jitter);
        Crossing { ends, arrives: self.arrives }
    }
}

impl Durations {
    fn new(link: &Link, time_unit: Duration) -> Self {
        let Link { rate, delay, .. } = *link;
        let (rates, delays) = (link.trace.clone(), link.delays.clone());
        let change = rates.is_some() || delays.is_some();
        let speed = if change {
            Speed::Changing(Changing::new((rate, rates), (delay, delays), time_unit))
        } else {
            Speed::Constant { rate, time_unit }
        };
        Self { speed: Box::new(speed), sizes: [0; 2], lasts: [Duration::ZERO; 2], delay, change }
    }

    fn set_jitter(&mut self, jitter: Jitter) {
        if let Speed::Constant { rate, time_unit } = *self.speed {
            let changing = Changing::new((rate, None), (self.delay, None), time_unit);
            *self.speed = Speed::Changing(changing);
        }
        if let Speed::Changing(changing) = &mut *self.speed {
            changing.jitter = Some(jitter);
        }
        self.change = true;
    }

    /// Returns the transmission time of `bytes`, or the changing link. On such a link no size is
    /// cached, so every call gets here.
    fn lasts(&mut self, bytes: u16) -> Result<Duration, &mut Changing> {
        if self.sizes[0] != bytes {
            self.sizes.swap(0, 1);
            self.lasts.swap(0, 1);
            if self.sizes[0] != bytes {
                match &mut *self.speed {
                    Speed::Constant { rate, time_unit } => {
                        let exact = rate.transmit(Bytes(u64::from(bytes)));
                        self.lasts[0] = exact.rounded_down(*time_unit);
                    }
                    Speed::Changing(changing) => return Err(changing),
                }
                self.sizes[0] = bytes;
            }
        }
        Ok(self.lasts[0])
    }

    /// Returns the end of a transmission of `bytes` that starts at `starts`.
    fn end(&mut self, bytes: u16, starts: Time) -> Time {
        match self.lasts(bytes) {
            Ok(lasts) => starts + lasts,
            Err(changing) => changing.end(bytes, starts),
        }
    }

    /// Returns the times of a packet of `bytes` whose transmission starts at `starts`.
    fn cross(&mut self, bytes: u16, starts: Time) -> Crossing {
        let delay = self.delay;
        match self.lasts(bytes) {
            Ok(lasts) => Crossing { ends: starts + lasts, arrives: starts + lasts + delay },
            Err(changing) => changing.cross(bytes, starts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::graph::Loss;
    use crate::model::packet::{Format, Kind};

    /// A transmitter of a byte in a nanosecond, on a link with a delay of 500 ns.
    fn transmitter() -> Transmitter {
        let delay = Duration::from_nanos(500);
        let (rate, loss) = (Rate::from_gbps(8), Loss::None);
        let link = Link { from: 0, to: 1, rate, trace: None, delay, delays: None, loss };
        Transmitter::new(&link, false, false, false, Duration::ZERO)
    }

    fn packet(sequence: u32, bytes: u16) -> Packet {
        let format: Format = crate::base::schema::defaults();
        Packet { sequence, bytes, ..format.control(Kind::Data, 0, Time::ZERO) }
    }

    fn at(ns: u64) -> Time {
        Time::ZERO + Duration::from_nanos(ns)
    }

    #[test]
    fn transmission_times_may_be_whole_nanoseconds() {
        // 1090 B take 87.2 ns at 100 Gb/s, and 21.8 ns at 400 Gb/s ([hpcc19]'s simulator: 87 and 21).
        for (gbps, nanoseconds) in [(100, 87), (400, 21)] {
            let rate = Rate::from_gbps(gbps);
            let (delay, loss) = (Duration::ZERO, Loss::None);
            let link = Link { from: 0, to: 1, rate, trace: None, delay, delays: None, loss };
            let unit = Duration::from_nanos(1);
            let mut transmitter = Transmitter::new(&link, false, false, false, unit);
            assert_eq!(transmitter.send(&packet(0, 1_090), at(0)).ends, at(nanoseconds));
            assert_eq!(transmitter.end(1_090, at(5)), at(5 + nanoseconds));
        }
    }

    #[test]
    fn packets_in_flight_stand_before_waiting_packets() {
        let mut transmitter = transmitter();
        transmitter.append(&packet(0, 1_000));
        transmitter.append(&packet(1, 1_000));
        let first = transmitter.start(at(0)).unwrap();
        assert_eq!((first.arrives, first.is_first), (at(1_500), true));
        // A packet that did not wait here passes the packets that do.
        let second = transmitter.send(&packet(2, 40), at(1_000));
        assert_eq!((second.ends, second.is_first), (at(1_040), false));
        assert_eq!(transmitter.last().map(|packet| packet.sequence), Some(2));
        assert_eq!(transmitter.waiting().map(|packet| packet.sequence).collect::<Vec<_>>(), [1]);
        let flights = transmitter.flights().map(|flight| (flight.arrives, flight.packet.sequence));
        assert_eq!(flights.collect::<Vec<_>>(), [(at(1_500), 0), (at(1_540), 2)]);
        let arrived = transmitter.arrive();
        assert_eq!((arrived.sequence, arrived.next_hop), (0, 1), "a hop further");
        assert_eq!(transmitter.next_arrival(), Some(at(1_540)));
        transmitter.arrive();
        assert_eq!((transmitter.next_arrival(), transmitter.in_flight()), (None, 0));
        assert_eq!(transmitter.first().map(|packet| packet.sequence), Some(1));
        assert!(transmitter.start(at(2_000)).is_some_and(|transmission| transmission.is_first));
    }

    #[test]
    fn the_end_of_the_link_computes_the_transmission() {
        let mut transmitter = transmitter();
        for bytes in [1_000, 40, 700, 40] {
            let arrives = transmitter.send(&packet(0, bytes), at(9_000)).arrives;
            let ends = at(9_000 + u64::from(bytes));
            assert_eq!(transmitter.crossed(bytes, arrives), Some((at(9_000), ends)));
            assert_eq!(transmitter.end(bytes, at(9_000)), ends);
        }
    }

    #[test]
    fn exported_packets_arrive_at_the_same_time() {
        let [mut sender, mut receiver] = [(); 2].map(|()| transmitter());
        receiver.append(&packet(9, 100));
        sender.send(&packet(0, 1_000), at(0));
        let flight = sender.unload().unwrap();
        assert!(sender.unload().is_none());
        receiver.load(flight);
        assert_eq!((receiver.next_arrival(), receiver.in_flight()), (Some(at(1_500)), 1));
        assert_eq!(receiver.arrive().sequence, 0);
    }
}

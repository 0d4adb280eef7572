//! What a port's transmitter does while packets wait, if accounts are kept.
//!
//! It keeps running totals. A packet that waits notes them when it comes and when it leaves; the differences
//! are its wait in parts, exact under every discipline.

use rustc_hash::FxHashMap;

use super::journeys;
use super::ring::Ring;
use super::traffic::Class;
use crate::account::Waits;
use crate::packet::{FlowNumber, Kind, Packet};
use crate::units::{Duration, Time};

/// How long a transmitter has been at what, as a packet sees it. Numbers may have wrapped: only differences
/// count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Sending.
    busy: u64,
    /// Sending control packets.
    control: u64,
    /// Sending data of the packet's flow.
    own: u64,
    /// Idle, while the packet's class was paused.
    paused: u64,
}

/// The beginning of a transmission.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exit {
    /// When that was.
    pub starts: Time,
    /// What the transmitter had done by then.
    pub totals: Totals,
}

/// How long packets waited, and what transmitters did meanwhile: sums of moments that are added when waits
/// end and taken off when they begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    lasted: u64,
    during: Totals,
}

impl Waited {
    /// A wait begins.
    pub fn begin(&mut self, at: Time, totals: &Totals) {
        self.lasted = self.lasted.wrapping_sub(at.0);
        self.during = self.during.with(totals, u64::wrapping_sub);
    }

    /// The wait ends.
    pub fn end(&mut self, at: Time, totals: &Totals) {
        self.lasted = self.lasted.wrapping_add(at.0);
        self.during = self.during.with(totals, u64::wrapping_add);
    }

    /// Divides waits that have all ended.
    ///
    /// # Panics
    /// If the parts are more than the whole: then a port has lost count of what it did.
    pub fn divided(&self) -> Waits {
        let Totals { busy, control, own, paused } = self.during;
        let (others, idle) = (
            busy.checked_sub(control.wrapping_add(own)),
            self.lasted.checked_sub(busy.wrapping_add(paused)),
        );
        let (Some(others), Some(idle)) = (others, idle) else {
            panic!("a wait does not divide: {self:?}")
        };
        [own, others, control, paused, idle].map(Duration)
    }
}

impl Totals {
    fn with(&self, other: &Self, by: fn(u64, u64) -> u64) -> Self {
        Self {
            busy: by(self.busy, other.busy),
            control: by(self.control, other.control),
            own: by(self.own, other.own),
            paused: by(self.paused, other.paused),
        }
    }
}

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The number of its parcel.
    pub number: u32,
    /// When it came.
    pub came: Time,
    /// What the transmitter had done by then.
    pub totals: Totals,
}

/// A flow of which data waits.
#[derive(Clone, Copy, Debug)]
struct Stay {
    /// How many packets.
    waiting: u32,
    class: Class,
    /// Time spent sending its data since the first of them came.
    sent: u64,
}

/// The pauses of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Paused {
    /// Time spent idle for them.
    idle: u64,
    /// When the present one began.
    since: Option<Time>,
}

/// What a transmitter has done so far. What every transmission touches stands first, in a line of memory.
#[repr(C, align(64))]
pub struct Doings {
    /// When the last transmission ends, and of what it is.
    free: Time,
    last: (FlowNumber, Kind),
    busy: u64,
    control: u64,
    /// By what is on the wire, in order.
    exits: Ring<Exit>,
    stays: FxHashMap<FlowNumber, Stay>,
    /// By class, of those up to the last that was ever paused.
    paused: Vec<Paused>,
    /// Whether packets that are no answers get their time stamp here.
    pub stamps: bool,
    /// The packet that was last let wait, until that is written down elsewhere.
    pub entry: Option<Entry>,
}

impl Doings {
    /// Of a port that has done nothing.
    pub fn new(stamps: bool) -> Self {
        Self {
            free: Time::ZERO,
            last: (FlowNumber::MAX, Kind::Pause),
            busy: 0,
            control: 0,
            exits: Ring::default(),
            stays: FxHashMap::default(),
            paused: Vec::new(),
            stamps,
            entry: None,
        }
    }

    /// A packet of a class has to wait from now on.
    pub fn enter(&mut self, packet: &Packet, class: Class, now: Time) {
        let left = self.free.0.saturating_sub(now.0);
        let (flow, kind) = self.last;
        let busy = self.busy.wrapping_sub(left);
        let control = self.control.wrapping_sub(if kind.is_control() { left } else { 0 });
        if packet.kind.is_control() {
            self.note(packet, now, Totals { busy, control, own: 0, paused: 0 });
            return;
        }
        let paused = self.idle_for(class, now).0;
        let stay = self.stays.entry(packet.flow).or_insert(Stay { waiting: 0, class, sent: 0 });
        stay.waiting += 1;
        let is_own = flow == packet.flow && !kind.is_control();
        let own = stay.sent.wrapping_sub(if is_own { left } else { 0 });
        self.note(packet, now, Totals { busy, control, own, paused });
    }

    fn note(&mut self, packet: &Packet, came: Time, totals: Totals) {
        if !packet.kind.is_frame() {
            let number = journeys::number(packet) as u32;
            self.entry = Some(Entry { number, came, totals });
        }
    }

    /// A packet that waited was dropped.
    pub fn reject(&mut self, packet: &Packet) {
        if !packet.kind.is_control() {
            self.part(packet.flow);
        }
    }

    /// One packet of a flow waits no more; says what its flow's stay was.
    fn part(&mut self, flow: FlowNumber) -> Option<Stay> {
        let stay = self.stays.get_mut(&flow)?;
        stay.waiting -= 1;
        let was = *stay;
        if stay.waiting == 0 {
            self.stays.remove(&flow);
        }
        Some(was)
    }

    /// A transmission starts, that ends then.
    pub fn start(&mut self, packet: &Packet, starts: Time, ends: Time) {
        for class in 0..self.paused.len() {
            self.paused[class].idle = self.idle_for(class as Class, starts).0;
        }
        let lasts = (ends - starts).0;
        let mut totals = Totals { busy: self.busy, control: self.control, own: 0, paused: 0 };
        if packet.kind.is_control() {
            self.control = self.control.wrapping_add(lasts);
        } else if !self.stays.is_empty()
            && let Some(stay) = self.part(packet.flow)
        {
            totals.own = stay.sent;
            totals.paused =
                self.paused.get(usize::from(stay.class)).map_or(0, |paused| paused.idle);
            if let Some(stay) = self.stays.get_mut(&packet.flow) {
                stay.sent = stay.sent.wrapping_add(lasts);
            }
        }
        self.busy = self.busy.wrapping_add(lasts);
        (self.free, self.last) = (ends, (packet.flow, packet.kind));
        self.exits.push(Exit { starts, totals });
    }

    /// A class is paused, unless it is already.
    pub fn pause(&mut self, class: Class, now: Time) {
        let class = usize::from(class);
        if self.paused.len() <= class {
            self.paused.resize(class + 1, Paused::default());
        }
        self.paused[class].since.get_or_insert(now);
    }

    /// A class's pause ends, if one is on.
    pub fn resume(&mut self, class: Class, now: Time) {
        let idle = self.idle_for(class, now).0;
        if let Some(paused) = self.paused.get_mut(usize::from(class)) {
            *paused = Paused { idle, since: None };
        }
    }

    /// How long the transmitter has been idle for pauses of a class.
    pub fn idle_for(&self, class: Class, now: Time) -> Duration {
        let Some(paused) = self.paused.get(usize::from(class)) else { return Duration::ZERO };
        let until_now = |since: Time| now.0.saturating_sub(since.max(self.free).0);
        Duration(paused.idle + paused.since.map_or(0, until_now))
    }

    /// What was noted of the first packet on the wire, which leaves it.
    pub fn exit(&mut self) -> Exit {
        let exit = self.exits.get(0).copied().unwrap_or_default();
        self.exits.drop_first();
        exit
    }

    /// A packet is put on the wire whose transmission has started elsewhere.
    pub fn load(&mut self, starts: Time) {
        self.exits.push(Exit { starts, totals: Totals::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Format;

    fn at(ns: u64) -> Time {
        Time::ZERO + Duration::from_nanos(ns)
    }

    fn packet(kind: Kind, flow: FlowNumber) -> Packet {
        let format: Format = crate::parameters::defaults();
        format.control(kind, flow, Time::ZERO)
    }

    /// How a wait divides, in nanoseconds: own, others, control, paused, idle.
    fn parts(doings: &Doings, entry: Entry) -> [u64; 5] {
        let Exit { starts, totals } = doings.exits.get(doings.exits.len() - 1).unwrap();
        let mut waited = Waited::default();
        waited.begin(entry.came, &entry.totals);
        waited.end(*starts, totals);
        waited.divided().map(|part| part.0 / 1000)
    }

    /// A packet has to wait from now on.
    fn enter(doings: &mut Doings, packet: &Packet, class: Class, now: u64) -> Entry {
        doings.enter(packet, class, at(now));
        doings.entry.take().unwrap()
    }

    #[test]
    fn a_wait_divides_by_what_was_sent_meanwhile_whatever_came_first() {
        let mut doings = Doings::new(false);
        let (one, other, ack) =
            (packet(Kind::Data, 1), packet(Kind::Data, 2), packet(Kind::Ack, 3));
        let start = |doings: &mut Doings, packet: &Packet, from, to| {
            doings.start(packet, at(from), at(to));
        };
        // Another packet of flow 1 is being sent until 100 when one comes at 40; then one of flow 2, an
        // ACK, and after a moment in which nothing goes it.
        start(&mut doings, &one, 0, 100);
        let first = enter(&mut doings, &one, 0, 40);
        let second = enter(&mut doings, &other, 0, 70);
        start(&mut doings, &other, 100, 130);
        assert_eq!(parts(&doings, second), [0, 30, 0, 0, 0]);
        start(&mut doings, &ack, 130, 135);
        start(&mut doings, &one, 142, 242);
        assert_eq!(parts(&doings, first), [60, 30, 5, 0, 7]);
        assert!(doings.stays.is_empty(), "nobody waits");
    }

    #[test]
    fn a_pause_counts_from_when_the_transmitter_falls_idle_to_its_end() {
        let mut doings = Doings::new(false);
        let packet = packet(Kind::Data, 1);
        doings.start(&packet, at(0), at(100));
        // Class 1 is paused from 60 to 400 and from 450 on; a packet of it comes at 80, another at 300.
        doings.pause(1, at(60));
        let first = enter(&mut doings, &packet, 1, 80);
        // Class 0 goes on meanwhile.
        let passing = Packet { flow: 2, ..packet };
        doings.start(&passing, at(150), at(250));
        let second = enter(&mut doings, &packet, 1, 300);
        doings.resume(1, at(400));
        doings.start(&packet, at(400), at(500));
        assert_eq!(parts(&doings, first), [20, 100, 0, 200, 0]);
        doings.pause(1, at(450));
        doings.resume(1, at(700));
        doings.start(&packet, at(700), at(800));
        assert_eq!(parts(&doings, second), [100, 0, 0, 300, 0]);
    }
}

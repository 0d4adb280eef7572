//! What a port's transmitter does while packets wait, if accounts are kept.
//!
//! It keeps running totals. A packet that waits notes them when it comes and when it leaves; the differences
//! are its wait in parts, exact under every discipline.

use rustc_hash::FxHashMap;

use super::journeys;
use super::pauses::Pauses;
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

impl Totals {
    /// Divides a wait that began with the totals `before`.
    ///
    /// # Panics
    /// If the parts are more than the whole: then a port has lost count of what it did.
    pub fn since(&self, before: &Self, wait: Duration) -> Waits {
        let past = |of: fn(&Self) -> u64| of(self).wrapping_sub(of(before));
        let (busy, control, own) = (past(|t| t.busy), past(|t| t.control), past(|t| t.own));
        let paused = past(|t| t.paused);
        let (others, idle) = (
            busy.checked_sub(control.wrapping_add(own)),
            wait.0.checked_sub(busy.wrapping_add(paused)),
        );
        let (Some(others), Some(idle)) = (others, idle) else {
            panic!("a wait of {wait} does not divide: {before:?} to {self:?}")
        };
        [own, others, control, paused, idle].map(Duration)
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

/// What a transmitter has done so far.
pub struct Doings {
    /// When the last transmission ends, and of what it is.
    free: Time,
    last: (FlowNumber, Kind),
    busy: u64,
    control: u64,
    /// By class: idle for a pause.
    paused: Box<[u64]>,
    stays: FxHashMap<FlowNumber, Stay>,
    /// By what is on the wire, in order.
    exits: Ring<Exit>,
    /// The packets that were let wait and are not yet written down elsewhere.
    pub entries: Vec<Entry>,
    /// Whether packets that are no answers get their time stamp here.
    pub stamps: bool,
}

impl Doings {
    /// Of a port with so many classes, that has done nothing.
    pub fn new(classes: usize, stamps: bool) -> Self {
        Self {
            free: Time::ZERO,
            last: (FlowNumber::MAX, Kind::Pause),
            busy: 0,
            control: 0,
            paused: vec![0; classes].into(),
            stays: FxHashMap::default(),
            exits: Ring::default(),
            entries: Vec::new(),
            stamps,
        }
    }

    /// A packet of a class has to wait from now on.
    pub fn enter(&mut self, packet: &Packet, class: Class, now: Time, pauses: &[Pauses]) {
        let left = self.free.0.saturating_sub(now.0);
        let (flow, kind) = self.last;
        let busy = self.busy.wrapping_sub(left);
        let control = self.control.wrapping_sub(if kind.is_control() { left } else { 0 });
        if packet.kind.is_control() {
            self.note(packet, now, Totals { busy, control, own: 0, paused: 0 });
            return;
        }
        let paused = self.paused_by(class, now, pauses);
        let stay = self.stays.entry(packet.flow).or_insert(Stay { waiting: 0, class, sent: 0 });
        stay.waiting += 1;
        let is_own = flow == packet.flow && !kind.is_control();
        let own = stay.sent.wrapping_sub(if is_own { left } else { 0 });
        self.note(packet, now, Totals { busy, control, own, paused });
    }

    fn note(&mut self, packet: &Packet, came: Time, totals: Totals) {
        if !packet.kind.is_frame() {
            let number = journeys::number(packet) as u32;
            self.entries.push(Entry { number, came, totals });
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
    pub fn start(&mut self, packet: &Packet, starts: Time, ends: Time, pauses: &[Pauses]) {
        for class in 0..self.paused.len() {
            self.paused[class] = self.paused_by(class as Class, starts, pauses);
        }
        let lasts = (ends - starts).0;
        let mut totals = Totals { busy: self.busy, control: self.control, own: 0, paused: 0 };
        if packet.kind.is_control() {
            self.control = self.control.wrapping_add(lasts);
        } else if !self.stays.is_empty()
            && let Some(stay) = self.part(packet.flow)
        {
            totals.own = stay.sent;
            totals.paused = self.paused[usize::from(stay.class)];
            if let Some(stay) = self.stays.get_mut(&packet.flow) {
                stay.sent = stay.sent.wrapping_add(lasts);
            }
        }
        self.busy = self.busy.wrapping_add(lasts);
        (self.free, self.last) = (ends, (packet.flow, packet.kind));
        self.exits.push(Exit { starts, totals });
    }

    /// A class's pause ends.
    pub fn resume(&mut self, class: Class, now: Time, pauses: &[Pauses]) {
        self.paused[usize::from(class)] = self.paused_by(class, now, pauses);
    }

    /// How long the transmitter has been idle for a pause of a class.
    fn paused_by(&self, class: Class, now: Time, pauses: &[Pauses]) -> u64 {
        let idle = pauses[usize::from(class)]
            .since
            .map_or(0, |since| now.0.saturating_sub(since.max(self.free).0));
        self.paused[usize::from(class)] + idle
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
    fn parts(doings: &Doings, entered: Totals, wait: u64) -> [u64; 5] {
        let last = doings.exits.len() - 1;
        let exit = doings.exits.get(last).unwrap();
        exit.totals.since(&entered, Duration::from_nanos(wait)).map(|part| part.0 / 1000)
    }

    #[test]
    fn a_wait_divides_by_what_was_sent_meanwhile_whatever_came_first() {
        let (mut doings, pauses) = (Doings::new(1, false), [Pauses::default()]);
        let (one, other, ack) =
            (packet(Kind::Data, 1), packet(Kind::Data, 2), packet(Kind::Ack, 3));
        let start = |doings: &mut Doings, packet: &Packet, from, to| {
            doings.start(packet, at(from), at(to), &pauses);
        };
        // Another packet of flow 1 is being sent until 100 when one comes at 40; then one of flow 2, an
        // ACK, and after a moment in which nothing goes it.
        start(&mut doings, &one, 0, 100);
        doings.enter(&one, 0, at(40), &pauses);
        doings.enter(&other, 0, at(70), &pauses);
        let [first, second] = [0, 1].map(|place| doings.entries[place].totals);
        start(&mut doings, &other, 100, 130);
        assert_eq!(parts(&doings, second, 30), [0, 30, 0, 0, 0]);
        start(&mut doings, &ack, 130, 135);
        start(&mut doings, &one, 142, 242);
        assert_eq!(parts(&doings, first, 102), [60, 30, 5, 0, 7]);
        assert!(doings.stays.is_empty(), "nobody waits");
    }

    #[test]
    fn a_pause_counts_from_when_the_transmitter_falls_idle_to_its_end() {
        let (mut doings, mut pauses) = (Doings::new(2, false), [Pauses::default(); 2]);
        let packet = packet(Kind::Data, 1);
        doings.start(&packet, at(0), at(100), &pauses);
        // Class 1 is paused from 60 to 400 and from 450 on; a packet of it comes at 80, another at 300.
        pauses[1].begin(at(60));
        doings.enter(&packet, 1, at(80), &pauses);
        // Class 0 goes on meanwhile.
        let passing = Packet { flow: 2, ..packet };
        doings.start(&passing, at(150), at(250), &pauses);
        doings.enter(&packet, 1, at(300), &pauses);
        let [first, second] = [0, 1].map(|place| doings.entries[place].totals);
        doings.resume(1, at(400), &pauses);
        pauses[1].end(at(400));
        doings.start(&packet, at(400), at(500), &pauses);
        assert_eq!(parts(&doings, first, 320), [20, 100, 0, 200, 0]);
        pauses[1].begin(at(450));
        doings.resume(1, at(700), &pauses);
        pauses[1].end(at(700));
        doings.start(&packet, at(700), at(800), &pauses);
        assert_eq!(parts(&doings, second, 400), [100, 0, 0, 300, 0]);
    }
}

//! What a port's transmitter does while packets wait, if accounts are kept.
//!
//! It keeps running totals. A packet that waits notes them when it comes and when it leaves; the differences
//! are its wait in parts, exact under every discipline.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::packet_records;
use crate::base::units::{Duration, Time};
use crate::breakdown::Waits;
use crate::model::packet::{FlowNumber, Packet};
use crate::network::link::ring::Ring;
use crate::network::switch::traffic_classes::Class;

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

/// How long packets waited, and what transmitters did meanwhile: sums of moments that are added when waits
/// end and taken off when they begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    lasted: u64,
    during: Totals,
}

impl Waited {
    /// What came after another sum was this.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            lasted: self.lasted.wrapping_sub(before.lasted),
            during: self.during.with(&before.during, u64::wrapping_sub),
        }
    }

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
#[derive(Default)]
#[repr(C, align(64))]
pub struct PortActivity {
    /// When the last transmission ends, and of which flow's data it is, if it is of data.
    free: Time,
    last: Option<FlowNumber>,
    busy: u64,
    control: u64,
    /// By what is on the wire and has waited, in order: what had been done when its transmission started.
    exits: Ring<Totals>,
    stays: FxHashMap<FlowNumber, Stay>,
    /// By class, of those up to the last that was ever paused.
    paused: Vec<Paused>,
    /// When transmissions started of those on the wire, in order, if that cannot be told at its end.
    starts: Ring<Time>,
}

impl PortActivity {
    /// A packet of a class has to wait from now on: what has been done by then.
    #[inline]
    pub fn enter(&mut self, packet: &Packet, class: Class, now: Time) -> Totals {
        let left = self.free.0.saturating_sub(now.0);
        let busy = self.busy.wrapping_sub(left);
        let control = self.control.wrapping_sub(if self.last.is_none() { left } else { 0 });
        if packet.kind.is_control() {
            return Totals { busy, control, own: 0, paused: 0 };
        }
        let paused = self.idle_for(class, now).0;
        let stay = self.stays.entry(packet.flow).or_insert(Stay { waiting: 0, class, sent: 0 });
        stay.waiting += 1;
        let is_own = self.last == Some(packet.flow);
        let own = stay.sent.wrapping_sub(if is_own { left } else { 0 });
        Totals { busy, control, own, paused }
    }

    /// A packet that waited was dropped.
    pub fn reject(&mut self, packet: &Packet) {
        if !packet.kind.is_control() {
            self.part(packet.flow, 0);
        }
    }

    /// One packet of a flow waits no more, and its transmission lasts so long; says what its flow's stay was.
    fn part(&mut self, flow: FlowNumber, lasts: u64) -> Option<Stay> {
        let Entry::Occupied(mut place) = self.stays.entry(flow) else { return None };
        let stay = place.get_mut();
        let was = *stay;
        stay.waiting -= 1;
        stay.sent = stay.sent.wrapping_add(lasts);
        if stay.waiting == 0 {
            place.remove();
        }
        Some(was)
    }

    /// The transmission of a packet starts, that has waited or not, and ends then.
    pub fn start(&mut self, packet: &mut Packet, has_waited: bool, starts: Time, ends: Time) {
        for class in 0..self.paused.len() {
            self.paused[class].idle = self.idle_for(class as Class, starts).0;
        }
        let lasts = (ends - starts).0;
        let is_control = packet.kind.is_control();
        if !packet.kind.is_frame() {
            packet_records::set_waited(packet, has_waited);
            if has_waited {
                let stay = if is_control { None } else { self.part(packet.flow, lasts) };
                let paused = |stay: &Stay| self.paused.get(usize::from(stay.class));
                self.exits.push(Totals {
                    busy: self.busy,
                    control: self.control,
                    own: stay.map_or(0, |stay| stay.sent),
                    paused: stay.as_ref().and_then(paused).map_or(0, |paused| paused.idle),
                });
            }
        }
        if is_control {
            self.control = self.control.wrapping_add(lasts);
        }
        self.busy = self.busy.wrapping_add(lasts);
        (self.free, self.last) = (ends, (!is_control).then_some(packet.flow));
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

    /// What had been done when the transmission started of the first on the wire that has waited, and leaves
    /// it.
    pub fn exit(&mut self) -> Totals {
        let exit = self.exits.get(0).copied().unwrap_or_default();
        self.exits.drop_first();
        exit
    }

    /// A packet is put on the wire whose transmission started then, here or elsewhere.
    pub fn note_start(&mut self, starts: Time) {
        self.starts.push(starts);
    }

    /// When the transmission started of the first packet on the wire, which leaves it.
    pub fn take_start(&mut self) -> Time {
        let starts = self.starts.get(0).copied().unwrap_or_default();
        self.starts.drop_first();
        starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::packet::{Format, Kind};

    fn at(ns: u64) -> Time {
        Time::ZERO + Duration::from_nanos(ns)
    }

    fn packet(kind: Kind, flow: FlowNumber) -> Packet {
        let format: Format = crate::base::schema::defaults();
        format.control(kind, flow, Time::ZERO)
    }

    /// A packet comes and has to wait.
    fn enter(activity: &mut PortActivity, packet: &Packet, class: Class, now: u64) -> Waited {
        let mut waited = Waited::default();
        waited.begin(at(now), &activity.enter(packet, class, at(now)));
        waited
    }

    /// A packet is sent at once.
    fn send(activity: &mut PortActivity, packet: &Packet, from: u64, to: u64) {
        activity.start(&mut packet.clone(), false, at(from), at(to));
    }

    /// A packet is sent that has waited; how that divides, in ns: own, others, control, paused, idle.
    fn parts(
        activity: &mut PortActivity,
        packet: &Packet,
        from: u64,
        to: u64,
        mut waited: Waited,
    ) -> [u64; 5] {
        activity.start(&mut packet.clone(), true, at(from), at(to));
        waited.end(at(from), &activity.exit());
        waited.divided().map(|part| part.0 / 1000)
    }

    #[test]
    fn a_wait_divides_by_what_was_sent_meanwhile_whatever_came_first() {
        let mut activity = PortActivity::default();
        let (one, other, ack) =
            (packet(Kind::Data, 1), packet(Kind::Data, 2), packet(Kind::Ack, 3));
        // Another packet of flow 1 is being sent until 100 when one comes at 40; then one of flow 2, an
        // ACK, and after a moment in which nothing goes it.
        send(&mut activity, &one, 0, 100);
        let first = enter(&mut activity, &one, 0, 40);
        let second = enter(&mut activity, &other, 0, 70);
        assert_eq!(parts(&mut activity, &other, 100, 130, second), [0, 30, 0, 0, 0]);
        send(&mut activity, &ack, 130, 135);
        assert_eq!(parts(&mut activity, &one, 142, 242, first), [60, 30, 5, 0, 7]);
        assert!(activity.stays.is_empty(), "nobody waits");
    }

    #[test]
    fn a_pause_counts_from_when_the_transmitter_falls_idle_to_its_end() {
        let mut activity = PortActivity::default();
        let packet = packet(Kind::Data, 1);
        send(&mut activity, &packet, 0, 100);
        // Class 1 is paused from 60 to 400 and from 450 on; a packet of it comes at 80, another at 300.
        activity.pause(1, at(60));
        let first = enter(&mut activity, &packet, 1, 80);
        // Class 0 goes on meanwhile.
        let passing = Packet { flow: 2, ..packet };
        send(&mut activity, &passing, 150, 250);
        let second = enter(&mut activity, &packet, 1, 300);
        activity.resume(1, at(400));
        assert_eq!(parts(&mut activity, &packet, 400, 500, first), [20, 100, 0, 200, 0]);
        activity.pause(1, at(450));
        activity.resume(1, at(700));
        assert_eq!(parts(&mut activity, &packet, 700, 800, second), [100, 0, 0, 300, 0]);
    }
}

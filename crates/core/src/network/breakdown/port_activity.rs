//! Activity of a port's transmitter while packets wait, for the FCT breakdown.
//!
//! The transmitter keeps running totals. A waiting packet reads them when it arrives and when it departs;
//! the differences split its wait by cause, exactly and for every queue.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::packet_records;
use crate::base::units::{Duration, Time};
use crate::breakdown::QueueingDelays;
use crate::model::packet::{FlowNumber, Packet};
use crate::network::link::ring::Ring;
use crate::network::switch::traffic_classes::Class;

/// Running totals of a transmitter's time, as one packet counts it. They may wrap: only differences are
/// used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Transmitting.
    busy: u64,
    /// Transmitting control packets.
    control: u64,
    /// Transmitting data of the packet's flow.
    own: u64,
    /// Idle while the packet's class was paused.
    paused: u64,
}

/// Waits of a packet, and the activity of transmitters meanwhile: the sums of times and totals at which
/// waits end, less those at which they begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitSums {
    lasted: u64,
    during: Totals,
}

impl WaitSums {
    /// Returns the waits since an earlier sum.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            lasted: self.lasted.wrapping_sub(before.lasted),
            during: self.during.with(&before.during, u64::wrapping_sub),
        }
    }

    /// Begins a wait.
    pub fn begin(&mut self, at: Time, totals: &Totals) {
        self.lasted = self.lasted.wrapping_sub(at.0);
        self.during = self.during.with(totals, u64::wrapping_sub);
    }

    /// Ends a wait.
    pub fn end(&mut self, at: Time, totals: &Totals) {
        self.lasted = self.lasted.wrapping_add(at.0);
        self.during = self.during.with(totals, u64::wrapping_add);
    }

    /// Splits waits that have all ended by cause.
    ///
    /// # Panics
    /// If the causes add up to more than the waits.
    pub fn divided(&self) -> QueueingDelays {
        let Totals { busy, control, own, paused } = self.during;
        let (others, idle) = (
            busy.checked_sub(control.wrapping_add(own)),
            self.lasted.checked_sub(busy.wrapping_add(paused)),
        );
        let (Some(others), Some(idle)) = (others, idle) else {
            panic!("the causes of a wait exceed the wait: {self:?}")
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

/// State of a flow with waiting data.
#[derive(Clone, Copy, Debug)]
struct WaitingFlow {
    /// Number of waiting packets.
    waiting: u32,
    class: Class,
    /// Time spent transmitting data of the flow since the first of them arrived.
    sent: u64,
}

/// Pauses of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Paused {
    /// Idle time during pauses.
    idle: u64,
    /// Begin of the present pause.
    since: Option<Time>,
}

/// Activity of a transmitter. The fields that every transmission touches stand first, in one line of
/// memory.
#[derive(Default)]
#[repr(C, align(64))]
pub struct PortActivity {
    /// End of the last transmission.
    free: Time,
    /// Flow of the last transmission, if it was of data.
    last: Option<FlowNumber>,
    busy: u64,
    control: u64,
    /// For the packets in flight that waited, in order: totals at the start of their transmission.
    exits: Ring<Totals>,
    flows: FxHashMap<FlowNumber, WaitingFlow>,
    /// By class, up to the last class that was ever paused.
    paused: Vec<Paused>,
    /// For the packets in flight, in order: start of the transmission, if the end of the link cannot
    /// compute it.
    starts: Ring<Time>,
}

impl PortActivity {
    /// Handles a packet of a class that starts to wait. Returns the totals up to now.
    #[inline]
    pub fn enter(&mut self, packet: &Packet, class: Class, now: Time) -> Totals {
        let left = self.free.0.saturating_sub(now.0);
        let busy = self.busy.wrapping_sub(left);
        let control = self.control.wrapping_sub(if self.last.is_none() { left } else { 0 });
        if packet.kind.is_control() {
            return Totals { busy, control, own: 0, paused: 0 };
        }
        let paused = self.idle_for(class, now).0;
        let flow =
            self.flows.entry(packet.flow).or_insert(WaitingFlow { waiting: 0, class, sent: 0 });
        flow.waiting += 1;
        let is_own = self.last == Some(packet.flow);
        let own = flow.sent.wrapping_sub(if is_own { left } else { 0 });
        Totals { busy, control, own, paused }
    }

    /// Handles the drop of a packet that waited.
    pub fn reject(&mut self, packet: &Packet) {
        if !packet.kind.is_control() {
            self.leave(packet.flow, 0);
        }
    }

    /// Handles a data packet of a flow that stops waiting and is transmitted for `lasts`. Returns
    /// the state of the flow before.
    fn leave(&mut self, flow: FlowNumber, lasts: u64) -> Option<WaitingFlow> {
        let Entry::Occupied(mut entry) = self.flows.entry(flow) else { return None };
        let flow = entry.get_mut();
        let before = *flow;
        flow.waiting -= 1;
        flow.sent = flow.sent.wrapping_add(lasts);
        if flow.waiting == 0 {
            entry.remove();
        }
        Some(before)
    }

    /// Handles the start of a transmission.
    #[inline]
    pub fn start(&mut self, packet: &mut Packet, has_waited: bool, starts: Time, ends: Time) {
        for class in 0..self.paused.len() {
            self.paused[class].idle = self.idle_for(class as Class, starts).0;
        }
        let lasts = (ends - starts).0;
        let is_control = packet.kind.is_control();
        if !packet.kind.is_frame() {
            packet_records::set_waited(packet, has_waited);
            if has_waited {
                let flow = if is_control { None } else { self.leave(packet.flow, lasts) };
                let paused = |flow: &WaitingFlow| self.paused.get(usize::from(flow.class));
                self.exits.push(Totals {
                    busy: self.busy,
                    control: self.control,
                    own: flow.map_or(0, |flow| flow.sent),
                    paused: flow.as_ref().and_then(paused).map_or(0, |paused| paused.idle),
                });
            }
        }
        if is_control {
            self.control = self.control.wrapping_add(lasts);
        }
        self.busy = self.busy.wrapping_add(lasts);
        (self.free, self.last) = (ends, (!is_control).then_some(packet.flow));
    }

    /// Pauses a class, unless it is paused already.
    pub fn pause(&mut self, class: Class, now: Time) {
        let class = usize::from(class);
        if self.paused.len() <= class {
            self.paused.resize(class + 1, Paused::default());
        }
        self.paused[class].since.get_or_insert(now);
    }

    /// Resumes a class, if it is paused.
    pub fn resume(&mut self, class: Class, now: Time) {
        let idle = self.idle_for(class, now).0;
        if let Some(paused) = self.paused.get_mut(usize::from(class)) {
            *paused = Paused { idle, since: None };
        }
    }

    /// Returns the idle time during pauses of a class.
    pub fn idle_for(&self, class: Class, now: Time) -> Duration {
        let Some(paused) = self.paused.get(usize::from(class)) else { return Duration::ZERO };
        let until_now = |since: Time| now.0.saturating_sub(since.max(self.free).0);
        Duration(paused.idle + paused.since.map_or(0, until_now))
    }

    /// Takes the totals at the start of transmission of the first packet in flight that waited.
    pub fn exit(&mut self) -> Totals {
        let exit = self.exits.get(0).copied().unwrap_or_default();
        self.exits.drop_first();
        exit
    }

    /// Records the start of the transmission of a packet in flight.
    pub fn record_start(&mut self, starts: Time) {
        self.starts.push(starts);
    }

    /// Takes the start of the transmission of the first packet in flight.
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

    /// A packet arrives and waits.
    fn enter(activity: &mut PortActivity, packet: &Packet, class: Class, now: u64) -> WaitSums {
        let mut waited = WaitSums::default();
        waited.begin(at(now), &activity.enter(packet, class, at(now)));
        waited
    }

    /// A packet is transmitted without a wait.
    fn send(activity: &mut PortActivity, packet: &Packet, from: u64, to: u64) {
        activity.start(&mut packet.clone(), false, at(from), at(to));
    }

    /// A packet is transmitted after a wait. Returns the causes in ns: own, others, control, paused,
    /// idle.
    fn causes(
        activity: &mut PortActivity,
        packet: &Packet,
        from: u64,
        to: u64,
        mut waited: WaitSums,
    ) -> [u64; 5] {
        activity.start(&mut packet.clone(), true, at(from), at(to));
        waited.end(at(from), &activity.exit());
        waited.divided().map(|cause| cause.0 / 1000)
    }

    #[test]
    fn a_wait_is_split_by_the_transmissions_during_it_in_any_order() {
        let mut activity = PortActivity::default();
        let (one, other, ack) =
            (packet(Kind::Data, 1), packet(Kind::Data, 2), packet(Kind::Ack, 3));
        // A packet of flow 1 arrives at 40, while another is transmitted until 100. Then a packet of
        // flow 2 departs, an ACK, and after an idle time the packet.
        send(&mut activity, &one, 0, 100);
        let first = enter(&mut activity, &one, 0, 40);
        let second = enter(&mut activity, &other, 0, 70);
        assert_eq!(causes(&mut activity, &other, 100, 130, second), [0, 30, 0, 0, 0]);
        send(&mut activity, &ack, 130, 135);
        assert_eq!(causes(&mut activity, &one, 142, 242, first), [60, 30, 5, 0, 7]);
        assert!(activity.flows.is_empty(), "no packet waits");
    }

    #[test]
    fn a_pause_counts_from_the_end_of_the_last_transmission() {
        let mut activity = PortActivity::default();
        let packet = packet(Kind::Data, 1);
        send(&mut activity, &packet, 0, 100);
        // Class 1 is paused from 60 to 400 and from 450 on. Packets of it arrive at 80 and at 300.
        activity.pause(1, at(60));
        let first = enter(&mut activity, &packet, 1, 80);
        // Class 0 is not paused.
        let passing = Packet { flow: 2, ..packet };
        send(&mut activity, &passing, 150, 250);
        let second = enter(&mut activity, &packet, 1, 300);
        activity.resume(1, at(400));
        assert_eq!(causes(&mut activity, &packet, 400, 500, first), [20, 100, 0, 200, 0]);
        activity.pause(1, at(450));
        activity.resume(1, at(700));
        assert_eq!(causes(&mut activity, &packet, 700, 800, second), [100, 0, 0, 300, 0]);
    }
}

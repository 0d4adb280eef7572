//! Admission of packets to the shared buffers of switches, and the pause frames that follow from it.

use super::config::PAUSE_FRAME;
use super::traffic_classes::LaneId;
use crate::base::units::Time;
use crate::model::graph::LinkId;
use crate::model::packet::{Flags, FlowNumber, Kind, Packed, Packet};
use crate::network::Network;
use crate::network::breakdown::packet_log::LossCause;
use crate::schedule::{Event, Scheduler};

impl Network {
    /// Returns the lane by which a packet at the port of `link` arrived, if a shared buffer counts the
    /// packet.
    pub(super) fn ingress(&self, packet: &Packet, link: LinkId) -> Option<LaneId> {
        let is_counted = !self.from_host[link as usize] && !self.passing.includes(packet.kind);
        is_counted.then(|| self.traffic.lane(self.routes.link(packet.next_hop - 1), packet.flow))
    }

    /// Admits a packet that has arrived by the link `from` and goes to `link` to the buffer of its
    /// switch, or drops it.
    #[inline]
    pub(in crate::network) fn admit(
        &mut self,
        packet: &Packet,
        from: LinkId,
        link: LinkId,
        scheduler: &mut Scheduler,
    ) -> bool {
        if self.passing.includes(packet.kind) {
            return true;
        }
        let class = self.traffic.of(packet.flow);
        let ingress = self.traffic.lanes.lane(from, class);
        let Some(buffers) = &mut self.buffers else { return true };
        let now = scheduler.now();
        if !buffers.is_watched(ingress) {
            let port = &mut self.ports[link as usize];
            let queued = || port.backlog_of(class, now).bytes;
            if buffers.admit_unwatched(ingress, packet.bytes, queued) {
                if cfg!(debug_assertions) {
                    self.assert_at_ease(ingress, packet.bytes, link, now);
                }
                return true;
            }
            self.count(ingress, now);
            self.watch(ingress, packet.bytes, link, scheduler);
        }
        let (Some(buffers), port) = (&mut self.buffers, &mut self.ports[link as usize]) else {
            return true;
        };
        let admitted = buffers.admit(ingress, packet.bytes, || port.backlog_of(class, now).bytes);
        if !admitted {
            port.counters.arrived += 1;
            port.counters.drop(packet.kind);
        }
        let pauses = buffers.pauses(ingress);
        if !admitted {
            self.lose(packet, link, LossCause::Buffer, now);
        }
        if pauses {
            self.send_pause_frame(Kind::Pause, ingress, scheduler);
        }
        admitted
    }

    /// Counts the packets that wait at the switch at the end of `ingress`.
    fn count(&mut self, ingress: LaneId, now: Time) {
        let Some(buffers) = &mut self.buffers else { return };
        buffers.forget(ingress);
        for index in 0..buffers.ports(ingress).len() {
            let port = &mut self.ports[buffers.ports(ingress)[index] as usize];
            port.backlog(now);
            port.visit_data(&mut |packet| {
                let from = self.routes.link(packet.next_hop - 1);
                buffers.hold(self.traffic.lane(from, packet.flow), packet.bytes);
            });
        }
    }

    /// Asserts that exact counters would also admit `bytes` that arrived by `ingress`, without a
    /// pause.
    fn assert_at_ease(&mut self, ingress: LaneId, bytes: u16, link: LinkId, now: Time) {
        let upper_bounds = self.buffers.clone();
        self.count(ingress, now);
        let class = self.traffic.lanes.class(ingress);
        let queued = self.ports[link as usize].backlog_of(class, now).bytes;
        if let Some(exact) = &mut self.buffers {
            let is_at_ease = exact.admit(ingress, bytes, || queued) && !exact.pauses(ingress);
            assert!(is_at_ease, "a switch that was not watched had to drop or pause");
        }
        self.buffers = upper_bounds;
    }

    /// Starts to watch the switch at the end of `ingress`, if its packets were counted and fill enough
    /// of its buffer. A packet of `bytes` has arrived by `ingress` and goes to `link`.
    fn watch(&mut self, ingress: LaneId, bytes: u16, link: LinkId, scheduler: &mut Scheduler) {
        let Some(buffers) = &mut self.buffers else { return };
        let (now, class) = (scheduler.now(), self.traffic.lanes.class(ingress));
        let queued = self.ports[link as usize].backlog_of(class, now).bytes;
        if !buffers.watch(ingress, bytes, queued) {
            return;
        }
        for link in buffers.ports(ingress) {
            let port = &mut self.ports[*link as usize];
            port.set_watched(true, now);
            if let Some(time) = port.next_call(now) {
                scheduler.push(time, Event::Ready(*link));
            }
        }
    }

    /// Releases the memory of a packet that leaves the buffer of its switch, if the switch is watched.
    pub(in crate::network) fn release(
        &mut self,
        packet: &Packet,
        link: LinkId,
        scheduler: &mut Scheduler,
    ) {
        if self.buffers.is_none() {
            return;
        }
        let (Some(ingress), Some(buffers)) = (self.ingress(packet, link), &mut self.buffers) else {
            return;
        };
        if !buffers.is_watched(ingress) {
            return;
        }
        buffers.release(ingress, packet.bytes);
        if buffers.relax(ingress) {
            for link in buffers.ports(ingress) {
                self.ports[*link as usize].set_watched(false, scheduler.now());
            }
        }
        if buffers.resumes(ingress) {
            self.send_pause_frame(Kind::Resume, ingress, scheduler);
        }
    }

    /// Asserts at the end of a run that shared buffers count the waiting packets.
    pub(in crate::network) fn assert_buffers(&self) {
        let Some(buffers) = &self.buffers else { return };
        let mut waiting = vec![0; self.ports.len() * self.traffic.numbers.len()];
        for (link, port) in (0..).zip(&self.ports) {
            port.visit_data(&mut |packet| {
                if let Some(ingress) = self.ingress(packet, link) {
                    waiting[ingress as usize] += u64::from(packet.bytes);
                }
            });
        }
        buffers.assert_hold(&waiting);
    }

    /// Sends a pause or resume frame for `lane` to the neighbour at its other end. If an earlier frame still
    /// waits, takes that back instead; with pauses that expire, takes it back and sends this one, since the
    /// state of the neighbour is not known.
    fn send_pause_frame(&mut self, kind: Kind, lane: LaneId, scheduler: &mut Scheduler) {
        if kind == Kind::Pause {
            self.start_frame_time(lane, scheduler);
        }
        let back = self.traffic.lanes.link(lane) ^ 1;
        if self.ports[back as usize].take_frame(lane, scheduler.now()) {
            self.pause_frames = self.pause_frames.wrapping_sub(1);
            if self.pause_timers.is_none() {
                return;
            }
        }
        self.pause_frames = self.pause_frames.wrapping_add(1);
        let mut frame = Packet {
            sent_at: scheduler.now(),
            flow: FlowNumber::MAX,
            next_hop: 0,
            sequence: lane,
            packed: Packed::default(),
            bytes: PAUSE_FRAME.0 as u16,
            kind,
            flags: Flags::NONE,
        };
        self.enqueue(&mut frame, back, scheduler);
    }

    /// Sends the pause frame for `lane` again, unless the last one still waits.
    pub(super) fn repeat_pause_frame(&mut self, lane: LaneId, scheduler: &mut Scheduler) {
        let back = self.traffic.lanes.link(lane) ^ 1;
        if self.ports[back as usize].has_frame(lane, scheduler.now()) {
            self.start_frame_time(lane, scheduler);
        } else {
            self.send_pause_frame(Kind::Pause, lane, scheduler);
        }
    }

    /// Executes a pause or resume frame that has arrived.
    pub(in crate::network) fn on_pause_frame(&mut self, frame: &Packet, scheduler: &mut Scheduler) {
        self.end_frame(scheduler.now());
        let lane = frame.sequence;
        if frame.kind == Kind::Pause {
            self.start_pause_time(lane, scheduler);
        }
        match (frame.kind == Kind::Pause, self.is_paused(lane)) {
            (true, false) => {
                let (link, class) = (self.traffic.lanes.link(lane), self.traffic.lanes.class(lane));
                self.ports[link as usize].pause(class, scheduler.now());
            }
            (false, true) => self.resume(lane, scheduler),
            _ => {}
        }
    }

    /// True if a pause stops `lane`, at its port.
    pub(in crate::network) fn is_paused(&self, lane: LaneId) -> bool {
        let (link, class) = (self.traffic.lanes.link(lane), self.traffic.lanes.class(lane));
        self.ports[link as usize].pauses()[usize::from(class)].is_on()
    }

    /// Ends the pause of `lane` at its port.
    pub(in crate::network) fn resume(&mut self, lane: LaneId, scheduler: &mut Scheduler) {
        let (link, class) = (self.traffic.lanes.link(lane), self.traffic.lanes.class(lane));
        self.ports[link as usize].resume(class, scheduler.now());
        self.end_pause_time(scheduler.now());
        self.serve(link, scheduler);
    }
}

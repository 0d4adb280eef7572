//! FIFO queues, with and without admission control.

use std::collections::VecDeque;

use super::{Admission, Backlog, Context, Queue, QueueState, Verdict};
use crate::base::units::Time;
use crate::model::packet::Packet;

/// Packets in FIFO order.
#[derive(Default)]
pub struct PacketFifo {
    packets: VecDeque<Packet>,
    backlog: Backlog,
}

impl PacketFifo {
    /// Appends a packet.
    pub fn push(&mut self, packet: Packet) {
        self.backlog.add(packet.bytes);
        self.packets.push_back(packet);
    }

    /// Inserts a pause frame before all packets but behind earlier frames: a resume frame that
    /// overtook its pause frame would leave the link paused forever.
    pub fn push_frame(&mut self, frame: Packet) {
        self.backlog.add(frame.bytes);
        let frames = self.packets.iter().take_while(|packet| packet.kind.is_frame()).count();
        self.packets.insert(frames, frame);
    }

    /// Returns the position of the frame with this number, if it is queued.
    fn frame(&self, sequence: u32) -> Option<usize> {
        let mut frames = self.packets.iter().take_while(|packet| packet.kind.is_frame());
        frames.position(|frame| frame.sequence == sequence)
    }

    /// True if the frame with this number is queued.
    pub fn has_frame(&self, sequence: u32) -> bool {
        self.frame(sequence).is_some()
    }

    /// Removes and returns the frame with this number, if it is queued.
    pub fn remove_frame(&mut self, sequence: u32) -> Option<Packet> {
        let position = self.frame(sequence)?;
        let frame = self.packets.remove(position)?;
        self.backlog.remove(frame.bytes);
        Some(frame)
    }

    /// Removes and returns the first packet.
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.backlog.remove(packet.bytes);
        Some(packet)
    }

    /// Removes and returns the last packet.
    pub fn pop_last(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_back()?;
        self.backlog.remove(packet.bytes);
        Some(packet)
    }

    /// Returns the first packet.
    pub fn first(&self) -> Option<&Packet> {
        self.packets.front()
    }

    /// Returns the last packet.
    pub fn last(&self) -> Option<&Packet> {
        self.packets.back()
    }

    /// Returns the backlog.
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Calls `visit` for every packet, in order.
    pub fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.packets.iter().for_each(visit);
    }
}

/// Admission rule of a FIFO, with the state that the rule needs.
pub struct AdmissionGate {
    rule: Box<dyn Admission>,
    /// Time of the last departure.
    last_departure: Time,
}

impl AdmissionGate {
    /// Creates the gate of an empty FIFO.
    pub fn new(rule: Box<dyn Admission>) -> Self {
        Self { rule, last_departure: Time::ZERO }
    }

    /// Returns the backlog below which every packet is accepted unmarked
    /// ([`Admission::accepts_all_below`]).
    pub fn accepts_all_below(&self) -> u64 {
        self.rule.accepts_all_below()
    }

    /// Applies the rule to an arriving packet, which it may mark. Returns false if the packet is
    /// dropped.
    pub fn admit(
        &mut self,
        packet: &mut Packet,
        backlog: Backlog,
        context: &mut Context<'_>,
    ) -> bool {
        let state = QueueState { now: context.now, backlog, last_departure: self.last_departure };
        match self.rule.admit(packet, &state, context.random) {
            Verdict::Accept => {}
            Verdict::Mark => context.mark(packet),
            Verdict::Drop => return false,
        }
        true
    }

    /// Records a departure.
    pub fn on_departure(&mut self, now: Time) {
        self.last_departure = now;
    }
}

/// FIFO with an admission rule.
pub struct Fifo {
    gate: AdmissionGate,
    fifo: PacketFifo,
}

impl Fifo {
    /// Creates an empty FIFO.
    pub fn new(rule: Box<dyn Admission>) -> Self {
        Self { gate: AdmissionGate::new(rule), fifo: PacketFifo::default() }
    }
}

impl Queue for Fifo {
    fn enqueue(&mut self, mut packet: Packet, context: &mut Context<'_>) {
        if self.gate.admit(&mut packet, self.fifo.backlog(), context) {
            self.fifo.push(packet);
        } else {
            context.dropped.push(packet);
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        self.gate.on_departure(context.now);
        self.fifo.pop()
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.fifo.for_each_packet(visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::packet::{Format, Kind};

    #[test]
    fn frames_precede_packets_in_arrival_order() {
        let format: Format = crate::base::schema::defaults();
        let mut fifo = PacketFifo::default();
        let packet = |kind, flow| format.control(kind, flow, Time::ZERO);
        fifo.push(packet(Kind::Ack, 0));
        fifo.push_frame(packet(Kind::Pause, 1));
        fifo.push(packet(Kind::Ack, 2));
        fifo.push_frame(packet(Kind::Resume, 3));
        let order: Vec<_> = std::iter::from_fn(|| fifo.pop()).map(|packet| packet.flow).collect();
        assert_eq!(order, [1, 3, 0, 2]);
    }

    #[test]
    fn only_queued_frames_can_be_removed() {
        let format: Format = crate::base::schema::defaults();
        let mut fifo = PacketFifo::default();
        let packet = |kind, sequence| Packet { sequence, ..format.control(kind, 0, Time::ZERO) };
        fifo.push_frame(packet(Kind::Pause, 4));
        fifo.push_frame(packet(Kind::Pause, 5));
        fifo.push(packet(Kind::Ack, 6));
        assert_eq!(fifo.remove_frame(6), None, "not a frame");
        assert_eq!(fifo.remove_frame(5).map(|frame| frame.sequence), Some(5));
        assert_eq!(fifo.remove_frame(5), None, "already removed");
        assert_eq!(fifo.backlog(), Backlog { bytes: 80, packets: 2 });
        assert_eq!(fifo.pop().map(|packet| packet.sequence), Some(4));
    }
}

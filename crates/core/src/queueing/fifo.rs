//! FIFO queues.

use std::collections::VecDeque;

use super::{Admission, Backlog, Context, Queue, QueueState, Verdict};
use crate::base::units::Time;
use crate::model::packet::Packet;

/// Packets in a line.
#[derive(Default)]
pub struct PacketFifo {
    waiting: VecDeque<Packet>,
    backlog: Backlog,
}

impl PacketFifo {
    /// Adds a packet at the end.
    pub fn push(&mut self, packet: Packet) {
        self.backlog.add(packet.bytes);
        self.waiting.push_back(packet);
    }

    /// Adds a frame between neighbours before all packets, but behind the frames that came before it: a
    /// resume that overtook its pause would leave the link paused for ever.
    pub fn push_frame(&mut self, frame: Packet) {
        self.backlog.add(frame.bytes);
        let frames = self.waiting.iter().take_while(|packet| packet.kind.is_frame()).count();
        self.waiting.insert(frames, frame);
    }

    /// Takes back the frame with this number, if it still waits.
    pub fn remove_frame(&mut self, sequence: u32) -> Option<Packet> {
        let mut frames = self.waiting.iter().take_while(|packet| packet.kind.is_frame());
        let place = frames.position(|frame| frame.sequence == sequence)?;
        let frame = self.waiting.remove(place)?;
        self.backlog.remove(frame.bytes);
        Some(frame)
    }

    /// Takes the first packet.
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        self.backlog.remove(packet.bytes);
        Some(packet)
    }

    /// Takes the last packet.
    pub fn pop_last(&mut self) -> Option<Packet> {
        let packet = self.waiting.pop_back()?;
        self.backlog.remove(packet.bytes);
        Some(packet)
    }

    /// The first packet.
    pub fn first(&self) -> Option<&Packet> {
        self.waiting.front()
    }

    /// What waits.
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Shows every packet.
    pub fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.waiting.iter().for_each(visit);
    }
}

/// An admission rule at a line, and what it needs to know.
pub struct AdmissionGate {
    rule: Box<dyn Admission>,
    /// When the last packet left the line.
    last_departure: Time,
}

impl AdmissionGate {
    /// A gate at an empty line.
    pub fn new(rule: Box<dyn Admission>) -> Self {
        Self { rule, last_departure: Time::ZERO }
    }

    /// Below this backlog the rule accepts everything unmarked ([`Admission::accepts_all_below`]).
    pub fn accepts_all_below(&self) -> u64 {
        self.rule.accepts_all_below()
    }

    /// Whether the rule lets a packet in, which it may mark, while `backlog` waits.
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

    /// A packet that was let in leaves the line.
    pub fn on_departure(&mut self, now: Time) {
        self.last_departure = now;
    }
}

/// A gate and the line behind it.
pub struct Fifo {
    gate: AdmissionGate,
    line: PacketFifo,
}

impl Fifo {
    /// An empty line behind `rule`.
    pub fn new(rule: Box<dyn Admission>) -> Self {
        Self { gate: AdmissionGate::new(rule), line: PacketFifo::default() }
    }
}

impl Queue for Fifo {
    fn enqueue(&mut self, mut packet: Packet, context: &mut Context<'_>) {
        if self.gate.admit(&mut packet, self.line.backlog(), context) {
            self.line.push(packet);
        } else {
            context.dropped.push(packet);
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        self.gate.on_departure(context.now);
        self.line.pop()
    }

    fn backlog(&self) -> Backlog {
        self.line.backlog()
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.line.for_each_packet(visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::packet::{Format, Kind};

    #[test]
    fn frames_go_first_and_keep_their_order() {
        let format: Format = crate::base::schema::defaults();
        let mut line = PacketFifo::default();
        let packet = |kind, flow| format.control(kind, flow, Time::ZERO);
        line.push(packet(Kind::Ack, 0));
        line.push_frame(packet(Kind::Pause, 1));
        line.push(packet(Kind::Ack, 2));
        line.push_frame(packet(Kind::Resume, 3));
        let order: Vec<_> = std::iter::from_fn(|| line.pop()).map(|packet| packet.flow).collect();
        assert_eq!(order, [1, 3, 0, 2]);
    }

    #[test]
    fn a_frame_that_waits_can_be_taken_back_and_nothing_else() {
        let format: Format = crate::base::schema::defaults();
        let mut line = PacketFifo::default();
        let packet = |kind, sequence| Packet { sequence, ..format.control(kind, 0, Time::ZERO) };
        line.push_frame(packet(Kind::Pause, 4));
        line.push_frame(packet(Kind::Pause, 5));
        line.push(packet(Kind::Ack, 6));
        assert_eq!(line.remove_frame(6), None, "no frame");
        assert_eq!(line.remove_frame(5).map(|frame| frame.sequence), Some(5));
        assert_eq!(line.remove_frame(5), None, "it is gone");
        assert_eq!(line.backlog(), Backlog { bytes: 80, packets: 2 });
        assert_eq!(line.pop().map(|packet| packet.sequence), Some(4));
    }
}

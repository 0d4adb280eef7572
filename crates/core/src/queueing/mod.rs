//! What queues are made of: rules that judge packets, lines in which they wait, and how the two go
//! together.
//!
//! A packet leaves the queue when its transmission starts; what is on the wire no longer waits.

pub mod blocks;
pub mod disciplines;
use std::collections::VecDeque;

use serde_json::Value;

use crate::base::random::Random;
use crate::base::schema::json_schema::{Definitions, pattern, quantity_form};
use crate::base::schema::{Parameter, Problem, wrong};
use crate::base::units::{Bytes, DATA_UNITS, Time, parse_quantity};
use crate::model::packet::{FlowNumber, Kind, Packet};

/// How a discipline works, which decides what a hop costs.
pub enum PortQueue {
    /// First in, first out, and everything is decided when a packet arrives.
    OnArrival(Box<dyn Admission>),
    /// Anything else.
    OnDeparture(Box<dyn Queue>),
}

/// What waits in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Bytes on the wire.
    pub bytes: u64,
    /// Packets.
    pub packets: u32,
}

impl Backlog {
    /// Adds a packet of `bytes`.
    pub fn add(&mut self, bytes: u16) {
        self.bytes += u64::from(bytes);
        self.packets += 1;
    }

    /// Takes a packet of `bytes` away.
    pub fn take(&mut self, bytes: u16) {
        self.bytes -= u64::from(bytes);
        self.packets -= 1;
    }
}

/// What becomes of a packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It waits its turn.
    Accept,
    /// It is marked, if it can be, and waits its turn.
    Mark,
    /// It is dropped.
    Drop,
}

/// What a packet finds when it arrives at a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueState {
    /// The present.
    pub now: Time,
    /// What waits.
    pub backlog: Backlog,
    /// When the last packet left the queue; if nothing waits, it has been empty since. Kept for rules that
    /// are always asked ([`Admission::quiet_below`]).
    pub left: Time,
}

/// A rule that decides when a packet arrives.
pub trait Admission: Send {
    /// While the bytes that wait, with the packet that comes, are fewer than this, every packet is accepted
    /// unmarked, and ports need not ask. Nothing by default: they always ask.
    fn quiet_below(&self) -> u64 {
        0
    }

    /// Judges `packet`, by what it finds.
    fn admit(&mut self, packet: &Packet, found: &QueueState, random: &mut Random) -> Verdict;
}

/// What a queue may use while it handles a packet.
pub struct Context<'a> {
    /// The present.
    pub now: Time,
    /// The port's own random stream.
    pub random: &'a mut Random,
    /// Packets that the queue has dropped.
    pub dropped: &'a mut Vec<Packet>,
    /// How many packets the port has marked.
    pub marks: &'a mut u64,
}

impl Context<'_> {
    /// Marks a packet if routers may.
    pub fn mark(&mut self, packet: &mut Packet) {
        *self.marks += u64::from(packet.mark());
    }
}

/// A queue that may decide at any time.
pub trait Queue: Send {
    /// Takes a packet in, or drops it or others.
    fn push(&mut self, packet: Packet, context: &mut Context<'_>);

    /// Gives up the packet to transmit next.
    fn pop(&mut self, context: &mut Context<'_>) -> Option<Packet>;

    /// What waits.
    fn backlog(&self) -> Backlog;

    /// Shows every packet that waits, in no particular order.
    fn visit(&self, see: &mut dyn FnMut(&Packet));

    /// Whether what [`pop`](Self::pop) gives depends only on what waits, is never dropped and does not
    /// draw: ports may then ask for it later than they send it, and let what need not wait pass by.
    fn allows_lazy_service(&self) -> bool {
        false
    }

    /// A packet goes by, because nothing waits and the transmitter is free; told to patient queues only.
    fn pass(&mut self, _packet: &Packet) {}

    /// Whether it weighs flows, and so wants to be told of each ([`register_flow`](Self::register_flow),
    /// [`unregister_flow`](Self::unregister_flow)).
    fn weighs(&self) -> bool {
        false
    }

    /// A flow of this class has started, whose packets may come this way.
    fn register_flow(&mut self, _flow: FlowNumber, _class: &str) {}

    /// A flow has ended.
    fn unregister_flow(&mut self, _flow: FlowNumber) {}

    /// What has come and was dropped, by priority, if that is counted.
    fn priority_counts(&self) -> Option<&PriorityCounts> {
        None
    }
}

/// Arrivals and drops of packets with a priority, counted by it: of data, and of probes, which stand for
/// their flow's data.
#[derive(Clone, Debug)]
pub struct PriorityCounts {
    /// Ends of all ranges but the last, ascending; each belongs to the range that it ends.
    bounds: Vec<u64>,
    /// How many came, a range each.
    pub arrived: Vec<u64>,
    /// How many of them were dropped.
    pub dropped: Vec<u64>,
}

impl PriorityCounts {
    /// Counts nothing yet; none if there are no bounds.
    pub fn new(bounds: &[Bytes]) -> Option<Self> {
        let ranges = bounds.len() + 1;
        let bounds: Vec<u64> = bounds.iter().map(|bound| bound.0).collect();
        (ranges > 1).then(|| Self { bounds, arrived: vec![0; ranges], dropped: vec![0; ranges] })
    }

    fn range(&self, packet: &Packet) -> Option<usize> {
        let (priority, counts) =
            (packet.priority(), [Kind::Data, Kind::Probe].contains(&packet.kind));
        counts.then(|| self.bounds.partition_point(|bound| *bound < priority))
    }

    /// A packet has come.
    pub fn note_arrival(&mut self, packet: &Packet) {
        if let Some(range) = self.range(packet) {
            self.arrived[range] += 1;
        }
    }

    /// A packet that had come was dropped.
    pub fn note_drop(&mut self, packet: &Packet) {
        if let Some(range) = self.range(packet) {
            self.dropped[range] += 1;
        }
    }
}

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
    pub fn take_frame(&mut self, sequence: u32) -> Option<Packet> {
        let mut frames = self.waiting.iter().take_while(|packet| packet.kind.is_frame());
        let place = frames.position(|frame| frame.sequence == sequence)?;
        let frame = self.waiting.remove(place)?;
        self.backlog.take(frame.bytes);
        Some(frame)
    }

    /// Takes the first packet.
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        self.backlog.take(packet.bytes);
        Some(packet)
    }

    /// Takes the last packet.
    pub fn pop_last(&mut self) -> Option<Packet> {
        let packet = self.waiting.pop_back()?;
        self.backlog.take(packet.bytes);
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
    pub fn visit(&self, see: &mut dyn FnMut(&Packet)) {
        self.waiting.iter().for_each(see);
    }
}

/// An admission rule at a line, and what it needs to know.
pub struct AdmissionGate {
    rule: Box<dyn Admission>,
    /// When the last packet left the line.
    left: Time,
}

impl AdmissionGate {
    /// A gate at an empty line.
    pub fn new(rule: Box<dyn Admission>) -> Self {
        Self { rule, left: Time::ZERO }
    }

    /// Below this backlog the rule accepts everything unmarked ([`Admission::quiet_below`]).
    pub fn quiet_below(&self) -> u64 {
        self.rule.quiet_below()
    }

    /// Whether the rule lets a packet in, which it may mark, while `backlog` waits.
    pub fn admit(
        &mut self,
        packet: &mut Packet,
        backlog: Backlog,
        context: &mut Context<'_>,
    ) -> bool {
        let found = QueueState { now: context.now, backlog, left: self.left };
        match self.rule.admit(packet, &found, context.random) {
            Verdict::Accept => {}
            Verdict::Mark => context.mark(packet),
            Verdict::Drop => return false,
        }
        true
    }

    /// A packet that was let in leaves the line.
    pub fn leave(&mut self, now: Time) {
        self.left = now;
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
    fn push(&mut self, mut packet: Packet, context: &mut Context<'_>) {
        if self.gate.admit(&mut packet, self.line.backlog(), context) {
            self.line.push(packet);
        } else {
            context.dropped.push(packet);
        }
    }

    fn pop(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        self.gate.leave(context.now);
        self.line.pop()
    }

    fn backlog(&self) -> Backlog {
        self.line.backlog()
    }

    fn visit(&self, see: &mut dyn FnMut(&Packet)) {
        self.line.visit(see);
    }
}

/// The most that may wait, in bytes or in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// Bytes on the wire.
    Bytes(u64),
    /// Packets of whatever size.
    Packets(u32),
}

impl Capacity {
    /// Whether a packet of `bytes` fits on top of `backlog`.
    pub fn fits(self, backlog: Backlog, bytes: u16) -> bool {
        match self {
            Self::Bytes(most) => backlog.bytes + u64::from(bytes) <= most,
            Self::Packets(most) => backlog.packets < most,
        }
    }

    /// Whether it ever holds a packet of `size`.
    pub fn holds(self, size: Bytes) -> bool {
        match self {
            Self::Bytes(most) => size.0 <= most,
            Self::Packets(most) => most > 0,
        }
    }

    /// Whether `backlog` is above this.
    pub fn exceeded_by(self, backlog: Backlog) -> bool {
        match self {
            Self::Bytes(most) => backlog.bytes > most,
            Self::Packets(most) => backlog.packets > most,
        }
    }
}

impl Parameter for Capacity {
    fn allowed() -> String {
        "an amount of data or a number of packets, such as \"100 KB\" or \"65 packets\"".to_owned()
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        let text = value.as_str().ok_or_else(|| wrong::<Self>(value))?;
        if let Some(number) = text.strip_suffix("packets").or(text.strip_suffix("packet")) {
            return number.trim().parse().map(Self::Packets).map_err(|_| wrong::<Self>(value));
        }
        parse_quantity(text, DATA_UNITS).map(Self::Bytes).ok_or_else(|| wrong::<Self>(value))
    }
    fn show(&self) -> Value {
        match self {
            Self::Bytes(bytes) => Bytes(*bytes).show(),
            Self::Packets(packets) => format!("{packets} packets").into(),
        }
    }
    fn schema(_default: Option<&Self>, _definitions: &mut Definitions) -> Value {
        pattern(&format!(r"(\s*\+?[0-9]+\s*packets?|{})", quantity_form(DATA_UNITS)))
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
        assert_eq!(line.take_frame(6), None, "no frame");
        assert_eq!(line.take_frame(5).map(|frame| frame.sequence), Some(5));
        assert_eq!(line.take_frame(5), None, "it is gone");
        assert_eq!(line.backlog(), Backlog { bytes: 80, packets: 2 });
        assert_eq!(line.pop().map(|packet| packet.sequence), Some(4));
    }
}

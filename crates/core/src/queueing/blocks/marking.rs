//! FIFO with ECN marking by the instantaneous queue length.

use super::tail_drop::TailDrop;
use crate::base::random::Random;
use crate::model::packet::{Flags, Packet};
use crate::queueing::{Admission, Backlog, Context, Fifo, PortQueue, Queue, QueueState, Verdict};

crate::choices! {
    /// Time of the marking decision of a queue.
    pub enum MarkAt {
        /// On arrival, by the backlog that the packet finds.
        Arrival = "arrival",
        /// At the start of transmission, by the backlog that the packet leaves behind.
        Departure = "departure",
    }
}

/// Marking rule by the backlog without the packet itself.
pub trait MarkingRule: Send + 'static {
    /// Returns the backlog in bytes below which no packet is marked. The default is 0.
    fn accepts_all_below(&self) -> u64 {
        0
    }

    /// Returns true if a packet that finds, or leaves behind, `backlog` is to be marked.
    fn should_mark(&self, backlog: Backlog, random: &mut Random) -> bool;
}

/// Builds the queue that applies `rule` at the given time. With `drops_non_ect` it drops packets that it
/// would mark if they were ECN-capable.
pub fn build(
    rule: impl MarkingRule,
    mark_at: MarkAt,
    drops_non_ect: bool,
    tail_drop: TailDrop,
) -> PortQueue {
    match mark_at {
        MarkAt::Arrival => {
            PortQueue::OnArrival(Box::new(MarkOnArrival { rule, drops_non_ect, tail_drop }))
        }
        MarkAt::Departure => {
            let fifo = Fifo::new(Box::new(tail_drop));
            PortQueue::OnDeparture(Box::new(MarkOnDeparture { rule, drops_non_ect, fifo }))
        }
    }
}

struct MarkOnArrival<R> {
    rule: R,
    drops_non_ect: bool,
    tail_drop: TailDrop,
}

impl<R: MarkingRule> Admission for MarkOnArrival<R> {
    fn accepts_all_below(&self) -> u64 {
        self.rule.accepts_all_below().min(self.tail_drop.accepts_all_below())
    }

    fn admit(&mut self, packet: &Packet, state: &QueueState, random: &mut Random) -> Verdict {
        match self.tail_drop.admit(packet, state, random) {
            Verdict::Accept if self.rule.should_mark(state.backlog, random) => {
                let is_dropped = self.drops_non_ect && !packet.flags.has(Flags::ECN_CAPABLE);
                if is_dropped { Verdict::Drop } else { Verdict::Mark }
            }
            verdict => verdict,
        }
    }
}

struct MarkOnDeparture<R> {
    rule: R,
    drops_non_ect: bool,
    fifo: Fifo,
}

impl<R: MarkingRule> Queue for MarkOnDeparture<R> {
    fn enqueue(&mut self, packet: Packet, context: &mut Context<'_>) {
        self.fifo.enqueue(packet, context);
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        loop {
            let mut packet = self.fifo.dequeue(context)?;
            if self.rule.should_mark(self.fifo.backlog(), context.random) {
                if self.drops_non_ect && !packet.flags.has(Flags::ECN_CAPABLE) {
                    context.dropped.push(packet);
                    continue;
                }
                context.mark(&mut packet);
            }
            return Some(packet);
        }
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.fifo.for_each_packet(visit);
    }
}

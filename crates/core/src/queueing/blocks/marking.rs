//! First in, first out with a marking rule: what ECN disciplines on the instantaneous queue share.

use super::tail_limit::Limit;
use crate::base::random::Random;
use crate::model::packet::Packet;
use crate::queueing::{Admission, Backlog, Context, Fifo, PortQueue, Queue, QueueState, Verdict};

crate::choices! {
    /// When a queue marks.
    pub enum MarkAt {
        /// As a packet arrives, by what it finds waiting.
        Arrival = "arrival",
        /// As its transmission starts, by what it leaves waiting.
        Departure = "departure",
    }
}

/// Whether to mark a packet, by what waits besides it.
pub trait Rule: Send + 'static {
    /// Nothing is marked while fewer bytes than this wait. By default something may always be.
    fn accepts_all_below(&self) -> u64 {
        0
    }

    /// Judges a packet that finds, or leaves, `backlog`.
    fn marks(&self, backlog: Backlog, random: &mut Random) -> bool;
}

/// The queue that applies `rule` at the given moment.
pub fn build(rule: impl Rule, mark_at: MarkAt, limit: Limit) -> PortQueue {
    match mark_at {
        MarkAt::Arrival => PortQueue::OnArrival(Box::new(AtArrival { rule, limit })),
        MarkAt::Departure => {
            let waiting = Fifo::new(Box::new(limit));
            PortQueue::OnDeparture(Box::new(AtDeparture { rule, waiting }))
        }
    }
}

struct AtArrival<R> {
    rule: R,
    limit: Limit,
}

impl<R: Rule> Admission for AtArrival<R> {
    fn accepts_all_below(&self) -> u64 {
        self.rule.accepts_all_below().min(self.limit.accepts_all_below())
    }

    fn admit(&mut self, packet: &Packet, state: &QueueState, random: &mut Random) -> Verdict {
        match self.limit.admit(packet, state, random) {
            Verdict::Accept if self.rule.marks(state.backlog, random) => Verdict::Mark,
            verdict => verdict,
        }
    }
}

struct AtDeparture<R> {
    rule: R,
    waiting: Fifo,
}

impl<R: Rule> Queue for AtDeparture<R> {
    fn enqueue(&mut self, packet: Packet, context: &mut Context<'_>) {
        self.waiting.enqueue(packet, context);
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        let mut packet = self.waiting.dequeue(context)?;
        if self.rule.marks(self.waiting.backlog(), context.random) {
            context.mark(&mut packet);
        }
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.waiting.backlog()
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.waiting.for_each_packet(visit);
    }
}

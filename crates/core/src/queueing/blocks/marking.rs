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
    fn quiet_below(&self) -> u64 {
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
    fn quiet_below(&self) -> u64 {
        self.rule.quiet_below().min(self.limit.quiet_below())
    }

    fn admit(&mut self, packet: &Packet, found: &QueueState, random: &mut Random) -> Verdict {
        match self.limit.admit(packet, found, random) {
            Verdict::Accept if self.rule.marks(found.backlog, random) => Verdict::Mark,
            verdict => verdict,
        }
    }
}

struct AtDeparture<R> {
    rule: R,
    waiting: Fifo,
}

impl<R: Rule> Queue for AtDeparture<R> {
    fn push(&mut self, packet: Packet, context: &mut Context<'_>) {
        self.waiting.push(packet, context);
    }

    fn pop(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        let mut packet = self.waiting.pop(context)?;
        if self.rule.marks(self.waiting.backlog(), context.random) {
            context.mark(&mut packet);
        }
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.waiting.backlog()
    }

    fn visit(&self, see: &mut dyn FnMut(&Packet)) {
        self.waiting.visit(see);
    }
}

//! `CoDel`: drops or marks what leaves, once packets have waited too long for a while.
//!
//! Source: RFC 8289 §5, whose names are kept. Every packet is kept with the time at which it came.

use std::collections::VecDeque;

use super::{Backlog, Capacity, Context, PortQueue, Queue, QueueKind};
use crate::base::schema::{Problem, positive};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::{Flags, Packet};

crate::parameters! {
    /// `CoDel`'s law: when what leaves is dropped or marked (RFC 8289).
    pub struct Law {
        /// How long packets may wait without end: below this nothing is dropped (RFC 8289 §4.3: 5 ms;
        /// a tenth to a twentieth of the interval).
        pub target: Duration = Duration::from_millis(5), where positive;
        /// How long they must have waited more than that before the first is dropped: a round trip of
        /// the slowest flows (RFC 8289 §4.3: 100 ms).
        pub interval: Duration = Duration::from_millis(100), where positive;
        /// Whether packets that can be are marked instead of dropped (RFC 8289 §5.7; Linux: only in
        /// `fq_codel`).
        pub ecn: bool = false;
        /// With no more than this behind it no packet is dropped, however long it has waited: a link that
        /// sends one packet a target is not idle (RFC 8289 §5.4: the largest packet; Linux: 1514 B).
        pub mtu: Bytes = Bytes(1514);
    }
    check |law| {
        if law.target >= law.interval {
            let message = format!("must be below `interval`, which is {}", law.interval);
            return Err(Problem::new("target", message));
        }
        Ok(())
    }
}

impl Law {
    /// When the next is dropped after one at `from`, the `count`-th of its series.
    fn next(&self, from: Time, count: u32) -> Time {
        from + Duration((self.interval.0 as f64 / f64::from(count).sqrt()).round() as u64)
    }
}

crate::parameters! {
    /// `CoDel`: one line, first in, first out; once packets have waited longer than a target throughout an
    /// interval, one is dropped or marked as it would leave, and then others ever faster until they wait
    /// less (RFC 8289).
    pub struct Config {
        /// When what leaves is dropped.
        pub law: Law = crate::base::schema::defaults();
        /// The most that waits, in bytes or packets: what does not fit is dropped as it comes; none for
        /// a queue without limit of its own.
        pub capacity: Option<Capacity> = None;
    }
}

impl QueueKind for Config {
    fn build(&self, _rate: Rate) -> PortQueue {
        let Self { law, capacity } = self.clone();
        PortQueue::OnDeparture(Box::new(CoDel { law, capacity, line: Controlled::default() }))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }
}

struct CoDel {
    law: Law,
    capacity: Option<Capacity>,
    line: Controlled,
}

impl Queue for CoDel {
    fn enqueue(&mut self, packet: Packet, context: &mut Context<'_>) {
        let backlog = self.line.backlog();
        if self.capacity.is_some_and(|capacity| !capacity.fits(backlog, packet.bytes)) {
            context.dropped.push(packet);
            return;
        }
        self.line.push(packet, context.now);
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        self.line.pop(&self.law, context)
    }

    fn backlog(&self) -> Backlog {
        self.line.backlog()
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.line.for_each_packet(visit);
    }
}

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
struct Stamped {
    since: Time,
    packet: Packet,
}

/// A line under the law.
#[derive(Debug, Default)]
pub struct Controlled {
    waiting: VecDeque<Stamped>,
    backlog: Backlog,
    /// When what leaves will have waited too long throughout an interval, if it does now.
    first_above: Option<Time>,
    /// Whether it has, so that packets are dropped in a series.
    is_dropping: bool,
    /// When the next of the series is dropped; kept when it ends.
    drop_next: Time,
    /// How many were dropped in this series, or the last.
    count: u32,
    /// What the series began with.
    last_count: u32,
}

/// What may leave.
struct Candidate {
    packet: Packet,
    /// Whether it and those before it have waited too long throughout an interval.
    may_drop: bool,
}

impl Controlled {
    /// Adds a packet at the end.
    pub fn push(&mut self, packet: Packet, now: Time) {
        self.backlog.add(packet.bytes);
        self.waiting.push_back(Stamped { since: now, packet });
    }

    /// Takes the first packet that is not dropped.
    pub fn pop(&mut self, law: &Law, context: &mut Context<'_>) -> Option<Packet> {
        let now = context.now;
        let mut candidate = self.next(law, now)?;
        if !candidate.may_drop {
            self.is_dropping = false;
        } else if !self.is_dropping {
            self.begin_series(law, now);
            if is_marked(&mut candidate.packet, law, context) {
                return Some(candidate.packet);
            }
            candidate = self.next(law, now)?;
        }
        while self.is_dropping && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            let is_marked = is_marked(&mut candidate.packet, law, context);
            if !is_marked {
                candidate = self.next(law, now)?;
            }
            self.is_dropping = candidate.may_drop;
            if self.is_dropping {
                self.drop_next = law.next(self.drop_next, self.count);
            }
            if is_marked {
                break;
            }
        }
        Some(candidate.packet)
    }

    /// Takes the first packet, and judges how long it has waited.
    fn next(&mut self, law: &Law, now: Time) -> Option<Candidate> {
        let Some(Stamped { since, packet }) = self.waiting.pop_front() else {
            self.first_above = None;
            self.is_dropping = false;
            return None;
        };
        self.backlog.remove(packet.bytes);
        if now - since < law.target || self.backlog.bytes <= law.mtu.0 {
            self.first_above = None;
            return Some(Candidate { packet, may_drop: false });
        }
        let first_above = *self.first_above.get_or_insert(now + law.interval);
        Some(Candidate { packet, may_drop: now >= first_above })
    }

    /// Starts to drop: about as fast as the last series ended, if that was lately.
    fn begin_series(&mut self, law: &Law, now: Time) {
        let made = self.count - self.last_count;
        let was_lately = now.since(self.drop_next) < law.interval * 16;
        self.count = if made > 1 && was_lately { made } else { 1 };
        self.last_count = self.count;
        self.is_dropping = true;
        self.drop_next = law.next(now, self.count);
    }

    /// Forgets the last series if the next would not take up where it ended; says whether it did, so that
    /// an empty line is as new.
    pub fn forgets(&mut self) -> bool {
        let made_none = self.count <= self.last_count + 1;
        if made_none {
            self.count = self.last_count;
        }
        made_none
    }

    /// Drops the first packet for want of room; the law counts it, so that this queue, which filled the
    /// room, is dropped from faster (RFC 8290 §4.1).
    pub fn overflow(&mut self) -> Option<Packet> {
        let Stamped { packet, .. } = self.waiting.pop_front()?;
        self.backlog.remove(packet.bytes);
        self.count = self.count.saturating_add(1);
        Some(packet)
    }

    /// What waits.
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Shows every packet.
    pub fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.waiting.iter().for_each(|stamped| visit(&stamped.packet));
    }
}

/// Marks a packet if the law says so and it can be; otherwise it is dropped.
fn is_marked(packet: &mut Packet, law: &Law, context: &mut Context<'_>) -> bool {
    let can_be = law.ecn && packet.flags.has(Flags::ECN_CAPABLE);
    if can_be {
        context.mark(packet);
    } else {
        context.dropped.push(*packet);
    }
    can_be
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::queueing::blocks::fixture::{Bench, bench, packet};

    const MILLI: u64 = Duration::from_millis(1).0;

    fn codel(ecn: bool) -> Bench<dyn Queue> {
        bench(&Config { law: Law { ecn, ..defaults() }, capacity: None })
    }

    /// Two packets come each millisecond and one leaves: gives when packets were dropped, or marked.
    fn overload(bench: &mut Bench<dyn Queue>, milliseconds: u64) -> Vec<Time> {
        let mut signals = Vec::new();
        for sequence in 0..milliseconds {
            bench.now = Time(sequence * MILLI);
            (0..2).for_each(|_| drop(bench.push(packet(0, sequence as u32, 1500))));
            let (popped, dropped) = bench.pop();
            let marked = usize::from(popped.unwrap().is_marked());
            signals.extend(std::iter::repeat_n(bench.now, dropped.len() + marked));
        }
        signals
    }

    #[test]
    fn who_does_not_listen_is_dropped_from_at_the_rate_of_the_law() {
        let signals = overload(&mut codel(false), 2_000);
        // Of each two packets one waits on, so that the n-th to leave, after n ms, has waited half as long,
        // rounded up: from the ninth on too long. An interval later the first is dropped, and from each to
        // the next it is interval / sqrt(count), and then until a packet leaves.
        let mut due = 9.0 + 100.0;
        for (count, at) in (1..).zip(&signals) {
            let late = at.seconds() * 1e3 - due;
            assert!((-1e-6..1.0).contains(&late), "drop {count}: {late} ms late");
            due += 100.0 / f64::from(count).sqrt();
        }
        // The sum of 1 / sqrt(k) up to n is 2 sqrt(n) - 1.46: drops grow with the square of the time.
        let expected = f64::midpoint((2000.0 - 109.0) / 100.0, 1.46).powi(2);
        assert!((signals.len() as f64 - expected).abs() < 1.5, "{} {expected}", signals.len());
    }

    #[test]
    fn what_can_be_marked_is_instead_and_as_often() {
        let (mut marking, mut dropping) = (codel(true), codel(false));
        // As long as no two are due between departures.
        let (marks, drops) = (overload(&mut marking, 1_000), overload(&mut dropping, 1_000));
        assert!(!drops.is_empty());
        assert_eq!((marks, marking.marks, dropping.marks), (drops.clone(), drops.len() as u64, 0));
    }

    /// Lets packets come and leave at the same rate, with so many behind each.
    fn standing(bench: &mut Bench<dyn Queue>, behind: usize, milliseconds: u64) -> usize {
        let begin = bench.now.0 / MILLI;
        let mut dropped = 0;
        for i in begin..begin + milliseconds {
            bench.now = Time(i * MILLI);
            while (bench.queue.backlog().packets as usize) <= behind {
                bench.push(packet(0, i as u32, 1500));
            }
            dropped += bench.pop().1.len();
        }
        dropped
    }

    #[test]
    fn nothing_is_dropped_that_waits_less_than_the_target_or_has_a_packet_behind_it_at_most() {
        assert_eq!(standing(&mut codel(false), 4, 1_000), 0, "4 ms");
        assert!(standing(&mut codel(false), 6, 1_000) > 0, "6 ms");
        let slow = Law { target: Duration::from_micros(1), ..defaults() };
        let mut slow = bench(&Config { law: slow, capacity: None });
        assert_eq!(standing(&mut slow, 1, 1_000), 0, "one behind the one that leaves");
        assert!(standing(&mut slow, 2, 1_000) > 0, "two");
    }

    #[test]
    fn a_series_takes_up_where_the_last_ended_if_that_was_lately() {
        // How many are dropped in the first 100 ms of a second series.
        let second = |pause: u64| {
            let mut bench = codel(false);
            overload(&mut bench, 1_000);
            bench.empty();
            bench.now = bench.now + Duration::from_millis(pause);
            standing(&mut bench, 10, 115);
            standing(&mut bench, 10, 100)
        };
        let (lately, long_ago) = (second(200), second(2_000));
        assert_eq!(long_ago, 1, "the second of a series, 100 ms after the first");
        assert!(lately >= 5, "{lately}");
    }
}

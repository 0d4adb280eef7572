//! CoDel: drops or marks departing packets while their sojourn time exceeds a target.
//!
//! Source: RFC 8289 §5, whose names are used. Every packet is queued with its arrival time.

use std::collections::VecDeque;

use super::{Backlog, Capacity, Context, Limit, LinkScale, PortQueue, Queue, QueueKind};
use crate::base::schema::{Problem, positive};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::packet::{Flags, Packet};

crate::parameters! {
    /// CoDel's control law: which departing packets are dropped or marked (RFC 8289).
    pub struct ControlLaw {
        /// Target sojourn time. No packet is dropped while sojourn times are below it (RFC 8289
        /// §4.3: 5 ms; 5 % to 10 % of `interval`).
        pub target: Duration = Duration::from_millis(5), where positive;
        /// Time for which sojourn times must exceed `target` before the first drop: the RTT of the
        /// slowest flows (RFC 8289 §4.3: 100 ms).
        pub interval: Duration = Duration::from_millis(100), where positive;
        /// If true, ECN-capable packets are marked instead of dropped (RFC 8289 §5.7; Linux: only
        /// in `fq_codel`).
        pub ecn: bool = false;
        /// No packet is dropped while at most this many bytes are queued behind it, at any sojourn
        /// time: a link that sends one packet per `target` is not overloaded (RFC 8289 §5.4: the
        /// largest packet; Linux: 1514 B).
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

impl ControlLaw {
    /// Returns the time of the next drop after drop number `count` of a series at `from`.
    fn next_drop(&self, from: Time, count: u32) -> Time {
        from + Duration((self.interval.0 as f64 / f64::from(count).sqrt()).round() as u64)
    }
}

crate::parameters! {
    /// CoDel: a FIFO that controls the sojourn time. Once it has exceeded a target for an
    /// interval, departing packets are dropped or marked at an increasing rate until it falls below
    /// the target (RFC 8289).
    pub struct Config {
        /// Control law.
        pub law: ControlLaw = crate::base::schema::defaults();
        /// Capacity in bytes or packets. Arriving packets that do not fit are dropped. `none`: no
        /// limit of its own.
        pub capacity: Option<Capacity> = None;
    }
}

impl QueueKind for Config {
    fn build(&self, scale: LinkScale) -> PortQueue {
        let (law, capacity) = (self.law.clone(), scale.limit(self.capacity));
        PortQueue::OnDeparture(Box::new(CoDel { law, capacity, queue: CodelQueue::default() }))
    }

    fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }

    fn marks(&self) -> bool {
        self.law.ecn
    }
}

struct CoDel {
    law: ControlLaw,
    capacity: Option<Limit>,
    queue: CodelQueue,
}

impl Queue for CoDel {
    fn enqueue(&mut self, packet: Packet, context: &mut Context<'_>) {
        let backlog = self.queue.backlog();
        if self.capacity.is_some_and(|capacity| !capacity.fits(backlog, packet.bytes)) {
            context.dropped.push(packet);
            return;
        }
        self.queue.push(packet, context.now);
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        self.queue.pop(&self.law, context)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.queue.for_each_packet(visit);
    }
}

/// Packet with its arrival time.
#[derive(Clone, Copy, Debug)]
struct TimestampedPacket {
    enqueued_at: Time,
    packet: Packet,
}

/// FIFO under the control law.
#[derive(Debug, Default)]
pub struct CodelQueue {
    packets: VecDeque<TimestampedPacket>,
    backlog: Backlog,
    /// Time from which packets may be dropped, if the sojourn time stays above the target.
    first_above_time: Option<Time>,
    /// True in the dropping state.
    is_dropping: bool,
    /// Time of the next drop. Kept after the end of a series.
    drop_next: Time,
    /// Number of drops in the current or the last series.
    count: u32,
    /// Value of `count` at the start of the series.
    last_count: u32,
}

/// Packet removed from the head of the queue.
struct DequeueResult {
    packet: Packet,
    /// True if the sojourn time has exceeded the target for an interval.
    ok_to_drop: bool,
}

impl CodelQueue {
    /// Appends a packet.
    pub fn push(&mut self, packet: Packet, now: Time) {
        self.backlog.add(packet.bytes);
        self.packets.push_back(TimestampedPacket { enqueued_at: now, packet });
    }

    /// Removes and returns the first packet that is not dropped.
    pub fn pop(&mut self, law: &ControlLaw, context: &mut Context<'_>) -> Option<Packet> {
        let now = context.now;
        let mut result = self.do_dequeue(law, now)?;
        if !result.ok_to_drop {
            self.is_dropping = false;
        } else if !self.is_dropping {
            self.enter_dropping(law, now);
            if mark_or_drop(&mut result.packet, law, context) {
                return Some(result.packet);
            }
            result = self.do_dequeue(law, now)?;
        }
        while self.is_dropping && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            let is_marked = mark_or_drop(&mut result.packet, law, context);
            if !is_marked {
                result = self.do_dequeue(law, now)?;
            }
            self.is_dropping = result.ok_to_drop;
            if self.is_dropping {
                self.drop_next = law.next_drop(self.drop_next, self.count);
            }
            if is_marked {
                break;
            }
        }
        Some(result.packet)
    }

    /// Removes the first packet and checks its sojourn time.
    fn do_dequeue(&mut self, law: &ControlLaw, now: Time) -> Option<DequeueResult> {
        let Some(TimestampedPacket { enqueued_at, packet }) = self.packets.pop_front() else {
            self.first_above_time = None;
            self.is_dropping = false;
            return None;
        };
        self.backlog.remove(packet.bytes);
        if now - enqueued_at < law.target || self.backlog.bytes <= law.mtu.0 {
            self.first_above_time = None;
            return Some(DequeueResult { packet, ok_to_drop: false });
        }
        let first_above_time = *self.first_above_time.get_or_insert(now + law.interval);
        Some(DequeueResult { packet, ok_to_drop: now >= first_above_time })
    }

    /// Enters the dropping state. The drop rate resumes near its last value if the last series
    /// ended recently.
    fn enter_dropping(&mut self, law: &ControlLaw, now: Time) {
        let delta = self.count - self.last_count;
        let is_recent = now.since(self.drop_next) < law.interval * 16;
        self.count = if delta > 1 && is_recent { delta } else { 1 };
        self.last_count = self.count;
        self.is_dropping = true;
        self.drop_next = law.next_drop(now, self.count);
    }

    /// Resets the state if the next series would start at count 1, as that of a new queue. Returns
    /// true if so.
    pub fn try_reset(&mut self) -> bool {
        let starts_new_series = self.count <= self.last_count + 1;
        if starts_new_series {
            self.count = self.last_count;
        }
        starts_new_series
    }

    /// Removes the first packet because the buffer is full. It counts as a drop of the control law,
    /// so that the queue that filled the buffer is dropped from at a higher rate (RFC 8290 §4.1).
    pub fn drop_head(&mut self) -> Option<Packet> {
        let TimestampedPacket { packet, .. } = self.packets.pop_front()?;
        self.backlog.remove(packet.bytes);
        self.count = self.count.saturating_add(1);
        Some(packet)
    }

    /// Returns the backlog.
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Calls `visit` for every packet, in order.
    pub fn for_each_packet(&self, visit: &mut dyn FnMut(&Packet)) {
        self.packets.iter().for_each(|timestamped| visit(&timestamped.packet));
    }
}

/// Marks a packet if the law and the packet allow ECN, and drops it otherwise. Returns true if
/// marked.
fn mark_or_drop(packet: &mut Packet, law: &ControlLaw, context: &mut Context<'_>) -> bool {
    let can_mark = law.ecn && packet.flags.has(Flags::ECN_CAPABLE);
    if can_mark {
        context.mark(packet);
    } else {
        context.dropped.push(*packet);
    }
    can_mark
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::queueing::blocks::fixture::{QueueFixture, fixture, packet};

    const MILLI: u64 = Duration::from_millis(1).0;

    fn codel(ecn: bool) -> QueueFixture<dyn Queue> {
        fixture(&Config { law: ControlLaw { ecn, ..defaults() }, capacity: None })
    }

    /// Enqueues two packets per millisecond and dequeues one. Returns the times of drops or marks.
    fn overload(fixture: &mut QueueFixture<dyn Queue>, milliseconds: u64) -> Vec<Time> {
        let mut signals = Vec::new();
        for sequence in 0..milliseconds {
            fixture.now = Time(sequence * MILLI);
            (0..2).for_each(|_| drop(fixture.enqueue(packet(0, sequence as u32, 1500))));
            let (popped, dropped) = fixture.dequeue();
            let marked = usize::from(popped.unwrap().is_marked());
            signals.extend(std::iter::repeat_n(fixture.now, dropped.len() + marked));
        }
        signals
    }

    #[test]
    fn unresponsive_traffic_is_dropped_at_the_rate_of_the_control_law() {
        let signals = overload(&mut codel(false), 2_000);
        // Of every two packets one remains queued: the n-th packet to depart, after n ms, has waited
        // n / 2 ms, rounded up. From the ninth on this exceeds the target. The first drop follows an
        // interval later, and each next one interval / sqrt(count) later, at a departure.
        let mut due_ms = 9.0 + 100.0;
        for (count, at) in (1..).zip(&signals) {
            let late_ms = at.seconds() * 1e3 - due_ms;
            assert!((-1e-6..1.0).contains(&late_ms), "drop {count}: {late_ms} ms late");
            due_ms += 100.0 / f64::from(count).sqrt();
        }
        // The sum of 1 / sqrt(k) for k = 1..n is 2 sqrt(n) - 1.46: the number of drops grows with
        // the square of time.
        let expected = f64::midpoint((2000.0 - 109.0) / 100.0, 1.46).powi(2);
        assert!((signals.len() as f64 - expected).abs() < 1.5, "{} {expected}", signals.len());
    }

    #[test]
    fn ecn_capable_packets_are_marked_as_often_as_others_are_dropped() {
        let (mut marking, mut dropping) = (codel(true), codel(false));
        // Holds while at most one drop is due between departures.
        let (marks, drops) = (overload(&mut marking, 1_000), overload(&mut dropping, 1_000));
        assert!(!drops.is_empty());
        assert_eq!((marks, marking.marks, dropping.marks), (drops.clone(), drops.len() as u64, 0));
    }

    /// Enqueues and dequeues at the same rate, with `behind` packets behind each departing one.
    /// Returns the number of drops.
    fn standing(fixture: &mut QueueFixture<dyn Queue>, behind: usize, milliseconds: u64) -> usize {
        let begin = fixture.now.0 / MILLI;
        let mut dropped = 0;
        for i in begin..begin + milliseconds {
            fixture.now = Time(i * MILLI);
            while (fixture.queue.backlog().packets as usize) <= behind {
                fixture.enqueue(packet(0, i as u32, 1500));
            }
            dropped += fixture.dequeue().1.len();
        }
        dropped
    }

    #[test]
    fn packets_below_the_target_or_with_at_most_an_mtu_behind_them_are_not_dropped() {
        assert_eq!(standing(&mut codel(false), 4, 1_000), 0, "4 ms");
        assert!(standing(&mut codel(false), 6, 1_000) > 0, "6 ms");
        let slow = ControlLaw { target: Duration::from_micros(1), ..defaults() };
        let mut slow = fixture(&Config { law: slow, capacity: None });
        assert_eq!(standing(&mut slow, 1, 1_000), 0, "one packet behind");
        assert!(standing(&mut slow, 2, 1_000) > 0, "two packets behind");
    }

    #[test]
    fn dropping_resumes_at_the_last_rate_if_it_ended_recently() {
        // Number of drops in the first 100 ms of a second series.
        let drops_in_second_series = |idle_ms: u64| {
            let mut fixture = codel(false);
            overload(&mut fixture, 1_000);
            fixture.drain();
            fixture.now = fixture.now + Duration::from_millis(idle_ms);
            standing(&mut fixture, 10, 115);
            standing(&mut fixture, 10, 100)
        };
        let (recent, long_ago) = (drops_in_second_series(200), drops_in_second_series(2_000));
        assert_eq!(long_ago, 1, "the second drop, 100 ms after the first");
        assert!(recent >= 5, "{recent}");
    }
}

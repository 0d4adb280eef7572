//! Which segments are lost, judged by when they left: RACK (RFC 8985 §6).
//!
//! A segment is lost if one that left later has come, and as much time has passed as that one's round trip
//! took, and some more, for what may have been overtaken. So a repair that is lost itself is noticed a round
//! trip later, and not by the time-out. An ACK costs the same however wide the window is.
//!
//! Deviation: the allowance for reordering is no more than the last round trip (§6.2 step 4: the smoothed
//! one).

use std::collections::VecDeque;

use crate::base::units::{Duration, Time};

/// A segment on its way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// When it last left.
    at: Time,
    /// Whether it had left before.
    is_copy: bool,
    has_come: bool,
}

/// When the segments left that are not acknowledged, and what came of them.
#[derive(Clone, Debug, Default)]
pub struct Rack {
    /// Of each segment from `first` on.
    sent: VecDeque<Sent>,
    first: u32,
    /// Every time at which a segment left, in that order, and which one it was; those that left again or
    /// have come are passed over.
    order: VecDeque<(Time, u32)>,
    /// The latest of these of which is known that it has come.
    latest: (Time, u32),
    /// The round trip that was measured last, and the least.
    rtt: Duration,
    least_rtt: Option<Duration>,
    /// All that has come lies before this.
    end: u32,
    /// Whether a segment was ever overtaken.
    has_reordered: bool,
    /// By how many quarters of a round trip more is allowed since duplicates were reported, for how many
    /// repairs more, and from which segment on further reports count.
    wider: u32,
    keeps: u32,
    round_ends: u32,
}

/// For so many repairs without reports of duplicates the allowance stays wide (RFC 8985 §6.2 step 4).
const KEEPS: u32 = 16;

impl Rack {
    /// A segment leaves.
    pub fn on_sent(&mut self, sequence: u32, now: Time) {
        let place = (sequence - self.first) as usize;
        let is_copy = place < self.sent.len();
        let sent = Sent { at: now, is_copy, has_come: false };
        if is_copy {
            self.sent[place] = sent;
        } else {
            self.sent.push_back(sent);
        }
        self.order.push_back((now, sequence));
    }

    /// The segments from `from` up to `to` have come, as is known now by an ACK that echoes the time stamp
    /// `echo`. Says which is the first of them that left once only.
    pub fn on_come(&mut self, from: u32, to: u32, now: Time, echo: Time) -> Option<u32> {
        let mut original = None;
        for sequence in from..to {
            let sent = self.sent.get_mut((sequence - self.first) as usize)?;
            sent.has_come = true;
            let Sent { at, is_copy, .. } = *sent;
            if !is_copy {
                original = original.or(Some(sequence));
            }
            let rtt = now.since(at);
            // An ACK that echoes an earlier time, or comes so soon, answers what was sent before (RFC 8985
            // §6.2 step 2).
            let is_too_soon = self.least_rtt.is_some_and(|least| rtt < least);
            if is_copy && (echo < at || is_too_soon) {
                continue;
            }
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
            self.rtt = rtt;
            self.latest = self.latest.max((at, sequence));
            self.has_reordered |= !is_copy && sequence < self.end;
            self.end = self.end.max(sequence + 1);
        }
        original
    }

    /// A segment that was taken for lost may still come.
    pub fn take_back(&mut self, sequence: u32) {
        let sent = self.sent[(sequence - self.first) as usize];
        let place = self.order.partition_point(|known| *known < (sent.at, sequence));
        if self.order.get(place) != Some(&(sent.at, sequence)) {
            self.order.insert(place, (sent.at, sequence));
        }
    }

    /// A segment was sent again that had only been overtaken.
    pub fn on_overtaken(&mut self) {
        self.has_reordered = true;
    }

    /// The receiver reports what has come twice, when all before `cumulative` and nothing from `next` on has:
    /// once a round trip that allows for more reordering (RFC 8985 §6.2 step 4).
    pub fn on_duplicate(&mut self, cumulative: u32, next: u32) {
        if cumulative >= self.round_ends {
            (self.round_ends, self.keeps) = (next, KEEPS);
            self.wider += 1;
        }
    }

    /// A repair is over.
    pub fn on_repaired(&mut self) {
        self.keeps = self.keeps.saturating_sub(1);
        if self.keeps == 0 {
            self.wider = 0;
        }
    }

    /// Everything before `cumulative` has come.
    pub fn forget_before(&mut self, cumulative: u32) {
        let count = (cumulative - self.first) as usize;
        self.sent.drain(..count.min(self.sent.len()));
        self.first = cumulative;
    }

    /// Calls `lost` with every segment that is lost now, if `hurries` without allowance for reordering; says
    /// when to ask again, if ever.
    pub fn judge(&mut self, now: Time, hurries: bool, mut lost: impl FnMut(u32)) -> Time {
        let allowed = self.rtt + self.allowance(hurries);
        while let Some((at, sequence)) = self.order.front().copied() {
            if self.is_on_its_way(at, sequence) {
                if (at, sequence) >= self.latest {
                    return Time::NEVER;
                }
                if now < at + allowed {
                    return self.last_overtaken() + allowed;
                }
                lost(sequence);
            }
            self.order.pop_front();
        }
        Time::NEVER
    }

    /// Whether so long after the last sending of a segment it is lost, if a time-out says that others are.
    pub fn is_overdue(&self, sequence: u32, now: Time) -> bool {
        let sent = self.sent[(sequence - self.first) as usize];
        now >= sent.at + self.rtt
    }

    /// When the first segment that is missing last left, if one is on its way.
    pub fn first_left(&self) -> Option<Time> {
        self.sent.front().map(|sent| sent.at)
    }

    /// How much longer than a round trip a segment may take (RFC 8985 §6.2 step 4).
    fn allowance(&self, hurries: bool) -> Duration {
        if hurries && !self.has_reordered {
            return Duration::ZERO;
        }
        let least = self.least_rtt.unwrap_or_default();
        (least * u64::from(1 + self.wider) / 4).min(self.rtt)
    }

    fn is_on_its_way(&self, at: Time, sequence: u32) -> bool {
        let sent = sequence.checked_sub(self.first).and_then(|place| self.sent.get(place as usize));
        sent.is_some_and(|sent| sent.at == at && !sent.has_come)
    }

    /// When the last segment left that is on its way and has been overtaken; there is one.
    fn last_overtaken(&self) -> Time {
        let end = self.order.partition_point(|sent| *sent < self.latest);
        let mut before = self.order.range(..end).rev();
        let last = before.find(|(at, sequence)| self.is_on_its_way(*at, *sequence));
        last.expect("one has been found from the other end").0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: u64 = 100;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// Segments that left a millisecond apart.
    fn sent(segments: u32) -> Rack {
        let mut rack = Rack::default();
        (0..segments).for_each(|sequence| rack.on_sent(sequence, at(u64::from(sequence))));
        rack
    }

    /// What is lost now, and when to ask again.
    fn lost(rack: &mut Rack, ms: u64, hurries: bool) -> (Vec<u32>, Time) {
        let mut found = Vec::new();
        let again = rack.judge(at(ms), hurries, |sequence| found.push(sequence));
        (found, again)
    }

    #[test]
    fn what_was_overtaken_has_a_quarter_of_a_round_trip_more() {
        let mut rack = sent(10);
        assert_eq!(lost(&mut rack, 99, false), (vec![], Time::NEVER), "nothing has come");
        rack.on_come(2, 3, at(2 + RTT), Time::NEVER);
        assert_eq!(lost(&mut rack, 102, false), (vec![], at(1 + RTT + 25)), "the last of both");
        assert_eq!(lost(&mut rack, 125, false), (vec![0], at(126)));
        assert_eq!(lost(&mut rack, 126, false), (vec![1], Time::NEVER));
        assert_eq!(lost(&mut rack, 500, false), (vec![], Time::NEVER), "nothing beyond has come");
    }

    #[test]
    fn who_hurries_allows_nothing_unless_segments_have_been_reordered() {
        let mut rack = sent(10);
        rack.on_come(2, 3, at(102), Time::NEVER);
        assert_eq!(lost(&mut rack, 102, true), (vec![0, 1], Time::NEVER));
        let mut rack = sent(10);
        rack.on_come(2, 3, at(102), Time::NEVER);
        rack.on_come(0, 1, at(103), Time::NEVER);
        assert_eq!(lost(&mut rack, 104, true).0, NOTHING);
        assert_eq!(lost(&mut rack, 1 + 103 + 25, true).0, [1]);
    }

    #[test]
    fn reports_of_duplicates_widen_the_allowance_once_a_round_trip_and_for_sixteen_repairs() {
        let mut rack = sent(20);
        rack.on_come(0, 1, at(RTT), Time::NEVER);
        // Of segment 1, when a later one has come.
        let waits = |mut rack: Rack| {
            rack.on_come(2, 3, at(102), Time::NEVER);
            lost(&mut rack, 102, false).1
        };
        assert_eq!(waits(rack.clone()), at(1 + RTT + 25));
        rack.on_duplicate(0, 10);
        rack.on_duplicate(9, 15);
        assert_eq!(waits(rack.clone()), at(1 + RTT + 50), "the second is of the same round trip");
        rack.on_duplicate(10, 20);
        assert_eq!(waits(rack.clone()), at(1 + RTT + 75));
        (20..30).for_each(|round| rack.on_duplicate(round, round + 1));
        assert_eq!(waits(rack.clone()), at(1 + RTT + RTT), "a round trip at most");
        (0..15).for_each(|_| rack.on_repaired());
        assert_eq!(waits(rack.clone()), at(1 + RTT + RTT));
        rack.on_repaired();
        assert_eq!(waits(rack), at(1 + RTT + 25));
    }

    const NOTHING: [u32; 0] = [];

    #[test]
    fn a_repair_is_lost_when_what_left_after_it_has_come() {
        let mut rack = sent(4);
        rack.on_come(1, 4, at(103), Time::NEVER);
        assert_eq!(lost(&mut rack, 103, true).0, [0]);
        rack.on_sent(0, at(103));
        rack.on_sent(4, at(104));
        assert_eq!(lost(&mut rack, 180, true).0, NOTHING);
        rack.on_come(4, 5, at(204), Time::NEVER);
        assert_eq!(lost(&mut rack, 204, true).0, [0]);
    }

    #[test]
    fn an_ack_that_comes_too_soon_for_a_copy_says_nothing_of_it() {
        let mut rack = sent(3);
        rack.on_come(0, 1, at(RTT), Time::NEVER);
        rack.forget_before(1);
        rack.on_sent(1, at(150));
        // The first copy has come after all: it tells nothing of what left before the second.
        rack.on_come(1, 2, at(160), Time::NEVER);
        assert_eq!(lost(&mut rack, 400, true), (vec![], Time::NEVER));
        assert!(rack.is_overdue(2, at(102)) && !rack.is_overdue(2, at(101)));
    }
}

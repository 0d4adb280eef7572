//! Loss detection by transmission times: RACK (RFC 8985 §6).
//!
//! A segment is lost if a segment sent later has been delivered, and the RTT of that segment plus a
//! reordering window has passed since the transmission. A lost retransmission is therefore detected
//! after an RTT instead of by the RTO. The cost of an ACK does not depend on the window.
//!
//! Deviation: a timeout declares segments lost that were sent an RTT ago, as in Linux
//! (`tcp_timeout_mark_lost`); §6.3 adds the reordering window.

use std::collections::VecDeque;

use crate::base::units::{Duration, Time};

/// Transmission record of a segment that is not cumulatively acknowledged.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    /// Time when the segment was last sent.
    sent_at: Time,
    is_retransmit: bool,
    is_delivered: bool,
}

/// RACK state of one sender.
#[derive(Clone, Debug, Default)]
pub struct Rack {
    /// Transmission records of the segments from `first` on.
    transmissions: VecDeque<Transmission>,
    first: u32,
    /// Transmissions as (time, segment) in the order of time. Entries of segments that were
    /// retransmitted or delivered since are skipped when read.
    by_time: VecDeque<(Time, u32)>,
    /// The latest transmission that is known to be delivered (`RACK.xmit_ts`, `RACK.end_seq`).
    latest_delivered: (Time, u32),
    /// The last RTT sample (`RACK.rtt`), and the minimum.
    rtt: Duration,
    min_rtt: Option<Duration>,
    /// The smoothed RTT, which limits the reordering window: the last RTT may be that of a faster path.
    smoothed_rtt: Option<Duration>,
    /// The end of the delivered data (`RACK.fack`).
    delivered_end: u32,
    /// True if reordering was ever observed (`RACK.reordering_seen`).
    has_reordered: bool,
    /// Quarters of the minimum RTT by which D-SACKs have widened the reordering window
    /// (`RACK.reo_wnd_mult` - 1).
    window_increments: u32,
    /// Recoveries for which the wider window remains (`RACK.reo_wnd_persist`).
    window_persist: u32,
    /// Further D-SACKs count from this segment on (`RACK.dsack_round`).
    duplicate_sack_round: u32,
}

/// Recoveries without D-SACKs after which the reordering window is reset (RFC 8985 §6.2 step 4).
const WINDOW_PERSIST: u32 = 16;

impl Rack {
    /// Records a transmission.
    pub fn on_sent(&mut self, sequence: u32, now: Time) {
        let index = (sequence - self.first) as usize;
        let is_retransmit = index < self.transmissions.len();
        let transmission = Transmission { sent_at: now, is_retransmit, is_delivered: false };
        if is_retransmit {
            self.transmissions[index] = transmission;
        } else {
            self.transmissions.push_back(transmission);
        }
        self.by_time.push_back((now, sequence));
    }

    /// Records the delivery of the segments `from..to`, reported by an ACK that echoes the timestamp
    /// `echo`. Returns the first of these segments that was sent only once.
    pub fn on_delivered(&mut self, from: u32, to: u32, now: Time, echo: Time) -> Option<u32> {
        let mut original = None;
        for sequence in from..to {
            let transmission = self.transmissions.get_mut((sequence - self.first) as usize)?;
            transmission.is_delivered = true;
            let Transmission { sent_at, is_retransmit, .. } = *transmission;
            if !is_retransmit {
                original = original.or(Some(sequence));
            }
            let rtt = now.since(sent_at);
            // An ACK that echoes an earlier timestamp, or arrives within the minimum RTT, belongs to
            // an earlier transmission (RFC 8985 §6.2 step 2).
            let is_too_soon = self.min_rtt.is_some_and(|min| rtt < min);
            if is_retransmit && (echo < sent_at || is_too_soon) {
                continue;
            }
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
            self.rtt = rtt;
            self.latest_delivered = self.latest_delivered.max((sent_at, sequence));
            self.has_reordered |= !is_retransmit && sequence < self.delivered_end;
            self.delivered_end = self.delivered_end.max(sequence + 1);
        }
        original
    }

    /// Considers a segment again that was declared lost.
    pub fn unmark_lost(&mut self, sequence: u32) {
        let sent_at = self.transmissions[(sequence - self.first) as usize].sent_at;
        let index = self.by_time.partition_point(|entry| *entry < (sent_at, sequence));
        if self.by_time.get(index) != Some(&(sent_at, sequence)) {
            self.by_time.insert(index, (sent_at, sequence));
        }
    }

    /// Sets the smoothed RTT of the sender.
    pub fn set_smoothed_rtt(&mut self, smoothed: Option<Duration>) {
        self.smoothed_rtt = smoothed;
    }

    /// Records that a spurious retransmission has revealed reordering.
    pub fn on_reordering(&mut self) {
        self.has_reordered = true;
    }

    /// Widens the reordering window for a D-SACK, at most once an RTT (RFC 8985 §6.2 step 4). The
    /// data before `cumulative` is acknowledged, and the data from `next` on is unsent.
    pub fn on_duplicate_sack(&mut self, cumulative: u32, next: u32) {
        if cumulative >= self.duplicate_sack_round {
            (self.duplicate_sack_round, self.window_persist) = (next, WINDOW_PERSIST);
            self.window_increments += 1;
        }
    }

    /// Records the end of a loss recovery.
    pub fn on_recovery_end(&mut self) {
        self.window_persist = self.window_persist.saturating_sub(1);
        if self.window_persist == 0 {
            self.window_increments = 0;
        }
    }

    /// Discards the records of the segments before `cumulative`.
    pub fn on_cumulative_ack(&mut self, cumulative: u32) {
        let count = (cumulative - self.first) as usize;
        self.transmissions.drain(..count.min(self.transmissions.len()));
        self.first = cumulative;
    }

    /// Calls `lost` with every segment that is lost now. `is_urgent` sets the reordering window to
    /// zero unless reordering was observed. Returns when to call again: the reordering timer.
    pub fn detect_losses(&mut self, now: Time, is_urgent: bool, mut lost: impl FnMut(u32)) -> Time {
        let timeout = self.rtt + self.reordering_window(is_urgent);
        while let Some((sent_at, sequence)) = self.by_time.front().copied() {
            if self.is_in_flight(sent_at, sequence) {
                if (sent_at, sequence) >= self.latest_delivered {
                    return Time::NEVER;
                }
                if now < sent_at + timeout {
                    return self.last_overtaken() + timeout;
                }
                lost(sequence);
            }
            self.by_time.pop_front();
        }
        Time::NEVER
    }

    /// Returns true if a timeout declares the segment lost: an RTT has passed since its last
    /// transmission (RFC 8985 §6.3, without the reordering window).
    pub fn is_overdue(&self, sequence: u32, now: Time) -> bool {
        now >= self.transmissions[(sequence - self.first) as usize].sent_at + self.rtt
    }

    /// Returns when the first unacknowledged segment was last sent, if there is one.
    pub fn first_sent_at(&self) -> Option<Time> {
        self.transmissions.front().map(|transmission| transmission.sent_at)
    }

    /// Returns the reordering window: the delay beyond an RTT (RFC 8985 §6.2 step 4).
    fn reordering_window(&self, is_urgent: bool) -> Duration {
        if is_urgent && !self.has_reordered {
            return Duration::ZERO;
        }
        let min_rtt = self.min_rtt.unwrap_or_default();
        let most = self.smoothed_rtt.unwrap_or(self.rtt);
        (min_rtt * u64::from(1 + self.window_increments) / 4).min(most)
    }

    fn is_in_flight(&self, sent_at: Time, sequence: u32) -> bool {
        let index = sequence.checked_sub(self.first);
        let transmission = index.and_then(|index| self.transmissions.get(index as usize));
        transmission.is_some_and(|last| last.sent_at == sent_at && !last.is_delivered)
    }

    /// Returns when the last segment was sent that is in flight and was sent before a delivered
    /// segment. There must be such a segment.
    fn last_overtaken(&self) -> Time {
        let end = self.by_time.partition_point(|entry| *entry < self.latest_delivered);
        let mut before = self.by_time.range(..end).rev();
        let last = before.find(|(sent_at, sequence)| self.is_in_flight(*sent_at, *sequence));
        last.expect("the caller has found an overtaken segment").0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: u64 = 100;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// Segments sent a millisecond apart.
    fn sent(segments: u32) -> Rack {
        let mut rack = Rack::default();
        (0..segments).for_each(|sequence| rack.on_sent(sequence, at(u64::from(sequence))));
        rack
    }

    /// The segments that are lost now, and the reordering timer.
    fn lost(rack: &mut Rack, ms: u64, is_urgent: bool) -> (Vec<u32>, Time) {
        let mut found = Vec::new();
        let timer = rack.detect_losses(at(ms), is_urgent, |sequence| found.push(sequence));
        (found, timer)
    }

    #[test]
    fn the_reordering_window_is_a_quarter_of_an_rtt() {
        let mut rack = sent(10);
        assert_eq!(lost(&mut rack, 99, false), (vec![], Time::NEVER), "no delivery");
        rack.on_delivered(2, 3, at(2 + RTT), Time::NEVER);
        assert_eq!(
            lost(&mut rack, 102, false),
            (vec![], at(1 + RTT + 25)),
            "the last of both segments"
        );
        assert_eq!(lost(&mut rack, 125, false), (vec![0], at(126)));
        assert_eq!(lost(&mut rack, 126, false), (vec![1], Time::NEVER));
        assert_eq!(lost(&mut rack, 500, false), (vec![], Time::NEVER), "no later delivery");
    }

    #[test]
    fn an_urgent_detection_has_no_reordering_window_unless_reordering_was_seen() {
        let mut rack = sent(10);
        rack.on_delivered(2, 3, at(102), Time::NEVER);
        assert_eq!(lost(&mut rack, 102, true), (vec![0, 1], Time::NEVER));
        let mut rack = sent(10);
        rack.on_delivered(2, 3, at(102), Time::NEVER);
        rack.on_delivered(0, 1, at(103), Time::NEVER);
        assert_eq!(lost(&mut rack, 104, true).0, NOTHING);
        assert_eq!(lost(&mut rack, 1 + 103 + 25, true).0, [1]);
    }

    #[test]
    fn duplicate_sacks_widen_the_window_once_an_rtt_and_for_sixteen_recoveries() {
        let mut rack = sent(20);
        rack.on_delivered(0, 1, at(RTT), Time::NEVER);
        // The reordering timer of segment 1 after the delivery of segment 2.
        let timer = |mut rack: Rack| {
            rack.on_delivered(2, 3, at(102), Time::NEVER);
            lost(&mut rack, 102, false).1
        };
        assert_eq!(timer(rack.clone()), at(1 + RTT + 25));
        rack.on_duplicate_sack(0, 10);
        rack.on_duplicate_sack(9, 15);
        assert_eq!(timer(rack.clone()), at(1 + RTT + 50), "the second D-SACK is in the same RTT");
        rack.on_duplicate_sack(10, 20);
        assert_eq!(timer(rack.clone()), at(1 + RTT + 75));
        (20..30).for_each(|round| rack.on_duplicate_sack(round, round + 1));
        assert_eq!(timer(rack.clone()), at(1 + RTT + RTT), "an RTT at most");
        (0..15).for_each(|_| rack.on_recovery_end());
        assert_eq!(timer(rack.clone()), at(1 + RTT + RTT));
        rack.on_recovery_end();
        assert_eq!(timer(rack), at(1 + RTT + 25));
    }

    #[test]
    fn the_smoothed_rtt_limits_the_window_and_not_the_last_one() {
        let mut rack = sent(20);
        rack.set_smoothed_rtt(Some(Duration::from_millis(3 * RTT)));
        (0..20).for_each(|round| rack.on_duplicate_sack(round, round + 1));
        // A fast path has given the last RTT.
        rack.on_delivered(2, 3, at(2 + RTT), Time::NEVER);
        assert_eq!(lost(&mut rack, 102, false).1, at(1 + RTT + 3 * RTT));
    }

    const NOTHING: [u32; 0] = [];

    #[test]
    fn a_retransmission_is_lost_when_a_later_transmission_is_delivered() {
        let mut rack = sent(4);
        rack.on_delivered(1, 4, at(103), Time::NEVER);
        assert_eq!(lost(&mut rack, 103, true).0, [0]);
        rack.on_sent(0, at(103));
        rack.on_sent(4, at(104));
        assert_eq!(lost(&mut rack, 180, true).0, NOTHING);
        rack.on_delivered(4, 5, at(204), Time::NEVER);
        assert_eq!(lost(&mut rack, 204, true).0, [0]);
    }

    #[test]
    fn an_ack_within_the_minimum_rtt_does_not_belong_to_the_retransmission() {
        let mut rack = sent(3);
        rack.on_delivered(0, 1, at(RTT), Time::NEVER);
        rack.on_cumulative_ack(1);
        rack.on_sent(1, at(150));
        // The original was delivered: its delivery does not date the retransmission.
        rack.on_delivered(1, 2, at(160), Time::NEVER);
        assert_eq!(lost(&mut rack, 400, true), (vec![], Time::NEVER));
        assert!(rack.is_overdue(2, at(102)) && !rack.is_overdue(2, at(101)));
    }
}

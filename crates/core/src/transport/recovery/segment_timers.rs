//! Timers of single segments (UEC 1.0): which segment in flight was sent first.

use std::collections::VecDeque;

use crate::base::units::Time;

/// Times of the last transmissions of segments.
#[derive(Clone, Debug, Default)]
pub struct SegmentTimers {
    /// Times by segment, from `first` on.
    sent_at: VecDeque<Time>,
    first: u32,
    /// Transmissions as (time, segment) in the order of time. The first one is that of a segment in flight;
    /// others may be of segments that are not, or that were sent again since.
    by_time: VecDeque<(Time, u32)>,
}

impl SegmentTimers {
    /// Records a transmission.
    pub fn on_sent(&mut self, sequence: u32, now: Time) {
        if let Some(index) = sequence.checked_sub(self.first) {
            let index = index as usize;
            self.sent_at.resize(self.sent_at.len().max(index + 1), now);
            self.sent_at[index] = now;
            self.by_time.push_back((now, sequence));
        }
    }

    /// Returns the first transmission of the segments in flight, and its segment.
    pub fn oldest(&self) -> Option<(Time, u32)> {
        self.by_time.front().copied()
    }

    /// Discards the transmissions of segments before `cumulative`, and the first ones that are not of
    /// segments in flight.
    pub fn discard(&mut self, cumulative: u32, is_in_flight: impl Fn(u32) -> bool) {
        let count = (cumulative.saturating_sub(self.first) as usize).min(self.sent_at.len());
        self.sent_at.drain(..count);
        self.first = self.first.max(cumulative);
        while let Some((time, sequence)) = self.by_time.front().copied() {
            let index = sequence.checked_sub(self.first).map(|index| index as usize);
            let is_last = index.and_then(|index| self.sent_at.get(index)) == Some(&time);
            if is_last && is_in_flight(sequence) {
                break;
            }
            self.by_time.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_the_first_transmission_of_those_in_flight() {
        let mut timers = SegmentTimers::default();
        (0..4).for_each(|segment| timers.on_sent(segment, Time(u64::from(segment))));
        assert_eq!(timers.oldest(), Some((Time(0), 0)));
        timers.on_sent(1, Time(9));
        timers.discard(1, |_| true);
        assert_eq!(timers.oldest(), Some((Time(2), 2)), "segment 1 was sent again");
        timers.discard(1, |segment| segment == 1);
        assert_eq!(timers.oldest(), Some((Time(9), 1)));
        timers.discard(4, |_| true);
        assert_eq!(timers.oldest(), None);
    }
}

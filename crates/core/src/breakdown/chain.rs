//! Chains of causes of selected flows: the intervals between the start of a flow and its completion.
//!
//! Only at the end is it known which transmissions led to the packet that completed the flow. Until
//! then all intervals are kept, up to a bound, each with the number of its predecessor.

use super::{Breakdown, Completion, Handshake, PATH_LOCATIONS, PATH_NAMES, PathDelays, WaitReason};
use crate::base::units::Duration;

/// Number of locations by which an interval is split.
pub const LOCATIONS: usize = PATH_LOCATIONS + 2;

/// Names of the locations, in order.
pub fn location_names() -> impl Iterator<Item = &'static str> {
    PATH_NAMES.iter().chain(&["receiver", "sender"]).copied()
}

/// Names of the reasons, by number.
pub const REASONS: [&str; 9] = [
    "handshake",
    "window",
    "rate",
    "turn",
    "recovery_gap",
    "recovery_timeout",
    "flight",
    "connection",
    "credit",
];

const HANDSHAKE: u8 = 0;
const WINDOW: u8 = 1;
const FLIGHT: u8 = 6;
const CONNECTION: u8 = 7;

impl WaitReason {
    /// Number of the reason in [`REASONS`].
    fn reason(self) -> u8 {
        match self {
            Self::Pacing => 2,
            Self::Nic | Self::NicPaused => 3,
            Self::SequenceGap => 4,
            Self::Timeout => 5,
            Self::Connection => CONNECTION,
            Self::Credit => 8,
        }
    }
}

/// Interval of a chain: a span of time with one reason, split by location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainInterval {
    /// Number of the reason in [`REASONS`].
    pub reason: u8,
    /// Durations by location.
    pub durations: [Duration; LOCATIONS],
}

impl ChainInterval {
    fn new(reason: u8, delays: &PathDelays, receiver: Duration, sender: Duration) -> Self {
        let mut durations = [Duration::ZERO; LOCATIONS];
        durations[..PATH_LOCATIONS].copy_from_slice(&delays.0);
        durations[PATH_LOCATIONS..].copy_from_slice(&[receiver, sender]);
        Self { reason, durations }
    }
}

/// Intervals that precede any transmission of a flow, up to a number of them.
///
/// There is one for each packet, and most of its durations are zero. So an interval is a word with the
/// position of its predecessor, the reason and a bit for each location, and then the other durations.
#[derive(Debug, Default)]
pub struct Chain {
    words: Vec<u64>,
    intervals: usize,
    most: usize,
}

/// Layout of the first word of an interval: the position of the predecessor in the lowest bits, then the
/// reason, then a bit for each location whose duration is not zero.
const REASON_SHIFT: u32 = u32::BITS;
const LOCATIONS_SHIFT: u32 = REASON_SHIFT + u8::BITS;

const _: () = assert!(LOCATIONS_SHIFT as usize + LOCATIONS <= u64::BITS as usize);

/// Position of an interval that is not kept because there were too many before it.
const NOT_KEPT: u32 = u32::MAX;

impl Chain {
    /// Returns an empty chain that keeps the first `most` intervals.
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Keeps the first `most` intervals, or more.
    pub fn extend(&mut self, most: usize) {
        self.most = self.most.max(most);
    }

    /// Adds a wait at the sender.
    pub fn add_wait(&mut self, breakdown: &mut Breakdown, reason: WaitReason, duration: Duration) {
        if duration > Duration::ZERO {
            let (at_port, at_sender) = match reason {
                WaitReason::NicPaused => (PathDelays::host_pause(duration), Duration::ZERO),
                _ => (PathDelays::ZERO, duration),
            };
            let reason = reason.reason();
            self.add(breakdown, &ChainInterval::new(reason, &at_port, Duration::ZERO, at_sender));
        }
    }

    /// Adds an RTT for which the window was full.
    pub fn add_window_rtt(
        &mut self,
        breakdown: &mut Breakdown,
        delays: &PathDelays,
        receiver: Duration,
    ) {
        self.add(breakdown, &ChainInterval::new(WINDOW, delays, receiver, Duration::ZERO));
    }

    fn add(&mut self, breakdown: &mut Breakdown, interval: &ChainInterval) {
        if self.intervals == self.most {
            breakdown.last_interval = NOT_KEPT;
            return;
        }
        let first = self.words.len();
        let ChainInterval { reason, durations } = interval;
        let mut header = u64::from(breakdown.last_interval) | u64::from(*reason) << REASON_SHIFT;
        self.words.push(header);
        for (location, duration) in durations.iter().enumerate() {
            if *duration > Duration::ZERO {
                header |= 1 << (LOCATIONS_SHIFT as usize + location);
                self.words.push(duration.0);
            }
        }
        self.words[first] = header;
        self.intervals += 1;
        breakdown.last_interval = first as u32 + 1;
    }

    /// Returns the interval at a position, and the position of its predecessor; `None` if it is not kept.
    fn interval(&self, position: u32) -> Option<(ChainInterval, u32)> {
        let (header, mut rest) = self.words.get(position as usize..)?.split_first()?;
        let mut durations = [Duration::ZERO; LOCATIONS];
        for (location, duration) in durations.iter_mut().enumerate() {
            if header >> (LOCATIONS_SHIFT as usize + location) & 1 == 1 {
                let (first, others) = rest.split_first()?;
                (*duration, rest) = (Duration(*first), others);
            }
        }
        Some((ChainInterval { reason: (header >> REASON_SHIFT) as u8, durations }, *header as u32))
    }

    /// Returns the intervals from the start of the flow to its completion, if all are kept.
    pub fn leading_to(
        &self,
        handshake: &Handshake,
        completion: &Completion,
    ) -> Option<Vec<ChainInterval>> {
        let Completion { delays: flight, connection, .. } = completion;
        let mut intervals = Vec::new();
        if *connection > Duration::ZERO {
            let none = PathDelays::ZERO;
            intervals.push(ChainInterval::new(CONNECTION, &none, *connection, Duration::ZERO));
        }
        intervals.push(ChainInterval::new(FLIGHT, flight, Duration::ZERO, Duration::ZERO));
        let mut next = completion.breakdown.last_interval;
        while let Some(position) = next.checked_sub(1) {
            let interval;
            (interval, next) = self.interval(position)?;
            intervals.push(interval);
        }
        if *handshake != Handshake::default() {
            let Handshake { delays, sender } = handshake;
            intervals.push(ChainInterval::new(HANDSHAKE, delays, Duration::ZERO, *sender));
        }
        intervals.reverse();
        Some(intervals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_contains_only_intervals_that_led_to_the_last_packet() {
        let us = Duration::from_micros;
        let mut chain = Chain::new(4);
        let delays = PathDelays::new(&Default::default(), us(1), us(9));
        let mut first = Breakdown::default();
        chain.add_wait(&mut first, WaitReason::Pacing, us(3));
        chain.add_wait(&mut first, WaitReason::Nic, Duration::ZERO);
        let mut other = first;
        chain.add_wait(&mut other, WaitReason::SequenceGap, us(100));
        let mut last = first;
        chain.add_window_rtt(&mut last, &delays, us(4));
        let handshake = Handshake { delays, sender: us(7) };
        let mut completion = Completion { breakdown: last, delays, connection: us(2) };
        let intervals: Vec<(&str, u64)> = chain
            .leading_to(&handshake, &completion)
            .unwrap()
            .iter()
            .map(|interval| {
                let duration: u64 = interval.durations.iter().map(|part| part.0 / 1_000_000).sum();
                (REASONS[usize::from(interval.reason)], duration)
            })
            .collect();
        let expected =
            [("handshake", 17), ("rate", 3), ("window", 14), ("flight", 10), ("connection", 2)];
        assert_eq!(intervals, expected);
        chain.add_wait(&mut completion.breakdown, WaitReason::Pacing, us(1));
        assert!(chain.leading_to(&handshake, &completion).is_some(), "four intervals are kept");
        chain.add_wait(&mut completion.breakdown, WaitReason::Pacing, us(1));
        assert!(chain.leading_to(&handshake, &completion).is_none(), "the fifth is not");
        assert_eq!(location_names().count(), LOCATIONS);
    }
}

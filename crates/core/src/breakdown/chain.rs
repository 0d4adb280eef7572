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
    /// Number of the predecessor, counted from 1; 0 for the first interval after the handshake.
    predecessor: u32,
}

impl ChainInterval {
    fn new(reason: u8, delays: &PathDelays, receiver: Duration, sender: Duration) -> Self {
        let mut durations = [Duration::ZERO; LOCATIONS];
        durations[..PATH_LOCATIONS].copy_from_slice(&delays.0);
        durations[PATH_LOCATIONS..].copy_from_slice(&[receiver, sender]);
        Self { reason, durations, predecessor: 0 }
    }
}

/// Intervals that precede any transmission of a flow, up to a number of them.
#[derive(Debug, Default)]
pub struct Chain {
    intervals: Vec<ChainInterval>,
    most: usize,
}

/// Number of an interval that is not kept because there were too many before it.
const NOT_KEPT: u32 = u32::MAX;

impl Chain {
    /// Returns an empty chain that keeps the first `most` intervals.
    pub fn new(most: usize) -> Self {
        Self { intervals: Vec::new(), most }
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
            self.add(breakdown, ChainInterval::new(reason, &at_port, Duration::ZERO, at_sender));
        }
    }

    /// Adds an RTT for which the window was full.
    pub fn add_window_rtt(
        &mut self,
        breakdown: &mut Breakdown,
        delays: &PathDelays,
        receiver: Duration,
    ) {
        self.add(breakdown, ChainInterval::new(WINDOW, delays, receiver, Duration::ZERO));
    }

    fn add(&mut self, breakdown: &mut Breakdown, interval: ChainInterval) {
        if self.intervals.len() < self.most {
            self.intervals.push(ChainInterval { predecessor: breakdown.last_interval, ..interval });
            breakdown.last_interval = self.intervals.len() as u32;
        } else {
            breakdown.last_interval = NOT_KEPT;
        }
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
        while let Some(index) = next.checked_sub(1) {
            let interval = self.intervals.get(index as usize)?;
            intervals.push(*interval);
            next = interval.predecessor;
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

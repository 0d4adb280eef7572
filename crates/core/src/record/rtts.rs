//! Round-trip times that transports were told: counted for all flows, and taken apart for some.

use std::collections::VecDeque;

use crate::base::units::{Bytes, Duration, Time};

/// Bins an octave: each is at most 1.6 % wide.
const OCTAVE: u64 = 64;

/// Counts durations in bins of nearly equal relative width, to a nanosecond.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
}

impl Histogram {
    /// Adds what another has counted.
    pub fn absorb(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (own, other) in self.counts.iter_mut().zip(&other.counts) {
            *own += other;
        }
    }

    /// Counts one.
    pub fn count(&mut self, duration: Duration) {
        let bin = bin(duration.0 / 1_000);
        if bin >= self.counts.len() {
            self.counts.resize(bin + 1, 0);
        }
        self.counts[bin] += 1;
    }

    /// The bins that are not empty: from, up to but not including, and how many.
    pub fn bins(&self) -> impl Iterator<Item = (Duration, Duration, u64)> {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let edge = |bin| Duration::from_nanos(least(bin));
        filled.map(move |(bin, count)| (edge(bin), edge(bin + 1), *count))
    }
}

/// The bin of a number: itself below one octave; above, the octave and the next six bits.
fn bin(number: u64) -> usize {
    let octave = (number | (OCTAVE - 1)).ilog2() - (OCTAVE - 1).ilog2();
    let shift = octave.saturating_sub(1);
    (u64::from(shift) * OCTAVE + (number >> shift)) as usize
}

/// The least number in a bin.
fn least(bin: usize) -> u64 {
    let bin = bin as u64;
    let shift = (bin / OCTAVE).saturating_sub(1);
    (bin - shift * OCTAVE) << shift
}

/// A measured round-trip time and what it is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// What it was in truth.
    pub exact: Duration,
    /// Waiting on the way there; in the host's own port too, unless packets are stamped on the wire.
    pub forward: Duration,
    /// Waiting on the way back.
    pub reverse: Duration,
    /// Transmission and propagation, there and back.
    pub fixed: Duration,
}

/// A packet that its receiver has answered.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    sent: Time,
    came: Time,
    bytes: u16,
    cumulative: u32,
}

/// Follows the packets of one flow there and back.
#[derive(Debug)]
pub struct Trace {
    /// The probes that take what it finds.
    pub probes: Probes,
    answers: VecDeque<Answered>,
}

/// The probes of one flow's round trips: what was told, its [`Parts`] in order, and whether the packet was
/// marked.
pub type Probes = [u32; 6];

impl Trace {
    /// Nothing has been sent.
    pub fn new(probes: Probes) -> Self {
        Self { probes, answers: VecDeque::new() }
    }

    /// A packet of `bytes` that was sent at `sent` has come, and is answered with this number.
    pub fn on_answer(&mut self, sent: Time, came: Time, bytes: u16, cumulative: u32) {
        self.answers.push_back(Answered { sent, came, bytes, cumulative });
    }

    /// Takes what has been answered, to be told elsewhere.
    pub fn take_answers(&mut self) -> Vec<Answered> {
        self.answers.drain(..).collect()
    }

    /// Takes in what has been answered elsewhere.
    pub fn add_answers(&mut self, answers: &[Answered]) {
        self.answers.extend(answers);
    }

    /// The answer to a packet sent at `sent` has come, with this number; `alone` says what a packet of
    /// so many bytes takes there, and its answer back, over an empty network. `None` for what was not
    /// followed.
    pub fn on_return(
        &mut self,
        sent: Time,
        now: Time,
        cumulative: u32,
        alone: impl Fn(Bytes) -> (Duration, Duration),
    ) -> Option<Parts> {
        let is_this =
            |answered: &Answered| answered.sent == sent && answered.cumulative == cumulative;
        let at = self.answers.iter().position(is_this)?;
        // Answers before it were lost, or come later over another path; those are not followed.
        let answered = self.answers.drain(..=at).next_back()?;
        let (there, back) = alone(Bytes(u64::from(answered.bytes)));
        Some(Parts {
            exact: now - sent,
            forward: (answered.came - sent).saturating_sub(there),
            reverse: (now - answered.came).saturating_sub(back),
            fixed: there + back,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bins_follow_one_another_and_are_narrow(number in 0_u64..1 << 50) {
            let bin = bin(number);
            let (from, to) = (least(bin), least(bin + 1));
            prop_assert!(from <= number && number < to);
            prop_assert!(to - from <= 1 + number / OCTAVE);
        }
    }

    #[test]
    fn a_round_trip_is_the_sum_of_its_parts() {
        let mut trace = Trace::new(Probes::default());
        let at = |us| Time::ZERO + Duration::from_micros(us);
        trace.on_answer(at(0), at(17), 1000, 1);
        trace.on_answer(at(3), at(20), 1000, 2);
        let alone = |_| (Duration::from_micros(10), Duration::from_micros(6));
        let parts = trace.on_return(at(3), at(30), 2, alone).unwrap();
        let us = Duration::from_micros;
        let expected = Parts { exact: us(27), forward: us(7), reverse: us(4), fixed: us(16) };
        assert_eq!(parts, expected);
        assert_eq!(parts.exact, parts.forward + parts.reverse + parts.fixed);
        assert_eq!(trace.on_return(at(0), at(31), 1, alone), None, "it was overtaken");
    }
}

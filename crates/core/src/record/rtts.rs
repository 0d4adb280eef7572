//! RTTs that transports measure: histograms for all flows, components for selected flows.

use std::collections::VecDeque;

use crate::base::units::{Bytes, Duration, Time};

/// Bins per octave: each is at most 1.6 % wide.
const OCTAVE: u64 = 64;

/// Histogram of durations with bins of nearly equal relative width and a resolution of 1 ns.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
}

impl Histogram {
    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (own, other) in self.counts.iter_mut().zip(&other.counts) {
            *own += other;
        }
    }

    /// Counts a duration.
    pub fn count(&mut self, duration: Duration) {
        let bin = bin(duration.0 / 1_000);
        if bin >= self.counts.len() {
            self.counts.resize(bin + 1, 0);
        }
        self.counts[bin] += 1;
    }

    /// Returns the bins that are not empty: lower edge, upper edge (exclusive) and count.
    pub fn bins(&self) -> impl Iterator<Item = (Duration, Duration, u64)> {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let edge = |bin| Duration::from_nanos(lower_edge(bin));
        filled.map(move |(bin, count)| (edge(bin), edge(bin + 1), *count))
    }
}

/// Bin of a number: the number itself below one octave, otherwise the octave and the next six bits.
fn bin(number: u64) -> usize {
    let octave = (number | (OCTAVE - 1)).ilog2() - (OCTAVE - 1).ilog2();
    let shift = octave.saturating_sub(1);
    (u64::from(shift) * OCTAVE + (number >> shift)) as usize
}

/// Lower edge of a bin.
fn lower_edge(bin: usize) -> u64 {
    let bin = bin as u64;
    let shift = (bin / OCTAVE).saturating_sub(1);
    (bin - shift * OCTAVE) << shift
}

/// Components of an RTT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RttComponents {
    /// RTT without measurement error.
    pub exact: Duration,
    /// Queueing delay on the forward path, including the sender's NIC unless packets are stamped on the link.
    pub forward: Duration,
    /// Queueing delay on the reverse path.
    pub reverse: Duration,
    /// Transmission and propagation delay on both paths.
    pub fixed: Duration,
}

/// Data packet that the receiver has acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    sent_at: Time,
    received_at: Time,
    bytes: u16,
    cumulative: u32,
}

/// RTT trace of one flow.
#[derive(Debug)]
pub struct RttTrace {
    /// Probes of the flow's RTTs.
    pub probes: RttProbes,
    answers: VecDeque<Answered>,
}

/// Probes of a flow: the measured RTT, its [components](RttComponents) in order, and ECN marks.
pub type RttProbes = [u32; 6];

impl RttTrace {
    /// Returns an empty trace.
    pub fn new(probes: RttProbes) -> Self {
        Self { probes, answers: VecDeque::new() }
    }

    /// Adds a packet that the receiver answers with this cumulative acknowledgement.
    pub fn on_answer(&mut self, sent_at: Time, received_at: Time, bytes: u16, cumulative: u32) {
        self.answers.push_back(Answered { sent_at, received_at, bytes, cumulative });
    }

    /// Removes and returns the answered packets, for the sender's partition.
    pub fn take_answers(&mut self) -> Vec<Answered> {
        self.answers.drain(..).collect()
    }

    /// Adds packets that were answered in the receiver's partition.
    pub fn add_answers(&mut self, answers: &[Answered]) {
        self.answers.extend(answers);
    }

    /// Returns the components of the RTT of a packet whose answer the sender receives now. In an empty
    /// network the answer takes `reverse`, and `forward` maps the size of the packet to its delay. `None`
    /// if the packet is not in the trace.
    pub fn on_ack(
        &mut self,
        sent_at: Time,
        now: Time,
        cumulative: u32,
        reverse: Duration,
        forward: impl Fn(Bytes) -> Duration,
    ) -> Option<RttComponents> {
        // Packets of one burst may have the same key. An answer that cannot have arrived yet is that of a
        // later packet, which a sender in another partition may not know.
        let is_match = |answered: &Answered| {
            (answered.sent_at, answered.cumulative) == (sent_at, cumulative)
                && answered.received_at + reverse <= now
        };
        let index = self.answers.iter().position(is_match)?;
        // Earlier answers were lost, or arrive later over another path. Those are not traced.
        let answered = self.answers.drain(..=index).next_back()?;
        let forward = forward(Bytes(u64::from(answered.bytes)));
        Some(RttComponents {
            exact: now - sent_at,
            forward: (answered.received_at - sent_at).saturating_sub(forward),
            reverse: (now - answered.received_at).saturating_sub(reverse),
            fixed: forward + reverse,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bins_are_adjacent_and_narrow(number in 0_u64..1 << 50) {
            let bin = bin(number);
            let (from, to) = (lower_edge(bin), lower_edge(bin + 1));
            prop_assert!(from <= number && number < to);
            prop_assert!(to - from <= 1 + number / OCTAVE);
        }
    }

    #[test]
    fn the_components_of_an_rtt_sum_to_it() {
        let mut trace = RttTrace::new(RttProbes::default());
        let at = |us| Time::ZERO + Duration::from_micros(us);
        trace.on_answer(at(0), at(17), 1000, 1);
        trace.on_answer(at(3), at(20), 1000, 2);
        let us = Duration::from_micros;
        let components = trace.on_ack(at(3), at(30), 2, us(6), |_| us(10)).unwrap();
        let expected =
            RttComponents { exact: us(27), forward: us(7), reverse: us(4), fixed: us(16) };
        assert_eq!(components, expected);
        let RttComponents { exact, forward, reverse, fixed } = components;
        assert_eq!(exact, forward + reverse + fixed);
        let overtaken = trace.on_ack(at(0), at(31), 1, us(6), |_| us(10));
        assert_eq!(overtaken, None, "a later answer overtook it");
    }

    #[test]
    fn an_answer_that_cannot_have_arrived_is_that_of_a_later_packet() {
        let us = Duration::from_micros;
        let at = |number| Time::ZERO + us(number);
        let mut trace = RttTrace::new(RttProbes::default());
        trace.on_answer(at(0), at(17), 1000, 1);
        trace.on_answer(at(0), at(19), 1000, 1);
        let mut exact = |now| {
            let components = trace.on_ack(at(0), at(now), 1, us(6), |_| us(10));
            components.map(|components| components.exact)
        };
        assert_eq!([exact(23), exact(24), exact(25)], [Some(us(23)), None, Some(us(25))]);
    }
}

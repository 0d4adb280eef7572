//! Choice of the path of each packet by its sending host: the interface of entropy selectors.
//!
//! A packet carries an entropy value (EV), as in a UDP port that switches hash. Each value names a path of
//! the flow, in general pseudo-randomly: several may name the same one. The receiver returns the value with
//! its answer, so that the sender can avoid congested paths without knowing the network.

use crate::base::random::Random;
use crate::base::units::Time;

/// State of a path, by the answer to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFeedback {
    /// The packet arrived without an ECN mark, or was trimmed at the last hop, which all paths share.
    Good,
    /// The packet was marked.
    Marked,
    /// The packet was trimmed before the last hop.
    Trimmed,
    /// The packet was trimmed, and its header returned.
    Returned,
    /// The packet was lost.
    Timeout,
}

/// Selector of the entropy values of one flow.
pub trait EntropySelector: Send {
    /// Returns the entropy value of the next packet. `window` is the congestion window in packets.
    fn next(&mut self, now: Time, window: u32) -> u16;

    /// Handles the feedback for a packet with this entropy value.
    fn on_feedback(&mut self, now: Time, entropy: u16, feedback: PathFeedback);

    /// Handles an ACK, after its feedback: `acknowledged` segments are, of `sent`.
    fn on_progress(&mut self, _now: Time, _acknowledged: u32, _sent: u32) {}
}

/// Way in which an entropy value names a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueUse {
    /// A hash of flow and value is the path. Answers take random paths.
    Hash,
    /// A hash of flow and value is the path. As the flow takes one path at a time, so do its answers.
    OnePath,
    /// The value is the number of the path. Answers take random paths.
    Number,
}

/// Kind of entropy selector.
pub trait SelectorKind {
    /// Returns the selector of a flow with this number of paths, which draws from `random`.
    fn build(&self, random: Random, paths: u32) -> Box<dyn EntropySelector>;

    /// Returns how a value names a path.
    fn value_use(&self) -> ValueUse {
        ValueUse::Hash
    }
}

/// Source of random integers below a bound.
pub trait Draw: Send {
    /// Returns the next integer below `bound`.
    fn below(&mut self, bound: u64) -> u64;
}

impl Draw for Random {
    fn below(&mut self, bound: u64) -> u64 {
        Self::below(self, bound)
    }
}

/// Entropy values in rounds: each value once, in an order that is drawn anew for each round.
pub struct Rounds {
    values: u32,
    /// Higher bits of all values.
    high: u16,
    /// Number whose exclusive or with the index is the value.
    order: u16,
    index: u32,
}

impl Rounds {
    /// Starts the first round of this number of values, a power of two.
    pub fn new(values: u32, random: &mut impl Draw) -> Self {
        let high = random.below(1 << 16) as u16;
        Self::with(values, high, random.below(u64::from(values)) as u16)
    }

    /// Starts a round with these numbers.
    pub fn with(values: u32, high: u16, order: u16) -> Self {
        Self { values, high: high & !(values - 1) as u16, order, index: 0 }
    }

    /// Returns the number of values.
    pub fn size(&self) -> usize {
        self.values as usize
    }

    /// Returns the current value without its higher bits.
    pub fn current(&self) -> u16 {
        (self.index as u16 ^ self.order) & (self.values - 1) as u16
    }

    /// Returns the current value.
    pub fn value(&self) -> u16 {
        self.high | self.current()
    }

    /// Advances to the next value.
    pub fn step(&mut self, random: &mut impl Draw) {
        self.index += 1;
        if self.index == self.values {
            self.index = 0;
            self.order = random.below(u64::from(self.values)) as u16;
        }
    }
}

//! REPS without a bound on the values to use again.

use std::collections::VecDeque;

use super::{Draw, EntropySelector, PathFeedback, Random, SelectorKind, values};
use crate::base::units::Time;

crate::parameters! {
    /// Entropy values of packets that arrived unmarked, each once again, and otherwise random ones; first a
    /// window of all values in turn (htsim, `reps_legacy`).
    pub struct Config {
        /// Entropy values of a flow, rounded up to a power of two (UEC 1.0: 64 to 256).
        pub values: u32 = 64, where values;
    }
}

impl SelectorKind for Config {
    fn build(&self, random: Random, _paths: u32) -> Box<dyn EntropySelector> {
        let values = self.values.next_power_of_two();
        Box::new(RepsLegacy { values, random, good: VecDeque::new(), sent: 0 })
    }
}

/// Selector of a flow.
pub struct RepsLegacy<D> {
    /// Number of values.
    pub values: u32,
    /// Source of other values.
    pub random: D,
    /// Values to use again.
    pub good: VecDeque<u16>,
    /// Packets of the first window.
    pub sent: u32,
}

impl<D: Draw> EntropySelector for RepsLegacy<D> {
    fn next(&mut self, _now: Time, window: u32) -> u16 {
        if self.sent < window.min(self.values) {
            self.sent += 1;
            return (self.sent % self.values) as u16;
        }
        let random = || self.random.below(u64::from(self.values)) as u16;
        self.good.pop_front().unwrap_or_else(random)
    }

    fn on_feedback(&mut self, _now: Time, entropy: u16, feedback: PathFeedback) {
        if feedback == PathFeedback::Good {
            self.good.push_back(entropy);
        }
    }
}

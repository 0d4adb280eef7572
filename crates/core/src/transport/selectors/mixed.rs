//! REPS, and a bitmap where REPS would choose at random.

use std::collections::VecDeque;

use super::bitmap::Bitmap;
use super::{Draw, EntropySelector, PathFeedback, Random, Rounds, SelectorKind, values};
use crate::base::units::Time;

crate::parameters! {
    /// Entropy values of packets that arrived unmarked, each once again, and otherwise those of `bitmap`
    /// (htsim, `mixed`, its default).
    pub struct Config {
        /// Entropy values of a flow, rounded up to a power of two (UEC 1.0: 64 to 256).
        pub values: u32 = 64, where values;
    }
}

impl SelectorKind for Config {
    fn build(&self, mut random: Random, _paths: u32) -> Box<dyn EntropySelector> {
        let rounds = Rounds::new(self.values.next_power_of_two(), &mut random);
        Box::new(Mixed { good: VecDeque::new(), bitmap: Bitmap::new(rounds, random) })
    }
}

/// Selector of a flow.
pub struct Mixed<D> {
    /// Values to use again.
    pub good: VecDeque<u16>,
    /// Selector of other values.
    pub bitmap: Bitmap<D>,
}

impl<D: Draw> EntropySelector for Mixed<D> {
    fn next(&mut self, now: Time, window: u32) -> u16 {
        self.good.pop_front().unwrap_or_else(|| self.bitmap.next(now, window))
    }

    fn on_feedback(&mut self, now: Time, entropy: u16, feedback: PathFeedback) {
        if feedback == PathFeedback::Good {
            self.good.push_back(entropy);
        }
        self.bitmap.on_feedback(now, entropy, feedback);
    }
}

//! Bitmap: all entropy values in turn, except those with recent congestion.

use super::{Draw, EntropySelector, PathFeedback, Random, Rounds, SelectorKind, values};
use crate::base::units::Time;

crate::parameters! {
    /// All entropy values in rounds, except those whose packets were marked, trimmed or lost: each of these
    /// is skipped in some rounds (htsim, `bitmap`).
    pub struct Config {
        /// Entropy values of a flow, rounded up to a power of two (UEC 1.0: 64 to 256).
        pub values: u32 = 64, where values;
    }
}

impl SelectorKind for Config {
    fn build(&self, mut random: Random, _paths: u32) -> Box<dyn EntropySelector> {
        let rounds = Rounds::new(self.values.next_power_of_two(), &mut random);
        Box::new(Bitmap::new(rounds, random))
    }
}

/// Rounds for which a value is skipped at most.
const MOST: u8 = 15;

/// Selector of a flow.
pub struct Bitmap<D> {
    rounds: Rounds,
    random: D,
    /// Rounds for which each value is skipped.
    penalties: Box<[u8]>,
}

impl<D: Draw> Bitmap<D> {
    /// Returns a selector of the values in `rounds`.
    pub fn new(rounds: Rounds, random: D) -> Self {
        let penalties = vec![0; rounds.size()].into();
        Self { rounds, random, penalties }
    }
}

impl<D: Draw> EntropySelector for Bitmap<D> {
    fn next(&mut self, _now: Time, _window: u32) -> u16 {
        let Self { rounds, random, penalties } = self;
        let penalty = |rounds: &Rounds| usize::from(rounds.current());
        let first = penalty(rounds);
        if penalties[first] > 0 {
            penalties[first] -= 1;
            // If all values have a penalty, any will do.
            for _ in 0..=penalties.len() {
                rounds.step(random);
                if penalties[penalty(rounds)] == 0 {
                    break;
                }
            }
        }
        let value = rounds.value();
        rounds.step(random);
        value
    }

    fn on_feedback(&mut self, _now: Time, entropy: u16, feedback: PathFeedback) {
        let added = match feedback {
            PathFeedback::Good => 0,
            PathFeedback::Marked => 1,
            PathFeedback::Trimmed | PathFeedback::Returned => 4,
            PathFeedback::Timeout => MOST,
        };
        let index = usize::from(entropy) & (self.penalties.len() - 1);
        self.penalties[index] = (self.penalties[index] + added).min(MOST);
    }
}

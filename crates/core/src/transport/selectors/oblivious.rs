//! Oblivious spraying: all entropy values in turn, without feedback.

use super::{Draw, EntropySelector, PathFeedback, Random, Rounds, SelectorKind, values};
use crate::base::units::Time;

crate::parameters! {
    /// All entropy values in rounds, each round in another order, without feedback (htsim, `oblivious`).
    pub struct Config {
        /// Entropy values of a flow, rounded up to a power of two (UEC 1.0: 64 to 256).
        pub values: u32 = 64, where values;
    }
}

impl SelectorKind for Config {
    fn build(&self, mut random: Random, _paths: u32) -> Box<dyn EntropySelector> {
        let rounds = Rounds::new(self.values.next_power_of_two(), &mut random);
        Box::new(Oblivious { rounds, random })
    }
}

/// Selector of a flow.
pub struct Oblivious<D> {
    /// Values in rounds.
    pub rounds: Rounds,
    /// Source of the order of rounds.
    pub random: D,
}

impl<D: Draw> EntropySelector for Oblivious<D> {
    fn next(&mut self, _now: Time, _window: u32) -> u16 {
        let value = self.rounds.value();
        self.rounds.step(&mut self.random);
        value
    }

    fn on_feedback(&mut self, _now: Time, _entropy: u16, _feedback: PathFeedback) {}
}

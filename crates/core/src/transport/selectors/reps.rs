//! REPS: recycled entropies for packet spraying.
//!
//! Source: htsim's `buffer_reps`, after [reps24].

use super::{Draw, EntropySelector, PathFeedback, Random, SelectorKind, values};
use crate::base::schema::positive;
use crate::base::units::{Duration, Time};

crate::parameters! {
    /// Entropy values of the last packets that arrived unmarked, each once again, and otherwise random ones;
    /// after a timeout only these, marked or not, since a link may have failed ([reps24]).
    pub struct Config {
        /// Entropy values of a flow, rounded up to a power of two (UEC 1.0: 64 to 256).
        pub values: u32 = 64, where values;
        /// Time after a timeout during which no new values are used.
        pub freezing: Duration = Duration::from_millis(10), where positive;
    }
}

impl SelectorKind for Config {
    fn build(&self, random: Random, _paths: u32) -> Box<dyn EntropySelector> {
        Box::new(Reps::new(self, random))
    }
}

/// Values that are stored.
const STORED: usize = 8;
/// Packets on random paths after a thaw.
const EXPLORED: u32 = 16;

/// Selector of a flow.
pub struct Reps<D> {
    values: u32,
    freezing: Duration,
    random: D,
    /// Values of the last packets that arrived unmarked, as a ring, and the number of them that were not used
    /// since.
    stored: [u16; STORED],
    is_fresh: [bool; STORED],
    fresh: usize,
    /// Index of the next value to store, and the number of values.
    head: usize,
    count: usize,
    /// End of the freezing, and the next value while it lasts.
    frozen_until: Option<Time>,
    next_frozen: usize,
    /// Packets that still take random paths.
    exploring: u32,
}

impl<D: Draw> Reps<D> {
    /// Returns a selector that draws from `random`.
    pub fn new(config: &Config, random: D) -> Self {
        Self {
            values: config.values.next_power_of_two(),
            freezing: config.freezing,
            random,
            stored: [0; STORED],
            is_fresh: [false; STORED],
            fresh: 0,
            head: 0,
            count: 0,
            frozen_until: None,
            next_frozen: 0,
            exploring: 0,
        }
    }

    fn clear(&mut self) {
        self.is_fresh = [false; STORED];
        (self.fresh, self.head, self.count, self.next_frozen) = (0, 0, 0, 0);
    }
}

impl<D: Draw> EntropySelector for Reps<D> {
    fn next(&mut self, _now: Time, _window: u32) -> u16 {
        if self.exploring > 0 {
            self.exploring -= 1;
        } else if self.frozen_until.is_some() && self.count > 0 {
            let index = self.next_frozen % self.count;
            self.next_frozen = index + 1;
            return self.stored[index];
        } else if self.fresh > 0 {
            let oldest = (self.head + STORED - self.fresh) % STORED;
            self.is_fresh[oldest] = false;
            self.fresh -= 1;
            return self.stored[oldest];
        }
        self.random.below(u64::from(self.values)) as u16
    }

    fn on_feedback(&mut self, now: Time, entropy: u16, feedback: PathFeedback) {
        if self.frozen_until.is_some_and(|until| now > until) {
            self.frozen_until = None;
            self.clear();
            self.exploring = EXPLORED;
        }
        match feedback {
            PathFeedback::Good => {
                self.stored[self.head] = entropy;
                self.fresh += usize::from(!self.is_fresh[self.head]);
                self.is_fresh[self.head] = true;
                self.head = (self.head + 1) % STORED;
                self.count = (self.count + 1).min(STORED);
            }
            PathFeedback::Timeout if self.frozen_until.is_none() && self.exploring == 0 => {
                self.frozen_until = Some(now + self.freezing);
            }
            _ => {}
        }
    }
}

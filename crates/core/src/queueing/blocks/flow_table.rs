//! The flows in a queue: a state for each, under a number; and the line with most in it, from which a full
//! queue drops.

use rustc_hash::FxBuildHasher;

use super::winner_tree::{WinnerTree, key};
use crate::base::random::{Random, mix};
use crate::model::packet::FlowNumber;
use crate::queueing::{Backlog, Capacity};

/// Numbers by key: looked up, never walked, so that their order does not matter.
#[expect(clippy::disallowed_types, reason = "its hash is the same in every run")]
type Numbers = std::collections::HashMap<u32, u32, FxBuildHasher>;

/// States by number, each found by its key. What is let go is used again with all its memory, so that
/// nothing is allocated once as many states were in use as ever will be.
#[derive(Debug)]
pub struct Flows<S> {
    numbers: Numbers,
    /// By number: the key, and the state.
    states: Vec<(u32, S)>,
    /// Numbers that are not in use.
    free: Vec<u32>,
}

impl<S> Default for Flows<S> {
    fn default() -> Self {
        Self { numbers: Numbers::default(), states: Vec::new(), free: Vec::new() }
    }
}

impl<S: Default> Flows<S> {
    /// The number under `key`, and whether it was given to it just now. Its state is then as it was let go.
    pub fn join(&mut self, key: u32) -> (u32, bool) {
        let (states, free) = (&mut self.states, &mut self.free);
        let mut is_new = false;
        let number = *self.numbers.entry(key).or_insert_with(|| {
            is_new = true;
            free.pop().unwrap_or_else(|| {
                states.push((key, S::default()));
                states.len() as u32 - 1
            })
        });
        if is_new {
            self.states[number as usize].0 = key;
        }
        (number, is_new)
    }

    /// Lets a number go.
    pub fn release(&mut self, number: u32) {
        self.numbers.remove(&self.states[number as usize].0);
        self.free.push(number);
    }

    /// The state under a number.
    pub fn state(&self, number: u32) -> &S {
        &self.states[number as usize].1
    }

    /// The state under a number, to change.
    pub fn state_mut(&mut self, number: u32) -> &mut S {
        &mut self.states[number as usize].1
    }

    /// How many are in use.
    pub fn count(&self) -> usize {
        self.numbers.len()
    }

    /// All states, in use or not.
    pub fn states(&self) -> impl Iterator<Item = &S> {
        self.states.iter().map(|(_, state)| state)
    }
}

/// Which key a flow comes under: its own, or that of a bucket which it shares with others by chance.
#[derive(Clone, Debug)]
pub struct Buckets {
    /// How many there are; none for one a flow.
    count: Option<u32>,
    /// What makes the hash another in each run and at each port: drawn when the first packet comes.
    salt: Option<u64>,
}

impl Buckets {
    /// So many buckets, or one a flow.
    pub fn new(count: Option<u32>) -> Self {
        Self { count, salt: None }
    }

    /// The key of a flow.
    pub fn key(&mut self, flow: FlowNumber, random: &mut Random) -> u32 {
        let Some(count) = self.count else { return flow };
        let salt = *self.salt.get_or_insert_with(|| random.below(u64::MAX));
        let hash = mix(salt ^ u64::from(flow));
        ((u128::from(hash) * u128::from(count)) >> 64) as u32
    }
}

/// What a queue holds at most, and which of its lines has most bytes: that is where a full queue drops, so
/// that who sends too much takes no room from others ([sfq90], [drr95] §3).
#[derive(Debug, Default)]
pub struct Limit {
    /// None if there is no limit; then nothing is noted.
    lines: Option<(Capacity, WinnerTree)>,
    /// How often a line has changed: of equals the one that changed last is the longest.
    changes: u64,
}

impl Limit {
    /// The limit of a queue without packets.
    pub fn new(capacity: Option<Capacity>) -> Self {
        let lines = capacity.map(|capacity| (capacity, WinnerTree::default()));
        Self { lines, changes: 0 }
    }

    /// A line has so many bytes now.
    pub fn note(&mut self, number: u32, bytes: u64) {
        let Some((_, lengths)) = &mut self.lines else { return };
        if bytes > 0 {
            self.changes += 1;
            lengths.put(number, key(bytes, self.changes));
        } else {
            lengths.clear(number);
        }
    }

    /// The longest line, if a queue with this backlog has to drop.
    pub fn longest(&self, backlog: Backlog) -> Option<u32> {
        let (capacity, lengths) = self.lines.as_ref()?;
        capacity.exceeded_by(backlog).then(|| lengths.greatest()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_with_their_states() {
        let mut flows: Flows<Vec<u32>> = Flows::default();
        assert_eq!(flows.join(70), (0, true));
        flows.state_mut(0).push(7);
        assert_eq!((flows.join(70), flows.join(80)), ((0, false), (1, true)));
        flows.release(0);
        assert_eq!(flows.join(90), (0, true));
        assert_eq!(flows.state(0), &[7], "whoever lets a state go leaves it as it is to be found");
        flows.release(0);
        assert_eq!((flows.join(80), flows.join(70)), ((1, false), (0, true)));
        assert_eq!(flows.states().count(), 2);
    }

    #[test]
    fn flows_share_buckets_as_often_as_chance_has_it() {
        // A flow shares its bucket with one of n others with probability 1 - (1 - 1 / B)^n.
        let (buckets, others, runs) = (64, 40_u32, 4000);
        let shares = |seed: u64| {
            let (mut random, mut hash) = (Random::new(seed, "queue"), Buckets::new(Some(buckets)));
            let own = hash.key(0, &mut random);
            assert!(own < buckets);
            (1..=others).any(|flow| hash.key(flow, &mut random) == own)
        };
        let share = (1..=runs).filter(|seed| shares(*seed)).count() as f64 / runs as f64;
        let expected = 1.0 - (1.0 - 1.0 / f64::from(buckets)).powi(others.cast_signed());
        let error = (expected * (1.0 - expected) / runs as f64).sqrt();
        assert!((share - expected).abs() < 4.0 * error, "{share} {expected} {error}");
    }

    #[test]
    fn the_longest_line_is_the_one_with_most_bytes_and_of_equals_the_latest() {
        let mut limit = Limit::new(Some(Capacity::Packets(3)));
        let full = Backlog { bytes: 0, packets: 4 };
        for (number, bytes) in [(0, 1500), (1, 40), (2, 1500)] {
            limit.note(number, bytes);
        }
        assert_eq!(limit.longest(full), Some(2));
        assert_eq!(limit.longest(Backlog { bytes: 0, packets: 3 }), None, "there is room");
        limit.note(1, 1501);
        assert_eq!(limit.longest(full), Some(1));
        limit.note(1, 0);
        limit.note(2, 0);
        assert_eq!(limit.longest(full), Some(0));
        assert_eq!(Limit::new(None).longest(full), None);
    }
}

//! Per-flow queues: table of states by flow or bucket, classification of flows, and the drop from
//! the longest queue.

use rustc_hash::FxBuildHasher;

use super::winner_tree::{WinnerTree, key};
use crate::base::random::{Random, index_below, mix};
use crate::model::packet::FlowNumber;
use crate::queueing::{Backlog, Context, Limit, PacketFifo};

/// Indices by key. Accessed by key only, so the iteration order does not matter.
#[expect(clippy::disallowed_types, reason = "its hash is the same in every run")]
type IndexByKey = std::collections::HashMap<u32, u32, FxBuildHasher>;

/// States of flow queues, indexed by number and found by key. Released states are reused with their
/// memory, so that no memory is allocated once the largest number of states has been in use.
#[derive(Debug)]
pub struct FlowQueues<S> {
    indices: IndexByKey,
    /// Key and state by index.
    states: Vec<(u32, S)>,
    /// Unused indices.
    free: Vec<u32>,
}

impl<S> Default for FlowQueues<S> {
    fn default() -> Self {
        Self { indices: IndexByKey::default(), states: Vec::new(), free: Vec::new() }
    }
}

impl<S: Default> FlowQueues<S> {
    /// Returns the index of `key`, and true if the index is newly assigned. A reused state is as it
    /// was released.
    pub fn get_or_insert(&mut self, key: u32) -> (u32, bool) {
        let (states, free) = (&mut self.states, &mut self.free);
        let mut is_new = false;
        let index = *self.indices.entry(key).or_insert_with(|| {
            is_new = true;
            free.pop().unwrap_or_else(|| {
                states.push((key, S::default()));
                states.len() as u32 - 1
            })
        });
        if is_new {
            self.states[index as usize].0 = key;
        }
        (index, is_new)
    }

    /// Releases an index.
    pub fn release(&mut self, index: u32) {
        self.indices.remove(&self.states[index as usize].0);
        self.free.push(index);
    }

    /// Returns the state at an index.
    pub fn get(&self, index: u32) -> &S {
        &self.states[index as usize].1
    }

    /// Returns the mutable state at an index.
    pub fn get_mut(&mut self, index: u32) -> &mut S {
        &mut self.states[index as usize].1
    }

    /// Returns the number of states in use.
    pub fn active_count(&self) -> usize {
        self.indices.len()
    }

    /// Returns all states, including released ones.
    pub fn states(&self) -> impl Iterator<Item = &S> {
        self.states.iter().map(|(_, state)| state)
    }
}

/// Mapping of flows to keys: the flow number, or a bucket chosen by a hash.
#[derive(Clone, Debug)]
pub struct FlowClassifier {
    /// Number of buckets; `None` for one key per flow.
    count: Option<u32>,
    /// Perturbation of the hash, different for each port and seed. Drawn at the first packet.
    perturbation: Option<u64>,
}

impl FlowClassifier {
    /// Creates a classifier with `count` buckets, or with one key per flow.
    pub fn new(count: Option<u32>) -> Self {
        Self { count, perturbation: None }
    }

    /// Returns the key of a flow.
    pub fn classify(&mut self, flow: FlowNumber, random: &mut Random) -> u32 {
        let Some(count) = self.count else { return flow };
        let perturbation = *self.perturbation.get_or_insert_with(|| random.below(u64::MAX));
        let hash = mix(perturbation ^ u64::from(flow));
        index_below(hash, u64::from(count)) as u32
    }
}

/// Shared capacity of several queues. When it is exceeded, the queue with most bytes drops, so that
/// a flow that sends too much does not displace others ([sfq90], [drr95] §3).
#[derive(Debug, Default)]
pub struct LongestQueueDrop {
    /// Capacity and queue lengths; `None` without a limit.
    lengths: Option<(Limit, WinnerTree)>,
    /// Number of length changes. Among equally long queues, the one that changed last is the
    /// victim.
    changes: u64,
}

impl LongestQueueDrop {
    /// Creates the state of empty queues.
    pub fn new(capacity: Option<Limit>) -> Self {
        let lengths = capacity.map(|capacity| (capacity, WinnerTree::default()));
        Self { lengths, changes: 0 }
    }

    /// Updates the length of a queue in bytes.
    pub fn set_length(&mut self, index: u32, bytes: u64) {
        let Some((_, lengths)) = &mut self.lengths else { return };
        if bytes > 0 {
            self.changes += 1;
            lengths.insert(index, key(bytes, self.changes));
        } else {
            lengths.remove(index);
        }
    }

    /// Returns the longest queue if a total backlog of `backlog` exceeds the capacity.
    pub fn victim(&self, backlog: Backlog) -> Option<u32> {
        let (capacity, lengths) = self.lengths.as_ref()?;
        capacity.exceeded_by(backlog).then(|| lengths.max()).flatten()
    }

    /// Drops the last packet of a queue, and returns the rest of its backlog; `None` if it is empty.
    pub fn drop_last(
        &mut self,
        index: u32,
        queue: &mut PacketFifo,
        total: &mut Backlog,
        context: &mut Context<'_>,
    ) -> Option<Backlog> {
        let packet = queue.pop_last()?;
        let rest = queue.backlog();
        total.remove(packet.bytes);
        self.set_length(index, rest.bytes);
        context.dropped.push(packet);
        Some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_reused_with_their_states() {
        let mut flows: FlowQueues<Vec<u32>> = FlowQueues::default();
        assert_eq!(flows.get_or_insert(70), (0, true));
        flows.get_mut(0).push(7);
        assert_eq!((flows.get_or_insert(70), flows.get_or_insert(80)), ((0, false), (1, true)));
        flows.release(0);
        assert_eq!(flows.get_or_insert(90), (0, true));
        assert_eq!(flows.get(0), &[7], "a state is reused as it was released");
        flows.release(0);
        assert_eq!((flows.get_or_insert(80), flows.get_or_insert(70)), ((1, false), (0, true)));
        assert_eq!(flows.states().count(), 2);
    }

    #[test]
    fn bucket_collisions_have_the_expected_probability() {
        // A flow shares its bucket with at least one of n others with probability 1 - (1 - 1 /
        // B)^n.
        let (buckets, others, runs) = (64, 40_u32, 4000);
        let shares = |seed: u64| {
            let (mut random, mut classifier) =
                (Random::new(seed, "queue"), FlowClassifier::new(Some(buckets)));
            let bucket = classifier.classify(0, &mut random);
            assert!(bucket < buckets);
            (1..=others).any(|flow| classifier.classify(flow, &mut random) == bucket)
        };
        let share = (1..=runs).filter(|seed| shares(*seed)).count() as f64 / runs as f64;
        let expected = 1.0 - (1.0 - 1.0 / f64::from(buckets)).powi(others.cast_signed());
        let error = (expected * (1.0 - expected) / runs as f64).sqrt();
        assert!((share - expected).abs() < 4.0 * error, "{share} {expected} {error}");
    }

    #[test]
    fn the_victim_has_most_bytes_and_changed_last_among_equals() {
        let mut limit = LongestQueueDrop::new(Some(Limit::Packets(3)));
        let full = Backlog { bytes: 0, packets: 4 };
        for (index, bytes) in [(0, 1500), (1, 40), (2, 1500)] {
            limit.set_length(index, bytes);
        }
        assert_eq!(limit.victim(full), Some(2));
        assert_eq!(
            limit.victim(Backlog { bytes: 0, packets: 3 }),
            None,
            "the queue is not over its capacity"
        );
        limit.set_length(1, 1501);
        assert_eq!(limit.victim(full), Some(1));
        limit.set_length(1, 0);
        limit.set_length(2, 0);
        assert_eq!(limit.victim(full), Some(0));
        assert_eq!(LongestQueueDrop::new(None).victim(full), None);
    }
}

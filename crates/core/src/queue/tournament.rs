//! Keys in numbered places, of which the least and the greatest are known at once.
//!
//! A tournament: every node of a complete binary tree knows the least and the greatest key below it, so a
//! change costs a walk from a leaf to the root, however many keys there are, and no memory.

/// A rank among packets that wait: its priority, then when it came.
pub type Key = (u64, u64);

/// Stands for no place.
const NONE: u32 = u32::MAX;

/// The places of the least and of the greatest key below a node.
#[derive(Clone, Copy, Debug)]
struct Winners {
    least: u32,
    greatest: u32,
}

const NOBODY: Winners = Winners { least: NONE, greatest: NONE };

/// The tree; places are numbered from 0.
#[derive(Debug)]
pub struct Tournament {
    /// By place; what stands at an empty place does not matter.
    keys: Vec<Key>,
    /// The root is 1, the children of a node are twice its number and the next; leaves come last.
    nodes: Vec<Winners>,
}

impl Default for Tournament {
    /// Without keys, and with room for eight to begin with.
    fn default() -> Self {
        Self { keys: vec![(0, 0); 8], nodes: vec![NOBODY; 16] }
    }
}

impl Tournament {
    /// Puts a key at a place, which must be empty.
    pub fn put(&mut self, place: u32, key: Key) {
        while place as usize >= self.keys.len() {
            self.grow();
        }
        self.keys[place as usize] = key;
        self.settle(place, Winners { least: place, greatest: place });
    }

    /// Empties a place.
    pub fn clear(&mut self, place: u32) {
        self.settle(place, NOBODY);
    }

    /// The place of the least key.
    pub fn least(&self) -> Option<u32> {
        Some(self.nodes[1].least).filter(|place| *place != NONE)
    }

    /// The place of the greatest key.
    pub fn greatest(&self) -> Option<u32> {
        Some(self.nodes[1].greatest).filter(|place| *place != NONE)
    }

    /// Sets a leaf and decides again all that hangs on it.
    fn settle(&mut self, place: u32, winners: Winners) {
        let mut node = place as usize + self.keys.len();
        self.nodes[node] = winners;
        while node > 1 {
            node /= 2;
            self.nodes[node] = self.decide(self.nodes[2 * node], self.nodes[2 * node + 1]);
        }
    }

    fn decide(&self, a: Winners, b: Winners) -> Winners {
        if a.least == NONE {
            return b;
        }
        if b.least == NONE {
            return a;
        }
        let key = |place: u32| self.keys[place as usize];
        Winners {
            least: if key(a.least) < key(b.least) { a.least } else { b.least },
            greatest: if key(a.greatest) > key(b.greatest) { a.greatest } else { b.greatest },
        }
    }

    /// Doubles the number of places.
    fn grow(&mut self) {
        let places = self.keys.len();
        let leaves = self.nodes.split_off(places);
        self.keys.resize(2 * places, (0, 0));
        self.nodes = vec![NOBODY; 4 * places];
        self.nodes[2 * places..3 * places].copy_from_slice(&leaves);
        for node in (1..2 * places).rev() {
            self.nodes[node] = self.decide(self.nodes[2 * node], self.nodes[2 * node + 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_least_and_the_greatest_are_those_of_a_plain_list(
            steps in prop::collection::vec((0_u32..40, 0_u64..20), 1..200),
        ) {
            let mut tournament = Tournament::default();
            let mut plain: BTreeMap<u32, Key> = BTreeMap::new();
            for (order, (place, priority)) in (0..).zip(steps) {
                if plain.remove(&place).is_some() {
                    tournament.clear(place);
                } else {
                    plain.insert(place, (priority, order));
                    tournament.put(place, (priority, order));
                }
                let least = plain.iter().min_by_key(|entry| entry.1).map(|entry| *entry.0);
                let greatest = plain.iter().max_by_key(|entry| entry.1).map(|entry| *entry.0);
                prop_assert_eq!((tournament.least(), tournament.greatest()), (least, greatest));
            }
        }
    }
}

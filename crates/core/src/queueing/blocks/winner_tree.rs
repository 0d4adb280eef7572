//! Keys in numbered places, of which the least and the greatest are known at once.
//!
//! A tournament: every node of a complete binary tree knows the least and the greatest key below it, so a
//! change costs a walk from a leaf to the root, however many keys there are, and no memory.

/// A rank among packets that wait: its priority, then when it came, as one number, which the processor
/// compares without a jump to guess.
pub type Key = u128;

/// The key of what has this priority and came as the so many-th.
pub fn key(priority: u64, order: u64) -> Key {
    u128::from(priority) << 64 | u128::from(order)
}

/// The places of the least and of the greatest key below a node.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Winners {
    least: u32,
    greatest: u32,
}

/// A place's key, as it stands among others for the least and for the greatest: an empty place wins
/// neither.
#[derive(Clone, Copy, Debug)]
struct Leaf {
    least: Key,
    greatest: Key,
}

const EMPTY: Leaf = Leaf { least: Key::MAX, greatest: 0 };

/// The tree; places are numbered from 0, and keys lie above 0 and below the greatest number.
#[derive(Debug)]
pub struct WinnerTree {
    /// By place.
    leaves: Vec<Leaf>,
    /// The root is 1; the children of a node are twice its number and the next, and those of the last
    /// nodes are places.
    nodes: Vec<Winners>,
}

impl Default for WinnerTree {
    /// Without keys, and with room for eight to begin with.
    fn default() -> Self {
        let mut tournament = Self { leaves: vec![EMPTY; 4], nodes: Vec::new() };
        tournament.grow();
        tournament
    }
}

impl WinnerTree {
    /// Puts a key at a place, which must be empty.
    pub fn put(&mut self, place: u32, key: Key) {
        while place as usize >= self.leaves.len() {
            self.grow();
        }
        self.settle(place, Leaf { least: key, greatest: key });
    }

    /// Empties a place.
    pub fn clear(&mut self, place: u32) {
        self.settle(place, EMPTY);
    }

    /// The place of the least key.
    pub fn least(&self) -> Option<u32> {
        let place = self.nodes[1].least;
        (self.leaves[place as usize].least < Key::MAX).then_some(place)
    }

    /// The place of the greatest key.
    pub fn greatest(&self) -> Option<u32> {
        let place = self.nodes[1].greatest;
        (self.leaves[place as usize].greatest > 0).then_some(place)
    }

    /// Sets a leaf and decides again what hangs on it, up to where it makes no difference.
    fn settle(&mut self, place: u32, leaf: Leaf) {
        self.leaves[place as usize] = leaf;
        let mut node = place as usize + self.leaves.len();
        while node > 1 {
            node /= 2;
            let winners = self.decide(node);
            let is_concerned = winners.least == place || winners.greatest == place;
            if winners == self.nodes[node] && !is_concerned {
                return;
            }
            self.nodes[node] = winners;
        }
    }

    /// Who wins at a node.
    fn decide(&self, node: usize) -> Winners {
        let child = |child: usize| {
            let place = child.wrapping_sub(self.leaves.len());
            let alone = Winners { least: place as u32, greatest: place as u32 };
            if child < self.leaves.len() { self.nodes[child] } else { alone }
        };
        let (a, b) = (child(2 * node), child(2 * node + 1));
        let leaf = |place: u32| self.leaves[place as usize];
        let is_less = leaf(a.least).least <= leaf(b.least).least;
        let is_greater = leaf(a.greatest).greatest >= leaf(b.greatest).greatest;
        Winners {
            least: if is_less { a.least } else { b.least },
            greatest: if is_greater { a.greatest } else { b.greatest },
        }
    }

    /// Doubles the number of places.
    fn grow(&mut self) {
        let places = 2 * self.leaves.len();
        self.leaves.resize(places, EMPTY);
        self.nodes = vec![Winners { least: 0, greatest: 0 }; places];
        for node in (1..places).rev() {
            self.nodes[node] = self.decide(node);
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
            let mut tournament = WinnerTree::default();
            let mut plain: BTreeMap<u32, Key> = BTreeMap::new();
            for (order, (place, priority)) in (1..).zip(steps) {
                if plain.remove(&place).is_some() {
                    tournament.clear(place);
                } else {
                    plain.insert(place, key(priority, order));
                    tournament.put(place, key(priority, order));
                }
                let least = plain.iter().min_by_key(|entry| entry.1).map(|entry| *entry.0);
                let greatest = plain.iter().max_by_key(|entry| entry.1).map(|entry| *entry.0);
                prop_assert_eq!((tournament.least(), tournament.greatest()), (least, greatest));
            }
        }
    }
}

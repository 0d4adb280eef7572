//! Winner tree: numbered slots with keys, and the slots of the minimum and the maximum key in
//! constant time.
//!
//! Every node of a complete binary tree stores the slots of the minimum and the maximum key below
//! it. A change updates the path from the leaf to the root and allocates no memory.

/// Rank of a queued packet: priority, then order of arrival, in one integer, which is compared
/// without a branch.
pub type Key = u128;

/// Returns the key of a priority and an order of arrival.
pub fn key(priority: u64, order: u64) -> Key {
    u128::from(priority) << 64 | u128::from(order)
}

/// Slots of the minimum and the maximum key below a node.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Extremes {
    min: u32,
    max: u32,
}

/// Key of a slot for both comparisons. An empty slot wins neither.
#[derive(Clone, Copy, Debug)]
struct Leaf {
    min: Key,
    max: Key,
}

const EMPTY: Leaf = Leaf { min: Key::MAX, max: 0 };

/// Winner tree. Slots are numbered from 0. Keys are above 0 and below `Key::MAX`.
#[derive(Debug)]
pub struct WinnerTree {
    /// Leaves by slot.
    leaves: Vec<Leaf>,
    /// Nodes; the root is 1. The children of node n are 2n and 2n + 1; the children of the last
    /// nodes are slots.
    nodes: Vec<Extremes>,
}

impl Default for WinnerTree {
    /// Creates an empty tree with eight slots.
    fn default() -> Self {
        let mut tree = Self { leaves: vec![EMPTY; 4], nodes: Vec::new() };
        tree.grow();
        tree
    }
}

impl WinnerTree {
    /// Stores a key in an empty slot.
    pub fn insert(&mut self, slot: u32, key: Key) {
        while slot as usize >= self.leaves.len() {
            self.grow();
        }
        self.update(slot, Leaf { min: key, max: key });
    }

    /// Empties a slot.
    pub fn remove(&mut self, slot: u32) {
        self.update(slot, EMPTY);
    }

    /// Returns the slot of the minimum key.
    pub fn min(&self) -> Option<u32> {
        let slot = self.nodes[1].min;
        (self.leaves[slot as usize].min < Key::MAX).then_some(slot)
    }

    /// Returns the slot of the maximum key.
    pub fn max(&self) -> Option<u32> {
        let slot = self.nodes[1].max;
        (self.leaves[slot as usize].max > 0).then_some(slot)
    }

    /// Sets a leaf and updates its ancestors until they no longer change.
    fn update(&mut self, slot: u32, leaf: Leaf) {
        self.leaves[slot as usize] = leaf;
        let mut node = slot as usize + self.leaves.len();
        while node > 1 {
            node /= 2;
            let extremes = self.extremes_of_children(node);
            let includes_slot = extremes.min == slot || extremes.max == slot;
            if extremes == self.nodes[node] && !includes_slot {
                return;
            }
            self.nodes[node] = extremes;
        }
    }

    /// Returns the extremes of a node's children.
    fn extremes_of_children(&self, node: usize) -> Extremes {
        let child = |child: usize| {
            let slot = child.wrapping_sub(self.leaves.len());
            let leaf_extremes = Extremes { min: slot as u32, max: slot as u32 };
            if child < self.leaves.len() { self.nodes[child] } else { leaf_extremes }
        };
        let (a, b) = (child(2 * node), child(2 * node + 1));
        let leaf = |slot: u32| self.leaves[slot as usize];
        let is_less = leaf(a.min).min <= leaf(b.min).min;
        let is_greater = leaf(a.max).max >= leaf(b.max).max;
        Extremes {
            min: if is_less { a.min } else { b.min },
            max: if is_greater { a.max } else { b.max },
        }
    }

    /// Doubles the number of slots.
    fn grow(&mut self) {
        let slots = 2 * self.leaves.len();
        self.leaves.resize(slots, EMPTY);
        self.nodes = vec![Extremes { min: 0, max: 0 }; slots];
        for node in (1..slots).rev() {
            self.nodes[node] = self.extremes_of_children(node);
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
        fn min_and_max_equal_those_of_a_list(
            steps in prop::collection::vec((0_u32..40, 0_u64..20), 1..200),
        ) {
            let mut tree = WinnerTree::default();
            let mut expected: BTreeMap<u32, Key> = BTreeMap::new();
            for (order, (slot, priority)) in (1..).zip(steps) {
                if expected.remove(&slot).is_some() {
                    tree.remove(slot);
                } else {
                    expected.insert(slot, key(priority, order));
                    tree.insert(slot, key(priority, order));
                }
                let min = expected.iter().min_by_key(|entry| entry.1).map(|entry| *entry.0);
                let max = expected.iter().max_by_key(|entry| entry.1).map(|entry| *entry.0);
                prop_assert_eq!((tree.min(), tree.max()), (min, max));
            }
        }
    }
}

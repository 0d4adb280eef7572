//! Calendar queue: a priority queue of numbers by due round.
//!
//! Numbers that are due in the same round share a slot, in insertion order. Insertion and removal
//! take constant time. Finding the first number inspects one word per 64 rounds.

use super::linked_lists::{LinkedLists, List};

/// Calendar queue. The number of slots grows with the largest distance between the current and a
/// due round. Memory is reused.
#[derive(Debug)]
pub struct CalendarQueue {
    now: u64,
    /// Lists by round modulo the number of slots, which is a power of two.
    slots: Vec<List>,
    /// One bit per slot, set if the slot is not empty.
    occupied: Vec<u64>,
    /// Due round by number.
    due: Vec<u64>,
    lists: LinkedLists,
}

impl Default for CalendarQueue {
    /// Creates an empty queue with 64 slots.
    fn default() -> Self {
        let slots = vec![List::EMPTY; u64::BITS as usize];
        Self { now: 0, slots, occupied: vec![0], due: Vec::new(), lists: LinkedLists::default() }
    }
}

impl CalendarQueue {
    /// Returns the current round.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Sets the current round. No number may be due before it.
    pub fn advance(&mut self, now: u64) {
        debug_assert!(self.now <= now, "the round must not decrease");
        self.now = now;
    }

    /// Returns the due round of a queued number.
    pub fn due(&self, number: u32) -> u64 {
        self.due[number as usize]
    }

    /// Inserts a number that is not queued, behind the numbers that are due in the same round.
    pub fn insert(&mut self, number: u32, due: u64) {
        while due - self.now >= self.slots.len() as u64 {
            self.grow();
        }
        if number as usize >= self.due.len() {
            self.due.resize(number as usize + 1, 0);
        }
        self.due[number as usize] = due;
        let slot = self.slot(due);
        self.lists.append(&mut self.slots[slot], number);
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// Removes a queued number.
    pub fn remove(&mut self, number: u32) {
        let slot = self.slot(self.due(number));
        self.lists.remove(&mut self.slots[slot], number);
        if self.slots[slot] == List::EMPTY {
            self.occupied[slot / 64] &= !(1 << (slot % 64));
        }
    }

    /// Returns the number that is due first; among equals, the number inserted first.
    pub fn first(&self) -> Option<u32> {
        let start = self.slot(self.now);
        let words = self.occupied.len();
        let ahead = self.occupied[start / 64] & (u64::MAX << (start % 64));
        // The first word is visited again at the end, for the slots before the current one.
        let rest = (1..=words).map(|step| (start / 64 + step) & (words - 1));
        let mut candidates = std::iter::once((start / 64, ahead))
            .chain(rest.map(|word| (word, self.occupied[word])));
        let (word, bits) = candidates.find(|(_, bits)| *bits != 0)?;
        Some(self.slots[word * 64 + bits.trailing_zeros() as usize].head)
    }

    fn slot(&self, due: u64) -> usize {
        due as usize & (self.slots.len() - 1)
    }

    /// Doubles the number of slots.
    fn grow(&mut self) {
        let slots = 2 * self.slots.len();
        let old = std::mem::replace(&mut self.slots, vec![List::EMPTY; slots]);
        self.occupied = vec![0; slots / 64];
        for list in old.into_iter().filter(|list| *list != List::EMPTY) {
            // All numbers of a slot are due in the same round, so they share a slot of the larger
            // queue.
            let slot = self.slot(self.due(list.head));
            self.slots[slot] = list;
            self.occupied[slot / 64] |= 1 << (slot % 64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_equals_that_of_a_sorted_list(
            steps in prop::collection::vec((0_u32..40, 0_u64..3_000, 0_u8..3), 1..300),
        ) {
            let mut queue = CalendarQueue::default();
            // Due round, order of insertion and number.
            let mut expected: Vec<(u64, usize, u32)> = Vec::new();
            for (order, (number, distance, kind)) in steps.into_iter().enumerate() {
                let position = expected.iter().position(|entry| entry.2 == number);
                match (kind, position) {
                    (0, _) => {
                        // Remove the first number and advance to its round.
                        let first = expected.iter().min().copied();
                        prop_assert_eq!(queue.first(), first.map(|first| first.2));
                        if let Some(first) = first {
                            queue.advance(queue.due(first.2));
                            queue.remove(first.2);
                            expected.retain(|entry| *entry != first);
                        }
                    }
                    (_, Some(position)) => {
                        queue.remove(number);
                        expected.remove(position);
                    }
                    (_, None) => {
                        queue.insert(number, queue.now() + distance);
                        expected.push((queue.now() + distance, order, number));
                    }
                }
                prop_assert_eq!(queue.first(), expected.iter().min().map(|entry| entry.2));
            }
        }
    }
}

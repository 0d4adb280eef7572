//! FIFO ring with access by index.

use crate::base::prefetch::prefetch_at;

/// Queue in a ring of memory whose length is a power of two: access by index costs one addition and one
/// mask. An empty ring restarts at the beginning of its memory, which is still in the cache
/// (docs/performance.md).
#[derive(Debug)]
pub struct Ring<T> {
    /// Items in the queue, and unused memory.
    memory: Vec<T>,
    /// Index of the first item in `memory`.
    first: u32,
    len: u32,
}

/// Capacity of a ring that has grown once.
const LEAST_CAPACITY: usize = 8;

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { memory: Vec::new(), first: 0, len: 0 }
    }
}

impl<T: Copy> Ring<T> {
    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// True if there is no item.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the item at `at`.
    pub fn get(&self, at: usize) -> Option<&T> {
        if at < self.len() { self.memory.get(self.index(at)) } else { None }
    }

    /// Returns the item at `at`, to change it.
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        let index = self.index(at);
        if at < self.len() { self.memory.get_mut(index) } else { None }
    }

    /// Reads the memory of the item at `at` ahead, which may be the next to be appended. It may lie in two
    /// lines, of which the second is that of the next item.
    pub fn read_ahead(&self, at: usize) {
        prefetch_at(&self.memory, self.index(at));
        prefetch_at(&self.memory, self.index(at) + 1);
    }

    /// Returns the items from `at` on.
    pub fn iter_from(&self, at: usize) -> impl Iterator<Item = &T> {
        (at..self.len()).filter_map(|at| self.get(at))
    }

    /// Appends an item.
    #[inline]
    pub fn push(&mut self, item: T) {
        if self.len() == self.memory.len() {
            self.grow([item]);
        }
        let index = self.index(self.len());
        self.memory[index] = item;
        self.len += 1;
    }

    /// Inserts an item at `at`. Moves the items before `at`, which should be few.
    pub fn insert(&mut self, at: usize, item: T) {
        if self.len() == self.memory.len() {
            self.grow([item]);
        }
        // Extends the ring at its beginning.
        self.first = self.index(self.memory.len() - 1) as u32;
        self.len += 1;
        for at in 0..at {
            let (index, next) = (self.index(at), self.index(at + 1));
            self.memory[index] = self.memory[next];
        }
        let index = self.index(at);
        self.memory[index] = item;
    }

    /// Removes the first item, if there is one.
    pub fn drop_first(&mut self) {
        if self.len > 1 {
            self.first = self.index(1) as u32;
            self.len -= 1;
        } else {
            self.first = 0;
            self.len = 0;
        }
    }

    fn index(&self, at: usize) -> usize {
        (self.first as usize + at) & self.memory.len().wrapping_sub(1)
    }

    /// Doubles the memory, and fills the new half with `any`. An array of its own, so that the caller's item
    /// stays in registers: written to the stack in words, it would be read back in larger ones at a stall.
    #[cold]
    fn grow(&mut self, [any]: [T; 1]) {
        self.memory.rotate_left(self.first as usize);
        self.first = 0;
        let more = self.memory.len().max(LEAST_CAPACITY);
        self.memory.extend(std::iter::repeat_n(any, more));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_ring_behaves_as_a_deque(steps in prop::collection::vec((0_u32..4, 0_usize..100), 1..400)) {
            let (mut ring, mut plain) = (Ring::default(), VecDeque::new());
            for (kind, number) in steps {
                match kind {
                    0 | 1 => {
                        ring.push(number);
                        plain.push_back(number);
                    }
                    2 => {
                        let at = number % (plain.len() + 1);
                        ring.insert(at, number);
                        plain.insert(at, number);
                    }
                    _ => {
                        let drops = number % 8;
                        (0..drops).for_each(|_| ring.drop_first());
                        plain.drain(..drops.min(plain.len()));
                    }
                }
                prop_assert!(ring.iter_from(0).eq(&plain));
                prop_assert_eq!((ring.len(), ring.is_empty()), (plain.len(), plain.is_empty()));
                prop_assert_eq!(ring.get_mut(number).copied(), plain.get(number).copied());
            }
        }
    }
}

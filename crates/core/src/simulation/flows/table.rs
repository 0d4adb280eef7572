//! Table by slot that grows and shrinks without being moved.

use std::ops::{Index, IndexMut};

/// Slots per chunk.
const CHUNK: usize = 1 << 10;

/// Chunked table. A single vector with a million flows would be copied when it grows, and half of it would be
/// empty.
pub(in crate::simulation) struct ChunkedTable<T>(Vec<Box<[Option<T>; CHUNK]>>);

impl<T> Default for ChunkedTable<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ChunkedTable<T> {
    /// Returns the entry of a slot, if there is one.
    pub(in crate::simulation) fn get(&self, slot: usize) -> Option<&T> {
        self.0.get(slot / CHUNK)?[slot % CHUNK].as_ref()
    }

    /// Sets the entry of a slot.
    #[inline]
    pub(in crate::simulation) fn insert(&mut self, slot: usize, value: Option<T>) {
        while slot / CHUNK >= self.0.len() {
            let chunk: Vec<_> = (0..CHUNK).map(|_| None).collect();
            self.0
                .push(chunk.try_into().unwrap_or_else(|_| unreachable!("a chunk has CHUNK slots")));
        }
        self[slot] = value;
    }

    /// Returns all entries by slot.
    pub(in crate::simulation) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(|chunk| chunk.iter()).flatten()
    }

    /// Frees the chunks after a slot.
    pub(in crate::simulation) fn truncate(&mut self, slot: usize) {
        self.0.truncate(slot.div_ceil(CHUNK));
    }
}

impl<T> Index<usize> for ChunkedTable<T> {
    type Output = Option<T>;

    fn index(&self, slot: usize) -> &Option<T> {
        &self.0[slot / CHUNK][slot % CHUNK]
    }
}

impl<T> IndexMut<usize> for ChunkedTable<T> {
    fn index_mut(&mut self, slot: usize) -> &mut Option<T> {
        &mut self.0[slot / CHUNK][slot % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_slots_until_they_are_removed() {
        let mut slots = ChunkedTable::default();
        for slot in [3 * CHUNK, 0, CHUNK - 1] {
            slots.insert(slot, Some(slot));
        }
        assert_eq!(slots.iter().copied().collect::<Vec<_>>(), [0, CHUNK - 1, 3 * CHUNK]);
        assert_eq!((slots[1], slots.get(9 * CHUNK)), (None, None));
        slots.truncate(3 * CHUNK);
        assert_eq!(slots.get(3 * CHUNK), None);
        assert_eq!(slots[0].take(), Some(0));
        assert_eq!(slots.iter().count(), 1);
    }
}

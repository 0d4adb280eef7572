//! Rows of data about packets in the network, outside of the packets.

use std::ops::{Index, IndexMut, Range};

use crate::breakdown::next_fit::NextFit;

/// Table of one row for each packet that is followed. Packets have no spare byte, so a packet refers to
/// its row by a number in a field that the network does not read. Numbers are allocated in order, and
/// packets tend to be followed in that order: processors read the rows ahead (docs/performance.md).
pub struct SideTable<T> {
    rows: Vec<T>,
    numbers: NextFit,
    /// Rows in use by partitions that have ended.
    absorbed: usize,
}

impl<T> Default for SideTable<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), numbers: NextFit::default(), absorbed: 0 }
    }
}

impl<T: Default> SideTable<T> {
    /// Allocates a row, whose content is stale. Once in a few dozen calls, `read_ahead` gets the rows
    /// that are allocated next, and their numbers.
    pub fn allocate(&mut self, read_ahead: impl FnOnce(&[T], Range<usize>)) -> usize {
        let Self { rows, numbers, .. } = self;
        let number = numbers.allocate(|next| {
            read_ahead(rows.get(next.clone()).unwrap_or_default(), next);
        });
        if number >= self.rows.len() {
            self.rows.resize_with(self.numbers.capacity(), T::default);
        }
        number
    }

    /// Frees a row.
    pub fn release(&mut self, number: usize) {
        self.numbers.release(number);
    }

    /// Returns a row, if the table is that large.
    pub fn get(&self, number: usize) -> Option<&T> {
        self.rows.get(number)
    }

    /// Returns the number of rows, in use or free.
    pub fn capacity(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of rows in use.
    pub fn in_use(&self) -> usize {
        self.numbers.used() + self.absorbed
    }

    /// Takes over the number of rows in use from a partition that has ended.
    pub fn absorb(&mut self, other: &Self) {
        self.absorbed += other.in_use();
    }
}

impl<T> Index<usize> for SideTable<T> {
    type Output = T;

    fn index(&self, number: usize) -> &T {
        &self.rows[number]
    }
}

impl<T> IndexMut<usize> for SideTable<T> {
    fn index_mut(&mut self, number: usize) -> &mut T {
        &mut self.rows[number]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_kept_until_they_are_released() {
        let mut table = SideTable::<u32>::default();
        for value in 0..100 {
            let number = table.allocate(|_, _| ());
            table[number] = value;
        }
        assert_eq!(
            (table.in_use(), table.get(99), table.get(table.capacity())),
            (100, Some(&99), None)
        );
        table.release(7);
        let others = table.allocate(|_, _| ());
        assert!(others >= 100, "a row that was just released is not reused at once");
        assert_eq!((table.in_use(), table[8]), (100, 8));
    }

    #[test]
    fn rows_are_read_ahead_before_they_are_allocated() {
        let mut table = SideTable::<u32>::default();
        let mut announced = Vec::new();
        for value in 0..300_u32 {
            let mut next = None;
            let number = table.allocate(|rows, numbers| {
                assert!(rows.is_empty() || rows.len() == numbers.len(), "new rows are absent");
                next = Some(numbers);
            });
            table[number] = value;
            announced.extend(next);
            assert!(number < 64 || announced.iter().any(|numbers| numbers.contains(&number)));
        }
    }
}

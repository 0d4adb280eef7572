//! A table by place that grows and shrinks without being moved.

use std::ops::{Index, IndexMut};

/// So many places are a chunk.
const CHUNK: usize = 1 << 10;

/// What is in each place, in chunks: a table of a million flows that grew as one would be copied, and half
/// of it be empty.
pub(in crate::simulation) struct ChunkedTable<T>(Vec<Vec<Option<T>>>);

impl<T> Default for ChunkedTable<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ChunkedTable<T> {
    /// What is in a place, if there is such a place and anything is in it.
    pub(in crate::simulation) fn get(&self, place: usize) -> Option<&T> {
        self.0.get(place / CHUNK)?.get(place % CHUNK)?.as_ref()
    }

    /// Puts something in a place, or nothing.
    pub(in crate::simulation) fn put(&mut self, place: usize, what: Option<T>) {
        while place / CHUNK >= self.0.len() {
            let mut chunk = Vec::new();
            chunk.resize_with(CHUNK, || None);
            self.0.push(chunk);
        }
        self[place] = what;
    }

    /// What is in all places that are not empty, in order.
    pub(in crate::simulation) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten().flatten()
    }

    /// Gives back the memory of chunks that lie beyond a place.
    pub(in crate::simulation) fn shorten(&mut self, place: usize) {
        self.0.truncate(place.div_ceil(CHUNK));
    }
}

impl<T> Index<usize> for ChunkedTable<T> {
    type Output = Option<T>;

    fn index(&self, place: usize) -> &Option<T> {
        &self.0[place / CHUNK][place % CHUNK]
    }
}

impl<T> IndexMut<usize> for ChunkedTable<T> {
    fn index_mut(&mut self, place: usize) -> &mut Option<T> {
        &mut self.0[place / CHUNK][place % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_stays_where_it_is_until_its_place_is_given_back() {
        let mut places = ChunkedTable::default();
        for place in [3 * CHUNK, 0, CHUNK - 1] {
            places.put(place, Some(place));
        }
        assert_eq!(places.iter().copied().collect::<Vec<_>>(), [0, CHUNK - 1, 3 * CHUNK]);
        assert_eq!((places[1], places.get(9 * CHUNK)), (None, None));
        places.shorten(3 * CHUNK);
        assert_eq!(places.get(3 * CHUNK), None);
        assert_eq!(places[0].take(), Some(0));
        assert_eq!(places.iter().count(), 1);
    }
}

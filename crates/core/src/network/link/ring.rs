//! First in, first out, and quick to look into.

/// Things in a row, in a ring of memory whose length is a power of two: a place in the row is found with one
/// addition and one mask. A ring that runs empty starts over at the beginning of its memory, which is still
/// in the cache (docs/performance.md).
#[derive(Debug)]
pub struct Ring<T> {
    /// Of which those in the row are valid.
    memory: Vec<T>,
    /// Where the first is.
    first: u32,
    len: u32,
}

/// How many a ring holds before it grows.
const FEW: usize = 8;

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { memory: Vec::new(), first: 0, len: 0 }
    }
}

impl<T: Copy> Ring<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The one at `place`.
    pub fn get(&self, place: usize) -> Option<&T> {
        if place < self.len() { self.memory.get(self.index(place)) } else { None }
    }

    /// The one at `place`, to be changed.
    pub fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        let index = self.index(place);
        if place < self.len() { self.memory.get_mut(index) } else { None }
    }

    /// Those from `place` on.
    pub fn iter_from(&self, place: usize) -> impl Iterator<Item = &T> {
        (place..self.len()).filter_map(|place| self.get(place))
    }

    /// Adds one behind the others.
    pub fn push(&mut self, thing: T) {
        if self.len() == self.memory.len() {
            self.grow(thing);
        }
        let index = self.index(self.len());
        self.memory[index] = thing;
        self.len += 1;
    }

    /// Puts one before the one at `place`, of which few are before.
    pub fn insert(&mut self, place: usize, thing: T) {
        // Makes room at the beginning.
        if self.len() == self.memory.len() {
            self.grow(thing);
        }
        self.first = self.index(self.memory.len() - 1) as u32;
        self.len += 1;
        for place in 0..place {
            let (index, next) = (self.index(place), self.index(place + 1));
            self.memory[index] = self.memory[next];
        }
        let index = self.index(place);
        self.memory[index] = thing;
    }

    /// Drops the first, if there is one.
    pub fn drop_first(&mut self) {
        if self.len > 1 {
            self.first = self.index(1) as u32;
            self.len -= 1;
        } else {
            self.first = 0;
            self.len = 0;
        }
    }

    fn index(&self, place: usize) -> usize {
        (self.first as usize + place) & self.memory.len().wrapping_sub(1)
    }

    /// Doubles the memory; what is new of it is filled with `any`.
    #[cold]
    fn grow(&mut self, any: T) {
        self.memory.rotate_left(self.first as usize);
        self.first = 0;
        let more = self.memory.len().max(FEW);
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
        fn it_is_a_queue(steps in prop::collection::vec((0_u32..4, 0_usize..100), 1..400)) {
            let (mut ring, mut plain) = (Ring::default(), VecDeque::new());
            for (kind, number) in steps {
                match kind {
                    0 | 1 => {
                        ring.push(number);
                        plain.push_back(number);
                    }
                    2 => {
                        let place = number % (plain.len() + 1);
                        ring.insert(place, number);
                        plain.insert(place, number);
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

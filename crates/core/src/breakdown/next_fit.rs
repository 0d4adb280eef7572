//! Next-fit allocator of table slots.

use std::ops::Range;

/// Allocates the next free slot, not the one released last. Slots that are allocated one after another are
/// then adjacent, so that the processor prefetches them when they are read in that order
/// (docs/performance.md).
#[derive(Default)]
pub struct NextFit {
    /// A bit per slot, set while the slot is free.
    free: Vec<u64>,
    /// Index of the word that contained the last allocated slot.
    last_word: usize,
    used: usize,
}

/// Slots per word.
const WORD: usize = u64::BITS as usize;

impl NextFit {
    /// Number of slots, free or used.
    pub fn capacity(&self) -> usize {
        WORD * self.free.len()
    }

    /// Number of used slots.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Allocates a slot. On entering another word, calls `prefetch` with its slots.
    pub fn allocate(&mut self, prefetch: impl FnOnce(Range<usize>)) -> usize {
        let before = self.last_word;
        // A quarter of the slots stays free, so that a free slot is near.
        if 4 * self.used >= 3 * self.capacity() {
            self.free.resize((2 * self.free.len()).max(1), u64::MAX);
        }
        while self.free[self.last_word] == 0 {
            self.last_word = (self.last_word + 1) % self.free.len();
        }
        if self.last_word != before {
            prefetch(WORD * self.last_word..WORD * (self.last_word + 1));
        }
        let word = &mut self.free[self.last_word];
        let bit = word.trailing_zeros() as usize;
        *word &= *word - 1;
        self.used += 1;
        WORD * self.last_word + bit
    }

    /// Frees a slot.
    pub fn release(&mut self, slot: usize) {
        self.free[slot / WORD] |= 1 << (slot % WORD);
        self.used -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocation_continues_past_released_slots_and_wraps_around() {
        let mut slots = NextFit::default();
        let all: Vec<usize> = (0..300).map(|_| slots.allocate(|_| ())).collect();
        assert_eq!(all, (0..300).collect::<Vec<_>>());
        assert_eq!((slots.used(), slots.capacity()), (300, 512));
        (0..300).for_each(|slot| slots.release(slot));
        assert_eq!(slots.allocate(|_| ()), 256, "the first free slot of the last word");
        let next: Vec<usize> = (0..255).map(|_| slots.allocate(|_| ())).collect();
        assert_eq!(next, (257..512).collect::<Vec<_>>());
        let mut prefetched = None;
        assert_eq!(slots.allocate(|slots| prefetched = Some(slots)), 0);
        assert_eq!(prefetched, Some(0..64));
    }

    #[test]
    fn no_slot_is_allocated_twice() {
        let mut slots = NextFit::default();
        let mut used = std::collections::BTreeSet::new();
        for step in 0..10_000_usize {
            let slot = slots.allocate(|_| ());
            assert!(slot < slots.capacity() && used.insert(slot));
            if step % 3 > 0 {
                let released = *used.iter().nth(step % used.len()).unwrap();
                used.remove(&released);
                slots.release(released);
            }
            assert_eq!(slots.used(), used.len());
        }
    }
}

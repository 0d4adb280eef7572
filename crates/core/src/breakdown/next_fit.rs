//! Numbers of places in rows, given out and taken back: next fit.

use std::ops::Range;

/// Gives out the next free number, and not the one that was given back last. What is taken in turn then lies
/// in line, and if it is wanted in that order again, processors read it ahead (docs/performance.md).
#[derive(Default)]
pub struct NextFit {
    /// A bit for each number, which is set while it is free.
    free: Vec<u64>,
    /// In which of these the last was found.
    last: usize,
    taken: usize,
}

/// How many numbers one word tells of.
const WORD: usize = u64::BITS as usize;

impl NextFit {
    /// All numbers are less than this.
    pub fn end(&self) -> usize {
        WORD * self.free.len()
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// A number that nobody has. Before the first of a few dozen, `begin` gets the numbers that those to come
    /// are of, to read ahead what lies there.
    pub fn take(&mut self, begin: impl FnOnce(Range<usize>)) -> usize {
        let before = self.last;
        // A quarter stays free, so that one is near.
        if 4 * self.taken >= 3 * self.end() {
            self.free.resize((2 * self.free.len()).max(1), u64::MAX);
        }
        while self.free[self.last] == 0 {
            self.last = (self.last + 1) % self.free.len();
        }
        if self.last != before {
            begin(WORD * self.last..WORD * (self.last + 1));
        }
        let word = &mut self.free[self.last];
        let bit = word.trailing_zeros() as usize;
        *word &= *word - 1;
        self.taken += 1;
        WORD * self.last + bit
    }

    /// A number is free again.
    pub fn release(&mut self, number: usize) {
        self.free[number / WORD] |= 1 << (number % WORD);
        self.taken -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_run_on_past_those_given_back_and_come_round() {
        let mut places = NextFit::default();
        let all: Vec<usize> = (0..300).map(|_| places.take(|_| ())).collect();
        assert_eq!(all, (0..300).collect::<Vec<_>>());
        assert_eq!((places.taken(), places.end()), (300, 512));
        (0..300).for_each(|number| places.release(number));
        assert_eq!(places.take(|_| ()), 256, "of the last word the first that is free");
        let next: Vec<usize> = (0..255).map(|_| places.take(|_| ())).collect();
        assert_eq!(next, (257..512).collect::<Vec<_>>());
        let mut begun = None;
        assert_eq!(places.take(|numbers| begun = Some(numbers)), 0);
        assert_eq!(begun, Some(0..64));
    }

    #[test]
    fn no_number_is_out_twice() {
        let mut places = NextFit::default();
        let mut out = std::collections::BTreeSet::new();
        for step in 0..10_000_usize {
            let number = places.take(|_| ());
            assert!(number < places.end() && out.insert(number));
            if step % 3 > 0 {
                let back = *out.iter().nth(step % out.len()).unwrap();
                out.remove(&back);
                places.release(back);
            }
            assert_eq!(places.taken(), out.len());
        }
    }
}

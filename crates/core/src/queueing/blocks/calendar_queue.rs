//! A wheel of numbers, each due at some round, none of them later than a turn of the wheel from now.
//!
//! A calendar queue: what is due in the same round stands in one slot, in the order in which it came there.
//! Putting a number in and taking it out cost the same however many there are, and finding the first looks at
//! one word for 64 rounds.

use super::linked_lists::{Chain, Links};

/// The wheel. It grows with the distance of what is due, and its memory is used again.
#[derive(Debug)]
pub struct CalendarQueue {
    now: u64,
    /// By round, modulo their number, which is a power of two.
    slots: Vec<Chain>,
    /// Which slots are not empty: a bit for each.
    occupied: Vec<u64>,
    /// When each number is due.
    due: Vec<u64>,
    links: Links,
}

impl Default for CalendarQueue {
    /// Without numbers, and with the slots of one word.
    fn default() -> Self {
        let slots = vec![Chain::EMPTY; u64::BITS as usize];
        Self { now: 0, slots, occupied: vec![0], due: Vec::new(), links: Links::default() }
    }
}

impl CalendarQueue {
    /// The present round.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The present round is another; nothing is due before it.
    pub fn advance(&mut self, now: u64) {
        debug_assert!(self.now <= now, "rounds run forwards");
        self.now = now;
    }

    /// When a number in the wheel is due.
    pub fn due(&self, number: u32) -> u64 {
        self.due[number as usize]
    }

    /// Puts in a number that is not in the wheel, behind those that are due in the same round.
    pub fn put(&mut self, number: u32, due: u64) {
        while due - self.now >= self.slots.len() as u64 {
            self.grow();
        }
        if number as usize >= self.due.len() {
            self.due.resize(number as usize + 1, 0);
        }
        self.due[number as usize] = due;
        let slot = self.slot(due);
        self.links.append(&mut self.slots[slot], number);
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// Takes out a number that is in the wheel.
    pub fn take(&mut self, number: u32) {
        let slot = self.slot(self.due(number));
        self.links.remove(&mut self.slots[slot], number);
        if self.slots[slot] == Chain::EMPTY {
            self.occupied[slot / 64] &= !(1 << (slot % 64));
        }
    }

    /// The number that is due first, and of equals the one that was put in first.
    pub fn first(&self) -> Option<u32> {
        let start = self.slot(self.now);
        let words = self.occupied.len();
        let ahead = self.occupied[start / 64] & (u64::MAX << (start % 64));
        // The first word comes again at the end, for the slots before the present one.
        let rest = (1..=words).map(|step| (start / 64 + step) & (words - 1));
        let mut seen = std::iter::once((start / 64, ahead))
            .chain(rest.map(|word| (word, self.occupied[word])));
        let (word, bits) = seen.find(|(_, bits)| *bits != 0)?;
        Some(self.slots[word * 64 + bits.trailing_zeros() as usize].first)
    }

    fn slot(&self, due: u64) -> usize {
        due as usize & (self.slots.len() - 1)
    }

    /// Doubles the wheel.
    fn grow(&mut self) {
        let slots = 2 * self.slots.len();
        let old = std::mem::replace(&mut self.slots, vec![Chain::EMPTY; slots]);
        self.occupied = vec![0; slots / 64];
        for chain in old.into_iter().filter(|chain| *chain != Chain::EMPTY) {
            // All in a slot are due in one round, and so they are in the larger wheel.
            let slot = self.slot(self.due(chain.first));
            self.slots[slot] = chain;
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
        fn the_first_is_that_of_a_sorted_list(
            steps in prop::collection::vec((0_u32..40, 0_u64..3_000, 0_u8..3), 1..300),
        ) {
            let mut wheel = CalendarQueue::default();
            // When each is due, and the order in which they came.
            let mut plain: Vec<(u64, usize, u32)> = Vec::new();
            for (order, (number, distance, kind)) in steps.into_iter().enumerate() {
                let place = plain.iter().position(|entry| entry.2 == number);
                match (kind, place) {
                    (0, _) => {
                        // The first goes, and its round is the present.
                        let first = plain.iter().min().copied();
                        prop_assert_eq!(wheel.first(), first.map(|first| first.2));
                        if let Some(first) = first {
                            wheel.advance(wheel.due(first.2));
                            wheel.take(first.2);
                            plain.retain(|entry| *entry != first);
                        }
                    }
                    (_, Some(place)) => {
                        wheel.take(number);
                        plain.remove(place);
                    }
                    (_, None) => {
                        wheel.put(number, wheel.now() + distance);
                        plain.push((wheel.now() + distance, order, number));
                    }
                }
                prop_assert_eq!(wheel.first(), plain.iter().min().map(|entry| entry.2));
            }
        }
    }
}

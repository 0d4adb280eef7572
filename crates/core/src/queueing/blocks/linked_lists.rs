//! Numbers in chains: each number has a place between two others, and goes from anywhere at the same cost.

/// Stands for no number.
const NONE: u32 = u32::MAX;

/// The first and the last number of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The first, or `u32::MAX`.
    pub first: u32,
    /// The last, or `u32::MAX`.
    pub last: u32,
}

impl Chain {
    /// Without numbers.
    pub const EMPTY: Self = Self { first: NONE, last: NONE };
}

/// What comes before and after a number in its chain.
#[derive(Clone, Copy, Debug)]
struct Around {
    before: u32,
    after: u32,
}

/// The neighbours of every number; a number is in one chain at most.
#[derive(Debug, Default)]
pub struct Links(Vec<Around>);

impl Links {
    /// Puts a number at the end of a chain.
    pub fn append(&mut self, chain: &mut Chain, number: u32) {
        let Chain { first, last } = *chain;
        if number as usize >= self.0.len() {
            self.0.resize(number as usize + 1, Around { before: NONE, after: NONE });
        }
        self.0[number as usize] = Around { before: last, after: NONE };
        match first {
            NONE => chain.first = number,
            _ => self.0[last as usize].after = number,
        }
        chain.last = number;
    }

    /// Whether a number in a chain is its first or its last, so that the chain changes with it.
    pub fn is_at_end(&self, number: u32) -> bool {
        let Around { before, after } = self.0[number as usize];
        before == NONE || after == NONE
    }

    /// Takes a number that stands between two others out of its chain.
    pub fn remove_inside(&mut self, number: u32) {
        let Around { before, after } = self.0[number as usize];
        self.0[before as usize].after = after;
        self.0[after as usize].before = before;
    }

    /// Takes a number out of its chain.
    pub fn remove(&mut self, chain: &mut Chain, number: u32) {
        let Around { before, after } = self.0[number as usize];
        match before {
            NONE => chain.first = after,
            _ => self.0[before as usize].after = after,
        }
        match after {
            NONE => chain.last = before,
            _ => self.0[after as usize].before = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_from_anywhere_and_come_at_the_end() {
        let (mut links, mut chain) = (Links::default(), Chain::EMPTY);
        let all = |links: &Links, chain: Chain| -> Vec<u32> {
            let some = |number: u32| Some(number).filter(|number| *number != NONE);
            let after = |number: &u32| some(links.0[*number as usize].after);
            std::iter::successors(some(chain.first), after).collect()
        };
        (0..5).for_each(|number| links.append(&mut chain, number));
        assert_eq!(
            (links.is_at_end(0), links.is_at_end(2), links.is_at_end(4)),
            (true, false, true)
        );
        links.remove_inside(2);
        links.remove(&mut chain, 0);
        links.remove(&mut chain, 4);
        assert_eq!((all(&links, chain), chain), (vec![1, 3], Chain { first: 1, last: 3 }));
        links.append(&mut chain, 0);
        links.remove(&mut chain, 3);
        assert_eq!(all(&links, chain), [1, 0]);
        links.remove(&mut chain, 1);
        links.remove(&mut chain, 0);
        assert_eq!(chain, Chain::EMPTY);
    }
}

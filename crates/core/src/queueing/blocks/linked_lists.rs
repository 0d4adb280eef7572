//! Doubly linked lists of numbers with removal in constant time.

/// Marks the absence of a number.
const NONE: u32 = u32::MAX;

/// Ends of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    /// First number, or `u32::MAX`.
    pub head: u32,
    /// Last number, or `u32::MAX`.
    pub tail: u32,
}

impl List {
    /// List without numbers.
    pub const EMPTY: Self = Self { head: NONE, tail: NONE };
}

/// Previous and next number in the list.
#[derive(Clone, Copy, Debug)]
struct Neighbours {
    previous: u32,
    next: u32,
}

/// Neighbours of every number. A number is in at most one list.
#[derive(Debug, Default)]
pub struct LinkedLists(Vec<Neighbours>);

impl LinkedLists {
    /// Appends a number to a list.
    pub fn append(&mut self, list: &mut List, number: u32) {
        let List { head, tail } = *list;
        if number as usize >= self.0.len() {
            self.0.resize(number as usize + 1, Neighbours { previous: NONE, next: NONE });
        }
        self.0[number as usize] = Neighbours { previous: tail, next: NONE };
        match head {
            NONE => list.head = number,
            _ => self.0[tail as usize].next = number,
        }
        list.tail = number;
    }

    /// Returns true if a listed number is the head or the tail of its list.
    pub fn is_end(&self, number: u32) -> bool {
        let Neighbours { previous, next } = self.0[number as usize];
        previous == NONE || next == NONE
    }

    /// Removes a number that is neither head nor tail.
    pub fn remove_inner(&mut self, number: u32) {
        let Neighbours { previous, next } = self.0[number as usize];
        self.0[previous as usize].next = next;
        self.0[next as usize].previous = previous;
    }

    /// Removes a number from its list.
    pub fn remove(&mut self, list: &mut List, number: u32) {
        let Neighbours { previous, next } = self.0[number as usize];
        match previous {
            NONE => list.head = next,
            _ => self.0[previous as usize].next = next,
        }
        match next {
            NONE => list.tail = previous,
            _ => self.0[next as usize].previous = previous,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_appended_and_removed_anywhere() {
        let (mut lists, mut list) = (LinkedLists::default(), List::EMPTY);
        let all = |lists: &LinkedLists, list: List| -> Vec<u32> {
            let some = |number: u32| Some(number).filter(|number| *number != NONE);
            let next = |number: &u32| some(lists.0[*number as usize].next);
            std::iter::successors(some(list.head), next).collect()
        };
        (0..5).for_each(|number| lists.append(&mut list, number));
        assert_eq!((lists.is_end(0), lists.is_end(2), lists.is_end(4)), (true, false, true));
        lists.remove_inner(2);
        lists.remove(&mut list, 0);
        lists.remove(&mut list, 4);
        assert_eq!((all(&lists, list), list), (vec![1, 3], List { head: 1, tail: 3 }));
        lists.append(&mut list, 0);
        lists.remove(&mut list, 3);
        assert_eq!(all(&lists, list), [1, 0]);
        lists.remove(&mut list, 1);
        lists.remove(&mut list, 0);
        assert_eq!(list, List::EMPTY);
    }
}

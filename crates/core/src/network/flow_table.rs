//! Where the flows in progress are kept: a place for each, which another has when it has ended.

use crate::model::packet::FlowNumber;

/// Index of a flow in progress among all of them.
pub type Slot = u32;

const NOWHERE: Slot = Slot::MAX;

/// Finds the place of a flow by its number, which is what packets carry. Numbers are given by the workload
/// and never used again, places are few: nobody but the owner of a table by place needs to know them.
#[derive(Debug, Default)]
pub struct FlowTable {
    /// By number.
    places: Vec<Slot>,
    free: Vec<Slot>,
    /// How many places there are.
    most: Slot,
}

impl FlowTable {
    /// Gives a flow a place.
    pub fn join(&mut self, number: FlowNumber) -> Slot {
        let place = self.free.pop().unwrap_or_else(|| {
            self.most += 1;
            self.most - 1
        });
        let index = number as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, NOWHERE);
        }
        self.places[index] = place;
        place
    }

    /// The place of a flow, if it is in progress.
    pub fn place(&self, number: FlowNumber) -> Option<Slot> {
        self.places.get(number as usize).copied().filter(|place| *place != NOWHERE)
    }

    /// A flow has ended.
    pub fn leave(&mut self, number: FlowNumber) {
        if let Some(place) = self.place(number) {
            self.places[number as usize] = NOWHERE;
            self.free.push(place);
        }
    }

    /// The flows in progress and their places, by number.
    pub fn all(&self) -> impl Iterator<Item = (FlowNumber, Slot)> {
        let places = (0..).zip(self.places.iter().copied());
        places.filter(|(_, place)| *place != NOWHERE)
    }

    /// How many flows are in progress.
    pub fn count(&self) -> usize {
        self.most as usize - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_numbers_are_not() {
        let mut directory = FlowTable::default();
        assert_eq!([7, 2, 9].map(|number| directory.join(number)), [0, 1, 2]);
        directory.leave(2);
        directory.leave(2);
        assert_eq!(directory.count(), 2);
        assert_eq!((directory.join(30), directory.place(2)), (1, None));
        assert_eq!(
            [7, 9, 30, 99].map(|number| directory.place(number)),
            [Some(0), Some(2), Some(1), None]
        );
        assert_eq!(directory.all().collect::<Vec<_>>(), [(7, 0), (9, 2), (30, 1)]);
    }
}

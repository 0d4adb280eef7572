//! Slots of the live flows, which are reused.

use crate::model::packet::FlowNumber;

/// Index of a live flow in tables.
pub type Slot = u32;

const NO_SLOT: Slot = Slot::MAX;

/// Map from flow numbers, which packets carry, to slots. The workload assigns numbers and never reuses
/// them. Slots of flows that have ended are reused, so that tables by slot stay small.
#[derive(Debug, Default)]
pub struct FlowTable {
    /// By number.
    slots: Vec<Slot>,
    free: Vec<Slot>,
    /// Number of slots, in use or free.
    len: Slot,
}

impl FlowTable {
    /// Assigns a slot to a flow.
    pub fn join(&mut self, number: FlowNumber) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.len += 1;
            self.len - 1
        });
        let index = number as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, NO_SLOT);
        }
        self.slots[index] = slot;
        slot
    }

    /// Returns the slot of a live flow.
    pub fn slot(&self, number: FlowNumber) -> Option<Slot> {
        self.slots.get(number as usize).copied().filter(|slot| *slot != NO_SLOT)
    }

    /// Frees the slot of a flow that has ended.
    pub fn leave(&mut self, number: FlowNumber) {
        if let Some(slot) = self.slot(number) {
            self.slots[number as usize] = NO_SLOT;
            self.free.push(slot);
        }
    }

    /// Returns the live flows and their slots, by number.
    pub fn all(&self) -> impl Iterator<Item = (FlowNumber, Slot)> {
        let slots = (0..).zip(self.slots.iter().copied());
        slots.filter(|(_, slot)| *slot != NO_SLOT)
    }

    /// Returns the number of live flows.
    pub fn count(&self) -> usize {
        self.len as usize - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused_and_numbers_are_not() {
        let mut table = FlowTable::default();
        assert_eq!([7, 2, 9].map(|number| table.join(number)), [0, 1, 2]);
        table.leave(2);
        table.leave(2);
        assert_eq!(table.count(), 2);
        assert_eq!((table.join(30), table.slot(2)), (1, None));
        assert_eq!(
            [7, 9, 30, 99].map(|number| table.slot(number)),
            [Some(0), Some(2), Some(1), None]
        );
        assert_eq!(table.all().collect::<Vec<_>>(), [(7, 0), (9, 2), (30, 1)]);
    }
}

//! Departure times of fluid flows.

use super::FluidFlow;

/// Indexed binary heap of the departures of active flows, each in a slot that its scheduler chooses. The
/// first is the earliest, ties by flow number.
#[derive(Debug, Default)]
pub struct Departures {
    heap: Vec<Departure>,
    /// Index in `heap`, by slot.
    index: Vec<u32>,
}

/// Departure time as the bits of a positive float, which sort in the same order, flow number, and slot.
type Departure = (u64, u32, u32);

impl Departures {
    /// Returns the slot and the time of the first departure.
    pub fn first(&self) -> Option<(u32, f64)> {
        self.heap.first().map(|(bits, _, slot)| (*slot, f64::from_bits(*bits)))
    }

    /// Adds the flow in `slot`, which departs at its current rate.
    pub fn insert(&mut self, slot: u32, flow: &FluidFlow, now: f64) {
        if self.index.len() <= slot as usize {
            self.index.resize(slot as usize + 1, 0);
        }
        self.heap.push(departure(slot, flow, now));
        self.move_up(self.heap.len() - 1);
    }

    /// Updates the departure of the flow in `slot`, whose rate has changed.
    pub fn update(&mut self, slot: u32, flow: &FluidFlow, now: f64) {
        let i = self.index[slot as usize] as usize;
        let (new, old) = (departure(slot, flow, now), self.heap[i]);
        self.heap[i] = new;
        if new < old {
            self.move_up(i);
        } else {
            self.move_down(i);
        }
    }

    /// Removes the first departure.
    pub fn remove_first(&mut self) {
        self.heap.swap_remove(0);
        if !self.heap.is_empty() {
            self.move_down(0);
        }
    }

    fn move_up(&mut self, mut i: usize) {
        let moved = self.heap[i];
        while i > 0 && moved < self.heap[(i - 1) / 2] {
            self.place(i, self.heap[(i - 1) / 2]);
            i = (i - 1) / 2;
        }
        self.place(i, moved);
    }

    fn move_down(&mut self, mut i: usize) {
        let moved = self.heap[i];
        loop {
            let mut child = 2 * i + 1;
            if child + 1 < self.heap.len() && self.heap[child + 1] < self.heap[child] {
                child += 1;
            }
            if child >= self.heap.len() || moved < self.heap[child] {
                break;
            }
            self.place(i, self.heap[child]);
            i = child;
        }
        self.place(i, moved);
    }

    fn place(&mut self, i: usize, departure: Departure) {
        self.heap[i] = departure;
        self.index[departure.2 as usize] = i as u32;
    }
}

fn departure(slot: u32, flow: &FluidFlow, now: f64) -> Departure {
    ((now + flow.time_left(now)).to_bits(), flow.number() as u32, slot)
}

//! Pool of reference-counted breakdowns. The packets that one ACK releases share a breakdown with
//! their sender, which keeps its reference until they are acknowledged.

use super::Breakdown;
use super::next_fit::NextFit;
use crate::base::prefetch::prefetch;

/// Reference to a pooled breakdown. The default refers to the empty breakdown, which is not
/// reference-counted. Must be released explicitly.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct BreakdownRef(u32);

/// Breakdown aligned to cache lines.
#[derive(Clone, Default)]
#[repr(align(64))]
struct Aligned(Breakdown);

const _: () = assert!(size_of::<Aligned>() == 256);

impl Aligned {
    /// Reads each of its cache lines ahead of use.
    fn read_ahead(&self) {
        let Breakdown { window, waits, stream_index, .. } = &self.0;
        prefetch(&window.0[0]);
        prefetch(&window.0[8]);
        prefetch(waits);
        prefetch(stream_index);
    }
}

/// Breakdowns and their reference counts. The counts are a separate table, because releasing one of several
/// references does not read the breakdown, which is often not cached.
pub struct BreakdownPool {
    slots: NextFit,
    /// The first breakdown is empty and never changes.
    breakdowns: Vec<Aligned>,
    references: Vec<u32>,
}

impl Default for BreakdownPool {
    fn default() -> Self {
        let mut pool = Self { slots: NextFit::default(), breakdowns: vec![], references: vec![] };
        assert_eq!(pool.add(Breakdown::default()), BreakdownRef::default());
        pool
    }
}

impl BreakdownPool {
    /// Adds a breakdown and returns the only reference to it.
    pub fn add(&mut self, breakdown: Breakdown) -> BreakdownRef {
        let Self { slots, breakdowns, .. } = self;
        let slot = slots.allocate(|range| {
            breakdowns.get(range).unwrap_or_default().iter().for_each(Aligned::read_ahead);
        });
        if slot >= self.breakdowns.len() {
            self.breakdowns.resize(self.slots.capacity(), Aligned::default());
            self.references.resize(self.slots.capacity(), 0);
        }
        (self.breakdowns[slot].0, self.references[slot]) = (breakdown, 1);
        BreakdownRef(slot as u32)
    }

    /// Returns the breakdown.
    pub fn get(&self, reference: &BreakdownRef) -> &Breakdown {
        &self.breakdowns[reference.0 as usize].0
    }

    /// Reads the breakdown ahead of use.
    pub fn read_ahead(&self, reference: &BreakdownRef) {
        self.breakdowns[reference.0 as usize].read_ahead();
    }

    /// Returns another reference to the same breakdown.
    pub fn share(&mut self, reference: &BreakdownRef) -> BreakdownRef {
        if *reference != BreakdownRef::default() {
            self.references[reference.0 as usize] += 1;
        }
        BreakdownRef(reference.0)
    }

    /// Returns the breakdown for modification. A shared breakdown is copied first, and the reference then
    /// refers to the copy.
    pub fn make_mut(&mut self, reference: &mut BreakdownRef) -> &mut Breakdown {
        if *reference == BreakdownRef::default() || self.references[reference.0 as usize] > 1 {
            let copy = self.add(*self.get(reference));
            self.release(std::mem::replace(reference, copy));
        }
        &mut self.breakdowns[reference.0 as usize].0
    }

    /// Releases a reference.
    #[expect(clippy::needless_pass_by_value, reason = "a released reference must not be used")]
    pub fn release(&mut self, reference: BreakdownRef) {
        if reference == BreakdownRef::default() {
            return;
        }
        let slot = reference.0 as usize;
        self.references[slot] -= 1;
        if self.references[slot] == 0 {
            self.slots.release(slot);
        }
    }

    /// Number of referenced breakdowns, without the empty one.
    pub fn used(&self) -> usize {
        self.slots.used() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Duration;
    use crate::breakdown::WaitReason;

    #[test]
    fn a_shared_breakdown_is_copied_before_it_is_modified() {
        let us = Duration::from_micros;
        let mut pool = BreakdownPool::default();
        let mut one = BreakdownRef::default();
        pool.make_mut(&mut one).add_wait(WaitReason::Pacing, us(1));
        let mut other = pool.share(&one);
        pool.make_mut(&mut other).add_wait(WaitReason::Pacing, us(10));
        assert_eq!((pool.get(&one).total(), pool.get(&other).total()), (us(1), us(11)));
        assert_eq!(pool.get(&BreakdownRef::default()).total(), us(0));
        assert_eq!(pool.used(), 2);
        pool.make_mut(&mut one).add_wait(WaitReason::SequenceGap, us(100));
        assert_eq!((pool.get(&one).total(), pool.used()), (us(101), 2));
        let last = pool.share(&one);
        for reference in [one, other, BreakdownRef::default()] {
            pool.release(reference);
        }
        assert_eq!((pool.get(&last).total(), pool.used()), (us(101), 1));
        pool.release(last);
        assert_eq!(pool.used(), 0);
    }
}

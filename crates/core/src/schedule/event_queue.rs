//! Event queue sorted by time and then by event.
//!
//! A monotone radix heap with digits of six bits. An event is at the level of the highest digit in which its
//! time differs from the current time, in the slot of that digit. It moves to lower levels as that time
//! approaches: at most once per level, and in practice two or three times in all. A slot with few events, or
//! with events of one time, is sorted at once instead. `docs/performance.md` compares it with its
//! predecessor.

use crate::base::units::Time;

const DIGIT: u32 = 6;
const SLOTS: usize = 1 << DIGIT;
const LEVELS: usize = u64::BITS.div_ceil(DIGIT) as usize;
/// Largest number of events in a slot that is sorted and not spread over lower levels.
const FEW: usize = 64;
/// Length of the sorted run above which it is spread again.
const MANY: usize = 256;

/// Pending events of type `E`.
#[derive(Debug)]
pub struct EventQueue<E> {
    now: Time,
    /// The earliest events in descending order, so that the next one is the last.
    run: Vec<(u64, E)>,
    /// End of the run: it contains exactly the pending events before this time.
    run_ends: u64,
    /// Reference time of the levels, never later than any event in them.
    base: u64,
    levels: Vec<[Vec<(u64, E)>; SLOTS]>,
    /// Bit mask per level of the slots that contain events.
    occupied: [u64; LEVELS],
    /// Memory of an empty slot, used by the slot being spread.
    spare: Vec<(u64, E)>,
}

impl<E: Copy + Ord> Default for EventQueue<E> {
    fn default() -> Self {
        Self {
            now: Time::ZERO,
            run: Vec::new(),
            run_ends: 0,
            base: 0,
            levels: (0..LEVELS).map(|_| std::array::from_fn(|_| Vec::new())).collect(),
            occupied: [0; LEVELS],
            spare: Vec::new(),
        }
    }
}

impl<E: Copy + Ord> EventQueue<E> {
    /// Time of the last event taken.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Schedules `event` at `time`, which must not be in the past.
    pub fn push(&mut self, time: Time, event: E) {
        debug_assert!(time >= self.now, "an event in the past: {time:?} at {:?}", self.now);
        if time.0 >= self.run_ends {
            self.place(time.0, event);
            return;
        }
        let later = self.run.partition_point(|other| *other > (time.0, event));
        self.run.insert(later, (time.0, event));
        if self.run.len() > MANY {
            self.spread_run();
        }
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        if self.run.is_empty() {
            self.refill()?;
        }
        let (time, event) = self.run.pop()?;
        self.now = Time(time);
        Some((self.now, event))
    }

    fn place(&mut self, time: u64, event: E) {
        let highest = (time ^ self.base).checked_ilog2().unwrap_or(0);
        let level = (highest / DIGIT) as usize;
        let slot = (time >> (level as u32 * DIGIT)) as usize % SLOTS;
        self.levels[level][slot].push((time, event));
        self.occupied[level] |= 1 << slot;
    }

    /// Moves the earliest slot into the empty run. Returns `None` if no event is pending.
    fn refill(&mut self) -> Option<()> {
        loop {
            let level = self.occupied.iter().position(|slots| *slots != 0)?;
            let slot = self.occupied[level].trailing_zeros();
            self.occupied[level] &= !(1 << slot);
            let shift = level as u32 * DIGIT;
            let digits_above =
                self.base.checked_shr(shift + DIGIT).map_or(0, |top| top << (shift + DIGIT));
            self.base = digits_above | u64::from(slot) << shift;
            let events = &mut self.levels[level][slot as usize];
            if level == 0 || events.len() <= FEW {
                self.run.append(events);
                self.run.sort_unstable_by(|one, other| other.cmp(one));
                self.run_ends = self.base.saturating_add(1 << shift);
                return Some(());
            }
            let mut events = std::mem::replace(events, std::mem::take(&mut self.spare));
            for (time, event) in events.drain(..) {
                self.place(time, event);
            }
            self.spare = events;
        }
    }

    /// Returns a long run to the levels, which then refer to the current time.
    fn spread_run(&mut self) {
        self.base = self.now.0;
        self.run_ends = self.now.0;
        let mut run = std::mem::replace(&mut self.run, std::mem::take(&mut self.spare));
        for (time, event) in run.drain(..).rev() {
            self.place(time, event);
        }
        self.spare = run;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference implementation: a sorted vector.
    #[derive(Default)]
    struct Plain(Vec<(Time, u32)>);

    impl Plain {
        fn push(&mut self, time: Time, event: u32) {
            let place = self.0.partition_point(|other| *other <= (time, event));
            self.0.insert(place, (time, event));
        }
        fn pop(&mut self) -> Option<(Time, u32)> {
            (!self.0.is_empty()).then(|| self.0.remove(0))
        }
    }

    fn agree(steps: &[(u8, u64)]) {
        let (mut schedule, mut plain) = (EventQueue::default(), Plain::default());
        for (step, (pops, ahead)) in (0_u32..).zip(steps) {
            // Unsorted, with some duplicates.
            let event = step.wrapping_mul(0x9e37_79b9) >> 24;
            let time = Time(schedule.now().0 + ahead);
            schedule.push(time, event);
            plain.push(time, event);
            for _ in 0..*pops {
                assert_eq!(schedule.pop(), plain.pop());
            }
        }
        while let Some(next) = plain.pop() {
            assert_eq!(schedule.pop(), Some(next));
        }
        assert_eq!(schedule.pop(), None);
    }

    proptest! {
        #[test]
        fn it_sorts_by_time_and_then_by_event(
            steps in prop::collection::vec((0_u8..3, prop_oneof![
                0_u64..4, 0_u64..2_000, 0_u64..2_000_000, 0_u64..1 << 40
            ]), 1..600)
        ) {
            agree(&steps);
        }

        #[test]
        fn a_growing_run_is_spread_in_order(ahead in prop::collection::vec(0_u64..50, 200..400)) {
            let far = (0, 1 << 30);
            let steps: Vec<_> = [far, (1, 0)].into_iter().chain(ahead.into_iter().map(|a| (0, a))).collect();
            agree(&steps);
        }
    }

    #[test]
    fn times_reach_to_the_end() {
        agree(&[(0, u64::MAX), (0, u64::MAX - 1), (0, 0), (2, 5)]);
    }
}

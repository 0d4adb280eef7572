//! Bytes of long-lived flows in the interval in which all of them send.
//!
//! Throughputs of different times do not add up, and a share compares flows of the same time only.

use super::Simulation;
use crate::base::units::Time;

/// Bytes that long-lived flows have delivered, by number.
type Delivered = Vec<(u64, u64)>;

/// An interval, and the bytes of flows in it.
pub type BytesInInterval = ([Time; 2], Vec<(u64, u64)>);

/// Interval from the last start of a long-lived flow, or the end of the warm-up, to the first stop.
#[derive(Clone, Debug, Default)]
pub struct CommonInterval {
    /// Start of the interval, and its end or [`Time::NEVER`] for that of the run; none without such an
    /// interval.
    bounds: Option<[Time; 2]>,
    /// Bytes that flows had delivered at the bounds that the run has reached.
    delivered: [Option<Delivered>; 2],
}

impl CommonInterval {
    /// Returns the interval with these bounds, if there is one.
    pub fn new(bounds: Option<[Time; 2]>) -> Self {
        Self { bounds, delivered: [None, None] }
    }

    /// Returns the first bound at which flows have not been read.
    fn next_bound(&self) -> Option<Time> {
        let bounds = self.bounds.iter().flatten().zip(&self.delivered);
        let unread = bounds.filter(|(_, delivered)| delivered.is_none()).map(|(bound, _)| *bound);
        unread.into_iter().find(|bound| *bound < Time::NEVER)
    }

    /// Returns the interval in a run that ended at `ended`, and the bytes of each flow in it; none if the run
    /// ended before.
    pub fn bytes(&self, ended: Time) -> Option<BytesInInterval> {
        let [from, to] = self.bounds?;
        let [Some(before), Some(after)] = &self.delivered else { return None };
        let mut bytes = after.clone();
        for (number, delivered) in &mut bytes {
            let place = before.binary_search_by_key(number, |(number, _)| *number);
            *delivered -= place.map_or(0, |place| before[place].1);
        }
        let to = to.min(ended);
        (from < to).then_some(([from, to], bytes))
    }

    /// Takes over the flows of another partition.
    pub fn absorb(&mut self, other: &Self) {
        for (own, other) in self.delivered.iter_mut().zip(&other.delivered) {
            if let (Some(own), Some(other)) = (own, other) {
                own.extend(other);
                own.sort_unstable();
            }
        }
    }
}

impl Simulation<'_> {
    /// Returns the next time at which counters are read.
    pub(super) fn next_bound(&self) -> Option<Time> {
        [self.measured.next_bound(), self.common.next_bound()].into_iter().flatten().min()
    }

    /// Reads counters at a bound of an interval. Returns the next bound.
    pub(super) fn read_counters(&mut self) -> Option<Time> {
        self.read_links();
        if self.common.next_bound() == Some(self.scheduler.now()) {
            self.read_long_lived();
        }
        self.next_bound()
    }

    /// Reads what long-lived flows have delivered, at the next bound of their interval.
    fn read_long_lived(&mut self) {
        let delivered = |(number, slot)| {
            let is_long_lived = self.flows.shared[slot as usize].as_ref()?.spec.size.is_none();
            let receiver = self.flows.receivers[slot as usize].as_ref()?;
            is_long_lived.then_some((u64::from(number), receiver.delivered))
        };
        let mut all: Delivered = self.network.flows().filter_map(delivered).collect();
        all.sort_unstable();
        if let Some(unread) = self.common.delivered.iter_mut().find(|read| read.is_none()) {
            *unread = Some(all);
        }
    }

    /// Reads long-lived flows at the end of the run, if it is the end of their interval.
    pub(super) fn end_common_interval(&mut self) {
        if let [Some(_), None] = &self.common.delivered {
            self.read_long_lived();
        }
    }
}

//! Sets of segment numbers, stored as ranges: the cost depends on the number of sequence gaps, not
//! on the size of the window.

use std::collections::VecDeque;

/// Half-open ranges: disjoint, not adjacent, in ascending order.
type Ranges = VecDeque<(u32, u32)>;

/// Set of segment numbers. Changes at either end, where ACKs make them, take constant time for any
/// number of ranges.
#[derive(Clone, Debug, Default)]
pub struct SegmentSet {
    /// `None` until the first insertion: most flows never see a sequence gap, and a million flows
    /// must fit in memory.
    ranges: Option<Box<Ranges>>,
    count: u32,
}

impl SegmentSet {
    /// Returns the number of segments.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns true if the set has no segments.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of ranges.
    pub fn len(&self) -> usize {
        self.ranges.as_ref().map_or(0, |ranges| ranges.len())
    }

    /// Returns the lowest segment.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        if self.is_empty() { None } else { self.ranges().next().map(|range| range.0) }
    }

    /// Returns the ranges in ascending order.
    pub fn ranges(&self) -> impl DoubleEndedIterator<Item = (u32, u32)> {
        self.ranges.iter().flat_map(|ranges| ranges.iter().copied())
    }

    /// Returns the range that contains `segment`.
    #[inline]
    pub fn range_of(&self, segment: u32) -> Option<(u32, u32)> {
        if self.is_empty() { None } else { self.find_range(segment) }
    }

    fn find_range(&self, segment: u32) -> Option<(u32, u32)> {
        let ranges = self.ranges.as_deref()?;
        let after = ranges.partition_point(|range| range.0 <= segment);
        let range = *ranges.get(after.checked_sub(1)?)?;
        (segment < range.1).then_some(range)
    }

    /// Adds the segments `from..to`. Returns the number of segments that are new.
    pub fn insert(&mut self, from: u32, to: u32) -> u32 {
        if from >= to {
            return 0;
        }
        let before = self.count;
        let ranges = self.ranges.get_or_insert_default();
        let begin = ranges.partition_point(|range| range.1 < from);
        let end = ranges.partition_point(|range| range.0 <= to);
        let mut merged = (from, to);
        for range in ranges.range(begin..end) {
            self.count -= range.1 - range.0;
            merged = (merged.0.min(range.0), merged.1.max(range.1));
        }
        self.count += merged.1 - merged.0;
        if begin == end {
            ranges.insert(begin, merged);
        } else {
            ranges[begin] = merged;
            ranges.drain(begin + 1..end);
        }
        self.count - before
    }

    /// Removes the segments `from..to`. Returns the number of segments that were in the set.
    #[inline]
    pub fn remove(&mut self, from: u32, to: u32) -> u32 {
        // Called for every segment sent and every ACK, mostly with nothing to remove.
        if self.is_empty() { 0 } else { self.remove_ranges(from, to) }
    }

    fn remove_ranges(&mut self, from: u32, to: u32) -> u32 {
        let Some(ranges) = self.ranges.as_deref_mut() else { return 0 };
        let before = self.count;
        let begin = ranges.partition_point(|range| range.1 <= from);
        let end = ranges.partition_point(|range| range.0 < to);
        if from >= to || begin == end {
            return 0;
        }
        let (first, last) = (ranges[begin], ranges[end - 1]);
        self.count -= ranges.range(begin..end).map(|range| range.1 - range.0).sum::<u32>();
        let left = (first.0 < from).then_some((first.0, from));
        let right = (last.1 > to).then_some((to, last.1));
        self.count +=
            left.map_or(0, |range| range.1 - range.0) + right.map_or(0, |range| range.1 - range.0);
        ranges.drain(begin..end);
        for rest in right.into_iter().chain(left) {
            ranges.insert(begin, rest);
        }
        before - self.count
    }

    /// Calls `visit` with every range of segments within `from..to` that is not in the set.
    pub fn gaps(&self, from: u32, to: u32, mut visit: impl FnMut(u32, u32)) {
        let mut next = from;
        let after = self
            .ranges
            .iter()
            .flat_map(|ranges| ranges.range(ranges.partition_point(|range| range.1 <= from)..));
        for range in after {
            if range.0 >= to {
                break;
            }
            if next < range.0 {
                visit(next, range.0);
            }
            next = next.max(range.1);
        }
        if next < to {
            visit(next, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_like_a_set_of_integers(
            steps in prop::collection::vec((any::<bool>(), 0_u32..60, 0_u32..20), 0..60)
        ) {
            let (mut segments, mut set) = (SegmentSet::default(), BTreeSet::new());
            for (insert, from, length) in steps {
                let to = from + length;
                let before = set.len();
                if insert {
                    set.extend(from..to);
                    prop_assert_eq!(segments.insert(from, to) as usize, set.len() - before);
                } else {
                    set.retain(|segment| !(from..to).contains(segment));
                    prop_assert_eq!(segments.remove(from, to) as usize, before - set.len());
                }
                prop_assert_eq!(segments.count() as usize, set.len());
                prop_assert_eq!(segments.first(), set.first().copied());
                for segment in 0..90 {
                    let range = segments.range_of(segment);
                    prop_assert_eq!(range.is_some(), set.contains(&segment));
                }
                let mut gaps = Vec::new();
                segments.gaps(5, 70, |from, to| gaps.extend(from..to));
                let missing: Vec<_> = (5..70).filter(|segment| !set.contains(segment)).collect();
                prop_assert_eq!(gaps, missing);
                let ranges: Vec<_> = segments.ranges().collect();
                prop_assert_eq!(segments.len(), ranges.len());
                prop_assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
        }
    }
}

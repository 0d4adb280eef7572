//! Sets of segments, kept as runs: a window with a few holes costs a few entries, however wide it
//! is.

use std::collections::VecDeque;

/// Disjoint, not adjacent, in order; each from and up to.
type Runs = VecDeque<(u32, u32)>;

/// A set of segment numbers. Changes at either end, which is where ACKs make them, cost the same however
/// many runs there are.
#[derive(Clone, Debug, Default)]
pub struct SegmentSet {
    /// None before the first: most flows never have a gap, and a million of them are to fit in memory.
    runs: Option<Box<Runs>>,
    count: u32,
}

impl SegmentSet {
    /// How many segments there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many runs there are.
    pub fn len(&self) -> usize {
        self.runs.as_ref().map_or(0, |runs| runs.len())
    }

    /// The lowest segment.
    pub fn first(&self) -> Option<u32> {
        self.runs().next().map(|run| run.0)
    }

    /// The runs, in order.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = (u32, u32)> {
        self.runs.iter().flat_map(|runs| runs.iter().copied())
    }

    /// The run that holds `segment`.
    pub fn run_of(&self, segment: u32) -> Option<(u32, u32)> {
        let runs = self.runs.as_deref()?;
        let after = runs.partition_point(|run| run.0 <= segment);
        let run = *runs.get(after.checked_sub(1)?)?;
        (segment < run.1).then_some(run)
    }

    /// Adds the segments from `from` up to `to`; says how many are new.
    pub fn insert(&mut self, from: u32, to: u32) -> u32 {
        if from >= to {
            return 0;
        }
        let before = self.count;
        let runs = self.runs.get_or_insert_default();
        let begin = runs.partition_point(|run| run.1 < from);
        let end = runs.partition_point(|run| run.0 <= to);
        let mut merged = (from, to);
        for run in runs.range(begin..end) {
            self.count -= run.1 - run.0;
            merged = (merged.0.min(run.0), merged.1.max(run.1));
        }
        self.count += merged.1 - merged.0;
        if begin == end {
            runs.insert(begin, merged);
        } else {
            runs[begin] = merged;
            runs.drain(begin + 1..end);
        }
        self.count - before
    }

    /// Takes the segments from `from` up to `to` away; says how many were there.
    pub fn remove(&mut self, from: u32, to: u32) -> u32 {
        let Some(runs) = self.runs.as_deref_mut().filter(|runs| !runs.is_empty()) else { return 0 };
        let before = self.count;
        let begin = runs.partition_point(|run| run.1 <= from);
        let end = runs.partition_point(|run| run.0 < to);
        if from >= to || begin == end {
            return 0;
        }
        let (first, last) = (runs[begin], runs[end - 1]);
        self.count -= runs.range(begin..end).map(|run| run.1 - run.0).sum::<u32>();
        let left = (first.0 < from).then_some((first.0, from));
        let right = (last.1 > to).then_some((to, last.1));
        self.count += left.map_or(0, |run| run.1 - run.0) + right.map_or(0, |run| run.1 - run.0);
        runs.drain(begin..end);
        for part in right.into_iter().chain(left) {
            runs.insert(begin, part);
        }
        before - self.count
    }

    /// Calls `hole` with every run of segments from `from` up to `to` that are not in the set.
    pub fn holes(&self, from: u32, to: u32, mut hole: impl FnMut(u32, u32)) {
        let mut at = from;
        let after = self
            .runs
            .iter()
            .flat_map(|runs| runs.range(runs.partition_point(|run| run.1 <= from)..));
        for run in after {
            if run.0 >= to {
                break;
            }
            if at < run.0 {
                hole(at, run.0);
            }
            at = at.max(run.1);
        }
        if at < to {
            hole(at, to);
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
        fn it_behaves_as_a_set(
            steps in prop::collection::vec((any::<bool>(), 0_u32..60, 0_u32..20), 0..60)
        ) {
            let (mut ranges, mut set) = (SegmentSet::default(), BTreeSet::new());
            for (insert, from, length) in steps {
                let to = from + length;
                let before = set.len();
                if insert {
                    set.extend(from..to);
                    prop_assert_eq!(ranges.insert(from, to) as usize, set.len() - before);
                } else {
                    set.retain(|segment| !(from..to).contains(segment));
                    prop_assert_eq!(ranges.remove(from, to) as usize, before - set.len());
                }
                prop_assert_eq!(ranges.count() as usize, set.len());
                prop_assert_eq!(ranges.first(), set.first().copied());
                for segment in 0..90 {
                    let run = ranges.run_of(segment);
                    prop_assert_eq!(run.is_some(), set.contains(&segment));
                }
                let mut holes = Vec::new();
                ranges.holes(5, 70, |from, to| holes.extend(from..to));
                let missing: Vec<_> = (5..70).filter(|segment| !set.contains(segment)).collect();
                prop_assert_eq!(holes, missing);
                let runs: Vec<_> = ranges.runs().collect();
                prop_assert_eq!(ranges.len(), runs.len());
                prop_assert!(runs.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
        }
    }
}

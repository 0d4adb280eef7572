//! Windowed maximum filter.

use std::collections::VecDeque;

/// Samples with their times, of any clock, as far as each may still become the maximum.
#[derive(Clone, Debug)]
pub struct MaxFilter<C, V> {
    /// In falling order.
    values: VecDeque<(C, V)>,
}

impl<C, V> Default for MaxFilter<C, V> {
    fn default() -> Self {
        Self { values: VecDeque::new() }
    }
}

impl<C: Copy, V: Copy + PartialOrd> MaxFilter<C, V> {
    /// Adds a value, no earlier than the last one, and removes the expired values. Values expire only here.
    pub fn add(&mut self, now: C, value: V, is_expired: impl Fn(C) -> bool) {
        while self.values.back().is_some_and(|(_, last)| *last <= value) {
            self.values.pop_back();
        }
        self.values.push_back((now, value));
        while self.values.front().is_some_and(|(time, _)| is_expired(*time)) {
            self.values.pop_front();
        }
    }

    /// Returns the maximum; none if there is no value.
    pub fn max(&self) -> Option<V> {
        self.values.front().map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_filter_returns_the_maximum_of_values_that_are_not_expired(
            steps in prop::collection::vec((0_u32..5, 0_u32..20), 1..100), span in 1_u32..12,
        ) {
            let (mut filter, mut all, mut now) = (MaxFilter::default(), Vec::new(), 0);
            prop_assert_eq!(filter.max(), None);
            for (later, value) in steps {
                now += later;
                all.push((now, value));
                filter.add(now, value, |time| now - time >= span);
                let recent = all.iter().filter(|(time, _)| now - time < span);
                prop_assert_eq!(filter.max(), recent.map(|(_, value)| *value).max());
            }
        }
    }
}

//! The largest of what was seen of late.

use std::collections::VecDeque;

/// Values with the times at which they were seen, by whatever clock, as far as each may yet be the largest.
#[derive(Clone, Debug)]
pub struct MaxFilter<C, V> {
    /// Falling.
    values: VecDeque<(C, V)>,
}

impl<C, V> Default for MaxFilter<C, V> {
    fn default() -> Self {
        Self { values: VecDeque::new() }
    }
}

impl<C: Copy, V: Copy + PartialOrd> MaxFilter<C, V> {
    /// Takes a value in at a time that is no earlier than the last, and forgets those that are too old; only
    /// now are they forgotten.
    pub fn add(&mut self, now: C, value: V, is_too_old: impl Fn(C) -> bool) {
        while self.values.back().is_some_and(|(_, last)| *last <= value) {
            self.values.pop_back();
        }
        self.values.push_back((now, value));
        while self.values.front().is_some_and(|(then, _)| is_too_old(*then)) {
            self.values.pop_front();
        }
    }

    /// The largest, if there is any value.
    pub fn largest(&self) -> Option<V> {
        self.values.front().map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_largest_of_those_that_are_not_too_old(
            steps in prop::collection::vec((0_u32..5, 0_u32..20), 1..100), span in 1_u32..12,
        ) {
            let (mut sliding, mut all, mut now) = (MaxFilter::default(), Vec::new(), 0);
            prop_assert_eq!(sliding.largest(), None);
            for (later, value) in steps {
                now += later;
                all.push((now, value));
                sliding.add(now, value, |then| now - then >= span);
                let young = all.iter().filter(|(then, _)| now - then < span);
                prop_assert_eq!(sliding.largest(), young.map(|(_, value)| *value).max());
            }
        }
    }
}

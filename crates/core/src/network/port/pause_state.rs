//! Number and duration of the pauses by PFC.

use crate::base::units::{Duration, Time};

/// Pauses of one traffic class at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseState {
    /// Number of pauses.
    pub count: u64,
    /// Total duration of the pauses that have ended.
    pub total: Duration,
    /// Duration of the longest pause that has ended.
    pub longest: Duration,
    /// Begin of the present pause.
    pub since: Option<Time>,
}

impl PauseState {
    /// Begins a pause, unless the class is paused already.
    pub fn begin(&mut self, now: Time) {
        if self.since.is_none() {
            self.since = Some(now);
            self.count += 1;
        }
    }

    /// Ends the pause, if the class is paused.
    pub fn end(&mut self, now: Time) {
        if let Some(since) = self.since.take() {
            self.total += now - since;
            self.longest = self.longest.max(now - since);
        }
    }

    /// Returns the total duration up to `now`, with that of the present pause.
    pub fn until(&self, now: Time) -> Duration {
        self.total + self.since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Returns the sum over all classes: numbers and durations are added, and the longest is kept.
    pub fn of_all(classes: &[Self]) -> Self {
        let add = |sum: Self, class: &Self| Self {
            count: sum.count + class.count,
            total: sum.total + class.total,
            longest: sum.longest.max(class.longest),
            since: sum.since.or(class.since),
        };
        classes.iter().fold(Self::default(), add)
    }

    /// True if data must wait.
    pub fn is_on(&self) -> bool {
        self.since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_add_up_and_the_longest_is_kept() {
        let mut pauses = PauseState::default();
        // The second frame refreshes the pause, and the last resumes a class that is not paused.
        let frames = [(1, true), (2, true), (6, false), (8, true), (9, false), (9, false)];
        for (at, is_pause) in frames {
            let now = Time::ZERO + Duration::from_micros(at);
            let change = if is_pause { PauseState::begin } else { PauseState::end };
            change(&mut pauses, now);
            assert_eq!(pauses.is_on(), is_pause);
        }
        let micros = Duration::from_micros;
        assert_eq!((pauses.count, pauses.total, pauses.longest), (2, micros(6), micros(5)));
    }
}

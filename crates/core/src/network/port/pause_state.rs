//! How often and how long PFC has held a port's data back.

use crate::base::units::{Duration, Time};

/// The pauses of one traffic class at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseState {
    /// How many there were.
    pub count: u64,
    /// How long they took together, as far as they have ended.
    pub total: Duration,
    /// How long the longest of them took.
    pub longest: Duration,
    /// When the present one began.
    pub since: Option<Time>,
}

impl PauseState {
    /// A pause begins, unless one is on already.
    pub fn begin(&mut self, now: Time) {
        if self.since.is_none() {
            self.since = Some(now);
            self.count += 1;
        }
    }

    /// The pause ends, if one is on.
    pub fn end(&mut self, now: Time) {
        if let Some(since) = self.since.take() {
            self.total += now - since;
            self.longest = self.longest.max(now - since);
        }
    }

    /// Of all classes together: their numbers and times added up, and the longest.
    pub fn of_all(classes: &[Self]) -> Self {
        let add = |sum: Self, class: &Self| Self {
            count: sum.count + class.count,
            total: sum.total + class.total,
            longest: sum.longest.max(class.longest),
            since: sum.since.or(class.since),
        };
        classes.iter().fold(Self::default(), add)
    }

    /// Whether data must wait.
    pub fn is_on(&self) -> bool {
        self.since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_add_up_and_the_longest_is_kept() {
        let mut pauses = PauseState::default();
        // The second frame refreshes a pause that is on, and the last resumes what goes already.
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

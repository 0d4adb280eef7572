//! Simulated time in the library's own types, which have no other origin than the machine's clocks. No
//! reading of these is ever used but as a beginning, from which spans of simulated time are counted.
#![expect(clippy::disallowed_types, reason = "the library's types of time")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use quinn_proto::TimeSource;
use sojourn_core::base::units::Time;

/// The time of a run.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// A clock whose beginning, whenever that is, is that of the run.
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    /// What it shows, in whole nanoseconds.
    pub(crate) fn at(self, time: Time) -> Instant {
        self.0 + Duration::from_nanos(time.0 / 1_000)
    }

    /// When it shows that.
    pub(crate) fn when(self, instant: Instant) -> Time {
        Time(instant.duration_since(self.0).as_nanos() as u64 * 1_000)
    }
}

/// The date, by which a server judges tokens: always the same, for there are none.
pub(crate) struct Dateless;

impl TimeSource for Dateless {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH
    }
}

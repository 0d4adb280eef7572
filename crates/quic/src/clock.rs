//! Conversion of simulated time to the library's time types, which can only be created from the machine's
//! clocks. One reading serves as the origin; only differences in simulated time are used.
#![expect(clippy::disallowed_types, reason = "the library's types of time")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use quinn_proto::TimeSource;
use sojourn_core::base::units::Time;

/// Clock of a run.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// Creates a clock whose origin is the start of the run.
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    /// Converts a simulated time to an instant, in whole nanoseconds.
    pub(crate) fn instant(self, time: Time) -> Instant {
        self.0 + Duration::from_nanos(time.0 / 1_000)
    }

    /// Converts an instant to a simulated time.
    pub(crate) fn time(self, instant: Instant) -> Time {
        Time(instant.duration_since(self.0).as_nanos() as u64 * 1_000)
    }
}

/// Date for the expiry of a server's tokens: constant, since no tokens are issued.
pub(crate) struct ConstantDate;

impl TimeSource for ConstantDate {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH
    }
}

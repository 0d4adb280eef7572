//! Handle to stop a running simulation and to read its progress from another thread.
//!
//! The run polls for requests at intervals, and reports its progress only on request, so the handle costs the
//! run nothing.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::base::schema::Problem;
use crate::base::units::Time;

/// Requests to a run.
const NOTHING: u8 = 0;
const PROGRESS: u8 = 1;
const STOP: u8 = 2;

/// Handle of one run, usable from any thread.
#[derive(Debug, Default)]
pub struct RunControl {
    request: AtomicU8,
    now: AtomicU64,
    started: AtomicU64,
    ended: AtomicU64,
    started_bytes: AtomicU64,
    delivered_bytes: AtomicU64,
    hops: AtomicU64,
    helper_nanoseconds: AtomicU64,
    reason: Mutex<String>,
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Flows that have started.
    pub started: u64,
    /// Flows that have ended.
    pub ended: u64,
    /// Payload of the flows that have started, except long-lived ones; 0 for an ideal.
    pub started_bytes: u64,
    /// Payload of these flows that has been delivered; 0 for an ideal.
    pub delivered_bytes: u64,
    /// Packets carried by links, counted at every link; 0 for an ideal.
    pub hops: u64,
}

impl RunControl {
    /// Requests the run to stop, for this reason. If there are several requests, the first reason holds.
    pub fn stop(&self, reason: &str) {
        let mut first = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_empty() {
            reason.clone_into(&mut first);
        }
        self.request.store(STOP, Ordering::Relaxed);
    }

    /// Returns true if a stop has been requested.
    pub fn is_stopped(&self) -> bool {
        self.request.load(Ordering::Relaxed) == STOP
    }

    /// Returns the progress reported last, and requests a new report at the next poll.
    pub fn progress(&self) -> Progress {
        // A request to stop must not be overwritten.
        let order = Ordering::Relaxed;
        let _ = self.request.compare_exchange(NOTHING, PROGRESS, order, order);
        Progress {
            now: Time(self.now.load(order)),
            started: self.started.load(order),
            ended: self.ended.load(order),
            started_bytes: self.started_bytes.load(order),
            delivered_bytes: self.delivered_bytes.load(order),
            hops: self.hops.load(order),
        }
    }

    /// Handles requests, called by the run: reports its progress, or returns an error if it has to stop.
    pub(crate) fn poll(&self, progress: impl FnOnce() -> Progress) -> Result<(), Problem> {
        let order = Ordering::Relaxed;
        match self.request.load(order) {
            NOTHING => return Ok(()),
            STOP => return Err(self.problem()),
            _ => {}
        }
        let progress = progress();
        self.now.store(progress.now.0, order);
        self.started.store(progress.started, order);
        self.ended.store(progress.ended, order);
        self.started_bytes.store(progress.started_bytes, order);
        self.delivered_bytes.store(progress.delivered_bytes, order);
        self.hops.store(progress.hops, order);
        let _ = self.request.compare_exchange(PROGRESS, NOTHING, order, order);
        Ok(())
    }

    /// Adds CPU time that a thread has used on behalf of the run's own.
    pub(crate) fn add_helper_time(&self, time: std::time::Duration) {
        self.helper_nanoseconds.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Returns the CPU time of threads that helped the run's own.
    pub fn helper_time(&self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.helper_nanoseconds.load(Ordering::Relaxed))
    }

    /// Returns the error that stops the run.
    pub fn problem(&self) -> Problem {
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        Problem::new("", if reason.is_empty() { "interrupted" } else { &reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_reported_on_request() {
        let control = RunControl::default();
        let here = Progress {
            now: Time(7),
            started: 4,
            ended: 2,
            started_bytes: 80,
            delivered_bytes: 50,
            hops: 9,
        };
        assert!(control.poll(|| unreachable!("there is no request")).is_ok());
        assert_eq!(control.progress(), Progress::default());
        assert!(control.poll(|| here).is_ok());
        assert!(control.poll(|| unreachable!("the request has been served")).is_ok());
        assert_eq!(control.progress(), here);
    }

    #[test]
    fn a_stop_persists_with_the_first_reason() {
        let control = RunControl::default();
        control.stop("too large");
        control.stop("late");
        let _ = control.progress();
        let problem = control.poll(|| unreachable!("it stops")).unwrap_err();
        assert_eq!(problem.to_string(), "too large");
        assert!(control.is_stopped());
    }
}

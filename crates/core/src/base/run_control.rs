//! Who looks after a run from outside: asks it to stop, or how far it is.
//!
//! A run looks now and then whether it is asked for something, and tells how far it is only then: so to be
//! watched costs it nothing.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::base::schema::Problem;
use crate::base::units::Time;

/// What a run is asked for.
const NOTHING: u8 = 0;
const PROGRESS: u8 = 1;
const STOP: u8 = 2;

/// Watches one run; any thread may ask.
#[derive(Debug, Default)]
pub struct RunControl {
    asked: AtomicU8,
    now: AtomicU64,
    flows: AtomicU64,
    hops: AtomicU64,
    reason: Mutex<String>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Time in the simulation.
    pub now: Time,
    /// Flows that have ended.
    pub flows: u64,
    /// Packets that links have carried; an ideal has none.
    pub hops: u64,
}

impl RunControl {
    /// Asks the run to stop, and says why; the first reason stays.
    pub fn stop(&self, reason: &str) {
        let mut known = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            reason.clone_into(&mut known);
        }
        self.asked.store(STOP, Ordering::Relaxed);
    }

    /// Whether a stop was asked for.
    pub fn is_stopped(&self) -> bool {
        self.asked.load(Ordering::Relaxed) == STOP
    }

    /// What the run has told last; asks it to tell again, when it next looks.
    pub fn progress(&self) -> Progress {
        // Whoever has asked for a stop still wants it.
        let order = Ordering::Relaxed;
        let _ = self.asked.compare_exchange(NOTHING, PROGRESS, order, order);
        Progress {
            now: Time(self.now.load(order)),
            flows: self.flows.load(order),
            hops: self.hops.load(order),
        }
    }

    /// The run looks: tells how far it is, if that is asked for, or stops.
    pub(crate) fn poll(&self, tell: impl FnOnce() -> Progress) -> Result<(), Problem> {
        let order = Ordering::Relaxed;
        match self.asked.load(order) {
            NOTHING => return Ok(()),
            STOP => return Err(self.problem()),
            _ => {}
        }
        let Progress { now, flows, hops } = tell();
        self.now.store(now.0, order);
        self.flows.store(flows, order);
        self.hops.store(hops, order);
        let _ = self.asked.compare_exchange(PROGRESS, NOTHING, order, order);
        Ok(())
    }

    /// Why the run stops.
    fn problem(&self) -> Problem {
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        Problem::new("", if reason.is_empty() { "interrupted" } else { &reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_tells_how_far_it_is_when_it_is_asked() {
        let watch = RunControl::default();
        let here = Progress { now: Time(7), flows: 2, hops: 9 };
        assert!(watch.poll(|| unreachable!("nobody has asked")).is_ok());
        assert_eq!(watch.progress(), Progress::default());
        assert!(watch.poll(|| here).is_ok());
        assert!(watch.poll(|| unreachable!("it has told")).is_ok());
        assert_eq!(watch.progress(), here);
    }

    #[test]
    fn a_stop_is_not_forgotten_and_has_the_first_reason() {
        let watch = RunControl::default();
        watch.stop("too large");
        watch.stop("late");
        let _ = watch.progress();
        let problem = watch.poll(|| unreachable!("it stops")).unwrap_err();
        assert_eq!(problem.to_string(), "too large");
        assert!(watch.is_stopped());
    }
}

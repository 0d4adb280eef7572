//! One run on several threads: each serves a part of the network, window by window.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::base::run_control::RunControl;
use crate::base::schema::Problem;
use crate::base::units::Time;
use crate::simulation::Simulation;
use crate::simulation::window_loop::{Window, WindowCoordinator};

/// Runs the parts of one simulation on so many threads, until every flow has finished, `limit` is reached or
/// `watch` asks for a stop; returns all of it as one.
///
/// Between windows whoever comes last does what belongs to no part, while the others wait.
pub fn run_on_threads<'a>(
    mut parts: Vec<Simulation<'a>>,
    threads: usize,
    limit: Time,
    watch: &RunControl,
) -> Result<Simulation<'a>, Problem> {
    parts.iter_mut().for_each(Simulation::start_routers);
    let conductor = Mutex::new((WindowCoordinator::new(&parts[0], limit, watch), Ok(None)));
    let parts: Vec<Mutex<Simulation<'a>>> = parts.into_iter().map(Mutex::new).collect();
    let failed = Mutex::new(None);
    let gate = Barrier::new(threads);
    let begin = || {
        let mut guards: Vec<MutexGuard<'_, Simulation<'a>>> = parts.iter().map(locked).collect();
        let (conductor, next) = &mut *locked(&conductor);
        *next = match locked(&failed).take() {
            Some(problem) => Err(problem),
            None => conductor.next(&mut guards),
        };
    };
    let window = || -> Option<Window> { locked(&conductor).1.as_ref().ok().copied().flatten() };
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (gate, failed) = (&gate, &failed);
            let own = parts.iter().skip(thread).step_by(threads);
            scope.spawn(move || {
                let _whole = Alarm(gate);
                while gate.pass(begin)
                    && let Some(window) = window()
                {
                    for part in own.clone() {
                        if let Err(problem) = locked(part).serve(window) {
                            locked(failed).get_or_insert(problem);
                        }
                    }
                }
            });
        }
    });
    locked(&conductor).1.as_mut().map_err(|problem| problem.clone())?;
    let parts =
        parts.into_iter().map(|part| part.into_inner().unwrap_or_else(PoisonError::into_inner));
    let mut parts = parts.map(|mut part| {
        part.unpack();
        part
    });
    let mut whole = parts.next().unwrap_or_else(|| unreachable!("there is one part at least"));
    parts.for_each(|part| whole.absorb(part));
    whole.close(limit);
    Ok(whole)
}

/// What a lock holds; if another thread has panicked with it, this one will soon be told.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where threads wait for each other. Whoever waits looks again and again for some microseconds, and then
/// sleeps: the processor may have other things to do (docs/performance.md).
struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    /// How often all have passed.
    passed: AtomicUsize,
    /// Whether a thread is gone that others would wait for.
    is_broken: AtomicBool,
    sleepers: Mutex<usize>,
    opens: Condvar,
}

/// How often a thread that waits looks before it sleeps: some ten microseconds.
const LOOKS: u32 = 2_000;

impl Barrier {
    fn new(threads: usize) -> Self {
        Self {
            threads,
            arrived: AtomicUsize::new(0),
            passed: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
            sleepers: Mutex::new(0),
            opens: Condvar::new(),
        }
    }

    /// Waits for all threads; the last does what is to be done `between`. Says whether to go on.
    fn pass(&self, between: impl FnOnce()) -> bool {
        let passed = self.passed.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            between();
            self.arrived.store(0, Ordering::Relaxed);
            self.open();
        } else {
            self.wait(passed);
        }
        !self.is_broken.load(Ordering::Acquire)
    }

    fn wait(&self, passed: usize) {
        let is_open = || {
            self.passed.load(Ordering::Acquire) != passed || self.is_broken.load(Ordering::Acquire)
        };
        for _ in 0..LOOKS {
            if is_open() {
                return;
            }
            std::hint::spin_loop();
        }
        let mut sleepers = locked(&self.sleepers);
        *sleepers += 1;
        while !is_open() {
            sleepers = self.opens.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
        }
        *sleepers -= 1;
    }

    fn open(&self) {
        self.passed.fetch_add(1, Ordering::AcqRel);
        // A thread that sees the gate closed while it holds the lock is counted before this asks.
        if *locked(&self.sleepers) > 0 {
            self.opens.notify_all();
        }
    }
}

/// Opens the gate for good if its thread panics, so that the others end too.
struct Alarm<'a>(&'a Barrier);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_broken.store(true, Ordering::Release);
            self.0.open();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pass_together_and_the_last_does_what_is_between() {
        let (gate, rounds, between) = (Barrier::new(3), 200, AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 0..rounds {
                        assert!(gate.pass(|| {
                            between.fetch_add(1, Ordering::Relaxed);
                        }));
                        // Nobody is a round ahead, for it would have had to wait for this thread.
                        let done = between.load(Ordering::Relaxed);
                        assert!((round + 1..=round + 2).contains(&done), "{done} in {round}");
                    }
                });
            }
        });
        assert_eq!(between.into_inner(), rounds);
    }

    #[test]
    fn a_thread_that_panics_lets_the_others_go() {
        let gate = Barrier::new(2);
        let went_on = std::thread::scope(|scope| {
            let waits = scope.spawn(|| gate.pass(|| ()));
            let fails = scope.spawn(|| {
                let _whole = Alarm(&gate);
                panic!("as a broken invariant does");
            });
            assert!(fails.join().is_err());
            waits.join().unwrap()
        });
        assert!(!went_on);
    }
}

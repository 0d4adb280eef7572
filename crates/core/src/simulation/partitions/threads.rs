//! Run on several threads: each thread runs some of the partitions, window by window.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::base::run_control::RunControl;
use crate::base::schema::Problem;
use crate::base::units::Time;
use crate::simulation::Simulation;
use crate::simulation::window_loop::{Window, WindowCoordinator};

/// Runs the partitions of a simulation on this number of threads, until every flow has finished, `limit` is
/// reached or `control` requests a stop. Returns them merged.
///
/// Between windows the last thread at the barrier runs the coordinator, while the others wait.
pub fn run_on_threads<'a>(
    mut simulations: Vec<Simulation<'a>>,
    threads: usize,
    limit: Time,
    control: &RunControl,
) -> Result<Simulation<'a>, Problem> {
    simulations.iter_mut().for_each(Simulation::start_routers);
    let coordinator =
        Mutex::new((WindowCoordinator::new(&simulations[0], limit, control), Ok(None)));
    let simulations: Vec<Mutex<Simulation<'a>>> = simulations.into_iter().map(Mutex::new).collect();
    let failed = Mutex::new(None);
    let barrier = Barrier::new(threads);
    let next_window = || {
        let mut guards: Vec<MutexGuard<'_, Simulation<'a>>> =
            simulations.iter().map(locked).collect();
        let (coordinator, next) = &mut *locked(&coordinator);
        *next = match locked(&failed).take() {
            Some(problem) => Err(problem),
            None => coordinator.next(&mut guards),
        };
    };
    let window = || -> Option<Window> { locked(&coordinator).1.as_ref().ok().copied().flatten() };
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (barrier, failed) = (&barrier, &failed);
            let assigned = simulations.iter().skip(thread).step_by(threads);
            scope.spawn(move || {
                let _guard = BarrierGuard(barrier);
                while barrier.wait(next_window)
                    && let Some(window) = window()
                {
                    for simulation in assigned.clone() {
                        if let Err(problem) = locked(simulation).run_window(window) {
                            locked(failed).get_or_insert(problem);
                        }
                    }
                }
            });
        }
    });
    locked(&coordinator).1.as_mut().map_err(|problem| problem.clone())?;
    let simulations = simulations
        .into_iter()
        .map(|simulation| simulation.into_inner().unwrap_or_else(PoisonError::into_inner));
    let mut simulations = simulations.map(|mut simulation| {
        simulation.import_packets();
        simulation
    });
    let mut merged =
        simulations.next().unwrap_or_else(|| unreachable!("there is one simulation at least"));
    simulations.for_each(|simulation| merged.merge(simulation));
    merged.close(limit);
    Ok(merged)
}

/// Locks a mutex, even if another thread panicked while it held the lock. Then the barrier breaks.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Barrier for threads. A waiting thread spins for some microseconds and then sleeps, because the processor
/// may have other work (docs/performance.md).
struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    /// Number of times that all threads have passed.
    passed: AtomicUsize,
    /// True if a thread has panicked.
    is_broken: AtomicBool,
    sleepers: Mutex<usize>,
    opened: Condvar,
}

/// Iterations of the spin loop before a thread sleeps: some ten microseconds.
const SPINS: u32 = 2_000;

impl Barrier {
    fn new(threads: usize) -> Self {
        Self {
            threads,
            arrived: AtomicUsize::new(0),
            passed: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
            sleepers: Mutex::new(0),
            opened: Condvar::new(),
        }
    }

    /// Waits for all threads. The last one to arrive calls `closure`. Returns false if the barrier is broken.
    fn wait(&self, closure: impl FnOnce()) -> bool {
        let passed = self.passed.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            closure();
            self.arrived.store(0, Ordering::Relaxed);
            self.open();
        } else {
            self.wait_for_others(passed);
        }
        !self.is_broken.load(Ordering::Acquire)
    }

    fn wait_for_others(&self, passed: usize) {
        let is_open = || {
            self.passed.load(Ordering::Acquire) != passed || self.is_broken.load(Ordering::Acquire)
        };
        for _ in 0..SPINS {
            if is_open() {
                return;
            }
            std::hint::spin_loop();
        }
        let mut sleepers = locked(&self.sleepers);
        *sleepers += 1;
        while !is_open() {
            sleepers = self.opened.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
        }
        *sleepers -= 1;
    }

    fn open(&self) {
        self.passed.fetch_add(1, Ordering::AcqRel);
        // A thread that holds the lock and sees the barrier closed is counted before this lock.
        if *locked(&self.sleepers) > 0 {
            self.opened.notify_all();
        }
    }
}

/// Breaks the barrier if its thread panics, so that the other threads end too.
struct BarrierGuard<'a>(&'a Barrier);

impl Drop for BarrierGuard<'_> {
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
    fn all_threads_pass_together_after_the_last_has_run_the_closure() {
        let (barrier, rounds, closure) = (Barrier::new(3), 200, AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 0..rounds {
                        assert!(barrier.wait(|| {
                            closure.fetch_add(1, Ordering::Relaxed);
                        }));
                        // No thread is a round ahead, because it would have waited for this thread.
                        let done = closure.load(Ordering::Relaxed);
                        assert!((round + 1..=round + 2).contains(&done), "{done} in {round}");
                    }
                });
            }
        });
        assert_eq!(closure.into_inner(), rounds);
    }

    #[test]
    fn a_panicking_thread_releases_the_others() {
        let barrier = Barrier::new(2);
        let has_continued = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| barrier.wait(|| ()));
            let panicking = scope.spawn(|| {
                let _guard = BarrierGuard(&barrier);
                panic!("as a broken invariant does");
            });
            assert!(panicking.join().is_err());
            waiting.join().unwrap()
        });
        assert!(!has_continued);
    }
}

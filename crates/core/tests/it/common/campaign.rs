//! Runs many random cases of one property, on all cores.
//!
//! A test run tries a few cases. With `SOJOURN_COUNT` in the environment it is a campaign of that
//! many cases, starting at `SOJOURN_SEED`, on `SOJOURN_THREADS` threads. A file below `target/fuzz`
//! records the cases that passed with the current program: an interrupted campaign resumes with the
//! remaining cases, and failed cases are tried again. A program with different source code starts
//! over.
#![allow(
    clippy::disallowed_types,
    clippy::print_stderr,
    clippy::single_range_in_vec_init,
    reason = "a campaign measures time, reports its progress and divides ranges"
)]

use std::any::Any;
use std::collections::hash_map::DefaultHasher;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::hash::Hasher;
use std::io::Write;
use std::num::NonZero;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::str::FromStr;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// Interval of progress reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// A campaign stops after this number of failures.
const MAX_FAILURES: usize = 20;

/// Parameters of a campaign.
pub struct Plan {
    /// Name of the property, and of the file.
    pub name: &'static str,
    /// Number of cases in a test run without a campaign.
    pub default_cases: u64,
    /// Number of cases that a thread takes, and records as passed, at a time.
    pub block: u64,
}

/// State shared by the threads.
struct Progress {
    to_do: Vec<Range<u64>>,
    log: Option<File>,
    done: u64,
    failures: Vec<String>,
    last_report: Instant,
}

/// Runs `case` for every number of the plan; `case` panics if the property does not hold. Reports
/// all failures, each with its number and its input from `show`.
pub fn run(plan: &Plan, case: impl Fn(u64) + Sync, show: impl Fn(u64) -> String + Sync) {
    let count: Option<u64> = env_number("SOJOURN_COUNT");
    let first = env_number("SOJOURN_SEED").unwrap_or(1);
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = env_number("SOJOURN_THREADS").unwrap_or(cores);
    let (log, done) = count.map(|_| open_log(plan.name)).unzip();
    let all = first..first + count.unwrap_or(plan.default_cases);
    let mut to_do = remaining(all, done.unwrap_or_default(), plan.block);
    let total: u64 = to_do.iter().map(|block| block.end - block.start).sum();
    to_do.reverse();
    let start_time = Instant::now();
    let progress =
        Mutex::new(Progress { to_do, log, done: 0, failures: Vec::new(), last_report: start_time });
    let report = |progress: &Progress| {
        let (done, failed) = (progress.done, progress.failures.len());
        let rate = done as f64 / start_time.elapsed().as_secs_f64();
        eprintln!("{}: {done} of {total} done, {failed} failed, {rate:.1} a second", plan.name);
    };
    let work = || {
        while let Some(block) = next(&progress) {
            let failures: Vec<_> =
                block.clone().filter_map(|number| run_case(number, &case, &show)).collect();
            let mut progress = progress.lock().unwrap();
            progress.done += block.end - block.start;
            if failures.is_empty() {
                record(progress.log.as_mut(), &block);
            }
            for failure in &failures {
                eprintln!("{}: {failure}", plan.name);
            }
            progress.failures.extend(failures);
            if progress.last_report.elapsed() > REPORT_INTERVAL {
                progress.last_report = Instant::now();
                report(&progress);
            }
        }
    };
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let progress = progress.into_inner().unwrap();
    if count.is_some() {
        report(&progress);
    }
    let failures = &progress.failures;
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(progress.done, total);
}

/// Parses a number in the environment, if set.
fn env_number<T: FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not `{text}`")))
}

fn next(progress: &Mutex<Progress>) -> Option<Range<u64>> {
    let mut progress = progress.lock().unwrap();
    if progress.failures.len() < MAX_FAILURES { progress.to_do.pop() } else { None }
}

/// Runs one case; returns the panic message, if any.
fn run_case(number: u64, case: impl Fn(u64), show: impl Fn(u64) -> String) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| case(number))).err()?;
    Some(format!("SOJOURN_SEED={number}: {}: {}", message(&*panic), show(number)))
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic")
}

/// Returns the cases of `all` that are not done, in blocks.
fn remaining(all: Range<u64>, mut done: Vec<Range<u64>>, block: u64) -> Vec<Range<u64>> {
    done.sort_by_key(|done| done.start);
    done.push(all.end..all.end);
    let (mut from, mut left) = (all.start, Vec::new());
    for done in done {
        let gap = from..done.start.min(all.end);
        from = from.max(done.end);
        let starts = gap.clone().step_by(block as usize);
        left.extend(starts.map(|start| start..(start + block).min(gap.end)));
    }
    left
}

/// Opens the file of passed cases; reads it if this program wrote it.
fn open_log(name: &str) -> (File, Vec<Range<u64>>) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("fuzz");
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join(name);
    let mut program = DefaultHasher::new();
    program.write(&fs::read(env::current_exe().unwrap()).unwrap());
    let header = format!("program {:016x}", program.finish());
    let text = fs::read_to_string(&path).unwrap_or_default();
    // The last line may be incomplete.
    let complete = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let mut lines = complete.lines();
    let is_current = lines.next() == Some(&header);
    let parse_line = |line: &str| {
        let (start, end) = line.split_once("..")?;
        Some(start.parse().ok()?..end.parse().ok()?)
    };
    let done: Vec<Range<u64>> =
        if is_current { lines.filter_map(parse_line).collect() } else { Vec::new() };
    fs::write(&path, if is_current { complete.to_owned() } else { header + "\n" }).unwrap();
    (OpenOptions::new().append(true).open(&path).unwrap(), done)
}

fn record(log: Option<&mut File>, done: &Range<u64>) {
    if let Some(log) = log {
        // A single write, so that an interrupt leaves complete lines.
        log.write_all(format!("{}..{}\n", done.start, done.end).as_bytes()).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn campaign_resumes_with_the_remaining_cases() {
        let left = |all, done: &[Range<u64>]| remaining(all, done.to_vec(), 10);
        assert_eq!(left(1..25, &[]), [1..11, 11..21, 21..25]);
        assert_eq!(left(1..25, &[11..21, 1..4]), [4..11, 21..25]);
        assert_eq!(left(5..25, &[1..11, 3..7, 24..40]), [11..21, 21..24]);
        assert_eq!(left(1..25, &[1..30]), []);
        assert_eq!(left(1..5, &[7..9]), [1..5]);
    }
}

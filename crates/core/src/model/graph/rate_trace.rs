//! Rate of a link as a function of time, and the file formats.

use crate::base::schema::table::{Table, at};
use crate::base::schema::{File, Problem};
use crate::base::units::{Bytes, PICOSECONDS, Rate, Time};

/// Rate of a link: piecewise constant, without end.
///
/// The work done by a link is counted exactly, in bits per second times picoseconds. Hence the end of a
/// transmission is known at its start, however often the rate changes in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateTrace {
    /// Pieces in order. The first starts with the run.
    pieces: Box<[Piece]>,
    /// Period after which the trace repeats. Without it the last piece has no end, and its rate is not zero.
    round: Option<Round>,
}

/// Interval of constant rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// Start in picoseconds.
    from: u64,
    /// Rate in bits per second; zero while the link is down.
    rate: u64,
    /// Work done before this piece, from the start of the period.
    done: u128,
}

/// Period of a trace that repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Round {
    /// Length in picoseconds.
    lasts: u64,
    /// Work done in a period, which is not zero.
    done: u128,
}

/// Work of a byte.
const BYTE: u128 = 8 * PICOSECONDS as u128;

impl RateTrace {
    /// Returns the trace of rates in bits per second from times in picoseconds, which repeats after `lasts`.
    fn new(changes: &[(u64, u64)], lasts: Option<u64>) -> Self {
        let mut pieces: Vec<Piece> = Vec::with_capacity(changes.len());
        for &(from, rate) in changes {
            let done = pieces.last().map_or(0, |before| before.done_by(from));
            pieces.push(Piece { from, rate, done });
        }
        let last = pieces.last().copied();
        let round = |lasts| Some(Round { lasts, done: last?.done_by(lasts) });
        Self { pieces: pieces.into(), round: lasts.and_then(round) }
    }

    /// Reads the file that the parameter `field` names.
    pub(crate) fn read(field: &str, file: &File) -> Result<Self, Problem> {
        let is_said = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let first = file.text.lines().map(str::trim).find(is_said).unwrap_or_default();
        let has_number = first.parse::<u64>().is_ok();
        let read = if has_number { read_opportunities(file) } else { read_table(file) };
        read.map_err(|problem| problem.of(field))
    }

    /// Time at which a transmission ends that starts at `starts`, rounded to the nearest picosecond.
    pub fn transmit(&self, bytes: Bytes, starts: Time) -> Time {
        if bytes == Bytes::ZERO {
            return starts;
        }
        self.when_done(self.done_by(starts) + u128::from(bytes.0) * BYTE)
    }

    /// Returns the trace of a link with a share of the rate at all times.
    pub(super) fn slowed_to(&self, share: f64) -> Self {
        let slowed = |piece: &Piece| match piece.rate {
            0 => (piece.from, 0),
            rate => (piece.from, Rate(rate).share(share).0),
        };
        let changes: Vec<_> = self.pieces.iter().map(slowed).collect();
        Self::new(&changes, self.round.map(|round| round.lasts))
    }

    /// Largest rate.
    pub fn largest(&self) -> Rate {
        Rate(self.pieces.iter().map(|piece| piece.rate).max().unwrap_or_default())
    }

    /// Mean rate over a period. Without a period, the mean until the last piece starts; or the rate of the
    /// last piece, if no work is done before it.
    pub fn mean(&self) -> Rate {
        let last = self.pieces[self.pieces.len() - 1];
        let (done, lasts) =
            self.round.map_or((last.done, last.from), |round| (round.done, round.lasts));
        if done == 0 { Rate(last.rate) } else { Rate::from_bps(done as f64 / lasts as f64) }
    }

    /// Number of bits that the link can carry until a time.
    pub fn bits(&self, until: Time) -> f64 {
        self.done_by(until) as f64 / PICOSECONDS as f64
    }

    fn done_by(&self, time: Time) -> u128 {
        let (rounds, time) =
            self.round.map_or((0, time.0), |round| (time.0 / round.lasts, time.0 % round.lasts));
        let past = self.pieces.partition_point(|piece| piece.from <= time);
        let of_rounds = self.round.map_or(0, |round| u128::from(rounds) * round.done);
        of_rounds + self.pieces[past - 1].done_by(time)
    }

    /// First time at which a nonzero amount of work is done.
    fn when_done(&self, done: u128) -> Time {
        let rounds = self.round.map_or(0, |round| (done - 1) / round.done);
        let (began, done) = self.round.map_or((0, done), |round| {
            (rounds * u128::from(round.lasts), done - rounds * round.done)
        });
        // The work is done after the start of this piece and before the next piece, so the rate is not zero.
        let piece = self.pieces[self.pieces.partition_point(|piece| piece.done < done) - 1];
        let rate = u128::from(piece.rate);
        let time = began + u128::from(piece.from) + (done - piece.done + rate / 2) / rate;
        Time(u64::try_from(time).unwrap_or(u64::MAX))
    }
}

impl Piece {
    /// Work done by a time in the period.
    fn done_by(&self, time: u64) -> u128 {
        self.done + u128::from(self.rate) * u128::from(time - self.from)
    }
}

/// Upper bound of rates, so that the work done in all of simulated time can be counted.
const MOST_BPS: f64 = 1e15;

/// Reads times and rates.
fn read_table(file: &File) -> Result<RateTrace, Problem> {
    let mut changes: Vec<(u64, u64)> = Vec::new();
    Table::open(file, &["time_s", "rate_bps"], &[])?.rows(|row| {
        let (time, rate) = (row.seconds("time_s")?, row.required::<f64>("rate_bps")?);
        let time = time.ok_or_else(|| row.problem("time_s", "missing"))?;
        match changes.last() {
            None if time > 0 => {
                return Err(row.problem("time_s", "the first must be 0, when the run begins"));
            }
            Some((before, _)) if time <= *before => {
                let message = format!("must be after {}, the row above", Time(*before));
                return Err(row.problem("time_s", &message));
            }
            _ => {}
        }
        if !(0.0..=MOST_BPS).contains(&rate) {
            return Err(row.problem("rate_bps", &format!("must be from 0 to 1e15, not {rate}")));
        }
        changes.push((time, rate.round() as u64));
        Ok(())
    })?;
    match changes.last() {
        None => Err(Problem::new("", format!("{}: no rows, one for each rate", file.name))),
        Some((_, 0)) => {
            let message = format!("{}: the last rate holds on, and must be above 0", file.name);
            Err(Problem::new("", message))
        }
        Some(_) => Ok(RateTrace::new(&changes, None)),
    }
}

/// Picoseconds per millisecond.
const MILLISECOND: u64 = PICOSECONDS / 1000;
/// Range of simulated time in milliseconds.
const MOST_MS: u64 = u64::MAX / MILLISECOND;
/// Rate of one packet of 1500 B per millisecond, in bits per second.
const OPPORTUNITY: u64 = 1500 * 8 * 1000;

/// Reads delivery opportunities (Mahimahi's format).
fn read_opportunities(file: &File) -> Result<RateTrace, Problem> {
    let mut counts: Vec<(u64, u64)> = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let before = counts.last().map_or(0, |(time, _)| *time);
        let time = line.parse().ok().filter(|time| (before..=MOST_MS).contains(time));
        let Some(time) = time else {
            let allowed = format!("a whole number of milliseconds from {before} to {MOST_MS}");
            return Err(at(&file.name, number, &format!("expected {allowed}, not `{line}`")));
        };
        match counts.last_mut() {
            Some((last, count)) if *last == time => *count += 1,
            _ => counts.push((time, 1)),
        }
    }
    let lasts = counts.last().map_or(0, |(time, _)| *time);
    if lasts == 0 {
        let message = format!("{}: the last line ends the trace, and must be above 0", file.name);
        return Err(Problem::new("", message));
    }
    // An opportunity at the start counts for the end of the previous period.
    if let Some((0, count)) = counts.first().copied() {
        counts.remove(0);
        counts.last_mut().into_iter().for_each(|(_, last)| *last += count);
    }
    let (mut changes, mut ended) = (Vec::new(), 0);
    for (time, count) in counts {
        if time - 1 > ended {
            changes.push((ended * MILLISECOND, 0));
        }
        changes.push(((time - 1) * MILLISECOND, count * OPPORTUNITY));
        ended = time;
    }
    Ok(RateTrace::new(&changes, Some(lasts * MILLISECOND)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Duration;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<RateTrace, Problem> {
        RateTrace::read("rate_trace", &File::of("rates", text.to_owned()))
    }

    fn at_us(microseconds: u64) -> Time {
        Time::ZERO + Duration::from_micros(microseconds)
    }

    #[test]
    fn a_transmission_spans_several_rates() {
        // 8 bits per microsecond, then nothing, then 80.
        let trace = read("time_s,rate_bps\n0,8e6\n10e-6,0\n15e-6,8e7\n").unwrap();
        let ends = |bytes, starts| trace.transmit(Bytes(bytes), at_us(starts));
        assert_eq!(ends(10, 0), at_us(10), "the link falls silent as the last bit leaves");
        assert_eq!(ends(4, 8), Time(15_200_000), "two before, two after the pause at 10 B/us");
        assert_eq!(ends(10, 12), at_us(16), "what starts in the pause waits for its end");
        assert_eq!(ends(1000, 100), at_us(200), "the last rate holds on");
        assert_eq!(ends(0, 12), at_us(12));
        assert_eq!((trace.largest(), trace.mean()), (Rate(80_000_000), Rate(5_333_333)));
        assert!((trace.bits(at_us(16)) - 160.0).abs() < 1e-9);
    }

    #[test]
    fn opportunities_set_the_rate_of_the_preceding_millisecond_and_repeat() {
        // Two packets by 1 ms, one by 4 ms and two by 5 ms, because those at 0 count for the end.
        let trace = read("# Mahimahi\n0\n1\n1\n4\n5\n").unwrap();
        let ends = |packets: u64, starts| trace.transmit(Bytes(1500 * packets), at_us(starts));
        assert_eq!([1, 2, 3, 4, 5].map(|n| ends(n, 0)), [500, 1000, 4000, 4500, 5000].map(at_us));
        assert_eq!([6, 12].map(|n| ends(n, 0)), [5500, 11_000].map(at_us));
        assert_eq!(ends(1, 1500), at_us(4000));
        assert_eq!(ends(2, 4500), at_us(5500), "one in this round and one in the next");
        assert_eq!((trace.largest(), trace.mean()), (Rate(24_000_000), Rate(12_000_000)));
    }

    #[test]
    fn errors_name_file_line_and_what_is_allowed() {
        let table = |rows| format!("time_s,rate_bps\n{rows}");
        let texts = [
            String::new(),
            "time_s,rate\n0,1\n".to_owned(),
            table(""),
            table("1,1e6\n"),
            table("0,1e6\n0,2e6\n"),
            table("0,-1\n"),
            table("0,fast\n"),
            table("now,1e6\n"),
            table("0,1e6\n1,0\n"),
            "0\n".to_owned(),
            "3\n2\n".to_owned(),
            "1\n1.5\n".to_owned(),
        ];
        insta::assert_snapshot!(texts.map(|text| read(&text).unwrap_err().to_string()).join("\n"));
    }

    proptest! {
        #[test]
        fn no_transmission_is_faster_than_at_the_largest_rate_and_they_add_up(
            spans in prop::collection::vec((1_u64..10_000_000, 0_u64..2_000_000_000), 1..6),
            repeats: bool, last in 1_u64..2_000_000_000,
            start in 0_u64..100_000_000, sizes in prop::collection::vec(1_u64..3_000, 1..5),
        ) {
            let mut changes = vec![(0, last)];
            for (span, rate) in spans {
                let (from, _) = changes[changes.len() - 1];
                changes.push((from + span, if rate % 4 == 0 { 0 } else { rate }));
            }
            let end = changes.last().unwrap().0;
            changes.push((end + 1, last));
            let trace = RateTrace::new(&changes, repeats.then_some(end + 2));
            let mut now = Time(start);
            for size in &sizes {
                let ends = trace.transmit(Bytes(*size), now);
                prop_assert!(ends - now >= trace.largest().transmit(Bytes(*size)));
                now = ends;
            }
            // Each end is rounded by half a picosecond at most, at no more than the largest rate.
            let whole = trace.done_by(Time(start)) + u128::from(sizes.iter().sum::<u64>()) * BYTE;
            let off = trace.done_by(now).abs_diff(whole);
            prop_assert!(off <= u128::from(trace.largest().0) * sizes.len() as u128);
        }

        #[test]
        fn a_trace_of_one_rate_is_that_rate(
            rate in 1_u64..1_000_000_000_000, bytes in 0_u64..100_000, start in 0..1_u64 << 50,
        ) {
            let constant = RateTrace::new(&[(0, rate)], None);
            let ends = Time(start) + Rate(rate).transmit(Bytes(bytes));
            prop_assert_eq!(constant.transmit(Bytes(bytes), Time(start)), ends);
        }
    }
}

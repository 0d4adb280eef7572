//! Delay of a link as a function of time, and the file format.

use crate::base::schema::table::Table;
use crate::base::schema::{File, Problem};
use crate::base::units::{Duration, Time};

/// Delay of a link by departure time: piecewise constant. The last delay has no end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayTrace {
    /// Start and delay of each piece, in order. The first starts with the run.
    pieces: Box<[(Time, Duration)]>,
}

impl DelayTrace {
    /// Reads the file that the parameter `field` names.
    pub(crate) fn read(field: &str, file: &File) -> Result<Self, Problem> {
        read(file).map_err(|problem| problem.of(field))
    }

    /// Delay at a time.
    pub fn at(&self, time: Time) -> Duration {
        let past = self.pieces.partition_point(|(from, _)| *from <= time);
        self.pieces[past - 1].1
    }

    /// Shortest delay.
    pub fn least(&self) -> Duration {
        self.delays().min().unwrap_or_default()
    }

    /// Longest delay.
    pub fn longest(&self) -> Duration {
        self.delays().max().unwrap_or_default()
    }

    fn delays(&self) -> impl Iterator<Item = Duration> {
        self.pieces.iter().map(|(_, delay)| *delay)
    }
}

fn read(file: &File) -> Result<DelayTrace, Problem> {
    let mut pieces: Vec<(Time, Duration)> = Vec::new();
    Table::open(file, &["time_s", "delay_s"], &[])?.rows(|row| {
        let seconds = |column| row.seconds(column)?.ok_or_else(|| row.problem(column, "missing"));
        let (time, delay) = (Time(seconds("time_s")?), Duration(seconds("delay_s")?));
        match pieces.last() {
            None if time > Time::ZERO => {
                return Err(row.problem("time_s", "the first must be 0, when the run begins"));
            }
            Some((before, _)) if time <= *before => {
                let message = format!("must be after {before}, the row above");
                return Err(row.problem("time_s", &message));
            }
            _ => {}
        }
        pieces.push((time, delay));
        Ok(())
    })?;
    if pieces.is_empty() {
        return Err(Problem::new("", format!("{}: no rows, one for each delay", file.name)));
    }
    Ok(DelayTrace { pieces: pieces.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<DelayTrace, Problem> {
        DelayTrace::read("delay_trace", &File::of("delays", text.to_owned()))
    }

    #[test]
    fn a_delay_holds_until_the_next() {
        let trace = read("time_s,delay_s\n0,0.02\n1.5,0.005\n2,0.03\n").unwrap();
        let ms = Duration::from_millis;
        let at = |at| trace.at(Time::ZERO + ms(at));
        let delays = [0, 1499, 1500, 1999, 2000, 9000].map(at);
        assert_eq!(delays, [20, 20, 5, 5, 30, 30].map(ms));
        assert_eq!((trace.least(), trace.longest()), (ms(5), ms(30)));
    }

    #[test]
    fn errors_name_line_and_column() {
        let texts = [
            "time_s\n0\n",
            "time_s,delay_s\n",
            "time_s,delay_s\n1,0.1\n",
            "time_s,delay_s\n0,0.1\n0,0.2\n",
            "time_s,delay_s\n0,-1\n",
            "time_s,delay_s\n0,\n",
        ];
        let errors = texts.map(|text| read(text).unwrap_err().to_string());
        insta::assert_snapshot!(errors.join("\n"));
    }
}

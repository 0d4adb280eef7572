//! Tables in CSV files, read with errors that name file, line and column.

use std::io::Cursor;

use serde_json::Value;

use super::{File, Parameter, Problem, Text, did_you_mean};

/// A table with a header; lines that start with `#` are comments. Rows are parsed when they are requested.
pub(crate) struct Table {
    file: String,
    columns: Vec<String>,
    reader: csv::Reader<Cursor<Text>>,
    cells: csv::StringRecord,
}

/// One row of a table.
pub(crate) struct Row<'a> {
    file: &'a str,
    columns: &'a [String],
    cells: &'a csv::StringRecord,
}

impl Table {
    /// Opens a table that has the columns `required` and may have those in `optional`.
    pub(crate) fn open(file: &File, required: &[&str], optional: &[&str]) -> Result<Self, Problem> {
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .comment(Some(b'#'))
            .flexible(true)
            .from_reader(Cursor::new(file.text.clone()));
        let header = reader.headers().map_err(|error| unreadable(&file.name, &error))?.clone();
        let columns: Vec<String> = header.iter().map(str::to_owned).collect();
        let line = header.position().map_or(1, csv::Position::line);
        let problem = |message: String| at(&file.name, line, &message);
        let is_known = |name: &String| required.iter().chain(optional).any(|known| known == name);
        if !columns.iter().any(is_known) {
            return Err(problem(format!(
                "the first line must name the columns {}; `sojourn import` converts files of other \
                 tools",
                required.join(", ")
            )));
        }
        for (i, column) in columns.iter().enumerate() {
            let known = required.iter().chain(optional).copied();
            if !known.clone().any(|name| name == column) {
                let hint = did_you_mean(column, known.clone());
                let known = known.collect::<Vec<_>>().join(", ");
                return Err(problem(format!("unknown column `{column}`{hint} (of {known})")));
            }
            if columns[..i].contains(column) {
                return Err(problem(format!("column `{column}` appears twice")));
            }
        }
        if let Some(name) =
            required.iter().find(|name| !columns.iter().any(|column| column == *name))
        {
            return Err(problem(format!(
                "no column `{name}`; the first line must name the columns {}",
                required.join(", ")
            )));
        }
        let (file, cells) = (file.name.clone(), csv::StringRecord::new());
        Ok(Self { file, columns, reader, cells })
    }

    /// Returns true if the table has this column.
    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|name| name == column)
    }

    /// The next row; none after the last.
    pub(crate) fn next_row(&mut self) -> Result<Option<Row<'_>>, Problem> {
        let Self { file, columns, reader, cells } = self;
        if !reader.read_record(cells).map_err(|error| unreadable(file, &error))? {
            return Ok(None);
        }
        let row = Row { file, columns, cells };
        if row.cells.len() != columns.len() {
            let (given, named) = (row.cells.len(), columns.len());
            let message = format!("{given} cells, but the first line names {named} columns");
            return Err(at(file, row.line(), &message));
        }
        Ok(Some(row))
    }

    /// Calls `each` with every row in turn, until one is refused.
    pub(crate) fn rows(
        mut self,
        mut each: impl FnMut(&Row<'_>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        while let Some(row) = self.next_row()? {
            each(&row)?;
        }
        Ok(())
    }
}

impl Row<'_> {
    /// The text in a column; `None` if the column is absent or the cell empty.
    pub(crate) fn get(&self, column: &str) -> Option<&str> {
        let index = self.columns.iter().position(|name| name == column)?;
        self.cells.get(index).filter(|cell| !cell.is_empty())
    }

    /// The text in a column that must be filled.
    pub(crate) fn text(&self, column: &str) -> Result<&str, Problem> {
        self.get(column).ok_or_else(|| self.problem(column, "missing"))
    }

    /// The value in a column, if it is filled; written as a scenario would write it.
    pub(crate) fn value<T: Parameter>(&self, column: &str) -> Result<Option<T>, Problem> {
        let Some(text) = self.get(column) else { return Ok(None) };
        let plain = || T::read(&serde_json::from_str(text).ok()?).ok();
        match T::read(&Value::from(text)) {
            Ok(value) => Ok(Some(value)),
            Err(problem) => plain().map(Some).ok_or_else(|| self.problem(column, &problem.message)),
        }
    }

    /// The value in a column that must be filled.
    pub(crate) fn required<T: Parameter>(&self, column: &str) -> Result<T, Problem> {
        self.value(column)?
            .ok_or_else(|| self.problem(column, &format!("missing; give {}", T::allowed())))
    }

    /// The time in a column in picoseconds, if it is filled: there it is a decimal number of seconds.
    pub(crate) fn seconds(&self, column: &str) -> Result<Option<u64>, Problem> {
        let wrong = |text| {
            let allowed = "a number of seconds from 0 to 18446744, such as 0.0015 or 1.5e-3";
            self.problem(column, &format!("expected {allowed}, not `{text}`"))
        };
        self.get(column).map(|text| picoseconds(text).ok_or_else(|| wrong(text))).transpose()
    }

    /// A problem with the cell in `column`.
    pub(crate) fn problem(&self, column: &str, message: &str) -> Problem {
        at(self.file, self.line(), &format!("{column}: {message}"))
    }

    fn line(&self) -> u64 {
        self.cells.position().map_or(0, csv::Position::line)
    }
}

/// A problem at a line of a file that the parameter `file` names.
pub(crate) fn at(file: &str, line: u64, message: &str) -> Problem {
    Problem::new("file", format!("{file}:{line}: {message}"))
}

fn unreadable(file: &str, error: &csv::Error) -> Problem {
    at(file, error.position().map_or(1, csv::Position::line), "not a table in CSV")
}

/// Decimals of a second that count picoseconds.
const DECIMALS: i32 = 12;

/// A decimal number of seconds in picoseconds, to the nearest; a float would lose digits on the
/// way.
pub(crate) fn picoseconds(text: &str) -> Option<u64> {
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok().filter(|e: &i32| e.abs() <= 40)?;
    let number = number.strip_prefix('+').unwrap_or(number);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > 60 || !digits.bytes().all(|d| d.is_ascii_digit()) {
        return None;
    }
    // Where the point lies among the digits once they count picoseconds.
    let point = i32::try_from(whole.len()).ok()? + exponent + DECIMALS;
    let digit = |i: i32| digits.as_bytes().get(usize::try_from(i).ok()?).map(|d| d - b'0');
    let mut value = 0_u64;
    for i in 0..point {
        value = value.checked_mul(10)?.checked_add(u64::from(digit(i).unwrap_or(0)))?;
    }
    let rounds_up = digit(point).is_some_and(|digit| digit >= 5);
    value.checked_add(u64::from(rounds_up))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::PICOSECONDS;
    use proptest::prelude::*;

    #[test]
    fn times_are_read_exactly() {
        let cases = [
            ("0", Some(0)),
            ("0.1", Some(100_000_000_000)),
            ("1.", Some(PICOSECONDS)),
            (".5e1", Some(5 * PICOSECONDS)),
            ("123456.789012345678", Some(123_456_789_012_345_678)),
            ("1e-12", Some(1)),
            ("1.5e-12", Some(2)),
            ("4.999e-13", Some(0)),
            ("0.00000000000000000001e20", Some(PICOSECONDS)),
            ("18446744.073709551616", None),
            ("-1", None),
            ("", None),
            (".", None),
            ("e3", None),
            ("1e", None),
            ("1 s", None),
            ("inf", None),
        ];
        for (text, value) in cases {
            assert_eq!(picoseconds(text), value, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_picosecond_survives_its_decimal_text(time in 0..u64::MAX) {
            let text = format!("{}.{:012}", time / PICOSECONDS, time % PICOSECONDS);
            prop_assert_eq!(picoseconds(&text), Some(time));
            prop_assert_eq!(picoseconds(&format!("{time}e-12")), Some(time));
        }
    }
}

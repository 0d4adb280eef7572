//! Tables in CSV files, read with errors that name file, line and column.

use std::io::Cursor;

use serde_json::Value;

use super::{File, Parameter, Problem, Text, did_you_mean};

/// A table with a header; lines that start with `#` are comments. Rows are read when they are asked for.
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

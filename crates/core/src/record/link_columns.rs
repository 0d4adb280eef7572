//! Counters of links as columns.

use serde_json::{Map, Value, json};

use super::flow_columns::ColumnValues;

/// Columns by name.
pub type NamedColumns = Vec<(&'static str, ColumnValues)>;

/// Counters of links, a row per link in the order of links. As columns, because a large network has
/// hundreds of thousands of links, and the names of counters take more memory than their values.
#[derive(Clone, Debug, Default)]
pub struct LinkColumns {
    /// Names of the links.
    pub name: Vec<String>,
    /// Counters of the whole run.
    pub whole: NamedColumns,
    /// Counters in the measured interval; empty without one.
    pub measured: NamedColumns,
    /// Pauses of each traffic class by its number; empty if there is one class.
    pub classes: Vec<(u32, NamedColumns)>,
    /// Arrivals and drops by range of priority, of the links whose queues count them.
    pub census: Vec<Option<[Vec<u64>; 2]>>,
}

impl LinkColumns {
    /// Returns each link as a JSON object, as in the entry `links` of a summary in Python.
    pub fn show(&self) -> Vec<Value> {
        let fields = |columns: &NamedColumns, row: usize| -> Map<String, Value> {
            columns.iter().map(|(name, values)| ((*name).into(), values.show(row))).collect()
        };
        let link = |row: usize| {
            let mut link = Map::from_iter([("name".into(), json!(self.name[row]))]);
            link.append(&mut fields(&self.whole, row));
            if !self.classes.is_empty() {
                let class = |(number, columns): &(u32, NamedColumns)| {
                    let mut class = Map::from_iter([("class".into(), json!(number))]);
                    class.append(&mut fields(columns, row));
                    class
                };
                link.insert("classes".into(), self.classes.iter().map(class).collect());
            }
            if let Some(Some([arrived, dropped])) = self.census.get(row) {
                link.insert("census".into(), json!({ "arrived": arrived, "dropped": dropped }));
            }
            if !self.measured.is_empty() {
                link.insert("measured".into(), Value::Object(fields(&self.measured, row)));
            }
            Value::Object(link)
        };
        (0..self.name.len()).map(link).collect()
    }
}

//! Flows from a trace file.

use std::collections::BTreeMap;

use crate::base::schema::table::{Row, Table};
use crate::base::schema::{File, Problem, positive_if_given};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::flow::{FlowSpec, HostId};
use crate::traffic::check_hosts;
use crate::traffic::{
    FlowClasses, FlowStream, Workload, WorkloadContext, WorkloadEstimate, connection_in_turn,
    flow_between,
};

crate::parameters! {
    /// Flows from a CSV file with one row per flow, in order of start.
    ///
    /// Columns: `start_s` (seconds), `source`, `target` (number or name of a host), `size_bytes`,
    /// and optionally `class` and `deadline_s` (seconds from the start). Times are decimal numbers,
    /// read exactly and rounded to the nearest picosecond. Lines that start with `#` are comments.
    /// There may be up to 1024 classes and any number of rows; rows are read when the flow is due.
    pub struct Config {
        /// The table of flows.
        pub file: File;
        /// Class name of flows without a class in the file.
        pub class: String = "trace".to_owned();
        /// Number of persistent connections from each source to each target, which flows use in turn. If not
        /// given, every flow has a connection of its own.
        pub connections: Option<u32> = None, where positive_if_given;
    }
}

const REQUIRED: [&str; 4] = ["start_s", "source", "target", "size_bytes"];
const OPTIONAL: [&str; 2] = ["class", "deadline_s"];

impl Workload for Config {
    fn generate(&self, context: &WorkloadContext<'_>) -> Result<FlowStream, Problem> {
        // The first pass validates the file, the second generates flows when they are due: the file
        // may have more rows than fit in memory.
        let mut reader = TraceReader::new(self, context)?;
        let (mut before, mut has_deadlines) = (None, false);
        while let Some(flow) = reader.next_flow(before)? {
            before = Some(flow.start);
            has_deadlines |= flow.deadline.is_some();
        }
        if before.is_none() {
            return Err(Problem::new("file", format!("{}: no flows", self.file.name)));
        }
        let mut flows = TraceReader::new(self, context)?;
        let connections = self.connections;
        let next = move |id| {
            let flow = flows
                .next_flow(None)
                .unwrap_or_else(|_| unreachable!("validated in the first pass"));
            let connection = connection_in_turn(connections, id);
            flow.map(|flow| FlowSpec { id, connection, ..flow })
        };
        Ok(FlowStream {
            classes: reader.classes.names,
            load: String::new(),
            has_deadlines,
            has_connections: connections.is_some(),
            flows: Box::new((0..).map_while(next)),
            dependencies: None,
        })
    }

    fn estimate(&self, context: &WorkloadContext<'_>) -> Result<WorkloadEstimate, Problem> {
        let text = &*self.file.text;
        let flows = text.bytes().filter(|byte| *byte == b'\n').count().max(1) as f64;
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let (header, last) = (lines.next().unwrap_or_default(), lines.next_back());
        let first_and_last =
            File::of(&self.file.name, format!("{header}\n{}\n", last.unwrap_or_default()));
        // Errors in the first or last row are reported when the whole file is read.
        let reader = TraceReader::new(&Self { file: first_and_last, ..self.clone() }, context);
        let last = reader.and_then(|mut reader| reader.next_flow(None)).ok().flatten();
        let last = last.map_or(Time::ZERO, |flow| flow.start);
        // Sizes are unknown here, and no flow is stored before the run.
        Ok(WorkloadEstimate {
            stored_bytes: 0.0,
            ..WorkloadEstimate::from_list(flows, 0.0, Time::ZERO, last)
        })
    }
}

/// Reads flows from the file.
struct TraceReader {
    table: Table,
    /// Host numbers by name.
    hosts: BTreeMap<String, HostId>,
    class: String,
    classes: FlowClasses,
}

impl TraceReader {
    fn new(config: &Config, context: &WorkloadContext<'_>) -> Result<Self, Problem> {
        let hosts = 0..context.graph.host_count();
        Ok(Self {
            table: Table::open(&config.file, &REQUIRED, &OPTIONAL)?,
            hosts: hosts.map(|host| (context.graph.host_name(host).to_owned(), host)).collect(),
            class: config.class.clone(),
            classes: FlowClasses::default(),
        })
    }

    /// Returns the next flow, which must not start before `before`.
    fn next_flow(&mut self, before: Option<Time>) -> Result<Option<FlowSpec>, Problem> {
        let Self { table, hosts, class, classes } = self;
        let Some(row) = table.next_row()? else { return Ok(None) };
        let flow = read(&row, hosts)?;
        if let Some(before) = before.filter(|before| flow.start < *before) {
            let message = format!("{} is before {before}, the row above", flow.start);
            return Err(row.problem("start_s", &message));
        }
        let class = classes.index(row.get("class").unwrap_or(class));
        let class = class.map_err(|problem| row.problem(&problem.field, &problem.message))?;
        Ok(Some(FlowSpec { class, ..flow }))
    }
}

fn read(row: &Row<'_>, hosts: &BTreeMap<String, HostId>) -> Result<FlowSpec, Problem> {
    let (source, target) = (host(row, "source", hosts)?, host(row, "target", hosts)?);
    check_hosts(hosts.len() as HostId, source, target)
        .map_err(|problem| row.problem(&problem.field, &problem.message))?;
    let text = row.text("size_bytes")?;
    // Invalid numbers give the same error as in a scenario.
    let size = text.parse().map_or_else(|_| row.required("size_bytes"), Ok)?;
    let size = match size {
        0 => return Err(row.problem("size_bytes", "must be above zero")),
        size => Some(Bytes(size)),
    };
    let start = row.seconds("start_s")?.ok_or_else(|| row.problem("start_s", "missing"))?;
    let deadline = row.seconds("deadline_s")?.map(|deadline| match deadline {
        0 => Err(row.problem("deadline_s", "must be above zero")),
        deadline => Ok(Duration(deadline)),
    });
    Ok(FlowSpec {
        size,
        deadline: deadline.transpose()?,
        ..flow_between(source, target, Time(start))
    })
}

/// Parses the number or name of a host.
fn host(row: &Row<'_>, column: &str, hosts: &BTreeMap<String, HostId>) -> Result<HostId, Problem> {
    let text = row.text(column)?;
    text.parse().ok().or_else(|| hosts.get(text).copied()).ok_or_else(|| {
        let last = hosts.len() - 1;
        row.problem(column, &format!("there is no host `{text}`; give 0 to {last}, or a name"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use crate::model::packet::Format;
    use crate::topology;
    use serde_json::json;

    fn open(text: &str) -> Result<Vec<FlowSpec>, Problem> {
        let star = topology::Config::read(&json!({"kind": "star", "hosts": 4})).unwrap();
        let graph = star.graph(1).unwrap();
        let format = defaults::<Format>();
        let trace = Config::read(&json!({"file": {"name": "flows.csv", "text": text}})).unwrap();
        let flows = trace.generate(&WorkloadContext { graph: &graph, format: &format, seed: 1 })?;
        Ok(flows.flows.collect())
    }

    #[test]
    fn rows_are_parsed_into_flows() {
        let flows = open(
            "size_bytes, start_s, source, target, class, deadline_s\n\
             1500, 0.000000000001, 0, host3, query, 1e-3\n1, 2.5E-6, 3, 1,,\n",
        );
        insta::assert_debug_snapshot!(flows.unwrap());
    }

    #[test]
    fn errors_name_file_line_and_column() {
        let error = |text| open(text).unwrap_err().to_string();
        let row = |row| format!("start_s,source,target,size_bytes\n0.5,0,1,100\n{row}\n");
        insta::assert_snapshot!(
            [
                error(""),
                error("start_s,source,target,size_bytes\n"),
                error("start_s,source,target,size\n"),
                error("start_s,source,target\n"),
                error(&row("0.4,0,1,100")),
                error(&row("0.5,0,4,100")),
                error(&row("0.5,hots0,1,100")),
                error(&row("0.5,1,host1,100")),
                error(&row("0.5,0,1,0")),
                error(&row("0.5,0,1,1.5")),
                error(&row("half,0,1,100")),
                error(&row("0.5,0,1")),
            ]
            .join("\n")
        );
    }
}

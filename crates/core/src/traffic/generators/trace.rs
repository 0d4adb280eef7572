//! Flows from a trace file.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::base::schema::table::{Row, Table, picoseconds};
use crate::base::schema::{File, Problem, positive_if_given};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::flow::{FlowSpec, HostId};
use crate::traffic::hosts::HostNames;
use crate::traffic::{
    Dependencies, FlowClasses, FlowStream, Workload, WorkloadContext, WorkloadEstimate,
    connection_in_turn, flow_between,
};

crate::parameters! {
    /// Flows from a CSV file with one row per flow, in order of start.
    ///
    /// Columns: `start_s` (seconds), `source`, `target` (number or name of a host), `size_bytes`,
    /// and optionally `class`, `deadline_s` (seconds from the start), `after` and `after_count`.
    /// Times are decimal numbers, read exactly and rounded to the nearest picosecond. Lines that
    /// start with `#` are comments. There may be up to 1024 classes and any number of rows; rows
    /// are read when the flow is due.
    ///
    /// `after` contains flows above, separated by blanks, by number: the first row is flow 0. The
    /// flow starts `start_s` after the last of them has ended, or as many as `after_count` states.
    /// A number with a time, such as `3+2e-6`, counts as ended that many seconds after its end; a time
    /// alone, such as `+0.001`, is a time of the run before which the flow does not start.
    /// Each is a flow that the source itself sent, which ends when all its data are acknowledged,
    /// or received, which ends when they are delivered. Rows with `after` are kept in memory and
    /// need no order of start.
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
const OPTIONAL: [&str; 4] = ["class", "deadline_s", "after", "after_count"];

/// Bytes of a row with `after`, in two maps.
const STORED_ROW: f64 = 300.0;

impl Workload for Config {
    fn generate(&self, context: &WorkloadContext<'_>) -> Result<FlowStream, Problem> {
        // The first pass validates the file, the second generates flows when they are due: the file
        // may have more rows than fit in memory.
        let mut reader = TraceReader::new(self, context)?;
        let (mut before, mut has_deadlines) = (None, false);
        let mut following = Following::default();
        while let Some(TraceRow { flow, after, count, earliest }) = reader.next_row(before)? {
            has_deadlines |= flow.deadline.is_some();
            if after.is_empty() {
                before = Some(flow.start);
            } else {
                following.insert(flow, &after, (count, earliest));
            }
        }
        if reader.rows == 0 {
            return Err(Problem::new("file", format!("{}: no flows", self.file.name)));
        }
        if self.connections.is_some() && !following.waiting.is_empty() {
            let message =
                "does not go with flows `after` others, which have connections of their own";
            return Err(Problem::new("connections", message));
        }
        let mut rows = TraceReader::new(self, context)?;
        let connections = self.connections;
        let next_independent = move || loop {
            let row = rows.next_row(None);
            let row = row.unwrap_or_else(|_| unreachable!("validated in the first pass"))?;
            if row.after.is_empty() {
                let connection = connection_in_turn(connections, row.flow.id);
                return Some(FlowSpec { connection, ..row.flow });
            }
        };
        let dependencies: Option<Box<dyn Dependencies>> =
            if following.waiting.is_empty() { None } else { Some(Box::new(following)) };
        Ok(FlowStream {
            classes: reader.classes.names,
            load: String::new(),
            has_deadlines,
            has_connections: connections.is_some(),
            flows: Box::new(std::iter::from_fn(next_independent)),
            dependencies,
        })
    }

    fn number(&self) -> Option<u64> {
        let is_row = |line: &&str| !line.starts_with('#') && !line.trim().is_empty();
        Some(self.file.text.lines().filter(is_row).skip(1).count() as u64)
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
        let last = reader.and_then(|mut reader| reader.next_row(None)).ok().flatten();
        let last = last.map_or(Time::ZERO, |row| row.flow.start);
        let place = |name| header.split(',').position(|column| column.trim() == name);
        let size = place("size_bytes");
        let size_of = |line: &str| line.split(',').nth(size?)?.trim().parse::<u64>().ok();
        let payload = text.lines().filter_map(size_of).map(|size| size as f64).sum();
        // Only flows after others are stored before the run.
        Ok(WorkloadEstimate {
            stored_bytes: if place("after").is_some() { flows * STORED_ROW } else { 0.0 },
            ..WorkloadEstimate::from_list(flows, payload, Time::ZERO, last)
        })
    }
}

/// Reads flows from the file.
struct TraceReader {
    table: Table,
    hosts: HostNames,
    class: String,
    classes: FlowClasses,
    /// Number of rows read.
    rows: u64,
    /// Source and target of each row, if the file has a column `after`.
    ends: Option<Vec<(HostId, HostId)>>,
}

/// A row of the file.
struct TraceRow {
    flow: FlowSpec,
    /// Flows after which this one starts, and delays; its start is then counted from their end.
    after: Vec<(u64, Duration)>,
    /// Number of them that must have ended.
    count: usize,
    /// Time before which it does not start, if it starts after others.
    earliest: Time,
}

impl TraceReader {
    fn new(config: &Config, context: &WorkloadContext<'_>) -> Result<Self, Problem> {
        let table = Table::open(&config.file, &REQUIRED, &OPTIONAL)?;
        let ends = table.has("after").then(Vec::new);
        Ok(Self {
            table,
            hosts: HostNames::new(context.graph),
            class: config.class.clone(),
            classes: FlowClasses::default(),
            rows: 0,
            ends,
        })
    }

    /// Returns the next row. A flow that does not follow others must not start before `before`.
    fn next_row(&mut self, before: Option<Time>) -> Result<Option<TraceRow>, Problem> {
        let Self { table, hosts, class, classes, rows, ends } = self;
        let Some(row) = table.next_row()? else { return Ok(None) };
        let flow = FlowSpec { id: *rows, ..read(&row, hosts)? };
        *rows += 1;
        let (after, earliest) = after(&row, &flow, ends.as_deref())?;
        let count = row.value("after_count")?.unwrap_or(after.len() as u64) as usize;
        if count > after.len() || (count == 0 && !after.is_empty()) {
            let message = format!("must be from 1 to {}, the flows in `after`", after.len());
            return Err(row.problem("after_count", &message));
        }
        if count < after.len() && after.iter().any(|(_, delay)| *delay > Duration::ZERO) {
            let message = "does not go with delays in `after`, unless it counts all flows there";
            return Err(row.problem("after_count", message));
        }
        if let Some(ends) = ends {
            ends.push((flow.source, flow.target));
        }
        if let Some(before) = before.filter(|before| after.is_empty() && flow.start < *before) {
            let message = format!("{} is before {before}, the row above", flow.start);
            return Err(row.problem("start_s", &message));
        }
        let class = classes.index(row.get("class").unwrap_or(class));
        let class = class.map_err(|problem| row.problem(&problem.field, &problem.message))?;
        Ok(Some(TraceRow { flow: FlowSpec { class, ..flow }, after, count, earliest }))
    }
}

/// Returns the flows after which a flow starts, each once, with their delays, and the time before which it
/// does not start.
fn after(
    row: &Row<'_>,
    flow: &FlowSpec,
    ends: Option<&[(HostId, HostId)]>,
) -> Result<(Vec<(u64, Duration)>, Time), Problem> {
    let (mut after, mut earliest) = (Vec::new(), Time::ZERO);
    let (Some(text), Some(ends)) = (row.get("after"), ends) else { return Ok((after, earliest)) };
    for word in text.split_whitespace() {
        let (number, delay) = word.split_once('+').unwrap_or((word, "0"));
        if number.is_empty()
            && let Some(time) = picoseconds(delay)
        {
            earliest = earliest.max(Time(time));
            continue;
        }
        let number = number.parse().ok().filter(|number: &u64| *number < flow.id);
        let (Some(number), Some(delay)) = (number, picoseconds(delay)) else {
            let message = format!(
                "expected numbers of flows above, the first is 0, with or without a delay, such as \
                 0 or 0+2e-6, not `{word}`"
            );
            return Err(row.problem("after", &message));
        };
        let (source, target) = ends[number as usize];
        if source != flow.source && target != flow.source {
            let message = format!(
                "flow {number} is neither sent nor received by this flow's source, which cannot \
                 know of its end"
            );
            return Err(row.problem("after", &message));
        }
        after.push((number, Duration(delay)));
    }
    after.sort_unstable_by_key(|(number, delay)| (*number, Reverse(*delay)));
    after.dedup_by_key(|(number, _)| *number);
    if after.is_empty() {
        return Err(row.problem("after", "needs a flow beside a time; `start_s` is a time alone"));
    }
    Ok((after, earliest))
}

/// Flows that start after others.
#[derive(Default)]
struct Following {
    /// Flows that wait, by number, each with the number of ends that it waits for, and the latest time
    /// at which those before it count. Its start is counted from the last.
    waiting: BTreeMap<u64, (usize, Time, FlowSpec)>,
    /// Numbers of the flows that wait for a flow, and their delays.
    followers: BTreeMap<u64, Vec<(u64, Duration)>>,
}

impl Following {
    fn insert(&mut self, flow: FlowSpec, after: &[(u64, Duration)], wait: (usize, Time)) {
        for (before, delay) in after {
            self.followers.entry(*before).or_default().push((flow.id, *delay));
        }
        let (count, earliest) = wait;
        self.waiting.insert(flow.id, (count, earliest, flow));
    }

    /// Starts the flows of `source` that waited for the end of this flow only.
    fn on_end(&mut self, ended: u64, source: HostId, now: Time, next: &mut Vec<FlowSpec>) {
        for (number, delay) in self.followers.get(&ended).into_iter().flatten() {
            let Some((count, last, flow)) = self.waiting.get_mut(number) else { continue };
            if flow.source != source || *count == 0 {
                continue;
            }
            *count -= 1;
            *last = (*last).max(now + *delay);
            if *count == 0 {
                next.push(FlowSpec { start: *last + (flow.start - Time::ZERO), ..*flow });
            }
        }
    }
}

impl Dependencies for Following {
    fn on_delivery(&mut self, delivered: &FlowSpec, now: Time, next: &mut Vec<FlowSpec>) {
        self.on_end(delivered.id, delivered.target, now, next);
    }

    fn on_sent(&mut self, sent: &FlowSpec, now: Time, next: &mut Vec<FlowSpec>) {
        self.on_end(sent.id, sent.source, now, next);
    }
}

fn read(row: &Row<'_>, hosts: &HostNames) -> Result<FlowSpec, Problem> {
    let (source, target) = (host(row, "source", hosts)?, host(row, "target", hosts)?);
    hosts.check(source, target).map_err(|problem| row.problem(&problem.field, &problem.message))?;
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
fn host(row: &Row<'_>, column: &str, hosts: &HostNames) -> Result<HostId, Problem> {
    let text = row.text(column)?;
    let number = text.parse().or_else(|_| hosts.named(text));
    number.map_err(|problem| row.problem(column, &problem.message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use crate::model::packet::Format;
    use crate::topology;
    use serde_json::json;

    fn open(text: &str) -> Result<Vec<FlowSpec>, Problem> {
        Ok(streamed(text)?.0)
    }

    type Streamed = (Vec<FlowSpec>, Option<Box<dyn Dependencies>>);

    fn streamed(text: &str) -> Result<Streamed, Problem> {
        let star = topology::Config::read(&json!({"kind": "star", "hosts": 4})).unwrap();
        let graph = star.graph(1).unwrap();
        let format = defaults::<Format>();
        let trace = Config::read(&json!({"file": {"name": "flows.csv", "text": text}})).unwrap();
        let flows = trace.generate(&WorkloadContext {
            graph: &graph,
            format: &format,
            seed: 1,
            takes_one_path: true,
        })?;
        Ok((flows.flows.collect(), flows.dependencies))
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
    fn a_flow_starts_after_the_last_of_those_that_its_source_sent_or_received() {
        // Flow 2 waits for flow 0, which its source sent, and flow 1, which its source received.
        let text = "start_s,source,target,size_bytes,after\n0,0,1,100,\n0,2,0,100,\n\
                    1e-6,0,3,100,0 1 1\n5e-6,1,2,100,\n";
        let (mut flows, stream) = streamed(text).unwrap();
        assert_eq!(flows.iter().map(|flow| flow.id).collect::<Vec<_>>(), [0, 1, 3]);
        let mut dependencies = stream.unwrap();
        let (mut next, at) = (Vec::new(), |us| Time::ZERO + Duration::from_micros(us));
        dependencies.on_delivery(&flows[1], at(10), &mut next);
        // Ends at other hosts do not count.
        dependencies.on_delivery(&flows[0], at(11), &mut next);
        dependencies.on_sent(&flows[1], at(12), &mut next);
        assert!(next.is_empty());
        dependencies.on_sent(&flows[0], at(20), &mut next);
        flows.append(&mut next);
        let last = flows.last().unwrap();
        assert_eq!((last.id, last.source, last.target, last.start), (2, 0, 3, at(21)));
    }

    #[test]
    fn a_flow_can_start_after_a_number_of_others() {
        let text = "start_s,source,target,size_bytes,after,after_count\n0,0,1,100,,\n\
                    0,0,2,100,,\n0,0,3,100,0 1,1\n0,0,3,100,0 1,2\n";
        let (flows, stream) = streamed(text).unwrap();
        let mut dependencies = stream.unwrap();
        let mut next = Vec::new();
        dependencies.on_sent(&flows[1], Time(5), &mut next);
        dependencies.on_sent(&flows[0], Time(7), &mut next);
        let starts: Vec<_> = next.iter().map(|flow| (flow.id, flow.start)).collect();
        assert_eq!(starts, [(2, Time(5)), (3, Time(7))]);
    }

    #[test]
    fn a_flow_above_can_count_as_ended_later() {
        let text = "start_s,source,target,size_bytes,after\n0,0,1,100,\n0,0,2,100,\n\
                    1e-6,0,3,100,0+5e-6 1 0 +24e-6\n";
        for (order, start) in [([0, 1], 25), ([1, 0], 26)] {
            let (flows, stream) = streamed(text).unwrap();
            let (mut dependencies, mut next) = (stream.unwrap(), Vec::new());
            for (flow, at) in order.into_iter().zip([10, 20]) {
                let now = Time::ZERO + Duration::from_micros(at);
                dependencies.on_sent(&flows[flow], now, &mut next);
            }
            assert_eq!(next[0].start, Time::ZERO + Duration::from_micros(start));
        }
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
                error("start_s,source,target,size_bytes,class\n0,0,1,100,all\n"),
                error("start_s,source,target,size_bytes,after\n0,0,1,100,0\n"),
                error("start_s,source,target,size_bytes,after\n0,0,1,100,\n0,1,2,100,first\n"),
                error("start_s,source,target,size_bytes,after\n0,0,1,100,\n0,2,3,100,0\n"),
                error("start_s,source,target,size_bytes,after\n0,0,1,100,\n0,0,1,100,0+soon\n"),
                error("start_s,source,target,size_bytes,after\n0,0,1,100,\n0,0,1,100,+1e-6\n"),
                error(
                    "start_s,source,target,size_bytes,after,after_count\n0,0,1,100,,\n\
                     0,0,1,100,0,2\n"
                ),
                error("start_s,source,target,size_bytes,after_count\n0,0,1,100,1\n"),
                error(
                    "start_s,source,target,size_bytes,after,after_count\n0,0,1,100,,\n\
                     0,0,1,100,,\n0,0,1,100,0 1+1e-6,1\n"
                ),
            ]
            .join("\n")
        );
    }
}

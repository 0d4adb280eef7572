//! The Python binding: scenarios as text, results as columns.

mod classes;
mod controllers;
mod credit;
mod events;
mod monitor;
mod values;

use std::sync::Arc;

use numpy::{Element, IntoPyArray, PyArray1};
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;
use sojourn_core::base::run_control::{Progress, RunControl};
use sojourn_core::base::schema::{Problem, Text};
use sojourn_core::base::units::{Duration, Time};
use sojourn_core::record::flow_columns::{ColumnInfo, ColumnValues};
use sojourn_core::record::{
    Breakdowns, Chains, FlowColumns, Hops, LinkColumns, Packets, Record, Samples, SentPackets,
};
use sojourn_core::run::catalogue::{self, catalogue};
use sojourn_core::run::scenario::json_schema;
use sojourn_core::run::{self, Results};
use sojourn_fluid::models;

create_exception!(
    sojourn._core,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be run: `field: what is wrong and what is allowed`."
);

/// Handle to stop a running simulation and to read its progress, from any thread.
#[pyclass(frozen, name = "RunControl", module = "sojourn._core")]
struct PyRunControl(Arc<RunControl>);

#[pymethods]
impl PyRunControl {
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }

    /// Requests the run to stop, for this reason. If there are several requests, the first reason holds.
    #[pyo3(signature = (reason=""))]
    fn stop(&self, reason: &str) {
        self.0.stop(reason);
    }

    /// Returns true if a stop has been requested.
    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }

    /// Returns the progress that the run reported last: simulated seconds; started and ended flows; payload of
    /// the started flows with a size, and how much of it has been delivered, in bytes (0 for ideals); packet-hops.
    fn progress(&self) -> (f64, u64, u64, u64, u64, u64) {
        let Progress { now, started, ended, started_bytes, delivered_bytes, hops } =
            self.0.progress();
        (now.seconds(), started, ended, started_bytes, delivered_bytes, hops)
    }

    /// CPU time of threads that helped the run's own, in seconds.
    #[getter]
    fn helper_cpu_s(&self) -> f64 {
        self.0.helper_time().as_secs_f64()
    }
}

/// The most threads of a run.
const MOST_THREADS: u32 = 1024;

/// A parsed scenario. The graph and the estimate are computed on first use and kept, for checks and runs.
#[pyclass(frozen, module = "sojourn._core")]
struct Prepared(run::Prepared);

#[pymethods]
impl Prepared {
    /// Returns the scenario with every default filled in, as JSON. Builds nothing.
    fn show(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.show().to_string())
    }

    /// Checks everything that can be checked without a run. A scenario that needs more than `memory` bytes
    /// is an error.
    #[pyo3(signature = (memory=None))]
    fn check(&self, py: Python<'_>, memory: Option<u64>) -> PyResult<()> {
        py.detach(|| self.0.check(memory)).map_err(to_python)
    }

    /// Returns an estimate of what a run on this number of threads needs, as JSON.
    #[pyo3(signature = (threads=1))]
    fn estimate(&self, py: Python<'_>, threads: u32) -> PyResult<String> {
        py.detach(|| Ok(self.0.estimate(threads)?.show().to_string())).map_err(to_python)
    }

    /// Returns the queues in force, with capacities and thresholds by link rate, as JSON.
    fn queues(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| Ok(self.0.queues()?.to_string())).map_err(to_python)
    }

    /// Returns the bits that links with rate traces can carry until times in seconds, by the name of the link.
    fn carried<'py>(&self, py: Python<'py>, times: Vec<f64>) -> PyResult<Bound<'py, PyDict>> {
        let times: Vec<Time> =
            times.into_iter().map(|time| Time::ZERO + Duration::from_seconds(time)).collect();
        let dict = PyDict::new(py);
        for (link, bits) in py.detach(|| self.0.carried(&times)).map_err(to_python)? {
            dict.set_item(link, column(py, bits))?;
        }
        Ok(dict)
    }

    /// Runs the scenario without holding the interpreter.
    #[pyo3(signature = (control, threads=1))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        control: &PyRunControl,
        threads: i64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let threads = u32::try_from(threads)
            .ok()
            .filter(|threads| (1..=MOST_THREADS).contains(threads))
            .ok_or_else(|| {
                let message = format!("threads: must be from 1 to {MOST_THREADS}, not {threads}");
                PyValueError::new_err(message)
            })?;
        let control = Arc::clone(&control.0);
        let (prepared, provided) = self.0.provided(|scenario| {
            #[cfg(feature = "quic")]
            sojourn_quic::provide(scenario);
            classes::provide(py, scenario, &control)
        });
        // Loading a class may take long, so a request to stop may interrupt it.
        let classes = provided.map_err(|error| {
            if control.is_stopped() { to_python(control.problem()) } else { error }
        })?;
        let threads = if classes.is_empty() { threads } else { 1 };
        let results = py.detach(|| prepared.run(threads, &control));
        results_dict(py, classes.check(py, results)?)
    }

    /// Returns the flows of the workload, without a run. A workload that needs more than `memory` bytes is
    /// an error.
    #[pyo3(signature = (memory=None))]
    fn trace<'py>(&self, py: Python<'py>, memory: Option<u64>) -> PyResult<Bound<'py, PyDict>> {
        let (flows, classes) = py.detach(|| self.0.trace(memory)).map_err(to_python)?;
        let dict = PyDict::new(py);
        dict.set_item("flows", flows_dict(py, flows)?)?;
        dict.set_item("classes", classes)?;
        Ok(dict)
    }
}

/// Fields of scenarios that Python reads.
const LABORATORY_FIELDS: [&str; 2] = ["fidelity", "schemes"];

/// Parses a scenario given as JSON, in which the texts of files may be indices into `texts`.
#[pyfunction]
#[pyo3(signature = (scenario, texts=Vec::new()))]
fn prepare(py: Python<'_>, scenario: &str, texts: Vec<PyBackedStr>) -> PyResult<Prepared> {
    let texts = texts.into_iter().map(Text::new).collect();
    let parsed = py.detach(|| run::Prepared::parse(scenario, texts));
    let named = |problem: Problem| problem.with_fields(&LABORATORY_FIELDS);
    parsed.map(Prepared).map_err(named).map_err(to_python)
}

/// Integrates a fluid model given as JSON; other Python threads go on meanwhile.
#[pyfunction(name = "fluid")]
fn run_fluid<'py>(py: Python<'py>, setup: &str) -> PyResult<Bound<'py, PyDict>> {
    let integrated = || Ok(models::Setup::parse(setup)?.run());
    let models::Outcome { samples, summary } = py.detach(integrated).map_err(to_python)?;
    let dict = PyDict::new(py);
    set_samples(py, &dict, samples)?;
    dict.set_item("summary", summary.to_string())?;
    Ok(dict)
}

/// Returns the catalogue of components with their parameters, as JSON.
#[pyfunction]
fn parts() -> String {
    let mut families = catalogue();
    families["fluid"] = catalogue::show(&models::catalogue());
    families.to_string()
}

/// Returns a JSON schema (draft 7) of scenario files, as text.
#[pyfunction]
fn schema() -> String {
    json_schema().to_string()
}

/// A problem as Python's exception.
#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` wants")]
fn to_python(problem: Problem) -> PyErr {
    ScenarioError::new_err(problem.to_string())
}

/// A dictionary of numpy columns, each taking over the vector of that name.
macro_rules! columns {
    ($py:ident, $table:expr, [$($column:ident),+ $(,)?]) => {{
        let columns = PyDict::new($py);
        $( columns.set_item(stringify!($column), column($py, $table.$column))?; )+
        columns
    }};
}

/// A vector as a numpy array, without a copy.
fn column<T: Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyArray1<T>> {
    values.into_pyarray(py)
}

fn results_dict(py: Python<'_>, results: Results) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("flows", flows_dict(py, results.flows)?)?;
    dict.set_item("classes", results.classes)?;
    dict.set_item("links", links_dict(py, results.links)?)?;
    set_samples(py, &dict, results.samples)?;
    dict.set_item(
        "account",
        results.account.map(|account| account_dict(py, account)).transpose()?,
    )?;
    set_chains(py, &dict, results.chains)?;
    dict.set_item("record", results.record.map(|record| record_dict(py, record)).transpose()?)?;
    dict.set_item("summary", results.summary.to_string())?;
    Ok(dict)
}

fn set_chains(py: Python<'_>, dict: &Bound<'_, PyDict>, mut chains: Chains) -> PyResult<()> {
    dict.set_item("reasons", Chains::REASONS)?;
    let durations: Vec<(String, Vec<u64>)> = chains.take_durations().collect();
    let columns = columns!(py, chains, [flow, reason, begins_ps]);
    for (name, values) in durations {
        columns.set_item(name, column(py, values))?;
    }
    dict.set_item("chain", columns)
}

fn account_dict(py: Python<'_>, mut account: Breakdowns) -> PyResult<Bound<'_, PyDict>> {
    let components: Vec<(String, Vec<u64>)> = account.take_components().collect();
    let dict = columns!(
        py,
        account,
        [flow, fct_ps, rounds, alone_propagation_ps, alone_transmission_ps, alone_queue_own_ps]
    );
    for (name, values) in components {
        dict.set_item(name, column(py, values))?;
    }
    Ok(dict)
}

/// Recorded tables, with the names that their numbers stand for.
fn record_dict(py: Python<'_>, record: Record) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("kind", Packets::KINDS)?;
    dict.set_item("because", Packets::REASONS)?;
    dict.set_item("lost_why", Packets::CAUSES)?;
    dict.set_item("packets", packets_dict(py, record.packets)?)?;
    let Record { gauges, series, hops, .. } = record;
    dict.set_item("gauge", gauges.names.clone())?;
    dict.set_item("gauges", columns!(py, gauges, [flow, time_ps, gauge, value]))?;
    let series = columns!(
        py,
        series,
        [link, bin, bytes, queue_mean_bytes, queue_max_bytes, marks, drops, losses, paused_ps]
    );
    dict.set_item("series", series)?;
    dict.set_item("hops", hops_dict(py, hops)?)?;
    Ok(dict)
}

fn packets_dict(py: Python<'_>, packets: Packets) -> PyResult<Bound<'_, PyDict>> {
    let dict = sent_dict(py, packets.sent)?;
    let fates = columns!(py, packets, [arrived_ps, lost_ps, lost_at, lost_why]);
    dict.update(fates.as_mapping())?;
    Ok(dict)
}

fn hops_dict(py: Python<'_>, hops: Hops) -> PyResult<Bound<'_, PyDict>> {
    let dict = columns!(py, hops, [link]);
    dict.update(sent_dict(py, hops.sent)?.as_mapping())?;
    let stays = columns!(py, hops, [came_ps, starts_ps, queue_bytes, dropped]);
    dict.update(stays.as_mapping())?;
    Ok(dict)
}

fn sent_dict(py: Python<'_>, sent: SentPackets) -> PyResult<Bound<'_, PyDict>> {
    Ok(columns!(
        py,
        sent,
        [flow, kind, number, from, to, bytes, copy, because, ecn, marked, sent_ps]
    ))
}

fn set_samples(py: Python<'_>, dict: &Bound<'_, PyDict>, samples: Samples) -> PyResult<()> {
    dict.set_item("probes", samples.probes)?;
    dict.set_item("samples", columns!(py, samples, [time_s, probe, value]))
}

fn flows_dict(py: Python<'_>, flows: FlowColumns) -> PyResult<Bound<'_, PyDict>> {
    named_columns(py, flows.into_columns())
}

/// Counters of links: of the whole run, and in tables of their own those of the measured interval, of each
/// traffic class and of ranges of priority.
fn links_dict(py: Python<'_>, links: LinkColumns) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", links.name)?;
    dict.update(named_columns(py, links.whole)?.as_mapping())?;
    let classes = links.classes.into_iter();
    let classes: PyResult<Vec<_>> =
        classes.map(|(number, columns)| Ok((number, named_columns(py, columns)?))).collect();
    dict.set_item("classes", classes?)?;
    dict.set_item("census", links.census)?;
    dict.set_item("measured", named_columns(py, links.measured)?)?;
    Ok(dict)
}

/// A dictionary of numpy columns.
fn named_columns(
    py: Python<'_>,
    table: impl IntoIterator<Item = (&'static str, ColumnValues)>,
) -> PyResult<Bound<'_, PyDict>> {
    let columns = PyDict::new(py);
    for (name, values) in table {
        let values = match values {
            ColumnValues::U8(values) => column(py, values).into_any(),
            ColumnValues::U16(values) => column(py, values).into_any(),
            ColumnValues::U32(values) => column(py, values).into_any(),
            ColumnValues::U64(values) => column(py, values).into_any(),
            ColumnValues::F64(values) => column(py, values).into_any(),
        };
        columns.set_item(name, values)?;
    }
    Ok(columns)
}

/// Returns the columns of flow records in order: name, meaning, and true if values may be absent (NaN).
#[pyfunction]
fn flow_columns() -> Vec<(&'static str, &'static str, bool)> {
    let describe = |column: &ColumnInfo| (column.name, column.meaning, column.is_nullable);
    FlowColumns::INFO.iter().map(describe).collect()
}

/// The compiled core of Sojourn.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::events::{
        Ack, Allowance, Arrival, Credit, CreditHost, Header, HopTelemetry, InboundFlow, Loss,
        Opened, OutgoingPacket, Path,
    };
    #[pymodule_export]
    use super::monitor::{Interval, Monitor};
    #[pymodule_export]
    use super::{
        Prepared, PyRunControl, ScenarioError, flow_columns, parts, prepare, run_fluid, schema,
    };
    #[pymodule_export]
    const VERSION: &str = sojourn_core::VERSION;
    #[pymodule_export]
    const MOST_THREADS: u32 = super::MOST_THREADS;
    #[pymodule_export]
    const HAS_QUIC: bool = cfg!(feature = "quic");
    #[pymodule_export]
    const SOURCE_HASH: &str = env!("SOJOURN_SOURCE_HASH");
}

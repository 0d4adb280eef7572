//! The binding: a few functions over text and columns, nothing to decide.

mod controllers;
mod monitor;

use std::sync::Arc;

use numpy::{Element, IntoPyArray, PyArray1};
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;
use sojourn_core::base::run_control::Progress;
use sojourn_core::base::schema::{Parameter, Problem, Text};
use sojourn_core::fluid::models;
use sojourn_core::record::flow_columns::{ColumnInfo, ColumnValues};
use sojourn_core::record::{Breakdowns, Chains, FlowColumns, Samples};
use sojourn_core::run::Results;
use sojourn_core::run::scenario::{Scenario, catalogue, json_schema};

create_exception!(
    sojourn._core,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be run: `field: what is wrong and what is allowed`."
);

/// Watches a run: asks it to stop, and how far it is; safe to use from any thread.
#[pyclass(frozen, module = "sojourn._core")]
struct Watch(Arc<sojourn_core::base::run_control::RunControl>);

#[pymethods]
impl Watch {
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }

    /// Asks the run to stop, and says why; the first reason stays.
    #[pyo3(signature = (reason=""))]
    fn stop(&self, reason: &str) {
        self.0.stop(reason);
    }

    /// Tells whether a stop was asked for.
    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }

    /// Tells simulated seconds, flows that have ended and packet-hops, as the run told them last.
    fn progress(&self) -> (f64, u64, u64) {
        let Progress { now, flows, hops } = self.0.progress();
        (now.seconds(), flows, hops)
    }
}

/// The most threads that a run may be given.
const MOST_THREADS: u32 = 1024;

/// Reads a scenario given as JSON, and what it numbers of these texts.
fn read(scenario: &str, texts: Vec<PyBackedStr>) -> Result<Scenario, Problem> {
    Scenario::parse_with(scenario, texts.into_iter().map(Text::new).collect())
}

/// Runs a scenario given as JSON; other Python threads go on meanwhile.
#[pyfunction]
#[pyo3(signature = (scenario, watch, threads=1, texts=Vec::new()))]
fn run<'py>(
    py: Python<'py>,
    scenario: &str,
    watch: &Watch,
    threads: i64,
    texts: Vec<PyBackedStr>,
) -> PyResult<Bound<'py, PyDict>> {
    let threads = u32::try_from(threads)
        .ok()
        .filter(|threads| (1..=MOST_THREADS).contains(threads))
        .ok_or_else(|| {
            let message = format!("threads: must be from 1 to {MOST_THREADS}, not {threads}");
            PyValueError::new_err(message)
        })?;
    let watch = Arc::clone(&watch.0);
    let mut scenario = py.detach(|| read(scenario, texts)).map_err(to_python)?;
    #[cfg(feature = "quic")]
    sojourn_quic::provide(&mut scenario);
    let (failure, calls_python) = controllers::provide(py, &mut scenario, &watch)?;
    let threads = if calls_python { 1 } else { threads };
    let results = py.detach(|| scenario.run_on(threads, &watch));
    results_dict(py, failure.into_result(py, results)?)
}

/// Returns the scenario with every default filled in, as JSON, without building anything of it.
#[pyfunction]
#[pyo3(signature = (scenario, texts=Vec::new()))]
fn show(py: Python<'_>, scenario: &str, texts: Vec<PyBackedStr>) -> PyResult<String> {
    py.detach(|| Ok(read(scenario, texts)?.show().to_string())).map_err(to_python)
}

/// Checks a scenario, and whether it fits into so many bytes of memory; returns it as `show` does.
#[pyfunction]
#[pyo3(signature = (scenario, texts=Vec::new(), memory=None))]
fn check(
    py: Python<'_>,
    scenario: &str,
    texts: Vec<PyBackedStr>,
    memory: Option<u64>,
) -> PyResult<String> {
    let checked = || {
        let scenario = read(scenario, texts)?;
        scenario.check(memory)?;
        Ok(scenario.show().to_string())
    };
    py.detach(checked).map_err(to_python)
}

/// Returns what a run on so many threads will need, as JSON.
#[pyfunction]
#[pyo3(signature = (scenario, texts=Vec::new(), threads=1))]
fn estimate(
    py: Python<'_>,
    scenario: &str,
    texts: Vec<PyBackedStr>,
    threads: u32,
) -> PyResult<String> {
    let estimated = || Ok(read(scenario, texts)?.estimate(threads)?.show().to_string());
    py.detach(estimated).map_err(to_python)
}

/// Returns the flows that a scenario's workload asks for, without running them.
#[pyfunction]
#[pyo3(signature = (scenario, texts=Vec::new(), memory=None))]
fn trace<'py>(
    py: Python<'py>,
    scenario: &str,
    texts: Vec<PyBackedStr>,
    memory: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let traced = || read(scenario, texts)?.trace(memory);
    let (flows, classes) = py.detach(traced).map_err(to_python)?;
    let dict = PyDict::new(py);
    dict.set_item("flows", flows_dict(py, flows)?)?;
    dict.set_item("classes", classes)?;
    Ok(dict)
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

/// Returns the catalogue of parts with their parameters, as JSON.
#[pyfunction]
fn parts() -> String {
    catalogue().to_string()
}

/// Returns what may be written in a scenario's file as a JSON schema, as text.
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
    set_samples(py, &dict, results.samples)?;
    dict.set_item(
        "account",
        results.account.map(|account| account_dict(py, account)).transpose()?,
    )?;
    set_chains(py, &dict, results.chains)?;
    dict.set_item("summary", results.summary.to_string())?;
    Ok(dict)
}

fn set_chains(py: Python<'_>, dict: &Bound<'_, PyDict>, mut chains: Chains) -> PyResult<()> {
    dict.set_item("reasons", Chains::REASONS)?;
    let places: Vec<(String, Vec<u64>)> = chains.take_places().collect();
    let columns = columns!(py, chains, [flow, reason, begins_ps]);
    for (name, place) in places {
        columns.set_item(name, column(py, place))?;
    }
    dict.set_item("chain", columns)
}

fn account_dict(py: Python<'_>, mut account: Breakdowns) -> PyResult<Bound<'_, PyDict>> {
    let parts: Vec<(String, Vec<u64>)> = account.take_parts().collect();
    let dict = columns!(
        py,
        account,
        [flow, fct_ps, rounds, alone_propagation_ps, alone_transmission_ps, alone_queue_own_ps]
    );
    for (name, part) in parts {
        dict.set_item(name, column(py, part))?;
    }
    Ok(dict)
}

fn set_samples(py: Python<'_>, dict: &Bound<'_, PyDict>, samples: Samples) -> PyResult<()> {
    dict.set_item("probes", samples.probes)?;
    dict.set_item("samples", columns!(py, samples, [time_s, probe, value]))
}

fn flows_dict(py: Python<'_>, flows: FlowColumns) -> PyResult<Bound<'_, PyDict>> {
    let columns = PyDict::new(py);
    for (name, values) in flows.into_columns() {
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
    use super::controllers::{Ack, Allowance, Loss, Opened, Path};
    #[pymodule_export]
    use super::monitor::{Interval, Monitor};
    #[pymodule_export]
    use super::{
        ScenarioError, Watch, check, estimate, flow_columns, parts, run, run_fluid, schema, show,
        trace,
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

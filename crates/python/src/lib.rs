//! The binding: six functions over text and columns, nothing to decide.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use numpy::{Element, IntoPyArray, PyArray1};
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sojourn_core::flow::Columns;
use sojourn_core::fluid;
use sojourn_core::parameters::{Parameter, Problem};
use sojourn_core::record::Samples;
use sojourn_core::run::Results;
use sojourn_core::scenario::{Scenario, catalogue, json_schema};

create_exception!(
    sojourn._core,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be run: `field: what is wrong and what is allowed`."
);

/// Asks running simulations to stop; safe to set from any thread.
#[pyclass(frozen, module = "sojourn._core")]
struct Stop(Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self(Arc::new(AtomicBool::new(false)))
    }

    /// Asks every run that was given this object to stop.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Tells whether a stop was asked for.
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The most threads that a run may be given.
const MOST_THREADS: u32 = 1024;

/// Runs a scenario given as JSON; other Python threads go on meanwhile.
#[pyfunction]
#[pyo3(signature = (scenario, stop, threads=1))]
fn run<'py>(
    py: Python<'py>,
    scenario: &str,
    stop: &Stop,
    threads: i64,
) -> PyResult<Bound<'py, PyDict>> {
    let threads = u32::try_from(threads)
        .ok()
        .filter(|threads| (1..=MOST_THREADS).contains(threads))
        .ok_or_else(|| {
            let message = format!("threads: must be from 1 to {MOST_THREADS}, not {threads}");
            PyValueError::new_err(message)
        })?;
    let stop = Arc::clone(&stop.0);
    let run = || Scenario::parse(scenario)?.run_on(threads, &stop);
    let results = py.detach(run).map_err(to_python)?;
    results_dict(py, results)
}

/// Returns the scenario with every default filled in, as JSON.
#[pyfunction]
fn check(py: Python<'_>, scenario: &str) -> PyResult<String> {
    let checked = || {
        let scenario = Scenario::parse(scenario)?;
        scenario.check()?;
        Ok(scenario.show().to_string())
    };
    py.detach(checked).map_err(to_python)
}

/// Returns the flows that a scenario's workload asks for, without running them.
#[pyfunction]
fn trace<'py>(py: Python<'py>, scenario: &str) -> PyResult<Bound<'py, PyDict>> {
    let (flows, classes) = py.detach(|| Scenario::parse(scenario)?.trace()).map_err(to_python)?;
    let dict = PyDict::new(py);
    dict.set_item("flows", flows_dict(py, flows)?)?;
    dict.set_item("classes", classes)?;
    Ok(dict)
}

/// Integrates a fluid model given as JSON; other Python threads go on meanwhile.
#[pyfunction(name = "fluid")]
fn run_fluid<'py>(py: Python<'py>, setup: &str) -> PyResult<Bound<'py, PyDict>> {
    let integrated = || Ok(fluid::Setup::parse(setup)?.run());
    let fluid::Outcome { samples, summary } = py.detach(integrated).map_err(to_python)?;
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
    dict.set_item("summary", results.summary.to_string())?;
    Ok(dict)
}

fn set_samples(py: Python<'_>, dict: &Bound<'_, PyDict>, samples: Samples) -> PyResult<()> {
    dict.set_item("probes", samples.probes)?;
    dict.set_item("samples", columns!(py, samples, [time_s, probe, value]))
}

fn flows_dict(py: Python<'_>, flows: Columns) -> PyResult<Bound<'_, PyDict>> {
    Ok(columns!(
        py,
        flows,
        [
            flow,
            source,
            target,
            size_bytes,
            start_s,
            fct_s,
            ideal_fct_s,
            slowdown,
            retransmits,
            timeouts,
            class,
            deadline_s,
            delivered_bytes,
            outcome,
            acked_s,
            latency_s,
        ]
    ))
}

/// The compiled core of Sojourn.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::{ScenarioError, Stop, check, parts, run, run_fluid, schema, trace};
    #[pymodule_export]
    const VERSION: &str = sojourn_core::VERSION;
    #[pymodule_export]
    const MOST_THREADS: u32 = super::MOST_THREADS;
    #[pymodule_export]
    const SOURCE_HASH: &str = env!("SOJOURN_SOURCE_HASH");
}

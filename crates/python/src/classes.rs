//! Classes of controllers in Python that a run uses, and their first error, which stops the run.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use sojourn_core::base::run_control::RunControl;
use sojourn_core::base::schema::{Parameter, Problem};
use sojourn_core::base::units::{Bytes, Duration, Time};
use sojourn_core::model::telemetry::TelemetryStack;
use sojourn_core::run::Results;
use sojourn_core::run::scenario::Scenario;
use sojourn_core::transport;
use sojourn_core::transport::controllers::python;

use super::controllers::Maker;
use super::credit::SchedulerClass;
use super::events::Ack;
use super::to_python;

/// Python classes that a run uses.
pub(crate) struct Classes {
    failure: Arc<Failure>,
    classes: Vec<Arc<Class>>,
}

/// Installs a controller factory for each Python class that a scenario names. A run with a class must have
/// one thread: the interpreter permits no second one, and one `Ack` object serves all flows.
pub(crate) fn provide(
    py: Python<'_>,
    scenario: &mut Scenario,
    run_control: &Arc<RunControl>,
) -> PyResult<Classes> {
    let failure =
        Arc::new(Failure { run_control: Arc::clone(run_control), first: Mutex::default() });
    let mut classes = Vec::new();
    for (field, config) in scenario.written_in_python() {
        let class = Arc::new(Class::open(py, &field, config, &failure)?);
        config.controller.maker = Some(Arc::new(Maker(Arc::clone(&class))));
        classes.push(class);
    }
    Ok(Classes { failure, classes })
}

impl Classes {
    /// Returns true if the run uses no Python class.
    pub(crate) fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Returns the results of the run with the warnings of its classes, or the error of the controller that
    /// failed first.
    pub(crate) fn check(
        &self,
        py: Python<'_>,
        results: Result<Results, Problem>,
    ) -> Result<Results, PyErr> {
        let mut results = self.failure.check(py, results)?;
        if let Some(warnings) = results.summary["warnings"].as_array_mut() {
            let lines = self.classes.iter().filter_map(|class| class.window_warning());
            warnings.extend(lines.map(Into::into));
        }
        Ok(results)
    }
}

/// First error of a Python controller, which stops the run.
struct Failure {
    run_control: Arc<RunControl>,
    first: Mutex<Option<(Problem, PyErr)>>,
}

impl Failure {
    /// Returns an error if the run has been requested to stop. Controllers are then called no more: the core
    /// polls for requests only once in many events, and every call may take long.
    fn check_stop(&self) -> PyResult<()> {
        if self.run_control.is_stopped() { Err(PyKeyboardInterrupt::new_err(())) } else { Ok(()) }
    }

    /// Returns the results of the run, or the error of the controller that failed first, even if the run
    /// finished before it could be stopped.
    fn check(&self, py: Python<'_>, results: Result<Results, Problem>) -> Result<Results, PyErr> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((problem, cause)) = first else { return results.map_err(to_python) };
        let problem = to_python(problem);
        if cause.is_instance_of::<PyKeyboardInterrupt>(py) {
            return Err(problem);
        }
        let traced =
            py.import("sojourn.scenario.controller_source")?.getattr("format_traceback")?;
        let note = traced.call1((cause.into_value(py),))?;
        problem.value(py).call_method1("add_note", (note,))?;
        Err(problem)
    }
}

/// A controller class written in Python.
pub(crate) struct Class {
    /// Creates an instance.
    pub(crate) factory: Py<PyAny>,
    /// Formats an exception as one line.
    format_error: Py<PyAny>,
    field: String,
    pub(crate) is_paced: bool,
    pub(crate) has_telemetry: bool,
    /// Number of priority classes.
    pub(crate) priorities: u32,
    pub(crate) scheduler: Option<SchedulerClass>,
    /// Names of the methods that the class defines.
    pub(crate) handlers: BTreeSet<String>,
    pub(crate) gauges: OnceLock<Vec<&'static str>>,
    pub(crate) ack: Py<Ack>,
    failure: Arc<Failure>,
    pub(crate) windows: Windows,
}

/// Largest window that instances of a class have returned, unlimited with a rate and 0 with a rate of zero,
/// and the payload of a packet, in bytes; 0 before the first flow. Numbers are atomic because controllers may
/// move between threads.
#[derive(Default)]
pub(crate) struct Windows {
    pub(crate) largest: AtomicU64,
    pub(crate) payload: AtomicU64,
}

impl Class {
    fn open(
        py: Python<'_>,
        field: &str,
        config: &python::Config,
        failure: &Arc<Failure>,
    ) -> PyResult<Self> {
        let module = py.import("sojourn.scenario.controller_files")?;
        let file = &config.controller.file;
        let files: Vec<(&str, &str)> =
            config.files.iter().map(|file| (&*file.name, &*file.text)).collect();
        let parameters = config.parameters.show().to_string();
        let opened = module
            .call_method1("load_factory", (&file.name, &*file.text, files, parameters, field))?;
        let (factory, handlers, scheduler) = opened.extract()?;
        Ok(Self {
            factory,
            format_error: py
                .import("sojourn.scenario.controller_source")?
                .getattr("format_error")?
                .unbind(),
            field: format!("{field}.controller"),
            is_paced: config.burst.is_some(),
            has_telemetry: config.telemetry,
            priorities: config.priorities,
            scheduler,
            handlers,
            gauges: OnceLock::new(),
            ack: Py::new(py, Ack(EMPTY_ACK, TelemetryStack::default()))?,
            failure: Arc::clone(failure),
            windows: Windows::default(),
        })
    }

    /// Returns an error if the run has been requested to stop.
    pub(crate) fn check_stop(&self) -> PyResult<()> {
        self.failure.check_stop()
    }

    /// Returns a priority if the class has it; an error begins with `wanted`.
    pub(crate) fn checked_priority(&self, wanted: &str, priority: u32) -> PyResult<u8> {
        if priority < self.priorities {
            return Ok(priority as u8);
        }
        let message = format!(
            "{wanted}: priority must be below {}, the class's `priorities`, not {priority}",
            self.priorities
        );
        Err(PyValueError::new_err(message))
    }

    /// Warns of windows that were always below one packet, since their unit may be packets, and of rates that
    /// were always zero.
    fn window_warning(&self) -> Option<String> {
        let payload = self.windows.payload.load(Ordering::Relaxed);
        (self.windows.largest.load(Ordering::Relaxed) < payload).then(|| {
            format!(
                "{}: a window of less than one packet ({payload} B) or a rate of 0 was allowed at every call; \
                 windows are bytes, rates bits per second",
                self.field
            )
        })
    }

    /// Records the first error of a flow's controller or of a credit scheduler, and stops the run. If a request has stopped the run before,
    /// the request is the error.
    pub(crate) fn fail(&self, py: Python<'_>, whose: &dyn Display, now: Time, error: PyErr) {
        let mut first = self.failure.first.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_some() {
            return;
        }
        if self.failure.run_control.is_stopped() {
            *first = Some((self.failure.run_control.problem(), error));
            return;
        }
        let line = self.format_error.call1(py, (error.clone_ref(py).into_value(py),));
        let line = line.map_or_else(|_| error.to_string(), |line| line.to_string());
        let message = format!("{whose} at {} s: {line}", now.seconds());
        self.failure.run_control.stop(&message);
        *first = Some((Problem::new(self.field.as_str(), message), error));
    }
}

/// Initial value of the reused `Ack` object.
const EMPTY_ACK: transport::Ack = transport::Ack {
    now: Time::ZERO,
    bytes: Bytes::ZERO,
    advanced: 0,
    delivered: 0,
    rtt: Duration::ZERO,
    marked: false,
    feedback: 0.0,
    sent_at: Time::ZERO,
    is_probe_ack: false,
    cumulative: 0,
    next: 0,
    is_recovering: false,
    lost: 0,
    trimmed: None,
    in_flight: Bytes::ZERO,
    used_window: None,
};

//! Conversions of values that the methods of Python controllers return.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};
use sojourn_core::base::units::Time;

/// A number from Python: a float, an integer, or an array or tensor with one of these.
#[derive(Clone, Copy)]
pub(crate) struct Number(pub(crate) f64);

impl<'a, 'py> FromPyObject<'a, 'py> for Number {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let mut value = value.to_owned();
        let item = intern!(value.py(), "item");
        let is_plain = value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>();
        if !is_plain && value.hasattr(item)? {
            value = value.call_method0(item)?;
        }
        if value.is_instance_of::<PyBool>() {
            return Err(wrong_type(&value, "must be a number"));
        }
        value.extract().map(Self)
    }
}

/// Returns the number that a method returned; another value is an error that begins with `wanted`.
pub(crate) fn number_of(value: &Bound<'_, PyAny>, wanted: &str) -> PyResult<f64> {
    value.extract().map(|Number(number)| number).map_err(|_| wrong_type(value, wanted))
}

/// Returns a bound method of an instance, if it is among those that its class defines.
pub(crate) fn defined_method(
    instance: &Bound<'_, PyAny>,
    defined: &BTreeSet<String>,
    name: &str,
) -> PyResult<Option<Py<PyAny>>> {
    defined.contains(name).then(|| instance.getattr(name).map(Bound::unbind)).transpose()
}

/// Returns the result of a method; an error names the method for the place that its message begins with.
pub(crate) fn located<T>(method: &Bound<'_, PyAny>, result: PyResult<T>) -> PyResult<T> {
    result.inspect_err(|error| {
        // An exception that accepts no attributes has no place.
        let py = method.py();
        let _: PyResult<()> = error.value(py).setattr(intern!(py, "method"), method);
    })
}

pub(crate) fn wrong_type(value: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    let kind =
        value.get_type().name().map_or_else(|_| "another type".into(), |name| name.to_string());
    let shape = value.getattr("shape").ok().and_then(|shape| shape.str().ok());
    let shape = shape.map(|shape| format!(" of shape {shape}")).unwrap_or_default();
    PyTypeError::new_err(format!("{wanted}, not {kind}{shape}"))
}

/// Returns `number` if it is zero or more.
pub(crate) fn non_negative(name: &str, unit: &str, number: f64) -> PyResult<f64> {
    if number >= 0.0 {
        return Ok(number);
    }
    Err(PyValueError::new_err(format!("{name} must be zero or more {unit}, not {number}")))
}

/// Converts the result of `next_timer()`. It may equal `now`, since other events at the same time precede
/// timers.
pub(crate) fn timer_not_before(now: Time, seconds: f64) -> PyResult<Time> {
    // A float represents every picosecond up to 2000 seconds.
    let time = Time((seconds * 1e12).round() as u64);
    if time >= now && seconds >= 0.0 {
        return Ok(time);
    }
    let message =
        format!("next_timer: must not be before now, {} s, or None, not {seconds}", now.seconds());
    Err(PyValueError::new_err(message))
}

/// Interns a gauge name for the lifetime of the process: there are few, and all flows of a class share them.
pub(crate) fn intern_name(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(interned) = names.get(name) {
        return interned;
    }
    let name: &'static str = String::leak(name.to_owned());
    names.insert(name);
    name
}

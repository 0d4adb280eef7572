//! Adapter between congestion controllers written in Python and the core's `Controller` trait.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyMapping;
use sojourn_core::base::units::{Bytes, Rate, Time};
use sojourn_core::model::packet::{self, Kind};
use sojourn_core::model::telemetry::TelemetryStack;
use sojourn_core::transport::controllers::python;
use sojourn_core::transport::{self, Controller, CreditScheduler};

use super::classes::Class;
use super::credit::PythonScheduler;
use super::events::{Allowance, Credit, Header, Loss, Opened, OutgoingPacket, Path};
use super::monitor::SharedCounts;
use super::values::{
    defined_method, intern_name, located, non_negative, number_of, timer_not_before, wrong_type,
};

/// Controller factory of a Python class.
pub(crate) struct Maker(pub(crate) Arc<Class>);

impl python::Maker for Maker {
    fn controller(&self, path: &transport::Path) -> Box<dyn Controller> {
        self.0.windows.payload.store(path.format.payload.0, Ordering::Relaxed);
        let mut controller = PythonController {
            class: Arc::clone(&self.0),
            flow: path.flow,
            max_pacing_rate: path.max_pacing_rate,
            unacknowledged: path.size,
            counts: None,
            telemetry: None,
            methods: None,
            allowance: FAILED.0,
            timer: FAILED.1,
        };
        let opened = Python::attach(|py| {
            let (methods, counts) = Methods::open(py, &self.0, path)?;
            let decision = controller.query(py, &methods, path.start)?;
            Ok((methods, counts, decision))
        });
        let decision = opened.map(|(methods, counts, decision)| {
            (controller.methods, controller.counts) = (Some(methods), counts);
            decision
        });
        controller.apply(path.start, decision);
        Box::new(controller)
    }

    fn credit_scheduler(&self, host: &transport::CreditHost) -> Box<dyn CreditScheduler> {
        Box::new(PythonScheduler::open(&self.0, host))
    }
}

/// Bound methods of an instance; `None` for methods that its class does not define.
struct Methods {
    on_open: Option<Py<PyAny>>,
    on_ack: Option<Py<PyAny>>,
    on_loss: Option<Py<PyAny>>,
    remember: Option<Py<PyAny>>,
    on_undo: Option<Py<PyAny>>,
    on_notification: Option<Py<PyAny>>,
    on_credit: Option<Py<PyAny>>,
    on_sent: Option<Py<PyAny>>,
    on_timer: Option<Py<PyAny>>,
    on_end: Option<Py<PyAny>>,
    next_timer: Option<Py<PyAny>>,
    header: Option<Py<PyAny>>,
    gauges: Option<Py<PyAny>>,
    allowance: Py<PyAny>,
}

impl Methods {
    /// Creates an instance and calls its `on_start`. Returns its methods, and the counts of its monitor if it
    /// has requested one.
    fn open(
        py: Python<'_>,
        class: &Class,
        path: &transport::Path,
    ) -> PyResult<(Self, Option<SharedCounts>)> {
        class.check_stop()?;
        let instance = class.factory.bind(py).call0()?;
        let path = Bound::new(py, Path(path.clone(), OnceLock::new()))?;
        instance.call_method1(intern!(py, "on_start"), (&path,))?;
        let method = |name| defined_method(&instance, &class.handlers, name);
        let methods = Self {
            on_open: method("on_open")?,
            on_ack: method("on_ack")?,
            on_loss: method("on_loss")?,
            remember: method("remember")?,
            on_undo: method("on_undo")?,
            on_notification: method("on_notification")?,
            on_credit: method("on_credit")?,
            on_sent: method("on_sent")?,
            on_timer: method("on_timer")?,
            on_end: method("on_end")?,
            next_timer: method("next_timer")?,
            header: method("header")?,
            gauges: method("gauges")?,
            allowance: instance.getattr(intern!(py, "allowance"))?.unbind(),
        };
        Ok((methods, path.get().1.get().cloned()))
    }
}

/// Controller of one flow, implemented by an instance of a Python class.
struct PythonController {
    class: Arc<Class>,
    flow: u64,
    max_pacing_rate: Rate,
    /// Payload that is not yet acknowledged; `None` for an unbounded flow.
    unacknowledged: Option<Bytes>,
    /// Counts of the flow's monitor.
    counts: Option<SharedCounts>,
    /// Telemetry of the ACK that is being handled, if it returns any.
    telemetry: Option<TelemetryStack>,
    /// `None` after an error: the controller sends nothing until the run has stopped.
    methods: Option<Methods>,
    /// Results of the instance after the last event.
    allowance: transport::Allowance,
    timer: Time,
}

/// Returns the error for a limit that a sender by credit cannot have.
fn no_such_limit(limit: &str) -> String {
    format!(
        "allowance: a {limit} is not possible with a credit_scheduler, since the sender has no ACKs; give \
         granted_segments"
    )
}

/// Results of an instance after an event: its allowance and its next timer.
type Decision = (transport::Allowance, Time);

/// Decision of a controller after an error.
const FAILED: Decision = (
    transport::Allowance {
        window: Bytes::ZERO,
        counts_bytes: false,
        granted: u32::MAX,
        rate: None,
        probe_interval: None,
        is_terminated: false,
    },
    Time::NEVER,
);

impl PythonController {
    /// Passes an event to the instance if its class has a handler, then queries the allowance.
    fn notify(
        &mut self,
        now: Time,
        handler: impl FnOnce(&Methods) -> Option<&Py<PyAny>>,
        call: impl FnOnce(Python<'_>, &Py<PyAny>, &Class) -> PyResult<Py<PyAny>>,
    ) {
        let Some(methods) = &self.methods else { return };
        let Some(method) = handler(methods) else { return };
        let decision = Python::attach(|py| {
            self.class.check_stop()?;
            call(py, method, &self.class)?;
            self.query(py, methods, now)
        });
        self.apply(now, decision);
    }

    /// Queries the allowance and the next timer of the instance; the timer must not be before `now`.
    fn query(&self, py: Python<'_>, methods: &Methods, now: Time) -> PyResult<Decision> {
        let method = methods.allowance.bind(py);
        let allowance = located(method, self.read_allowance(&method.call0()?))?;
        let Some(next_timer) = &methods.next_timer else { return Ok((allowance, Time::NEVER)) };
        let method = next_timer.bind(py);
        let result = method.call0()?;
        if result.is_none() {
            return Ok((allowance, Time::NEVER));
        }
        let seconds = number_of(&result, "next_timer: must return seconds or None");
        let timer = seconds.and_then(|seconds| timer_not_before(now, seconds));
        Ok((allowance, located(method, timer)?))
    }

    /// Stores a decision; after an error, disables the controller.
    fn apply(&mut self, now: Time, decision: PyResult<Decision>) {
        (self.allowance, self.timer) = decision.unwrap_or_else(|error| {
            Python::attach(|py| self.fail(py, now, error));
            self.methods = None;
            FAILED
        });
    }

    /// Records an error of this controller.
    fn fail(&self, py: Python<'_>, now: Time, error: PyErr) {
        self.class.fail(py, &format_args!("flow {}", self.flow), now, error);
    }

    /// Converts the result of `allowance()`: an `Allowance`, or a number for a window in bytes.
    fn read_allowance(&self, value: &Bound<'_, PyAny>) -> PyResult<transport::Allowance> {
        let Ok(value) = value.cast::<Allowance>() else {
            let wanted = "allowance: must return a window in bytes or an Allowance";
            let window = non_negative("allowance: a window", "bytes", number_of(value, wanted)?)?;
            if self.class.scheduler.is_some() && window.is_finite() {
                return Err(PyValueError::new_err(no_such_limit("window")));
            }
            self.class.windows.largest.fetch_max(window as u64, Ordering::Relaxed);
            return Ok(transport::Allowance::window(window));
        };
        let value = value.get();
        let window = non_negative("allowance: window_bytes", "bytes", value.window_bytes)?;
        let limits = [("window", window.is_finite()), ("rate", value.rate_bps.is_some())];
        if self.class.scheduler.is_some()
            && let Some((limit, _)) = limits.iter().find(|(_, is_given)| *is_given)
        {
            return Err(PyValueError::new_err(no_such_limit(limit)));
        }
        let rate =
            value.rate_bps.map(|rate| non_negative("allowance: rate_bps", "bits per second", rate));
        let rate = rate.transpose()?;
        if rate.is_some() && !self.class.is_paced {
            let message = "allowance: a rate requires a class with a burst size, such as burst = 1";
            return Err(PyValueError::new_err(message));
        }
        let granted = match value.granted_segments {
            Some(_) if self.class.scheduler.is_none() => {
                let message =
                    "allowance: granted_segments requires a class with a credit_scheduler";
                return Err(PyValueError::new_err(message));
            }
            Some(segments) => {
                non_negative("allowance: granted_segments", "segments", segments)? as u32
            }
            None => u32::MAX,
        };
        // A rate may replace a window.
        let limit = match rate {
            _ if value.gives_up => u64::MAX,
            Some(rate) if rate > 0.0 => u64::MAX,
            Some(_) => 0,
            None => window as u64,
        };
        self.class.windows.largest.fetch_max(limit, Ordering::Relaxed);
        Ok(transport::Allowance {
            window: Bytes(window as u64),
            rate: rate.map(|bps| Rate::from_bps(bps.min(self.max_pacing_rate.bps()))),
            is_terminated: value.gives_up,
            ..transport::Allowance::granted(granted)
        })
    }

    /// Converts the result of `header()`: a `Header`, or a number for a priority.
    fn read_header(
        &self,
        py: Python<'_>,
        header: &Py<PyAny>,
        packet: &transport::OutgoingPacket,
    ) -> PyResult<packet::Header> {
        self.class.check_stop()?;
        let result = header.bind(py).call1((OutgoingPacket(*packet),))?;
        let (priority, number) = if let Ok(header) = result.cast::<Header>() {
            (header.get().priority, header.get().number)
        } else {
            let wanted = "header: must return a priority or a Header";
            (result.extract().map_err(|_| wrong_type(&result, wanted))?, 0)
        };
        let class = self.class.checked_priority("header", priority)?;
        match &self.class.scheduler {
            Some(_) => Ok(packet::Header::Credit { number, class }),
            None if number == 0 => Ok(packet::Header::Priority(u64::from(class))),
            None => {
                let message = "header: a number requires a class with a credit_scheduler";
                Err(PyValueError::new_err(message))
            }
        }
    }

    fn read_gauges(
        &self,
        py: Python<'_>,
        gauges: &Py<PyAny>,
    ) -> PyResult<Vec<(&'static str, f64)>> {
        self.class.check_stop()?;
        let result = gauges.bind(py).call0()?;
        let wanted = "gauges: must return a dictionary of names and numbers";
        let table = result.cast::<PyMapping>().map_err(|_| wrong_type(&result, wanted))?;
        let values: Vec<(String, f64)> = table
            .items()?
            .iter()
            .map(|item| {
                let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
                let text = name.extract().map_err(|_| wrong_type(&name, wanted))?;
                Ok((text, number_of(&value, wanted)?))
            })
            .collect::<PyResult<_>>()?;
        let names = self
            .class
            .gauges
            .get_or_init(|| values.iter().map(|(name, _)| intern_name(name)).collect());
        if !names.iter().copied().eq(values.iter().map(|(name, _)| name.as_str())) {
            let message = format!(
                "gauges: must return the same names in the same order: {}",
                names.join(", ")
            );
            return Err(PyValueError::new_err(message));
        }
        Ok(names.iter().copied().zip(values.iter().map(|(_, value)| *value)).collect())
    }
}

impl Controller for PythonController {
    fn on_open(&mut self, opened: &transport::Opened) {
        self.notify(
            opened.now,
            |methods| methods.on_open.as_ref(),
            |py, on_open, _| on_open.call1(py, (Opened(*opened),)),
        );
    }

    fn on_telemetry(&mut self, path: &TelemetryStack) {
        self.telemetry = Some(*path);
    }

    fn on_ack(&mut self, ack: &transport::Ack) {
        let telemetry = self.telemetry.take();
        if let Some(counts) = &self.counts {
            counts.lock().count(ack);
        }
        self.notify(
            ack.now,
            |methods| methods.on_ack.as_ref(),
            |py, on_ack, class| {
                let mut shared = class.ack.borrow_mut(py);
                shared.0 = *ack;
                if class.has_telemetry {
                    shared.1 = telemetry.unwrap_or_default();
                }
                drop(shared);
                on_ack.call1(py, (&class.ack,))
            },
        );
        self.unacknowledged = self.unacknowledged.map(|left| left - ack.bytes);
        if self.unacknowledged == Some(Bytes::ZERO) {
            self.unacknowledged = None;
            self.notify(
                ack.now,
                |methods| methods.on_end.as_ref(),
                |py, on_end, _| on_end.call1(py, (ack.now.seconds(),)),
            );
        }
    }

    fn on_loss(&mut self, loss: &transport::Loss) {
        if let Some(counts) = &self.counts {
            counts.lock().count_loss(loss);
        }
        self.notify(
            loss.now,
            |methods| methods.on_loss.as_ref(),
            |py, on_loss, _| on_loss.call1(py, (Loss(*loss),)),
        );
    }

    fn save_state(&mut self, now: Time) {
        self.notify(
            now,
            |methods| methods.remember.as_ref(),
            |py, remember, _| remember.call1(py, (now.seconds(),)),
        );
    }

    fn on_spurious_loss(&mut self, now: Time) {
        self.notify(
            now,
            |methods| methods.on_undo.as_ref(),
            |py, on_undo, _| on_undo.call1(py, (now.seconds(),)),
        );
    }

    fn on_notification(&mut self, now: Time) {
        self.notify(
            now,
            |methods| methods.on_notification.as_ref(),
            |py, on_notification, _| on_notification.call1(py, (now.seconds(),)),
        );
    }

    fn on_credit(&mut self, now: Time, credit: &transport::Credit, _is_lost: bool) -> bool {
        let credit = Credit {
            flow: self.flow,
            number: credit.number,
            priority: credit.class.into(),
            resend: credit.segment < u32::MAX,
        };
        self.notify(
            now,
            |methods| methods.on_credit.as_ref(),
            |py, on_credit, _| on_credit.call1(py, (now.seconds(), credit)),
        );
        false
    }

    fn on_sent(&mut self, now: Time, bytes: Bytes) -> Option<transport::Allowance> {
        self.notify(
            now,
            |methods| methods.on_sent.as_ref(),
            |py, on_sent, _| on_sent.call1(py, (now.seconds(), bytes.0)),
        );
        Some(self.allowance())
    }

    fn on_timer(&mut self, now: Time) {
        self.notify(
            now,
            |methods| methods.on_timer.as_ref(),
            |py, on_timer, _| on_timer.call1(py, (now.seconds(),)),
        );
        if self.timer == now {
            let message =
                format!("next_timer: must be later than now, {} s, after on_timer", now.seconds());
            self.apply(now, Err(PyValueError::new_err(message)));
        }
    }

    fn next_timer(&self) -> Time {
        self.timer
    }

    fn allowance(&self) -> transport::Allowance {
        self.allowance
    }

    fn header(&self, packet: &transport::OutgoingPacket) -> packet::Header {
        if packet.kind != Kind::Data {
            return packet::Header::NONE;
        }
        let own = self.methods.as_ref().and_then(|methods| methods.header.as_ref());
        let Some(header) = own else {
            return match &self.class.scheduler {
                Some(_) => packet::Header::Credit { number: 0, class: 0 },
                None => packet::Header::NONE,
            };
        };
        Python::attach(|py| {
            located(header.bind(py), self.read_header(py, header, packet)).unwrap_or_else(|error| {
                self.fail(py, packet.now, error);
                packet::Header::NONE
            })
        })
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let Some(gauges) = self.methods.as_ref().and_then(|methods| methods.gauges.as_ref()) else {
            return Vec::new();
        };
        Python::attach(|py| {
            located(gauges.bind(py), self.read_gauges(py, gauges)).unwrap_or_else(|error| {
                self.fail(py, Time::ZERO, error);
                Vec::new()
            })
        })
    }
}

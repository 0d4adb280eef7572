//! Controllers that are written in Python, as the core knows controllers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt};
use pyo3::{intern, pyclass, pymethods};
use sojourn_core::base::run_control::RunControl;
use sojourn_core::base::schema::{Parameter, Problem};
use sojourn_core::base::units::{Bytes, Duration, Rate, Time};
use sojourn_core::run::Results;
use sojourn_core::run::scenario::Scenario;
use sojourn_core::transport::controllers::python;
use sojourn_core::transport::{self, CongestionSignal, Controller};

use super::monitor::{Monitor, SharedCounts};
use super::to_python;

/// Declares what controllers are told: a class of Python's over a struct of the core's, with read-only
/// attributes, and what else it may keep and do.
macro_rules! told {
    (
        $(#[doc = $about:literal])+
        $(#[$option:meta])?
        $name:ident $(with $kept:ty)? {
            $( $(#[doc = $doc:literal])+ $field:ident : $type:ty = $read:expr; )+
        }
        $($methods:tt)*
    ) => {
        $(#[doc = $about])+
        #[pyclass(module = "sojourn._core" $(, $option)?)]
        pub(crate) struct $name(transport::$name $(, $kept)?);

        #[pymethods]
        impl $name {
            $($methods)*

            $(
                $(#[doc = $doc])+
                #[getter]
                fn $field(&self) -> $type {
                    let read: fn(&transport::$name) -> $type = $read;
                    read(&self.0)
                }
            )+
        }
    };
}

told! {
    /// What a flow may know of its way when it starts.
    #[frozen]
    Path with OnceLock<SharedCounts> {
        /// The flow's number in the workload.
        flow: u64 = |path| path.flow;
        /// Line rate of its host's link, in bits a second.
        line_rate_bps: f64 = |path| path.line_rate.bps();
        /// A full packet there and its ACK back, over an empty network, in seconds.
        base_rtt_s: f64 = |path| path.base_rtt.seconds();
        /// Links on the way there.
        hops: u32 = |path| path.hops;
        /// Payload of a full packet, in bytes.
        payload_bytes: u64 = |path| path.format.payload.0;
        /// What a full packet is on the wire, in bytes.
        packet_bytes: u64 = |path| path.format.full().0;
        /// Other flows in progress at the sending host.
        others: u32 = |path| path.others;
        /// A starting rate that the workload asks for, in bits a second.
        initial_rate_bps: Option<f64> = |path| path.initial_rate.map(Rate::bps);
        /// Payload to transfer, in bytes; none for a flow without end.
        size_bytes: Option<u64> = |path| path.size.map(|size| size.0);
        /// When the flow starts, in seconds.
        start_s: f64 = |path| path.start.seconds();
        /// When it should be over, in seconds, if it has a deadline.
        deadline_s: Option<f64> = |path| (path.deadline < Time::NEVER).then(|| path.deadline.seconds());
        /// A seed of its own, for controllers that draw random numbers.
        seed: u64 = |path| path.seed;
    }

    /// Returns what counts all that the flow's sender sees, from now on: for controllers that act once in an
    /// interval, and then need no `on_ack`.
    fn monitor(&self) -> Monitor {
        Monitor::new(&self.0, self.1.get_or_init(|| SharedCounts::new(&self.0)))
    }
}

told! {
    /// The end of a handshake.
    #[frozen]
    Opened {
        /// When it came, in seconds.
        now_s: f64 = |opened| opened.now.seconds();
        /// How long the last attempt took, in seconds.
        rtt_s: f64 = |opened| opened.rtt.seconds();
        /// Whether it took more than one attempt.
        syn_was_lost: bool = |opened| opened.syn_was_lost;
    }
}

told! {
    /// An acknowledgement. It is one object for all ACKs, and holds until the next one.
    Ack {
        /// When it came, in seconds.
        now_s: f64 = |ack| ack.now.seconds();
        /// The same in picoseconds, exactly.
        now_ps: u64 = |ack| ack.now.0;
        /// Payload that is now known to be received and was not before, in bytes.
        acked_bytes: u64 = |ack| ack.bytes.0;
        /// By how many segments the cumulative acknowledgement moved.
        advanced: u32 = |ack| ack.advanced;
        /// Segments that are now known to be received and were not before, in order or not.
        delivered: u32 = |ack| ack.delivered;
        /// The round-trip time that the host measured, in seconds.
        rtt_s: f64 = |ack| ack.rtt.seconds();
        /// The same in picoseconds, exactly.
        rtt_ps: u64 = |ack| ack.rtt.0;
        /// Whether it tells of a mark.
        marked: bool = |ack| ack.marked;
        /// How long the packet took to the receiver, in seconds by the hosts' clocks, if the class
        /// `tells_delay`.
        one_way_delay_s: f64 = |ack| f64::from(ack.feedback);
        /// When the packet was sent that it answers, in seconds.
        sent_at_s: f64 = |ack| ack.sent_at.seconds();
        /// All segments before this one have been received.
        cumulative: u32 = |ack| ack.cumulative;
        /// The next segment never sent before.
        next: u32 = |ack| ack.next;
        /// Whether a gap is being repaired.
        is_recovering: bool = |ack| ack.is_recovering;
        /// Segments that it shows to be lost.
        lost: u32 = |ack| ack.lost;
        /// Payload that is still in flight, as far as the sender knows, in bytes.
        in_flight_bytes: u64 = |ack| ack.in_flight.0;
    }
}

told! {
    /// A loss, or a mark that means the same.
    #[frozen]
    Loss {
        /// When it was noticed, in seconds.
        now_s: f64 = |loss| loss.now.seconds();
        /// The same in picoseconds, exactly.
        now_ps: u64 = |loss| loss.now.0;
        /// Payload sent and not yet acknowledged, lost or not, in bytes.
        flight_bytes: u64 = |loss| loss.flight.0;
        /// Payload that a time-out newly takes for lost, in bytes; 0 for other signs, whose ACKs tell of it.
        lost_bytes: u64 = |loss| loss.lost.0;
        /// How it was noticed: `gap`, `timeout` or `mark`.
        sign: &'static str = |loss| match loss.sign {
            CongestionSignal::Gap => "gap",
            CongestionSignal::Timeout => "timeout",
            CongestionSignal::Mark => "mark",
        };
    }
}

/// How much may be sent: what is in flight stays within the window, and leaves no faster than the rate.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub(crate) struct Allowance {
    window_bytes: f64,
    rate_bps: Option<f64>,
    gives_up: bool,
}

#[pymethods]
impl Allowance {
    #[new]
    #[pyo3(signature = (window_bytes=f64::INFINITY, rate_bps=None, *, gives_up=false))]
    fn new(window_bytes: f64, rate_bps: Option<f64>, gives_up: bool) -> Self {
        Self { window_bytes, rate_bps, gives_up }
    }
}

/// Gives every class of Python's that a scenario names someone who makes its controllers; and says whether
/// there is one. Then a run has one thread: the interpreter would let no second one go on, and all flows are
/// told of ACKs by one object.
pub(crate) fn provide(
    py: Python<'_>,
    scenario: &mut Scenario,
    watch: &Arc<RunControl>,
) -> PyResult<(Arc<Failure>, bool)> {
    let failure = Arc::new(Failure { watch: Arc::clone(watch), first: Mutex::default() });
    let mut calls_python = false;
    for (field, config) in scenario.written_in_python() {
        let class = Class::open(py, &field, config, &failure)?;
        config.controller.maker = Some(Arc::new(Maker(Arc::new(class))));
        calls_python = true;
    }
    Ok((failure, calls_python))
}

/// What went wrong first in a controller; it stops the run.
pub(crate) struct Failure {
    watch: Arc<RunControl>,
    first: Mutex<Option<(Problem, PyErr)>>,
}

impl Failure {
    /// What a run is worth that has ended so: an error if a controller has failed, however late the run was
    /// to stop.
    pub(crate) fn judge(
        &self,
        py: Python<'_>,
        results: Result<Results, Problem>,
    ) -> Result<Results, PyErr> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((problem, cause)) = first else { return results.map_err(to_python) };
        let problem = to_python(problem);
        let traced = py.import("sojourn.scenario.controller_files")?.getattr("traced")?;
        let note = traced.call1((cause.into_value(py),))?;
        problem.value(py).call_method1("add_note", (note,))?;
        Err(problem)
    }
}

/// What a class answers to.
struct Class {
    /// Makes an instance.
    make: Py<PyAny>,
    /// Says what went wrong in a line.
    tell: Py<PyAny>,
    field: String,
    is_paced: bool,
    /// Names of the events that it wants to hear of.
    hears: BTreeSet<String>,
    gauges: OnceLock<Vec<&'static str>>,
    ack: Py<Ack>,
    failure: Arc<Failure>,
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
        let parameters = config.parameters.show().to_string();
        let opened = module.call_method1("opened", (&file.name, &*file.text, parameters, field))?;
        let (make, hears) = opened.extract()?;
        Ok(Self {
            make,
            tell: module.getattr("told")?.unbind(),
            field: format!("{field}.controller"),
            is_paced: config.burst.is_some(),
            hears,
            gauges: OnceLock::new(),
            ack: Py::new(py, Ack(NO_ACK))?,
            failure: Arc::clone(failure),
        })
    }

    /// Something went wrong with a flow: the run stops and says what.
    fn fail(&self, py: Python<'_>, flow: u64, now: Time, error: PyErr) {
        let mut first = self.failure.first.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_some() {
            return;
        }
        let told = self.tell.call1(py, (error.clone_ref(py).into_value(py),));
        let told = told.map_or_else(|_| error.to_string(), |told| told.to_string());
        let message = format!("flow {flow} at {} s: {told}", now.seconds());
        self.failure.watch.stop(&message);
        *first = Some((Problem::new(self.field.as_str(), message), error));
    }
}

/// An ACK that tells nothing, in the place of the first.
const NO_ACK: transport::Ack = transport::Ack {
    now: Time::ZERO,
    bytes: Bytes::ZERO,
    advanced: 0,
    delivered: 0,
    rtt: Duration::ZERO,
    marked: false,
    feedback: 0.0,
    sent_at: Time::ZERO,
    is_of_probe: false,
    cumulative: 0,
    next: 0,
    is_recovering: false,
    lost: 0,
    in_flight: Bytes::ZERO,
};

struct Maker(Arc<Class>);

impl python::Maker for Maker {
    fn controller(&self, path: &transport::Path) -> Box<dyn Controller> {
        let mut written = Written {
            class: Arc::clone(&self.0),
            flow: path.flow,
            line_rate: path.line_rate,
            left: path.size,
            counts: None,
            methods: None,
            allowance: SILENCE.0,
            wakes: SILENCE.1,
        };
        let opened = Python::attach(|py| {
            let (methods, counts) = Methods::open(py, &self.0, path)?;
            let answered = written.answer(py, &methods, path.start)?;
            Ok((methods, counts, answered))
        });
        let answered = opened.map(|(methods, counts, answered)| {
            (written.methods, written.counts) = (Some(methods), counts);
            answered
        });
        written.keep(path.start, answered);
        Box::new(written)
    }
}

/// What is called of an instance; none of the events that its class does not want to hear of.
struct Methods {
    on_open: Option<Py<PyAny>>,
    on_ack: Option<Py<PyAny>>,
    on_loss: Option<Py<PyAny>>,
    remember: Option<Py<PyAny>>,
    on_undo: Option<Py<PyAny>>,
    on_notification: Option<Py<PyAny>>,
    on_sent: Option<Py<PyAny>>,
    on_timer: Option<Py<PyAny>>,
    on_end: Option<Py<PyAny>>,
    next_timer: Option<Py<PyAny>>,
    gauges: Option<Py<PyAny>>,
    allowance: Py<PyAny>,
}

impl Methods {
    /// Those of a new instance, which has been told of its way; and what is to be counted, if it has asked
    /// for that.
    fn open(
        py: Python<'_>,
        class: &Class,
        path: &transport::Path,
    ) -> PyResult<(Self, Option<SharedCounts>)> {
        let instance = class.make.bind(py).call0()?;
        let path = Bound::new(py, Path(path.clone(), OnceLock::new()))?;
        instance.call_method1(intern!(py, "on_start"), (&path,))?;
        let method = |name: &str| {
            let wanted = class.hears.contains(name);
            wanted.then(|| instance.getattr(name).map(Bound::unbind)).transpose()
        };
        let methods = Self {
            on_open: method("on_open")?,
            on_ack: method("on_ack")?,
            on_loss: method("on_loss")?,
            remember: method("remember")?,
            on_undo: method("on_undo")?,
            on_notification: method("on_notification")?,
            on_sent: method("on_sent")?,
            on_timer: method("on_timer")?,
            on_end: method("on_end")?,
            next_timer: method("next_timer")?,
            gauges: method("gauges")?,
            allowance: instance.getattr(intern!(py, "allowance"))?.unbind(),
        };
        Ok((methods, path.get().1.get().cloned()))
    }
}

/// The controller of one flow.
struct Written {
    class: Arc<Class>,
    flow: u64,
    line_rate: Rate,
    /// Payload that is still to be acknowledged.
    left: Option<Bytes>,
    /// What a monitor counts.
    counts: Option<SharedCounts>,
    /// None after a failure: it is silent until the run has stopped.
    methods: Option<Methods>,
    /// What the instance answered after the last event.
    allowance: transport::Allowance,
    wakes: Time,
}

/// What an instance allows, and when it wants to be woken.
type Answer = (transport::Allowance, Time);

/// What is left of a controller that has failed.
const SILENCE: Answer = (
    transport::Allowance { window: Bytes::ZERO, rate: None, probe: None, gives_up: false },
    Time::NEVER,
);

impl Written {
    /// Tells the instance of an event, if it wants to hear of it, and asks what it allows then.
    fn tell(
        &mut self,
        now: Time,
        which: impl FnOnce(&Methods) -> Option<&Py<PyAny>>,
        event: impl FnOnce(Python<'_>, &Py<PyAny>, &Class) -> PyResult<Py<PyAny>>,
    ) {
        let Some(methods) = &self.methods else { return };
        let Some(method) = which(methods) else { return };
        let answered = Python::attach(|py| {
            event(py, method, &self.class)?;
            self.answer(py, methods, now)
        });
        self.keep(now, answered);
    }

    /// Asks the instance what it allows, and when it wants to be woken: at `now` or later.
    fn answer(&self, py: Python<'_>, methods: &Methods, now: Time) -> PyResult<Answer> {
        let allowance = self.read(&methods.allowance.bind(py).call0()?)?;
        let Some(next_timer) = &methods.next_timer else { return Ok((allowance, Time::NEVER)) };
        let wakes = match next_timer.bind(py).call0()?.extract::<Option<f64>>()? {
            None => Time::NEVER,
            Some(seconds) => not_before(now, seconds)?,
        };
        Ok((allowance, wakes))
    }

    /// Keeps the answer, or falls silent if something went wrong.
    fn keep(&mut self, now: Time, answered: PyResult<Answer>) {
        (self.allowance, self.wakes) = answered.unwrap_or_else(|error| {
            Python::attach(|py| self.class.fail(py, self.flow, now, error));
            self.methods = None;
            SILENCE
        });
    }

    /// Reads an allowance: an `Allowance`, or a number that is a window in bytes.
    fn read(&self, answer: &Bound<'_, PyAny>) -> PyResult<transport::Allowance> {
        if answer.is_instance_of::<PyFloat>() || answer.is_instance_of::<PyInt>() {
            let window = amount("allowance: a window", "bytes", answer.extract()?)?;
            return Ok(transport::Allowance::window(window));
        }
        let Ok(answer) = answer.cast::<Allowance>() else {
            let kind = answer.get_type().name()?;
            let message = format!("allowance: a window in bytes or an Allowance, not {kind}");
            return Err(PyTypeError::new_err(message));
        };
        let given = answer.get();
        let window = amount("allowance: window_bytes", "bytes", given.window_bytes)?;
        let rate = given.rate_bps.map(|rate| amount("allowance: rate_bps", "bits a second", rate));
        let rate = rate.transpose()?;
        if rate.is_some() && !self.class.is_paced {
            let message = "allowance: a rate needs a class that says how many packets leave at once, \
                           such as burst = 1";
            return Err(PyValueError::new_err(message));
        }
        Ok(transport::Allowance {
            window: Bytes(window as u64),
            rate: rate.map(|bps| Rate::from_bps(bps.min(self.line_rate.bps()))),
            probe: None,
            gives_up: given.gives_up,
        })
    }

    fn read_gauges(
        &self,
        py: Python<'_>,
        gauges: &Py<PyAny>,
    ) -> PyResult<Vec<(&'static str, f64)>> {
        let answer = gauges.bind(py).call0()?;
        let table: &Bound<'_, PyDict> = answer.cast()?;
        let values: Vec<(String, f64)> = table
            .iter()
            .map(|(name, value)| Ok((name.extract()?, value.extract()?)))
            .collect::<PyResult<_>>()?;
        let names = self
            .class
            .gauges
            .get_or_init(|| values.iter().map(|(name, _)| lasting(name)).collect());
        if !names.iter().copied().eq(values.iter().map(|(name, _)| name.as_str())) {
            let message =
                format!("gauges: always the same names in the same order: {}", names.join(", "));
            return Err(PyValueError::new_err(message));
        }
        Ok(names.iter().copied().zip(values.iter().map(|(_, value)| *value)).collect())
    }
}

/// A number of something that there can be.
fn amount(what: &str, unit: &str, number: f64) -> PyResult<f64> {
    if number >= 0.0 {
        return Ok(number);
    }
    Err(PyValueError::new_err(format!("{what} must be zero or more {unit}, not {number}")))
}

/// A time to be woken at, which may be at the moment that has just come: other events come before timers.
fn not_before(now: Time, seconds: f64) -> PyResult<Time> {
    // Of seconds up to 2000 a float knows every picosecond.
    let time = Time((seconds * 1e12).round() as u64);
    if time >= now {
        return Ok(time);
    }
    let message =
        format!("next_timer: must not be before now, {} s, or None, not {seconds}", now.seconds());
    Err(PyValueError::new_err(message))
}

/// A name for as long as the process lasts: gauges are few, and the same for all flows of a class.
fn lasting(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = String::leak(name.to_owned());
    names.insert(name);
    name
}

impl Controller for Written {
    fn on_open(&mut self, opened: &transport::Opened) {
        self.tell(
            opened.now,
            |methods| methods.on_open.as_ref(),
            |py, on_open, _| on_open.call1(py, (Opened(*opened),)),
        );
    }

    fn on_ack(&mut self, ack: &transport::Ack) {
        if let Some(counts) = &self.counts {
            counts.lock().count(ack);
        }
        self.tell(
            ack.now,
            |methods| methods.on_ack.as_ref(),
            |py, on_ack, class| {
                class.ack.borrow_mut(py).0 = *ack;
                on_ack.call1(py, (&class.ack,))
            },
        );
        self.left = self.left.map(|left| left - ack.bytes);
        if self.left == Some(Bytes::ZERO) {
            self.left = None;
            self.tell(
                ack.now,
                |methods| methods.on_end.as_ref(),
                |py, on_end, _| on_end.call1(py, (ack.now.seconds(),)),
            );
        }
    }

    fn on_loss(&mut self, loss: &transport::Loss) {
        if let Some(counts) = &self.counts {
            counts.lock().timeouts += u64::from(loss.sign == CongestionSignal::Timeout);
        }
        self.tell(
            loss.now,
            |methods| methods.on_loss.as_ref(),
            |py, on_loss, _| on_loss.call1(py, (Loss(*loss),)),
        );
    }

    fn save_state(&mut self, now: Time) {
        self.tell(
            now,
            |methods| methods.remember.as_ref(),
            |py, remember, _| remember.call1(py, (now.seconds(),)),
        );
    }

    fn on_spurious_loss(&mut self, now: Time) {
        self.tell(
            now,
            |methods| methods.on_undo.as_ref(),
            |py, on_undo, _| on_undo.call1(py, (now.seconds(),)),
        );
    }

    fn on_notification(&mut self, now: Time) {
        self.tell(
            now,
            |methods| methods.on_notification.as_ref(),
            |py, on_notification, _| on_notification.call1(py, (now.seconds(),)),
        );
    }

    fn on_sent(&mut self, now: Time, bytes: Bytes) {
        self.tell(
            now,
            |methods| methods.on_sent.as_ref(),
            |py, on_sent, _| on_sent.call1(py, (now.seconds(), bytes.0)),
        );
    }

    fn on_timer(&mut self, now: Time) {
        self.tell(
            now,
            |methods| methods.on_timer.as_ref(),
            |py, on_timer, _| on_timer.call1(py, (now.seconds(),)),
        );
        if self.wakes == now {
            let message =
                format!("next_timer: must be later than now, {} s, after on_timer", now.seconds());
            self.keep(now, Err(PyValueError::new_err(message)));
        }
    }

    fn next_timer(&self) -> Time {
        self.wakes
    }

    fn allowance(&self) -> transport::Allowance {
        self.allowance
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let Some(gauges) = self.methods.as_ref().and_then(|methods| methods.gauges.as_ref()) else {
            return Vec::new();
        };
        Python::attach(|py| {
            self.read_gauges(py, gauges).unwrap_or_else(|error| {
                self.class.fail(py, self.flow, Time::ZERO, error);
                Vec::new()
            })
        })
    }
}

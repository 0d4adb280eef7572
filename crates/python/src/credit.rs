//! Adapter between credit schedulers written in Python and the core's `CreditScheduler` trait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};
use sojourn_core::base::units::{Bytes, Duration, Time};
use sojourn_core::model::flow::HostId;
use sojourn_core::model::packet::FlowNumber;
use sojourn_core::transport::{self, CreditScheduler, Gaps, MissingSegments};

use super::classes::Class;
use super::events::{Arrival, Credit, CreditHost, InboundFlow};
use super::values::{defined_method, located, wrong_type};

/// Credits at one time after which a scheduler is taken to issue them for ever.
const MOST_AT_ONCE: u32 = 100_000;

/// Factory of schedulers, and the names of the methods that their class defines.
#[derive(FromPyObject)]
pub(crate) struct SchedulerClass(Py<PyAny>, BTreeSet<String>);

/// Bound methods of an instance; `None` for methods that its class does not define.
struct Methods {
    on_flow: Option<Py<PyAny>>,
    on_arrival: Option<Py<PyAny>>,
    on_end: Option<Py<PyAny>>,
    next_time_ps: Option<Py<PyAny>>,
    next_credit: Py<PyAny>,
}

/// Incomplete flow, as far as credits with `resend` need it.
struct Inbound {
    is_unbounded: bool,
    received: u32,
    /// Number of credits.
    issued: u32,
    /// First segment that the next credit may name, of a flow with a size.
    next: u32,
    /// Missing segments of an unbounded flow.
    gaps: Gaps,
}

impl Inbound {
    /// Returns the segment that the next credit names.
    fn next_segment(
        &mut self,
        now: Time,
        reorder_time: Duration,
        missing: impl Fn(u32) -> u32,
    ) -> u32 {
        if self.is_unbounded {
            return self.gaps.next(now, self.received, reorder_time, missing);
        }
        let segment = match missing(self.next) {
            u32::MAX => missing(0),
            segment => segment,
        };
        self.next = segment.saturating_add(1);
        segment
    }
}

/// Credit scheduler of one host, implemented by an instance of a Python class.
pub(crate) struct PythonScheduler {
    class: Arc<Class>,
    host: HostId,
    /// `None` after an error: no more credits are issued until the run has stopped.
    methods: Option<Methods>,
    /// Flows in progress.
    flows: BTreeMap<FlowNumber, Inbound>,
    /// Size of a full packet on the link.
    full_packet: Bytes,
    /// Time after which a packet of an unbounded flow that is missing is lost.
    reorder_time: Duration,
    timer: Time,
    /// Time of the last credit, and the number of credits at that time.
    last: (Time, u32),
}

impl PythonScheduler {
    /// Creates the scheduler of a host.
    pub(crate) fn open(class: &Arc<Class>, host: &transport::CreditHost) -> Self {
        let mut scheduler = Self {
            class: Arc::clone(class),
            host: host.host,
            methods: None,
            flows: BTreeMap::new(),
            full_packet: host.format.full(),
            reorder_time: host.base_rtt * 2,
            timer: Time::NEVER,
            last: (Time::ZERO, 0),
        };
        Python::attach(|py| match Methods::open(py, class, host) {
            Ok(methods) => scheduler.methods = Some(methods),
            Err(error) => scheduler.fail(py, host.now, error),
        });
        scheduler
    }

    /// Records an error of this scheduler, which is called no more.
    fn fail(&mut self, py: Python<'_>, now: Time, error: PyErr) {
        self.class.fail(py, &format_args!("credit scheduler of host {}", self.host), now, error);
        self.methods = None;
    }

    /// Passes an event to the instance if its class has a handler.
    fn notify(
        &mut self,
        now: Time,
        handler: impl FnOnce(&Methods) -> Option<&Py<PyAny>>,
        call: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<Py<PyAny>>,
    ) {
        let Some(method) = self.methods.as_ref().and_then(handler) else { return };
        let result = Python::attach(|py| {
            self.class.check_stop()?;
            call(py, method)
        });
        if let Err(error) = result {
            Python::attach(|py| self.fail(py, now, error));
        }
    }

    /// Returns the next credit of the instance, and otherwise stores when to query it again.
    fn query(
        &mut self,
        py: Python<'_>,
        now: Time,
        missing: MissingSegments<'_>,
    ) -> PyResult<Option<(FlowNumber, transport::Credit)>> {
        self.class.check_stop()?;
        let Some(methods) = &self.methods else { return Ok(None) };
        let next_credit = methods.next_credit.bind(py).clone();
        let result = next_credit.call1((now.0,))?;
        if !result.is_none() {
            return located(&next_credit, self.read_credit(now, &result, missing)).map(Some);
        }
        if let Some(next_time) = &methods.next_time_ps {
            let method = next_time.bind(py);
            self.timer = located(method, read_time(now, &method.call0()?))?;
        }
        Ok(None)
    }

    /// Converts the result of `next_credit()`.
    fn read_credit(
        &mut self,
        now: Time,
        value: &Bound<'_, PyAny>,
        missing: MissingSegments<'_>,
    ) -> PyResult<(FlowNumber, transport::Credit)> {
        let wanted = "next_credit: must return a Credit or None";
        let credit = value.cast::<Credit>().map_err(|_| wrong_type(value, wanted))?.get();
        let class = self.class.checked_priority("next_credit", credit.priority)?;
        let flow = FlowNumber::try_from(credit.flow).ok();
        let known = flow.and_then(|flow| Some((flow, self.flows.get_mut(&flow)?)));
        let Some((flow, inbound)) = known else {
            let message = format!("next_credit: flow {} is not in progress here", credit.flow);
            return Err(PyValueError::new_err(message));
        };
        inbound.issued = inbound.issued.saturating_add(1);
        let segment = if credit.resend {
            inbound.next_segment(now, self.reorder_time, |from| missing(flow, from))
        } else {
            u32::MAX
        };
        self.last = (now, if self.last.0 == now { self.last.1 + 1 } else { 1 });
        if self.last.1 > MOST_AT_ONCE {
            let message = format!("next_credit: more than {MOST_AT_ONCE} credits at one time");
            return Err(PyValueError::new_err(message));
        }
        Ok((flow, transport::Credit { number: credit.number, segment, class }))
    }
}

impl Methods {
    /// Creates an instance and calls its `on_start`.
    fn open(py: Python<'_>, class: &Class, host: &transport::CreditHost) -> PyResult<Self> {
        class.check_stop()?;
        let Some(SchedulerClass(factory, handlers)) = &class.scheduler else {
            unreachable!("called only with a credit scheduler")
        };
        let instance = factory.bind(py).call0()?;
        let seed = host.random.clone().below(1 << 53);
        instance.call_method1(intern!(py, "on_start"), (CreditHost(host.clone(), seed),))?;
        let method = |name| defined_method(&instance, handlers, name);
        Ok(Self {
            on_flow: method("on_flow")?,
            on_arrival: method("on_arrival")?,
            on_end: method("on_end")?,
            next_time_ps: method("next_time_ps")?,
            next_credit: instance.getattr(intern!(py, "next_credit"))?.unbind(),
        })
    }
}

/// Converts the result of `next_time_ps()`, which is later than now.
fn read_time(now: Time, value: &Bound<'_, PyAny>) -> PyResult<Time> {
    if value.is_none() {
        return Ok(Time::NEVER);
    }
    let wanted = "next_time_ps: must return whole picoseconds or None";
    if !value.is_instance_of::<PyInt>() || value.is_instance_of::<PyBool>() {
        return Err(wrong_type(value, wanted));
    }
    match value.extract() {
        Ok(time) if time > now.0 => Ok(Time(time)),
        _ => {
            let message = format!(
                "next_time_ps: must be later than now, {}, and below 2^64, not {value}",
                now.0
            );
            Err(PyValueError::new_err(message))
        }
    }
}

impl CreditScheduler for PythonScheduler {
    fn on_start(&mut self, now: Time, flow: &transport::InboundFlow) {
        self.flows.insert(
            flow.flow,
            Inbound {
                is_unbounded: flow.size.is_none(),
                received: 0,
                issued: 0,
                next: 0,
                gaps: Gaps::new(now),
            },
        );
        let packet_time = flow.line_rate.transmit(self.full_packet);
        let flow_seen = InboundFlow(*flow, packet_time);
        self.notify(
            now,
            |methods| methods.on_flow.as_ref(),
            |py, on_flow| on_flow.call1(py, (now.0, flow_seen)),
        );
    }

    fn on_arrival(&mut self, now: Time, flow: FlowNumber, arrival: transport::Arrival) {
        let Some(inbound) = self.flows.get_mut(&flow) else { return };
        match arrival {
            transport::Arrival::Data { is_new, .. } => inbound.received += u32::from(is_new),
            // After a timeout of the sender, all that it has sent and that is missing is lost.
            transport::Arrival::Request { .. } => {
                let sent = inbound.received.saturating_add(inbound.issued);
                inbound.gaps.name_before(sent, now + self.reorder_time);
            }
            transport::Arrival::Trimmed { .. } => {}
        }
        self.notify(
            now,
            |methods| methods.on_arrival.as_ref(),
            |py, on_arrival| on_arrival.call1(py, (now.0, flow, Arrival::from(arrival))),
        );
    }

    fn on_end(&mut self, now: Time, flow: FlowNumber) {
        // The core may report the end of a flow that has not started here.
        if self.flows.remove(&flow).is_none() {
            return;
        }
        self.notify(
            now,
            |methods| methods.on_end.as_ref(),
            |py, on_end| on_end.call1(py, (now.0, flow)),
        );
    }

    fn next_credit(
        &mut self,
        now: Time,
        missing: MissingSegments<'_>,
    ) -> Option<(FlowNumber, transport::Credit)> {
        self.timer = Time::NEVER;
        self.methods.as_ref()?;
        Python::attach(|py| {
            self.query(py, now, missing).unwrap_or_else(|error| {
                self.fail(py, now, error);
                None
            })
        })
    }

    fn next_timer(&self) -> Time {
        self.timer
    }
}

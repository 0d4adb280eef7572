//! What a controller in Python sees of its flow without being called for every ACK: monitor intervals.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use sojourn_core::transport::{Ack, Path};

/// Declares the interval: its fields are attributes, arguments of its constructor, and what it is pickled as.
macro_rules! interval {
    ($( $(#[doc = $doc:literal])+ $field:ident : $type:ty; )+) => {
        /// What a flow's sender saw from one moment to another: a monitor interval.
        #[pyclass(frozen, eq, get_all, module = "sojourn._core")]
        #[derive(PartialEq)]
        pub(crate) struct Interval {
            $( $(#[doc = $doc])+ $field: $type, )+
        }

        #[pymethods]
        impl Interval {
            #[new]
            #[expect(clippy::too_many_arguments, reason = "one for each field, as in a dataclass")]
            fn new($($field: $type),+) -> Self {
                Self { $($field),+ }
            }

            fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
                PyTuple::new(py, [$(self.$field.into_py_any(py)?),+])
            }

            fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                let fields = [$((stringify!($field), self.$field.into_py_any(py)?)),+];
                let fields = fields.map(|(name, value)| format!("{name}={value}"));
                Ok(format!("Interval({})", fields.join(", ")))
            }

            /// How long it was, in seconds; 0 if the flow was over as soon as it began.
            #[getter]
            fn duration_s(&self) -> f64 {
                self.end_s - self.begin_s
            }

            /// Payload acknowledged, in bits a second.
            #[getter]
            fn throughput_bps(&self) -> f64 {
                let duration_s = self.duration_s();
                if duration_s > 0.0 { 8.0 * self.acked_bytes as f64 / duration_s } else { 0.0 }
            }

            /// The throughput as a share of what the line rate carries of payload.
            #[getter]
            fn utilisation(&self) -> f64 {
                let payload_share = self.payload_bytes as f64 / self.packet_bytes as f64;
                self.throughput_bps() / (self.line_rate_bps * payload_share)
            }

            /// Packets lost as a share of those that were lost or acknowledged.
            #[getter]
            fn lost_share(&self) -> f64 {
                let lost = self.losses as f64;
                lost / (lost + self.acked_bytes as f64 / self.payload_bytes as f64).max(1.0)
            }

            /// The round-trip time beyond the base RTT, in base RTTs.
            #[getter]
            fn queueing(&self) -> f64 {
                self.rtt_s / self.base_rtt_s - 1.0
            }

            /// Packets that the line rate sends in a base RTT.
            #[getter]
            fn pipe_packets(&self) -> f64 {
                self.line_rate_bps * self.base_rtt_s / (8.0 * self.packet_bytes as f64)
            }
        }
    };
}

interval! {
    /// The flow's number in the workload.
    flow: u64;
    /// When the flow started, in seconds.
    start_s: f64;
    /// When it began, in seconds.
    begin_s: f64;
    /// When it ended, in seconds: when it was closed, or when the flow was over.
    end_s: f64;
    /// ACKs that came.
    acks: u64;
    /// Payload that they told to be received and that was not known to be, in bytes.
    acked_bytes: u64;
    /// How many of them told of a mark.
    marks: u64;
    /// Packets that they showed to be lost.
    losses: u64;
    /// Retransmission time-outs.
    timeouts: u64;
    /// Mean of the round-trip times that they measured, in seconds; without any, the mean before.
    rtt_s: f64;
    /// Slope of these over time, by linear regression, in seconds a second; 0 for fewer than two.
    rtt_gradient: f64;
    /// Payload in flight after the last ACK, in bytes.
    in_flight_bytes: u64;
    /// What was allowed: full packets in flight, or, of a rate, each base RTT.
    allowed_packets: f64;
    /// Payload still to be acknowledged, in bytes; none for a flow without end.
    left_bytes: Option<u64>;
    /// Round-trip time of a full packet over an empty network, in seconds.
    base_rtt_s: f64;
    /// Line rate of the sending host's link, in bits a second.
    line_rate_bps: f64;
    /// What a full packet is on the wire, in bytes.
    packet_bytes: u64;
    /// Payload of a full packet, in bytes.
    payload_bytes: u64;
}

/// Counts what a flow's sender sees, from one interval to the next.
///
/// A controller that acts once in an interval asks for one as it starts, `self.monitor = path.monitor()`, and
/// closes an interval whenever it wants to know: then it needs no `on_ack`, and costs little.
#[pyclass(frozen, module = "sojourn._core")]
pub(crate) struct Monitor {
    path: Path,
    counts: SharedCounts,
}

impl Monitor {
    /// A monitor of a flow on `path`, of what `counts` is told.
    pub(crate) fn new(path: &Path, counts: &SharedCounts) -> Self {
        Self { path: path.clone(), counts: counts.clone() }
    }
}

#[pymethods]
impl Monitor {
    /// Ends the interval now, begins the next, and returns what happened in it.
    ///
    /// What was allowed meanwhile, in full packets, only the controller knows: it is told on as it is given.
    #[pyo3(signature = (now_s, allowed_packets=0.0))]
    fn close(&self, now_s: f64, allowed_packets: f64) -> Interval {
        let mut counts = self.counts.lock();
        let next = Counts::after(&counts, now_s);
        let counts = std::mem::replace(&mut *counts, next);
        let Path { flow, start, base_rtt, line_rate, format, .. } = &self.path;
        Interval {
            flow: *flow,
            start_s: start.seconds(),
            begin_s: counts.begin_s,
            end_s: now_s.min(counts.over_s),
            acks: counts.acks,
            acked_bytes: counts.acked_bytes,
            marks: counts.marks,
            losses: counts.losses,
            timeouts: counts.timeouts,
            rtt_s: counts.rtt_s,
            rtt_gradient: counts.rtt_gradient(),
            in_flight_bytes: counts.in_flight_bytes,
            allowed_packets,
            left_bytes: counts.left_bytes,
            base_rtt_s: base_rtt.seconds(),
            line_rate_bps: line_rate.bps(),
            packet_bytes: format.full().0,
            payload_bytes: format.payload.0,
        }
    }
}

/// Counts that a controller adds to and a monitor takes; they take turns, so neither waits for the other.
#[derive(Clone)]
pub(crate) struct SharedCounts(Arc<Mutex<Counts>>);

impl SharedCounts {
    /// Nothing has happened yet on `path`.
    pub(crate) fn new(path: &Path) -> Self {
        let left_bytes = path.size.map(|size| size.0);
        let counts = Counts::new(path.start.seconds(), path.base_rtt.seconds(), left_bytes);
        Self(Arc::new(Mutex::new(counts)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What has happened since the interval began.
pub(crate) struct Counts {
    begin_s: f64,
    /// When all had been acknowledged.
    over_s: f64,
    acks: u64,
    acked_bytes: u64,
    marks: u64,
    losses: u64,
    pub(crate) timeouts: u64,
    in_flight_bytes: u64,
    left_bytes: Option<u64>,
    /// Means of round-trip times and of when they were measured, and sums over what is around these.
    rtt_s: f64,
    time_s: f64,
    times_squared: f64,
    times_by_rtts: f64,
}

impl Counts {
    fn new(begin_s: f64, base_rtt_s: f64, left_bytes: Option<u64>) -> Self {
        Self {
            begin_s,
            over_s: f64::INFINITY,
            acks: 0,
            acked_bytes: 0,
            marks: 0,
            losses: 0,
            timeouts: 0,
            in_flight_bytes: 0,
            left_bytes,
            rtt_s: base_rtt_s,
            time_s: 0.0,
            times_squared: 0.0,
            times_by_rtts: 0.0,
        }
    }

    /// Those of the next interval.
    fn after(&self, begin_s: f64) -> Self {
        let Self { over_s, in_flight_bytes, left_bytes, rtt_s, .. } = *self;
        Self { over_s, in_flight_bytes, ..Self::new(begin_s, rtt_s, left_bytes) }
    }

    /// Counts an ACK.
    pub(crate) fn count(&mut self, ack: &Ack) {
        let (now_s, rtt_s) = (ack.now.seconds(), ack.rtt.seconds());
        if self.acks == 0 {
            (self.rtt_s, self.time_s) = (rtt_s, now_s);
        }
        self.acks += 1;
        self.acked_bytes += ack.bytes.0;
        self.marks += u64::from(ack.marked);
        self.losses += u64::from(ack.lost);
        self.in_flight_bytes = ack.in_flight.0;
        // Welford's way of sums around means that are not yet known.
        let (ahead_s, beyond_s) = (now_s - self.time_s, rtt_s - self.rtt_s);
        self.time_s += ahead_s / self.acks as f64;
        self.rtt_s += beyond_s / self.acks as f64;
        self.times_squared += ahead_s * (now_s - self.time_s);
        self.times_by_rtts += ahead_s * (rtt_s - self.rtt_s);
        if let Some(left) = &mut self.left_bytes {
            *left = left.saturating_sub(ack.bytes.0);
            if *left == 0 {
                self.over_s = self.over_s.min(now_s);
            }
        }
    }

    fn rtt_gradient(&self) -> f64 {
        if self.times_squared > 0.0 { self.times_by_rtts / self.times_squared } else { 0.0 }
    }
}

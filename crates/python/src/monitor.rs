//! Monitor intervals: aggregates of a flow's ACKs for Python controllers that are not called for every ACK.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use sojourn_core::transport::{Ack, CongestionSignal, Loss, Path};

use super::values::Number;

/// Declares the class `Interval`: its fields are attributes, constructor arguments and pickled state.
macro_rules! interval {
    ($( $(#[doc = $doc:literal])+ $field:ident : $type:ty; )+) => {
        /// Monitor interval: aggregates of a flow's ACKs and losses over a time span.
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

            /// Duration in seconds; 0 if the flow ended at the begin of the interval.
            #[getter]
            fn duration_s(&self) -> f64 {
                self.end_s - self.begin_s
            }

            /// Acknowledged payload, in bits per second.
            #[getter]
            fn throughput_bps(&self) -> f64 {
                let duration_s = self.duration_s();
                if duration_s > 0.0 { 8.0 * self.acked_bytes as f64 / duration_s } else { 0.0 }
            }

            /// Throughput as a share of the payload rate at line rate.
            #[getter]
            fn utilisation(&self) -> f64 {
                let payload_share = self.payload_bytes as f64 / self.packet_bytes as f64;
                self.throughput_bps() / (self.line_rate_bps * payload_share)
            }

            /// Lost packets as a share of the lost and acknowledged packets.
            #[getter]
            fn lost_share(&self) -> f64 {
                let lost = self.losses as f64;
                lost / (lost + self.acked_bytes as f64 / self.payload_bytes as f64).max(1.0)
            }

            /// RTT beyond the base RTT, in base RTTs.
            #[getter]
            fn queueing(&self) -> f64 {
                self.rtt_s / self.base_rtt_s - 1.0
            }

            /// Packets per base RTT at line rate.
            #[getter]
            fn pipe_packets(&self) -> f64 {
                self.line_rate_bps * self.base_rtt_s / (8.0 * self.packet_bytes as f64)
            }
        }
    };
}

interval! {
    /// Number of the flow in the workload.
    flow: u64;
    /// Start time of the flow, in seconds.
    start_s: f64;
    /// Begin of the interval, in seconds.
    begin_s: f64;
    /// End of the interval, in seconds: its closing or the end of the flow.
    end_s: f64;
    /// Number of ACKs.
    acks: u64;
    /// Newly acknowledged payload, in bytes.
    acked_bytes: u64;
    /// Number of ACKs that reported an ECN mark.
    marks: u64;
    /// Packets newly detected as lost, by ACKs or by a timeout.
    losses: u64;
    /// Retransmission timeouts.
    timeouts: u64;
    /// Mean of the RTT samples, in seconds; without samples, the mean of the previous interval.
    rtt_s: f64;
    /// Slope of the RTT samples over time by linear regression, in seconds per second; 0 for fewer than two
    /// samples.
    rtt_gradient: f64;
    /// Payload in flight after the last ACK, in bytes.
    in_flight_bytes: u64;
    /// Allowance in full packets: packets in flight, or packets per base RTT for a rate.
    allowed_packets: f64;
    /// Payload that is not yet acknowledged, in bytes; None for an unbounded flow.
    left_bytes: Option<u64>;
    /// RTT of a full packet in an empty network, in seconds.
    base_rtt_s: f64;
    /// Line rate of the sending host's NIC, in bits per second.
    line_rate_bps: f64;
    /// Size of a full packet on the link, in bytes.
    packet_bytes: u64;
    /// Payload of a full packet, in bytes.
    payload_bytes: u64;
}

/// Monitor of a flow: counts ACKs and losses in successive intervals.
///
/// A controller that acts once per interval creates a monitor when it starts, `self.monitor =
/// path.monitor()`, and closes an interval at each decision. It then needs no `on_ack`, and costs little.
#[pyclass(frozen, module = "sojourn._core")]
pub(crate) struct Monitor {
    path: Path,
    counts: SharedCounts,
}

impl Monitor {
    /// Creates a monitor of a flow on `path` that reads `counts`.
    pub(crate) fn new(path: &Path, counts: &SharedCounts) -> Self {
        Self { path: path.clone(), counts: counts.clone() }
    }
}

#[pymethods]
impl Monitor {
    /// End the interval now, begin the next one, and return the ended interval.
    ///
    /// The controller passes its allowance during the interval, in full packets, which the interval stores.
    #[pyo3(signature = (now_s, allowed_packets=Number(0.0)))]
    fn close(&self, now_s: Number, allowed_packets: Number) -> PyResult<Interval> {
        let (Number(now_s), Number(allowed_packets)) = (now_s, allowed_packets);
        let mut counts = self.counts.lock();
        if !(now_s >= counts.begin_s && now_s.is_finite()) {
            let begin_s = counts.begin_s;
            let message = format!(
                "close: now_s must not be before the begin of the interval, {begin_s} s, not {now_s}"
            );
            return Err(PyValueError::new_err(message));
        }
        let next = Counts::next_interval(&counts, now_s);
        let counts = std::mem::replace(&mut *counts, next);
        let Path { flow, start, base_rtt, line_rate, format, .. } = &self.path;
        Ok(Interval {
            flow: *flow,
            start_s: start.seconds(),
            begin_s: counts.begin_s,
            end_s: now_s.min(counts.flow_end_s),
            acks: counts.acks,
            acked_bytes: counts.acked_bytes,
            marks: counts.marks,
            losses: counts.losses + counts.timeout_bytes.div_ceil(format.payload.0),
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
        })
    }
}

/// Counts that a controller updates and a monitor reads, in the same thread, so that the lock is never
/// contended.
#[derive(Clone)]
pub(crate) struct SharedCounts(Arc<Mutex<Counts>>);

impl SharedCounts {
    /// Creates the counts of a flow that starts on `path`.
    pub(crate) fn new(path: &Path) -> Self {
        let left_bytes = path.size.map(|size| size.0);
        let counts = Counts::new(path.start.seconds(), path.base_rtt.seconds(), left_bytes);
        Self(Arc::new(Mutex::new(counts)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts since the begin of the interval.
pub(crate) struct Counts {
    begin_s: f64,
    /// Time when all payload was acknowledged.
    flow_end_s: f64,
    acks: u64,
    acked_bytes: u64,
    marks: u64,
    /// Packets that ACKs revealed as lost.
    losses: u64,
    timeouts: u64,
    /// Payload that timeouts declared lost.
    timeout_bytes: u64,
    in_flight_bytes: u64,
    left_bytes: Option<u64>,
    /// Means of the RTT samples and their times, and the sums for the regression.
    rtt_s: f64,
    time_s: f64,
    time_squares: f64,
    time_rtt_products: f64,
}

impl Counts {
    fn new(begin_s: f64, base_rtt_s: f64, left_bytes: Option<u64>) -> Self {
        Self {
            begin_s,
            flow_end_s: f64::INFINITY,
            acks: 0,
            acked_bytes: 0,
            marks: 0,
            losses: 0,
            timeouts: 0,
            timeout_bytes: 0,
            in_flight_bytes: 0,
            left_bytes,
            rtt_s: base_rtt_s,
            time_s: 0.0,
            time_squares: 0.0,
            time_rtt_products: 0.0,
        }
    }

    /// Returns the initial counts of the next interval.
    fn next_interval(&self, begin_s: f64) -> Self {
        let Self { flow_end_s, in_flight_bytes, left_bytes, rtt_s, .. } = *self;
        Self { flow_end_s, in_flight_bytes, ..Self::new(begin_s, rtt_s, left_bytes) }
    }

    /// Adds a congestion event. Losses that ACKs reveal are counted with these.
    pub(crate) fn count_loss(&mut self, loss: &Loss) {
        self.timeouts += u64::from(loss.signal == CongestionSignal::Timeout);
        self.timeout_bytes += loss.lost.0;
    }

    /// Adds an ACK.
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
        // Welford's algorithm.
        let (time_offset_s, rtt_offset_s) = (now_s - self.time_s, rtt_s - self.rtt_s);
        self.time_s += time_offset_s / self.acks as f64;
        self.rtt_s += rtt_offset_s / self.acks as f64;
        self.time_squares += time_offset_s * (now_s - self.time_s);
        self.time_rtt_products += time_offset_s * (rtt_s - self.rtt_s);
        if let Some(left) = &mut self.left_bytes {
            *left = left.saturating_sub(ack.bytes.0);
            if *left == 0 {
                self.flow_end_s = self.flow_end_s.min(now_s);
            }
        }
    }

    fn rtt_gradient(&self) -> f64 {
        if self.time_squares > 0.0 { self.time_rtt_products / self.time_squares } else { 0.0 }
    }
}

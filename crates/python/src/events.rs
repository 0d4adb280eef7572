//! Python classes of what controllers receive and return.

use std::sync::OnceLock;

use pyo3::{pyclass, pymethods};
use sojourn_core::base::units::{Rate, Time};
use sojourn_core::model::telemetry::{self, TelemetryStack};
use sojourn_core::transport::{self, CongestionSignal};

use super::monitor::{Monitor, SharedCounts};
use super::values::Number;

/// Declares the Python class of an event: a wrapper of a struct of the core with read-only attributes, and
/// optionally more state and methods.
macro_rules! event_class {
    (
        $(#[doc = $class_doc:literal])+
        $(#[$option:meta])?
        $name:ident $(with $state:ty)? {
            $( $(#[doc = $doc:literal])+ $field:ident : $type:ty = $read:expr; )+
        }
        $($methods:tt)*
    ) => {
        $(#[doc = $class_doc])+
        #[pyclass(module = "sojourn._core" $(, $option)?)]
        pub(crate) struct $name(pub(crate) transport::$name $(, pub(crate) $state)?);

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

event_class! {
    /// Properties of a flow and its path that are known when the flow starts.
    #[frozen]
    Path with OnceLock<SharedCounts> {
        /// Number of the flow in the workload.
        flow: u64 = |path| path.flow;
        /// Line rate of the sending host's NIC, in bits per second.
        line_rate_bps: f64 = |path| path.line_rate.bps();
        /// RTT of a full packet and its ACK in an empty network, in seconds.
        base_rtt_s: f64 = |path| path.base_rtt.seconds();
        /// Links on the forward path.
        hops: u32 = |path| path.hops;
        /// Payload of a full packet, in bytes.
        payload_bytes: u64 = |path| path.format.payload.0;
        /// Size of a full packet on the link, in bytes.
        packet_bytes: u64 = |path| path.format.full().0;
        /// Other live flows at the sending host.
        others: u32 = |path| path.other_flows;
        /// Initial rate that the workload specifies, in bits per second.
        initial_rate_bps: Option<f64> = |path| path.initial_rate.map(Rate::bps);
        /// Payload to transfer, in bytes; None for an unbounded flow.
        size_bytes: Option<u64> = |path| path.size.map(|size| size.0);
        /// Start time of the flow, in seconds.
        start_s: f64 = |path| path.start.seconds();
        /// Deadline of the flow, in seconds; None without one.
        deadline_s: Option<f64> = |path| (path.deadline < Time::NEVER).then(|| path.deadline.seconds());
        /// Seed for random numbers of the controller.
        seed: u64 = |path| path.seed;
    }

    /// Return a monitor that counts the flow's ACKs and losses from now on, for controllers that act once per
    /// monitor interval and need no `on_ack`.
    fn monitor(&self) -> Monitor {
        Monitor::new(&self.0, self.1.get_or_init(|| SharedCounts::new(&self.0)))
    }
}

event_class! {
    /// End of the handshake.
    #[frozen]
    Opened {
        /// Arrival time of the SYN-ACK, in seconds.
        now_s: f64 = |opened| opened.now.seconds();
        /// RTT of the last attempt, in seconds.
        rtt_s: f64 = |opened| opened.rtt.seconds();
        /// True if SYNs were lost.
        syn_was_lost: bool = |opened| opened.syn_was_lost;
    }
}

/// State of a switch's port when the transmission of a packet starts.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub(crate) struct HopTelemetry {
    /// Start of the transmission, in seconds.
    time_s: f64,
    /// Start of the transmission in picoseconds, exact.
    time_ps: u64,
    /// Bytes that the port transmitted before.
    transmitted_bytes: u64,
    /// Bytes that wait at the port.
    queued_bytes: u64,
    /// Nominal rate of the port's link, in bits per second.
    rate_bps: f64,
}

impl From<&telemetry::HopTelemetry> for HopTelemetry {
    fn from(hop: &telemetry::HopTelemetry) -> Self {
        Self {
            time_s: hop.time.seconds(),
            time_ps: hop.time.0,
            transmitted_bytes: hop.transmitted.0,
            queued_bytes: hop.queued.0,
            rate_bps: hop.rate.bps(),
        }
    }
}

event_class! {
    /// Acknowledgement. One object is reused for all ACKs; its values are valid until the next ACK.
    Ack with TelemetryStack {
        /// Arrival time, in seconds.
        now_s: f64 = |ack| ack.now.seconds();
        /// Arrival time in picoseconds, exact.
        now_ps: u64 = |ack| ack.now.0;
        /// Payload that is newly known to be delivered, in bytes.
        acked_bytes: u64 = |ack| ack.bytes.0;
        /// Segments by which the cumulative acknowledgement advanced.
        advanced: u32 = |ack| ack.advanced;
        /// Segments that are newly known to be delivered, in order or not.
        delivered: u32 = |ack| ack.delivered;
        /// RTT that the host measured, in seconds.
        rtt_s: f64 = |ack| ack.rtt.seconds();
        /// RTT in picoseconds, exact.
        rtt_ps: u64 = |ack| ack.rtt.0;
        /// True if the ACK reports an ECN mark.
        marked: bool = |ack| ack.marked;
        /// One-way delay of the acknowledged packet, in seconds by the hosts' clocks, if the class sets
        /// `tells_delay`.
        one_way_delay_s: f64 = |ack| f64::from(ack.feedback);
        /// Time when the acknowledged packet was sent, in seconds.
        sent_at_s: f64 = |ack| ack.sent_at.seconds();
        /// First segment that is not acknowledged.
        cumulative: u32 = |ack| ack.cumulative;
        /// First segment that was never sent.
        next: u32 = |ack| ack.next;
        /// True during fast recovery.
        is_recovering: bool = |ack| ack.is_recovering;
        /// Segments newly detected as lost.
        lost: u32 = |ack| ack.lost;
        /// Estimated payload in flight, in bytes.
        in_flight_bytes: u64 = |ack| ack.in_flight.0;
        /// True if the window limits the flow, and not the application, the receive window or the host;
        /// always true unless `reliability.window_validation` is on. Otherwise the window should not grow.
        is_window_limited: bool = |ack| ack.is_window_limited();
    }

    /// Telemetry of the switches that the acknowledged packet passed, in order, if the class sets `telemetry`;
    /// otherwise empty.
    #[getter]
    fn hops(&self) -> Vec<HopTelemetry> {
        self.1.hops().iter().map(HopTelemetry::from).collect()
    }
}

event_class! {
    /// Congestion event: a loss, or an ECN mark that is handled as a loss.
    #[frozen]
    Loss {
        /// Time of detection, in seconds.
        now_s: f64 = |loss| loss.now.seconds();
        /// Time of detection in picoseconds, exact.
        now_ps: u64 = |loss| loss.now.0;
        /// Payload sent and not yet acknowledged, lost or not, in bytes.
        flight_bytes: u64 = |loss| loss.flight.0;
        /// Payload that a timeout newly declares lost, in bytes; 0 for other signals, whose losses
        /// `Ack.lost` reports.
        lost_bytes: u64 = |loss| loss.lost.0;
        /// First segment that is not acknowledged.
        cumulative: u32 = |loss| loss.cumulative;
        /// Signal that revealed the congestion: `gap` (loss detected from ACKs), `timeout` or `mark`.
        sign: &'static str = |loss| match loss.signal {
            CongestionSignal::DetectedLoss => "gap",
            CongestionSignal::Timeout => "timeout",
            CongestionSignal::EcnMark => "mark",
        };
    }
}

/// Permission to send: a window for the data in flight, and optionally a rate.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub(crate) struct Allowance {
    pub(crate) window_bytes: f64,
    pub(crate) rate_bps: Option<f64>,
    pub(crate) gives_up: bool,
}

#[pymethods]
impl Allowance {
    #[new]
    #[pyo3(signature = (window_bytes=Number(f64::INFINITY), rate_bps=None, *, gives_up=false))]
    fn new(window_bytes: Number, rate_bps: Option<Number>, gives_up: bool) -> Self {
        Self { window_bytes: window_bytes.0, rate_bps: rate_bps.map(|rate| rate.0), gives_up }
    }
}

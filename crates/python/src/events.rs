//! Python classes of what controllers receive and return.

use std::sync::OnceLock;

use pyo3::exceptions::PyValueError;
use pyo3::{PyResult, pyclass, pymethods};
use sojourn_core::base::units::{Bytes, Duration, Rate, Time};
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
    /// Payload that may be in flight, in bytes. ACKs open it; with credits, a flow with a size has none
    /// before its last.
    pub(crate) window_bytes: f64,
    /// Rate in bits per second; None for no pacing.
    pub(crate) rate_bps: Option<f64>,
    /// Number of segments from the start of the flow that credits permit; None for no such limit.
    pub(crate) granted_segments: Option<f64>,
    /// True if the flow is terminated: its sender sends no more data.
    pub(crate) gives_up: bool,
}

#[pymethods]
impl Allowance {
    #[new]
    #[pyo3(signature = (
        window_bytes=Number(f64::INFINITY), rate_bps=None, *, granted_segments=None, gives_up=false
    ))]
    fn new(
        window_bytes: Number,
        rate_bps: Option<Number>,
        granted_segments: Option<Number>,
        gives_up: bool,
    ) -> Self {
        let [rate_bps, granted_segments] =
            [rate_bps, granted_segments].map(|given| given.map(|Number(number)| number));
        Self { window_bytes: window_bytes.0, rate_bps, granted_segments, gives_up }
    }
}

event_class! {
    /// Data packet that is about to be sent.
    #[frozen]
    OutgoingPacket {
        /// Current time, in seconds.
        now_s: f64 = |packet| packet.now.seconds();
        /// Payload of the flow that is not known to be delivered, in bytes; None for an unbounded flow.
        remaining_bytes: Option<u64> = |packet| finite(packet.remaining);
        /// Offset of the packet's payload in the flow, in bytes.
        offset_bytes: u64 = |packet| packet.offset.0;
        /// True if the segment was sent before.
        is_retransmit: bool = |packet| packet.is_retransmit;
        /// Payload that is to be sent after this packet, in bytes; None for an unbounded flow.
        unsent_bytes: Option<u64> = |packet| finite(packet.unsent);
    }
}

/// Returns an amount that is not the largest one, which stands for unbounded flows.
fn finite(bytes: Bytes) -> Option<u64> {
    (bytes.0 < u64::MAX).then_some(bytes.0)
}

/// Priority and number in the header of a data packet.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub(crate) struct Header {
    /// Priority class, 0 is the highest.
    pub(crate) priority: u32,
    /// Number that the receiving host's scheduler gets in `Arrival.number`; 0 without a `credit_scheduler`.
    pub(crate) number: u32,
}

#[pymethods]
impl Header {
    #[new]
    #[pyo3(signature = (priority=0, *, number=0))]
    fn new(priority: i128, number: i128) -> PyResult<Self> {
        let [priority, number] =
            [("priority", priority), ("number", number)].map(|(name, value)| in_range(name, value));
        Ok(Self { priority: priority?, number: number? })
    }

    fn __repr__(&self) -> String {
        format!("Header({}, number={})", self.priority, self.number)
    }
}

/// Returns an argument that fits 32 bits.
fn in_range(name: &str, value: i128) -> PyResult<u32> {
    u32::try_from(value).map_err(|_| {
        PyValueError::new_err(format!("{name} must be from 0 to {}, not {value}", u32::MAX))
    })
}

/// Credit of a receiving host for a flow.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub(crate) struct Credit {
    /// Number of the flow in the workload.
    pub(crate) flow: u64,
    /// Number of the scheduler's choice, such as that of a token.
    pub(crate) number: u32,
    /// Priority that the scheduler chose for the packet, 0 is the highest.
    pub(crate) priority: u32,
    /// True if the credit names a segment that the receiver lacks: the sender sends it again if it was sent.
    /// Credits of a flow with a size name its missing segments in turn, those in flight too.
    pub(crate) resend: bool,
}

#[pymethods]
impl Credit {
    #[new]
    #[pyo3(signature = (flow, *, number=0, priority=0, resend=false))]
    fn new(flow: i128, number: i128, priority: i128, resend: bool) -> PyResult<Self> {
        let [number, priority] =
            [("number", number), ("priority", priority)].map(|(name, value)| in_range(name, value));
        let flow: u32 = in_range("flow", flow)?;
        Ok(Self { flow: flow.into(), number: number?, priority: priority?, resend })
    }

    fn __repr__(&self) -> String {
        let resend = if self.resend { "True" } else { "False" };
        format!(
            "Credit({}, number={}, priority={}, resend={resend})",
            self.flow, self.number, self.priority
        )
    }
}

event_class! {
    /// Receiving host, as its credit scheduler knows it.
    #[frozen]
    CreditHost with u64 {
        /// Rate at which data arrives at the host, in bits per second.
        line_rate_bps: f64 = |host| host.line_rate.bps();
        /// Payload of a full packet, in bytes.
        payload_bytes: u64 = |host| host.format.payload.0;
        /// Size of a full packet on the link, in bytes.
        packet_bytes: u64 = |host| host.format.full().0;
        /// Time of a full packet at the host's rate, in picoseconds.
        packet_time_ps: u64 = |host| host.line_rate.transmit(host.format.full()).0;
        /// RTT of a full packet and its ACK on the longest path of the empty network, in picoseconds.
        base_rtt_ps: u64 = |host| host.base_rtt.0;
    }

    /// Seed for random numbers of the scheduler.
    #[getter]
    fn seed(&self) -> u64 {
        self.1
    }
}

event_class! {
    /// Flow that ends at a host.
    #[frozen]
    InboundFlow with Duration {
        /// Number of the flow in the workload.
        flow: u32 = |inbound| inbound.flow;
        /// Number of the sending host.
        source: u32 = |inbound| inbound.source;
        /// Line rate of the sending host's NIC, in bits per second.
        line_rate_bps: f64 = |inbound| inbound.line_rate.bps();
        /// Number of segments; None for an unbounded flow.
        segments: Option<u32> = |inbound| (inbound.segments < u32::MAX).then_some(inbound.segments);
        /// Payload, in bytes; None for an unbounded flow.
        size_bytes: Option<u64> = |inbound| inbound.size.map(|size| size.0);
    }

    /// Time of a full packet at the rate of the sending host, in picoseconds.
    #[getter]
    fn packet_time_ps(&self) -> u64 {
        self.1.0
    }
}

/// Packet of a flow that has arrived at its receiving host.
#[pyclass(frozen, get_all, module = "sojourn._core")]
pub(crate) struct Arrival {
    /// "request" for credit, or "data".
    kind: &'static str,
    /// Number in the packet's header.
    number: u32,
    /// True for data that had not arrived before.
    is_new: bool,
}

impl From<transport::Arrival> for Arrival {
    fn from(arrival: transport::Arrival) -> Self {
        match arrival {
            transport::Arrival::Request { number } => {
                Self { kind: "request", number, is_new: false }
            }
            transport::Arrival::Data { number, is_new } => Self { kind: "data", number, is_new },
            transport::Arrival::Trimmed { .. } => {
                unreachable!("receivers answer no trimmed packets of these transports")
            }
        }
    }
}

//! Rates from the telemetry of a path: utilisation of its fullest link, and a rate that ACKs compute from a
//! reference of the last RTT ([hpcc19] Algorithm 1, which [powertcp22] shares).

use crate::base::schema::Problem;
use crate::base::units::{Bytes, Duration, Time};
use crate::model::telemetry::{HopTelemetry, TelemetryStack};
use crate::transport::blocks::path_scaled::FlowRate;
use crate::transport::{Ack, Allowance, Mechanism, Path, Reliability, Signalling};

/// Returns the options of a rate within a window, with telemetry.
pub fn mechanism(reliability: &Reliability) -> Mechanism {
    Mechanism { signalling: Signalling::Telemetry, ..Mechanism::paced_window(reliability) }
}

/// Rejects parameters that leave packets without an ACK, since the rate follows every packet's telemetry.
pub fn check(reliability: &Reliability) -> Result<(), Problem> {
    reliability.require_ack_per_packet("each ACK returns the telemetry of one packet")
}

/// Change of a hop between two packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Length, in seconds.
    pub length: f64,
    /// Rate of transmission, as a fraction of the link's rate.
    pub transmission: f64,
    /// Delay of the queue at both ends of the interval, in seconds at the link's rate.
    pub queueing: [f64; 2],
}

impl Interval {
    /// Returns the change between two packets at one hop; none if both have the same time.
    fn between(before: &HopTelemetry, after: &HopTelemetry) -> Option<Self> {
        let length = after.time.since(before.time).seconds();
        let seconds = |bytes: Bytes| bytes.bits() / after.rate.bps();
        let transmitted = Bytes(after.transmitted.0.saturating_sub(before.transmitted.0));
        (length > 0.0).then(|| Self {
            length,
            transmission: seconds(transmitted) / length,
            queueing: [before, after].map(|hop| seconds(hop.queued)),
        })
    }
}

/// Utilisation of the fullest link of a path, averaged over an RTT.
pub struct Utilisation {
    /// Average; 1 for a full link without a queue.
    pub average: f64,
    /// Base RTT of the network, in seconds.
    base_rtt: f64,
    /// Factor of the units of counters; none for exact counters.
    quantum: Option<u64>,
    /// Telemetry of the ACK that is being handled.
    present: TelemetryStack,
    /// Telemetry of the last ACK that was handled.
    last: TelemetryStack,
}

impl Utilisation {
    /// Returns a full path. With `is_quantised`, counters have the units of [hpcc19]'s simulator at this
    /// line rate.
    pub fn new(base_rtt: Duration, is_quantised: bool, path: &Path) -> Self {
        Self {
            average: 1.0,
            base_rtt: base_rtt.seconds(),
            quantum: is_quantised.then(|| (path.line_rate.0 / 25_000_000_000).max(1)),
            present: TelemetryStack::default(),
            last: TelemetryStack::default(),
        }
    }

    /// Stores the telemetry of the ACK that is handled next.
    pub fn receive(&mut self, path: &TelemetryStack) {
        let quantum = self.quantum;
        self.present.copy(path, |hop| quantum.map_or(*hop, |quantum| rounded(hop, quantum)));
    }

    /// Handles the first ACK of a flow.
    pub fn start(&mut self) {
        std::mem::swap(&mut self.last, &mut self.present);
    }

    /// Returns true if no switch reports: a cable joins the two hosts, and their NICs alone limit the flow.
    pub fn has_no_hops(&self) -> bool {
        self.present.hops().is_empty()
    }

    /// Averages the largest `load` of the path's links since the last ACK. Another path only replaces the
    /// last one, since its ports have other counters ([hpcc19]).
    pub fn update(&mut self, load: impl Fn(&Interval) -> f64) {
        let [before, after] = [&self.last, &self.present].map(TelemetryStack::hops);
        if self.present.has_path_of(&self.last) {
            let intervals = before.iter().zip(after);
            let intervals =
                intervals.filter_map(|(before, after)| Interval::between(before, after));
            let loads = intervals.map(|interval| (load(&interval), interval.length));
            if let Some((largest, length)) = loads.reduce(|a, b| if b.0 > a.0 { b } else { a }) {
                self.average_in(largest, length);
            }
        }
        std::mem::swap(&mut self.last, &mut self.present);
    }

    /// Averages a sample of this length in seconds.
    fn average_in(&mut self, sample: f64, length: f64) {
        let weight = length.min(self.base_rtt) / self.base_rtt;
        self.average = self.average * (1.0 - weight) + sample * weight;
    }
}

/// Rounds counters down to the units of [hpcc19]'s simulator.
fn rounded(hop: &HopTelemetry, quantum: u64) -> HopTelemetry {
    let floor = |value: u64, unit: u64| value / unit * unit;
    HopTelemetry {
        time: Time(floor(hop.time.0, 1_000)),
        transmitted: Bytes(floor(hop.transmitted.0, 128 * quantum)),
        queued: Bytes(floor(hop.queued.0, 80 * quantum)),
        rate: hop.rate,
    }
}

crate::choices! {
    /// ACKs that change the rate.
    pub enum Reaction {
        /// Every ACK sets the rate, from a reference that changes once per RTT.
        Combined = "combined",
        /// Every ACK sets the rate and the reference.
        PerAck = "per_ack",
        /// One ACK per RTT sets the rate and the reference.
        PerRtt = "per_rtt",
    }
}

/// Rate of a flow, within a window of the rate times the base RTT.
pub struct ReferenceRate {
    /// Rate of the last RTT, from which ACKs compute the rate, in bits per second.
    pub reference: f64,
    /// Reference before its last change, in bits per second.
    previous: f64,
    /// In bits per second.
    pub rate: f64,
    min_rate: f64,
    line_rate: f64,
    reaction: Reaction,
    /// Number of the first segment that was not sent at the last change of the reference, and the time; none
    /// before the first ACK.
    changed_at: Option<(u32, Time)>,
}

impl ReferenceRate {
    /// Returns the line rate, or the initial rate of the workload.
    pub fn new(min_rate: FlowRate, reaction: Reaction, path: &Path) -> Self {
        let line_rate = path.line_rate.bps();
        let rate = path.initial_rate.map_or(line_rate, |rate| rate.bps().min(line_rate));
        Self {
            reference: rate,
            previous: rate,
            rate,
            min_rate: min_rate.bps(line_rate).min(line_rate),
            line_rate,
            reaction,
            changed_at: None,
        }
    }

    /// Returns true if the ACK is the first.
    pub fn is_first(&self) -> bool {
        self.changed_at.is_none()
    }

    /// Starts the first RTT.
    pub fn start(&mut self, ack: &Ack) {
        self.changed_at = Some((ack.next, ack.now));
    }

    /// Returns true if the ACK ends an RTT: it is of a packet sent after the last change. While a segment is
    /// missing, the cumulative acknowledgement does not show that.
    fn ends_rtt(&self, ack: &Ack) -> bool {
        self.changed_at.is_some_and(|(next, time)| {
            ack.cumulative > next || ack.advanced == 0 && ack.sent_at > time
        })
    }

    /// Returns the reference at the time when the acknowledged packet was sent.
    pub fn when_sent(&self, ack: &Ack) -> f64 {
        if self.ends_rtt(ack) { self.reference } else { self.previous }
    }

    /// Returns true if the ACK changes the rate.
    pub fn reacts(&self, ack: &Ack) -> bool {
        self.reaction != Reaction::PerRtt || self.ends_rtt(ack)
    }

    /// Sets the rate. Returns true if this changes the reference, too.
    pub fn set(&mut self, rate: f64, ack: &Ack) -> bool {
        self.rate = rate.clamp(self.min_rate, self.line_rate);
        let changes = self.reaction == Reaction::PerAck || self.ends_rtt(ack);
        if changes {
            self.previous = self.reference;
            self.reference = self.rate;
            self.changed_at = self.changed_at.max(Some((ack.next, ack.now)));
        }
        changes
    }

    /// Returns the rate, within a window of the rate times the base RTT.
    pub fn allowance(&self, base_rtt: f64) -> Allowance {
        Allowance::rate_within(self.rate, self.window(base_rtt))
    }

    /// Returns the window in bytes.
    fn window(&self, base_rtt: f64) -> f64 {
        self.rate * base_rtt / 8.0
    }

    /// Returns the gauges of the rate and the window, and a further one.
    pub fn gauges(&self, base_rtt: f64, other: (&'static str, f64)) -> Vec<(&'static str, f64)> {
        vec![("rate_bps", self.rate), ("window_bytes", self.window(base_rtt)), other]
    }
}

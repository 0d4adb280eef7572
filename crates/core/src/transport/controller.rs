//! Interface of congestion controllers: the trait, its events and its results.

use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::host_clock::Stamps;
use crate::model::packet::{Format, Header, Kind};
use crate::model::telemetry::TelemetryStack;
use crate::transport::recovery::sleek;

/// Properties of a flow and its path that are known when the flow starts.
#[derive(Clone, Debug)]
pub struct Path {
    /// The flow's number in the workload.
    pub flow: u64,
    /// Line rate of the sending host's NIC.
    pub line_rate: Rate,
    /// Highest rate at which a sender may pace: the line rate, or `Rate(u64::MAX)` if flows end at routers,
    /// which have no NIC.
    pub max_pacing_rate: Rate,
    /// RTT of a full packet and its ACK in an empty network.
    pub base_rtt: Duration,
    /// The same over the longest path of the network.
    pub longest_rtt: Duration,
    /// Links on the forward path.
    pub hops: u32,
    /// Packet sizes.
    pub format: Format,
    /// Other live flows at the sending host.
    pub other_flows: u32,
    /// Initial rate that the workload specifies.
    pub initial_rate: Option<Rate>,
    /// Payload to transfer; `None` for an unbounded flow.
    pub size: Option<Bytes>,
    /// Time when the flow starts.
    pub start: Time,
    /// Deadline of the flow; [`Time::NEVER`] without one.
    pub deadline: Time,
    /// Point at which packets get the timestamps for RTT samples.
    pub stamps: Stamps,
    /// Seed for random numbers of the controller.
    pub seed: u64,
    /// State cached by finished flows between the same hosts.
    pub cached_state: CachedPathState,
}

/// State that a finished flow caches for the next flow between the same hosts (temporal sharing, RFC 9040).
/// The cache belongs to one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CachedPathState {
    /// Rate of the last flow whose controller caches one.
    pub rate: Option<CachedRate>,
    /// SRTT and RTTVAR ([`Reliability::cached_rtt`](super::Reliability::cached_rtt)).
    pub rtt: Option<(Duration, Duration)>,
    /// ssthresh, in bytes ([`Reliability::cached_ssthresh`](super::Reliability::cached_ssthresh)).
    pub ssthresh: Option<f64>,
}

impl CachedPathState {
    /// Updates ssthresh at the end of a flow with this window and ssthresh, in bytes (Linux,
    /// `tcp_update_metrics`).
    pub fn update_ssthresh(&mut self, cwnd: f64, ssthresh: f64, is_recovering: bool) {
        self.ssthresh = match self.ssthresh {
            // A slow start without an end gives no value, but may show that the cached one is too small.
            cached if ssthresh.is_infinite() => cached.map(|cached| cached.max(cwnd / 2.0)),
            _ if cwnd >= ssthresh && !is_recovering => Some(ssthresh.max(cwnd / 2.0)),
            cached => cached.map(|cached| cached.max(ssthresh)),
        };
    }
}

/// Rate that a finished flow caches for the next flow between the same hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CachedRate {
    /// Rate of the flow, in bits per second.
    pub rate: f64,
    /// Share of the rate that the next flow may use.
    pub share: f64,
    /// Minimum measured one-way delay, in seconds by the hosts' clocks; infinite without a measurement.
    pub min_one_way_delay: f64,
}

impl CachedRate {
    /// Returns a rate that the next flow may use in full, without a delay.
    pub fn new(rate: f64) -> Self {
        Self { rate, share: 1.0, min_one_way_delay: f64::INFINITY }
    }
}

impl Path {
    /// Returns the path of an unbounded flow over one link, with defaults for the other properties.
    pub fn new(line_rate: Rate, base_rtt: Duration, format: Format) -> Self {
        Self {
            flow: 0,
            line_rate,
            max_pacing_rate: line_rate,
            base_rtt,
            longest_rtt: base_rtt,
            hops: 1,
            format,
            other_flows: 0,
            initial_rate: None,
            size: None,
            start: Time::ZERO,
            deadline: Time::NEVER,
            stamps: Stamps::Handed,
            seed: 0,
            cached_state: CachedPathState::default(),
        }
    }
}

/// Congestion control algorithm of one flow: receives events, and returns how much may be sent.
///
/// Events are structs, so that new information for an algorithm is a new field and changes no
/// signature.
pub trait Controller: Send {
    /// Handles the end of the handshake; not called without a handshake.
    fn on_open(&mut self, _opened: &Opened) {}

    /// Handles the telemetry of the path that an acknowledgement returns, before
    /// [`on_ack`](Self::on_ack); called only with
    /// [`Signalling::Telemetry`](super::Signalling::Telemetry).
    fn on_telemetry(&mut self, _path: &TelemetryStack) {}

    /// Handles an acknowledgement.
    fn on_ack(&mut self, ack: &Ack);

    /// Handles a congestion event: called once per window of data for losses and marks that ACKs
    /// reveal, and for every timeout.
    fn on_loss(&mut self, _loss: &Loss) {}

    /// Saves the state before a loss that may turn out to be spurious; called only with
    /// [`Reliability::undo`](super::Reliability::undo).
    fn save_state(&mut self, _now: Time) {}

    /// Restores the saved state: the losses since then were spurious.
    fn on_spurious_loss(&mut self, _now: Time) {}

    /// Handles a credit of the receiving host. `is_lost` is true if it reveals that a segment is lost.
    /// Returns true if the sender answers it with a request.
    fn on_credit(&mut self, _now: Time, _credit: &Credit, _is_lost: bool) -> bool {
        false
    }

    /// Handles the return of a packet's header by a queue without room for it.
    fn on_returned(&mut self) {}

    /// Handles a congestion notification packet (CNP).
    fn on_notification(&mut self, _now: Time) {}

    /// Handles the transmission of a data packet. Returns the allowance if that may have changed it.
    fn on_sent(&mut self, _now: Time, _bytes: Bytes) -> Option<Allowance> {
        None
    }

    /// Handles the next flow of a persistent connection, if all data before it is acknowledged, or the end of
    /// an RTO in which the window did not limit the connection.
    fn on_restart(&mut self, _restart: &Restart) {}

    /// Handles the end of the data to send, while the window permits more; called only on persistent
    /// connections.
    fn on_app_limited(&mut self) {}

    /// Handles the timer that [`next_timer`](Self::next_timer) returned.
    fn on_timer(&mut self, _now: Time) {}

    /// Returns when to call [`on_timer`](Self::on_timer).
    fn next_timer(&self) -> Time {
        Time::NEVER
    }

    /// Returns how much may be sent.
    fn allowance(&self) -> Allowance;

    /// Returns the bounds by which losses are detected; called only with
    /// [`Mechanism::sleek`](super::Mechanism::sleek).
    fn loss_bounds(&self) -> Option<sleek::Bounds> {
        None
    }

    /// Returns the header for routers and queues of a packet to send; called only with
    /// [`Mechanism::signalling`](super::Mechanism::signalling).
    fn header(&self, _packet: &OutgoingPacket) -> Header {
        Header::NONE
    }

    /// Returns the next packet of a probe train, if one is due now; called only with
    /// [`Mechanism::sends_trains`](super::Mechanism::sends_trains).
    fn next_train_packet(&mut self, _now: Time) -> Option<TrainPacket> {
        None
    }

    /// Returns the rate of the finished flow to cache for the next flow between the same hosts.
    fn cached_rate(&self) -> Option<CachedRate> {
        None
    }

    /// Returns window and ssthresh in bytes, if the controller has both.
    fn congestion_window(&self) -> Option<(f64, f64)> {
        None
    }

    /// Returns named values for traces over time, such as a window in bytes, always the same names in
    /// the same order.
    fn gauges(&self) -> Vec<(&'static str, f64)>;
}

/// Packet of a probe train. The controller schedules it; pacing does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrainPacket {
    /// The next data segment, if there is one.
    Segment,
    /// A packet of this size on the link without payload, which the receiver acknowledges.
    Padding(Bytes),
}

/// Packet that is about to be sent, as reported to controllers.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingPacket {
    /// Current time.
    pub now: Time,
    /// Kind of packet.
    pub kind: Kind,
    /// Payload of the flow that is not known to be delivered; `u64::MAX` for an unbounded flow.
    pub remaining: Bytes,
    /// Offset of this packet's payload in the flow; 0 without payload.
    pub offset: Bytes,
    /// True if the segment was sent before.
    pub is_retransmit: bool,
    /// Payload that is to be sent after this packet, for the first time or again.
    pub unsent: Bytes,
    /// Flows that share the host's port in turn and have a packet to send, this one included.
    pub flows: u32,
}

/// Permission to send: a window for the data in flight, and a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Payload that may be in flight; one packet is always permitted.
    pub window: Bytes,
    /// True if a short packet of a persistent connection takes its payload of the window, as in NICs that
    /// count bytes, and a part of the window permits a packet. Otherwise it takes that of a full packet, as
    /// in Linux.
    pub counts_bytes: bool,
    /// End of the segments that the receiver has granted; `u32::MAX` without credits.
    pub granted: u32,
    /// Rate on the link, where 0 pauses the flow; `None` for ACK clocking.
    pub rate: Option<Rate>,
    /// Interval of probes to routers while data waits for the rate; `None` for no probes.
    pub probe_interval: Option<Duration>,
    /// True if the flow is terminated early: the sender sends no more data.
    pub is_terminated: bool,
}

impl Allowance {
    /// Returns a window without pacing.
    pub fn window(bytes: f64) -> Self {
        Self {
            window: Bytes(bytes as u64),
            counts_bytes: false,
            granted: u32::MAX,
            rate: None,
            probe_interval: None,
            is_terminated: false,
        }
    }

    /// Returns a rate without a window.
    pub fn rate(bps: f64) -> Self {
        Self { rate: Some(Rate::from_bps(bps)), ..Self::granted(u32::MAX) }
    }

    /// Returns a rate within a window of bytes, of which a packet needs a part, as in [hpcc19]'s simulator.
    pub fn rate_within(bps: f64, window: f64) -> Self {
        Self { window: Bytes(window.ceil() as u64), counts_bytes: true, ..Self::rate(bps) }
    }

    /// Returns the number of packets with this payload that may be in flight.
    pub fn packets(&self, payload: Bytes) -> u32 {
        let window = self.window.0;
        let packets =
            if self.counts_bytes { window.div_ceil(payload.0) } else { window / payload.0 };
        u32::try_from(packets).unwrap_or(u32::MAX)
    }

    /// Returns the permission to send the segments before this one, without a window or a rate.
    pub fn granted(segments: u32) -> Self {
        Self {
            window: Bytes(u64::MAX),
            counts_bytes: false,
            granted: segments,
            rate: None,
            probe_interval: None,
            is_terminated: false,
        }
    }
}

/// Credit, as received by the sender of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// Number of the credit, with the meaning that the transport gives it: the count of credits, or the
    /// end of the granted segments.
    pub number: u32,
    /// First segment that the receiver lacks and has not granted to others: it is lost if it was sent.
    /// `u32::MAX` without one.
    pub segment: u32,
    /// Priority class of the data.
    pub class: u8,
}

/// End of the handshake, as reported to controllers.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// Arrival time of the SYN-ACK.
    pub now: Time,
    /// RTT of the last attempt, as the host measured it.
    pub rtt: Duration,
    /// Feedback that routers wrote into the SYN.
    pub feedback: f32,
    /// True if SYNs timed out more often than the configuration forgives, unless timestamps show that the
    /// first one was answered.
    pub syn_was_lost: bool,
}

/// End of an idle time of a connection, or of a time in which it did not use its window, as reported to
/// controllers.
#[derive(Clone, Copy, Debug)]
pub struct Restart {
    /// Current time.
    pub now: Time,
    /// Time since the host sent the last packet; zero if the connection was not idle.
    pub idle: Duration,
    /// Reduction of the window.
    pub reduction: WindowReduction,
}

/// Reduction of the window of a connection that was idle, or did not use its window, for more than an RTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowReduction {
    /// The window stays.
    None,
    /// The window halves this number of times, but not below the initial window.
    Halvings(u32),
    /// The window falls to the initial window.
    Initial,
    /// The window falls half way to what was used of it, or to the initial window.
    HalfwayTo {
        /// Largest part of the window that was used, in packets.
        used: u32,
    },
}

impl Restart {
    /// Returns the window and ssthresh afterwards, in the unit in which the initial window and a full packet
    /// are given.
    ///
    /// Linux (`tcp_cwnd_restart`, `tcp_cwnd_application_limited`) saves in ssthresh what it takes from the
    /// window, as RFC 2861 did; RFC 5681 §4.1 leaves ssthresh.
    pub fn window(&self, cwnd: f64, ssthresh: f64, initial: f64, packet: f64) -> (f64, f64) {
        let restart_window = initial.min(cwnd);
        match self.reduction {
            WindowReduction::None => (cwnd, ssthresh),
            WindowReduction::Halvings(halvings) => {
                let halved = cwnd / 2.0_f64.powi(halvings.min(64).cast_signed());
                (halved.max(restart_window), ssthresh.max(0.75 * cwnd))
            }
            WindowReduction::Initial => (restart_window, ssthresh),
            WindowReduction::HalfwayTo { used } => {
                let used = initial.max(f64::from(used) * packet);
                if used >= cwnd {
                    return (cwnd, ssthresh);
                }
                (f64::midpoint(cwnd, used), ssthresh.max(0.75 * cwnd))
            }
        }
    }
}

/// Acknowledgement, as reported to controllers.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Arrival time.
    pub now: Time,
    /// Payload that is newly known to be delivered.
    pub bytes: Bytes,
    /// Segments by which the cumulative acknowledgement advanced.
    pub advanced: u32,
    /// Segments that are newly known to be delivered, in order or not.
    pub delivered: u32,
    /// RTT that the host measured ([`crate::model::host_clock`]).
    pub rtt: Duration,
    /// True if the ACK reports an ECN mark.
    pub marked: bool,
    /// Feedback that routers wrote into the acknowledged packet; or the one-way delay of that packet,
    /// in seconds by the hosts' clocks, with
    /// [`AckPolicy::echoes_one_way_delay`](super::AckPolicy::echoes_one_way_delay).
    pub feedback: f32,
    /// Time when the acknowledged packet was sent.
    pub sent_at: Time,
    /// True if the acknowledged packet had no payload.
    pub is_probe_ack: bool,
    /// First segment that is not acknowledged (SND.UNA).
    pub cumulative: u32,
    /// First segment that was never sent (SND.NXT).
    pub next: u32,
    /// True during fast recovery, or while PRR reduces the window for a mark.
    pub is_recovering: bool,
    /// Segments newly detected as lost.
    pub lost: u32,
    /// Place where the packet was trimmed that a NACK refuses; none for an ACK.
    pub trimmed: Option<TrimmedAt>,
    /// Estimated payload in flight (`pipe` in RFC 6675).
    pub in_flight: Bytes,
    /// Largest payload in flight in the last window of data, if the window did not limit the flow; none if
    /// it did, or if windows are not validated
    /// ([`Reliability::window_validation`](super::Reliability::window_validation)).
    pub used_window: Option<Bytes>,
}

/// Place where a packet was trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimmedAt {
    /// The port to the receiving host.
    LastHop,
    /// An earlier port.
    EarlierHop,
}

impl Ack {
    /// Returns true if the window limits the flow. Otherwise the window must not grow (RFC 7661, RFC 9438
    /// §5.8).
    pub fn is_window_limited(&self) -> bool {
        self.used_window.is_none()
    }

    /// Returns true if a window of `bytes` may grow: it limits the flow, or, in slow start, it is less than
    /// twice what was in flight (Linux, `tcp_is_cwnd_limited`).
    pub fn permits_growth(&self, bytes: f64, is_in_slow_start: bool) -> bool {
        self.used_window.is_none_or(|used| is_in_slow_start && bytes < 2.0 * used.0 as f64)
    }
}

/// Congestion event: a loss, or a mark that is handled as a loss, as reported to controllers.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Time of detection.
    pub now: Time,
    /// Payload sent and not yet acknowledged, lost or not (`FlightSize` in RFC 5681).
    pub flight: Bytes,
    /// Payload that a timeout newly declares lost; zero for other signals, whose losses [`Ack::lost`]
    /// reports.
    pub lost: Bytes,
    /// Signal that revealed the congestion.
    pub signal: CongestionSignal,
    /// First segment that is not acknowledged (SND.UNA).
    pub cumulative: u32,
    /// True if a timeout interrupts a recovery that has reduced ssthresh already, which stays
    /// ([`Reliability::single_reduction`](super::Reliability::single_reduction)).
    pub is_repeated: bool,
}

/// Signal of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionSignal {
    /// Loss detected from ACKs, SACKs or NACKs.
    DetectedLoss,
    /// Retransmission timeout.
    Timeout,
    /// ECN mark without a loss, if marks are handled as losses
    /// ([`MarkFeedback::is_handled_as_loss`](super::MarkFeedback::is_handled_as_loss)).
    EcnMark,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_window_permits_a_packet_if_it_counts_bytes() {
        let packets = |allowance: Allowance| allowance.packets(Bytes(1000));
        let in_bytes = |window| packets(Allowance::rate_within(1e9, window));
        assert_eq!([7_500.0, 7_000.0, 0.5].map(in_bytes), [8, 7, 1]);
        assert_eq!(packets(Allowance::window(7_500.0)), 7);
        assert_eq!(packets(Allowance::granted(3)), u32::MAX);
    }

    #[test]
    fn windows_after_an_idle_time_are_between_the_initial_window_and_the_former() {
        let after = |reduction, cwnd, ssthresh| {
            let (now, idle) = (Time::ZERO, Duration::ZERO);
            Restart { now, idle, reduction }.window(cwnd, ssthresh, 10.0, 1.0)
        };
        // Linux, `tcp_cwnd_restart`: ssthresh is at least 3/4 of the window.
        for (reduction, cwnd, ssthresh, expected) in [
            (WindowReduction::None, 80.0, 50.0, (80.0, 50.0)),
            (WindowReduction::Halvings(1), 80.0, 50.0, (40.0, 60.0)),
            (WindowReduction::Halvings(2), 80.0, 70.0, (20.0, 70.0)),
            (WindowReduction::Halvings(5_000), 80.0, 50.0, (10.0, 60.0)),
            (WindowReduction::Halvings(1), 4.0, 2.0, (4.0, 3.0)),
            // RFC 5681 §4.1: RW = min(IW, cwnd).
            (WindowReduction::Initial, 80.0, 50.0, (10.0, 50.0)),
            (WindowReduction::Initial, 4.0, 2.0, (4.0, 2.0)),
            // Linux, `tcp_cwnd_application_limited`.
            (WindowReduction::HalfwayTo { used: 20 }, 100.0, 50.0, (60.0, 75.0)),
            (WindowReduction::HalfwayTo { used: 2 }, 100.0, 90.0, (55.0, 90.0)),
            (WindowReduction::HalfwayTo { used: 100 }, 100.0, 50.0, (100.0, 50.0)),
        ] {
            let (window, threshold) = after(reduction, cwnd, ssthresh);
            assert!((window - expected.0).abs() < 1e-9, "{reduction:?} of {cwnd}: {window}");
            assert!((threshold - expected.1).abs() < 1e-9, "{reduction:?}: {threshold}");
        }
    }

    #[test]
    fn the_cached_ssthresh_is_that_of_a_flow_that_left_slow_start() {
        // Linux, `tcp_update_metrics`: the branches in its order.
        for (cached, (cwnd, ssthresh, is_recovering), expected) in [
            (None, (80.0, f64::INFINITY, false), None),
            (Some(30.0), (80.0, f64::INFINITY, false), Some(40.0)),
            (Some(50.0), (80.0, f64::INFINITY, false), Some(50.0)),
            (Some(50.0), (25.0, 20.0, false), Some(20.0)),
            (Some(50.0), (60.0, 20.0, false), Some(30.0)),
            (Some(50.0), (25.0, 20.0, true), Some(50.0)),
            (Some(15.0), (10.0, 20.0, false), Some(20.0)),
            (None, (10.0, 20.0, false), None),
        ] {
            let mut state = CachedPathState { ssthresh: cached, ..CachedPathState::default() };
            state.update_ssthresh(cwnd, ssthresh, is_recovering);
            assert_eq!(state.ssthresh, expected, "{cached:?} {cwnd} {ssthresh}");
        }
    }
}

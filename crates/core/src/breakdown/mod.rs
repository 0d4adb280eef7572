//! FCT breakdown: time of a flow by reason and by location, exact to the picosecond.
//!
//! The breakdown of a transmission covers the time from the start of its flow. A packet carries the breakdown
//! of its transmission and the delays along its path; an answer carries both back
//! (docs/design/measurement.md).

pub mod chain;
pub mod next_fit;
pub mod pool;

use self::pool::BreakdownRef;
use crate::base::units::Duration;

/// Queueing delay at ports by cause: the transmitter sent packets of the same flow, packets of other flows
/// (cross traffic), or control packets; it was paused; it was idle.
pub type QueueingDelays = [Duration; CAUSES];

/// Number of causes of queueing delay.
const CAUSES: usize = 5;
const NO_QUEUEING: QueueingDelays = [Duration::ZERO; CAUSES];
/// Index of the first queueing delay on the reverse path.
const REVERSE: usize = 2 + 2 * CAUSES;
/// Number of locations in the network.
const PATH_LOCATIONS: usize = 2 + 3 * CAUSES;

/// Names of the locations in the network, in order.
const PATH_NAMES: [&str; PATH_LOCATIONS] = [
    "propagation",
    "transmission",
    "queue_own_host",
    "queue_others_host",
    "queue_control_host",
    "paused_host",
    "queue_idle_host",
    "queue_own_there",
    "queue_others_there",
    "queue_control_there",
    "paused_there",
    "queue_idle_there",
    "queue_own_back",
    "queue_others_back",
    "queue_control_back",
    "paused_back",
    "queue_idle_back",
];

/// Delays of a packet on the forward path, and of its answer on the reverse path, by location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathDelays([Duration; PATH_LOCATIONS]);

impl PathDelays {
    /// Delays of a packet that has not been sent.
    pub const ZERO: Self = Self([Duration::ZERO; PATH_LOCATIONS]);

    /// Combines queueing delays at the sending host, on the rest of the forward path and on the reverse path
    /// with the delays of links.
    pub fn new(
        queueing: &[QueueingDelays; 3],
        transmission: Duration,
        propagation: Duration,
    ) -> Self {
        let mut delays = [propagation; PATH_LOCATIONS];
        delays[1] = transmission;
        delays[2..].copy_from_slice(queueing.as_flattened());
        Self(delays)
    }

    /// Delay that consists only of a pause of the host's port.
    pub fn host_pause(duration: Duration) -> Self {
        let host = [Duration::ZERO, Duration::ZERO, Duration::ZERO, duration, Duration::ZERO];
        Self::new(&[host, NO_QUEUEING, NO_QUEUEING], Duration::ZERO, Duration::ZERO)
    }

    /// Sum over all locations.
    pub fn total(&self) -> Duration {
        sum(&self.0)
    }

    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(total, delay)| *total += *delay);
    }
}

fn sum(durations: &[Duration]) -> Duration {
    durations.iter().fold(Duration::ZERO, |total, duration| total + *duration)
}

/// Reason why a sender with data to send, or to retransmit, waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// Pacing.
    Pacing,
    /// The host's NIC was transmitting other packets.
    Nic,
    /// A loss that ACKs, or credits of the receiver, reported had not been detected yet.
    SequenceGap,
    /// A loss was detected by a timer only.
    Timeout,
    /// The host's NIC was paused.
    NicPaused,
    /// Earlier flows of the connection were sent or acknowledged first.
    Connection,
    /// The receiving host had not granted the next segment.
    Credit,
}

/// Number of wait reasons.
const WAIT_REASONS: usize = 7;

/// FCT breakdown of the time from the end of the handshake to a transmission; for a later flow of a
/// persistent connection, from the start of the flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    window: PathDelays,
    receiver: Duration,
    waits: [Duration; WAIT_REASONS],
    window_rtts: u32,
    /// Position of the last interval of its chain, counted from 1, if chains are kept.
    last_interval: u32,
    /// Number of the transmitted flow in the byte stream of a persistent connection, from 0.
    stream_index: u32,
}

impl Breakdown {
    /// Returns the empty breakdown of a flow of a byte stream, given by its number there.
    pub fn of_stream_flow(stream_index: u32) -> Self {
        Self { stream_index, ..Self::default() }
    }

    /// Number of the transmitted flow in its byte stream.
    pub fn stream_index(&self) -> u32 {
        self.stream_index
    }

    /// Sum over all reasons.
    pub fn total(&self) -> Duration {
        self.window.total() + self.receiver + sum(&self.waits)
    }

    /// Adds a wait at the sender.
    pub fn add_wait(&mut self, reason: WaitReason, duration: Duration) {
        self.waits[reason as usize] += duration;
    }

    /// Adds an RTT for which the window was full.
    pub fn add_window_rtt(&mut self, delays: &PathDelays, receiver: Duration) {
        self.window.add(delays);
        self.receiver += receiver;
        self.window_rtts += 1;
    }
}

/// Breakdown record of a packet that has reached the end of its path.
#[derive(Debug)]
pub struct PacketRecord {
    /// Breakdown of the packet's transmission; for an answer, of the packet that it answers.
    pub breakdown: BreakdownRef,
    /// Delays since that transmission.
    pub delays: PathDelays,
    /// Time for which the receiver delayed the answer.
    pub receiver: Duration,
}

/// Breakdown of the time until the end of a flow's handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// RTT of the first SYN that was answered.
    pub delays: PathDelays,
    /// Time before the transmission of that SYN.
    pub sender: Duration,
}

/// Breakdown of the packet that completed a flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Completion {
    /// Breakdown of the packet's transmission.
    pub breakdown: Breakdown,
    /// Delays of the packet on the forward path.
    pub delays: PathDelays,
    /// Time from the arrival of the packet to the completion of the earlier flows of its connection.
    pub connection: Duration,
}

/// Number of components of an FCT breakdown.
pub const COMPONENTS: usize = 2 * (PATH_LOCATIONS + 1) + WAIT_REASONS + REVERSE + 1;

/// FCT breakdown of a completed flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakdownRow {
    /// Components in the order of [`component_names`].
    pub components: [Duration; COMPONENTS],
    /// Number of RTTs for which the window was full.
    pub window_rtts: u64,
}

impl BreakdownRow {
    /// Combines the breakdown of the handshake with that of the packet that completed the flow.
    pub fn new(handshake: &Handshake, completion: &Completion) -> Self {
        let Completion { breakdown, delays, connection } = completion;
        let parts: [&[Duration]; 7] = [
            &handshake.delays.0,
            &[handshake.sender],
            &breakdown.window.0,
            &[breakdown.receiver],
            &breakdown.waits,
            // The last packet has no delays on the reverse path.
            &delays.0[..REVERSE],
            &[*connection],
        ];
        let mut components = [Duration::ZERO; COMPONENTS];
        let mut rest = &mut components[..];
        for part in parts {
            let (own, others) = rest.split_at_mut(part.len());
            own.copy_from_slice(part);
            rest = others;
        }
        Self { components, window_rtts: u64::from(breakdown.window_rtts) }
    }

    /// Sum of all components.
    pub fn total(&self) -> Duration {
        sum(&self.components)
    }
}

/// Names of the components: reason and location.
pub fn component_names() -> impl Iterator<Item = String> {
    let prefixed = |reason: &'static str, path: &'static [&str], more: &'static [&str]| {
        path.iter().chain(more).map(move |location| format!("{reason}_{location}"))
    };
    let waits = [
        "rate_sender",
        "turn_sender",
        "recovery_gap_sender",
        "recovery_timeout_sender",
        "turn_paused_host",
        "connection_sender",
        "credit_sender",
    ];
    prefixed("handshake", &PATH_NAMES, &["sender"])
        .chain(prefixed("window", &PATH_NAMES, &["receiver"]))
        .chain(waits.map(str::to_owned))
        .chain(prefixed("flight", &PATH_NAMES[..REVERSE], &[]))
        .chain(["connection_receiver".to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_has_a_name_and_components_sum_to_the_total() {
        let us = Duration::from_micros;
        let host = [us(100), us(0), us(0), us(0), us(0)];
        let reverse = [us(0), us(1_000), us(0), us(0), us(0)];
        let delays = PathDelays::new(&[host, NO_QUEUEING, reverse], us(1), us(10));
        let mut breakdown = Breakdown::default();
        breakdown.add_window_rtt(&delays, us(10_000));
        breakdown.add_wait(WaitReason::Timeout, us(100_000));
        let further = [us(0), us(0), us(0), us(1_000_000), us(0)];
        let flight = PathDelays::new(&[host, further, NO_QUEUEING], us(1), us(10));
        breakdown.add_wait(WaitReason::Connection, us(300));
        let handshake = Handshake { delays, sender: us(7) };
        let completion = Completion { breakdown, delays: flight, connection: us(20) };
        let row = BreakdownRow::new(&handshake, &completion);
        assert_eq!(component_names().count(), COMPONENTS);
        let nonzero: Vec<(String, u64)> = component_names()
            .zip(row.components)
            .filter(|(_, component)| *component > Duration::ZERO)
            .map(|(name, component)| (name, component.0 / 1_000_000))
            .collect();
        let nonzero: Vec<(&str, u64)> = nonzero.iter().map(|(name, us)| (&**name, *us)).collect();
        let expected = [
            ("handshake_propagation", 10),
            ("handshake_transmission", 1),
            ("handshake_queue_own_host", 100),
            ("handshake_queue_others_back", 1_000),
            ("handshake_sender", 7),
            ("window_propagation", 10),
            ("window_transmission", 1),
            ("window_queue_own_host", 100),
            ("window_queue_others_back", 1_000),
            ("window_receiver", 10_000),
            ("recovery_timeout_sender", 100_000),
            ("connection_sender", 300),
            ("flight_propagation", 10),
            ("flight_transmission", 1),
            ("flight_queue_own_host", 100),
            ("flight_paused_there", 1_000_000),
            ("connection_receiver", 20),
        ];
        assert_eq!(nonzero, expected);
        let sum = delays.total() + us(7) + breakdown.total() + flight.total() + us(20);
        assert_eq!((row.total(), row.window_rtts), (sum, 1));
    }
}

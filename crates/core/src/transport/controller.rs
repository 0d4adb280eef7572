//! What a congestion controller is, and what it is told and answers.

use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::host_clock::Stamps;
use crate::model::packet::{Format, Header, Kind};

/// What a flow may know of its way when it starts.
#[derive(Clone, Debug)]
pub struct Path {
    /// The flow's number in the workload.
    pub flow: u64,
    /// Line rate of its host's link.
    pub line_rate: Rate,
    /// A full packet there and its ACK back, over an empty network.
    pub base_rtt: Duration,
    /// Links on the way there.
    pub hops: u32,
    /// Sizes of packets.
    pub format: Format,
    /// Other flows in progress at the sending host.
    pub others: u32,
    /// A starting rate that the workload asks for.
    pub initial_rate: Option<Rate>,
    /// Payload to transfer; none for a flow without end.
    pub size: Option<Bytes>,
    /// When the flow starts.
    pub start: Time,
    /// When it should be over; [`Time::NEVER`] if it has no deadline.
    pub deadline: Time,
    /// When its packets get the time stamps that round-trip times count from.
    pub stamps: Stamps,
    /// A seed of its own, for controllers that draw random numbers.
    pub seed: u64,
    /// What the last flow that ended between the same hosts has left, if it left something.
    pub memo: Option<CachedPathState>,
}

/// What a flow leaves for the next one between the same hosts (RFC 9040 calls this temporal sharing). It
/// lives as long as a run, and flows of one run only see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CachedPathState {
    /// A rate that the flow has had, in bits a second.
    pub rate: f64,
    /// Which share of it the next flow may count on.
    pub share: f64,
    /// The least one-way delay that was seen, in seconds by the hosts' clocks; infinite if none was.
    pub least_delay: f64,
}

impl CachedPathState {
    /// A rate that the next flow may count on, and nothing else.
    pub fn of_rate(rate: f64) -> Self {
        Self { rate, share: 1.0, least_delay: f64::INFINITY }
    }
}

impl Path {
    /// The way of a flow without end over one link, that nothing else is known of.
    pub fn new(line_rate: Rate, base_rtt: Duration, format: Format) -> Self {
        Self {
            flow: 0,
            line_rate,
            base_rtt,
            hops: 1,
            format,
            others: 0,
            initial_rate: None,
            size: None,
            start: Time::ZERO,
            deadline: Time::NEVER,
            stamps: Stamps::Handed,
            seed: 0,
            memo: None,
        }
    }
}

/// What an algorithm is: told of events, it answers how much may be sent.
///
/// Arguments are structs, so an algorithm that needs one more fact adds a field and no signature
/// changes.
pub trait Controller: Send {
    /// The handshake is complete; without a handshake there is no such call.
    fn on_open(&mut self, _opened: &Opened) {}

    /// Data has been acknowledged.
    fn on_ack(&mut self, ack: &Ack);

    /// Data has been lost. Called once a window for losses and marks that ACKs reveal, and for every
    /// time-out.
    fn on_loss(&mut self, _loss: &Loss) {}

    /// What the next loss costs may have to be given back; told only if that may be
    /// ([`Reliability::undo`](super::Reliability::undo)).
    fn save_state(&mut self, _now: Time) {}

    /// Nothing was lost: gives back what it has cost since it was to be remembered.
    fn on_spurious_loss(&mut self, _now: Time) {}

    /// A congestion notification packet has come.
    fn on_notification(&mut self, _now: Time) {}

    /// A data packet has been sent.
    fn on_sent(&mut self, _now: Time, _bytes: Bytes) {}

    /// The time that [`next_timer`](Self::next_timer) gave has come.
    fn on_timer(&mut self, _now: Time) {}

    /// When to call [`on_timer`](Self::on_timer).
    fn next_timer(&self) -> Time {
        Time::NEVER
    }

    /// How much may be sent.
    fn allowance(&self) -> Allowance;

    /// What a packet that leaves now says to routers and queues; asked only if
    /// [`Mechanism::has_header`](super::Mechanism::has_header).
    fn header(&self, _leaving: &OutgoingPacket) -> Header {
        Header::NONE
    }

    /// What to send now beside the data that the rate lets go, if anything is due; asked only if
    /// [`Mechanism::sends_trains`](super::Mechanism::sends_trains).
    fn beside(&mut self, _now: Time) -> Option<TrainPacket> {
        None
    }

    /// What the flow, which is over, leaves for the next one between the same hosts.
    fn memo(&self) -> Option<CachedPathState> {
        None
    }

    /// Named numbers for traces over time, such as a window in bytes; always the same names in the
    /// same order.
    fn gauges(&self) -> Vec<(&'static str, f64)>;
}

/// A packet of a train, which leaves when the controller says and not when the rate allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrainPacket {
    /// The next segment in line, if there is one.
    Segment,
    /// A packet without payload of this size on the wire, which the receiver answers.
    Padding(Bytes),
}

/// A packet that is about to leave, as controllers see it.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingPacket {
    /// The present.
    pub now: Time,
    /// What it is for.
    pub kind: Kind,
    /// Payload that the receiver is not known to have; without end, if the flow is.
    pub remaining: Bytes,
    /// Payload before that of this packet; 0 if it has none.
    pub offset: Bytes,
}

/// How much may be sent: what is in flight stays within the window, and leaves no faster than the
/// rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Payload that may be in flight; one packet always may.
    pub window: Bytes,
    /// Rate on the wire, of which 0 pauses; none for as fast as ACKs come.
    pub rate: Option<Rate>,
    /// How often to ask routers while data waits for the rate; none for never.
    pub probe: Option<Duration>,
    /// Whether the flow is given up: nothing more is sent.
    pub gives_up: bool,
}

impl Allowance {
    /// A window without pacing.
    pub fn window(bytes: f64) -> Self {
        Self { window: Bytes(bytes as u64), rate: None, probe: None, gives_up: false }
    }

    /// A rate without a window.
    pub fn rate(bps: f64) -> Self {
        let rate = Some(Rate::from_bps(bps));
        Self { window: Bytes(u64::MAX), rate, probe: None, gives_up: false }
    }
}

/// The end of a handshake, as controllers see it.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// When it came.
    pub now: Time,
    /// How long the last attempt took, as the host measured it.
    pub rtt: Duration,
    /// What routers wrote into the SYN.
    pub feedback: f32,
    /// Whether it took more than one attempt.
    pub syn_was_lost: bool,
}

/// An acknowledgement, as controllers see it.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it came.
    pub now: Time,
    /// Payload that is now known to be received and was not before.
    pub bytes: Bytes,
    /// By how many segments the cumulative acknowledgement moved.
    pub advanced: u32,
    /// Segments that are now known to be received and were not before, in order or not.
    pub delivered: u32,
    /// The round-trip time that the host measured ([`crate::model::host_clock`]).
    pub rtt: Duration,
    /// Whether it tells of a mark.
    pub marked: bool,
    /// What routers wrote into that packet; or how long it took to the receiver, in seconds by the hosts'
    /// clocks, if [`Mechanism::echoes_one_way_delay`](super::Mechanism::echoes_one_way_delay).
    pub feedback: f32,
    /// When that packet was sent.
    pub sent_at: Time,
    /// Whether that packet had no payload.
    pub is_of_probe: bool,
    /// All segments before this one have been received.
    pub cumulative: u32,
    /// The next segment never sent before.
    pub next: u32,
    /// Whether a gap is being repaired, or the window shrinks in proportion for a mark.
    pub is_recovering: bool,
    /// Segments that it shows to be lost.
    pub lost: u32,
    /// Payload that is still in flight, as far as the sender knows (RFC 6675's pipe).
    pub in_flight: Bytes,
}

/// A loss, or a mark that means the same, as controllers see it.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// When it was noticed.
    pub now: Time,
    /// Payload sent and not yet acknowledged, lost or not (RFC 5681's FlightSize).
    pub flight: Bytes,
    /// Payload that a time-out newly takes for lost; zero for other signs, whose ACKs tell of it.
    pub lost: Bytes,
    /// How it was noticed.
    pub sign: CongestionSignal,
}

/// How a loss was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionSignal {
    /// Later data was acknowledged, or the receiver reported a gap.
    Gap,
    /// Nothing was acknowledged for too long.
    Timeout,
    /// A router marked; nothing is lost. Only told where marks are answered as losses are
    /// ([`Feedback::is_answered_as_loss`](super::Feedback::is_answered_as_loss)).
    Mark,
}

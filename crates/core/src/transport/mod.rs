//! Transports: a congestion controller each, over one sender and one receiver that all of them
//! share.

use crate::host::Stamps;
use crate::packet::{Format, Header, Kind};
use crate::units::{Bytes, Duration, Rate, Time};
use crate::{queue, router};

pub mod bbr;
pub mod bbr3;
pub mod bottleneck;
pub mod bounds;
pub mod compensation;
pub mod constant_rate;
pub mod copa;
pub mod cubic;
pub mod d2tcp;
pub mod d3;
pub mod dcqcn;
pub mod dctcp;
pub mod deadline;
pub mod delivery;
pub mod fair_share;
pub mod fast;
pub mod first_flight;
pub mod high_speed_tcp;
pub mod hystart;
pub mod jump_start;
pub mod mechanism;
pub mod patched_timely;
pub mod pcp;
pub mod pdq;
pub mod pfabric;
pub mod pias;
pub mod quick_start;
pub mod ranges;
pub mod rcp;
pub mod receiver;
pub mod rtt;
pub mod scalable_tcp;
pub mod scoreboard;
pub mod sender;
pub mod sliding;
pub mod swift;
pub mod tcp;
pub mod throttle;
pub mod timely;
pub mod train;
pub mod vegas;
pub mod window;
pub mod xcp;

pub use mechanism::{Feedback, Mechanism, Recovery, Reliability};

crate::family! {
    /// Every transport, by the name a scenario gives it.
    pub enum Config as dyn Transport {
        bbr, bbr3, constant_rate, copa, cubic, d2tcp, d3, dcqcn, dctcp, fair_share, fast,
        high_speed_tcp, jump_start, patched_timely, pcp, pdq, pfabric, pias, quick_start, rcp,
        scalable_tcp, swift, tcp, timely, vegas, xcp,
    }
}

/// A kind of transport.
pub trait Transport {
    /// The controller of a flow that starts on `path`.
    fn controller(&self, path: &Path) -> Box<dyn Controller>;

    /// How its sender and receiver work.
    fn mechanism(&self, format: &Format) -> Mechanism;

    /// The queue at switches that it was designed for; a scenario may choose another.
    fn queue(&self) -> queue::Config {
        queue::Config::drop_tail(queue::drop_tail::Config { capacity: None })
    }

    /// The controller that it needs at every port, if it needs one.
    fn router(&self) -> Option<router::Config> {
        None
    }

    /// What priorities its packets have.
    fn priorities(&self) -> Priorities {
        Priorities::Classes(1)
    }

    /// What a user should know of these parameters on a network whose slowest link has this rate,
    /// although they are allowed.
    fn warning(&self, _slowest: Rate, _format: &Format) -> Option<String> {
        None
    }

    /// Whether it has no purpose without deadlines.
    fn needs_deadlines(&self) -> bool {
        false
    }

    /// Whether all packets of a flow must take one path, and what answers them the same path back.
    fn needs_one_path(&self) -> bool {
        false
    }

    /// How large the segments are that it sends and measures as one; none if it knows only packets.
    fn segment(&self) -> Option<Bytes> {
        None
    }

    /// The queue at hosts' own ports; a scenario may choose another.
    fn host_queue(&self) -> queue::Config {
        queue::Config::drop_tail(queue::drop_tail::Config { capacity: None })
    }
}

/// What priorities a transport's packets have; 0 goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priorities {
    /// So many, counted from 0.
    Classes(u32),
    /// Any number.
    Numbers,
}

/// What a flow may know of its way when it starts.
#[derive(Clone, Debug)]
pub struct Path {
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
    pub memo: Option<Memo>,
}

/// What a flow leaves for the next one between the same hosts (RFC 9040 calls this temporal sharing). It
/// lives as long as a run, and flows of one run only see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memo {
    /// A rate that the flow has had, in bits a second.
    pub rate: f64,
    /// Which share of it the next flow may count on.
    pub share: f64,
}

impl Path {
    /// The way of a flow without end over one link, that nothing else is known of.
    pub fn new(line_rate: Rate, base_rtt: Duration, format: Format) -> Self {
        Self {
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
    /// [`Mechanism::speaks`].
    fn header(&self, _leaving: &Leaving) -> Header {
        Header::NONE
    }

    /// What to send now beside the data that the rate lets go, if anything is due; asked only if
    /// [`Mechanism::sends_trains`].
    fn beside(&mut self, _now: Time) -> Option<Beside> {
        None
    }

    /// What the flow, which is over, leaves for the next one between the same hosts.
    fn memo(&self) -> Option<Memo> {
        None
    }

    /// Named numbers for traces over time, such as a window in bytes; always the same names in the
    /// same order.
    fn gauges(&self) -> Vec<(&'static str, f64)>;
}

/// A packet of a train, which leaves when the controller says and not when the rate allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// The next segment in line, if there is one.
    Segment,
    /// A packet without payload of this size on the wire, which the receiver answers.
    Padding(Bytes),
}

/// A packet that is about to leave, as controllers see it.
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
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
    /// The round-trip time that the host measured ([`crate::host`]).
    pub rtt: Duration,
    /// Whether it tells of a mark.
    pub marked: bool,
    /// What routers wrote into that packet; or how long it took to the receiver, in seconds by the hosts'
    /// clocks, if [`Mechanism::tells_delay`].
    pub feedback: f32,
    /// When that packet was sent.
    pub sent_at: Time,
    /// Whether that packet had no payload.
    pub is_of_probe: bool,
    /// All segments before this one have been received.
    pub cumulative: u32,
    /// The next segment never sent before.
    pub next: u32,
    /// Whether a gap is being repaired.
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
    /// How it was noticed.
    pub sign: Sign,
}

/// How a loss was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Later data was acknowledged, or the receiver reported a gap.
    Gap,
    /// Nothing was acknowledged for too long.
    Timeout,
    /// A router marked; nothing is lost. Only told where marks are answered as losses are
    /// ([`Feedback::EchoUntilReduced`]).
    Mark,
}

#[cfg(test)]
mod tests {
    use super::delivery::Sample;
    use super::{Ack, Leaving, Path};
    use crate::packet::{Format, Kind};
    use crate::units::{Bytes, Duration, Rate, Time};

    /// One new packet of a thousand bytes in order.
    pub(super) const ACK: Ack = Ack {
        now: Time::ZERO,
        bytes: Bytes(1000),
        advanced: 1,
        rtt: Duration::from_micros(100),
        marked: false,
        feedback: 0.0,
        sent_at: Time::ZERO,
        is_of_probe: false,
        cumulative: 1,
        next: 2,
        is_recovering: false,
        lost: 0,
        in_flight: Bytes::ZERO,
    };

    /// The way of a packet that tells nothing.
    pub(super) const SAMPLE: Sample = Sample {
        rate: None,
        delivered: 0.0,
        delivered_before: 0,
        in_flight: 0.0,
        lost: 0.0,
        is_limited: false,
        starts_round: false,
    };

    /// The first packet of a flow without end.
    pub(super) const LEAVING: Leaving = Leaving {
        now: Time::ZERO,
        kind: Kind::Data,
        remaining: Bytes(u64::MAX),
        offset: Bytes::ZERO,
    };

    /// A way of 1 Gb/s and 100 us for packets of 960 B, which are 1000 B on the wire.
    pub(super) fn path() -> Path {
        let format = Format { payload: Bytes(960), header: Bytes(40), ack: Bytes(40) };
        Path::new(Rate::from_gbps(1), Duration::from_micros(100), format)
    }

    /// The ACK of one such packet after 100 us.
    pub(super) fn ack(cumulative: u32, next: u32) -> Ack {
        Ack { bytes: Bytes(960), cumulative, next, ..ACK }
    }
}

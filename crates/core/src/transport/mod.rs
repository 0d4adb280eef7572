//! Transports: a congestion controller each, over one sender and one receiver that all of them
//! share.

use crate::host::Stamps;
use crate::packet::{Flags, FlowSlot, Format, Header, Kind, Packed, Packet};
use crate::parameters::{defaults, positive, positive_if_given};
use crate::units::{Bytes, Duration, Rate, Time};
use crate::{queue, router};

pub mod compensation;
pub mod constant_rate;
pub mod cubic;
pub mod d2tcp;
pub mod d3;
pub mod dcqcn;
pub mod dctcp;
pub mod deadline;
pub mod fast;
pub mod high_speed_tcp;
pub mod hystart;
pub mod patched_timely;
pub mod pcp;
pub mod pdq;
pub mod pfabric;
pub mod pias;
pub mod ranges;
pub mod rcp;
pub mod receiver;
pub mod rtt;
pub mod scalable_tcp;
pub mod scoreboard;
pub mod sender;
pub mod swift;
pub mod tcp;
pub mod timely;
pub mod train;
pub mod window;
pub mod xcp;

crate::family! {
    /// Every transport, by the name a scenario gives it.
    pub enum Config as dyn Transport {
        constant_rate, cubic, d2tcp, d3, dcqcn, dctcp, fast, high_speed_tcp, patched_timely, pcp,
        pdq, pfabric, pias, rcp, scalable_tcp, swift, tcp, timely, xcp,
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

/// How a transport's sender and receiver work: mechanism, not policy.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Mechanism {
    /// How data is made reliable.
    pub reliability: Reliability,
    /// Whether routers may mark its data.
    pub ecn_capable: bool,
    /// How many packets the sender hands to its host at once, if it sends at a rate; none if a window
    /// alone rules.
    pub burst: Option<u32>,
    /// The rate on the wire at which the packets of a burst follow one another; none for at once.
    pub spacing: Option<Rate>,
    /// The receiver acknowledges every so many packets.
    pub ack_every: u32,
    /// What the receiver makes of marks.
    pub feedback: Feedback,
    /// Whether its packets say something to routers or queues.
    pub speaks: bool,
    /// Whether a last packet tells routers that the flow is over.
    pub says_goodbye: bool,
    /// Whether it sends trains of packets beside its data ([`Controller::beside`]).
    pub sends_trains: bool,
    /// Whether ACKs tell the one-way delay of the packet that they answer.
    pub tells_delay: bool,
}

impl Mechanism {
    /// Packets as a window lets them go, each of them acknowledged, none of them marked by routers.
    pub fn plain(reliability: &Reliability) -> Self {
        Self {
            reliability: reliability.clone(),
            ecn_capable: false,
            burst: None,
            spacing: None,
            ack_every: 1,
            feedback: Feedback::Echo,
            speaks: false,
            says_goodbye: false,
            sends_trains: false,
            tells_delay: false,
        }
    }

    /// Packets one by one at a rate, otherwise plain.
    pub fn paced(reliability: &Reliability) -> Self {
        Self { burst: Some(1), ..Self::plain(reliability) }
    }

    /// A data packet of a flow, whose way is still to be filled in.
    pub fn data(
        &self,
        format: &Format,
        flow: FlowSlot,
        sent_at: Time,
        segment: sender::Segment,
    ) -> Packet {
        // RFC 3168 §6.1.5: what is sent again is not ECN-capable.
        let is_copy = segment.is_retransmit && self.feedback == Feedback::EchoUntilReduced;
        Packet {
            sent_at,
            flow,
            next_hop: 0,
            sequence: segment.sequence,
            packed: Packed::default(),
            bytes: (segment.payload + format.header.0 as u32) as u16,
            kind: Kind::Data,
            flags: Flags::NONE
                .with_if(Flags::ECN_CAPABLE, self.ecn_capable && !is_copy)
                .with_if(Flags::WANTS_ACK, segment.wants_ack)
                .with_if(Flags::REDUCED, segment.has_reduced),
        }
    }
}

/// What a receiver makes of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// Every ACK says whether the packet it answers was marked.
    Echo,
    /// RFC 3168: every ACK tells of a mark until the sender says that it has slowed down, which it does
    /// once a window of data.
    EchoUntilReduced,
    /// DCQCN: a notification at once, but not within `interval` of the last one.
    Notify {
        /// Least time between notifications.
        interval: Duration,
    },
    /// DCQCN as its authors' simulator has it: a clock of period `interval` that starts with the
    /// flow, and a notification at its tick if there was a mark since the last one.
    NotifyAtTicks {
        /// Period of the clock.
        interval: Duration,
    },
}

crate::choices! {
    /// How lost data is sent again.
    pub enum Recovery {
        /// Only what is missing: the receiver keeps what comes early and reports it (SACK).
        SelectiveRepeat = "selective_repeat",
        /// One segment a round trip, without SACK, until all that was in flight is acknowledged (RFC
        /// 6582).
        NewReno = "new_reno",
        /// One segment, without SACK; further losses in the same window wait for the time-out (RFC
        /// 5681 §3.2).
        Reno = "reno",
        /// Everything from the gap on: the receiver throws away what comes early (RoCE).
        GoBackN = "go_back_n",
    }
}

crate::parameters! {
    /// How data is made reliable.
    pub struct Reliability {
        /// How lost data is sent again.
        pub recovery: Recovery = Recovery::SelectiveRepeat;
        /// A gap is a loss when this many segments beyond it have been received (RFC 6675: 3); none
        /// waits for the time-out, which spraying needs. Go-back-N has no use for it.
        pub duplicate_acks: Option<u32> = Some(3), where positive_if_given;
        /// Time-out before the first sample of the round-trip time.
        pub initial_rto: Duration = Duration::from_millis(10), where positive;
        /// Least time-out.
        pub min_rto: Duration = Duration::from_millis(10), where positive;
        /// Most that repeated time-outs back off to.
        pub max_rto: Duration = Duration::from_millis(1_000), where positive;
        /// Least time between two reports of the same gap, with go-back-N ([ecndelay16], authors'
        /// code).
        pub nack_interval: Duration = Duration::from_micros(500);
        /// Whether a SYN and its answer come before the data; the completion time then includes
        /// them.
        pub handshake: bool = false;
        /// Whether ACKs echo time stamps, so that each gives a sample of the round-trip time (RFC
        /// 7323); otherwise one segment at a time is timed, and none that was sent again (Karn).
        pub timestamps: bool = true;
        /// Tick of the clock that times segments; zero for an exact one (RFC 6298: G).
        pub clock_granularity: Duration = Duration::ZERO;
        /// How long the acknowledgement of a segment that comes in order may wait for the next one
        /// (RFC 5681 §4.2: at most 500 ms); none acknowledges every segment at once.
        pub delayed_ack: Option<Duration> = None, where positive_if_given;
        /// A time-out that never changes; none follows RFC 6298, by the parameters above.
        pub fixed_rto: Option<Duration> = None, where positive_if_given;
        /// The least time by which a time-out exceeds the round-trip time (RFC 9002 §6.1.2: 1 ms).
        pub timer_granularity: Duration = Duration::from_millis(1);
        /// How many segments the receiver takes beyond the first that it lacks; none for any number.
        pub receive_window: Option<u32> = None, where positive_if_given;
    }
}

impl Reliability {
    /// The defaults: selective repeat with a least time-out of 10 ms ([dctcp10]).
    pub fn selective_repeat() -> Self {
        defaults()
    }

    /// As hosts on the Internet have it: a handshake, and a least time-out of 200 ms as Linux has (RFC
    /// 6298 §2.4 asks for a second).
    pub fn internet() -> Self {
        Self {
            initial_rto: Duration::from_millis(1_000),
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_millis(60_000),
            handshake: true,
            ..Self::selective_repeat()
        }
    }

    /// Selective repeat with a time-out that even a full buffer of 9 MB at 10 Gb/s does not
    /// provoke.
    pub fn patient() -> Self {
        let rto = Duration::from_millis(20);
        Self { initial_rto: rto, min_rto: rto, ..Self::selective_repeat() }
    }

    /// As RDMA network cards have it: go-back-N.
    pub fn go_back_n() -> Self {
        Self { recovery: Recovery::GoBackN, ..Self::patient() }
    }
}

#[cfg(test)]
mod tests {
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

//! What a transport asks of the sender and the receiver that all of them share.

use super::endpoint::sender;
use crate::base::schema::{Problem, defaults, positive, positive_if_given};
use crate::base::units::{Duration, Rate, Time};
use crate::model::packet::{Flags, FlowNumber, Format, Kind, Packed, Packet};

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
    /// How many packets leave as fast as the window lets them before the pace begins to count.
    pub unpaced: u32,
    /// What starts the time-out again, beside what is acknowledged in order.
    pub timer: Timer,
    /// Whether the window shrinks in proportion to what comes while a gap is repaired, or after a mark
    /// (`prr`).
    pub shrinks_in_proportion: bool,
    /// The receiver acknowledges every so many packets.
    pub ack_every: u32,
    /// What the receiver makes of marks.
    pub feedback: Feedback,
    /// Whether its packets say something to routers or queues.
    pub has_header: bool,
    /// Whether a last packet tells routers that the flow is over.
    pub sends_fin: bool,
    /// Whether it sends trains of packets beside its data ([`Controller::beside`]).
    pub sends_trains: bool,
    /// Whether ACKs tell the one-way delay of the packet that they answer.
    pub echoes_one_way_delay: bool,
}

impl Mechanism {
    /// Packets as a window lets them go, each of them acknowledged, none of them marked by routers.
    pub fn plain(reliability: &Reliability) -> Self {
        Self {
            reliability: reliability.clone(),
            ecn_capable: false,
            burst: None,
            spacing: None,
            unpaced: 0,
            timer: Timer::FromFirst,
            shrinks_in_proportion: false,
            ack_every: 1,
            feedback: Feedback::Echo,
            has_header: false,
            sends_fin: false,
            sends_trains: false,
            echoes_one_way_delay: false,
        }
    }

    /// Packets one by one at a rate, otherwise plain.
    pub fn paced(reliability: &Reliability) -> Self {
        Self { burst: Some(1), timer: Timer::FromLast, ..Self::plain(reliability) }
    }

    /// Packets one by one at a rate and within a window, so that losses are found as under a window alone.
    pub fn paced_window(reliability: &Reliability) -> Self {
        Self { timer: Timer::FromFirst, ..Self::paced(reliability) }
    }

    /// A data packet of a flow, whose way is still to be filled in.
    pub fn data(
        &self,
        format: &Format,
        flow: FlowNumber,
        sent_at: Time,
        segment: sender::Segment,
    ) -> Packet {
        // RFC 3168 §6.1.5: what is sent again is not ECN-capable.
        let is_copy = segment.is_retransmit && self.feedback.is_answered_as_loss();
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

/// What starts a time-out again, beside what is acknowledged in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Sending the first segment again that is missing (RFC 6298 §5).
    FromFirst,
    /// Sending anything: so a flow that sends at a rate, whatever is lost, repairs when all has been sent
    /// once, or when an ACK tells, as [rcp06] has it.
    FromLast,
}

impl Feedback {
    /// Whether marks are answered as losses are, once a window of data (RFC 3168 §6.1.2).
    pub fn is_answered_as_loss(self) -> bool {
        matches!(self, Self::EchoUntilReduced | Self::Count)
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
    /// `AccECN` (RFC 9768): every ACK carries how many packets have been marked, modulo 8. Marks are answered
    /// as with the other.
    Count,
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
        /// The same, but what is missing is judged by the time since it left (RACK, RFC 8985): so a repair
        /// that is lost is sent again after a round trip.
        Rack = "rack",
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
        /// How much longer than two round trips a segment that is alone on its way may take until it is sent
        /// again to probe for a loss (RFC 8985 §7.2: 200 ms, as an ACK may be delayed; others wait 2 ms
        /// longer); none sends no such probes.
        pub tail_probe: Option<Duration> = None, where positive_if_given;
        /// Whether a window that shrank is given back when nothing was lost: what an ACK acknowledges in
        /// order left before anything was sent again, by the time stamp that it echoes (RFC 3522), or all
        /// that was sent again has come twice (RFC 3708; with `duplicate_sack`). What is restored is what
        /// Linux restores (own choice: not).
        pub undo: bool = false;
        /// Whether receivers report what comes again (D-SACK, RFC 2883; Linux: they do; own choice: not).
        pub duplicate_sack: bool = false;
        /// Whether the first ACK after a time-out lets new data go before more is sent again, and the
        /// time-out is undone if something comes then that was not sent again (F-RTO, RFC 5682 §3; Linux: it
        /// does; own choice: not). Needs `undo`.
        pub frto: bool = false;
        /// Whether a window shrinks in proportion to what comes while a gap is repaired (RFC 6937), or for a
        /// round trip after a mark (Linux), and not at once. Transports with a pace of their own have no use
        /// for it.
        pub proportional_reduction: bool = false;
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
        /// How many SYNs may be lost before the initial window is one packet (RFC 5681 §3.1: 0; Linux: 1).
        pub forgiven_syns: u32 = 0;
        /// How many SYNs are sent again before their time-out begins to double (RFC 6298: 0; Linux: 4).
        pub linear_syns: u32 = 0;
        /// Whether ACKs echo time stamps, so that each gives a sample of the round-trip time (RFC
        /// 7323); otherwise one segment at a time is timed, and none that was sent again (Karn).
        pub timestamps: bool = true;
        /// Whether ACKs count marked packets (`AccECN`, RFC 9768), instead of telling of a mark until it is
        /// answered (RFC 3168); for transports whose `ecn` is on and means that.
        pub accurate_ecn: bool = false;
        /// Tick of the clock that times segments; zero for an exact one (RFC 6298: G).
        pub clock_granularity: Duration = Duration::ZERO;
        /// How long the acknowledgement of a segment that comes in order may wait for the next one
        /// (RFC 5681 §4.2: at most 500 ms); none acknowledges every segment at once.
        pub delayed_ack: Option<Duration> = None, where positive_if_given;
        /// How many segments are acknowledged at once before ACKs are delayed (RFC 5681: 0; Linux: 16 at
        /// least, and more while the receiver's window grows).
        pub quick_acks: u32 = 0;
        /// How long a SACK may wait for more to tell of, after three have told of the same gap and where no
        /// ACK is quick any more; but no longer than a twentieth of a round trip, which is taken for twice
        /// the time that the segment was on its way (Linux: 1 ms); none reports every segment at once.
        pub sack_compression: Option<Duration> = None, where positive_if_given;
        /// A time-out that never changes; none follows RFC 6298, by the parameters above.
        pub fixed_rto: Option<Duration> = None, where positive_if_given;
        /// The least time by which a time-out exceeds the round-trip time (RFC 9002 §6.1.2: 1 ms).
        pub timer_granularity: Duration = Duration::from_millis(1);
        /// Period of the clock with whose ticks a sender's time-outs and probes for losses come, and later
        /// the longer they are (Linux: 1, 4 or 10 ms, by how it was built); zero for an exact one.
        pub timer_tick: Duration = Duration::ZERO;
        /// How many segments the receiver takes beyond the first that it lacks; none for any number.
        pub receive_window: Option<u32> = None, where positive_if_given;
    }
    check |reliability: &Reliability| {
        let needs = |field| Err(Problem::new(field, "needs recovery = \"selective_repeat\" or \"rack\""));
        if reliability.frto && !reliability.undo {
            return Err(Problem::new("frto", "needs undo = true"));
        }
        match reliability.recovery {
            Recovery::Rack => Ok(()),
            _ if reliability.undo => Err(Problem::new("undo", "needs recovery = \"rack\"")),
            Recovery::SelectiveRepeat => Ok(()),
            _ if reliability.duplicate_sack => needs("duplicate_sack"),
            _ if reliability.sack_compression.is_some() => needs("sack_compression"),
            _ if reliability.tail_probe.is_some() => needs("tail_probe"),
            _ if reliability.proportional_reduction => needs("proportional_reduction"),
            Recovery::NewReno | Recovery::Reno | Recovery::GoBackN => Ok(()),
        }
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

    /// Refuses what leaves packets without an answer of their own, which is wanted for a reason.
    pub fn must_answer_each(&self, why: &str) -> Result<(), Problem> {
        let field = match (self.delayed_ack, self.sack_compression) {
            (None, None) => return Ok(()),
            (Some(_), _) => "delayed_ack",
            (None, Some(_)) => "sack_compression",
        };
        Err(Problem::new(field, format!("must be none: {why}")).within("reliability"))
    }

    /// As RDMA network cards have it: go-back-N.
    pub fn go_back_n() -> Self {
        Self { recovery: Recovery::GoBackN, ..Self::patient() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use serde_json::json;

    #[test]
    fn what_needs_another_recovery_or_parameter_says_so() {
        for (recovery, field, needs) in [
            ("new_reno", "duplicate_sack", "needs recovery = \"selective_repeat\" or \"rack\""),
            ("selective_repeat", "undo", "needs recovery = \"rack\""),
            ("rack", "frto", "needs undo = true"),
        ] {
            let problem = Reliability::read(&json!({ "recovery": recovery, field: true }));
            assert_eq!(problem.unwrap_err().to_string(), format!("{field}: {needs}"));
        }
    }
}

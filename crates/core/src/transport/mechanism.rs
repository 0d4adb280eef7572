//! Options of a transport for the shared sender and receiver.

use super::endpoint::sender;
use crate::base::schema::{Bounds, Problem, defaults, positive, positive_if_given};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::host_clock::PortShare;
use crate::model::packet::{Flags, FlowNumber, Format, Kind, Packed, Packet, SACK_BLOCKS};

/// Options of a transport's sender and receiver: mechanism, not policy.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub struct Mechanism {
    /// Loss recovery and timers.
    pub reliability: Reliability,
    /// True if routers may mark data packets.
    pub ecn_capable: bool,
    /// Pacing at the controller's rate; `None` for a window without pacing.
    pub pacing: Option<PacingPolicy>,
    /// Transmissions that restart the retransmission timer.
    pub rto_restart: RtoRestart,
    /// True if the window is reduced by PRR, after losses and marks.
    pub uses_prr: bool,
    /// Generation of ACKs and their feedback.
    pub acks: AckPolicy,
    /// In-band signalling to routers and queues.
    pub signalling: Signalling,
    /// Use of credits of the receiving host.
    pub credit: CreditUse,
    /// True if every credit names the first segment that the receiver lacks; otherwise, if any, only those
    /// that follow a timeout of the receiver or a request of the sender do.
    pub names_gaps: bool,
    /// Turns of flows at their host's port, which gets one packet at a time; none if flows put packets into
    /// its queue.
    pub turns: Option<TurnOrder>,
    /// True if the number of segments beyond a gap and probes reveal losses, and not NACKs ([`Sleek`]).
    ///
    /// [`Sleek`]: super::recovery::sleek::Sleek
    pub sleek: bool,
    /// True if the controller sends probe trains ([`Controller::next_train_packet`]).
    ///
    /// [`Controller::next_train_packet`]: super::Controller::next_train_packet
    pub sends_trains: bool,
    /// Limits of a flow's packets in its host's port, besides pacing. Set by the host, not by the transport.
    pub port_share: PortShare,
    /// True if ACKs return the entropy values of packets and the number of received segments. Set by the
    /// routing, unless the transport sets it.
    pub returns_entropy: bool,
}

/// Pacing of a sender at its controller's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacingPolicy {
    /// Packets that the sender passes to the NIC at once.
    pub burst: u32,
    /// Rate on the link at which the packets of a burst are spaced; `None` for back to back.
    pub spacing: Option<Rate>,
    /// Packets at the start of the flow that are not paced, only limited by the window.
    pub unpaced: u32,
}

impl PacingPolicy {
    /// Pacing of single packets.
    pub const PER_PACKET: Self = Self { burst: 1, spacing: None, unpaced: 0 };

    /// Returns pacing of bursts of packets that are sent back to back.
    pub fn bursts(packets: u32) -> Self {
        Self { burst: packets, ..Self::PER_PACKET }
    }
}

/// Generation of ACKs by the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// Data packets per ACK.
    pub every: u32,
    /// Feedback of ECN marks.
    pub feedback: MarkFeedback,
    /// True if ACKs carry the one-way delay of the packet that they acknowledge.
    pub echoes_one_way_delay: bool,
    /// True if NACKs answer trimmed packets.
    pub answers_trimmed: bool,
    /// New data on the link that one ACK acknowledges (UEC 1.0 §3.5.12, `ACK_Gen_Trigger`): packets out of
    /// order need no ACK of their own, but the first packet, marked ones, duplicates, and those after which
    /// the sender must wait. ACKs count received segments; data in flight is sent data without the counted.
    /// None for an ACK for `every` packets in order, and each one out of order.
    pub coalesced: Option<Bytes>,
}

impl Default for AckPolicy {
    fn default() -> Self {
        Self {
            every: 1,
            feedback: MarkFeedback::Echo,
            echoes_one_way_delay: false,
            answers_trimmed: false,
            coalesced: None,
        }
    }
}

/// In-band signalling to routers and queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signalling {
    /// No signalling.
    None,
    /// Packets carry a header for routers or queues ([`Controller::header`]).
    ///
    /// [`Controller::header`]: super::Controller::header
    Header,
    /// Packets carry a header, and a FIN notifies routers of the end of the flow.
    HeaderAndFin,
    /// Data packets collect telemetry at switches, and each ACK returns that of the packet that it answers
    /// ([`Controller::on_telemetry`]).
    ///
    /// [`Controller::on_telemetry`]: super::Controller::on_telemetry
    Telemetry,
}

impl Signalling {
    /// Returns true if packets carry a header for routers or queues.
    pub fn has_header(self) -> bool {
        matches!(self, Self::Header | Self::HeaderAndFin)
    }

    /// Returns true if data packets collect telemetry.
    pub fn collects_telemetry(self) -> bool {
        self == Self::Telemetry
    }

    /// Returns true if a FIN notifies routers of the end of the flow.
    pub fn sends_fin(self) -> bool {
        self == Self::HeaderAndFin
    }
}

/// Order of the turns of flows at their host's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnOrder {
    /// The flow with the least unsent bytes first (SRPT).
    ShortestFirst,
    /// Round robin.
    RoundRobin,
}

/// Use of credits of the receiving host ([`CreditScheduler`](super::CreditScheduler)). With credits, the
/// receiver acknowledges a flow when it has all data, and credits name the segments to send again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditUse {
    /// No credits.
    None,
    /// The first data announces the flow. The sender requests credit after a timeout.
    Unannounced,
    /// The sender requests credit before its first data, and after a timeout.
    Announced,
    /// As `Unannounced`, but the receiver answers every packet: with an ACK, or with a NACK if it was
    /// trimmed.
    PerPacket,
    /// Credits in addition to ACKs and timers that detect losses.
    WithAcks,
}

impl Mechanism {
    /// Fields of [`Reliability`] on loss detection, which [`credited`](Self::credited) sets: the receiver
    /// detects losses.
    pub const SET_BY_CREDIT: &[&str] = &["recovery", "duplicate_acks"];

    /// Returns the options of a window without pacing, with one ACK per packet and without ECN.
    pub fn plain(reliability: &Reliability) -> Self {
        Self {
            reliability: reliability.clone(),
            ecn_capable: false,
            pacing: None,
            rto_restart: RtoRestart::FirstMissing,
            uses_prr: false,
            acks: AckPolicy::default(),
            signalling: Signalling::None,
            credit: CreditUse::None,
            names_gaps: false,
            turns: None,
            sleek: false,
            sends_trains: false,
            port_share: PortShare::default(),
            returns_entropy: false,
        }
    }

    /// Returns true if packets have room for an entropy value.
    pub fn has_room_for_entropy(&self) -> bool {
        let has_room = match self.signalling {
            Signalling::None => true,
            Signalling::Header => self.credit != CreditUse::None,
            Signalling::HeaderAndFin | Signalling::Telemetry => false,
        };
        has_room && !self.acks.echoes_one_way_delay
    }

    /// Returns the options of a sender by credit. Timeouts and the handshake are those of `reliability`;
    /// there are no ACKs that detect losses.
    pub fn credited(reliability: &Reliability, credit: CreditUse) -> Self {
        let answers_trimmed = credit == CreditUse::PerPacket;
        Self {
            signalling: Signalling::Header,
            credit,
            // Hosts of htsim are fair among flows of NDP.
            turns: Some(if answers_trimmed {
                TurnOrder::RoundRobin
            } else {
                TurnOrder::ShortestFirst
            }),
            acks: AckPolicy { answers_trimmed, ..AckPolicy::default() },
            ..Self::plain(&Self::timers(reliability))
        }
    }

    /// Returns the options of a sender with coalesced ACKs, of up to `coalesced` bytes on the link. Timeouts
    /// and the handshake are those of `reliability`; NACKs and timers of single segments detect losses.
    pub fn coalesced(reliability: &Reliability, coalesced: Bytes) -> Self {
        Self {
            ecn_capable: true,
            rto_restart: RtoRestart::PerSegment,
            acks: AckPolicy {
                every: u32::MAX,
                answers_trimmed: true,
                coalesced: Some(coalesced),
                ..AckPolicy::default()
            },
            turns: Some(TurnOrder::RoundRobin),
            returns_entropy: true,
            ..Self::plain(&Self::timers(reliability))
        }
    }

    /// Returns selective repeat without loss detection by ACKs, with the timers and the handshake of
    /// `reliability`.
    fn timers(reliability: &Reliability) -> Reliability {
        Reliability {
            initial_rto: reliability.initial_rto,
            min_rto: reliability.min_rto,
            max_rto: reliability.max_rto,
            fixed_rto: reliability.fixed_rto,
            timer_granularity: reliability.timer_granularity,
            timer_tick: reliability.timer_tick,
            clock_granularity: reliability.clock_granularity,
            handshake: reliability.handshake,
            duplicate_acks: None,
            ..Reliability::selective_repeat()
        }
    }

    /// Returns the options of a rate with pacing of single packets, otherwise plain.
    pub fn paced(reliability: &Reliability) -> Self {
        Self {
            pacing: Some(PacingPolicy::PER_PACKET),
            rto_restart: RtoRestart::EverySegment,
            ..Self::plain(reliability)
        }
    }

    /// Returns the options of a rate within a window, with pacing of single packets. The
    /// retransmission timer is that of a window.
    pub fn paced_window(reliability: &Reliability) -> Self {
        Self { rto_restart: RtoRestart::FirstMissing, ..Self::paced(reliability) }
    }

    /// Returns a data packet of a flow, without a route.
    pub fn data(
        &self,
        format: &Format,
        flow: FlowNumber,
        sent_at: Time,
        segment: sender::Segment,
    ) -> Packet {
        // RFC 3168 §6.1.5: retransmissions are not ECN-capable.
        let is_excluded = segment.is_retransmit && self.acks.feedback.is_handled_as_loss();
        Packet {
            sent_at,
            flow,
            next_hop: 0,
            sequence: segment.sequence,
            packed: Packed::default(),
            bytes: (segment.payload + format.header.0 as u32) as u16,
            kind: Kind::Data,
            flags: Flags::NONE
                .with_if(Flags::ECN_CAPABLE, self.ecn_capable && !is_excluded)
                .with_if(Flags::WANTS_ACK, segment.wants_ack)
                .with_if(Flags::REDUCED, segment.has_cwr),
        }
    }
}

/// Transmissions that restart the retransmission timer, in addition to ACKs that advance the cumulative
/// acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoRestart {
    /// Retransmissions of the first missing segment (RFC 6298 §5).
    FirstMissing,
    /// All transmissions: a flow at a rate then recovers from losses only when it has sent all its
    /// data, or when an ACK reveals them, as in [rcp06].
    EverySegment,
    /// Each segment has a timer of its own, which starts when the segment is sent (UEC 1.0): a timeout
    /// concerns only the segment that was sent first of those in flight.
    PerSegment,
}

/// Feedback of ECN marks by the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkFeedback {
    /// Each ACK echoes the mark of the packet that it acknowledges.
    Echo,
    /// RFC 3168: all ACKs echo a mark until the sender has reduced its window (CWR), which it does
    /// once per window of data.
    EchoUntilCwr,
    /// AccECN (RFC 9768): all ACKs carry the number of marked packets, and the sender reduces its
    /// window once per window of data for new marks.
    AccurateEcn,
    /// DCQCN: a CNP at once, but not within `interval` of the last CNP.
    Cnp {
        /// Minimum time between CNPs.
        interval: Duration,
    },
    /// DCQCN as in its authors' simulator: a clock of period `interval` that starts with the flow, and
    /// a CNP at a tick if there was a mark since the last tick.
    PeriodicCnp {
        /// Period of the clock.
        interval: Duration,
    },
}

impl Mechanism {
    /// Returns true if ACKs carry AccECN's option.
    pub fn has_accurate_ecn_option(&self) -> bool {
        self.reliability.accurate_ecn_option && self.acks.feedback == MarkFeedback::AccurateEcn
    }
}

impl MarkFeedback {
    /// Returns true if the sender handles marks as losses, once per window of data (RFC 3168 §6.1.2).
    pub fn is_handled_as_loss(self) -> bool {
        matches!(self, Self::EchoUntilCwr | Self::AccurateEcn)
    }
}

crate::choices! {
    /// Loss recovery.
    pub enum Recovery {
        /// Retransmission of lost segments only: the receiver keeps out-of-order segments and reports
        /// them (SACK, RFC 6675).
        SelectiveRepeat = "selective_repeat",
        /// The same with loss detection by transmission times (RACK, RFC 8985), which detects a lost
        /// retransmission after an RTT.
        Rack = "rack",
        /// One retransmission per RTT, without SACK, until all data in flight is acknowledged (RFC
        /// 6582).
        NewReno = "new_reno",
        /// One retransmission, without SACK; further losses in the same window wait for the timeout
        /// (RFC 5681 §3.2).
        Reno = "reno",
        /// Retransmission of all data from the first missing segment on: the receiver discards
        /// out-of-order segments (RoCE).
        GoBackN = "go_back_n",
    }
}

impl Recovery {
    /// Returns true if receivers report the segments beyond a gap.
    pub fn has_sack(self) -> bool {
        matches!(self, Self::SelectiveRepeat | Self::Rack)
    }
}

crate::choices! {
    /// Window of a persistent connection that has sent nothing for more than an RTO.
    pub enum IdleRestart {
        /// The window stays.
        None = "none",
        /// The window is halved for every RTO of idle time, but not below the initial window (RFC 2861;
        /// Linux, `tcp_slow_start_after_idle`).
        Halving = "halving",
        /// The window falls to the initial window (RFC 5681 §4.1).
        Initial = "initial",
    }
}

crate::choices! {
    /// RTT that a flow takes from finished flows between the same hosts.
    pub enum CachedRtt {
        /// None.
        None = "none",
        /// The RTO of the first data follows from the cached SRTT, if the RTT of the handshake is smaller or
        /// unknown; the estimator starts anew. A larger SRTT replaces the cached one, a smaller one moves it
        /// by an eighth of the difference (Linux, `tcp_metrics.c`).
        Linux = "linux",
        /// SRTT and RTTVAR start with those of the last flow, so that the RTO of the SYN follows from them
        /// (RFC 9040).
        Rfc9040 = "rfc9040",
    }
}

crate::parameters! {
    /// Loss recovery, retransmission timers and ACK generation.
    pub struct Reliability {
        /// Loss recovery.
        pub recovery: Recovery = Recovery::SelectiveRepeat;
        /// Segments received beyond a gap at which the gap is a loss (`DupThresh`; RFC 6675: 3); none
        /// waits for the timeout, as packet spraying requires. Not used with go-back-N.
        pub duplicate_acks: Option<u32> = Some(3), where positive_if_given;
        /// If true, a recovery that may send neither lost segments nor new data retransmits segments below
        /// the highest SACK, and once the last segment (rules 3 and 4 of `NextSeg`, RFC 6675 §4: true;
        /// ns-2: false). Needs `recovery = "selective_repeat"`.
        pub rescue: bool = false;
        /// Time beyond two RTTs until a tail loss probe for a single segment in flight (RFC 8985 §7.2:
        /// 200 ms, the worst-case delay of an ACK; with more segments in flight 2 ms); none sends no
        /// probes.
        pub tail_probe: Option<Duration> = None, where positive_if_given;
        /// If true, the window is restored after a spurious loss: an ACK that advances the cumulative
        /// acknowledgement echoes a timestamp from before the first retransmission (Eifel, RFC 3522), or
        /// all retransmissions were duplicates (RFC 3708; with `duplicate_sack`). The response is that of
        /// Linux (own choice: false).
        pub undo: bool = false;
        /// Maximum number of SACK blocks of an ACK: the block of the segment just received, and those that
        /// were reported most recently, so that the loss of an ACK loses no block (RFC 2018 §4 and Linux
        /// with timestamps: 3; own choice: 1).
        pub sack_blocks: u32 = 1, where sack_blocks;
        /// If true, receivers report duplicate segments (D-SACK, RFC 2883; Linux: true; own choice:
        /// false).
        pub duplicate_sack: bool = false;
        /// If true, the first ACK after a timeout permits new data before further retransmissions, and
        /// the timeout is undone if a segment is then acknowledged that was not retransmitted (F-RTO, RFC
        /// 5682 §3; Linux: true; own choice: false). Needs `undo`.
        pub frto: bool = false;
        /// If true, the window shrinks in proportion to the delivered data during recovery (PRR, RFC
        /// 9937), or for an RTT after a mark (Linux), instead of at once. Not used by transports that
        /// pace.
        pub proportional_reduction: bool = false;
        /// If true, a timeout during fast recovery does not reduce ssthresh again (Linux,
        /// `tcp_enter_loss`: true; ns-2, and RFC 5681 §4.3, which takes the loss of a retransmission for a
        /// second indication of congestion: false). For transports with the window of TCP or DCTCP.
        pub single_reduction: bool = false;
        /// RTO before the first RTT sample.
        pub initial_rto: Duration = Duration::from_millis(10), where positive;
        /// Minimum RTO.
        pub min_rto: Duration = Duration::from_millis(10), where positive;
        /// Maximum RTO after exponential backoff, which does not shorten an RTO that is longer without it.
        pub max_rto: Duration = Duration::from_millis(1_000), where positive;
        /// Minimum time between two NACKs for the same gap, with go-back-N ([ecndelay16], authors'
        /// code).
        pub nack_interval: Duration = Duration::from_micros(500);
        /// If true, a SYN and a SYN-ACK precede the data; the flow completion time then includes the
        /// handshake.
        pub handshake: bool = false;
        /// Number of lost SYNs above which the initial window is one packet (RFC 5681 §3.1: 0; Linux: 1).
        pub forgiven_syns: u32 = 0;
        /// Number of SYN retransmissions before the RTO begins to double (RFC 6298: 0; Linux: 4).
        pub linear_syns: u32 = 0;
        /// RTO of the first data if SYNs were lost and the handshake gave no RTT sample, which takes
        /// timestamps (RFC 6298 §5.7 and Linux: 3 s); none for the RTO of the SYN.
        pub syn_fallback_rto: Option<Duration> = None, where positive_if_given;
        /// If true, ACKs echo timestamps and each gives an RTT sample (RFC 7323); otherwise one segment
        /// at a time is timed, and retransmissions give no sample (Karn's algorithm).
        pub timestamps: bool = true;
        /// If true, ACKs carry the number of marked packets (AccECN, RFC 9768) instead of an echo until
        /// CWR (RFC 3168); for transports with `ecn` that handle marks as losses.
        pub accurate_ecn: bool = false;
        /// If true, ACKs also carry AccECN's option with a wide counter, so that the loss of ACKs is not
        /// taken for marks (RFC 9768 §3.2.3; Linux: on every ACK; own choice: false); with `accurate_ecn`.
        /// Its size is not counted.
        pub accurate_ecn_option: bool = false;
        /// Granularity of the clock for RTT samples; zero for an exact clock (RFC 6298: G).
        pub clock_granularity: Duration = Duration::ZERO;
        /// Maximum delay of the ACK of a segment in order, which waits for the next segment (RFC 5681
        /// §4.2: at most 500 ms); none acknowledges every segment at once.
        pub delayed_ack: Option<Duration> = None, where |delay| match delay {
            Some(delay) if *delay == Duration::ZERO || *delay > LONGEST_ACK_DELAY => {
                Err("above 0 and at most 500 ms")
            }
            _ => Ok(()),
        };
        /// Number of segments at the start that are acknowledged at once before ACKs are delayed (RFC
        /// 5681: 0; Linux: at least 16, and more while the receive window grows).
        pub quick_acks: u32 = 0;
        /// Maximum delay of a SACK for compression, after three SACKs of the same gap and after the quick
        /// ACKs; limited to a twentieth of the RTT, which is estimated as twice the one-way delay of the
        /// segment (Linux: 1 ms); none sends a SACK for every segment.
        pub sack_compression: Option<Duration> = None, where positive_if_given;
        /// Constant RTO; none computes the RTO by RFC 6298 with the parameters above.
        pub fixed_rto: Option<Duration> = None, where positive_if_given;
        /// Minimum difference of the RTO and the smoothed RTT (RFC 9002 §6.1.2: 1 ms).
        pub timer_granularity: Duration = Duration::from_millis(1);
        /// Period of the clock that drives the RTO and probe timers, whose granularity grows with their
        /// length (Linux: 1, 4 or 10 ms, a build option); zero for an exact clock.
        pub timer_tick: Duration = Duration::ZERO;
        /// Receive window in segments from the first missing segment on; none for an unlimited window.
        pub receive_window: Option<u32> = None, where positive_if_given;
        /// If true, the window grows only while it limits the flow, and not the application, the receive
        /// window or the host; in slow start also while it is less than twice what was in flight (congestion
        /// window validation, RFC 7661, RFC 9438 §5.8; Linux: true; own choice: false).
        pub window_validation: bool = false;
        /// Window of a persistent connection that has sent nothing for more than an RTO, of TCP, its variants
        /// and DCTCP (Linux: halving; own choice: none). With `halving` and `window_validation` the window
        /// also falls half way to what was used of it after each RTO in which the application did not fill it
        /// (Linux).
        pub idle_restart: IdleRestart = IdleRestart::None;
        /// RTT that a flow takes from finished flows between the same hosts: none, that of `linux`
        /// (`tcp_no_metrics_save = 0`, the default), or that of `rfc9040`. Persistent connections use it, and
        /// cache nothing, as they do not end.
        pub cached_rtt: CachedRtt = CachedRtt::None;
        /// If true, a flow starts with the ssthresh of finished flows between the same hosts, if they left
        /// slow start (Linux, `tcp_metrics.c`, with `tcp_no_ssthresh_metrics_save = 0`; the default of Linux
        /// is 1 since 5.6, here false). For transports with the window of TCP or DCTCP.
        pub cached_ssthresh: bool = false;
    }
    check |reliability: &Reliability| {
        let needs = |field| Err(Problem::new(field, "needs recovery = \"selective_repeat\" or \"rack\""));
        if reliability.frto && !reliability.undo {
            return Err(Problem::new("frto", "needs undo = true"));
        }
        if reliability.rescue && reliability.recovery != Recovery::SelectiveRepeat {
            return Err(Problem::new("rescue", "needs recovery = \"selective_repeat\""));
        }
        match reliability.recovery {
            Recovery::Rack => Ok(()),
            _ if reliability.undo => Err(Problem::new("undo", "needs recovery = \"rack\"")),
            Recovery::SelectiveRepeat => Ok(()),
            _ if reliability.duplicate_sack => needs("duplicate_sack"),
            _ if reliability.sack_blocks > 1 => needs("sack_blocks"),
            _ if reliability.sack_compression.is_some() => needs("sack_compression"),
            _ if reliability.tail_probe.is_some() => needs("tail_probe"),
            _ if reliability.proportional_reduction => needs("proportional_reduction"),
            Recovery::NewReno | Recovery::Reno | Recovery::GoBackN => Ok(()),
        }
    }
}

/// RFC 5681 §4.2.
const LONGEST_ACK_DELAY: Duration = Duration::from_millis(500);

fn sack_blocks() -> Bounds {
    Bounds::at_least(1.0).to(SACK_BLOCKS as f64).because("the space for TCP options")
}

impl Reliability {
    /// Returns the defaults: selective repeat with a minimum RTO of 10 ms ([dctcp10]).
    pub fn selective_repeat() -> Self {
        defaults()
    }

    /// Returns the parameters of hosts on the Internet: a handshake, and Linux's minimum RTO of 200 ms
    /// (RFC 6298 §2.4: a second).
    pub fn internet() -> Self {
        Self {
            initial_rto: Duration::from_millis(1_000),
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_millis(60_000),
            handshake: true,
            ..Self::selective_repeat()
        }
    }

    /// Returns selective repeat with an RTO that exceeds the queueing delay of a full buffer of 9 MB at
    /// 10 Gb/s.
    pub fn with_long_rto() -> Self {
        let rto = Duration::from_millis(20);
        Self { initial_rto: rto, min_rto: rto, ..Self::selective_repeat() }
    }

    /// Rejects parameters that leave packets without an ACK of their own, which `reason` requires.
    pub fn require_ack_per_packet(&self, reason: &str) -> Result<(), Problem> {
        let field = match (self.delayed_ack, self.sack_compression) {
            (None, None) => return Ok(()),
            (Some(_), _) => "delayed_ack",
            (None, Some(_)) => "sack_compression",
        };
        Err(Problem::new(field, format!("must be none: {reason}")).within("reliability"))
    }

    /// Returns the parameters of RDMA NICs: go-back-N.
    pub fn go_back_n() -> Self {
        Self { recovery: Recovery::GoBackN, ..Self::with_long_rto() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use serde_json::json;

    #[test]
    fn parameters_that_need_another_parameter_are_rejected_without_it() {
        for (recovery, field, needs) in [
            ("new_reno", "duplicate_sack", "needs recovery = \"selective_repeat\" or \"rack\""),
            ("selective_repeat", "undo", "needs recovery = \"rack\""),
            ("rack", "frto", "needs undo = true"),
            ("rack", "rescue", "needs recovery = \"selective_repeat\""),
        ] {
            let problem = Reliability::read(&json!({ "recovery": recovery, field: true }));
            assert_eq!(problem.unwrap_err().to_string(), format!("{field}: {needs}"));
        }
    }
}

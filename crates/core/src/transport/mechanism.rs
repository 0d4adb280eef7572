//! Options of a transport for the shared sender and receiver.

use super::endpoint::sender;
use super::reliability::Reliability;
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::host_clock::PortShare;
use crate::model::packet::{Flags, FlowNumber, Format, Kind, Packed, Packet};

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

impl CreditUse {
    /// Returns true if the receiver detects losses instead of the sender.
    pub fn replaces_acks(self) -> bool {
        !matches!(self, Self::None | Self::WithAcks)
    }
}

impl Mechanism {
    /// Fields of [`Reliability`] on loss detection, which [`credited`](Self::credited) sets: the receiver
    /// detects losses.
    pub const SET_BY_CREDIT: &[&str] = &["recovery", "duplicate_acks"];

    /// Fields of [`Reliability`] without effect if credit replaces ACKs, and that no environment sets then.
    pub const UNUSED_WITH_CREDIT: &[&str] =
        &["recovery", "duplicate_acks", "tail_probe", "sack_blocks", "delayed_ack"];

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

    /// Returns true if ACKs carry AccECN's option.
    pub fn has_accurate_ecn_option(&self) -> bool {
        self.reliability.accurate_ecn_option && self.acks.feedback == MarkFeedback::AccurateEcn
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

impl MarkFeedback {
    /// Returns true if the sender handles marks as losses, once per window of data (RFC 3168 §6.1.2).
    pub fn is_handled_as_loss(self) -> bool {
        matches!(self, Self::EchoUntilCwr | Self::AccurateEcn)
    }
}

//! Sender of a flow: handshake, window, pacing and timeouts, shared by all transports.
//!
//! The sender does no input or output: the simulation passes ACKs and timer expiries to it and polls
//! it for the next packet.

mod byte_stream;
mod credit;
mod gauges;
mod losses;
mod path_cache;
mod progress;
mod rtt_samples;
mod timers;
mod window_use;

use std::sync::Arc;

use self::byte_stream::FlowEnds;
use self::credit::CreditState;
use self::window_use::WindowUse;
use super::pacing::{Pacer, PacingLimit};
use super::rtt::RttEstimator;
use crate::base::prefetch::prefetch;
use crate::base::units::{Bytes, Duration, Time};
use crate::model::packet::{AckOptions, Flags, Format, Header, Kind, Packet};
use crate::transport::recovery::prr::ProportionalRateReduction;
use crate::transport::recovery::scoreboard::{AckOutcome, Scoreboard};
use crate::transport::recovery::sleek::Sleek;
use crate::transport::recovery::spurious::SpuriousLoss;
use crate::transport::recovery::tail_loss_probe::TailLossProbe;
use crate::transport::{
    Ack, Allowance, CongestionSignal, Controller, Mechanism, Opened, PacingPolicy, RtoRestart,
    TrainPacket, TrimmedAt,
};

/// The next packet of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextPacket {
    /// The first packet of the handshake.
    Syn,
    /// Data.
    Segment(Segment),
    /// A request to the receiving host for credit, without payload.
    Request,
    /// A request to routers for a rate, without payload.
    RouterProbe,
    /// A packet of this size without payload, which the receiver acknowledges.
    Padding(Bytes),
    /// Notification to routers that the flow has ended.
    Fin,
}

/// A segment to put into a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "properties of one transmission")]
pub struct Segment {
    /// Segment number.
    pub sequence: u32,
    /// Payload in bytes.
    pub payload: u32,
    /// True if the receiver is to acknowledge the segment without waiting for its group.
    pub wants_ack: bool,
    /// True if the segment was sent before.
    pub is_retransmit: bool,
    /// True if the segment is sent again because of a timer: its own, that of a request for credit or of a
    /// probe, or one of the receiver.
    pub is_timed_out: bool,
    /// True if the segment is a tail loss probe.
    pub is_probe: bool,
    /// True if the segment carries CWR: the sender has responded to an ECN mark.
    pub has_cwr: bool,
}

/// Number of segments of an unbounded flow.
const UNBOUNDED: u32 = u32::MAX;

/// State of the connection at the sender, in the terms of RFC 9293 §3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SenderState {
    /// The SYN is to be sent, or to be retransmitted.
    Closed,
    /// The SYN was sent.
    SynSent,
    /// The sender may send data.
    Established,
    /// The controller has terminated the flow; the sender sends no more data.
    Terminated,
}

/// FIN at the end of a flow: to routers, or to end the credit of a flow that was stopped or terminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    /// The flow has none, or nothing is to be done about it.
    Settled,
    /// To be sent once all data is acknowledged, or the flow is terminated.
    Due,
    /// Sent to a receiver that has not confirmed it.
    Unconfirmed,
}

/// Sender of a flow.
#[derive(Debug)]
pub struct Sender {
    /// Payload of all segments but the last, and of the last.
    full_payload: u32,
    last_payload: u32,
    header_bytes: u32,
    /// Ends of the flows that are not acknowledged, on a persistent connection.
    flow_ends: Option<Box<FlowEnds>>,
    state: SenderState,
    fin: Fin,
    /// True if the flow had no size, and was ended.
    was_stopped: bool,
    credit: CreditState,
    /// Segments before this one were sent before the last request that followed a timeout.
    requested_until: u32,
    scoreboard: Scoreboard,
    mechanism: Arc<Mechanism>,

    rtt: RttEstimator,
    /// The segment that is being timed, and when it was sent (without timestamps).
    timed_segment: Option<(u32, Time)>,
    /// Time when the retransmission timer was last started.
    rto_start: Time,
    /// Tail loss probes, if enabled. Boxed, since most flows have none.
    tail_probe: Option<Box<TailLossProbe>>,
    /// Loss probes of SLEEK, if enabled. Boxed, since most flows have none.
    sleek: Option<Box<Sleek>>,
    /// Proportional rate reduction, while one is in progress.
    rate_reduction: Option<ProportionalRateReduction>,
    /// Detection of spurious losses, if enabled. Boxed, since most flows have none.
    spurious_loss: Option<Box<SpuriousLoss>>,
    /// Losses detected by timers that the next `Ack` reports to the controller.
    unreported_losses: u32,

    /// Use of the window, if windows are validated.
    window_use: Option<WindowUse>,
    /// The window was reduced for marks and losses of the segments before this one.
    reduced_until: u32,
    /// The last reduction for a mark was one for the segments before this one.
    marked_until: u32,
    /// True if the next segment carries CWR.
    owes_cwr: bool,
    /// ECN mark count of the last ACK with AccECN: modulo 8, or of its option.
    mark_count: u32,

    /// Pacing of packets into the NIC.
    pub pacer: Pacer,
    /// Time when routers were last probed.
    probed_at: Time,

    /// Retransmitted data packets.
    pub retransmits: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Losses that timers have revealed to a sender by credit: credits for data that it had sent, and first
    /// requests without an answer.
    credit_losses: u32,
}

impl Sender {
    /// Reads ahead what an answer changes.
    pub fn read_ahead(&self) {
        prefetch(&self.state);
        prefetch(&self.scoreboard);
        prefetch(&self.rtt);
        prefetch(&self.pacer);
    }

    /// Creates a sender of `size` bytes of payload, or of unbounded payload.
    pub fn new(
        size: Option<Bytes>,
        mechanism: &Arc<Mechanism>,
        format: &Format,
        now: Time,
    ) -> Self {
        let reliability = &mechanism.reliability;
        let full = format.payload.0 as u32;
        let (total, last) = match size {
            None => (UNBOUNDED, full),
            Some(size) => (format.packets(size) as u32, format.last_payload(size).0 as u32),
        };
        let mut scoreboard = Scoreboard::new(total, reliability);
        if mechanism.acks.coalesced.is_some() {
            scoreboard.count_received();
        }
        Self {
            full_payload: full,
            last_payload: last,
            header_bytes: format.header.0 as u32,
            flow_ends: None,
            state: if reliability.handshake {
                SenderState::Closed
            } else {
                SenderState::Established
            },
            fin: if mechanism.signalling.sends_fin() { Fin::Due } else { Fin::Settled },
            was_stopped: false,
            credit: CreditState::new(mechanism.credit),
            requested_until: 0,
            scoreboard,
            mechanism: Arc::clone(mechanism),
            rtt: RttEstimator::default(),
            timed_segment: None,
            rto_start: now,
            tail_probe: reliability
                .tail_probe
                .map(|delay| Box::new(TailLossProbe::new(delay, reliability.timer_tick))),
            sleek: mechanism.sleek.then(|| Box::new(Sleek::unarmed())),
            rate_reduction: None,
            spurious_loss: reliability.undo.then(|| Box::new(SpuriousLoss::new(reliability.frto))),
            unreported_losses: 0,
            window_use: reliability.window_validation.then(WindowUse::default),
            reduced_until: 0,
            marked_until: 0,
            mark_count: 0,
            owes_cwr: false,
            pacer: Pacer::new(now, mechanism.port_share, format.time_unit),
            probed_at: now,
            retransmits: 0,
            timeouts: 0,
            credit_losses: 0,
        }
    }

    /// Returns true if the sender has nothing left to send: all data is acknowledged or the flow is
    /// terminated, and a FIN was sent and, if its receiver answers it, confirmed.
    pub fn is_done(&self) -> bool {
        self.is_finished() && self.fin == Fin::Settled
    }

    fn is_finished(&self) -> bool {
        self.scoreboard.is_done() || self.is_terminated()
    }

    /// Terminates the flow: sends no more data, even if the receiver lacks segments.
    pub fn terminate(&mut self) {
        if !self.is_terminated() {
            self.state = SenderState::Terminated;
            self.end_credit();
        }
    }

    /// Returns true if the flow was terminated.
    pub fn is_terminated(&self) -> bool {
        self.state == SenderState::Terminated
    }

    /// Ends an unbounded flow after the data sent so far. If the receiver would not acknowledge it before
    /// further data, one more segment follows, the last one, which requests an ACK.
    pub fn stop(&mut self) {
        let is_group_open = !self.scoreboard.highest().is_multiple_of(self.mechanism.acks.every);
        self.scoreboard.stop(is_group_open.into());
        self.end_credit();
        self.was_stopped = true;
    }

    /// Returns true if data may be sent.
    pub fn is_open(&self) -> bool {
        self.state == SenderState::Established
    }

    fn bytes(&self, segments: u32) -> Bytes {
        Bytes(u64::from(segments) * u64::from(self.full_payload))
    }

    /// Returns the next packet to send now, if the allowance permits one.
    #[inline]
    pub fn next_packet(&mut self, now: Time, allowance: Allowance) -> Option<NextPacket> {
        if self.is_finished() {
            return self.next_fin(now);
        }
        match self.state {
            SenderState::Established if self.credit == CreditState::Due => {
                Some(self.request_credit(now))
            }
            SenderState::Established => match self.next_segment(now, allowance) {
                None if self.next_router_probe(allowance) <= now => {
                    self.probed_at = now;
                    Some(NextPacket::RouterProbe)
                }
                segment => segment.map(NextPacket::Segment),
            },
            SenderState::SynSent | SenderState::Terminated => None,
            SenderState::Closed => {
                self.state = SenderState::SynSent;
                self.rto_start = now;
                Some(NextPacket::Syn)
            }
        }
    }

    #[inline]
    fn next_segment(&mut self, now: Time, allowance: Allowance) -> Option<Segment> {
        if self.may_wait_for_departure(allowance) && now < self.next_departure(allowance) {
            return None;
        }
        let segment = self.send_segment(now, allowance)?;
        if allowance.rate.is_some() {
            let bytes = segment.payload + self.header_bytes;
            self.pacer.on_sent(now, bytes, self.pacing_policy());
            if self.mechanism.rto_restart == RtoRestart::EverySegment {
                self.rto_start = now;
            }
        }
        Some(segment)
    }

    /// Returns true if the window permits a segment.
    pub fn has_data(&self, allowance: Allowance) -> bool {
        self.state == SenderState::Established && self.candidate(allowance).is_some()
    }

    /// Returns the packet to send for a packet of a probe train. It does not count for the pacing of
    /// other segments.
    pub fn train_packet(
        &mut self,
        now: Time,
        packet: TrainPacket,
        allowance: Allowance,
    ) -> Option<NextPacket> {
        match packet {
            TrainPacket::Segment => self.send_segment(now, allowance).map(NextPacket::Segment),
            TrainPacket::Padding(bytes) => Some(NextPacket::Padding(bytes)),
        }
    }

    /// Sends the next segment now, if the window permits one.
    fn send_segment(&mut self, now: Time, allowance: Allowance) -> Option<Segment> {
        let sequence = self.candidate(allowance)?;
        let is_first = self.scoreboard.in_flight() == 0 && !self.has_unacknowledged();
        let is_retransmit = self.scoreboard.on_sent(sequence, now);
        let is_probe = self.is_tail_probe_due();
        // RFC 6298 §5.1; a retransmission of the first missing segment restarts the timer, too. If
        // every retransmission did, a flow with many losses would never detect that the first
        // retransmission was lost.
        if is_first || is_retransmit && sequence == self.scoreboard.cumulative() {
            self.restart_rto(now);
        }
        self.retransmits += u32::from(is_retransmit);
        self.start_timing(sequence, is_retransmit, now);
        if let Some(reduction) = &mut self.rate_reduction {
            reduction.on_sent();
        }
        if is_probe {
            self.on_probe_sent(is_retransmit);
        } else if !is_retransmit {
            self.arm_probe_timer(now);
        } else if let Some(spurious_loss) = &mut self.spurious_loss {
            spurious_loss.on_retransmit(sequence, now);
        }
        let last_payload = self.last_payload_at(sequence);
        let (payload, is_last) =
            (last_payload.unwrap_or(self.full_payload), last_payload.is_some());
        let ends_group = (sequence + 1).is_multiple_of(self.mechanism.acks.every);
        if !is_retransmit && let Some(payload) = last_payload {
            self.add_unfilled(payload);
        }
        let wants_ack = ends_group || is_retransmit || is_last;
        // RFC 3168 §6.1.2: CWR on the first new packet. Deviation: on the first packet after a
        // timeout, since new data would be late and ECE would prevent window growth until then.
        let has_cwr = self.owes_cwr && (!is_retransmit || self.scoreboard.has_timed_out());
        self.owes_cwr &= !has_cwr;
        let is_timed_out = is_retransmit && (self.scoreboard.take_timed_out(sequence) || is_probe);
        let properties = Segment {
            sequence,
            payload,
            wants_ack,
            is_retransmit,
            is_timed_out,
            is_probe,
            has_cwr,
        };
        Some(properties)
    }

    /// Returns the next segment to send, if the window permits one. One packet may always be in
    /// flight. A tail loss probe is new data or else the last segment sent (RFC 8985 §7.3).
    #[inline]
    fn candidate(&self, allowance: Allowance) -> Option<u32> {
        let candidate =
            self.scoreboard.candidate().filter(|(sequence, _)| *sequence < allowance.granted);
        if self.is_tail_probe_due() {
            return Some(candidate.map_or(self.scoreboard.highest() - 1, |(sequence, _)| sequence));
        }
        let (sequence, ignores_window) = candidate?;
        (ignores_window || !self.is_window_full(allowance)).then_some(sequence)
    }

    /// Returns true if the window permits no further segment.
    #[inline]
    fn is_window_full(&self, allowance: Allowance) -> bool {
        let in_flight = self.scoreboard.in_flight();
        let window = self
            .rate_reduction
            .map_or(allowance.window, |reduction| self.bytes(reduction.window()));
        if allowance.counts_bytes {
            return in_flight > 0
                && self.bytes(in_flight).0 >= window.0.saturating_add(self.unfilled());
        }
        in_flight > 0 && self.bytes(in_flight + 1) > window
    }

    /// Returns true if something other than the window may delay the next segment: a rate, or the NIC.
    #[inline]
    fn may_wait_for_departure(&self, allowance: Allowance) -> bool {
        allowance.rate.is_some() || self.pacer.is_batch_full()
    }

    /// Returns the earliest departure of the next segment.
    fn next_departure(&self, allowance: Allowance) -> Time {
        self.pacer.earliest_departure(self.pacing_limit(allowance))
    }

    /// Returns the pacing limits on the next segment.
    pub fn pacing_limit(&self, allowance: Allowance) -> PacingLimit {
        let policy = self.pacing_policy();
        match allowance.rate {
            Some(rate) if self.scoreboard.highest() >= policy.unpaced => {
                self.pacer.limit(rate, policy)
            }
            _ => self.pacer.unpaced_limit(),
        }
    }

    fn pacing_policy(&self) -> PacingPolicy {
        self.mechanism.pacing.unwrap_or(PacingPolicy::PER_PACKET)
    }

    /// Handles a SYN-ACK, which completes the handshake. `rtt` is the RTT reported to the controller.
    pub fn on_syn_ack(
        &mut self,
        now: Time,
        packet: &Packet,
        rtt: Duration,
        controller: &mut dyn Controller,
    ) {
        if self.state != SenderState::SynSent {
            return;
        }
        self.state = SenderState::Established;
        let is_first_syn = self.has_timestamps()
            && (self.spurious_loss.as_ref()).is_some_and(|loss| loss.is_first_syn(packet.sent_at));
        let forgiven_syns = self.mechanism.reliability.forgiven_syns;
        let syn_was_lost = self.timeouts > forgiven_syns && !is_first_syn;
        if self.has_timestamps() || self.timeouts == 0 {
            self.add_rtt_sample(packet.sent_at, now);
        }
        self.rtt.on_established(&self.mechanism.reliability);
        self.probed_at = now;
        let feedback = packet.header().feedback();
        controller.on_open(&Opened { now, rtt, feedback, syn_was_lost });
    }

    /// Handles an ACK or NACK, with the options that do not fit its header, and notifies the controller,
    /// with `rtt` as the measured RTT. Returns true if the ACK reports an ECN mark.
    #[inline]
    pub fn on_ack(
        &mut self,
        now: Time,
        packet: &Packet,
        options: Option<&AckOptions>,
        rtt: Duration,
        controller: &mut dyn Controller,
    ) -> bool {
        let header = packet.header();
        let block = if let Header::Ack { block, .. } = header { block } else { (0, 0) };
        let blocks = options.map_or(std::slice::from_ref(&block), |options| &options.blocks[..]);
        let flight = self.scoreboard.flight_size();
        let (was_recovering, had_timed_out) =
            (self.scoreboard.is_recovering(), self.scoreboard.has_timed_out());
        // Before losses are detected, whose reordering window the smoothed RTT limits.
        self.sample_rtt(now, packet);
        let is_reported = self.mechanism.acks.coalesced.is_some();
        let reported = packet.received().filter(|_| is_reported && packet.kind == Kind::Ack);
        let reported = reported.map(|received| self.scoreboard.on_report(received));
        let mut outcome = if packet.kind == Kind::Nack {
            self.scoreboard.on_nack(packet.sequence, block.0, now)
        } else if packet.kind == Kind::ProbeAck {
            // Acknowledges no data, and so is not a duplicate ACK.
            AckOutcome::default()
        } else {
            self.scoreboard.on_ack(packet.sequence, blocks, now, self.echoed_timestamp(packet))
        };
        let marked = self.has_new_mark(packet, options, outcome);
        // RFC 6298 §5.3, RFC 6675 §6: only an advance of the cumulative acknowledgement restarts the
        // timer. If SACKs of new data did, the timeout of a lost retransmission could be postponed
        // without end. With RACK also a delivery from before the last transmission of the first
        // missing segment does (Linux, `tcp_clean_rtx_queue`).
        let predates_first =
            || outcome.delivered > 0 && self.scoreboard.predates_first(packet.sent_at);
        if outcome.advanced > 0 || predates_first() {
            self.restart_rto(now);
        }
        if self.spurious_loss.is_some() {
            let before = (was_recovering, had_timed_out);
            outcome = self.detect_spurious_loss(
                now,
                packet,
                blocks[0],
                (outcome, marked),
                before,
                controller,
            );
        }
        self.note_probed_losses(outcome);
        let has_probed_loss = self.tail_probe.as_mut().is_some_and(|probe| {
            probe.on_ack(self.scoreboard.cumulative(), outcome.delivered + outcome.lost > 0)
        });
        if outcome.starts_recovery {
            self.enter_recovery(now, flight, controller);
        } else if has_probed_loss && self.scoreboard.is_in_order() {
            self.reduce_window(now, flight, CongestionSignal::DetectedLoss, controller);
        } else if self.responds_to_mark(marked) {
            self.reduce_sending(now, flight, CongestionSignal::EcnMark, controller);
        }
        if outcome.delivered > 0 {
            self.arm_probe_timer(now);
            self.update_rate_reduction(outcome);
        }
        let delivered = if is_reported { reported.unwrap_or_default() } else { outcome.delivered };
        let trimmed_at = if packet.flags.has(Flags::LAST_HOP) {
            TrimmedAt::LastHop
        } else {
            TrimmedAt::EarlierHop
        };
        let has_last = outcome.has_last && delivered > 0;
        let bytes = self.delivered_payload(AckOutcome { delivered, has_last, ..outcome });
        let is_probe_ack = match packet.kind {
            Kind::ProbeAck => true,
            Kind::Ack => is_reported && packet.flags.has(Flags::ANSWERS_REQUEST),
            _ => false,
        };
        controller.on_ack(&Ack {
            now,
            bytes,
            advanced: outcome.advanced,
            delivered,
            rtt,
            marked,
            feedback: header.feedback(),
            sent_at: packet.sent_at,
            is_probe_ack,
            cumulative: self.scoreboard.cumulative(),
            next: self.scoreboard.highest(),
            is_recovering: self.scoreboard.is_recovering() || self.rate_reduction.is_some(),
            lost: outcome.lost + std::mem::take(&mut self.unreported_losses),
            trimmed: (packet.kind == Kind::Nack).then_some(trimmed_at),
            in_flight: self.bytes(self.scoreboard.in_flight()),
            used_window: self.window_use.and_then(|window_use| window_use.used(self.full_payload)),
        });
        if self.sleek.is_some() {
            self.detect_losses_by_count(now, rtt, is_probe_ack, controller);
        }
        if self.scoreboard.prefers_new() && self.candidate(controller.allowance()).is_none() {
            self.confirm_timeout();
        }
        marked
    }
}

#[cfg(test)]
mod tests;

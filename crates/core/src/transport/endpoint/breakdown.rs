//! FCT breakdown at the sender: what delayed each transmission (docs/design/measurement.md).

use std::collections::VecDeque;

use super::pacing::PacingLimit;
use super::sender::{Segment, Sender};
use crate::base::units::{Duration, Time};
use crate::breakdown::chain::{Chain, ChainInterval};
use crate::breakdown::pool::{BreakdownPool, BreakdownRef};
use crate::breakdown::{Breakdown, Completion, Handshake, PacketRecord, PathDelays, WaitReason};
use crate::transport::Allowance;

/// FCT breakdown of one sender.
#[derive(Debug)]
pub struct SenderBreakdown {
    /// Start of the flow that `next` belongs to.
    start: Time,
    /// Breakdown of the handshake, once it has ended.
    handshake: Option<Box<Handshake>>,
    /// Breakdown of a transmission at `updated_at`, shared by all packets that one ACK releases.
    next: BreakdownRef,
    updated_at: Time,
    /// True if the next segment waits for the window or for credit. Otherwise pacing delays it, if anything.
    is_window_full: bool,
    /// Losses that timers had revealed when the window became full.
    timer_losses: u32,
    /// Limit of the next segment by pacing, as of the last update.
    pacing_limit: PacingLimit,
    /// Number of the NIC's port that the last packet left by, and its total time paused, as of the
    /// last update.
    port: (u32, Duration),
    /// Time and breakdown of the last transmission of each unacknowledged segment.
    unacknowledged: VecDeque<(Time, BreakdownRef)>,
    /// Sequence number of the first unacknowledged segment.
    first_unacknowledged: u32,
    /// Chain of causes, if it is kept for this flow.
    chain: Option<Chain>,
    /// Flows of a persistent connection that are not sent yet.
    stream: Option<Box<UnsentFlows>>,
}

/// Flows of a byte stream that are not sent completely.
#[derive(Debug)]
struct UnsentFlows {
    /// Number in the byte stream of the flow that the next segment belongs to.
    index: u32,
    /// Start of each of them, and end of its segments.
    flows: VecDeque<(Time, u32)>,
}

impl SenderBreakdown {
    /// Returns the empty breakdown of a flow that starts now, with a chain of up to `most` intervals.
    pub fn new(now: Time, most: usize) -> Self {
        Self {
            start: now,
            handshake: None,
            next: BreakdownRef::default(),
            updated_at: now,
            is_window_full: false,
            timer_losses: 0,
            pacing_limit: PacingLimit::default(),
            port: (u32::MAX, Duration::ZERO),
            unacknowledged: VecDeque::new(),
            first_unacknowledged: 0,
            chain: (most > 0).then(|| Chain::new(most)),
            stream: None,
        }
    }

    /// Begins the byte stream of a persistent connection, whose first flow ends at segment `end`.
    pub fn begin_stream(&mut self, end: u32) {
        let flows = VecDeque::from([(self.start, end)]);
        self.stream = Some(Box::new(UnsentFlows { index: 0, flows }));
    }

    /// Appends a flow to the byte stream, whose segments end at `end`. The chain of the byte stream has up to
    /// `most` intervals.
    pub fn append(&mut self, now: Time, end: u32, most: usize, pool: &mut BreakdownPool) {
        let Some(stream) = &mut self.stream else { return };
        stream.flows.push_back((now, end));
        if most > 0 {
            self.chain.get_or_insert_default().extend(most);
        }
        if stream.flows.len() == 1 {
            stream.index += 1;
            self.is_window_full = false;
            self.begin_flow(now, now, pool);
        }
    }

    /// Notes that the last segment of a flow of the byte stream was sent: the next one is first in line.
    fn end_flow(&mut self, now: Time, pool: &mut BreakdownPool) {
        let Some(stream) = &mut self.stream else { return };
        stream.flows.pop_front();
        if let Some((start, _)) = stream.flows.front().copied() {
            stream.index += 1;
            self.begin_flow(now, start, pool);
        }
    }

    /// Begins the breakdown of the flow of the byte stream that the next segment belongs to. Since its start
    /// at `start` it has waited for earlier flows.
    fn begin_flow(&mut self, now: Time, start: Time, pool: &mut BreakdownPool) {
        let empty = pool.add(Breakdown::of_stream_flow(self.stream_index()));
        pool.release(std::mem::replace(&mut self.next, empty));
        self.start = start;
        self.updated_at = now;
        self.add_wait(WaitReason::Connection, now - start, pool);
    }

    /// Number in the byte stream of the flow that the next segment belongs to; 0 without a byte stream.
    fn stream_index(&self) -> u32 {
        self.stream.as_ref().map_or(0, |stream| stream.index)
    }

    /// Returns the chain of the packet that completed the flow, if it is kept.
    pub fn chain(&self, completion: &Completion) -> Option<Vec<ChainInterval>> {
        let handshake = self.handshake(completion);
        self.chain.as_ref()?.leading_to(&handshake, completion)
    }

    /// Breakdown of the handshake of a flow, which is empty for the later flows of a connection.
    pub fn handshake(&self, completion: &Completion) -> Handshake {
        let handshake = self.handshake.as_deref();
        handshake.filter(|_| completion.breakdown.stream_index() == 0).copied().unwrap_or_default()
    }

    /// Number of the port that the last packet left by.
    pub fn port(&self) -> u32 {
        self.port.0
    }

    /// Returns true if the packet just received may have opened the flow or its window, so that
    /// [`update`](Self::update) needs the packet's record.
    pub fn needs_record(&self, sender: &Sender, allowance: Allowance) -> bool {
        sender.is_open()
            && (self.handshake.is_none()
                || self.is_window_full && sender.has_data(allowance) && !sender.uses_credit())
    }

    /// Accounts for the time since the last update, before the sender transmits. `record` belongs
    /// to the packet just received, if it is [needed](Self::needs_record). `paused` is the total
    /// time for which the host's port has been paused.
    pub fn update(
        &mut self,
        now: Time,
        sender: &Sender,
        allowance: Allowance,
        record: Option<PacketRecord>,
        paused: Duration,
        pool: &mut BreakdownPool,
    ) {
        if !sender.is_open() {
            return;
        }
        // Released first, so that `next` is modified in place if no packet refers to it any more.
        while self.first_unacknowledged < sender.cumulative()
            && let Some((_, breakdown)) = self.unacknowledged.pop_front()
        {
            pool.release(breakdown);
            self.first_unacknowledged += 1;
        }
        let newly_paused = paused - std::mem::replace(&mut self.port.1, paused);
        if self.handshake.is_none() {
            self.end_handshake(now, record, pool);
        } else if !self.is_window_full {
            self.add_pacing(now, sender, newly_paused, pool);
        } else if record.is_some() || sender.has_data(allowance) {
            self.is_window_full = false;
            if let Some(record) = record {
                self.add_window_rtt(now, record, pool);
            } else {
                let reason = self.reason_without_ack(sender);
                self.add_wait(reason, now - self.updated_at, pool);
            }
            self.updated_at = now;
        }
    }

    /// Returns why the sender has waited until now, if no ACK has opened its window.
    fn reason_without_ack(&self, sender: &Sender) -> WaitReason {
        // All packets in flight were lost, and a timer of the sender has emptied the window, or one of the
        // receiver has requested them again. Only a tail loss probe may exceed the window.
        if sender.timer_losses() > self.timer_losses || sender.is_tail_probe_due() {
            WaitReason::Timeout
        } else if sender.uses_credit() {
            WaitReason::Credit
        } else if sender.takes_turns() {
            // The answer to a request after the timeout of a segment opens the window.
            WaitReason::Timeout
        } else {
            WaitReason::Pacing
        }
    }

    /// Continues from the breakdown of the packet that an ACK acknowledges. If that is a packet of an earlier
    /// flow of the connection, the flow has waited for earlier flows since its start.
    fn add_window_rtt(&mut self, now: Time, record: PacketRecord, pool: &mut BreakdownPool) {
        let PacketRecord { breakdown, delays, receiver } = record;
        if pool.get(&breakdown).stream_index() != self.stream_index() {
            pool.release(breakdown);
            return self.begin_flow(now, self.start, pool);
        }
        pool.release(std::mem::replace(&mut self.next, breakdown));
        let breakdown = pool.make_mut(&mut self.next);
        breakdown.add_window_rtt(&delays, receiver);
        if let Some(chain) = &mut self.chain {
            chain.add_window_rtt(breakdown, &delays, receiver);
        }
    }

    fn end_handshake(&mut self, now: Time, record: Option<PacketRecord>, pool: &mut BreakdownPool) {
        let mut delays = PathDelays::ZERO;
        if let Some(record) = record {
            delays = record.delays;
            pool.release(record.breakdown);
        }
        let sender = Duration((now - self.start).0 - delays.total().0);
        self.handshake = Some(Box::new(Handshake { delays, sender }));
        self.updated_at = now;
    }

    /// Adds the time since the last update, in which pacing and the NIC delayed the next segment.
    /// If both did, the constraint that ended last comes last.
    fn add_pacing(
        &mut self,
        now: Time,
        sender: &Sender,
        paused: Duration,
        pool: &mut BreakdownPool,
    ) {
        if sender.takes_turns() {
            // The port serves other flows of the host.
            self.add_nic_wait(now - self.updated_at, paused, pool);
            self.updated_at = now;
            return;
        }
        let clamp = |time: Time| time.min(now).max(self.updated_at);
        let PacingLimit { earliest, nic } = self.pacing_limit;
        let nic_ready = sender.pacer.nic_ready(nic);
        if nic_ready <= earliest {
            let nic_end = clamp(nic_ready);
            self.add_nic_wait(nic_end - self.updated_at, paused, pool);
            self.add_wait(WaitReason::Pacing, now - nic_end, pool);
        } else {
            let pacing_end = clamp(earliest);
            self.add_wait(WaitReason::Pacing, pacing_end - self.updated_at, pool);
            self.add_nic_wait(now - pacing_end, paused, pool);
        }
        self.updated_at = now;
    }

    /// Adds a NIC wait, in which the NIC was `paused` for part of the time.
    fn add_nic_wait(&mut self, duration: Duration, paused: Duration, pool: &mut BreakdownPool) {
        let paused = paused.min(duration);
        self.add_wait(WaitReason::NicPaused, paused, pool);
        self.add_wait(WaitReason::Nic, duration - paused, pool);
    }

    fn add_wait(&mut self, reason: WaitReason, duration: Duration, pool: &mut BreakdownPool) {
        add_wait(&mut self.next, &mut self.chain, reason, duration, pool);
    }

    /// Returns the breakdown of a segment that is transmitted now by a port, given by its number
    /// and its total time paused. For a retransmission, the time since the last transmission of the
    /// segment is loss recovery: after a timeout, or after ACKs or credits that show a sequence gap.
    pub fn on_send(
        &mut self,
        now: Time,
        segment: Segment,
        port: (u32, Duration),
        pool: &mut BreakdownPool,
    ) -> BreakdownRef {
        self.port = port;
        let index = (segment.sequence - self.first_unacknowledged) as usize;
        if segment.is_retransmit {
            let (sent_at, breakdown) = &mut self.unacknowledged[index];
            let reason =
                if segment.is_timed_out { WaitReason::Timeout } else { WaitReason::SequenceGap };
            add_wait(breakdown, &mut self.chain, reason, now - *sent_at, pool);
            *sent_at = now;
            return pool.share(breakdown);
        }
        assert!(
            self.updated_at == now && index == self.unacknowledged.len(),
            "segment {} is transmitted without an update, or out of order",
            segment.sequence
        );
        self.unacknowledged.push_back((now, pool.share(&self.next)));
        let reference = pool.share(&self.next);
        let ends_flow = |stream: &UnsentFlows| {
            stream.flows.front().is_some_and(|(_, end)| segment.sequence + 1 == *end)
        };
        if self.stream.as_deref().is_some_and(ends_flow) {
            self.end_flow(now, pool);
        }
        reference
    }

    /// Notes what delays the next segment, after the sender has transmitted all that it may.
    pub fn note_constraint(&mut self, sender: &Sender, allowance: Allowance) {
        let was_full = std::mem::replace(
            &mut self.is_window_full,
            sender.is_open() && !sender.has_data(allowance),
        );
        if !was_full {
            self.timer_losses = sender.timer_losses();
        }
        self.pacing_limit = sender.pacing_limit(allowance);
    }

    /// Releases all references, when the sender has nothing left to transmit.
    pub fn release(&mut self, pool: &mut BreakdownPool) {
        pool.release(std::mem::take(&mut self.next));
        self.unacknowledged.drain(..).for_each(|(_, breakdown)| pool.release(breakdown));
    }
}

/// Adds a wait to a breakdown and its chain.
fn add_wait(
    breakdown: &mut BreakdownRef,
    chain: &mut Option<Chain>,
    reason: WaitReason,
    duration: Duration,
    pool: &mut BreakdownPool,
) {
    if duration == Duration::ZERO {
        return;
    }
    let breakdown = pool.make_mut(breakdown);
    breakdown.add_wait(reason, duration);
    if let Some(chain) = chain {
        chain.add_wait(breakdown, reason, duration);
    }
}

#[cfg(test)]
mod tests;

//! Byte stream of a persistent connection: several flows one after the other, each from a segment of its own.
//!
//! Loss recovery, RTT estimate and window belong to the connection, and sequence numbers continue. Flows do
//! not share segments, as with `TCP_NODELAY`, and as messages of a queue pair do not.

use std::collections::VecDeque;

use super::{Sender, SenderState, UNBOUNDED};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::packet::Format;
use crate::transport::recovery::scoreboard::AckOutcome;
use crate::transport::{Allowance, Controller, IdleRestart, Restart, WindowReduction};

/// Last segments of flows, each with its payload, in order.
#[derive(Debug)]
pub(super) struct FlowEnds {
    ends: VecDeque<(u32, u32)>,
    /// Payload of short segments that was counted as that of full ones in delivered payload.
    excess: u32,
    /// Payload by which short segments that are sent and not acknowledged differ from full ones.
    unfilled: u64,
}

impl Sender {
    /// Begins a byte stream with the flow that the sender was created for. It has no handshake if the
    /// connection `is_open`.
    pub fn begin_stream(&mut self, is_open: bool) {
        if is_open {
            self.state = SenderState::Established;
        }
        let last = (self.scoreboard.total() - 1, self.last_payload);
        self.flow_ends =
            Some(Box::new(FlowEnds { ends: VecDeque::from([last]), excess: 0, unfilled: 0 }));
    }

    /// Returns true if a flow of `size` has sequence numbers left.
    pub fn can_append(&self, size: Bytes, format: &Format) -> bool {
        format.packets(size) < u64::from(UNBOUNDED - self.scoreboard.total())
    }

    /// Appends a flow to the byte stream.
    pub fn append(
        &mut self,
        size: Bytes,
        format: &Format,
        now: Time,
        controller: &mut dyn Controller,
    ) {
        if self.state == SenderState::Established && self.scoreboard.is_done() {
            let restart = self.restart(now);
            controller.on_restart(&restart);
            if restart.reduction != WindowReduction::None
                && let Some(window_use) = &mut self.window_use
            {
                window_use.restart(now);
            }
        }
        self.scoreboard.append(format.packets(size) as u32);
        if let Some(flow_ends) = &mut self.flow_ends {
            let payload = format.last_payload(size).0 as u32;
            flow_ends.ends.push_back((self.scoreboard.total() - 1, payload));
        }
    }

    /// Returns the end of the segments of all flows.
    pub fn stream_end(&self) -> u32 {
        self.scoreboard.total()
    }

    /// Returns true if the window permits more than there is to send.
    pub fn is_app_limited(&self, allowance: Allowance) -> bool {
        self.scoreboard.candidate().is_none() && !self.is_window_full(allowance)
    }

    /// Returns the end of the idle time that ends now.
    pub(super) fn restart(&self, now: Time) -> Restart {
        // The port of the host reports when it has sent the last packet.
        let idle = Duration(now.0.saturating_sub(self.pacer.nic_free().0));
        let rto = self.timeout();
        let reduction = match self.mechanism.reliability.idle_restart {
            _ if idle <= rto => WindowReduction::None,
            IdleRestart::None => WindowReduction::None,
            IdleRestart::Initial => WindowReduction::Initial,
            // Linux (`tcp_cwnd_restart`): once if idle for more than an RTO, twice for more than two.
            IdleRestart::Halving => WindowReduction::Halvings(((idle.0 - 1) / rto.0) as u32),
        };
        Restart { now, idle, reduction }
    }

    /// Counts a segment with this payload that is sent, on a byte stream.
    pub(super) fn add_unfilled(&mut self, payload: u32) {
        if let Some(flow_ends) = &mut self.flow_ends {
            flow_ends.unfilled += u64::from(self.full_payload - payload);
        }
    }

    /// Returns the payload by which short segments in flight differ from full ones. Includes those that SACKs
    /// have reported.
    pub(super) fn unfilled(&self) -> u64 {
        self.flow_ends.as_ref().map_or(0, |flow_ends| flow_ends.unfilled)
    }

    /// Returns the payload of a segment if it is the last one of a flow.
    pub(super) fn last_payload_at(&self, sequence: u32) -> Option<u32> {
        match &self.flow_ends {
            None => (sequence + 1 == self.scoreboard.total()).then_some(self.last_payload),
            Some(flow_ends) => {
                let ends = &flow_ends.ends;
                let at = ends.binary_search_by_key(&sequence, |(last, _)| *last).ok()?;
                Some(ends[at].1)
            }
        }
    }

    /// Returns the payload that an ACK newly reports as delivered.
    pub(super) fn delivered_payload(&mut self, outcome: AckOutcome) -> Bytes {
        if self.flow_ends.is_some() {
            return self.delivered_payload_of_flows(outcome);
        }
        let short = if outcome.has_last { self.full_payload - self.last_payload } else { 0 };
        Bytes(self.bytes(outcome.delivered).0 - u64::from(short))
    }

    /// Returns the payload that an ACK newly reports as delivered. The last segment of a flow counts as a
    /// full one until the cumulative acknowledgement passes it.
    fn delivered_payload_of_flows(&mut self, outcome: AckOutcome) -> Bytes {
        let (cumulative, full) = (self.scoreboard.cumulative(), self.full_payload);
        let delivered = self.bytes(outcome.delivered).0;
        let Some(flow_ends) = &mut self.flow_ends else { return Bytes(delivered) };
        while let Some((last, payload)) = flow_ends.ends.front()
            && *last < cumulative
        {
            flow_ends.excess += full - payload;
            flow_ends.unfilled = flow_ends.unfilled.saturating_sub(u64::from(full - payload));
            flow_ends.ends.pop_front();
        }
        let excess = u64::from(flow_ends.excess).min(delivered);
        flow_ends.excess -= excess as u32;
        Bytes(delivered - excess)
    }
}

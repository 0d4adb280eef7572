//! RCCC: receiver-credited congestion control of Ultra Ethernet Transport.
//!
//! Source: `uec.cpp` of uet-htsim (August 2025), which its authors base on UEC 1.0 §3.6.14. Each packet has
//! the credit that its sender wants in total. The receiving host grants credit at a share of its line rate,
//! to the flows that want some in turn. While no flow wants credit it grants some to those that had it, as
//! slow pulls. A flow starts with speculative credit, which ends at the first answer.
//!
//! Deviations: a flow that has ended gets no credit, and slow pulls end when a largest window is granted
//! beyond what a flow wants (htsim compares quanta with bytes).

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::FlowNumber;
use crate::transport::{Arrival, Credit, CreditScheduler, InboundFlow, MissingSegments};

/// Unit of credit in packets.
const QUANTUM: u32 = 256;
/// Quanta whose time passes after a pull that grants nothing.
const EMPTY_PULL: u32 = 4;

/// Credit of a sender.
#[derive(Debug)]
pub struct SenderCredit {
    /// Bytes that may be sent. Negative by less than a packet.
    credit: i64,
    /// Most credit.
    most: i64,
    packet: i64,
    /// Quanta granted in total.
    granted: u32,
    is_speculating: bool,
}

impl SenderCredit {
    /// Returns the speculative credit of a flow: `most` bytes.
    pub fn new(most: u64, packet: Bytes) -> Self {
        let most = most.cast_signed();
        let packet = packet.0.cast_signed();
        Self { credit: most, most, packet, granted: 0, is_speculating: true }
    }

    /// Returns true if a packet may be sent.
    pub fn may_send(&self) -> bool {
        self.credit > 0
    }

    /// Handles the transmission of a packet.
    pub fn on_sent(&mut self, bytes: Bytes) {
        self.credit -= bytes.0.cast_signed();
    }

    /// Handles an answer, of which the first ends speculation.
    pub fn on_answer(&mut self) {
        if std::mem::take(&mut self.is_speculating) {
            self.credit = self.credit.min(0);
        }
    }

    /// Handles a pull, which grants this number of quanta in total.
    pub fn on_pull(&mut self, granted: u32) {
        self.on_answer();
        if granted > self.granted {
            let quanta = granted - self.granted;
            self.credit = (self.credit + i64::from(quanta) * i64::from(QUANTUM)).min(self.most);
            self.granted = granted;
        }
    }

    /// Returns the quanta that the sender wants in total, when `unsent` bytes are to be sent, `window` may be
    /// in flight, and this number of flows share the host's port.
    pub fn target(&self, unsent: u64, window: u64, flows: u32) -> u32 {
        let wanted = unsent
            .min(window.saturating_add(self.packet.unsigned_abs()))
            .min(self.most.unsigned_abs());
        let mut wanted = wanted.cast_signed() - self.credit;
        if self.is_speculating && unsent > 0 {
            // So that a short flow requests credit at all.
            wanted = wanted.max(self.packet);
        }
        // A host does not request more than it can send, but at least what permits the next packet, which
        // requests the rest. Deviation: in htsim the share of a last packet may be less than the debt, and
        // the flow waits for timeouts.
        wanted /= i64::from(flows);
        if unsent > 0 {
            wanted = wanted.max(1 - self.credit);
        }
        let total = wanted + i64::from(self.granted) * i64::from(QUANTUM);
        total.max(0).unsigned_abs().div_ceil(u64::from(QUANTUM)) as u32
    }

    /// Returns the bytes that may be sent.
    pub fn bytes(&self) -> i64 {
        self.credit
    }
}

/// List of flows that a flow is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    None,
    Active,
    Idle,
}

/// Flow at its receiver.
#[derive(Debug)]
struct Inbound {
    /// Quanta granted, and the largest total that a packet has requested.
    granted: u32,
    wanted: u32,
    list: List,
}

/// Pulls of a receiving host.
pub struct PullPacer {
    /// Time per quantum.
    quantum_time: Duration,
    /// Quanta of the largest pull.
    largest: u32,
    /// Quanta that slow pulls may grant to a flow beyond what it wants.
    most_slow: u32,
    flows: FxHashMap<FlowNumber, Inbound>,
    /// Flows that want credit, and flows that had some, each in the order of their turns.
    active: VecDeque<FlowNumber>,
    idle: VecDeque<FlowNumber>,
    /// Earliest time of the next pull.
    next_pull: Time,
}

impl PullPacer {
    /// Returns the pulls of a host, each of `largest` at most, at a share of its line rate, for senders with
    /// `most` bytes of credit.
    pub fn new(line_rate: Rate, share: f64, largest: Bytes, most: u64) -> Self {
        let time = line_rate.transmit(Bytes(u64::from(QUANTUM))).0 as f64 / share;
        Self {
            // htsim truncates it to picoseconds.
            quantum_time: Duration(time as u64),
            largest: largest.0.div_ceil(u64::from(QUANTUM)) as u32,
            most_slow: (most / u64::from(QUANTUM)) as u32,
            flows: FxHashMap::default(),
            active: VecDeque::new(),
            idle: VecDeque::new(),
            next_pull: Time::ZERO,
        }
    }
}

impl CreditScheduler for PullPacer {
    fn on_start(&mut self, _now: Time, inbound: &InboundFlow) {
        let flow = Inbound { granted: 0, wanted: 0, list: List::None };
        self.flows.insert(inbound.flow, flow);
    }

    fn on_arrival(&mut self, _now: Time, number: FlowNumber, arrival: Arrival) {
        let Some(flow) = self.flows.get_mut(&number) else { return };
        let (wanted, has_lost) = match arrival {
            Arrival::Data { number, .. } => (number, false),
            // A request follows a loss: its pull repeats credits.
            Arrival::Request { number } | Arrival::Trimmed { number } => (number, true),
        };
        let is_active = wanted > flow.wanted || has_lost;
        flow.wanted = flow.wanted.max(wanted);
        if is_active && flow.list != List::Active {
            if flow.list == List::Idle {
                self.idle.retain(|other| *other != number);
            }
            flow.list = List::Active;
            self.active.push_back(number);
        }
    }

    fn on_end(&mut self, _now: Time, flow: FlowNumber) {
        match self.flows.remove(&flow).map_or(List::None, |inbound| inbound.list) {
            List::Active => self.active.retain(|other| *other != flow),
            List::Idle => self.idle.retain(|other| *other != flow),
            List::None => {}
        }
    }

    fn next_credit(
        &mut self,
        now: Time,
        _missing: MissingSegments<'_>,
    ) -> Option<(FlowNumber, Credit)> {
        if now < self.next_pull {
            return None;
        }
        let is_slow = self.active.is_empty();
        let number = self.active.pop_front().or_else(|| self.idle.pop_front())?;
        let flow = self.flows.get_mut(&number)?;
        let missing = flow.wanted.saturating_sub(flow.granted);
        let quanta = if is_slow { self.largest } else { missing.min(self.largest) };
        flow.granted += quanta;
        flow.list = if flow.granted < flow.wanted {
            List::Active
        } else if is_slow && flow.granted - flow.wanted >= self.most_slow {
            List::None
        } else {
            List::Idle
        };
        match flow.list {
            List::Active => self.active.push_back(number),
            List::Idle => self.idle.push_back(number),
            List::None => {}
        }
        let time = if quanta > 0 { quanta } else { EMPTY_PULL };
        self.next_pull = now + self.quantum_time * u64::from(time);
        let credit = Credit { number: flow.granted, segment: u32::MAX, class: u8::from(is_slow) };
        Some((number, credit))
    }

    fn next_timer(&self) -> Time {
        let has_turns = !self.active.is_empty() || !self.idle.is_empty();
        if has_turns { self.next_pull } else { Time::NEVER }
    }
}

#[cfg(test)]
mod tests;

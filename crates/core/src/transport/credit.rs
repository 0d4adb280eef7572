//! Credit schedulers: what a receiving host decides for all flows that end there.
//!
//! A receiver-driven transport (ExpressPass, Homa, NDP, pHost, UET with RCCC) has one scheduler per
//! receiving host. It learns of flows by their first packets, and issues credits: control packets that permit
//! senders to send, and that may be lost.

use super::Credit;
use crate::base::random::Random;
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::HostId;
use crate::model::packet::{FlowNumber, Format};

/// Receiving host, as its credit scheduler knows it.
#[derive(Clone, Debug)]
pub struct CreditHost {
    /// Number of the host.
    pub host: HostId,
    /// Time of the first arrival, with which the scheduler begins.
    pub now: Time,
    /// Rate at which data arrives at the host.
    pub line_rate: Rate,
    /// Packet sizes.
    pub format: Format,
    /// Random stream of the scheduler.
    pub random: Random,
    /// Base RTT of the network's longest path.
    pub base_rtt: Duration,
}

/// Flow that ends at the host.
#[derive(Clone, Copy, Debug)]
pub struct InboundFlow {
    /// Number of the flow.
    pub flow: FlowNumber,
    /// Sending host.
    pub source: HostId,
    /// Line rate of the sending host's NIC.
    pub line_rate: Rate,
    /// Number of segments; `u32::MAX` for an unbounded flow.
    pub segments: u32,
    /// Payload; `None` for an unbounded flow.
    pub size: Option<Bytes>,
}

/// Packet of a flow that has arrived at the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Request for credit.
    Request {
        /// Number in its header of credit; 0 without one.
        number: u32,
    },
    /// Data, sent by the credit of this number.
    Data {
        /// Number of the credit.
        number: u32,
        /// False for a duplicate.
        is_new: bool,
    },
    /// Header of a trimmed packet, which a NACK answers.
    Trimmed {
        /// Number of the credit.
        number: u32,
    },
}

/// Segments that receivers lack: returns the first one of a flow from a segment on, or `u32::MAX` without one
/// before the end of the segments that the flow is known to have.
pub type MissingSegments<'a> = &'a dyn Fn(FlowNumber, u32) -> u32;

/// Packets of a flow that stay missing although later ones have arrived: each is named once per period, so
/// that a lost credit or retransmission is repeated.
#[derive(Clone, Copy, Debug)]
pub struct Gaps {
    /// Packets from `from` on and before `until` are named if they are missing.
    from: u32,
    until: u32,
    /// Those before this one are named in the next period.
    next_until: u32,
    next_period: Time,
}

impl Gaps {
    /// Returns none at the start of a flow.
    pub fn new(now: Time) -> Self {
        Self { from: 0, until: 0, next_until: 0, next_period: now }
    }

    /// Begins a period in which all missing packets before `until` are named.
    pub fn name_before(&mut self, until: u32, next_period: Time) {
        *self = Self { from: 0, until, next_until: self.next_until.max(until), next_period };
    }

    /// Returns the start of the next period, if packets may be named in it.
    pub fn next_time(&self) -> Time {
        if self.next_until > 0 { self.next_period } else { Time::NEVER }
    }

    /// Returns the next packet to name, or `u32::MAX`. Packets before `lost_before` are lost if they are
    /// missing a `period` later.
    pub fn next(
        &mut self,
        now: Time,
        lost_before: u32,
        period: Duration,
        missing: impl Fn(u32) -> u32,
    ) -> u32 {
        if now >= self.next_period {
            self.name_before(self.next_until, now + period);
            self.next_until = lost_before;
        }
        self.take(missing)
    }

    /// Returns the next packet to name in this period, or `u32::MAX`.
    pub fn take(&mut self, missing: impl Fn(u32) -> u32) -> u32 {
        if self.from >= self.until {
            return u32::MAX;
        }
        let segment = missing(self.from);
        self.from = segment.saturating_add(1);
        if segment < self.until { segment } else { u32::MAX }
    }
}

/// Credit scheduler of a receiving host.
pub trait CreditScheduler: Send {
    /// Adds a flow, before its first arrival.
    fn on_start(&mut self, now: Time, flow: &InboundFlow);

    /// Handles a packet of a flow that is not complete.
    fn on_arrival(&mut self, now: Time, flow: FlowNumber, arrival: Arrival);

    /// Removes a flow: all its data has arrived, or its sender has given up.
    fn on_end(&mut self, now: Time, flow: FlowNumber);

    /// Returns the next credit to send now, and its flow. Called after each arrival and
    /// timer, again after each credit.
    fn next_credit(
        &mut self,
        now: Time,
        missing: MissingSegments<'_>,
    ) -> Option<(FlowNumber, Credit)>;

    /// Returns when to ask for credits again; called when [`next_credit`](Self::next_credit) has returned
    /// `None`.
    fn next_timer(&self) -> Time;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_stay_missing_are_named_once_per_period() {
        let at = |us| Time::ZERO + Duration::from_micros(us);
        let period = Duration::from_micros(10);
        let mut gaps = Gaps::new(at(0));
        let mut named = |us, lost_before| {
            let missing = |from: u32| if from <= 3 { 3 } else { from.max(7) };
            gaps.next(at(us), lost_before, period, missing)
        };
        assert_eq!(named(0, 5), u32::MAX, "segment 3 may be late");
        assert_eq!(named(9, 9), u32::MAX);
        assert_eq!(
            [named(10, 9), named(11, 9)],
            [3, u32::MAX],
            "segment 7 is not known to be lost"
        );
        let later = [named(20, 9), named(21, 9), named(22, 9), named(23, 9)];
        assert_eq!(later, [3, 7, 8, u32::MAX]);
    }
}

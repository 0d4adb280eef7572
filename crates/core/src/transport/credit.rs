//! Credit schedulers: what a receiving host decides for all flows that end there.
//!
//! A receiver-driven transport (ExpressPass, Homa, NDP, pHost) has one scheduler per receiving host. It
//! learns of flows by their first packets, and issues credits: control packets that permit senders to send,
//! and that may be lost.

use super::Credit;
use crate::base::random::Random;
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::HostId;
use crate::model::packet::{FlowNumber, Format};

/// Receiving host, as its credit scheduler knows it.
#[derive(Clone, Debug)]
pub struct CreditHost {
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

//! Routers: controllers at ports that read the headers of packets and write feedback for senders.

use crate::base::random::Random;
use crate::base::units::{Rate, Time};
use crate::model::packet::Packet;

pub mod d3;
pub mod fair_share;
pub mod pdq;
pub mod quick_start;
pub mod rcp;
pub mod xcp;

crate::family! {
    /// Router, by its name in scenarios.
    pub enum Config as dyn RouterKind named "router" { d3, fair_share, pdq, quick_start, rcp, xcp }
}

/// Configuration of a router.
pub trait RouterKind {
    /// Builds the router of one port with its own random stream.
    fn build(&self, port: PortInfo, random: Random) -> Box<dyn Router>;

    /// Returns the largest number of links that a network may have.
    fn max_links(&self) -> usize {
        usize::MAX
    }

    /// Returns a warning about accepted but questionable parameters.
    fn warning(&self) -> Option<String> {
        None
    }
}

/// Port of a router.
#[derive(Clone, Copy, Debug)]
pub struct PortInfo {
    /// Number of the port's link.
    pub link: u32,
    /// Rate of the link.
    pub rate: Rate,
}

/// State of the port at an event.
#[derive(Clone, Copy, Debug)]
pub struct PortView {
    /// Current time.
    pub now: Time,
    /// Queued bytes, without the packet in transmission.
    pub backlog: u64,
}

/// Header fields that are equal in all packets of a flow. Stored once per flow to keep packets
/// small.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowInfo {
    /// Number of the flow.
    pub flow: u64,
    /// Deadline, or [`Time::NEVER`].
    pub deadline: Time,
    /// Rate of the sender's link.
    pub line_rate: Rate,
}

/// Controller at a port. It may write the headers of packets and nothing else.
pub trait Router: Send {
    /// Handles the arrival of a packet at the port. The queue may still drop it.
    fn on_arrival(&mut self, packet: &mut Packet, flow_info: &FlowInfo, now: Time);

    /// Handles the start of a packet's transmission.
    fn on_departure(&mut self, _packet: &mut Packet, _view: PortView) {}

    /// Handles the drop of a packet that had arrived.
    fn on_drop(&mut self, _packet: &Packet) {}

    /// Returns true if [`on_ack_return`](Self::on_ack_return) is to be called.
    fn reads_acks(&self) -> bool {
        false
    }

    /// Handles the answer to a packet of this port, which arrives over the same cable.
    fn on_ack_return(&mut self, _packet: &mut Packet, _flow_info: &FlowInfo, _now: Time) {}

    /// Returns the time of the next [`on_tick`](Self::on_tick).
    fn next_tick(&self) -> Time;

    /// Handles the timer set by [`next_tick`](Self::next_tick).
    fn on_tick(&mut self, view: PortView);

    /// Returns named values for traces over time. The names and their order are constant.
    fn gauges(&self) -> Vec<(&'static str, f64)>;
}

#[cfg(test)]
mod tests {
    use super::{FlowInfo, PortInfo};
    use crate::base::units::{Rate, Time};

    /// Port of the tested routers.
    pub(super) const PORT: PortInfo = PortInfo { link: 7, rate: Rate(1_000_000_000) };

    /// Flow without a deadline.
    pub(super) const FLOW: FlowInfo =
        FlowInfo { flow: 0, deadline: Time::NEVER, line_rate: Rate(1_000_000_000) };
}

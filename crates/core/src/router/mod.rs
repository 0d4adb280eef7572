//! Routers: controllers at ports that read what packets say and write what senders should know.

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
    /// Every router, by the name a scenario gives it.
    pub enum Config as dyn RouterKind { d3, fair_share, pdq, quick_start, rcp, xcp }
}

/// A kind of router.
pub trait RouterKind {
    /// The router at one port, drawing from a stream of its own.
    fn build(&self, port: PortInfo, random: Random) -> Box<dyn Router>;

    /// How many links a network may have at most.
    fn max_links(&self) -> usize {
        usize::MAX
    }

    /// What a user should know of these parameters, although they are allowed.
    fn warning(&self) -> Option<String> {
        None
    }
}

/// Where a router stands.
#[derive(Clone, Copy, Debug)]
pub struct PortInfo {
    /// The number of the port's link.
    pub link: u32,
    /// Rate of the link.
    pub rate: Rate,
}

/// What a router sees of its port.
#[derive(Clone, Copy, Debug)]
pub struct PortView {
    /// The present.
    pub now: Time,
    /// The bytes that wait; what is being sent waits no longer.
    pub backlog: u64,
}

/// What all packets of a flow would say alike. It is kept once for a flow, so that packets stay small.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowInfo {
    /// The number of the flow.
    pub flow: u64,
    /// When it should be over; [`Time::NEVER`] if it has no deadline.
    pub deadline: Time,
    /// Line rate of its sender.
    pub line_rate: Rate,
}

/// A controller at a port. It may write the headers of packets, and nothing else.
pub trait Router: Send {
    /// A packet has come to the port, which the queue may yet drop.
    fn on_arrival(&mut self, packet: &mut Packet, flow_info: &FlowInfo, now: Time);

    /// The transmission of a packet starts.
    fn on_departure(&mut self, _packet: &mut Packet, _view: PortView) {}

    /// A packet that had come to the port was dropped and will not depart.
    fn on_drop(&mut self, _packet: &Packet) {}

    /// Whether [`on_ack_return`](Self::on_ack_return) is of interest.
    fn reads_acks(&self) -> bool {
        false
    }

    /// What answers a packet of this port has come back over the same cable.
    fn on_ack_return(&mut self, _packet: &mut Packet, _flow_info: &FlowInfo, _now: Time) {}

    /// When to call [`on_tick`](Self::on_tick).
    fn next_tick(&self) -> Time;

    /// The time that [`next_tick`](Self::next_tick) gave has come.
    fn on_tick(&mut self, view: PortView);

    /// Named numbers for traces over time; always the same names in the same order.
    fn gauges(&self) -> Vec<(&'static str, f64)>;
}

#[cfg(test)]
mod tests {
    use super::{FlowInfo, PortInfo};
    use crate::base::units::{Rate, Time};

    /// Where the tested routers stand.
    pub(super) const PORT: PortInfo = PortInfo { link: 7, rate: Rate(1_000_000_000) };

    /// A flow without deadline.
    pub(super) const FLOW: FlowInfo =
        FlowInfo { flow: 0, deadline: Time::NEVER, line_rate: Rate(1_000_000_000) };
}

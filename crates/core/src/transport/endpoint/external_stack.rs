//! Stacks that come from elsewhere: whole transports with packets, clocks and recovery of their own, such as
//! an implementation of QUIC.
//!
//! The core knows none of them. It carries their datagrams as it carries all packets, tells each end what has
//! come and when the time that it asked for is there, and asks what to send. An end sees simulated time and
//! nothing else: what it answers must be a function of what it was told.

use crate::base::units::{Bytes, Time};
use crate::transport::{Ack, Allowance, Controller, Path};

/// Makes connections of one kind.
pub trait ExternalStack: Send + Sync {
    /// The ends of a new connection that is to carry a flow on `path`: the one at its source, which sends as
    /// many bytes as the flow has, and the one at its target.
    fn connect(&self, path: &Path) -> [Box<dyn End>; 2];
}

/// One end of a connection.
pub trait End: Send {
    /// A datagram of the other end has come.
    fn on_datagram(&mut self, now: Time, datagram: &[u8], ecn: Ecn);

    /// The time that [`deadline`](Self::deadline) gave has come, or an earlier one.
    fn on_time(&mut self, now: Time);

    /// Writes the next datagram to send into an empty buffer, and says how it travels; none if nothing is to
    /// be sent now.
    fn next(&mut self, now: Time, datagram: &mut Vec<u8>) -> Option<Outgoing>;

    /// When it wants to be woken; [`Time::NEVER`] if something must come first.
    fn deadline(&self) -> Time;

    /// At the source: the flow without end is to end here.
    fn stop(&mut self, now: Time);

    /// At the source: whether it knows that all has been received, after which it is only asked to answer. At
    /// the target: whether all has been received.
    fn is_done(&self) -> bool;

    /// Payload that has been handed to who waits for it, in order; nothing at the source.
    fn delivered(&self) -> Bytes;

    /// Packets that were sent again, and time-outs, as far as it knows.
    fn repairs(&self) -> (u32, u32);

    /// Named numbers for traces over time; always the same names in the same order.
    fn gauges(&self) -> Vec<(&'static str, f64)>;
}

/// What the header of a datagram says of congestion (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// Routers may not mark it.
    Incapable,
    /// Routers may mark it.
    Capable,
    /// A router has marked it.
    Marked,
}

/// How a datagram travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Its size on the wire, at most that of a full packet of [`Path::format`].
    pub bytes: Bytes,
    /// Whether routers may mark it.
    pub ecn_capable: bool,
}

/// What a flow whose stack is its own has in the place of a controller: nobody asks it.
pub struct Unasked;

impl Controller for Unasked {
    fn on_ack(&mut self, _ack: &Ack) {}

    fn allowance(&self) -> Allowance {
        Allowance::window(0.0)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

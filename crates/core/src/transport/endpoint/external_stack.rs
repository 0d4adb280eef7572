//! External transport stacks: complete implementations with their own packets, timers and loss recovery,
//! such as a QUIC library.
//!
//! The core depends on none of them. It carries their datagrams like any packets, delivers datagrams
//! and timer expiries to each endpoint, and polls it for datagrams to send. An endpoint sees simulated
//! time only, and its output must be a deterministic function of its input.

use crate::base::units::{Bytes, Time};
use crate::transport::{Ack, Allowance, Controller, Path};

/// Factory of connections.
pub trait ExternalStack: Send + Sync {
    /// Creates the two endpoints of a connection for a flow on `path`: the endpoint at the source,
    /// which sends the flow's bytes, and the endpoint at the target.
    fn connect(&self, path: &Path) -> [Box<dyn StackEndpoint>; 2];
}

/// Endpoint of a connection.
pub trait StackEndpoint: Send {
    /// Handles a datagram from the other endpoint.
    fn on_datagram(&mut self, now: Time, datagram: &[u8], ecn: Ecn);

    /// Handles the timer that [`next_timer`](Self::next_timer) returned, or an earlier one.
    fn on_timer(&mut self, now: Time);

    /// Writes the next datagram to send into an empty buffer and returns its size and ECN codepoint;
    /// `None` if there is nothing to send now.
    fn next_datagram(&mut self, now: Time, datagram: &mut Vec<u8>) -> Option<OutgoingDatagram>;

    /// Returns when to call [`on_timer`](Self::on_timer); [`Time::NEVER`] if no timer is armed.
    fn next_timer(&self) -> Time;

    /// At the source: ends an unbounded flow at the current position.
    fn stop(&mut self, now: Time);

    /// Returns true if all data has been received and, at the source, acknowledged. The source may
    /// still send responses afterwards.
    fn is_done(&self) -> bool;

    /// Returns the payload delivered to the application, in order; zero at the source.
    fn delivered(&self) -> Bytes;

    /// Returns the numbers of retransmissions and timeouts, as far as the stack counts them.
    fn retransmits_and_timeouts(&self) -> (u32, u32);

    /// Returns named values for traces over time, always the same names in the same order.
    fn gauges(&self) -> Vec<(&'static str, f64)>;
}

/// ECN codepoint in the IP header of a datagram (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    NotEct,
    /// ECN-capable.
    Ect,
    /// Congestion experienced: marked by a router.
    Ce,
}

/// Network properties of a datagram to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingDatagram {
    /// Size on the link, at most that of a full packet of [`Path::format`].
    pub bytes: Bytes,
    /// True if routers may mark the datagram.
    pub ecn_capable: bool,
}

/// Placeholder for the controller of a flow with an external stack; never called.
pub struct NullController;

impl Controller for NullController {
    fn on_ack(&mut self, _ack: &Ack) {}

    fn allowance(&self) -> Allowance {
        Allowance::window(0.0)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

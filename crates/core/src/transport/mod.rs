//! Transports: the two ends of a flow and its congestion control.
//!
//! A transport is a congestion controller with options for a sender and a receiver that all transports
//! share. For each flow, [`Transport::controller`] creates a [`Controller`], which receives events
//! ([`Ack`], [`Loss`], timers) and returns an [`Allowance`]: a window, a rate, or both. The sender and
//! the receiver (`endpoint`) apply the allowance. They implement the handshake, pacing, retransmission
//! and acknowledgements, with the options of [`Transport::mechanism`]. Loss detection and recovery are
//! in `recovery`, building blocks of several controllers in `blocks`, and the transports in
//! `controllers`, one file each. A receiver-driven transport also provides a [`CreditScheduler`] for each
//! receiving host, whose credits permit senders to send. A transport may instead provide an
//! [`ExternalStack`], which replaces controller, sender and receiver.

pub mod blocks;
pub mod controller;
pub mod controllers;
pub mod credit;
pub mod endpoint;
#[cfg(test)]
pub(crate) mod fixture;
pub mod mechanism;
pub mod recovery;
pub mod reliability;
pub mod selector;
pub mod selectors;

pub use self::controller::{
    Ack, Allowance, CachedPathState, CachedRate, CongestionSignal, Controller, Credit, Loss,
    Opened, OutgoingPacket, Path, Restart, TrainPacket, TrimmedAt, WindowReduction,
};
pub use self::credit::{Arrival, CreditHost, CreditScheduler, Gaps, InboundFlow, MissingSegments};
pub use self::endpoint::external_stack::{
    Ecn, ExternalStack, NullController, OutgoingDatagram, StackEndpoint,
};
pub use self::mechanism::{
    AckPolicy, CreditUse, MarkFeedback, Mechanism, PacingPolicy, RtoRestart, Signalling, TurnOrder,
};
pub use self::reliability::{CachedRtt, IdleRestart, Recovery, Reliability};

use self::blocks::path_scaled::FlowRate;
use crate::base::units::{Bytes, Duration, Rate};
use crate::model::graph::Extent;
use crate::model::packet::Format;
use crate::model::telemetry::Digest;
use crate::queueing::{DesignRates, Priorities, disciplines};
use crate::router;

/// Kind of transport.
pub trait Transport {
    /// Creates the controller of a flow that starts on `path`.
    fn controller(&self, path: &Path) -> Box<dyn Controller>;

    /// Returns the options of the sender and the receiver.
    fn mechanism(&self, format: &Format) -> Mechanism;

    /// Returns the queue at switches that the transport was designed for; a scenario may choose
    /// another.
    fn queue(&self) -> disciplines::Config {
        unlimited()
    }

    /// Returns the router function that the transport requires at every port, if any.
    fn router(&self) -> Option<router::Config> {
        None
    }

    /// Returns the digest that packets collect beside their telemetry, in a network with this longest base
    /// RTT, if any.
    fn digest(&self, _base_rtt: Duration) -> Option<Digest> {
        None
    }

    /// Returns the credit scheduler of a receiving host, if the transport is receiver-driven.
    fn credit_scheduler(&self, _host: &CreditHost) -> Option<Box<dyn CreditScheduler>> {
        None
    }

    /// Returns the priorities of the transport's packets.
    fn priorities(&self) -> Priorities {
        Priorities::Classes(1)
    }

    /// Returns the transport with parameters for flows of these sizes, if some parameters follow them, in a
    /// network whose slowest link has this rate.
    fn fitted(
        &self,
        _sizes: &dyn Fn() -> Vec<Bytes>,
        _slowest: Rate,
        _format: &Format,
    ) -> Option<controllers::Config> {
        None
    }

    /// Returns warnings about valid but questionable parameters on a network of this extent.
    fn warnings(&self, _extent: &Extent, _format: &Format) -> Vec<String> {
        Vec::new()
    }

    /// Returns the line rates for which an absolute parameter was designed, if they are known.
    fn design_rates(&self) -> Option<DesignRates> {
        None
    }

    /// Returns the lowest rate to which the transport reduces a flow, with the field that sets it, if any.
    fn min_rate(&self) -> Option<(&'static str, FlowRate)> {
        None
    }

    /// Returns true if the transport was designed for a network that loses no packets.
    fn needs_lossless_network(&self) -> bool {
        false
    }

    /// Returns true if the transport was designed for packet spraying, with a loss recovery that does not
    /// take overtaken packets for lost.
    fn needs_spraying(&self) -> bool {
        false
    }

    /// Returns the fields of [`Reliability`] that belong to the control law, so that no environment changes
    /// them.
    fn own_reliability(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns true if the transport requires flows with deadlines.
    fn needs_deadlines(&self) -> bool {
        false
    }

    /// Returns true if the law depends on the size or deadline of a flow, or on its first packets, so that a
    /// flow cannot share a persistent connection with others.
    fn needs_own_connection(&self) -> bool {
        self.needs_deadlines() || self.router().is_some() || self.has_own_stack()
    }

    /// Returns true if a flow may begin at a rate that the workload gives.
    fn takes_initial_rate(&self) -> bool {
        false
    }

    /// Returns true if all packets of a flow must take one path, and their ACKs the reverse path.
    fn needs_one_path(&self) -> bool {
        false
    }

    /// Returns true if packets of a flow that take one path stay in order, so that its FCT is not below that
    /// in an empty network.
    fn keeps_order(&self) -> bool {
        true
    }

    /// Returns the size of the segments that the transport sends and measures as one; `None` if it
    /// works with packets.
    fn segment_size(&self) -> Option<Bytes> {
        None
    }

    /// Returns the minimum size of a full packet on the link.
    fn min_packet_size(&self) -> Bytes {
        Bytes::ZERO
    }

    /// Returns true if an external stack replaces the sender and the receiver.
    fn has_own_stack(&self) -> bool {
        false
    }

    /// Returns the external stack, if it is available.
    fn stack(&self) -> Option<&dyn ExternalStack> {
        None
    }

    /// Returns the queue at the hosts' NICs; a scenario may choose another.
    fn host_queue(&self) -> disciplines::Config {
        unlimited()
    }
}

/// Returns an unlimited FIFO queue.
fn unlimited() -> disciplines::Config {
    disciplines::Config::drop_tail(disciplines::drop_tail::Config { capacity: None })
}

//! What ideals are made of: flows as fluid, and who serves them.

pub mod allocation;
#[cfg(test)]
pub(crate) mod fixture;
pub mod fluid_flows;
pub mod models;

pub use self::allocation::Allocation;
pub use self::fluid_flows::{Flow, Links};

use crate::base::run_control::RunControl;
use crate::base::units::Time;
use crate::model::flow::FlowRecord;
use crate::model::graph::Graph;
use crate::model::packet::Format;

/// Serves active flows. Instants are in picoseconds.
pub trait Service {
    /// Takes in a flow that starts `now`.
    fn admit(&mut self, flow: Flow, now: f64);

    /// Serves its flows from `now` on, until the first of them leaves, which is given with the instant;
    /// none if all stay `until` then.
    fn serve(&mut self, links: &Links, now: f64, until: f64) -> Option<(Flow, f64)>;

    /// Gives up the flows that are left, as they are `now`.
    fn close(&mut self, now: f64) -> Vec<Flow>;
}

/// What an ideal runs on.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The network.
    pub graph: &'a Graph,
    /// Sizes of packets.
    pub format: &'a Format,
    /// When the run ends if flows are left; flows that start then or later do not take part.
    pub limit: Time,
    /// Who looks after the run.
    pub watch: &'a RunControl,
}

/// How the flows fared under an ideal.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// One record a flow, in order of start. A long-lived flow has no ideal completion time: zero.
    pub records: Vec<FlowRecord>,
    /// What each link carried, headers included.
    pub link_bytes: Vec<f64>,
    /// When the last byte arrived, or the limit.
    pub end: Time,
}

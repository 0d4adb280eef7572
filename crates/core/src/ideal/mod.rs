//! Ideals: flow completion times under a rate allocation, without packets or congestion control.
//!
//! Flows are fluid. A [`FluidScheduler`] determines the rate of each active flow. Rates change only
//! when a flow arrives or departs, immediately and at no cost. Propagation and store-and-forward
//! delays are added as for an idle network, so a flow that shares no link takes exactly its
//! [ideal FCT](crate::model::ideal_fct::ideal_fct). The model leaves out link losses,
//! acknowledgements and handshakes.
//!
//! Most ideals are an [`Allocation`], which recomputes the rates of all flows at each event. An
//! ideal under which an event affects few of many flows implements [`FluidScheduler`] itself.

pub mod allocation;
pub mod departures;
#[cfg(test)]
pub(crate) mod fixture;
pub mod fluid_flows;
pub mod models;

pub use self::allocation::Allocation;
pub use self::fluid_flows::{FluidFlow, FluidLinks};

use self::fluid_flows::{FluidRun, picoseconds};
use crate::base::run_control::RunControl;
use crate::base::units::{Duration, Time};
use crate::model::flow::{FlowRecord, FlowSpec};
use crate::model::graph::{Graph, LinkId};
use crate::model::packet::Format;

/// Parameters of an ideal.
pub trait Ideal {
    /// Returns the scheduler, for a network with `links` links.
    fn scheduler(&self, links: usize) -> Box<dyn FluidScheduler>;

    /// Returns a warning about links that carried more than their rate, from the bytes that each link
    /// carried in a run of this length.
    fn warning(&self, _graph: &Graph, _link_bytes: &[f64], _elapsed: Duration) -> Option<String> {
        None
    }
}

/// Serves active flows. Times are in picoseconds.
pub trait FluidScheduler {
    /// Adds a flow that starts at `now`.
    fn admit(&mut self, flow: FluidFlow, links: &FluidLinks, now: f64);

    /// Serves the flows from `now` on until the first departure. Returns the departed flow and its
    /// departure time, or none if no flow departs before `until`.
    fn serve(&mut self, links: &FluidLinks, now: f64, until: f64) -> Option<(FluidFlow, f64)>;

    /// Removes and returns the remaining flows, with their state at `now`.
    fn close(&mut self, now: f64) -> Vec<FluidFlow>;
}

/// Inputs of a run of an ideal.
#[derive(Clone, Copy, Debug)]
pub struct IdealSetup<'a> {
    /// The network.
    pub graph: &'a Graph,
    /// Packet sizes.
    pub format: &'a Format,
    /// Time limit of the run. Flows that start at the limit or later are ignored.
    pub limit: Time,
    /// Start and end of the interval in which counters of links are measured.
    pub measured: [Time; 2],
    /// Handle to stop the run and to read its progress.
    pub watch: &'a RunControl,
}

/// Results of a run of an ideal.
#[derive(Clone, Debug, PartialEq)]
pub struct IdealOutcome {
    /// One record per flow, in order of start. The ideal FCT of a long-lived flow is zero.
    pub records: Vec<FlowRecord>,
    /// Bytes that each link carried, headers included.
    pub link_bytes: Vec<f64>,
    /// Bytes that each link carried in the measured interval.
    pub measured_bytes: Vec<f64>,
    /// Arrival of the last byte, or the time limit.
    pub end: Time,
}

/// Runs `flows`, in order of start, each over the links that `route` appends.
pub fn run(
    ideal: &dyn Ideal,
    setup: IdealSetup<'_>,
    flows: impl IntoIterator<Item = FlowSpec>,
    mut route: impl FnMut(&FlowSpec, &mut Vec<LinkId>),
) -> IdealOutcome {
    let mut run = FluidRun::new(setup, ideal.scheduler(setup.graph.links.len()));
    for spec in flows.into_iter().take_while(|spec| spec.start < setup.limit) {
        run.serve_until(picoseconds(spec.start));
        run.admit(spec, &mut route);
    }
    run.serve_until(picoseconds(setup.limit));
    run.close()
}

//! Ideals: flow completion times under a rate allocation, without packets or congestion control.
//!
//! Flows are fluid. A [`FluidScheduler`] determines the rate of each active flow. Rates change only
//! when a flow arrives or departs, immediately and at no cost. Propagation and store-and-forward
//! delays are added as for an idle network, so a flow that shares no link takes exactly its
//! [ideal FCT](crate::model::ideal_fct::ideal_fct). The model leaves out link losses,
//! acknowledgements and handshakes: a flow that follows others starts when the last of them is delivered,
//! whether its source sent or received them.
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

use std::collections::BTreeMap;

use self::fluid_flows::FluidRun;
use crate::base::run_control::RunControl;
use crate::base::units::{Duration, Time};
use crate::model::flow::{FlowRecord, FlowSpec};
use crate::model::flow_totals::{FlowTotals, KeptRecords};
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
    /// Choice of the flows whose records are kept.
    pub kept: KeptRecords,
    /// Start and end of the interval in which counters of links are measured.
    pub measured: [Time; 2],
    /// Start and end of the interval in which all long-lived flows send, if there is one.
    pub common: Option<[Time; 2]>,
    /// Handle to stop the run and to read its progress.
    pub watch: &'a RunControl,
}

/// Results of a run of an ideal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IdealOutcome {
    /// One record per flow, in order of start if all are kept. The ideal FCT of a long-lived flow is zero.
    pub records: Vec<FlowRecord>,
    /// Totals of the flows whose records were not kept.
    pub totals: FlowTotals,
    /// Bytes that each link carried, headers included.
    pub link_bytes: Vec<f64>,
    /// Bytes that each link carried in the measured interval.
    pub measured_bytes: Vec<f64>,
    /// Payload that each long-lived flow sent while all of them did, by number.
    pub common: Vec<(u64, u64)>,
    /// Arrival of the last byte, or the time limit.
    pub end: Time,
}

/// Appends the flows that follow one that has just been delivered, at this time or later.
pub type Following<'a> = &'a mut dyn FnMut(&FlowSpec, Time, &mut Vec<FlowSpec>);

/// Runs `flows`, in order of start, each over the links that `route` appends.
pub fn run(
    ideal: &dyn Ideal,
    setup: IdealSetup<'_>,
    flows: impl IntoIterator<Item = FlowSpec>,
    route: impl FnMut(&FlowSpec, &mut Vec<LinkId>),
) -> IdealOutcome {
    run_dependent(ideal, setup, flows, None, route)
}

/// Runs `flows` like [`run`], and flows that follow others.
pub fn run_dependent(
    ideal: &dyn Ideal,
    setup: IdealSetup<'_>,
    flows: impl IntoIterator<Item = FlowSpec>,
    mut following: Option<Following<'_>>,
    mut route: impl FnMut(&FlowSpec, &mut Vec<LinkId>),
) -> IdealOutcome {
    let mut run =
        FluidRun::new(setup, ideal.scheduler(setup.graph.links.len()), following.is_some());
    let mut flows = flows.into_iter().peekable();
    let mut next = Vec::new();
    // Flows that follow others and have not started, by start and number.
    let mut pending: BTreeMap<(Time, u64), FlowSpec> = BTreeMap::new();
    loop {
        let first = pending.first_key_value().map_or(Time::NEVER, |((start, _), _)| *start);
        let start = flows.peek().map_or(Time::NEVER, |spec| spec.start).min(first);
        let until = start.min(setup.limit);
        if let Some((delivered, now)) = run.serve_until(until) {
            if let Some(following) = &mut following {
                following(&delivered, now, &mut next);
            }
            pending.extend(next.drain(..).map(|spec| ((spec.start, spec.id), spec)));
            continue;
        }
        if start >= setup.limit || setup.watch.is_stopped() {
            return run.close();
        }
        let own = flows.next_if(|spec| spec.start == start);
        let spec = own.or_else(|| pending.pop_first().map(|(_, spec)| spec));
        let Some(spec) = spec else { return run.close() };
        run.admit(spec, &mut route);
    }
}

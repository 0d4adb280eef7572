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
mod arrivals;
pub mod departures;
#[cfg(test)]
pub(crate) mod fixture;
pub mod fluid_flows;
pub mod models;

pub use self::allocation::Allocation;
pub use self::fluid_flows::{FluidFlow, FluidLinks};

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::thread;

use self::arrivals::{RoutedFlows, Router, route_ahead};
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
    /// Number of threads: with more than one, a second finds the paths of flows ahead. The results are the
    /// same.
    pub threads: u32,
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
    flows: impl IntoIterator<Item = FlowSpec, IntoIter: Send>,
    route: impl FnMut(&FlowSpec, &mut Vec<LinkId>) + Send,
) -> IdealOutcome {
    run_dependent(ideal, setup, flows, None, route)
}

/// Runs `flows` like [`run`], and flows that follow others.
pub fn run_dependent(
    ideal: &dyn Ideal,
    setup: IdealSetup<'_>,
    flows: impl IntoIterator<Item = FlowSpec, IntoIter: Send>,
    following: Option<Following<'_>>,
    route: impl FnMut(&FlowSpec, &mut Vec<LinkId>) + Send,
) -> IdealOutcome {
    let scheduler = ideal.scheduler(setup.graph.links.len());
    let run = FluidRun::new(setup, scheduler, following.is_some());
    let mut flows = flows.into_iter().fuse();
    let mut router = Router::new(setup.graph, setup.format, route);
    let mut batch = RoutedFlows::default();
    router.fill(&mut flows, &mut batch);
    // A thread for a few flows would cost more than it saves.
    if setup.threads > 1 && following.is_none() && batch.is_full() {
        return thread::scope(|scope| {
            let (batches, thread) = route_ahead(scope, flows, router, setup.watch);
            let outcome = run_batches(run, batch, move |next| batches.next(next), None);
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            outcome
        });
    }
    let router = RefCell::new(router);
    let mut route = |spec, next: &mut RoutedFlows| router.borrow_mut().route(spec, next);
    let followers = following.map(|following| Followers { following, route: &mut route });
    run_batches(run, batch, |next| router.borrow_mut().fill(&mut flows, next), followers)
}

/// Flows that follow others.
struct Followers<'a> {
    following: Following<'a>,
    /// Replaces a batch by a flow.
    route: &'a mut dyn FnMut(FlowSpec, &mut RoutedFlows),
}

/// Runs the flows of `batch`, those by which `refill` replaces it until it stays empty, and followers.
fn run_batches(
    mut run: FluidRun<'_>,
    mut batch: RoutedFlows,
    mut refill: impl FnMut(&mut RoutedFlows),
    mut followers: Option<Followers<'_>>,
) -> IdealOutcome {
    let IdealSetup { limit, watch, .. } = run.setup;
    let mut next = Vec::new();
    // Flows that follow others and have not started, by start and number.
    let mut pending: BTreeMap<(Time, u64), FlowSpec> = BTreeMap::new();
    let mut single = RoutedFlows::default();
    loop {
        if batch.is_used() {
            refill(&mut batch);
        }
        let first = pending.first_key_value().map_or(Time::NEVER, |((start, _), _)| *start);
        let own = batch.first().map_or(Time::NEVER, |spec| spec.start);
        let start = own.min(first);
        if let Some((delivered, now)) = run.serve_until(start.min(limit)) {
            if let Some(followers) = &mut followers {
                (followers.following)(&delivered, now, &mut next);
            }
            pending.extend(next.drain(..).map(|spec| ((spec.start, spec.id), spec)));
            continue;
        }
        if start >= limit || watch.is_stopped() {
            return run.close();
        }
        let source = if own == start {
            &mut batch
        } else {
            if let (Some(followers), Some((_, spec))) = (&mut followers, pending.pop_first()) {
                (followers.route)(spec, &mut single);
            }
            &mut single
        };
        let Some(flow) = source.take() else { return run.close() };
        run.admit(&flow);
    }
}

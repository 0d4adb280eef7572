//! Flows of a run with their paths and ideal FCTs, which a second thread can find ahead of the run.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Scope, ScopedJoinHandle};

use cpu_time::ThreadTime;

use crate::base::run_control::RunControl;
use crate::base::units::{Duration, Rate};
use crate::model::flow::FlowSpec;
use crate::model::graph::{Graph, LinkId};
use crate::model::ideal_fct::ideal_fct;
use crate::model::packet::Format;

/// Flows of a batch.
const BATCH: usize = 1024;
/// Batches that wait for the run.
const BATCHES_AHEAD: usize = 4;

/// A flow with its path.
pub(crate) struct RoutedFlow<'a> {
    pub spec: FlowSpec,
    /// Links of the path.
    pub links: &'a [LinkId],
    /// Ideal FCT; of a full packet if the flow is long-lived.
    pub ideal_fct: Duration,
}

/// Flows with their paths, in order of start.
#[derive(Debug, Default)]
pub(crate) struct RoutedFlows {
    /// Each with its ideal FCT and the end of its links.
    flows: Vec<(FlowSpec, Duration, usize)>,
    links: Vec<LinkId>,
    /// Flows, and links, that have been taken.
    taken: [usize; 2],
}

impl RoutedFlows {
    /// Returns true if all flows have been taken.
    pub(crate) fn is_used(&self) -> bool {
        self.taken[0] == self.flows.len()
    }

    /// Returns true if it has as many flows as it may have.
    pub(crate) fn is_full(&self) -> bool {
        self.flows.len() == BATCH
    }

    /// Returns the next flow.
    pub(crate) fn first(&self) -> Option<&FlowSpec> {
        self.flows.get(self.taken[0]).map(|(spec, ..)| spec)
    }

    /// Takes the next flow.
    pub(crate) fn take(&mut self) -> Option<RoutedFlow<'_>> {
        let [flow, from] = self.taken;
        let (spec, ideal_fct, to) = *self.flows.get(flow)?;
        self.taken = [flow + 1, to];
        Some(RoutedFlow { spec, links: &self.links[from..to], ideal_fct })
    }

    fn clear(&mut self) {
        self.flows.clear();
        self.links.clear();
        self.taken = [0; 2];
    }
}

/// Finds paths and ideal FCTs.
pub(crate) struct Router<'a, R> {
    format: &'a Format,
    /// Rate and propagation delay of each link.
    hops: Vec<(Rate, Duration)>,
    /// Appends the links of a flow's path.
    append_path: R,
}

impl<'a, R: FnMut(&FlowSpec, &mut Vec<LinkId>)> Router<'a, R> {
    pub(crate) fn new(graph: &Graph, format: &'a Format, append_path: R) -> Self {
        let hops = graph.links.iter().map(|link| (link.rate, link.delay)).collect();
        Self { format, hops, append_path }
    }

    /// Replaces `batch`, which has been used, by a flow.
    pub(crate) fn route(&mut self, spec: FlowSpec, batch: &mut RoutedFlows) {
        batch.clear();
        self.add(spec, batch);
    }

    /// Replaces `batch`, which has been used, by the next flows; none at the end.
    pub(crate) fn fill(
        &mut self,
        flows: &mut impl Iterator<Item = FlowSpec>,
        batch: &mut RoutedFlows,
    ) {
        batch.clear();
        for spec in flows.take(BATCH) {
            self.add(spec, batch);
        }
    }

    fn add(&mut self, spec: FlowSpec, batch: &mut RoutedFlows) {
        let RoutedFlows { flows, links, .. } = batch;
        let from = links.len();
        (self.append_path)(&spec, links);
        assert!(links.len() > from, "flow {} has no route", spec.id);
        let hops = links[from..].iter().map(|link| self.hops[*link as usize]);
        let fct = ideal_fct(hops, self.format, spec.size.unwrap_or(self.format.payload)).total();
        flows.push((spec, fct, links.len()));
    }
}

/// Batches of flows from another thread.
pub(crate) struct Batches {
    full: Receiver<RoutedFlows>,
    used: Sender<RoutedFlows>,
}

impl Batches {
    /// Replaces `batch`, which has been used, by the next flows; none at the end.
    pub(crate) fn next(&self, batch: &mut RoutedFlows) {
        let used = std::mem::replace(batch, self.full.recv().unwrap_or_default());
        // The other thread may have ended.
        let _ = self.used.send(used);
    }
}

/// Starts a thread that routes flows until they or the batches' receiver end. Its CPU time is added to
/// `control`.
pub(crate) fn route_ahead<'scope>(
    scope: &'scope Scope<'scope, '_>,
    mut flows: impl Iterator<Item = FlowSpec> + Send + 'scope,
    mut router: Router<'scope, impl FnMut(&FlowSpec, &mut Vec<LinkId>) + Send + 'scope>,
    control: &'scope RunControl,
) -> (Batches, ScopedJoinHandle<'scope, ()>) {
    let (send_full, full) = mpsc::sync_channel::<RoutedFlows>(BATCHES_AHEAD);
    let (used, receive_used) = mpsc::channel::<RoutedFlows>();
    let thread = scope.spawn(move || {
        let began = ThreadTime::now();
        loop {
            let mut batch = receive_used.try_recv().unwrap_or_default();
            router.fill(&mut flows, &mut batch);
            if batch.is_used() || send_full.send(batch).is_err() {
                break;
            }
        }
        control.add_helper_time(began.elapsed());
    });
    (Batches { full, used }, thread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Time;
    use crate::ideal::fixture::{ALWAYS, NO_HEADERS, one_link, poisson};
    use crate::ideal::models::processor_sharing;
    use crate::ideal::{Ideal, IdealOutcome, IdealSetup, run};
    use crate::model::flow_totals::KeptRecords;

    /// Processor sharing of one link by this many flows, on a number of threads. One flow may have no path.
    fn outcome(threads: u32, flows: u64, limit: Time, lost: Option<u64>) -> IdealOutcome {
        let ideal: &dyn Ideal = &processor_sharing::Config {};
        let (graph, watch) = (one_link(), RunControl::default());
        let setup = IdealSetup {
            graph: &graph,
            format: &NO_HEADERS,
            limit,
            kept: KeptRecords::default(),
            measured: ALWAYS,
            common: None,
            watch: &watch,
            threads,
        };
        let outcome = run(ideal, setup, poisson(7, 0.8, flows), |spec, links| {
            links.extend((Some(spec.id) != lost).then_some(0));
        });
        let is_helped = threads > 1 && flows >= BATCH as u64;
        assert_eq!(watch.helper_time().is_zero(), !is_helped);
        outcome
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let batch = BATCH as u64;
        for flows in [0, 1, batch - 1, batch, batch + 1, 9 * batch + 5] {
            let single = outcome(1, flows, Time::NEVER, None);
            assert_eq!(single.records.len() as u64, flows);
            assert_eq!(outcome(2, flows, Time::NEVER, None), single);
        }
    }

    #[test]
    fn a_run_that_reaches_its_limit_ends_the_thread() {
        let limit = Time(200_000_000_000);
        let ended = outcome(2, 100_000, limit, None);
        assert!((1_000..3_000).contains(&ended.records.len()), "{}", ended.records.len());
        assert_eq!(ended, outcome(1, 100_000, limit, None));
    }

    #[test]
    #[should_panic(expected = "flow 3000 has no route")]
    fn a_panic_of_the_thread_is_one_of_the_run() {
        outcome(2, 5_000, Time::NEVER, Some(3_000));
    }
}

//! Execution of a run: by the packet simulator, on one thread or several, or by an ideal.

use crate::base::run_control::RunControl;
use crate::base::schema::{Parameter, Problem};
use crate::base::units::{Bytes, Duration};
use crate::model::flow::{FlowRecord, FlowSpec, Outcome};
use crate::model::graph::Graph;
use crate::record::{FlowColumns, Recorder};
use crate::run::Results;
use crate::run::scenario::{Model, Scenario};
use crate::run::summary::{Execution, link_columns};
use crate::schedule::Partition;
use crate::simulation::run_on_threads;
use crate::transport::controllers;

/// Least number of groups of nodes for each thread: with fewer, a thread mostly waits.
const GROUPS_PER_THREAD: usize = 32;

impl Scenario {
    /// Runs on this number of threads with the network in this number of partitions.
    pub fn run_in_parts(
        &self,
        partitions: u32,
        threads: u32,
        control: &RunControl,
    ) -> Result<Results, Problem> {
        self.run_partitions(&self.graph()?, [partitions, threads], control)
    }

    /// Runs on a graph that has been built until every flow has finished or the time limit is reached, on up
    /// to `threads` threads.
    ///
    /// Several threads serve one large run on idle cores, if the network can be served in windows, and two a
    /// fluid. The results do not depend on the number of threads.
    pub(super) fn run_on_graph(
        &self,
        graph: &Graph,
        threads: u32,
        control: &RunControl,
    ) -> Result<Results, Problem> {
        let threads = if threads > 1 && matches!(self.model, Model::Packet) {
            let groups = self.window_plan(graph).map_or(0, |plan| plan.groups());
            threads.min((groups / GROUPS_PER_THREAD) as u32).max(1)
        } else {
            threads
        };
        self.run_partitions(graph, [threads, threads], control)
    }

    fn run_partitions(
        &self,
        graph: &Graph,
        [partitions, threads]: [u32; 2],
        control: &RunControl,
    ) -> Result<Results, Problem> {
        self.check_link_loads(graph)?;
        self.check_jobs(graph)?;
        match (&self.model, &self.transport) {
            (Model::Packet, Some(transport)) => {
                self.check_detours(graph)?;
                let fitted = self.fitted(graph)?;
                let scenario = fitted.as_ref().unwrap_or(self);
                let transport = scenario.transport.as_ref().unwrap_or(transport);
                let mut results =
                    scenario.simulate(graph, transport, [partitions, threads], control)?;
                results.summary["fitted"] = self.changed_transports(scenario);
                if fitted.is_some() {
                    results.summary["scenario"] = self.show();
                }
                Ok(results)
            }
            (Model::Packet, None) => unreachable!("a scenario is checked when it is parsed"),
            (Model::Ideal(ideal), _) => self.run_ideal(graph, &**ideal, threads, control),
        }
    }

    /// Checks that collective operations have the records of all their messages.
    fn check_jobs(&self, graph: &Graph) -> Result<(), Problem> {
        let context = self.workload_context(graph);
        if self.flows_per_record > 1 && !self.workload.jobs(&context)?.is_empty() {
            let message = "must be 1 with collective operations, whose durations need all messages";
            return Err(Problem::new("flows_per_record", message));
        }
        Ok(())
    }

    /// Returns the flows of the workload as records of flows that have not run, and their classes.
    pub(super) fn trace_on(&self, graph: &Graph) -> Result<(FlowColumns, Vec<String>), Problem> {
        let flows = self.flows(graph)?;
        self.check_link_loads(graph)?;
        if flows.dependencies.is_some() {
            // A trace needs every start time beforehand.
            let message =
                "a trace holds only flows that start by themselves, but here some follow others";
            return Err(Problem::new("workload", message));
        }
        let mut columns = FlowColumns::default();
        for spec in flows.flows.take_while(|spec| spec.start <= self.time_limit) {
            columns.push(&initial_record(spec));
        }
        Ok((columns, flows.classes))
    }

    fn simulate(
        &self,
        graph: &Graph,
        transport: &controllers::Config,
        [partitions, threads]: [u32; 2],
        control: &RunControl,
    ) -> Result<Results, Problem> {
        self.check_complete()?;
        // An external stack needs both ends in one partition.
        let has_own_stack = self.all_transports().any(|(_, transport)| transport.has_own_stack());
        let can_divide = partitions > 1 && !has_own_stack;
        let windows = self.window_plan(graph);
        let partitions = match &windows {
            Some(windows) if can_divide => Partition::assign(graph, windows, partitions),
            _ => vec![Partition::whole(graph)],
        };
        let partition_count = partitions.len();
        let threads = partition_count.min(threads as usize);
        let (measured, common) = (self.measured_interval(graph)?, self.common_interval(graph)?);
        let build = |partition| {
            self.simulation(graph, windows.clone(), partition, transport, measured.clone(), common)
        };
        let mut simulations: Vec<_> =
            partitions.into_iter().map(build).collect::<Result<_, _>>()?;
        let simulation = match simulations.pop() {
            Some(mut single) if simulations.is_empty() => {
                single.run(self.time_limit, control)?;
                single
            }
            last => {
                simulations.extend(last);
                run_on_threads(simulations, threads, self.time_limit, control)?
            }
        };
        let execution = Execution { windows, partitions: partition_count, threads };
        let summary = self.simulation_summary(graph, transport, &simulation, &execution);
        let links = link_columns(graph, &simulation);
        let classes = simulation.classes().to_vec();
        let Recorder { records: flows, samples, breakdowns, chains, record, .. } =
            simulation.recorder;
        let account = self.account.then_some(breakdowns);
        Ok(Results { flows, classes, links, samples, account, chains, record, summary })
    }
}

/// Returns the record of a flow that has not run.
fn initial_record(spec: FlowSpec) -> FlowRecord {
    let outcome = if spec.size.is_some() { Outcome::Unfinished } else { Outcome::LongLived };
    FlowRecord {
        spec,
        outcome,
        fct: None,
        acked: None,
        ideal_fct: Duration::ZERO,
        delivered: Bytes::ZERO,
        retransmits: 0,
        timeouts: 0,
        lost: Some(0),
        reordering: None,
    }
}

//! Execution of a run: by the packet simulator, on one thread or several, or by an ideal.

use serde_json::{Value, json};

use crate::base::run_control::{Progress, RunControl};
use crate::base::schema::Problem;
use crate::base::units::{Bytes, Duration, Time};
use crate::ideal::{self, Ideal, IdealSetup};
use crate::model::flow::{FlowRecord, FlowSpec, Outcome};
use crate::model::graph::{Graph, Link, LinkId};
use crate::record::{Chains, FlowColumns, LinkColumns, Recorder, Samples};
use crate::run::Results;
use crate::run::scenario::{Model, Scenario};
use crate::run::summary::{Execution, link_columns};
use crate::schedule::Partition;
use crate::simulation::measured_interval::MeasuredInterval;
use crate::simulation::run_on_threads;
use crate::traffic::{FlowStream, WorkloadContext};
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
    /// Several threads serve one large run on idle cores, if the network can be served in windows. The
    /// results do not depend on the number of threads.
    pub(super) fn run_on_graph(
        &self,
        graph: &Graph,
        threads: u32,
        control: &RunControl,
    ) -> Result<Results, Problem> {
        let threads = if threads > 1 {
            let groups = self.window_plan(graph).map_or(0, |plan| plan.groups());
            threads.min((groups / GROUPS_PER_THREAD) as u32).max(1)
        } else {
            1
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
                self.simulate(graph, transport, [partitions, threads], control)
            }
            (Model::Packet, None) => unreachable!("a scenario is checked when it is parsed"),
            (Model::Ideal(ideal), _) => self.run_ideal(graph, &**ideal, control),
        }
    }

    /// Checks that collective operations have the records of all their messages.
    fn check_jobs(&self, graph: &Graph) -> Result<(), Problem> {
        let context = WorkloadContext { graph, format: &self.packet, seed: self.seed };
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
        let measured = self.measured_interval(graph)?;
        let build = |partition| {
            self.simulation(graph, windows.clone(), partition, transport, measured.clone())
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

    fn run_ideal(
        &self,
        graph: &Graph,
        ideal: &dyn Ideal,
        control: &RunControl,
    ) -> Result<Results, Problem> {
        let FlowStream { flows, load, classes, mut dependencies, .. } = self.flows(graph)?;
        let has_dependencies = dependencies.is_some();
        let mut routes = self.routing.ideal_routes(graph, self.seed);
        let interval = self.measured_interval(graph)?.configured();
        let setting = IdealSetup {
            graph,
            kept: self.kept_records(),
            format: &self.packet,
            limit: self.time_limit,
            measured: interval,
            watch: control,
        };
        let append_route = |spec: &FlowSpec, links: &mut Vec<LinkId>| {
            links.extend(routes.path(spec.source, spec.target, spec.path_key()));
        };
        let flows = flows.take_while(|_| !control.is_stopped());
        let mut follow = dependencies.as_deref_mut().map(|dependencies| {
            |delivered: &FlowSpec, now: Time, next: &mut Vec<FlowSpec>| {
                dependencies.on_delivery(delivered, now, next);
                dependencies.on_sent(delivered, now, next);
            }
        });
        let following: Option<ideal::Following<'_>> = match &mut follow {
            Some(follow) => Some(follow),
            None => None,
        };
        let mut outcome = ideal::run_dependent(ideal, setting, flows, following, append_route);
        control.poll(Progress::default)?;
        let mut flows = FlowColumns {
            kept: self.kept_records(),
            totals: std::mem::take(&mut outcome.totals),
            ..FlowColumns::default()
        };
        // Records of ten million flows take gigabytes, which become free as columns grow.
        while let Some(record) = outcome.records.pop() {
            flows.push(&record);
            if outcome.records.len().is_multiple_of(1 << 16) {
                outcome.records.shrink_to_fit();
            }
        }
        flows.sort();
        let mut summary = self.summary(graph, &flows, outcome.end, &load, &[]);
        let elapsed = outcome.end.since(Time::ZERO);
        let of_ideal = ideal.warning(graph, &outcome.link_bytes, elapsed);
        if has_dependencies {
            // The ideal decides when dependent flows start.
            summary["realised_load"] = Value::Null;
        }
        let of_workload = (self.overload_warning(graph).into_iter())
            .chain(self.empty_start_warning())
            .chain(self.late_flows_warning(flows.totals.flows()))
            .chain(self.kept_records_warning(flows.totals.flows()))
            .chain(self.one_path_warning());
        summary["warnings"] = of_workload.chain(of_ideal).collect();
        let [from, to] = interval;
        let measured = MeasuredInterval::part_of_run([from, to.min(outcome.end)], outcome.end);
        if let Some([from, to]) = measured {
            summary["measured"] = json!({ "from_s": from.seconds(), "to_s": to.seconds() });
        }
        let counters = |bytes: &[f64], span: Duration| {
            let utilisation = |(bytes, link): (&f64, &Link)| {
                let seconds = span.seconds();
                if seconds > 0.0 { bytes * 8.0 / link.rate.bps() / seconds } else { 0.0 }
            };
            vec![
                ("bytes", bytes.iter().map(|bytes| bytes.round() as u64).collect()),
                ("utilisation", bytes.iter().zip(&graph.links).map(utilisation).collect()),
            ]
        };
        let mut links = LinkColumns {
            name: graph.link_names(),
            whole: vec![("rate_bps", graph.links.iter().map(|link| link.rate.0).collect())],
            ..LinkColumns::default()
        };
        links.whole.extend(counters(&outcome.link_bytes, elapsed));
        if let Some([from, to]) = measured {
            links.measured = counters(&outcome.measured_bytes, to - from);
        }
        let (samples, chains) = (Samples::default(), Chains::default());
        let (account, record) = (None, None);
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

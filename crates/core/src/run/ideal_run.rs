//! A run of an ideal: its flows, and the summary and counters of links that runs of every model have.

use super::Results;
use super::scenario::Scenario;
use super::summary::{add_measured_until, ideal_link_columns, set_measured, show_long_lived};
use crate::base::run_control::{Progress, RunControl};
use crate::base::schema::Problem;
use crate::base::units::Time;
use crate::ideal::{self, Ideal, IdealOutcome, IdealSetup};
use crate::model::flow::FlowSpec;
use crate::model::graph::{Graph, LinkId};
use crate::record::{Chains, FlowColumns, Samples};
use crate::simulation::measured_interval::MeasuredInterval;
use crate::traffic::FlowStream;

impl Scenario {
    pub(super) fn run_ideal(
        &self,
        graph: &Graph,
        ideal: &dyn Ideal,
        threads: u32,
        control: &RunControl,
    ) -> Result<Results, Problem> {
        let FlowStream { flows, load, classes, mut dependencies, .. } = self.flows(graph)?;
        let has_dependencies = dependencies.is_some();
        let mut routes = self.routing.ideal_routes(graph, self.seed);
        let interval = self.measured_interval(graph)?.configured();
        let common = self.common_interval(graph)?;
        let setting = IdealSetup {
            graph,
            kept: self.kept_records(),
            format: &self.packet,
            limit: self.time_limit,
            measured: interval,
            common,
            watch: control,
            threads,
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
        let flows = self.flow_columns(&mut outcome);
        let [from, to] = interval;
        let measured = MeasuredInterval::part_of_run([from, to.min(outcome.end)], outcome.end);
        let mut summary = self.summary(graph, &flows, outcome.end, &load, &[], has_dependencies);
        let elapsed = outcome.end.since(Time::ZERO);
        let of_ideal = ideal.warning(graph, &outcome.link_bytes, elapsed);
        summary["warnings"] = self.ideal_warnings(graph, flows.totals.flows(), of_ideal);
        set_measured(&mut summary, measured);
        let until = dependencies.as_ref().map(|dependencies| dependencies.measured_until());
        add_measured_until(&mut summary, until.unwrap_or_default(), &classes);
        let of_long_lived = common.map(|[from, to]| [from, to.min(outcome.end)]);
        let links = ideal_link_columns(graph, &outcome, measured);
        summary["long_lived"] = show_long_lived(
            of_long_lived.filter(|[from, to]| from < to).map(|interval| (interval, outcome.common)),
        );
        let (samples, chains) = (Samples::default(), Chains::default());
        let (account, record) = (None, None);
        Ok(Results { flows, classes, links, samples, account, chains, record, summary })
    }

    /// Takes the records of flows, as sorted columns.
    fn flow_columns(&self, outcome: &mut IdealOutcome) -> FlowColumns {
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
        flows
    }
}

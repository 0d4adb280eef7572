//! A parsed scenario with the graph and the estimate that checks and runs share.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::base::run_control::RunControl;
use crate::base::schema::{Parameter, Problem, Text};
use crate::base::units::Time;
use crate::model::graph::{Graph, RateTrace};
use crate::record::FlowColumns;
use crate::run::Results;
use crate::run::estimate::Estimate;
use crate::run::scenario::Scenario;

/// A parsed scenario. The graph and the estimate are computed on first use, and kept.
#[derive(Clone, Debug)]
pub struct Prepared {
    scenario: Scenario,
    graph: Arc<OnceLock<Result<Graph, Problem>>>,
    estimate: Arc<OnceLock<Result<Estimate, Problem>>>,
}

impl Prepared {
    /// Parses a scenario from JSON in which the texts of files may be indices into `texts`.
    pub fn parse(text: &str, texts: Vec<Text>) -> Result<Self, Problem> {
        Ok(Self::new(Scenario::parse_with(text, texts)?))
    }

    /// Wraps a scenario.
    pub fn new(scenario: Scenario) -> Self {
        Self { scenario, graph: Arc::default(), estimate: Arc::default() }
    }

    /// Returns a copy for one run, whose scenario `provide` completes with controllers and stacks that do
    /// not come with the core. It shares the graph.
    pub fn provided<T>(&self, provide: impl FnOnce(&mut Scenario) -> T) -> (Self, T) {
        let mut copy = self.clone();
        let result = provide(&mut copy.scenario);
        (copy, result)
    }

    /// Returns the scenario with every default filled in. Builds nothing.
    pub fn show(&self) -> Value {
        self.scenario.show()
    }

    /// Checks everything that can be checked without a run. A scenario that needs more than `memory` bytes
    /// is an error.
    pub fn check(&self, memory: Option<u64>) -> Result<(), Problem> {
        let graph = self.graph()?;
        self.cached_estimate()?.check(memory)?;
        self.scenario.check_on(graph)
    }

    /// Returns an estimate of what a run on this number of threads needs.
    pub fn estimate(&self, threads: u32) -> Result<Estimate, Problem> {
        Ok(self.cached_estimate()?.clone().on_threads(threads))
    }

    /// Returns the queues in force: of each traffic class, with capacities and thresholds by link rate.
    pub fn queues(&self) -> Result<Value, Problem> {
        self.scenario.queues_on(self.graph()?)
    }

    /// Returns the numbers of bits that links with rate traces can carry until each of the times, by name.
    pub fn carried(&self, times: &[Time]) -> Result<Vec<(String, Vec<f64>)>, Problem> {
        let graph = self.graph()?;
        let links = (0..).zip(&graph.links);
        let traced = links.filter_map(|(id, link)| Some((id, link.trace.as_ref()?)));
        let bits = |trace: &RateTrace| times.iter().map(|until| trace.bits(*until)).collect();
        Ok(traced.map(|(id, trace)| (graph.link_name(id), bits(trace))).collect())
    }

    /// Returns the flows of the workload and their classes, without a run. A workload that needs more than
    /// `memory` bytes is an error.
    pub fn trace(&self, memory: Option<u64>) -> Result<(FlowColumns, Vec<String>), Problem> {
        let graph = self.graph()?;
        self.cached_estimate()?.check(memory)?;
        self.scenario.trace_on(graph)
    }

    /// Runs the scenario on up to `threads` threads.
    pub fn run(&self, threads: u32, control: &RunControl) -> Result<Results, Problem> {
        self.scenario.run_on_graph(self.graph()?, threads, control)
    }

    fn graph(&self) -> Result<&Graph, Problem> {
        self.graph.get_or_init(|| self.scenario.graph()).as_ref().map_err(Clone::clone)
    }

    fn cached_estimate(&self) -> Result<&Estimate, Problem> {
        let estimate = || self.scenario.estimate_on(self.graph()?);
        self.estimate.get_or_init(estimate).as_ref().map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::base::units::Duration;

    fn prepared(changes: &Value) -> Prepared {
        let mut scenario = json!({
            "environment": "paper", "topology": "star", "transport": "dctcp", "workload": "permutation",
            "time_limit": "1 ms",
        });
        for (field, value) in changes.as_object().unwrap() {
            scenario[field] = value.clone();
        }
        Prepared::parse(&scenario.to_string(), Vec::new()).unwrap()
    }

    #[test]
    fn all_methods_and_copies_share_one_graph() {
        let first = prepared(&json!({}));
        assert!(first.graph.get().is_none(), "nothing is built before the graph is needed");
        first.show();
        assert!(first.graph.get().is_none());
        let (copy, ()) = first.provided(|_| ());
        copy.check(None).unwrap();
        let [one, other] = [&first, &copy].map(|prepared| prepared.graph().unwrap());
        assert!(std::ptr::eq(one, other));
        assert_eq!(first.run(1, &RunControl::default()).unwrap().flows.flow.len(), 16);
        assert_eq!(first.trace(None).unwrap().0.flow.len(), 16);
    }

    #[test]
    fn queues_in_force_have_the_threshold_of_each_link_rate() {
        let topology =
            json!({ "kind": "dumbbell", "rate": "10 Gbps", "bottleneck_rate": "1 Gbps" });
        let queues = prepared(&json!({ "topology": topology })).queues().unwrap();
        let ports = queues[0]["ports"].as_array().unwrap();
        let at = |at: &str, rate: u64| {
            let port =
                ports.iter().find(|port| port["at"] == at && port["rate_bps"] == rate).unwrap();
            (port["links"].as_u64().unwrap(), port["threshold"].clone(), port["capacity"].clone())
        };
        assert_eq!(at("switch", 1_000_000_000), (2, json!("30 KB"), json!("none")));
        assert_eq!(at("switch", 10_000_000_000), (20, json!("97.5 KB"), json!("none")));
        assert_eq!(ports.len(), 3);
        let ideal = prepared(&json!({ "model": "srpt", "transport": "none" }));
        assert_eq!(ideal.queues().unwrap(), json!([]));
    }

    #[test]
    fn links_with_rate_traces_carry_what_their_traces_state() {
        let table =
            json!({ "name": "rates.csv", "text": "time_s , rate_bps\n0,8e6\n1,0\n2,1e6\n" });
        let packets = json!({ "name": "packets", "text": "+1\n2\n" });
        let traced = prepared(&json!({
            "topology": { "kind": "link", "delay": "1 ms", "rate_trace": table },
            "rate_traces": [{ "link": "right->left", "file": packets }],
            "workload": "long_lived",
        }));
        let carried = traced
            .carried(&[0, 1500, 3000].map(|ms| Time::ZERO + Duration::from_micros(1000 * ms)))
            .unwrap();
        let expected = [
            ("left->right".to_owned(), vec![0.0, 8e6, 9e6]),
            ("right->left".to_owned(), vec![0.0, 18e6, 36e6]),
        ];
        assert_eq!(carried, expected);
        assert_eq!(prepared(&json!({})).carried(&[Time::ZERO]).unwrap(), []);
    }

    #[test]
    fn every_thread_needs_a_network_of_its_own() {
        let prepared = prepared(&json!({}));
        let [one, four] = [1, 4].map(|threads| prepared.estimate(threads).unwrap());
        assert!((four.parts[0].2 - 4.0 * one.parts[0].2).abs() < 1e-6);
        assert!((four.bytes() - one.bytes() - 3.0 * one.parts[0].2).abs() < 1e-6);
    }

    #[test]
    fn a_graph_that_cannot_be_built_is_an_error_of_every_method() {
        let trace = json!({ "name": "rates.csv", "text": "time_s,rate_bps\n0,1e9\n" });
        let topology = json!({ "kind": "dumbbell", "rate_trace": trace });
        let prepared = prepared(&json!({ "model": "srpt", "topology": topology }));
        let problems = [
            prepared.check(None).unwrap_err(),
            prepared.estimate(1).unwrap_err(),
            prepared.trace(None).unwrap_err(),
            prepared.run(1, &RunControl::default()).unwrap_err(),
        ];
        assert!(problems.iter().all(|problem| *problem == problems[0]), "{problems:?}");
    }
}

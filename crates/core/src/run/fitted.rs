//! Parameters of transports that follow the sizes of their flows.

use std::collections::VecDeque;

use serde_json::Value;

use crate::base::schema::{Parameter, Problem};
use crate::base::units::Bytes;
use crate::model::graph::Graph;
use crate::run::scenario::Scenario;
use crate::transport::controllers;

/// Number of flows whose sizes are read.
const FLOWS: usize = 10_000;

impl Scenario {
    /// Returns the scenario with the parameters of transports that follow the sizes of their flows, if there
    /// are any.
    pub(super) fn fitted(&self, graph: &Graph) -> Result<Option<Self>, Problem> {
        let slowest = self.extent()?.slowest;
        let fit = |transport: &controllers::Config, class: Option<&str>| {
            transport.fitted(&|| self.sizes(graph, class), slowest, &self.packet)
        };
        let main = self.transport.as_ref().and_then(|transport| fit(transport, None));
        let of_class =
            |(class, transport)| Some((String::clone(class), fit(transport, Some(class))?));
        let others: Vec<_> = self.transports.iter().filter_map(of_class).collect();
        if main.is_none() && others.is_empty() {
            return Ok(None);
        }
        let mut fitted = self.clone();
        fitted.transport = main.or(fitted.transport);
        fitted.transports.extend(others);
        Ok(Some(fitted))
    }

    /// Shows the transports of a fitted scenario that differ from those of this one, by field.
    pub(super) fn changed_transports(&self, fitted: &Self) -> Value {
        let pairs = self.all_transports().zip(fitted.all_transports());
        let changed = pairs.filter(|((_, given), (_, fitted))| given != fitted);
        changed.map(|(_, (field, fitted))| (field, fitted.show())).collect()
    }

    /// Returns the sizes of the first flows of a class, or of all classes without a transport of their own.
    /// Flows that follow others count as if each flow took no time. Errors of the workload are reported when
    /// the run opens it.
    fn sizes(&self, graph: &Graph, class: Option<&str>) -> Vec<Bytes> {
        let Ok(mut stream) = self.flows(graph) else { return Vec::new() };
        let is_ours = |name: &String| match class {
            Some(class) => name == class,
            None => !self.transports.contains_key(name),
        };
        let ours: Vec<_> = stream.classes.iter().map(is_ours).collect();
        let (mut sizes, mut next, mut followers) = (Vec::new(), VecDeque::new(), Vec::new());
        for _ in 0..FLOWS {
            let Some(flow) = next.pop_front().or_else(|| stream.flows.next()) else { break };
            if ours[usize::from(flow.class)] {
                sizes.extend(flow.size);
            }
            if let Some(dependencies) = &mut stream.dependencies {
                dependencies.on_delivery(&flow, flow.start, &mut followers);
                dependencies.on_sent(&flow, flow.start, &mut followers);
                next.extend(followers.drain(..));
            }
        }
        sizes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::base::run_control::RunControl;

    #[test]
    fn each_transport_follows_the_sizes_of_its_classes() {
        let mut flows = Vec::new();
        for (class, size) in
            [("short", 100), ("short", 200), ("short", 300), ("short", 400), ("long", 1_000_000)]
        {
            flows.push(json!({
                "source": 0, "target": 1, "start": "0 s", "size": format!("{size} B"), "class": class,
            }));
        }
        let scenario = json!({
            "environment": "paper", "topology": "star",
            "transport": "homa", "transports": { "short": "homa" },
            "workload": { "kind": "flows", "flows": flows },
        });
        let scenario = Scenario::parse(&scenario.to_string()).unwrap();
        let fitted = scenario.fitted(&scenario.graph().unwrap()).unwrap().unwrap();
        assert_eq!(fitted.transport.as_ref().unwrap().show()["cutoffs"], json!([]));
        assert_eq!(fitted.transports["short"].show()["cutoffs"], json!([200, 300]));
        let again = fitted.fitted(&scenario.graph().unwrap()).unwrap();
        assert!(again.is_none(), "given cutoffs stay");

        // A result is that of the given scenario.
        let summary = scenario.run_in_parts(1, 1, &RunControl::default()).unwrap().summary;
        assert_eq!(summary["scenario"], scenario.show());
        assert_eq!(summary["fitted"]["transports.short"]["cutoffs"], json!([200, 300]));
    }

    #[test]
    fn flows_that_follow_others_count() {
        let scenario = json!({
            "environment": "paper", "topology": "star", "transport": "homa",
            "workload": {
                "kind": "rpc",
                "request": { "kind": "fixed", "size": "100 B" },
                "response": { "kind": "fixed", "size": "1400 B" },
                "pattern": { "load": 0.3, "calls": 100 },
            },
        });
        let scenario = Scenario::parse(&scenario.to_string()).unwrap();
        let sizes = scenario.sizes(&scenario.graph().unwrap(), None);
        assert_eq!(sizes.len(), 200);
        assert_eq!(sizes.iter().filter(|size| **size == Bytes(1400)).count(), 100);
    }
}

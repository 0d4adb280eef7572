//! Rate traces of links that a scenario names, in any topology.

use super::{Graph, LinkNames, RateTrace};
use crate::base::schema::{File, Problem};

crate::parameters! {
    /// Rate of a link over time, instead of its rate in the topology.
    ///
    /// A load that refers to this link alone is the mean rate of the trace; other references of loads do not
    /// change.
    pub struct LinkTrace {
        /// Link, by name: `left->right`. The other direction, `right->left`, is a link of its own. If
        /// several links join the two nodes in this direction, each has this rate; `a->b (cable 2)` is one
        /// of them.
        pub link: String;
        /// The rates: same file formats and meaning as `rate_trace` of the topology `link`.
        pub file: File;
    }
}

impl Graph {
    /// Sets the rates of links as functions of time.
    pub(crate) fn follow_all(&mut self, traces: &[LinkTrace]) -> Result<(), Problem> {
        if traces.is_empty() {
            return Ok(());
        }
        let names = LinkNames::new(self);
        for (number, LinkTrace { link, file }) in traces.iter().enumerate() {
            let within = |problem: Problem| problem.within(&format!("[{number}]"));
            let trace = RateTrace::read("file", file).map_err(within)?;
            let links = names.links(link).map_err(|problem| within(problem.within("link")))?;
            for &id in links {
                if self.links[id as usize].trace.is_some() {
                    let message = format!("`{link}` already has a rate trace");
                    return Err(within(Problem::new("link", message)));
                }
                let load = self.load.clone();
                let is_reference = load.what == *link;
                self.follow(id, trace.clone());
                if !is_reference {
                    self.load = load;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use crate::base::units::Rate;
    use crate::topology;
    use serde_json::{Value, json};

    fn graph(topology: &Value, traces: &Value) -> Result<Graph, Problem> {
        let mut graph = topology::Config::read(topology).unwrap().graph(1).unwrap();
        graph.follow_all(&Vec::read(traces)?)?;
        Ok(graph)
    }

    fn table(rate: &str) -> Value {
        json!({ "name": "rates", "text": format!("time_s,rate_bps\n0,{rate}\n") })
    }

    #[test]
    fn each_direction_of_any_link_follows_a_trace() {
        let traces = json!([
            { "link": "leaf0->spine1", "file": table("2e9") },
            { "link": "spine1->leaf0", "file": table("3e9") },
        ]);
        let graph = graph(&json!("leaf_spine"), &traces).unwrap();
        let rates: Vec<(String, u64)> = (0..)
            .zip(&graph.links)
            .filter(|(_, link)| link.trace.is_some())
            .map(|(id, link)| (graph.link_name(id), link.rate.0 / 1_000_000_000))
            .collect();
        assert_eq!(rates, [("leaf0->spine1".to_owned(), 2), ("spine1->leaf0".to_owned(), 3)]);
    }

    #[test]
    fn loads_refer_to_the_mean_of_their_link_only() {
        let traces = |link| json!([{ "link": link, "file": table("2e9") }]);
        let load = |link| graph(&json!("dumbbell"), &traces(link)).unwrap().load.rate;
        assert_eq!(load("left->right"), Rate::from_gbps(2));
        assert_eq!(load("right->left"), Rate::from_gbps(10));
    }

    #[test]
    fn errors_name_the_trace_and_the_nearest_link() {
        let error = |traces: &Value| graph(&json!("link"), traces).unwrap_err().to_string();
        let one = json!({ "link": "left->right", "file": table("2e9") });
        let lines = [
            error(&json!([{ "link": "left->rihgt", "file": table("2e9") }])),
            error(&json!([one, one])),
            error(&json!([{ "link": "left->right", "file": table("fast") }])),
            error(&json!([{ "link": "left->right" }])),
        ];
        insta::assert_snapshot!(lines.join("\n"));
    }
}

//! Golden tables of every transport: mean and tail slowdown, drops, marks and retransmissions. Any
//! change in behaviour appears as a difference to review.

use std::fmt::Write;

use crate::common::{count, deadlines, mean, run};
use serde_json::json;
use sojourn_core::transport::controllers;

/// The web search sizes of [dctcp10], divided by ten for short runs.
const SIZES: &str = "1000 0.15\n2000 0.2\n3000 0.3\n5000 0.4\n8000 0.53\n20000 0.6\n100000 0.7\n\
                     200000 0.8\n500000 0.9\n1000000 0.97\n3000000 1\n";

/// Formats three significant digits.
fn three_digits(value: f64) -> String {
    let decimals = 2 - value.log10().floor() as i32;
    format!("{value:.*}", decimals.max(0) as usize)
}

#[test]
fn mean_and_tail_slowdowns_of_every_transport() {
    let mut table = String::from("transport       load   mean    p99  drops  marks  retransmits\n");
    for transport in controllers::Config::built_in() {
        for load in [0.3, 0.6, 0.9] {
            let results = run(&json!({
                "topology": {
                    "kind": "leaf_spine", "leaves": 3, "hosts_per_leaf": 4, "spines": 2,
                    "fabric_rate": "20 Gbps",
                },
                "transport": transport,
                "workload": {
                    "kind": "poisson", "load": load, "flows": 1_000,
                    "sizes": { "kind": "empirical", "file": { "name": "sizes", "text": SIZES } },
                    "deadlines": deadlines(&json!(transport)),
                },
                "time_limit": "100 s",
            }));
            assert_eq!(count(&results, "unfinished"), 0);
            let mut slowdowns = results.flows.slowdown.clone();
            slowdowns.sort_by(f64::total_cmp);
            let (mean, tail) = (mean(slowdowns.iter().copied()), slowdowns[989]);
            let [drops, marks, again] =
                ["drops", "marks", "retransmits"].map(|name| count(&results, name));
            let (mean, tail) = (three_digits(mean), three_digits(tail));
            writeln!(
                table,
                "{transport:15} {load:4} {mean:>6} {tail:>6} {drops:>6} {marks:>6} {again:>12}"
            )
            .unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

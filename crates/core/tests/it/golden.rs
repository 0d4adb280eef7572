//! Golden tables of every transport: mean and tail slowdown, drops, marks and retransmissions. Any
//! change in behaviour appears as a difference to review.

use std::fmt::Write;

use crate::common::{count, deadlines, mean, run, with, with_just_enough_buffer};
use serde_json::{Value, json};
use sojourn_core::transport::controllers;

/// The web search sizes of [dctcp10], divided by ten for short runs.
const SIZES: &str = "1000 0.15\n2000 0.2\n3000 0.3\n5000 0.4\n8000 0.53\n20000 0.6\n100000 0.7\n\
                     200000 0.8\n500000 0.9\n1000000 0.97\n3000000 1\n";

/// Formats three significant digits.
fn three_digits(value: f64) -> String {
    let decimals = 2 - value.log10().floor() as i32;
    format!("{value:.*}", decimals.max(0) as usize)
}

/// Poisson arrivals of web search flows over a topology.
fn scenario(transport: &str, topology: &Value, load: f64, flows: usize) -> Value {
    json!({
        "topology": topology,
        "transport": match transport {
            "timely" => json!({ "kind": transport, "ewma_weight": 0.875 }),
            _ => json!(transport),
        },
        "workload": {
            "kind": "poisson", "load": load, "flows": flows,
            "sizes": { "kind": "empirical", "file": { "name": "sizes", "text": SIZES } },
            "deadlines": deadlines(&json!(transport)),
        },
        "time_limit": "100 s",
    })
}

/// The rows of a transport: three loads on a fabric, a long link with random losses (`long`), and
/// the fabric with priority flow control and a small shared buffer (`pfc`).
fn rows(transport: &str) -> Vec<(String, Value)> {
    let fabric = json!({
        "kind": "leaf_spine", "leaves": 3, "hosts_per_leaf": 4, "spines": 2,
        "fabric_rate": "20 Gbps",
    });
    let long = json!({
        "kind": "dumbbell", "senders": 4, "receivers": 4, "bottleneck_delay": "15 us",
        "loss": 0.002,
    });
    let loads = [0.3, 0.6, 0.9];
    let mut rows: Vec<_> = loads
        .map(|load| (load.to_string(), scenario(transport, &fabric, load, 1_000)))
        .into_iter()
        .collect();
    rows.push(("long".to_owned(), scenario(transport, &long, 0.6, 500)));
    let paused = scenario(transport, &fabric, 0.9, 500);
    let paused = with(&paused, json!({ "switch": { "pause": {} } }));
    rows.push(("pfc".to_owned(), with_just_enough_buffer(&paused)));
    rows
}

#[test]
fn mean_and_tail_slowdowns_of_every_transport() {
    let mut table = String::from("transport       load   mean    p99  drops  marks  retransmits\n");
    let mut paused_transports = 0;
    for transport in controllers::Config::built_in() {
        for (row, scenario) in rows(transport) {
            let results = run(&scenario);
            assert_eq!(count(&results, "unfinished"), 0, "{transport} {row}");
            let mut slowdowns = results.flows.slowdown.clone();
            slowdowns.sort_by(f64::total_cmp);
            let tail = slowdowns[slowdowns.len() * 99 / 100 - 1];
            let mean = mean(slowdowns.iter().copied());
            let [drops, marks, retransmits] =
                ["drops", "marks", "retransmits"].map(|name| count(&results, name));
            let (mean, tail) = (three_digits(mean), three_digits(tail));
            writeln!(
                table,
                "{transport:15} {row:>4} {mean:>6} {tail:>6} {drops:>6} {marks:>6} {retransmits:>12}"
            )
            .unwrap();
            paused_transports += u32::from(row == "pfc" && count(&results, "pauses") > 0);
        }
    }
    assert!(paused_transports > 10, "only {paused_transports} transports were paused");
    insta::assert_snapshot!(table);
}

//! Shared code of the integration tests: scenarios as JSON, and access to results.
#![allow(dead_code, unreachable_pub, reason = "each test uses another part of this")]

use std::fmt::Write;

use serde_json::{Value, json};
use sojourn_core::base::run_control::RunControl;
use sojourn_core::base::schema::Parameter;
use sojourn_core::run::scenario::Scenario;
use sojourn_core::run::{Prepared, Results};
use sojourn_core::transport::controllers;

pub mod campaign;
mod disciplines;
mod paths;
pub mod receiver_driven;
pub mod scenarios;
pub mod two_switches;

/// Runs a scenario given as JSON.
pub fn run(scenario: &Value) -> Results {
    try_run(scenario).unwrap_or_else(|problem| panic!("{problem}"))
}

/// Runs a scenario, or returns its error.
pub fn try_run(scenario: &Value) -> Result<Results, String> {
    try_run_in_partitions([1, 1], scenario)
}

/// Runs a scenario in a number of partitions and threads, or returns its error.
pub fn try_run_in_partitions(
    [parts, threads]: [u32; 2],
    scenario: &Value,
) -> Result<Results, String> {
    let scenario = as_in_papers(scenario).to_string();
    let scenario = Scenario::parse(&scenario).map_err(|problem| problem.to_string())?;
    let results = scenario.run_in_parts(parts, threads, &RunControl::default());
    results.map_err(|problem| problem.to_string())
}

/// Returns a scenario in which every component has its declared defaults, unless it names an environment.
pub fn as_in_papers(scenario: &Value) -> Value {
    with(&json!({ "environment": "paper" }), scenario.clone())
}

/// Returns `base` with the tables of `change` merged in.
pub fn with(base: &Value, change: Value) -> Value {
    match (base, change) {
        (Value::Object(base), Value::Object(change)) => {
            let mut merged = base.clone();
            for (key, value) in change {
                let under = merged.get(&key).unwrap_or(&Value::Null);
                let value = with(under, value);
                merged.insert(key, value);
            }
            Value::Object(merged)
        }
        (_, change) => change,
    }
}

/// A workload of flows, each with start in seconds, source, target and size in bytes. The deadline
/// is one second, for transports that require deadlines.
pub fn flows(flows: &[(f64, u32, u32, u64)]) -> Value {
    let mut text = "start_s,source,target,size_bytes,deadline_s\n".to_owned();
    for (start, source, target, size) in flows {
        writeln!(text, "{start:.12},{source},{target},{size},1").unwrap();
    }
    json!({ "kind": "trace", "file": { "name": "flows.csv", "text": text } })
}

/// Flows over one link. Each sender transmits its whole flow at once.
pub fn at_once(link: &Value, rows: &[(f64, u32, u32, u64)]) -> Value {
    json!({
        "topology": with(&json!({ "kind": "link" }), link.clone()),
        "packet": { "payload": "960 B", "header": "40 B" },
        "transport": {
            "kind": "tcp", "window": { "initial": 100 },
            "reliability": { "handshake": false, "min_rto": "1 s" },
        },
        "queue": { "kind": "drop_tail", "capacity": "none" },
        "workload": flows(rows),
        "time_limit": "10 s",
    })
}

/// Runs a scenario event by event and returns the summary with the links. Asserts that flows, breakdown and
/// links are the same in windows, with partitions on one and on two threads.
pub fn run_with_all_engines(scenario: &Value) -> Value {
    let results_of = |engine: &str, parts| {
        let results = try_run_in_partitions(parts, &with(scenario, json!({ "engine": engine })));
        let Results { flows, account, links, mut summary, .. } = results.unwrap();
        summary["links"] = links.show().into();
        (format!("{flows:?} {account:?} {}", summary["links"]), summary)
    };
    let (by_events, summary) = results_of("events", [1, 1]);
    for parts in [[1, 1], [3, 1], [2, 2]] {
        assert!(by_events == results_of("windows", parts).0, "{parts:?}");
    }
    summary
}

/// A graph of links, with optional rates and delays of the reverse direction.
pub fn graph(rows: &str) -> Value {
    let text = format!("from,to,rate,delay,reverse_rate,reverse_delay\n{rows}");
    json!({ "kind": "graph", "file": { "name": "graph.csv", "text": text } })
}

/// Doubles the shared buffer until it holds all reserves and headrooms.
pub fn with_just_enough_buffer(scenario: &Value) -> Value {
    let sizes = (0..).map(|doublings| format!("{} KB", 10_u64 << doublings));
    let mut scenarios =
        sizes.map(|size| with(scenario, json!({ "switch": { "shared_buffer": size } })));
    let fits = |scenario: &Value| {
        Prepared::parse(&as_in_papers(scenario).to_string(), Vec::new())
            .and_then(|it| it.check(None))
            .is_ok()
    };
    scenarios.find(fits).unwrap()
}

/// Deadlines with a mean of 10 ms for transports that require deadlines; null for others.
pub fn deadlines(transport: &Value) -> Value {
    let needs = controllers::Config::read(transport).unwrap().needs_deadlines();
    if needs { json!({ "mean": "10 ms" }) } else { Value::Null }
}

/// Returns a count of the summary.
pub fn count(results: &Results, name: &str) -> u64 {
    results.summary["counts"][name].as_u64().unwrap_or_else(|| panic!("no count `{name}`"))
}

/// Returns a value of a link.
pub fn link(results: &Results, link: &str, name: &str) -> f64 {
    let links = results.links.show();
    let entry = links.iter().find(|entry| entry["name"] == link);
    entry.and_then(|entry| entry[name].as_f64()).unwrap_or_else(|| panic!("no {name} of {link}"))
}

/// Returns the samples of a probe after `from` seconds.
pub fn samples(results: &Results, probe: &str, from: f64) -> Vec<f64> {
    let samples = &results.samples;
    let index = samples.probes.iter().position(|name| name == probe);
    let probe =
        index.unwrap_or_else(|| panic!("no probe `{probe}` in {:?}", samples.probes)) as u32;
    let rows = samples.time_s.iter().zip(&samples.probe).zip(&samples.value);
    rows.filter(|((time, of), _)| **of == probe && **time >= from)
        .map(|(_, value)| *value)
        .collect()
}

/// Returns the mean.
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value;
        count += 1.0;
    }
    sum / count
}

/// Asserts that `value` is within the relative `tolerance` of `expected`.
pub fn assert_near(value: f64, expected: f64, tolerance: f64, what: &str) {
    let error = (value / expected - 1.0).abs();
    assert!(error <= tolerance, "{what}: {value:.6} is {:.2} % off {expected:.6}", error * 100.0);
}

/// Returns the standard deviation.
pub fn deviation(values: &[f64]) -> f64 {
    let centre = mean(values.iter().copied());
    mean(values.iter().map(|value| (value - centre).powi(2))).sqrt()
}

/// Asserts that the mean of independent `estimates` is within the relative `tolerance` of
/// `expected`, and within 4 standard errors (twice a 95 % confidence interval).
pub fn assert_estimates(estimates: &[f64], expected: f64, tolerance: f64, what: &str) {
    let count = estimates.len() as f64;
    let estimate = mean(estimates.iter().copied());
    assert_near(estimate, expected, tolerance, what);
    let error = deviation(estimates) / (count - 1.0).sqrt();
    let off = (estimate - expected).abs();
    assert!(
        off < 4.0 * error,
        "{what}: {estimate:.6} is {:.1} errors off {expected:.6}",
        off / error
    );
}

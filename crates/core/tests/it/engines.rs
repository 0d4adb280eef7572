//! Engines: event by event, in windows, and on several threads. The random scenarios of
//! `invariants.rs` check that all give the same results; these tests check the choice of the engine
//! and the end of a run on threads.

use crate::common::{as_in_papers, run, run_with_all_engines, try_run_in_partitions, with};
use serde_json::{Value, json};
use sojourn_core::base::run_control::RunControl;
use sojourn_core::run::Prepared;

/// A permutation among 128 hosts.
fn fabric() -> Value {
    json!({
        "topology": { "kind": "fat_tree", "k": 8, "rate": "100 Gbps" },
        "transport": "dctcp",
        "workload": { "kind": "permutation", "size": "300 KB" },
        "samples": { "interval": "10 us", "flows": [3, 5], "links": ["host0->edge0_0"] },
    })
}

#[test]
fn engine_depends_on_rates_and_delays_and_is_in_the_summary() {
    let engine = |topology: Value| {
        let scenario = with(&fabric(), json!({ "topology": null, "samples": null }));
        run(&with(&scenario, json!({ "topology": topology }))).summary["engine"].clone()
    };
    let slow = json!({ "kind": "fat_tree", "k": 4, "rate": "1 Gbps" });
    assert_eq!(engine(slow), json!({ "kind": "events" }), "an eighth of a packet a window");
    let without_delay = json!({ "kind": "star", "hosts": 8, "delay": "0 s" });
    assert_eq!(engine(without_delay), json!({ "kind": "events" }));
    let fast = engine(json!({ "kind": "fat_tree", "k": 4, "rate": "100 Gbps" }));
    assert_eq!((&fast["kind"], &fast["window_s"]), (&json!("windows"), &json!(1e-6)));
    assert_eq!((&fast["groups"], &fast["threads"]), (&json!(36), &json!(1)));
    assert!(fast["windows"].as_u64() > Some(10));
    assert_eq!((&fast["parts"], &fast["balance"]), (&json!(1), &json!(1.0)));
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let results_with = |threads| {
        let results = try_run_in_partitions([threads, threads], &fabric()).unwrap();
        let engine = &results.summary["engine"];
        assert_eq!((&engine["threads"], &engine["parts"]), (&json!(threads), &json!(threads)));
        // All hosts send the same amount, so partitions have similar amounts of work.
        assert!((0.8..=1.0).contains(&engine["balance"].as_f64().unwrap()), "{engine}");
        format!("{:?} {:?} {:?}", results.flows, results.samples, results.links)
    };
    let single_threaded = results_with(1);
    for threads in [2, 4] {
        assert!(results_with(threads) == single_threaded, "{threads} threads differ from one");
    }
}

#[test]
fn event_engine_uses_one_thread() {
    let scenario = with(&fabric(), json!({ "engine": "events" }));
    let results = try_run_in_partitions([2, 2], &scenario).unwrap();
    assert_eq!(results.summary["engine"], json!({ "kind": "events" }));
}

#[test]
fn more_threads_than_nodes_are_allowed() {
    let star = json!({ "kind": "star", "hosts": 3, "rate": "100 Gbps" });
    let scenario = with(&fabric(), json!({ "topology": null, "samples": null }));
    let scenario = with(&scenario, json!({ "topology": star }));
    let results = try_run_in_partitions([9, 9], &scenario).unwrap();
    assert_eq!(results.flows.fct_s, run(&scenario).flows.fct_s);
}

#[test]
fn run_on_threads_can_be_stopped() {
    let prepared = Prepared::parse(&as_in_papers(&fabric()).to_string(), Vec::new()).unwrap();
    for threads in [1, 3] {
        let watch = RunControl::default();
        watch.stop("");
        let stopped = prepared.run(threads, &watch);
        assert_eq!(stopped.unwrap_err().to_string(), "interrupted", "{threads} threads");
    }
}

#[test]
fn a_network_that_outgrows_the_cache_has_the_same_results_with_all_engines() {
    // 4116 links, whose state is read ahead in windows.
    let summary = run_with_all_engines(&json!({
        "topology": { "kind": "fat_tree", "k": 14, "rate": "10 Gbps" },
        "transport": "dctcp",
        "workload": { "kind": "permutation", "size": "30 KB" },
        "time_limit": "1 s",
    }));
    assert_eq!(summary["counts"]["finished"], 686);
}

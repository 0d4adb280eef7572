//! Engines: event by event, in windows, and on several threads. The random scenarios of
//! `invariants.rs` check that all give the same results; these tests check the choice of the engine
//! and the end of a run on threads.

use crate::common::{as_in_papers, graph, run, run_with_all_engines, try_run_in_partitions, with};
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
    assert_eq!(engine(slow)["kind"], "events", "an eighth of a packet a window");
    let without_delay = json!({ "kind": "star", "hosts": 8, "delay": "0 s" });
    assert_eq!(engine(without_delay)["kind"], "events");
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
    let engine = results.summary["engine"].as_object().unwrap();
    assert_eq!(engine.keys().collect::<Vec<_>>(), ["kind", "events"], "no threads");
    assert!(engine["events"].as_u64() > Some(10_000), "events of all packets");
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

/// Eighty hosts at three switches; from the second to the third, the way over a fourth is longer. Partitions
/// divide between the switches.
fn three_switches() -> Value {
    let hosts = (0..80_usize).map(|host| {
        let switch = ["s0", "s1", "s2"][(host / 20).saturating_sub(1)];
        format!("h{host},{switch},100 Gbps,1 us,,\n")
    });
    let between = [("s0", "s1", 1), ("s1", "s2", 1), ("s1", "s3", 3), ("s3", "s2", 3)]
        .map(|(from, to, delay)| format!("{from},{to},100 Gbps,{delay} us,,\n"));
    graph(&hosts.chain(between).collect::<String>())
}

#[test]
fn a_flow_with_a_new_route_is_the_same_in_every_partition() {
    // The flow has packets on both routes. Its ideal FCT is that of the shorter one.
    let flow =
        |source: u32, size: &str| json!({ "source": source, "target": source + 20, "size": size });
    let summary = run_with_all_engines(&json!({
        "topology": three_switches(),
        "transport": "dctcp",
        "failures": [{ "link": "s1->s2", "fails": "1 ms" }],
        "convergence": "10 us",
        "time_limit": "3 ms",
        "workload": { "kind": "flows", "flows": [flow(40, "100 MB"), flow(0, "1 MB")] },
    }));
    assert_eq!(summary["counts"]["unfinished"], 1);
}

#[test]
fn a_run_ends_at_its_limit_if_flows_of_any_partition_have_not_started() {
    let late = json!({ "source": 40, "target": 60, "size": "1 KB", "start": "2 ms" });
    let early = json!({ "source": 0, "target": 1, "size": "1 MB" });
    let summary = run_with_all_engines(&json!({
        "topology": three_switches(),
        "transport": "dctcp",
        "time_limit": "1 ms",
        "workload": { "kind": "flows", "flows": [early, late] },
    }));
    assert_eq!(summary["simulated_s"], 1e-3);
}

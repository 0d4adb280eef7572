//! Flows that start after others, of traces and of collective operations: times computed by hand, bounds,
//! and equality of all engines.

use std::fmt::Write;

use serde_json::{Value, json};

use sojourn_core::ideal::models;
use sojourn_core::run::Results;
use sojourn_core::traffic::collectives;

use crate::common::{assert_near, at_once, graph, run, run_with_all_engines, try_run, with};

fn trace(rows: &str) -> Value {
    let text = format!("start_s,source,target,size_bytes,after\n{rows}");
    json!({ "kind": "trace", "file": { "name": "flows.csv", "text": text } })
}

#[test]
fn a_flow_starts_when_its_source_has_an_ack_of_all_data_or_all_data() {
    // A packet takes 1 ms, its ACK 0.1 ms, the link 1 ms. Flow 0 is delivered at 2 ms and acknowledged at
    // 3.1 ms. Flow 1 follows its ACK by 1 ms, flow 2, in the other direction, its delivery by 0.
    // Flow 2's packet leaves after the ACK of flow 0 and is delivered at 2 + 0.1 + 2 ms, so its ACK
    // leaves at 4.1 ms, before flow 1's packet. Flow 3 follows the ACK of that: 4.1 + 0.1 + 3.1 ms.
    let scenario = at_once(&json!({ "rate": "8 Mbps", "delay": "1 ms" }), &[]);
    let rows = "0,0,1,960,\n0.001,0,1,960,0\n0,1,0,960,0\n0,0,1,960,1 2\n";
    let change = json!({ "packet": { "ack": "100 B" }, "workload": trace(rows) });
    let flows = run(&with(&scenario, change)).flows;
    let mut starts: Vec<_> = flows.flow.iter().zip(&flows.start_s).collect();
    starts.sort_by_key(|(flow, _)| **flow);
    let starts: Vec<i64> = starts.iter().map(|(_, start)| (*start * 1e9).round() as i64).collect();
    assert_eq!(starts, [0, 4_100_000, 2_000_000, 7_300_000]);
}

#[test]
fn all_engines_agree_on_flows_that_follow_others() {
    // A ring over all hosts: each host passes a chunk on when it has received one and sent its last.
    let hosts = 8;
    let mut rows = String::new();
    for step in 0..6 {
        for host in 0..hosts {
            let after = if step == 0 {
                String::new()
            } else {
                let before = (step - 1) * hosts;
                format!("{} {}", before + host, before + (host + hosts - 1) % hosts)
            };
            writeln!(rows, "0,{host},{},30000,{after}", (host + 1) % hosts).unwrap();
        }
    }
    let scenario = json!({
        "topology": { "kind": "leaf_spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 2 },
        "transport": "dctcp", "workload": trace(&rows), "account": true,
    });
    assert_eq!(run_with_all_engines(&scenario)["counts"]["finished"], json!(48));
    let mixed = json!({ "workload": null, "account": false });
    let mut scenario = with(&scenario, mixed);
    scenario["workload"] = json!({ "kind": "mixed", "parts": [
        trace(&rows),
        { "kind": "incast", "fan_in": 4, "size": "20 KB", "events": 2, "interval": "50 us" },
    ] });
    assert_eq!(run_with_all_engines(&scenario)["counts"]["finished"], json!(56));
}

#[test]
fn under_every_ideal_a_flow_starts_when_those_before_it_are_delivered() {
    // A packet takes 1 ms and the link 1 ms; the two first flows go out together from one host.
    for model in models::Config::NAMES {
        let scenario = json!({
            "topology": { "kind": "star", "hosts": 4, "rate": "8 Mbps", "delay": "0.5 ms" },
            "packet": { "payload": "960 B", "header": "40 B" }, "model": model,
            "workload": trace("0,0,1,960,\n0.001,1,2,960,0\n0,2,3,960,1+0.002\n"),
        });
        let Results { flows, summary, .. } = run(&scenario);
        assert_eq!(summary["counts"]["finished"], json!(3), "{model}");
        let starts: Vec<f64> = flows.start_s.iter().map(|start| (start * 1e9).round()).collect();
        // Two links and a switch: 3 ms, as each flow is alone.
        assert_eq!(starts, [0.0, 4e6, 9e6], "{model}");
    }
}

#[test]
fn an_ideal_serves_followers_beside_other_flows() {
    // A byte takes 1 us. Flow 1 shares host 0's link from 1 to 3 ms, when flow 2 has the link of host 2
    // alone; flow 0 ends at 4 ms, and flow 3 follows it.
    let scenario = json!({
        "topology": { "kind": "link", "rate": "8 Mbps", "delay": "0 ns" },
        "packet": { "payload": "1000 B", "header": "0 B" }, "model": "max_min",
        "workload": trace("0,0,1,3000,\n0.001,0,1,1000,\n0,1,0,1000,1\n0,0,1,1000,0 2\n"),
    });
    let flows = run(&scenario).flows;
    let ends: Vec<f64> = flows.start_s.iter().zip(&flows.fct_s).map(|(s, fct)| s + fct).collect();
    let expected = [0.004, 0.003, 0.004, 0.005];
    assert!(ends.iter().zip(expected).all(|(end, at)| (end - at).abs() < 1e-11), "{ends:?}");
}

/// Collective operations of 8 hosts at 4 leaves.
fn collective(algorithm: &Value, change: Value) -> Value {
    let workload = json!({
        "kind": "collective", "algorithm": algorithm, "ranks": 4, "size": "400 KB", "jobs": 2,
    });
    json!({
        "topology": { "kind": "leaf_spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 2 },
        "transport": "dctcp", "workload": with(&workload, change),
    })
}

/// Returns the durations of the jobs, and their bounds.
fn durations(results: &Results) -> Vec<(f64, f64)> {
    let Results { flows, summary, .. } = results;
    let jobs = summary["jobs"].as_array().unwrap().iter().enumerate();
    let duration = |(class, job): (usize, &Value)| {
        let of_job = |row: &usize| usize::from(flows.class[*row]) == class;
        let rows: Vec<usize> = (0..flows.flow.len()).filter(of_job).collect();
        let last = rows.iter().map(|row| flows.start_s[*row] + flows.fct_s[*row]);
        let [start, bound] = ["start_s", "bound_s"].map(|name| job[name].as_f64().unwrap());
        (last.fold(0.0, f64::max) - start, bound)
    };
    jobs.map(duration).collect()
}

#[test]
fn all_engines_agree_on_collective_operations() {
    for (number, algorithm) in collectives::Config::NAMES.iter().enumerate() {
        let placement = ["packed", "rail_aligned", "random", "random"][number];
        let compute = if *algorithm == "all_to_all" { "0 us" } else { "2 us" };
        let change = json!({ "placement": placement, "compute": compute, "jitter": "3 us" });
        let scenario = collective(&json!(algorithm), change);
        let counts = run_with_all_engines(&scenario)["counts"].clone();
        assert_eq!(counts["finished"], counts["flows"], "{algorithm}");
        let poisson = json!({
            "kind": "poisson", "load": 0.3, "flows": 30, "sizes": { "kind": "fixed", "size": "20 KB" },
        });
        let both = json!({ "kind": "mixed", "parts": [poisson, scenario["workload"]] });
        let mut scenario = scenario;
        scenario["workload"] = both;
        let counts = run_with_all_engines(&scenario)["counts"].clone();
        assert_eq!(counts["finished"], counts["flows"], "{algorithm}, beside others");
    }
}

#[test]
fn a_job_without_contention_meets_its_bound_and_no_job_is_faster() {
    let two_pieces = json!({ "kind": "ring", "chunks": 2 });
    for (algorithm, is_exact) in [
        (json!("ring"), true),
        (json!("halving_doubling"), true),
        (json!("pipeline"), false),
        (json!({ "kind": "pipeline", "micro_batches": 1 }), true),
        (json!("all_to_all"), false),
        (two_pieces, false),
    ] {
        let compute = if algorithm == "all_to_all" { "0 us" } else { "5 us" };
        let scenario = collective(&algorithm, json!({ "compute": compute, "start": "1 ms" }));
        for (model, is_alone) in [("alone", true), ("max_min", false), ("packet", false)] {
            for (duration, bound) in durations(&run(&with(&scenario, json!({ "model": model })))) {
                let ratio = duration / bound;
                let least = if is_alone { 0.0 } else { 1.0 - 1e-9 };
                assert!(ratio >= least, "{algorithm} under {model}: {duration} of {bound}");
                let meets = (ratio - 1.0).abs() < 1e-9;
                assert!(!(is_alone && is_exact) || meets, "{algorithm}: {duration} of {bound}");
            }
        }
    }
}

#[test]
fn the_bound_of_a_ring_is_its_closed_form() {
    // At a star every message takes the same time: 100 KB in 100 packets over two links.
    let scenario = json!({
        "topology": { "kind": "star", "hosts": 4, "rate": "8 Gbps", "delay": "1 us" },
        "packet": { "payload": "1000 B", "header": "40 B" }, "transport": "dctcp",
        "workload": { "kind": "collective", "algorithm": "ring", "ranks": 4, "size": "400 KB" },
    });
    let [(duration, bound)] = durations(&run(&scenario))[..] else { panic!("one job") };
    let message = 100.0 * 1040e-9 + 1040e-9 + 2e-6;
    assert!((bound / (6.0 * message) - 1.0).abs() < 1e-9, "{bound}");
    assert!(duration >= bound);
}

#[test]
fn a_stage_of_a_pipeline_sends_micro_batches_one_after_another_while_it_computes() {
    let message: f64 = 100.0 * 1040e-9 + 1040e-9 + 2e-6;
    for (text, compute) in [("30 us", 30e-6), ("200 us", 200e-6)] {
        let scenario = json!({
            "topology": { "kind": "star", "hosts": 2, "rate": "8 Gbps", "delay": "1 us" },
            "packet": { "payload": "1000 B", "header": "40 B" }, "transport": "dctcp",
            "workload": {
                "kind": "collective", "algorithm": { "kind": "pipeline", "micro_batches": 4 },
                "ranks": 2, "size": "400 KB", "compute": text,
            },
        });
        let (duration, bound) = durations(&run(&with(&scenario, json!({ "model": "alone" }))))[0];
        let expected = 2.0 * (compute + message) + 3.0 * message.max(compute);
        assert_near(duration, expected, 1e-9, text);
        assert_near(bound, expected, 1e-9, text);
        // Packets: a message waits for the acknowledgement of the one before it, too.
        let flows = run(&scenario).flows;
        for rows in [0..4, 4..8] {
            let ends: Vec<f64> =
                rows.clone().map(|row| flows.start_s[row] + flows.acked_s[row]).collect();
            let starts = rows.clone().skip(1).map(|row| flows.start_s[row]);
            assert!(starts.zip(&ends).all(|(start, end)| start > end - 1e-12), "{text}: {rows:?}");
        }
    }
}

/// Duration of a lone job of 4 ranks at a star, and its bound.
fn at_a_star(algorithm: &Value, compute: &str) -> (f64, f64) {
    let results = run(&json!({
        "topology": { "kind": "star", "hosts": 4 }, "transport": "dctcp", "model": "max_min",
        "workload": {
            "kind": "collective", "algorithm": algorithm, "ranks": 4, "size": "400 KB",
            "compute": compute,
        },
    }));
    durations(&results)[0]
}

#[test]
fn ranks_compute_where_they_reduce_before_they_send() {
    for (algorithm, operation, times) in [
        ("ring", "all_reduce", 3.0),
        ("ring", "reduce_scatter", 2.0),
        ("halving_doubling", "all_reduce", 2.0),
        ("halving_doubling", "reduce_scatter", 1.0),
    ] {
        let algorithm = json!({ "kind": algorithm, "operation": operation });
        let [copies, reduces] = ["0 ms", "1 ms"].map(|compute| at_a_star(&algorithm, compute));
        let what = algorithm.to_string();
        assert_near(reduces.0 - copies.0, times * 1e-3, 1e-9, &what);
        assert_near(reduces.1 - copies.1, times * 1e-3, 1e-9, &what);
    }
    for algorithm in ["ring", "halving_doubling"] {
        let scenario = collective(
            &json!({ "kind": algorithm, "operation": "all_gather" }),
            json!({ "compute": "1 us" }),
        );
        assert!(try_run(&scenario).unwrap_err().contains("compute: must be 0"), "{algorithm}");
    }
}

#[test]
fn a_job_uses_all_links_of_its_hosts() {
    let mut topology = graph(
        "a,s,10 Gbps,1 us,,\na,t,10 Gbps,1 us,,\nb,s,10 Gbps,1 us,,\nb,t,10 Gbps,1 us,,\n\
         c,s,10 Gbps,1 us,,\nc,t,10 Gbps,1 us,,\nd,s,10 Gbps,1 us,,\nd,t,10 Gbps,1 us,,\n",
    );
    topology["hosts"] = json!(["a", "b", "c", "d"]);
    for algorithm in ["ring", "all_to_all", "halving_doubling"] {
        let mut scenario = collective(&json!(algorithm), json!({ "size": "8 MB", "jobs": 1 }));
        scenario["topology"] = topology.clone();
        scenario["routing"] = json!("spray_round_robin");
        let (duration, bound) = durations(&run(&scenario))[0];
        assert!((1.0..2.0).contains(&(duration / bound)), "{algorithm}: {duration} of {bound}");
    }
}

#[test]
fn errors_of_collective_operations_name_the_field() {
    let problem = |change: Value| try_run(&collective(&json!("ring"), change)).unwrap_err();
    insta::assert_snapshot!(
        [
            problem(json!({ "jobs": 3 })),
            problem(json!({ "ranks": 1 })),
            problem(json!({ "size": "3 B" })),
            problem(json!({ "algorithm": "rign" })),
            problem(json!({ "ranks": 3, "algorithm": "halving_doubling" })),
            problem(json!({ "placement": "pack" })),
            problem(json!({ "algorithm": { "kind": "ring", "operation": "reduce" } })),
            problem(json!({ "algorithm": "all_to_all", "compute": "1 us" })),
        ]
        .join("\n")
    );
}

#[test]
fn calls_of_a_closed_loop_are_measured_until_the_first_caller_has_made_its_part() {
    // Round trips of the callers take 2 and 100 ms; each makes 10 calls, as often as the other.
    let calls = json!({
        "kind": "rpc", "request": { "kind": "fixed", "size": "1 KB" },
        "response": { "kind": "fixed", "size": "1 KB" },
        "pattern": { "outstanding": 1, "calls": 20 },
    });
    let rows = "near,sw,1 Gbps,1 ms,,\nfar,sw,1 Gbps,50 ms,,\nsw,server,1 Gbps,1 us,,\n";
    let network = json!({ "hosts": ["near", "far", "server"], "senders": 2 });
    let scenario = json!({
        "topology": with(&graph(rows), network), "workload": calls, "time_limit": "10 s",
        "transport": { "kind": "constant_rate", "rate": "1 Gbps" },
    });
    let until = |summary: &Value, class: &str| summary["measured_until_s"][class].as_f64();
    let ideal = with(&scenario, json!({ "model": "max_min", "transport": null }));
    for summary in [run_with_all_engines(&scenario), run(&ideal).summary] {
        assert_eq!(summary["counts"]["flows"], json!(40));
        for class in ["rpc request", "rpc response"] {
            assert_near(until(&summary, class).unwrap(), 0.0204, 5e-3, class);
        }
    }
    // A part of a mixed workload ends for its own classes; callers that stop at one time do not end before.
    let mut mixed = scenario.clone();
    mixed["workload"] = json!({ "kind": "mixed", "parts": [
        { "kind": "flows", "flows": [{ "source": 0, "target": 2, "size": "1 KB" }] }, calls,
    ] });
    let summary = run_with_all_engines(&mixed);
    assert_eq!(summary["measured_until_s"].as_object().unwrap().len(), 2);
    assert!(until(&summary, "rpc request").is_some());
    let pattern = json!({ "calls": null, "stop": "50 ms" });
    let timed = with(&scenario, json!({ "workload": { "pattern": pattern } }));
    assert!(run(&timed).summary["measured_until_s"] == json!({}));
}

//! Errors of users: each is one line with the field and the remedy. Runs that cannot finish end at
//! their time limit and report the reason.

use std::fmt::Write;

use crate::common::{count, flows, run, try_run, with};
use serde_json::{Value, json};

/// A valid scenario.
fn valid_scenario() -> Value {
    json!({
        "topology": { "kind": "dumbbell", "senders": 2, "receivers": 2 },
        "transport": "dctcp",
        "workload": flows(&[(0.0, 0, 2, 1_000)]),
    })
}

/// A CSV file of a scenario.
fn file(kind: &str, text: &str) -> Value {
    json!({ "kind": kind, "file": { "name": format!("{kind}.csv"), "text": text } })
}

/// Returns `table` with the values of `change` replacing its own, without merging.
fn replaced(mut table: Value, change: Value) -> Value {
    let Value::Object(change) = change else { panic!("{change} is not a table") };
    for (key, value) in change {
        table[key] = value;
    }
    table
}

fn poisson(change: Value) -> Value {
    let sizes = json!({ "kind": "fixed", "size": "10 KB" });
    json!({ "workload": replaced(json!({ "kind": "poisson", "load": 0.5, "sizes": sizes }), change) })
}

fn calls(pattern: &Value) -> Value {
    let size = json!({ "kind": "fixed", "size": "1 KB" });
    let rpc = json!({ "kind": "rpc", "request": size, "response": size, "pattern": pattern });
    json!({ "workload": rpc })
}

/// Incasts on a leaf-spine network with two hosts at each of two leaves.
fn incast(change: Value) -> Value {
    let workload = json!({ "kind": "incast", "fan_in": 1, "size": "10 KB" });
    let topology = json!({ "kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 2, "spines": 1 });
    json!({ "workload": replaced(workload, change), "topology": topology })
}

fn trace(rows: &str) -> Value {
    json!({ "workload": file("trace", &format!("start_s,source,target,size_bytes\n{rows}")) })
}

fn graph(rows: &str) -> Value {
    json!({ "topology": file("graph", &format!("from,to,rate,delay\n{rows}")) })
}

fn losses(text: &str) -> Value {
    json!({ "topology": { "losses": { "name": "losses.csv", "text": text } } })
}

/// All mistakes, each as a change of [`good`].
fn mistakes() -> Vec<Value> {
    [names_and_values(), inconsistent_values(), traffic_and_files()].concat()
}

fn names_and_values() -> Vec<Value> {
    vec![
        // Names.
        json!({ "transprot": "dctcp" }),
        json!({ "outstanding": 5 }),
        json!({ "workload": { "kind": "mixed", "parts": [{
            "kind": "flows", "class": "a", "flows": [{ "source": 0, "target": 1 }],
        }] } }),
        json!({ "topology": { "kind": "star", "hosts": 4, "queue": "red" } }),
        json!({ "topology": { "kind": "leaf_spine", "rate": "100 Gbps" } }),
        json!({ "transport": { "kind": "dctcp", "min_rto": "1 ms" } }),
        json!({ "transport": { "kind": "dctpc" } }),
        json!({ "transport": "dctpc" }),
        json!({ "transport": { "kind": "dctcp", "reliability": { "min_rtt": "1 ms" } } }),
        json!({ "transport": null }),
        json!({ "transport": "Reno" }),
        json!({ "transport": "EQDS" }),
        json!({ "transport": "rccc" }),
        json!({ "transport": "DCTCP" }),
        json!({ "topology": "Fat-Tree" }),
        json!({ "queue": { "kind": "fifo" } }),
        poisson(json!({ "sizes": "web_search" })),
        poisson(json!({ "sizes": "WebSearch" })),
        poisson(json!({ "sizes": "20 KB" })),
        poisson(json!({ "sizes": "20 ms" })),
        json!({ "model": "max_mim" }),
        json!({ "routing": "spray" }),
        json!({ "routing": "letflow" }),
        json!({ "workload": "allreduce" }),
        json!({ "samples": { "interval": "1 ms", "queues": ["left->rihgt"] } }),
        json!({ "samples": { "queues": ["left->right"] } }),
        // Units, signs and ranges.
        json!({ "topology": { "rate": 10 } }),
        json!({ "topology": { "rate": "10" } }),
        json!({ "topology": { "rate": "10 Gb" } }),
        json!({ "topology": { "rate": "-10 Gbps" } }),
        json!({ "topology": { "rate": "0 bps" } }),
        json!({ "topology": { "delay": "1 fs" } }),
        json!({ "topology": { "loss": 1.5 } }),
        json!({ "topology": { "senders": 0 } }),
        json!({ "topology": { "senders": 1.5 } }),
        json!({ "seed": "one" }),
        json!({ "transport": { "kind": "dctcp", "gain": 0 } }),
        json!({ "packet": { "payload": "0 B" } }),
        json!({ "packet": { "payload": "64 KiB" } }),
        json!({ "packet": { "ack": "64 KiB" } }),
        json!({ "packet": { "header": "18446744073709551615 B" } }),
        json!({ "packet": { "time_unit": "1 us" } }),
    ]
}

fn inconsistent_values() -> Vec<Value> {
    vec![
        json!({ "transport": { "kind": "timely", "t_low": "1 ms" } }),
        json!({ "transport": { "kind": "dcqcn", "alpha_timer": "50 us" } }),
        json!({ "transport": { "kind": "dcqcn", "reliability": { "receive_window": 8 } } }),
        json!({ "transport": { "kind": "homa", "reliability": { "receive_window": 8 } } }),
        json!({ "transport": { "kind": "timely", "reliability": { "receive_window": 8 } } }),
        json!({ "transport": { "kind": "hpcc", "pint": {}, "quantised": true } }),
        json!({ "transport": { "kind": "expresspass", "min_weight": 0.6 } }),
        json!({ "transport": { "kind": "expresspass", "initial_weight": 0.6 } }),
        json!({ "routing": { "kind": "shortest_queue", "memory": 1 } }),
        json!({ "topology": {
            "bottleneck_delay": "1 ms", "delay_trace": { "name": "d.csv", "text": "time_s,delay_s\n0,1\n" },
        } }),
        calls(&json!({ "outstanding": 2, "load_reference": "1 Gbps" })),
        incast(json!({ "interval": "1 ms", "load_counts": "payload" })),
        incast(json!({ "interval": "1 ms", "fan_in": 2, "shares": [0.9, 0.1] })),
        json!({ "queue": { "kind": "dcqcn_red", "kmin": "300 KB" } }),
        json!({ "queue": {
            "kind": "red", "min_threshold": "62.5 packets", "max_threshold": "50 KB",
        } }),
        json!({ "queue": { "kind": "red", "min_threshold": "0 packets" } }),
        json!({ "queue": { "kind": "red", "weight": 0 } }),
        json!({ "queue": { "kind": "red", "weight": 1.5 } }),
        json!({ "queue": { "kind": "red", "bottom": 0.6 } }),
        json!({ "queue": { "kind": "red", "max_p": 0.6, "adaptive": true } }),
        json!({ "queue": { "kind": "red", "max_p": 0.1, "bottom": 0.2, "adaptive": true } }),
        json!({ "queue": { "kind": "red", "count_in": "packet" } }),
        json!({ "queue": { "kind": "drop_tail", "capacity": "1 KB" } }),
        json!({ "queue": { "kind": "strict_priority", "classes": 65 } }),
        json!({ "queue": { "kind": "drr", "quantum": "1039 B" } }),
        json!({ "host_queue": { "kind": "sfq", "quantum": "1500 B" }, "packet": { "payload": "1461 B" } }),
        json!({ "queue": { "kind": "sfq", "buckets": 0 } }),
        json!({ "queue": { "kind": "fq_codel", "queues": 0 } }),
        json!({ "queue": { "kind": "fq_codel", "drop_batch": 0 } }),
        json!({ "queue": { "kind": "fq_codel", "quantum": "500 B" } }),
        json!({ "queue": { "kind": "fair_queueing", "capacity": "1 KB" } }),
        json!({ "queue": { "kind": "codel", "law": { "target": "100 ms" } } }),
        json!({ "queue": { "kind": "fq_codel", "law": { "interval": "0 s" } } }),
        json!({ "queue": { "kind": "strict_priority", "classes": 4 }, "transport": "pias" }),
        json!({ "transport": { "kind": "pias", "thresholds": [2, 1] } }),
        json!({ "transport": { "kind": "d3" }, "routing": "spray_random" }),
        json!({ "transport": "expresspass", "routing": "spray_random" }),
        json!({ "transport": "expresspass", "switch": { "control_priority": true } }),
        json!({ "transport": { "kind": "uet", "trimming": false, "control": "rccc" } }),
        json!({ "queue": "credit_shaper", "host": { "control_priority": true } }),
        json!({
            "transport": "d2tcp",
            "workload": { "kind": "flows", "flows": [{ "source": 0, "target": 2 }] },
        }),
        json!({ "host_queue": { "kind": "drop_tail", "capacity": "0 packets" } }),
        json!({ "queue": { "kind": "pfabric", "capacity": "1499 B" }, "packet": { "payload": "1460 B" } }),
        json!({
            "transport": { "kind": "pfabric", "deadlines": "first" },
            "workload": { "kind": "flows", "flows": [{ "source": 0, "target": 2 }] },
        }),
        json!({ "transport": { "kind": "pfabric", "thresholds": [10, 10] } }),
        json!({ "transport": { "kind": "pfabric", "thresholds": [10], "deadlines": "first" } }),
        json!({ "transport": "pdq", "routing": "spray_random" }),
        json!({
            "transport": "pdq", "routing": "flow_hash",
            "topology": { "kind": "star", "hosts": 32_769 }, "workload": "long_lived",
        }),
        json!({ "switch": { "pause": {} } }),
        json!({ "switch": { "alpha": 1 } }),
        json!({ "switch": { "alpha": 1, "shared_buffer": "1 MB", "pause": {} } }),
        json!({ "topology": "link", "host": { "jitter": "1 ms" }, "workload": "long_lived" }),
        json!({ "switch": { "pause": {}, "shared_buffer": "10 KB" } }),
        json!({ "switch": { "alpha": -1, "shared_buffer": "1 MB" } }),
        json!({
            "transport": { "kind": "timely", "segments": { "size": "64 KB" } },
            "switch": { "shared_buffer": "50 KB" },
        }),
        json!({ "transport": { "kind": "timely", "segments": { "spacing": "1 Gbps" } } }),
        json!({ "host": { "rtt_noise": { "kind": "spikes", "probability": 2, "size": "1 us" } } }),
        json!({ "host": { "rtt_noise": "uniformly" } }),
        json!({ "switch": { "pause": { "alpha": 0 }, "shared_buffer": "1 MB" } }),
        json!({ "switch": { "pause": { "headroom": "2 MB" }, "shared_buffer": "1 MB" } }),
        json!({ "switch": { "pause": { "headroom": "400 KB" }, "shared_buffer": "1 MB" } }),
        json!({ "switch": { "pause": { "reserve": "2 MB" }, "shared_buffer": "1 MB" } }),
        json!({ "switch": { "pause": { "watchdog": "0 s" }, "shared_buffer": "1 MB" } }),
        json!({ "switch": { "pause": true, "shared_buffer": "1 MB" } }),
        json!({ "switch": { "shared_buffer": "1 KB" } }),
        json!({ "traffic_classes": { "trace": 8 } }),
        json!({ "traffic_classes": { "trcae": 1 } }),
        json!({ "switch": { "pause": { "classes": [1] }, "shared_buffer": "1 MB" } }),
        json!({ "switch": { "pause": { "classes": [] }, "shared_buffer": "1 MB" } }),
        json!({ "warm_up": "20 s" }),
        json!({ "time_limit": "0 s" }),
        // Coexisting transports.
        json!({ "transports": { "traces": "tcp" } }),
        json!({ "queue": { "kind": "fair_queueing", "weights": { "trce": 2 } } }),
        json!({ "queue": { "kind": "fair_queueing", "weights": { "trace": 0 } } }),
        json!({ "transports": { "trace": "tpc" } }),
        json!({ "transports": { "trace": "rcp" } }),
        json!({ "transports": "tcp" }),
        json!({ "transport": "none", "transports": { "trace": "tcp" }, "model": "max_min" }),
    ]
}

fn traffic_and_files() -> Vec<Value> {
    let sizes = |text| poisson(json!({ "sizes": file("empirical", text) }));
    vec![
        // RPCs.
        calls(&json!({ "load": 0.5, "outstanding": 1 })),
        calls(&json!({})),
        calls(&json!({ "load": 0.5, "think": "1 us" })),
        calls(&json!({ "outstanding": 0 })),
        json!({ "workload": { "kind": "storage", "reads": 1.5, "pattern": { "outstanding": 1 } } }),
        // Loads and sizes.
        poisson(json!({ "load": 0 })),
        poisson(json!({ "load": 1.2 })),
        poisson(json!({ "gap_shape": 1 })),
        poisson(json!({ "sizes": { "kind": "fixed" } })),
        poisson(json!({ "sizes": { "kind": "pareto", "mean": "1 KB", "shape": 0.9 } })),
        sizes("1000 0.2\n2000 0.1\n3000 1\n"),
        sizes("1000 0.2\n3000 0.9\n"),
        // Traces.
        trace("0,0,2,1000\n0,0,9,1000\n"),
        trace("0,0,receiver7,1000\n"),
        trace("0,0,0,1000\n"),
        trace("0.2,0,2,1000\n0.1,0,2,1000\n"),
        trace("-1,0,2,1000\n"),
        trace("0,0,2,0\n"),
        trace("0,0,2,5000000000000\n"),
        trace("0,0,2\n"),
        trace(""),
        // Graphs.
        graph("a,s,1 Gbps,1 us\nb,t,1 Gbps,1 us\n"),
        graph("a,s,1 Gbps,1 us\nb,s,1 Gbps\n"),
        graph("a,s,fast,1 us\nb,s,1 Gbps,1 us\n"),
        // Losses.
        losses("flow,segment\n0,1\n"),
        losses("flow,segment,time\n"),
        losses("flow,segment,time\n0,1\n"),
        losses("flow,segment,time\n-1,1,1\n"),
        losses("flow,segment,time\n0,0.5,1\n"),
        losses("flow,segment,time\n0,1,0\n"),
        losses("flow,segment,time\n0,1,\n"),
        losses("flow,segment,time\n0,1,1\n0,1,2\n0,1,1\n"),
        with(&losses("flow,segment,time\n0,1,1\n"), json!({ "topology": { "loss": 0.1 } })),
        json!({ "topology": { "losses": 3 } }),
        json!({ "topology": { "rate_trace": { "name": "rates", "text": "1\n0\n" } } }),
        json!({ "topology": { "rate_trace": { "name": "rates", "text": "time_s,rate_bps\n" } } }),
        json!({ "topology": { "bursts": { "enter": 0.1 } } }),
        json!({ "topology": { "bursts": { "enter": 0.1, "leave": 0 } } }),
        json!({ "topology": { "loss": 0.1, "bursts": { "enter": 0.1, "leave": 0.5 } } }),
    ]
}

/// Delay-based transports with invalid parameters.
fn invalid_delay_laws() -> Vec<Value> {
    vec![
        json!({ "transport": { "kind": "timely", "integral": { "reference": "40 us" } } }),
        json!({ "transport": { "kind": "fast", "gamma": 1.5 } }),
        json!({ "transport": { "kind": "fast", "alpha": 0 } }),
        json!({ "transport": { "kind": "swift", "fs_min": 100 } }),
        json!({ "transport": { "kind": "swift", "min_cwnd": 2, "max_cwnd": 1 } }),
        json!({ "transport": { "kind": "swift", "initial_cwnd": 20_000 } }),
        json!({ "transport": { "kind": "constant_rate", "window": "0 B" } }),
        json!({ "transport": { "kind": "vegas", "alpha": 5 } }),
        json!({ "transport": { "kind": "vegas", "gamma": 0 } }),
        json!({ "transport": { "kind": "vegas", "decrease": 1.5 } }),
        json!({ "transport": { "kind": "vegas", "variant": "reno" } }),
        json!({ "transport": { "kind": "copa", "delta": 0 } }),
        json!({ "transport": { "kind": "copa", "delta": -0.5 } }),
        json!({ "transport": { "kind": "copa", "min_rtt_window": "0 s" } }),
        json!({ "transport": { "kind": "copa", "initial_window": 0 } }),
    ]
}

/// Transports with telemetry where it cannot be collected or returned.
fn invalid_telemetry() -> Vec<Value> {
    let transport = json!({ "kind": "hpcc" });
    vec![
        json!({
            "transport": transport,
            "topology": { "kind": "parking_lot", "bottlenecks": 9 },
            "workload": flows(&[(0.0, 0, 2, 1_000)]),
        }),
        json!({ "transport": transport, "routing": "spray_random" }),
        json!({ "transport": { "kind": "powertcp", "reliability": { "delayed_ack": "1 ms" } } }),
        json!({ "transport": {
            "kind": "python", "controller": { "name": "mine.py:Mine", "text": "" },
            "telemetry": true, "tells_delay": true,
        } }),
    ]
}

#[test]
fn every_mistake_gives_a_one_line_error() {
    let mut lines = String::new();
    assert!(try_run(&valid_scenario()).is_ok());
    let invalid = invalid_delay_laws().into_iter().chain(invalid_telemetry());
    for mistake in mistakes().into_iter().chain(invalid) {
        // A table with a `kind` replaces the table of the valid scenario; other tables are merged.
        let is_part = mistake.as_object().unwrap().values().any(|part| part.get("kind").is_some());
        let change = mistake.clone();
        let scenario = if is_part {
            replaced(valid_scenario(), change)
        } else {
            with(&valid_scenario(), change)
        };
        let Err(problem) = try_run(&scenario) else { panic!("{mistake} is accepted") };
        assert!(!problem.contains('\n'), "{problem}");
        writeln!(lines, "{problem}").unwrap();
    }
    insta::assert_snapshot!(lines);
}

#[test]
fn invalid_json_gives_an_error_with_its_position() {
    let problem = sojourn_core::run::scenario::Scenario::parse("{\"seed\": }").unwrap_err();
    assert_eq!(problem.to_string(), "expected value at line 1 column 10");
}

#[test]
fn a_transport_that_begins_with_a_window_takes_no_initial_rate() {
    let flow = json!({ "source": 0, "target": 2, "size": "1 KB", "initial_rate": "1 Gbps" });
    let list = json!({ "kind": "flows", "flows": [flow] });
    let many = json!({ "kind": "long_lived", "initial_rate": "1 Gbps", "stop": "1 ms" });
    let both = json!({ "kind": "mixed", "parts": [list, many] });
    for workload in [list, many, both] {
        let mut scenario = with(&valid_scenario(), json!({ "transport": "dctcp" }));
        scenario["workload"] = workload;
        let problem = try_run(&scenario).unwrap_err();
        assert!(problem.starts_with("workload: class `"), "{problem}");
        assert!(problem.ends_with("`: `dctcp` takes no `initial_rate`"), "{problem}");
    }
}

#[test]
fn flow_that_is_sending_at_the_limit_is_unfinished_but_not_stuck() {
    // All packets are lost and retransmitted.
    let lost = json!({
        "topology": { "loss": 1.0 },
        "time_limit": "500 ms",
        "workload": flows(&[(0.0, 0, 2, 50_000), (0.25, 1, 3, 1)]),
    });
    // The bottleneck is so slow that its senders are paused nearly all the time.
    let paused = json!({
        "topology": { "bottleneck_rate": "20 Mbps" },
        "transport": "constant_rate",
        "switch": { "shared_buffer": "100 KB", "pause": {} },
        "time_limit": "2 ms",
        "workload": flows(&[(0.0, 0, 2, 9_000_000), (0.0, 1, 3, 9_000_000)]),
    });
    let many: Vec<_> = (0..13).map(|i| (f64::from(i) * 1e-3, i % 2, 2, 1_000_000_000)).collect();
    let many = json!({ "time_limit": "20 ms", "workload": flows(&many) });
    for (change, limit, unfinished) in [(lost, 0.5, 2), (paused, 0.002, 2), (many, 0.02, 13)] {
        let results = run(&with(&valid_scenario(), change));
        assert_eq!(results.summary["simulated_s"], limit);
        assert_eq!(count(&results, "unfinished"), unfinished);
        assert_eq!(results.summary["stuck"], json!([]));
    }
}

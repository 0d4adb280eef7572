//! Flows of a trace that start after others: times computed by hand, and equality of all engines.

use std::fmt::Write;

use serde_json::{Value, json};

use sojourn_core::ideal::models;
use sojourn_core::run::Results;

use crate::common::{at_once, run, run_with_all_engines, with};

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

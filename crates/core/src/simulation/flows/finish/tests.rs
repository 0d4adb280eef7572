//! End of flows whose last packets are lost.

use crate::base::run_control::RunControl;
use crate::run::scenario::Scenario;
use serde_json::{Value, json};

/// Runs two flows of ten segments and returns the summary. Their timeout is shorter than their RTT, and all
/// retransmissions are lost.
fn run(engine: &str) -> Value {
    let mut losses = "flow,segment,time\n".to_owned();
    for flow in 0..2 {
        for segment in 1..=10 {
            losses.extend([2, 3].map(|copy| format!("{flow},{segment},{copy}\n")));
        }
    }
    let flows = "start_s,source,target,size_bytes\n0,0,1,10000\n0.050025,0,1,10000\n";
    let scenario = json!({
        "environment": "paper",
        "engine": engine,
        "topology": {
            "kind": "link", "rate": "1 Gbps", "delay": "10 ms",
            "losses": { "name": "losses.csv", "text": losses },
        },
        "transport": {
            "kind": "tcp", "window": { "initial": 10 },
            "reliability": { "handshake": false, "initial_rto": "15 ms", "min_rto": "15 ms" },
        },
        "workload": { "kind": "trace", "file": { "name": "flows.csv", "text": flows } },
        "time_limit": "1 s",
    });
    let scenario = Scenario::parse(&scenario.to_string()).unwrap();
    scenario.run_in_parts(1, 1, &RunControl::default()).unwrap().summary
}

#[test]
fn a_flow_ends_when_its_last_packet_is_lost() {
    let (events, windows) = (run("events"), run("windows"));
    // The maximum length of windows.
    assert_eq!(windows["engine"]["window_s"], json!(0.004_294_967_295));
    assert_eq!(events["counts"], windows["counts"]);
    // In windows several losses of one flow are handled together.
    assert_eq!(events["simulated_s"], windows["simulated_s"]);
    let live_flows = |summary: &Value| summary["memory"]["live_flows_max"].clone();
    assert_eq!(live_flows(&events), live_flows(&windows));
}

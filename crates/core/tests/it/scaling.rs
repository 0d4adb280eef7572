//! Laws of data centres at rates and base RTTs other than those of their papers.

use serde_json::{Value, json};

use crate::common::{run, with};

/// A lone flow over a leaf-spine fabric in an environment.
fn lone_flow(environment: &str, transport: &Value, topology: &Value, size: &str) -> Value {
    json!({
        "environment": environment,
        "topology": with(
            &json!({ "kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 2, "spines": 2 }),
            topology.clone(),
        ),
        "transport": transport,
        "workload": {
            "kind": "flows", "flows": [{ "source": 0, "target": 2, "size": size }],
        },
        "time_limit": "1 s",
    })
}

fn slowdown(scenario: &Value) -> f64 {
    run(scenario).flows.slowdown[0]
}

const DATACENTRES: [&str; 2] = ["lossy_datacentre", "lossless_datacentre"];

#[test]
fn targets_follow_a_base_rtt_above_them() {
    // With 10 us a link the base RTT is about 82 us, and Swift's declared target 32 us: a window of a third
    // of a packet.
    let topology = |delay: &str| json!({ "host_delay": delay, "fabric_delay": delay });
    let swift = |environment, size| {
        slowdown(&lone_flow(environment, &json!("swift"), &topology("10 us"), size))
    };
    let declared = swift("paper", "1 MB");
    assert!(declared > 100.0, "{declared}");
    for environment in DATACENTRES {
        // From 10 packets on, one more per RTT: 60 RTTs, 5 ms, until the link is full, in which half of it is
        // lost; 50 MB take 41 ms.
        let slowdown = swift(environment, "50 MB");
        assert!(slowdown < 1.1, "Swift in {environment}: {slowdown}");
    }
    // TIMELY's declared thresholds are below a base RTT of 800 us.
    for kind in ["timely", "patched_timely"] {
        let slowdown = |environment| {
            slowdown(&lone_flow(environment, &json!(kind), &topology("100 us"), "10 MB"))
        };
        // The rate falls from the first ACK on: of TIMELY until the end of the run, of patched TIMELY by
        // 0.3 % for each of 625 segments, to a seventh.
        let declared = slowdown("paper");
        assert!(declared.is_nan() || declared > 1.5, "{kind}: {declared}");
        for environment in DATACENTRES {
            let slowdown = slowdown(environment);
            assert!(slowdown < 1.05, "{kind} in {environment}: {slowdown}");
        }
    }
}

#[test]
fn a_lone_pfabric_flow_fills_a_fast_link() {
    let fast = json!({ "host_rate": "100 Gbps", "fabric_rate": "400 Gbps" });
    let scenario = |environment| {
        let lone = lone_flow(environment, &json!("pfabric"), &fast, "50 MB");
        with(&lone, json!({ "routing": "spray_round_robin" }))
    };
    let declared = slowdown(&scenario("paper"));
    assert!(declared > 4.0, "{declared}");
    for environment in DATACENTRES {
        let slowdown = slowdown(&scenario(environment));
        assert!(slowdown < 1.05, "{environment}: {slowdown}");
    }
}

//! Links whose delay changes: when packets come, by hand; and that all ways through time give the same.

use crate::common::{at_once, run, told_by_all_engines, try_run, with};
use serde_json::{Value, json};

/// A packet of 1000 B takes 1 ms to be sent; the wire delays it by 20 ms until 10 ms, then by 5 ms, and from
/// 1 s on by 40 ms.
const DELAYS: &str = "time_s,delay_s\n0,0.02\n0.01,0.005\n1,0.04\n";

/// A link whose sender sends all at once.
fn scenario(start: f64, packets: u64) -> Value {
    let link = json!({ "rate": "8 Mbps", "delay_trace": { "name": "delays", "text": DELAYS } });
    at_once(&link, &[(start, 0, 1, 960 * packets)])
}

/// When all has come, and when the sender knows, in milliseconds.
fn times_ms(scenario: &Value) -> [f64; 2] {
    let results = run(scenario);
    [results.flows.fct_s[0] * 1e3, results.flows.acked_s[0] * 1e3]
}

#[test]
fn packets_take_the_delay_of_when_they_are_sent_and_come_in_their_order() {
    let near = |start, packets, expected: f64| {
        let [came, acked] = times_ms(&scenario(start, packets));
        assert!((came - expected).abs() < 1e-9, "{packets} from {start}: {came} {expected}");
        // An acknowledgement of 40 B takes 0.04 ms. Those of packets that come together follow each other.
        assert!(acked > came);
        acked - came
    };
    let exact = |one: f64, other: f64| assert!((one - other).abs() < 1e-9, "{one} {other}");
    // It comes back after the change.
    exact(near(0.0, 1, 1.0 + 20.0), 0.04 + 5.0);
    near(0.0, 9, 9.0 + 20.0);
    // Those that are sent by 24 ms would come before the ninth: they come with it.
    near(0.0, 10, 29.0);
    exact(near(0.0, 24, 29.0), 16.0 * 0.04 + 5.0);
    near(0.0, 25, 30.0);
    // What is being sent when the delay grows is delayed by more.
    near(0.9985, 1, 1.0 + 5.0);
    near(0.9995, 1, 1.0 + 40.0);
}

#[test]
fn a_flow_alone_is_compared_with_the_shortest_delay() {
    let results = run(&scenario(0.0, 1));
    assert!((results.flows.ideal_fct_s[0] - 6e-3).abs() < 1e-12);
    let ideal = with(&scenario(0.0, 1), json!({ "model": "max_min" }));
    let problem = try_run(&ideal).unwrap_err();
    assert!(problem.starts_with("topology.delay_trace: must be left out"), "{problem}");
}

#[test]
fn all_ways_through_time_give_the_same() {
    let flows: Vec<_> = (0..12).map(|i| (f64::from(i) * 2e-3, i % 3, 3 + i % 2, 60_000)).collect();
    let scenario = json!({
        "topology": {
            "kind": "dumbbell", "senders": 3, "receivers": 2, "rate": "1 Gbps", "delay": "50 us",
            "delay_trace": {
                "name": "delays",
                "text": "time_s,delay_s\n0,1e-3\n3e-3,7e-5\n5e-3,2e-3\n1.1e-2,5e-5\n1.3e-2,9e-4\n",
            },
        },
        "failures": [{ "link": "left->right", "fails": "9 ms", "returns": "10.5 ms" }],
        "transport": "dctcp",
        "switch": { "shared_buffer": "2 MB", "pause": {} },
        "workload": crate::common::flows(&flows),
        "account": true,
    });
    let counts = &told_by_all_engines(&scenario)["counts"];
    assert_eq!((&counts["finished"], &counts["drops"]), (&json!(12), &json!(0)));
}

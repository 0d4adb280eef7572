//! Links with a delay trace: arrival times computed by hand, and equality of all engines.

use crate::common::{at_once, run, run_with_all_engines, try_run, with};
use serde_json::{Value, json};

/// The transmission of a packet of 1000 B takes 1 ms. The propagation delay is 20 ms until 10 ms,
/// then 5 ms, and 40 ms from 1 s on.
const DELAYS: &str = "time_s,delay_s\n0,0.02\n0.01,0.005\n1,0.04\n";

/// A link whose sender transmits the whole flow at once.
fn scenario(start: f64, packets: u64) -> Value {
    let link = json!({ "rate": "8 Mbps", "delay_trace": { "name": "delays", "text": DELAYS } });
    at_once(&link, &[(start, 0, 1, 960 * packets)])
}

/// Times in milliseconds of the last data arrival and of the last ACK arrival.
fn times_ms(scenario: &Value) -> [f64; 2] {
    let results = run(scenario);
    [results.flows.fct_s[0] * 1e3, results.flows.acked_s[0] * 1e3]
}

#[test]
fn packets_have_the_delay_at_transmission_and_keep_their_order() {
    let near = |start, packets, expected: f64| {
        let [came, acked] = times_ms(&scenario(start, packets));
        assert!((came - expected).abs() < 1e-9, "{packets} from {start}: {came} {expected}");
        // An ACK of 40 B takes 0.04 ms. ACKs of packets that arrive together are sent back to back.
        assert!(acked > came);
        acked - came
    };
    let exact = |one: f64, other: f64| assert!((one - other).abs() < 1e-9, "{one} {other}");
    // The ACK returns after the change.
    exact(near(0.0, 1, 1.0 + 20.0), 0.04 + 5.0);
    near(0.0, 9, 9.0 + 20.0);
    // Packets sent by 24 ms would overtake the ninth: they arrive with it.
    near(0.0, 10, 29.0);
    exact(near(0.0, 24, 29.0), 16.0 * 0.04 + 5.0);
    near(0.0, 25, 30.0);
    // A packet in transmission when the delay grows has the longer delay.
    near(0.9985, 1, 1.0 + 5.0);
    near(0.9995, 1, 1.0 + 40.0);
}

#[test]
fn ideal_fct_uses_the_minimum_delay() {
    let results = run(&scenario(0.0, 1));
    assert!((results.flows.ideal_fct_s[0] - 6e-3).abs() < 1e-12);
    let ideal = with(&scenario(0.0, 1), json!({ "model": "max_min" }));
    let problem = try_run(&ideal).unwrap_err();
    assert!(problem.starts_with("topology.delay_trace: must be left out"), "{problem}");
}

#[test]
fn queues_and_environments_use_the_minimum_delay() {
    let used = |text: &str| {
        let trace = json!({ "name": "delays", "text": format!("time_s,delay_s\n{text}") });
        let summary = run(&json!({
            "environment": "automatic", "transport": "tcp", "time_limit": "10 ms",
            "topology": { "kind": "link", "delay_trace": trace },
            "workload": crate::common::flows(&[(0.0, 0, 1, 1_000)]),
        }))
        .summary;
        (summary["scenario"]["environment"].clone(), summary["queues"].clone())
    };
    assert_eq!(used("0,1e-6\n1,0.2\n"), used("0,1e-6\n"));
    assert_ne!(used("0,1e-6\n"), used("0,0.2\n"));
}

#[test]
fn all_engines_agree() {
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
    let counts = &run_with_all_engines(&scenario)["counts"];
    assert_eq!((&counts["finished"], &counts["drops"]), (&json!(12), &json!(0)));
}

//! QUIC flows in the simulated network.

use std::fmt::Write;

use serde_json::{Value, json};
use sojourn_core::base::run_control::RunControl;
use sojourn_core::run::Results;
use sojourn_core::run::scenario::Scenario;

/// Runs a scenario with QUIC in `parts` partitions.
fn run_in(parts: u32, scenario: &Value) -> Results {
    let mut scenario = Scenario::parse(&scenario.to_string()).unwrap();
    sojourn_quic::provide(&mut scenario);
    scenario.run_in_parts(parts, parts, &RunControl::default()).unwrap()
}

fn run(scenario: &Value) -> Results {
    run_in(1, scenario)
}

/// Returns a workload of flows: start in seconds, source, target, size in bytes and class.
fn flows(rows: &[(f64, u32, u32, u64, &str)]) -> Value {
    let mut text = "start_s,source,target,size_bytes,class\n".to_owned();
    for (start, source, target, size, class) in rows {
        writeln!(text, "{start:.9},{source},{target},{size},{class}").unwrap();
    }
    json!({ "kind": "trace", "file": { "name": "flows.csv", "text": text } })
}

const RATE: f64 = 100e6;
const DELAY: f64 = 0.01;
const PACKET: f64 = 1_500.0;

/// Returns a single flow of `size` bytes on a link of 100 Mb/s with an RTT of 20 ms.
fn single_flow(size: u64) -> Value {
    json!({
        "environment": "paper",
        "topology": { "kind": "link", "rate": "100 Mbps", "delay": "10 ms" },
        "packet": { "payload": "1460 B", "header": "40 B" },
        "transport": "quic",
        "workload": flows(&[(0.0, 0, 1, size, "quic")]),
        "time_limit": "100 s",
    })
}

/// Returns flows on a dumbbell of 20 Mb/s with an RTT of 20 ms and a buffer of 40 packets.
fn dumbbell(rows: &[(f64, u32, u32, u64, &str)]) -> Value {
    json!({
        "environment": "paper",
        "topology": {
            "kind": "dumbbell", "senders": 4, "receivers": 4, "rate": "1 Gbps", "delay": "10 us",
            "bottleneck_rate": "20 Mbps", "bottleneck_delay": "10 ms",
        },
        "packet": { "payload": "1460 B", "header": "40 B" },
        "queue": { "kind": "drop_tail", "capacity": "40 packets" },
        "transport": "cubic",
        "transports": { "quic": "quic" },
        "workload": flows(rows),
        "time_limit": "100 s",
    })
}

fn set(scenario: &mut Value, pointer: &str, value: Value) {
    let (table, field) = pointer.rsplit_once('/').unwrap();
    scenario.pointer_mut(table).unwrap()[field] = value;
}

fn count(results: &Results, name: &str) -> u64 {
    results.summary["counts"][name].as_u64().unwrap()
}

fn assert_near(value: f64, expected: f64, tolerance: f64) {
    let error = value / expected - 1.0;
    assert!(error.abs() <= tolerance, "{value} is {:.2} % off {expected}", error * 100.0);
}

/// Returns the transmission time of `bytes` on the link of [`single_flow`].
fn transmission_time(bytes: f64) -> f64 {
    bytes * 8.0 / RATE
}

#[test]
fn the_fct_of_a_short_flow_is_an_rtt_for_the_handshake_and_half_an_rtt_for_the_data() {
    for size in [1, 1_000, 5_000] {
        let results = run(&single_flow(size));
        // A full packet, the server's messages of 2.5 kB with headers, the client's finish and the data.
        let sent = PACKET + 2_600.0 + 600.0 + 1.03 * size as f64;
        assert_near(results.flows.fct_s[0], 3.0 * DELAY + transmission_time(sent), 0.003);
        assert_eq!(count(&results, "finished"), 1);
    }
    // Anti-amplification limit: three times the received bytes until the client's address is validated.
    let mut long = single_flow(1_000);
    long["transport"] = json!({ "kind": "quic", "certificates": "6 KB" });
    let additional = run(&long).flows.fct_s[0] - run(&single_flow(1_000)).flows.fct_s[0];
    assert_near(additional, 2.0 * DELAY + transmission_time(4_000.0), 0.02);
}

#[test]
fn the_fct_of_a_long_flow_is_its_transmission_time_and_the_idle_time_of_slow_start() {
    let size = 10_000_000;
    for law in ["cubic", "new_reno"] {
        let mut scenario = single_flow(size);
        scenario["transport"] = json!({ "kind": "quic", "law": law });
        let results = run(&scenario);
        // Headers of 28 B for IP and UDP, 12 B for QUIC, 7 B for the frame, and 16 B for the tag.
        let bytes = size as f64 * PACKET / (PACKET - 63.0);
        let pipe = RATE / 8.0 * 2.0 * DELAY;
        let windows =
            (0..).map(|round| 12e3 * 2_f64.powi(round)).take_while(|window| *window < pipe);
        let idle: f64 = windows.map(|window| 2.0 * DELAY - transmission_time(window)).sum();
        let handshake = transmission_time(PACKET + 2_600.0);
        assert_near(
            results.flows.fct_s[0],
            3.0 * DELAY + handshake + idle + transmission_time(bytes),
            0.01,
        );
        assert_eq!((count(&results, "drops"), results.flows.retransmits[0]), (0, 0));
    }
}

#[test]
fn a_small_receive_window_limits_a_flow() {
    let mut scenario = single_flow(3_000_000);
    scenario["transport"] = json!({ "kind": "quic", "receive_window": "50 KB" });
    // The library extends the window when an eighth of it has been read.
    let rounds = 3_000_000.0 / 50_000.0;
    assert_near(
        run(&scenario).flows.fct_s[0],
        rounds * (2.0 * DELAY + transmission_time(50_000.0 / 8.0)),
        0.1,
    );
}

/// Returns random flows over QUIC and TCP, with losses and ECN marks.
fn random(seed: u64) -> Value {
    let draw = |purpose: u64| sojourn_core::base::random::mix(seed << 8 ^ purpose);
    let mut rows: Vec<_> = (0..10)
        .map(|i| {
            let start = (draw(i) % 100) as f64 * 1e-3;
            let size = 1 + draw(i + 20) % 300_000;
            let class = ["quic", "tcp"][(draw(i + 40) % 2) as usize];
            (start, (draw(i + 60) % 4) as u32, 4 + (draw(i + 80) % 4) as u32, size, class)
        })
        .chain([(0.0, 0, 4, 200_000, "quic"), (0.0, 1, 5, 200_000, "tcp")])
        .collect();
    rows.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut scenario = dumbbell(&rows);
    let law = ["cubic", "new_reno"][(seed % 2) as usize];
    scenario["seed"] = json!(seed);
    set(
        &mut scenario,
        "/transports/quic",
        json!({ "kind": "quic", "law": law, "ecn": !seed.is_multiple_of(3) }),
    );
    set(&mut scenario, "/topology/loss", json!((seed % 4) as f64 * 0.02));
    if seed.is_multiple_of(5) {
        scenario["queue"] = json!({ "kind": "ecn_threshold", "threshold": "10 packets" });
    }
    if seed.is_multiple_of(4) {
        scenario["topology"] = json!({
            "kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 4, "spines": 2,
            "host_rate": "1 Gbps", "fabric_rate": "500 Mbps",
        });
        scenario["failures"] = json!([{ "switch": "spine1", "fails": "5 ms", "returns": "60 ms" }]);
        scenario["convergence"] = json!("10 ms");
        scenario["routing"] = json!(["flow_hash", "spray_random"][(seed / 4 % 2) as usize]);
    }
    if seed.is_multiple_of(8) {
        scenario["switch"] = json!({ "shared_buffer": "200 KB", "pause": {} });
        scenario["queue"] = json!({ "kind": "drop_tail", "capacity": "none" });
    }
    scenario
}

#[test]
fn all_engines_and_repeated_runs_give_identical_results() {
    const KINDS: [&str; 4] = ["drops", "losses", "marks", "pauses"];
    let mut totals = [0; 4];
    for seed in 1..=32 {
        let outcome = |engine: &str, parts| {
            let mut scenario = random(seed);
            scenario["engine"] = json!(engine);
            let results = run_in(parts, &scenario);
            assert_eq!(count(&results, "finished"), 12, "seed {seed}");
            let counts = KINDS.map(|kind| count(&results, kind));
            (format!("{:?} {:?}", results.flows, results.links), counts)
        };
        let by_events = outcome("events", 1);
        assert!(outcome("events", 1) == by_events, "seed {seed}: twice");
        for parts in [1, 3] {
            assert!(outcome("windows", parts) == by_events, "seed {seed}: {parts}");
        }
        totals = std::array::from_fn(|kind| totals[kind] + by_events.1[kind]);
    }
    assert!(totals.iter().all(|total| *total > 0), "{totals:?} of {KINDS:?}");
}

#[test]
fn flows_finish_despite_losses() {
    for seed in 0..40 {
        let mut scenario = single_flow(1 + seed * 7_000);
        set(&mut scenario, "/topology/loss", json!(0.2));
        scenario["seed"] = json!(seed);
        let results = run(&scenario);
        assert_eq!(count(&results, "finished"), 1, "seed {seed}");
        assert_eq!(results.flows.delivered_bytes[0], 1 + seed * 7_000);
    }
}

#[test]
fn quic_shares_a_link_with_the_simulators_cubic() {
    let size = 8_000_000;
    for law in ["cubic", "new_reno"] {
        let mut scenario = dumbbell(&[(0.0, 0, 4, size, "quic"), (0.0, 1, 5, size, "tcp")]);
        set(&mut scenario, "/transports/quic", json!({ "kind": "quic", "law": law }));
        let results = run(&scenario);
        assert_eq!(count(&results, "finished"), 2);
        let all = 2.0 * size as f64 * 8.0 / 20e6;
        let fct = &results.flows.fct_s;
        // Neither flow has the link alone, and the link is not idle.
        assert!(fct.iter().all(|fct| *fct > 0.55 * all), "{fct:?} of {all}");
        assert!(fct.iter().all(|fct| *fct < 1.15 * all), "{fct:?} of {all}");
        assert!(count(&results, "drops") > 0);
    }
}

#[test]
fn ecn_marks_replace_losses() {
    let mut scenario = dumbbell(&[(0.0, 0, 4, 8_000_000, "quic")]);
    scenario["queue"] = json!({ "kind": "ecn_threshold", "threshold": "20 packets" });
    let results = run(&scenario);
    assert!(count(&results, "marks") > 0);
    assert_eq!(count(&results, "drops"), 0);
    let marked = results.flows.fct_s[0];
    set(&mut scenario, "/transports/quic", json!({ "kind": "quic", "ecn": false }));
    let results = run(&scenario);
    assert_eq!(count(&results, "marks"), 0);
    assert!((results.flows.fct_s[0] - marked).abs() > 0.0);
}

#[test]
fn an_unbounded_flow_stops_at_its_stop_time() {
    let mut scenario = dumbbell(&[]);
    scenario["workload"] =
        json!({ "kind": "long_lived", "flows": 2, "stop": "3 s", "class": "quic" });
    scenario["samples"] = json!({ "interval": "100 ms", "flows": [0] });
    let results = run(&scenario);
    assert_eq!(count(&results, "long_lived"), 2);
    let delivered: u64 = results.flows.delivered_bytes.iter().sum();
    assert_near(delivered as f64, 3.0 * 20e6 / 8.0 * 0.95, 0.05);
    assert!(results.samples.probes.contains(&"window_bytes flow 0".to_owned()));
    assert!(results.summary["duration_s"].as_f64().is_none_or(|seconds| seconds < 4.0));
}

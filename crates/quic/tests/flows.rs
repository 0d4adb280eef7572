//! Flows over QUIC in the simulated network.

use std::fmt::Write;

use serde_json::{Value, json};
use sojourn_core::base::run_control::RunControl;
use sojourn_core::run::Results;
use sojourn_core::run::scenario::Scenario;

/// Runs a scenario with QUIC, in so many parts.
fn run_in(parts: u32, scenario: &Value) -> Results {
    let mut scenario = Scenario::parse(&scenario.to_string()).unwrap();
    sojourn_quic::provide(&mut scenario);
    scenario.run_in_parts(parts, parts, &RunControl::default()).unwrap()
}

fn run(scenario: &Value) -> Results {
    run_in(1, scenario)
}

/// A workload of flows, each its start in seconds, source, target, size in bytes and class.
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

/// A flow of so many bytes alone on a link of 100 Mb/s and a round trip of 20 ms.
fn alone(size: u64) -> Value {
    json!({
        "topology": { "kind": "link", "rate": "100 Mbps", "delay": "10 ms" },
        "packet": { "payload": "1460 B", "header": "40 B" },
        "transport": "quic",
        "workload": flows(&[(0.0, 0, 1, size, "quic")]),
        "time_limit": "100 s",
    })
}

/// Flows that begin together on a dumbbell of 20 Mb/s and a round trip of 20 ms, with a buffer of 40 packets.
fn crowd(rows: &[(f64, u32, u32, u64, &str)]) -> Value {
    json!({
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

/// How long so many bytes take on the link of [`alone`].
fn lasts(bytes: f64) -> f64 {
    bytes * 8.0 / RATE
}

#[test]
fn a_short_flow_takes_a_round_trip_for_the_handshake_and_half_a_one_for_its_data() {
    for size in [1, 1_000, 5_000] {
        let results = run(&alone(size));
        // A full packet, the server's part of 2.5 kB and its headers, the client's end and the data.
        let sent = PACKET + 2_600.0 + 600.0 + 1.03 * size as f64;
        assert_near(results.flows.fct_s[0], 3.0 * DELAY + lasts(sent), 0.003);
        assert_eq!(count(&results, "finished"), 1);
    }
    // What the server may send before it has heard twice from its client is three times as much as it got.
    let mut long = alone(1_000);
    long["transport"] = json!({ "kind": "quic", "certificates": "6 KB" });
    let later = run(&long).flows.fct_s[0] - run(&alone(1_000)).flows.fct_s[0];
    assert_near(later, 2.0 * DELAY + lasts(4_000.0), 0.02);
}

#[test]
fn a_long_flow_takes_its_bytes_and_what_slow_start_leaves_idle() {
    let size = 10_000_000;
    for law in ["cubic", "new_reno"] {
        let mut scenario = alone(size);
        scenario["transport"] = json!({ "kind": "quic", "law": law });
        let results = run(&scenario);
        // Headers of 28 B for IP and UDP, 12 B of QUIC's, 7 B of a frame's, and 16 B for the tag.
        let bytes = size as f64 * PACKET / (PACKET - 63.0);
        let pipe = RATE / 8.0 * 2.0 * DELAY;
        let windows =
            (0..).map(|round| 12e3 * 2_f64.powi(round)).take_while(|window| *window < pipe);
        let idle: f64 = windows.map(|window| 2.0 * DELAY - lasts(window)).sum();
        let handshake = lasts(PACKET + 2_600.0);
        assert_near(results.flows.fct_s[0], 3.0 * DELAY + handshake + idle + lasts(bytes), 0.01);
        assert_eq!((count(&results, "drops"), results.flows.retransmits[0]), (0, 0));
    }
}

#[test]
fn a_window_that_is_too_small_holds_a_flow_back() {
    let mut scenario = alone(3_000_000);
    scenario["transport"] = json!({ "kind": "quic", "receive_window": "50 KB" });
    // The library opens the window when an eighth of it has been read.
    let rounds = 3_000_000.0 / 50_000.0;
    assert_near(run(&scenario).flows.fct_s[0], rounds * (2.0 * DELAY + lasts(50_000.0 / 8.0)), 0.1);
}

/// Random flows of QUIC's and of our own, of which some packets are lost and some are marked.
fn random(seed: u64) -> Value {
    let chance = |purpose: u64| sojourn_core::base::random::mix(seed << 8 ^ purpose);
    let mut rows: Vec<_> = (0..10)
        .map(|i| {
            let start = (chance(i) % 100) as f64 * 1e-3;
            let size = 1 + chance(i + 20) % 300_000;
            let class = ["quic", "tcp"][(chance(i + 40) % 2) as usize];
            (start, (chance(i + 60) % 4) as u32, 4 + (chance(i + 80) % 4) as u32, size, class)
        })
        .chain([(0.0, 0, 4, 200_000, "quic"), (0.0, 1, 5, 200_000, "tcp")])
        .collect();
    rows.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut scenario = crowd(&rows);
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
fn all_engines_agree_to_the_bit_and_so_do_two_runs() {
    const KINDS: [&str; 4] = ["drops", "losses", "marks", "pauses"];
    let mut met = [0; 4];
    for seed in 1..=32 {
        let told = |engine: &str, parts| {
            let mut scenario = random(seed);
            scenario["engine"] = json!(engine);
            let results = run_in(parts, &scenario);
            assert_eq!(count(&results, "finished"), 12, "seed {seed}");
            let counts = KINDS.map(|kind| count(&results, kind));
            (format!("{:?} {}", results.flows, results.summary["links"]), counts)
        };
        let by_events = told("events", 1);
        assert!(told("events", 1) == by_events, "seed {seed}: twice");
        for parts in [1, 3] {
            assert!(told("windows", parts) == by_events, "seed {seed}: {parts}");
        }
        met = std::array::from_fn(|kind| met[kind] + by_events.1[kind]);
    }
    assert!(met.iter().all(|times| *times > 0), "{met:?} of {KINDS:?}");
}

#[test]
fn losses_never_leave_a_flow_unfinished() {
    for seed in 0..40 {
        let mut scenario = alone(1 + seed * 7_000);
        set(&mut scenario, "/topology/loss", json!(0.2));
        scenario["seed"] = json!(seed);
        let results = run(&scenario);
        assert_eq!(count(&results, "finished"), 1, "seed {seed}");
        assert_eq!(results.flows.delivered_bytes[0], 1 + seed * 7_000);
    }
}

#[test]
fn it_shares_a_link_with_our_cubic() {
    let size = 8_000_000;
    for law in ["cubic", "new_reno"] {
        let mut scenario = crowd(&[(0.0, 0, 4, size, "quic"), (0.0, 1, 5, size, "tcp")]);
        set(&mut scenario, "/transports/quic", json!({ "kind": "quic", "law": law }));
        let results = run(&scenario);
        assert_eq!(count(&results, "finished"), 2);
        let all = 2.0 * size as f64 * 8.0 / 20e6;
        let fct = &results.flows.fct_s;
        // Neither has the link for itself, nor does it stand idle.
        assert!(fct.iter().all(|fct| *fct > 0.55 * all), "{fct:?} of {all}");
        assert!(fct.iter().all(|fct| *fct < 1.15 * all), "{fct:?} of {all}");
        assert!(count(&results, "drops") > 0);
    }
}

#[test]
fn marks_take_the_place_of_losses() {
    let mut scenario = crowd(&[(0.0, 0, 4, 8_000_000, "quic")]);
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
fn a_flow_without_end_stops_when_it_is_told() {
    let mut scenario = crowd(&[]);
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

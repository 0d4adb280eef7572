//! Host behaviour outside congestion control: RTT measurement, pacing of bursts, RPC clients and
//! servers.

use crate::common::{assert_near, mean, run, samples};
use serde_json::{Value, json};
use sojourn_core::record::FlowColumns;
use sojourn_core::run::Results;

/// RPCs between two hosts of an idle network.
fn calls(rate: &str, workload: &Value) -> Results {
    run(&json!({
        "time_limit": "20 s",
        "topology": { "kind": "dumbbell", "senders": 1, "receivers": 1, "rate": rate },
        "transport": "constant_rate",
        "workload": workload,
    }))
}

#[test]
fn rpc_latency_is_request_service_and_response() {
    let workload = json!({
        "kind": "rpc", "service": "5 us",
        "request": { "kind": "uniform", "min": "1 B", "max": "64 KB" },
        "response": { "kind": "fixed", "size": "1 KB" },
        "pattern": { "outstanding": 1, "calls": 50 },
    });
    let FlowColumns { start_s, ideal_fct_s, latency_s, .. } = calls("10 Gbps", &workload).flows;
    assert_eq!(latency_s.len(), 100);
    for request in (0..100).step_by(2) {
        // Except for the first call, the request waits for the transmission of the last response's
        // ACK.
        let ack = if request == 0 { 0.0 } else { 32e-9 };
        let expected = ideal_fct_s[request] + 5e-6 + ideal_fct_s[request + 1];
        assert!(latency_s[request].is_nan(), "requests have no latency");
        assert!((latency_s[request + 1] - expected - ack).abs() < 2e-12);
        // The client starts its next call at once.
        if let Some(next) = start_s.get(request + 2) {
            assert!((next - start_s[request] - latency_s[request + 1]).abs() < 1e-12);
        }
    }
}

#[test]
fn storage_device_is_an_m_m_1_queue() {
    // M/M/1 at a utilisation of 0.5: the mean response time is twice the mean service time. Blocks
    // of 1000 B and their requests at 50 Mb/s are 5000 per second, which rarely collide in the
    // network.
    let workload = json!({
        "kind": "storage", "reads": 1.0, "blocks": { "kind": "fixed", "size": "1 KB" },
        "device_time": "100 us",
        "pattern": {
            "load": 0.5, "load_reference": "100.48 Mbps", "load_counts": "payload", "calls": 60_000,
        },
    });
    let results = calls("100 Gbps", &workload);
    let latencies: Vec<f64> =
        results.flows.latency_s.iter().copied().filter(|latency| !latency.is_nan()).collect();
    assert_eq!(latencies.len(), 60_000);
    assert_near(mean(latencies), 200e-6, 0.05, "the time in a device");
}

/// Four flows of one host, in bursts of 16 packets, each flow at an eighth of the line rate.
fn sharing(stamps: &str) -> Value {
    json!({
        "time_limit": "2 ms",
        "topology": { "kind": "dumbbell", "senders": 1, "receivers": 1 },
        "transport": {
            "kind": "timely", "beta": 1e-9, "delta": "1 bps", "t_low": "0 ns",
            "segments": { "pacing": "per_burst" },
        },
        "workload": { "kind": "flows", "flows": [
            { "source": 0, "target": 1, "initial_rate": "1.25 Gbps" },
            { "source": 0, "target": 1, "initial_rate": "1.25 Gbps" },
            { "source": 0, "target": 1, "initial_rate": "1.25 Gbps" },
            { "source": 0, "target": 1, "initial_rate": "1.25 Gbps" },
        ] },
        "host": { "stamps": stamps },
        "samples": { "interval": "1 ms", "rtt_flows": [3], "rtts": true },
    })
}

#[test]
fn nic_timestamps_exclude_the_wait_in_the_host() {
    // The last of four simultaneous bursts waits for three bursts, and its last packet for 15 of
    // its own.
    let packet = 1040.0 * 8.0 / 10e9;
    let handed = run(&sharing("handed"));
    let waited = samples(&handed, "rtt_forward_queueing_s flow 3", 0.0);
    assert!((waited[0] - (3.0 * 16.0 + 15.0) * packet).abs() < 1e-12, "{}", waited[0]);
    let wire = run(&sharing("wire"));
    assert!(samples(&wire, "rtt_forward_queueing_s flow 3", 0.0).iter().all(|wait| *wait == 0.0));
    // Three hops of packet and ACK.
    let fixed = 3.0 * packet + 3.0 * 40.0 * 8.0 / 10e9 + 6e-6;
    for rtt in samples(&wire, "measured_rtt_s flow 3", 0.0) {
        assert!((rtt - fixed).abs() < 1e-12);
    }
    let counted = &wire.summary["rtts"][0];
    let within = |edge: &str| counted[edge][0].as_f64().unwrap();
    assert!(within("lower_s") <= fixed && fixed < within("upper_s"));
    assert_eq!(counted["count"].as_array().unwrap().len(), 1, "all are the same");
}

#[test]
fn packets_of_a_burst_are_paced() {
    let mut scenario = sharing("handed");
    scenario["transport"]["segments"]["spacing"] = json!("1 Gbps");
    scenario["workload"] = crate::common::flows(&[(0.0, 0, 1, 16_000)]);
    let results = run(&scenario);
    // The sixteenth packet departs after fifteen transmission times at 1 Gb/s.
    let expected = 15.0 * 1040.0 * 8.0 / 1e9 + 3.0 * 1040.0 * 8.0 / 10e9 + 3e-6;
    assert!((results.flows.fct_s[0] - expected).abs() < 1e-11, "{}", results.flows.fct_s[0]);
}

#[test]
fn prioritised_acks_do_not_wait_behind_data() {
    let both_ways = |priority: bool| {
        let results = run(&json!({
            "time_limit": "3 ms",
            "topology": { "kind": "star", "hosts": 4 },
            "transport": "constant_rate",
            "workload": { "kind": "flows", "flows": [
                { "source": 0, "target": 1, "initial_rate": "1 Gbps" },
                { "source": 2, "target": 0, "initial_rate": "6 Gbps" },
                { "source": 3, "target": 0, "initial_rate": "6 Gbps" },
            ] },
            "switch": { "control_priority": priority },
            "samples": { "interval": "1 ms", "rtt_flows": [0] },
        }));
        ["forward", "reverse"].map(|way| {
            let waits = samples(&results, &format!("rtt_{way}_queueing_s flow 0"), 0.0);
            waits.into_iter().fold(0.0, f64::max)
        })
    };
    // Data shares its host's NIC with the other flows' ACKs.
    let acks = 2.0 * 40.0 * 8.0 / 10e9;
    let [forward, reverse] = both_ways(false);
    assert!(forward <= acks && reverse > 200e-6, "{forward} and {reverse}");
    // At most one packet in transmission.
    let [forward, reverse] = both_ways(true);
    assert!(forward <= acks && reverse <= acks + 1040.0 * 8.0 / 10e9, "{forward} and {reverse}");
}

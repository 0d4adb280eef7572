//! Published behaviour of PCP in whole runs: results of probes, effect of history, draining of
//! queues.

use crate::common::{assert_near, count, flows, link, mean, run, samples, try_run, with};
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// The paper's link of 40 Mb/s with an RTT of 25 ms and a buffer of one BDP.
fn network() -> Value {
    json!({
        "topology": {
            "kind": "dumbbell", "senders": 2, "receivers": 2, "rate": "1 Gbps", "delay": "5 ms",
            "bottleneck_rate": "40 Mbps", "bottleneck_delay": "2.5 ms",
        },
        "packet": { "payload": "1210 B", "header": "40 B", "ack": "40 B" },
        "queue": { "kind": "drop_tail", "capacity": "100 packets" },
        "transport": "pcp",
        "time_limit": "30 s",
    })
}

/// A flow of 200 packets.
const SIZE: u64 = 200 * 1210;

fn pcp(change: Value) -> Value {
    with(&json!({ "kind": "pcp" }), change)
}

fn run_with(transport: &Value, workload: &Value, more: Value) -> Results {
    let change = json!({ "transport": transport, "workload": workload });
    run(&with(&with(&network(), change), more))
}

fn one_flow() -> Value {
    flows(&[(0.0, 0, 2, SIZE)])
}

fn rates(results: &Results, flow: u32) -> Vec<f64> {
    samples(results, &format!("rate_bps flow {flow}"), 0.0)
}

/// Rates in Mb/s of a flow over time, with a given history.
fn rates_with_history(rate: &str, share: f64, host: &Value) -> Vec<f64> {
    let sampled = json!({ "samples": { "interval": "1 ms", "flows": [0] }, "host": host });
    let transport = pcp(json!({ "rigged": rate, "share": share }));
    let results = run_with(&transport, &one_flow(), sampled);
    let mut rates: Vec<_> = rates(&results, 0).iter().map(|rate| (rate / 1e5).round()).collect();
    rates.dedup();
    rates.iter().map(|rate| rate / 10.0).collect()
}

#[test]
fn probe_succeeds_up_to_the_available_bandwidth() {
    for share in [0.1, 0.5, 0.9] {
        let granted = 40.0 * share;
        let rates = rates_with_history("40 Mbps", share, &json!({}));
        assert!((rates[1] - granted).abs() < 0.1, "{share}: {rates:?}");
    }
    for share in [0.5, 0.9] {
        let rates = rates_with_history("100 Mbps", share, &json!({}));
        assert!(rates[1] < 100.0 * share - 1.0, "{share}: {rates:?}");
    }
}

#[test]
fn two_probes_with_history_find_the_whole_link() {
    for host in [json!({}), json!({ "clock_offset": "300 ms" })] {
        let rates = rates_with_history("39.9 Mbps", 1.0 / 3.0, &host);
        assert!((rates[1] - 13.3).abs() < 0.1 && (rates[2] - 39.9).abs() < 0.1, "{rates:?}");
    }
}

#[test]
fn history_more_than_halves_the_fct_of_a_single_flow() {
    let workload = flows(&(0..6_u32).map(|i| (f64::from(i), 0, 2, SIZE)).collect::<Vec<_>>());
    let results = run_with(&pcp(json!({})), &workload, json!({}));
    let times = &results.flows.fct_s;
    // The handshake, a probe at one third, a probe at two thirds, then 167 of 200 packets at 40
    // Mb/s, and half an RTT. The probes themselves take 3 and 1.5 ms.
    let by_hand = 0.025 + (0.025 + 0.003) + (0.025 + 0.0015) + 167.0 * 250e-6 + 0.0125;
    assert_near(times[5], by_hand, 0.1, "with history");
    assert!((0.22..0.32).contains(&times[0]), "{}: without history", times[0]);
    assert!(link(&results, "left->right", "drops") < 1.0);
    let forgetful = run_with(&pcp(json!({ "history": "off" })), &workload, json!({}));
    assert!(forgetful.flows.fct_s.iter().all(|time| *time > 0.22));
    // Each pair of hosts has its own history.
    let workload = flows(&[(0.0, 0, 2, SIZE), (1.0, 1, 3, SIZE), (2.0, 0, 2, SIZE)]);
    let times = run_with(&pcp(json!({})), &workload, json!({})).flows.fct_s;
    assert!(times[1] > 0.22 && times[2] < 0.2, "{times:?}");
}

#[test]
fn two_flows_at_the_full_rate_slow_down_and_drain_the_queue() {
    let workload = flows(&[(0.0, 0, 2, 10 * SIZE), (0.008, 1, 3, 10 * SIZE)]);
    let sampled = json!({
        "samples": { "interval": "1 ms", "flows": [0, 1], "queues": ["left->right"] },
        "queue": { "capacity": "1000 packets" },
    });
    // The second probe finds an idle link, because the answer to the first is still in flight.
    let transport = pcp(json!({ "rigged": "36 Mbps", "share": 1 }));
    let results = run_with(&transport, &workload, sampled);
    let both: Vec<f64> =
        rates(&results, 0).iter().zip(rates(&results, 1)).map(|(a, b)| a + b).collect();
    let queue = samples(&results, "queue_bytes left->right", 0.0);
    let over = both.iter().position(|sum| *sum > 70e6).expect("both take it");
    let until = |sum: f64| over + both[over..].iter().position(|both| *both < sum).unwrap();
    // Samples are one millisecond apart; the RTT is 25 ms plus the queueing delay, and the first
    // feedback about the overload takes one RTT.
    assert!(until(40e6) - over < 75, "below the link's rate after {} ms", until(40e6) - over);
    let peak = queue.iter().copied().fold(0.0, f64::max);
    assert!((50.0..250.0).contains(&(peak / 1250.0)), "{peak} B");
    let from = queue.iter().position(|bytes| *bytes > 0.9 * peak).unwrap();
    let drained = queue[from..].iter().position(|bytes| *bytes < 5.0 * 1250.0).unwrap();
    assert!(drained < 150, "drained after {drained} ms");
    assert!(results.flows.slowdown.iter().all(|slowdown| *slowdown < 4.0));
}

/// PCP at the first sender, and another transport at the second, whose flows are `competitor`.
fn run_with_competitor(other: &Value, competitor: &Value, more: Value) -> Results {
    let flow = json!({ "kind": "flows", "flows": [
        { "source": 0, "target": 2, "start": "1 s", "size": "1 GB", "class": "pcp" },
    ] });
    let workload = json!({ "kind": "mixed", "parts": [flow, competitor] });
    let mixed = json!({ "transports": { "other": other } });
    run_with(&pcp(json!({})), &workload, with(&mixed, more))
}

/// A flow that exists from the start.
fn competing_flow(change: Value) -> Value {
    let flow = json!({ "source": 1, "target": 3, "size": "1 GB", "class": "other" });
    json!({ "kind": "flows", "flows": [with(&flow, change)] })
}

#[test]
fn pcp_takes_only_the_bandwidth_that_a_constant_rate_flow_leaves() {
    let sampled = json!({ "samples": { "interval": "10 ms", "flows": [1] }, "time_limit": "6 s" });
    for (competitor, left) in [("10 Mbps", 30e6), ("30 Mbps", 10e6)] {
        let competitor = competing_flow(json!({ "initial_rate": competitor }));
        let results = run_with_competitor(&json!("constant_rate"), &competitor, sampled.clone());
        let settled = samples(&results, "rate_bps flow 1", 3.0);
        let rate = mean(settled.iter().copied());
        assert!((0.8 * left..1.01 * left).contains(&rate), "{rate} of {left}");
        assert_eq!(count(&results, "drops"), 0);
    }
}

#[test]
fn pcp_and_tcp_do_not_starve_each_other() {
    let competitor = competing_flow(json!({ "start": "5 s" }));
    let results = run_with_competitor(&json!("tcp"), &competitor, json!({ "time_limit": "65 s" }));
    let share = |flow: usize, seconds: f64| {
        results.flows.delivered_bytes[flow] as f64 * 8.0 / seconds / 40e6
    };
    // The first flow is PCP's, which had the link to itself for 4 s.
    let (pcp, tcp) = (share(0, 64.0) - 4.0 / 64.0, share(1, 60.0));
    assert!(pcp > 0.1 && tcp > 0.1, "{pcp} and {tcp}");
}

#[test]
fn random_losses_are_recovered_without_a_rate_change() {
    let sampled = json!({ "samples": { "interval": "1 ms", "flows": [0] } });
    let transport = pcp(json!({ "rigged": "39.9 Mbps" }));
    let clean = run_with(&transport, &one_flow(), sampled.clone()).flows.fct_s[0];
    let lossy = |seed| {
        let change = json!({ "seed": seed, "topology": { "loss": 0.01 } });
        run_with(&transport, &one_flow(), with(&sampled, change)).flows.fct_s[0]
    };
    let slower = mean((1..=20).map(lossy)) - clean;
    assert!((0.0..0.05).contains(&slower), "{slower} s: two RTTs");
}

#[test]
fn no_losses_at_low_load() {
    let change = json!({
        "topology": { "senders": 20, "receivers": 20 },
        "workload": {
            "kind": "poisson", "load": 0.15, "stop": "20 s", "pairs": "opposite",
            "sizes": { "kind": "fixed", "size": format!("{SIZE} B") },
        },
    });
    for seed in 1..=3 {
        let results = run(&with(&with(&network(), change.clone()), json!({ "seed": seed })));
        assert_eq!(count(&results, "drops"), 0);
        let late = results.flows.fct_s.len() / 2;
        let time = mean(results.flows.fct_s[late..].iter().copied());
        assert!((0.12..0.25).contains(&time), "{time}");
    }
}

#[test]
fn invalid_parameters_are_rejected() {
    let error = |change: Value| {
        let scenario =
            with(&network(), json!({ "transport": pcp(change), "workload": one_flow() }));
        try_run(&scenario).unwrap_err()
    };
    insta::assert_snapshot!(
        [
            error(json!({ "probes": { "packets": 2 } })),
            error(json!({ "probes": { "amount": 0 } })),
            error(json!({ "probes": { "longest_wait": 0.5 } })),
            error(json!({ "share": 1.5 })),
            error(json!({ "compensation": { "most": 1.5 } })),
            error(json!({ "compensation": { "weakening": 0.5 } })),
            error(json!({ "reliability": { "handshake": false } })),
            error(json!({ "reliability": { "delayed_ack": "40 ms" } })),
            error(json!({ "reliability": { "sack_compression": "1 ms" } })),
        ]
        .join("\n")
    );
}

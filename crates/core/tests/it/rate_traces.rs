//! Links with a rate trace: arrival times computed by hand, utilisation and load, and equality of
//! all engines.

use crate::common::{assert_near, at_once, graph, link, run, run_with_all_engines, try_run, with};
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// The transmission of a packet of 1000 B takes 1 ms; from 10 ms to 15 ms the link is down; from 15
/// ms on it takes 0.1 ms.
const PAUSE: &str = "time_s,rate_bps\n0,8e6\n0.01,0\n0.015,8e7\n";

/// A link of 1 ms with a trace from left to right, whose sender transmits the whole flow at once.
fn scenario(trace: &str, flow: (f64, u32, u32, u64)) -> Value {
    let link = json!({ "delay": "1 ms", "rate_trace": { "name": "rates", "text": trace } });
    at_once(&link, &[flow])
}

fn fct_ms(results: &Results) -> f64 {
    results.flows.fct_s[0] * 1e3
}

#[test]
fn transmission_time_follows_the_rate_trace() {
    let fct = |start, packets: u64| fct_ms(&run(&scenario(PAUSE, (start, 0, 1, 960 * packets))));
    let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-9, "{one} {other}");
    near(fct(0.0, 1), 1.0 + 1.0);
    // Ten packets pass before the outage, ten after it.
    near(fct(0.0, 20), 15.0 + 10.0 * 0.1 + 1.0);
    // Half of the packet before the outage and half after it; then a packet that arrives within the
    // outage.
    near(fct(0.0095, 1), 0.5 + 5.0 + 0.05 + 1.0);
    near(fct(0.012, 3), 3.0 + 3.0 * 0.1 + 1.0);
    near(fct(0.1, 3), 3.0 * 0.1 + 1.0);
}

#[test]
fn mahimahi_opportunities_deliver_packets_and_repeat() {
    // Two packets of 1500 B by 3 ms, one by 10 ms.
    let fct = |packets: u64| {
        let change = json!({ "packet": { "payload": "1460 B" } });
        fct_ms(&run(&with(&scenario("3\n3\n10\n", (0.0, 0, 1, 1460 * packets)), change)))
    };
    let by_hand = [2.5, 3.0, 10.0, 12.5, 13.0, 20.0].map(|leaves| leaves + 1.0);
    for (packets, by_hand) in (1..).zip(by_hand) {
        assert!((fct(packets) - by_hand).abs() < 1e-9, "{packets}: {}", fct(packets));
    }
}

#[test]
fn utilisation_and_load_use_the_capacity_of_the_trace() {
    let results = run(&scenario(PAUSE, (0.0, 0, 1, 960 * 20)));
    // 160 kb out of 80 kb before the outage and 240 kb after it: the last ACK arrives 1 ms after
    // the last packet.
    assert_near(link(&results, "left->right", "utilisation"), 0.5, 1e-4, "utilisation");
    let reference = &results.summary["load_reference"];
    // 80 kb in the 15 ms until the last row.
    assert_eq!(reference["rate_bps"], json!(5_333_333));
    assert_eq!(reference["what"], json!("left->right, on average over its trace"));
    let ideal = with(&scenario(PAUSE, (0.0, 0, 1, 1)), json!({ "model": "max_min" }));
    let problem = try_run(&ideal).unwrap_err();
    assert!(problem.starts_with("topology.rate_trace: must be left out"), "{problem}");
}

#[test]
fn all_engines_agree_on_a_trace() {
    let flows: Vec<_> = (0..12).map(|i| (f64::from(i) * 2e-3, i % 3, 3 + i % 2, 60_000)).collect();
    let scenario = json!({
        "topology": {
            "kind": "dumbbell", "senders": 3, "receivers": 2, "rate": "1 Gbps", "delay": "50 us",
            "bursts": { "enter": 0.01, "leave": 0.5 },
            "rate_trace": { "name": "rates", "text": "1\n1\n1\n1\n1\n1\n1\n4\n4\n4\n4\n4\n9\n" },
        },
        "transport": "dctcp",
        "workload": crate::common::flows(&flows),
        "account": true,
    });
    assert_eq!(run_with_all_engines(&scenario)["counts"]["finished"], json!(12));
}

#[test]
fn any_link_of_a_graph_follows_a_trace_in_one_direction() {
    // Both links take 0.1 ms for a packet and have no delay, except the second in the direction of its trace.
    let fct = |source, traced: &str| {
        let rates = json!({ "name": "rates", "text": PAUSE });
        let change = json!({
            "topology": null,
            "rate_traces": [{ "link": traced, "file": rates }],
            "environment": "paper",
        });
        let mut scenario =
            with(&at_once(&json!({}), &[(0.0, source, 1 - source, 960 * 20)]), change);
        scenario["topology"] = graph("a,s,80 Mbps,0 us,,\ns,b,80 Mbps,0 us,,\n");
        fct_ms(&run(&scenario))
    };
    let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-6, "{one} {other}");
    // From `a`: the first packet arrives at the switch at 0.1 ms, so 9.9 pass before the outage.
    near(fct(0, "s->b"), 15.0 + 10.1 * 0.1);
    // From `b`, ten before it and ten after it; the last then takes 0.1 ms to `a`.
    near(fct(1, "b->s"), 15.0 + 10.0 * 0.1 + 0.1);
    // The other direction is as without a trace: 21 times 0.1 ms.
    near(fct(1, "s->b"), 2.1);
}

#[test]
fn all_engines_agree_on_traces_of_hosts_and_switches() {
    let rates = json!({ "name": "rates", "text": "1\n1\n1\n1\n1\n1\n1\n4\n4\n4\n4\n4\n9\n" });
    let traces = ["host0->leaf0", "leaf0->spine1", "spine1->leaf0", "leaf1->host2"];
    let flows: Vec<_> =
        (0..12).map(|i| (f64::from(i) * 2e-3, i % 3, 3 - i % 2 * 3 % 3, 60_000)).collect();
    let flows: Vec<_> = flows.into_iter().filter(|(_, from, to, _)| from != to).collect();
    let scenario = json!({
        "topology": {
            "kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2,
            "host_rate": "1 Gbps", "fabric_rate": "1 Gbps", "host_delay": "50 us",
        },
        "rate_traces": traces.map(|link| json!({ "link": link, "file": rates })),
        "transport": "dctcp",
        "workload": crate::common::flows(&flows),
        "account": true,
    });
    assert_eq!(run_with_all_engines(&scenario)["counts"]["finished"], json!(flows.len()));
}

#[test]
fn queues_of_the_internet_fit_the_traced_rate() {
    // One bandwidth-delay product: 2 Gb/s * 2 * 20 ms / 8 = 10 MB, and a packet with its ACK.
    let rates = json!({ "name": "rates", "text": "time_s,rate_bps\n0,1e9\n1,2e9\n" });
    let scenario = json!({
        "environment": "internet",
        "topology": { "kind": "link", "delay": "20 ms", "rate": "10 Gbps" },
        "transport": "cubic",
        "workload": crate::common::flows(&[(0.0, 0, 1, 1000)]),
    });
    let traces = |links: [&str; 2]| links.map(|link| json!({ "link": link, "file": rates }));
    let traced = with(&scenario, json!({ "rate_traces": traces(["left->right", "right->left"]) }));
    assert_eq!(run(&traced).summary["queues"][0]["ports"][0]["capacity"], json!("10.001552 MB"));
}

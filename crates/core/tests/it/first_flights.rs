//! Transports that send much in their first RTT, in whole runs: Quick-Start and `JumpStart`
//! compared with TCP.

use crate::common::{assert_near, count, flows, link, mean, run, samples, try_run, with};
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// Transmission time of a packet of 1250 B at 40 Mb/s, and RTT of a packet and its ACK.
const PACKET_TIME: f64 = 250e-6;
const ROUND_TRIP: f64 = 0.025;

/// A link of 40 Mb/s with an RTT of 25 ms and a buffer of one BDP.
fn network(transport: &Value) -> Value {
    json!({
        "topology": {
            "kind": "dumbbell", "senders": 10, "receivers": 10, "rate": "1 Gbps", "delay": "5 ms",
            "bottleneck_rate": "40 Mbps", "bottleneck_delay": "2.5 ms",
        },
        "packet": { "payload": "1210 B", "header": "40 B", "ack": "40 B" },
        "queue": { "kind": "drop_tail", "capacity": "100 packets" },
        "transport": transport,
        "time_limit": "1000 s",
    })
}

/// One flow of `packets` packets that starts after one second, when routers have measured an idle
/// link.
fn single_flow(transport: &Value, packets: u64, change: Value) -> Results {
    let workload = flows(&[(1.0, 0, 10, packets * 1210)]);
    run(&with(&with(&network(transport), json!({ "workload": workload })), change))
}

#[test]
fn jump_start_sends_a_short_flow_in_two_and_a_half_rtts() {
    for packets in [20, 60, 95] {
        let results = single_flow(&json!("jump_start"), packets, json!({}));
        // A handshake, all packets but the last spread over one RTT, and the one-way delay of the
        // last packet.
        let by_hand = ROUND_TRIP * (1.0 + (packets - 1) as f64 / packets as f64 + 0.5);
        assert!((results.flows.fct_s[0] - by_hand).abs() < 3.0 * PACKET_TIME, "{packets}");
        assert!(link(&results, "left->right", "queue_max_bytes") < 3.0 * 1250.0, "{packets}");
    }
}

#[test]
fn jump_start_overflows_if_flow_exceeds_path_and_buffer() {
    let results = single_flow(&json!("jump_start"), 400, json!({}));
    // 400 packets in one RTT, of which 100 depart and 100 wait.
    let drops = count(&results, "drops");
    assert!((180..=210).contains(&drops), "{drops}");
    assert_eq!(count(&results, "retransmits"), drops);
    let bounded = json!({ "kind": "jump_start", "reliability": { "receive_window": 150 } });
    assert_eq!(count(&single_flow(&bounded, 400, json!({})), "drops"), 0);
}

#[test]
fn jump_start_sends_at_most_the_window_of_the_syn_ack_at_first() {
    let limited = json!({ "kind": "jump_start", "syn_window": "65535 B" });
    let sampled = json!({ "samples": { "interval": "1 ms", "flows": [0] } });
    let results = single_flow(&limited, 400, sampled);
    // 54 packets of 1210 B, and no drops.
    let window = samples(&results, "window_bytes flow 0", 1.03)[0] / 1210.0;
    assert_near(window, 54.0, 1e-9, "packets");
    assert_eq!(count(&results, "drops"), 0);
}

#[test]
fn jump_start_continues_with_half_of_the_delivered_window() {
    let sampled = json!({ "samples": { "interval": "1 ms", "flows": [0] }, "time_limit": "3 s" });
    let bounded = json!({ "kind": "jump_start", "reliability": { "receive_window": 400 } });
    let results = single_flow(&bounded, 4000, sampled);
    let windows = samples(&results, "window_bytes flow 0", 1.0);
    let windows: Vec<f64> = windows.iter().map(|bytes| bytes / 1210.0).collect();
    assert_near(windows[40], 400.0, 1e-9, "at first");
    // About 200 of the first 400 packets are lost.
    let low = windows[60..1000].iter().copied().fold(f64::INFINITY, f64::min);
    assert!((80.0..110.0).contains(&low), "{low}");
}

#[test]
fn quick_start_starts_at_the_approved_rate() {
    let transport = json!({ "kind": "quick_start", "request": "1 Gbps" });
    let sampled = json!({ "samples": { "interval": "1 ms", "flows": [0] } });
    let results = single_flow(&transport, 400, sampled.clone());
    // 20.48 Mb/s is the largest power of two times 40 kb/s below 90 % of the bottleneck rate.
    let window = samples(&results, "window_bytes flow 0", 1.03)[0] / 1210.0;
    assert_near(window, 20.48e6 * ROUND_TRIP / 10_000.0, 0.02, "packets");
    assert_eq!(count(&results, "drops"), 0);
    let times = [&transport, &json!("tcp")]
        .map(|transport| single_flow(transport, 100, json!({})).flows.fct_s[0] / ROUND_TRIP);
    let saved = times[1] - times[0];
    assert!((1.0..4.0).contains(&saved), "{saved} RTTs");
    // The requested rate is below the available rate.
    let modest = json!({ "kind": "quick_start", "request": "10 Mbps" });
    let window =
        samples(&single_flow(&modest, 400, sampled), "window_bytes flow 0", 1.03)[0] / 1210.0;
    assert_near(window, 5.12e6 * ROUND_TRIP / 10_000.0, 0.02, "packets");
}

#[test]
fn quick_start_without_approval_is_tcp() {
    let workload = json!({
        "kind": "poisson", "load": 0.5, "flows": 200, "pairs": "opposite",
        "sizes": { "kind": "fixed", "size": "96800 B" },
    });
    let of = |transport: &str, change: Value| {
        let scenario = with(&network(&json!(transport)), json!({ "workload": workload }));
        run(&with(&scenario, change)).flows.fct_s
    };
    let strict = json!({ "router": { "kind": "quick_start", "threshold": 1e-6 } });
    assert_eq!(of("quick_start", strict), of("tcp", json!({})));
}

#[test]
fn quick_start_on_a_busy_link_starts_like_tcp() {
    let flow = |i: u32, start: &str| json!({ "source": i, "target": 10 + i, "start": start });
    let mut flows: Vec<Value> = (0..4).map(|i| flow(i, "0 s")).collect();
    flows.push(flow(9, "5 s"));
    let results = run(&with(
        &network(&json!("quick_start")),
        json!({
            "workload": { "kind": "flows", "flows": flows },
            "time_limit": "5.1 s",
            "samples": { "interval": "1 ms", "flows": [4] },
        }),
    ));
    let window = samples(&results, "window_bytes flow 4", 5.05)[0] / 1210.0;
    assert!((10.0..=11.0).contains(&window), "{window}");
}

#[test]
fn both_beat_tcp_at_low_load_but_jump_start_not_at_high_load() {
    let mean_of = |transport: &str, load: f64| {
        let workload = json!({
            "kind": "poisson", "load": load, "flows": 1000, "pairs": "opposite",
            "sizes": { "kind": "fixed", "size": "96800 B" },
        });
        let results = run(&with(&network(&json!(transport)), json!({ "workload": workload })));
        mean(results.flows.fct_s.iter().copied())
    };
    let [tcp, quick, jump] =
        ["tcp", "quick_start", "jump_start"].map(|transport| mean_of(transport, 0.15));
    assert!(jump < 0.75 * tcp, "{jump} {tcp}");
    assert!(quick < 0.95 * tcp && jump < quick, "{jump} {quick} {tcp}");
    for transport in ["tcp", "quick_start", "jump_start"] {
        mean_of(transport, 0.6);
    }
}

#[test]
fn invalid_parameters_are_rejected() {
    let error = |change: Value| {
        let workload = flows(&[(0.0, 0, 10, 1000)]);
        let base = with(&network(&json!("tcp")), json!({ "workload": workload }));
        try_run(&with(&base, change)).unwrap_err()
    };
    let transport =
        |kind: &str, change: Value| json!({ "transport": with(&json!({ "kind": kind }), change) });
    let no_handshake = json!({ "reliability": { "handshake": false } });
    insta::assert_snapshot!(
        [
            error(transport("quick_start", json!({ "request": "79 Kbps" }))),
            error(transport("quick_start", no_handshake.clone())),
            error(transport("jump_start", no_handshake)),
            error(json!({
                "transport": "quick_start",
                "router": { "kind": "quick_start", "threshold": 1.5 },
            })),
            error(json!({
                "transport": "quick_start", "router": { "kind": "quick_start", "interval": "0 s" },
            })),
            error(json!({ "transport": "jump_start", "router": "quick_start" })),
        ]
        .join("\n")
    );
}

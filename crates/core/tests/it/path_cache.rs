//! Path values that finished flows cache for later ones between the same hosts (RFC 9040; Linux,
//! `tcp_metrics.c`).

use crate::common::{assert_near, run, run_with_all_engines, with};
use serde_json::{Value, json};

/// Flows of TCP over a link of 10 Gb/s with an RTT of 100 ms, each with its start in ms, source, target and
/// packets.
fn tcp_flows(rows: &[(u64, u32, u32, u64)], losses: &str, reliability: &Value) -> Value {
    let flow = |&(start, source, target, packets): &(u64, u32, u32, u64)| {
        json!({
            "source": source, "target": target, "size": format!("{} B", 960 * packets),
            "start": format!("{start} ms"),
        })
    };
    let losses = format!("flow,segment,time\n{losses}");
    json!({
        "topology": {
            "kind": "link", "rate": "10 Gbps", "delay": "50 ms",
            "losses": { "name": "losses.csv", "text": losses },
        },
        "packet": { "payload": "960 B" },
        "transport": { "kind": "tcp", "reliability": reliability },
        "workload": { "kind": "flows", "flows": rows.iter().map(flow).collect::<Vec<_>>() },
        "time_limit": "100 s",
    })
}

#[test]
fn the_rto_of_a_syn_or_of_the_first_data_follows_from_the_cached_rtt() {
    // A packet takes 0.05 s to the receiver, and the handshake an RTT of 0.1 s. After 20 ACKs and the SYN-ACK
    // of the first flow, SRTT is 0.1 s and RTTVAR nearly zero.
    let fct = |lost: &str, handshake: bool, cached_rtt: &str| {
        let reliability = json!({
            "handshake": handshake, "initial_rto": "1 s", "min_rto": "200 ms", "cached_rtt": cached_rtt,
        });
        let rows = [(0, 0, 1, 20), (5_000, 0, 1, 1)];
        run(&tcp_flows(&rows, lost, &reliability)).flows.fct_s[1]
    };
    for (lost, handshake, cached_rtt, by_hand) in [
        ("1,0,1\n", true, "none", 1.0 + 0.1 + 0.05),
        ("1,0,1\n", true, "linux", 1.0 + 0.1 + 0.05),
        ("1,0,1\n", true, "rfc9040", 0.2 + 0.1 + 0.05),
        // The SYN-ACK's sample alone gives 0.1 s + 4 * 0.05 s; as does a cached RTT that is not larger.
        ("1,1,1\n", true, "none", 0.1 + 0.3 + 0.05),
        ("1,1,1\n", true, "rfc9040", 0.1 + 0.2 + 0.05),
        ("1,1,1\n", false, "none", 1.0 + 0.05),
        ("1,1,1\n", false, "linux", 0.3 + 0.05),
        ("1,1,1\n", false, "rfc9040", 0.2 + 0.05),
    ] {
        let what = format!("{lost:?} {handshake} {cached_rtt}");
        assert_near(fct(lost, handshake, cached_rtt), by_hand, 0.001, &what);
    }
}

#[test]
fn the_cache_is_of_one_direction_between_two_hosts() {
    let reliability = json!({ "handshake": true, "initial_rto": "1 s", "cached_rtt": "rfc9040" });
    let rows = [(0, 1, 0, 20), (5_000, 0, 1, 1)];
    let results = run(&tcp_flows(&rows, "1,0,1\n", &reliability));
    assert_near(results.flows.fct_s[1], 1.0 + 0.1 + 0.05, 0.001, "other direction");
}

#[test]
fn a_flow_leaves_slow_start_at_the_cached_ssthresh() {
    // The first flow sends 10 packets and then 20, of which segment 25 is lost. The ACKs of the 14 before it
    // increase the window to 34, of which TCP takes half. DCTCP counts data out of order: two SACKs increase
    // it to 36 before the third one reveals the loss.
    let rounds = |transport: &str, cached: bool, packets: u64| {
        let reliability = json!({
            "handshake": false, "initial_rto": "1 s", "min_rto": "200 ms", "cached_ssthresh": cached,
        });
        let rows = [(0, 0, 1, 100), (5_000, 0, 1, packets)];
        let change = json!({
            "transport": { "kind": transport }, "queue": "drop_tail", "host_queue": "drop_tail",
        });
        let scenario = with(&tcp_flows(&rows, "0,25,1\n", &reliability), change);
        (run(&scenario).flows.fct_s[1] / 0.1 + 0.5).round() as u32
    };
    // The last of n rounds arrives after n - 1/2 RTTs. After 10 packets slow start sends 20, and with the
    // cached value ssthresh.
    for (transport, ssthresh) in [("tcp", 17), ("dctcp", 18)] {
        for (cached, second) in [(false, 20), (true, ssthresh)] {
            let of = [0, 1].map(|more| rounds(transport, cached, 10 + second + more));
            assert_eq!(of, [2, 3], "{transport} {cached}");
        }
    }
}

#[test]
fn all_engines_agree_on_cached_values() {
    let run_of = |cached_rtt: &str, cached: bool| {
        run_with_all_engines(&json!({
            "topology": { "kind": "fat_tree", "k": 4, "rate": "1 Gbps", "delay": "100 us" },
            "transport": {
                "kind": "tcp",
                "reliability": {
                    "handshake": true, "min_rto": "1 ms", "initial_rto": "20 ms",
                    "cached_rtt": cached_rtt, "cached_ssthresh": cached,
                },
            },
            "queue": { "kind": "drop_tail", "capacity": "20 KB" },
            "workload": {
                "kind": "poisson", "load": 0.6, "flows": 600, "pairs": "opposite",
                "sizes": { "kind": "fixed", "size": "50 KB" },
            },
            "time_limit": "10 s",
        }))["links"]
            .clone()
    };
    let without = run_of("none", false);
    for cached_rtt in ["linux", "rfc9040"] {
        assert_ne!(run_of(cached_rtt, true), without, "{cached_rtt}");
    }
}

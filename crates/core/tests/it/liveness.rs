//! No flow with data to send is silent for longer than its timeout, and no flow stays in loss
//! recovery while packets arrive.

use crate::common::{flows, run, samples, with};
use serde_json::{Value, json};
use sojourn_core::transport::controllers::Config;

/// Longest run of equal values before the last change, in samples.
fn longest_pause(values: &[f64]) -> usize {
    let runs: Vec<_> = values.chunk_by(|one, next| one.to_bits() == next.to_bits()).collect();
    runs[..runs.len() - 1].iter().map(|run| run.len()).max().unwrap_or(0)
}

#[test]
fn no_sender_is_silent_for_longer_than_its_timeout() {
    let mut silent = Vec::new();
    for kind in Config::built_in() {
        for recovery in ["selective_repeat", "rack", "new_reno", "reno"] {
            let reliability = json!({
                "recovery": recovery, "handshake": true,
                "initial_rto": "50 ms", "min_rto": "10 ms", "max_rto": "50 ms",
            });
            let transport = match kind {
                "d2tcp" | "pias" => {
                    json!({ "kind": kind, "dctcp": { "reliability": reliability } })
                }
                // Below one packet the window is a pacing rate, whose minimum would be one packet
                // in seconds.
                "swift" => json!({ "kind": kind, "reliability": reliability, "min_cwnd": 0.2 }),
                // Its receiver detects losses, after a timeout of its own.
                "expresspass" => {
                    json!({ "kind": kind, "reliability": reliability, "resend_timeout": "20 ms" })
                }
                _ => json!({ "kind": kind, "reliability": reliability }),
            };
            let results = run(&json!({
                "topology": {
                    "kind": "dumbbell", "senders": 1, "receivers": 1, "rate": "100 Mbps",
                    "delay": "1 ms", "bursts": { "enter": 0.01, "leave": 0.4 }, "ack_loss": 0.02,
                },
                "transport": transport,
                "workload": flows(&[(0.0, 0, 1, 300_000)]),
                "time_limit": "20 s",
                "samples": { "interval": "1 ms", "links": ["left->right"] },
            }));
            let sent = samples(&results, "transmitted_bytes left->right", 0.0);
            // A timeout and an RTT.
            let most = 50 + 8;
            let pause = longest_pause(&sent);
            if pause > most {
                silent.push(format!("{kind}, {recovery}: {pause} ms"));
            }
            assert_eq!(results.flows.delivered_bytes, [300_000], "{kind}, {recovery}");
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
}

#[test]
fn a_long_lived_flow_that_stops_ends_without_a_timeout() {
    // Also with an ACK for sixteen packets, whose last group is not full then.
    for kind in Config::built_in() {
        let results = run(&json!({
            "topology": { "kind": "dumbbell", "senders": 1, "receivers": 1 },
            "transport": kind,
            "switch": { "shared_buffer": "10 MB", "pause": {} },
            "workload": {
                "kind": "flows", "flows": [
                    { "source": 0, "target": 1, "stop": "203 us" },
                    { "source": 0, "target": 1, "size": "10 KB", "deadline": "1 s" },
                ],
            },
            "time_limit": "5 s",
        }));
        let flows = &results.flows;
        assert_eq!((flows.timeouts[0], flows.retransmits[0]), (0, 0), "{kind}");
    }
}

/// Two long-lived flows, the second five seconds after the first, over 20 Mb/s and 40 ms, with a
/// buffer of one BDP.
fn two_flows(transport: &Value) -> Value {
    json!({
        "topology": {
            "kind": "dumbbell", "senders": 1, "receivers": 1, "rate": "10 Gbps", "delay": "0 s",
            "bottleneck_rate": "20 Mbps", "bottleneck_delay": "20 ms",
        },
        "packet": { "payload": "1448 B", "header": "52 B", "ack": "52 B" },
        "queue": { "kind": "drop_tail", "capacity": "67 packets" },
        "host_queue": { "kind": "drop_tail", "capacity": "none" },
        "transport": transport,
        "workload": flows(&[(0.0, 0, 1, 200_000_000), (5.0, 0, 1, 200_000_000)]),
        "time_limit": "30 s",
        "samples": { "interval": "100 ms", "flows": [0, 1] },
    })
}

#[test]
fn loss_recovery_does_not_starve_other_flows() {
    // A case with many retransmissions, one of which is lost. In an earlier version the
    // retransmissions restarted the timeout, so the flow kept its window for 22 seconds and the
    // other flow got nothing.
    let linux = json!({ "timer_granularity": "200 ms", "delayed_ack": "40 ms" });
    for kind in ["tcp", "cubic"] {
        for recovery in ["selective_repeat", "rack", "new_reno"] {
            let transport = json!({
                "kind": kind, "window": { "count_limit": 1_000_000 },
                "reliability": with(&linux, json!({ "recovery": recovery })),
            });
            let results = run(&two_flows(&transport));
            let windows = samples(&results, "window_bytes flow 0", 0.0);
            let pause = longest_pause(&windows);
            assert!(pause <= 10, "{kind}, {recovery}: one window for {pause}00 ms");
            let came = samples(&results, "delivered_bytes flow 1", 10.0);
            let share = (came.last().unwrap() - came[0]) * 8.0 / 20.0 / 20e6;
            assert!(share > 0.15, "{kind}, {recovery}: the second flow has {share:.3} of the link");
        }
    }
}

#[test]
fn bbr_leaves_drain_despite_lost_retransmissions() {
    let single_flow = json!({ "workload": flows(&[(0.0, 0, 1, 10_000_000)]) });
    for recovery in ["selective_repeat", "rack"] {
        let bbr = json!({
            "kind": "bbr",
            "reliability": {
                "recovery": recovery, "timer_granularity": "200 ms", "delayed_ack": "40 ms",
            },
        });
        let results = run(&with(&two_flows(&bbr), single_flow.clone()));
        // The transmission on the link takes 4.14 s.
        let fct = results.flows.fct_s[0];
        assert!(fct < 4.8, "{recovery}: {fct} s");
    }
}

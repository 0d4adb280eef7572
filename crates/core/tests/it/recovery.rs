//! Loss recovery: the recovery time of each kind of loss.

use crate::common::{count, flows, link, run, run_with_all_engines, try_run, with};
use serde_json::{Value, json};

/// Two hosts over one link between switches, on which tests configure losses.
fn path() -> Value {
    json!({
        "topology": { "kind": "dumbbell", "senders": 2, "receivers": 2 },
        "transport": { "kind": "dctcp", "reliability": { "min_rto": "10 ms" } },
    })
}

/// FCT of flow 0 in seconds.
fn fct(results: &sojourn_core::run::Results) -> f64 {
    results.flows.fct_s[0]
}

#[test]
fn loss_of_the_last_packet_costs_one_timeout() {
    // A burst of ten packets finds a port that holds nine, behind a packet of another flow in
    // transmission.
    let scenario = with(
        &path(),
        json!({
            "transport": { "initial_window": 12 },
            "queue": { "kind": "drop_tail", "capacity": "10 packets" },
            "workload": flows(&[(0.0, 0, 2, 12_000), (0.0, 1, 3, 11_000)]),
        }),
    );
    let results = run(&scenario);
    assert!(count(&results, "drops") > 0);
    assert_eq!(count(&results, "unfinished"), 0);
    let timeouts: u32 = results.flows.timeouts.iter().sum();
    assert!(timeouts >= 1, "no packet follows the last one, so only a timeout detects the loss");
    assert!(results.flows.fct_s.iter().any(|fct| *fct > 0.010), "and it takes 10 ms");
}

#[test]
fn loss_in_the_middle_costs_one_rtt_and_no_timeout() {
    let single_flow = with(
        &path(),
        json!({
            "transport": { "initial_window": 90 },
            "workload": flows(&[(0.0, 0, 2, 200_000)]),
        }),
    );
    let overflow = with(
        &single_flow,
        json!({
            "transport": { "initial_ssthresh": 90 },
            "topology": { "bottleneck_rate": "5 Gbps" },
            "queue": { "kind": "drop_tail", "capacity": "40 packets" },
        }),
    );
    let results = run(&overflow);
    assert!(count(&results, "drops") > 0);
    assert_eq!(count(&results, "timeouts"), 0, "later packets reveal the loss");
    assert!(fct(&results) < 0.002);
}

#[test]
fn fast_retransmit_can_be_disabled() {
    let scenario = with(
        &path(),
        json!({
            "transport": { "initial_window": 64, "reliability": { "duplicate_acks": "none" } },
            "topology": { "bottleneck_rate": "5 Gbps" },
            "queue": { "kind": "drop_tail", "capacity": "20 packets" },
            "workload": flows(&[(0.0, 0, 2, 60_000)]),
        }),
    );
    let results = run(&scenario);
    assert!(count(&results, "drops") > 0);
    assert!(count(&results, "timeouts") > 0);
    assert!(fct(&results) > 0.010);
}

#[test]
fn random_losses_are_recovered_exactly() {
    let transports = [
        "copa",
        "dctcp",
        "dcqcn",
        "fast",
        "swift",
        "timely",
        "patched_timely",
        "constant_rate",
        "vegas",
    ];
    for transport in transports {
        let scenario = with(
            &path(),
            json!({
                "topology": { "loss": 0.05 },
                "transport": { "kind": transport },
                "time_limit": "60 s",
                "workload": flows(&[(0.0, 0, 2, 500_000), (0.0, 1, 3, 1), (0.001, 0, 3, 77_777)]),
            }),
        );
        let results = run(&scenario);
        assert!(link(&results, "left->right", "losses") > 0.0, "{transport}");
        assert_eq!(count(&results, "finished"), 3, "{transport}: {}", results.summary["stuck"]);
        assert_eq!(results.flows.delivered_bytes, [500_000, 1, 77_777], "{transport}");
    }
}

#[test]
fn periodic_loss_drops_every_nth_packet() {
    let scenario = |loss| {
        json!({
            "topology": with(&json!({ "kind": "link", "loss_every": 10 }), loss),
            "transport": { "kind": "constant_rate" },
            "workload": flows(&[(0.0, 0, 1, 995_000)]),
        })
    };
    let results = run(&scenario(json!({})));
    // Of n packets n / 10 are lost and retransmitted: n = 995 + n / 10.
    let sum = |name| link(&results, "left->right", name) as u64;
    assert_eq!((sum("packets"), sum("losses")), (1105, 110));
    assert_eq!((count(&results, "retransmits"), count(&results, "finished")), (110, 1));
    let problem = try_run(&scenario(json!({ "loss": 0.1 }))).unwrap_err();
    assert!(problem.starts_with("topology.loss_every: must be omitted"), "{problem}");
}

#[test]
fn listed_losses_drop_exactly_these_packets() {
    let scenario = |rows: &str| {
        let text = format!("flow,segment,time\n{rows}");
        json!({
            "topology": { "kind": "link", "losses": { "name": "losses.csv", "text": text } },
            "transport": { "kind": "tcp", "reliability": { "recovery": "reno" } },
            "workload": flows(&[(0.0, 0, 1, 100_000), (0.0, 0, 1, 100_000)]),
        })
    };
    let lost = |rows| {
        let results = run(&scenario(rows));
        assert_eq!(count(&results, "finished"), 2);
        (count(&results, "losses"), results.flows.retransmits, results.summary["warnings"].clone())
    };
    assert_eq!(lost("0,50,1\n"), (1, vec![1, 0], json!([])));
    // The retransmission is lost too: a timeout recovers it and causes no other retransmission.
    assert_eq!(lost("0,50,1\n0,50,2\n"), (2, vec![2, 0], json!([])));
    assert_eq!(
        lost("1,100,1\n1,0,1\n"),
        (2, vec![0, 1], json!([])),
        "a SYN is not sent again as data"
    );
    let never = "2 of the 3 packets that left->right was to lose never arrived at its end";
    assert_eq!(lost("0,50,1\n0,50,3\n5,1,1\n"), (1, vec![1, 0], json!([never])));
}

#[test]
fn lost_acks_do_not_delay_selective_repeat() {
    let scenario = with(
        &path(),
        json!({
            "topology": { "ack_loss": 0.3 },
            "transport": { "initial_window": 200 },
            "workload": flows(&[(0.0, 0, 2, 150_000)]),
        }),
    );
    let results = run(&scenario);
    assert!(link(&results, "right->left", "losses") > 10.0);
    assert_eq!(results.flows.fct_s, results.flows.ideal_fct_s, "the receiver missed nothing");
}

#[test]
fn a_timeout_during_recovery_reduces_ssthresh_once_as_in_linux() {
    // Segment 500 and its retransmission are lost from a window of about fifty packets, which the loss
    // halves. After the timeout slow start ends there, or at half of it.
    let scenario = |single_reduction: bool| {
        let text = "flow,segment,time\n0,500,1\n0,500,2\n";
        json!({
            "topology": {
                "kind": "link", "rate": "100 Mbps", "delay": "50 ms",
                "losses": { "name": "losses.csv", "text": text },
            },
            "queue": { "kind": "drop_tail", "capacity": "none" },
            "transport": {
                "kind": "tcp", "window": { "initial": 40, "initial_ssthresh": 2 },
                "reliability": { "single_reduction": single_reduction, "min_rto": "1 s" },
            },
            "workload": flows(&[(0.0, 0, 1, 2_000_000)]),
            "time_limit": "30 s",
        })
    };
    let tcp = |single_reduction| {
        let results = run(&scenario(single_reduction));
        assert_eq!(results.flows.timeouts[0], 1);
        fct(&results)
    };
    // 51 packets at the loss, 25.5 after it, 12.75 after a second reduction. From w packets on, 1500 segments
    // take n RTTs with w n + n² / 2 = 1500: 34.9, and 43.5 RTTs of 100 ms.
    assert!(tcp(true) < tcp(false) - 0.5, "{} and {}", tcp(true), tcp(false));
}

#[test]
fn repeated_sack_blocks_make_up_for_lost_acks() {
    // RFC 2018 §4: each block is in three ACKs, so that a lost ACK causes no retransmission.
    let scenario = |sack_blocks: u32, recovery: &str| {
        json!({
            "topology": {
                "kind": "link", "rate": "50 Mbps", "delay": "20 ms", "loss": 0.02, "ack_loss": 0.2,
            },
            "transport": {
                "kind": "constant_rate", "rate": "40 Mbps", "reliability": {
                    "recovery": recovery, "sack_blocks": sack_blocks, "min_rto": "1 s",
                    "initial_rto": "1 s", "max_rto": "10 s",
                },
            },
            "workload": flows(&[(0.0, 0, 1, 5_000_000)]),
            "time_limit": "100 s",
        })
    };
    for recovery in ["selective_repeat", "rack"] {
        let needless = |sack_blocks| {
            let results = run(&scenario(sack_blocks, recovery));
            // On the forward path, where data is lost.
            let lost = link(&results, "left->right", "losses") as u64;
            count(&results, "retransmits") - lost
        };
        assert!(needless(1) > 20, "{recovery}");
        assert!(needless(3) <= 2, "{recovery}: {}", needless(3));
    }
}

#[test]
fn ack_options_reach_senders_in_other_partitions() {
    let scenario = json!({
        "topology": {
            "kind": "dumbbell", "senders": 2, "receivers": 2, "loss": 0.05, "ack_loss": 0.2,
        },
        "transport": {
            "kind": "dctcp", "reliability": { "recovery": "rack", "sack_blocks": 3, "duplicate_sack": true },
        },
        "account": true,
        "workload": flows(&[(0.0, 0, 2, 300_000), (0.0, 1, 3, 300_000), (0.0, 2, 0, 200_000)]),
        "time_limit": "10 s",
    });
    assert_eq!(run_with_all_engines(&scenario)["counts"]["finished"], 3);
}

#[test]
fn lost_retransmission_is_recovered_by_the_timeout() {
    // Half of all packets are lost, including retransmissions.
    let scenario = with(
        &path(),
        json!({
            "topology": { "loss": 0.5, "ack_loss": 0.5 },
            "transport": { "reliability": { "max_rto": "20 ms" } },
            "time_limit": "100 s",
            "workload": flows(&[(0.0, 0, 2, 100_000)]),
        }),
    );
    let results = run(&scenario);
    assert_eq!(count(&results, "finished"), 1);
    assert!(count(&results, "timeouts") > 3);
}

#[test]
fn go_back_n_retransmits_everything_after_the_loss() {
    let scenario = |kind| {
        with(
            &path(),
            json!({
                "topology": { "bottleneck_rate": "5 Gbps" },
                "queue": { "kind": "drop_tail", "capacity": "20 packets" },
                "transport": { "kind": "constant_rate", "reliability": { "recovery": kind } },
                "workload": flows(&[(0.0, 0, 2, 100_000)]),
            }),
        )
    };
    let (all, missing) = (run(&scenario("go_back_n")), run(&scenario("selective_repeat")));
    assert_eq!(count(&all, "finished") + count(&missing, "finished"), 2);
    let sent_again = |results| count(results, "retransmits");
    assert!(
        sent_again(&all) > 2 * sent_again(&missing),
        "{} {}",
        sent_again(&all),
        sent_again(&missing)
    );
}

#[test]
fn handshake_costs_one_rtt_and_survives_losses() {
    let single_flow = |handshake: bool| {
        with(
            &path(),
            json!({
                "transport": { "initial_window": 50, "reliability": { "handshake": handshake } },
                "workload": flows(&[(0.0, 0, 2, 40_000)]),
            }),
        )
    };
    let (with_syn, without) = (run(&single_flow(true)), run(&single_flow(false)));
    // Three hops in each direction: 40 bytes at 10 Gb/s take 32 ns, and the links 1 us.
    let round_trip = 2.0 * 3.0 * (32e-9 + 1e-6);
    assert!((fct(&with_syn) - fct(&without) - round_trip).abs() < 1e-13);
    let lossy = with(
        &single_flow(true),
        json!({ "topology": { "loss": 0.6 }, "seed": 3, "time_limit": "60 s" }),
    );
    assert_eq!(count(&run(&lossy), "finished"), 1);
}

#[test]
fn lost_syn_costs_the_initial_rto_and_the_initial_window() {
    // Every tenth packet is lost: the first flow's SYN and eight segments pass, the second's SYN is
    // lost.
    let results = run(&json!({
        "topology": { "kind": "link", "rate": "10 Gbps", "delay": "1 ms", "loss_every": 10 },
        "transport": "tcp",
        "workload": flows(&[(0.0, 0, 1, 8_000), (0.1, 0, 1, 3_000)]),
    }));
    assert_eq!((count(&results, "losses"), count(&results, "timeouts")), (1, 1));
    // 40 B take 32 ns, 1040 B 832 ns. One second, the RTT of the SYN, the RTT of a packet, and two
    // more.
    let (syn, packet, delay) = (32e-9, 832e-9, 1e-3);
    let round_trip = 2.0 * delay + packet + syn;
    let by_hand = 1.0 + 2.0 * (delay + syn) + round_trip + 2.0 * packet + delay;
    assert!((results.flows.fct_s[1] - by_hand).abs() < 1e-12, "{}", results.flows.fct_s[1]);
}

#[test]
fn tcp_variants_recover_from_two_losses_as_predicted() {
    // Segments 9 and 19 of 30 are lost, in a single window. SACK retransmits both in the next RTT,
    // NewReno in the next two; Reno waits for the timeout of 200 ms.
    let fct = |recovery| {
        let results = run(&json!({
            "topology": { "kind": "link", "rate": "10 Gbps", "delay": "1 ms", "loss_every": 11 },
            "transport": {
                "kind": "tcp", "window": { "initial": 30 }, "reliability": { "recovery": recovery },
            },
            "workload": flows(&[(0.0, 0, 1, 29_000)]),
        }));
        let counts = ["losses", "retransmits", "timeouts"].map(|name| count(&results, name));
        (fct(&results) / 2e-3, counts)
    };
    let (sack, counts) = fct("selective_repeat");
    assert_eq!(counts, [2, 2, 0]);
    assert!((sack - 2.5).abs() < 0.05, "{sack} RTTs");
    let (new_reno, counts) = fct("new_reno");
    assert_eq!(counts, [2, 2, 0]);
    assert!((new_reno - 3.5).abs() < 0.05, "{new_reno} RTTs");
    let (reno, counts) = fct("reno");
    assert_eq!(counts[2], 1);
    assert!(reno > 100.0, "{reno} RTTs");
}

#[test]
fn next_seg_recovers_the_tail_of_a_flow_without_a_timeout() {
    // Twenty segments of 0.416 ms in one flight, after a handshake of 40.032 ms. The SACK of segment k (from
    // 1) arrives at 80.048 + 0.416 k ms. That of the fourth reveals the loss of the first, and halves the
    // window to ten segments.
    let fct_ms = |rescue: bool, lost: u32| {
        let text = format!("flow,segment,time\n0,1,1\n0,{lost},1\n");
        let results = run(&json!({
            "topology": {
                "kind": "link", "rate": "20 Mbps", "delay": "20 ms",
                "losses": { "name": "losses.csv", "text": text },
            },
            "transport": {
                "kind": "tcp", "window": { "initial": 40 }, "reliability": { "rescue": rescue },
            },
            "workload": flows(&[(0.0, 0, 1, 20_000)]),
        }));
        (fct(&results) * 1e3, results.flows.timeouts[0])
    };
    // RFC 6675 §4. Rule 4: nine segments are in flight from the SACK of the twelfth on, at 85.04 ms, which
    // permits the last one. Rule 3: the SACK of the last, at 88.368 ms, shows the gap of the 19th.
    for (lost, sent_ms) in [(20, 85.04), (19, 88.368)] {
        let (rescued, timeouts) = fct_ms(true, lost);
        assert!((rescued - (sent_ms + 20.416)).abs() < 1e-9, "{lost}: {rescued}");
        assert_eq!(timeouts, 0);
        let (plain, timeouts) = fct_ms(false, lost);
        assert!(plain > 300.0 && timeouts == 1, "{lost}: {plain}");
    }
}

#[test]
fn spurious_timeouts_are_undone_after_a_delay_spike() {
    // From 0.3 to 0.5 s packets take half a second instead of 20 ms. No packet is lost, but all
    // packets in flight time out.
    let scenario = |reliability: Value| {
        json!({
            "topology": {
                "kind": "link", "rate": "100 Mbps", "delay_trace": {
                    "name": "delays", "text": "time_s,delay_s\n0,0.02\n0.3,0.5\n0.5,0.02\n",
                },
            },
            "transport": {
                "kind": "tcp", "window": { "initial": 20, "max": 20 },
                "reliability": with(&json!({ "recovery": "rack" }), reliability),
            },
            "queue": { "kind": "drop_tail", "capacity": "none" },
            "workload": flows(&[(0.0, 0, 1, 1_000_000)]),
        })
    };
    let config = |reliability| {
        let results = run(&scenario(reliability));
        assert_eq!(count(&results, "losses") + count(&results, "drops"), 0);
        assert_eq!(results.flows.timeouts[0], 1);
        (results.flows.retransmits[0], fct(&results))
    };
    let (sent_again, plain) = config(json!({}));
    assert!(sent_again > 5, "{sent_again}");
    for undoing in
        [json!({ "undo": true }), json!({ "undo": true, "frto": true, "timestamps": false })]
    {
        let (sent_again, undone) = config(undoing.clone());
        assert_eq!(sent_again, 1, "{undoing}: what timed out");
        assert!(undone < plain - 0.05, "{undoing}: {undone} and {plain}");
    }
    // All ACKs of a window are late: receivers report duplicate segments with DSACK.
    let duplicate_sack_results =
        config(json!({ "undo": true, "duplicate_sack": true, "timestamps": false }));
    assert!(duplicate_sack_results.1 < plain - 0.05, "{} and {plain}", duplicate_sack_results.1);
}

#[test]
fn lost_acks_are_not_marks_with_the_option_of_accurate_ecn() {
    // Half of the ACKs are lost, and no packet is marked: RFC 9768 §3.2.2.5 alone takes an ACK for eight
    // packets for eight marks.
    let scenario = |option: bool| {
        json!({
            "topology": { "kind": "link", "rate": "50 Mbps", "delay": "20 ms", "ack_loss": 0.5 },
            "queue": { "kind": "drop_tail", "capacity": "none" },
            "transport": {
                "kind": "tcp", "ecn": true, "window": { "initial_ssthresh": 100 },
                "reliability": { "accurate_ecn": true, "accurate_ecn_option": option },
            },
            "workload": flows(&[(0.0, 0, 1, 3_000_000)]),
            "time_limit": "1000 s",
        })
    };
    let [with_option, without] = [true, false].map(|option| fct(&run(&scenario(option))));
    // RFC 3168 feedback has no counts: the ACKs that arrive give the same window.
    let not_accurate = json!({ "transport": { "reliability": { "accurate_ecn": false } } });
    let classic = run(&with(&scenario(false), not_accurate));
    assert_eq!(with_option.to_bits(), fct(&classic).to_bits());
    assert!(without > 2.0 * with_option, "{without} and {with_option}");
    // Without ECN there is nothing to count.
    let without_ecn = run(&with(&scenario(false), json!({ "transport": { "ecn": false } })));
    assert_eq!(with_option.to_bits(), fct(&without_ecn).to_bits());
    let marked = run_with_all_engines(&with(
        &scenario(true),
        json!({
            "queue": { "kind": "ecn_threshold", "threshold": "10 packets", "capacity": "none" },
            "transport": { "reliability": { "sack_blocks": 3 } },
        }),
    ));
    assert!(marked["counts"]["marks"].as_u64() > Some(8), "{}", marked["counts"]);
}

#[test]
fn ecn_marks_slow_tcp_down_without_losses() {
    for accurate_ecn in [false, true] {
        let results = run(&json!({
            "topology": { "kind": "link", "rate": "100 Mbps", "delay": "1 ms" },
            "transport": { "kind": "tcp", "ecn": true, "reliability": { "accurate_ecn": accurate_ecn } },
            "queue": { "kind": "ecn_threshold", "threshold": "10 packets", "capacity": "100 packets" },
            "workload": flows(&[(0.0, 0, 1, 20_000_000)]),
        }));
        assert!(count(&results, "marks") > 20);
        assert_eq!(count(&results, "drops") + count(&results, "retransmits"), 0);
        // A BDP of 24 packets: after the peak of slow start the queue stays near the threshold.
        assert!(link(&results, "left->right", "queue_mean_bytes") < 10_400.0);
        assert!(link(&results, "left->right", "utilisation") > 0.9);
    }
}

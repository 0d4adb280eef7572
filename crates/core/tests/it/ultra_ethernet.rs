//! Ultra Ethernet Transport and entropy values: times of single flows in the authors' simulator, incasts, and
//! the effect of the number of entropy values.

use crate::common::{count, flows, run, run_with_all_engines, with};
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// A fat-tree of 128 hosts at 100 Gb/s with 1 us per link, and packets of 4096 + 64 bytes.
fn fat_tree(control: &str, rows: &[(f64, u32, u32, u64)]) -> Value {
    json!({
        "environment": "paper",
        "topology": { "kind": "fat_tree", "k": 8, "rate": "100 Gbps", "delay": "1 us" },
        "packet": { "payload": "4096 B", "header": "64 B", "ack": "64 B" },
        "routing": "entropy",
        "transport": { "kind": "uet", "control": control },
        "workload": flows(rows),
        "time_limit": "100 ms",
    })
}

/// FCTs in microseconds.
fn fcts(results: &Results) -> Vec<f64> {
    results.flows.fct_s.iter().map(|fct| fct * 1e6).collect()
}

#[test]
fn single_flows_take_the_time_that_they_take_in_htsim() {
    const PACKET: u64 = 4096;
    // Hosts on one leaf, in one pod and in two pods; sizes in bytes; FCTs of htsim to the picosecond.
    for (control, target, size, expected) in [
        ("nscc", 127, 1000, 6.510_72),
        ("nscc", 5, 16 * PACKET, 10.323_2),
        ("nscc", 127, 512 * PACKET, 178.057_6),
        ("rccc", 1, 512 * PACKET, 173.963_48),
        ("rccc", 5, 512 * PACKET, 176.695_632),
        ("rccc", 127, 512 * PACKET, 179.205_626),
        ("both", 127, 512 * PACKET, 179.205_626),
    ] {
        let fct = fcts(&run(&fat_tree(control, &[(0.0, 0, target, size)])))[0];
        let what = format!("{size} B to {target} by {control}: {fct}, not {expected}");
        assert!((fct - expected).abs() < 1e-6, "{what}");
    }
}

#[test]
fn an_incast_keeps_the_link_of_its_receiver_busy() {
    let rows: Vec<_> = (0..16).map(|flow| (0.0, 16 + 7 * flow, 0, 2 << 20)).collect();
    let results = run(&fat_tree("nscc", &rows));
    // 16 flows of 512 packets over one link, in flight all the time.
    let last = fcts(&results).into_iter().fold(0.0, f64::max);
    let ideal = 16.0 * 512.0 * 0.3328 + 5.0 * 1.3328 + 1.0;
    assert!((last / ideal - 1.0).abs() < 0.02, "{last}, not {ideal}");
    // Few of 8192 packets wait for longer than the RTO of 100 us.
    assert!(count(&results, "timeouts") <= 4);
}

#[test]
fn with_one_entropy_value_each_flow_has_one_path() {
    let rows: Vec<_> = (0..32).map(|flow| (0.0, flow, 127 - flow, 200_000)).collect();
    let tcp = with(&fat_tree("nscc", &rows), json!({ "transport": null }));
    for entropy in ["oblivious", "bitmap", "reps", "reps_legacy", "mixed"] {
        for (values, has_one_path) in [(1, true), (64, false)] {
            let results = run(&with(
                &tcp,
                json!({
                    "transport": { "kind": "tcp" }, "entropy": { "kind": entropy, "values": values },
                }),
            ));
            // Without losses, packets are sent again only if others have overtaken them.
            let what = format!("{entropy}, {values}");
            assert_eq!(count(&results, "retransmits") == 0, has_one_path, "{what}");
        }
    }
}

#[test]
fn flows_under_plb_that_collide_take_separate_paths() {
    let size = 30_000_000;
    let scenario = |seed: u64, rounds: u32| {
        json!({
            "seed": seed,
            "topology": {
                "kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 2, "spines": 2,
                "host_rate": "10 Gbps", "fabric_rate": "10 Gbps",
            },
            "routing": "entropy",
            // Two flows of DCTCP have many marks in a row only with a small threshold.
            "entropy": {
                "kind": "plb", "threshold": 0.1, "idle_rounds": rounds, "rounds": rounds,
            },
            "transport": "dctcp",
            "queue": { "kind": "ecn_threshold", "threshold": "3 packets" },
            "workload": flows(&[(0.0, 0, 2, size), (0.0, 1, 3, size)]),
            "time_limit": "1 s",
        })
    };
    let last = |scenario: &Value| {
        let results = run(scenario);
        fcts(&results).into_iter().fold(0.0, f64::max) / (size as f64 * 8.0 / 10e3)
    };
    let mut collisions = 0;
    for seed in 0..8 {
        // With a path of its own each flow takes 1.04 times its payload at line rate.
        if last(&scenario(seed, u32::MAX)) < 1.9 {
            continue;
        }
        collisions += 1;
        let changed = last(&scenario(seed, 2));
        assert!(changed < 1.3, "seed {seed}: {changed}");
    }
    assert!(collisions > 1, "{collisions} collisions");
    run_with_all_engines(&scenario(0, 2));
}

#[test]
fn an_incast_has_the_same_results_with_all_engines() {
    let rows: Vec<_> = (0..40).map(|flow| (0.0, 16 + 2 * flow, 0, 300_000)).collect();
    for control in ["nscc", "rccc", "both"] {
        // Queues of a few packets, so that headers are lost, too.
        let queue = json!({
            "kind": "composite", "capacity": "4 packets", "header_capacity": "20 packets",
            "kmin": "4160 B", "kmax": "12 KB",
        });
        let scenario = with(&fat_tree(control, &rows), json!({ "queue": queue }));
        let summary = run_with_all_engines(&scenario);
        assert_eq!(summary["counts"]["unfinished"], 0, "{control}");
        assert!(summary["counts"]["timeouts"].as_u64() > Some(0), "{control}");
    }
}

#[test]
fn without_trimming_an_incast_has_the_same_results_with_all_engines() {
    let rows: Vec<_> = (0..40).map(|flow| (0.0, 16 + 2 * flow, 0, 300_000)).collect();
    let transport = json!({ "trimming": false });
    for queue in [
        json!({ "kind": "composite", "capacity": "20 packets", "trimming": false }),
        json!({ "kind": "drop_tail", "capacity": "20 packets" }),
    ] {
        let changes = json!({ "transport": transport, "queue": queue });
        let summary = run_with_all_engines(&with(&fat_tree("nscc", &rows), changes));
        assert_eq!(summary["counts"]["unfinished"], 0);
        assert!(summary["counts"]["drops"].as_u64() > Some(1000));
    }
}

#[test]
fn a_queue_that_drops_is_worth_a_warning_unless_losses_are_detected_without_trimming() {
    let rows: Vec<_> = (0..32).map(|flow| (0.0, 16 + 3 * flow, 0, 64 * 4096)).collect();
    let warns = |transport: Value, queue: &str| {
        let queue = json!({ "kind": queue, "capacity": "20 packets" });
        let changes = json!({ "transport": transport, "queue": queue });
        let summary = run(&with(&fat_tree("nscc", &rows), changes)).summary;
        summary["warnings"].to_string().contains("transport: queues dropped")
    };
    assert!(warns(json!({}), "drop_tail"));
    assert!(!warns(json!({ "trimming": false }), "drop_tail"));
    assert!(!warns(json!({}), "composite"));
}

#[test]
fn without_trimming_losses_of_an_incast_wait_for_no_timeout() {
    // 32 windows of 1.5 BDP overflow the queue of 5 BDP.
    let rows: Vec<_> = (0..32).map(|flow| (0.0, 16 + 3 * flow, 0, 64 * 4096)).collect();
    let timeout = json!({ "fixed_rto": "10 ms" });
    let changes = json!({ "transport": { "trimming": false, "reliability": timeout } });
    let results = run(&with(&fat_tree("nscc", &rows), changes));
    let last = fcts(&results).into_iter().fold(0.0, f64::max);
    let ideal = 32.0 * 64.0 * 0.3328;
    assert!(count(&results, "drops") > 0);
    assert_eq!(count(&results, "timeouts"), 0);
    assert!(last < 1.3 * ideal, "{last}, ideal {ideal}");
}

#[test]
fn a_probe_reveals_the_loss_of_the_last_packets() {
    const PACKET: f64 = 0.3328;
    const HEADER: f64 = 0.005_12;
    let results = run(&json!({
        "environment": "paper",
        "topology": {
            "kind": "dumbbell", "senders": 1, "receivers": 1, "rate": "100 Gbps", "delay": "1 us",
            "losses": { "name": "losses.csv", "text": "flow,segment,time\n0,7,1\n0,8,1\n" },
        },
        "packet": { "payload": "4096 B", "header": "64 B", "ack": "64 B" },
        "transport": { "kind": "uet", "trimming": false },
        "workload": flows(&[(0.0, 0, 1, 8 * 4096)]),
        "time_limit": "10 ms",
    }));
    // Three links of 1 us. The ACK of packets 2 to 5 is the last one. A base RTT and the target, as much
    // again, later a probe follows; its answer shows that packets 7 and 8 are lost.
    let base_rtt = 3.0 * (PACKET + HEADER) + 6.0;
    let last_ack = 5.0 * PACKET + 2.0 * PACKET + 3.0 + 3.0 * HEADER + 3.0;
    let answer = last_ack + 2.0 * base_rtt + 6.0 * HEADER + 6.0;
    let expected = answer + 2.0 * PACKET + 2.0 * PACKET + 3.0;
    let fct = fcts(&results)[0];
    assert!((fct - expected).abs() < 1e-6, "{fct}, not {expected}");
    assert_eq!((count(&results, "retransmits"), count(&results, "timeouts")), (2, 0));
}

#[test]
fn credits_pass_the_data_of_an_incast() {
    // The receiver of an incast sends to another host. Each of its packets has a credit and ACKs, which pass
    // the port where the data of the incast waits.
    let mut rows = vec![(0.0, 0, 100, 5_000_000)];
    rows.extend((0..8).map(|flow| (0.0, 16 + 4 * flow, 0, 2_000_000)));
    let eqds = json!({ "pull_bytes": "4096 B", "credit_rate": 0.98556, "initial_packets": 50 });
    let results = run(&with(&fat_tree("rccc", &rows), json!({ "transport": eqds })));
    let ideal = 5e6 * 4160.0 / 4096.0 * 8.0 / 100e3;
    let fct = fcts(&results)[0];
    assert!(fct < 1.1 * ideal, "{fct} us, ideal {ideal} us");
}

#[test]
fn the_last_packet_of_a_small_flow_requests_its_credit() {
    // The host of the small flow also sends two large ones, which share what it requests.
    let mut rows = vec![(0.0, 16, 32, 10_000_000), (0.0, 20, 32, 10_000_000)];
    rows.extend([(0.0, 0, 48, 10_000_000), (0.0, 0, 64, 10_000_000), (100e-6, 0, 32, 68_149)]);
    let small = fcts(&run(&fat_tree("rccc", &rows)))[4];
    // A packet requests at least the next one, so that the last ones take an RTT each, and not a timeout.
    assert!(small < 250.0, "{small} us");
}

#[test]
fn no_sender_of_an_incast_waits_for_a_timeout_under_window_and_credits() {
    let rows: Vec<_> = (0..16).map(|flow| (0.0, 16 + 4 * flow, 0, 256_000)).collect();
    let last = fcts(&run(&fat_tree("both", &rows))).into_iter().fold(0.0, f64::max);
    let bound = 16.0 * 63.0 * 4160.0 * 8.0 / 100e3;
    assert!(last < 1.15 * bound, "{last} us, bound {bound} us");
}

//! Priority flow control (PFC) and shared buffers.

use crate::common::{assert_near, count, flows, link, run, try_run, with};
use serde_json::{Value, json};

/// Three senders to one receiver over two switches, without congestion control.
fn incast() -> Value {
    json!({
        "topology": { "kind": "dumbbell", "senders": 4, "receivers": 4 },
        "transport": { "kind": "constant_rate" },
        "switch": { "shared_buffer": "400 KB", "pause": {} },
        "workload": flows(&[
            (0.0, 0, 4, 2_000_000),
            (0.0, 1, 4, 2_000_000),
            (0.0, 2, 5, 2_000_000),
        ]),
    })
}

#[test]
fn enough_headroom_prevents_losses_and_keeps_the_link_busy() {
    let results = run(&incast());
    assert_eq!(count(&results, "drops"), 0);
    assert_eq!(count(&results, "retransmits"), 0);
    assert!(count(&results, "pauses") > 0);
    assert_eq!(count(&results, "finished"), 3);
    let last = results.flows.fct_s.iter().copied().fold(0.0, f64::max);
    // 6 MB in packets of 1040 B over a link of 10 Gb/s.
    assert_near(last, 6_000.0 * 1040.0 * 8.0 / 10e9, 0.02, "the last completion");
}

#[test]
fn headroom_below_the_data_in_flight_causes_losses() {
    let tight = with(
        &incast(),
        json!({
            "topology": { "delay": "5 us" },
            "switch": { "pause": { "headroom": "2 KB" } },
        }),
    );
    assert!(count(&run(&tight), "drops") > 0);
    let computed = with(&incast(), json!({ "topology": { "delay": "5 us" } }));
    assert_eq!(count(&run(&computed), "drops"), 0);
}

#[test]
fn the_computed_headroom_holds_on_links_that_rounded_times_make_faster() {
    // 1024 B at 800 Gb/s take 10 instead of 10.24 ns, and 512 B take 5 instead of 5.12 ns. The queue hardly
    // drains in the 40 us until a pause takes effect.
    for payload in ["984 B", "472 B"] {
        let results = run(&with(
            &incast(),
            json!({
                "topology": { "rate": "800 Gbps", "bottleneck_rate": "1 Gbps", "delay": "20 us" },
                "packet": { "payload": payload, "time_unit": "1 ns" },
                "switch": { "shared_buffer": "30 MB" },
                "workload": flows(&[
                    (0.0, 0, 4, 20_000_000),
                    (0.0, 1, 4, 20_000_000),
                    (0.0, 2, 5, 20_000_000),
                ]),
                "time_limit": "1 ms",
            }),
        ));
        assert_eq!(count(&results, "drops"), 0, "{payload}");
        assert!(count(&results, "pauses") > 0, "{payload}");
    }
}

#[test]
fn window_below_the_pause_threshold_bounds_the_queue() {
    // Three windows of 20 packets of 1040 B are below the pause threshold.
    let windowed = with(&incast(), json!({ "transport": { "window": "20 KB" } }));
    let results = run(&windowed);
    assert_eq!((count(&results, "pauses"), count(&results, "drops")), (0, 0));
    let most = link(&results, "left->right", "queue_max_bytes");
    assert!((45_000.0..=3.0 * 20.0 * 1040.0).contains(&most), "{most}");
    let last = results.flows.fct_s.iter().copied().fold(0.0, f64::max);
    assert_near(last, 6_000.0 * 1040.0 * 8.0 / 10e9, 0.02, "the last completion");
    // A single flow sends one window per RTT; here a window is 2 packets, or at least 1.
    for (window, packets) in [("2999 B", 2.0), ("1 B", 1.0)] {
        let results = run(&json!({
            "topology": { "kind": "link", "delay": "50 us" },
            "transport": { "kind": "constant_rate", "window": window },
            "workload": flows(&[(0.0, 0, 1, 1_000_000)]),
        }));
        let round_trip = 100e-6 + 1040.0 * 0.8e-9 + 40.0 * 0.8e-9;
        assert_near(results.flows.fct_s[0], 1000.0 / packets * round_trip, 0.01, window);
    }
}

#[test]
fn quanta_change_nothing_but_the_number_of_frames_without_losses() {
    let expiring =
        |quanta: u32| run(&with(&incast(), json!({ "switch": { "pause": { "quanta": quanta } } })));
    let (without, long) = (run(&incast()), expiring(65_535));
    // 3.4 ms: no pause lasts so long.
    assert_eq!(without.flows.fct_s, long.flows.fct_s);
    assert_eq!(count(&without, "pauses"), count(&long, "pauses"));
    // 512 ns, which end without frames that repeat the pause. These delay others by a frame, 51 ns.
    let short = expiring(10);
    assert_eq!((count(&short, "drops"), count(&short, "losses")), (0, 0));
    for (one, other) in without.flows.fct_s.iter().zip(&short.flows.fct_s) {
        assert_near(*other, *one, 0.001, "FCT");
    }
    let paused = [&without, &short].map(|results| link(results, "sender0->left", "paused_s"));
    assert_near(paused[1], paused[0], 0.02, "pauses");
    let bytes = [&without, &short].map(|results| link(results, "left->sender0", "bytes"));
    assert!(bytes[1] > 2.0 * bytes[0], "{bytes:?}");
}

#[test]
fn quanta_of_a_frame_have_16_bits() {
    for quanta in [0, 65_536] {
        let scenario = with(&incast(), json!({ "switch": { "pause": { "quanta": quanta } } }));
        assert_eq!(
            try_run(&scenario).err().unwrap(),
            format!("switch.pause.quanta: must be from 1 to 65535, not {quanta}")
        );
    }
}

#[test]
fn same_buffer_overflows_without_pause_frames() {
    let without = with(&incast(), json!({ "switch": { "pause": null } }));
    assert!(count(&run(&without), "drops") > 0);
}

#[test]
fn victim_flow_waits_behind_a_paused_port() {
    // Flow 1 has an idle receiver but shares the link between the switches with flows to a
    // congested receiver; its share of that link follows the pauses.
    let scenario = |pause: Value| {
        with(
            &incast(),
            json!({
                "topology": { "bottleneck_rate": "40 Gbps" },
                "switch": { "shared_buffer": "4 MB", "pause": pause },
                "workload": flows(&[
                    (0.0, 0, 4, 3_000_000), (0.0, 1, 4, 3_000_000), (0.0, 2, 4, 3_000_000),
                    (0.0, 3, 5, 1_000_000),
                ]),
            }),
        )
    };
    let (paused, free) = (run(&scenario(json!({ "alpha": 0.03 }))), run(&scenario(Value::Null)));
    assert!(link(&paused, "left->right", "pauses") > 0.0);
    assert!(free.flows.slowdown[3] < 1.01, "a link of 40 Gb/s has room for all four");
    assert!(paused.flows.slowdown[3] > 1.5, "slowdown {}", paused.flows.slowdown[3]);
}

#[test]
fn pauses_reach_the_hosts_but_not_control_packets() {
    let results = run(&incast());
    assert!(link(&results, "sender0->left", "pauses") > 0.0);
    assert!(link(&results, "sender0->left", "paused_s") > 0.0);
    assert!(link(&results, "left->sender0", "pauses") < 1.0, "ACKs congest nothing");
}

#[test]
fn shared_buffer_without_pauses_uses_static_or_dynamic_thresholds() {
    let scenario = |alpha: Value| {
        with(
            &incast(),
            json!({ "switch": { "pause": null, "alpha": alpha, "shared_buffer": "100 KB" } }),
        )
    };
    let queue = |alpha| link(&run(&scenario(alpha)), "left->right", "queue_max_bytes");
    let (pool, share) = (queue(Value::Null), queue(json!(1.0)));
    assert!((98_960.0..=100_000.0).contains(&pool), "all of it: {pool}");
    // With alpha 1 a single queue may take half of the buffer.
    assert!((48_000.0..=50_000.0).contains(&share), "{share}");
}

#[test]
fn buffer_smaller_than_the_headrooms_is_rejected() {
    let error = try_run(&with(&incast(), json!({ "switch": { "shared_buffer": "20 KB" } })));
    let error = error.err().unwrap();
    assert!(
        error.starts_with("switch.shared_buffer: 20 KB is too small for switch `left`"),
        "{error}"
    );
    let error = try_run(&with(&incast(), json!({ "switch": { "shared_buffer": null } })));
    assert_eq!(
        error.err().unwrap(),
        "switch.shared_buffer: missing; pause frames need a shared buffer"
    );
}

#[test]
fn acks_without_priority_wait_with_data_and_are_paused_with_it() {
    // A TIMELY flow with a free path, and 400 KB of other data in the queue of its ACKs.
    let rate = |priority: Value| {
        let results = run(&json!({
            "topology": { "kind": "star", "hosts": 6 },
            "transport": "timely",
            "transports": { "reverse": { "kind": "constant_rate", "window": "100 KB" } },
            "switch": { "control_priority": priority, "shared_buffer": "4 MB", "pause": {} },
            "time_limit": "20 ms",
            "workload": { "kind": "mixed", "parts": [
                { "kind": "flows", "flows": [{ "source": 0, "target": 1, "class": "measured" }] },
                { "kind": "flows", "flows": (2..6).map(|host| {
                    json!({ "source": host, "target": 0, "class": "reverse" })
                }).collect::<Vec<_>>() },
            ] },
        }));
        results.flows.delivered_bytes[0] as f64 * 8.0 / 20e-3 / 10e9
    };
    // RTTs of 0.3 ms are above TIMELY's upper threshold, so that its rate falls.
    assert!(rate(json!(false)) < 0.2, "{}", rate(json!(false)));
    for passes in [json!(true), Value::Null] {
        assert!(rate(passes.clone()) > 0.9, "{}", rate(passes));
    }
}

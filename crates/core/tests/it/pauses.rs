//! PFC pause frames across a fabric: no losses, unaffected control packets, and head-of-line
//! blocking.

use crate::common::two_switches::{A, B, C, ENDLESS, X, Y, share, two_switches};
use crate::common::{
    assert_near, count, flows, graph, link, run, run_with_all_engines, try_run, with,
    with_just_enough_buffer,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// Fraction of time that a link was not paused.
fn unpaused_fraction(results: &Results, name: &str) -> f64 {
    1.0 - link(results, name, "paused_s") / results.summary["simulated_s"].as_f64().unwrap()
}

/// A network with at least four hosts, for [`bursts`].
fn networks() -> impl Strategy<Value = Value> {
    let rate = || prop::sample::select(&["1 Gbps", "10 Gbps", "25 Gbps", "97 Gbps"]);
    let delay = || prop::sample::select(&["0 ns", "300 ns", "2 us", "20 us"]);
    prop_oneof![
        (rate(), rate(), delay()).prop_map(|(rate, shared, delay)| json!({
            "kind": "dumbbell", "senders": 3, "receivers": 1, "rate": rate,
            "bottleneck_rate": shared, "delay": delay,
        })),
        (rate(), rate(), delay(), delay()).prop_map(|(hosts, fabric, near, far)| json!({
            "kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 2, "spines": 2, "host_rate": hosts,
            "fabric_rate": fabric, "host_delay": near, "fabric_delay": far,
        })),
        (rate(), rate(), rate(), delay(), delay()).prop_map(
            |(hosts, fabric, core, near, far)| json!({
                "kind": "clos", "pods": 2, "edges_per_pod": 2, "hosts_per_edge": 1,
                "aggregations_per_pod": 2, "cores": 2, "host_rate": hosts, "fabric_rate": fabric,
                "core_rate": core, "host_delay": near, "core_delay": far,
            })
        ),
        (rate(), rate(), delay(), delay()).prop_map(|(there, back, near, far)| graph(&format!(
            "a,s,{there},{near},{back},{far}\nb,s,{there},{far},{there},{near}\n\
             c,t,{back},{near},{there},{far}\nd,t,{back},{near},{there},{near}\n\
             s,t,{there},{far},{back},{near}\n"
        ))),
    ]
}

/// Three hosts send bursts to a fourth, the later bursts into full buffers, and the fourth sends to
/// one of the three, so that pause frames have to wait. Flows belong to four classes, `0` to `3`.
fn bursts(size: u64) -> Value {
    let flow = |burst: u32, (class, source, target): (u32, u32, u32)| {
        json!({
            "source": source, "target": target, "start": format!("{} us", burst * 50),
            "size": format!("{size} B"), "class": format!("{}", (burst + class) % 4),
        })
    };
    let ends = [(0, 0, 3), (1, 1, 3), (2, 2, 3), (3, 3, 0)];
    let burst = |burst| ends.map(|ends| flow(burst, ends));
    json!({ "kind": "flows", "flows": (0..4).flat_map(burst).collect::<Vec<_>>() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn computed_headroom_prevents_losses(
        topology in networks(),
        transport in prop::sample::select(
            &["constant_rate", "dcqcn", "timely", "patched_timely", "dctcp", "tcp", "cubic"],
        ),
        queue in prop::sample::select(&["drop_tail", "dcqcn_red", "ecn_threshold", "strict_priority"]),
        (payload, ack) in (64_u32..9_000, 40_u32..300), packets in 1_u64..150,
        alpha in prop::sample::select(&[0.001, 0.03, 0.125, 1.0, 8.0]),
        reserve in prop::sample::select(&["0 B", "1 KB", "4 KB"]),
        // The shortest pause, of 106 us at 97 Gb/s, is longer than a frame takes at 1 Gb/s.
        (reaction, quanta) in (
            prop::sample::select(&["0 s", "500 ns", "7 us"]),
            prop::sample::select(&[None, Some(20_000), Some(65_535)]),
        ),
        routing in prop::sample::select(&["flow_hash", "spray_random"]), seed in 0_u64..1_000,
        numbers in prop::sample::select(&[[0; 4], [0, 0, 5, 5], [0, 1, 2, 3]]),
    ) {
        let [zero, one, two, three] = numbers;
        let scenario = json!({
            "seed": seed,
            "topology": topology,
            "traffic_classes": { "0": zero, "1": one, "2": two, "3": three },
            "transport": { "kind": transport },
            "queue": { "kind": queue, "capacity": "none" },
            "host_queue": { "kind": "drop_tail", "capacity": "none" },
            "routing": routing,
            "packet": { "payload": format!("{payload} B"), "ack": format!("{ack} B") },
            "switch": {
                "pause": { "alpha": alpha, "reserve": reserve, "reaction": reaction, "quanta": quanta },
            },
            "workload": bursts(packets * u64::from(payload)),
        });
        let results = run(&with_just_enough_buffer(&scenario));
        prop_assert_eq!((count(&results, "drops"), count(&results, "unfinished")), (0, 0));
        prop_assert_eq!(&results.summary["deadlocks"], &json!([]));
    }

    #[test]
    fn pauses_that_expire_are_the_same_with_all_engines(
        rates in prop::array::uniform2(prop::sample::select(&["1 Gbps", "10 Gbps", "97 Gbps"])),
        delays in prop::array::uniform2(prop::sample::select(&["300 ns", "2 us", "20 us"])),
        loss in prop::sample::select(&[0.0, 0.01, 0.2, 0.7]),
        quanta in prop::sample::select(&[1, 7, 100, 3_000, 65_535]),
        headroom in prop::sample::select(&[None, Some("2 KB")]),
        transport in prop::sample::select(&["constant_rate", "dcqcn", "timely", "tcp"]),
        priority in any::<Option<bool>>(),
        packets in 1_u64..60, seed in 0_u64..1_000,
        numbers in prop::sample::select(&[[0; 4], [0, 1, 2, 3]]),
    ) {
        let ([host, shared], [near, far], [zero, one, two, three]) = (rates, delays, numbers);
        let rows = format!(
            "from,to,rate,delay,loss\na,s,{host},{near},{loss}\nb,s,{host},{near},{loss}\n\
             c,t,{host},{near},{loss}\nd,t,{host},{near},{loss}\ns,t,{shared},{far},{loss}\n"
        );
        let scenario = json!({
            "seed": seed,
            "topology": { "kind": "graph", "file": { "name": "lossy.csv", "text": rows } },
            "traffic_classes": { "0": zero, "1": one, "2": two, "3": three },
            "transport": transport,
            "switch": {
                "control_priority": priority,
                "pause": { "alpha": 0.03, "quanta": quanta, "headroom": headroom, "watchdog": "100 us" },
            },
            "workload": bursts(packets * 1_000),
            "time_limit": "3 ms",
            "account": true,
        });
        run_with_all_engines(&with_just_enough_buffer(&scenario));
    }

    #[test]
    fn no_switch_configuration_panics(
        sizes in prop::collection::vec(
            prop::sample::select(
                &["none", "0 B", "1 B", "1500 B", "5 KB", "60 KB", "1 MB", "18000000000 GB"],
            ),
            4,
        ),
        spans in prop::collection::vec(
            prop::sample::select(&["none", "0 s", "1 ps", "1 us", "10 ms", "18000000 s"]), 2,
        ),
        alphas in prop::collection::vec(
            prop::sample::select(&[None, Some(-1.0), Some(0.0), Some(1e-300), Some(0.5), Some(1e300)]), 2,
        ),
        (is_paused, control_priority) in any::<(bool, bool)>(),
    ) {
        let pause = json!({
            "alpha": alphas[0].map_or(json!(0.125), Value::from), "reserve": sizes[0], "headroom": sizes[1],
            "resume_offset": sizes[2], "reaction": spans[0], "watchdog": spans[1],
        });
        let ran = try_run(&json!({
            "topology": { "kind": "star", "hosts": 4 },
            "transport": "constant_rate",
            "switch": {
                "control_priority": control_priority, "shared_buffer": sizes[3], "alpha": alphas[1],
                "pause": if is_paused { pause } else { Value::Null },
            },
            "workload": bursts(20_000),
            "time_limit": "20 ms",
        }));
        if let Err(problem) = ran {
            prop_assert!(problem.starts_with("switch.") && !problem.contains('\n'), "{}", problem);
        }
    }
}

#[test]
fn victim_rate_follows_the_unpaused_fraction_of_its_link() {
    let congested = [(0.0, A, X, ENDLESS), (0.0, B, Y, ENDLESS)];
    let results = run(&with(&two_switches(), json!({ "workload": flows(&congested) })));
    // While s->t is not paused it serves both flows equally. The congested flow gets the rate of
    // t->x, a quarter of s->t, so the victim gets no more, although no other link limits it.
    assert_near(share(&results, 0), 1.0, 0.02, "the congested flow");
    assert_near(share(&results, 1), 1.0, 0.05, "its victim");
    assert_near(
        share(&results, 1),
        2.0 * unpaused_fraction(&results, "s->t"),
        0.05,
        "the victim's duty cycle",
    );
    assert_eq!(count(&results, "drops"), 0);
    let alone = run(&with(&two_switches(), json!({ "workload": flows(&congested[1..]) })));
    assert_near(share(&alone, 0), 4.0, 0.02, "without the congested flow");
}

#[test]
fn shares_are_fair_per_ingress_port_not_per_flow() {
    // Three flows arrive at `t` over s->t, and one from `y` directly; all go to `x`.
    let workload = flows(&[
        (0.0, A, X, ENDLESS),
        (0.0, B, X, ENDLESS),
        (0.0, C, X, ENDLESS),
        (0.0, Y, X, ENDLESS),
    ]);
    let results = run(&with(&two_switches(), json!({ "workload": workload })));
    for flow in 0..3 {
        assert_near(share(&results, flow), 1.0 / 6.0, 0.15, "a flow that shares its port");
    }
    assert_near(share(&results, 3), 0.5, 0.05, "the flow with a port to itself");
}

#[test]
fn equal_hosts_have_equal_thresholds() {
    // Rates of hosts differ by their tolerance, which must not count as a higher rate (`alpha_by_rate`).
    let results = run(&json!({
        "environment": "lossless_datacentre",
        "topology": { "kind": "star", "hosts": 5, "rate": "100 Gbps", "delay": "1 us" },
        "transport": { "kind": "constant_rate", "rate": "100 Gbps" },
        "workload": flows(&[(0.0, 0, 4, ENDLESS), (0.0, 1, 4, ENDLESS), (0.0, 2, 4, ENDLESS)]),
        "time_limit": "4 ms",
    }));
    let delivered = results.flows.delivered_bytes.iter().map(|bytes| *bytes as f64);
    let third = delivered.clone().sum::<f64>() / 3.0;
    delivered.for_each(|bytes| assert_near(bytes, third, 0.03, "share of one of three senders"));
}

#[test]
fn acks_pass_a_paused_link() {
    // s->t is paused most of the time; ACKs from `c` to `y` pass it.
    let mut rows = vec![(0.0, A, X, ENDLESS), (0.0, B, X, ENDLESS)];
    rows.extend((0..50).map(|i| (1e-3 + f64::from(i) * 77e-6, Y, C, 1_000)));
    let results = run(&with(&two_switches(), json!({ "workload": flows(&rows) })));
    assert!(unpaused_fraction(&results, "s->t") < 0.5, "{}", unpaused_fraction(&results, "s->t"));
    let paths = results.flows.acked_s.iter().zip(&results.flows.fct_s).skip(2);
    let ways_back: Vec<f64> = paths.map(|(acked, fct)| acked - fct).collect();
    assert_eq!(ways_back.len(), 50);
    // Three links of 1 us, and on the first two a packet of 1040 B at 40 Gb/s may be in
    // transmission.
    let most = 3e-6 + 2.0 * 1040.0 * 8.0 / 40e9 + 3.0 * 64.0 * 8.0 / 40e9;
    assert!(ways_back.iter().all(|way| *way <= most), "{ways_back:?}");
    let data = [(1e-3, C, Y, 1_000)];
    let held_up = run(&with(
        &two_switches(),
        json!({ "workload": flows(&[&rows[..2], &data[..]].concat()) }),
    ));
    assert!(held_up.flows.fct_s[2] > 2.0 * most, "data waits: {}", held_up.flows.fct_s[2]);
}

#[test]
fn pauses_spread_from_the_congested_port_to_the_senders() {
    // From the tier next to the receiver, host0 on edge0_0, back to the senders in the other pod.
    let tiers: [fn(&str) -> bool; 5] = [
        |name| name.starts_with("aggregation0") && name.ends_with("->edge0_0"),
        |name| name.starts_with("core") && name.contains("->aggregation0"),
        |name| name.starts_with("aggregation1") && name.contains("->core"),
        |name| name.starts_with("edge1") && name.contains("->aggregation1"),
        |name| name.starts_with("host") && name.contains("->edge1"),
    ];
    let paused = |kilobytes: u32| -> [f64; 5] {
        let results = run(&json!({
            "topology": {
                "kind": "clos", "pods": 2, "edges_per_pod": 2, "hosts_per_edge": 4,
                "aggregations_per_pod": 1, "cores": 1,
            },
            "transport": "constant_rate",
            "switch": { "shared_buffer": "300 KB", "pause": {} },
            "workload": flows(
                &(8..16).map(|host| (0.0, host, 0, u64::from(kilobytes) * 1_000)).collect::<Vec<_>>(),
            ),
        }));
        assert_eq!((count(&results, "drops"), count(&results, "unfinished")), (0, 0));
        let links = results.links.show();
        let paused = |tier: fn(&str) -> bool| {
            let of_tier = links.iter().filter(move |link| tier(link["name"].as_str().unwrap()));
            of_tier.map(|link| link["paused_s"].as_f64().unwrap()).sum::<f64>()
        };
        let on_the_way: f64 = tiers.iter().map(|tier| paused(*tier)).sum();
        assert!((on_the_way - paused(|_| true)).abs() < 1e-12, "no other link is paused");
        tiers.map(paused)
    };
    let depth = |kilobytes| {
        let paused = paused(kilobytes);
        let depth = paused.iter().take_while(|tier| **tier > 0.0).count();
        assert!(
            paused[depth..].iter().all(|tier| *tier == 0.0),
            "a tier is passed over: {paused:?}"
        );
        depth
    };
    let depths = [1, 4, 10, 20, 40, 100, 400].map(depth);
    assert!(depths.is_sorted(), "larger bursts reach further: {depths:?}");
    assert_eq!((depths[0], depths[6]), (0, 5), "{depths:?}");
    assert!(depths.iter().any(|depth| (1..5).contains(depth)), "step by step: {depths:?}");
}

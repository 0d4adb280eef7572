//! FCT breakdown against hand-computed cases and closed forms. Every run asserts that a breakdown
//! adds up to the FCT; `invariants.rs` checks that recording it changes no result.

use std::collections::BTreeMap;

use crate::common::two_switches::{A, B, C, ENDLESS, X, Y, two_switches};
use crate::common::{assert_estimates, count, flows, graph, link, mean, run, with};
use serde_json::{Value, json};

/// FCT breakdown of a flow in picoseconds: non-zero components by name.
pub(crate) type Breakdown = BTreeMap<String, u64>;

/// Runs a scenario with the FCT breakdown; returns those of the finished flows, in order.
pub(crate) fn breakdowns(scenario: &Value) -> Vec<Breakdown> {
    let mut results = run(&with(scenario, json!({ "account": true })));
    let mut account = results.account.take().unwrap();
    let mut breakdown: Vec<Breakdown> = account.flow.iter().map(|_| Breakdown::new()).collect();
    for (name, column) in account.take_components() {
        for (flow, part) in breakdown.iter_mut().zip(column).filter(|(_, part)| *part > 0) {
            flow.insert(name.clone(), part);
        }
    }
    let all = breakdown.iter_mut().zip(account.rounds.iter().zip(&account.fct_ps));
    for (flow, (rounds, fct)) in all {
        assert_eq!(flow.values().sum::<u64>(), *fct);
        if *rounds > 0 {
            flow.insert("rounds".to_owned(), *rounds);
        }
    }
    breakdown
}

/// An expected breakdown, given in nanoseconds.
pub(crate) fn expected(parts: &[(&str, f64)]) -> Breakdown {
    let of = |(name, ns): &(&str, f64)| (format!("{name}_ps"), (ns * 1000.0).round() as u64);
    parts.iter().map(of).collect()
}

/// An expected breakdown with a number of window-limited rounds.
fn expected_with_rounds(rounds: u64, parts: &[(&str, f64)]) -> Breakdown {
    let mut breakdown = expected(parts);
    breakdown.insert("rounds".to_owned(), rounds);
    breakdown
}

/// One flow over one switch: at 1 Gb/s a packet of 1040 B takes 8.32 us, an ACK of 40 B 0.32 us.
fn single_flow(transport: &Value, size: u64) -> Value {
    json!({
        "topology": { "kind": "star", "hosts": 2, "rate": "1 Gbps", "delay": "10 us" },
        "transport": transport,
        "workload": flows(&[(0.0, 0, 1, size)]),
    })
}

/// TCP without a handshake.
fn tcp(initial: u32) -> Value {
    json!({
        "kind": "tcp", "window": { "initial": initial }, "reliability": { "handshake": false },
    })
}

#[test]
fn single_flow_with_a_large_window_has_only_the_flight_of_its_last_packet() {
    let breakdown = breakdowns(&single_flow(&tcp(100), 20_000));
    let flight = [
        ("flight_propagation", 20_000.0),
        ("flight_queue_own_host", 19.0 * 8_320.0),
        ("flight_transmission", 16_640.0),
    ];
    assert_eq!(breakdown, [expected(&flight)]);
}

#[test]
fn paced_packets_wait_for_the_nic_and_for_pacing() {
    let paced = |rate: &str| json!({ "kind": "constant_rate", "rate": rate });
    let flight = [("flight_propagation", 20_000.0), ("flight_transmission", 16_640.0)];
    let turn = [("turn_sender", 19.0 * 8_320.0)];
    let breakdown = breakdowns(&single_flow(&paced("1 Gbps"), 20_000));
    assert_eq!(breakdown, [expected(&[&flight[..], &turn].concat())]);
    let rate = [("rate_sender", 19.0 * 8_320.0)];
    let breakdown = breakdowns(&single_flow(&paced("500 Mbps"), 20_000));
    assert_eq!(
        breakdown,
        [expected(&[&flight[..], &turn, &rate].concat())],
        "half of the time each"
    );
}

#[test]
fn handshake_takes_one_rtt_of_small_packets() {
    let with_handshake = with(&tcp(100), json!({ "reliability": { "handshake": true } }));
    let parts = [
        ("handshake_propagation", 40_000.0),
        ("handshake_transmission", 4.0 * 320.0),
        ("flight_propagation", 20_000.0),
        ("flight_transmission", 16_640.0),
    ];
    assert_eq!(breakdowns(&single_flow(&with_handshake, 1_000)), [expected(&parts)]);
}

#[test]
fn slow_start_rounds_match_the_closed_form() {
    let (delay, packets) = (10_000_000.0, 300_u64);
    for initial in [1, 2, 3, 10, 64] {
        let scenario = json!({
            "topology": { "kind": "link", "rate": "10 Gbps", "delay": "10 ms" },
            "transport": tcp(initial as u32),
            "workload": flows(&[(0.0, 0, 1, packets * 1_000)]),
        });
        let breakdown = &breakdowns(&scenario)[0];
        // After r rounds a flow may have sent initial * (2^(r + 1) - 1) packets.
        let rounds = (0..40).find(|r| initial * ((2 << r) - 1) >= packets).unwrap();
        assert_eq!(breakdown["rounds"], rounds, "initial window {initial}");
        let propagation = 2.0 * delay * rounds as f64;
        let transmission = (832.0 + 32.0) * rounds as f64;
        for (name, ns) in [("propagation", propagation), ("transmission", transmission)] {
            assert_eq!(breakdown[&format!("window_{name}_ps")], (ns * 1000.0) as u64, "{initial}");
        }
        let held = ["rate", "turn", "recovery_gap", "recovery_timeout"];
        assert!(
            held.iter().all(|why| !breakdown.contains_key(&format!("{why}_sender_ps"))),
            "{breakdown:?}"
        );
    }
}

#[test]
fn window_round_takes_one_rtt_plus_the_ack_delay() {
    let flight = [("flight_propagation", 20_000.0), ("flight_transmission", 16_640.0)];
    let round = [("window_propagation", 40_000.0), ("window_transmission", 16_640.0 + 640.0)];
    assert_eq!(
        breakdowns(&single_flow(&tcp(1), 2_000)),
        [expected_with_rounds(1, &[round, flight].concat())]
    );
    let delayed = with(&tcp(1), json!({ "reliability": { "delayed_ack": "1 ms" } }));
    let held = [("window_receiver", 1e6)];
    let breakdown = breakdowns(&single_flow(&delayed, 2_000));
    assert_eq!(breakdown, [expected_with_rounds(1, &[&round[..], &flight, &held].concat())]);
}

/// Two fast hosts, `a` and `c`, and a link of 1 Gb/s from their switch to host `b`. Full packets
/// reach the switch after 1.832 us, packets of 540 B after 1.432 us.
fn fan_in(transport: &Value, queue: &Value, rows: &[(f64, u32, u32, u64)]) -> Value {
    json!({
        "topology": graph("a,s,10 Gbps,1 us,,\nc,s,10 Gbps,1 us,,\ns,b,1 Gbps,1 us,,\n"),
        "transport": transport,
        "queue": queue,
        "workload": flows(rows),
    })
}

#[test]
fn queueing_causes_depend_on_the_discipline() {
    // Flow 0 sends three packets, which arrive at 1.832, 2.664 and 3.496 us; the first departs at
    // 10.152 us. Flow 1 sends one packet of 540 B, which arrives at 5.432 us and takes 4.32 us.
    let rows = [(0.0, 0, 2, 3_000), (4e-6, 1, 2, 500)];
    let of_host = [("flight_propagation", 2_000.0), ("flight_queue_own_host", 1_664.0)];
    let of_three = |others: f64| {
        let own = 10_152.0 - 3_496.0 + 8_320.0;
        let mut parts = of_host.to_vec();
        parts.extend([("flight_transmission", 9_152.0), ("flight_queue_own_there", own)]);
        parts.extend((others > 0.0).then_some(("flight_queue_others_there", others)));
        expected(&parts)
    };
    let of_one = |others: f64| {
        expected(&[
            ("flight_propagation", 2_000.0),
            ("flight_transmission", 4_752.0),
            ("flight_queue_others_there", others),
        ])
    };
    let in_turn = (tcp(10), json!({ "kind": "drop_tail" }));
    let first_come = breakdowns(&fan_in(&in_turn.0, &in_turn.1, &rows));
    assert_eq!(first_come, [of_three(0.0), of_one(4_720.0 + 2.0 * 8_320.0)]);
    let pfabric = json!({ "kind": "pfabric" });
    let in_classes = json!({ "kind": "pfabric", "thresholds": [2] });
    for (transport, queue) in [
        (tcp(10), json!({ "kind": "fair_queueing" })),
        (pfabric, json!({ "kind": "pfabric" })),
        (in_classes, json!({ "kind": "strict_priority", "classes": 8 })),
    ] {
        let breakdown = breakdowns(&fan_in(&transport, &queue, &rows));
        assert_eq!(breakdown, [of_three(4_320.0), of_one(4_720.0)], "{queue}");
    }
}

#[test]
fn undetected_loss_costs_the_timeout() {
    // The packet of flow 1 arrives when flow 0 has filled the queue. Its retransmission finds the
    // network empty, except for later packets of flow 0.
    let reliability = json!({ "handshake": false, "fixed_rto": "5 ms" });
    let transport = json!({
        "kind": "tcp", "window": { "initial": 20 }, "reliability": reliability,
    });
    let queue = json!({ "kind": "drop_tail", "capacity": "4 packets" });
    let rows = [(0.0, 0, 2, 20_000), (5e-6, 1, 2, 1_000)];
    let breakdown = breakdowns(&fan_in(&transport, &queue, &rows));
    let parts = [
        ("recovery_timeout_sender", 5e6),
        ("flight_propagation", 2_000.0),
        ("flight_transmission", 9_152.0),
    ];
    assert_eq!(breakdown[1], expected(&parts));
}

#[test]
fn tail_loss_probe_costs_its_delay() {
    // One packet may be in flight, and its ACK is lost: the second packet is sent as a tail loss
    // probe and completes the flow.
    let lossy = |seed: u64| {
        json!({
            "seed": seed,
            "topology": { "kind": "link", "rate": "1 Gbps", "delay": "1 ms", "ack_loss": 0.5 },
            "transport": {
                "kind": "tcp", "window": { "initial": 1 }, "reliability": { "tail_probe": "5 ms" },
            },
            "workload": flows(&[(0.0, 0, 1, 2_000)]),
        })
    };
    let is_probed = |seed: &u64| {
        let results = run(&lossy(*seed));
        let is_late = results.flows.fct_s[0] > 0.010;
        is_late && (count(&results, "retransmits"), count(&results, "timeouts")) == (0, 0)
    };
    let seeds: Vec<u64> = (1..40).filter(is_probed).collect();
    assert!(seeds.len() > 3, "{seeds:?}");
    for seed in seeds {
        let breakdown = &breakdowns(&lossy(seed))[0];
        // Two RTTs, as measured by the handshake, and 5 ms.
        let opening = breakdown.iter().filter(|(name, _)| name.starts_with("handshake"));
        let rtt: u64 = opening.map(|(_, part)| part).sum();
        assert_eq!(
            breakdown["recovery_timeout_sender_ps"],
            2 * rtt + 5_000_000_000,
            "{breakdown:?}"
        );
        assert!(!breakdown.keys().any(|name| name.starts_with("rate")), "{breakdown:?}");
    }
}

#[test]
fn fast_retransmit_costs_one_rtt_and_three_packets() {
    let lossy = |seed: u64| {
        json!({
            "seed": seed,
            "topology": { "kind": "link", "rate": "1 Gbps", "delay": "1 ms", "loss": 0.02 },
            "transport": tcp(100),
            "workload": flows(&[(0.0, 0, 1, 60_000)]),
        })
    };
    let of_one_loss = |seed: &u64| {
        let results = run(&lossy(*seed));
        (count(&results, "retransmits"), count(&results, "timeouts")) == (1, 0)
    };
    let seeds: Vec<u64> = (1..40).filter(of_one_loss).collect();
    assert!(seeds.len() > 3, "{seeds:?}");
    for seed in seeds {
        let breakdown = &breakdowns(&lossy(seed))[0];
        let gap = breakdown["recovery_gap_sender_ps"];
        // All packets are sent at once, so the third packet after the lost one waits for the
        // packets before it. Its own transmission and that of its ACK are part of the RTT.
        let before = gap - 2 * 1_000_000_000 - 8_320_000 - 320_000;
        assert_eq!(before % 8_320_000, 0, "{breakdown:?}");
        assert!((3..60).contains(&(before / 8_320_000)), "{breakdown:?}");
        assert!(
            !breakdown.contains_key("rounds")
                && !breakdown.contains_key("recovery_timeout_sender_ps")
        );
    }
}

/// Parts of a flow of 8 segments for losses that ACKs or credits revealed, and for those that a timer did, in
/// seconds, if the first transmission of some segments is lost.
fn recovery_s(transport: &Value, lost: &[u32]) -> [f64; 2] {
    let rows: Vec<_> = lost.iter().map(|segment| format!("0,{segment},1\n")).collect();
    let text = format!("flow,segment,time\n{}", rows.concat());
    let losses = json!({ "name": "l.csv", "text": text });
    let scenario = json!({
        "topology": { "kind": "dumbbell", "senders": 2, "receivers": 2, "losses": losses },
        "transport": transport,
        "workload": flows(&[(0.0, 0, 2, 8_000)]),
    });
    let breakdown = &breakdowns(&scenario)[0];
    ["recovery_gap_sender_ps", "recovery_timeout_sender_ps"]
        .map(|part| breakdown.get(part).map_or(0.0, |part| *part as f64 * 1e-12))
}

#[test]
fn a_timer_of_either_host_reveals_the_loss_of_the_last_segments() {
    let with_probes = json!({
        "kind": "dctcp", "reliability": { "recovery": "rack", "tail_probe": "5 ms" },
    });
    let transports =
        ["ndp", "expresspass", "homa", "phost", "uet", "dctcp"].map(|name| json!(name));
    for transport in transports.iter().chain([&with_probes]) {
        for lost in [&[8][..], &[6, 7, 8], &[2, 3, 4, 5, 6, 7, 8]] {
            let [gap, timeout] = recovery_s(transport, lost);
            assert!(gap == 0.0 && timeout > 0.0, "{transport}, {lost:?}: {gap}, {timeout}");
        }
    }
    // Later segments reveal the loss.
    for transport in [json!("expresspass"), with_probes] {
        let [gap, timeout] = recovery_s(&transport, &[2]);
        assert!(gap > 0.0 && timeout == 0.0, "{transport}: {gap}, {timeout}");
    }
}

#[test]
fn a_wait_for_credit_is_one_for_a_timer_if_the_data_before_was_lost() {
    // At the start of a flow, the sender has a timer; later, the receiver. Credits of pHost and ExpressPass
    // continue.
    let (start, later) = ((100_000, ["1 us", "300 us"]), (1_000_000, ["200 us", "1200 us"]));
    for (kind, cases) in [
        ("ndp", &[start, later][..]),
        ("homa", &[start, later]),
        ("phost", &[start]),
        ("expresspass", &[start]),
    ] {
        for (size, [fails, returns]) in cases {
            let scenario = json!({
                "topology": { "kind": "star", "hosts": 2, "rate": "10 Gbps", "delay": "1 us" },
                "transport": kind,
                "failures": [{ "link": "switch->host1", "fails": fails, "returns": returns }],
                "convergence": "1 us",
                "workload": flows(&[(0.0, 0, 1, *size)]),
                "time_limit": "1 s",
            });
            let flow = &breakdowns(&scenario)[0];
            let sum = |part: &str| {
                let of_part = flow.iter().filter(|(name, _)| name.starts_with(part));
                of_part.map(|(_, time)| *time as f64).sum::<f64>()
            };
            let lost = sum("recovery_timeout") / sum("");
            assert!(lost > 0.5, "{kind}, {size} B: {lost} of {flow:?}");
        }
    }
}

#[test]
fn flows_that_wait_for_their_turn_at_a_receiver_wait_for_credit() {
    // Requests are repeated after 100 us or later, while the receiver serves shorter flows, and none is lost.
    let rows: Vec<_> = (1..17).map(|sender| (0.0, sender, 0, 50_000)).collect();
    for transport in ["phost", "expresspass"] {
        let scenario = json!({
            "topology": { "kind": "star", "hosts": 17, "rate": "10 Gbps", "delay": "1 us" },
            "transport": {
                "kind": transport, "reliability": { "initial_rto": "100 us", "min_rto": "100 us" },
            },
            "workload": flows(&rows),
        });
        let breakdowns = breakdowns(&scenario);
        let longest = |part: &str| {
            let parts = breakdowns.iter().flatten().filter(|(name, _)| name.starts_with(part));
            parts.map(|(_, time)| *time).max().unwrap_or_default()
        };
        assert_eq!(longest("recovery"), 0, "{transport}");
        assert!(longest("credit") > 100_000_000, "{transport}");
    }
}

/// Single packets that arrive as a Poisson process at a link of 1 Gb/s.
fn single_packets(load: f64, sizes: &Value, seed: u64) -> Value {
    json!({
        "seed": seed,
        "topology": {
            "kind": "dumbbell", "senders": 100, "receivers": 20,
            "rate": "200 Gbps", "bottleneck_rate": "1 Gbps",
        },
        "transport": "constant_rate",
        "packet": { "payload": "60 KB", "header": "0 B" },
        "workload": { "kind": "poisson", "load": load, "sizes": sizes, "flows": 50_000 },
        "time_limit": "1000 s",
    })
}

#[test]
fn waiting_times_of_single_packets_match_pollaczek_khinchine() {
    let fixed = json!({ "kind": "fixed", "size": "1250 B" });
    let uniform = json!({ "kind": "uniform", "min": "1 B", "max": "2500 B" });
    // First and second moments of the sizes, in bytes.
    for (sizes, first, second) in [
        (fixed, 1250.0, 1250.0 * 1250.0),
        (uniform, 1250.5, 2_500.0 * 2_501.0 * 5_001.0 / 6.0 / 2_500.0),
    ] {
        let load = 0.6;
        // Pollaczek–Khinchine formula.
        let bytes = load * second / (2.0 * first * (1.0 - load));
        let wait = |seed: u64| {
            let breakdown = breakdowns(&single_packets(load, &sizes, seed));
            let others = breakdown.iter().map(|flow| {
                let places = ["host", "there"].map(|leg| format!("flight_queue_others_{leg}_ps"));
                places.iter().filter_map(|place| flow.get(place)).sum::<u64>() as f64 / 1e12
            });
            mean(others.skip(2_000))
        };
        let waits: Vec<f64> = (1..=4).map(wait).collect();
        assert_estimates(&waits, bytes * 8.0 / 1e9, 0.04, &format!("mean wait of {sizes}"));
    }
}

#[test]
fn victim_flow_waits_for_pauses() {
    // `x` receives at a quarter of the rate at which `a` and `b` send; `c` sends one packet to `y`
    // over their link.
    let rows = [(0.0, A, X, ENDLESS), (0.0, B, X, ENDLESS), (1e-3, C, Y, 1_000)];
    let scenario = with(&two_switches(), json!({ "workload": flows(&rows) }));
    let breakdown = breakdowns(&scenario);
    let [victim] = &breakdown[..] else { panic!("one flow finishes: {breakdown:?}") };
    let (paused, fct) = (victim["flight_paused_there_ps"], victim.values().sum::<u64>());
    let share = link(&run(&scenario), "s->t", "paused_s") / 5e-3;
    // While the packet waits for s->t, the link is paused for the same fraction of time as over the
    // whole run.
    let waits = (paused as f64) / (fct as f64);
    assert!((waits / share - 1.0).abs() < 0.2, "{waits} and {share}: {victim:?}");
    assert!(victim.get("flight_queue_idle_there_ps").is_none(), "{victim:?}");
}

#[test]
fn pauses_of_a_host_are_separate_from_its_nic_wait() {
    // As above, but `c` sends more than its switch admits, and is paused itself.
    let rows = [(0.0, A, X, ENDLESS), (0.0, B, X, ENDLESS), (1e-3, C, Y, 200_000)];
    let scenario = with(&two_switches(), json!({ "workload": flows(&rows) }));
    let breakdown = breakdowns(&scenario);
    let [victim] = &breakdown[..] else { panic!("one flow finishes: {breakdown:?}") };
    // The NIC takes 208 ns for each of the other packets, and the rest of the NIC wait is pauses;
    // the last pause outlasts the last packet.
    assert_eq!(victim["turn_sender_ps"], 199 * 208_000, "{victim:?}");
    let paused_s = victim["turn_paused_host_ps"] as f64 / 1e12;
    let share = paused_s / link(&run(&scenario), "c->s", "paused_s");
    assert!((0.7..1.0).contains(&share), "{share}: {victim:?}");
}

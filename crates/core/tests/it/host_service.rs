//! Flows of one host share its port: in order of arrival, or in turn with back-pressure; and windows that
//! do not limit a flow do not grow.

use crate::common::{count, flows, mean, run, run_with_all_engines, samples, with};
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// Time of a full packet of 1040 B at 10 Gb/s, in seconds.
const PACKET: f64 = 1040.0 * 8.0 / 10e9;

fn fair() -> Value {
    json!({ "host": { "service": "fair" } })
}

/// A transport without a handshake.
fn at_once(kind: &str) -> Value {
    json!({ "kind": kind, "reliability": { "handshake": false } })
}

/// One host sends two long flows, and every two milliseconds ten packets to a third host. All share the
/// link of the sending host only.
fn two_long_flows_and_small_ones(transport: &Value) -> Value {
    let mut rows = vec![(0.0, 0, 1, 100_000_000), (0.0, 0, 2, 100_000_000)];
    rows.extend((6..16).map(|i| (f64::from(i) * 0.002, 0, 3, 10_000)));
    json!({
        "time_limit": "34 ms",
        "topology": { "kind": "star", "hosts": 4 },
        "transport": transport,
        "workload": flows(&rows),
    })
}

/// FCTs of the small flows.
fn small_fcts(scenario: &Value) -> Vec<f64> {
    let results = run(scenario);
    let sizes = results.flows.size_bytes.iter().zip(&results.flows.fct_s);
    let fcts: Vec<f64> = sizes.filter(|(size, _)| **size == 10_000).map(|(_, fct)| *fct).collect();
    assert_eq!(fcts.len(), 10, "all small flows finish");
    fcts
}

#[test]
fn small_flow_takes_its_turns_between_long_flows_under_every_transport() {
    // Five turns of two packets, each behind at most the turns of the two others: 28 to 30 packets until
    // the last has left the host; 31 if the rate separates the packets of a turn, so that another one
    // comes between. TIMELY starts at a third of the rate: the last packet is handed over after 27 packets
    // and is the sixth in the queue. Then two links of 1 us and another transmission.
    let (least, most) = (26.0 * PACKET, 31.01 * PACKET);
    let rest = PACKET + 2e-6;
    for kind in ["dctcp", "swift", "cubic", "dcqcn", "timely", "vegas", "bbr3"] {
        let scenario = with(&two_long_flows_and_small_ones(&at_once(kind)), fair());
        for fct in small_fcts(&scenario) {
            let most = if kind == "timely" { 33.01 * PACKET } else { most };
            assert!((least..=most).contains(&(fct - rest)), "{kind}: {fct}");
        }
    }
    // In order of arrival the same flow waits behind the windows of DCTCP.
    let fifo = small_fcts(&two_long_flows_and_small_ones(&json!("dctcp")));
    assert!(mean(fifo) > 2.0 * (most + rest));
}

#[test]
fn short_flow_does_not_wait_behind_the_window_of_its_host() {
    // All links have 100 Mb/s, so a lone sender's port is the bottleneck, without a limit.
    let scenario = json!({
        "time_limit": "9 s",
        "topology": { "kind": "dumbbell", "senders": 1, "receivers": 1, "rate": "100 Mbps", "delay": "5 ms" },
        "queue": { "kind": "drop_tail", "capacity": "100 packets" },
        "workload": flows(&[(0.0, 0, 1, 90_000_000), (3.0, 0, 1, 10_000)]),
        "samples": { "interval": "100 ms", "flows": [0] },
    });
    let validated = json!({ "window_validation": true });
    for kind in ["cubic", "tcp", "vegas", "fast"] {
        let transport =
            json!({ "transport": { "kind": kind, "reliability": { "handshake": true } } });
        let results = run(&with(&with(&scenario, transport.clone()), fair()));
        let fct = |results: &Results| {
            let of_size = results.flows.size_bytes.iter().position(|size| *size == 10_000);
            of_size.map(|index| results.flows.fct_s[index])
        };
        // Handshake of 30 ms, 15 ms to the receiver, and 30 packets of 83.2 us at most.
        assert!(fct(&results).is_some_and(|fct| fct < 0.0485), "{kind}: {:?}", fct(&results));
        // The path and the turns hold some 365 packets.
        let validates = json!({ "transport": { "reliability": validated } });
        let results = run(&with(&with(&with(&scenario, transport), fair()), validates));
        let windows = samples(&results, "window_bytes flow 0", 0.0);
        let largest = windows.iter().copied().fold(0.0, f64::max);
        assert!(largest < 800e3, "{kind}: {largest}");
        assert!(fct(&results).is_some_and(|fct| fct < 0.0485), "{kind}");
    }
    let fifo = run(&with(&scenario, json!({ "transport": "cubic" })));
    assert!(fifo.flows.fct_s.iter().all(|fct| fct.is_nan() || *fct > 1.0));
}

/// Window of a flow after seven seconds with a receive window of 40 packets of 1000 B, in packets.
fn window_beside_a_receive_window(reliability: Value) -> f64 {
    let reliability = with(&json!({ "receive_window": 40 }), reliability);
    let results = run(&json!({
        "time_limit": "7 s",
        "topology": { "kind": "link", "rate": "20 Mbps", "delay": "50 ms" },
        "transport": { "kind": "tcp", "reliability": reliability },
        "workload": { "kind": "long_lived" },
        "samples": { "interval": "100 ms", "flows": [0] },
    }));
    *samples(&results, "window_bytes flow 0", 0.0).last().unwrap() / 1000.0
}

#[test]
fn a_window_grows_only_while_it_limits_the_flow() {
    // RFC 7661, RFC 9438 §5.8: slow start ends at twice the flight.
    let validated = window_beside_a_receive_window(json!({ "window_validation": true }));
    assert!((40.0..=80.0).contains(&validated), "{validated}");
    assert!(window_beside_a_receive_window(json!({})) > 1000.0);
}

#[test]
fn turns_are_nic_waits_in_the_breakdown() {
    // Two flows of four packets start together. The host serves two packets of the first, two of the
    // second, and again.
    let scenario = json!({
        "topology": { "kind": "star", "hosts": 3 },
        "transport": "dctcp",
        "workload": flows(&[(0.0, 0, 1, 4_000), (0.0, 0, 2, 4_000)]),
        "account": true,
    });
    let mut results = run(&with(&scenario, fair()));
    let ps = |packets: u64| packets * 832_000;
    let fct_ps = |last: u64| ps(last) + ps(1) + 2_000_000;
    let account = results.account.as_mut().unwrap();
    assert_eq!(account.fct_ps, [fct_ps(6), fct_ps(8)]);
    let components: Vec<_> = account
        .take_components()
        .filter(|(_, column)| column.iter().any(|part| *part > 0))
        .collect();
    let column = |name: &str| {
        let found = components.iter().find(|(component, _)| component == name);
        found.unwrap_or_else(|| panic!("{name}: {components:?}")).1.clone()
    };
    assert_eq!(column("turn_sender_ps"), [ps(2), ps(4)]);
    assert_eq!(column("flight_queue_others_host_ps"), [ps(2), ps(2)]);
    assert_eq!(column("flight_queue_own_host_ps"), [ps(1), ps(1)]);
    assert_eq!(components.len(), 5, "{components:?}");
}

#[test]
fn a_host_queue_with_priorities_does_not_pass_over_a_flow_between_turns() {
    // pFabric: the short flow has priority in the host as long as it has packets. Its window permits a
    // full link.
    let scenario = json!({
        "time_limit": "20 ms",
        "topology": { "kind": "star", "hosts": 3 },
        "transport": { "kind": "pfabric", "initial_window": 100, "max_window": 100 },
        "workload": flows(&[(0.0, 0, 1, 10_000_000), (0.001, 0, 2, 90_000)]),
    });
    for flow_limit in [2, 5] {
        let host = json!({ "host": { "service": "fair", "flow_limit": flow_limit } });
        let results = run(&with(&scenario, host));
        let short = results.flows.size_bytes.iter().position(|size| *size == 90_000).unwrap();
        let waited = results.flows.fct_s[short] - results.flows.ideal_fct_s[short];
        // It waits only for the packet in transmission.
        assert!(waited < 1.01 * PACKET, "{flow_limit}: {waited}");
    }
}

#[test]
fn acks_may_pass_data_in_the_ports_of_hosts_alone() {
    // Host 1 sends windows to host 0, and acknowledges a packet of host 0.
    let scenario = json!({
        "time_limit": "2 ms",
        "topology": { "kind": "star", "hosts": 3 },
        "transport": { "kind": "pfabric", "initial_window": 500, "max_window": 500 },
        "queue": { "kind": "drop_tail" },
        "host_queue": { "kind": "drop_tail" },
        "workload": flows(&[(0.0, 1, 0, 100_000_000), (0.001, 0, 1, 1_000)]),
    });
    let ack_delay = |host: Value| {
        let flows = run(&with(&scenario, json!({ "host": host }))).flows;
        flows.acked_s[1] - flows.fct_s[1]
    };
    let empty = 2e-6 + 2.0 * 40.0 * 8.0 / 10e9;
    let waited = ack_delay(json!({ "control_priority": true })) - empty;
    // It waits at most for a packet in transmission at the host, and for one at the switch.
    assert!((0.0..2.01 * PACKET).contains(&waited), "{waited}");
    let waited = ack_delay(json!({})) - empty;
    assert!(waited > 100.0 * PACKET, "{waited}");
}

#[test]
fn all_engines_agree_on_hosts_that_serve_flows_in_turn() {
    let switches = [
        json!({}),
        json!({ "shared_buffer": "60 KB", "pause": { "alpha": 0.125 } }),
        json!({ "control_priority": true }),
    ];
    for (kind, switch) in ["cubic", "dctcp", "swift", "dcqcn", "timely", "pfabric"]
        .into_iter()
        .zip(switches.iter().cycle())
    {
        let rows: Vec<_> = (0..24)
            .map(|i| (f64::from(i) * 3e-6, i % 3, 3 + i % 3, 3_000 + 9_000 * u64::from(i)))
            .collect();
        let scenario = json!({
            "time_limit": "1 s",
            "topology": { "kind": "leaf_spine", "leaves": 3, "hosts_per_leaf": 2, "spines": 2 },
            "transport": kind,
            "switch": switch,
            "host": { "service": "fair", "control_priority": switch["control_priority"].is_null() },
            "workload": flows(&rows),
        });
        run_with_all_engines(&scenario);
        assert_eq!(count(&run(&scenario), "finished"), 24, "{kind}");
    }
}

/// Hundreds of flows of one host: each transport ends them in about the time that the host's link needs.
#[test]
fn hundreds_of_flows_of_a_host_share_its_link_without_needless_packets() {
    // Data in packets and the most that the last flow takes, as a multiple of the link's time for the data.
    // The last five have an RTT of five packets, which holds few probes.
    for (kind, count_of_flows, packets, most) in [
        ("dctcp", 1000, 10, 1.02),
        ("uet", 500, 10, 1.02),
        ("fair_share", 300, 10, 1.3),
        ("rcp", 300, 10, 1.1),
        ("pcp", 300, 10, 1.2),
        ("pdq", 300, 1, 8.0),
        ("pdq", 300, 10, 1.6),
    ] {
        let rows: Vec<_> = (0..count_of_flows).map(|_| (0.0, 0, 1, packets * 1000)).collect();
        let reliability = json!({ "initial_rto": "1 ms", "min_rto": "1 ms" });
        let transport = match kind {
            "dctcp" => with(&at_once(kind), json!({ "reliability": reliability })),
            _ => json!(kind),
        };
        let scenario = json!({
            "time_limit": "1 s",
            "topology": { "kind": "star", "hosts": 3 },
            "host": { "service": "fair", "stamps": "wire" },
            "switch": { "control_priority": true },
            "transport": transport,
            "workload": flows(&rows),
        });
        let results = run(&scenario);
        let [lost, again] = [["drops", "trims"], ["retransmits", "timeouts"]]
            .map(|names| names.iter().map(|name| count(&results, name)).sum::<u64>());
        assert_eq!((count(&results, "unfinished"), lost, again), (0, 0, 0), "{kind}");
        let last = results.flows.fct_s.iter().copied().fold(0.0, f64::max);
        let link = f64::from(count_of_flows) * packets as f64 * PACKET;
        assert!(last < most * link + 20e-6, "{kind}: {} times", last / link);
    }
}

#[test]
fn nic_in_round_robin_serves_flows_by_number_and_paces_from_departures() {
    // Flows 0 and 1 start together at the line rate, and flow 2 in the first packet's transmission. The
    // host sends 0, 1, 2 and again; in order of arrival flow 0 would come before flow 2.
    let scenario = json!({
        "topology": { "kind": "star", "hosts": 4, "rate": "10 Gbps" },
        "transport": { "kind": "constant_rate", "rate": "10 Gbps" },
        "host": { "service": "round_robin" },
        "workload": flows(&[(0.0, 0, 1, 2_000), (0.0, 0, 2, 2_000), (0.000_000_9, 0, 3, 1_000)]),
    });
    run_with_all_engines(&scenario);
    let flows = run(&scenario).flows;
    let ends: Vec<f64> =
        flows.fct_s.iter().zip(&flows.start_s).map(|(fct, start)| fct + start).collect();
    // A packet of the second hop and two delays of 1 us follow.
    let packets = |end: f64| ((end - 2e-6) / PACKET - 1.0).round() as u32;
    assert_eq!(ends.into_iter().map(packets).collect::<Vec<_>>(), [4, 5, 3]);
}

#[test]
fn ports_of_hosts_with_a_tolerance_do_not_lock_out_late_flows() {
    // The packets of the first flow arrive at the instants at which the full queue has room again.
    let scenario = json!({
        "time_limit": "100 ms",
        "topology": { "kind": "dumbbell", "senders": 2, "receivers": 2, "rate": "10 Gbps", "delay": "10 us" },
        "environment": "lossy_datacentre",
        "transport": "tcp",
        "queue": { "kind": "drop_tail", "capacity": "500 KB" },
        "workload": flows(&[(0.0, 0, 2, 200_000_000), (0.005, 1, 3, 1_000_000)]),
    });
    let fct_of_late = |tolerance: f64| {
        let host = json!({ "host": { "rate_tolerance": tolerance } });
        let flows = run(&with(&scenario, host)).flows;
        let late = flows.start_s.iter().position(|start| *start > 0.0);
        late.map(|late| flows.fct_s[late]).filter(|fct| fct.is_finite())
    };
    assert_eq!(fct_of_late(0.0), None);
    let fct = fct_of_late(0.0001).unwrap();
    assert!(fct < 0.02, "{fct}");
}

#[test]
fn jitter_delays_packets_in_order_and_is_not_part_of_the_ideal() {
    let scenario = json!({
        "environment": "lossy_datacentre",
        "time_limit": "1 s",
        "topology": { "kind": "star", "hosts": 3, "rate": "10 Gbps", "delay": "1 us" },
        "transport": "dctcp",
        "workload": flows(&[(0.0, 0, 2, 1_000), (0.01, 0, 2, 300_000), (0.01, 1, 2, 300_000)]),
    });
    let jittered = with(&scenario, json!({ "host": { "jitter": "50 us" } }));
    run_with_all_engines(&jittered);
    let [exact, jittered] = [run(&scenario), run(&jittered)];
    assert_eq!(exact.flows.ideal_fct_s, jittered.flows.ideal_fct_s);
    let later = jittered.flows.fct_s[0] - exact.flows.fct_s[0];
    assert!((0.0..=50e-6).contains(&later), "{later}");
    assert_eq!(count(&jittered, "reordered"), 0);
}

#[test]
fn jitter_of_a_packet_time_makes_shares_in_a_drop_tail_queue_fair() {
    // RTTs of 40 and 42 ms at 20 Mb/s; a packet takes 0.6 ms.
    let jain = |jitter: &str| {
        let results = run(&json!({
            "environment": "internet",
            "time_limit": "100 s",
            "topology": {
                "kind": "dumbbell", "senders": 2, "receivers": 2, "rate": "1 Gbps", "delay": "1 ms",
                "longest_delay": "2 ms", "bottleneck_rate": "20 Mbps", "bottleneck_delay": "18 ms",
            },
            "host": { "jitter": jitter },
            "queue": { "kind": "drop_tail", "capacity": "105 KB" },
            "transport": "cubic",
            "workload": { "kind": "long_lived", "flows": 2, "jitter": "1 s" },
        }));
        let delivered: Vec<_> =
            results.flows.delivered_bytes.iter().map(|bytes| *bytes as f64).collect();
        let squares: f64 = delivered.iter().map(|bytes| bytes * bytes).sum();
        delivered.iter().sum::<f64>().powi(2) / (2.0 * squares)
    };
    let [phased, random] = ["0 s", "600 us"].map(jain);
    assert!(phased < 0.75 && random > 0.85, "{phased} {random}");
}

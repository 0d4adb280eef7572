//! Persistent connections: several flows over one sender, receiver and path.

use crate::accounts::{Breakdown, breakdowns, expected};
use crate::common::{assert_near, count, flows, link, run, try_run, try_run_in_partitions, with};
use serde_json::{Value, json};
use sojourn_core::base::schema::Parameter;
use sojourn_core::run::Results;
use sojourn_core::transport::controllers;

/// Calls of 500 B and 30 KB, one after the other, at a base RTT of 100 ms.
fn calls(connections: &Value, reliability: &Value) -> Value {
    json!({
        "topology": {
            "kind": "dumbbell", "senders": 1, "receivers": 1, "rate": "1 Gbps", "delay": "1 ms",
            "bottleneck_delay": "48 ms",
        },
        "transport": { "kind": "tcp", "reliability": reliability },
        "workload": {
            "kind": "rpc", "request": { "kind": "fixed", "size": "500 B" },
            "response": { "kind": "fixed", "size": "30 KB" },
            "pattern": { "outstanding": 1, "pairs": "opposite", "calls": 4, "connections": connections },
        },
        "time_limit": "100 s",
    })
}

/// Latencies of the calls, in milliseconds.
fn latencies_ms(results: &Results) -> Vec<f64> {
    let latencies = results.flows.latency_s.iter().filter(|latency| !latency.is_nan());
    latencies.map(|latency| latency * 1e3).collect()
}

#[test]
fn only_the_first_call_of_a_connection_has_a_handshake_and_slow_start() {
    let open = latencies_ms(&run(&calls(&json!(1), &json!({}))));
    let opened = latencies_ms(&run(&calls(&json!(1), &json!({ "handshake": false }))));
    let own = latencies_ms(&run(&calls(&json!("none"), &json!({}))));
    // The request takes half an RTT of 100 ms. 30 packets take three halves with an initial window of 10, and
    // half an RTT once the window has grown to 40. The handshake takes an RTT; without connections the
    // response has one of its own. All packets of a call take less than 1 ms to transmit.
    for (latencies, by_hand) in [
        (open, [300.0, 100.0, 100.0, 100.0]),
        (opened, [200.0, 100.0, 100.0, 100.0]),
        (own, [400.0; 4]),
    ] {
        for (latency, by_hand) in latencies.iter().zip(by_hand) {
            assert!((by_hand..by_hand + 1.0).contains(latency), "{latency} is not {by_hand}");
        }
    }
}

#[test]
fn writes_over_an_open_connection_take_the_time_of_the_link() {
    let results = run(&json!({
        "topology": {
            "kind": "dumbbell", "senders": 1, "receivers": 1, "rate": "100 Gbps", "delay": "33 us",
        },
        "environment": "lossy_datacentre",
        "transport": "dctcp",
        "workload": {
            "kind": "rpc", "request": { "kind": "fixed", "size": "1 MB" },
            "response": { "kind": "fixed", "size": "100 B" },
            "pattern": { "outstanding": 1, "calls": 20, "connections": 1 },
        },
        "time_limit": "1 s",
    }));
    let slowdowns: Vec<f64> = results.flows.slowdown.iter().copied().step_by(2).collect();
    let fct_us = results.flows.fct_s[38] * 1e6;
    // From ten packets the first write takes seven RTTs. After it the window exceeds a megabyte, and a write
    // takes half an RTT of 198 us and 691 packets of 1500 B, 83 us: 182 us.
    assert!(slowdowns[0] > 6.0, "{slowdowns:?}");
    assert!((181.0..184.0).contains(&fct_us), "{fct_us}");
    assert!(slowdowns[1..].iter().all(|slowdown| *slowdown < 1.001), "{slowdowns:?}");
}

/// Number of spines that carry data or ACKs from one leaf to the other.
fn spines(connections: &Value, routing: &str, calls: u32) -> usize {
    let results = run(&json!({
        "topology": { "kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 1, "spines": 4 },
        "transport": "dcqcn", "routing": routing,
        "workload": {
            "kind": "rpc", "request": { "kind": "fixed", "size": "64 KB" },
            "response": { "kind": "fixed", "size": "1 KB" },
            "pattern": { "outstanding": 1, "calls": calls, "connections": connections },
        },
        "time_limit": "1 s",
    }));
    let leaves = [0, 1].map(|leaf| {
        let carries =
            |spine: &usize| link(&results, &format!("leaf{leaf}->spine{spine}"), "bytes") > 0.0;
        (0..4).filter(carries).count()
    });
    leaves.into_iter().max().unwrap()
}

#[test]
fn all_packets_of_a_connection_take_one_path() {
    for routing in ["flow_hash", "ecmp"] {
        // Each of the two hosts calls the other, over a connection of its own.
        assert!(spines(&json!(1), routing, 40) <= 2, "{routing}");
        assert_eq!(spines(&json!(1), routing, 1), 1, "{routing}");
        assert_eq!(spines(&json!("none"), routing, 40), 4, "{routing}");
    }
}

/// Flows of 10 packets of 1000 B from host 0 to host 1 at 8 Mb/s, with these starts in milliseconds and
/// connections. A packet takes 1 ms, and 5 ms to the receiver.
fn flows_of_ten(rows: &[(u64, Value)], rest: &Value) -> Value {
    let flow = |(start, connection): &(u64, Value)| {
        json!({
            "source": 0, "target": 1, "size": "9600 B", "start": format!("{start} ms"),
            "connection": connection,
        })
    };
    let flows: Vec<Value> = rows.iter().map(flow).collect();
    let scenario = json!({
        "topology": { "kind": "link", "rate": "8 Mbps", "delay": "5 ms" },
        "packet": { "payload": "960 B", "header": "40 B", "ack": "40 B" },
        "transport": {
            "kind": "tcp", "window": { "initial": 100 },
            "reliability": { "handshake": false, "min_rto": "1 s", "initial_rto": "1 s" },
        },
        "queue": { "kind": "drop_tail", "capacity": "none" },
        "workload": { "kind": "flows", "flows": flows },
        "time_limit": "10 s",
    });
    with(&scenario, rest.clone())
}

fn fcts_ms(results: &Results) -> Vec<f64> {
    results.flows.fct_s.iter().map(|fct| (fct * 1e6).round() / 1e3).collect()
}

#[test]
fn flows_of_a_connection_follow_each_other_without_a_gap() {
    let one = json!(0);
    let rows = [(0, one.clone()), (0, one.clone()), (3, one.clone()), (100, one)];
    let results = run(&flows_of_ten(&rows, &json!({})));
    // Ten packets each: 10 + 5 ms, 20 + 5 ms, 30 + 5 ms less the 3 ms before its start; alone 10 + 5 ms.
    assert_eq!(fcts_ms(&results), [15.0, 25.0, 32.0, 15.0]);
    // The ACK of the last packet takes 5 ms and its transmission of 0.04 ms.
    let acked: Vec<f64> = results.flows.acked_s.iter().map(|it| (it * 1e5).round() / 1e2).collect();
    assert_eq!(acked, [20.04, 30.04, 37.04, 20.04]);
    // Another connection shares the link.
    let rows = [(0, json!(0)), (0, json!(7))];
    assert_eq!(count(&run(&flows_of_ten(&rows, &json!({}))), "flows"), 2);
}

#[test]
fn data_behind_a_loss_waits_at_the_receiver_until_the_retransmission() {
    // The first packet of the first flow is lost. The byte stream is received in order, so the second flow
    // completes at the retransmission too.
    let losses = json!({ "losses": { "name": "l.csv", "text": "flow,segment,time\n0,1,1\n" } });
    let rows = [(0, json!(0)), (0, json!(0))];
    let results = run(&flows_of_ten(&rows, &json!({ "topology": losses })));
    let [first, second] = fcts_ms(&results)[..] else { panic!() };
    assert!((first - second).abs() < 1e-6 && first > 25.0, "{first} {second}");
    assert_eq!(results.flows.retransmits.iter().sum::<u32>(), 1);
    // With connections of their own only the first flow waits.
    let rows = [(0, json!(0)), (0, json!(1))];
    let [first, second] = fcts_ms(&run(&flows_of_ten(&rows, &json!({ "topology": losses }))))[..]
    else {
        panic!()
    };
    assert!(second < first, "{first} {second}");
}

/// FCT breakdowns of these flows, of which chains of causes are kept too.
fn breakdowns_of_ten(starts_ms: &[u64], rest: &Value) -> Vec<Breakdown> {
    let rows: Vec<(u64, Value)> = starts_ms.iter().map(|start| (*start, json!(0))).collect();
    let chains: Vec<usize> = (0..rows.len()).collect();
    breakdowns(&with(&flows_of_ten(&rows, &json!({ "account_flows": chains })), rest.clone()))
}

/// Flight of a packet that has waited for others of its connection in the port of its host.
fn flight_behind(queue_own_ms: f64) -> Vec<(&'static str, f64)> {
    let (propagation, transmission) = (5e6, 1e6);
    let flight =
        [("flight_propagation", propagation), ("flight_transmission", transmission)].to_vec();
    if queue_own_ms > 0.0 {
        [flight, vec![("flight_queue_own_host", queue_own_ms * 1e6)]].concat()
    } else {
        flight
    }
}

#[test]
fn flows_of_a_connection_queue_behind_its_earlier_packets() {
    // The window permits all packets at once. The last flow finds an idle connection.
    let breakdown = breakdowns_of_ten(&[0, 0, 3, 100], &json!({}));
    let by_hand = [9.0, 19.0, 29.0 - 3.0, 9.0].map(|queue| expected(&flight_behind(queue)));
    assert_eq!(breakdown, by_hand);
}

#[test]
fn a_flow_waits_for_its_connection_while_earlier_flows_fill_the_window() {
    // The first flow fills the window of ten. Its ACKs arrive at 11.04, 12.04, … ms, and each permits two
    // packets (slow start): the last two of the second flow at 15.04 ms, when the port has sent four packets
    // of it, and the last one waits for five others.
    let window = json!({ "transport": { "window": { "initial": 10 } } });
    let breakdown = breakdowns_of_ten(&[0, 0], &window);
    let second = [vec![("connection_sender", 15.04e6)], flight_behind(5.0)].concat();
    assert_eq!(breakdown, [expected(&flight_behind(9.0)), expected(&second)]);
    // A third flow starts at 12 ms.
    let breakdown = breakdowns_of_ten(&[0, 0, 12], &window);
    assert_eq!(breakdown[..2], [expected(&flight_behind(9.0)), expected(&second)]);
    // ACKs at 16.04, 17.04, … ms permit two packets of the third flow each, the last at 20.04 ms.
    let third = [vec![("connection_sender", 8.04e6)], flight_behind(10.0)].concat();
    assert_eq!(breakdown[2], expected(&third));
}

#[test]
fn a_flow_waits_for_the_handshake_of_an_earlier_flow() {
    let handshake = json!({ "transport": { "reliability": { "handshake": true } } });
    // The handshake takes 2 x (5 + 0.04) ms.
    let handshake_parts = [("handshake_propagation", 10e6), ("handshake_transmission", 0.08e6)];
    let first = [&handshake_parts[..], &flight_behind(9.0)].concat();
    let second = [vec![("connection_sender", 7.08e6)], flight_behind(19.0)].concat();
    let breakdown = breakdowns_of_ten(&[0, 3], &handshake);
    assert_eq!(breakdown, [expected(&first), expected(&second)]);
}

#[test]
fn a_flow_waits_at_the_receiver_for_a_retransmission_of_an_earlier_flow() {
    let losses = json!({ "losses": { "name": "l.csv", "text": "flow,segment,time\n0,1,1\n" } });
    let breakdown = breakdowns_of_ten(&[0, 0], &json!({ "topology": losses }));
    // The third duplicate ACK is that of the fourth packet, at 4 + 5 + 5.04 ms. The retransmission follows
    // the 20 packets, at 20 ms, and arrives at 26 ms, 1 ms after the last packet of the second flow.
    let first = [vec![("recovery_gap_sender", 14.04e6)], flight_behind(5.96)].concat();
    let second = [flight_behind(19.0), vec![("connection_receiver", 1e6)]].concat();
    assert_eq!(breakdown, [expected(&first), expected(&second)]);
}

#[test]
fn a_flow_on_an_idle_connection_waits_for_the_window_of_the_restart() {
    // As below: the second flow sends 10, 20 and 6 packets, and the window is full twice.
    let scenario = with(&two_flows_with_a_pause("initial"), json!({ "account": true }));
    let mut account = run(&scenario).account.unwrap();
    assert_eq!(account.rounds[1], 2);
    let window = account.take_components().find(|(name, _)| name == "window_propagation_ps");
    assert_eq!(window.unwrap().1[1], 200_000_000_000);
}

#[test]
fn flows_of_a_connection_that_do_not_finish_have_the_data_received_in_order() {
    let rows = [(0, json!(0)), (0, json!(0)), (0, json!(0))];
    // Until 17.5 ms the receiver has 12 packets, and the sender has ACKs of six.
    let results = run(&flows_of_ten(&rows, &json!({ "time_limit": "17500 us" })));
    assert_eq!(results.flows.delivered_bytes, [9_600, 1_920, 0]);
    assert_eq!(results.flows.outcome, [0, 1, 1]);
    assert!((results.flows.fct_s[0] - 0.015).abs() < 1e-9 && results.flows.acked_s[0].is_nan());
    assert_eq!(results.summary["stuck"], json!([]));
}

/// Flows of 40 and 36 packets of one connection, which is idle between them.
fn two_flows_with_a_pause(idle_restart: &str) -> Value {
    json!({
        "topology": { "kind": "link", "rate": "10 Gbps", "delay": "50 ms" },
        "packet": { "payload": "960 B" },
        "transport": {
            "kind": "tcp", "reliability": { "min_rto": "200 ms", "idle_restart": idle_restart },
        },
        "workload": { "kind": "flows", "flows": [
            { "source": 0, "target": 1, "size": "38400 B", "connection": 0 },
            { "source": 0, "target": 1, "size": "34560 B", "connection": 0, "start": "900 ms" },
        ] },
        "time_limit": "10 s",
    })
}

#[test]
fn an_idle_connection_restarts_with_the_window_that_the_scenario_requests() {
    // 40 packets increase the window from 10 to 50. The connection is idle for more than two and less than
    // three RTOs of 200 ms, and then sends 36 packets, over an RTT of 100 ms and in no time: 36 at once; 12,
    // a quarter of 50, and 24 (slow start); 10, 20 and 6.
    let fct = |idle_restart: &str| run(&two_flows_with_a_pause(idle_restart)).flows.fct_s[1];
    for (idle_restart, by_hand) in [("none", 0.05), ("halving", 0.15), ("initial", 0.25)] {
        assert_near(fct(idle_restart), by_hand, 0.01, idle_restart);
    }
}

#[test]
fn a_connection_that_does_not_use_its_window_loses_half_of_the_rest_in_each_rto() {
    // A large flow, 55 flows of two packets at intervals below the RTO, and another large flow, which slow
    // start begins with about the initial window: six RTTs of 40 ms and the time of the link.
    let fct = |window_validation: bool| {
        let small = (0..55).map(|i| (500 + 100 * i, "2 KB"));
        let rows = std::iter::once((0, "1 MB")).chain(small).chain([(6100, "1 MB")]);
        let flows: Vec<Value> = rows
            .map(|(start_ms, size)| {
                json!({
                    "source": 0, "target": 1, "size": size, "start": format!("{start_ms} ms"),
                    "connection": 0,
                })
            })
            .collect();
        let scenario = json!({
            "environment": "internet",
            "topology": { "kind": "link", "rate": "1 Gbps", "delay": "20 ms" },
            "transport": { "kind": "cubic", "reliability": { "window_validation": window_validation } },
            "queue": { "kind": "drop_tail", "capacity": "5000 packets" },
            "workload": { "kind": "flows", "flows": flows },
            "time_limit": "20 s",
        });
        *run(&scenario).flows.fct_s.last().unwrap()
    };
    assert_near(fct(true), 0.26, 0.01, "validated");
    assert_near(fct(false), 0.0283, 0.01, "not validated");
}

#[test]
fn bbr_does_not_take_small_flows_of_a_connection_for_the_bandwidth_of_the_path() {
    let small = |i: u64| {
        json!({
            "source": 0, "target": 1, "size": "5 KB", "start": format!("{} ms", 50 * i),
            "connection": 0,
        })
    };
    let fct = |transport: &str, calls: u64| {
        let mut flows: Vec<Value> = (0..calls).map(small).collect();
        let mut large = small(calls + 1);
        large["size"] = json!("5 MB");
        flows.push(large);
        let results = run(&json!({
            "topology": { "kind": "link", "rate": "100 Mbps", "delay": "10 ms" },
            "transport": transport,
            "workload": { "kind": "flows", "flows": flows },
            "time_limit": "100 s",
        }));
        *results.flows.fct_s.last().unwrap()
    };
    for transport in ["bbr", "bbr3"] {
        let (alone, after) = (fct(transport, 0), fct(transport, 30));
        assert!(after < 1.2 * alone, "{transport}: {after} s after small flows, {alone} s alone");
    }
}

#[test]
fn flows_in_progress_are_counted_one_by_one() {
    let rows = [(0, json!(0)), (0, json!(0)), (0, json!(0)), (50, json!(0))];
    let sampled = json!({ "samples": { "interval": "10 ms" } });
    let results = run(&flows_of_ten(&rows, &sampled));
    let active = crate::common::samples(&results, "active_flows", 0.0);
    // Before the starts at 0 ms, then at 10, 20, … ms. The last ACKs arrive at 20.04, 30.04 and 40.04 ms.
    assert_eq!(active[..6], [0.0, 3.0, 3.0, 2.0, 1.0, 0.0]);
}

#[test]
fn all_engines_agree_on_connections_between_partitions() {
    let scenario = json!({
        "topology": { "kind": "fat_tree", "k": 4, "rate": "100 Gbps" },
        "transport": "dctcp",
        "workload": {
            "kind": "rpc", "request": { "kind": "fixed", "size": "20 KB" },
            "response": { "kind": "fixed", "size": "2 KB" },
            "pattern": { "outstanding": 3, "calls": 400, "connections": 2, "think": "5 us" },
        },
        "samples": { "interval": "10 us", "flows": [0, 1], "rtt_flows": [0, 1, 2] },
        "account": true, "account_flows": [5, 90, 301],
        "time_limit": "1 s",
    });
    let results_of = |engine: &str, parts| {
        let results = try_run_in_partitions(parts, &with(&scenario, json!({ "engine": engine })));
        let results = results.unwrap();
        let Results { flows, samples, account, chains, links, summary, .. } = &results;
        let shown = format!(
            "{flows:?} {samples:?} {account:?} {chains:?} {links:?} {} {}",
            summary["simulated_s"], summary["counts"]["packets"]
        );
        (shown, results.summary["engine"]["parts"].clone())
    };
    let (by_events, _) = results_of("events", [1, 1]);
    for parts in [[1, 1], [2, 2], [3, 2]] {
        let (in_windows, partitions) = results_of("windows", parts);
        assert!(in_windows == by_events, "{parts:?}");
        assert_eq!(partitions, json!(parts[0]));
    }
}

#[test]
fn every_transport_serves_connections_or_refuses_them() {
    let mut refused = Vec::new();
    for transport in controllers::Config::built_in() {
        let scenario = json!({
            "topology": { "kind": "star", "hosts": 3, "delay": "5 us" }, "transport": transport,
            "account": true, "account_flows": [0, 1, 2],
            "workload": with(
                &flows(&[(0.0, 0, 1, 50_000), (0.0, 0, 1, 500), (0.001, 0, 1, 90_000)]),
                json!({ "connections": 1 }),
            ),
            "time_limit": "10 s",
        });
        if controllers::Config::read(&json!(transport)).unwrap().needs_own_connection() {
            let message = format!(
                "transport: `{transport}` needs a connection for every flow: no `connections`"
            );
            assert_eq!(try_run(&scenario).unwrap_err(), message);
            refused.push(transport);
        } else {
            assert_eq!(count(&run(&scenario), "unfinished"), 0, "{transport}");
        }
    }
    let by_size_or_routers = [
        "d2tcp",
        "d3",
        "expresspass",
        "fair_share",
        "homa",
        "jump_start",
        "ndp",
        "pcp",
        "pdq",
        "pfabric",
        "phost",
        "pias",
        "quic",
        "quick_start",
        "rcp",
        "uet",
        "xcp",
    ];
    refused.sort_unstable();
    assert!(refused.iter().all(|name| by_size_or_routers.contains(name)), "{refused:?}");
}

#[test]
fn scenarios_that_connections_cannot_serve_are_refused() {
    let rows = [(0, json!(0)), (0, json!(0))];
    let scenario = flows_of_ten(&rows, &json!({}));
    let mut long_lived = scenario.clone();
    long_lived["workload"]["flows"][1]["size"] = json!("none");
    let mut classes = scenario.clone();
    classes["workload"]["flows"][1]["class"] = json!("other");
    let storage = json!({
        "kind": "storage", "blocks": { "kind": "fixed", "size": "1 KB" },
        "pattern": { "load": 0.1, "connections": 0 },
    });
    let cannot_share = "workload: `other` and `flows` share a connection, and must have the same \
                        transport and traffic class";
    for (scenario, message) in [
        (long_lived, "workload.flows[1].connection: needs a flow with a `size`"),
        (with(&classes, json!({ "transports": { "other": "dctcp" } })), cannot_share),
        (with(&classes, json!({ "traffic_classes": { "other": 3 } })), cannot_share),
        (
            with(&with(&scenario, json!({ "workload": null })), json!({ "workload": storage })),
            "workload.pattern.connections: must be above zero, not 0",
        ),
    ] {
        assert_eq!(try_run(&scenario).err().as_deref(), Some(message));
    }
    assert!(try_run(&classes).is_ok());
}

#[test]
fn windows_of_nics_count_the_bytes_of_small_messages() {
    // 20,000 calls over one connection, 2000 at a time: a window of 7.5 KB for requests of 64 B.
    for transport in ["hpcc", "powertcp", "theta_powertcp"] {
        let results = run(&json!({
            "topology": {
                "kind": "dumbbell", "senders": 1, "receivers": 1, "rate": "10 Gbps", "delay": "1 us",
            },
            "transport": transport, "time_limit": "1 s",
            "workload": {
                "kind": "rpc", "request": { "kind": "fixed", "size": "64 B" },
                "response": { "kind": "fixed", "size": "1 B" },
                "pattern": {
                    "outstanding": 2000, "pairs": "opposite", "calls": 20_000, "connections": 1,
                },
            },
        }));
        let utilisation = |link: &Value| link["utilisation"].as_f64().unwrap();
        let busiest = results.links.show().iter().map(utilisation).fold(0.0, f64::max);
        assert!(busiest > 0.9, "{transport}: {busiest}");
    }
}

//! Router-assigned fair shares in whole runs: against max-min fairness, processor sharing, and the
//! bound on the queue of new flows.

use crate::common::{assert_near, count, flows, link, mean, run, samples, try_run, with};
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// Size of a packet in bytes, headers included, and its transmission time on a link of 40 Mb/s.
const PACKET: f64 = 1250.0;
const PACKET_TIME: f64 = PACKET * 8.0 / 40e6;

/// The link of [pcp06]: 40 Mb/s with a mean RTT of 25 ms and a buffer of one BDP.
fn network() -> Value {
    json!({
        "topology": {
            "kind": "dumbbell", "senders": 10, "receivers": 10, "rate": "1 Gbps", "delay": "5 ms",
            "bottleneck_rate": "40 Mbps", "bottleneck_delay": "2.5 ms",
        },
        "packet": { "payload": "1210 B", "header": "40 B", "ack": "40 B" },
        "transport": "fair_share",
        "time_limit": "1000 s",
    })
}

/// The network with `change`, and long-lived flows between these pairs of hosts.
fn long_flows(pairs: &[(u32, u32)], change: Value) -> Value {
    let flow = |pair: &(u32, u32)| json!({ "source": pair.0, "target": pair.1 });
    let flows = json!({
        "workload": { "kind": "flows", "flows": pairs.iter().map(flow).collect::<Vec<_>>() },
    });
    with(&with(&network(), flows), change)
}

/// Bytes that each flow has delivered between two times in seconds.
fn delivered(results: &Results, from: f64, to: f64) -> Vec<f64> {
    let of_flow = |flow: usize| {
        let bytes = samples(results, &format!("delivered_bytes flow {flow}"), from - 0.005);
        bytes[((to - from) * 100.0).round() as usize] - bytes[0]
    };
    (0..results.flows.flow.len()).map(of_flow).collect()
}

#[test]
fn shares_are_max_min_fair_on_parking_lots() {
    let lots = [
        (vec![(0, 4), (1, 5), (2, 6), (3, 7)], "1 Gbps"),
        // As in `fairness.rs`: C / 4, 3 C / 8 and 3 C / 4.
        (vec![(0, 4), (1, 5), (1, 5), (2, 6), (3, 7), (3, 7), (3, 7)], "1 Gbps"),
        (vec![(0, 4), (0, 6), (1, 5), (1, 7), (2, 6), (2, 7), (3, 7), (3, 7)], "1 Gbps"),
        // The access link is the bottleneck of some flows.
        (vec![(0, 4), (0, 4), (0, 5), (1, 5), (1, 6), (2, 6), (3, 7)], "50 Mbps"),
    ];
    for feedback in ["round_trip", "every_ack"] {
        for (pairs, host_rate) in &lots {
            let mut scenario = long_flows(
                pairs,
                json!({
                    "transport": { "kind": "fair_share", "feedback": feedback },
                    "time_limit": "4 s",
                    "samples": {
                        "interval": "10 ms", "flows": (0..pairs.len()).collect::<Vec<_>>(),
                    },
                }),
            );
            scenario["topology"] = json!({
                "kind": "parking_lot", "rate": "40 Mbps", "delay": "2 ms",
                "access_rate": host_rate, "access_delay": "1 ms",
            });
            let bytes = delivered(&run(&scenario), 1.0, 3.9);
            let ideal = run(&with(&scenario, json!({ "model": "max_min", "samples": null })));
            for (flow, (got, ideal)) in bytes.iter().zip(&ideal.flows.delivered_bytes).enumerate() {
                // The flow delivers for four seconds minus half an RTT.
                let rate = *ideal as f64 / 3.994;
                assert_near(got / 2.9, rate, 0.01, &format!("{feedback}, {pairs:?}: flow {flow}"));
            }
        }
    }
}

#[test]
fn single_flow_takes_a_handshake_half_an_rtt_and_its_transmission() {
    for (packets, delay_ms) in [(1, 5), (20, 5), (200, 5), (2000, 5), (200, 50)] {
        let results = run(&with(
            &network(),
            json!({
                "topology": { "delay": format!("{delay_ms} ms") },
                "workload": flows(&[(0.0, 0, 10, packets * 1210)]),
            }),
        ));
        let round_trip = 2.0 * (2.0 * f64::from(delay_ms) * 1e-3 + 2.5e-3);
        let by_hand = 1.5 * round_trip + packets as f64 * PACKET_TIME;
        let late = (results.flows.fct_s[0] - by_hand) / PACKET_TIME;
        // Shares are encoded with an error of 0.09 %.
        let most = 1.0 + 0.001 * packets as f64;
        assert!((0.0..most).contains(&late), "{packets} packets: {late} packet times late");
        assert!(link(&results, "left->right", "queue_max_bytes") < 3.0 * PACKET);
    }
}

#[test]
fn new_flow_queues_at_most_its_share_of_one_bdp() {
    let round_trip_packets = 0.025 / PACKET_TIME;
    for flows in 1..=6_u32 {
        // At several phases of the other flows' RTTs.
        for phase in 0..5_u32 {
            let start = |i| if i == flows { 500 + 5 * phase } else { 7 * i };
            let flow =
                |i| json!({ "source": i, "target": 10 + i, "start": format!("{} ms", start(i)) });
            let scenario = with(
                &network(),
                json!({
                    "workload": {
                        "kind": "flows", "flows": (0..=flows).map(flow).collect::<Vec<_>>(),
                    },
                    "time_limit": "800 ms",
                    "samples": { "interval": "250 us", "queues": ["left->right"] },
                }),
            );
            let queue = samples(&run(&scenario), "queue_bytes left->right", 0.4);
            let most = queue.iter().copied().fold(0.0, f64::max) / PACKET;
            let bound = round_trip_packets / f64::from(flows + 1) + 2.0 * f64::from(flows);
            assert!(most <= bound, "{flows} flows, phase {phase}: {most} packets, not {bound}");
            // In steady state only packets that collide wait.
            let end = queue[queue.len() - 200..].iter().copied().fold(0.0, f64::max) / PACKET;
            assert!(end <= f64::from(2 * flows), "{flows} flows, phase {phase}: {end} packets");
        }
    }
}

/// Poisson arrivals of flows of 200 packets between ten pairs of hosts.
fn poisson(load: f64, seed: u64, change: Value) -> Value {
    let workload = json!({
        "kind": "poisson", "load": load, "flows": 2000, "pairs": "opposite",
        "sizes": { "kind": "fixed", "size": "242 KB" },
    });
    with(&with(&network(), json!({ "seed": seed, "workload": workload })), change)
}

#[test]
fn no_losses_with_a_buffer_of_one_bdp() {
    for load in [0.6, 0.9] {
        for seed in 1..=3 {
            let buffer = json!({ "queue": { "kind": "fair_queueing", "capacity": "100 packets" } });
            let results = run(&poisson(load, seed, buffer));
            assert_eq!(count(&results, "drops"), 0, "load {load}");
            let most = link(&results, "left->right", "queue_max_bytes") / PACKET;
            assert!(most < 80.0, "load {load}: {most} packets");
        }
    }
}

#[test]
fn fcts_under_poisson_load_match_processor_sharing_plus_rtts() {
    // RTTs that are short compared with the FCTs, and the paper's RTTs. In both cases the handshake
    // is not part of the ideal FCT.
    for (delays, round_trip, tolerance) in
        [(["500 us", "250 us"], 2.5e-3, 0.03), (["5 ms", "2.5 ms"], 25e-3, 0.14)]
    {
        for seed in 1..=3 {
            let [delay, bottleneck_delay] = delays;
            let scenario = poisson(
                0.6,
                seed,
                json!({ "topology": { "delay": delay, "bottleneck_delay": bottleneck_delay } }),
            );
            let of = |results: Results| mean(results.flows.fct_s.iter().copied());
            let ideal = of(run(&with(&scenario, json!({ "model": "processor_sharing" }))));
            let expected = ideal + round_trip;
            let found = of(run(&scenario));
            assert_near(found, expected, tolerance, &format!("{delay}, seed {seed}"));
        }
    }
}

#[test]
fn finished_flow_releases_its_share() {
    let flows = json!([
        { "source": 0, "target": 10 },
        { "source": 1, "target": 11, "stop": "1 s" },
    ]);
    let results = run(&with(
        &network(),
        json!({
            "workload": { "kind": "flows", "flows": flows },
            "samples": { "interval": "10 ms", "flows": [0] },
            "time_limit": "1.1 s",
        }),
    ));
    let rates = samples(&results, "rate_bps flow 0", 0.0);
    assert_near(rates[95], 20e6, 0.002, "while there are two");
    // The flow stops, its last ACKs arrive, it sends its FIN, and the other flow receives its new
    // share.
    assert_near(rates[108], 40e6, 0.002, "80 ms later");
}

#[test]
fn invalid_parameters_are_rejected() {
    let error = |change: Value| {
        let base = with(&network(), json!({ "workload": flows(&[(0.0, 0, 10, 1000)]) }));
        try_run(&with(&base, change)).unwrap_err()
    };
    let transport =
        |change: Value| json!({ "transport": with(&json!({ "kind": "fair_share" }), change) });
    insta::assert_snapshot!(
        [
            error(transport(json!({ "feedback": "never" }))),
            error(transport(json!({ "tolerated": -1 }))),
            error(transport(json!({ "farewell": -0.5 }))),
            error(transport(json!({ "reliability": { "delayed_ack": "40 ms" } }))),
            error(transport(json!({ "reliability": { "sack_compression": "1 ms" } }))),
            error(json!({ "router": { "kind": "fair_share", "target_utilisation": 1.5 } })),
            error(json!({ "router": { "kind": "fair_share", "forget_after": "0 s" } })),
            error(json!({ "router": "rcp" })),
            error(json!({ "routing": "spray_random" })),
        ]
        .join("\n")
    );
}

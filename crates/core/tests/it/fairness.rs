//! Fair queueing and CoDel in whole runs, against theory for shares, delays and drops.

use std::fmt::Write;

use crate::common::{assert_near, count, link, mean, run, samples, with};
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// Every fair queueing discipline. With these parameters no two flows share a hash bucket, and
/// CoDel does not drop.
const FAIR: [&str; 5] = ["fair_queueing", "drr", "round_robin", "sfq", "fq_codel"];

fn fair(kind: &str) -> Value {
    match kind {
        "sfq" => json!({ "kind": kind, "buckets": 1_000_000 }),
        "fq_codel" => json!({
            "kind": kind, "queues": "none", "capacity": "none",
            "law": { "target": "100 s", "interval": "1000 s" },
        }),
        _ => json!({ "kind": kind }),
    }
}

/// A transport that always keeps its window full and does not take delay for loss.
fn greedy(window: &str) -> Value {
    json!({
        "kind": "constant_rate", "window": window, "reliability": { "fixed_rto": "1000 s" },
    })
}

fn delivered(results: &Results) -> Vec<f64> {
    results.flows.delivered_bytes.iter().map(|bytes| *bytes as f64).collect()
}

// Shares.

#[test]
fn flows_of_hpcc_are_fair_where_the_bandwidth_delay_product_is_a_few_packets() {
    // Of seven packets, the increase of its authors, 0.05 %, is 4 B per RTT.
    let flow = |source| json!({ "source": source, "target": 4, "size": "5 MB" });
    let results = run(&json!({
        "environment": "lossless_datacentre",
        "topology": { "kind": "star", "hosts": 5, "rate": "10 Gbps" },
        "transport": "hpcc",
        "workload": { "kind": "flows", "flows": [flow(0), flow(1), flow(2), flow(3)] },
    }));
    let fcts = &results.flows.fct_s;
    let [least, most] = [f64::min, f64::max].map(|of| fcts.iter().copied().reduce(of).unwrap());
    assert!(least > 0.85 * most, "{fcts:?}");
}

#[test]
fn shares_are_max_min_fair_for_any_demand() {
    // Of 5 Gb/s, 0.5 and 1 Gb/s are less than an equal share; the other flows divide the rest.
    let rates = ["500 Mbps", "1 Gbps", "3 Gbps", "10 Gbps"];
    let flow = |(i, rate)| json!({ "source": i, "target": 4 + i, "initial_rate": rate });
    let flows: Vec<Value> = rates.iter().enumerate().map(flow).collect();
    for kind in FAIR {
        let results = run(&json!({
            "topology": {
                "kind": "dumbbell", "senders": 4, "receivers": 4, "bottleneck_rate": "5 Gbps",
            },
            "queue": fair(kind),
            "transport": greedy("200 KB"),
            "workload": { "kind": "flows", "flows": flows },
            "time_limit": "100 ms",
        }));
        for (got, share) in delivered(&results).into_iter().zip([0.5, 1.0, 1.75, 1.75]) {
            // 1000 of 1040 B are payload.
            let expected = share * 1e9 / 8.0 * 0.1 / 1.04;
            assert_near(got, expected, 0.01, &format!("{kind}, share of {share} Gb/s"));
        }
        assert_near(link(&results, "left->right", "utilisation"), 1.0, 1e-3, kind);
    }
}

#[test]
fn weights_divide_the_remaining_capacity() {
    // Of 6 Gb/s, the third flow demands 0.5 of the 2 that its weight allows; the others divide the
    // rest as 1 to 4 to 0.5, whatever their packet sizes, and slots are reused by flows of other
    // classes.
    let weights = json!({ "silver": 1, "gold": 4, "lead": 0.5 });
    let rates = ["10 Gbps", "10 Gbps", "500 Mbps", "10 Gbps"];
    let classes = ["silver", "gold", "plain", "lead"];
    let flow = |i: usize, start: &str, rest: Value| {
        let base = json!({ "source": i, "target": 4 + i, "start": start });
        with(&base, rest)
    };
    let mut flows: Vec<Value> = (0..4)
        .map(|i| flow(i, "10 ms", json!({ "initial_rate": rates[i], "class": classes[i] })))
        .collect();
    flows.extend((0..4).map(|i| {
        flow(
            i,
            "0 s",
            json!({ "size": "10 KB", "class": classes[3 - i], "initial_rate": rates[i] }),
        )
    }));
    let results = run(&json!({
        "topology": {
            "kind": "dumbbell", "senders": 4, "receivers": 4, "bottleneck_rate": "6 Gbps",
        },
        "queue": { "kind": "fair_queueing", "weights": weights },
        "transport": greedy("1 MB"),
        "workload": { "kind": "flows", "flows": flows },
        "time_limit": "110 ms",
    }));
    for (got, share) in delivered(&results)[4..].iter().zip([1.0, 4.0, 0.5, 0.5]) {
        let expected = share * 1e9 / 8.0 * 0.1 / 1.04;
        assert_near(*got, expected, 0.01, &format!("share of {share} Gb/s"));
    }
}

#[test]
fn shares_do_not_depend_on_the_rtt() {
    // With drop-tail and equal windows, the flow with the tenfold RTT gets less.
    let mut graph = "from,to,rate,delay\n".to_owned();
    for (i, delay) in [10, 30, 100, 300].into_iter().enumerate() {
        writeln!(graph, "source{i},s,10 Gbps,{delay} us").unwrap();
    }
    graph += "s,t,4 Gbps,1 us\n";
    for i in 0..4 {
        writeln!(graph, "t,target{i},10 Gbps,1 us").unwrap();
    }
    let flow = |i| json!({ "source": i, "target": 4 + i });
    let shares = |queue: Value| {
        let results = run(&json!({
            "topology": { "kind": "graph", "file": { "name": "graph.csv", "text": graph } },
            "queue": queue,
            "transport": {
                "kind": "tcp", "window": { "initial": 250, "max": 250 },
                "reliability": { "fixed_rto": "1000 s", "handshake": false },
            },
            "workload": { "kind": "flows", "flows": (0..4).map(flow).collect::<Vec<_>>() },
            "time_limit": "100 ms",
        }));
        delivered(&results).into_iter().map(|got| got * 8.0 * 1.04 / 0.1 / 1e9).collect::<Vec<_>>()
    };
    for kind in FAIR {
        for share in shares(fair(kind)) {
            assert_near(share, 1.0, 0.01, kind);
        }
    }
    let unfair = shares(json!("drop_tail"));
    assert!(unfair[3] < 0.9 * unfair[0], "{unfair:?}");
}

#[test]
fn parking_lot_is_max_min_fair() {
    // The last link carries four flows and has the smallest share: C / 4 for the long flow leaves 3
    // C / 8 for each of two flows on the first link, and 3 C / 4 for the flow on the second.
    let hosts = [(0, 4), (1, 5), (1, 5), (2, 6), (3, 7), (3, 7), (3, 7)];
    let flow = |(source, target)| json!({ "source": source, "target": target });
    let base = json!({
        "topology": { "kind": "parking_lot", "bottlenecks": 3, "rate": "10 Gbps" },
        "transport": greedy("100 KB"),
        "workload": { "kind": "flows", "flows": hosts.map(flow) },
        "time_limit": "100 ms",
    });
    let ideal = delivered(&run(&with(&base, json!({ "model": "max_min" }))));
    for (got, share) in ideal.iter().zip([2.0, 3.0, 3.0, 6.0, 2.0, 2.0, 2.0]) {
        assert_near(*got, share / 8.0 * 10e9 / 8.0 * 0.1 / 1.04, 0.001, "the ideal");
    }
    for kind in FAIR {
        let shares = delivered(&run(&with(&base, json!({ "queue": fair(kind) }))));
        for (got, ideal) in shares.iter().zip(&ideal) {
            assert_near(*got, *ideal, 0.01, kind);
        }
    }
}

#[test]
fn flow_that_overflows_a_small_buffer_drops_its_own_packets() {
    // A flow at line rate that ignores losses, and a flow at a quarter of the bottleneck rate.
    let flow =
        |source, rate| json!({ "source": source, "target": 2 + source, "initial_rate": rate });
    for kind in FAIR {
        let mut queue = fair(kind);
        queue["capacity"] = json!("20 packets");
        let results = run(&json!({
            "topology": {
                "kind": "dumbbell", "senders": 2, "receivers": 2, "bottleneck_rate": "1 Gbps",
            },
            "queue": queue,
            "transport": "constant_rate",
            "workload": {
                "kind": "flows", "flows": [flow(0, "10 Gbps"), flow(1, "250 Mbps")],
            },
            "time_limit": "50 ms",
        }));
        assert!(count(&results, "drops") > 10_000, "{kind}");
        assert_eq!(results.flows.retransmits[1], 0, "{kind}");
        assert_near(delivered(&results)[1], 0.25e9 / 8.0 * 0.05 / 1.04, 0.01, kind);
    }
}

#[test]
fn flows_in_one_sfq_bucket_share_one_share() {
    // With three flows in two buckets, either two share a bucket and get a quarter each, or all
    // three share one, with probability 1/4.
    let is_together = |seed: u64| {
        let results = run(&json!({
            "seed": seed,
            "topology": {
                "kind": "dumbbell", "senders": 3, "receivers": 3, "bottleneck_rate": "1 Gbps",
            },
            "queue": { "kind": "sfq", "buckets": 2 },
            "transport": greedy("10 KB"),
            "workload": "long_lived",
            "time_limit": "10 ms",
        }));
        let mut shares = delivered(&results);
        let all: f64 = shares.iter().sum();
        shares.sort_by(f64::total_cmp);
        let is_together = shares[2] < 0.4 * all;
        let expected = if is_together { [1.0 / 3.0; 3] } else { [0.25, 0.25, 0.5] };
        for (got, share) in shares.into_iter().zip(expected) {
            assert_near(got / all, share, 0.03, &format!("seed {seed}"));
        }
        is_together
    };
    let together = (1..=100).filter(|seed| is_together(*seed)).count();
    // Within three standard deviations of 25; the standard deviation is 4.3.
    assert!((12..=38).contains(&together), "{together}");
}

// Delays.

/// Waiting times of single packets at a bottleneck of 1 Gb/s with eight greedy flows, in
/// transmission times of 8.32 us.
fn waiting_times(queue: &Value) -> Vec<f64> {
    let greedy_flow = |i| json!({ "source": i, "target": 9 + i });
    let single_packet = |i: u64| {
        json!({
            "source": 8, "target": 17, "size": "1000 B", "start": format!("{} ns", 1_000_000 + 301_700 * i),
        })
    };
    let flows: Vec<Value> = (0..8).map(greedy_flow).chain((0..100).map(single_packet)).collect();
    let results = run(&json!({
        "topology": {
            "kind": "dumbbell", "senders": 9, "receivers": 9, "bottleneck_rate": "1 Gbps",
        },
        "queue": queue,
        "transport": greedy("50 KB"),
        "workload": { "kind": "flows", "flows": flows },
        "time_limit": "40 ms",
    }));
    assert_eq!(count(&results, "finished"), 100);
    let columns = &results.flows;
    let wait = |i: usize| (columns.fct_s[i] - columns.ideal_fct_s[i]) * 1e6 / 8.32;
    (0..columns.flow.len()).filter(|i| columns.fct_s[*i] > 0.0).map(wait).collect()
}

#[test]
fn sparse_flow_waits_for_at_most_one_packet_per_flow() {
    let most = |kind: &str| waiting_times(&fair(kind)).into_iter().fold(0.0, f64::max);
    // One packet of each of eight flows, and the rest of the packet in transmission.
    assert!((1.0..=9.0).contains(&most("fair_queueing")), "{}", most("fair_queueing"));
    // The quantum is 1514 B, so a flow sends at most two packets of 1040 B per round.
    for kind in ["drr", "sfq"] {
        assert!((4.0..=17.0).contains(&most(kind)), "{kind}: {}", most(kind));
    }
    assert!(most("fq_codel") <= 1.0, "only the one being sent: {}", most("fq_codel"));
    // FIFO: behind eight windows of 50 packets.
    let least = waiting_times(&json!("drop_tail")).into_iter().fold(f64::INFINITY, f64::min);
    assert!(least > 300.0, "{least}");
}

#[test]
fn slowdowns_under_fair_queueing_match_processor_sharing() {
    // Each flow is in the queue as soon as it starts, because it is sent at once over a link of two
    // hundred times the rate: the discipline alone decides the service order, which matches
    // processor sharing. A transport limited by its window or rate would measure itself.
    let load = 0.6;
    let base = json!({
        "topology": {
            "kind": "dumbbell", "rate": "200 Gbps", "delay": "0 ns", "bottleneck_rate": "1 Gbps",
        },
        "packet": { "header": "0 B" },
        "transport": { "kind": "constant_rate", "reliability": { "fixed_rto": "1000 s" } },
        "workload": {
            "kind": "poisson", "load": load, "flows": 12_000,
            "sizes": { "kind": "exponential", "mean": "60 KB" },
        },
        "time_limit": "1000 s",
    });
    // Slowdown per quartile of flow size: FCT divided by the transmission time on the link.
    let of = |change: Value| {
        let columns = run(&with(&base, change)).flows;
        let quarter = |bytes: u64| {
            let share = 1.0 - (-(bytes as f64) / 60e3_f64).exp();
            ((4.0 * share) as usize).min(3)
        };
        [0, 1, 2, 3].map(|class| {
            let sizes = columns.size_bytes.iter().zip(&columns.fct_s);
            let in_class = sizes.filter(|(bytes, _)| quarter(**bytes) == class);
            let (alone, taken) = in_class.fold((0.0, 0.0), |(alone, taken), (bytes, fct)| {
                (alone + *bytes as f64 * 8e-9, taken + fct)
            });
            taken / alone
        })
    };
    let ideal = of(json!({ "model": "processor_sharing" }));
    for kind in FAIR {
        let slowdowns = of(json!({ "queue": fair(kind) }));
        // The smallest flows have only a few packets, and packets are not divisible.
        for ((slowdown, ideal), tolerance) in
            slowdowns.iter().zip(ideal).zip([0.1, 0.03, 0.02, 0.02])
        {
            assert_near(*slowdown, ideal, tolerance, kind);
        }
        assert_near(mean(slowdowns[1..].iter().copied()), 1.0 / (1.0 - load), 0.05, kind);
    }
}

// CoDel.

/// TCP on one link with CoDel.
fn codel_link(law: &Value, flows: u32) -> Value {
    json!({
        "topology": { "kind": "link", "rate": "50 Mbps", "delay": "25 ms" },
        "packet": { "payload": "1460 B", "header": "40 B", "ack": "40 B" },
        "queue": { "kind": "codel", "law": law },
        "transport": { "kind": "tcp", "ecn": law["ecn"] == true },
        "workload": { "kind": "long_lived", "flows": flows, "stagger": "50 ms" },
        "time_limit": "40 s",
        "samples": { "interval": "5 ms", "queues": ["left->right"] },
    })
}

#[test]
fn codel_holds_the_tcp_queue_near_its_target() {
    // An unlimited drop-tail queue would hold whatever the windows grow to.
    for (flows, target_ms, ecn) in [(8, 5, false), (8, 5, true), (8, 20, false), (30, 20, true)] {
        let law = json!({ "target": format!("{target_ms} ms"), "ecn": ecn });
        let results = run(&codel_link(&law, flows));
        let bytes = mean(samples(&results, "queue_bytes left->right", 10.0));
        let standing = bytes * 8.0 / 50e6 * 1e3 / f64::from(target_ms);
        let utilisation = link(&results, "left->right", "utilisation");
        assert!((0.5..1.6).contains(&standing), "{flows} {target_ms} ms: {standing} of target");
        assert!(utilisation > 0.9, "{utilisation}");
        let (marks, drops) = (count(&results, "marks"), count(&results, "drops"));
        // Retransmissions must not be ECN-capable (RFC 3168 §6.1.5).
        assert!(if ecn { drops < marks / 10 } else { marks == 0 }, "{marks} marks, {drops} drops");
    }
}

#[test]
fn codel_drops_unresponsive_traffic_at_the_rate_of_its_control_law() {
    // Twice the link rate: packets wait 5 ms from the tenth packet on, and the first is dropped 100
    // ms later. Drop k is followed by the next after 100 ms / sqrt(k), and the sum of 1 / sqrt(k)
    // up to n is 2 sqrt(n) - 1.46.
    let mut scenario = codel_link(&json!({}), 1);
    scenario["topology"] = json!({
        "kind": "dumbbell", "senders": 1, "receivers": 1, "bottleneck_rate": "50 Mbps",
    });
    scenario["transport"] = json!({ "kind": "constant_rate", "rate": "100 Mbps" });
    scenario["time_limit"] = json!("3 s");
    let results = run(&scenario);
    let intervals = (3.0 - 0.11) / 0.1;
    let expected = f64::midpoint(intervals, 1.46).powi(2);
    let drops = count(&results, "drops") as f64;
    assert!((drops - expected).abs() < 3.0, "{drops} {expected}");
}

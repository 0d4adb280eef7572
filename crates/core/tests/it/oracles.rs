//! The simulator against closed forms: single flows, single queues, ideals, and scaling.

use crate::common::{
    as_in_papers, assert_estimates, assert_near, count, deadlines, flows, link, mean, run, samples,
    with,
};
use serde_json::{Value, json};
use sojourn_core::base::schema::Parameter;
use sojourn_core::base::units::{Duration, Rate};
use sojourn_core::run::Results;
use sojourn_core::run::scenario::Scenario;
use sojourn_core::topology;
use sojourn_core::transport::controllers;

// Lone flows.

/// Every transport that sends a single flow of up to 100 packets at line rate from its first packet
/// on.
fn at_line_rate() -> Vec<Value> {
    let start = |name: &'static str| match name {
        "constant_rate" | "dcqcn" => vec![json!({ "kind": name })],
        "timely" | "patched_timely" => ["per_packet", "per_burst"]
            .map(|pacing| json!({ "kind": name, "segments": { "pacing": pacing } }))
            .to_vec(),
        "dctcp" => vec![json!({ "kind": name, "initial_window": 101 })],
        "d2tcp" | "pias" => vec![json!({ "kind": name, "dctcp": { "initial_window": 101 } })],
        "swift" => vec![json!({ "kind": name, "initial_cwnd": 101 })],
        "fast" => vec![
            json!({ "kind": name, "initial_window": 101 }),
            json!({ "kind": name, "segments": {} }),
            json!({ "kind": name, "segments": { "pacing": "per_burst" } }),
        ],
        "tcp" | "cubic" | "high_speed_tcp" | "scalable_tcp" | "vegas" => {
            let reliability = json!({ "handshake": false });
            vec![json!({
                "kind": name, "window": { "initial": 101 }, "reliability": reliability,
            })]
        }
        "copa" | "xcp" => {
            let reliability = json!({ "handshake": false });
            vec![json!({ "kind": name, "initial_window": 101, "reliability": reliability })]
        }
        // As many packets as its queue holds, which exceeds one BDP of these networks.
        "pfabric" => vec![json!({ "kind": name, "initial_window": 34, "max_window": 34 })],
        "homa" => vec![json!({ "kind": name, "rtt_bytes": "110 KB" })],
        // These transports request or probe a rate first, wait for credit, drain the queue that they
        // assume, keep utilisation below 1, or trim a first window that is longer than their queue.
        "bbr" | "bbr3" | "d3" | "expresspass" | "fair_share" | "hpcc" | "jump_start" | "ndp"
        | "pcp" | "pdq" | "phost" | "powertcp" | "quick_start" | "rcp" | "theta_powertcp"
        | "uet" => Vec::new(),
        other => {
            panic!("add the parameters for a line-rate start of `{other}` here, or exclude it")
        }
    };
    controllers::Config::built_in().flat_map(start).collect()
}

/// Small networks of every topology, with the number of their last host. At these rates a byte
/// takes a whole number of picoseconds; at other rates a paced burst and its single packets may
/// differ by rounding.
fn networks() -> Vec<(Value, u32)> {
    let network = |name: &&str| match *name {
        "link" => (json!({ "kind": name, "delay": "5 us" }), 1),
        "dumbbell" => (json!({ "kind": name, "senders": 2, "receivers": 2 }), 3),
        "star" => (json!({ "kind": name, "hosts": 3, "rate": "40 Gbps" }), 2),
        "parking_lot" => (json!({ "kind": name }), 4),
        "leaf_spine" => (json!({ "kind": name, "leaves": 2, "hosts_per_leaf": 2, "spines": 2 }), 3),
        "fat_tree" => (json!({ "kind": name, "k": 4, "delay": "300 ns" }), 15),
        "clos" => (json!({ "kind": name, "pods": 2, "hosts_per_edge": 2 }), 15),
        "graph" => {
            let text = "from,to,rate,delay\na,s,8 Gbps,3 us\ns,t,80 Gbps,0 ns\nt,b,8 Gbps,1 ns\n";
            (json!({ "kind": name, "file": { "name": "graph.csv", "text": text } }), 1)
        }
        other => panic!("add a small `{other}` here"),
    };
    topology::Config::NAMES.iter().map(network).collect()
}

#[test]
fn single_flow_takes_exactly_its_ideal_fct() {
    for (topology, last) in networks() {
        for transport in at_line_rate() {
            for size in [1, 1000, 1001, 12_345, 100_000] {
                let results = run(&json!({
                    "topology": topology,
                    "transport": transport,
                    "workload": flows(&[(0.0, 0, last, size)]),
                }));
                let columns = &results.flows;
                let case = format!("{size} B by {transport} over {topology}");
                assert_eq!(columns.fct_s, columns.ideal_fct_s, "{case}");
                assert_eq!(columns.slowdown, [1.0], "{case}");
            }
        }
    }
}

#[test]
fn single_flow_takes_the_hand_computed_time() {
    // 12345 B in packets of 1000 B and 40 B of headers: twelve packets of 1040 B and one of 385 B,
    // 12865 B in all. At 10 Gb/s a byte takes 0.8 ns. The first of three links transmits for 12865
    // * 0.8 = 10292 ns. On each of the next two links the last packet finds the packet before it in
    // transmission, and ends one full packet, 832 ns, after its end on the link before. The
    // propagation takes three microseconds.
    let by_hand = 10_292.0 + 2.0 * 832.0 + 3_000.0;
    let scenario = json!({
        "topology": { "kind": "dumbbell" },
        "transport": { "kind": "constant_rate" },
        "workload": flows(&[(0.0, 0, 10, 12_345)]),
    });
    let columns = run(&scenario).flows;
    assert_eq!(columns.fct_s, [by_hand * 1e-9]);
    // An ACK of 40 B takes 32 ns on each link of the reverse path.
    let acked = by_hand + 3.0 * 32.0 + 3_000.0;
    assert!((columns.acked_s[0] - acked * 1e-9).abs() < 1e-15, "{:?}", columns.acked_s);
    // Through a bottleneck of 2.5 Gb/s, where a byte takes 3.2 ns: the first packet arrives after
    // 832 ns, all packets take 12865 * 3.2 = 41168 ns, and the last packet takes 385 * 0.8 = 308 ns
    // more.
    let by_hand = 832.0 + 41_168.0 + 308.0 + 3_000.0;
    let slower = with(&scenario, json!({ "topology": { "bottleneck_rate": "2.5 Gbps" } }));
    assert_eq!(run(&slower).flows.fct_s, [by_hand * 1e-9]);
}

// Single queues.

/// Single packets from many fast senders. They arrive at the bottleneck as a Poisson process,
/// because the delay of a packet on the access links depends on its size alone.
fn single_packets(load: f64, sizes: &Value, seed: u64) -> Value {
    json!({
        "seed": seed,
        "topology": {
            "kind": "dumbbell", "senders": 100, "receivers": 20,
            "rate": "200 Gbps", "bottleneck_rate": "1 Gbps",
        },
        "transport": { "kind": "constant_rate" },
        "packet": { "payload": "60 KB", "header": "0 B" },
        "workload": { "kind": "poisson", "load": load, "sizes": sizes, "flows": 200_000 },
        "time_limit": "1000 s",
    })
}

/// Mean waiting time of packets in seconds, without the initial transient.
fn mean_wait(results: &Results) -> f64 {
    let columns = &results.flows;
    let waits = columns.fct_s.iter().zip(&columns.ideal_fct_s).map(|(fct, ideal)| fct - ideal);
    mean(waits.skip(2_000))
}

#[test]
fn equal_packets_wait_as_in_m_d_1() {
    for (load, seeds) in [(0.5, 4), (0.8, 8)] {
        let sizes = json!({ "kind": "fixed", "size": "1250 B" });
        let service = 1250.0 * 8.0 / 1e9;
        let expected = load * service / (2.0 * (1.0 - load));
        let wait = |seed| mean_wait(&run(&single_packets(load, &sizes, seed)));
        let waits: Vec<f64> = (1..=seeds).map(wait).collect();
        assert_estimates(&waits, expected, 0.02, &format!("mean wait at load {load}"));
    }
}

#[test]
fn exponential_packets_wait_as_in_m_m_1() {
    for (load, seeds) in [(0.5, 4), (0.7, 8)] {
        let sizes = json!({ "kind": "exponential", "mean": "2500 B" });
        let service = 2500.0 * 8.0 / 1e9;
        let expected = load * service / (1.0 - load);
        let wait = |seed| mean_wait(&run(&single_packets(load, &sizes, seed)));
        let waits: Vec<f64> = (1..=seeds).map(wait).collect();
        assert_estimates(&waits, expected, 0.03, &format!("mean wait at load {load}"));
    }
}

#[test]
fn mean_queues_satisfy_littles_law() {
    // The integral of the queue length over time is the sum over packets of size times waiting
    // time.
    let sizes = json!({ "kind": "exponential", "mean": "2500 B" });
    let results = run(&single_packets(0.7, &sizes, 1));
    let seconds = results.summary["simulated_s"].as_f64().unwrap();
    let ports = results.links.show();
    let carries_data = |name: &str| {
        ["sender", "left->right", "right->receiver"].iter().any(|start| name.starts_with(start))
    };
    let queued = ports.iter().filter(|port| carries_data(port["name"].as_str().unwrap()));
    let integral: f64 =
        queued.map(|port| port["queue_mean_bytes"].as_f64().unwrap() * seconds).sum();
    let columns = &results.flows;
    let waited: f64 = (0..columns.flow.len())
        .map(|i| columns.size_bytes[i] as f64 * (columns.fct_s[i] - columns.ideal_fct_s[i]))
        .sum();
    assert_near(integral, waited, 1e-7, "integral of the queues");
    let load = 8.0 * columns.size_bytes.iter().sum::<u64>() as f64 / 1e9 / seconds;
    assert_near(link(&results, "left->right", "utilisation"), load, 1e-9, "utilisation");
}

// Ideals.

/// Exponential flow sizes over one bottleneck, without any other delay.
fn bottleneck(load: f64, seed: u64, number: u64) -> Value {
    json!({
        "seed": seed,
        "topology": {
            "kind": "dumbbell", "rate": "1000 Gbps", "delay": "0 ns", "bottleneck_rate": "1 Gbps",
        },
        "packet": { "header": "0 B" },
        "workload": {
            "kind": "poisson", "load": load, "flows": number,
            "sizes": { "kind": "exponential", "mean": "100 KB" },
        },
        "time_limit": "10000 s",
    })
}

#[test]
fn max_min_gives_half_shares_on_a_parking_lot() {
    let results = run(&json!({
        "topology": { "kind": "parking_lot", "bottlenecks": 3 },
        "packet": { "header": "0 B" },
        "model": "max_min",
        "workload": { "kind": "long_lived" },
        "time_limit": "100 ms",
    }));
    assert_eq!(results.flows.flow.len(), 4);
    for delivered in &results.flows.delivered_bytes {
        // 5 Gb/s for 100 ms, minus data in flight.
        assert_near(*delivered as f64, 62.5e6, 1e-3, "half of the link");
    }
}

#[test]
fn slowdown_under_processor_sharing_does_not_depend_on_size() {
    let (load, flows) = (0.6, 40_000);
    let slowdowns = |seed| {
        let results =
            run(&with(&bottleneck(load, seed, flows), json!({ "model": "processor_sharing" })));
        let columns = results.flows;
        let half = |is_large: bool| {
            let sizes = columns.size_bytes.iter().zip(&columns.slowdown);
            mean(
                sizes
                    .filter(|(size, _)| (**size > 69_315) == is_large)
                    .map(|(_, slowdown)| *slowdown),
            )
        };
        [mean(columns.slowdown.iter().copied()), half(false), half(true)]
    };
    let of_seeds: Vec<[f64; 3]> = (1..=6).map(slowdowns).collect();
    for (i, what) in ["all flows", "the smaller half", "the larger half"].into_iter().enumerate() {
        let estimates: Vec<f64> = of_seeds.iter().map(|of_seed| of_seed[i]).collect();
        assert_estimates(&estimates, 1.0 / (1.0 - load), 0.03, &format!("mean slowdown of {what}"));
    }
}

#[test]
fn srpt_mean_fct_matches_schrage_and_miller() {
    // Schrage and Miller 1966, integrated numerically for exponential sizes of mean 1.
    for (load, expected) in [(0.5, 1.4254), (0.8, 2.3528)] {
        let fct = |seed| {
            let results = run(&with(&bottleneck(load, seed, 40_000), json!({ "model": "srpt" })));
            mean(results.flows.fct_s) / (100_000.0 * 8.0 / 1e9)
        };
        let fcts: Vec<f64> = (1..=6).map(fct).collect();
        assert_estimates(&fcts, expected, 0.03, &format!("mean completion time at load {load}"));
    }
}

/// A transport with the parameters it needs at 1 Gb/s.
fn at_a_gigabit(transport: &str) -> Value {
    match transport {
        // The timeout must exceed the queueing delay, here of 36 packets.
        "pfabric" => json!({ "kind": transport, "reliability": { "fixed_rto": "1 ms" } }),
        // A receiver paces credits by its own link, which may be a thousand times as fast.
        "expresspass" => json!({ "kind": transport, "initial_rate": 0.001 }),
        // The target must exceed the base RTT.
        "swift" => json!({ "kind": transport, "base_target": "100 us" }),
        _ => json!({ "kind": transport }),
    }
}

#[test]
fn no_transport_beats_srpt_on_one_bottleneck() {
    for seed in 1..=3 {
        let scenario = bottleneck(0.7, seed, 2_000);
        let mean_fct = |change: Value| {
            let results = run(&with(&scenario, change));
            assert_eq!(count(&results, "finished"), 2_000);
            mean(results.flows.fct_s)
        };
        let srpt = mean_fct(json!({ "model": "srpt" }));
        let sharing = mean_fct(json!({ "model": "processor_sharing" }));
        assert!(srpt <= sharing, "{srpt} {sharing}");
        for transport in controllers::Config::built_in() {
            let transport = at_a_gigabit(transport);
            let workload = json!({ "deadlines": deadlines(&transport) });
            let fct = mean_fct(json!({ "transport": transport, "workload": workload }));
            assert!(fct >= srpt, "{transport}: {fct}, SRPT {srpt}");
        }
    }
}

// Comparisons.

#[test]
fn every_transport_sees_the_same_flows() {
    let base = json!({
        "seed": 7,
        "topology": { "kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 4, "spines": 2 },
        "workload": {
            "kind": "poisson", "load": 0.4, "flows": 300,
            "sizes": { "kind": "bounded_pareto", "min": "1 KB", "max": "100 KB" },
        },
    });
    let offered = |scheme: Value| {
        let results = run(&with(&base, scheme));
        let columns = results.flows;
        let starts: Vec<u64> = columns.start_s.iter().map(|start| start.to_bits()).collect();
        (columns.flow, columns.source, columns.target, columns.size_bytes, starts)
    };
    let expected = offered(json!({ "model": "srpt" }));
    for transport in controllers::Config::built_in() {
        let workload = json!({ "deadlines": deadlines(&json!(transport)) });
        let scheme = json!({ "transport": transport, "workload": workload });
        assert_eq!(offered(scheme), expected, "{transport}");
    }
    let other = offered(json!({ "model": "srpt", "seed": 8 }));
    assert_ne!(other, expected);
}

/// The scenario with all rates doubled and all delays, times and timers halved.
fn twice_as_fast(scenario: &Value) -> Value {
    match scenario {
        Value::Object(table) => {
            let twice = |(key, value): (&String, &Value)| (key.clone(), twice_as_fast(value));
            Value::Object(table.iter().map(twice).collect())
        }
        Value::Array(items) => items.iter().map(twice_as_fast).collect(),
        text => match (Duration::read(text), Rate::read(text)) {
            (Ok(Duration(time)), _) => {
                assert!(time.is_multiple_of(2), "{text} has no half");
                Duration(time / 2).show()
            }
            (_, Ok(Rate(rate))) => Rate(2 * rate).show(),
            _ => text.clone(),
        },
    }
}

/// Flows that share a bottleneck, each larger than the previous one.
fn competing_flows(flows: u64, larger: u64) -> Value {
    let flow = |i: u64| {
        json!({
            "source": i % 3, "target": 3 + (i / 3) % 3, "start": format!("{} us", 40 * i),
            "size": format!("{} B", 700 + larger * i), "deadline": "400 ms",
        })
    };
    json!({
        "topology": { "kind": "dumbbell", "senders": 3, "receivers": 3, "rate": "1 Gbps" },
        "workload": { "kind": "flows", "flows": (0..flows).map(flow).collect::<Vec<_>>() },
        "queue": { "kind": "ecn_threshold", "threshold": "20 packets", "capacity": "60 KB" },
        "host_queue": { "kind": "ecn_threshold", "threshold": "20 packets" },
    })
}

/// Asserts that a scenario with doubled rates takes half the time.
fn assert_scales(scenario: &Value, tolerance: f64, what: &str) {
    let whole = Scenario::parse(&as_in_papers(scenario).to_string()).unwrap().show();
    let (once, twice) = (run(&whole), run(&twice_as_fast(&whole)));
    assert_eq!(once.flows.retransmits, twice.flows.retransmits, "{what}");
    for (once, twice) in once.flows.fct_s.iter().zip(&twice.flows.fct_s) {
        assert_near(*twice, once / 2.0, tolerance, what);
    }
}

#[test]
fn doubling_rates_and_halving_delays_halves_every_time() {
    let base = competing_flows(30, 7_919);
    for transport in controllers::Config::built_in() {
        let router = match transport {
            // These control laws contain absolute times, such as seconds cubed; PCP has its own
            // test. A picosecond decides which credits of ExpressPass are dropped.
            "cubic" | "expresspass" | "pcp" | "uet" | "xcp" => continue,
            "d3" | "pdq" | "rcp" => json!(transport),
            _ => json!("none"),
        };
        let scheme = json!({ "transport": at_a_gigabit(transport), "router": router });
        let scenario = with(&base, scheme);
        // Pacing intervals at computed rates are rounded to a picosecond, and feedback amplifies
        // the error.
        let tolerance = match transport {
            "constant_rate" | "dctcp" => 1e-14,
            // The order in which packets of two flows arrive may depend on a picosecond.
            "d3" => 5e-2,
            "powertcp" => 5e-3,
            _ => 5e-4,
        };
        assert_scales(&scenario, tolerance, transport);
    }
}

#[test]
fn pcp_scales_without_random_probe_decisions() {
    // A rounding error of a picosecond decides which probe passes, and all later events: less
    // likely with few flows.
    let transport = json!({ "kind": "pcp", "probes": { "acceptance": "slope" } });
    assert_scales(
        &with(&competing_flows(6, 79_190), json!({ "transport": transport })),
        2e-2,
        "pcp",
    );
}

// Marks.

#[test]
fn packet_marked_at_two_hops_is_counted_and_echoed_once() {
    // Twenty packets at once into a NIC that marks a packet if another waits: the first is in
    // transmission and the second finds an empty queue, but the others are marked, and so is the
    // last packet of the flow, which the first ACK releases. The slower link after it would mark
    // the same packets, and has no effect on them.
    let marked = |host_queue: Value| {
        run(&json!({
            "topology": { "kind": "dumbbell", "bottleneck_rate": "5 Gbps" },
            "transport": {
                "kind": "dctcp", "initial_window": 20, "gain": 1.0, "initial_alpha": 0.0,
            },
            "queue": { "kind": "ecn_threshold", "threshold": "0 packets" },
            "host_queue": host_queue,
            "workload": flows(&[(0.0, 0, 10, 21_000)]),
            "samples": { "interval": "100 ns", "flows": [0] },
        }))
    };
    let marks = |results: &Results| {
        ["sender0->left", "left->right"].map(|name| link(results, name, "marks") as u64)
    };
    let at_both = marked(json!({ "kind": "ecn_threshold", "threshold": "0 packets" }));
    assert_eq!((marks(&at_both), count(&at_both, "marks")), ([19, 0], 19));
    // If the NIC does not mark, the link does; here the third packet arrives when the second leaves
    // the queue.
    let at_one = marked(json!("drop_tail"));
    assert_eq!((marks(&at_one), count(&at_one, "marks")), ([0, 18], 18));
    // With a gain of 1, alpha is the marked fraction of the last window. The first ACK ends the
    // first window; of the next nineteen packets the first is not marked.
    for (results, share) in [(at_both, 18.0 / 19.0), (at_one, 17.0 / 19.0)] {
        let alphas = samples(&results, "alpha flow 0", 0.0);
        let shares: Vec<f64> = alphas.into_iter().filter(|alpha| *alpha > 0.0).collect();
        assert!(!shares.is_empty() && shares.iter().all(|alpha| (alpha - share).abs() < 1e-12));
    }
}

//! Properties that hold for every workload.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Config;
use crate::base::schema::{Parameter, Problem};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::flow::{FlowSpec, Reply};
use crate::model::graph::Graph;
use crate::model::packet::Format;
use crate::topology;
use crate::traffic::{FlowStream, WorkloadContext};

const FORMAT: Format = Format {
    payload: Bytes(1000),
    header: Bytes(40),
    ack: Bytes(40),
    syn: None,
    credit: None,
    sack: false,
    time_unit: Duration::ZERO,
};

fn network(value: &Value) -> Graph {
    topology::Config::read(value).unwrap().graph(1).unwrap()
}

fn example(kind: &str) -> Value {
    let sizes = json!({"kind": "empirical", "table": "web_search"});
    match kind {
        "poisson" => json!({
            "kind": kind, "load": 0.6, "sizes": sizes, "flows": 500, "deadlines": {"mean": "1 ms"},
        }),
        "incast" => json!({"kind": kind, "fan_in": 3, "size": "20 KB", "load": 0.1, "events": 50}),
        "permutation" => json!({"kind": kind, "size": "1 MB", "jitter": "10 us"}),
        "synchronised" => json!({"kind": kind, "flows": 2, "size": "1 MB", "repeats": 4}),
        "long_lived" => {
            json!({"kind": kind, "flows": 7, "stagger": "1 ms", "jitter": "10 us"})
        }
        "flows" => json!({"kind": kind, "flows": [
            {"source": 0, "target": 5, "start": "2 us", "size": "1 KB", "class": "b"},
            {"source": 1, "target": 4, "start": "1 us", "stop": "1 ms", "initial_rate": "3 Gbps"},
        ]}),
        "trace" => json!({"kind": kind, "file": {
            "name": "t.csv", "text": "start_s,source,target,size_bytes\n0,0,5,10\n1e-6,1,4,20\n",
        }}),
        "mixed" => json!({"kind": kind, "parts": [
            example("poisson"), example("incast"), example("poisson"), example("flows"),
        ]}),
        "rpc" => json!({
            "kind": kind, "request": {"kind": "fixed", "size": "64 KB"}, "service": "5 us",
            "response": {"kind": "uniform", "min": "1 KB", "max": "9 KB"},
            "pattern": {"load": 0.5, "calls": 60, "pairs": "longest"},
        }),
        "storage" => json!({
            "kind": kind, "reads": 0.7, "blocks": sizes, "device_time": "20 us",
            "pattern": {"outstanding": 3, "think": "10 us", "calls": 60},
        }),
        "collective" => json!({
            "kind": kind, "algorithm": "ring", "ranks": 3, "size": "90 KB", "jobs": 2,
            "placement": "random", "jitter": "5 us", "compute": "1 us",
        }),
        other => panic!("no example of `{other}`"),
    }
}

fn networks() -> [Graph; 3] {
    [
        network(&json!({"kind": "dumbbell", "senders": 4, "receivers": 3})),
        network(&json!({"kind": "star", "hosts": 7})),
        network(&json!({"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 4, "spines": 2})),
    ]
}

fn open(workload: &Value, graph: &Graph, seed: u64) -> Result<FlowStream, Problem> {
    Config::read(workload)?.generate(&WorkloadContext {
        graph,
        format: &FORMAT,
        seed,
        takes_one_path: true,
    })
}

fn flows(workload: &Value, graph: &Graph, seed: u64) -> Vec<FlowSpec> {
    open(workload, graph, seed).unwrap().flows.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn flows_are_ordered_numbered_valid_and_reproducible(
        kind in prop::sample::select(Config::NAMES), network in 0_usize..3, seed: u64,
    ) {
        let graph = &networks()[network];
        let stream = open(&example(kind), graph, seed).unwrap();
        let (classes, is_independent) = (stream.classes.len(), stream.dependencies.is_none());
        let drawn: Vec<_> = stream.flows.collect();
        prop_assert!(!drawn.is_empty());
        prop_assert!(drawn.windows(2).all(|pair| pair[0].start <= pair[1].start));
        for (id, flow) in (0..).zip(&drawn) {
            prop_assert!(flow.id == id || !is_independent);
            prop_assert!(flow.source != flow.target);
            prop_assert!(flow.source.max(flow.target) < graph.host_count());
            prop_assert!((flow.class as usize) < classes);
            prop_assert!(flow.size != Some(Bytes(0)));
        }
        prop_assert_eq!(drawn, flows(&example(kind), graph, seed));
    }
}

/// All flows of a workload by ID, including dependent flows, if flows complete after `fct`.
fn all_flows(
    workload: &Value,
    graph: &Graph,
    fct: impl Fn(&FlowSpec) -> Duration,
) -> BTreeMap<u64, FlowSpec> {
    let stream = open(workload, graph, 7).unwrap();
    let (mut waiting, mut all) = (BTreeMap::new(), BTreeMap::new());
    let mut dependencies = stream.dependencies;
    let ends = |flow: &FlowSpec| (flow.start + fct(flow), flow.id);
    waiting.extend(stream.flows.map(|flow| (ends(&flow), flow)));
    while let Some(((now, id), flow)) = waiting.pop_first() {
        let mut following = Vec::new();
        if let Some(dependencies) = &mut dependencies {
            dependencies.on_delivery(&flow, now, &mut following);
        }
        for next in following {
            assert!(next.start >= now);
            assert_eq!(next.source, flow.target, "source of flow {}", next.id);
            waiting.insert(ends(&next), next);
        }
        assert!(all.insert(id, flow).is_none(), "duplicate flow ID {id}");
    }
    all
}

#[test]
fn calls_do_not_depend_on_completion_times() {
    let both = json!({"kind": "mixed", "parts": [example("storage"), example("rpc")]});
    for workload in [example("rpc"), example("storage"), both] {
        for graph in networks() {
            let fast = all_flows(&workload, &graph, |_| Duration::from_micros(3));
            let slow = all_flows(&workload, &graph, |flow| Duration(1_000 * flow.size.unwrap().0));
            let ends =
                |flow: &FlowSpec| (flow.source, flow.target, flow.size, flow.class, flow.reply);
            let (fast, slow): (Vec<_>, Vec<_>) =
                (fast.values().map(ends).collect(), slow.values().map(ends).collect());
            assert_eq!(fast, slow);
            assert_eq!(fast.len() % 120, 0, "every call has a request and a response");
        }
    }
}

#[test]
fn responses_start_when_the_server_has_processed_the_request() {
    let calls = all_flows(&example("rpc"), &networks()[1], |_| Duration::from_micros(100));
    let served = all_flows(&example("storage"), &networks()[1], |_| Duration::from_micros(100));
    for (id, response) in calls.iter().chain(&served).filter(|(id, _)| **id % 2 == 1) {
        let request = if calls.get(id) == Some(response) { &calls } else { &served };
        let request = &request[&(id - 1)];
        assert_eq!((request.source, request.target), (response.target, response.source));
        assert_eq!(response.called, Some(request.start));
        let Reply { size, service, class } = request.reply.unwrap();
        assert_eq!((response.size, response.class), (Some(size), class));
        // A device serves one block at a time, so a response may start later.
        assert!(response.start >= request.start + Duration::from_micros(100) + service);
    }
    let waits = |(id, flow): (&u64, &FlowSpec)| {
        let request = &served[&(id - id % 2)];
        flow.start > request.start + Duration::from_micros(100) + request.reply.unwrap().service
    };
    assert!(
        served.iter().filter(|(id, _)| **id % 2 == 1).any(waits),
        "no request waited for a device"
    );
}

#[test]
fn closed_loop_keeps_a_constant_number_of_outstanding_calls() {
    let graph = &networks()[1];
    let workload = json!({
        "kind": "rpc", "request": {"kind": "fixed", "size": "1 KB"},
        "response": {"kind": "fixed", "size": "1 KB"},
        "pattern": {"outstanding": 2, "stop": "1 ms"},
    });
    let calls = all_flows(&workload, graph, |_| Duration::from_micros(50));
    // Seven clients with two outstanding calls each; a call takes 100 us; calls start from 0 to 900
    // us.
    assert_eq!(calls.len(), 2 * 7 * 2 * 10);
    for at in [10_u64, 440, 930] {
        let now = Time::ZERO + Duration::from_micros(at);
        let is_on =
            |flow: &&FlowSpec| flow.start <= now && now < flow.start + Duration::from_micros(50);
        assert_eq!(calls.values().filter(is_on).count(), 14, "after {at} us");
    }
}

#[test]
fn clients_with_limited_peers_call_exactly_these_servers() {
    let [_, star, racks] = networks();
    for (graph, pairs, peers, expected) in [
        (&racks, "longest", 2, 2),
        (&racks, "longest", 9, 4),
        (&racks, "opposite", 3, 1),
        (&star, "topology", 3, 3),
        (&star, "topology", 6, 6),
    ] {
        for calling in [json!({ "load": 0.5 }), json!({ "outstanding": 2 })] {
            let mut workload = example("rpc");
            workload["pattern"] = json!({ "pairs": pairs, "peers": peers, "calls": 2_000 });
            workload["pattern"]
                .as_object_mut()
                .unwrap()
                .extend(calling.as_object().unwrap().clone());
            let mut servers: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
            let all = all_flows(&workload, graph, |_| Duration::from_micros(10));
            for call in all.values().filter(|flow| flow.reply.is_some()) {
                assert!(pairs == "topology" || call.source / 4 != call.target / 4);
                servers.entry(call.source).or_default().insert(call.target);
            }
            assert_eq!(servers.len(), graph.hosts.len());
            assert!(servers.values().all(|servers| servers.len() == expected), "{servers:?}");
            let chosen: BTreeSet<_> = servers.values().collect();
            assert!(chosen.len() > 1, "clients should have different peers");
        }
    }
}

#[test]
fn longest_pairs_cross_the_spine() {
    let graph = &networks()[2];
    for call in flows(&example("rpc"), graph, 1) {
        assert_ne!(call.source / 4, call.target / 4, "within a rack");
    }
}

#[test]
fn different_seeds_give_different_flows() {
    for kind in ["poisson", "incast", "permutation", "mixed"] {
        let graph = &networks()[1];
        assert_ne!(flows(&example(kind), graph, 1), flows(&example(kind), graph, 2), "{kind}");
    }
}

#[test]
fn offered_load_equals_configured_load() {
    let graph = network(&json!("dumbbell"));
    for counts in ["payload", "wire"] {
        let sizes = json!({"kind": "empirical", "table": "web_search_packets"});
        let workload = json!({
            "kind": "poisson", "load": 0.8, "load_reference": "8 Gbps", "load_counts": counts,
            "sizes": sizes, "flows": 200_000,
        });
        let drawn = flows(&workload, &graph, 1);
        let bytes = |flow: &FlowSpec| match counts {
            "wire" => FORMAT.on_wire(flow.size.unwrap()).0,
            _ => flow.size.unwrap().0,
        };
        let bits: f64 = drawn.iter().map(|flow| 8.0 * bytes(flow) as f64).sum();
        let ratio = bits / drawn.last().unwrap().start.seconds() / 6.4e9;
        assert!((ratio - 1.0).abs() < 0.02, "{counts}: {ratio}");
    }
}

#[test]
fn pareto_inter_arrival_times_have_the_configured_mean_and_minimum() {
    let graph = network(&json!("dumbbell"));
    let workload = json!({
        "kind": "poisson", "load": 0.8, "sizes": {"kind": "fixed", "size": "1 MB"}, "flows": 200_000,
        "gap_shape": 2.5,
    });
    let starts: Vec<f64> =
        flows(&workload, &graph, 1).iter().map(|flow| flow.start.seconds()).collect();
    let mean = FORMAT.on_wire(Bytes(1_000_000)).bits() / 8e9;
    assert!((starts.last().unwrap() / 200_000.0 / mean - 1.0).abs() < 0.01);
    let mut gaps: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) / mean).collect();
    gaps.sort_by(f64::total_cmp);
    // The minimum is 1.5 / 2.5 of the mean, and the median is 2 ** (1 / 2.5) times the minimum.
    assert!((gaps[0] - 0.6).abs() < 1e-4, "{}", gaps[0]);
    assert!((gaps[gaps.len() / 2] - 0.6 * 2_f64.powf(0.4)).abs() < 0.005);
}

#[test]
fn load_description() {
    let graph = network(&json!("dumbbell"));
    let poisson = json!({
        "kind": "poisson", "load": 0.8, "load_reference": "8 Gbps", "load_counts": "payload",
        "sizes": {"kind": "empirical", "table": "web_search_packets"},
    });
    let incast = json!({"kind": "incast", "fan_in": 4, "size": "1 KB", "load": 0.1});
    let sizes = json!({"kind": "fixed", "size": "5 MB"});
    let rare = json!({"kind": "poisson", "load": 0.5, "load_reference": "1 Mbps", "sizes": sizes});
    let mixed = json!({"kind": "mixed", "parts": [poisson, incast, rare]});
    insta::assert_snapshot!(open(&mixed, &graph, 1).unwrap().load);
}

#[test]
fn load_and_sizes_use_separate_random_streams() {
    let graph = network(&json!("dumbbell"));
    let drawn = |load: f64, size: &str| {
        let sizes = json!({"kind": "exponential", "mean": size});
        flows(&json!({"kind": "poisson", "load": load, "sizes": sizes, "flows": 300}), &graph, 5)
    };
    let (low, high, large) = (drawn(0.4, "1 MB"), drawn(0.8, "1 MB"), drawn(0.4, "2 MB"));
    for i in 0..low.len() {
        assert_eq!(low[i].size, high[i].size);
        assert_eq!((low[i].source, low[i].target), (large[i].source, large[i].target));
        let ratio = low[i].start.seconds() / high[i].start.seconds();
        assert!((ratio - 2.0).abs() < 1e-6, "{ratio}");
    }
}

#[test]
fn deadlines_respect_the_minimum_slowdown() {
    let graph = network(&json!({
        "kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 2, "spines": 2, "host_rate": "10 Gbps",
        "fabric_rate": "40 Gbps", "host_delay": "2 us", "fabric_delay": "1 us",
    }));
    let drawn = |mean: &str, least: f64, size: &str| {
        let deadlines = json!({"mean": mean, "minimum_slowdown": least, "below": "5 KB"});
        let workload = json!({
            "kind": "poisson", "load": 0.5, "sizes": {"kind": "fixed", "size": size}, "flows": 500,
            "deadlines": deadlines,
        });
        flows(&workload, &graph, 3)
    };
    // A packet of 1040 B lasts 0.832 us at 10 Gb/s and 0.208 us at 40 Gb/s.
    for flow in drawn("1 ps", 1.25, "2 KB") {
        let near = 4.0 + 3.0 * 0.832;
        let far = 6.0 + 3.0 * 0.832 + 2.0 * 0.208;
        let ideal = if flow.source / 2 == flow.target / 2 { near } else { far };
        let deadline = flow.deadline.unwrap().seconds();
        assert!(
            (deadline - 1.25e-6 * ideal).abs() <= 1e-12,
            "deadline {deadline} s, ideal FCT {ideal} us"
        );
    }
    assert!(drawn("1 ps", 1.25, "5 KB").iter().all(|flow| flow.deadline.is_none()));
    // Deadlines above the minimum do not change.
    let (free, bounded) = (drawn("10 us", 0.0, "2 KB"), drawn("10 us", 1.25, "2 KB"));
    assert!(free.iter().zip(&bounded).all(|(free, bounded)| free.deadline <= bounded.deadline));
    let same = free.iter().zip(&bounded).filter(|(free, bounded)| free == bounded).count();
    assert!((100..400).contains(&same), "{same}");
}

#[test]
fn pairs_follow_the_topology_by_default() {
    let graph = network(&json!({"kind": "dumbbell", "senders": 3, "receivers": 3}));
    let drawn = |pairs: &str| {
        let sizes = json!({"kind": "fixed", "size": "1 MB"});
        let workload =
            json!({"kind": "poisson", "load": 0.5, "sizes": sizes, "flows": 600, "pairs": pairs});
        flows(&workload, &graph, 1)
    };
    assert!(drawn("topology").iter().all(|flow| flow.source < 3 && flow.target >= 3));
    assert!(drawn("opposite").iter().all(|flow| flow.target == flow.source + 3));
    // All 30 ordered pairs occur, each about 20 times.
    let mut counts = [[0; 6]; 6];
    for flow in drawn("any") {
        counts[flow.source as usize][flow.target as usize] += 1;
    }
    let missing = counts.iter().flatten().filter(|count| **count == 0).count();
    assert_eq!(missing, 6, "{counts:?}");
}

#[test]
fn permutation_gives_every_host_one_outgoing_and_one_incoming_flow() {
    let graph = network(&json!({"kind": "star", "hosts": 9}));
    for seed in 0..20 {
        let drawn = flows(&json!({"kind": "permutation", "jitter": "5 us"}), &graph, seed);
        let sorted = |end: fn(&FlowSpec) -> u32| {
            let mut hosts: Vec<_> = drawn.iter().map(end).collect();
            hosts.sort_unstable();
            hosts
        };
        assert_eq!(sorted(|flow| flow.source), (0..9).collect::<Vec<_>>());
        assert_eq!(sorted(|flow| flow.target), (0..9).collect::<Vec<_>>());
        assert!(drawn.iter().all(|flow| flow.start <= Time(5_000_000)));
    }
}

#[test]
fn long_lived_flows_can_start_with_jitter() {
    let graph = network(&json!({"kind": "star", "hosts": 8}));
    let starts = |seed| -> Vec<Time> {
        let config = json!({"kind": "long_lived", "start": "1 ms", "jitter": "5 us"});
        flows(&config, &graph, seed).iter().map(|flow| flow.start).collect()
    };
    let within = Time(1_000_000_000)..=Time(1_005_000_000);
    assert!(starts(1).iter().all(|start| within.contains(start)));
    assert!(starts(1).windows(2).any(|pair| pair[0] != pair[1]));
    assert_eq!(starts(1), starts(1));
    assert_ne!(starts(1), starts(2));
}

#[test]
fn incast_has_distinct_senders_and_one_receiver() {
    let graph = network(&json!({"kind": "star", "hosts": 6}));
    let workload = json!({
        "kind": "incast", "fan_in": 5, "size": "1 KB", "interval": "1 ms", "events": 40,
    });
    let drawn = flows(&workload, &graph, 1);
    assert_eq!(drawn.len(), 200);
    for (event, flows) in (0..).zip(drawn.chunks(5)) {
        let mut sources: Vec<_> = flows.iter().map(|flow| flow.source).collect();
        sources.sort_unstable();
        sources.dedup();
        assert_eq!(sources.len(), 5);
        assert!(flows.iter().all(|flow| flow.target == flows[0].target));
        assert!(flows.iter().all(|flow| flow.start == Time(event * 1_000_000_000)));
    }
}

#[test]
fn arrivals_stop_after_one_second_by_default() {
    let graph = network(&json!("dumbbell"));
    let last = |bounds: Value| {
        let sizes = json!({"kind": "fixed", "size": "1 MB"});
        let mut workload = json!({"kind": "poisson", "load": 0.5, "sizes": sizes, "start": "1 s"});
        for (key, value) in bounds.as_object().unwrap() {
            workload[key] = value.clone();
        }
        let drawn = flows(&workload, &graph, 1);
        (drawn.len(), drawn.last().unwrap().start.seconds())
    };
    let (_, seconds) = last(json!({}));
    assert!((1.9..2.0).contains(&seconds), "{seconds}");
    let (_, seconds) = last(json!({"stop": "4 s"}));
    assert!((3.9..4.0).contains(&seconds), "{seconds}");
    let (count, seconds) = last(json!({"flows": 5000}));
    assert!(count == 5000 && seconds > 5.0, "{count} {seconds}");
}

#[test]
fn last_arrival_is_that_of_the_flows() {
    let graph = network(&json!("dumbbell"));
    let context = WorkloadContext { graph: &graph, format: &FORMAT, seed: 3, takes_one_path: true };
    let sizes = json!({"kind": "fixed", "size": "100 KB"});
    let poisson = |bounds: Value| {
        let mut workload = json!({"kind": "poisson", "load": 0.4, "sizes": sizes});
        workload.as_object_mut().unwrap().extend(bounds.as_object().unwrap().clone());
        workload
    };
    let calls = json!({
        "kind": "rpc", "request": sizes, "response": sizes, "pattern": {"load": 0.2, "calls": 200},
    });
    let incast = json!({"kind": "incast", "fan_in": 3, "size": "1 KB", "load": 0.1, "events": 150});
    let long_lived = json!({"kind": "long_lived", "start": "9 s"});
    let mixed = json!({
        "kind": "mixed",
        "parts": [poisson(json!({"stop": "100 ms"})), poisson(json!({"flows": 300}))],
    });
    let last = |workload: &Value, limit| {
        Config::read(workload).unwrap().last_arrival(&context, limit).unwrap()
    };
    for workload in [poisson(json!({"flows": 10})), calls.clone(), incast, mixed] {
        let expected = flows(&workload, &graph, 3).last().unwrap().start;
        assert_eq!(last(&workload, Time::NEVER), Some(expected), "{workload}");
    }
    // Long-lived flows have no rate of arrivals, and 9 arrivals are too few.
    let with_long_lived = json!({"kind": "mixed", "parts": [long_lived.clone(), calls]});
    assert!(
        last(&with_long_lived, Time::NEVER).unwrap() < Time::ZERO + Duration::from_millis(9000)
    );
    for workload in [long_lived, poisson(json!({"flows": 9}))] {
        assert_eq!(last(&workload, Time::NEVER), None, "{workload}");
    }
    let limit = Time::ZERO + Duration::from_millis(100);
    assert!(last(&poisson(json!({})), limit).unwrap() <= limit);
}

#[test]
fn only_random_arrivals_without_a_stop_or_a_number_end_by_default() {
    let sizes = json!({"kind": "fixed", "size": "100 KB"});
    let poisson = json!({"kind": "poisson", "load": 0.4, "sizes": sizes, "start": "1 s"});
    let end = |workload: &Value| Config::read(workload).unwrap().default_end();
    let two_seconds = Some(Time::ZERO + Duration::from_millis(2000));
    assert_eq!(end(&poisson), two_seconds);
    assert_eq!(end(&json!({"kind": "mixed", "parts": [poisson]})), two_seconds);
    let closed_loop = json!({
        "kind": "rpc", "request": sizes, "response": sizes, "pattern": {"outstanding": 1},
    });
    let incast = json!({"kind": "incast", "fan_in": 3, "size": "1 KB", "interval": "1 ms"});
    for workload in [closed_loop, incast] {
        assert_eq!(end(&workload), None, "{workload}");
    }
}

#[test]
fn invalid_workloads_are_rejected() {
    let graph = network(&json!({"kind": "dumbbell", "senders": 2, "receivers": 2}));
    let error = |value: Value| match open(&value, &graph, 1) {
        Ok(_) => panic!("{value} is accepted"),
        Err(problem) => problem.to_string(),
    };
    let sizes = json!({"kind": "fixed", "size": "1 MB"});
    let poisson = |load: f64| json!({"kind": "poisson", "load": load, "sizes": sizes});
    let incast = |fan_in| json!({"kind": "incast", "fan_in": fan_in, "size": "1 KB"});
    let with = |mut table: Value, key: &str, value: Value| {
        table[key] = value;
        table
    };
    let flow = |source, target| json!({"source": source, "target": target});
    insta::assert_snapshot!(
        [
            error(poisson(0.0)),
            error(poisson(-0.5)),
            error(poisson(1.0)),
            error(with(poisson(0.97), "load_counts", json!("payload"))),
            error(with(poisson(0.5), "sizes", json!({"kind": "empirical", "table": "websearch"}))),
            error(with(
                poisson(0.5),
                "sizes",
                json!({"kind": "pareto", "mean": "1 KB", "shape": 1})
            )),
            error(incast(2)),
            error(with(incast(3), "interval", json!("1 ms"))),
            error(with(with(incast(2), "interval", json!("1 ms")), "target", json!(1))),
            error(json!({"kind": "synchronised", "size": "1 KB", "flows": 3})),
            error(json!({"kind": "long_lived", "stagger": "1 s", "stop": "1 s"})),
            error(json!({"kind": "flows", "flows": []})),
            error(json!({"kind": "flows", "flows": [flow(0, 1), flow(0, 4)]})),
            error(json!({"kind": "flows", "flows": [flow(0, 0)]})),
            error(
                json!({"kind": "flows", "flows": [{"source": "sender1", "target": "receivre0"}]})
            ),
            error(json!({"kind": "flows", "flows": [{"source": 0, "target": "server"}]})),
            error(json!({"kind": "flows", "flows": [{"source": 0.5, "target": 2}]})),
            error(json!({"kind": "flows", "flows": [{"source": [0], "target": 2}]})),
            error(with(with(incast(2), "interval", json!("1 ms")), "target", json!("client"))),
            error(json!({"kind": "mixed", "parts": [poisson(0.5), poisson(1.5)]})),
        ]
        .join("\n")
    );
}

#[test]
fn hosts_may_have_names() {
    let graph = network(&json!({"kind": "dumbbell", "senders": 2, "receivers": 2}));
    let ends = |value: Value| -> BTreeSet<_> {
        let flows = open(&value, &graph, 1).unwrap().flows;
        flows.map(|flow| (flow.source, flow.target)).collect()
    };
    let flow = json!({"source": "sender1", "target": "receiver0", "size": "1 KB"});
    assert_eq!(ends(json!({"kind": "flows", "flows": [flow]})), BTreeSet::from([(1, 2)]));
    let incast = json!({"kind": "incast", "fan_in": 2, "size": "1 KB", "interval": "1 ms",
        "events": 3, "target": "receiver1"});
    assert_eq!(ends(incast), BTreeSet::from([(0, 3), (1, 3)]));
}

/// Connections of a workload's flows, by flow.
fn connections(workload: &Value) -> Vec<Option<(u64, bool)>> {
    let all = all_flows(workload, &networks()[1], |_| Duration::from_micros(100));
    let shown = |flow: &FlowSpec| flow.connection.map(|it| (it.number, it.from_server));
    all.values().map(shown).collect()
}

#[test]
fn flows_of_a_pair_use_its_connections_in_turn() {
    let mut poisson = example("poisson");
    assert!(connections(&poisson).iter().all(Option::is_none));
    poisson["connections"] = json!(3);
    let expected: Vec<_> = (0..500).map(|flow| Some((flow % 3, false))).collect();
    assert_eq!(connections(&poisson), expected);
    let mut calls = example("rpc");
    calls["pattern"]["connections"] = json!(2);
    // Request and response travel on the same connection.
    let expected: Vec<_> = (0..120).map(|flow| Some((flow / 2 % 2, flow % 2 == 1))).collect();
    assert_eq!(connections(&calls), expected);
}

#[test]
fn an_outstanding_call_of_a_closed_loop_keeps_its_connection() {
    let mut storage = example("storage");
    storage["pattern"]["connections"] = json!(2);
    let all = all_flows(&storage, &networks()[1], |_| Duration::from_micros(100));
    // Three callers at each client: with two connections, the third shares the first.
    for (id, flow) in &all {
        assert_eq!(flow.connection.unwrap().number, id / 2 % 3 % 2, "{id}");
    }
}

#[test]
fn parts_of_a_mixture_share_no_connection() {
    let one = |kind: &str| {
        let mut part = example(kind);
        part["pattern"]["connections"] = json!(1);
        part
    };
    let mixture = json!({"kind": "mixed", "parts": [one("rpc"), example("trace"), one("storage")]});
    let numbers: BTreeSet<_> = connections(&mixture).into_iter().flatten().collect();
    assert_eq!(numbers, [(0, false), (0, true), (2, false), (2, true)].into());
}

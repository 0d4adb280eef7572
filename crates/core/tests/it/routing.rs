//! Choice of paths in runs, by the bytes that links carry.

use serde_json::{Value, json};

use crate::common::{graph, run, run_with_all_engines, with};
use sojourn_core::run::Results;

/// 1200 flows of 20 KB from the first pod of a fat-tree to the others.
fn leaving_a_pod(rest: &Value) -> Value {
    let flow = |i: u64| {
        let start = format!("{} us", 100 + 20 * i);
        json!({ "source": i % 4, "target": 4 + i / 4 % 12, "size": "20 KB", "start": start })
    };
    let flows: Vec<Value> = (0..1_200).map(flow).collect();
    let scenario = json!({
        "topology": { "kind": "fat_tree", "k": 4 }, "time_limit": "1 s",
        "transport": { "kind": "constant_rate", "rate": "1 Gbps" },
        "workload": { "kind": "flows", "flows": flows },
    });
    with(&scenario, rest.clone())
}

/// Share of the bytes on each link from the first pod to core switches.
fn shares(links: &[Value]) -> Vec<f64> {
    let name = |link: &&Value| {
        let name = link["name"].as_str().unwrap();
        name.starts_with("aggregation0_") && name.contains("->core")
    };
    let bytes: Vec<f64> =
        links.iter().filter(name).map(|link| link["bytes"].as_f64().unwrap()).collect();
    let all: f64 = bytes.iter().sum();
    bytes.iter().map(|bytes| bytes / all).collect()
}

fn assert_near(shares: &[f64], expected: [f64; 4]) {
    let is_near = |(share, near): (&f64, f64)| (share - near).abs() < 0.05;
    assert!(shares.iter().zip(expected).all(is_near), "{shares:?}, not {expected:?}");
}

#[test]
fn flows_of_ideals_use_all_paths_where_their_packets_would() {
    for routing in ["entropy", "spray_random", "shortest_queue", "ecmp"] {
        let ideal = json!({ "model": "processor_sharing", "routing": routing });
        let results = run(&leaving_a_pod(&ideal));
        assert_near(&shares(&results.links.show()), [0.25; 4]);
        let warnings = results.summary["warnings"].to_string();
        assert_eq!(warnings.contains("one path each"), routing != "ecmp", "{routing}: {warnings}");
    }
}

#[test]
fn the_cable_beside_a_failed_one_carries_half_with_ecmp_and_a_third_of_all_paths() {
    let failures = json!([{ "link": "aggregation0_0->core0", "fails": "1 us" }]);
    let broken = |routing: &str| {
        let rest = json!({ "routing": routing, "failures": failures, "convergence": "1 us" });
        shares(&run(&leaving_a_pod(&rest)).links.show())
    };
    assert_near(&broken("ecmp"), [0.0, 0.5, 0.25, 0.25]);
    assert_near(&broken("flow_hash"), [0.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]);
    let whole = leaving_a_pod(&json!({ "routing": "ecmp" }));
    assert_near(&shares(&run(&whole).links.show()), [0.25; 4]);
}

#[test]
fn data_centres_use_ecmp_unless_the_scenario_names_a_routing() {
    let bytes = |rest: Value| run(&leaving_a_pod(&rest)).links.show();
    let lossy =
        |routing: &str| bytes(json!({ "environment": "lossy_datacentre", "routing": routing }));
    let by_default = bytes(json!({ "environment": "lossy_datacentre" }));
    assert_eq!(by_default, lossy("ecmp"));
    assert_ne!(by_default, lossy("flow_hash"));
}

#[test]
fn transports_that_need_one_path_finish_with_ecmp_in_every_engine() {
    for transport in ["pdq", "d3", "fair_share", "fast"] {
        let summary = run_with_all_engines(&json!({
            "topology": { "kind": "fat_tree", "k": 4 }, "routing": "ecmp", "time_limit": "1 s",
            "transport": transport, "workload": {
                "kind": "poisson", "load": 0.3, "flows": 60, "deadlines": { "mean": "100 ms" },
                "sizes": { "kind": "fixed", "size": "30 KB" },
            },
        }));
        assert_eq!(summary["counts"]["finished"], 60, "{transport}");
    }
}

/// A flow of 10 MB between hosts with two NICs of 10 Gb/s each.
fn between_hosts_with_two_nics(rest: &Value) -> Results {
    let mut topology = graph(
        "a,s,10 Gbps,1 us,,\na,t,10 Gbps,1 us,,\nb,s,10 Gbps,1 us,,\nb,t,10 Gbps,1 us,,\n\
         c,s,10 Gbps,1 us,,\nc,t,10 Gbps,1 us,,\nd,s,10 Gbps,1 us,,\nd,t,10 Gbps,1 us,,\n",
    );
    topology["hosts"] = json!(["a", "b", "c", "d"]);
    let scenario = json!({
        "topology": topology, "transport": "dctcp",
        "workload": { "kind": "flows", "flows": [{ "source": 0, "target": 1, "size": "10 MB" }] },
    });
    run(&with(&scenario, rest.clone()))
}

#[test]
fn the_ideal_fct_of_sprayed_packets_shares_the_links_side_by_side() {
    // Random choices load one of the NICs more than the other.
    for (routing, most) in [("spray_round_robin", 1.02), ("spray_random", 2.0)] {
        let results = between_hosts_with_two_nics(&json!({ "routing": routing }));
        let (slowdown, ideal) = (results.flows.slowdown[0], results.flows.ideal_fct_s[0]);
        assert!((4.1e-3..4.4e-3).contains(&ideal), "{routing}: {ideal}");
        assert!((1.0..most).contains(&slowdown), "{routing}: {slowdown}");
    }
    // Four spines carry 4 Gb/s together.
    let topology = json!({
        "kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 2, "spines": 4,
        "host_rate": "10 Gbps", "fabric_rate": "1 Gbps",
    });
    let results = run(&json!({
        "topology": topology, "routing": "spray_round_robin", "transport": "dctcp",
        "workload": { "kind": "flows", "flows": [{ "source": 0, "target": 2, "size": "10 MB" }] },
    }));
    assert!((1.0..1.02).contains(&results.flows.slowdown[0]), "{:?}", results.flows.slowdown);
}

#[test]
fn a_rerouted_flow_has_the_ideal_fct_of_one_path() {
    let used = |link: &str| json!([{ "link": link, "fails": "2 ms" }]);
    let rerouted = |link: &str| {
        between_hosts_with_two_nics(&json!({ "failures": used(link), "convergence": "100 us" }))
    };
    let slowdowns = ["a->s", "a->t"].map(|link| rerouted(link).flows.slowdown[0]);
    assert!(slowdowns.iter().all(|slowdown| (1.0..3.0).contains(slowdown)), "{slowdowns:?}");
    assert!(slowdowns.iter().any(|slowdown| *slowdown > 1.01), "{slowdowns:?}");
}

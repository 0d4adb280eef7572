//! Load balancers of switches in runs, by the bytes that links carry and the order of packets.

use serde_json::{Value, json};
use sojourn_core::load_balancing::policies;
use sojourn_core::run::Results;

use crate::common::{count, flows, link, run, run_with_all_engines, try_run, with};

/// `leaves` leaves with four hosts each, and two spines; all links 10 Gb/s and 1 us.
fn fabric(leaves: u32) -> Value {
    json!({
        "kind": "leaf_spine", "leaves": leaves, "hosts_per_leaf": 4, "spines": 2,
        "fabric_rate": "10 Gbps",
    })
}

/// Poisson arrivals of flows of 100 KB between leaves under a load balancer.
fn scenario(topology: &Value, routing: &Value, rest: &Value) -> Value {
    let base = json!({
        "topology": topology, "routing": routing, "time_limit": "10 s",
        "transport": { "kind": "dctcp" },
        "workload": {
            "kind": "poisson", "load": 0.3, "flows": 300, "pairs": "longest",
            "sizes": { "kind": "fixed", "size": "100 KB" }, "allow_overload": true,
        },
    });
    with(&base, rest.clone())
}

/// Share of the bytes from leaf 0 to spines that go to spine 0.
fn share(results: &Results) -> f64 {
    let [one, other] = ["leaf0->spine0", "leaf0->spine1"].map(|name| link(results, name, "bytes"));
    one / (one + other)
}

fn all_bytes(results: &Results) -> f64 {
    let links = results.links.show();
    links.iter().map(|it| it["bytes"].as_f64().unwrap()).sum()
}

#[test]
fn where_there_is_one_path_all_load_balancers_are_ecmp() {
    let star = json!({ "kind": "star", "hosts": 5 });
    let run = |routing: Value| {
        let workload = json!({ "workload": { "pairs": "topology" } });
        let results = run(&scenario(&star, &routing, &workload));
        (format!("{:?}", results.flows), results.links.show())
    };
    let ecmp = run(json!("ecmp"));
    for name in policies::Config::NAMES {
        assert!(run(json!(name)) == ecmp, "{name}");
    }
}

#[test]
fn all_choices_lie_on_shortest_paths_and_lose_nothing() {
    let topology = json!({ "kind": "fat_tree", "k": 4 });
    let rest = json!({
        "transport": { "reliability": { "duplicate_acks": "none" } },
        "queue": { "kind": "drop_tail", "capacity": "none" },
    });
    let ecmp = run(&scenario(&topology, &json!("ecmp"), &rest));
    for name in ["flowlets", "random_next_hop", "shortest_queue"] {
        let results = run(&scenario(&topology, &json!(name), &rest));
        assert_eq!(count(&results, "finished"), 300, "{name}");
        let kept = ["drops", "retransmits"].map(|what| count(&results, what));
        assert_eq!(kept, [0, 0], "{name}");
        let (bytes, expected) = (all_bytes(&results), all_bytes(&ecmp));
        assert!((bytes - expected).abs() < 0.5, "{name}: {bytes} B on all links, not {expected}");
    }
}

#[test]
fn a_lone_flow_keeps_its_order_with_flowlets_and_loses_it_with_every_packet_balanced() {
    let reordered = |routing: &str| {
        let workload = json!({ "workload": flows(&[(0.0, 0, 7, 3_000_000)]) });
        let base = scenario(&fabric(2), &json!(routing), &json!({}));
        let mut scenario = with(&base, json!({}));
        scenario["workload"] = workload["workload"].clone();
        scenario["transport"]["reliability"] = json!({ "duplicate_acks": "none" });
        // A path is slower, so that packets overtake each other.
        scenario["degraded_links"] = json!([{ "switch": "spine1", "share": 0.3 }]);
        let results = run(&scenario);
        let extent = results.flows.reordering_extent[0];
        (results.flows.reordered_packets[0], extent, count(&results, "reordered"))
    };
    assert_eq!(reordered("flowlets"), (0.0, 0.0, 0));
    assert_eq!(reordered("conga"), (0.0, 0.0, 0));
    let (packets, extent, of_run) = reordered("random_next_hop");
    assert!(packets > 100.0 && extent > 1.0, "{packets} {extent}");
    assert_eq!(of_run, packets as u64);
}

#[test]
fn flowlets_leave_a_slow_path_only_if_the_transport_slows_down_on_it() {
    let degraded = json!([{ "link": "spine1->leaf1", "share": 0.2 }]);
    let share = |routing: &str, transport: Value| {
        let rest = json!({ "transport": transport, "degraded_links": degraded });
        let mut scenario = scenario(&fabric(2), &json!({}), &rest);
        scenario["routing"] = json!({ "kind": routing, "gap": "100 us" });
        scenario["workload"]["sizes"]["size"] = "1 MB".into();
        share(&run(&scenario))
    };
    // Without feedback flowlets of a constant rate divide evenly.
    let open = json!({ "kind": "constant_rate", "rate": "50 Mbps" });
    let even = share("flowlets", open);
    assert!((even - 0.5).abs() < 0.05, "{even}");
    let elastic = share("flowlets", json!({ "kind": "dctcp" }));
    assert!(elastic > 0.55, "{elastic}");
}

#[test]
fn conga_avoids_congestion_behind_a_spine_that_its_own_links_do_not_show() {
    let rest = json!({ "degraded_links": [{ "link": "spine0->leaf1", "share": 0.1 }] });
    let share = |routing: Value| share(&run(&scenario(&fabric(2), &routing, &rest)));
    let conga = share(json!({ "kind": "conga", "gap": "50 us" }));
    let local = share(json!("shortest_queue"));
    assert!(conga < 0.3, "CONGA sends {conga} to the slow spine");
    assert!(local > 0.4, "the shortest queue sends {local}");
}

#[test]
fn every_load_balancer_is_the_same_in_all_engines() {
    for name in policies::Config::NAMES {
        let rest = json!({
            "switch": { "shared_buffer": "200 KB" }, "account": true,
            "failures": [{ "link": "leaf0->spine0", "fails": "2 ms", "returns": "4 ms" }],
            "convergence": "100 us",
            "transport": { "reliability": { "min_rto": "10 ms" } },
        });
        let summary = run_with_all_engines(&scenario(&fabric(3), &json!(name), &rest));
        assert_eq!(summary["counts"]["finished"], 300, "{name}");
    }
}

#[test]
fn conga_is_refused_where_hosts_are_not_at_one_leaf_each() {
    let error = |topology: Value| {
        let workload = json!({ "workload": { "pairs": "topology" } });
        try_run(&scenario(&topology, &json!("conga"), &workload)).err().unwrap()
    };
    let text = "from,to,rate,delay\na,s,1 Gbps,1 us\na,t,1 Gbps,1 us\nb,s,1 Gbps,1 us\n\
                b,t,1 Gbps,1 us\n";
    let two_cables = json!({
        "kind": "graph", "hosts": ["a", "b"], "file": { "name": "graph.csv", "text": text },
    });
    let fat_tree = json!({ "kind": "fat_tree", "k": 4 });
    insta::assert_snapshot!([fat_tree, two_cables].map(error).join("\n"));
}

#[test]
fn an_unknown_routing_names_the_nearest_and_all_that_exist() {
    let error = |routing: Value| {
        let mut scenario = scenario(&fabric(2), &json!({}), &json!({}));
        scenario["routing"] = routing;
        try_run(&scenario).err().unwrap()
    };
    insta::assert_snapshot!(
        [error(json!("flowlet")), error(json!(3)), error(json!({ "kind": "conga", "gap": "0 s" }))]
            .join("\n")
    );
}

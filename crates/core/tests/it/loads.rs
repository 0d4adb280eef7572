//! Loads of links: refused beyond what a link carries, and in the summary.

use serde_json::{Value, json};

use crate::common::{run, try_run, with};

/// Two racks of eight hosts at 25 Gb/s, with one spine at 40 Gb/s. At a load of 0.9, 180 Gb/s begin in each
/// rack, of which 8 of 15 parts leave it: 96 Gb/s.
fn oversubscribed(rest: &Value) -> Value {
    let scenario = json!({
        "topology": {
            "kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 8, "spines": 1,
            "host_rate": "25 Gbps", "fabric_rate": "40 Gbps",
        },
        "transport": "dctcp",
        "time_limit": "1 ms",
        "workload": {
            "kind": "poisson", "load": 0.9, "sizes": { "kind": "fixed", "size": "100 KB" },
            "flows": 200,
        },
    });
    with(&scenario, rest.clone())
}

#[test]
fn more_than_a_spine_carries_is_refused_unless_allowed() {
    let problem = try_run(&oversubscribed(&json!({}))).unwrap_err();
    let expected = "workload.load: offers 96 Gbps to leaf0->spine0 in the mean, which carries only 40 Gbps: \
                    2.40 times its rate; give less, or `allow_overload = true`";
    assert_eq!(problem, expected);
    run(&oversubscribed(&json!({ "workload": { "allow_overload": true } })));
    // 96 x 0.37 / 0.9 = 39.5 Gb/s.
    run(&oversubscribed(&json!({ "workload": { "load": 0.37 } })));
}

#[test]
fn parts_of_a_workload_share_the_links() {
    let part = |load, start: &str, stop: &str, allows| {
        json!({
            "kind": "poisson", "load": load, "sizes": { "kind": "fixed", "size": "100 KB" },
            "start": start, "stop": stop, "allow_overload": allows,
        })
    };
    let mixed = |parts: Value| {
        let mut scenario = oversubscribed(&json!({}));
        scenario["workload"] = json!({ "kind": "mixed", "parts": parts });
        try_run(&scenario)
    };
    let early = part(0.2, "0 s", "300 us", false);
    let problem = mixed(json!([early, part(0.2, "200 us", "500 us", false)])).unwrap_err();
    let expected = "workload.parts: offers 42.6666";
    assert!(problem.starts_with(expected), "{problem}");
    mixed(json!([early, part(0.2, "300 us", "500 us", false)])).unwrap();
    mixed(json!([early, part(0.2, "200 us", "500 us", true)])).unwrap();
}

#[test]
fn a_part_that_may_exceed_a_link_does_not_excuse_the_others() {
    let mut scenario = oversubscribed(&json!({}));
    let poisson = scenario["workload"].clone();
    let incast = json!({ "kind": "incast", "fan_in": 8, "size": "10 KB", "interval": "100 us" });
    scenario["workload"] = json!({ "kind": "mixed", "parts": [poisson, incast] });
    let problem = try_run(&scenario).unwrap_err();
    assert!(problem.starts_with("workload.parts[0].load: offers 96 Gbps to "), "{problem}");
}

/// Calls on eight servers, of which each spends 50 us on every call.
fn calls(kind: &str, rest: &Value) -> Value {
    let time = if kind == "storage" { "device_time" } else { "service" };
    let mut scenario = json!({
        "topology": { "kind": "star", "hosts": 8, "rate": "100 Gbps", "delay": "1 us" },
        "transport": "dctcp", "time_limit": "1 ms",
        "workload": {
            "kind": kind, time: "50 us", "pattern": { "load": 0.3, "stop": "100 us" },
        },
    });
    if kind == "storage" {
        scenario["workload"]["reads"] = json!(0.7);
    }
    let sizes = if kind == "storage" { &["blocks"][..] } else { &["request", "response"] };
    for field in sizes {
        scenario["workload"][*field] = json!({ "kind": "fixed", "size": "64 KB" });
    }
    with(&scenario, rest.clone())
}

#[test]
fn more_calls_than_servers_process_are_refused_unless_allowed() {
    let problem = try_run(&calls("storage", &json!({}))).unwrap_err();
    let expected = "workload.pattern.load: offers 56139.1 calls/s to each server in the mean, which \
                    processes only 20000.0 calls/s: 2.81 times its rate; give less, or \
                    `allow_overload = true`";
    assert_eq!(problem, expected);
    let load = |kind: &str, rest: &Value| {
        let summary = run(&calls(kind, rest)).summary;
        summary["load"].as_str().unwrap().to_owned()
    };
    let allowed =
        load("storage", &json!({ "workload": { "pattern": { "allow_overload": true } } }));
    assert!(allowed.ends_with(" calls/s, utilisation of servers 2.81"), "{allowed}");
    let less = load("storage", &json!({ "workload": { "device_time": "5 us" } }));
    assert!(less.ends_with(" calls/s, utilisation of servers 0.28"), "{less}");
    // These servers process any number of requests in parallel.
    let parallel = load("rpc", &json!({}));
    assert!(parallel.ends_with(" calls/s"), "{parallel}");
}

#[test]
fn the_summary_states_the_load_of_each_tier() {
    let summary = run(&oversubscribed(&json!({ "workload": { "load": 0.3 } }))).summary;
    let tiers = summary["load_by_tier"].as_array().unwrap();
    let names: Vec<&str> = tiers.iter().map(|tier| tier["tier"].as_str().unwrap()).collect();
    assert_eq!(names, ["leaf->spine", "spine->leaf", "host->leaf", "leaf->host"]);
    // By hand: 96 / 3 of 40 Gb/s, and 0.3 on access links.
    for (tier, (links, load)) in tiers.iter().zip([(2, 0.8), (2, 0.8), (16, 0.3), (16, 0.3)]) {
        assert_eq!(tier["links"], links);
        for field in ["load", "load_max"] {
            assert!((tier[field].as_f64().unwrap() - load).abs() < 1e-9, "{tier}");
        }
    }
    assert_eq!(tiers[0]["busiest"], "leaf0->spine0");
    let long_lived = with(&oversubscribed(&json!({})), json!({ "workload": "long_lived" }));
    assert!(run(&long_lived).summary["load_by_tier"].is_null());
}

#[test]
fn the_omniscient_ideal_reports_links_beyond_their_rate() {
    let warnings = |model: &str, load| {
        let workload = json!({ "load": load, "allow_overload": true, "flows": 2_000 });
        let rest = json!({ "model": model, "time_limit": "1 s", "workload": workload });
        run(&oversubscribed(&rest)).summary["warnings"].as_array().unwrap().clone()
    };
    let omniscient = warnings("omniscient", 0.9);
    let texts: Vec<&str> = omniscient.iter().map(|text| text.as_str().unwrap()).collect();
    let [offered, carried] = texts[..] else { panic!("{texts:?}") };
    assert!(offered.starts_with("the workload offers 96 Gbps to leaf0->spine0"), "{offered}");
    let (begin, times) = carried.split_once(" times the rate of ").unwrap();
    assert!(begin.starts_with("`omniscient` carried 2.") && times.contains("spine0"), "{carried}");
    assert!(warnings("omniscient", 0.3).is_empty());
    assert_eq!(warnings("srpt", 0.9), [offered]);
}

#[test]
fn a_load_among_all_hosts_is_not_that_of_the_link_between_senders_and_receivers() {
    // Of 30 pairs of hosts 8 are from the left to the right.
    let dumbbell = |load| {
        json!({
            "topology": { "kind": "dumbbell", "senders": 2, "receivers": 4 }, "transport": "dctcp",
            "workload": {
                "kind": "poisson", "load": load, "pairs": "any", "flows": 20,
                "sizes": { "kind": "fixed", "size": "10 KB" },
            },
        })
    };
    let summary = run(&dumbbell(1.5)).summary;
    let load = summary["load"].as_str().unwrap();
    let expected = "load 1.5 of 10 Gbps (payload and headers): 15 Gbps offered among all hosts, a part \
                    of it on left->right, ";
    assert!(load.starts_with(expected), "{load}");
    let tiers = summary["load_by_tier"].as_array().unwrap();
    let middle = tiers.iter().find(|tier| tier["tier"] == "left->right").unwrap();
    assert!((middle["load"].as_f64().unwrap() - 1.5 * 8.0 / 30.0).abs() < 1e-9, "{middle}");
    let problem = try_run(&dumbbell(4.0)).unwrap_err();
    assert!(problem.contains("offers 10.666"), "{problem}");
}

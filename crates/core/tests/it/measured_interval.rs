//! Counters of links from the end of the warm-up to the last arrival.

use serde_json::{Value, json};
use sojourn_core::run::Results;

use crate::common::{as_in_papers, run, try_run_in_partitions, with};

/// Every millisecond two hosts send a packet each to host 0, 200 times: at 0, 1, …, 199 ms.
fn periodic() -> Value {
    as_in_papers(&json!({
        "topology": { "kind": "star", "hosts": 3, "rate": "10 Gbps", "delay": "1 us" },
        "transport": "dctcp", "warm_up": "50 ms",
        "workload": {
            "kind": "incast", "fan_in": 2, "size": "1000 B", "target": 0, "interval": "1 ms",
            "events": 200,
        },
    }))
}

fn link(scenario: &Value, name: &str) -> (Value, Value) {
    let Results { summary, links, .. } = run(scenario);
    let links = links.show();
    let link = links.iter().find(|link| link["name"] == name).unwrap();
    (link.clone(), summary["measured"].clone())
}

fn assert_near(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap();
    assert!((value / expected - 1.0).abs() < 1e-9, "{value} instead of {expected}");
}

#[test]
fn counters_are_those_between_the_warm_up_and_the_last_arrival() {
    let (link, bounds) = link(&periodic(), "switch->host0");
    assert_eq!(bounds, json!({ "from_s": 0.05, "to_s": 0.199 }));
    // The whole run: 200 events of 2 packets of 1040 B.
    assert_eq!(link["bytes"], json!(400 * 1040));
    // The events at 50, 51, …, 198 ms: 149 in 149 ms.
    let measured = &link["measured"];
    assert_eq!((&measured["packets"], &measured["bytes"]), (&json!(298), &json!(298 * 1040)));
    // 2 x 8320 bits a millisecond of 10 Gb/s; the second packet waits for the first, 832 ns.
    assert_near(&measured["utilisation"], 2.0 * 8320.0 / 1e7);
    assert_near(&measured["queue_mean_bytes"], 1040.0 * 0.832e-6 / 1e-3);
    for counter in ["drops", "marks", "pauses"] {
        assert_eq!(measured[counter], json!(0));
    }
}

#[test]
fn an_interval_that_is_the_whole_run_has_no_counters_of_its_own() {
    // Nine arrivals are too few for a rate.
    for change in [json!({ "events": 9 }), json!({ "events": 9, "stop": "1 s" })] {
        let scenario = with(&periodic(), json!({ "warm_up": "0 s", "workload": change }));
        let (link, bounds) = link(&scenario, "switch->host0");
        assert_eq!((&link["measured"], bounds), (&Value::Null, Value::Null));
    }
}

#[test]
fn without_a_last_arrival_counters_are_measured_to_the_end_of_the_run() {
    let change = json!({ "interval": "10 ms", "events": 9 });
    let (link, bounds) = link(&with(&periodic(), json!({ "workload": change })), "switch->host0");
    assert_eq!(bounds["from_s"], json!(0.05));
    // The last flow ends some microseconds after 80 ms.
    assert!((0.08..0.0801).contains(&bounds["to_s"].as_f64().unwrap()), "{bounds}");
    // The events at 50, 60, 70 and 80 ms.
    assert_eq!(link["measured"]["packets"], json!(8));
    // The warm-up lasts until after the last arrival, in a run that ends later.
    let late = with(&periodic(), json!({ "warm_up": "199.0005 ms" }));
    let (_, bounds) = self::link(&late, "switch->host0");
    assert_eq!(bounds["from_s"], json!(0.199_000_5));
    assert!(bounds["to_s"].as_f64().unwrap() < 0.1991);
}

#[test]
fn long_lived_flows_that_outlast_arrivals_are_measured_to_the_end_of_the_run() {
    let arrivals = json!({
        "kind": "incast", "fan_in": 2, "size": "1000 B", "target": 0, "interval": "1 ms", "events": 100,
    });
    let bounds = |long_lived: Value| {
        let mut scenario = with(&periodic(), json!({ "time_limit": "200 ms" }));
        scenario["workload"] = json!({ "kind": "mixed", "parts": [arrivals.clone(), long_lived] });
        link(&scenario, "switch->host0").1
    };
    let flow = |stop: &str| {
        let flow = json!({ "source": 1, "target": 0, "stop": stop });
        json!({ "kind": "flows", "flows": [flow] })
    };
    assert_eq!(bounds(flow("90 ms")), json!({ "from_s": 0.05, "to_s": 0.099 }));
    assert_eq!(bounds(flow("1 s")), json!({ "from_s": 0.05, "to_s": 0.2 }));
}

#[test]
fn warm_up_without_arrivals_after_it_measures_nothing() {
    // All flows have finished long before.
    let (link, bounds) = link(&with(&periodic(), json!({ "warm_up": "2 s" })), "switch->host0");
    assert_eq!((&link["measured"], bounds), (&Value::Null, Value::Null));
}

#[test]
fn ideals_measure_in_the_same_interval_as_packets() {
    for model in ["max_min", "processor_sharing", "srpt", "omniscient"] {
        let ideal = json!({ "model": model, "transport": null });
        let (link, bounds) = link(&with(&periodic(), ideal.clone()), "switch->host0");
        assert_eq!(bounds, json!({ "from_s": 0.05, "to_s": 0.199 }), "{model}");
        assert_eq!(link["bytes"], json!(400 * 1040), "{model}");
        // Flows are fluid, and those that start at 199 ms send nothing before.
        let measured = &link["measured"];
        assert_eq!(measured["bytes"], json!(298 * 1040), "{model}");
        assert_near(&measured["utilisation"], 2.0 * 8320.0 / 1e7);
        // Nine arrivals are too few for a rate, and the whole run is measured.
        let change = json!({ "warm_up": "0 s", "workload": { "events": 9 } });
        let (link, bounds) = self::link(&with(&with(&periodic(), ideal), change), "switch->host0");
        assert_eq!((&link["measured"], bounds), (&Value::Null, Value::Null), "{model}");
    }
}

#[test]
fn every_engine_measures_the_same_counters() {
    let sizes = json!({ "kind": "pareto", "mean": "40 KB", "shape": 1.3 });
    let scenario = json!({
        "topology": {
            "kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 8, "spines": 2, "host_rate": "100 Gbps",
            "fabric_rate": "100 Gbps",
        },
        "transport": "dctcp", "warm_up": "20 us", "switch": { "shared_buffer": "400 KB" },
        "workload": { "kind": "poisson", "load": 0.3, "sizes": sizes, "flows": 2000 },
    });
    let of = |engine: &str, parts: u32| {
        let scenario = as_in_papers(&with(&scenario, json!({ "engine": engine })));
        let results = try_run_in_partitions([parts, parts], &scenario).unwrap();
        let links = results.links.show();
        let drops = |link: &Value| link["measured"]["drops"].as_u64().unwrap();
        assert!(links.iter().map(drops).sum::<u64>() > 0);
        format!("{links:?} {}", results.summary["measured"])
    };
    let events = of("events", 1);
    for parts in [1, 2, 4] {
        assert!(of("windows", parts) == events, "{parts} parts differ from the event engine");
    }
}

/// Two flows of TCP over one link of 100 Mb/s, and calls that do not count.
fn long_lived(flows: &Value) -> Value {
    let calls = json!({
        "kind": "poisson", "load": 0.1, "sizes": { "kind": "fixed", "size": "2 KB" }, "flows": 20,
    });
    let long_lived = json!({ "kind": "flows", "flows": flows });
    as_in_papers(&json!({
        "topology": { "kind": "dumbbell", "senders": 4, "receivers": 4, "rate": "100 Mbps" },
        "transport": "tcp", "queue": { "kind": "drop_tail", "capacity": "100 packets" },
        "time_limit": "1 s", "workload": { "kind": "mixed", "parts": [long_lived, calls] },
    }))
}

#[test]
fn long_lived_flows_are_measured_while_all_of_them_send() {
    let staggered = json!([
        { "source": 0, "target": 4 }, { "source": 1, "target": 5, "start": "900 ms" },
    ]);
    let apart = json!([
        { "source": 0, "target": 4, "stop": "300 ms" },
        { "source": 1, "target": 5, "start": "300 ms" },
    ]);
    let overlapping = json!([
        { "source": 0, "target": 4, "stop": "700 ms" },
        { "source": 1, "target": 5, "start": "300 ms" },
    ]);
    let models = [json!({}), json!({ "model": "max_min", "transport": null, "queue": null })];
    for model in models {
        let of = |flows: &Value| run(&with(&long_lived(flows), model.clone())).summary;
        let bounds = |summary: &Value| {
            let interval = &summary["long_lived"];
            (interval["from_s"].as_f64().unwrap(), interval["to_s"].as_f64().unwrap())
        };
        let total = |summary: &Value| {
            let bytes = summary["long_lived"]["bytes"].as_array().unwrap();
            assert_eq!(bytes.len(), 2);
            bytes.iter().map(|bytes| bytes.as_f64().unwrap()).sum::<f64>()
        };
        let summary = of(&staggered);
        assert_eq!(bounds(&summary), (0.9, 1.0), "{model}");
        // The link carries 1.25 MB in 100 ms.
        assert!((1.1e6..1.25e6).contains(&total(&summary)), "{model}: {}", total(&summary));
        let summary = of(&overlapping);
        assert_eq!(bounds(&summary), (0.3, 0.7), "{model}");
        assert!((4.4e6..5e6).contains(&total(&summary)), "{model}: {}", total(&summary));
        assert!(of(&apart)["long_lived"].is_null(), "{model}");
    }
    let late = with(&long_lived(&staggered), json!({ "warm_up": "950 ms" }));
    assert_eq!(run(&late).summary["long_lived"]["from_s"], json!(0.95));
}

#[test]
fn every_engine_measures_the_same_bytes_of_long_lived_flows() {
    let flows = json!([
        { "source": 0, "target": 4, "stop": "70 ms" }, { "source": 1, "target": 5, "start": "30 ms" },
        { "source": 6, "target": 2, "start": "20 ms" },
    ]);
    let of = |engine: &str, parts: u32| {
        let change = json!({ "engine": engine, "time_limit": "100 ms" });
        let scenario = with(&long_lived(&flows), change);
        let results = try_run_in_partitions([parts, parts], &scenario).unwrap();
        results.summary["long_lived"].to_string()
    };
    let events = of("events", 1);
    assert!(events.contains("\"to_s\":0.07"), "{events}");
    for parts in [1, 2, 3] {
        assert_eq!(of("windows", parts), events, "{parts} parts");
    }
}

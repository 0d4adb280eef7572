//! Traffic classes: each has its own queue, link share, buffer occupancy and pause state.

use std::fmt::Write;

use crate::common::two_switches::{A, B, C, ENDLESS, X, Y, share, two_switches};
use crate::common::{assert_near, count, graph, link, run, try_run, with, with_just_enough_buffer};
use proptest::prelude::*;
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// Flows, each with source, target, bytes and class.
fn flows(flows: &[(u32, u32, u64, &str)]) -> Value {
    let flow = |(source, target, size, class): &(u32, u32, u64, &str)| {
        json!({
            "source": source, "target": target, "class": class,
            "size": format!("{size} B"),
        })
    };
    json!({ "kind": "flows", "flows": flows.iter().map(flow).collect::<Vec<_>>() })
}

/// The network of `two_switches`, with room for several classes.
fn network() -> Value {
    with(&two_switches(), json!({ "switch": { "shared_buffer": "1 MB" } }))
}

/// Number of pauses of a class on a link.
fn pauses(results: &Results, name: &str, class: u32) -> u64 {
    let links = results.links.show();
    let link = links.iter().find(|link| link["name"] == name).unwrap();
    let mut classes = link["classes"].as_array().unwrap().iter();
    classes.find(|of| of["class"] == class).unwrap()["pauses"].as_u64().unwrap()
}

#[test]
fn pause_of_one_class_does_not_block_another() {
    let workload = flows(&[(A, X, ENDLESS, "jam"), (B, Y, ENDLESS, "victim")]);
    let together = with(&network(), json!({ "workload": workload }));
    assert_near(share(&run(&together), 1), 1.0, 0.05, "in one class the victim shares the jam");
    // Two names with the same class are one class.
    let as_one = json!({ "traffic_classes": { "jam": 3, "victim": 3 } });
    let as_one = run(&with(&together, as_one));
    assert_eq!(as_one.flows.delivered_bytes, run(&together).flows.delivered_bytes);

    let results = run(&with(&together, json!({ "traffic_classes": { "jam": 3 } })));
    assert_near(share(&results, 0), 1.0, 0.02, "the jammed flow");
    assert_near(share(&results, 1), 3.0, 0.02, "the other has the rest of s->t");
    assert_eq!(count(&results, "drops"), 0);
    for link in ["s->t", "a->s"] {
        assert!(pauses(&results, link, 3) > 0, "{link}");
        assert_eq!(pauses(&results, link, 0), 0, "{link}");
    }
    let total = link(&results, "s->t", "pauses");
    assert_near(
        total,
        pauses(&results, "s->t", 3) as f64,
        1e-9,
        "the link's pauses are its classes'",
    );
}

#[test]
fn classes_share_a_host_and_a_switch_equally_in_bytes() {
    // One host sends in two classes, and two flows of one class meet one flow of another at a
    // switch.
    let at_host = flows(&[(A, Y, ENDLESS, "one"), (A, Y, ENDLESS, "other")]);
    let at_switch =
        flows(&[(A, Y, ENDLESS, "one"), (B, Y, ENDLESS, "one"), (C, Y, ENDLESS, "other")]);
    let classes = json!({ "other": 1 });
    for (workload, shares) in [(at_host, vec![2.0, 2.0]), (at_switch, vec![1.0, 1.0, 2.0])] {
        let change = json!({ "workload": workload, "traffic_classes": classes });
        let results = run(&with(&network(), change));
        for (flow, expected) in shares.into_iter().enumerate() {
            assert_near(share(&results, flow), expected, 0.02, "a flow's share of 40 Gb/s");
        }
    }
}

#[test]
fn class_gets_the_queue_of_its_transport() {
    let rows = flows(&[
        (A, X, 100_000, "storage"),
        (B, X, 100_000, "backup"),
        (C, X, 100_000, "mail"),
        (C, Y, 100_000, "web"),
    ]);
    let scenario = json!({
        "workload": rows, "transport": "dcqcn",
        "transports": { "backup": "tcp", "mail": "dctcp", "web": "tcp" },
        "traffic_classes": { "backup": 5, "mail": 1, "web": 1 },
    });
    let kinds = |change: Value| -> Vec<(u64, String)> {
        let scenario = with(&with(&network(), scenario.clone()), change);
        let queues = run(&scenario).summary["queues"].clone();
        let kind = |of: &Value| of["switch"]["kind"].as_str().unwrap().to_owned();
        let queues = queues.as_array().unwrap().iter();
        queues.map(|of| (of["class"].as_u64().unwrap(), kind(of))).collect()
    };
    let named = |kinds: &[(u64, &str)]| -> Vec<(u64, String)> {
        kinds.iter().map(|(class, kind)| (*class, (*kind).to_owned())).collect()
    };
    // The flows of class 1 have two transports: the class gets the queue that most of its flows
    // use.
    let designed = named(&[(0, "dcqcn_red"), (1, "dcqcn_red"), (5, "drop_tail")]);
    assert_eq!(kinds(json!({})), designed);
    let given = named(&[(0, "drr"), (1, "drr"), (5, "drr")]);
    assert_eq!(kinds(json!({ "queue": { "kind": "drr" } })), given);
    let one_class = json!({ "traffic_classes": { "backup": 1, "storage": 1 } });
    let as_one = named(&[(1, "dcqcn_red")]);
    assert_eq!(kinds(one_class), as_one);
}

#[test]
fn lossy_class_drops_and_lossless_class_does_not() {
    let sources = [A, B, C];
    let flow = |source, class| (source, X, 400_000, class);
    let lossless = sources.map(|source| flow(source, "rdma"));
    let lossy = sources.map(|source| flow(source, "tcp"));
    let results = run(&with(
        &network(),
        json!({
            "workload": flows(&[lossless, lossy].concat()),
            "transports": { "tcp": "tcp" },
            "traffic_classes": { "rdma": 3 },
            "switch": { "pause": { "classes": [3] } },
            "queue": { "kind": "drop_tail", "capacity": "none" },
            "host_queue": { "kind": "drop_tail", "capacity": "none" },
            "time_limit": "1 s",
        }),
    ));
    assert_eq!(count(&results, "unfinished"), 0);
    assert!(count(&results, "drops") > 0);
    let retransmits = &results.flows.retransmits;
    assert_eq!(retransmits[..3], [0; 3], "{retransmits:?}");
    assert!(retransmits[3..].iter().sum::<u32>() > 0);
    for link in ["s->t", "a->s"] {
        assert!(pauses(&results, link, 3) > 0);
        assert_eq!(pauses(&results, link, 0), 0);
    }
}

#[test]
fn deadlock_cycles_are_per_class() {
    let mut text = "from,to,rate,delay\n".to_owned();
    for i in 0..5 {
        let next = (i + 1) % 5;
        write!(text, "h{i},s{i},10 Gbps,1 us\ns{i},s{next},10 Gbps,1 us\n").unwrap();
    }
    let round: Vec<_> = (0..5)
        .map(|host| (host, (host + 2) % 5, 5_000_000, if host == 4 { "last" } else { "first" }))
        .collect();
    let ring = |rows: &[(u32, u32, u64, &str)], classes: Value| {
        run(&json!({
            "topology": { "kind": "graph", "file": { "name": "ring.csv", "text": text } },
            "transport": "constant_rate",
            "switch": { "shared_buffer": "100 KB", "pause": {} },
            "workload": flows(rows),
            "traffic_classes": classes,
            "time_limit": "1 s",
        }))
    };
    let apart = ring(&round, json!({ "last": 1 }));
    assert!(count(&apart, "pauses") > 0);
    assert_eq!((count(&apart, "finished"), &apart.summary["deadlocks"]), (5, &json!([])));
    // All flows of one class are stuck, and the flow of another class is not.
    let bystander = [&round[..], &[(0, 1, 1_000, "bystander")]].concat();
    let together = ring(&bystander, json!({ "first": 2, "last": 2 }));
    let circle = ["s0->s1", "s1->s2", "s2->s3", "s3->s4", "s4->s0"];
    let circle = circle.map(|link| format!("{link} (class 2)"));
    assert_eq!(together.summary["deadlocks"][0]["links"], json!(circle));
    assert_eq!(count(&together, "finished"), 1, "the bystander's class goes on");
    let stuck = together.summary["stuck"].to_string();
    assert!(stuck.contains("is paused") && stuck.contains("(class 2)"), "{stuck}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn computed_headroom_covers_pause_frames_of_all_classes(
        classes in 2_u32..=8, packets in 20_u32..400, payload in 24_u32..200, spread in 0_u32..300,
        alpha in prop::sample::select(&[0.001, 0.01, 0.1]),
        back in prop::sample::select(&["1 Gbps", "10 Gbps"]),
    ) {
        // Small packets arrive in all classes at once, and their pause frames wait for traffic of
        // the reverse direction.
        let names = ["0", "1", "2", "3", "4", "5", "6", "7"];
        let numbers: serde_json::Map<String, Value> =
            (0..classes).map(|class| (names[class as usize].to_owned(), json!(class))).collect();
        let size = u64::from(packets * payload);
        let mut rows = Vec::new();
        for class in 0..classes {
            let start = format!("{} ns", class * spread);
            for (source, target) in [(0, 2), (1, 2), (2, 0), (2, 1)] {
                rows.push(json!({
                    "source": source, "target": target, "start": start, "size": format!("{size} B"),
                    "class": names[class as usize],
                }));
            }
        }
        let scenario = json!({
            "topology": graph(&format!(
                "a,s,10 Gbps,100 ns,{back},\nb,s,10 Gbps,100 ns,{back},\nc,s,10 Gbps,100 ns,2 Gbps,\n"
            )),
            "transport": "constant_rate",
            "queue": { "kind": "drop_tail", "capacity": "none" },
            "host_queue": { "kind": "drop_tail", "capacity": "none" },
            "packet": { "payload": format!("{payload} B") },
            "switch": { "pause": { "alpha": alpha, "reserve": "0 B", "resume_offset": "0 B" } },
            "traffic_classes": numbers,
            "workload": { "kind": "flows", "flows": rows },
            "time_limit": "1 s",
        });
        let results = run(&with_just_enough_buffer(&scenario));
        prop_assert!(count(&results, "pauses") > 0 || packets < 100);
        prop_assert_eq!((count(&results, "drops"), count(&results, "unfinished")), (0, 0));
    }

    #[test]
    fn lossless_classes_lose_nothing_with_any_other_traffic(
        seed in 0_u64..1_000, kilobytes in 5_u64..300, numbers in prop::collection::vec(0_u32..8, 3),
        lossless in prop::sample::select(&[None, Some(0_usize), Some(1)]),
        queue in prop::sample::select(&["drop_tail", "ecn_threshold", "strict_priority", "drr"]),
        transport in prop::sample::select(&["constant_rate", "timely", "dctcp", "dcqcn"]),
        alpha in prop::sample::select(&[0.01, 0.125, 1.0]),
    ) {
        let names = ["one", "two", "three"];
        let flow = |i: u32| {
            let target = if i.is_multiple_of(3) { Y } else { X };
            ([A, B, C][i as usize % 3], target, kilobytes * 1_000, names[i as usize / 3 % 3])
        };
        let rows: Vec<_> = (0..18).map(flow).collect();
        let classes: serde_json::Map<String, Value> =
            names.iter().zip(&numbers).map(|(name, number)| ((*name).to_owned(), json!(number))).collect();
        let only = lossless.map(|place| numbers[place]);
        let results = run(&with(&network(), json!({
            "seed": seed, "workload": flows(&rows), "traffic_classes": classes,
            "transport": { "kind": transport },
            "queue": { "kind": queue, "capacity": "none" },
            "host_queue": { "kind": "drop_tail", "capacity": "none" },
            "switch": {
                "shared_buffer": "2 MB",
                "pause": { "alpha": alpha, "classes": only.map_or(json!("none"), |only| json!([only])) },
            },
            "time_limit": "1 s",
        })));
        prop_assert_eq!(&results.summary["deadlocks"], &json!([]));
        for (flow, (_, _, size, name)) in rows.iter().enumerate() {
            let number = numbers[names.iter().position(|other| other == name).unwrap()];
            if only.is_none_or(|only| only == number) {
                prop_assert_eq!(results.flows.retransmits[flow], 0);
                prop_assert_eq!(results.flows.delivered_bytes[flow], *size);
            }
        }
        if only.is_none() {
            prop_assert_eq!(count(&results, "drops"), 0);
        }
    }
}

#[test]
fn classes_share_a_link_by_weight() {
    // Two flows from two hosts to one; storage has three quarters of the receiver's link of 10 Gb/s.
    let scenario = json!({
        "topology": { "kind": "star", "hosts": 3 },
        "transport": { "kind": "constant_rate" },
        "switch": { "shared_buffer": "1 MB", "pause": {} },
        "traffic_classes": { "storage": 5 },
        "class_weights": { "5": 3 },
        "time_limit": "10 ms",
        "workload": { "kind": "flows", "flows": [
            { "source": 0, "target": 2 }, { "source": 1, "target": 2, "class": "storage" },
        ] },
    });
    let results = run(&scenario);
    let rate =
        |flow: usize| results.flows.delivered_bytes[flow] as f64 * 1040.0 / 1000.0 * 8.0 / 10e-3;
    assert_near(rate(0), 2.5e9, 0.02, "weight 1");
    assert_near(rate(1), 7.5e9, 0.02, "weight 3");
    let error = try_run(&with(&scenario, json!({ "class_weights": { "4": 2 } }))).unwrap_err();
    assert_eq!(error, "class_weights: no flow is in traffic class 4 (0, 5)");
    let error = try_run(&with(&scenario, json!({ "class_weights": { "5": 0 } }))).unwrap_err();
    assert!(error.starts_with("class_weights: must be from 1 to 100"), "{error}");
}

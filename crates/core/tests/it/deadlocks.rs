//! PFC deadlocks: cyclic buffer dependencies are detected, and nothing else is reported as a
//! deadlock.

use std::fmt::Write;

use crate::common::{count, flows, link, run, with};
use proptest::prelude::*;
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// A ring of five switches `s<i>` with one host `h<i>` each, with a given receive rate.
fn ring(receive_rate: &str) -> Value {
    let mut text = "from,to,rate,delay,reverse_rate\n".to_owned();
    for i in 0..5 {
        let next = (i + 1) % 5;
        writeln!(text, "h{i},s{i},10 Gbps,1 us,{receive_rate}\ns{i},s{next},10 Gbps,1 us,")
            .unwrap();
    }
    json!({ "kind": "graph", "file": { "name": "ring.csv", "text": text } })
}

/// Every host of the ring except `left_out` sends to the second next host, without congestion
/// control.
fn round(left_out: Option<u32>) -> Value {
    let senders = (0..5).filter(|host| Some(*host) != left_out);
    let flow = |host| (0.0, host, (host + 2) % 5, 5_000_000);
    json!({
        "topology": ring("10 Gbps"),
        "transport": "constant_rate",
        "switch": { "shared_buffer": "60 KB", "pause": {} },
        "workload": flows(&senders.map(flow).collect::<Vec<_>>()),
        "time_limit": "1 s",
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a string"))
}

/// The first line of a deadlock report, and the warnings.
fn report(results: &Results) -> (&str, &str) {
    (text(&results.summary["stuck"][0]), text(&results.summary["warnings"][0]))
}

#[test]
fn ring_flows_deadlock_and_the_run_ends_and_names_the_links() {
    let results = run(&round(None));
    assert_eq!((count(&results, "drops"), count(&results, "finished")), (0, 0));
    let deadlocks = results.summary["deadlocks"].as_array().unwrap();
    let circle = ["s0->s1", "s1->s2", "s2->s3", "s3->s4", "s4->s0"];
    assert_eq!(deadlocks.len(), 1);
    assert_eq!(deadlocks[0]["links"], json!(circle));
    let since = deadlocks[0]["since_s"].as_f64().unwrap();
    assert!(since > 0.0 && since < 1e-3, "{since}");
    let (stuck, warning) = report(&results);
    let expected = "deadlock: s0->s1, s1->s2, s2->s3, s3->s4, s4->s0 wait for each other since ";
    assert!(stuck.starts_with(expected), "{stuck}");
    let flows = results.summary["stuck"].as_array().unwrap()[1..].iter().map(text);
    assert_eq!(flows.clone().count(), 5);
    assert!(flows.clone().all(|line| line.ends_with(" is paused for ever")), "{flows:?}");
    assert_eq!(
        warning,
        "pause frames have deadlocked the network (see `stuck`); the run ends with it, at 20 ms"
    );
    assert_eq!(results.summary["simulated_s"], 0.02);
    for name in circle {
        assert!((link(&results, name, "longest_pause_s") - (0.02 - since)).abs() < since, "{name}");
    }
}

#[test]
fn deadlock_is_detected_at_the_end_without_a_watchdog() {
    let watched = run(&round(None));
    let quiet = json!({ "time_limit": "30 ms", "switch": { "pause": { "watchdog": "none" } } });
    let results = run(&with(&round(None), quiet));
    assert_eq!(results.summary["simulated_s"], 0.03);
    assert_eq!(results.summary["deadlocks"], watched.summary["deadlocks"]);
    assert_eq!(report(&results).0, report(&watched).0);
    assert_eq!(report(&results).1, "pause frames have deadlocked the network (see `stuck`)");
}

#[test]
fn repeated_frames_keep_a_deadlock_and_losses_can_end_it() {
    let quanta = json!({ "switch": { "pause": { "quanta": 1_000 } } });
    let (without, expiring) = (run(&round(None)), run(&with(&round(None), quanta.clone())));
    assert_eq!(expiring.summary["deadlocks"], without.summary["deadlocks"]);
    assert_eq!(report(&expiring), report(&without));
    // Half of the frames are lost on one cable of the ring.
    let mut lossy = with(&round(None), quanta);
    let ring = lossy["topology"]["file"]["text"].as_str().unwrap();
    let row = |row: &str| match row {
        "from,to,rate,delay,reverse_rate" => format!("{row},reverse_loss\n"),
        "s0,s1,10 Gbps,1 us," => format!("{row},0.5\n"),
        _ => format!("{row},\n"),
    };
    lossy["topology"]["file"]["text"] = ring.lines().map(row).collect::<String>().into();
    let results = run(&lossy);
    assert_eq!(results.summary["deadlocks"], json!([]));
    assert_eq!(count(&results, "finished"), 5, "{}", results.summary["counts"]);
}

#[test]
fn open_ring_does_not_deadlock() {
    for left_out in 0..5 {
        // Flows that share a link still pause each other.
        let results = run(&round(Some(left_out)));
        assert!(count(&results, "pauses") > 0);
        assert_eq!((count(&results, "finished"), count(&results, "drops")), (4, 0));
        assert_eq!(results.summary["deadlocks"], json!([]));
        assert_eq!(
            (&results.summary["stuck"], &results.summary["warnings"]),
            (&json!([]), &json!([]))
        );
    }
}

#[test]
fn long_pause_without_a_cycle_is_only_a_warning() {
    // The receiver's link is so slow that links towards it are paused nearly all the time.
    let slow = "from,to,rate,delay\na,s,10 Gbps,1 us\nb,s,10 Gbps,1 us\ns,c,1 Mbps,1 us\n";
    let results = run(&json!({
        "topology": { "kind": "graph", "file": { "name": "slow.csv", "text": slow } },
        "transport": "constant_rate",
        "switch": { "shared_buffer": "100 KB", "pause": {} },
        "workload": flows(&[(0.0, 0, 2, 40_000), (0.0, 1, 2, 40_000)]),
    }));
    assert_eq!(count(&results, "finished"), 2);
    assert_eq!(results.summary["deadlocks"], json!([]));
    let warning = text(&results.summary["warnings"][0]);
    assert!(
        warning.contains("was paused for") && warning.contains("`switch.pause.watchdog` is 10 ms")
    );
    let longest = ["a->s", "b->s"].map(|name| link(&results, name, "longest_pause_s"));
    let name = if longest[0] >= longest[1] { "a->s" } else { "b->s" };
    assert!(longest[0].max(longest[1]) > 0.01 && warning.starts_with(name), "{warning}");
    assert!(longest[0] <= link(&results, "a->s", "paused_s"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn only_permanent_deadlocks_keep_flows_from_finishing(
        ends in prop::collection::vec((0_u32..5, 1_u32..5, 20_u64..600), 4..14),
        receive_rate in prop::sample::select(&["3 Gbps", "10 Gbps"]), buffer in 70_u32..120,
        alpha in prop::sample::select(&[0.05, 0.125, 0.5, 2.0]),
    ) {
        let flow = |(i, (source, further, kilobytes)): (u32, &(u32, u32, u64))| {
            (f64::from(i) * 3e-5, *source, (source + further) % 5, kilobytes * 1_000)
        };
        let rows: Vec<_> = (0..).zip(&ends).map(flow).collect();
        let scenario = |watchdog: &str| with(&round(None), json!({
            "topology": ring(receive_rate), "workload": flows(&rows), "time_limit": "100 ms",
            "switch": {
                "shared_buffer": format!("{buffer} KB"), "pause": { "alpha": alpha, "watchdog": watchdog },
            },
        }));
        let (early, late) = (run(&scenario("1 us")), run(&scenario("none")));
        prop_assert_eq!(count(&late, "drops"), 0);
        let of = |results: &Results| results.summary["deadlocks"].as_array().unwrap().clone();
        prop_assert_eq!(count(&late, "unfinished") > 0, !of(&late).is_empty());
        prop_assert_eq!(of(&early).is_empty(), of(&late).is_empty());
        for deadlock in of(&early) {
            let since = deadlock["since_s"].as_f64().unwrap();
            for name in deadlock["links"].as_array().unwrap() {
                let name = name.as_str().unwrap();
                prop_assert!(link(&late, name, "longest_pause_s") >= 0.1 - since - 1e-9, "{}", name);
            }
        }
    }

    #[test]
    fn clos_networks_never_deadlock(
        seed in 0_u64..1_000, buffer in 150_u32..400, alpha in 0.01_f64..0.3,
        routing in prop::sample::select(&["flow_hash", "spray_random"]),
    ) {
        // Up-down paths have no cyclic dependency.
        let results = run(&json!({
            "seed": seed,
            "topology": {
                "kind": "clos", "pods": 2, "edges_per_pod": 2, "hosts_per_edge": 2,
                "aggregations_per_pod": 2, "cores": 2, "fabric_rate": "10 Gbps", "core_rate": "10 Gbps",
            },
            "transport": { "kind": "constant_rate", "reliability": { "duplicate_acks": "none" } },
            "routing": routing,
            "switch": {
                "shared_buffer": format!("{buffer} KB"), "pause": { "alpha": alpha, "watchdog": "100 us" },
            },
            "workload": {
                "kind": "poisson", "load": 0.9, "flows": 60, "sizes": { "kind": "fixed", "size": "200 KB" },
                "allow_overload": true,
            },
        }));
        prop_assume!(count(&results, "pauses") > 0);
        prop_assert_eq!(&results.summary["deadlocks"], &json!([]));
        prop_assert_eq!((count(&results, "unfinished"), count(&results, "drops")), (0, 0));
    }
}

//! Random scenarios over all components: flows finish or their state is reported, nothing leaks, no
//! FCT is below the ideal FCT, and the same seed gives identical results, event by event and in
//! windows, on one thread and on several.
//!
//! `make fuzz COUNT=…` runs more scenarios. A failure prints the seed and the scenario.

use crate::common::campaign::{self, Plan};
use crate::common::receiver_driven::with_credit;
use crate::common::scenarios::{has_connections, scenario};
use crate::common::{as_in_papers, count, try_run_in_partitions, with};
use crate::records::check_record;
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// Checks that the recorded RTTs are those that hosts measure, and the sums of their components.
fn check_rtts(results: &Results, scenario: &Value) {
    let of = |name: &str| -> Vec<f64> {
        let samples = &results.samples;
        let Some(probe) = samples.probes.iter().position(|probe| probe == name) else {
            return Vec::new();
        };
        let rows = samples.probe.iter().zip(&samples.value);
        rows.filter(|(of, _)| **of as usize == probe).map(|(_, value)| *value).collect()
    };
    let (fingerprint, exact) = (of("measured_rtt_s flow 0"), of("rtt_true_s flow 0"));
    let host = &scenario["host"];
    if host["rtt_noise"] == "none" && host["clock_granularity"] == "0 ns" {
        assert_eq!(fingerprint, exact, "a host measures what is not so");
    }
    // With packet spraying, rerouting or delayed ACKs, the path and the waiting time of a sample
    // are unknown.
    let reliability = scenario["transport"].get("dctcp").unwrap_or(&scenario["transport"]);
    let is_known = scenario["routing"] == "flow_hash"
        && scenario["failures"].is_null()
        && reliability["reliability"]["delayed_ack"] == "none"
        && reliability["reliability"]["sack_compression"] == "none";
    let parts = ["forward_queueing", "reverse_queueing", "fixed"]
        .map(|part| of(&format!("rtt_{part}_s flow 0")));
    for (i, exact) in exact.iter().enumerate().filter(|_| is_known) {
        let sum: f64 = parts.iter().map(|part| part[i]).sum();
        assert!((sum - exact).abs() < 1e-11, "{sum} of {exact}: {parts:?}");
    }
}

/// Results of a run, without details of its execution.
fn fingerprint(results: &Results) -> [String; 3] {
    let mut summary = results.summary.clone();
    summary["engine"] = Value::Null;
    summary["scenario"]["engine"] = Value::Null;
    for recorded in ["account", "record"] {
        summary["scenario"][recorded] = Value::Null;
    }
    summary.as_object_mut().unwrap().remove("record");
    let warnings = summary["warnings"].as_array_mut().unwrap();
    warnings.retain(|warning| !warning.as_str().unwrap().starts_with("record."));
    [format!("{:?}", results.flows), format!("{:?}", results.samples), summary.to_string()]
}

/// Asserts that two texts are equal; shows the first difference.
fn assert_same(one: &str, other: &str) {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let around =
        |text: &str| text[same.saturating_sub(120)..].chars().take(240).collect::<String>();
    assert!(one == other, "two engines differ:\n{}\n{}", around(one), around(other));
}

/// Runs a scenario with an engine, in a number of partitions and threads.
fn run_by(engine: &str, parts: [u32; 2], scenario: &Value) -> Results {
    let results = try_run_in_partitions(parts, &with(scenario, json!({ "engine": engine })));
    results.unwrap_or_else(|problem| panic!("{engine}: {problem}"))
}

/// Runs the scenario of a seed with all engines and checks the results.
fn check(seed: u64, scenario: &Value) {
    let results = run_by("events", [1, 1], scenario);
    let flows = &results.flows;
    let unfinished = count(&results, "unfinished");
    let stuck = &results.summary["stuck"];
    let transport = &scenario["transport"];
    let dctcp = transport.get("dctcp").unwrap_or(transport);
    let recovery = &dctcp["reliability"]["recovery"];
    let is_paced =
        ["constant_rate", "d3", "dcqcn", "fair_share", "patched_timely", "rcp", "timely"]
            .iter()
            .any(|paced| transport["kind"] == *paced)
            || transport["segments"].is_object();
    let is_selective = recovery == "selective_repeat" || recovery == "rack";
    let has_permanent_failure = scenario["failures"].to_string().contains("none");
    if has_permanent_failure {
        // Flows may depend on a link that does not recover.
    } else if recovery == "go_back_n" || is_paced && !is_selective {
        // Without congestion control, or with a controller that excludes losses, a sender without
        // loss feedback may lose the same packets forever if the buffer is tiny. Then the flow is
        // unfinished, but not stuck: it keeps sending.
        let is_lossy = ["drops", "losses", "trims"].iter().any(|name| count(&results, name) > 0);
        assert!(unfinished == 0 || is_lossy);
    } else {
        // Headers that pass all data may fill a link forever.
        let may_starve =
            scenario["queue"]["header_share"] == "none" && count(&results, "trims") > 0;
        assert!(unfinished == 0 || may_starve, "{unfinished} flows are unfinished");
    }
    assert_eq!(*stuck, serde_json::json!([]));
    let pairs = flows.delivered_bytes.iter().zip(&flows.size_bytes).zip(&flows.outcome);
    for ((delivered, size), outcome) in pairs {
        assert_eq!(
            delivered == size,
            *outcome == 0,
            "finished flows must have delivered everything"
        );
    }
    let is_possible = |slowdown: &f64| slowdown.is_nan() || *slowdown >= 1.0 - 1e-9;
    assert!(flows.slowdown.iter().all(is_possible));
    if !has_connections(scenario) {
        let lost = flows.lost_packets.iter().sum::<f64>() as u64;
        let all =
            ["drops", "credit_drops", "losses"].map(|name| count(&results, name)).iter().sum();
        // A lost pause frame belongs to no flow.
        assert!(lost == all || lost < all && count(&results, "pauses") > 0, "{lost} of {all}");
    }
    check_rtts(&results, scenario);
    let by_events = fingerprint(&results);
    // Synchronisation of threads takes longer than the simulation of these small networks.
    let partitions: &[_] =
        if seed.is_multiple_of(50) { &[[2, 2], [3, 3]] } else { &[[1, 1], [3, 1]] };
    for parts in partitions {
        let in_windows = fingerprint(&run_by("windows", *parts, scenario));
        by_events.iter().zip(&in_windows).for_each(|(one, other)| assert_same(one, other));
    }
    check_records(scenario, &results, partitions[partitions.len() - 1], seed);
}

/// Checks that the FCT breakdown and records change no result and are the same with all engines. Every run
/// asserts that the components of a breakdown add up.
fn check_records(scenario: &Value, results: &Results, parts: [u32; 2], seed: u64) {
    let hops =
        if seed.is_multiple_of(2) { scenario["samples"]["queues"].clone() } else { json!([]) };
    let record = json!({
        "share": 0.7, "slowest": 3, "random": 1, "flows": [2], "packets": 200 << (seed % 8),
        "bins": 2 << (seed % 7), "hops": hops,
    });
    let scenario = with(scenario, json!({ "account": true, "record": record }));
    let (by_events, in_windows) =
        (run_by("events", [1, 1], &scenario), run_by("windows", parts, &scenario));
    let without = fingerprint(results);
    for recorded in [&by_events, &in_windows] {
        without.iter().zip(&fingerprint(recorded)).for_each(|(one, other)| assert_same(one, other));
        let (account, flows) = (recorded.account.as_ref().unwrap(), &recorded.flows);
        let finished = flows.flow.iter().zip(&flows.outcome).filter(|(_, outcome)| **outcome == 0);
        let finished: Vec<u64> = finished.map(|(flow, _)| *flow).collect();
        assert_eq!(account.flow, finished, "every finished flow must have a breakdown");
    }
    check_record(&by_events, &scenario);
    let debug = |results: &Results| format!("{:?}", results.account);
    assert_same(&debug(&by_events), &debug(&in_windows));
    let debug = |results: &Results| {
        format!("{:?} {:?} {}", results.record, results.chains, results.summary["record"])
    };
    assert_same(&debug(&by_events), &debug(&in_windows));
}

#[test]
fn random_scenarios_satisfy_the_invariants_with_all_engines() {
    let plan = Plan { name: "scenarios", default_cases: 1000, block: 1 };
    let check = |seed| check(seed, &scenario(seed));
    campaign::run(&plan, check, |seed| as_in_papers(&scenario(seed)).to_string());
}

#[test]
fn random_scenarios_with_receiver_driven_transports_satisfy_the_invariants() {
    let plan = Plan { name: "credit", default_cases: 200, block: 1 };
    let check = |seed| check(seed, &with_credit(seed));
    campaign::run(&plan, check, |seed| as_in_papers(&with_credit(seed)).to_string());
}

//! Records of a part of the flows: those of the same flows in a run with all, with the totals of all.

use serde_json::{Value, json};
use sojourn_core::model::flow::Outcome;
use sojourn_core::record::FlowColumns;

use crate::common::{run, run_with_all_engines, try_run, with};

/// 1100 small flows, some of which do not finish, over a queue that drops, and a long-lived flow.
fn small_flows(rest: Value) -> Value {
    let scenario = json!({
        "topology": { "kind": "dumbbell", "senders": 4, "receivers": 4, "rate": "1 Gbps" },
        "queue": { "kind": "drop_tail", "capacity": "20 packets" },
        "transport": "tcp", "time_limit": "40 ms", "account": true,
        "workload": { "kind": "mixed", "parts": [
            {
                "kind": "poisson", "load": 0.7, "stop": "40 ms",
                "sizes": { "kind": "pareto", "mean": "3 KB", "shape": 1.5 },
            },
            { "kind": "long_lived", "flows": 1 },
        ] },
    });
    with(&scenario, rest)
}

/// Rows of flow records, as text, by number.
fn rows(flows: FlowColumns) -> Vec<(u64, String)> {
    let numbers = flows.flow.clone();
    let columns: Vec<_> = flows.into_columns().collect();
    let row =
        |row: usize| columns.iter().map(move |(_, values)| values.show(row).to_string() + " ");
    numbers.into_iter().enumerate().map(|(at, number)| (number, row(at).collect())).collect()
}

#[test]
fn a_part_of_the_flows_has_records_and_all_are_counted() {
    for model in ["packet", "processor_sharing"] {
        let rest = json!({ "model": model, "account": model == "packet" });
        let all = run(&small_flows(rest.clone()));
        let part = run(&with(&small_flows(rest), json!({ "flows_per_record": 8 })));
        assert_eq!(part.summary["counts"], all.summary["counts"], "{model}");
        assert!(all.summary["counts"]["unfinished"].as_u64() > Some(0), "{model}");
        let (offered, expected) =
            (part.summary["realised_load"].as_f64(), all.summary["realised_load"].as_f64());
        assert!(
            (offered.unwrap() / expected.unwrap() - 1.0).abs() < 0.01,
            "{offered:?} {expected:?}"
        );
        let breakdowns = part.account.as_ref().map(|account| account.flow.clone());
        if let Some(breakdowns) = breakdowns {
            assert!(breakdowns.iter().all(|flow| part.flows.flow.contains(flow)));
            assert!(!breakdowns.is_empty());
        }
        assert!(part.flows.outcome.contains(&(Outcome::LongLived as u8)), "long-lived");
        let (all, part) = (rows(all.flows), rows(part.flows));
        assert!((100..180).contains(&part.len()), "{} of {}", part.len(), all.len());
        assert!(part.iter().all(|row| all.contains(row)), "{model}");
    }
}

#[test]
fn records_of_a_part_are_the_same_with_all_engines() {
    let summary = run_with_all_engines(&small_flows(json!({ "flows_per_record": 5 })));
    let warnings = summary["warnings"].to_string();
    let all = &summary["counts"]["flows"];
    let words = format!("flows_per_record = 5: tables are of one flow in 5, of {all}");
    assert!(warnings.contains(&words), "{warnings}");
}

#[test]
fn flows_that_follow_others_run_with_few_records() {
    let calls = json!({
        "topology": { "kind": "dumbbell", "senders": 1, "receivers": 1 }, "model": "srpt",
        "workload": {
            "kind": "rpc", "request": { "kind": "fixed", "size": "1 KB" },
            "response": { "kind": "fixed", "size": "10 KB" },
            "pattern": { "outstanding": 1, "pairs": "opposite", "calls": 300 },
        },
    });
    let all = run(&calls);
    let part = run(&with(&calls, json!({ "flows_per_record": 10 })));
    assert_eq!(part.summary["counts"], all.summary["counts"]);
    let (all, part) = (rows(all.flows), rows(part.flows));
    assert!((30..90).contains(&part.len()), "{} of {}", part.len(), all.len());
    assert!(part.iter().all(|row| all.contains(row)));
}

#[test]
fn records_that_must_be_complete_are_required_in_one_line() {
    let refusal = |rest: Value| try_run(&small_flows(rest)).unwrap_err();
    assert_eq!(
        refusal(json!({ "flows_per_record": 2, "record": {} })),
        "flows_per_record: must be 1 with `record`, which selects flows among all records"
    );
    assert_eq!(
        refusal(json!({ "flows_per_record": 0 })),
        "flows_per_record: must be above zero, not 0"
    );
    let collective =
        json!({ "kind": "collective", "algorithm": "all_to_all", "ranks": 4, "size": "1 MB" });
    let scenario = json!({
        "topology": { "kind": "star", "hosts": 4 }, "transport": "dctcp", "flows_per_record": 2,
        "workload": collective,
    });
    assert_eq!(
        try_run(&scenario).unwrap_err(),
        "flows_per_record: must be 1 with collective operations, whose durations need all messages"
    );
}

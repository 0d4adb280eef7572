//! Golden tables: mean and tail slowdown, drops, marks and retransmissions of every transport, and the
//! records of a flow. Any change in behaviour appears as a difference to review.

use std::fmt::Write;

use crate::common::{count, deadlines, mean, run, with, with_just_enough_buffer};
use serde_json::{Value, json};
use sojourn_core::record::packets::ABSENT;
use sojourn_core::record::{Chains, Packets};
use sojourn_core::transport::controllers;

/// The web search sizes of [dctcp10], divided by ten for short runs.
const SIZES: &str = "1000 0.15\n2000 0.2\n3000 0.3\n5000 0.4\n8000 0.53\n20000 0.6\n100000 0.7\n\
                     200000 0.8\n500000 0.9\n1000000 0.97\n3000000 1\n";

/// Formats three significant digits.
fn three_digits(value: f64) -> String {
    let decimals = 2 - value.log10().floor() as i32;
    format!("{value:.*}", decimals.max(0) as usize)
}

/// Poisson arrivals of web search flows over a topology.
fn scenario(transport: &str, topology: &Value, load: f64, flows: usize) -> Value {
    json!({
        "topology": topology,
        "transport": match transport {
            "timely" => json!({ "kind": transport, "ewma_weight": 0.875 }),
            _ => json!(transport),
        },
        "workload": {
            "kind": "poisson", "load": load, "flows": flows,
            "sizes": { "kind": "empirical", "file": { "name": "sizes", "text": SIZES } },
            "deadlines": deadlines(&json!(transport)),
        },
        "time_limit": "100 s",
    })
}

/// The rows of a transport: three loads on a fabric, a long link with random losses (`long`), and
/// the fabric with priority flow control and a small shared buffer (`pfc`).
fn rows(transport: &str) -> Vec<(String, Value)> {
    let fabric = json!({
        "kind": "leaf_spine", "leaves": 3, "hosts_per_leaf": 4, "spines": 2,
        "fabric_rate": "20 Gbps",
    });
    let long = json!({
        "kind": "dumbbell", "senders": 4, "receivers": 4, "bottleneck_delay": "15 us",
        "loss": 0.002,
    });
    let loads = [0.3, 0.6, 0.9];
    let mut rows: Vec<_> = loads
        .map(|load| (load.to_string(), scenario(transport, &fabric, load, 1_000)))
        .into_iter()
        .collect();
    rows.push(("long".to_owned(), scenario(transport, &long, 0.6, 500)));
    let paused = scenario(transport, &fabric, 0.9, 500);
    let paused = with(&paused, json!({ "switch": { "pause": {} } }));
    rows.push(("pfc".to_owned(), with_just_enough_buffer(&paused)));
    rows
}

#[test]
fn mean_and_tail_slowdowns_of_every_transport() {
    let mut table = String::from("transport       load   mean    p99  drops  marks  retransmits\n");
    let mut paused_transports = 0;
    for transport in controllers::Config::built_in() {
        for (row, scenario) in rows(transport) {
            let results = run(&scenario);
            assert_eq!(count(&results, "unfinished"), 0, "{transport} {row}");
            let mut slowdowns = results.flows.slowdown.clone();
            slowdowns.sort_by(f64::total_cmp);
            let tail = slowdowns[slowdowns.len() * 99 / 100 - 1];
            let mean = mean(slowdowns.iter().copied());
            let [drops, marks, retransmits] =
                ["drops", "marks", "retransmits"].map(|name| count(&results, name));
            let (mean, tail) = (three_digits(mean), three_digits(tail));
            writeln!(
                table,
                "{transport:15} {row:>4} {mean:>6} {tail:>6} {drops:>6} {marks:>6} {retransmits:>12}"
            )
            .unwrap();
            paused_transports += u32::from(row == "pfc" && count(&results, "pauses") > 0);
        }
    }
    assert!(paused_transports > 10, "only {paused_transports} transports were paused");
    insta::assert_snapshot!(table);
}

/// Returns a time in microseconds, or a dash.
fn microseconds(time_ps: u64) -> String {
    if time_ps == ABSENT { "-".to_owned() } else { format!("{:.3}", time_ps as f64 / 1e6) }
}

#[test]
fn packets_and_causal_chain_of_a_flow_that_loses_packets() {
    let results = run(&json!({
        "topology": { "kind": "dumbbell", "senders": 2, "receivers": 2 },
        "transport": "tcp",
        "queue": { "kind": "drop_tail", "capacity": "6 packets" },
        "workload": { "kind": "synchronised", "flows": 2, "size": "20 KB" },
        "account": true,
        "record": { "flows": [1] },
    }));
    let mut table = String::from(
        "flow 1\n\npackets\nkind      number copy because      sent/us arrived/us  lost/us  at\n",
    );
    let packets = &results.record.as_ref().unwrap().packets;
    let Packets { sent, arrived_ps, lost_ps, lost_at, .. } = packets;
    for row in (0..sent.flow.len()).filter(|row| sent.flow[*row] == 1) {
        let kind = Packets::KINDS[usize::from(sent.kind[row])];
        let because = Packets::REASONS[usize::from(sent.because[row])];
        let [at, arrived, lost] =
            [sent.sent_ps[row], arrived_ps[row], lost_ps[row]].map(microseconds);
        let link = if lost_ps[row] == ABSENT { "-".to_owned() } else { lost_at[row].to_string() };
        let (number, copy) = (sent.number[row], sent.copy[row]);
        writeln!(
            table,
            "{kind:9} {number:>6} {copy:>4} {because:12} {at:>7} {arrived:>10} {lost:>8} {link:>3}"
        )
        .unwrap();
    }
    let mut chains = results.chains.clone();
    table.push_str("\ncausal chain\nbegins/us reason       location: duration/us\n");
    let durations: Vec<_> = chains.take_durations().collect();
    for row in (0..chains.flow.len()).filter(|row| chains.flow[*row] == 1) {
        let reason = Chains::REASONS[usize::from(chains.reason[row])];
        let begins = microseconds(chains.begins_ps[row]);
        let parts: Vec<String> = durations
            .iter()
            .filter(|(_, column)| column[row] > 0)
            .map(|(name, column)| {
                format!("{} {}", name.trim_end_matches("_ps"), microseconds(column[row]))
            })
            .collect();
        writeln!(table, "{begins:>9} {reason:12} {}", parts.join(", ")).unwrap();
    }
    insta::assert_snapshot!(table);
}

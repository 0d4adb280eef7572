//! Records of packets: complete, equal to the counters of flows, bounded, and the same with all engines.

use std::collections::BTreeMap;

use crate::common::{flows, run, try_run, try_run_in_partitions, with};
use serde_json::{Value, json};
use sojourn_core::record::Packets;
use sojourn_core::record::packets::ABSENT;
use sojourn_core::run::Results;

/// Checks the records of a run against its flow records.
pub(crate) fn check_record(results: &Results, scenario: &Value) {
    check_series(results);
    let record = results.record.as_ref().unwrap();
    let most = scenario["record"]["packets"].as_u64().unwrap_or(400_000) as usize;
    let packets = &record.packets;
    let rows =
        |flow: u64| (0..packets.sent.flow.len()).filter(move |row| packets.sent.flow[*row] == flow);
    let is_ordinary =
        |row: &usize| packets.sent.copy[*row] == 1 && packets.arrived_ps[*row] < ABSENT;
    // The first packets of a flow stay in any case, of both directions, ordinary and others.
    let bound = most.max(4 * record.flows.len());
    assert!(packets.sent.flow.len() <= bound, "{} of {most} packets", packets.sent.flow.len());
    for flow in &record.flows {
        let index = results.flows.flow.iter().position(|other| *other == flow.flow).unwrap();
        let rows = || rows(flow.flow);
        let ordinary = rows().filter(is_ordinary).count() as u64;
        let others = rows().count() as u64 - ordinary;
        assert_eq!(flow.rows as u64, ordinary + others);
        assert_eq!(flow.has_chain, results.chains.flow.contains(&flow.flow));
        let is_lost = |row: &usize| packets.lost_ps[*row] < ABSENT;
        let trimmed = Packets::CAUSES.iter().position(|cause| *cause == "trimmed").unwrap();
        let is_trimmed = |row: &usize| usize::from(packets.lost_why[*row]) == trimmed;
        let (trimmed, lost): (Vec<_>, Vec<_>) = rows().filter(is_lost).partition(is_trimmed);
        let recorded = results.flows.lost_packets[index];
        if recorded.is_nan() {
            assert_eq!(rows().count(), 0, "flows of a connection share its packets");
            continue;
        }
        for row in rows() {
            let is_arrived = packets.arrived_ps[row] < ABSENT;
            assert!(!(is_arrived && is_lost(&row)));
            assert!(packets.arrived_ps[row].min(packets.lost_ps[row]) >= packets.sent.sent_ps[row]);
        }
        if flow.every_lost > 1 {
            assert!(lost.len() as f64 <= recorded, "{} of {recorded}", lost.len());
            continue;
        }
        // On two paths, the first of every `flow.every` packets.
        let (kept, sent) = (ordinary * u64::from(flow.every), flow.packets - others);
        assert!(
            kept.abs_diff(sent) <= (2 + others) * u64::from(flow.every - 1),
            "{kept} of {sent}, every {}",
            flow.every
        );
        // The headers of trimmed packets may be lost, too.
        let counts = lost.len()..=lost.len() + trimmed.len();
        assert!(counts.contains(&(recorded as usize)), "flow {}: {recorded}", flow.flow);
        let data = || rows().filter(|row| packets.sent.kind[*row] == 0);
        let copies = data().filter(|row| packets.sent.copy[*row] > 1).count();
        assert_eq!(copies, results.flows.retransmits[index] as usize, "flow {}", flow.flow);
        let is_finished = results.flows.outcome[index] == 0;
        if is_finished && flow.every == 1 {
            let (completed, last) = (fct_ps(results, index), last_new_arrival(packets, data()));
            assert!(data().any(|row| packets.arrived_ps[row] == completed));
            // A go-back-N receiver discards new segments beyond a gap.
            let discards = scenario.to_string().contains("go_back_n");
            assert!(last == completed || discards && last < completed, "{last} of {completed}");
        }
    }
}

/// Checks that the counters of links over time add up to those of the summary.
fn check_series(results: &Results) {
    let series = &results.record.as_ref().unwrap().series;
    let elapsed = results.summary["simulated_s"].as_f64().unwrap();
    for (link, summary) in (0..).zip(results.links.show()) {
        let rows = || (0..series.link.len()).filter(move |row| series.link[*row] == link);
        let sum = |column: &[u64]| rows().map(|row| column[row]).sum::<u64>();
        let sum_u32 = |column: &[u32]| rows().map(|row| u64::from(column[row])).sum::<u64>();
        let counters = [
            ("bytes", sum(&series.bytes)),
            ("marks", sum_u32(&series.marks)),
            ("drops", sum_u32(&series.drops)),
            ("losses", sum_u32(&series.losses)),
            ("queue_max_bytes", rows().map(|row| series.queue_max_bytes[row]).max().unwrap_or(0)),
        ];
        for (name, counter) in counters {
            assert_eq!(summary[name], counter, "{name} of {}", summary["name"]);
        }
        let bin_s = series.bin_ps as f64 / 1e12;
        let area = |row: usize| {
            let start = f64::from(series.bin[row]) * bin_s;
            series.queue_mean_bytes[row] * bin_s.min(elapsed - start)
        };
        let seconds = [
            ("paused_s", sum(&series.paused_ps) as f64 / 1e12),
            ("queue_mean_bytes", rows().map(area).sum::<f64>() / elapsed),
        ];
        for (name, value) in seconds {
            let expected = summary[name].as_f64().unwrap();
            assert!((value - expected).abs() <= 1e-6 * expected, "{name}: {value} of {expected}");
        }
    }
}

/// Time at which the last segment arrived first.
fn last_new_arrival(packets: &Packets, data: impl Iterator<Item = usize>) -> u64 {
    let mut first_arrivals = BTreeMap::new();
    for row in data {
        let arrived = packets.arrived_ps[row];
        let first = first_arrivals.entry(packets.sent.number[row]).or_insert(arrived);
        *first = arrived.min(*first);
    }
    first_arrivals.into_values().max().unwrap()
}

/// Completion of a flow since the start of the run, from the causal breakdown.
fn fct_ps(results: &Results, index: usize) -> u64 {
    let account = results.account.as_ref().unwrap();
    let row = account.flow.iter().position(|flow| *flow == results.flows.flow[index]).unwrap();
    (results.flows.start_s[index] * 1e12).round() as u64 + account.fct_ps[row]
}

/// TCP flows of several sizes through a short queue.
fn lossy() -> Value {
    json!({
        "topology": { "kind": "dumbbell", "senders": 4, "receivers": 4 },
        "transport": "tcp",
        "queue": { "kind": "drop_tail", "capacity": "20 KB" },
        "workload": {
            "kind": "poisson", "load": 0.9, "flows": 60,
            "sizes": { "kind": "bounded_pareto", "shape": 1.1, "min": "20 KB", "max": "1 MB" },
        },
        "account": true,
        "record": { "share": 1.0, "slowest": 2, "random": 1, "flows": [3, 4] },
        "time_limit": "30 s",
    })
}

#[test]
fn packets_of_kept_flows_agree_with_the_counters_of_flows() {
    let scenario = lossy();
    let results = run(&scenario);
    check_record(&results, &scenario);
    let flows = &results.record.as_ref().unwrap().flows;
    assert!(flows.iter().all(|flow| flow.every == 1 && flow.every_lost == 1 && flow.has_chain));
    for why in ["named", "slowest", "random"] {
        assert!(flows.iter().any(|flow| flow.why == why), "{why}");
    }
    let packets = &results.record.as_ref().unwrap().packets;
    assert!(packets.lost_ps.iter().any(|lost| *lost < ABSENT), "the queue must be too short");
    for (number, reason) in (0..).zip(Packets::REASONS) {
        let is_expected = reason != "probe";
        assert_eq!(packets.sent.because.contains(&number), is_expected, "{reason}");
    }
}

#[test]
fn flows_with_most_packets_are_thinned_until_all_fit() {
    let scenario = with(&lossy(), json!({ "record": { "packets": 1500 } }));
    let results = run(&scenario);
    check_record(&results, &scenario);
    let record = results.record.as_ref().unwrap();
    let mut flows: Vec<_> = record.flows.iter().map(|flow| (flow.packets, flow.every)).collect();
    flows.sort_unstable();
    assert_eq!(flows[0].1, 1, "a short flow stays complete: {flows:?}");
    assert!(flows[flows.len() - 1].1 > 1, "{flows:?}");
}

#[test]
fn packets_of_flows_that_lose_most_are_a_sample_with_all_engines() {
    let scenario = json!({
        "topology": { "kind": "dumbbell", "senders": 3, "receivers": 3 },
        "transport": { "kind": "constant_rate", "rate": "10 Gbps" },
        "queue": { "kind": "drop_tail", "capacity": "2 KB" },
        "workload": flows(&[(0.0, 0, 3, 3_000_000), (0.0, 1, 4, 3_000_000), (0.0, 2, 5, 60_000)]),
        "account": true, "record": { "share": 1.0, "flows": [0], "packets": 400 },
        "time_limit": "30 s",
    });
    let recorded = |results: &Results| {
        check_record(results, &scenario);
        format!("{:?} {:?} {}", results.record, results.chains, results.summary["record"])
    };
    let by_events = run(&scenario);
    let Packets { lost_ps, .. } = &by_events.record.as_ref().unwrap().packets;
    let lost = lost_ps.iter().filter(|lost| **lost < ABSENT).count();
    assert!((20..=200).contains(&lost), "{lost} of {:?}", by_events.flows.lost_packets);
    let kept = &by_events.record.as_ref().unwrap().flows;
    assert!(kept.iter().any(|flow| flow.every_lost >= 8), "{kept:?}");
    assert!(kept.iter().any(|flow| !flow.has_chain), "{kept:?}");
    for parts in [[1, 1], [2, 1], [2, 2]] {
        let in_windows = with(&scenario, json!({ "engine": "windows" }));
        let in_windows = try_run_in_partitions(parts, &in_windows).unwrap();
        assert!(recorded(&in_windows) == recorded(&by_events), "{parts:?}");
    }
}

#[test]
fn a_run_that_reaches_its_limit_has_packets_under_way() {
    let scenario = json!({
        "topology": { "kind": "dumbbell", "senders": 1, "receivers": 1 }, "transport": "dctcp",
        "workload": flows(&[(0.0, 0, 1, 10_000_000)]), "time_limit": "2 ms",
        "account": true, "record": { "flows": [0] },
    });
    let results = run(&scenario);
    check_record(&results, &scenario);
    let packets = &results.record.as_ref().unwrap().packets;
    let under_way = packets.arrived_ps.iter().zip(&packets.lost_ps);
    let under_way = under_way.filter(|(arrived, lost)| arrived.min(lost) == &&ABSENT).count();
    assert!((1..1_000).contains(&under_way), "{under_way}");
}

#[test]
fn records_change_no_result_and_do_not_depend_on_partitions() {
    let scenario = json!({
        "topology": { "kind": "fat_tree", "k": 4, "rate": "10 Gbps" },
        "transport": "dctcp",
        "queue": { "kind": "ecn_threshold", "threshold": "30 KB", "capacity": "60 KB" },
        "workload": {
            "kind": "poisson", "load": 0.8, "flows": 300,
            "sizes": { "kind": "bounded_pareto", "shape": 1.1, "min": "3 KB", "max": "1 MB" },
        },
        "account": true, "engine": "windows",
        "record": { "share": 0.5, "slowest": 3, "random": 2, "packets": 3_000 },
    });
    let recorded = |parts| {
        let results = try_run_in_partitions(parts, &scenario).unwrap();
        check_record(&results, &scenario);
        format!(
            "{:?} {:?} {:?} {}",
            results.flows, results.record, results.chains, results.summary["record"]
        )
    };
    let whole = recorded([1, 1]);
    for parts in [[2, 1], [3, 2]] {
        assert!(recorded(parts) == whole, "{parts:?}");
    }
    let plain = run(&with(&scenario, json!({ "record": null, "engine": "events" })));
    assert!(plain.record.is_none());
    assert!(whole.starts_with(&format!("{:?}", plain.flows)));
}

#[test]
fn every_packet_on_a_selected_link_is_recorded() {
    let scenario = with(&lossy(), json!({ "record": { "hops": ["left->right"], "share": 0.0 } }));
    let results = run(&scenario);
    check_record(&results, &scenario);
    let record = results.record.as_ref().unwrap();
    let hops = &record.hops;
    let links = results.links.show();
    let link = links.iter().find(|link| link["name"] == "left->right").unwrap();
    let dropped = hops.dropped.iter().filter(|dropped| **dropped).count();
    assert_eq!(link["drops"], dropped);
    assert_eq!(link["packets"], hops.sent.flow.len() - dropped);
    assert!(hops.came_ps.is_sorted());
    assert!(hops.queue_bytes.iter().all(|queue| *queue <= 20_000));
    for row in 0..hops.sent.flow.len() {
        assert!(
            hops.sent.sent_ps[row] < hops.came_ps[row] && hops.came_ps[row] <= hops.starts_ps[row]
        );
    }
    // A named flow has the same packets in both tables.
    let sent = record.packets.sent.flow.iter().zip(&record.packets.sent.kind);
    let sent = sent.filter(|(flow, kind)| **flow == 3 && **kind == 0).count();
    let crossed = hops.sent.flow.iter().zip(&hops.sent.kind);
    let crossed = crossed.filter(|(flow, kind)| **flow == 3 && **kind == 0).count();
    assert!(sent > 0 && sent == crossed, "{sent}, {crossed}");
    let few = with(&scenario, json!({ "record": { "packets": 100 } }));
    assert_eq!(run(&few).record.unwrap().hops.came_ps, hops.came_ps[..100]);
}

#[test]
fn bins_grow_with_the_run() {
    let bins = |bins: u32| {
        let scenario = with(&lossy(), json!({ "record": { "bins": bins } }));
        let results = run(&scenario);
        check_record(&results, &scenario);
        let series = &results.record.as_ref().unwrap().series;
        let last = results.summary["simulated_s"].as_f64().unwrap() * 1e12 / series.bin_ps as f64;
        assert!(last <= f64::from(bins), "{last} of {bins} bins");
        series.bin_ps
    };
    let (few, many) = (bins(16), bins(512));
    assert!(few >= 16 * many && many.is_multiple_of(1_000_000), "{few}, {many}");
}

#[test]
fn gauges_of_kept_flows_are_bounded() {
    let scenario = json!({
        "topology": { "kind": "dumbbell", "senders": 1, "receivers": 1 }, "transport": "dctcp",
        "workload": flows(&[(0.0, 0, 1, 5_000_000)]), "account": true, "record": { "flows": [0] },
    });
    let results = run(&scenario);
    let gauges = &results.record.as_ref().unwrap().gauges;
    for name in ["in_flight_bytes", "window_bytes", "smoothed_rtt_s", "alpha"] {
        let number = gauges.names.iter().position(|gauge| *gauge == name).unwrap() as u32;
        let rows = gauges.gauge.iter().filter(|gauge| **gauge == number).count();
        assert!((1..=513).contains(&rows), "{rows} of {name}");
    }
    let number = gauges.names.iter().position(|gauge| *gauge == "in_flight_bytes").unwrap() as u32;
    let in_flight = gauges.gauge.iter().zip(&gauges.value).filter(|(gauge, _)| **gauge == number);
    let last = in_flight.map(|(_, value)| *value as u64).next_back();
    assert_eq!(last, Some(0), "nothing is in flight at the end");
}

#[test]
fn unsuitable_records_are_rejected_in_one_line() {
    let refusal =
        |record: Value| try_run(&with(&lossy(), json!({ "record": record }))).unwrap_err();
    let of_share = refusal(json!({ "share": 1.5 }));
    assert_eq!(of_share, "record.share: must be from 0 to 1, not 1.5");
    let of_link = refusal(json!({ "hops": ["left->rigth"] }));
    assert!(
        of_link.starts_with(
            "record.hops[0]: there is no link `left->rigth`; did you mean `left->right`?"
        ),
        "{of_link}"
    );
    let of_bins = refusal(json!({ "bins": 7 }));
    assert_eq!(of_bins, "record.bins: must be even, and 2 or more, not 7");
    let without = try_run(&with(&lossy(), json!({ "account": false }))).unwrap_err();
    assert_eq!(without, "record: needs `account = true`");
}

#[test]
fn of_a_few_flows_all_are_candidates_unless_a_share_is_given() {
    let rows: Vec<_> = (0..5).map(|flow| (0.0, flow, 5, 10_000)).collect();
    let recorded = |record: Value| {
        let scenario = json!({
            "topology": { "kind": "star", "hosts": 6 }, "transport": "dctcp",
            "workload": flows(&rows), "account": true, "record": record,
        });
        run(&scenario).record.unwrap().flows.len()
    };
    assert_eq!(recorded(json!({})), 5);
    assert_eq!(recorded(json!({ "share": 0.1 })), 0);
}

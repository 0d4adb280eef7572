//! ExpressPass: a flow alone, shares and queues of flows that meet, and credits that are dropped instead of
//! data.

use crate::common::{count, flows, link, mean, run, run_with_all_engines, with};
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// Time of a credit and of the packet that it permits, in microseconds.
const INTERVAL: f64 = (84.0 + 1538.0) * 8e-4;

/// A star of 10 Gb/s and 1 us per link, with the packets of the authors' simulator.
fn star(transport: Value, rows: &[(f64, u32, u32, u64)]) -> Value {
    json!({
        "topology": { "kind": "star", "hosts": 33, "rate": "10 Gbps", "delay": "1 us" },
        "packet": { "payload": "1460 B", "header": "78 B", "ack": "84 B" },
        "transport": with(&json!({ "kind": "expresspass" }), transport),
        "workload": flows(rows),
        "time_limit": "1 s",
    })
}

/// Flows of this number of packets from different hosts to host 32.
fn incast(flows: u32, packets: u64) -> Vec<(f64, u32, u32, u64)> {
    (0..flows).map(|source| (0.0, source, 32, packets * 1460)).collect()
}

/// Packets dropped at the ports of the path of data, and credits dropped elsewhere.
fn drops(results: &Results) -> [u64; 2] {
    let senders = (0..32).map(|host| format!("host{host}->switch"));
    let path = senders.chain(["switch->host32".to_owned()]);
    let data = path.map(|name| link(results, &name, "drops") as u64).sum();
    assert_eq!(count(results, "drops"), data);
    [data, count(results, "credit_drops")]
}

#[test]
fn credits_that_a_fifo_queue_drops_are_no_dropped_packets() {
    // Credits for 32 flows meet at one port, in front of data of the other direction.
    let rows: Vec<_> =
        (0..32).flat_map(|host| [(0.0, host, 32, 300_000), (0.0, 32, host, 300_000)]).collect();
    let queue = json!({ "kind": "drop_tail", "capacity": "4 packets" });
    let results =
        run(&with(&star(json!({}), &rows), json!({ "queue": queue, "host_queue": queue })));
    assert!(count(&results, "credit_drops") > 0);
}

#[test]
fn a_flow_alone_takes_the_time_of_a_request_a_credit_and_its_packets() {
    let constant = json!({ "initial_rate": 1.0, "feedback": false, "jitter": 0.0 });
    for packets in [40, 1000] {
        let shaper = json!({ "kind": "credit_shaper", "jitter": 0.0 });
        let change = json!({ "queue": shaper, "host_queue": shaper });
        let results = run(&with(&star(constant.clone(), &incast(1, packets)), change));
        let (control, data) = (2.0 * (84.0 * 8e-4 + 1.0), 2.0 * (1538.0 * 8e-4 + 1.0));
        let expected = 2.0 * control + data + INTERVAL * (packets - 1) as f64;
        let fct = results.flows.fct_s[0] * 1e6;
        assert!((fct - expected).abs() < 1e-4 * packets as f64, "{fct}, not {expected}");
    }
}

#[test]
fn a_flow_alone_approaches_the_share_of_the_link_that_credits_leave_to_data() {
    let results = run(&star(json!({}), &incast(1, 20_000)));
    let ideal = INTERVAL * 20_000.0;
    let fct = results.flows.fct_s[0] * 1e6;
    assert!((1.0..1.05).contains(&(fct / ideal)), "{fct} us, at least {ideal}");
    assert_eq!(drops(&results)[0], 0);
}

#[test]
fn flows_to_one_host_share_its_link_with_a_queue_of_a_few_packets() {
    for number in [2, 8, 32] {
        let scenario = star(json!({}), &incast(number, 16_000 / u64::from(number)));
        let results = run(&scenario);
        let [data, credits] = drops(&results);
        assert_eq!(data, 0, "{number} flows");
        assert!(credits > 0, "{number} flows");
        // The last flows to end leave a part of the link idle.
        let fcts = &results.flows.fct_s;
        let last = fcts.iter().fold(0.0, |a: f64, b| a.max(*b)) * 1e6;
        assert!((1.0..1.15).contains(&(last / (16_000.0 * INTERVAL))), "{number}: {last}");
        assert!(mean(fcts.iter().copied()) * 1e6 > 0.8 * last, "{number}: {fcts:?}");
        // Two credits may depart together.
        let queue = link(&results, "switch->host32", "queue_max_bytes");
        assert!(queue <= 3.0 * 1538.0, "{number} flows: {queue} B");
    }
}

#[test]
fn feedback_balances_the_loss_of_credits_and_its_target() {
    // An RTT of 100 us, in which a flow sends more than one credit.
    let far = json!({ "topology": { "delay": "25 us" } });
    let lost = |transport, flows| {
        let rows = incast(flows, 32_000 / u64::from(flows));
        let results = run(&with(&star(transport, &rows), far.clone()));
        let [data, credits] = drops(&results);
        assert_eq!(data, 0, "{flows} flows");
        credits as f64 / (credits as f64 + 32_000.0)
    };
    // Two flows of rate x: 1 - 1 / 2x = (1 - x) / 8. More flows oscillate: rates grow in steps of 1 %.
    let two = lost(json!({}), 2);
    assert!((two / 0.058 - 1.0).abs() < 0.5, "{two}");
    // Without feedback all flows keep half the largest rate.
    for flows in [8, 32] {
        let constant = lost(json!({ "feedback": false }), flows);
        let expected = 1.0 - 2.0 / f64::from(flows);
        assert!((constant - expected).abs() < 0.02, "{flows} flows: {constant}");
        assert!(lost(json!({}), flows) < constant, "{flows} flows");
    }
}

#[test]
fn credits_are_limited_on_the_reverse_path_of_their_data() {
    // The middle link has a tenth of the rate: its credits are dropped at the switch of the receivers.
    let rows: Vec<_> = (0..4).map(|i| (0.0, i, 4 + i, 500 * 1460)).collect();
    let scenario = with(
        &star(json!({}), &rows),
        json!({ "topology": {
            "kind": "dumbbell", "senders": 4, "receivers": 4, "bottleneck_rate": "1 Gbps",
        } }),
    );
    let scenario = replaced(scenario, "topology", &["hosts", "rate", "delay"]);
    let results = run(&scenario);
    let credits = link(&results, "right->left", "credit_drops") as u64;
    assert_eq!(["credit_drops", "drops"].map(|name| count(&results, name)), [credits, 0]);
    assert!(link(&results, "left->right", "queue_max_bytes") <= 3.0 * 1538.0);
    let last = results.flows.fct_s.iter().fold(0.0, |a: f64, b| a.max(*b)) * 1e6;
    assert!((1.0..1.15).contains(&(last / (2000.0 * 10.0 * INTERVAL))), "{last}");
}

/// Returns the scenario without these fields of a table.
fn replaced(mut scenario: Value, table: &str, fields: &[&str]) -> Value {
    let table = scenario[table].as_object_mut().unwrap();
    table.retain(|field, _| !fields.contains(&field.as_str()));
    scenario
}

#[test]
fn credits_stop_while_lost_data_waits_for_its_timeout() {
    // The last packet of flow 0 is lost and named 10 ms later; meanwhile flow 1 has the link to itself.
    let losses = json!({ "name": "losses.csv", "text": "flow,segment,time\n0,100,1\n" });
    let rows = [(0.0, 0, 2, 100 * 1460), (0.0, 1, 3, 6_000 * 1460)];
    let scenario = with(
        &star(json!({ "resend_timeout": "10 ms" }), &rows),
        json!({ "topology": {
            "kind": "dumbbell", "senders": 2, "receivers": 2, "losses": losses,
        } }),
    );
    let results = run(&replaced(scenario, "topology", &["hosts", "delay"]));
    let [lossy, other] = [0, 1].map(|flow| results.flows.fct_s[flow] * 1e6);
    assert!((10_000.0..11_000.0).contains(&lossy), "{lossy} us");
    assert!((1.0..1.1).contains(&(other / (6_100.0 * INTERVAL))), "{other} us");
}

#[test]
fn a_sender_that_has_stopped_credits_requests_its_lost_data_after_an_rto() {
    let losses = json!({ "name": "losses.csv", "text": "flow,segment,time\n0,100,1\n" });
    let scenario = with(
        &star(json!({ "reliability": { "min_rto": "10 ms" } }), &[(0.0, 0, 1, 100 * 1460)]),
        json!({ "topology": {
            "kind": "dumbbell", "senders": 1, "receivers": 1, "losses": losses,
        } }),
    );
    let results = run(&replaced(scenario, "topology", &["hosts", "delay"]));
    let fct = results.flows.fct_s[0] * 1e6;
    assert!((10_000.0..11_000.0).contains(&fct), "{fct} us");
}

#[test]
fn a_sender_keeps_no_more_credits_after_a_timeout_than_it_has_packets() {
    // The last of 6850 packets is lost. Before, after a failure of 13 ms, credits name all missing packets,
    // also those that were never sent and are not sent twice.
    let losses = json!({ "name": "losses.csv", "text": "flow,segment,time\n0,6850,1\n" });
    let results = run(&json!({
        "topology": { "kind": "link", "rate": "10 Gbps", "delay": "20 us", "losses": losses },
        "failures": [{ "link": "left->right", "fails": "1 ms", "returns": "14 ms" }],
        "convergence": "1 us",
        "packet": { "payload": "1460 B", "header": "78 B", "ack": "84 B" },
        "transport": { "kind": "expresspass", "resend_timeout": "10 ms" },
        "queue": "credit_shaper",
        "time_limit": "200 ms",
        "workload": {
            "kind": "flows",
            "flows": [{ "source": 0, "target": 1, "size": "10 MB" }],
        },
    }));
    assert_eq!(results.summary["counts"]["finished"], 1);
    let packets = results.summary["counts"]["packets"].as_u64().unwrap();
    // 14,000 without a failure, 10,000 credits during it; while the last packet is missing, credits stop.
    assert!(packets < 25_000, "{packets}");
}

#[test]
fn credits_end_with_a_flow_that_stops() {
    let flows = json!([
        { "source": 0, "target": 1, "stop": "20 ms" },
        { "source": 0, "target": 2, "start": "1 ms", "stop": "60 ms" },
    ]);
    let scenario = with(
        &star(json!({}), &[]),
        json!({ "workload": { "kind": "flows", "flows": flows }, "time_limit": "60 ms" }),
    );
    let results = run(&replaced(scenario, "workload", &["file"]));
    // Half of the link for 19 ms, and all of it for 40 ms, in packets.
    let expected = (19_000.0 / 2.0 + 40_000.0) / INTERVAL;
    let packets = results.flows.delivered_bytes[1] as f64 / 1460.0;
    assert!((0.97..1.03).contains(&(packets / expected)), "{packets} of {expected}");
}

#[test]
fn limited_credits_are_the_same_with_all_engines_classes_and_pauses() {
    let rows: Vec<_> = (0..24).map(|i| (f64::from(i) * 5e-6, i, 32 - i % 2, 60 * 1460)).collect();
    let plain = star(json!({}), &rows);
    let account = json!({ "account": true, "account_flows": [0, 3] });
    run_with_all_engines(&with(&plain, account));
    let pauses = json!({ "switch": { "shared_buffer": "2 MB", "pause": {} } });
    run_with_all_engines(&with(&plain, pauses));
    let row = |i: usize| format!("0,{i},32,87600,{}", ["new", "old"][i % 2]);
    let lines: Vec<String> = (0..24).map(row).collect();
    let text = format!("start_s,source,target,size_bytes,class\n{}", lines.join("\n"));
    let file = json!({ "name": "flows.csv", "text": text });
    let classes = json!({
        "workload": { "kind": "trace", "file": file },
        "transports": { "old": "dctcp" },
        "traffic_classes": { "old": 1, "new": 0 },
    });
    let summary = run_with_all_engines(&with(&plain, classes));
    assert_eq!(summary["counts"]["unfinished"], 0);
}

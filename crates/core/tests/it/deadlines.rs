//! Deadline-aware and priority transports in closed loop, against their control laws.

use crate::common::{assert_near, count, flows, link, mean, run, samples, with};
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// One flow per size and deadline, each from its own host to the last host, all at once.
fn to_one_receiver(rate: &str, offered: &[(&str, &str)]) -> Value {
    let target = offered.len();
    let flow = |(source, flow): (usize, &(&str, &str))| {
        let (size, deadline) = flow;
        json!({ "source": source, "target": target, "size": size, "deadline": deadline })
    };
    json!({
        "topology": { "kind": "star", "hosts": offered.len() + 1, "rate": rate, "delay": "20 us" },
        "packet": { "payload": "1460 B", "header": "40 B" },
        "workload": {
            "kind": "flows", "flows": offered.iter().enumerate().map(flow).collect::<Vec<_>>(),
        },
        "samples": { "interval": "500 us", "flows": (0..offered.len()).collect::<Vec<_>>() },
    })
}

/// Bytes that a flow has delivered after `ms` milliseconds.
fn delivered(results: &Results, flow: usize, ms: f64) -> f64 {
    samples(results, &format!("delivered_bytes flow {flow}"), (ms - 0.01) * 1e-3)[0]
}

// D2TCP.

#[test]
fn d2tcp_gives_more_to_the_earlier_deadline() {
    // Two flows of 20 MB take 33 ms over 10 Gb/s if they share it. Half of the window reacts to the
    // deadline.
    let scenario = to_one_receiver("10 Gbps", &[("20 MB", "27 ms"), ("20 MB", "200 ms")]);
    let scenario = with(&scenario, json!({ "queue": "ecn_threshold" }));
    let fcts = |transport: &str| run(&with(&scenario, json!({ "transport": transport }))).flows;
    let shared = fcts("dctcp");
    assert_near(shared.fct_s[0], 33e-3, 0.05, "DCTCP");
    assert_near(shared.fct_s[1], 33e-3, 0.05, "DCTCP");
    let aware = fcts("d2tcp");
    assert!(aware.fct_s[0] < 27e-3, "the near deadline is met: {:?}", aware.fct_s);
    // The other flow loses nothing in the end, because the link is always full.
    assert_near(aware.fct_s[1], 33e-3, 0.05, "the far deadline");
}

#[test]
fn d2tcp_with_equal_deadlines_shares_like_dctcp() {
    // Access links of different lengths avoid phase effects: otherwise the same packet would always
    // arrive first.
    let ratio = |us: usize| {
        let links = "host0,switch,10 Gbps,20 us\nhost2,switch,10 Gbps,20 us\n";
        let text = format!("from,to,rate,delay\n{links}host1,switch,10 Gbps,{us}.1 us\n");
        let graph = json!({
            "kind": "graph", "hosts": ["host0", "host1", "host2"],
            "file": { "name": "star.csv", "text": text },
        });
        let scenario = to_one_receiver("10 Gbps", &[("20 MB", "30 ms"), ("20 MB", "30 ms")]);
        let scenario =
            with(&with(&scenario, json!({ "topology": null })), json!({ "topology": graph }));
        let fcts = run(&with(&scenario, json!({ "transport": "d2tcp" }))).flows.fct_s;
        (fcts[0] / fcts[1]).ln()
    };
    assert!(mean((17..=23).map(ratio)).abs() < 0.05);
}

#[test]
fn flows_are_terminated_when_their_deadlines_cannot_be_met() {
    // Three flows of 5 MB over 1 Gb/s take 123 ms, a single one 41 ms.
    let offered = [("5 MB", "100 ms"), ("5 MB", "100 ms"), ("5 MB", "40 ms")];
    let scenario = to_one_receiver("1 Gbps", &offered);
    for transport in ["d2tcp", "d3"] {
        let transport = json!({ "kind": transport, "early_termination": true });
        let results = run(&with(&scenario, json!({ "transport": transport })));
        let columns = &results.flows;
        assert_eq!(columns.outcome, [0, 0, 3], "{transport}: the third is given up");
        assert_eq!(count(&results, "terminated"), 1);
        // At once, so that the other flows meet their deadlines.
        assert!(columns.delivered_bytes[2] < 50_000, "{transport}: {:?}", columns.delivered_bytes);
        assert!(columns.fct_s[..2].iter().all(|fct| *fct < 100e-3), "{:?}", columns.fct_s);
        assert!(columns.fct_s[2].is_nan());
    }
}

// D3.

/// Rates that D3 gives two flows over 1 Gb/s, in bits per second: the demand of each flow, plus
/// half of the remainder. `left` has the remaining payload in bytes and the remaining seconds.
fn d3_rates(left: [(f64, f64); 2]) -> [f64; 2] {
    let needs = left.map(|(bytes, seconds)| bytes * 1500.0 / 1460.0 * 8.0 / seconds);
    needs.map(|need| need + (1e9 - needs[0] - needs[1]) / 2.0)
}

#[test]
fn d3_allocates_the_demand_and_an_equal_share_of_the_rest() {
    let scenario = to_one_receiver("1 Gbps", &[("10 MB", "200 ms"), ("10 MB", "400 ms")]);
    let results = run(&with(&scenario, json!({ "transport": "d3" })));
    for ms in [10.0, 30.0, 60.0, 90.0, 120.0] {
        let of_flow =
            |flow, deadline: f64| (10e6 - delivered(&results, flow, ms), deadline - ms * 1e-3);
        let expected = d3_rates([of_flow(0, 0.2), of_flow(1, 0.4)]);
        for (flow, expected) in expected.into_iter().enumerate() {
            let bytes = delivered(&results, flow, ms + 5.0) - delivered(&results, flow, ms - 5.0);
            let rate = bytes * 1500.0 / 1460.0 * 8.0 / 10e-3;
            assert_near(rate, expected, 0.03, &format!("flow {flow} after {ms} ms"));
        }
    }
    let columns = &results.flows;
    assert!(columns.fct_s.iter().zip(&columns.deadline_s).all(|(fct, deadline)| fct < deadline));
    // The link is full until both flows are done, with almost no queue.
    let all = 2.0 * 10e6 * 1500.0 / 1460.0 * 8.0 / 1e9;
    assert_near(columns.fct_s[1], all, 0.03, "the last completion");
    assert!(link(&results, "switch->host2", "queue_max_bytes") < 40_000.0);
}

#[test]
fn d3_is_first_come_first_served_under_overload() {
    // Each flow needs two thirds of the link for 100 ms, and the second starts 2 ms late.
    let scenario = to_one_receiver("1 Gbps", &[("8 MB", "100 ms"), ("8 MB", "100 ms")]);
    let mut scenario = with(&scenario, json!({ "transport": "d3" }));
    scenario["workload"]["flows"][1]["start"] = json!("2 ms");
    let results = run(&scenario);
    let columns = &results.flows;
    assert!(columns.fct_s[0] < 0.1 && columns.fct_s[1] > 0.12, "{:?}", columns.fct_s);
    // While the first flow is served, the second gets the remaining rate.
    let grown = |flow| delivered(&results, flow, 70.0) - delivered(&results, flow, 10.0);
    assert_near(grown(0) + grown(1), 1e9 / 8.0 * 0.06 * 1460.0 / 1500.0, 0.03, "both");
    // The first flow has sent at full rate for 2 ms, so it needs slightly less than two thirds.
    assert_near(grown(0) / grown(1), 2.0, 0.1, "two thirds of the link and one");
}

#[test]
fn d3_is_work_conserving_with_several_bottlenecks() {
    // A long path over 1 Gb/s and 600 Mb/s, and a short path over each.
    let links = "from,to,rate,delay\na0,s0,10 Gbps,5 us\na1,s0,10 Gbps,5 us\n\
                  a2,s1,10 Gbps,5 us\ns0,s1,1 Gbps,20 us\ns1,s2,600 Mbps,20 us\n\
                  b0,s2,10 Gbps,5 us\nb1,s1,10 Gbps,5 us\nb2,s2,10 Gbps,5 us\n";
    let flow = |i| json!({ "source": i, "target": i + 3, "size": "100 MB", "deadline": "1000 s" });
    let results = run(&json!({
        "topology": { "kind": "graph", "file": { "name": "two.csv", "text": links } },
        "transport": "d3",
        "workload": { "kind": "flows", "flows": (0..3).map(flow).collect::<Vec<_>>() },
        "samples": { "interval": "500 us", "flows": [0, 1, 2] },
        "time_limit": "100 ms",
    }));
    let rate = |flow: usize| mean(samples(&results, &format!("rate_bps flow {flow}"), 0.05)) / 1e6;
    for (flow, expected) in [300.0, 700.0, 300.0].into_iter().enumerate() {
        assert_near(rate(flow), expected, 0.05, &format!("flow {flow}"));
    }
}

#[test]
fn d3_recovers_from_lost_fins() {
    // Consecutive flows over a link that loses 10 % of all packets, each with a deadline of one
    // second.
    let one_by_one: Vec<_> = (0..50).map(|i| (f64::from(i) * 20e-3, 0, 1, 100_000)).collect();
    let results = run(&json!({
        "topology": { "kind": "link", "rate": "1 Gbps", "delay": "20 us", "loss": 0.1 },
        "transport": "d3",
        "workload": flows(&one_by_one),
    }));
    assert_eq!(count(&results, "finished"), 50);
    // A lost SYN or packet costs timeouts of 10 ms; a rate that is never released would cost far
    // more.
    let mean = mean(results.flows.fct_s.iter().copied());
    assert!(mean < 0.05, "{mean}");
}

// PIAS.

#[test]
fn pias_short_flows_overtake_a_long_flow() {
    // A long flow fills the link of its receiver, and flows of 20 packets arrive one at a time.
    let mut offered = vec![(0.0, 0, 4, 20_000_000)];
    offered.extend((1..=10).map(|i| (f64::from(i) * 1e-3, 1 + i as u32 % 3, 4, 20_000)));
    let scenario = json!({
        "topology": { "kind": "star", "hosts": 5, "rate": "10 Gbps", "delay": "5 us" },
        "workload": flows(&offered),
    });
    let dctcp = json!({ "initial_window": 20 });
    let of_transport = |transport: Value| {
        let columns = run(&with(&scenario, json!({ "transport": transport }))).flows;
        (mean(columns.slowdown[1..].iter().copied()), columns.fct_s[0])
    };
    let (waiting, alone) = of_transport(with(&json!({ "kind": "dctcp" }), dctcp.clone()));
    let (passing, long) =
        of_transport(json!({ "kind": "pias", "thresholds": [20, 1000], "dctcp": dctcp }));
    // Short flows wait for a packet in transmission, but not for a queue.
    assert!(passing < 1.3 && waiting > 1.7 * passing, "{passing} passing, {waiting} waiting");
    assert_near(long, alone, 0.02, "the long flow");
}

//! RCP and XCP in closed loop, against their fixed points and convergence times.

use crate::common::{assert_near, count, flows, mean, run, samples, with};
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// Capacity of the link in packets per second; the RTT is 0.1 s.
const CAPACITY: f64 = 10_000.0;
const ROUND_TRIP: f64 = 0.1;
/// Sampling interval in seconds.
const INTERVAL: f64 = 0.05;

/// Flows with packets of 1000 B over one link, each with its start and stop.
fn on_link(transport: &str, spans: &[(String, &str)]) -> Value {
    let flow = |span: &(String, &str)| {
        let (start, stop) = span;
        json!({ "source": 0, "target": 1, "start": start, "stop": stop })
    };
    json!({
        "topology": { "kind": "link", "rate": "80 Mbps", "delay": "50 ms" },
        "packet": { "payload": "960 B", "header": "40 B" },
        "transport": transport,
        "workload": { "kind": "flows", "flows": spans.iter().map(flow).collect::<Vec<_>>() },
        "samples": {
            "interval": "50 ms", "flows": (0..spans.len()).collect::<Vec<_>>(),
            "queues": ["left->right"], "links": ["left->right"],
        },
    })
}

/// `flows` flows with the same start and stop.
fn spans(flows: usize, start: &str, stop: &'static str) -> Vec<(String, &'static str)> {
    vec![(start.to_owned(), stop); flows]
}

/// Increase of a probe per second, between two times.
fn growth(results: &Results, probe: &str, from: f64, to: f64) -> f64 {
    let values = samples(results, probe, from - INTERVAL / 2.0);
    let count = ((to - from) / INTERVAL).round() as usize;
    (values[count] - values[0]) / (to - from)
}

/// Goodput of a flow between two times, in packets per second.
fn throughput(results: &Results, flow: usize, from: f64, to: f64) -> f64 {
    growth(results, &format!("delivered_bytes flow {flow}"), from, to) / 960.0
}

/// Utilisation of the link between two times.
fn utilisation(results: &Results, from: f64, to: f64) -> f64 {
    growth(results, "transmitted_bytes left->right", from, to) / 1000.0 / CAPACITY
}

/// Queue length in packets after a time.
fn queue(results: &Results, from: f64) -> Vec<f64> {
    let bytes = samples(results, "queue_bytes left->right", from);
    bytes.iter().map(|bytes| bytes / 1000.0).collect()
}

/// Value of a controller's gauge at a time.
fn gauge(results: &Results, name: &str, flow: usize, at: f64) -> f64 {
    samples(results, &format!("{name} flow {flow}"), at - INTERVAL / 2.0)[0]
}

/// Rate of an RCP flow in packets per second.
fn rate(results: &Results, flow: usize, at: f64) -> f64 {
    gauge(results, "rate_bps", flow, at) / 8000.0
}

/// Window of an XCP flow in packets.
fn window(results: &Results, flow: usize, at: f64) -> f64 {
    gauge(results, "window_bytes", flow, at) / 960.0
}

// RCP.

#[test]
fn rcp_gives_every_flow_an_equal_share() {
    for (alpha, beta) in [(0.4, 0.226), (0.4, 1.0), (0.1, 1.0)] {
        for senders in [1, 4, 16] {
            let results = run(&with(
                &on_link("rcp", &spans(senders, "0 s", "none")),
                json!({
                    "router": { "kind": "rcp", "alpha": alpha, "beta": beta },
                    "time_limit": "40 s",
                }),
            ));
            let what = format!("{senders} flows, alpha {alpha}, beta {beta}");
            // The rate is constant where alpha (C - y) = beta q / d. A fluid model has no queue;
            // here packets of different flows collide, and the rate is reduced by the short queue
            // that results.
            let queue = mean(queue(&results, 20.0));
            assert!(queue < 6.0, "{what}: a queue of {queue} packets");
            let all = CAPACITY - beta / alpha * queue / ROUND_TRIP;
            let share = all / senders as f64;
            for flow in 0..senders {
                let delivered = throughput(&results, flow, 20.0, 39.0);
                assert_near(delivered, share, 0.01, &format!("{what}: throughput"));
                assert_near(rate(&results, flow, 30.0), share, 0.01, &format!("{what}: rate"));
            }
            if beta < alpha {
                assert_near(utilisation(&results, 20.0, 39.0), 1.0, 0.01, &what);
            }
        }
    }
}

/// Rate that RCP offers without a queue to `senders` flows, which apply it one RTT later: the delay
/// differential equation of [rcp06] in steps of 10 ms, from the rate `from`, after `seconds`.
fn rcp_without_queue(alpha: f64, senders: f64, from: f64, seconds: f64) -> f64 {
    const STEP: f64 = 0.01;
    let late = (ROUND_TRIP / STEP) as usize;
    let mut rates = vec![from; late + 1];
    for _ in 0..(seconds / STEP) as usize {
        let input = senders * rates[rates.len() - 1 - late];
        let rate = rates[rates.len() - 1];
        let change = 1.0 + STEP / ROUND_TRIP * alpha * (CAPACITY - input) / CAPACITY;
        rates.push((rate * change).min(CAPACITY));
    }
    rates[rates.len() - 1]
}

#[test]
fn rcp_converges_when_flows_start_and_stop() {
    for (alpha, beta) in [(0.4, 0.226), (0.4, 1.0), (0.1, 1.0)] {
        let mut flows = spans(4, "0 s", "none");
        flows.extend(spans(4, "20 s", "50 s"));
        let results = run(&with(
            &on_link("rcp", &flows),
            json!({
                "router": { "kind": "rcp", "alpha": alpha, "beta": beta },
                "time_limit": "60 s",
            }),
        ));
        let what = format!("alpha {alpha}, beta {beta}");
        // New flows start at the full rate: twice the capacity for one RTT, and a queue of one
        // bandwidth-delay product, which then drains.
        let most = queue(&results, 20.0).into_iter().fold(0.0, f64::max);
        let burst = CAPACITY * ROUND_TRIP;
        assert!((burst..2.0 * burst).contains(&most), "{what}: a queue of {most}");
        assert_near(rate(&results, 0, 49.9), CAPACITY / 8.0, 0.03, &format!("{what}: of eight"));
        assert_near(rate(&results, 7, 49.9), CAPACITY / 8.0, 0.03, &format!("{what}: of eight"));
        // When flows end there is no queue, and the rate follows the equation, one RTT late.
        let before = rate(&results, 0, 49.9);
        for after in [0.3, 0.5, 0.7, 1.0, 2.0] {
            let expected = rcp_without_queue(alpha, 4.0, before, after - ROUND_TRIP);
            let found = rate(&results, 0, 50.0 + after);
            assert_near(found, expected, 0.03, &format!("{what}: {after} s after they left"));
        }
        if alpha > 0.3 {
            let found = rate(&results, 0, 51.0);
            assert_near(found, CAPACITY / 4.0, 0.01, &format!("{what}: ten RTTs later"));
        }
    }
}

/// A long path over bottlenecks of 100 and 60 Mb/s, and a short path over each: goodput in Mb/s.
fn two_bottlenecks(transport: &str) -> [f64; 3] {
    let table = "from,to,rate,delay\na0,s0,1 Gbps,1 ms\na1,s0,1 Gbps,1 ms\na2,s1,1 Gbps,1 ms\n\
                  s0,s1,100 Mbps,20 ms\ns1,s2,60 Mbps,20 ms\nb0,s2,1 Gbps,1 ms\n\
                  b1,s1,1 Gbps,1 ms\nb2,s2,1 Gbps,1 ms\n";
    let flow = |i| json!({ "source": i, "target": i + 3 });
    let results = run(&json!({
        "topology": { "kind": "graph", "file": { "name": "two.csv", "text": table } },
        "packet": { "payload": "960 B", "header": "40 B" },
        "transport": transport,
        "workload": { "kind": "flows", "flows": (0..3).map(flow).collect::<Vec<_>>() },
        "samples": { "interval": "50 ms", "flows": [0, 1, 2] },
        "time_limit": "40 s",
    }));
    [0, 1, 2].map(|flow| throughput(&results, flow, 20.0, 39.0) * 8e-3)
}

#[test]
fn rcp_is_max_min_fair_over_two_bottlenecks() {
    let rates = two_bottlenecks("rcp");
    // Half of the smaller link for two flows; the remainder of the larger link for the third.
    for (flow, expected) in [30.0, 70.0, 30.0].into_iter().enumerate() {
        assert_near(rates[flow], expected, 0.015, &format!("flow {flow}"));
    }
}

#[test]
fn xcp_underuses_the_larger_of_two_bottlenecks() {
    // Low, Andrew and Wydrowski (2005): a flow that is limited elsewhere never regains what
    // bandwidth shuffling takes from it, so the other flows cannot fill the link; the utilisation
    // is at least 80 %.
    let rates = two_bottlenecks("xcp");
    assert_near(rates[0], 30.0, 0.02, "the long flow");
    assert_near(rates[2], 30.0, 0.02, "the flow beside it");
    let utilisation = (rates[0] + rates[1]) / 100.0;
    assert!((0.8..0.97).contains(&utilisation), "{utilisation} of the larger link");
}

#[test]
fn rcp_flow_below_one_packet_per_rtt_probes_for_higher_rates() {
    // 401 flows on a link of 100 packets per RTT, and after 40 s one flow.
    let mut flows = spans(1, "0 s", "none");
    flows.extend((0..400).map(|i| (format!("{} ms", i * 50), "40 s")));
    let results = run(&with(
        &on_link("rcp", &flows),
        json!({
            "topology": { "rate": "8 Mbps" },
            "router": { "kind": "rcp", "preset": "as_xcp" },
            "time_limit": "46 s",
            "samples": { "flows": [0] },
        }),
    ));
    assert!(rate(&results, 0, 40.0) < 3.0, "packets a second");
    // The flow receives every rate update, although it sends almost no data packets.
    let mut updates: Vec<u64> =
        (1..=20).map(|i| rate(&results, 0, 40.0 + 0.05 * f64::from(i)).to_bits()).collect();
    updates.dedup();
    assert!(updates.len() >= 9, "{} rates in ten RTTs", updates.len());
    assert!(throughput(&results, 0, 40.0, 41.0) < 5.0, "packets in ten RTTs");
    assert_near(rate(&results, 0, 45.9), 1000.0, 0.01, "in the end");
}

#[test]
fn rcp_retransmits_lost_packets_after_the_last_packet() {
    let of_loss = |loss| {
        run(&json!({
            "topology": { "kind": "link", "rate": "80 Mbps", "delay": "50 ms", "loss": loss },
            "packet": { "payload": "960 B", "header": "40 B" },
            "transport": "rcp",
            "workload": flows(&[(0.0, 0, 1, 960_000)]),
        }))
    };
    let lossless = of_loss(0.0).flows.fct_s[0];
    for (loss, rounds) in [(0.02, 1), (0.3, 5)] {
        let results = of_loss(loss);
        assert_eq!(count(&results, "finished"), 1);
        assert_eq!(results.flows.delivered_bytes, [960_000]);
        let lost = count(&results, "losses") - count(&results, "retransmits");
        assert!(lost <= 3, "only the SYN may be lost and not sent again as data: {lost}");
        assert!(count(&results, "timeouts") >= rounds, "loss of {loss}");
        // Each round of retransmissions starts a timeout of at least 200 ms after the last packet.
        let late = results.flows.fct_s[0] - lossless;
        assert!(late > 0.1 && late < 0.5 * (1.0 + 7.0 * loss * 10.0), "{late} s, loss of {loss}");
    }
}

// XCP.

#[test]
fn xcp_fills_the_link_fairly_with_a_short_queue() {
    for rule in ["residue", "published"] {
        for senders in [1, 4, 16] {
            let results = run(&with(
                &on_link("xcp", &spans(senders, "0 s", "none")),
                json!({ "router": { "kind": "xcp", "rule": rule }, "time_limit": "60 s" }),
            ));
            let what = format!("{senders} flows, {rule}");
            assert_near(utilisation(&results, 40.0, 59.0), 1.0, 0.01, &what);
            let queue = mean(queue(&results, 40.0));
            assert!(queue < 8.0, "{what}: a queue of {queue} packets");
            let share = CAPACITY / senders as f64;
            for flow in 0..senders {
                let delivered = throughput(&results, flow, 40.0, 59.0);
                assert_near(delivered, share, 0.01, &format!("{what}: throughput"));
                let pipe = share * ROUND_TRIP;
                assert_near(window(&results, flow, 50.0), pipe, 0.03, &format!("{what}: window"));
            }
            assert_eq!(count(&results, "drops"), 0);
        }
    }
}

#[test]
fn xcp_converges_at_the_rate_of_bandwidth_shuffling() {
    for rule in ["residue", "published"] {
        let mut flows = spans(4, "0 s", "none");
        flows.extend(spans(4, "20 s", "40 s"));
        let results = run(&with(
            &on_link("xcp", &flows),
            json!({ "router": { "kind": "xcp", "rule": rule }, "time_limit": "60 s" }),
        ));
        // In each RTT 10 % of the traffic is taken in proportion to the rates and redistributed
        // equally, so a difference decreases by that fraction.
        let difference = |at| window(&results, 0, at) - window(&results, 4, at);
        for at in [22.0, 22.5, 23.0] {
            let kept = difference(at + 1.0) / difference(at);
            let what = format!("{rule}: the difference ten RTTs after {at} s");
            assert_near(kept, 0.9_f64.powi(10), 0.1, &what);
        }
        for flow in [0, 7] {
            let delivered = throughput(&results, flow, 30.0, 39.0);
            assert_near(delivered, CAPACITY / 8.0, 0.015, &format!("{rule}: of eight"));
        }
        assert!(utilisation(&results, 20.0, 40.0) > 0.97, "{rule}: while they join");
        assert!(utilisation(&results, 40.0, 41.0) > 0.7, "{rule}: when they have left");
        assert!(utilisation(&results, 42.0, 59.0) > 0.99, "{rule}: two seconds later");
        let delivered = throughput(&results, 0, 45.0, 59.0);
        assert_near(delivered, CAPACITY / 4.0, 0.01, &format!("{rule}: of four"));
    }
}

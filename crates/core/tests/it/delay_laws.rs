//! Windows that follow delays, in closed loop: what Vegas and Copa keep in the queue.

use crate::common::{assert_near, link, mean, run, samples, with};
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// Packets of 1000 B over 100 Mb/s, which last 80 us there.
const PACKET: f64 = 80e-6;

/// Flows from hosts of their own to hosts of their own, over one bottleneck that takes 80 us a packet;
/// an empty round trip takes as long as `packets` of them. Each starts so many microseconds after the
/// last.
fn flows(senders: usize, packets: f64, apart_us: f64, transport: &Value) -> Value {
    // What is not the delay of the bottleneck: a data packet at 100 Mb/s, and twice at 10 Gb/s; an ACK of
    // 40 B likewise; four cables of 1 us.
    let fixed = 1.04 * PACKET + 2.0 * 0.0104 * PACKET + 4e-6;
    let delay = (packets * PACKET - fixed) / 2.0;
    let flow = |i: usize| {
        let start = format!("{:.3} us", i as f64 * apart_us);
        json!({ "source": i, "target": senders + i, "start": start })
    };
    json!({
        "topology": {
            "kind": "dumbbell", "senders": senders, "receivers": senders, "bottleneck_rate": "100 Mbps",
            "bottleneck_delay": format!("{:.3} us", delay * 1e6),
        },
        "packet": { "payload": "1000 B", "header": "0 B", "ack": "40 B" },
        "transport": transport,
        "workload": { "kind": "flows", "flows": (0..senders).map(flow).collect::<Vec<_>>() },
        "samples": {
            "interval": "100 us", "flows": (0..senders).collect::<Vec<_>>(),
            "rtt_flows": (0..senders).collect::<Vec<_>>(), "queues": ["left->right"],
        },
    })
}

/// The mean number of packets that wait at the bottleneck after `from` seconds.
fn queued(results: &Results, from: f64) -> f64 {
    mean(samples(results, "queue_bytes left->right", from)) / 1000.0
}

/// The share of the bottleneck that a flow had between an instant and the end.
fn share(results: &Results, flow: usize, from: f64) -> f64 {
    let bytes = samples(results, &format!("delivered_bytes flow {flow}"), from);
    let seconds = results.samples.time_s.last().unwrap() - from;
    (bytes.last().unwrap() - bytes[0]) / 1000.0 * PACKET / seconds
}

/// The mean round-trip time of a flow after `from` seconds, in packets of the bottleneck.
fn rtt(results: &Results, flow: usize, from: f64) -> f64 {
    mean(samples(results, &format!("measured_rtt_s flow {flow}"), from)) / PACKET
}

// Vegas.

/// Flows that all learn the true round-trip time: each sends its first packet, of one, before the first
/// ACK of any has come, and when nothing waits.
fn vegas(variant: &str, senders: usize, packets: f64) -> Results {
    let vegas = json!({ "kind": "vegas", "variant": variant, "window": { "initial": 1 } });
    run(&with(&flows(senders, packets, 90.0, &vegas), json!({ "time_limit": "6 s" })))
}

#[test]
fn vegas_keeps_alpha_to_beta_packets_of_each_flow_in_the_queue() {
    // Slow start may leave more, which goes by a packet a round trip.
    let from = 4.0;
    for (variant, senders, packets) in [
        ("original", 1, 100.0),
        ("original", 4, 100.0),
        ("original", 8, 100.0),
        ("original", 1, 4.0),
        ("original", 2, 4.0),
        ("linux", 1, 100.0),
        ("linux", 4, 100.0),
        ("linux", 8, 100.0),
        ("linux", 1, 4.0),
        ("linux", 2, 4.0),
    ] {
        let results = vegas(variant, senders, packets);
        let queue = queued(&results, from);
        for flow in 0..senders {
            let what =
                format!("{variant}, flow {flow} of {senders}, {packets} packets a round trip");
            let gauge = |name: &str| mean(samples(&results, &format!("{name} flow {flow}"), from));
            assert_near(gauge("base_rtt_s") / PACKET, packets, 1e-6, &format!("{what}: base"));
            let rtt = rtt(&results, flow, from);
            assert_near(rtt, packets + queue, 1e-3, &format!("{what}: RTT = base + q / C"));
            let counted = gauge("queued_packets");
            assert!((2.0..=4.0).contains(&counted), "{what}: {counted} packets");
            // What it counts is what there is, but for the part of a packet that the window does not let go.
            let window = gauge("window_bytes") / 1000.0;
            let own = share(&results, flow, from) * queue;
            let relative = if variant == "linux" { own * rtt / packets } else { own };
            let expected = counted * window.floor() / window;
            assert_near(relative, expected, 0.02, &format!("{what}: packets in the queue"));
        }
    }
}

#[test]
fn linuxs_vegas_keeps_less_in_the_queue_of_a_short_path() {
    // q (1 + q / P) from 2 to 4, where the original has q from 2 to 4: with windows of whole packets that is
    // one value where the path is short.
    for (packets, least, most) in [(100.0, 1.96, 3.85), (4.0, 1.46, 2.47)] {
        let queue = queued(&vegas("linux", 1, packets), 4.0);
        assert!((least..=most).contains(&queue), "{queue} packets of a path of {packets}");
    }
    assert_near(queued(&vegas("linux", 1, 4.0), 4.0), 2.0, 1e-3, "Linux");
    assert_near(queued(&vegas("original", 1, 4.0), 4.0), 3.0, 1e-3, "original");
}

#[test]
fn who_comes_late_to_vegas_takes_the_others_queue_for_the_wire() {
    let config = json!({ "kind": "vegas", "window": { "initial": 1 } });
    let late = flows(2, 100.0, 2e6, &config);
    let results = run(&with(&late, json!({ "time_limit": "8 s" })));
    let [first, second] =
        [0, 1].map(|flow| samples(&results, &format!("base_rtt_s flow {flow}"), 6.0)[0] / PACKET);
    assert_near(first, 100.0, 1e-6, "base of the first");
    let waiting = second - first;
    assert!((2.0..=5.0).contains(&waiting), "the first's, and perhaps one on the wire: {waiting}");
    // Each has alpha to beta of what it takes for the queue, so the second has more than beta in truth.
    let queue = queued(&results, 6.0);
    let [first, second] = [0, 1].map(|flow| share(&results, flow, 6.0));
    assert!((2.0..=4.0).contains(&(first * queue)), "{first} of {queue}");
    assert!((2.0..=4.0).contains(&(second * (queue - waiting))), "{second} of {queue}");
    assert!(second * queue > 4.0 && second > first, "{first} and {second} of {queue}");
}

// Copa.

/// How many round trips lie between the times when the queue is nearly empty.
fn period(queue: &[f64], seconds: f64, rtt: f64) -> f64 {
    let most = queue.iter().copied().fold(0.0, f64::max);
    let (mut times, mut is_low) = (0.0, false);
    for bytes in queue {
        if !is_low && *bytes <= 0.1 * most {
            times += 1.0;
        }
        is_low = *bytes <= if is_low { 0.5 * most } else { 0.1 * most };
    }
    seconds / times / rtt
}

#[test]
fn copa_keeps_about_one_over_delta_of_each_flow_in_a_queue_that_empties_every_five_round_trips() {
    let from = 4.0;
    for (senders, packets, delta) in [
        (1, 100.0, 0.5),
        (2, 100.0, 0.5),
        (4, 100.0, 0.5),
        (8, 100.0, 0.5),
        (3, 50.0, 0.5),
        (2, 100.0, 0.25),
    ] {
        let copa = json!({ "kind": "copa", "initial_window": 2, "delta": delta });
        let scenario = flows(senders, packets, 170.0, &copa);
        let results = run(&with(&scenario, json!({ "time_limit": "8 s" })));
        let what = format!("{senders} flows, {packets} packets a round trip, delta {delta}");
        let queue = queued(&results, from);
        assert_near(queue, senders as f64 / delta, 0.25, &format!("{what}: queue"));
        for flow in 0..senders {
            let share = share(&results, flow, from);
            assert_near(share, 1.0 / senders as f64, 0.02, &format!("{what}: rate of one"));
            let delta_now = mean(samples(&results, &format!("delta flow {flow}"), from));
            assert_near(delta_now, delta, 1e-9, &format!("{what}: nobody else is there"));
        }
        let series = samples(&results, "queue_bytes left->right", from);
        let period = period(&series, 8.0 - from, rtt(&results, 0, from) * PACKET);
        assert!((3.9..5.1).contains(&period), "{what}: nearly empty every {period} round trips");
        assert!(link(&results, "left->right", "utilisation") > 0.97, "{what}");
    }
}

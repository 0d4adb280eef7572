//! Delay-based windows in closed loop: queue lengths of Vegas and Copa.

use crate::common::{assert_near, link, mean, run, samples, with};
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// Transmission time of a packet of 1000 B over 100 Mb/s.
const PACKET: f64 = 80e-6;

/// Flows between distinct hosts over one bottleneck that takes 80 us per packet; the base RTT is
/// `packets` transmission times. Flow i starts i · `apart_us` microseconds after the first.
fn flows(senders: usize, packets: f64, stagger_us: f64, transport: &Value) -> Value {
    // Delay outside the bottleneck: a data packet at 100 Mb/s, and twice at 10 Gb/s; likewise an
    // ACK of 40 B; four links of 1 us.
    let fixed = 1.04 * PACKET + 2.0 * 0.0104 * PACKET + 4e-6;
    let delay = (packets * PACKET - fixed) / 2.0;
    let flow = |i: usize| {
        let start = format!("{:.3} us", i as f64 * stagger_us);
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

/// Mean number of packets queued at the bottleneck after `from` seconds.
fn queued(results: &Results, from: f64) -> f64 {
    mean(samples(results, "queue_bytes left->right", from)) / 1000.0
}

/// Share of the bottleneck that a flow has from a time to the end.
fn share(results: &Results, flow: usize, from: f64) -> f64 {
    let bytes = samples(results, &format!("delivered_bytes flow {flow}"), from);
    let seconds = results.samples.time_s.last().unwrap() - from;
    (bytes.last().unwrap() - bytes[0]) / 1000.0 * PACKET / seconds
}

/// Mean RTT of a flow after `from` seconds, in packet transmission times of the bottleneck.
fn rtt(results: &Results, flow: usize, from: f64) -> f64 {
    mean(samples(results, &format!("measured_rtt_s flow {flow}"), from)) / PACKET
}

// Vegas.

/// Flows that all measure the true base RTT: each sends its first packet before the first ACK
/// arrives and while the queue is empty.
fn vegas(variant: &str, senders: usize, packets: f64) -> Results {
    let vegas = json!({ "kind": "vegas", "variant": variant, "window": { "initial": 1 } });
    run(&with(&flows(senders, packets, 90.0, &vegas), json!({ "time_limit": "6 s" })))
}

#[test]
fn vegas_keeps_alpha_to_beta_packets_per_flow_in_the_queue() {
    // Slow start may leave a longer queue, which shrinks by a packet per RTT.
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
            let what = format!("{variant}, flow {flow} of {senders}, {packets} packets per RTT");
            let gauge = |name: &str| mean(samples(&results, &format!("{name} flow {flow}"), from));
            assert_near(gauge("base_rtt_s") / PACKET, packets, 1e-6, &format!("{what}: base"));
            let rtt = rtt(&results, flow, from);
            assert_near(rtt, packets + queue, 1e-3, &format!("{what}: RTT = base + q / C"));
            let counted = gauge("queued_packets");
            assert!((2.0..=4.0).contains(&counted), "{what}: {counted} packets");
            // The estimated backlog is the real one, except for the fraction of a packet in the
            // window.
            let window = gauge("window_bytes") / 1000.0;
            let own = share(&results, flow, from) * queue;
            let relative = if variant == "linux" { own * rtt / packets } else { own };
            let expected = counted * window.floor() / window;
            assert_near(relative, expected, 0.02, &format!("{what}: packets in the queue"));
        }
    }
}

#[test]
fn linux_vegas_keeps_a_shorter_queue_on_a_short_path() {
    // q (1 + q / P) is between 2 and 4 where the original has q between 2 and 4: with whole packets
    // a short path has a single value.
    for (packets, least, most) in [(100.0, 1.96, 3.85), (4.0, 1.46, 2.47)] {
        let queue = queued(&vegas("linux", 1, packets), 4.0);
        assert!((least..=most).contains(&queue), "{queue} packets of a path of {packets}");
    }
    assert_near(queued(&vegas("linux", 1, 4.0), 4.0), 2.0, 1e-3, "Linux");
    assert_near(queued(&vegas("original", 1, 4.0), 4.0), 3.0, 1e-3, "original");
}

#[test]
fn late_vegas_flow_mistakes_the_queue_for_propagation_delay() {
    let config = json!({ "kind": "vegas", "window": { "initial": 1 } });
    let late = flows(2, 100.0, 2e6, &config);
    let results = run(&with(&late, json!({ "time_limit": "8 s" })));
    let [first, second] =
        [0, 1].map(|flow| samples(&results, &format!("base_rtt_s flow {flow}"), 6.0)[0] / PACKET);
    assert_near(first, 100.0, 1e-6, "base of the first");
    let waiting = second - first;
    assert!(
        (2.0..=5.0).contains(&waiting),
        "of the first flow, and perhaps one in transmission: {waiting}"
    );
    // The second flow mistakes alpha to beta packets of the first for propagation delay, so its
    // real backlog exceeds beta.
    let queue = queued(&results, 6.0);
    let [first, second] = [0, 1].map(|flow| share(&results, flow, 6.0));
    assert!((2.0..=4.0).contains(&(first * queue)), "{first} of {queue}");
    assert!((2.0..=4.0).contains(&(second * (queue - waiting))), "{second} of {queue}");
    assert!(second * queue > 4.0 && second > first, "{first} and {second} of {queue}");
}

// Copa.

/// Number of RTTs between the times at which the queue is nearly empty.
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
fn copa_keeps_one_over_delta_packets_per_flow_and_empties_the_queue_every_five_rtts() {
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
        let what = format!("{senders} flows, {packets} packets per RTT, delta {delta}");
        let queue = queued(&results, from);
        assert_near(queue, senders as f64 / delta, 0.25, &format!("{what}: queue"));
        for flow in 0..senders {
            let share = share(&results, flow, from);
            assert_near(share, 1.0 / senders as f64, 0.02, &format!("{what}: rate of one"));
            let delta_now = mean(samples(&results, &format!("delta flow {flow}"), from));
            assert_near(delta_now, delta, 1e-9, &format!("{what}: no other flows"));
        }
        let series = samples(&results, "queue_bytes left->right", from);
        let period = period(&series, 8.0 - from, rtt(&results, 0, from) * PACKET);
        assert!((3.9..5.1).contains(&period), "{what}: nearly empty every {period} RTTs");
        assert!(link(&results, "left->right", "utilisation") > 0.97, "{what}");
    }
}

#[test]
fn copa_does_not_flood_a_short_queue() {
    // 50 Mb/s, an RTT of 40 ms and a buffer of a quarter of a BDP. A port of mvfst's rounds loses 1 % here.
    let scenario = json!({
        "environment": "internet",
        "topology": {
            "kind": "dumbbell", "senders": 2, "receivers": 2, "rate": "1 Gbps", "delay": "1 ms",
            "bottleneck_rate": "50 Mbps", "bottleneck_delay": "18 ms",
        },
        "transport": { "kind": "copa", "competitive": false },
        "queue": { "kind": "drop_tail", "capacity": "41 packets" },
        "workload": { "kind": "flows", "flows": [
            { "source": 0, "target": 2, "start": "0 s" }, { "source": 1, "target": 3, "start": "0.3 s" },
        ] },
        "time_limit": "20 s",
    });
    let flows = run(&scenario).flows;
    let packets = flows.delivered_bytes.iter().sum::<u64>() as f64 / 1448.0;
    let lost: f64 = flows.lost_packets.iter().sum();
    assert!(lost < 0.05 * packets, "{lost} lost, {packets} delivered");
}

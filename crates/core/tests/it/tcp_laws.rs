//! TCP against closed forms: rounds of slow start, the sawtooth, and throughput under loss.

use crate::common::{assert_near, count, flows, mean, run, samples, with};
use serde_json::{Value, json};
use sojourn_core::base::units::Duration;
use sojourn_core::run::Results;

// Slow start.

/// Transmission times of a packet of 1040 B and an ACK of 40 B at 10 Gb/s, and 1 ms of propagation,
/// in picoseconds.
const PACKET: u64 = 832_000;
const ACK: u64 = 32_000;
const DELAY: u64 = 1_000_000_000;

/// A single flow of `packets` full packets over a link of 10 Gb/s.
fn single_flow(packets: u64, window: u32, delayed_ack: &str) -> Results {
    let results = run(&json!({
        "topology": { "kind": "link", "rate": "10 Gbps", "delay": "1 ms" },
        "transport": {
            "kind": "tcp",
            "window": { "initial": window },
            "reliability": { "delayed_ack": delayed_ack },
        },
        "workload": flows(&[(0.0, 0, 1, packets * 1000)]),
    }));
    assert_eq!(count(&results, "retransmits"), 0);
    results
}

/// Flow sizes: all small ones, and sizes around powers of two.
fn sizes() -> impl Iterator<Item = u64> {
    (1..=64).chain((7..=10).flat_map(|power| (1 << power) - 2..=(1 << power) + 2))
}

#[test]
fn slow_start_rounds_match_the_formula() {
    // The SYN and its answer take one RTT. Then the window is sent, and every ACK, one RTT of a
    // packet and its ACK later, releases two packets: the packets of a round are sent back to back,
    // as long as a round is shorter than an RTT. The last packet is number `last` of its round, and
    // half an RTT away.
    let handshake = 2 * (ACK + DELAY);
    let round_trip = PACKET + ACK + 2 * DELAY;
    for window in 1..=10 {
        for packets in sizes() {
            let rounds = (packets as f64 / f64::from(window) + 1.0).log2().ceil() as u64;
            let before = u64::from(window) * ((1 << (rounds - 1)) - 1);
            let last = packets - before;
            let by_hand = handshake + (rounds - 1) * round_trip + last * PACKET + DELAY;
            let fct = single_flow(packets, window, "none").flows.fct_s;
            assert_eq!(fct, [Duration(by_hand).seconds()], "{packets} packets, {window} at first");
        }
    }
}

#[test]
fn window_grows_by_half_per_round_with_delayed_acks() {
    // Cardwell, Savage and Anderson (2000): log_g(d (g - 1) / w + 1) rounds for d packets, with g =
    // 1 + 1/2. Rounds are integers, and an odd window may grow by one more packet. All delayed ACKs
    // and transmission times together are less than half of an RTT of 2 ms.
    for window in [2, 3, 4, 10] {
        for packets in [50, 200, 1000] {
            let fct = single_flow(packets, window, "30 us").flows.fct_s[0];
            let rounds = (fct / 2e-3 - 0.5).floor();
            let closed = (packets as f64 * 0.5 / f64::from(window) + 1.0).ln() / 1.5_f64.ln();
            let off = rounds - closed.ceil();
            assert!(off.abs() <= 1.0, "{packets} packets, {window} at first: {rounds}, {closed}");
            let at_once = single_flow(packets, window, "none").flows.fct_s[0];
            assert!(fct > at_once + 1e-3, "{packets} packets, {window} at first: no slower");
        }
    }
}

// Congestion avoidance.

/// In seconds.
const ROUND_TRIP: f64 = 0.1;

/// A long-lived TCP flow over a link of `packets_per_second`, with an RTT of 100 ms.
fn long_lived(packets_per_second: u64, loss: &Value) -> Value {
    json!({
        "topology": with(&json!({
            "kind": "link",
            "rate": format!("{} bps", packets_per_second * 8000),
            "delay": "50 ms",
        }), loss.clone()),
        "packet": { "payload": "1000 B", "header": "0 B", "ack": "1 B" },
        "transport": { "kind": "tcp" },
        "workload": { "kind": "long_lived" },
        "samples": { "interval": "100 ms", "flows": [0] },
    })
}

/// Goodput of flow 0 in packets per second, from a time to the end.
fn delivery_rate(results: &Results, from: f64) -> f64 {
    let delivered = samples(results, "delivered_bytes flow 0", from);
    let seconds = results.samples.time_s.last().unwrap() - from;
    (delivered.last().unwrap() - delivered[0]) / 1000.0 / seconds
}

/// Utilisation by a long-lived TCP flow of a link with a BDP of 200 packets, and its number of lost
/// packets.
fn sawtooth(ecn: bool, queue: &Value) -> (f64, u64) {
    let results = run(&with(
        &long_lived(2000, &json!({})),
        json!({
            "transport": { "ecn": ecn, "window": { "initial_ssthresh": 100 } },
            "queue": queue,
            "time_limit": "360 s",
        }),
    ));
    assert_eq!(count(&results, "timeouts"), 0);
    assert_eq!(count(&results, "retransmits"), count(&results, "drops"));
    (delivery_rate(&results, 60.0) / 2000.0, count(&results, "drops"))
}

#[test]
fn reno_utilisation_depends_on_the_buffer_as_predicted() {
    // A BDP of P packets and a buffer of beta P: the window grows from half of P + beta P to P +
    // beta P by one packet per RTT; below P the link is partly idle, above P the RTT grows. The
    // same with ECN marks instead of drops.
    for beta in [0.1, 0.25, 0.5, 1.0_f64] {
        let expected = 0.75 * (1.0 + beta).powi(2) / (1.0 + beta + beta * beta);
        let full = format!("{} packets", (200.0 * beta) as u64);
        let (used, lost) = sawtooth(false, &json!({ "kind": "drop_tail", "capacity": full }));
        assert_near(used, expected, 0.01, &format!("utilisation with a buffer of {beta} pipes"));
        assert!(lost > 5);
        let marking = json!({ "kind": "ecn_threshold", "threshold": full });
        let (used, lost) = sawtooth(true, &marking);
        assert_near(used, expected, 0.01, &format!("with marks beyond {beta} pipes"));
        assert_eq!(lost, 0);
    }
}

#[test]
fn periodic_loss_gives_the_square_root_law() {
    // One packet in n is lost: n is 3/8 of the square of the largest window, and the rate is that
    // of a window of sqrt(3n/2). The terms that the law leaves out are constant: half a window and
    // one RTT for each recovery, half a packet of rounding of the window, and the quarter that
    // halving an odd window loses. Together they are 1.7 packets per RTT.
    for period in [100_u32, 300, 1000, 3000, 10_000] {
        let results = run(&with(
            &long_lived(1_000_000, &json!({ "loss_every": period })),
            json!({ "time_limit": "600 s" }),
        ));
        let rate = delivery_rate(&results, 100.0);
        let law = (1.5 * f64::from(period)).sqrt();
        assert_eq!(count(&results, "timeouts"), 0);
        assert_near(rate, (law - 1.7) / ROUND_TRIP, 0.015, &format!("one loss in {period}"));
        if period >= 1000 {
            assert_near(rate, law / ROUND_TRIP, 0.05, &format!("the law, one loss in {period}"));
        }
    }
}

/// Packets per second by Padhye, Firoiu, Towsley and Kurose (1998), eq. 30, for a loss rate `p`, an
/// ACK per packet and a timeout of 200 ms.
fn pftk(p: f64) -> f64 {
    let timeouts = 0.2 * (3.0 * (3.0 * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
    1.0 / (ROUND_TRIP * (2.0 * p / 3.0).sqrt() + timeouts)
}

#[test]
fn random_loss_gives_the_pftk_law() {
    // The law's p is the rate of losses that start a loss recovery; at these rates nearly every
    // loss does.
    for recovery in ["selective_repeat", "new_reno", "reno"] {
        for loss in [1e-3, 1e-2, 5e-2_f64] {
            let of_seed = |seed| {
                let results = run(&with(
                    &long_lived(1_000_000, &json!({ "loss": loss })),
                    json!({
                        "seed": seed,
                        "transport": { "reliability": { "recovery": recovery } },
                        "time_limit": "600 s",
                    }),
                ));
                delivery_rate(&results, 20.0)
            };
            let rate = mean((1..=3).map(of_seed));
            assert_near(rate, pftk(loss), 0.15, &format!("{recovery}, loss of {loss}"));
        }
    }
}

// Laws for large windows.

/// Mean window, in packets, of a long-lived TCP flow that loses one packet in `period`, after
/// `from` seconds.
fn mean_window(transport: &Value, period: u32, from: f64, to: u32) -> f64 {
    let results = run(&with(
        &long_lived(1_000_000, &json!({ "loss_every": period })),
        json!({
            "transport": with(transport, json!({ "window": { "initial_ssthresh": 1000 } })),
            "time_limit": format!("{to} s"),
        }),
    ));
    assert_eq!(count(&results, "timeouts"), 0);
    delivery_rate(&results, from) * ROUND_TRIP
}

#[test]
fn high_speed_tcp_has_the_window_of_its_response_function() {
    // RFC 3649 §5: 0.12 / p^0.835; up to 38 packets the window of TCP.
    for (period, seconds) in [(1000, 400), (10_000, 400), (100_000, 200)] {
        let window = mean_window(&json!({ "kind": "high_speed_tcp" }), period, 100.0, seconds);
        let expected = 0.12 * f64::from(period).powf(0.835);
        assert_near(window, expected, 0.05, &format!("one loss in {period}"));
    }
}

#[test]
fn scalable_tcp_recovery_time_does_not_depend_on_the_window() {
    // From 7/8 of the window to the full window takes ln(8/7) / ln(1.01) = 13.4 RTTs, and the
    // recovery one: in that time the flow sends the packets between two losses.
    for (period, seconds, tolerance) in
        [(1000, 400, 0.05), (10_000, 400, 0.02), (60_000, 200, 0.01)]
    {
        let window = mean_window(&json!({ "kind": "scalable_tcp" }), period, 100.0, seconds);
        let round_trips = f64::from(period) / window;
        assert_near(round_trips, 13.42 + 1.0, tolerance, &format!("one loss in {period}"));
    }
}

#[test]
fn cubic_has_the_window_of_its_response_function() {
    // RFC 9438 §5.1: 1.054 (RTT / p)^0.75, or the window of TCP if larger.
    let law = |period: u32| 1.054 * (ROUND_TRIP * f64::from(period)).powf(0.75);
    let cubic = |fast| json!({ "kind": "cubic", "fast_convergence": fast });
    let window = mean_window(&cubic(true), 1000, 100.0, 400);
    assert_near(window, 1500_f64.sqrt(), 0.05, "as TCP");
    let window = mean_window(&cubic(true), 100_000, 50.0, 250);
    assert_near(window, law(100_000), 0.05, "one loss in 100000");
    // At the fixed point each loss occurs on the plateau, where the window hardly changes. Without
    // fast convergence the window therefore converges slowly from above: after n losses 1 /
    // sqrt(1.4 n) of a deviation e is left, 5 % after 280 losses of 5.3 s. With fast convergence a
    // window one packet below the plateau starts a round far below it.
    let window = mean_window(&cubic(false), 10_000, 1500.0, 2000);
    assert_near(window, law(10_000), 0.05, "one loss in 10000, without fast convergence");
    let window = mean_window(&cubic(true), 10_000, 100.0, 600);
    assert!((0.88..1.0).contains(&(window / law(10_000))), "{window} with fast convergence");
}

#[test]
fn hystart_slows_down_on_a_standing_queue_and_stops_five_rounds_later() {
    // A BDP of 1000 packets and an unlimited buffer. The windows of 10 to 640 packets leave no
    // queue; 1280 leaves a queue of 280, which is more than an eighth of the RTT and is measured a
    // round later, at 2560. Then five rounds of growth by a quarter each, and one packet per RTT.
    let windows = |hystart: &str| {
        let results = run(&with(
            &long_lived(10_000, &json!({})),
            json!({ "transport": { "window": { "hystart": hystart } }, "time_limit": "8 s" }),
        ));
        let bytes = samples(&results, "window_bytes flow 0", 0.0);
        bytes.into_iter().map(|bytes| bytes / 1000.0).collect::<Vec<_>>()
    };
    let with = windows("plus_plus");
    let last = with.last().unwrap();
    assert_near(*last, 2560.0 * 1.25_f64.powi(5), 0.01, "window at the end of slow start");
    assert!(last - with[with.len() - 10] < 3.0, "must grow by one packet per RTT");
    assert!(*windows("none").last().unwrap() > 50_000.0, "and without, by one an ACK");
}

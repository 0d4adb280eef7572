//! Unit tests of RED.

use serde_json::json;

use super::*;
use crate::base::schema::defaults;
use crate::model::packet::{Format, Kind};
use crate::queueing::blocks::fixture::SCALE;
use crate::queueing::disciplines::Backlog;

const RATE: Rate = Rate::from_mbps(200);
/// Transmission time of a packet of mean size at this rate.
const PACKET_TIME: Duration = Duration::from_micros(40);

fn red(change: &Value) -> Red {
    Config::read(change).unwrap().build_red(LinkScale { rate: RATE, ..SCALE })
}

fn packet(bytes: u16) -> Packet {
    let packet = defaults::<Format>().control(Kind::Data, 0, Time::ZERO);
    Packet { bytes, flags: Flags::ECN_CAPABLE, ..packet }
}

/// State that a packet finds while the queue does not become empty.
fn backlogged(packets: u32, now: Time) -> QueueState {
    let bytes = 1000 * u64::from(packets);
    QueueState { now, backlog: Backlog { bytes, packets }, last_departure: now }
}

/// Returns the next verdict at time zero with `packets` as average and instantaneous queue
/// length.
fn verdict_at(red: &mut Red, packets: u32, bytes: u16, random: &mut Random) -> Verdict {
    red.average = f64::from(packets);
    red.admit(&packet(bytes), &backlogged(packets, Time::ZERO), random)
}

/// Returns many distances between marks, in packets.
fn gaps(change: &Value, packets: u32) -> Vec<f64> {
    let (mut red, mut random) = (red(change), Random::new(1, "gaps"));
    let mut gap = || {
        let mut distance = 1.0;
        while verdict_at(&mut red, packets, 1000, &mut random) == Verdict::Accept {
            distance += 1.0;
        }
        distance
    };
    gap();
    std::iter::repeat_with(gap).take(20_000).collect()
}

fn close(value: f64, expected: f64, tolerance: f64) {
    let error = (value / expected - 1.0).abs();
    assert!(error <= tolerance, "{value} is {error} off {expected}");
}

#[test]
fn marks_have_the_configured_probability_and_uniform_spacing() {
    for wait in [false, true] {
        let change = json!({
            "min_threshold": "50 packets", "max_threshold": "150 packets", "wait": wait,
        });
        for (average, p) in [(60, 0.01_f64), (70, 0.02), (100, 0.05), (225, 0.55)] {
            let mut gaps = gaps(&change, average);
            gaps.sort_by(f64::total_cmp);
            let from = if wait { (1.0 / p).ceil() } else { 1.0 };
            let beyond = if wait { 2.0 / p } else { 1.0 / p };
            assert!(gaps[0] >= from && gaps[gaps.len() - 1] <= beyond.ceil(), "{average}");
            if p < 0.1 {
                let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
                close(mean, if wait { 1.5 / p - 0.5 } else { 0.5 / p }, 0.03);
                let span = beyond - from;
                for quarter in 1..4 {
                    let share = f64::from(quarter) / 4.0;
                    let found = gaps[(share * gaps.len() as f64) as usize];
                    let off = (found - from - share * span).abs();
                    assert!(off <= 0.02 * span + 1.0, "{average}, {wait}: {found} at {share}");
                }
            }
        }
    }
}

#[test]
fn nothing_is_marked_below_min_threshold_and_everything_is_dropped_beyond_the_profile() {
    let (mut red, mut random) = (red(&json!({ "count_in": "bytes" })), Random::new(1, "ends"));
    for _ in 0..1000 {
        assert_eq!(verdict_at(&mut red, 62, 1000, &mut random), Verdict::Accept);
        assert_eq!(verdict_at(&mut red, 376, 40, &mut random), Verdict::Drop);
    }
    // No early drop while fewer than two packets are queued.
    red.average = 400.0;
    assert_eq!(red.admit(&packet(40), &backlogged(1, Time::ZERO), &mut random), Verdict::Accept);
}

#[test]
fn the_gentle_profile_rises_to_one_at_twice_max_threshold() {
    let profile = |gentle| RedProfile { min: 50.0, max: 150.0, max_p: 0.1, gentle };
    let at = |gentle, average| (1e6 * profile(gentle).probability(average)).round() / 1e6;
    let averages = [49.9, 50.0, 100.0, 149.999, 150.0, 225.0, 300.0];
    let rising = averages.map(|average| at(true, average).to_string());
    assert_eq!(rising, ["0", "0", "0.05", "0.099999", "0.1", "0.55", "1"]);
    let jumping = averages.map(|average| at(false, average).to_string());
    assert_eq!(jumping, ["0", "0", "0.05", "0.099999", "1", "1", "1"]);
}

#[test]
fn idle_time_counts_as_samples_of_an_empty_queue() {
    let change = json!({ "weight": 0.002 });
    let (mut idle, mut sampled) = (red(&change), red(&change));
    let mut random = Random::new(1, "idle");
    let left = Time::ZERO + PACKET_TIME * 10;
    for red in [&mut idle, &mut sampled] {
        red.average = 50.0;
        red.admit(&packet(500), &backlogged(3, left), &mut random);
    }
    let before = idle.average;
    assert!((before - (50.0 - 0.002 * 47.0)).abs() < 1e-12);
    // The last packet is in transmission for half a packet time. The link is then idle for 70
    // packet times.
    let ends = left + PACKET_TIME / 2;
    let empty = |now| QueueState { now, backlog: Backlog::default(), last_departure: left };
    idle.admit(&packet(1000), &empty(ends + PACKET_TIME * 70), &mut random);
    for _ in 0..=70 {
        sampled.admit(&packet(500), &empty(ends), &mut random);
    }
    close(idle.average, sampled.average, 1e-12);
    close(idle.average, before * 0.998_f64.powi(71), 1e-12);
}

#[test]
fn automatic_parameters_equal_those_of_ns_2() {
    // Values of ns-2.35 at 200 Mb/s, 50 ms of propagation delay and packets of 1000 B.
    let change = json!({ "adaptive": true, "rtt": "150.12 ms" });
    let Red { profile, weight, adaptation, .. } = red(&change);
    assert_eq!((profile.min.to_string(), profile.max.to_string()), ("62.5".into(), "187.5".into()));
    assert_eq!(format!("{weight:.2e}"), "2.66e-5");
    assert_eq!(adaptation.unwrap().bottom.to_string(), "0.0004");
    // On a slow link min is at least five packets, and bottom at most 0.01.
    let slow = LinkScale { rate: Rate::from_mbps(1), ..SCALE };
    let slow = Config::read(&change).unwrap().build_red(slow);
    assert_eq!((slow.profile.min, slow.profile.max), (5.0, 15.0));
    assert_eq!(slow.adaptation.unwrap().bottom.to_string(), "0.01");
    // One threshold determines the other.
    let upper = red(&json!({ "max_threshold": "30 KB" })).profile;
    assert_eq!((upper.min, upper.max), (10.0, 30.0));
}

#[test]
fn max_p_adapts_twice_a_second_within_its_bounds() {
    let change = json!({
        "min_threshold": "50 packets", "max_threshold": "150 packets", "weight": 1.0,
        "adaptive": true, "bottom": 0.085, "top": 0.13,
    });
    let (mut red, mut random) = (red(&change), Random::new(1, "adapts"));
    let mut after = |packets, milliseconds| {
        let now = Time::ZERO + Duration::from_millis(milliseconds);
        red.admit(&packet(1000), &backlogged(packets, now), &mut random);
        format!("{:.6}", red.profile.max_p)
    };
    // The target range is 90 to 110 packets.
    let expected = [
        (111, 499, "0.100000"),
        (111, 500, "0.110000"),
        (111, 999, "0.110000"),
        (111, 1000, "0.120000"),
        (110, 1700, "0.120000"),
        (90, 1900, "0.120000"),
        (111, 1901, "0.130000"),
        (111, 2500, "0.130000"),
        (89, 2600, "0.117000"),
        (89, 3000, "0.117000"),
        (89, 3100, "0.105300"),
        (89, 9000, "0.094770"),
        (89, 9500, "0.085293"),
        (0, 10_000, "0.085000"),
        (0, 10_500, "0.085000"),
    ];
    for (packets, milliseconds, max_p) in expected {
        assert_eq!(after(packets, milliseconds), max_p, "{milliseconds} ms");
    }
}

#[test]
fn a_small_max_p_increases_by_a_quarter() {
    let mut profile = RedProfile { min: 50.0, max: 150.0, max_p: 0.02, gentle: true };
    let interval = Duration::from_millis(500);
    let mut adaptation = Adaptation { bottom: 0.01, top: 0.5, interval, next: Time::ZERO };
    adaptation.step(&mut profile, 120.0, Time::ZERO);
    close(profile.max_p, 0.025, 1e-12);
}

#[test]
fn selected_packets_are_marked_if_allowed_and_otherwise_dropped() {
    let verdict_of = |change: &Value, packets, flags| {
        let mut change = change.clone();
        change["min_threshold"] = json!("50 packets");
        change["max_threshold"] = json!("150 packets");
        let (mut red, mut random) = (red(&change), Random::new(1, "chosen"));
        let packet = Packet { flags, ..packet(1000) };
        let mut verdict = || {
            red.average = f64::from(packets);
            red.admit(&packet, &backlogged(packets, Time::ZERO), &mut random)
        };
        std::iter::repeat_with(&mut verdict).find(|v| *v != Verdict::Accept).unwrap()
    };
    let ns_2 = json!({ "mark_up_to": 0.1 });
    // The probability is 0.099 at 149 packets, 0.106 at 151 and 0.994 at 299.
    for (change, packets, expected) in [
        (json!({}), 299, Verdict::Mark),
        (json!({}), 300, Verdict::Drop),
        (json!({ "ecn": false }), 60, Verdict::Drop),
        (ns_2.clone(), 149, Verdict::Mark),
        (ns_2, 151, Verdict::Drop),
    ] {
        assert_eq!(
            verdict_of(&change, packets, Flags::ECN_CAPABLE),
            expected,
            "{change} {packets}"
        );
        assert_eq!(verdict_of(&change, packets, Flags::NONE), Verdict::Drop, "{change} {packets}");
    }
}

#[test]
fn with_bytes_as_unit_larger_packets_are_marked_more_often() {
    let change = json!({
        "min_threshold": "50 KB", "max_threshold": "150 KB", "count_in": "bytes", "wait": false,
    });
    let (mut red, mut random) = (red(&change), Random::new(1, "bytes"));
    let mut marks = [0.0, 0.0];
    for i in 0..2_000_000 {
        // Sizes are random, since alternating sizes would synchronise with the spacing.
        let is_large = usize::from(random.below(2) == 0);
        let bytes = [500, 1500][is_large];
        let backlog = Backlog { bytes: 55_000, packets: 7 + i % 2 };
        let state = QueueState { backlog, ..backlogged(0, Time::ZERO) };
        red.average = 55.0;
        let verdict = red.admit(&packet(bytes), &state, &mut random);
        marks[is_large] += f64::from(u8::from(verdict != Verdict::Accept));
        assert!((red.average - 55.0).abs() < 1e-9, "{}", red.average);
    }
    close(marks[1] / marks[0], 3.0, 0.05);
    // The probability per mean packet is about that of counting in packets.
    close((marks[0] + marks[1]) / 2_000_000.0, 2.0 * 0.005, 0.05);
}

#[test]
fn a_full_queue_drops_at_any_average() {
    let (mut red, mut random) = (red(&json!({ "capacity": "4 packets" })), Random::new(1, "full"));
    let verdict = |red: &mut Red, packets, random: &mut Random| {
        red.admit(&packet(1000), &backlogged(packets, Time::ZERO), random)
    };
    assert_eq!(verdict(&mut red, 3, &mut random), Verdict::Accept);
    assert_eq!(verdict(&mut red, 4, &mut random), Verdict::Drop);
}

#[test]
fn thresholds_may_be_fractions_of_packets() {
    for (text, packets) in [("62.5 packets", 62.5), ("1 packet", 1.0), ("20.5 KB", 20.5)] {
        let threshold = Threshold::read(&json!(text)).unwrap();
        assert_eq!(
            (threshold.packets(Bytes(1000)), threshold.show()),
            (packets, { json!(text.replace("1 packet", "1 packets")) })
        );
    }
    for wrong in ["0 packets", "-1 packets", "NaN packets", "inf packets", "5", "0 B", "packets"] {
        assert!(Threshold::read(&json!(wrong)).is_err(), "{wrong}");
    }
}

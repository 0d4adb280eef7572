//! Tests of HPCC.

use super::*;
use crate::base::schema::Parameter;
use crate::base::units::{Rate, Time};
use crate::model::graph::LinkId;
use crate::model::telemetry::HopTelemetry;
use crate::transport::fixture::ACK;
use serde_json::{Value, json};

const RATE: Rate = Rate::from_gbps(100);

/// Flow in the network of the authors' simulator with one switch.
fn flow(config: &Value) -> Box<dyn Controller> {
    let mut config = config.clone();
    config["base_rtt"] = json!("4160 ns");
    let format = Format {
        payload: Bytes(1_000),
        header: Bytes(90),
        ack: Bytes(88),
        ..Format::read(&json!({})).unwrap()
    };
    Config::read(&config).unwrap().controller(&Path::new(RATE, Duration::from_nanos(4_188), format))
}

/// Handles an ACK with the telemetry of one hop: time in ns, bytes transmitted and queued.
fn ack(flow: &mut dyn Controller, numbers: (u32, u32), hop: [u64; 3]) {
    ack_over(0, flow, numbers, hop);
}

/// Handles an ACK with the telemetry of one hop over a link.
fn ack_over(
    link: LinkId,
    flow: &mut dyn Controller,
    (cumulative, next): (u32, u32),
    hop: [u64; 3],
) {
    report(link, flow, hop);
    flow.on_ack(&Ack { cumulative, next, ..ACK });
}

/// Passes the telemetry of one hop over a link.
fn report(link: LinkId, flow: &mut dyn Controller, [time, transmitted, queued]: [u64; 3]) {
    let mut path = TelemetryStack::default();
    let hop = HopTelemetry {
        time: Time::ZERO + Duration::from_nanos(time),
        transmitted: Bytes(transmitted),
        queued: Bytes(queued),
        rate: RATE,
    };
    path.push(hop, link);
    flow.on_telemetry(&path);
}

/// Rate in Gb/s.
fn rate(flow: &dyn Controller) -> f64 {
    flow.gauges()[0].1 / 1e9
}

#[test]
fn rates_are_those_of_the_authors_simulator_ack_by_ack() {
    let mut flow = flow(&json!({ "quantised": true }));
    // One of two flows of 5 MB to one host, with ten RTTs of its ACKs.
    let rows = include_str!("acks.csv").lines().skip(1);
    for (number, row) in rows.enumerate() {
        let fields: Vec<&str> = row.split(',').collect();
        let number_of = |column: usize| fields[column].parse::<u64>().unwrap();
        let numbers = (number_of(0) as u32, number_of(1) as u32);
        ack(&mut *flow, numbers, [2, 3, 4].map(number_of));
        if number > 0 {
            let shown = [format!("{:.6}", flow.gauges()[2].1), format!("{:.3}", rate(&*flow))];
            assert_eq!(shown, [fields[5], fields[6]], "ACK {number}");
        }
    }
}

#[test]
fn a_queue_and_a_full_link_add_up() {
    let mut flow = flow(&json!({}));
    ack(&mut *flow, (1, 9), [0, 0, 20_000]);
    ack(&mut *flow, (2, 9), [416, 5_200, 40_000]);
    let expected = 0.9 + 0.1 * (1.0 + 20.0 / 52.0);
    assert!((flow.gauges()[2].1 - expected).abs() < 1e-12);
}

#[test]
fn only_an_ack_per_rtt_moves_the_reference() {
    // The average stays as it is if both hops have the same time.
    let still = [1_000, 0, 0];
    for (reaction, expected) in [
        ("combined", [95.05, 95.05, 95.05, 90.3475]),
        ("per_ack", [95.05, 90.3475, 85.880_125, 81.636_118_75]),
        ("per_rtt", [100.0, 100.0, 95.05, 95.05]),
    ] {
        let mut flow = flow(&json!({ "reaction": reaction }));
        ack(&mut *flow, (1, 9), still);
        let acks = [(2, 9), (9, 10), (10, 20), (11, 20)];
        let rates = acks.map(|numbers| {
            ack(&mut *flow, numbers, still);
            rate(&*flow)
        });
        for (rate, expected) in rates.iter().zip(expected) {
            assert!((rate - expected).abs() < 1e-9, "{reaction}: {rates:?}");
        }
    }
}

#[test]
fn the_reference_moves_once_per_rtt_although_a_segment_is_missing() {
    let mut flow = flow(&json!({}));
    ack(&mut *flow, (1, 9), [1_000, 0, 0]);
    let at = |us| Time::ZERO + Duration::from_micros(us);
    // SACKs of packets that were sent and acknowledged at these times; segment 1 stays missing. The second
    // and the last but one end an RTT. The average utilisation of 1 takes 5 % of the reference.
    let rates = [(0, 4), (3, 8), (5, 9), (7, 11), (12, 16), (13, 17)].map(|(sent_at, now)| {
        let (now, sent_at) = (at(now), at(sent_at));
        report(0, &mut *flow, [1_000, 0, 0]);
        flow.on_ack(&Ack { now, sent_at, cumulative: 1, next: 90, advanced: 0, ..ACK });
        rate(&*flow)
    });
    let expected = [95.05, 95.05, 90.347_5, 90.347_5, 90.347_5, 85.880_125];
    for (rate, expected) in rates.iter().zip(expected) {
        assert!((rate - expected).abs() < 1e-9, "{rates:?}");
    }
}

#[test]
fn stages_of_additive_increase_precede_a_multiplicative_one() {
    for (max_stage, expected) in [(0, 100.0), (5, 50.1)] {
        let mut flow = flow(&json!({ "max_stage": max_stage, "reaction": "per_ack" }));
        ack(&mut *flow, (1, 9), [0, 0, 0]);
        // Twice the target halves the rate, half the target doubles it or adds to it.
        let of = |utilisation: f64| (utilisation * 52_000.0).round() as u64;
        ack(&mut *flow, (2, 9), [4_160, of(1.9), 0]);
        assert!((rate(&*flow) - 50.05).abs() < 1e-9);
        ack(&mut *flow, (3, 9), [8_320, of(1.9) + of(0.475), 0]);
        let increased = rate(&*flow);
        assert!((increased - expected).abs() < 1e-9, "{max_stage}: {increased}");
    }
}

#[test]
fn another_path_only_replaces_the_last_one() {
    let mut flow = flow(&json!({}));
    ack(&mut *flow, (1, 9), [1_000, 0, 0]);
    ack(&mut *flow, (2, 9), [2_000, 12_500, 0]);
    let before = rate(&*flow);
    // The other link has carried much more.
    ack_over(1, &mut *flow, (3, 9), [3_000, 1_000_000_000, 0]);
    assert!((rate(&*flow) / before - 1.0).abs() < 0.01);
    ack_over(1, &mut *flow, (4, 9), [4_000, 1_000_012_500, 0]);
    assert!((rate(&*flow) / before - 1.0).abs() < 0.01);
}

#[test]
fn the_digest_replaces_the_average_of_telemetry() {
    let ack = |flow: &mut dyn Controller, cumulative, code| {
        let mut path = TelemetryStack::default();
        path.add_code(code);
        path.add_code(code / 2);
        flow.on_telemetry(&path);
        flow.on_ack(&Ack { cumulative, next: 1_000, ..ACK });
    };
    let mut one = flow(&json!({ "pint": {} }));
    ack(&mut *one, 1, 0);
    // 1.05^128 / 512 = 1.0068 of the link.
    ack(&mut *one, 2, 128);
    let expected = 100.0 / (1.05_f64.powi(128) / 512.0 / 0.95) + 0.05;
    assert!((rate(&*one) - expected).abs() < 1e-9, "{}", rate(&*one));
    // A hundredth of the ACKs changes the rate.
    let mut few = flow(&json!({ "pint": { "probability": 0.01 }, "reaction": "per_ack" }));
    ack(&mut *few, 1, 0);
    let changes = (2..2_002).filter(|number| {
        let before = rate(&*few);
        ack(&mut *few, *number, if before < 50.0 { 0 } else { 128 });
        rate(&*few).to_bits() != before.to_bits()
    });
    let changes = changes.count();
    assert!((10..30).contains(&changes), "{changes}");
}

#[test]
fn delayed_acks_are_rejected() {
    let problem = Config::read(&json!({ "reliability": { "delayed_ack": "1 ms" } })).unwrap_err();
    assert_eq!(
        problem.to_string(),
        "reliability.delayed_ack: must be none: each ACK returns the telemetry of one packet"
    );
}

#[test]
fn the_additive_increase_is_at_least_an_amount_per_rtt() {
    // 520 B per 4.16 us are 1 Gb/s, more than 50 Mb/s.
    for (least, expected) in [("0 B", 95.05), ("520 B", 96.0)] {
        let mut flow = flow(&json!({ "least_increase": least }));
        ack(&mut *flow, (1, 9), [0, 0, 0]);
        // A full link.
        ack(&mut *flow, (2, 9), [416, 5_200, 0]);
        assert!((rate(&*flow) - expected).abs() < 1e-9, "{least}: {}", rate(&*flow));
    }
}

//! Tests of BBRv3.

use serde_json::json;

use super::*;
use crate::base::schema::{Parameter, defaults};
use crate::transport::fixture::{SAMPLE, ack, path};

const PACKET: f64 = 960.0;

/// Flow in `ProbeBW_CRUISE` with 100 Mb/s of payload, a minimum RTT of 7.68 ms (100 packets) and a
/// window of 200 packets.
fn bbr() -> Bbr3 {
    let config = Config { initial_window: 200, ..defaults() };
    let mut bbr = config.open(&Path { seed: 1, ..path() });
    bbr.state = State::Cruise;
    bbr.probe_wait = Duration::from_millis(2_500);
    bbr.model.full_bw_reached = true;
    bbr.model.min_rtt = MinRtt::sample(Duration::from_micros(7680), Time::ZERO);
    bbr.model.update_max_bw(&RateSample { rate: Some(100e6 / 8.0), ..SAMPLE }, 0);
    bbr
}

/// Sample that neither ends a round nor raises a bound.
fn sample(in_flight: f64, lost: f64) -> RateSample {
    RateSample {
        rate: Some(1e6),
        delivered: 10.0 * PACKET,
        in_flight: in_flight * PACKET,
        lost: lost * PACKET,
        ..SAMPLE
    }
}

fn assert_packets(bytes: f64, packets: f64) {
    assert!((bytes / PACKET - packets).abs() < 1e-6, "{} is not {packets}", bytes / PACKET);
}

#[test]
fn a_probe_that_loses_too_much_ends_and_sets_inflight_hi() {
    let mut bbr = bbr();
    (bbr.state, bbr.has_probe_samples) = (State::Up, true);
    let one = Ack { lost: 1, ..ack(1, 2) };
    bbr.handle_loss(&sample(150.0, 3.0), &one);
    assert!(matches!(bbr.state, State::Up), "three of 150 are not more than 2 %");
    bbr.handle_loss(&sample(150.0, 4.0), &one);
    assert!(matches!(bbr.state, State::Down) && bbr.prev_probe_too_high);
    // 2.98 of the 149 packets before may be lost, and 3 were.
    assert_packets(bbr.bounds.inflight_hi(), 149.0);
    assert_packets(bbr.with_headroom(), 0.85 * 149.0);
    bbr.handle_loss(&sample(50.0, 9.0), &one);
    assert_packets(bbr.bounds.inflight_hi(), 149.0);
    // At least the factor beta of the bandwidth-delay product.
    bbr.has_probe_samples = true;
    bbr.handle_loss(&sample(50.0, 9.0), &one);
    assert_packets(bbr.bounds.inflight_hi(), 70.0);
}

#[test]
fn after_a_lossy_probe_the_next_ends_at_inflight_hi_and_the_one_after_raises_it() {
    let mut bbr = bbr();
    (bbr.state, bbr.prev_probe_too_high) = (State::Up, true);
    bbr.bounds.set_inflight_hi(100.0 * PACKET);
    (0..100).for_each(|_| bbr.model.delivery.on_sent(Time::ZERO, Bytes(1000)));
    bbr.update_probe_bw(&ack(1, 2), &sample(100.0, 0.0));
    assert!(
        matches!(bbr.state, State::Down) && bbr.stopped_risky_probe && !bbr.prev_probe_too_high
    );
    // One round later the ACKs have reported no loss.
    bbr.update_probe_bw(&ack(1, 2), &RateSample { starts_round: true, ..sample(100.0, 0.0) });
    assert!(matches!(bbr.state, State::Refill));
    bbr.model.window.bound_cwnd(100.0 * PACKET);
    bbr.update_probe_bw(&ack(1, 2), &RateSample { starts_round: true, ..sample(100.0, 0.0) });
    assert!(matches!(bbr.state, State::Up));
    // The probe fills inflight_hi, and one round of ACKs raises it by a packet.
    let full = Ack { in_flight: Bytes(960 * 100), ..ack(1, 2) };
    for _ in 0..2 {
        bbr.model.delivery.on_ack(&full, Duration::ZERO);
    }
    (0..100).for_each(|_| bbr.update_probe_bw(&full, &sample(50.0, 0.0)));
    assert!(matches!(bbr.state, State::Up));
    assert_packets(bbr.bounds.inflight_hi(), 101.0);
}

#[test]
fn a_probe_waits_two_to_three_seconds_or_one_round_per_packet_of_the_window() {
    let mut bbr = bbr();
    let mut waits = Vec::new();
    for _ in 0..100 {
        bbr.start_probe_down(Time::ZERO);
        waits.push(bbr.probe_wait.seconds());
        assert!(bbr.rounds_since_probe <= 1);
    }
    assert!(waits.iter().all(|wait| (2.0..3.0).contains(wait)));
    assert!(waits.iter().any(|wait| *wait < 2.2) && waits.iter().any(|wait| *wait > 2.8));
    bbr.rounds_since_probe = 0;
    assert!(!bbr.is_time_to_probe(Time::ZERO + Duration::from_millis(2_000)));
    assert!(bbr.is_time_to_probe(Time::ZERO + Duration::from_millis(3_000)));
    for (rounds, packets, is_time) in [(62, 100, false), (63, 100, true), (20, 20, true)] {
        bbr.rounds_since_probe = rounds;
        bbr.model.window = BbrWindow::new(&path(), packets, 4, 1.0);
        assert_eq!(bbr.is_time_to_probe(Time::ZERO), is_time, "{rounds} of {packets}");
    }
}

#[test]
fn startup_ends_after_enough_loss_events_in_a_round_of_recovery() {
    let ends = |events, lost, is_recovering| {
        let mut bbr = bbr();
        (bbr.state, bbr.model.full_bw_reached) = (State::Startup, false);
        (bbr.loss_round.loss_events, bbr.loss_round.inflight_latest) = (events, 120.0 * PACKET);
        (0..190).for_each(|_| bbr.model.delivery.on_sent(Time::ZERO, Bytes(1000)));
        bbr.update_startup(&Ack { is_recovering, ..ack(1, 2) }, &sample(200.0, lost), true);
        matches!(bbr.state, State::Drain).then_some(bbr.bounds.inflight_hi())
    };
    assert_eq!(ends(5, 5.0, true), None);
    assert_eq!(ends(6, 4.0, true), None);
    assert_eq!(ends(6, 5.0, false), None);
    assert_packets(ends(6, 5.0, true).unwrap(), 120.0);
}

#[test]
fn spurious_losses_restore_the_bounds_and_the_state() {
    let one = Ack { lost: 1, ..ack(1, 2) };
    // A probe that lost too much.
    let mut bbr = bbr();
    (bbr.state, bbr.has_probe_samples) = (State::Up, true);
    bbr.bounds.set_inflight_hi(180.0 * PACKET);
    bbr.save_state(Time::ZERO);
    bbr.handle_loss(&sample(150.0, 9.0), &one);
    bbr.bounds.lower_short_term(&LossRound::default(), 0.7, 12.5e6, 200.0 * PACKET);
    assert!(matches!(bbr.state, State::Down) && bbr.bounds.bw_lo().is_finite());
    assert!(bbr.bounds.inflight_hi() < 150.0 * PACKET);
    bbr.on_spurious_loss(Time::ZERO);
    assert!(matches!(bbr.state, State::Refill) && bbr.bounds.bw_lo().is_infinite());
    assert_packets(bbr.bounds.inflight_hi(), 180.0);
    // A second notification changes nothing.
    bbr.state = State::Cruise;
    bbr.on_spurious_loss(Time::ZERO);
    assert!(matches!(bbr.state, State::Cruise));
}

#[test]
fn spurious_losses_that_ended_startup_restart_it() {
    let mut bbr = bbr();
    (bbr.state, bbr.model.full_bw_reached) = (State::Startup, false);
    bbr.loss_round.loss_events = 6;
    bbr.save_state(Time::ZERO);
    (0..190).for_each(|_| bbr.model.delivery.on_sent(Time::ZERO, Bytes(1000)));
    let recovering = Ack { is_recovering: true, ..ack(1, 2) };
    bbr.update_startup(&recovering, &sample(200.0, 5.0), true);
    assert!(matches!(bbr.state, State::Drain) && bbr.bounds.inflight_hi().is_finite());
    bbr.on_spurious_loss(Time::ZERO);
    assert!(matches!(bbr.state, State::Startup) && !bbr.model.full_bw_reached);
    assert!(bbr.bounds.inflight_hi().is_infinite());
}

#[test]
fn the_window_has_the_budget_for_offload_and_the_data_acknowledged_beyond_the_bandwidth() {
    let mut bbr = bbr();
    // 1 ms at 40 Mb/s is more than two packets, at 4 Mb/s less, and at 1 Gb/s more than 64 KiB.
    bbr.config.offload_quanta = 3;
    for (mbps, expected) in [(40, 15_000.0), (4, 6.0 * PACKET), (1000, 3.0 * 65_536.0)] {
        bbr.model.window.set_pacing_rate(f64::from(mbps) * 125e3, true);
        assert_packets(bbr.inflight(0.0, 1.0), expected / PACKET);
    }
    assert_packets(bbr.inflight(300.0 * PACKET, 2.0), 600.0);
    // 40 packets at once, of which none had been expected.
    bbr.config.offload_quanta = 0;
    bbr.extra_acked = Some(Box::new(ExtraAcked::new(Time::ZERO)));
    bbr.model.window = BbrWindow::new(&path(), 500, 4, 1.0);
    let ack = Ack { bytes: Bytes(40 * 960), ..ack(40, 80) };
    bbr.update_extra_acked(&ack);
    bbr.set_control_parameters(&ack);
    assert_packets(bbr.model.window.cwnd(), 2.0 * bbr.bdp() / PACKET + 40.0);
}

#[test]
fn invalid_parameters_are_reported() {
    for (field, value, must) in [
        ("startup_gain", json!(0.5), "must be above 1, not 0.5"),
        ("down_gain", json!(1.0), "must be above 0 and below 1, not 1.0"),
        ("headroom", json!(1.0), "must be from 0 to below 1, not 1.0"),
        ("beta", json!(0.0), "must be above 0 and at most 1, not 0.0"),
        ("loss_threshold", json!(2.0), "must be above 0 and below 1, not 2.0"),
        ("probe_rtt_interval", json!("0 s"), "must be above zero, not \"0 ps\""),
    ] {
        let problem = Config::read(&json!({ field: value })).unwrap_err();
        assert_eq!(problem.to_string(), format!("{field}: {must}"));
    }
}

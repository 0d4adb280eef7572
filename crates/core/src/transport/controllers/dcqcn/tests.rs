//! Tests of DCQCN.

#![expect(clippy::float_cmp, reason = "the formulas give exactly these numbers")]

use super::*;
use crate::base::schema::{Parameter, defaults};
use crate::transport::fixture::ACK;
use serde_json::{Value, json};

fn path() -> Path {
    let format = Format { header: Bytes(48), ack: Bytes(64), ..defaults() };
    Path::new(Rate::from_gbps(10), Duration::from_micros(10), format)
}

fn flow(config: &Value) -> Box<dyn Controller> {
    Config::read(config).unwrap().controller(&path())
}

/// Current and target rate in Gb/s, and alpha.
fn state(flow: &dyn Controller) -> [f64; 3] {
    let gauges = flow.gauges();
    [gauges[0].1 / 1e9, gauges[1].1 / 1e9, gauges[2].1]
}

fn fire(flow: &mut dyn Controller, times: u32) {
    for _ in 0..times {
        let now = flow.next_timer();
        if now < Time::NEVER {
            flow.on_timer(now);
        }
    }
}

#[test]
fn the_first_cnp_halves_the_rate() {
    let mut flow = flow(&json!({}));
    flow.on_notification(Time::ZERO);
    assert_eq!(state(&*flow), [5.0, 10.0, 1.0]);
}

#[test]
fn a_flow_that_starts_below_the_line_rate_raises_its_rate_before_a_cnp() {
    let start = Time::ZERO + Duration::from_micros(7);
    let initial_rate = Some(Rate::from_gbps(1));
    let config = Config::read(&json!({})).unwrap();
    let mut flow = config.controller(&Path { initial_rate, start, ..path() });
    assert_eq!(flow.next_timer(), start + Duration::from_micros(55));
    // Four steps of fast recovery, to a target that is reached, before the first additive increase.
    fire(&mut *flow, 4);
    assert_eq!(state(&*flow)[..2], [1.0, 1.0]);
    fire(&mut *flow, 1);
    assert_eq!(state(&*flow)[..2], [1.02, 1.04]);
    flow.on_notification(flow.next_timer());
    assert_eq!(state(&*flow)[..2], [0.51, 1.02]);
}

#[test]
fn the_reduction_uses_alpha_before_or_after_its_rise() {
    for (order, expected) in
        [("cut_first", 7.5), ("alpha_first", 10.0 * (1.0 - 0.501_953_125 / 2.0))]
    {
        let mut flow = flow(&json!({"initial_alpha": 0.5, "order": order}));
        flow.on_notification(Time::ZERO);
        assert_eq!(state(&*flow)[0], expected, "{order}");
    }
}

#[test]
fn alpha_decays_once_per_period_without_cnps() {
    let mut flow = flow(&json!({}));
    flow.on_notification(Time::ZERO);
    flow.on_notification(Time::ZERO + Duration::from_micros(55 * 3 + 10));
    let decayed = (255.0_f64 / 256.0).powi(3);
    let [rate, _, alpha] = state(&*flow);
    assert!((rate - 5.0 * (1.0 - decayed / 2.0)).abs() < 1e-12);
    assert!((alpha - (decayed * 255.0 + 1.0) / 256.0).abs() < 1e-12);
}

#[test]
fn recovery_is_fast_then_additive_then_hyper() {
    let mut flow = flow(&json!({"byte_counter": "1 MB"}));
    for _ in 0..4 {
        flow.on_notification(Time::ZERO);
    }
    let [rate, target, _] = state(&*flow);
    fire(&mut *flow, 4);
    assert_eq!(state(&*flow)[1], target, "fast recovery keeps the target rate");
    let gap = (target - rate) / 16.0;
    assert!((target - state(&*flow)[0] - gap).abs() < 1e-9, "and halves the distance each time");
    fire(&mut *flow, 1);
    assert!(
        (state(&*flow)[1] - (target + 0.04)).abs() < 1e-9,
        "then the target rate rises by 40 Mb/s"
    );
    for _ in 0..5 {
        flow.on_sent(Time::ZERO, Bytes(1_000_000));
    }
    let before = state(&*flow)[1];
    fire(&mut *flow, 1);
    assert!(
        (state(&*flow)[1] - before - 0.04).abs() < 1e-9,
        "still: the byte counter is only at F"
    );
    flow.on_sent(Time::ZERO, Bytes(1_000_000));
    assert!((state(&*flow)[1] - before - 0.24).abs() < 1e-9, "then by 200 Mb/s");
}

#[test]
fn the_timer_stops_at_line_rate() {
    let mut flow = flow(&json!({"initial_alpha": 0.1, "min_rate": "1 Gbps"}));
    flow.on_notification(Time::ZERO);
    fire(&mut *flow, 40);
    assert_eq!(state(&*flow)[0], 10.0);
    assert_eq!(flow.next_timer(), Time::NEVER);
}

/// A flow of 10 Gb/s with NVIDIA's periods: alpha per microsecond, a reduction per 4 us.
fn nic(changes: &Value) -> Box<dyn Controller> {
    let mut config = json!({
        "alpha_update": "periodic", "alpha_timer": "1 us", "notification_interval": "4 us",
        "cut_interval": "4 us", "rate_timer": "300 us", "gain": 0.25,
    });
    for (field, value) in changes.as_object().unwrap() {
        config[field] = value.clone();
    }
    flow(&config)
}

fn at(nanoseconds: u64) -> Time {
    Time::ZERO + Duration::from_nanos(nanoseconds)
}

#[test]
fn alpha_may_follow_a_clock_and_a_flag() {
    let mut flow = nic(&json!({ "initial_alpha": 0.5, "cut_interval": null }));
    flow.on_notification(at(0));
    assert_eq!(state(&*flow), [7.5, 10.0, 0.5]);
    // The updates at 1 and 2 us: a rise for the CNP at 0, and a decay; the CNP at 2.5 us counts at 3 us.
    flow.on_notification(at(2_500));
    let alpha = (0.5 + 0.25 * 0.5) * 0.75;
    assert_eq!(state(&*flow), [7.5 * (1.0 - alpha / 2.0), 7.5, alpha]);
    flow.on_notification(at(5_000));
    let alpha = (alpha + 0.25 * (1.0 - alpha)) * 0.75 * 0.75;
    assert!((state(&*flow)[2] - alpha).abs() < 1e-12);
}

#[test]
fn cuts_follow_a_clock_from_the_first_cnp() {
    let mut flow = nic(&json!({}));
    flow.on_notification(at(0));
    flow.on_notification(at(1_500));
    flow.on_notification(at(3_000));
    assert_eq!((state(&*flow)[0], flow.next_timer()), (10.0, at(4_000)));
    // Updates of alpha: rises at 1 and 2 us, a decay at 3 us, and a rise at 4 us for the CNP at 3 us.
    flow.on_timer(at(4_000));
    let expected = 10.0 * (1.0 - 0.8125 / 2.0);
    assert_eq!((state(&*flow)[0], flow.next_timer()), (expected, at(304_000)));
    // No CNP until the tick at 8 us. The next reduction is at 12 us.
    flow.on_notification(at(9_000));
    assert_eq!((state(&*flow)[0], flow.next_timer()), (expected, at(12_000)));
}

#[test]
fn one_cut_is_bounded() {
    let mut flow = flow(&json!({ "least_factor": 0.75 }));
    flow.on_notification(Time::ZERO);
    assert_eq!(state(&*flow), [7.5, 10.0, 1.0]);
}

#[test]
fn the_first_cnp_after_line_rate_may_set_the_rate_and_alpha() {
    let config = json!({
        "first_cnp_rate": "20 %", "reset_alpha": true, "initial_alpha": 0.5, "gain": 0.25,
        "additive_increase": "10 %", "hyper_increase": "10 %",
    });
    let mut flow = flow(&config);
    let first = [2.0, 2.0, 0.5 + 0.25 * 0.5];
    flow.on_notification(at(0));
    assert_eq!(state(&*flow), first);
    flow.on_notification(at(50_000));
    assert_eq!(state(&*flow)[0], 2.0 * (1.0 - first[2] / 2.0), "not at line rate");
    fire(&mut *flow, 100);
    assert_eq!(state(&*flow)[0], 10.0);
    flow.on_notification(at(90_000_000));
    assert_eq!(state(&*flow), first);
}

#[test]
fn a_window_shrinks_with_the_rate() {
    let mut flow = flow(&json!({ "window": "1 BDP", "ack_every": 1 }));
    // 10 us at 10 Gb/s are 12 500 B: 12 packets of 1048 B.
    assert_eq!(flow.allowance().window, Bytes(12_000));
    flow.on_notification(Time::ZERO);
    let halved = flow.allowance();
    assert_eq!((halved.window, halved.rate), (Bytes(6_000), Some(Rate::from_gbps(5))));
}

#[test]
fn marked_acks_may_take_the_place_of_cnps() {
    let rate = |config: Value| {
        let mut flow = flow(&config);
        flow.on_ack(&ACK);
        let unmarked = state(&*flow)[0];
        flow.on_ack(&Ack { marked: true, ..ACK });
        [unmarked, state(&*flow)[0]]
    };
    assert_eq!(rate(json!({ "notify_at": "ack", "ack_every": 1 })), [10.0, 5.0]);
    assert_eq!(rate(json!({})), [10.0, 10.0]);
}

#[test]
fn contradictions_are_errors() {
    let problem = |config: Value| Config::read(&config).unwrap_err().to_string();
    let line = problem(json!({ "window": "1 BDP" }));
    assert!(line.starts_with("window: needs ack_every = 1"), "{line}");
    let line = problem(json!({ "notify_at": "ack" }));
    assert!(line.starts_with("notify_at: \"ack\" needs ack_every = 1"), "{line}");
    let line = problem(json!({ "alpha_timer": "50 us" }));
    assert!(line.contains("or give alpha_update = \"periodic\""), "{line}");
    assert!(Config::read(&json!({ "alpha_timer": "1 us", "alpha_update": "periodic" })).is_ok());
}

#[test]
fn the_timer_alone_starts_hyper_increase() {
    // As in the simulator of [hpcc19]: half the gap, 20 Mb/s, then 200 Mb/s at each step.
    let mut flow = flow(&json!({
        "hyper_from": "timer", "fast_recovery_stages": 2, "byte_counter": "1000 GB",
        "additive_increase": "20 Mbps", "hyper_increase": "200 Mbps",
    }));
    (0..4).for_each(|_| flow.on_notification(Time::ZERO));
    for expected in [0.0, 0.02, 0.2, 0.2] {
        let before = state(&*flow)[1];
        fire(&mut *flow, 1);
        assert!((state(&*flow)[1] - before - expected).abs() < 1e-9, "{expected}");
    }
}

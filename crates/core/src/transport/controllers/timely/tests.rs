//! Tests of TIMELY.

use super::*;
use crate::base::schema::Parameter;
use crate::transport::CachedPathState;
use crate::transport::fixture::ACK;
use serde_json::{Value, json};

/// Path of a flow with 7 other flows at its host, over 10 Gb/s.
pub(in crate::transport::controllers) fn path() -> Path {
    Path {
        other_flows: 7,
        ..Path::new(
            Rate::from_gbps(10),
            Duration::from_micros(10),
            Format { header: Bytes(0), ack: Bytes(64), ..defaults() },
        )
    }
}

/// Rate in Mb/s after each completed segment with these RTTs in microseconds, without the serialisation
/// delay of 0.8 us.
pub(in crate::transport::controllers) fn rates(
    flow: &mut dyn Controller,
    rtts_us: &[f64],
) -> Vec<f64> {
    let mut rates = Vec::new();
    for rtt in rtts_us {
        let rtt = Duration::from_seconds((rtt + 0.8) * 1e-6);
        flow.on_ack(&Ack { bytes: Bytes(16_000), rtt, ..ACK });
        rates.push((flow.gauges()[0].1 / 1e3).round() / 1e3);
    }
    rates
}

/// TIMELY with the weight of [ecndelay16], unless given.
fn timely(config: &Value) -> Box<dyn Controller> {
    let mut config = config.clone();
    if config.get("ewma_weight").is_none() {
        config["ewma_weight"] = json!(0.875);
    }
    Config::read(&config).unwrap().controller(&path())
}

#[test]
fn each_branch_of_algorithm_1() {
    // Starts at 10 Gb/s / 8, and below T_low rises by 10 Mb/s. At 60 us the average difference
    // is 0.875 * 20 us, the gradient 0.875; at 55 us the average is negative; at 1 ms the raw
    // value counts.
    let mut flow = timely(&json!({}));
    let cut = 378.0; // 1260 * (1 - 0.8 * 0.875)
    assert_eq!(rates(&mut *flow, &[40.0, 60.0, 55.0]), [1260.0, cut, cut + 10.0]);
    assert_eq!(rates(&mut *flow, &[1000.0]), [232.8]);
}

#[test]
fn the_default_weight_is_that_of_the_authors() {
    // A rise by 20 us counts as 0.02 of the minimum RTT.
    let mut flow = Config::read(&json!({})).unwrap().controller(&path());
    assert_eq!(rates(&mut *flow, &[40.0, 60.0]), [1260.0, 1260.0 * (1.0 - 0.8 * 0.02)]);
}

#[test]
fn hyperactive_increase_starts_at_the_fifth_consecutive_negative_gradient() {
    let mut flow = timely(&json!({}));
    let rtts = [100.0, 99.0, 98.0, 97.0, 96.0, 95.0, 94.0];
    let steps = rates(&mut *flow, &rtts);
    assert_eq!(steps, [1260.0, 1270.0, 1280.0, 1290.0, 1300.0, 1350.0, 1400.0]);
}

#[test]
fn hyperactive_increase_may_follow_increases_below_t_low() {
    let mut flow = timely(&json!({ "hyper_counts": "increases" }));
    let steps = rates(&mut *flow, &[40.0, 60.0, 41.0, 42.0, 43.0, 44.0, 45.0]);
    // The rise to 60 us is a reduction, after which five increases follow.
    assert_eq!(steps[1..], [378.0, 388.0, 398.0, 408.0, 418.0, 468.0]);
}

#[test]
fn one_ack_per_rtt_may_give_a_sample() {
    let mut flow = timely(&json!({ "segments": { "sampling": "per_rtt" } }));
    let mut rate = |cumulative, next| {
        flow.on_ack(&Ack { rtt: Duration::from_micros(10), cumulative, next, ..ACK });
        (flow.gauges()[0].1 / 1e6).round() as u64
    };
    // The first ACK, and the first after packet 20.
    assert_eq!(rate(1, 20), 1260);
    assert_eq!([rate(2, 21), rate(20, 39), rate(21, 40)], [1260, 1260, 1270]);
}

#[test]
fn a_window_shrinks_with_the_rate_and_needs_an_ack_per_packet() {
    let config = Config::read(&json!({ "segments": { "window": "1 BDP" } })).unwrap();
    // 10 us at 10 Gb/s are 12 500 B, 13 packets of 1000 B; TIMELY starts with an eighth of that.
    let allowance = config.controller(&path()).allowance();
    assert_eq!((allowance.window, allowance.rate), (Bytes(1_625), Some(Rate::from_mbps(1_250))));
    assert_eq!(config.mechanism(&path().format).acks.every, 1);
}

#[test]
fn a_steep_rise_reduces_the_rate_to_the_minimum_or_by_the_limit_of_one_step() {
    let mut flow = timely(&json!({}));
    assert_eq!(rates(&mut *flow, &[60.0, 160.0]).pop(), Some(10.0));
    let mut flow = timely(&json!({"least_factor": 0.5}));
    assert_eq!(rates(&mut *flow, &[60.0, 160.0]).pop(), Some(630.0));
}

#[test]
fn with_equal_thresholds_the_gradient_is_never_used() {
    // Steep falls and rises on both sides of the threshold, and the threshold itself.
    let rtts = [90.0, 40.0, 60.0, 99.0, 200.0, 150.0, 125.0, 100.0];
    let steps = |beta: f64, ewma_weight: f64| {
        let config = json!({
            "t_low": "100 us", "t_high": "100 us", "beta": beta, "ewma_weight": ewma_weight,
        });
        rates(&mut *timely(&config), &rtts)
    };
    let expected = [1260.0, 1270.0, 1280.0, 1290.0, 774.0, 567.6, 476.784, 476.784];
    assert_eq!(steps(0.8, 0.875), expected);
    assert_eq!(steps(0.8, 0.02), expected);
}

#[test]
fn the_integral_term_uses_the_deviation_from_the_reference() {
    let integral = json!({ "reference": "100 us", "gain": 0.1, "bound": 0.5 });
    let mut flow = timely(&json!({ "beta": 0.2, "integral": integral, "ewma_weight": 1 }));
    // 1250 Mb/s less a tenth of a fifth; then a rise by 20 us is a gradient of 1; the error of 3
    // at 400 us counts as 0.5; below T_low the rate follows TIMELY.
    let first = 1250.0 * (1.0 - 0.02);
    let second = first * (1.0 - 0.2 - 0.1 * 0.4);
    assert_eq!(rates(&mut *flow, &[120.0, 140.0]), [first, second]);
    let mut flow = timely(&json!({ "beta": 1e-9, "integral": integral }));
    assert_eq!(rates(&mut *flow, &[400.0, 400.0, 40.0]), [1187.5, 1128.125, 1138.125]);
}

#[test]
fn a_remembered_start_uses_the_final_rate_of_the_last_flow() {
    let starts = |start: &str, rate: Option<CachedRate>| {
        let segments = json!({ "segments": { "start": start } });
        let cached_state = CachedPathState { rate, ..CachedPathState::default() };
        let mut flow =
            Config::read(&segments).unwrap().controller(&Path { cached_state, ..path() });
        rates(&mut *flow, &[40.0]);
        (flow.gauges()[0].1 / 1e6, flow.cached_rate().map(|state| state.rate / 1e6))
    };
    let cached_rate = Some(CachedRate::new(70e6));
    // An equal share of 10 Gb/s, or the remembered rate; and 10 Mb/s more.
    assert_eq!(starts("remembered", None), (1260.0, Some(1260.0)));
    assert_eq!(starts("remembered", cached_rate), (80.0, Some(80.0)));
    assert_eq!(starts("fair_share", cached_rate), (1260.0, None));
    assert_eq!(starts("line_rate", cached_rate), (10_000.0, None));
}

#[test]
fn thresholds_may_follow_the_base_rtt() {
    let config = |above: bool| {
        Config::read(&json!({ "above_base_rtt": above, "ewma_weight": 0.875 })).unwrap()
    };
    // A base RTT of 200 us without the packet's 0.8 us: T_low is 230 us and T_high 680 us.
    let path = Path { base_rtt: Duration::from_nanos(200_800), ..path() };
    let step = |above, rtt| rates(&mut *config(above).controller(&path), &[rtt]);
    // 80 % of 500 / 1000 less; with 680 us of 320 / 1000.
    assert_eq!(step(false, 229.0), [1260.0]);
    assert_eq!(step(false, 1000.0), [1250.0 * (1.0 - 0.8 * 0.5)]);
    assert_eq!(step(true, 229.0), [1260.0]);
    assert_eq!(step(true, 680.0), [1260.0]);
    assert_eq!(step(true, 1000.0), [1250.0 * (1.0 - 0.8 * 0.32)]);
    // A rise by 20 us above T_low is a tenth of the base RTT.
    let mut flow = config(true).controller(&path);
    assert_eq!(rates(&mut *flow, &[240.0, 260.0]).pop(), Some(1260.0 * (1.0 - 0.8 * 0.0875)));
}

#[test]
fn a_threshold_below_the_base_rtt_gives_a_warning() {
    let extent = Extent::new(Duration::from_micros(300), [(Rate::from_gbps(10), 2)]);
    let warnings = |config: Value| Config::read(&config).unwrap().warnings(&extent, &path().format);
    let warning = &warnings(json!({}))[0];
    assert!(warning.starts_with("t_high is 500 us, below the base RTT"), "{warning}");
    assert_eq!(warnings(json!({ "t_high": "700 us" })), [""; 0]);
    assert_eq!(warnings(json!({ "above_base_rtt": true })), [""; 0]);
}

#[test]
fn thresholds_out_of_order_are_an_error() {
    let error = Config::read(&json!({"t_low": "600 us"})).unwrap_err();
    assert_eq!(error.to_string(), "t_low: must not be above t_high, which is 500 us");
}

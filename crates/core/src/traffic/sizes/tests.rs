//! Properties that hold for every flow size distribution.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Config, SizeDistribution, floor_sum, power_sum};
use crate::base::random::Random;
use crate::base::schema::{Parameter, defaults};
use crate::base::units::Bytes;
use crate::model::packet::Format;

fn example(kind: &str) -> Box<dyn SizeDistribution> {
    let mut table = match kind {
        "fixed" => json!({"size": "2500 B"}),
        "uniform" => json!({"min": "2 KB", "max": "198 KB"}),
        "exponential" => json!({"mean": "3500 B"}),
        "pareto" => json!({"mean": "30 KB", "shape": 2.5}),
        "bounded_pareto" => json!({"min": "300 B", "max": "1 MB", "shape": 1.2}),
        "empirical" => json!({"table": "web_search_packets", "packet": "700 B"}),
        other => panic!("no example of `{other}`"),
    };
    table["kind"] = Value::from(kind);
    let format = defaults::<Format>();
    Config::read(&table).unwrap().distribution(&format).unwrap()
}

#[test]
fn sample_means_match_exact_means() {
    let n = 400_000;
    for kind in Config::NAMES {
        let sizes = example(kind);
        let mut random = Random::new(3, kind);
        let drawn: Vec<u64> = (0..n).map(|_| sizes.sample(&mut random).0).collect();
        assert!(drawn.iter().all(|size| *size > 0), "{kind}");
        for payload in [1, 1000, 1460] {
            let sampled = drawn.iter().map(|size| size.div_ceil(payload) as f64).sum::<f64>();
            let ratio = sampled / f64::from(n) / sizes.mean_packets(Bytes(payload));
            assert!((ratio - 1.0).abs() < 0.015, "{kind}, {payload} B a packet: {ratio}");
        }
    }
}

#[test]
fn means_match_closed_forms() {
    let mean = |kind| example(kind).mean();
    assert!((mean("fixed") - 2500.0).abs() < 1e-9);
    assert!((mean("uniform") - 100_000.0).abs() < 1e-6);
    assert!((mean("exponential") - 3500.0).abs() < 1e-6);
    // Rounding up to whole bytes adds half a byte on average.
    assert!((mean("pareto") - 30_000.5).abs() < 0.01, "{}", mean("pareto"));
    let (low, high, shape) = (300_f64, 1e6_f64, 1.2_f64);
    let cut = (low / high).powf(shape);
    let limit_arrivals = shape / (shape - 1.0) * (low - high * cut) / (1.0 - cut);
    assert!(
        (mean("bounded_pareto") - limit_arrivals - 0.5).abs() < 0.01,
        "{}",
        mean("bounded_pareto")
    );
}

#[test]
fn power_sum_matches_known_values() {
    let basel = std::f64::consts::PI.powi(2) / 6.0;
    assert!((power_sum(2.0, 1.0, 1.0, f64::INFINITY) - basel).abs() < 1e-10);
    let harmonic: f64 = (1..100_000).map(|n| 1.0 / f64::from(n)).sum();
    assert!((power_sum(1.0, 1.0, 1.0, 100_000.0) - harmonic).abs() < 1e-9);
    // A large exponent and scale must not overflow.
    assert!((power_sum(200.0, 1000.0, 1000.0, f64::INFINITY) - 5.5418).abs() < 0.001);
}

proptest! {
    #[test]
    fn floor_sum_matches_direct_summation(
        n in 0_u128..60, m in 1_u128..50, a in 0_u128..200, b in 0_u128..200,
    ) {
        let expected: u128 = (0..n).map(|i| (a * i + b) / m).sum();
        prop_assert_eq!(floor_sum(n, m, a, b), expected);
    }
}

#[test]
fn pareto_sizes_round_up_to_whole_packets() {
    let table = json!({"kind": "pareto", "mean": "30 KB", "shape": 1.4, "whole_packets": true});
    let format = Format { payload: Bytes(960), ..defaults() };
    let sizes = Config::read(&table).unwrap().distribution(&format).unwrap();
    let mut random = Random::new(1, "sizes");
    assert!((0..1000).all(|_| sizes.sample(&mut random).0.is_multiple_of(960)));
    let packets = sizes.mean_packets(Bytes(960));
    assert!((sizes.mean() / 960.0 - packets).abs() < 1e-9, "full packets only");
    assert!((packets - 31.75).abs() < 0.02, "half a packet more than 31.25: {packets}");
}

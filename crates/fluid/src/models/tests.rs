//! Fluid models held against the published fixed points, phase margins and pictures over time.

use proptest::prelude::*;

use super::*;

fn setup(value: &Value) -> Setup {
    Setup::read(value).unwrap_or_else(|problem| panic!("{problem}: {value}"))
}

/// The law of a model for `flows` on a link of `gbps` with a loop of `delay_us`, which may be zero.
fn law(model: &Value, gbps: u64, flows: usize, delay_us: f64) -> Box<dyn Law> {
    let capacity = Rate::from_gbps(gbps).bps();
    Config::read(model).unwrap().open(Link { capacity, delay: delay_us * 1e-6, flows })
}

fn exact_margin(law: &dyn Law) -> f64 {
    phase_margin(&open_loop(law, &law.fixed_point().unwrap())).unwrap().degrees
}

/// DCQCN with the slope of a profile of 1 % at `kmax_kb`, carried on up to a probability of one.
fn dcqcn(increase_mbps: u32, kmax_kb: u32) -> Value {
    json!({
        "kind": "dcqcn",
        "additive_increase": format!("{increase_mbps} Mbps"),
        "kmax": format!("{} KB", 5 + 100 * (kmax_kb - 5)),
        "pmax": 1.0,
    })
}

/// A probe's samples.
fn series(samples: &Samples, name: &str) -> Vec<(f64, f64)> {
    let probe = samples.probes.iter().position(|probe| probe == name).unwrap();
    let rows = samples.time_s.iter().zip(&samples.probe).zip(&samples.value);
    rows.filter(|((_, of), _)| **of as usize == probe).map(|((t, _), v)| (*t, *v)).collect()
}

/// The least, mean and largest value of a probe from an instant on.
fn late(samples: &Samples, name: &str, from_s: f64) -> [f64; 3] {
    let values: Vec<f64> =
        series(samples, name).into_iter().filter(|(t, _)| *t >= from_s).map(|(_, v)| v).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    [least, mean, values.into_iter().fold(f64::NEG_INFINITY, f64::max)]
}

/// [ecndelay16]'s phase margins of DCQCN at 40 Gb/s: `R_AI` in Mb/s, Kmax in KB, and rows of N with
/// the degrees at 0, 50 and 100 us (from the data files of its figure).
type Rows = [(usize, [f64; 3]); 9];
const DCQCN: [(u32, u32, Rows); 3] = [
    (
        40,
        200,
        [
            (2, [26.6, 8.3, -10.1]),
            (4, [13.4, -0.8, -14.9]),
            (10, [4.8, -6.6, -17.9]),
            (14, [5.7, -5.1, -15.9]),
            (20, [9.6, -1.0, -11.5]),
            (22, [11.3, 0.7, -9.9]),
            (36, [23.9, 12.6, 1.3]),
            (64, [43.5, 29.5, 15.6]),
            (100, [56.5, 39.8, 23.1]),
        ],
    ),
    (
        10,
        200,
        [
            (2, [58.4, 39.1, 19.9]),
            (4, [53.5, 39.1, 24.6]),
            (10, [21.0, 12.6, 4.2]),
            (14, [14.5, 7.0, -0.5]),
            (20, [11.3, 4.4, -2.5]),
            (22, [11.1, 4.3, -2.6]),
            (36, [13.5, 6.9, 0.3]),
            (64, [25.3, 17.9, 10.5]),
            (100, [38.2, 29.2, 20.2]),
        ],
    ),
    (
        10,
        1000,
        [
            (2, [81.6, 62.9, 44.2]),
            (4, [79.9, 63.8, 47.7]),
            (10, [63.6, 53.7, 43.8]),
            (14, [24.6, 20.0, 15.5]),
            (20, [29.3, 24.3, 19.2]),
            (22, [31.2, 25.9, 20.7]),
            (36, [39.4, 32.9, 26.3]),
            (64, [46.4, 38.2, 30.0]),
            (100, [51.5, 41.7, 31.9]),
        ],
    ),
];

/// Every entry of the table: the model, N, the delay in microseconds, and the published margin.
fn published_dcqcn() -> impl Iterator<Item = (Value, usize, f64, f64)> {
    DCQCN.into_iter().flat_map(|(increase, kmax, rows)| {
        rows.into_iter().flat_map(move |(flows, degrees)| {
            let at = move |(delay, degrees)| (dcqcn(increase, kmax), flows, delay, degrees);
            [0.0, 50.0, 100.0].into_iter().zip(degrees).map(at)
        })
    })
}

#[test]
fn the_published_loop_of_dcqcn_has_the_published_margins() {
    let off = published_dcqcn().map(|(model, flows, delay, degrees)| {
        let open = law(&model, 40, flows, delay).published_loop().unwrap();
        (phase_margin(&open).unwrap().degrees - degrees).abs()
    });
    let most = off.fold(0.0, f64::max);
    assert!(most < 0.2, "{most}");
}

/// DCQCN's margin from its law differs from the published one; `dcqcn.rs` has the reasons.
#[test]
fn dcqcns_own_margins_lie_in_a_stated_band_around_the_published_ones() {
    let band = |increase: u32, kmax: u32| {
        let model = dcqcn(increase, kmax);
        let rows = published_dcqcn().filter(|(other, ..)| *other == model);
        let off = rows.map(|(_, flows, delay, degrees)| {
            exact_margin(&*law(&model, 40, flows, delay)) - degrees
        });
        off.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)])
    };
    let bands = [(40, 200), (10, 200), (10, 1000)].map(|(increase, kmax)| band(increase, kmax));
    let degrees = bands.map(|band| band.map(f64::round));
    assert_eq!(format!("{degrees:?}"), "[[-22.0, 12.0], [-34.0, 3.0], [-70.0, 9.0]]");
}

/// 14 flows at 40 Gb/s and 50 us: -5 degrees as published, +2 by the law. The oscillation dies out; at
/// 100 us both are negative, and it does not.
#[test]
fn integrating_dcqcn_agrees_with_its_own_margin_where_the_published_one_has_the_other_sign() {
    let model = dcqcn(40, 200);
    let swing = |delay: u32| {
        let fluid = setup(&json!({
            "model": model, "flows": 14, "capacity": "40 Gbps", "delay": format!("{delay} us"),
            "duration": "300 ms", "step": "2 us",
        }));
        let [least, _, most] = late(&fluid.run().samples, "queue_bytes", 0.28);
        most - least
    };
    let margins = |delay| {
        let law = law(&model, 40, 14, delay);
        [exact_margin(&*law), phase_margin(&law.published_loop().unwrap()).unwrap().degrees]
    };
    let ([ours, published], [ours_slow, _]) = (margins(50.0), margins(100.0));
    assert!(ours > 2.0 && published < -5.0 && ours_slow < -4.0, "{ours} {published} {ours_slow}");
    let (quick, slow) = (swing(50), swing(100));
    assert!(quick < 1e3 && slow > 100e3, "{quick} B, {slow} B");
}

#[test]
fn patched_timely_with_the_slope_of_the_figure_has_the_published_margins() {
    // [ecndelay16]: 10 Gb/s, segments of 16 KB; delay, N, degrees.
    let published: [(f64, &[(usize, f64)]); 3] = [
        (
            0.0,
            &[
                (2, -2.0),
                (4, 5.2),
                (10, 28.5),
                (18, 42.9),
                (30, 22.0),
                (38, 3.2),
                (40, -1.3),
                (50, -22.0),
            ],
        ),
        (50.0, &[(2, -7.0), (10, 25.9), (18, 39.9), (36, 3.6), (38, -1.1)]),
        (100.0, &[(2, -12.1), (6, 6.8), (18, 37.0), (34, 4.2), (36, -0.7), (50, -31.5)]),
    ];
    let model = json!({ "kind": "patched_timely", "weight_slope": 0.5 });
    for (delay, rows) in published {
        for (flows, degrees) in rows {
            let margin = exact_margin(&*law(&model, 10, *flows, delay));
            assert!(
                (margin - degrees).abs() < 0.5,
                "N = {flows}, {delay} us: {margin}, not {degrees}"
            );
        }
    }
}

#[test]
fn patched_timely_as_stated_is_stable_for_fewer_flows_than_its_figure_says() {
    let margin = |flows| exact_margin(&*law(&json!("patched_timely"), 10, flows, 4.0));
    assert!(margin(2) > 5.0 && margin(10) > 40.0 && margin(18) > 4.0);
    assert!(margin(20) < -4.0 && margin(40) < -60.0);
    let swing = |flows: usize| {
        let fluid = setup(&json!({
            "model": "patched_timely", "flows": flows, "duration": "300 ms", "step": "4 us",
        }));
        let [least, _, most] = late(&fluid.run().samples, "queue_bytes", 0.25);
        most - least
    };
    assert!(swing(18) < 10.0 && swing(20) > 10e3, "{} B, {} B", swing(18), swing(20));
}

#[test]
fn dcqcns_fixed_points_are_the_computed_ones() {
    // C in Gb/s, N, alpha*, q* in KB for Kmax of 200 KB (if below it) and of 2000 KB with 10 %.
    let cases = [
        (40, 2, 0.101, Some(20.0), 21.0),
        (40, 4, 0.122, Some(42.0), 43.0),
        (40, 10, 0.153, Some(123.0), 125.0),
        (40, 16, 0.171, None, 222.0),
        (40, 64, 0.230, None, 1183.0),
        (10, 2, 0.145, Some(94.0), 96.0),
        (10, 4, 0.171, None, 222.0),
        (10, 10, 0.210, None, 676.0),
    ];
    let tenfold = json!({ "kind": "dcqcn", "kmax": "2000 KB", "pmax": 0.1 });
    for (gbps, flows, alpha, queue, queue_tenfold) in cases {
        let point = law(&tenfold, gbps, flows, 4.0).fixed_point().unwrap();
        assert!((point[0] / 1e3 - queue_tenfold).abs() < 0.6, "N = {flows}: {point:?}");
        assert!((point[3] - alpha).abs() < 0.0006, "N = {flows}: {point:?}");
        let found = law(&json!("dcqcn"), gbps, flows, 4.0).fixed_point().ok();
        assert_eq!(found.is_some(), queue.is_some(), "N = {flows}");
        if let (Some(found), Some(queue)) = (found, queue) {
            assert!((found[0] / 1e3 - queue).abs() < 0.6, "N = {flows}: {found:?}");
        }
    }
}

#[test]
fn patched_timelys_fixed_points_are_the_computed_ones() {
    for (flows, queue) in [(2, 78.1), (10, 140.6), (20, 218.8), (40, 375.0)] {
        let point = law(&json!("patched_timely"), 10, flows, 4.0).fixed_point().unwrap();
        assert!((point[0] / 1e3 - queue).abs() < 0.06, "N = {flows}: {point:?}");
    }
}

/// All derivatives vanish at a fixed point.
#[test]
fn at_a_fixed_point_nothing_changes() {
    struct Same(Vec<f64>);
    impl Past for Same {
        fn value(&self, place: usize, _delay: f64) -> f64 {
            self.0[place]
        }
    }
    for model in Config::NAMES {
        let law = law(&json!(model), 10, 2, 4.0);
        let Ok(point) = law.fixed_point() else { continue };
        let layout = law.layout();
        let mut state = point[..layout.shared].to_vec();
        state.extend(point[layout.shared..].repeat(2));
        let mut change = vec![0.0; state.len()];
        let past = Same(state.clone());
        let active = [true; 2];
        law.changes(
            &View { time: 1.0, state: &state, past: &past, active: &active, layout },
            &mut change,
        );
        let variables: Vec<_> = law.shared().into_iter().chain(law.own()).collect();
        for (place, change) in change.iter().enumerate() {
            // In a millisecond, as a share of its usual size.
            let share = change * 1e-3 / variables[layout.in_one(place)].scale;
            assert!(share.abs() < 1e-6, "{model}: {place} changes by {share}");
        }
    }
}

proptest! {
    /// [rcp06], [xcp02]: `z^2 + (alpha z + beta) exp(-z) = 0` has a root on the imaginary axis where
    /// alpha = w sin w and beta = w^2 cos w, whatever the link.
    #[test]
    fn rcp_and_xcp_are_at_the_edge_of_stability_on_the_curve_of_the_linear_analysis(
        w in 0.1_f64..1.5,
        delay_us in 100.0_f64..200_000.0,
        flows in 1_usize..50,
    ) {
        for kind in ["rcp", "xcp"] {
            let model = json!({ "kind": kind, "alpha": w * w.sin(), "beta": w * w * w.cos() });
            let margin = exact_margin(&*law(&model, 10, flows, delay_us));
            prop_assert!(margin.abs() < 0.01, "{kind}: {margin}");
        }
    }
}

fn dcqcn_over_time(flows: u32, delay: &str, duration: &str) -> Samples {
    let model = json!({ "kind": "dcqcn", "kmax": "2000 KB", "pmax": 0.1 });
    setup(&json!({
        "model": model, "flows": flows, "capacity": "40 Gbps", "delay": delay,
        "duration": duration, "step": "2 us",
    }))
    .run()
    .samples
}

#[test]
fn dcqcn_settles_where_published_when_feedback_is_quick() {
    for (flows, queue) in [(2, 20.0), (10, 125.0), (64, 1200.0)] {
        let samples = dcqcn_over_time(flows, "4 us", "80 ms");
        let [least, mean, most] = late(&samples, "queue_bytes", 0.06).map(|bytes| bytes / 1e3);
        assert!((mean / queue - 1.0).abs() < 0.1, "N = {flows}: {mean} KB");
        assert!(most - least < 0.1 * queue, "N = {flows}: {least} to {most} KB");
    }
}

#[test]
fn dcqcn_with_slow_feedback_settles_for_2_and_64_flows_and_cycles_for_10() {
    for (flows, queue) in [(2, 20.0), (64, 1200.0)] {
        let samples = dcqcn_over_time(flows, "85 us", "160 ms");
        let [least, mean, most] = late(&samples, "queue_bytes", 0.14).map(|bytes| bytes / 1e3);
        assert!((mean / queue - 1.0).abs() < 0.15, "N = {flows}: {mean} KB");
        assert!(most - least < 0.25 * queue, "N = {flows}: {least} to {most} KB");
    }
    // Published: a full swing between 0 and 300 KB.
    let [least, _, most] = late(&dcqcn_over_time(10, "85 us", "200 ms"), "queue_bytes", 0.15);
    assert!(least < 10e3 && (200e3..400e3).contains(&most), "{least} to {most} B");
}

fn two_flows(model: &str, duration: &str) -> Samples {
    setup(&json!({
        "model": model, "initial_rates": ["7 Gbps", "3 Gbps"], "duration": duration,
    }))
    .run()
    .samples
}

#[test]
fn under_patched_timely_two_flows_meet_and_the_queue_rests_at_78_kb() {
    let samples = two_flows("patched_timely", "200 ms");
    let [least, mean, most] = late(&samples, "queue_bytes", 0.18).map(|bytes| bytes / 1e3);
    assert!((mean - 78.1).abs() < 2.0 && most - least < 8.0, "{least}, {mean}, {most}");
    let [[_, first, _], [_, second, _]] =
        [0, 1].map(|flow| late(&samples, &format!("rate_bps flow {flow}"), 0.18));
    assert!((first / second - 1.0).abs() < 0.05, "{first}, {second}");
}

#[test]
fn under_timely_two_flows_stay_apart() {
    let samples = two_flows("timely", "200 ms");
    let [[_, first, _], [_, second, _]] =
        [0, 1].map(|flow| late(&samples, &format!("rate_bps flow {flow}"), 0.15));
    // Published: 5 to 7.7 and 2 to 3.5 Gb/s.
    assert!((4.5e9..8e9).contains(&first) && (1.5e9..4e9).contains(&second), "{first}, {second}");
}

#[test]
fn every_model_and_parameter_is_documented() {
    for entry in catalogue() {
        assert!(entry.about.contains('.'), "{}", entry.name);
        for parameter in &entry.entries {
            assert!(parameter.about.contains('.'), "{}.{}", entry.name, parameter.name);
        }
    }
}

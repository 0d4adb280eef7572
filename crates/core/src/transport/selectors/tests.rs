//! Tests of entropy selectors.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::bitmap::Bitmap;
use super::mixed::Mixed;
use super::oblivious::Oblivious;
use super::reps::Reps;
use super::reps_legacy::RepsLegacy;
use super::*;
use crate::base::schema::defaults;
use crate::base::units::{Duration, Time};
use proptest::prelude::*;

/// Numbers that a selector draws.
#[derive(Clone, Default)]
struct Draws(Arc<Mutex<VecDeque<u64>>>);

impl Draw for Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.lock().unwrap().pop_front().expect("a number to draw") % bound
    }
}

/// Replays a connection of htsim (`nscc`, 64 values) and compares each value.
fn replay(trace: &str, build: impl FnOnce(Draws) -> Box<dyn EntropySelector>) {
    let draws = Draws::default();
    let mut selector = build(draws.clone());
    for (number, row) in trace.lines().enumerate().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let (entropy, other) = (fields[1].parse().unwrap(), fields[2].parse::<u32>().unwrap());
        if fields[0] == "S" {
            draws.0.lock().unwrap().extend(fields[3].parse::<u64>());
            assert_eq!(selector.next(Time::ZERO, other), entropy, "row {number}");
            assert!(draws.0.lock().unwrap().is_empty(), "row {number}");
        } else {
            let feedback =
                [PathFeedback::Good, PathFeedback::Marked, PathFeedback::Trimmed][other as usize];
            selector.on_feedback(Time::ZERO, entropy, feedback);
        }
    }
}

/// First round of the connection in htsim.
fn rounds() -> Rounds {
    Rounds::with(64, 47_927, 60)
}

#[test]
fn values_are_those_of_htsim_packet_by_packet() {
    replay(include_str!("tests/oblivious.csv"), |random| {
        Box::new(Oblivious { rounds: rounds(), random })
    });
    replay(include_str!("tests/bitmap.csv"), |random| Box::new(Bitmap::new(rounds(), random)));
    replay(include_str!("tests/mixed.csv"), |random| {
        Box::new(Mixed { good: VecDeque::new(), bitmap: Bitmap::new(rounds(), random) })
    });
    replay(include_str!("tests/reps.csv"), |random| Box::new(Reps::new(&defaults(), random)));
    replay(include_str!("tests/reps_legacy.csv"), |random| {
        Box::new(RepsLegacy { values: 64, random, good: VecDeque::new(), sent: 0 })
    });
}

/// Returns a selector by its name.
fn selector(name: &str, seed: u64) -> Box<dyn EntropySelector> {
    use crate::base::schema::Parameter;
    let config = Config::read(&serde_json::json!({ "kind": name, "values": 16 })).unwrap();
    config.build(Random::new(seed, "entropy"), 4)
}

#[test]
fn after_a_timeout_reps_repeats_the_stored_values_until_it_thaws() {
    let at = |ms| Time::ZERO + Duration::from_millis(ms);
    let mut reps = selector("reps", 1);
    (1..=3).for_each(|value| reps.on_feedback(at(0), value, PathFeedback::Good));
    reps.on_feedback(at(0), 0, PathFeedback::Timeout);
    let values = (0..5).map(|_| reps.next(at(1), 1)).collect::<Vec<_>>();
    assert_eq!(values, [1, 2, 3, 1, 2]);
    reps.on_feedback(at(11), 9, PathFeedback::Good);
    let explored = (0..16).map(|_| reps.next(at(11), 1)).collect::<Vec<_>>();
    assert!(explored.iter().any(|value| *value > 3), "{explored:?}");
    assert_eq!(reps.next(at(11), 1), 9);
}

proptest! {
    #[test]
    fn rounds_have_each_value_once(seed in 0_u64..1_000, rounds in 1_usize..5) {
        let [mut oblivious, mut bitmap] = ["oblivious", "bitmap"].map(|name| selector(name, seed));
        for _ in 0..rounds {
            let mut values: Vec<_> = (0..16).map(|_| oblivious.next(Time::ZERO, 9)).collect();
            let others: Vec<_> = (0..16).map(|_| bitmap.next(Time::ZERO, 9)).collect();
            prop_assert_eq!(&values, &others, "without feedback they are alike");
            values.sort_unstable();
            values.dedup();
            prop_assert_eq!(values.len(), 16);
        }
    }

    #[test]
    fn reps_repeats_a_good_value_once(
        seed in 0_u64..1_000, goods in prop::collection::vec(16_u16..999, 0..20),
    ) {
        for name in ["reps", "reps_legacy"] {
            let mut reps = selector(name, seed);
            (0..16).for_each(|_| { reps.next(Time::ZERO, 16); });
            for value in &goods {
                reps.on_feedback(Time::ZERO, *value, PathFeedback::Good);
            }
            let sent = (0..40).map(|_| reps.next(Time::ZERO, 16)).filter(|value| *value >= 16);
            let kept = if name == "reps" { goods.len().min(8) } else { goods.len() };
            prop_assert_eq!(sent.collect::<Vec<_>>(), goods[goods.len() - kept..].to_vec());
        }
    }
}

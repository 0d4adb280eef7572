//! Schedules against closed forms: bytes of each rank, steps, and data that every rank ends with.

use std::collections::BTreeSet;

use super::*;
use crate::base::schema::Parameter;
use serde_json::{Value, json};

fn schedule(algorithm: &Value, ranks: u32, size: u64) -> Box<dyn Schedule> {
    Config::read(algorithm).unwrap().schedule(ranks, Bytes(size)).unwrap()
}

fn messages(schedule: &dyn Schedule) -> Vec<Message> {
    (0..schedule.messages()).map(|number| schedule.message(number)).collect()
}

/// Returns the messages in the order in which they end, if all of them take the same time.
fn order(schedule: &dyn Schedule) -> Vec<u64> {
    let mut counts = vec![0; schedule.messages() as usize];
    // Followers for which one of two conditions is met.
    let mut waiting = BTreeSet::new();
    let mut may_start = |number: &u64| !schedule.is_follower(*number) || !waiting.insert(*number);
    let mut order: Vec<u64> = (0..schedule.first()).filter(&mut may_start).collect();
    let mut next = 0;
    while let Some(number) = order.get(next).copied() {
        for end in [End::Delivered, End::Sent] {
            let due = schedule.counter(number, end).and_then(|counter| {
                counts[counter as usize] += 1;
                schedule.released(counter, counts[counter as usize])
            });
            let follower = schedule.follower(number).filter(|_| end == End::Sent);
            order.extend(due.into_iter().chain(follower).filter(&mut may_start));
        }
        next += 1;
    }
    order
}

/// Algorithms, with the numbers of steps and of bytes that each of 8 ranks sends of 8000.
fn algorithms() -> Vec<(Value, u32, u64)> {
    let ring = |operation: &str| json!({ "kind": "ring", "operation": operation });
    let halving = |operation: &str| json!({ "kind": "halving_doubling", "operation": operation });
    vec![
        (ring("all_reduce"), 14, 2 * 7 * 1000),
        (ring("reduce_scatter"), 7, 7 * 1000),
        (ring("all_gather"), 7, 7 * 1000),
        (json!({ "kind": "ring", "chunks": 5 }), 14, 2 * 7 * 1000),
        (halving("all_reduce"), 6, 2 * 7 * 1000),
        (halving("reduce_scatter"), 3, 7 * 1000),
        (halving("all_gather"), 3, 7 * 1000),
        (json!("all_to_all"), 7, 7 * 1000),
        (json!({ "kind": "all_to_all", "window": 1 }), 7, 7 * 1000),
    ]
}

#[test]
fn every_rank_sends_and_receives_the_bytes_of_the_closed_form() {
    for (algorithm, steps, bytes) in algorithms() {
        let all = messages(&*schedule(&algorithm, 8, 8000));
        assert_eq!(all.iter().map(|message| message.step + 1).max(), Some(steps), "{algorithm}");
        for rank in 0..8 {
            let sum = |of: fn(&Message) -> u32| -> u64 {
                all.iter().filter(|message| of(message) == rank).map(|message| message.size.0).sum()
            };
            assert_eq!(sum(|message| message.source), bytes, "{algorithm}");
            assert_eq!(sum(|message| message.target), bytes, "{algorithm}");
        }
    }
}

#[test]
fn micro_batches_pass_all_stages_forth_and_back() {
    let pipeline = schedule(&json!({ "kind": "pipeline", "micro_batches": 3 }), 4, 10);
    let all = messages(&*pipeline);
    let of_first: Vec<_> =
        all.iter().step_by(3).map(|message| (message.source, message.target)).collect();
    assert_eq!(of_first, [(0, 1), (1, 2), (2, 3), (3, 2), (2, 1), (1, 0)]);
    let sizes: Vec<u64> = all[..3].iter().map(|message| message.size.0).collect();
    assert_eq!(sizes, [3, 3, 4]);
}

#[test]
fn every_message_starts_once_and_after_what_its_source_sent_or_received() {
    let pipeline = json!({ "kind": "pipeline", "micro_batches": 3 });
    let algorithms = algorithms().into_iter().map(|(algorithm, ..)| algorithm);
    for algorithm in algorithms.chain([pipeline]) {
        for ranks in [2, 4, 8, 32] {
            let schedule = schedule(&algorithm, ranks, 100_000);
            let order = order(&*schedule);
            let numbers: BTreeSet<u64> = order.iter().copied().collect();
            assert_eq!(order.len() as u64, schedule.messages(), "{algorithm}, {ranks} ranks");
            assert_eq!(numbers.len(), order.len(), "{algorithm}, {ranks} ranks");
            for number in order {
                let message = schedule.message(number);
                assert!(
                    message.source != message.target && message.source.max(message.target) < ranks
                );
            }
        }
    }
}

#[test]
fn an_all_reduce_brings_every_part_to_every_rank() {
    // Rank r begins with summand r of each part, and sums grow by arriving data. A message carries all
    // that its source has of the parts in it: at a ring, one part; by halving, a range of parts.
    let ranks = 8_u32;
    let parts_of = |algorithm: &str, message: &Message| -> Vec<usize> {
        let (source, target, step) = (message.source, message.target, message.step);
        if algorithm == "ring" {
            return vec![((source + 2 * ranks - step) % ranks) as usize];
        }
        let distance = source ^ target;
        let owner = if step < 3 { target } else { source };
        let first = owner / distance * distance;
        (first as usize..(first + distance) as usize).collect()
    };
    for algorithm in ["ring", "halving_doubling"] {
        let schedule = schedule(&json!(algorithm), ranks, 8000);
        let mut has: Vec<Vec<BTreeSet<u32>>> =
            (0..ranks).map(|rank| vec![BTreeSet::from([rank]); ranks as usize]).collect();
        for step in messages(&*schedule).chunk_by(|one, other| one.step == other.step) {
            let before = has.clone();
            for message in step {
                let parts = parts_of(algorithm, message);
                assert_eq!(message.size.0, 1000 * parts.len() as u64, "{algorithm} {message:?}");
                for part in parts {
                    let summands = &before[message.source as usize][part];
                    has[message.target as usize][part].extend(summands);
                }
            }
        }
        let is_complete = |summands: &BTreeSet<u32>| summands.len() == ranks as usize;
        assert!(has.iter().flatten().all(is_complete), "{algorithm}");
    }
}

#[test]
fn a_window_limits_the_messages_of_a_rank() {
    let all_to_all = schedule(&json!({ "kind": "all_to_all", "window": 3 }), 8, 8000);
    let first = |rank| (0..all_to_all.first()).filter(move |number| number % 8 == rank).count();
    assert!((0..8).all(|rank| first(rank) == 3));
    // The first message that ends starts the fourth, whichever it is.
    assert_eq!(all_to_all.counter(2 * 8 + 5, End::Sent), Some(5));
    assert_eq!(all_to_all.released(5, 1), Some(3 * 8 + 5));
    assert_eq!(all_to_all.released(5, 5), None);
}

#[test]
fn impossible_sizes_and_ranks_are_refused() {
    let problem = |algorithm: &Value, ranks, size| {
        let config = Config::read(algorithm).unwrap();
        config.schedule(ranks, Bytes(size)).err().unwrap().to_string()
    };
    insta::assert_snapshot!(
        [
            problem(&json!({ "kind": "ring", "chunks": 3 }), 4, 11),
            problem(&json!("halving_doubling"), 6, 100),
            problem(&json!("all_to_all"), 6, 5),
            problem(&json!("pipeline"), 6, 7),
        ]
        .join("\n"),
        @r"
    size: must be at least 12 B, a byte for each message, not 11 B
    ranks: must be a power of two for halving_doubling, not 6
    size: must be at least 6 B, a byte for each message, not 5 B
    size: must be at least 8 B, a byte for each message, not 7 B
    "
    );
}

//! Random choices among equal-cost paths, by hosts and by switches.

use serde_json::{Value, json};
use sojourn_core::base::random::Random;
use sojourn_core::base::schema::{Parameter, defaults};
use sojourn_core::load_balancing::policies;
use sojourn_core::transport::controllers;

use super::scenarios::pick;

/// Lets hosts choose paths in half of the scenarios with random paths, if all packets have room for entropy
/// values.
pub(super) fn choose_paths(scenario: &mut Value, seed: u64) {
    let random = &mut Random::new(seed, "scenario/entropy");
    let transports = scenario["transports"].as_object().map(|others| others.values());
    let has_room = |transport: &Value| {
        let config = controllers::Config::read(transport).unwrap();
        config.mechanism(&defaults()).has_room_for_entropy()
    };
    let all_have = transports.into_iter().flatten().chain([&scenario["transport"]]).all(has_room);
    if scenario["routing"] != "spray_random" && scenario["routing"] != "entropy" {
        return;
    }
    let is_chosen = random.below(2) == 0 && all_have;
    scenario["routing"] = if is_chosen { "entropy" } else { "spray_random" }.into();
    scenario["entropy"] = if is_chosen {
        let kind = pick(random, &["oblivious", "bitmap", "reps", "reps_legacy", "mixed"]);
        let values = pick(random, &[1, 4, 64]);
        match random.below(3) {
            0 => json!({
                "kind": "path_scores", "least_answers": pick(random, &[json!(null), json!(3)]),
            }),
            1 => json!({
                "kind": "plb", "idle_rounds": pick(random, &[1, 3]),
                "rounds": pick(random, &[1, 12]), "suspension": pick(random, &["0 s", "1 ms"]),
            }),
            _ => json!({ "kind": kind, "values": values }),
        }
    } else {
        json!("none")
    };
}

/// Lets small queues of NDP return headers in half of the scenarios.
pub(super) fn return_headers(scenario: &mut Value, seed: u64) {
    let random = &mut Random::new(seed, "scenario/returns");
    if scenario["transport"]["kind"] == "ndp" && random.below(2) == 0 {
        let header_capacity = pick(random, &["1 packets", "3 packets", "30 packets"]);
        scenario["queue"] = json!({
            "kind": "composite", "capacity": pick(random, &["2 packets", "8 packets"]),
            "header_capacity": header_capacity, "returns_headers": true,
            "header_share": pick(random, &[json!("none"), json!(10)]),
        });
    }
}

/// Lets switches choose next hops in half of the scenarios that spray packets.
pub(super) fn balance_loads(scenario: &mut Value, seed: u64) {
    let random = &mut Random::new(seed, "scenario/load_balancers");
    let sprays = scenario["routing"].as_str().is_some_and(|name| name.starts_with("spray"));
    if !sprays || random.below(2) == 0 {
        return;
    }
    scenario["routing"] = match pick(random, policies::Config::NAMES) {
        // For leaves and spines.
        "conga" if scenario["topology"]["kind"] == "leaf_spine" => json!({
            "kind": "conga", "gap": pick(random, &["1 ns", "5 us"]), "ageing": "100 us",
        }),
        "conga" => json!("random_next_hop"),
        "flowlets" => {
            json!({ "kind": "flowlets", "gap": pick(random, &["1 ns", "5 us", "1 ms"]) })
        }
        "shortest_queue" => {
            let samples = pick(random, &[json!("none"), json!(1), json!(2)]);
            let memory = random.below(3) * u64::from(samples.is_number());
            json!({ "kind": "shortest_queue", "samples": samples, "memory": memory })
        }
        other => json!(other),
    };
}

//! Random queue disciplines.

use serde_json::{Value, json};
use sojourn_core::base::random::Random;
use sojourn_core::queueing::disciplines;

use super::scenarios::pick;

/// Returns a random queue discipline.
pub(super) fn discipline(random: &mut Random) -> Value {
    let capacity = pick(random, &["2 KB", "4 packets", "30 KB", "none"]);
    let mark_at = pick(random, &["arrival", "departure"]);
    match pick(random, disciplines::Config::NAMES) {
        "drop_tail" => json!({ "kind": "drop_tail", "capacity": capacity }),
        "ecn_threshold" => json!({
            "kind": "ecn_threshold", "capacity": capacity, "mark_at": mark_at,
            "threshold": pick(random, &["0 B", "5 packets", "10 KB"]),
        }),
        "dcqcn_red" => json!({
            "kind": "dcqcn_red", "capacity": capacity, "mark_at": mark_at,
            "kmin": "1 KB", "kmax": "20 KB", "pmax": 0.3,
        }),
        "red" => json!({
            "kind": "red", "capacity": capacity, "count_in": pick(random, &["packets", "bytes"]),
            "min_threshold": "2.5 packets", "max_threshold": pick(random, &["none", "20 KB"]),
            "weight": pick(random, &[json!("none"), json!(0.1)]), "max_p": 0.3,
            "gentle": random.below(2) == 0, "adaptive": random.below(2) == 0,
            "wait": random.below(2) == 0, "ecn": random.below(2) == 0,
            "mark_up_to": pick(random, &[0.1, 1.0]),
        }),
        // As many classes as the transport with the most priorities uses.
        "strict_priority" => json!({
            "kind": "strict_priority", "capacity": capacity, "classes": pick(random, &[8, 64]),
            "threshold": pick(random, &["none", "5 packets", "10 KB"]),
            "mark_by": pick(random, &["port", "class"]),
        }),
        "pfabric" => json!({
            "kind": "pfabric", "capacity": capacity,
            "starvation_prevention": random.below(2) == 0,
            "census": pick(random, &[json!([]), json!(["1 KB", "20 KB"])]),
        }),
        "fair_queueing" => json!({
            "kind": "fair_queueing", "capacity": capacity,
            "weights": pick(random, &[json!({}), json!({ "trace": 0.3 })]),
        }),
        "composite" => json!({
            "kind": "composite", "capacity": capacity, "trimming": random.below(4) > 0,
            "header_capacity": pick(random, &["none", "300 B", "20 packets"]),
            "header_share": pick(random, &[json!("none"), json!(1), json!(10)]),
            "kmin": "1 KB", "kmax": pick(random, &["1 KB", "20 KB"]),
        }),
        "credit_shaper" => json!({
            "kind": "credit_shaper", "capacity": capacity, "credits": pick(random, &[1, 8]),
            "burst": pick(random, &[1, 2]), "jitter": pick(random, &[0.0, 0.095]),
        }),
        "drr" => json!({
            "kind": "drr", "capacity": capacity, "quantum": pick(random, &["1040 B", "5 KB"]),
        }),
        "round_robin" => json!({ "kind": "round_robin", "capacity": capacity }),
        "sfq" => json!({
            "kind": "sfq", "capacity": capacity, "buckets": pick(random, &[1, 3, 1024]),
        }),
        "codel" => json!({ "kind": "codel", "capacity": capacity, "law": codel(random) }),
        "fq_codel" => json!({
            "kind": "fq_codel", "capacity": capacity, "law": codel(random),
            "queues": pick(random, &[json!("none"), json!(2), json!(1024)]),
            "quantum": pick(random, &["1040 B", "5 KB"]), "drop_batch": pick(random, &[1, 64]),
        }),
        other => panic!("add a generator of a random `{other}` here"),
    }
}

/// CoDel parameters for RTTs of microseconds or milliseconds.
fn codel(random: &mut Random) -> Value {
    json!({
        "target": pick(random, &["2 us", "100 us"]), "interval": pick(random, &["101 us", "2 ms"]),
        "ecn": random.below(2) == 0, "mtu": pick(random, &["0 B", "1514 B"]),
    })
}

/// Lets control packets wait with data where a queue limits credits.
pub(super) fn keep_credits_with_data(scenario: &mut Value) {
    let limits = |queue: &str| match &scenario[queue] {
        Value::Null => scenario["transport"]["kind"] == "expresspass",
        queue => queue["kind"] == "credit_shaper",
    };
    if limits("queue") || limits("host_queue") {
        for table in ["switch", "host"] {
            if scenario[table]["control_priority"] == true {
                scenario[table]["control_priority"] = json!(false);
            }
        }
    }
}

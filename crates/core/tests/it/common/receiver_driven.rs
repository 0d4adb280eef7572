//! Random scenarios with receiver-driven transports.

use serde_json::{Value, json};
use sojourn_core::base::random::Random;

use super::disciplines::keep_credits_with_data;
use super::paths::{choose_paths, return_headers};
use super::scenarios::{has_connections, pick, scenario};

/// Sets the parameters of a receiver-driven transport.
pub(super) fn set_credit(random: &mut Random, transport: &mut Value) {
    if transport["kind"] == "homa" {
        transport["rtt_bytes"] =
            pick(random, &["1 B", "10 KB", "100 KB", "3 packets", "20 us"]).into();
        transport["cutoffs"] = pick(random, &[json!([]), json!([433, 2339, 6756])]);
        transport["overcommitment"] = pick(random, &[json!("none"), json!(1), json!(20)]);
        transport["tail_boost"] = json!(random.below(2) == 0);
        transport["resend_interval"] = pick(random, &["2 ms", "5 ms"]).into();
    } else if transport["kind"] == "phost" {
        transport["free_tokens"] = pick(random, &[0, 8, 100]).into();
        transport["window"] = pick(random, &[1, 8]).into();
        transport["token_life"] = pick(random, &[1.5, 10.0]).into();
    } else if transport["kind"] == "ndp" {
        transport["initial_window"] = pick(random, &[json!("1 BDP"), json!(1), json!(30)]);
        transport["pull_rate"] = pick(random, &[1.0, 0.5]).into();
        transport["request_pulls"] = pick(random, &[1, 8]).into();
    } else if transport["kind"] == "expresspass" {
        transport["initial_rate"] = pick(random, &[0.0625, 1.0]).into();
        transport["initial_weight"] = pick(random, &[0.0625, 0.5]).into();
        transport["jitter"] = pick(random, &[0.0, 0.1]).into();
        transport["feedback"] = json!(random.below(4) > 0);
        transport["resend_timeout"] = pick(random, &["200 us", "5 ms"]).into();
    } else if transport["kind"] == "uet" {
        transport["control"] = pick(random, &["nscc", "rccc", "both"]).into();
        transport["ack_bytes"] = pick(random, &["1 B", "16384 B", "1 MB"]).into();
        transport["credit_rate"] = pick(random, &[0.99, 0.5]).into();
        transport["trimming"] = (transport["control"] != "nscc" || random.below(2) == 0).into();
    }
}

/// Returns the scenario of a seed with a receiver-driven transport for all flows.
pub fn with_credit(seed: u64) -> Value {
    let mut scenario = scenario(seed);
    if has_connections(&scenario) {
        return with_credit(seed + 1_000_000);
    }
    let random = &mut Random::new(seed, "scenario/credit");
    let mut transport = json!({
        "kind": pick(random, &["expresspass", "homa", "phost", "ndp", "uet", "uet"]),
        "reliability": { "handshake": random.below(2) == 0, "max_rto": "50 ms" },
    });
    set_credit(random, &mut transport);
    if (transport["kind"] == "ndp" || transport["kind"] == "uet") && random.below(2) == 0 {
        // The queue that it was designed for.
        scenario.as_object_mut().map(|scenario| scenario.remove("queue"));
    } else if transport["kind"] == "expresspass" {
        scenario["routing"] = json!("flow_hash");
        scenario["entropy"] = json!("none");
        if random.below(4) > 0 {
            let fields = scenario.as_object_mut();
            fields.map(|fields| (fields.remove("queue"), fields.remove("host_queue")));
        }
    }
    scenario["transport"] = transport;
    scenario.as_object_mut().map(|scenario| scenario.remove("transports"));
    keep_credits_with_data(&mut scenario);
    choose_paths(&mut scenario, seed);
    return_headers(&mut scenario, seed);
    scenario
}

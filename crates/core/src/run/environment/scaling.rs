//! Thresholds, rates and windows of data-centre laws that follow link rates and base RTTs, so that a
//! comparison at any rate treats all laws alike.
//!
//! Sources: the simulator of [hpcc19] (`run.py`), whose authors scale the constants of DCTCP, DCQCN and
//! TIMELY with the rate of hosts; [pfabric13] §5.4.3 for pFabric's window, queue and timeout.

use serde_json::{Value, json};

use crate::base::schema::Parameter;
use crate::base::units::{Duration, Rate};

/// Returns the thresholds of a queue discipline that a transport was designed for, in a network with this
/// lowest link rate.
pub(super) fn queue(discipline: &str, slowest: Rate) -> Value {
    match discipline {
        // 30 KB at 10 Gb/s, and at least what [dctcp10] has: 65 packets of 1500 B at 10 Gb/s, 20 at 1 Gb/s.
        "ecn_threshold" | "strict_priority" => {
            let least = if slowest >= Rate::from_gbps(10) { "97.5 KB" } else { "30 KB" };
            json!({ "threshold": "24 us", "least_threshold": least })
        }
        // 100 KB and 400 KB at 25 Gb/s.
        "dcqcn_red" => json!({ "kmin": "32 us", "kmax": "128 us", "pmax": 0.2 }),
        // 36 KB at 10 Gb/s.
        "pfabric" => json!({ "capacity": "2 BDP" }),
        _ => json!({}),
    }
}

/// Name of the parameter of delay-based laws whose targets follow the base RTT.
const ABOVE_BASE_RTT: &str = "above_base_rtt";

/// Parameters that are absolute if a scenario gives one of them.
const TARGETS: [&str; 5] = ["base_target", "hop_scaling", "t_low", "t_high", "min_rtt"];

/// Removes what would change the meaning of parameters that `transport` gives.
pub(super) fn leave_out_conflicts(law: &mut Value, transport: &Value) {
    if TARGETS.iter().any(|target| transport.get(target).is_some())
        && let Some(law) = law.as_object_mut()
    {
        law.remove(ABOVE_BASE_RTT);
    }
}

/// Returns the parameters of a law in a network with this base RTT.
pub(super) fn law(kind: &str, base_rtt: Duration) -> Value {
    // 1 Gb/s at 100 Gb/s, as in [hpcc19], is also the share of [ecndelay16]'s code, 100 Mb/s at 10 Gb/s.
    let min_rate = "1 %";
    match kind {
        // 5 and 50 Mb/s at 25 Gb/s.
        "dcqcn" => json!({
            "additive_increase": "0.02 %", "hyper_increase": "0.2 %", "min_rate": min_rate,
        }),
        // 10 Mb/s at 10 Gb/s.
        "timely" | "patched_timely" => json!({
            "delta": "0.1 %", "segments": { "min_rate": min_rate }, (ABOVE_BASE_RTT): true,
        }),
        // 12 packets, the queue, and 45 us in a network with a base RTT of 15 us.
        "pfabric" => json!({
            "initial_window": "1 BDP",
            "max_window": "2 BDP",
            "reliability": { "fixed_rto": (base_rtt * 3).show() },
        }),
        // 50 Mb/s at 100 Gb/s.
        "hpcc" => json!({
            "additive_increase": "0.05 %", "min_rate": min_rate, "base_rtt": base_rtt.show(),
        }),
        // 150 Mb/s at 25 Gb/s.
        "powertcp" | "theta_powertcp" => json!({
            "additive_increase": "0.6 %", "min_rate": min_rate, "base_rtt": base_rtt.show(),
        }),
        // 10 000 bytes at 10 Gb/s in a network with a base RTT of 8 us ([homa18] §3.2: the bytes of an RTT).
        "homa" => json!({ "rtt_bytes": base_rtt.show() }),
        "swift" => json!({ (ABOVE_BASE_RTT): true }),
        _ => json!({}),
    }
}

//! Congestion at one end of a link, and a victim flow that shares the link.

use serde_json::{Value, json};
use sojourn_core::run::Results;

use super::graph;

/// Hosts `a`, `b`, `c` at switch `s`, hosts `x` and `y` at switch `t`, and a fast link between the
/// switches: `x` receives at a quarter of its rate.
pub fn two_switches() -> Value {
    json!({
        "topology": graph(
            "a,s,40 Gbps,1 us,,\nb,s,40 Gbps,1 us,,\nc,s,40 Gbps,1 us,,\ns,t,40 Gbps,1 us,,\n\
             t,x,10 Gbps,1 us,,\nt,y,40 Gbps,1 us,,\n"
        ),
        "transport": "constant_rate",
        "switch": { "shared_buffer": "500 KB", "pause": {} },
        "time_limit": "5 ms",
    })
}

pub const A: u32 = 0;
pub const B: u32 = 1;
pub const C: u32 = 2;
pub const X: u32 = 3;
pub const Y: u32 = 4;

/// More bytes than a run delivers.
pub const ENDLESS: u64 = 1_000_000_000;

/// Goodput of a flow over the whole run, as a fraction of 10 Gb/s with 40 B of headers per 1000 B
/// of payload.
pub fn share(results: &Results, flow: usize) -> f64 {
    let seconds = results.summary["simulated_s"].as_f64().unwrap();
    results.flows.delivered_bytes[flow] as f64 * 1.04 * 8.0 / seconds / 10e9
}

//! Data centre whose switches drop packets: Linux hosts on open connections.
//!
//! Sources: the minimum RTO of [dctcp10]; Linux 6.18 (`linux`), with TCP small queues, `fq`, SACK blocks,
//! congestion window validation and restarts of idle connections as in `internet`; [`switch_buffer`]; ECMP
//! by hash-threshold (RFC 2992 §2); thresholds and rates that follow the link ([`scaling`]).

use serde_json::{Value, json};

use super::{Defaults, add_defaults, linux, scaling, switch_buffer};
use crate::topology::Extent;

pub(super) fn defaults(extent: &Extent) -> Defaults {
    let buffer = switch_buffer(extent.fastest);
    let mut scenario = json!({
        "packet": linux::packets(),
        "host": { "stamps": "wire", "service": "fair", "rate_tolerance": 0.0001 },
    });
    if extent.has_switches {
        scenario["switch"] = json!({ "shared_buffer": buffer, "alpha": 1.0 });
        scenario["routing"] = "ecmp".into();
    }
    Defaults {
        scenario,
        reliability: json!({
            "recovery": "rack",
            "handshake": false,
            "timestamps": true,
            "duplicate_acks": 3,
            "sack_blocks": 3,
            "initial_rto": "10 ms",
            // SRTT + max(10 ms, 4 RTTVAR): Linux with rto_min of 10 ms.
            "min_rto": "10 ms",
            "timer_granularity": "10 ms",
            "max_rto": "120 s",
            "window_validation": true,
            "single_reduction": true,
            "accurate_ecn_option": true,
            "idle_restart": "halving",
        }),
        spraying: json!({ "duplicate_acks": "none" }),
        law,
        router: scaling::router,
        queue: scaling::queue,
        designed_queue: scaling::designed_queue,
        capacity: (!extent.has_switches).then(|| buffer.into()),
        managed: &[],
    }
}

/// Returns the parameters of a transport's law.
fn law(kind: &str, scale: &scaling::Scale) -> Value {
    let mut law = linux::law(kind);
    add_defaults(&mut law, &scaling::law(kind, scale));
    law
}

//! Data centre whose switches pause their neighbours (PFC): RDMA NICs on open connections.
//!
//! Sources: headers of RoCEv2 (InfiniBand Architecture Specification, annex A17); go-back-N as in the NICs
//! of [dcqcn15], which serve queue pairs in turn; [`switch_buffer`]; ECMP by hash-threshold (RFC 2992 §2);
//! thresholds and rates that follow the link ([`scaling`]).
//! Own choices: the timeouts, longer than the queueing delay of a full buffer at 10 Gb/s; selective repeat
//! for sprayed packets, since go-back-N takes overtaken packets for lost; and Linux hosts as in
//! `lossy_datacentre` for transports whose traffic classes are not paused.

use serde_json::json;

use super::{Defaults, scaling, switch_buffer};
use crate::topology::Extent;

pub(super) fn defaults(extent: &Extent) -> Defaults {
    let buffer = switch_buffer(extent.fastest);
    let mut scenario = json!({
        // Ethernet 18 B, IPv4 20 B, UDP 8 B, BTH 12 B, ICRC 4 B; an ACK has 4 B more (AETH).
        "packet": { "payload": "1024 B", "header": "62 B", "ack": "66 B" },
        "host": { "stamps": "wire", "service": "fair", "rate_tolerance": 0.0001 },
    });
    if extent.has_switches {
        scenario["switch"] = json!({ "shared_buffer": buffer, "pause": { "alpha_by_rate": true } });
        scenario["routing"] = "ecmp".into();
    }
    Defaults {
        scenario,
        reliability: json!({
            "recovery": "go_back_n",
            "handshake": false,
            "timestamps": true,
            "duplicate_acks": 3,
            "initial_rto": "20 ms",
            "min_rto": "20 ms",
            "timer_granularity": "1 ms",
            "max_rto": "1 s",
        }),
        spraying: json!({ "recovery": "selective_repeat", "duplicate_acks": "none" }),
        law: scaling::law,
        router: scaling::router,
        queue: scaling::queue,
        designed_queue: scaling::designed_queue,
        capacity: (!extent.has_switches).then(|| buffer.into()),
        managed: &[],
    }
}

//! Today's Internet: Linux hosts, and queues of one bandwidth-delay product of their link.
//!
//! Sources: Linux 6.18 (`linux`), whose TCP small queues and `fq` let flows share a port in turn; RFC 8985
//! and RFC 9937 (RACK-TLP and PRR); RFC 2018 §4 (SACK blocks); RFC 7661 and RFC 9438 §5.8 (congestion window
//! validation); Linux, `tcp_cwnd_restart` (restart of idle connections); Linux, `ip-sysctl.rst`: by default
//! connections cache their RTT (`tcp_no_metrics_save = 0`) and not ssthresh (`tcp_no_ssthresh_metrics_save =
//! 1`); Villamizar and Song, High Performance TCP in ANSNET (1994), for the buffer.

use serde_json::{Value, json};

use super::{Defaults, add_defaults, linux, scaling};

/// Capacities of queues that manage their length: CoDel has that of Linux (tc-codel(8)), RED drops by its
/// thresholds.
const MANAGED: &[(&str, &str)] = &[("codel", "1000 packets"), ("red", "none")];

pub(super) fn defaults() -> Defaults {
    let mut reliability = linux::reliability();
    let own = json!({
        "duplicate_acks": 3, "sack_blocks": 3, "window_validation": true, "single_reduction": true,
        "syn_fallback_rto": "3 s", "accurate_ecn_option": true, "idle_restart": "halving",
        "cached_rtt": "linux",
    });
    add_defaults(&mut reliability, &own);
    Defaults {
        scenario: json!({
            "packet": linux::packets(),
            "host": { "service": "fair", "rate_tolerance": 0.0001 },
        }),
        reliability,
        spraying: json!({ "duplicate_acks": "none" }),
        law: |kind, _| law(kind),
        router: |_, _| json!({}),
        queue: scaling::packet_size,
        designed_queue: |_| json!({}),
        capacity: Some("1 BDP, at least 10 packets".into()),
        managed: MANAGED,
    }
}

/// Returns the parameters of a transport's law. Quick-Start and Jump Start, which Linux does not have, follow
/// RFC 4782 §4 after a loss, and RFC 7323 §2.2, which does not scale the window of a SYN-ACK.
fn law(kind: &str) -> Value {
    match kind {
        "quick_start" => json!({ "limit_ssthresh": true }),
        "jump_start" => json!({ "syn_window": "65535 B" }),
        _ => linux::law(kind),
    }
}

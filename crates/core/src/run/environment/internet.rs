//! Today's Internet: Linux hosts, and queues of one bandwidth-delay product.
//!
//! Sources: Linux 6.18 (`linux`); RFC 8985 and RFC 9937 (RACK-TLP and PRR); Villamizar and Song, High
//! Performance TCP in ANSNET (1994), for the buffer.

use serde_json::json;

use super::{Defaults, add_defaults, linux};
use crate::topology::Extent;

/// Least capacity of a queue, in bytes: ten packets.
const LEAST_CAPACITY: u64 = 15_000;

pub(super) fn defaults(extent: &Extent) -> Defaults {
    // The product for the slowest link over the longest path.
    let product = extent.slowest.carries(extent.longest_delay * 2).0;
    let mut reliability = linux::reliability();
    add_defaults(&mut reliability, &json!({ "duplicate_acks": 3 }));
    Defaults {
        scenario: json!({ "packet": linux::packets() }),
        reliability,
        spraying: json!({ "duplicate_acks": "none" }),
        law: linux::parameters,
        capacity: Some(format!("{} B", product.max(LEAST_CAPACITY)).into()),
    }
}

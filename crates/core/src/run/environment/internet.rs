//! Today's Internet: Linux hosts, and queues of one bandwidth-delay product.
//!
//! Sources: Linux 6.18 (`linux`); RFC 8985 and RFC 9937 (RACK-TLP and PRR); Villamizar and Song, High
//! Performance TCP in ANSNET (1994), for the buffer.

use serde_json::{Map, Value, json};

use super::{Defaults, linux};
use crate::topology::Extent;
use crate::transport::controllers;

/// Least capacity of a queue, in bytes: ten packets.
const LEAST_CAPACITY: u64 = 15_000;

pub(super) fn defaults(extent: &Extent) -> Defaults {
    // The product for the slowest link over the longest path.
    let product = extent.slowest.carries(extent.longest_delay * 2).0;
    let mut reliability = linux::timers();
    reliability["recovery"] = "rack".into();
    reliability["duplicate_acks"] = 3.into();
    Defaults {
        scenario: json!({ "packet": linux::packets() }),
        reliability,
        transports: transports(),
        queues: json!({}),
        capacity: Some(format!("{} B", product.max(LEAST_CAPACITY)).into()),
    }
}

/// Returns the parameters of every transport, as Linux has them.
pub(super) fn transports() -> Value {
    let names = controllers::Config::NAMES.iter();
    let all = names.map(|name| ((*name).to_owned(), linux::parameters(name)));
    all.collect::<Map<_, _>>().into()
}

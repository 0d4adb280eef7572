//! Capacity of a queue.

use serde_json::Value;

use super::Backlog;
use crate::base::schema::json_schema::{Definitions, pattern, quantity_form};
use crate::base::schema::{Parameter, Problem, wrong};
use crate::base::units::{Bytes, DATA_UNITS, parse_quantity};

/// Limit of a queue in bytes or in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// Bytes, headers included.
    Bytes(u64),
    /// Packets of any size.
    Packets(u32),
}

impl Capacity {
    /// Returns true if a packet of `bytes` fits on top of `backlog`.
    pub fn fits(self, backlog: Backlog, bytes: u16) -> bool {
        match self {
            Self::Bytes(limit) => backlog.bytes + u64::from(bytes) <= limit,
            Self::Packets(limit) => backlog.packets < limit,
        }
    }

    /// Returns true if an empty queue can hold a packet of `size`.
    pub fn holds(self, size: Bytes) -> bool {
        match self {
            Self::Bytes(limit) => size.0 <= limit,
            Self::Packets(limit) => limit > 0,
        }
    }

    /// Returns true if `backlog` exceeds the capacity.
    pub fn exceeded_by(self, backlog: Backlog) -> bool {
        match self {
            Self::Bytes(limit) => backlog.bytes > limit,
            Self::Packets(limit) => backlog.packets > limit,
        }
    }
}

impl Parameter for Capacity {
    fn allowed() -> String {
        "an amount of data or a number of packets, such as \"100 KB\" or \"65 packets\"".to_owned()
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        let text = value.as_str().ok_or_else(|| wrong::<Self>(value))?;
        if let Some(number) = text.strip_suffix("packets").or(text.strip_suffix("packet")) {
            return number.trim().parse().map(Self::Packets).map_err(|_| wrong::<Self>(value));
        }
        parse_quantity(text, DATA_UNITS).map(Self::Bytes).ok_or_else(|| wrong::<Self>(value))
    }
    fn show(&self) -> Value {
        match self {
            Self::Bytes(bytes) => Bytes(*bytes).show(),
            Self::Packets(packets) => format!("{packets} packets").into(),
        }
    }
    fn schema(_default: Option<&Self>, _definitions: &mut Definitions) -> Value {
        pattern(&format!(r"(\s*\+?[0-9]+\s*packets?|{})", quantity_form(DATA_UNITS)))
    }
}

//! Capacities and thresholds of queues: in scenarios, and resolved for the link of a port.

use std::fmt;

use serde_json::Value;

use super::Backlog;
use crate::base::product::{PACKETS_PATTERN, Product, parse_packets};
use crate::base::schema::json_schema::{Definitions, pattern, quantity_form};
use crate::base::schema::{Parameter, Problem, wrong};
use crate::base::units::{Bytes, DATA_UNITS, Duration, Rate, TIME_UNITS, parse_quantity};

/// Capacity or threshold of a queue, in bytes or packets, or relative to the link of its port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// Bytes, headers included.
    Bytes(u64),
    /// Packets of any size.
    Packets(u32),
    /// Time that the link takes to transmit the queue.
    Time(Duration),
    /// Multiple of the bandwidth-delay product, link rate times base RTT of the network's longest path.
    Product(Product),
}

/// Capacity or threshold of the queue at one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes, headers included.
    Bytes(u64),
    /// Packets of any size.
    Packets(u32),
}

/// Properties of a port that resolve its queue's relative capacities.
#[derive(Clone, Copy, Debug)]
pub struct LinkScale {
    /// Rate of the port's link.
    pub rate: Rate,
    /// Rate of the link in the opposite direction.
    pub opposite_rate: Rate,
    /// Base RTT of the network's longest path.
    pub base_rtt: Duration,
    /// Size of a full data packet.
    pub packet: Bytes,
    /// True if the link leads to a host.
    pub is_last_hop: bool,
}

impl LinkScale {
    /// Returns the limit at this port; `None` without a capacity.
    pub fn limit(self, capacity: Option<Capacity>) -> Option<Limit> {
        capacity.map(|capacity| match capacity {
            Capacity::Bytes(bytes) => Limit::Bytes(bytes),
            Capacity::Packets(packets) => Limit::Packets(packets),
            Capacity::Time(time) => Limit::Bytes(self.rate.carries(time).0),
            Capacity::Product(product) => {
                let bytes = product.bytes(self.rate.carries(self.base_rtt), self.packet);
                Limit::Bytes(bytes.round() as u64)
            }
        })
    }
}

impl Capacity {
    /// Returns a multiple of the bandwidth-delay product.
    pub fn product(factor: f64) -> Self {
        Self::Product(Product::times(factor))
    }

    /// Returns true if an empty queue can hold a packet of `size`; true if that depends on the port.
    pub fn may_hold(self, size: Bytes) -> bool {
        match self {
            Self::Bytes(limit) => Limit::Bytes(limit).holds(size),
            Self::Packets(limit) => Limit::Packets(limit).holds(size),
            Self::Time(_) | Self::Product(_) => true,
        }
    }

    /// Returns true if both have the same unit and `self` is larger.
    pub fn exceeds(self, other: Self) -> bool {
        match (self, other) {
            (Self::Bytes(one), Self::Bytes(two)) => one > two,
            (Self::Packets(one), Self::Packets(two)) => one > two,
            (Self::Time(one), Self::Time(two)) => one > two,
            (Self::Product(one), Self::Product(two)) => one.factor > two.factor,
            _ => false,
        }
    }
}

impl Limit {
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

    /// Returns the limit, or `least` if it is in bytes and less.
    #[must_use]
    pub fn at_least(self, least: Bytes) -> Self {
        match self {
            Self::Bytes(limit) => Self::Bytes(limit.max(least.0)),
            Self::Packets(limit) => Self::Packets(limit),
        }
    }

    /// Returns true if `backlog` exceeds the limit.
    pub fn exceeded_by(self, backlog: Backlog) -> bool {
        match self {
            Self::Bytes(limit) => backlog.bytes > limit,
            Self::Packets(limit) => backlog.packets > limit,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => Bytes(*bytes).fmt(f),
            Self::Packets(packets) => write!(f, "{packets} packets"),
        }
    }
}

impl Parameter for Capacity {
    fn allowed() -> String {
        "an amount of data, a number of packets, a time at the link's rate or a multiple of the \
         bandwidth-delay product, such as \"100 KB\", \"65 packets\", \"24 us\", \"1 BDP\" or \"1 BDP, at \
         least 10 packets\""
            .to_owned()
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        let text = value.as_str().ok_or_else(|| wrong::<Self>(value))?;
        parse_packets(text)
            .map(Self::Packets)
            .or_else(|| parse_quantity(text, DATA_UNITS).map(Self::Bytes))
            .or_else(|| parse_quantity(text, TIME_UNITS).map(Duration).map(Self::Time))
            .or_else(|| Product::parse(text).map(Self::Product))
            .ok_or_else(|| wrong::<Self>(value))
    }
    fn show(&self) -> Value {
        match self {
            Self::Bytes(bytes) => Bytes(*bytes).show(),
            Self::Packets(packets) => format!("{packets} packets").into(),
            Self::Time(time) => time.show(),
            Self::Product(product) => product.to_string().into(),
        }
    }
    fn schema(_default: Option<&Self>, _definitions: &mut Definitions) -> Value {
        let [data, time] = [DATA_UNITS, TIME_UNITS].map(quantity_form);
        pattern(&format!("({PACKETS_PATTERN}|{data}|{time}|{})", Product::pattern()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::blocks::fixture::SCALE;
    use serde_json::json;

    #[test]
    fn times_and_products_follow_the_rate_of_the_port() {
        let limit = |text: &str, gbps| {
            let capacity = Capacity::read(&json!(text)).unwrap();
            assert_eq!(capacity.show(), text);
            let (rate, base_rtt) = (Rate::from_gbps(gbps), Duration::from_micros(12));
            let scale = LinkScale { rate, base_rtt, packet: Bytes(1500), ..SCALE };
            scale.limit(Some(capacity)).unwrap()
        };
        // 24 us are 30 KB at 10 Gb/s; 12 us are 15 KB.
        assert_eq!(limit("24 us", 10), Limit::Bytes(30_000));
        assert_eq!(limit("24 us", 100), Limit::Bytes(300_000));
        assert_eq!(limit("1 BDP", 10), Limit::Bytes(15_000));
        assert_eq!(limit("0.5 BDP", 40), Limit::Bytes(30_000));
        assert_eq!(limit("9 KB", 40), Limit::Bytes(9_000));
        assert_eq!(limit("65 packets", 40), Limit::Packets(65));
        assert_eq!(limit("1 BDP, at least 10 packets", 40), Limit::Bytes(60_000));
        assert_eq!(limit("1 BDP, at least 50 packets", 40), Limit::Bytes(75_000));
    }

    #[test]
    fn other_forms_are_errors() {
        let texts = [
            "1 bdp",
            "-1 BDP",
            "BDP",
            "inf BDP",
            "9 KB, at least 2 packets",
            "1 BDP, at least 9 KB",
        ];
        for wrong in texts.map(Value::from).into_iter().chain([json!(5)]) {
            let problem = Capacity::read(&wrong).unwrap_err();
            assert!(problem.to_string().contains("\"24 us\", \"1 BDP\""), "{problem}");
        }
    }
}

//! Multiples of a bandwidth-delay product, as parameters.

use std::fmt;

use super::schema::json_schema::quantity_form;
use super::units::{Bytes, parse_multiple};

/// Multiple of a bandwidth-delay product, but at least a number of full packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Product {
    /// Number of products.
    pub factor: f64,
    /// Number of full packets that it is at least.
    pub least_packets: u32,
}

const UNIT: &str = "BDP";

/// Text between a product and its least value.
const AT_LEAST: &str = ", at least";

/// Regular expression of a number of packets.
pub(crate) const PACKETS_PATTERN: &str = r"\s*\+?[0-9]+\s*packets?";

impl Product {
    /// Returns a multiple of the product, however few packets it has.
    pub const fn times(factor: f64) -> Self {
        Self { factor, least_packets: 0 }
    }

    /// Returns the multiple in bytes, for a bandwidth-delay `product` and full packets of `packet` bytes.
    pub fn bytes(self, product: Bytes, packet: Bytes) -> f64 {
        let least = u64::from(self.least_packets) * packet.0;
        (self.factor * product.0 as f64).max(least as f64)
    }

    /// Parses `1.5 BDP` or `1.5 BDP, at least 10 packets`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let Some((factor, least)) = text.split_once(AT_LEAST) else {
            return parse_multiple(text, UNIT).map(Self::times);
        };
        Some(Self { factor: parse_multiple(factor, UNIT)?, least_packets: parse_packets(least)? })
    }

    /// Returns the regular expression of texts that [`Self::parse`] accepts.
    pub(crate) fn pattern() -> String {
        format!("{}({AT_LEAST}{PACKETS_PATTERN})?", quantity_form(&[(UNIT, 1)]))
    }
}

/// Parses a number of packets.
pub(crate) fn parse_packets(text: &str) -> Option<u32> {
    text.strip_suffix("packets").or(text.strip_suffix("packet"))?.trim().parse().ok()
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {UNIT}", self.factor)?;
        match self.least_packets {
            0 => Ok(()),
            packets => write!(f, "{AT_LEAST} {packets} packets"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_has_at_least_its_number_of_packets() {
        let bytes = |text: &str| {
            let product = Product::parse(text).unwrap();
            assert_eq!(product.to_string(), text);
            product.bytes(Bytes(12_500), Bytes(1500)) as u64
        };
        assert_eq!(bytes("1.5 BDP"), 18_750);
        assert_eq!(bytes("1 BDP, at least 8 packets"), 12_500);
        assert_eq!(bytes("1 BDP, at least 9 packets"), 13_500);
    }
}

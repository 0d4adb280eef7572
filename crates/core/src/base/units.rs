//! Time, data and rates as integers with a unit, with the arithmetic that is valid between them.
//!
//! The unit of time is the picosecond: a byte takes 800 ps at 10 Gb/s and 10 ps at 800 Gb/s, both exact, and
//! 64 bits last 213 days.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// Picoseconds in a second.
pub const PICOSECONDS: u64 = 1_000_000_000_000;

/// Instant, in picoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);

/// Span of time in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(pub u64);

/// Amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// Rate in bits a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(pub u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Instant after every event.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the seconds since the start of the run.
    pub fn seconds(self) -> f64 {
        Duration(self.0).seconds()
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Returns a span of whole nanoseconds.
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds * 1_000)
    }

    /// Returns a span of whole microseconds.
    pub const fn from_micros(microseconds: u64) -> Self {
        Self(microseconds * 1_000_000)
    }

    /// Returns a span of whole milliseconds.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds * 1_000_000_000)
    }

    /// Returns a span of `seconds`, rounded to the nearest picosecond; negative and NaN become zero.
    pub fn from_seconds(seconds: f64) -> Self {
        Self((seconds * PICOSECONDS as f64).round() as u64)
    }

    /// Returns the span in seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / PICOSECONDS as f64
    }

    /// Returns the largest multiple of `unit` that is not longer; the span itself if `unit` is zero.
    #[must_use]
    pub fn rounded_down(self, unit: Self) -> Self {
        if unit.0 == 0 { self } else { Self(self.0 - self.0 % unit.0) }
    }

    /// Returns the difference, or zero if `other` is longer.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Bytes {
    /// No data.
    pub const ZERO: Self = Self(0);

    /// Returns the amount in bits.
    pub fn bits(self) -> f64 {
        self.0 as f64 * 8.0
    }
}

impl Rate {
    /// Returns a rate of whole gigabits a second.
    pub const fn from_gbps(gigabits: u64) -> Self {
        Self(gigabits * 1_000_000_000)
    }

    /// Returns a rate of whole megabits a second.
    pub const fn from_mbps(megabits: u64) -> Self {
        Self(megabits * 1_000_000)
    }

    /// Returns the transmission time of `bytes` at this rate, rounded to the nearest picosecond.
    pub fn transmit(self, bytes: Bytes) -> Duration {
        const PER_BYTE: u64 = 8 * PICOSECONDS;
        // 64 bits hold the product up to 2.3 MB, and so for every packet. Division of 128 bits is slow.
        match bytes.0.checked_mul(PER_BYTE) {
            Some(product) if product < u64::MAX - self.0 => {
                Duration((product + self.0 / 2) / self.0)
            }
            _ => {
                let product = u128::from(bytes.0) * u128::from(PER_BYTE) + u128::from(self.0 / 2);
                Duration((product / u128::from(self.0)) as u64)
            }
        }
    }

    /// Returns the data transmitted in `duration` at this rate, rounded down to whole bytes.
    pub fn carries(self, duration: Duration) -> Bytes {
        let bits = u128::from(self.0) * u128::from(duration.0) / u128::from(PICOSECONDS);
        Bytes((bits / 8) as u64)
    }

    /// Returns the bits a second as a float, for control laws.
    pub fn bps(self) -> f64 {
        self.0 as f64
    }

    /// Returns a share of this rate, rounded, and at least 1 bit a second.
    #[must_use]
    pub fn share(self, share: f64) -> Self {
        Self::from_bps(self.bps() * share)
    }

    /// Returns a rate of `bps` bits a second, rounded, and at least 1.
    pub fn from_bps(bps: f64) -> Self {
        Self((bps.round() as u64).max(1))
    }
}

// Scenarios may contain spans of any length: a sum beyond the last instant, after seven months, saturates.
impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Sub for Time {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        debug_assert!(earlier <= self, "time runs forwards");
        Duration(self.0 - earlier.0)
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, parts: u64) -> Self {
        Self(self.0 / parts)
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

/// Units of a quantity in scenario files, each with its size in the base unit.
pub(crate) type Units = [(&'static str, u64)];

/// Units of time, in picoseconds.
pub(crate) const TIME_UNITS: &Units =
    &[("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", PICOSECONDS)];

/// Units of data, in bytes.
pub(crate) const DATA_UNITS: &Units = &[
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// Units of rate, in bits a second.
pub(crate) const RATE_UNITS: &Units = &[
    ("bps", 1),
    ("Kbps", 1_000),
    ("Mbps", 1_000_000),
    ("Gbps", 1_000_000_000),
    ("Tbps", 1_000_000_000_000),
];

/// Other spellings of units, as results print them. Both characters for micro are in use.
const SPELLINGS: [(&str, &str); 7] = [
    ("\u{b5}s", "us"),
    ("\u{3bc}s", "us"),
    ("b/s", "bps"),
    ("Kb/s", "Kbps"),
    ("Mb/s", "Mbps"),
    ("Gb/s", "Gbps"),
    ("Tb/s", "Tbps"),
];

/// Returns the name of a unit for one of its spellings.
fn canonical_unit(unit: &str) -> &str {
    SPELLINGS.iter().find(|(spelling, _)| *spelling == unit).map_or(unit, |(_, name)| name)
}

/// Returns all spellings of units.
pub(crate) fn spellings(units: &Units) -> Vec<&'static str> {
    let others = SPELLINGS.iter().filter(|(_, name)| units.iter().any(|(unit, _)| unit == name));
    units.iter().map(|(unit, _)| *unit).chain(others.map(|(spelling, _)| *spelling)).collect()
}

/// Parses a number with a unit, such as `2.5 us`, into base units. Returns `None` for other texts.
///
/// The number is decimal and exact: a fraction of the base unit is not a quantity.
pub(crate) fn parse_quantity(text: &str, units: &Units) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, unit) = (&text[..split], canonical_unit(text[split..].trim()));
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.len() > 18 {
        return None;
    }
    let power = 10_u128.pow(fraction.len() as u32);
    let fraction: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let scaled = (whole.parse::<u128>().ok()?.checked_mul(power)? + fraction)
        .checked_mul(u128::from(*scale))?;
    if scaled % power != 0 {
        return None;
    }
    u64::try_from(scaled / power).ok()
}

/// Parses a decimal number, 0 or more, with this unit, such as `0.5 BDP`. Returns `None` for other texts.
pub(crate) fn parse_multiple(text: &str, unit: &str) -> Option<f64> {
    let number = text.trim().strip_suffix(unit)?.trim_end();
    let is_decimal = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    number.parse().ok().filter(|_| is_decimal)
}

/// Prints `amount` base units with the largest unit that keeps it short: the inverse of
/// [`parse_quantity`].
fn format_quantity(amount: u64, units: &Units, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let decimal = units.iter().filter(|(name, _)| !name.contains('i'));
    let (unit, scale) =
        decimal.rev().find(|(_, scale)| *scale <= amount).copied().unwrap_or(units[0]);
    let (whole, rest) = (amount / scale, amount % scale);
    if rest == 0 {
        write!(f, "{whole} {unit}")
    } else {
        let digits = scale.ilog10() as usize;
        let fraction = format!("{rest:0digits$}");
        write!(f, "{whole}.{} {unit}", fraction.trim_end_matches('0'))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        format_quantity(self.0, TIME_UNITS, f)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        format_quantity(self.0, TIME_UNITS, f)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        format_quantity(self.0, DATA_UNITS, f)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        format_quantity(self.0, RATE_UNITS, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_byte_lasts_exactly_800_ps_at_10_gbps() {
        assert_eq!(Rate::from_gbps(10).transmit(Bytes(1)), Duration(800));
        assert_eq!(Rate::from_gbps(800).transmit(Bytes(1)), Duration(10));
        assert_eq!(Rate(3).transmit(Bytes(1)), Duration(2_666_666_666_667));
    }

    #[test]
    fn sums_saturate_at_the_last_instant() {
        let long = Duration(u64::MAX - 1);
        assert_eq!(Time(5) + long, Time(u64::MAX));
        assert_eq!(long + Duration(5), Duration(u64::MAX));
        assert_eq!(long * 2, Duration(u64::MAX));
    }

    #[test]
    fn small_and_large_amounts_round_alike() {
        let (rate, small, large) = (Rate(7_777_777), Bytes(2_000_000), Bytes(4_000_000));
        let twice = rate.transmit(small).0 * 2;
        assert!(rate.transmit(large).0.abs_diff(twice) <= 1);
    }

    #[test]
    fn quantities_need_a_known_unit_and_an_exact_value() {
        assert_eq!(parse_quantity("2.5 us", TIME_UNITS), Some(2_500_000));
        assert_eq!(parse_quantity("9.27MB", DATA_UNITS), Some(9_270_000));
        assert_eq!(parse_quantity("64 KiB", DATA_UNITS), Some(65_536));
        for text in ["2.5 \u{b5}s", "2.5\u{3bc}s"] {
            assert_eq!(parse_quantity(text, TIME_UNITS), Some(2_500_000), "{text}");
        }
        assert_eq!(parse_quantity("10 Gb/s", RATE_UNITS), Some(10_000_000_000));
        assert_eq!(parse_quantity("1.6 Tb/s", RATE_UNITS), Some(1_600_000_000_000));
        assert_eq!(parse_quantity("50Mb/s", RATE_UNITS), Some(50_000_000));
        for wrong in
            ["10", "10 Gb", "-1 us", "1.2.3 us", ".5 us", "1. us", "us", "1 US", "0.1 ps", ""]
        {
            assert_eq!(parse_quantity(wrong, TIME_UNITS), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn printed_quantities_parse_to_the_same_value(amount in any::<u64>()) {
            prop_assert_eq!(parse_quantity(&Duration(amount).to_string(), TIME_UNITS), Some(amount));
            prop_assert_eq!(parse_quantity(&Bytes(amount).to_string(), DATA_UNITS), Some(amount));
            prop_assert_eq!(parse_quantity(&Rate(amount).to_string(), RATE_UNITS), Some(amount));
        }
    }
}

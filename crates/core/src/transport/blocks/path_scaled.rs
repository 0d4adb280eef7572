//! Rates and windows of controllers that may be given relative to a flow's path.

use serde_json::{Value, json};

use crate::base::product::Product;
use crate::base::schema::json_schema::{self, Definitions, pattern, quantity_form};
use crate::base::schema::{Measure, Parameter, Problem, wrong};
use crate::base::units::{Duration, RATE_UNITS, Rate, Units, parse_multiple, parse_quantity};
use crate::transport::{Allowance, Path};

/// Rate of a flow, absolute or as a share of the line rate of its host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlowRate {
    /// Rate at any line rate.
    Absolute(Rate),
    /// Percentage of the line rate.
    Percent(f64),
}

impl FlowRate {
    /// Returns a rate of whole megabits a second.
    pub const fn from_mbps(megabits: u64) -> Self {
        Self::Absolute(Rate::from_mbps(megabits))
    }

    /// Returns the rate in bits per second at a line rate in bits per second.
    pub fn bps(self, line_rate: f64) -> f64 {
        match self {
            Self::Absolute(rate) => rate.bps(),
            Self::Percent(percent) => line_rate * percent / 100.0,
        }
    }
}

const PERCENT: &str = "%";

impl Parameter for FlowRate {
    fn allowed() -> String {
        format!("{}, or a share of the line rate, such as \"0.1 %\"", Rate::allowed())
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        let text = value.as_str().ok_or_else(|| wrong::<Self>(value))?;
        let share = || parse_multiple(text, PERCENT).filter(|percent| *percent <= 100.0);
        parse_quantity(text, RATE_UNITS)
            .map(|bps| Self::Absolute(Rate(bps)))
            .or_else(|| share().map(Self::Percent))
            .ok_or_else(|| wrong::<Self>(value))
    }
    fn show(&self) -> Value {
        match self {
            Self::Absolute(rate) => rate.show(),
            Self::Percent(percent) => format!("{percent} {PERCENT}").into(),
        }
    }
    fn schema(_default: Option<&Self>, _definitions: &mut Definitions) -> Value {
        let percent: &Units = &[(PERCENT, 1)];
        pattern(&format!("({})", [RATE_UNITS, percent].map(quantity_form).join("|")))
    }
}

impl Measure for FlowRate {
    const IS_NUMBER: bool = false;

    fn measure(&self) -> Option<f64> {
        Some(match self {
            Self::Absolute(rate) => rate.bps(),
            Self::Percent(percent) => *percent,
        })
    }
    fn written(bound: f64) -> Value {
        Rate(bound as u64).show()
    }
}

/// Window of a flow, in packets or in bandwidth-delay products of its path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowSize {
    /// Number of packets.
    Packets(u32),
    /// Multiple of the line rate of the flow's host times the base RTT of its path.
    Product(Product),
}

impl WindowSize {
    /// Returns the window in packets: at least 1, and enough of them for the bandwidth-delay product.
    pub fn packets(self, path: &Path) -> f64 {
        match self {
            Self::Packets(packets) => f64::from(packets),
            Self::Product(product) => {
                let packet = path.format.full();
                let bytes = product.bytes(path.line_rate.carries(path.base_rtt), packet);
                (bytes / packet.0 as f64).ceil().max(1.0)
            }
        }
    }
}

/// Packets, or a time, at the line rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Span {
    /// Number of packets, or of packet times.
    Packets(f64),
    /// Time at any line rate.
    Time(Duration),
}

impl Span {
    /// Returns the packets that a link with this packet time carries in it, rounded up.
    pub fn packets(self, packet_time: Duration) -> u32 {
        match self {
            Self::Packets(packets) => packets.ceil() as u32,
            Self::Time(time) => time.0.div_ceil(packet_time.0.max(1)) as u32,
        }
    }

    /// Returns the time at this packet time.
    pub fn time(self, packet_time: Duration) -> Duration {
        match self {
            Self::Packets(packets) => Duration::from_seconds(packet_time.seconds() * packets),
            Self::Time(time) => time,
        }
    }
}

impl Parameter for Span {
    fn allowed() -> String {
        format!("a number of packets, or {}", Duration::allowed())
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        let packets = || f64::read(value).map(Self::Packets);
        Duration::read(value)
            .map(Self::Time)
            .or_else(|_| packets())
            .map_err(|_| wrong::<Self>(value))
    }
    fn show(&self) -> Value {
        match self {
            Self::Packets(packets) => packets.show(),
            Self::Time(time) => time.show(),
        }
    }
    fn schema(default: Option<&Self>, definitions: &mut Definitions) -> Value {
        let packets = match default {
            Some(Self::Packets(packets)) => Some(packets),
            _ => None,
        };
        let time = Duration::schema(None, definitions);
        json_schema::either([f64::schema(packets, definitions), time])
    }
}

impl Measure for Span {
    const IS_NUMBER: bool = false;

    fn measure(&self) -> Option<f64> {
        Some(match self {
            Self::Packets(packets) => *packets,
            Self::Time(time) => time.seconds(),
        })
    }
    fn written(bound: f64) -> Value {
        bound.show()
    }
}

/// Window of a flow with a rate: the share of a window at line rate that the rate has of the line rate.
pub struct RateWindow {
    /// Window at line rate, in bytes; infinite for none.
    at_line_rate: f64,
    line_rate: f64,
}

impl RateWindow {
    /// Returns the window of a flow with this `size` at line rate.
    pub fn new(size: Option<WindowSize>, path: &Path) -> Self {
        let payload = path.format.payload.0 as f64;
        let at_line_rate = size.map_or(f64::INFINITY, |size| size.packets(path) * payload);
        Self { at_line_rate, line_rate: path.line_rate.bps() }
    }

    /// Returns the window in bytes at a rate in bits per second.
    pub fn at(&self, rate: f64) -> f64 {
        self.at_line_rate * rate / self.line_rate
    }

    /// Returns the rate in bits per second at a window in bytes.
    pub fn rate(&self, window: f64) -> f64 {
        self.line_rate * window / self.at_line_rate
    }

    /// Returns a rate in bits per second, within the window.
    pub fn allowance(&self, rate: f64) -> Allowance {
        Allowance::rate_within(rate, self.at(rate))
    }
}

impl Parameter for WindowSize {
    fn allowed() -> String {
        "a whole number of packets, or a multiple of the bandwidth-delay product of the flow's path, such \
         as \"1 BDP\" or \"1 BDP, at least 10 packets\""
            .to_owned()
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        let packets = || value.as_u64()?.try_into().ok().map(Self::Packets);
        let product = || Product::parse(value.as_str()?).map(Self::Product);
        packets().or_else(product).ok_or_else(|| wrong::<Self>(value))
    }
    fn show(&self) -> Value {
        match self {
            Self::Packets(packets) => json!(packets),
            Self::Product(product) => product.to_string().into(),
        }
    }
    fn schema(default: Option<&Self>, definitions: &mut Definitions) -> Value {
        let packets = match default {
            Some(Self::Packets(packets)) => Some(packets),
            _ => None,
        };
        json_schema::either([u32::schema(packets, definitions), pattern(&Product::pattern())])
    }
}

impl Measure for WindowSize {
    const IS_NUMBER: bool = false;

    fn measure(&self) -> Option<f64> {
        Some(match self {
            Self::Packets(packets) => f64::from(*packets),
            Self::Product(product) => product.factor,
        })
    }
    fn written(bound: f64) -> Value {
        json!(bound as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::base::units::{Bytes, Duration};
    use crate::model::packet::Format;

    #[test]
    fn shares_follow_the_line_rate() {
        let rate = |text: &str| {
            let rate = FlowRate::read(&json!(text)).unwrap();
            assert_eq!(rate.show(), text);
            [10e9, 100e9].map(|line| rate.bps(line).round() as u64)
        };
        assert_eq!(rate("40 Mbps"), [40_000_000, 40_000_000]);
        assert_eq!(rate("0.02 %"), [2_000_000, 20_000_000]);
        for wrong in ["101 %", "-1 %", "% 1", "1 percent", "1"] {
            let problem = FlowRate::read(&json!(wrong)).unwrap_err().to_string();
            assert!(problem.contains("such as \"0.1 %\""), "{problem}");
        }
    }

    #[test]
    fn windows_in_products_hold_a_round_trip_of_packets() {
        let format = Format { payload: Bytes(960), header: Bytes(40), ..defaults() };
        let path = Path::new(Rate::from_gbps(10), Duration::from_micros(10), format);
        let window = |given: Value| {
            let window = WindowSize::read(&given).unwrap();
            assert_eq!(window.show(), given);
            window.packets(&path)
        };
        // 10 us at 10 Gb/s are 12 500 B: 12.5 packets.
        let packets = [json!(7), json!("1 BDP"), json!("2 BDP"), json!("0.01 BDP")].map(window);
        assert_eq!(packets.map(|packets| packets as u32), [7, 13, 25, 1]);
        assert_eq!(window(json!("1 BDP, at least 20 packets")) as u32, 20);
        let problem = WindowSize::read(&json!("1 RTT")).unwrap_err().to_string();
        assert!(problem.contains("such as \"1 BDP\""), "{problem}");
    }
}

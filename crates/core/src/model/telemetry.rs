//! In-band network telemetry (INT): state of switches that data packets collect and ACKs return.

use super::graph::LinkId;
use crate::base::random::Random;
use crate::base::units::{Bytes, Duration, Rate, Time};

/// State of a switch's port at the start of the transmission of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopTelemetry {
    /// Start of the transmission.
    pub time: Time,
    /// Bytes that the port transmitted before, of packets of all kinds.
    pub transmitted: Bytes,
    /// Bytes that wait at the port, of packets of all kinds.
    pub queued: Bytes,
    /// Nominal rate of the port's link.
    pub rate: Rate,
}

/// Telemetry of the hops that a packet has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TelemetryStack {
    hops: [HopTelemetry; Self::CAPACITY],
    count: u16,
    /// Largest code of the ports' average utilisation ([`Digest`]).
    code: u16,
    path: u32,
}

/// Odd factor, so that the order of links counts and no bit is lost.
const PATH_FACTOR: u32 = 0x9E37_79B1;

impl TelemetryStack {
    /// Maximum number of hops.
    pub const CAPACITY: usize = 8;

    /// Adds the telemetry of the next hop, over this link. A full stack stays as it is, like that of an INT
    /// packet whose remaining hop count is 0.
    pub fn push(&mut self, hop: HopTelemetry, link: LinkId) {
        if let Some(next) = self.hops.get_mut(usize::from(self.count)) {
            *next = hop;
            self.count += 1;
            self.path = self.path.wrapping_mul(PATH_FACTOR).wrapping_add(link + 1);
        }
    }

    /// Replaces this stack by another whose hops are changed.
    pub fn copy(&mut self, other: &Self, change: impl Fn(&HopTelemetry) -> HopTelemetry) {
        (self.count, self.code, self.path) = (other.count, other.code, other.path);
        self.hops.iter_mut().zip(other.hops()).for_each(|(own, hop)| *own = change(hop));
    }

    /// Adds the code of the next hop's average utilisation, of which the largest remains.
    pub fn add_code(&mut self, code: u16) {
        self.code = self.code.max(code);
    }

    /// Returns the largest code of the hops' average utilisation.
    pub fn code(&self) -> u16 {
        self.code
    }

    /// Returns true if the packet of the other stack has passed the same links.
    pub fn has_path_of(&self, other: &Self) -> bool {
        (self.count, self.path) == (other.count, other.path)
    }

    /// Removes all hops.
    pub fn clear(&mut self) {
        (self.count, self.code, self.path) = (0, 0, 0);
    }

    /// Returns the telemetry of the hops in the order of the path.
    pub fn hops(&self) -> &[HopTelemetry] {
        &self.hops[..usize::from(self.count)]
    }
}

/// Digest of a path instead of its telemetry: ports average their utilisation, and a packet carries the
/// code of the largest average on its path (PINT, [pint20], as in the simulator of [hpcc19]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Digest {
    /// Ratio of the utilisations of consecutive codes.
    pub base: f64,
    /// Time over which ports average.
    pub period: Duration,
    /// If true, ports count all packets. Otherwise they leave out what precedes the departure of a control
    /// packet: its time, and the packet sent in it.
    pub counts_all: bool,
}

/// Codes of a full link: utilisation is counted in parts of it, and at least one.
const PARTS: f64 = 512.0;

/// Least ratio of the utilisations of consecutive codes: with it, codes of 16 bits reach 25,000 times the
/// rate of the link.
pub const LEAST_BASE: f64 = 1.00025;

impl Digest {
    /// Returns the code of a utilisation, rounded at random so that the mean of decoded codes is exact.
    pub fn encode(&self, utilisation: f64, random: &mut Random) -> u16 {
        let parts = (utilisation * PARTS).ceil().max(1.0);
        let lower = (parts.ln() / self.base.ln()).floor();
        let upper_share = (parts / self.base.powf(lower) - 1.0) / (self.base - 1.0);
        (lower as u16).saturating_add(u16::from(random.uniform() < upper_share))
    }

    /// Returns the utilisation of a code.
    pub fn decode(base: f64, code: u16) -> f64 {
        base.powf(f64::from(code)) / PARTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_least_base_hold_long_queues_and_end_at_the_largest() {
        let (base, period) = (LEAST_BASE, Duration::from_micros(10));
        let digest = Digest { base, period, counts_all: true };
        let mut random = Random::new(1, "digest");
        for (utilisation, decoded) in [(20_000.0, 20_000.0), (1e6, Digest::decode(base, u16::MAX))]
        {
            let ratio = Digest::decode(base, digest.encode(utilisation, &mut random)) / decoded;
            assert!((1.0 / base..=base).contains(&ratio), "{utilisation}: {ratio}");
        }
    }

    #[test]
    fn decoded_codes_have_the_mean_of_the_utilisation() {
        let digest = Digest { base: 1.05, period: Duration::from_micros(10), counts_all: true };
        let mut random = Random::new(1, "digest");
        for utilisation in [1.0 / 512.0, 0.1, 0.5, 0.95, 1.0, 4.0] {
            let exact = (utilisation * PARTS).ceil() / PARTS;
            let codes: Vec<u16> =
                (0..20_000).map(|_| digest.encode(utilisation, &mut random)).collect();
            let decoded = codes.iter().map(|code| Digest::decode(1.05, *code));
            let mean = decoded.sum::<f64>() / codes.len() as f64;
            assert!((mean / exact - 1.0).abs() < 1e-3, "{mean} of {utilisation}");
            let (least, most) = (codes.iter().min().unwrap(), codes.iter().max().unwrap());
            assert!(most - least <= 1 && *most < 256, "{least} to {most}");
        }
    }

    #[test]
    fn stacks_of_the_same_links_in_the_same_order_have_the_same_path() {
        let stack = |links: &[LinkId]| {
            let mut stack = TelemetryStack::default();
            for link in links {
                stack.push(HopTelemetry::default(), *link);
            }
            stack
        };
        let path = stack(&[0, 7, 3]);
        assert!(stack(&[0, 7, 3]).has_path_of(&path));
        for other in [&[7, 0, 3][..], &[0, 8, 3], &[7, 3], &[0, 7, 3, 0], &[]] {
            assert!(!stack(other).has_path_of(&path), "{other:?}");
        }
    }

    #[test]
    fn a_full_stack_keeps_the_first_hops() {
        let mut stack = TelemetryStack::default();
        let hop = |number| HopTelemetry { queued: Bytes(number), ..HopTelemetry::default() };
        (0..10).for_each(|number| stack.push(hop(number), number as LinkId));
        assert_eq!(stack.hops(), (0..8).map(hop).collect::<Vec<_>>());
        stack.clear();
        assert_eq!(stack.hops(), []);
    }
}

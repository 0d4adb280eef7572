//! Quick-Start router: approves initial rates from the unused capacity of the link.
//!
//! Source: RFC 4782 §3.3 and Appendix E. The unused capacity excludes the largest recent
//! utilisation and the rates approved recently, whose packets may not have arrived yet.

use super::{FlowInfo, PortInfo, PortView, Router, RouterKind};
use crate::base::random::Random;
use crate::base::schema::{positive, positive_fraction};
use crate::base::units::{Duration, Rate, Time};
use crate::model::packet::{Header, Packet};

crate::parameters! {
    /// Quick-Start router: approves requested rates up to the capacity that was recently neither
    /// used nor approved (RFC 4782).
    pub struct Config {
        /// Utilisation up to which rates are approved, as a fraction of the link rate.
        pub threshold: f64 = 0.9, where positive_fraction;
        /// Measurement interval of the utilisation, about an RTT. The larger of the last two
        /// measurements counts, and all rates approved in this interval and in the last one.
        pub interval: Duration = Duration::from_millis(150), where positive;
    }
}

/// Half of the smallest rate that can be requested (RFC 4782 §3.1).
const BASE_RATE: Rate = Rate(40_000);

/// Largest code of a rate request.
const MAX_CODE: u8 = 15;

/// Returns the code of the largest rate that does not exceed `rate`, or 0.
pub fn encode_rate(rate: Rate) -> u8 {
    (rate.0 / BASE_RATE.0).checked_ilog2().map_or(0, |code| code.min(u32::from(MAX_CODE)) as u8)
}

/// Returns the rate of a code; `None` for 0.
pub fn decode_rate(code: u8) -> Option<Rate> {
    (code > 0).then(|| Rate(BASE_RATE.0 << code.min(MAX_CODE)))
}

impl RouterKind for Config {
    fn build(&self, port: PortInfo, _random: Random) -> Box<dyn Router> {
        Box::new(QuickStart {
            link_rate: port.rate.bps(),
            threshold: self.threshold,
            interval: self.interval,
            arrived: 0,
            utilisation: [0.0; 2],
            approved: [0.0; 2],
            next_tick: Time::ZERO + self.interval,
        })
    }
}

/// State of one port; rates in bits per second.
struct QuickStart {
    link_rate: f64,
    threshold: f64,
    interval: Duration,
    /// Bytes that arrived in this interval.
    arrived: u64,
    /// Arrival rates in the last two intervals, the newest first.
    utilisation: [f64; 2],
    /// Sums of the rates approved in this and in the last interval.
    approved: [f64; 2],
    next_tick: Time,
}

impl QuickStart {
    fn spare_rate(&self) -> f64 {
        // Bytes of the current interval count as if they had arrived over a whole interval.
        let current = self.arrived as f64 * 8.0 / self.interval.seconds();
        let utilisation = self.utilisation[0].max(self.utilisation[1]).max(current);
        (self.threshold * self.link_rate - utilisation - self.approved[0] - self.approved[1])
            .max(0.0)
    }
}

impl Router for QuickStart {
    fn on_arrival(&mut self, packet: &mut Packet, _flow_info: &FlowInfo, _now: Time) {
        if let Header::QuickStart { code } = packet.header() {
            let code = code.min(encode_rate(Rate(self.spare_rate() as u64)));
            self.approved[0] += decode_rate(code).map_or(0.0, Rate::bps);
            *packet = packet.with_header(Header::QuickStart { code });
        }
        self.arrived += u64::from(packet.bytes);
    }

    fn next_tick(&self) -> Time {
        self.next_tick
    }

    fn on_tick(&mut self, view: PortView) {
        self.utilisation =
            [self.arrived as f64 * 8.0 / self.interval.seconds(), self.utilisation[0]];
        self.approved = [0.0, self.approved[0]];
        self.arrived = 0;
        self.next_tick = view.now + self.interval;
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("spare_bps", self.spare_rate())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use crate::base::units::Bytes;
    use crate::model::packet::{Format, Kind};
    use crate::router::tests::{FLOW, PORT};
    use serde_json::json;

    fn request(router: &mut dyn Router, code: u8) -> u8 {
        let format: Format = defaults();
        let syn = format.control(Kind::Syn, 0, Time::ZERO);
        let mut syn = syn.with_header(Header::QuickStart { code });
        router.on_arrival(&mut syn, &FLOW, Time::ZERO);
        syn.header().feedback() as u8
    }

    #[test]
    fn codes_are_powers_of_two_of_40_kbps() {
        for (bps, code) in [
            (0, 0),
            (79_999, 0),
            (80_000, 1),
            (159_999, 1),
            (160_000, 2),
            (1_310_720_000, 15),
            (100_000_000_000, 15),
        ] {
            assert_eq!(encode_rate(Rate(bps)), code, "{bps}");
        }
        assert_eq!((decode_rate(0), decode_rate(1)), (None, Some(Rate(80_000))));
        (1..=MAX_CODE).for_each(|code| assert_eq!(encode_rate(decode_rate(code).unwrap()), code));
    }

    #[test]
    fn only_unused_and_unapproved_capacity_is_approved() {
        let config = Config::read(&json!({ "threshold": 1, "interval": "100 ms" })).unwrap();
        let mut router = config.build(PORT, Random::new(1, "router"));
        // Of the free 1000 Mb/s, 655 are approved, then 164 of the remaining 345, as requested.
        assert_eq!([request(&mut *router, 15), request(&mut *router, 12)], [14, 12]);
        let tick = |router: &mut dyn Router| {
            let now = router.next_tick();
            router.on_tick(PortView { now, backlog: 0 });
        };
        tick(&mut *router);
        assert_eq!(request(&mut *router, 15), 12, "approvals count for another interval");
        tick(&mut *router);
        tick(&mut *router);
        tick(&mut *router);
        // 90 % utilisation, which counts for another interval.
        let format = Format { ack: Bytes(45_000), ..defaults() };
        (0..250).for_each(|_| {
            let mut data = format.control(Kind::Data, 0, Time::ZERO);
            router.on_arrival(&mut data, &FLOW, Time::ZERO);
        });
        tick(&mut *router);
        tick(&mut *router);
        assert_eq!(request(&mut *router, 15), 11);
        tick(&mut *router);
        tick(&mut *router);
        assert_eq!(request(&mut *router, 15), 14);
    }
}

//! Quick-Start's router: approves starting rates from what the link has to spare.
//!
//! Source: RFC 4782 §3.3 and Appendix E: the largest share of the link that was in use lately, and what has
//! been approved and has perhaps not come yet, are not to spare.

use super::{FlowInfo, PortInfo, PortView, Router, RouterKind};
use crate::base::random::Random;
use crate::base::schema::{positive, positive_fraction};
use crate::base::units::{Duration, Rate, Time};
use crate::model::packet::{Header, Packet};

crate::parameters! {
    /// Quick-Start's router: approves what is asked for as far as the link was not in use lately and
    /// has not been promised (RFC 4782).
    pub struct Config {
        /// Share of the link's rate up to which it may be in use by what is approved.
        pub threshold: f64 = 0.9, where positive_fraction;
        /// How long use is measured for. The larger of the last two measurements counts, and what was
        /// approved since the first of them; to be about a round trip.
        pub interval: Duration = Duration::from_millis(150), where positive;
    }
}

/// The least rate that can be asked for is twice this (RFC 4782 §3.1).
const UNIT: Rate = Rate(40_000);

/// The largest code.
const MOST: u8 = 15;

/// The largest code whose rate is no more than `rate`; 0 if none is.
pub fn encode_rate(rate: Rate) -> u8 {
    (rate.0 / UNIT.0).checked_ilog2().map_or(0, |code| code.min(u32::from(MOST)) as u8)
}

/// The rate that a code asks for or approves; none for 0.
pub fn decode_rate(code: u8) -> Option<Rate> {
    (code > 0).then(|| Rate(UNIT.0 << code.min(MOST)))
}

impl RouterKind for Config {
    fn build(&self, port: PortInfo, _random: Random) -> Box<dyn Router> {
        Box::new(QuickStart {
            line: port.rate.bps(),
            threshold: self.threshold,
            interval: self.interval,
            arrived: 0,
            used: [0.0; 2],
            approved: [0.0; 2],
            next_tick: Time::ZERO + self.interval,
        })
    }
}

/// The state of one port; rates in bits a second.
struct QuickStart {
    line: f64,
    threshold: f64,
    interval: Duration,
    /// Bytes that came in this interval.
    arrived: u64,
    /// The rates at which bytes came in the last two intervals, the newest first.
    used: [f64; 2],
    /// What was approved in this interval and in the last.
    approved: [f64; 2],
    next_tick: Time,
}

impl QuickStart {
    fn spare(&self) -> f64 {
        // What has come already counts as if it came over a whole interval.
        let now = self.arrived as f64 * 8.0 / self.interval.seconds();
        let used = self.used[0].max(self.used[1]).max(now);
        (self.threshold * self.line - used - self.approved[0] - self.approved[1]).max(0.0)
    }
}

impl Router for QuickStart {
    fn on_arrival(&mut self, packet: &mut Packet, _flow_info: &FlowInfo, _now: Time) {
        if let Header::QuickStart { code } = packet.header() {
            let code = code.min(encode_rate(Rate(self.spare() as u64)));
            self.approved[0] += decode_rate(code).map_or(0.0, Rate::bps);
            *packet = packet.with_header(Header::QuickStart { code });
        }
        self.arrived += u64::from(packet.bytes);
    }

    fn next_tick(&self) -> Time {
        self.next_tick
    }

    fn on_tick(&mut self, view: PortView) {
        self.used = [self.arrived as f64 * 8.0 / self.interval.seconds(), self.used[0]];
        self.approved = [0.0, self.approved[0]];
        self.arrived = 0;
        self.next_tick = view.now + self.interval;
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("spare_bps", self.spare())]
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

    fn ask(router: &mut dyn Router, code: u8) -> u8 {
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
        (1..=MOST).for_each(|code| assert_eq!(encode_rate(decode_rate(code).unwrap()), code));
    }

    #[test]
    fn only_what_is_neither_used_nor_promised_is_approved() {
        let config = Config::read(&json!({ "threshold": 1, "interval": "100 ms" })).unwrap();
        let mut router = config.build(PORT, Random::new(1, "router"));
        // Of 1 Gb/s: 655, 328, 10.2 of the 17 that are left; what is asked for and no more.
        assert_eq!([ask(&mut *router, 15), ask(&mut *router, 12)], [14, 12]);
        let tick = |router: &mut dyn Router| {
            let now = router.next_tick();
            router.on_tick(PortView { now, backlog: 0 });
        };
        tick(&mut *router);
        assert_eq!(ask(&mut *router, 15), 12, "promises hold for another interval");
        tick(&mut *router);
        tick(&mut *router);
        tick(&mut *router);
        // 90 % in use, and still counted an interval later.
        let format = Format { ack: Bytes(45_000), ..defaults() };
        (0..250).for_each(|_| {
            let mut data = format.control(Kind::Data, 0, Time::ZERO);
            router.on_arrival(&mut data, &FLOW, Time::ZERO);
        });
        tick(&mut *router);
        tick(&mut *router);
        assert_eq!(ask(&mut *router, 15), 11);
        tick(&mut *router);
        tick(&mut *router);
        assert_eq!(ask(&mut *router, 15), 14);
    }
}

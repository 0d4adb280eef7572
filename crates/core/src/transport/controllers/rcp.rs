//! RCP: sends at the rate that the routers offer.
//!
//! Sources: [rcp06] §IV; where the paper is silent, the authors' ns-2 module ("rtp5"). The SYN learns the
//! rate; data is paced at it from the first packet on, and every ACK brings the newest. While the rate is
//! below a packet a round trip, probes ask for a higher one. Lost packets are sent again after a
//! time-out: RCP has no sign of loss but silence.

use super::{
    Ack, Allowance, Controller, Mechanism, Opened, OutgoingPacket, Path, Reliability, Transport,
};
use crate::base::units::{Duration, Rate};
use crate::model::packet::{Format, Header};
use crate::router;

crate::parameters! {
    /// RCP: routers offer all flows one rate, which is in the SYN's answer and in every ACK, and flows
    /// send at it ([rcp06]).
    pub struct Config {
        /// How data is made reliable.
        pub reliability: Reliability = Reliability {
            duplicate_acks: None,
            initial_rto: Duration::from_millis(500),
            ..Reliability::internet()
        };
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let packet = path.format.payload + path.format.header;
        Box::new(Rcp {
            most: path.line_rate,
            packet_bits: packet.bits(),
            rate: path.initial_rate.unwrap_or(path.line_rate).min(path.line_rate),
            rtt: Duration::ZERO,
            least_rtt: path.base_rtt,
        })
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism { has_header: true, ..Mechanism::paced(&self.reliability) }
    }

    fn router(&self) -> Option<router::Config> {
        Some(router::Config::rcp(crate::base::schema::defaults()))
    }
}

struct Rcp {
    most: Rate,
    packet_bits: f64,
    rate: Rate,
    /// The last round-trip time measured, queueing and all, as packets tell it to routers.
    rtt: Duration,
    /// A flow that sends less than a packet in this time is slow.
    least_rtt: Duration,
}

impl Rcp {
    /// Takes in the rate that routers offer, in bytes a second.
    fn obey(&mut self, offered: f32) {
        self.rate = Rate::from_bps(f64::from(offered) * 8.0).min(self.most).max(Rate(1));
    }
}

impl Controller for Rcp {
    fn on_open(&mut self, opened: &Opened) {
        self.rtt = opened.rtt;
        self.obey(opened.feedback);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.rtt = ack.rtt;
        self.obey(ack.feedback);
    }

    fn allowance(&self) -> Allowance {
        let is_slow = self.rate.bps() * self.least_rtt.seconds() < self.packet_bits;
        // Deviation: probes go once a round trip as it is, queueing and all. The authors' module sends them
        // once in the least round trip, and where a round trip holds few packets they drown the data.
        let probe = is_slow.then_some(self.rtt.max(self.least_rtt));
        Allowance { probe, ..Allowance::rate(self.rate.bps()) }
    }

    fn header(&self, _leaving: &OutgoingPacket) -> Header {
        Header::Rcp { rtt: self.rtt.seconds() as f32, rate: f32::INFINITY }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("rate_bps", self.rate.bps())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::base::units::{Bytes, Time};
    use crate::transport::fixture::{ACK, LEAVING};

    fn flow() -> Box<dyn Controller> {
        let config: Config = defaults();
        config.controller(&Path::new(
            Rate::from_gbps(1),
            Duration::from_millis(100),
            Format { payload: Bytes(960), ..defaults() },
        ))
    }

    fn ack(feedback: f32) -> Ack {
        Ack { bytes: Bytes(960), rtt: Duration::from_millis(120), feedback, ..ACK }
    }

    #[test]
    fn it_sends_at_what_routers_offer_and_no_faster_than_its_line() {
        let mut flow = flow();
        let header = |rtt| Header::Rcp { rtt, rate: f32::INFINITY };
        assert_eq!(flow.header(&LEAVING), header(0.0), "the SYN has no round-trip time to tell");
        let (now, rtt) = (Time::ZERO, Duration::from_millis(100));
        flow.on_open(&Opened { now, rtt, feedback: 1e6, syn_was_lost: false });
        assert_eq!(flow.allowance(), Allowance::rate(8e6));
        assert_eq!(flow.header(&LEAVING), header(0.1));
        flow.on_ack(&ack(2e6));
        assert_eq!(flow.allowance(), Allowance::rate(16e6));
        assert_eq!(flow.header(&LEAVING), header(0.12), "queueing and all");
        flow.on_ack(&ack(f32::INFINITY));
        assert_eq!(flow.allowance(), Allowance::rate(1e9));
    }

    #[test]
    fn it_asks_routers_once_a_round_trip_while_it_is_slower_than_a_packet_in_one() {
        let mut flow = flow();
        let (now, rtt) = (Time::ZERO, Duration::from_millis(100));
        flow.on_open(&Opened { now, rtt, feedback: 10_000.0, syn_was_lost: false });
        assert_eq!(flow.allowance().probe, None, "a packet of 1000 B in 100 ms");
        flow.on_ack(&ack(9_990.0));
        assert_eq!(flow.allowance().probe, Some(Duration::from_millis(120)), "as it is now");
        flow.on_ack(&ack(0.0));
        assert!(flow.allowance().rate > Some(Rate(0)), "and never stops");
    }
}

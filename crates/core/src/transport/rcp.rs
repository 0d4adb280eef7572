//! RCP: sends at the rate that the routers offer.
//!
//! Sources: [rcp06] §IV; where the paper is silent, the authors' ns-2 module ("rtp5"). The SYN learns the
//! rate; data is paced at it from the first packet on, and every ACK brings the newest. While the rate is
//! below a packet a round trip, probes ask for a higher one. Lost packets are sent again after a
//! time-out: RCP has no sign of loss but silence.

use super::{
    Ack, Allowance, Controller, Feedback, Mechanism, Opened, Path, Reliability, Transport,
};
use crate::packet::{Format, Header};
use crate::router;
use crate::units::{Duration, Rate};

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
        Mechanism {
            reliability: self.reliability.clone(),
            ecn_capable: false,
            burst: 1,
            ack_every: 1,
            feedback: Feedback::Echo,
        }
    }

    fn router(&self) -> Option<router::Config> {
        Some(router::Config::rcp(crate::parameters::defaults()))
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

    fn header(&self) -> Header {
        Header::Rcp { rtt: self.rtt.seconds() as f32, rate: f32::INFINITY }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("rate_bps", self.rate.bps())]
    }
}

//! RCP: sends at the rate that routers offer to all flows ([rcp06] §IV).
//!
//! Where the paper is silent: the authors' ns-2 module ("rtp5"). The SYN collects the rate, data is paced at
//! it from the first packet on, and every ACK updates it. While the rate is below one packet per RTT, probes
//! request a higher rate. Lost packets are retransmitted after a timeout, the only loss detection of RCP.

use super::{
    Ack, Allowance, Controller, Mechanism, Opened, OutgoingPacket, Path, Reliability, Signalling,
    Transport,
};
use crate::base::units::{Bytes, Duration, Rate};
use crate::model::packet::{Format, Header};
use crate::router;
use crate::transport::blocks::router_probes::probe_interval;

crate::parameters! {
    /// RCP: routers offer one rate to all flows, in the SYN's answer and in every ACK, and flows send
    /// at that rate ([rcp06]).
    pub struct Config {
        /// Loss recovery and retransmission timeouts.
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
            line_rate: path.line_rate,
            packet_bits: packet.bits(),
            rate: path.initial_rate.unwrap_or(path.line_rate).min(path.line_rate),
            rtt: Duration::ZERO,
            base_rtt: path.base_rtt,
            probe: path.format.ack,
        })
    }

    fn own_reliability(&self) -> &'static [&'static str] {
        &["handshake"]
    }

    fn takes_initial_rate(&self) -> bool {
        true
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism { signalling: Signalling::Header, ..Mechanism::paced(&self.reliability) }
    }

    fn router(&self) -> Option<router::Config> {
        Some(router::Config::rcp(crate::base::schema::defaults()))
    }
}

struct Rcp {
    line_rate: Rate,
    packet_bits: f64,
    rate: Rate,
    /// Last RTT measured, including queueing, as packets report to routers.
    rtt: Duration,
    /// RTT of an empty network. A flow with less than one packet in this time sends probes.
    base_rtt: Duration,
    /// Size of a probe.
    probe: Bytes,
}

impl Rcp {
    /// Stores the rate offered by routers, in bytes per second.
    fn set_offered(&mut self, offered: f32) {
        self.rate = Rate::from_bps(f64::from(offered) * 8.0).min(self.line_rate).max(Rate(1));
    }
}

impl Controller for Rcp {
    fn on_open(&mut self, opened: &Opened) {
        self.rtt = opened.rtt;
        self.set_offered(opened.feedback);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.rtt = ack.rtt;
        self.set_offered(ack.feedback);
    }

    fn allowance(&self) -> Allowance {
        let is_slow = self.rate.bps() * self.base_rtt.seconds() < self.packet_bits;
        // Deviation: at most one probe per current RTT. The authors' module sends one per minimum RTT, and
        // where an RTT holds few packets those displace the data.
        let rtt = self.rtt.max(self.base_rtt);
        let probe_interval = is_slow.then(|| probe_interval(self.rate, rtt, self.probe));
        Allowance { probe_interval, ..Allowance::rate(self.rate.bps()) }
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
    use crate::base::units::Time;
    use crate::transport::fixture::{ACK, OUTGOING};

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
    fn the_rate_is_the_offered_rate_and_at_most_the_line_rate() {
        let mut flow = flow();
        let header = |rtt| Header::Rcp { rtt, rate: f32::INFINITY };
        assert_eq!(flow.header(&OUTGOING), header(0.0), "no RTT in the SYN");
        let (now, rtt) = (Time::ZERO, Duration::from_millis(100));
        flow.on_open(&Opened { now, rtt, feedback: 1e6, syn_was_lost: false });
        assert_eq!(flow.allowance(), Allowance::rate(8e6));
        assert_eq!(flow.header(&OUTGOING), header(0.1));
        flow.on_ack(&ack(2e6));
        assert_eq!(flow.allowance(), Allowance::rate(16e6));
        assert_eq!(flow.header(&OUTGOING), header(0.12), "including queueing");
        flow.on_ack(&ack(f32::INFINITY));
        assert_eq!(flow.allowance(), Allowance::rate(1e9));
    }

    #[test]
    fn a_flow_slower_than_one_packet_per_rtt_sends_one_probe_per_rtt() {
        let mut flow = flow();
        let (now, rtt) = (Time::ZERO, Duration::from_millis(100));
        flow.on_open(&Opened { now, rtt, feedback: 10_000.0, syn_was_lost: false });
        assert_eq!(flow.allowance().probe_interval, None, "a packet of 1000 B in 100 ms");
        flow.on_ack(&ack(9_990.0));
        assert_eq!(
            flow.allowance().probe_interval,
            Some(Duration::from_millis(120)),
            "the current RTT"
        );
        flow.on_ack(&ack(0.0));
        assert!(flow.allowance().rate > Some(Rate(0)), "never 0");
    }
}

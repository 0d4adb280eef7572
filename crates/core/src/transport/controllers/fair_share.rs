//! Fair share: sends at the max-min fair share that routers report, less a rate that drains the flow's queue
//! ([pcp06] §4.1, "router-based control").
//!
//! Routers use fair queueing, and report the fair share and the flow's backlog once per RTT. The paper uses
//! this as the bound of what senders and routers can achieve together. The correction for the backlog is our
//! own.

use super::{
    Ack, Allowance, Controller, Mechanism, Opened, OutgoingPacket, Path, Reliability, Signalling,
    Transport,
};
use crate::base::schema::{defaults, not_negative};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::{Format, Header, Kind, Share};
use crate::queueing::disciplines;
use crate::router;
use crate::transport::blocks::router_probes::probe_interval;
use crate::transport::endpoint::rtt::smooth;

crate::choices! {
    /// Frequency of router feedback.
    pub enum Feedback {
        /// Once per RTT.
        RoundTrip = "round_trip",
        /// With every ACK.
        EveryAck = "every_ack",
    }
}

crate::parameters! {
    /// Fair share: routers with fair queueing report each flow's max-min fair share and backlog, and the
    /// flow sends at that share less the rate that drains its backlog in one RTT ([pcp06] §4.1: "fair
    /// queueing", "router-based control", the bound of its figures).
    pub struct Config {
        /// Frequency of router feedback ([pcp06] §4.1: once per RTT).
        pub feedback: Feedback = Feedback::RoundTrip;
        /// Maximum backlog without a correction, in packets, since packets of several flows meet.
        pub tolerated: f64 = 1.0, where not_negative;
        /// Time in RTTs before its last packet at which a flow releases its share, so that others are
        /// notified in time; 0: with the last packet. With 1 many shares may be released before they are
        /// unused, which overflows a buffer of one bandwidth-delay product.
        pub farewell: f64 = 0.5, where not_negative;
        /// Loss recovery and retransmission timeouts. Retransmissions use the next paced slot.
        pub reliability: Reliability = Reliability::internet();
    }
    check |config| {
        config.reliability.require_ack_per_packet("every request needs an answer")
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let Format { payload, header, .. } = path.format;
        let line = path.line_rate.bps() / 8.0;
        // Until the first feedback.
        let share = path.initial_rate.map_or(line, |rate| rate.bps() / 8.0).min(line);
        Box::new(FairShare {
            feedback: self.feedback,
            packet: (payload + header).0 as f64,
            payload: payload.0 as f64,
            probe: path.format.ack,
            allowance: self.tolerated * (payload + header).0 as f64,
            farewell: self.farewell,
            packets: path.size.map(|size| path.format.packets(size) as f64),
            line_rate: line,
            share,
            rate: share,
            srtt: path.base_rtt,
            min_rtt: path.base_rtt,
            next_request: Time::ZERO,
        })
    }

    fn takes_initial_rate(&self) -> bool {
        true
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism { signalling: Signalling::HeaderAndFin, ..Mechanism::paced(&self.reliability) }
    }

    fn queue(&self) -> disciplines::Config {
        disciplines::Config::fair_queueing(defaults())
    }

    fn router(&self) -> Option<router::Config> {
        Some(router::Config::fair_share(defaults()))
    }

    fn needs_one_path(&self) -> bool {
        true
    }
}

/// State of one flow; bytes, and rates in bytes per second.
struct FairShare {
    feedback: Feedback,
    /// Size of a full packet on the link, and its payload.
    packet: f64,
    payload: f64,
    /// Size of a probe.
    probe: Bytes,
    allowance: f64,
    farewell: f64,
    /// Number of packets of the flow; none if unlimited.
    packets: Option<f64>,
    line_rate: f64,
    /// Fair share reported by routers, and the share less the correction for the backlog.
    share: f64,
    rate: f64,
    /// Smoothed RTT, and its lower bound, since a coarse clock may measure less.
    srtt: Duration,
    min_rtt: Duration,
    /// Time from which the next packet carries a request.
    next_request: Time,
}

impl FairShare {
    /// Handles router feedback; the share is limited to `limit`.
    fn handle_feedback(&mut self, feedback: f32, limit: f64) {
        // Zero: no router wrote feedback.
        if feedback != 0.0 {
            let Share { rate, queued } = Share::of(feedback);
            let excess = (queued - self.allowance).max(0.0) / self.srtt.seconds();
            self.share = rate.min(limit);
            self.rate = (self.share - excess).max(0.0);
        }
    }

    /// True if the flow releases its share after `sent` packets: all are sent, or the rest takes no longer
    /// than the notice to others.
    fn releases_share(&self, sent: f64) -> bool {
        let Some(packets) = self.packets else { return false };
        let notice = self.farewell * self.share * self.srtt.seconds();
        (packets - sent) * self.packet <= notice
    }
}

impl Controller for FairShare {
    fn on_open(&mut self, opened: &Opened) {
        self.srtt = opened.rtt.max(self.min_rtt);
        self.handle_feedback(opened.feedback, self.line_rate);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.srtt = smooth(Some(self.srtt), ack.rtt).max(self.min_rtt);
        let sent = f64::from(ack.next);
        // Capacity that others release belongs to the flows that stay: a flow that has announced its end
        // does not take more. Once all packets are sent this ends: retransmissions use the current share,
        // however small the last share was.
        let is_ending =
            self.packets.is_some_and(|packets| sent < packets) && self.releases_share(sent);
        let limit = if is_ending { self.share } else { self.line_rate };
        self.handle_feedback(ack.feedback, limit);
    }

    fn on_sent(&mut self, now: Time, _bytes: Bytes) -> Option<Allowance> {
        if now >= self.next_request {
            self.next_request = now + self.srtt;
        }
        None
    }

    fn allowance(&self) -> Allowance {
        let rate = Rate::from_bps(self.rate * 8.0);
        let is_slow = self.rate * self.srtt.seconds() < self.packet;
        let share = Rate::from_bps(self.share * 8.0);
        let probe_interval = is_slow.then(|| probe_interval(share, self.srtt, self.probe));
        Allowance { probe_interval, ..Allowance::rate(rate.bps()) }
    }

    fn header(&self, leaving: &OutgoingPacket) -> Header {
        let sent = leaving.offset.0 as f64 / self.payload + 1.0;
        let leaves = leaving.kind == Kind::Data && self.releases_share(sent);
        let has_request = match self.feedback {
            Feedback::EveryAck => true,
            Feedback::RoundTrip => leaving.kind != Kind::Data || leaving.now >= self.next_request,
        };
        if has_request || leaves {
            Header::FairShare { limit: self.line_rate as f32, leaves }
        } else {
            Header::NONE
        }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("rate_bps", self.rate * 8.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use crate::transport::fixture::{ACK, OUTGOING, ack, path};
    use serde_json::json;

    /// Feedback for a share in MB/s and a backlog in packets.
    fn feedback(rate: f64, queued: f64) -> f32 {
        Share { rate: rate * 1e6, queued: queued * 1e3 }.number()
    }

    fn flow(config: &Config, packets: u64) -> Box<dyn Controller> {
        let mut flow = config.controller(&Path { size: Some(Bytes(960 * packets)), ..path() });
        let (now, rtt) = (Time::ZERO, Duration::from_micros(100));
        flow.on_open(&Opened { now, rtt, feedback: feedback(50.0, 0.0), syn_was_lost: false });
        flow
    }

    fn assert_rate(flow: &dyn Controller, expected: f64) {
        let rate = flow.gauges()[0].1 / 8e6;
        assert!((rate / expected - 1.0).abs() < 2e-3, "{rate} MB/s, not {expected}");
    }

    #[test]
    fn the_rate_is_the_share_less_the_rate_that_drains_the_backlog_in_one_rtt() {
        let mut flow = flow(&defaults(), 1000);
        assert_rate(&*flow, 50.0);
        flow.on_ack(&Ack { feedback: feedback(40.0, 1.0), ..ack(1, 10) });
        assert_rate(&*flow, 40.0);
        // Two excess packets in 100 us are 20 MB/s.
        flow.on_ack(&Ack { feedback: feedback(40.0, 3.0), ..ack(2, 10) });
        assert_rate(&*flow, 20.0);
        flow.on_ack(&ack(3, 10));
        assert_rate(&*flow, 20.0);
        flow.on_ack(&Ack { feedback: feedback(40.0, 30.0), ..ack(4, 10) });
        assert_eq!(flow.allowance().rate, Some(Rate(1)), "minimum rate");
        assert_eq!(
            flow.allowance().probe_interval,
            Some(Duration::from_micros(100)),
            "requests continue"
        );
        flow.on_ack(&Ack { feedback: feedback(300.0, 0.0), ..ack(5, 10) });
        assert_eq!(flow.allowance().rate, Some(path().line_rate));
    }

    #[test]
    fn requests_are_sent_once_per_rtt_or_with_every_packet() {
        let asks = |flow: &dyn Controller, us| {
            let now = Time::ZERO + Duration::from_micros(us);
            flow.header(&OutgoingPacket { now, ..OUTGOING }) != Header::NONE
        };
        let once: Config = defaults();
        let mut flow = flow(&once, 1000);
        assert!(asks(&*flow, 10));
        flow.on_sent(Time::ZERO + Duration::from_micros(10), Bytes(1000));
        assert!(!asks(&*flow, 11) && !asks(&*flow, 109) && asks(&*flow, 110));
        let often = Config { feedback: Feedback::EveryAck, ..once };
        let flow = often.controller(&path());
        assert!(asks(&*flow, 11));
    }

    #[test]
    fn a_flow_releases_its_share_before_its_end_and_then_takes_no_more() {
        let config = Config::read(&json!({ "farewell": 2 })).unwrap();
        let mut flow = flow(&config, 100);
        let leaves = |flow: &dyn Controller, segment: u64| {
            let header = flow.header(&OutgoingPacket { offset: Bytes(960 * segment), ..OUTGOING });
            matches!(header, Header::FairShare { leaves: true, .. })
        };
        // 50 MB/s are ten packets in two RTTs.
        assert!(!leaves(&*flow, 89) && leaves(&*flow, 90));
        flow.on_ack(&Ack { feedback: feedback(60.0, 0.0), next: 87, ..ACK });
        assert_rate(&*flow, 60.0);
        // 60 MB/s are twelve packets.
        flow.on_ack(&Ack { feedback: feedback(70.0, 0.0), next: 89, ..ACK });
        assert_rate(&*flow, 60.0);
        flow.on_ack(&Ack { feedback: feedback(30.0, 0.0), next: 90, ..ACK });
        assert_rate(&*flow, 30.0);
        flow.on_ack(&Ack { feedback: feedback(1e-6, 0.0), next: 100, ..ACK });
        flow.on_ack(&Ack { feedback: feedback(40.0, 0.0), next: 100, ..ACK });
        assert_rate(&*flow, 40.0);
        let syn = OutgoingPacket { kind: Kind::Syn, offset: Bytes(960 * 99), ..OUTGOING };
        assert_eq!(flow.header(&syn), Header::FairShare { limit: 125e6, leaves: false });
    }
}

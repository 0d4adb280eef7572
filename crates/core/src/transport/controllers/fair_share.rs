//! Fair shares: sends at the max-min share that routers tell, less what drains its own queue.
//!
//! Source: [pcp06] §4.1, "router-based control": fair queueing, and once a round trip the news of the fair
//! share and of the flow's own queue. The paper takes it for the best that senders and routers can do
//! together; how the sender corrects for its queue is ours.

use super::{
    Ack, Allowance, Controller, Mechanism, Opened, OutgoingPacket, Path, Reliability, Transport,
};
use crate::base::schema::{defaults, not_negative};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::{Format, Header, Kind, Share};
use crate::queueing::disciplines;
use crate::router;
use crate::transport::endpoint::rtt::smooth;

crate::choices! {
    /// How often a flow hears from routers.
    pub enum Feedback {
        /// Once a round trip.
        RoundTrip = "round_trip",
        /// With every ACK.
        EveryAck = "every_ack",
    }
}

crate::parameters! {
    /// Fair shares: routers with fair queues tell each flow its max-min share and what waits of it, and
    /// it sends at that share, less what empties its queue in a round trip ([pcp06] §4.1: "fair
    /// queueing", "router-based control", the bound of its figures).
    pub struct Config {
        /// How often routers are asked ([pcp06] §4.1: once a round trip).
        pub feedback: Feedback = Feedback::RoundTrip;
        /// So many packets may wait without being corrected for: packets of several flows meet.
        pub tolerated: f64 = 1.0, where not_negative;
        /// A flow gives up its share so many round trips before it has sent its last packet, so that the
        /// others hear of it in time; 0 with its last packet. With 1 many shares may be given up before
        /// any of them is free, which overflows a buffer of a bandwidth-delay product.
        pub farewell: f64 = 0.5, where not_negative;
        /// How data is made reliable. Lost packets are sent again in the next paced slot.
        pub reliability: Reliability = Reliability::internet();
    }
    check |config| {
        config.reliability.must_answer_each("the answer to every question is wanted")
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let Format { payload, header, .. } = path.format;
        let line = path.line_rate.bps() / 8.0;
        // Until routers have spoken.
        let share = path.initial_rate.map_or(line, |rate| rate.bps() / 8.0).min(line);
        Box::new(FairShare {
            feedback: self.feedback,
            packet: (payload + header).0 as f64,
            payload: payload.0 as f64,
            tolerated: self.tolerated * (payload + header).0 as f64,
            farewell: self.farewell,
            packets: path.size.map(|size| path.format.packets(size) as f64),
            line,
            share,
            rate: share,
            rtt: path.base_rtt,
            least_rtt: path.base_rtt,
            asks_from: Time::ZERO,
        })
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism { has_header: true, sends_fin: true, ..Mechanism::paced(&self.reliability) }
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

/// The state of one flow; bytes, and rates in bytes a second.
struct FairShare {
    feedback: Feedback,
    /// A full packet on the wire, and its payload.
    packet: f64,
    payload: f64,
    tolerated: f64,
    farewell: f64,
    /// How many it has to send, unless it is without end.
    packets: Option<f64>,
    line: f64,
    /// What routers let it have, and that less what empties its queue.
    share: f64,
    rate: f64,
    /// Smoothed round-trip time, and the least that it can be, whatever a coarse clock says.
    rtt: Duration,
    least_rtt: Duration,
    /// The next packet to leave asks routers if it is not before this.
    asks_from: Time,
}

impl FairShare {
    /// Takes in what routers say; the share is no more than some rate.
    fn obey(&mut self, feedback: f32, most: f64) {
        // Zero is what nobody has written.
        if feedback != 0.0 {
            let Share { rate, queued } = Share::of(feedback);
            let excess = (queued - self.tolerated).max(0.0) / self.rtt.seconds();
            self.share = rate.min(most);
            self.rate = (self.share - excess).max(0.0);
        }
    }

    /// Whether the flow gives up its share when it has sent so many packets: they are all, or the rest
    /// takes no longer than it takes others to hear of it.
    fn leaves(&self, sent: f64) -> bool {
        let Some(packets) = self.packets else { return false };
        let soon = self.farewell * self.share * self.rtt.seconds();
        (packets - sent) * self.packet <= soon
    }
}

impl Controller for FairShare {
    fn on_open(&mut self, opened: &Opened) {
        self.rtt = opened.rtt.max(self.least_rtt);
        self.obey(opened.feedback, self.line);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.rtt = smooth(Some(self.rtt), ack.rtt).max(self.least_rtt);
        let sent = f64::from(ack.next);
        // What others leave belongs to those who stay, and does not hasten the end of those who have said
        // when it will be. Once all is sent that is over: what was lost is sent again at what routers say
        // then, be the last share that was heard of ever so small.
        let is_ending = self.packets.is_some_and(|packets| sent < packets) && self.leaves(sent);
        let most = if is_ending { self.share } else { self.line };
        self.obey(ack.feedback, most);
    }

    fn on_sent(&mut self, now: Time, _bytes: Bytes) {
        if now >= self.asks_from {
            self.asks_from = now + self.rtt;
        }
    }

    fn allowance(&self) -> Allowance {
        let rate = Rate::from_bps(self.rate * 8.0);
        let is_slow = self.rate * self.rtt.seconds() < self.packet;
        let probe = is_slow.then_some(self.rtt);
        Allowance { window: Bytes(u64::MAX), rate: Some(rate), probe, gives_up: false }
    }

    fn header(&self, leaving: &OutgoingPacket) -> Header {
        let sent = leaving.offset.0 as f64 / self.payload + 1.0;
        let leaves = leaving.kind == Kind::Data && self.leaves(sent);
        let asks = match self.feedback {
            Feedback::EveryAck => true,
            Feedback::RoundTrip => leaving.kind != Kind::Data || leaving.now >= self.asks_from,
        };
        if asks || leaves {
            Header::FairShare { limit: self.line as f32, leaves }
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
    use crate::transport::fixture::{ACK, LEAVING, ack, path};
    use serde_json::json;

    /// What routers say of a share in MB/s and a queue in packets.
    fn told(rate: f64, queued: f64) -> f32 {
        Share { rate: rate * 1e6, queued: queued * 1e3 }.number()
    }

    fn flow(config: &Config, packets: u64) -> Box<dyn Controller> {
        let mut flow = config.controller(&Path { size: Some(Bytes(960 * packets)), ..path() });
        let (now, rtt) = (Time::ZERO, Duration::from_micros(100));
        flow.on_open(&Opened { now, rtt, feedback: told(50.0, 0.0), syn_was_lost: false });
        flow
    }

    fn assert_rate(flow: &dyn Controller, expected: f64) {
        let rate = flow.gauges()[0].1 / 8e6;
        assert!((rate / expected - 1.0).abs() < 2e-3, "{rate} MB/s, not {expected}");
    }

    #[test]
    fn it_sends_at_its_share_less_what_empties_its_queue_in_a_round_trip() {
        let mut flow = flow(&defaults(), 1000);
        assert_rate(&*flow, 50.0);
        flow.on_ack(&Ack { feedback: told(40.0, 1.0), ..ack(1, 10) });
        assert_rate(&*flow, 40.0);
        // Two packets too many in 100 us are 20 MB/s.
        flow.on_ack(&Ack { feedback: told(40.0, 3.0), ..ack(2, 10) });
        assert_rate(&*flow, 20.0);
        flow.on_ack(&ack(3, 10));
        assert_rate(&*flow, 20.0);
        flow.on_ack(&Ack { feedback: told(40.0, 30.0), ..ack(4, 10) });
        assert_eq!(flow.allowance().rate, Some(Rate(1)), "as good as nothing");
        assert_eq!(flow.allowance().probe, Some(Duration::from_micros(100)), "but it asks");
        flow.on_ack(&Ack { feedback: told(300.0, 0.0), ..ack(5, 10) });
        assert_eq!(flow.allowance().rate, Some(path().line_rate));
    }

    #[test]
    fn it_asks_once_a_round_trip_or_with_every_packet() {
        let asks = |flow: &dyn Controller, us| {
            let now = Time::ZERO + Duration::from_micros(us);
            flow.header(&OutgoingPacket { now, ..LEAVING }) != Header::NONE
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
    fn it_leaves_before_its_end_and_then_takes_no_more() {
        let config = Config::read(&json!({ "farewell": 2 })).unwrap();
        let mut flow = flow(&config, 100);
        let leaves = |flow: &dyn Controller, segment: u64| {
            let header = flow.header(&OutgoingPacket { offset: Bytes(960 * segment), ..LEAVING });
            matches!(header, Header::FairShare { leaves: true, .. })
        };
        // 50 MB/s are ten packets in two round trips.
        assert!(!leaves(&*flow, 89) && leaves(&*flow, 90));
        flow.on_ack(&Ack { feedback: told(60.0, 0.0), next: 87, ..ACK });
        assert_rate(&*flow, 60.0);
        // Twelve packets.
        flow.on_ack(&Ack { feedback: told(70.0, 0.0), next: 89, ..ACK });
        assert_rate(&*flow, 60.0);
        flow.on_ack(&Ack { feedback: told(30.0, 0.0), next: 90, ..ACK });
        assert_rate(&*flow, 30.0);
        flow.on_ack(&Ack { feedback: told(1e-6, 0.0), next: 100, ..ACK });
        flow.on_ack(&Ack { feedback: told(40.0, 0.0), next: 100, ..ACK });
        assert_rate(&*flow, 40.0);
        let syn = OutgoingPacket { kind: Kind::Syn, offset: Bytes(960 * 99), ..LEAVING };
        assert_eq!(flow.header(&syn), Header::FairShare { limit: 125e6, leaves: false });
    }
}

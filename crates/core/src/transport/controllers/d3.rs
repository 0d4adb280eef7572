//! D3: asks routers once a round trip for the rate that its deadline needs, and sends at what it gets.
//!
//! Source: [d311] §4. The SYN and, once a round trip, a data packet are requests; the other packets say
//! nothing. A flow without deadline, or with one that has passed, asks for nothing and lives on its share
//! of what is left. While a flow is slower than a packet a round trip, probes ask in its stead.

use super::{
    Ack, Allowance, Controller, Mechanism, Opened, OutgoingPacket, Path, Reliability, Transport,
};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::{Format, Header, Kind};
use crate::router;
use crate::transport::blocks::deadline::Deadline;
use crate::transport::endpoint::rtt::smooth;

crate::parameters! {
    /// D3: flows ask routers for the rate that their deadlines need, and send at what they get ([d311]).
    pub struct Config {
        /// Whether a flow is given up once its deadline has passed, or what it has never sent would take
        /// longer than that at line rate ([d311]: quenching, an option).
        pub early_termination: bool = false;
        /// How data is made reliable.
        pub reliability: Reliability =
            Reliability { handshake: true, ..Reliability::selective_repeat() };
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        Box::new(D3 {
            deadline: Deadline::new(path, self.early_termination),
            most: path.line_rate,
            format: path.format.clone(),
            rate: None,
            rtt: None,
            least_rtt: path.base_rtt,
            asks_from: path.start,
        })
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism { has_header: true, sends_fin: true, ..Mechanism::paced(&self.reliability) }
    }

    fn router(&self) -> Option<router::Config> {
        Some(router::Config::d3(crate::base::schema::defaults()))
    }

    fn needs_deadlines(&self) -> bool {
        true
    }

    fn needs_one_path(&self) -> bool {
        true
    }
}

struct D3 {
    deadline: Deadline,
    most: Rate,
    format: Format,
    /// What routers allotted last, once they have.
    rate: Option<Rate>,
    /// Smoothed round-trip time, once there is a sample.
    rtt: Option<Duration>,
    /// The round-trip time of an empty network.
    least_rtt: Duration,
    /// The first data packet from then on is a request.
    asks_from: Time,
}

impl D3 {
    fn rtt(&self) -> Duration {
        self.rtt.unwrap_or(self.least_rtt)
    }

    /// Takes in what routers allot, in bytes a second; nothing, if the packet was no request.
    fn obey(&mut self, allotted: f32) {
        if allotted > 0.0 {
            self.rate = Some(Rate::from_bps(f64::from(allotted) * 8.0).min(self.most));
        }
    }

    /// The rate to ask for, in bytes a second. The answer comes in a round trip; what is acknowledged until
    /// then and in the round trip after it goes at the present rate. The rest should be acknowledged by
    /// the deadline, but need not be sent in less than a round trip.
    fn desired(&self, now: Time) -> f64 {
        let Some((bytes, time)) = self.deadline.left(now) else { return 0.0 };
        if time == Duration::ZERO {
            return 0.0;
        }
        let rtt = self.rtt().seconds();
        let present = self.rate.map_or(0.0, |rate| rate.bps() / 8.0);
        let rest = self.format.on_wire(bytes).0 as f64 - 2.0 * rtt * present;
        (rest.max(0.0) / (time.seconds() - 2.0 * rtt).max(rtt)).min(self.most.bps() / 8.0)
    }
}

impl Controller for D3 {
    fn on_open(&mut self, opened: &Opened) {
        self.rtt = Some(opened.rtt);
        self.obey(opened.feedback);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.rtt = Some(smooth(self.rtt, ack.rtt));
        self.deadline.on_ack(ack);
        self.obey(ack.feedback);
    }

    fn on_sent(&mut self, now: Time, _bytes: Bytes) {
        self.deadline.on_sent();
        if now >= self.asks_from {
            self.asks_from = now + self.rtt();
        }
    }

    fn on_timer(&mut self, now: Time) {
        self.deadline.on_timer(now);
    }

    fn next_timer(&self) -> Time {
        self.deadline.next_timer()
    }

    fn allowance(&self) -> Allowance {
        // Before the first answer, which without a handshake comes after the first packet, as slow as can be.
        let rate = self.rate.unwrap_or(Rate(1));
        let packet = self.format.payload + self.format.header;
        let is_slow = rate.bps() * self.least_rtt.seconds() < packet.bits();
        let probe = is_slow.then_some(self.rtt().max(self.least_rtt));
        let gives_up = self.deadline.is_given_up();
        Allowance { probe, gives_up, ..Allowance::rate(rate.bps()) }
    }

    fn header(&self, leaving: &OutgoingPacket) -> Header {
        let is_request = match leaving.kind {
            Kind::Data => leaving.now >= self.asks_from,
            kind => matches!(kind, Kind::Syn | Kind::Probe),
        };
        if is_request {
            let desired = self.desired(leaving.now) as f32;
            Header::D3 { desired, allotted: f32::INFINITY }
        } else {
            Header::NONE
        }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("rate_bps", self.rate.map_or(0.0, Rate::bps))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::transport::fixture::{LEAVING, ack, path};

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    /// A flow of 100 packets, 1000 B on the wire, in so many microseconds.
    fn flow(deadline_us: u64) -> Box<dyn Controller> {
        let config: Config = defaults();
        let size = Some(Bytes(96_000));
        config.controller(&Path { size, deadline: at(deadline_us), ..path() })
    }

    /// What a flow asks for, in bytes a second, if it asks.
    fn asks(flow: &dyn Controller, kind: Kind, us: u64) -> Option<f32> {
        match flow.header(&OutgoingPacket { kind, now: at(us), ..LEAVING }) {
            Header::D3 { desired, allotted } => {
                assert_eq!(allotted.to_bits(), f32::INFINITY.to_bits());
                Some(desired)
            }
            other => {
                assert_eq!(other, Header::NONE);
                None
            }
        }
    }

    fn assert_asks(flow: &dyn Controller, kind: Kind, us: u64, expected: f32) {
        let desired = asks(flow, kind, us).unwrap();
        assert!((desired - expected).abs() <= expected * 1e-5, "{desired} is not {expected}");
    }

    fn opened(feedback: f32) -> Opened {
        Opened { now: at(100), rtt: Duration::from_micros(100), feedback, syn_was_lost: false }
    }

    #[test]
    fn it_asks_for_what_the_deadline_needs_after_the_answer_and_the_last_ack() {
        let mut flow = flow(1_700);
        // 100 KB in 1500 us.
        assert_asks(&*flow, Kind::Syn, 0, 100e3 / 1500e-6);
        flow.on_open(&opened(50e6));
        // In two of 16 round trips it sends at 50 MB/s; 90 KB are for the other 14.
        assert_asks(&*flow, Kind::Data, 100, 90e3 / 1400e-6);
        // At the rate that it needs it asks for the same again.
        flow.on_ack(&Ack { bytes: Bytes::ZERO, feedback: 62.5e6, ..ack(0, 10) });
        for acked in 1..=50 {
            flow.on_ack(&ack(acked, acked + 10));
        }
        assert_asks(&*flow, Kind::Data, 900, 62.5e6);
    }

    #[test]
    fn it_asks_for_nothing_without_a_deadline_or_after_it_and_for_no_more_than_its_line() {
        let config: Config = defaults();
        assert_asks(&*config.controller(&path()), Kind::Syn, 0, 0.0);
        assert_asks(&*flow(1_000), Kind::Syn, 1_000, 0.0);
        assert_asks(&*flow(1_000), Kind::Syn, 0, 125e6);
        // It need not be sent in less than a round trip.
        let mut late = flow(400);
        late.on_open(&opened(125e6));
        (1..=70).for_each(|acked| late.on_ack(&ack(acked, acked + 10)));
        assert_asks(&*late, Kind::Data, 390, 5e3 / 100e-6);
    }

    #[test]
    fn one_packet_a_round_trip_asks_and_probes_do_while_there_are_fewer() {
        let mut flow = flow(10_000);
        flow.on_open(&opened(20e6));
        assert_eq!(flow.allowance(), Allowance::rate(160e6));
        assert!(asks(&*flow, Kind::Data, 100).is_some());
        flow.on_sent(at(100), Bytes(1000));
        assert!(asks(&*flow, Kind::Data, 199).is_none());
        flow.on_sent(at(199), Bytes(1000));
        assert!(asks(&*flow, Kind::Data, 200).is_some());
        assert!(asks(&*flow, Kind::Fin, 200).is_none());
        // Answers to packets that were no requests change nothing.
        flow.on_ack(&ack(1, 2));
        assert_eq!(flow.allowance(), Allowance::rate(160e6));
        flow.on_ack(&Ack { feedback: 400e3, ..ack(2, 2) });
        let probe = Some(Duration::from_micros(100));
        assert_eq!(flow.allowance(), Allowance { probe, ..Allowance::rate(3.2e6) });
        assert!(asks(&*flow, Kind::Probe, 150).is_some());
    }
}

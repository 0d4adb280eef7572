//! D3: requests from routers, once per RTT, the rate that the deadline needs, and sends at the rate
//! allocated ([d311] §4).
//!
//! The SYN and one data packet per RTT carry rate requests; other packets have no header. A flow without a
//! deadline, or past its deadline, requests a rate of 0 and gets a fair share of the spare capacity. While a
//! flow is slower than one packet per RTT, probes carry the requests.

use super::{
    Ack, Allowance, Controller, Mechanism, Opened, OutgoingPacket, Path, Reliability, Signalling,
    Transport,
};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::{Format, Header, Kind};
use crate::router;
use crate::transport::blocks::deadline::Deadline;
use crate::transport::endpoint::rtt::smooth;

crate::parameters! {
    /// D3: flows request from routers the rate that their deadlines need, and send at the rate
    /// allocated ([d311]).
    pub struct Config {
        /// If true, a flow is given up once its deadline has passed, or cannot be met at line rate
        /// ([d311]: quenching, an option).
        pub early_termination: bool = false;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability =
            Reliability { handshake: true, ..Reliability::selective_repeat() };
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        Box::new(D3 {
            deadline: Deadline::new(path, self.early_termination),
            line_rate: path.line_rate,
            format: path.format.clone(),
            rate: None,
            srtt: None,
            base_rtt: path.base_rtt,
            next_request: path.start,
        })
    }

    fn own_reliability(&self) -> &'static [&'static str] {
        &["handshake"]
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism { signalling: Signalling::HeaderAndFin, ..Mechanism::paced(&self.reliability) }
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
    line_rate: Rate,
    format: Format,
    /// Rate last allocated by routers; none before the first answer.
    rate: Option<Rate>,
    /// Smoothed RTT; none before the first sample.
    srtt: Option<Duration>,
    /// RTT of an empty network.
    base_rtt: Duration,
    /// Time from which the next data packet carries a request.
    next_request: Time,
}

impl D3 {
    fn rtt(&self) -> Duration {
        self.srtt.unwrap_or(self.base_rtt)
    }

    /// Stores the rate allocated, in bytes per second; 0 if the packet was not a request.
    fn set_allocated(&mut self, allocated: f32) {
        if allocated > 0.0 {
            self.rate = Some(Rate::from_bps(f64::from(allocated) * 8.0).min(self.line_rate));
        }
    }

    /// Returns the rate to request, in bytes per second. The answer arrives after one RTT; the data
    /// acknowledged until then and in the RTT after it is sent at the present rate. The rest should be
    /// acknowledged by the deadline, but need not be sent in less than one RTT.
    fn desired_rate(&self, now: Time) -> f64 {
        let Some((bytes, time)) = self.deadline.remaining(now) else { return 0.0 };
        if time == Duration::ZERO {
            return 0.0;
        }
        let rtt = self.rtt().seconds();
        let present = self.rate.map_or(0.0, |rate| rate.bps() / 8.0);
        let rest = self.format.on_wire(bytes).0 as f64 - 2.0 * rtt * present;
        (rest.max(0.0) / (time.seconds() - 2.0 * rtt).max(rtt)).min(self.line_rate.bps() / 8.0)
    }
}

impl Controller for D3 {
    fn on_open(&mut self, opened: &Opened) {
        self.srtt = Some(opened.rtt);
        self.set_allocated(opened.feedback);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.srtt = Some(smooth(self.srtt, ack.rtt));
        self.deadline.on_ack(ack);
        self.set_allocated(ack.feedback);
    }

    fn on_sent(&mut self, now: Time, _bytes: Bytes) -> Option<Allowance> {
        self.deadline.on_sent();
        if now >= self.next_request {
            self.next_request = now + self.rtt();
        }
        Some(self.allowance())
    }

    fn on_timer(&mut self, now: Time) {
        self.deadline.on_timer(now);
    }

    fn next_timer(&self) -> Time {
        self.deadline.next_timer()
    }

    fn allowance(&self) -> Allowance {
        // Without a handshake the first answer arrives after the first packet: minimum rate until then.
        let rate = self.rate.unwrap_or(Rate(1));
        let packet = self.format.payload + self.format.header;
        let is_slow = rate.bps() * self.base_rtt.seconds() < packet.bits();
        let probe_interval = is_slow.then_some(self.rtt().max(self.base_rtt));
        let is_terminated = self.deadline.is_given_up();
        Allowance { probe_interval, is_terminated, ..Allowance::rate(rate.bps()) }
    }

    fn header(&self, leaving: &OutgoingPacket) -> Header {
        let is_request = match leaving.kind {
            Kind::Data => leaving.now >= self.next_request,
            kind => matches!(kind, Kind::Syn | Kind::Probe),
        };
        if is_request {
            let desired = self.desired_rate(leaving.now) as f32;
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
    use crate::transport::fixture::{OUTGOING, ack, path};

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    /// Flow of 100 packets of 1000 B on the link, with this time to its deadline.
    fn flow(deadline_us: u64) -> Box<dyn Controller> {
        let config: Config = defaults();
        let size = Some(Bytes(96_000));
        config.controller(&Path { size, deadline: at(deadline_us), ..path() })
    }

    /// Rate that a packet requests, in bytes per second; none if the packet has no request.
    fn request(flow: &dyn Controller, kind: Kind, us: u64) -> Option<f32> {
        match flow.header(&OutgoingPacket { kind, now: at(us), ..OUTGOING }) {
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

    fn assert_request(flow: &dyn Controller, kind: Kind, us: u64, expected: f32) {
        let desired = request(flow, kind, us).unwrap();
        assert!((desired - expected).abs() <= expected * 1e-5, "{desired} is not {expected}");
    }

    fn opened(feedback: f32) -> Opened {
        Opened { now: at(100), rtt: Duration::from_micros(100), feedback, syn_was_lost: false }
    }

    #[test]
    fn the_request_is_the_rate_that_the_deadline_needs_from_the_next_rtt_on() {
        let mut flow = flow(1_700);
        // 100 KB in 1500 us.
        assert_request(&*flow, Kind::Syn, 0, 100e3 / 1500e-6);
        flow.on_open(&opened(50e6));
        // For two of 16 RTTs the flow sends at 50 MB/s; 90 KB are left for the other 14.
        assert_request(&*flow, Kind::Data, 100, 90e3 / 1400e-6);
        // At the rate that it needs, the flow requests the same rate again.
        flow.on_ack(&Ack { bytes: Bytes::ZERO, feedback: 62.5e6, ..ack(0, 10) });
        for acked in 1..=50 {
            flow.on_ack(&ack(acked, acked + 10));
        }
        assert_request(&*flow, Kind::Data, 900, 62.5e6);
    }

    #[test]
    fn the_request_is_zero_without_a_deadline_or_after_it_and_at_most_the_line_rate() {
        let config: Config = defaults();
        assert_request(&*config.controller(&path()), Kind::Syn, 0, 0.0);
        assert_request(&*flow(1_000), Kind::Syn, 1_000, 0.0);
        assert_request(&*flow(1_000), Kind::Syn, 0, 125e6);
        // The data need not be sent in less than one RTT.
        let mut late = flow(400);
        late.on_open(&opened(125e6));
        (1..=70).for_each(|acked| late.on_ack(&ack(acked, acked + 10)));
        assert_request(&*late, Kind::Data, 390, 5e3 / 100e-6);
    }

    #[test]
    fn one_packet_per_rtt_requests_and_probes_do_below_that_rate() {
        let mut flow = flow(10_000);
        flow.on_open(&opened(20e6));
        assert_eq!(flow.allowance(), Allowance::rate(160e6));
        assert!(request(&*flow, Kind::Data, 100).is_some());
        flow.on_sent(at(100), Bytes(1000));
        assert!(request(&*flow, Kind::Data, 199).is_none());
        flow.on_sent(at(199), Bytes(1000));
        assert!(request(&*flow, Kind::Data, 200).is_some());
        assert!(request(&*flow, Kind::Fin, 200).is_none());
        // ACKs of packets without a request do not change the rate.
        flow.on_ack(&ack(1, 2));
        assert_eq!(flow.allowance(), Allowance::rate(160e6));
        flow.on_ack(&Ack { feedback: 400e3, ..ack(2, 2) });
        let probe_interval = Some(Duration::from_micros(100));
        assert_eq!(flow.allowance(), Allowance { probe_interval, ..Allowance::rate(3.2e6) });
        assert!(request(&*flow, Kind::Probe, 150).is_some());
    }
}

//! XCP: routers change the window with feedback in every packet ([xcp02] §3.4).
//!
//! As in the later internet-draft, the feedback is a change of throughput. The reaction to losses, which
//! routers are to prevent, is TCP's.

use super::{
    Ack, Allowance, CongestionSignal, Controller, Loss, Mechanism, Opened, OutgoingPacket, Path,
    Reliability, Signalling, Transport,
};
use crate::base::schema::{positive, positive_if_given};
use crate::base::units::Duration;
use crate::model::packet::{Format, Header};
use crate::router;
use crate::transport::endpoint::rtt::smooth;

crate::parameters! {
    /// XCP: routers set the change of every flow's window ([xcp02]).
    pub struct Config {
        /// Initial window, in packets (ns-2: 2).
        pub initial_window: u32 = 2, where positive;
        /// Maximum window, in packets (none: unlimited).
        pub max_window: Option<u32> = None, where positive_if_given;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::internet();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let Format { payload, header, .. } = path.format;
        Box::new(Xcp {
            packet: payload.0 as f64,
            packet_bytes: (payload + header).0 as f64,
            max_window: self.max_window.map_or(f64::INFINITY, f64::from),
            cwnd: f64::from(self.initial_window),
            srtt: None,
        })
    }

    fn own_reliability(&self) -> &'static [&'static str] {
        &["handshake"]
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism { signalling: Signalling::Header, ..Mechanism::plain(&self.reliability) }
    }

    fn router(&self) -> Option<router::Config> {
        Some(router::Config::xcp(crate::base::schema::defaults()))
    }
}

/// State of one flow; the window is in packets.
struct Xcp {
    /// Payload of a packet, and its size on the link.
    packet: f64,
    packet_bytes: f64,
    max_window: f64,
    cwnd: f64,
    /// Smoothed RTT; none before the first sample.
    srtt: Option<Duration>,
}

impl Xcp {
    fn sample(&mut self, rtt: Duration) {
        self.srtt = Some(smooth(self.srtt, rtt));
    }
}

impl Controller for Xcp {
    fn on_open(&mut self, opened: &Opened) {
        self.sample(opened.rtt);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.sample(ack.rtt);
        if let Some(rtt) = self.srtt
            && ack.advanced > 0
        {
            // [xcp02] §3.4, with the change of throughput, in bytes on the link, converted to a change of
            // the window.
            let change = f64::from(ack.feedback) * rtt.seconds() / self.packet_bytes;
            let change = if ack.is_window_limited() { change } else { change.min(0.0) };
            self.cwnd = (self.cwnd + change).clamp(1.0, self.max_window);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.cwnd = match loss.signal {
            CongestionSignal::DetectedLoss | CongestionSignal::EcnMark => {
                (loss.flight.0 as f64 / self.packet / 2.0).max(1.0)
            }
            CongestionSignal::Timeout => 1.0,
        };
    }

    fn allowance(&self) -> Allowance {
        Allowance::window(self.cwnd * self.packet + 0.5)
    }

    fn header(&self, _leaving: &OutgoingPacket) -> Header {
        let rtt = self.srtt.map_or(0.0, Duration::seconds);
        let spacing = (rtt / self.cwnd) as f32;
        // The sender requests an unlimited increase.
        Header::Xcp { rtt: rtt as f32, spacing, feedback: f32::INFINITY }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("window_bytes", self.cwnd * self.packet)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::base::units::{Bytes, Rate, Time};
    use crate::transport::fixture::{ACK, OUTGOING, loss};

    fn flow() -> Box<dyn Controller> {
        let config: Config = defaults();
        let mut flow = config.controller(&Path::new(
            Rate::from_gbps(1),
            Duration::from_millis(100),
            Format { payload: Bytes(960), ..defaults() },
        ));
        let (now, rtt) = (Time::ZERO, Duration::from_millis(100));
        flow.on_open(&Opened { now, rtt, feedback: 0.0, syn_was_lost: false });
        flow
    }

    fn assert_window(flow: &dyn Controller, packets: f64) {
        let window = flow.gauges()[0].1 / 960.0;
        assert!((window / packets - 1.0).abs() < 1e-6, "{window} is not {packets}");
    }

    fn ack(advanced: u32, feedback: f32) -> Ack {
        let (bytes, rtt) = (Bytes(960), Duration::from_millis(100));
        Ack { bytes, advanced, rtt, feedback, ..ACK }
    }

    #[test]
    fn a_change_of_throughput_changes_the_window_by_its_product_with_the_rtt() {
        let mut flow = flow();
        assert_window(&*flow, 2.0);
        // 30 KB/s more for 100 ms are three packets of 1000 B on the link.
        flow.on_ack(&ack(1, 30_000.0));
        assert_window(&*flow, 5.0);
        flow.on_ack(&ack(1, -10_000.0));
        assert_window(&*flow, 4.0);
        flow.on_ack(&ack(0, 10_000.0));
        assert_window(&*flow, 4.0);
        flow.on_ack(&ack(1, -1e9));
        assert_window(&*flow, 1.0);
    }

    #[test]
    fn packets_carry_their_spacing() {
        let mut flow = flow();
        flow.on_ack(&ack(1, 80_000.0));
        let expected = Header::Xcp { rtt: 0.1, spacing: 0.01, feedback: f32::INFINITY };
        assert_eq!(flow.header(&OUTGOING), expected, "ten packets in 100 ms");
    }

    #[test]
    fn losses_halve_the_window_and_timeouts_reset_it_to_one_packet() {
        let mut flow = flow();
        let loss = |signal| loss(signal, Bytes(9_600));
        flow.on_loss(&loss(CongestionSignal::DetectedLoss));
        assert_window(&*flow, 5.0);
        flow.on_loss(&loss(CongestionSignal::Timeout));
        assert_window(&*flow, 1.0);
    }
}

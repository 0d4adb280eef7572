//! XCP: a window that routers change packet by packet.
//!
//! Sources: [xcp02] §3.4 and the later internet-draft, in which feedback is a change of throughput.
//! Losses, which routers mean to prevent, are answered as TCP does.

use super::{
    Ack, Allowance, CongestionSignal, Controller, Loss, Mechanism, Opened, OutgoingPacket, Path,
    Reliability, Transport,
};
use crate::base::schema::{positive, positive_if_given};
use crate::base::units::Duration;
use crate::model::packet::{Format, Header};
use crate::router;
use crate::transport::endpoint::rtt::smooth;

crate::parameters! {
    /// XCP: routers tell every flow by how much to change its window ([xcp02]).
    pub struct Config {
        /// Initial window, in packets (ns-2: 2).
        pub initial_window: u32 = 2, where positive;
        /// Most that the window may be, in packets; none for no bound.
        pub max_window: Option<u32> = None, where positive_if_given;
        /// How data is made reliable.
        pub reliability: Reliability = Reliability::internet();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let Format { payload, header, .. } = path.format;
        Box::new(Xcp {
            packet: payload.0 as f64,
            on_wire: (payload + header).0 as f64,
            most: self.max_window.map_or(f64::INFINITY, f64::from),
            window: f64::from(self.initial_window),
            rtt: None,
        })
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism { has_header: true, ..Mechanism::plain(&self.reliability) }
    }

    fn router(&self) -> Option<router::Config> {
        Some(router::Config::xcp(crate::base::schema::defaults()))
    }
}

/// The state of one flow; the window is in packets.
struct Xcp {
    /// A packet's payload, and its size on the wire.
    packet: f64,
    on_wire: f64,
    most: f64,
    window: f64,
    /// Smoothed round-trip time, once there is a sample.
    rtt: Option<Duration>,
}

impl Xcp {
    fn sample(&mut self, rtt: Duration) {
        self.rtt = Some(smooth(self.rtt, rtt));
    }
}

impl Controller for Xcp {
    fn on_open(&mut self, opened: &Opened) {
        self.sample(opened.rtt);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.sample(ack.rtt);
        if let Some(rtt) = self.rtt
            && ack.advanced > 0
        {
            // [xcp02] eq. in §3.4, with the change of throughput, which counts bytes on the wire, made
            // one of the window.
            let change = f64::from(ack.feedback) * rtt.seconds() / self.on_wire;
            self.window = (self.window + change).clamp(1.0, self.most);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window = match loss.sign {
            CongestionSignal::Gap | CongestionSignal::Mark => {
                (loss.flight.0 as f64 / self.packet / 2.0).max(1.0)
            }
            CongestionSignal::Timeout => 1.0,
        };
    }

    fn allowance(&self) -> Allowance {
        Allowance::window(self.window * self.packet + 0.5)
    }

    fn header(&self, _leaving: &OutgoingPacket) -> Header {
        let rtt = self.rtt.map_or(0.0, Duration::seconds);
        let spacing = (rtt / self.window) as f32;
        // The sender wishes for all that it can get.
        Header::Xcp { rtt: rtt as f32, spacing, feedback: f32::INFINITY }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("window_bytes", self.window * self.packet)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::base::units::{Bytes, Rate, Time};
    use crate::transport::fixture::{ACK, LEAVING};

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
    fn a_change_of_throughput_is_one_of_the_window_over_a_round_trip() {
        let mut flow = flow();
        assert_window(&*flow, 2.0);
        // 30 KB/s more for 100 ms are three packets of 1000 B on the wire.
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
    fn packets_say_how_far_apart_they_are() {
        let mut flow = flow();
        flow.on_ack(&ack(1, 80_000.0));
        let expected = Header::Xcp { rtt: 0.1, spacing: 0.01, feedback: f32::INFINITY };
        assert_eq!(flow.header(&LEAVING), expected, "ten packets in 100 ms");
    }

    #[test]
    fn losses_halve_the_window_and_time_outs_leave_one_packet() {
        let mut flow = flow();
        let loss = |sign| Loss { now: Time::ZERO, flight: Bytes(9_600), lost: Bytes::ZERO, sign };
        flow.on_loss(&loss(CongestionSignal::Gap));
        assert_window(&*flow, 5.0);
        flow.on_loss(&loss(CongestionSignal::Timeout));
        assert_window(&*flow, 1.0);
    }
}

//! Paced first flight: many packets spread over the first RTT, in place of TCP's initial window.
//!
//! Common part of Quick-Start (RFC 4782) and Jump Start ([jumpstart07]). The flight is paced until its first
//! ACK arrives. Its ACKs do not increase the window, which then continues as TCP's.

use super::window::{self, Window, WindowController, WindowLaw};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::{Header, Kind};
use crate::transport::{
    Ack, Allowance, CongestionSignal, Controller, Loss, Mechanism, Opened, OutgoingPacket,
    PacingPolicy, Path, Reliability,
};

/// Parameters of a flow's paced first flight.
#[derive(Clone, Debug)]
pub struct PacedStart {
    /// Size limit.
    pub size: FlightSize,
    /// Reaction to a loss in the flight.
    pub after_loss: AfterLoss,
}

/// Size limit of a first flight. The sender's line rate times the RTT is a further limit.
#[derive(Clone, Copy, Debug)]
pub enum FlightSize {
    /// Number of packets.
    Packets(f64),
    /// The approved rate times the RTT. Routers write the rate, as a code, into the SYN.
    Approved {
        /// Header of the SYN with the requested rate.
        request: Header,
        /// Decodes a rate; none if the code does not stand for a rate.
        rate: fn(f32) -> Option<Rate>,
    },
}

/// Window after losses in a first flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterLoss {
    /// The initial window, in slow start, as without the flight.
    Initial,
    /// The same, with an ssthresh of at most half of the packets that arrived at first.
    InitialWithSsthresh,
    /// Half of the packets that arrived at first, after loss recovery.
    HalfOfArrived,
}

/// Returns the mechanism of a TCP with a paced first flight.
pub fn mechanism(reliability: &Reliability, ecn: bool) -> Mechanism {
    Mechanism { pacing: Some(PacingPolicy::PER_PACKET), ..window::mechanism(reliability, ecn) }
}

/// Returns a controller that sends a paced first flight and then follows `law`.
pub fn controller(
    window: &Window,
    law: impl WindowLaw + 'static,
    flight: PacedStart,
    path: &Path,
) -> Box<dyn Controller> {
    Box::new(StartController {
        flight,
        packet_bytes: path.format.payload + path.format.header,
        line_rate: path.line_rate,
        initial_window: f64::from(window.initial),
        max_window: window.max.map_or(f64::INFINITY, f64::from),
        current: None,
        window: WindowController::new(window, law, path),
    })
}

/// State of one flow; windows in packets.
struct StartController<L> {
    flight: PacedStart,
    /// Size of a full packet on the link, and the line rate of the sender.
    packet_bytes: Bytes,
    line_rate: Rate,
    initial_window: f64,
    max_window: f64,
    /// Flight in progress.
    current: Option<Flight>,
    window: WindowController<L>,
}

/// A first flight in progress.
#[derive(Clone, Copy, Debug)]
struct Flight {
    packets: f64,
    /// Pacing rate, until the first ACK arrives.
    rate: Option<Rate>,
    /// Packets sent, retransmissions included.
    sent: u32,
    has_loss: bool,
}

impl<L: WindowLaw> StartController<L> {
    /// Begins the flight if it is larger than the initial window.
    fn begin_flight(&mut self, opened: &Opened) {
        let rtt = opened.rtt.max(Duration(1)).seconds();
        let packets_per_rtt = |rate: Rate| rate.bps() * rtt / self.packet_bytes.bits();
        let packets = match self.flight.size {
            FlightSize::Packets(packets) => packets,
            FlightSize::Approved { rate, .. } => rate(opened.feedback).map_or(0.0, packets_per_rtt),
        };
        let packets = packets.min(packets_per_rtt(self.line_rate)).min(self.max_window);
        if packets > self.initial_window {
            let rate = Rate::from_bps(packets * self.packet_bytes.bits() / rtt).min(self.line_rate);
            self.current = Some(Flight { packets, rate: Some(rate), sent: 0, has_loss: false });
            self.window.set_window(packets);
        }
    }

    /// Handles an ACK of the flight. Returns false for any other ACK.
    fn handle_ack(&mut self, ack: &Ack) -> bool {
        let Some(flight) = &mut self.current else { return false };
        flight.rate = None;
        if f64::from(ack.cumulative) < flight.packets || ack.is_recovering {
            return true;
        }
        if flight.has_loss {
            let retransmitted = f64::from(flight.sent) - f64::from(ack.next);
            let half = ((flight.packets.floor() - retransmitted) / 2.0).max(2.0);
            match self.flight.after_loss {
                AfterLoss::InitialWithSsthresh => self.window.limit_ssthresh(half),
                AfterLoss::Initial | AfterLoss::HalfOfArrived => {
                    self.window.end_slow_start_at(half);
                }
            }
        }
        self.current = None;
        true
    }

    /// Handles a loss in the flight. Returns true if the window law must not handle it.
    fn handle_loss(&mut self, signal: CongestionSignal) -> bool {
        let Some(flight) = &mut self.current else { return false };
        flight.rate = None;
        let is_loss = signal == CongestionSignal::DetectedLoss;
        match self.flight.after_loss {
            _ if signal == CongestionSignal::Timeout => {
                self.current = None;
                false
            }
            AfterLoss::Initial => {
                self.current = None;
                self.window.set_window(self.initial_window);
                true
            }
            AfterLoss::InitialWithSsthresh => {
                // All marked packets arrive.
                flight.has_loss = is_loss;
                if !is_loss {
                    self.window.limit_ssthresh(flight.packets / 2.0);
                    self.current = None;
                }
                self.window.set_window(self.initial_window);
                true
            }
            AfterLoss::HalfOfArrived => {
                flight.has_loss = is_loss;
                false
            }
        }
    }
}

impl<L: WindowLaw> Controller for StartController<L> {
    fn on_open(&mut self, opened: &Opened) {
        self.window.on_open(opened);
        if !opened.syn_was_lost {
            self.begin_flight(opened);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if !self.handle_ack(ack) {
            self.window.on_ack(ack);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if !self.handle_loss(loss.signal) {
            self.window.on_loss(loss);
        }
    }

    fn save_state(&mut self, now: Time) {
        self.window.save_state(now);
    }

    fn on_spurious_loss(&mut self, now: Time) {
        self.window.on_spurious_loss(now);
    }

    fn on_sent(&mut self, _now: Time, _bytes: Bytes) -> Option<Allowance> {
        if let Some(flight) = &mut self.current {
            flight.sent += 1;
        }
        Some(self.allowance())
    }

    fn allowance(&self) -> Allowance {
        let rate = self.current.and_then(|flight| flight.rate);
        Allowance { rate, ..self.window.allowance() }
    }

    fn header(&self, leaving: &OutgoingPacket) -> Header {
        match self.flight.size {
            FlightSize::Approved { request, .. } if leaving.kind == Kind::Syn => request,
            FlightSize::Approved { .. } | FlightSize::Packets(_) => Header::NONE,
        }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.window.gauges()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::transport::controllers::tcp::Reno;
    use crate::transport::fixture::{ack, loss, path};

    fn assert_window(flow: &dyn Controller, packets: f64) {
        let window = flow.gauges()[0].1 / 960.0;
        assert!((window - packets).abs() < 1e-9, "{window} is not {packets}");
    }

    fn lose(flow: &mut dyn Controller) {
        flow.on_loss(&loss(CongestionSignal::DetectedLoss, Bytes(960 * 40)));
    }

    /// Flow with a first flight of 40 packets of 1000 B over 1 ms.
    fn flow_with_flight(after_loss: AfterLoss) -> Box<dyn Controller> {
        let flight = PacedStart { size: FlightSize::Packets(40.0), after_loss };
        let mut flow = controller(&defaults(), Reno, flight, &path());
        let (now, rtt) = (Time::ZERO, Duration::from_millis(1));
        flow.on_open(&Opened { now, rtt, feedback: 0.0, syn_was_lost: false });
        assert_window(&*flow, 40.0);
        assert_eq!(flow.allowance().rate, Some(Rate(40 * 8_000_000)));
        for _ in 0..40 {
            flow.on_sent(Time::ZERO, Bytes(1000));
        }
        flow
    }

    #[test]
    fn the_flight_is_paced_until_its_first_ack_and_its_acks_do_not_increase_the_window() {
        let mut flow = flow_with_flight(AfterLoss::HalfOfArrived);
        for cumulative in 1..=40 {
            flow.on_ack(&ack(cumulative, 40));
            assert_eq!(flow.allowance().rate, None);
            assert_window(&*flow, 40.0);
        }
        flow.on_ack(&ack(41, 80));
        assert_window(&*flow, 41.0);
    }

    #[test]
    fn a_loss_leaves_the_initial_window_or_half_of_what_arrived() {
        let mut flow = flow_with_flight(AfterLoss::Initial);
        lose(&mut *flow);
        assert_window(&*flow, 10.0);
        assert_eq!(flow.allowance().rate, None);
        let mut flow = flow_with_flight(AfterLoss::InitialWithSsthresh);
        lose(&mut *flow);
        assert_window(&*flow, 10.0);
        // One retransmission: 39 of 40 arrived, so slow start ends at 19.5 packets.
        flow.on_sent(Time::ZERO, Bytes(1000));
        flow.on_ack(&ack(40, 40));
        assert_window(&*flow, 10.0);
        (41..60).for_each(|cumulative| flow.on_ack(&ack(cumulative, 80)));
        let window = flow.gauges()[0].1 / 960.0;
        assert!((20.0..21.0).contains(&window), "{window}");
        let mut flow = flow_with_flight(AfterLoss::HalfOfArrived);
        lose(&mut *flow);
        assert_window(&*flow, 20.0);
        for _ in 0..28 {
            flow.on_sent(Time::ZERO, Bytes(1000));
        }
        flow.on_ack(&Ack { is_recovering: true, ..ack(20, 44) });
        assert_window(&*flow, 20.0);
        // Four new packets and 24 retransmissions: 16 of 40 arrived.
        flow.on_ack(&ack(44, 44));
        assert_window(&*flow, 8.0);
    }
}

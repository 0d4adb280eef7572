//! A first flight: many packets evenly over the first round trip in place of TCP's initial window.
//!
//! What Quick-Start (RFC 4782) and `JumpStart` ([jumpstart07]) have in common: the flight is paced until its
//! first ACK comes, its ACKs let nothing grow, and then the window goes on as TCP's.

use super::window::{self, Controlled, Law, Window};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::packet::{Header, Kind};
use crate::transport::{
    Ack, Allowance, CongestionSignal, Controller, Loss, Mechanism, Opened, OutgoingPacket, Path,
    Reliability,
};

/// What a flow's first flight is to be.
#[derive(Clone, Debug)]
pub struct PacedStart {
    /// How large it may be.
    pub size: Size,
    /// What follows if some of it is lost.
    pub after_loss: AfterLoss,
}

/// How large a first flight may be; never more than the sender's line carries in a round trip.
#[derive(Clone, Copy, Debug)]
pub enum Size {
    /// So many packets.
    Packets(f64),
    /// What a rate, by its number as routers have written it into the SYN, carries in a round trip.
    Approved {
        /// What the SYN asks for.
        request: Header,
        /// The rate that a number means, if it means one.
        rate: fn(f32) -> Option<Rate>,
    },
}

/// The window after losses in a first flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterLoss {
    /// As if there had been no such flight: the initial window, in slow start.
    Initial,
    /// When all is repaired, half of the packets that came through at first.
    HalfOfArrived,
}

/// The mechanism of a TCP with a first flight.
pub fn mechanism(reliability: &Reliability, ecn: bool) -> Mechanism {
    Mechanism { burst: Some(1), ..window::mechanism(reliability, ecn) }
}

/// The window of one flow that has a first flight and then grows by `law`.
pub fn controller(
    window: &Window,
    law: impl Law + 'static,
    flight: PacedStart,
    path: &Path,
) -> Box<dyn Controller> {
    Box::new(Starter {
        flight,
        on_wire: path.format.payload + path.format.header,
        line: path.line_rate,
        initial: f64::from(window.initial),
        most: window.max.map_or(f64::INFINITY, f64::from),
        flying: None,
        window: Controlled::new(window, law, path),
    })
}

/// The state of one flow; windows in packets.
struct Starter<L> {
    flight: PacedStart,
    /// A packet on the wire, and the rate at which it leaves the sender.
    on_wire: Bytes,
    line: Rate,
    initial: f64,
    most: f64,
    /// While the flight is under way.
    flying: Option<Flying>,
    window: Controlled<L>,
}

/// A first flight that is under way.
#[derive(Clone, Copy, Debug)]
struct Flying {
    packets: f64,
    /// Until the first ACK comes.
    rate: Option<Rate>,
    /// Packets sent, copies and all.
    sent: u32,
    was_hit: bool,
}

impl<L: Law> Starter<L> {
    /// Begins the flight, if it is more than the initial window.
    fn take_off(&mut self, opened: &Opened) {
        let rtt = opened.rtt.max(Duration(1)).seconds();
        let in_round_trip = |rate: Rate| rate.bps() * rtt / self.on_wire.bits();
        let packets = match self.flight.size {
            Size::Packets(packets) => packets,
            Size::Approved { rate, .. } => rate(opened.feedback).map_or(0.0, in_round_trip),
        };
        let packets = packets.min(in_round_trip(self.line)).min(self.most);
        if packets > self.initial {
            let rate = Rate::from_bps(packets * self.on_wire.bits() / rtt).min(self.line);
            self.flying = Some(Flying { packets, rate: Some(rate), sent: 0, was_hit: false });
            self.window.set(packets);
        }
    }

    /// Whether an ACK is one of the flight.
    fn is_flying(&mut self, ack: &Ack) -> bool {
        let Some(flying) = &mut self.flying else { return false };
        flying.rate = None;
        if f64::from(ack.cumulative) < flying.packets || ack.is_recovering {
            return true;
        }
        if flying.was_hit {
            let copies = f64::from(flying.sent) - f64::from(ack.next);
            let arrived = flying.packets.floor() - copies;
            self.window.settle((arrived / 2.0).max(2.0));
        }
        self.flying = None;
        true
    }

    /// Takes a loss in; says whether it needs no other answer.
    fn crashes(&mut self, sign: CongestionSignal) -> bool {
        let Some(flying) = &mut self.flying else { return false };
        flying.rate = None;
        match (self.flight.after_loss, sign) {
            (AfterLoss::Initial, CongestionSignal::Gap | CongestionSignal::Mark) => {
                self.flying = None;
                self.window.set(self.initial);
                true
            }
            (AfterLoss::HalfOfArrived, CongestionSignal::Gap | CongestionSignal::Mark) => {
                flying.was_hit = sign == CongestionSignal::Gap;
                false
            }
            (AfterLoss::Initial | AfterLoss::HalfOfArrived, CongestionSignal::Timeout) => {
                self.flying = None;
                false
            }
        }
    }
}

impl<L: Law> Controller for Starter<L> {
    fn on_open(&mut self, opened: &Opened) {
        self.window.on_open(opened);
        if !opened.syn_was_lost {
            self.take_off(opened);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if !self.is_flying(ack) {
            self.window.on_ack(ack);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if !self.crashes(loss.sign) {
            self.window.on_loss(loss);
        }
    }

    fn save_state(&mut self, now: Time) {
        self.window.save_state(now);
    }

    fn on_spurious_loss(&mut self, now: Time) {
        self.window.on_spurious_loss(now);
    }

    fn on_sent(&mut self, _now: Time, _bytes: Bytes) {
        if let Some(flying) = &mut self.flying {
            flying.sent += 1;
        }
    }

    fn allowance(&self) -> Allowance {
        let rate = self.flying.and_then(|flying| flying.rate);
        Allowance { rate, ..self.window.allowance() }
    }

    fn header(&self, leaving: &OutgoingPacket) -> Header {
        match self.flight.size {
            Size::Approved { request, .. } if leaving.kind == Kind::Syn => request,
            Size::Approved { .. } | Size::Packets(_) => Header::NONE,
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
    use crate::transport::fixture::{ack, path};

    fn assert_window(flow: &dyn Controller, packets: f64) {
        let window = flow.gauges()[0].1 / 960.0;
        assert!((window - packets).abs() < 1e-9, "{window} is not {packets}");
    }

    fn lose(flow: &mut dyn Controller) {
        flow.on_loss(&Loss {
            now: Time::ZERO,
            flight: Bytes(960 * 40),
            lost: Bytes::ZERO,
            sign: CongestionSignal::Gap,
        });
    }

    /// A flow with a first flight of 40 packets of 1000 B, which take 1 ms.
    fn flying(after_loss: AfterLoss) -> Box<dyn Controller> {
        let first = PacedStart { size: Size::Packets(40.0), after_loss };
        let mut flow = controller(&defaults(), Reno, first, &path());
        let (now, rtt) = (Time::ZERO, Duration::from_millis(1));
        flow.on_open(&Opened { now, rtt, feedback: 0.0, syn_was_lost: false });
        assert_window(&*flow, 40.0);
        assert_eq!(flow.allowance().rate, Some(Rate(40 * 8_000_000)));
        (0..40).for_each(|_| flow.on_sent(Time::ZERO, Bytes(1000)));
        flow
    }

    #[test]
    fn it_is_paced_until_an_ack_comes_and_its_acks_let_nothing_grow() {
        let mut flow = flying(AfterLoss::HalfOfArrived);
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
        let mut flow = flying(AfterLoss::Initial);
        lose(&mut *flow);
        assert_window(&*flow, 10.0);
        assert_eq!(flow.allowance().rate, None);
        let mut flow = flying(AfterLoss::HalfOfArrived);
        lose(&mut *flow);
        assert_window(&*flow, 20.0);
        (0..28).for_each(|_| flow.on_sent(Time::ZERO, Bytes(1000)));
        flow.on_ack(&Ack { is_recovering: true, ..ack(20, 44) });
        assert_window(&*flow, 20.0);
        // Four new packets and 24 copies: 16 of 40 came through.
        flow.on_ack(&ack(44, 44));
        assert_window(&*flow, 8.0);
    }
}

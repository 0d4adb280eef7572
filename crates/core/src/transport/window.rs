//! A congestion window as TCP keeps it: slow start, then a law of its own.
//!
//! Sources: RFC 5681 §3.1, RFC 3742 (limited slow start), RFC 9406 (HyStart++, in `hystart`). What
//! distinguishes one TCP from another is its [`Law`].

use super::hystart::HyStart;
use super::{
    Ack, Allowance, Controller, Feedback, Leaving, Loss, Mechanism, Opened, Path, Reliability, Sign,
};
use crate::packet::{Header, Kind};
use crate::parameters::{fraction_if_given, positive, positive_if_given};
use crate::units::{Bytes, Duration, Rate, Time};

crate::parameters! {
    /// How a congestion window begins, grows in slow start and is bounded.
    pub struct Window {
        /// Initial window, in packets (RFC 6928: 10); one packet after a lost SYN (RFC 5681 §3.1).
        pub initial: u32 = 10, where positive;
        /// Window at which the first slow start ends, in packets; none for no bound.
        pub initial_ssthresh: Option<u32> = None, where positive_if_given;
        /// Most that the window may be, in packets; none for no bound.
        pub max: Option<u32> = None, where positive_if_given;
        /// Above this window, in packets, slow start grows by no more than half of it a round trip
        /// (RFC 3742 suggests 100); none for no such limit.
        pub max_ssthresh: Option<u32> = None, where positive_if_given;
        /// How many packets an ACK counts for at most, however many it acknowledges (RFC 5681: 1; RFC
        /// 3465: 2).
        pub count_limit: u32 = 1, where positive;
        /// Share of the window that a loss or mark in slow start takes; none leaves it to the law. RFC 3649
        /// and RFC 9438 make no difference; ns-2 has TCP's 0.5 for all.
        pub slow_start_decrease: Option<f64> = None, where fraction_if_given;
        /// Whether the first slow start ends when round-trip times grow (HyStart++, RFC 9406).
        pub hystart: bool = false;
    }
}

/// What distinguishes one TCP from another: the window in congestion avoidance. Windows are in packets.
pub trait Law: Send {
    /// An ACK has come, whatever it acknowledges.
    fn on_ack(&mut self, _ack: &Ack) {}

    /// What slow start does when `acked` packets have been acknowledged.
    fn slow_start(&mut self, _window: f64, acked: f64, _ack: &Ack) -> SlowStart {
        SlowStart::Grows(acked)
    }

    /// The window after `acked` packets have been acknowledged in congestion avoidance; if it is smaller,
    /// congestion avoidance goes on from there.
    fn increase(&mut self, window: f64, acked: f64, ack: &Ack) -> f64;

    /// The window after a loss or a mark. A time-out makes it the next slow start's end instead.
    fn decrease(&mut self, window: f64, loss: &Loss) -> f64;

    /// Numbers for traces, besides the window.
    fn gauges(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// What slow start does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SlowStart {
    /// The window grows by so much.
    Grows(f64),
    /// It is over, and leaves this window.
    Ends(f64),
}

/// A first flight of many packets, which leave evenly over a round trip in place of the initial window.
#[derive(Clone, Debug)]
pub struct FirstFlight {
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

/// The mechanism of a TCP with a first flight.
pub fn paced_mechanism(reliability: &Reliability, ecn: bool) -> Mechanism {
    Mechanism { burst: Some(1), ..mechanism(reliability, ecn) }
}

/// The mechanism of a TCP.
pub fn mechanism(reliability: &Reliability, ecn: bool) -> Mechanism {
    Mechanism {
        ecn_capable: ecn,
        feedback: Feedback::EchoUntilReduced,
        ..Mechanism::plain(reliability)
    }
}

/// The window of one flow that grows by `law`.
pub fn controller(window: &Window, law: impl Law + 'static, path: &Path) -> Box<dyn Controller> {
    open(window, law, None, path)
}

/// The window of one flow that has a first flight and then grows by `law`.
pub fn controller_with_flight(
    window: &Window,
    law: impl Law + 'static,
    flight: FirstFlight,
    path: &Path,
) -> Box<dyn Controller> {
    open(window, law, Some(flight), path)
}

fn open(
    window: &Window,
    law: impl Law + 'static,
    flight: Option<FirstFlight>,
    path: &Path,
) -> Box<dyn Controller> {
    let packets = |count: Option<u32>| count.map_or(f64::INFINITY, f64::from);
    Box::new(Controlled {
        law,
        packet: path.format.payload.0 as f64,
        on_wire: path.format.payload + path.format.header,
        line: path.line_rate,
        initial: f64::from(window.initial),
        flight,
        flying: None,
        window: f64::from(window.initial),
        ssthresh: packets(window.initial_ssthresh),
        most: packets(window.max),
        max_ssthresh: packets(window.max_ssthresh),
        count_limit: window.count_limit,
        slow_start_decrease: window.slow_start_decrease,
        hystart: window.hystart.then(HyStart::default),
        timed_out: false,
    })
}

struct Controlled<L> {
    law: L,
    /// Payload of a packet.
    packet: f64,
    /// A packet on the wire, and the rate at which it leaves the sender.
    on_wire: Bytes,
    line: Rate,
    initial: f64,
    flight: Option<FirstFlight>,
    flying: Option<Flying>,
    window: f64,
    ssthresh: f64,
    most: f64,
    max_ssthresh: f64,
    count_limit: u32,
    slow_start_decrease: Option<f64>,
    /// Until the first slow start is over.
    hystart: Option<HyStart>,
    /// Nothing has been acknowledged since a time-out.
    timed_out: bool,
}

impl<L: Law> Controller for Controlled<L> {
    fn on_open(&mut self, opened: &Opened) {
        if opened.syn_was_lost {
            self.window = 1.0;
        } else {
            self.take_off(opened);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.law.on_ack(ack);
        if self.is_flying(ack) {
            return;
        }
        let acked = f64::from(ack.advanced.min(self.count_limit));
        if acked == 0.0 {
            return;
        }
        self.timed_out = false;
        // RFC 3168 §6.1.2: what tells of a mark lets nothing grow.
        if ack.is_recovering || ack.marked {
            return;
        }
        let is_in_slow_start = self.window < self.ssthresh;
        self.window = if is_in_slow_start {
            self.slow_start(acked, ack)
        } else {
            self.law.increase(self.window, acked, ack)
        };
        self.window = self.window.min(self.most);
        if !is_in_slow_start {
            self.ssthresh = self.ssthresh.min(self.window);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.hystart = None;
        if self.crashes(loss.sign) {
            return;
        }
        // RFC 5681 §3.1: when the same segment times out again, `ssthresh` is held.
        if loss.sign == Sign::Timeout && std::mem::replace(&mut self.timed_out, true) {
            return;
        }
        // RFC 5681 §3.1 eq. 4 starts from what is in flight, which may be less than the window; but after
        // a time-out what is not acknowledged yet may be far more.
        let window = self.window.min(loss.flight.0 as f64 / self.packet);
        let by_law = self.law.decrease(window, loss);
        let reduced = match self.slow_start_decrease {
            Some(taken) if self.window < self.ssthresh => (1.0 - taken) * window,
            _ => by_law,
        };
        self.ssthresh = reduced.max(2.0);
        self.window = match loss.sign {
            Sign::Gap => self.ssthresh,
            Sign::Mark => reduced.max(1.0),
            Sign::Timeout => 1.0,
        };
    }

    fn on_sent(&mut self, _now: Time, _bytes: Bytes) {
        if let Some(flying) = &mut self.flying {
            flying.sent += 1;
        }
    }

    fn allowance(&self) -> Allowance {
        // A packet that fits but for rounding fits.
        let rate = self.flying.and_then(|flying| flying.rate);
        Allowance { rate, ..Allowance::window(self.window * self.packet + 0.5) }
    }

    fn header(&self, leaving: &Leaving) -> Header {
        match self.flight {
            Some(FirstFlight { size: Size::Approved { request, .. }, .. })
                if leaving.kind == Kind::Syn =>
            {
                request
            }
            _ => Header::NONE,
        }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let mut gauges = vec![("window_bytes", self.window * self.packet)];
        gauges.extend(self.law.gauges());
        gauges
    }
}

impl<L: Law> Controlled<L> {
    /// Begins the first flight, if there is to be one and it is more than the initial window.
    fn take_off(&mut self, opened: &Opened) {
        let Some(flight) = &self.flight else { return };
        let rtt = opened.rtt.max(Duration(1)).seconds();
        let in_round_trip = |rate: Rate| rate.bps() * rtt / self.on_wire.bits();
        let packets = match flight.size {
            Size::Packets(packets) => packets,
            Size::Approved { rate, .. } => rate(opened.feedback).map_or(0.0, in_round_trip),
        };
        let packets = packets.min(in_round_trip(self.line)).min(self.most);
        if packets > self.initial {
            let rate = Rate::from_bps(packets * self.on_wire.bits() / rtt).min(self.line);
            self.flying = Some(Flying { packets, rate: Some(rate), sent: 0, was_hit: false });
            self.window = packets;
        }
    }

    /// Whether an ACK is one of the first flight, for which nothing grows.
    fn is_flying(&mut self, ack: &Ack) -> bool {
        let Some(flying) = &mut self.flying else { return false };
        flying.rate = None;
        if f64::from(ack.cumulative) < flying.packets || ack.is_recovering {
            return true;
        }
        if flying.was_hit {
            let copies = f64::from(flying.sent) - f64::from(ack.next);
            let arrived = flying.packets.floor() - copies;
            self.ssthresh = (arrived / 2.0).max(2.0);
            self.window = self.ssthresh;
        }
        self.flying = None;
        true
    }

    /// Takes a loss in the first flight in; says whether the window needs no other answer.
    fn crashes(&mut self, sign: Sign) -> bool {
        let (Some(flight), Some(flying)) = (&self.flight, &mut self.flying) else { return false };
        flying.rate = None;
        match (flight.after_loss, sign) {
            (AfterLoss::Initial, Sign::Gap | Sign::Mark) => {
                self.flying = None;
                self.window = self.initial;
                true
            }
            (AfterLoss::HalfOfArrived, Sign::Gap | Sign::Mark) => {
                flying.was_hit = sign == Sign::Gap;
                false
            }
            (AfterLoss::Initial | AfterLoss::HalfOfArrived, Sign::Timeout) => {
                self.flying = None;
                false
            }
        }
    }

    fn slow_start(&mut self, acked: f64, ack: &Ack) -> f64 {
        let acked = match self.law.slow_start(self.window, acked, ack) {
            SlowStart::Grows(packets) => packets,
            SlowStart::Ends(window) => {
                self.hystart = None;
                self.ssthresh = window;
                return window;
            }
        };
        let slowed = match &mut self.hystart {
            None => acked,
            Some(hystart) => hystart.growth(acked, ack),
        };
        if self.hystart.as_ref().is_some_and(HyStart::is_over) {
            self.hystart = None;
            self.ssthresh = self.window;
        }
        // RFC 3742 §2.
        let steps = (self.window / (0.5 * self.max_ssthresh)).floor().max(1.0);
        self.window + slowed / steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Format;
    use crate::parameters::defaults;

    /// A law that shows when it is asked: ten packets more an ACK, and a quarter is left by a loss.
    struct Plain;

    impl Law for Plain {
        fn increase(&mut self, window: f64, acked: f64, _ack: &Ack) -> f64 {
            window + 10.0 * acked
        }

        fn decrease(&mut self, window: f64, _loss: &Loss) -> f64 {
            window / 4.0
        }
    }

    fn flow(window: &Window) -> Box<dyn Controller> {
        let format = Format { payload: Bytes(1000), header: Bytes(40), ack: Bytes(40) };
        let (line_rate, base_rtt) = (Rate::from_gbps(1), Duration::from_millis(100));
        let path = Path::new(line_rate, base_rtt, format);
        controller(window, Plain, &path)
    }

    fn plain() -> Window {
        defaults()
    }

    fn ack(advanced: u32) -> Ack {
        Ack {
            now: Time::ZERO,
            bytes: Bytes(1000),
            advanced,
            rtt: Duration::from_millis(100),
            marked: false,
            feedback: 0.0,
            sent_at: Time::ZERO,
            is_of_probe: false,
            cumulative: 1,
            next: 100,
            is_recovering: false,
            lost: 0,
            in_flight: Bytes::ZERO,
        }
    }

    fn loss(sign: Sign, packets: u64) -> Loss {
        Loss { now: Time::ZERO, flight: Bytes(1000 * packets), sign }
    }

    fn assert_window(flow: &dyn Controller, packets: f64) {
        let window = flow.gauges()[0].1 / 1000.0;
        assert!((window - packets).abs() < 1e-9, "{window} is not {packets}");
        // What is allowed is whole packets.
        assert_eq!(flow.allowance().window.0 / 1000, packets as u64);
    }

    #[test]
    fn slow_start_counts_acks_up_to_its_limit_and_ends_at_ssthresh() {
        for (count_limit, grown) in [(1, 11.0), (2, 12.0), (9, 13.0)] {
            let mut flow = flow(&Window { count_limit, ..plain() });
            flow.on_ack(&ack(0));
            assert_window(&*flow, 10.0);
            flow.on_ack(&ack(3));
            assert_window(&*flow, grown);
        }
        let mut flow = flow(&Window { initial_ssthresh: Some(11), max: Some(30), ..plain() });
        for packets in [11.0, 21.0, 30.0, 30.0] {
            flow.on_ack(&ack(1));
            assert_window(&*flow, packets);
        }
    }

    #[test]
    fn limited_slow_start_grows_by_half_its_threshold_a_round_trip() {
        // RFC 3742 §2: above 100 packets at most 50 a round trip, in steps.
        let mut flow = flow(&Window { initial: 100, max_ssthresh: Some(100), ..plain() });
        (0..100).for_each(|_| flow.on_ack(&ack(1)));
        assert_window(&*flow, 150.0);
        (0..150).for_each(|_| flow.on_ack(&ack(1)));
        assert_window(&*flow, 200.0);
        (0..200).for_each(|_| flow.on_ack(&ack(1)));
        assert_window(&*flow, 250.0);
    }

    #[test]
    fn nothing_grows_while_a_gap_is_repaired_or_a_mark_is_told() {
        let mut flow = flow(&plain());
        flow.on_ack(&Ack { is_recovering: true, ..ack(1) });
        flow.on_ack(&Ack { marked: true, ..ack(1) });
        assert_window(&*flow, 10.0);
    }

    #[test]
    fn a_loss_starts_from_what_is_in_flight_and_leaves_two_packets_at_least() {
        for (sign, in_flight, left) in [
            (Sign::Gap, 100, 10.0),
            (Sign::Gap, 16, 4.0),
            (Sign::Gap, 2, 2.0),
            (Sign::Mark, 16, 4.0),
            (Sign::Mark, 2, 1.0),
            (Sign::Timeout, 100, 1.0),
        ] {
            let mut flow = flow(&Window { initial: 40, ..plain() });
            flow.on_loss(&loss(sign, in_flight));
            assert_window(&*flow, left);
        }
    }

    #[test]
    fn after_a_time_out_slow_start_ends_where_the_law_says() {
        let mut flow = flow(&Window { initial: 12, ..plain() });
        // Three quarters are gone; the second time, for the same segment, changes nothing.
        flow.on_loss(&loss(Sign::Timeout, 12));
        flow.on_loss(&loss(Sign::Timeout, 12));
        for packets in [2.0, 3.0, 13.0] {
            flow.on_ack(&ack(1));
            assert_window(&*flow, packets);
        }
        flow.on_loss(&loss(Sign::Timeout, 13));
        flow.on_ack(&ack(1));
        flow.on_ack(&ack(1));
        assert_window(&*flow, 3.0);
    }

    #[test]
    fn a_lost_syn_leaves_one_packet() {
        let mut flow = flow(&plain());
        let (now, rtt) = (Time::ZERO, Duration::from_millis(100));
        flow.on_open(&Opened { now, rtt, feedback: 0.0, syn_was_lost: true });
        assert_window(&*flow, 1.0);
    }

    /// A flow with a first flight of 40 packets of 1040 B, which take 100 ms.
    fn flying(after_loss: AfterLoss) -> Box<dyn Controller> {
        let format = Format { payload: Bytes(1000), header: Bytes(40), ack: Bytes(40) };
        let path = Path::new(Rate::from_gbps(1), Duration::from_millis(100), format);
        let first = FirstFlight { size: Size::Packets(40.0), after_loss };
        let mut flow = controller_with_flight(&plain(), Plain, first, &path);
        let (now, rtt) = (Time::ZERO, Duration::from_millis(100));
        flow.on_open(&Opened { now, rtt, feedback: 0.0, syn_was_lost: false });
        assert_window(&*flow, 40.0);
        assert_eq!(flow.allowance().rate, Some(Rate(40 * 1040 * 80)));
        (0..40).for_each(|_| flow.on_sent(Time::ZERO, Bytes(1040)));
        flow
    }

    #[test]
    fn a_first_flight_is_paced_until_an_ack_comes_and_its_acks_let_nothing_grow() {
        let mut flow = flying(AfterLoss::HalfOfArrived);
        for cumulative in 1..=40 {
            flow.on_ack(&Ack { cumulative, next: 40, ..ack(1) });
            assert_eq!(flow.allowance().rate, None);
            assert_window(&*flow, 40.0);
        }
        flow.on_ack(&Ack { cumulative: 41, ..ack(1) });
        assert_window(&*flow, 41.0);
    }

    #[test]
    fn a_loss_in_a_first_flight_leaves_the_initial_window_or_half_of_what_arrived() {
        let mut flow = flying(AfterLoss::Initial);
        flow.on_loss(&loss(Sign::Gap, 40));
        assert_window(&*flow, 10.0);
        assert_eq!(flow.allowance().rate, None);
        let mut flow = flying(AfterLoss::HalfOfArrived);
        flow.on_loss(&loss(Sign::Gap, 40));
        assert_window(&*flow, 10.0);
        (0..28).for_each(|_| flow.on_sent(Time::ZERO, Bytes(1040)));
        flow.on_ack(&Ack { cumulative: 20, next: 44, is_recovering: true, ..ack(1) });
        assert_window(&*flow, 10.0);
        // Four new packets and 24 copies: 16 of 40 came through.
        flow.on_ack(&Ack { cumulative: 44, next: 44, ..ack(1) });
        assert_window(&*flow, 8.0);
    }
}

//! A congestion window as TCP keeps it: slow start, then a law of its own.
//!
//! Sources: RFC 5681 §3.1, RFC 3742 (limited slow start), RFC 9406 (HyStart++, in `hystart`). What
//! distinguishes one TCP from another is its [`Law`].

use super::hystart::{self, HyStart};
use crate::base::schema::{fraction_if_given, positive, positive_if_given};
use crate::base::units::Time;
use crate::transport::recovery::spurious::Before;
use crate::transport::{
    Ack, Allowance, CongestionSignal, Controller, Feedback, Loss, Mechanism, Opened, Path,
    Reliability,
};

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
        /// How many packets an ACK in order counts for at most, however many it tells of for the first time
        /// (RFC 5681: 1; RFC 3465: 2; Linux: all).
        pub count_limit: u32 = 1, where positive;
        /// Share of the window that a loss or mark in slow start takes; none leaves it to the law. RFC 3649
        /// and RFC 9438 make no difference; ns-2 has TCP's 0.5 for all.
        pub slow_start_decrease: Option<f64> = None, where fraction_if_given;
        /// What ends slow start before a loss: `plus_plus` (RFC 9406), or what Linux's CUBIC has; none waits
        /// for the loss.
        pub hystart: Option<hystart::Kind> = None;
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

/// The mechanism of a TCP.
pub fn mechanism(reliability: &Reliability, ecn: bool) -> Mechanism {
    Mechanism {
        ecn_capable: ecn,
        feedback: if reliability.accurate_ecn {
            Feedback::Count
        } else {
            Feedback::EchoUntilReduced
        },
        shrinks_in_proportion: reliability.proportional_reduction,
        ..Mechanism::plain(reliability)
    }
}

/// The window of one flow that grows by `law`.
pub fn controller(window: &Window, law: impl Law + 'static, path: &Path) -> Box<dyn Controller> {
    Box::new(Controlled::new(window, law, path))
}

/// The window of one flow.
pub struct Controlled<L> {
    law: L,
    /// Payload of a packet.
    packet: f64,
    window: f64,
    ssthresh: f64,
    most: f64,
    max_ssthresh: f64,
    count_limit: u32,
    slow_start_decrease: Option<f64>,
    /// Watches over slow start. Apart, since most flows have none.
    hystart: Option<Box<HyStart>>,
    /// Nothing has been acknowledged since a time-out.
    timed_out: bool,
    before: Before,
}

impl<L: Law> Controlled<L> {
    /// The window at its start.
    pub fn new(window: &Window, law: L, path: &Path) -> Self {
        let packets = |count: Option<u32>| count.map_or(f64::INFINITY, f64::from);
        Self {
            law,
            packet: path.format.payload.0 as f64,
            window: f64::from(window.initial),
            ssthresh: packets(window.initial_ssthresh),
            most: packets(window.max),
            max_ssthresh: packets(window.max_ssthresh),
            count_limit: window.count_limit,
            slow_start_decrease: window.slow_start_decrease,
            hystart: window.hystart.map(|kind| Box::new(HyStart::new(kind))),
            timed_out: false,
            before: Before::default(),
        }
    }

    /// Sets the window, in packets.
    pub fn set(&mut self, window: f64) {
        self.window = window.min(self.most);
    }

    /// Sets the window, in packets, and ends slow start.
    pub fn settle(&mut self, window: f64) {
        self.set(window);
        self.ssthresh = self.window;
    }
}

impl<L: Law> Controller for Controlled<L> {
    fn on_open(&mut self, opened: &Opened) {
        if opened.syn_was_lost {
            self.window = 1.0;
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.law.on_ack(ack);
        if ack.advanced == 0 {
            return;
        }
        let acked = f64::from(ack.delivered.min(self.count_limit));
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
        self.hystart.take_if(|watch| !watch.on_loss());
        // RFC 5681 §3.1: when the same segment times out again, `ssthresh` is held.
        if loss.sign == CongestionSignal::Timeout && std::mem::replace(&mut self.timed_out, true) {
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
            CongestionSignal::Gap => self.ssthresh,
            CongestionSignal::Mark => reduced.max(1.0),
            CongestionSignal::Timeout => 1.0,
        };
    }

    fn save_state(&mut self, _now: Time) {
        self.before = Before::new(self.window, self.ssthresh);
    }

    fn on_spurious_loss(&mut self, _now: Time) {
        self.before.restore(&mut self.window, &mut self.ssthresh);
        self.timed_out = false;
    }

    fn allowance(&self) -> Allowance {
        // A packet that fits but for rounding fits.
        Allowance::window(self.window * self.packet + 0.5)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let mut gauges = vec![("window_bytes", self.window * self.packet)];
        gauges.extend(self.law.gauges());
        gauges
    }
}

impl<L: Law> Controlled<L> {
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
            Some(hystart) => hystart.growth(self.window, acked, ack),
        };
        if self.hystart.as_deref().is_some_and(HyStart::is_over) {
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
    use crate::base::schema::defaults;
    use crate::base::units::{Bytes, Duration, Rate, Time};
    use crate::model::packet::Format;
    use crate::transport::fixture::ACK;

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
        let format = defaults::<Format>();
        let (line_rate, base_rtt) = (Rate::from_gbps(1), Duration::from_millis(100));
        let path = Path::new(line_rate, base_rtt, format);
        controller(window, Plain, &path)
    }

    fn plain() -> Window {
        defaults()
    }

    fn ack(advanced: u32) -> Ack {
        Ack { advanced, delivered: advanced, rtt: Duration::from_millis(100), next: 100, ..ACK }
    }

    fn loss(sign: CongestionSignal, packets: u64) -> Loss {
        Loss { now: Time::ZERO, flight: Bytes(1000 * packets), lost: Bytes::ZERO, sign }
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
            (CongestionSignal::Gap, 100, 10.0),
            (CongestionSignal::Gap, 16, 4.0),
            (CongestionSignal::Gap, 2, 2.0),
            (CongestionSignal::Mark, 16, 4.0),
            (CongestionSignal::Mark, 2, 1.0),
            (CongestionSignal::Timeout, 100, 1.0),
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
        flow.on_loss(&loss(CongestionSignal::Timeout, 12));
        flow.on_loss(&loss(CongestionSignal::Timeout, 12));
        for packets in [2.0, 3.0, 13.0] {
            flow.on_ack(&ack(1));
            assert_window(&*flow, packets);
        }
        flow.on_loss(&loss(CongestionSignal::Timeout, 13));
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
}

//! TCP's congestion window: slow start (RFC 5681 §3.1), limited slow start (RFC 3742) and HyStart
//! (RFC 9406, in `hystart`), then a window law in congestion avoidance.
//!
//! TCP variants differ only in their [`WindowLaw`].

use super::hystart::{self, HyStart};
use crate::base::schema::{fraction_if_given, positive, positive_if_given};
use crate::base::units::Time;
use crate::transport::recovery::spurious::SavedWindow;
use crate::transport::{
    Ack, AckPolicy, Allowance, CongestionSignal, Controller, Loss, MarkFeedback, Mechanism, Opened,
    Path, Reliability, Restart,
};

crate::parameters! {
    /// Initial congestion window, slow start and maximum window.
    pub struct Window {
        /// Initial window, in packets (RFC 6928: 10); one packet after a lost SYN (RFC 5681 §3.1).
        pub initial: u32 = 10, where positive;
        /// Initial ssthresh, in packets (none: unlimited).
        pub initial_ssthresh: Option<u32> = None, where positive_if_given;
        /// Maximum window, in packets (none: unlimited).
        pub max: Option<u32> = None, where positive_if_given;
        /// Limited slow start: above this window, in packets, slow start adds at most half of this
        /// value per RTT (RFC 3742 suggests 100; none: unlimited).
        pub max_ssthresh: Option<u32> = None, where positive_if_given;
        /// Maximum number of packets that one in-order ACK counts for, of those that it newly
        /// acknowledges (RFC 5681: 1; RFC 3465: 2; Linux: all).
        pub count_limit: u32 = 1, where positive;
        /// Fraction by which a loss or mark in slow start reduces the window (none: as in congestion
        /// avoidance, RFC 3649 and RFC 9438; ns-2: TCP's 0.5 for all).
        pub slow_start_decrease: Option<f64> = None, where fraction_if_given;
        /// Fraction by which a mark in congestion avoidance reduces the window (ABE, RFC 8511: 0.2 for
        /// TCP, 0.15 for CUBIC; none: as a loss).
        pub mark_decrease: Option<f64> = None, where fraction_if_given;
        /// Rule that ends slow start before a loss: `plus_plus` (HyStart++, RFC 9406) or `linux`
        /// (HyStart of Linux's CUBIC). None: only a loss ends it.
        pub hystart: Option<hystart::HyStartVariant> = None;
    }
}

/// Window law of a TCP variant: the window in congestion avoidance. Windows are in packets.
pub trait WindowLaw: Send {
    /// Handles every ACK, before the window changes.
    fn on_ack(&mut self, _ack: &Ack) {}

    /// Handles the end of an idle time of a persistent connection.
    fn on_restart(&mut self, _restart: &Restart) {}

    /// Returns the effect of `acked` newly acknowledged packets in slow start.
    fn slow_start(&mut self, _cwnd: f64, acked: f64, _ack: &Ack) -> SlowStart {
        SlowStart::Grows(acked)
    }

    /// Returns the window after `acked` newly acknowledged packets in congestion avoidance. A smaller window
    /// also lowers ssthresh, so that congestion avoidance continues. A larger one is not used if the
    /// window does not limit the flow.
    fn increase(&mut self, cwnd: f64, acked: f64, ack: &Ack) -> f64;

    /// Returns the window after a loss or mark. After a timeout it is the new ssthresh instead.
    fn decrease(&mut self, cwnd: f64, loss: &Loss) -> f64;

    /// Handles a timeout that does not reduce the window again ([`Loss::is_repeated`]).
    fn on_repeated_timeout(&mut self) {}

    /// Values for traces, besides the window.
    fn gauges(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// Effect of an ACK in slow start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SlowStart {
    /// The window grows by this number of packets.
    Grows(f64),
    /// Slow start ends with this window.
    Ends(f64),
}

/// Returns the mechanism of a TCP.
pub fn mechanism(reliability: &Reliability, ecn: bool) -> Mechanism {
    Mechanism {
        ecn_capable: ecn,
        acks: AckPolicy {
            feedback: if ecn && reliability.accurate_ecn {
                MarkFeedback::AccurateEcn
            } else {
                MarkFeedback::EchoUntilCwr
            },
            ..AckPolicy::default()
        },
        uses_prr: reliability.proportional_reduction,
        ..Mechanism::plain(reliability)
    }
}

/// Returns a controller with a TCP window that follows `law`.
pub fn controller(
    window: &Window,
    law: impl WindowLaw + 'static,
    path: &Path,
) -> Box<dyn Controller> {
    Box::new(WindowController::new(window, law, path))
}

/// TCP's congestion window of one flow, in packets.
pub struct WindowController<L> {
    law: L,
    /// Payload of a packet, in bytes.
    packet: f64,
    cwnd: f64,
    ssthresh: f64,
    initial_window: f64,
    max_window: f64,
    max_ssthresh: f64,
    count_limit: u32,
    slow_start_decrease: Option<f64>,
    mark_decrease: Option<f64>,
    /// Boxed, since most flows do not use HyStart.
    hystart: Option<Box<HyStart>>,
    /// True between a timeout and the next ACK of new data.
    has_timed_out: bool,
    before: SavedWindow,
}

impl<L: WindowLaw> WindowController<L> {
    /// State of a new flow.
    pub fn new(window: &Window, law: L, path: &Path) -> Self {
        let packet = path.format.payload.0 as f64;
        let packets = |count: Option<u32>| count.map_or(f64::INFINITY, f64::from);
        Self {
            law,
            packet,
            cwnd: f64::from(window.initial),
            initial_window: f64::from(window.initial),
            ssthresh: path
                .cached_state
                .ssthresh
                .map_or(packets(window.initial_ssthresh), |bytes| bytes / packet),
            max_window: packets(window.max),
            max_ssthresh: packets(window.max_ssthresh),
            count_limit: window.count_limit,
            slow_start_decrease: window.slow_start_decrease,
            mark_decrease: window.mark_decrease,
            hystart: window.hystart.map(|variant| Box::new(HyStart::new(variant))),
            has_timed_out: false,
            before: SavedWindow::default(),
        }
    }

    /// Sets the window, in packets.
    pub fn set_window(&mut self, cwnd: f64) {
        self.cwnd = cwnd.min(self.max_window);
    }

    /// Lowers ssthresh to this number of packets.
    pub fn limit_ssthresh(&mut self, packets: f64) {
        self.ssthresh = self.ssthresh.min(packets);
    }

    /// Sets the window, in packets, and ends slow start.
    pub fn end_slow_start_at(&mut self, cwnd: f64) {
        self.set_window(cwnd);
        self.ssthresh = self.cwnd;
    }
}

impl<L: WindowLaw> Controller for WindowController<L> {
    fn on_open(&mut self, opened: &Opened) {
        if opened.syn_was_lost {
            self.cwnd = 1.0;
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.law.on_ack(ack);
        if ack.advanced == 0 {
            return;
        }
        let acked = f64::from(ack.delivered.min(self.count_limit));
        self.has_timed_out = false;
        // RFC 3168 §6.1.2: an ACK that echoes a mark does not increase the window.
        if ack.is_recovering || ack.marked {
            return;
        }
        let is_in_slow_start = self.cwnd < self.ssthresh;
        let may_grow = ack.permits_growth(self.cwnd * self.packet, is_in_slow_start);
        let max_window = if may_grow { self.max_window } else { self.max_window.min(self.cwnd) };
        self.cwnd = if is_in_slow_start {
            self.slow_start(acked, ack)
        } else {
            self.law.increase(self.cwnd, acked, ack)
        };
        self.cwnd = self.cwnd.min(max_window);
        if !is_in_slow_start {
            self.ssthresh = self.ssthresh.min(self.cwnd);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.hystart.take_if(|hystart| !hystart.on_loss(loss.signal));
        // RFC 5681 §3.1: ssthresh is held when the same segment times out again.
        if loss.signal == CongestionSignal::Timeout
            && std::mem::replace(&mut self.has_timed_out, true)
        {
            return;
        }
        if loss.is_repeated {
            self.law.on_repeated_timeout();
            self.cwnd = 1.0;
            return;
        }
        // RFC 5681 §3.1 eq. 4 uses FlightSize, which may be less than cwnd. After a timeout FlightSize may
        // be far more.
        let flight = self.cwnd.min(loss.flight.0 as f64 / self.packet);
        let law_window = self.law.decrease(flight, loss);
        let decrease = if self.cwnd < self.ssthresh {
            self.slow_start_decrease
        } else {
            self.mark_decrease.filter(|_| loss.signal == CongestionSignal::EcnMark)
        };
        let reduced = decrease.map_or(law_window, |decrease| (1.0 - decrease) * flight);
        self.ssthresh = reduced.max(2.0);
        self.cwnd = match loss.signal {
            CongestionSignal::DetectedLoss => self.ssthresh,
            CongestionSignal::EcnMark => reduced.max(1.0),
            CongestionSignal::Timeout => 1.0,
        };
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.law.on_restart(restart);
        (self.cwnd, self.ssthresh) =
            restart.window(self.cwnd, self.ssthresh, self.initial_window, 1.0);
    }

    fn save_state(&mut self, _now: Time) {
        self.before = SavedWindow::new(self.cwnd, self.ssthresh);
    }

    fn on_spurious_loss(&mut self, _now: Time) {
        self.before.restore(&mut self.cwnd, &mut self.ssthresh);
        self.has_timed_out = false;
    }

    fn allowance(&self) -> Allowance {
        // Rounding up half a byte lets through a packet that the window just holds.
        Allowance::window(self.cwnd * self.packet + 0.5)
    }

    fn congestion_window(&self) -> Option<(f64, f64)> {
        Some((self.cwnd * self.packet, self.ssthresh * self.packet))
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let mut gauges = vec![("window_bytes", self.cwnd * self.packet)];
        gauges.extend(self.law.gauges());
        gauges
    }
}

impl<L: WindowLaw> WindowController<L> {
    fn slow_start(&mut self, acked: f64, ack: &Ack) -> f64 {
        let acked = match self.law.slow_start(self.cwnd, acked, ack) {
            SlowStart::Grows(packets) => packets,
            SlowStart::Ends(cwnd) => {
                self.hystart = None;
                self.ssthresh = cwnd;
                return cwnd;
            }
        };
        let increase = match &mut self.hystart {
            Some(hystart) if !hystart.is_over() => {
                let increase = hystart.growth(self.cwnd, acked, ack);
                if hystart.is_over() {
                    self.ssthresh = self.cwnd;
                }
                increase
            }
            _ => acked,
        };
        // RFC 3742 §2.
        let steps = (self.cwnd / (0.5 * self.max_ssthresh)).floor().max(1.0);
        self.cwnd + increase / steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::defaults;
    use crate::base::units::{Bytes, Duration, Rate};
    use crate::model::packet::Format;
    use crate::transport::WindowReduction;
    use crate::transport::blocks::tcp::hystart::HyStartVariant;
    use crate::transport::fixture::{self, ACK};

    /// Law with simple numbers: ten packets more per ACK, and a quarter left by a loss.
    struct TestLaw;

    impl WindowLaw for TestLaw {
        fn increase(&mut self, cwnd: f64, acked: f64, _ack: &Ack) -> f64 {
            cwnd + 10.0 * acked
        }

        fn decrease(&mut self, cwnd: f64, _loss: &Loss) -> f64 {
            cwnd / 4.0
        }
    }

    fn flow(window: &Window) -> Box<dyn Controller> {
        let format = defaults::<Format>();
        let (line_rate, base_rtt) = (Rate::from_gbps(1), Duration::from_millis(100));
        let path = Path::new(line_rate, base_rtt, format);
        controller(window, TestLaw, &path)
    }

    fn default_window() -> Window {
        defaults()
    }

    fn ack(advanced: u32) -> Ack {
        Ack { advanced, delivered: advanced, rtt: Duration::from_millis(100), next: 100, ..ACK }
    }

    fn loss(signal: CongestionSignal, packets: u64) -> Loss {
        fixture::loss(signal, Bytes(1000 * packets))
    }

    fn assert_window(flow: &dyn Controller, packets: f64) {
        let window = flow.gauges()[0].1 / 1000.0;
        assert!((window - packets).abs() < 1e-9, "{window} is not {packets}");
        // The allowance holds the same number of whole packets.
        assert_eq!(flow.allowance().window.0 / 1000, packets as u64);
    }

    #[test]
    fn slow_start_counts_acks_up_to_its_limit_and_ends_at_ssthresh() {
        for (count_limit, grown) in [(1, 11.0), (2, 12.0), (9, 13.0)] {
            let mut flow = flow(&Window { count_limit, ..default_window() });
            flow.on_ack(&ack(0));
            assert_window(&*flow, 10.0);
            flow.on_ack(&ack(3));
            assert_window(&*flow, grown);
        }
        let mut flow =
            flow(&Window { initial_ssthresh: Some(11), max: Some(30), ..default_window() });
        for packets in [11.0, 21.0, 30.0, 30.0] {
            flow.on_ack(&ack(1));
            assert_window(&*flow, packets);
        }
    }

    #[test]
    fn limited_slow_start_grows_by_half_of_max_ssthresh_per_rtt() {
        // RFC 3742 §2: above 100 packets at most 50 per RTT, in steps.
        let mut flow = flow(&Window { initial: 100, max_ssthresh: Some(100), ..default_window() });
        (0..100).for_each(|_| flow.on_ack(&ack(1)));
        assert_window(&*flow, 150.0);
        (0..150).for_each(|_| flow.on_ack(&ack(1)));
        assert_window(&*flow, 200.0);
        (0..200).for_each(|_| flow.on_ack(&ack(1)));
        assert_window(&*flow, 250.0);
    }

    #[test]
    fn a_window_that_does_not_limit_the_flow_grows_to_twice_the_flight_in_slow_start_only() {
        let unused = |packets: u64| Ack { used_window: Some(Bytes(1000 * packets)), ..ack(1) };
        let mut flow = flow(&Window { initial_ssthresh: Some(12), ..default_window() });
        flow.on_ack(&unused(5));
        assert_window(&*flow, 10.0);
        flow.on_ack(&unused(6));
        flow.on_ack(&unused(6));
        assert_window(&*flow, 12.0);
        flow.on_ack(&unused(100));
        assert_window(&*flow, 12.0);
        flow.on_ack(&ack(1));
        assert_window(&*flow, 22.0);
    }

    #[test]
    fn acks_in_recovery_or_with_a_mark_do_not_increase_the_window() {
        let mut flow = flow(&default_window());
        flow.on_ack(&Ack { is_recovering: true, ..ack(1) });
        flow.on_ack(&Ack { marked: true, ..ack(1) });
        assert_window(&*flow, 10.0);
    }

    #[test]
    fn a_loss_reduces_flight_size_and_leaves_two_packets_at_least() {
        for (signal, in_flight, expected) in [
            (CongestionSignal::DetectedLoss, 100, 10.0),
            (CongestionSignal::DetectedLoss, 16, 4.0),
            (CongestionSignal::DetectedLoss, 2, 2.0),
            (CongestionSignal::EcnMark, 16, 4.0),
            (CongestionSignal::EcnMark, 2, 1.0),
            (CongestionSignal::Timeout, 100, 1.0),
        ] {
            let mut flow = flow(&Window { initial: 40, ..default_window() });
            flow.on_loss(&loss(signal, in_flight));
            assert_window(&*flow, expected);
        }
    }

    #[test]
    fn a_mark_in_congestion_avoidance_may_reduce_the_window_less_than_a_loss() {
        // RFC 8511 §3: not in slow start, and not for losses.
        let reduced = |initial_ssthresh, signal| {
            let mark_decrease = Some(0.2);
            let mut flow =
                flow(&Window { initial: 100, initial_ssthresh, mark_decrease, ..default_window() });
            flow.on_loss(&loss(signal, 100));
            flow
        };
        for (initial_ssthresh, signal, packets) in [
            (Some(50), CongestionSignal::EcnMark, 80.0),
            (Some(50), CongestionSignal::DetectedLoss, 25.0),
            (None, CongestionSignal::EcnMark, 25.0),
        ] {
            assert_window(&*reduced(initial_ssthresh, signal), packets);
        }
    }

    #[test]
    fn a_repeated_timeout_keeps_ssthresh() {
        // The loss leaves a quarter of 40 packets (10). Without `is_repeated` the timeout leaves 2.5.
        for (is_repeated, packets) in [(true, [9.0, 10.0, 20.0]), (false, [13.0, 23.0, 33.0])] {
            let mut flow = flow(&Window { initial: 40, ..default_window() });
            flow.on_loss(&loss(CongestionSignal::DetectedLoss, 40));
            let timeout = Loss { is_repeated, ..loss(CongestionSignal::Timeout, 40) };
            flow.on_loss(&timeout);
            assert_window(&*flow, 1.0);
            (0..if is_repeated { 7 } else { 2 }).for_each(|_| flow.on_ack(&ack(1)));
            for packets in packets {
                flow.on_ack(&ack(1));
                assert_window(&*flow, packets);
            }
        }
    }

    #[test]
    fn slow_start_after_a_timeout_ends_at_the_window_of_the_law() {
        let mut flow = flow(&Window { initial: 12, ..default_window() });
        // ssthresh is a quarter of 12. A second timeout of the same segment does not change it.
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
    fn hystart_ends_one_slow_start_and_the_next_ends_at_ssthresh() {
        // After a round at 100 ms RTTs exceed it by more than an eighth; HyStart++ takes five rounds more.
        for (variant, rounds) in [(HyStartVariant::Linux, 2), (HyStartVariant::PlusPlus, 8)] {
            let window = Window { initial: 20, hystart: Some(variant), ..default_window() };
            let mut flow = flow(&window);
            let (mut now, mut cumulative) = (Time::ZERO, 0);
            let mut round = |flow: &mut Box<dyn Controller>, rtt_ms| {
                now = now + Duration::from_millis(rtt_ms);
                let next = cumulative + 21;
                for _ in 0..20 {
                    cumulative += 1;
                    let rtt = Duration::from_millis(rtt_ms);
                    flow.on_ack(&Ack { now, rtt, cumulative, next, ..ack(1) });
                }
                flow.gauges()[0].1 / 1000.0
            };
            round(&mut flow, 100);
            let windows = (1..rounds).map(|_| round(&mut flow, 120)).collect::<Vec<_>>();
            // Ten packets for each ACK in congestion avoidance.
            let ended = round(&mut flow, 120);
            assert!(
                ended > windows[windows.len() - 1] + 150.0,
                "{variant:?}: {windows:?}, {ended}"
            );
            // After an idle time slow start adds one packet for each ACK again, in spite of the same RTTs.
            let reduction = WindowReduction::Halvings(9);
            let (now, idle) = (Time::ZERO, Duration::from_millis(9000));
            flow.on_restart(&Restart { now, idle, reduction });
            assert_window(&*flow, 20.0);
            for window in [40.0, 60.0, 80.0] {
                let grown = round(&mut flow, 120);
                assert!((grown - window).abs() < 1e-9, "{variant:?}: {grown} is not {window}");
            }
        }
    }

    #[test]
    fn a_lost_syn_gives_an_initial_window_of_one_packet() {
        let mut flow = flow(&default_window());
        let (now, rtt) = (Time::ZERO, Duration::from_millis(100));
        flow.on_open(&Opened { now, rtt, feedback: 0.0, syn_was_lost: true });
        assert_window(&*flow, 1.0);
    }
}

//! DCTCP: reduces the window in proportion to the fraction of marked packets ([dctcp10] §3, RFC 8257).
//!
//! Slow start, additive increase and the reaction to loss are TCP's (RFC 5681). A loss and marks of the same
//! window of data halve it once. The receiver echoes the mark
//! of each packet; a marked packet is acknowledged at once, and what was delayed before it separately
//! (RFC 8257 §3.2).

use super::{
    Ack, Allowance, CongestionSignal, Controller, Loss, Mechanism, Path, Reliability, Restart,
    Transport,
};
use crate::base::product::Product;
use crate::base::schema::{defaults, fraction, positive, positive_fraction, positive_if_given};
use crate::base::units::{Bytes, Time};
use crate::model::packet::Format;
use crate::queueing::disciplines;
use crate::transport::blocks::path_scaled::{FlowRate, RateWindow, WindowSize};
use crate::transport::recovery::spurious::SavedWindow;

crate::parameters! {
    /// DCTCP as NICs with a rate per flow implement it (simulator of [hpcc19]): a flow starts at line rate
    /// without slow start, and its rate is in proportion to its window.
    pub struct Pacing {
        /// Window at line rate: initial and maximum window ([hpcc19]: 1 BDP).
        pub window: WindowSize = WindowSize::Product(Product::times(1.0)), where positive;
        /// Increase of the rate per RTT (simulator of [hpcc19]: 615 Mb/s, a packet per 13 us).
        pub additive_increase: FlowRate = FlowRate::from_mbps(615), where positive;
        /// Minimum rate (simulator of [hpcc19]: 1 Gb/s at 100 Gb/s).
        pub min_rate: FlowRate = FlowRate::from_mbps(1_000), where positive;
    }
}

crate::parameters! {
    /// DCTCP: reduces its window in proportion to the fraction of marked packets ([dctcp10],
    /// RFC 8257).
    pub struct Config {
        /// g, the weight of the last window in the average marked fraction ([dctcp10] §3.1: 1/16).
        pub gain: f64 = 1.0 / 16.0, where positive_fraction;
        /// Initial alpha, the average marked fraction (RFC 8257 §3.3: 1).
        pub initial_alpha: f64 = 1.0, where fraction;
        /// Initial window, in packets (RFC 6928: 10).
        pub initial_window: u32 = 10, where positive;
        /// Initial ssthresh, in packets (none: unlimited).
        pub initial_ssthresh: Option<u32> = None, where positive_if_given;
        /// Maximum window, in packets (none: unlimited).
        pub max_window: Option<u32> = None, where positive_if_given;
        /// Minimum window after a mark, in packets (own choice: 1; Linux, as for losses: 2).
        pub min_window: u32 = 1, where positive;
        /// Pacing, in place of the windows above (none: the window alone).
        pub pacing: Option<Pacing> = None;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::selective_repeat();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        Box::new(self.open(path))
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        let endpoint = match self.pacing {
            None => Mechanism::plain(&self.reliability),
            Some(_) => Mechanism::paced_window(&self.reliability),
        };
        Mechanism { ecn_capable: true, ..endpoint }
    }

    fn queue(&self) -> disciplines::Config {
        disciplines::Config::ecn_threshold(defaults())
    }

    /// Deviation: hosts mark as switches do. Otherwise flows that share a host's link would never
    /// receive marks, and its queue would grow without limit.
    fn host_queue(&self) -> disciplines::Config {
        self.queue()
    }
}

impl Config {
    /// State of a flow that starts on `path`.
    pub(super) fn open(&self, path: &Path) -> Dctcp {
        let packet = path.format.payload.0 as f64;
        let packets =
            |count: Option<u32>| count.map_or(f64::INFINITY, |count| f64::from(count) * packet);
        let mut flow = Dctcp {
            gain: self.gain,
            packet,
            growth: packet,
            pacing: None,
            initial_window: f64::from(self.initial_window) * packet,
            min_window: f64::from(self.min_window) * packet,
            max_window: packets(self.max_window),
            cwnd: f64::from(self.initial_window) * packet,
            ssthresh: path.cached_state.ssthresh.unwrap_or(packets(self.initial_ssthresh)),
            alpha: self.initial_alpha,
            acked: Bytes::ZERO,
            marked: Bytes::ZERO,
            window_end: 0,
            reduction_end: 0,
            unreduced: 0.0,
            has_timed_out: false,
            before: SavedWindow::default(),
        };
        if let Some(pacing) = &self.pacing {
            flow.pace(pacing, path);
        }
        flow
    }
}

/// State of one flow; windows in bytes. It does not use `window`, which counts packets acknowledged in
/// order: DCTCP counts every newly acknowledged byte, and its sums round differently.
pub(super) struct Dctcp {
    gain: f64,
    packet: f64,
    /// Additive increase per window of data.
    growth: f64,
    /// Relation of rate and window; none without pacing.
    pacing: Option<RateWindow>,
    initial_window: f64,
    min_window: f64,
    max_window: f64,
    pub(super) cwnd: f64,
    ssthresh: f64,
    /// Moving average of the fraction of marked bytes.
    pub(super) alpha: f64,
    /// Bytes acknowledged in this observation window, and marked bytes.
    acked: Bytes,
    marked: Bytes,
    /// The observation window ends when all segments before this one are acknowledged.
    window_end: u32,
    /// Marks on ACKs below this segment cause no further reduction.
    reduction_end: u32,
    /// Window before the last reduction for a mark.
    unreduced: f64,
    /// True between a timeout and the next ACK of new data.
    has_timed_out: bool,
    before: SavedWindow,
}

impl Controller for Dctcp {
    fn on_ack(&mut self, ack: &Ack) {
        self.handle_ack(ack, |flow| flow.alpha);
    }

    fn on_loss(&mut self, loss: &Loss) {
        // RFC 5681 §3.1: ssthresh is held when the same segment times out again.
        let has_timed_out = loss.signal == CongestionSignal::Timeout
            && std::mem::replace(&mut self.has_timed_out, true);
        if !loss.is_repeated && !has_timed_out {
            self.ssthresh = self.halved(loss).max(2.0 * self.packet);
        }
        self.cwnd = match loss.signal {
            CongestionSignal::DetectedLoss | CongestionSignal::EcnMark => self.ssthresh,
            CongestionSignal::Timeout => self.packet,
        };
    }

    fn on_restart(&mut self, restart: &Restart) {
        (self.cwnd, self.ssthresh) =
            restart.window(self.cwnd, self.ssthresh, self.initial_window, self.packet);
    }

    fn save_state(&mut self, _now: Time) {
        self.before = SavedWindow::new(self.cwnd, self.ssthresh);
    }

    fn on_spurious_loss(&mut self, _now: Time) {
        self.before.restore(&mut self.cwnd, &mut self.ssthresh);
        self.has_timed_out = false;
    }

    fn allowance(&self) -> Allowance {
        match &self.pacing {
            None => Allowance::window(self.cwnd),
            Some(pacing) => pacing.allowance(pacing.rate(self.cwnd)),
        }
    }

    fn congestion_window(&self) -> Option<(f64, f64)> {
        Some((self.cwnd, self.ssthresh))
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("window_bytes", self.cwnd), ("alpha", self.alpha)]
    }
}

impl Dctcp {
    /// Starts the flow at line rate, with a rate in proportion to the window.
    fn pace(&mut self, pacing: &Pacing, path: &Path) {
        let line_rate = path.line_rate.bps();
        let window = RateWindow::new(Some(pacing.window), path);
        self.max_window = window.at(line_rate);
        (self.initial_window, self.cwnd, self.ssthresh) =
            (self.max_window, self.max_window, self.max_window);
        self.min_window = window.at(pacing.min_rate.bps(line_rate)).min(self.max_window);
        self.growth = window.at(pacing.additive_increase.bps(line_rate));
        self.pacing = Some(window);
    }

    /// Returns half of the window, the reaction to a loss for any alpha (RFC 8257 §3.5). If a mark of the
    /// same window has reduced it already, both together halve it (own choice).
    fn halved(&self, loss: &Loss) -> f64 {
        let flight = loss.flight.0 as f64;
        if loss.cumulative < self.reduction_end {
            (self.unreduced / 2.0).min(self.cwnd).min(flight)
        } else {
            self.cwnd.min(flight) / 2.0
        }
    }

    /// Handles an ACK. If a mark reduces the window, the reduction is by half of `penalty`, which for
    /// DCTCP is alpha.
    pub(super) fn handle_ack(&mut self, ack: &Ack, penalty: impl FnOnce(&Self) -> f64) {
        self.has_timed_out &= ack.advanced == 0;
        self.acked += ack.bytes;
        if ack.marked {
            self.marked += ack.bytes;
        }
        if ack.cumulative >= self.window_end {
            // [dctcp10] eq. 1, once per window of data.
            let fraction =
                if self.acked.0 == 0 { 0.0 } else { self.marked.bits() / self.acked.bits() };
            self.alpha += self.gain * (fraction - self.alpha);
            (self.acked, self.marked) = (Bytes::ZERO, Bytes::ZERO);
            self.window_end = ack.next;
        }
        // At most one reduction per window, for marks or a loss (RFC 3168 §6.1.2).
        let is_reduced = ack.cumulative < self.reduction_end || ack.is_recovering;
        if ack.marked && !is_reduced {
            // [dctcp10] eq. 2.
            self.unreduced = self.cwnd;
            self.cwnd = (self.cwnd * (1.0 - penalty(self) / 2.0)).max(self.min_window);
            self.ssthresh = self.cwnd;
            // The ACK of the last segment sent before the reduction acknowledges up to `next`.
            self.reduction_end = ack.next + 1;
        } else if !is_reduced {
            self.grow(ack);
        }
    }

    /// Slow start below `ssthresh`, `growth` per window above (RFC 5681 §3.1: one packet).
    fn grow(&mut self, ack: &Ack) {
        let is_in_slow_start = self.cwnd < self.ssthresh;
        if !ack.permits_growth(self.cwnd, is_in_slow_start) {
            return;
        }
        let acked = ack.bytes.0 as f64;
        self.cwnd += if is_in_slow_start { acked } else { self.growth * acked / self.cwnd };
        self.cwnd = self.cwnd.min(self.max_window);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "the formulas give exactly these numbers")]

    use super::*;
    use crate::base::schema::Parameter;
    use crate::base::units::{Duration, Rate};
    use crate::transport::fixture::{ACK, loss};

    fn flow() -> Box<dyn Controller> {
        open(&serde_json::json!({ "initial_ssthresh": 10 }))
    }

    fn open(config: &serde_json::Value) -> Box<dyn Controller> {
        let config = Config::read(config).unwrap();
        config.controller(&Path::new(
            Rate::from_gbps(10),
            Duration::from_micros(10),
            defaults::<Format>(),
        ))
    }

    fn ack(cumulative: u32, next: u32, marked: bool) -> Ack {
        Ack { rtt: Duration::from_micros(10), marked, cumulative, next, ..ACK }
    }

    fn gauges(flow: &dyn Controller) -> [f64; 2] {
        let gauges = flow.gauges();
        [gauges[0].1, gauges[1].1]
    }

    #[test]
    fn alpha_averages_the_marked_fraction_and_a_mark_reduces_the_window_once_per_window() {
        let mut flow = flow();
        flow.on_ack(&ack(1, 11, false));
        // One window of one unmarked packet: alpha = 15/16; then one packet more per window.
        assert_eq!(gauges(&*flow), [10_100.0, 0.9375]);
        flow.on_ack(&ack(2, 12, true));
        let reduced = 10_100.0 * (1.0 - 0.9375 / 2.0);
        assert_eq!(gauges(&*flow)[0], reduced);
        flow.on_ack(&ack(3, 13, true));
        assert_eq!(gauges(&*flow)[0], reduced, "one reduction per window");
        flow.on_ack(&ack(11, 14, false));
        // Two of three packets were marked.
        assert!((gauges(&*flow)[1] - (0.9375 + (2.0 / 3.0 - 0.9375) / 16.0)).abs() < 1e-12);
    }

    #[test]
    fn the_last_packet_sent_before_a_reduction_does_not_reduce_again() {
        let mut flow = flow();
        flow.on_ack(&ack(2, 12, true));
        let reduced = gauges(&*flow)[0];
        flow.on_ack(&ack(12, 12, true));
        assert_eq!(gauges(&*flow)[0], reduced, "segment 11 was sent before the reduction");
        flow.on_ack(&ack(13, 14, true));
        assert!(gauges(&*flow)[0] < reduced, "segment 12 was sent after it");
    }

    #[test]
    fn marks_leave_the_minimum_window() {
        for (min_window, expected) in [(1, 1_000.0), (2, 2_000.0)] {
            let mut flow = open(&serde_json::json!({ "min_window": min_window }));
            for round in 0..20 {
                flow.on_ack(&ack(100 * round + 2, 100 * round + 12, true));
            }
            assert_eq!(gauges(&*flow)[0], expected);
        }
    }

    #[test]
    fn with_pacing_a_flow_starts_at_line_rate_and_rate_and_window_are_in_proportion() {
        let pacing = serde_json::json!({ "window": 100, "additive_increase": "100 Mbps" });
        let mut flow = open(&serde_json::json!({ "pacing": pacing }));
        let allowance = |flow: &dyn Controller| {
            let allowance = flow.allowance();
            (allowance.window, allowance.rate.unwrap())
        };
        assert_eq!(allowance(&*flow), (Bytes(100_000), Rate::from_gbps(10)));
        flow.on_ack(&ack(1, 100, true));
        // One marked packet: alpha stays 1 and the window halves.
        assert_eq!(allowance(&*flow), (Bytes(50_000), Rate::from_gbps(5)));
        // 100 Mb/s are 1000 B more per window of data.
        for cumulative in 102..152 {
            flow.on_ack(&ack(cumulative, 200, false));
        }
        let (window, rate) = allowance(&*flow);
        assert!((50_950..=51_000).contains(&window.0), "{window}");
        assert!((rate.bps() - 5.1e9).abs() < 0.01e9, "{rate}");
    }

    #[test]
    fn a_mark_and_a_loss_of_one_window_halve_it_once_in_either_order() {
        let lose = |flow: &mut dyn Controller, cumulative| {
            let loss = loss(CongestionSignal::DetectedLoss, Bytes(10_000));
            flow.on_loss(&Loss { cumulative, ..loss });
            gauges(flow)[0]
        };
        let marked_first = || {
            let mut flow = open(&serde_json::json!({ "initial_alpha": 0.2 }));
            flow.on_ack(&ack(2, 12, true));
            let alpha = 0.2 + 0.8 / 16.0;
            assert_eq!(gauges(&*flow), [10_000.0 * (1.0 - alpha / 2.0), alpha]);
            flow
        };
        assert_eq!(
            lose(&mut *marked_first(), 12),
            5_000.0,
            "segment 12 was sent before the reduction"
        );
        let reduced = gauges(&*marked_first())[0];
        assert_eq!(lose(&mut *marked_first(), 13), reduced / 2.0, "segment 13 was sent after it");

        let mut flow = open(&serde_json::json!({ "initial_alpha": 0.2 }));
        let halved = lose(&mut *flow, 2);
        flow.on_ack(&Ack { is_recovering: true, ..ack(2, 12, true) });
        assert_eq!(gauges(&*flow)[0], halved, "recovery");
        flow.on_ack(&ack(12, 16, true));
        assert!(gauges(&*flow)[0] < halved);
    }

    #[test]
    fn losses_halve_the_window_and_timeouts_reset_it_to_one_packet() {
        let mut flow = flow();
        let loss = |signal| loss(signal, Bytes(8_000));
        flow.on_loss(&loss(CongestionSignal::DetectedLoss));
        assert_eq!(gauges(&*flow)[0], 4_000.0);
        for _ in 0..2 {
            // The second one is of the same segment.
            flow.on_loss(&loss(CongestionSignal::Timeout));
            let ssthresh = flow.congestion_window().unwrap().1;
            assert_eq!((gauges(&*flow)[0], ssthresh), (1_000.0, 2_000.0));
        }
    }
}

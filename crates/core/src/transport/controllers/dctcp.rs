//! DCTCP: reduces the window in proportion to the fraction of marked packets ([dctcp10] §3, RFC 8257).
//!
//! Slow start, additive increase and the reaction to loss are TCP's (RFC 5681). The receiver acknowledges
//! every packet and echoes its mark, so that its state machine for delayed ACKs (RFC 8257 §3.2) is not
//! needed.

use super::{
    Ack, Allowance, CongestionSignal, Controller, Loss, Mechanism, Path, Reliability, Restart,
    Transport,
};
use crate::base::schema::{fraction, positive, positive_fraction, positive_if_given};
use crate::base::units::{Bytes, Time};
use crate::model::packet::Format;
use crate::queueing::disciplines;
use crate::transport::recovery::spurious::SavedWindow;

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
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::selective_repeat();
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        Box::new(self.open(path))
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism { ecn_capable: true, ..Mechanism::plain(&self.reliability) }
    }

    fn queue(&self) -> disciplines::Config {
        disciplines::Config::ecn_threshold(disciplines::ecn_threshold::Config {
            threshold: None,
            least_threshold: Bytes::ZERO,
            mark_at: disciplines::MarkAt::Arrival,
            capacity: None,
        })
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
        Dctcp {
            gain: self.gain,
            packet,
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
            before: SavedWindow::default(),
        }
    }
}

/// State of one flow; windows in bytes. It does not use `window`, which counts packets acknowledged in
/// order: DCTCP counts every newly acknowledged byte, and its sums round differently.
pub(super) struct Dctcp {
    gain: f64,
    packet: f64,
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
    before: SavedWindow,
}

impl Controller for Dctcp {
    fn on_ack(&mut self, ack: &Ack) {
        self.handle_ack(ack, |flow| flow.alpha);
    }

    fn on_loss(&mut self, loss: &Loss) {
        // RFC 8257 §3.5: the reaction to a loss is TCP's, for any alpha.
        if !loss.is_repeated {
            self.ssthresh = (loss.flight.0 as f64 / 2.0).max(2.0 * self.packet);
        }
        self.cwnd = match loss.signal {
            CongestionSignal::DetectedLoss | CongestionSignal::EcnMark => self.ssthresh,
            CongestionSignal::Timeout => self.packet,
        };
    }

    fn on_restart(&mut self, restart: &Restart) {
        (self.cwnd, self.ssthresh) = restart.window(self.cwnd, self.ssthresh, self.initial_window);
    }

    fn save_state(&mut self, _now: Time) {
        self.before = SavedWindow::new(self.cwnd, self.ssthresh);
    }

    fn on_spurious_loss(&mut self, _now: Time) {
        self.before.restore(&mut self.cwnd, &mut self.ssthresh);
    }

    fn allowance(&self) -> Allowance {
        Allowance::window(self.cwnd)
    }

    fn congestion_window(&self) -> Option<(f64, f64)> {
        Some((self.cwnd, self.ssthresh))
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("window_bytes", self.cwnd), ("alpha", self.alpha)]
    }
}

impl Dctcp {
    /// Handles an ACK. If a mark reduces the window, the reduction is by half of `penalty`, which for
    /// DCTCP is alpha.
    pub(super) fn handle_ack(&mut self, ack: &Ack, penalty: impl FnOnce(&Self) -> f64) {
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
        let is_reduced = ack.cumulative < self.reduction_end;
        if ack.marked && !is_reduced {
            // [dctcp10] eq. 2, at most once per window (RFC 3168 §6.1.2).
            self.cwnd = (self.cwnd * (1.0 - penalty(self) / 2.0)).max(self.min_window);
            self.ssthresh = self.cwnd;
            // The ACK of the last segment sent before the reduction acknowledges up to `next`.
            self.reduction_end = ack.next + 1;
        } else if !is_reduced && !ack.is_recovering {
            self.grow(ack);
        }
    }

    /// Slow start below `ssthresh`, one packet per window above (RFC 5681 §3.1).
    fn grow(&mut self, ack: &Ack) {
        let is_in_slow_start = self.cwnd < self.ssthresh;
        if !ack.permits_growth(self.cwnd, is_in_slow_start) {
            return;
        }
        let acked = ack.bytes.0 as f64;
        self.cwnd += if is_in_slow_start { acked } else { self.packet * acked / self.cwnd };
        self.cwnd = self.cwnd.min(self.max_window);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "the formulas give exactly these numbers")]

    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use crate::base::units::{Duration, Rate, Time};
    use crate::transport::fixture::ACK;

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
    fn losses_halve_the_window_and_timeouts_reset_it_to_one_packet() {
        let mut flow = flow();
        let loss = |signal| Loss {
            now: Time::ZERO,
            flight: Bytes(8_000),
            lost: Bytes::ZERO,
            signal,
            is_repeated: false,
        };
        flow.on_loss(&loss(CongestionSignal::DetectedLoss));
        assert_eq!(gauges(&*flow)[0], 4_000.0);
        flow.on_loss(&loss(CongestionSignal::Timeout));
        assert_eq!(gauges(&*flow)[0], 1_000.0);
    }
}

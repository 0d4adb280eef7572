//! DCTCP: cut the window in proportion to the share of marked packets.
//!
//! Sources: [dctcp10] §3, RFC 8257. Slow start, additive increase and the reaction to loss are
//! TCP's (RFC 5681). Every packet is acknowledged and its mark echoed, so the receiver's two-state
//! machine for delayed ACKs (RFC 8257 §3.2) has nothing to do.

use super::{
    Ack, Allowance, CongestionSignal, Controller, Loss, Mechanism, Path, Reliability, Transport,
};
use crate::base::schema::{fraction, positive, positive_fraction, positive_if_given};
use crate::base::units::{Bytes, Time};
use crate::model::packet::Format;
use crate::queueing::disciplines;
use crate::transport::recovery::spurious::Before;

crate::parameters! {
    /// DCTCP: cuts its window in proportion to the share of marked packets ([dctcp10], RFC 8257).
    pub struct Config {
        /// g, the weight of the last window in the average of the marked share ([dctcp10] §3.1:
        /// 1/16).
        pub gain: f64 = 1.0 / 16.0, where positive_fraction;
        /// The average before the first window (RFC 8257 §3.3: 1).
        pub initial_alpha: f64 = 1.0, where fraction;
        /// Initial window, in packets (RFC 6928: 10).
        pub initial_window: u32 = 10, where positive;
        /// Window at which slow start ends, in packets; none for no bound.
        pub initial_ssthresh: Option<u32> = None, where positive_if_given;
        /// Most that the window may be, in packets; none for no bound.
        pub max_window: Option<u32> = None, where positive_if_given;
        /// How data is made reliable.
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
            mark_at: disciplines::MarkAt::Arrival,
            capacity: None,
        })
    }

    /// Deviation: hosts mark as switches do. Flows that share a host's link would otherwise never
    /// be told, and fill its queue without end.
    fn host_queue(&self) -> disciplines::Config {
        self.queue()
    }
}

impl Config {
    /// The state of a flow that starts on `path`.
    pub(super) fn open(&self, path: &Path) -> Dctcp {
        let packet = path.format.payload.0 as f64;
        let packets =
            |count: Option<u32>| count.map_or(f64::INFINITY, |count| f64::from(count) * packet);
        Dctcp {
            gain: self.gain,
            packet,
            most: packets(self.max_window),
            window: f64::from(self.initial_window) * packet,
            ssthresh: packets(self.initial_ssthresh),
            alpha: self.initial_alpha,
            acked: Bytes::ZERO,
            marked: Bytes::ZERO,
            window_ends: 0,
            reduced_until: 0,
            before: Before::default(),
        }
    }
}

/// The state of one flow; windows in bytes. Its slow start is not that of `window`, which counts packets that
/// are acknowledged in order, where this counts every byte that an ACK shows to have come, and whose sums
/// round otherwise.
pub(super) struct Dctcp {
    gain: f64,
    packet: f64,
    most: f64,
    pub(super) window: f64,
    ssthresh: f64,
    /// Running average of the share of marked bytes.
    pub(super) alpha: f64,
    /// Acknowledged in this window of data, and what of it was marked.
    acked: Bytes,
    marked: Bytes,
    /// This window of data ends when everything before this segment is acknowledged.
    window_ends: u32,
    /// The window has been cut for the data whose ACKs are below this.
    reduced_until: u32,
    before: Before,
}

impl Controller for Dctcp {
    fn on_ack(&mut self, ack: &Ack) {
        self.hear(ack, |flow| flow.alpha);
    }

    fn on_loss(&mut self, loss: &Loss) {
        // RFC 8257 §3.5: a loss is answered as TCP does, whatever alpha says.
        self.ssthresh = (loss.flight.0 as f64 / 2.0).max(2.0 * self.packet);
        self.window = match loss.sign {
            CongestionSignal::Gap | CongestionSignal::Mark => self.ssthresh,
            CongestionSignal::Timeout => self.packet,
        };
    }

    fn save_state(&mut self, _now: Time) {
        self.before = Before::new(self.window, self.ssthresh);
    }

    fn on_spurious_loss(&mut self, _now: Time) {
        self.before.restore(&mut self.window, &mut self.ssthresh);
    }

    fn allowance(&self) -> Allowance {
        Allowance::window(self.window)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("window_bytes", self.window), ("alpha", self.alpha)]
    }
}

impl Dctcp {
    /// Takes an ACK in. If it is time to answer a mark, half of `penalty` is the share of the window to
    /// give up; DCTCP's is alpha.
    pub(super) fn hear(&mut self, ack: &Ack, penalty: impl FnOnce(&Self) -> f64) {
        self.acked += ack.bytes;
        if ack.marked {
            self.marked += ack.bytes;
        }
        if ack.cumulative >= self.window_ends {
            // [dctcp10] eq. 1, once a window of data.
            let share =
                if self.acked.0 == 0 { 0.0 } else { self.marked.bits() / self.acked.bits() };
            self.alpha += self.gain * (share - self.alpha);
            (self.acked, self.marked) = (Bytes::ZERO, Bytes::ZERO);
            self.window_ends = ack.next;
        }
        let is_reduced = ack.cumulative < self.reduced_until;
        if ack.marked && !is_reduced {
            // [dctcp10] eq. 2, at most once a window (RFC 3168 §6.1.2).
            self.window = (self.window * (1.0 - penalty(self) / 2.0)).max(self.packet);
            self.ssthresh = self.window;
            // The ACK of the last segment sent before the cut carries the number of the next.
            self.reduced_until = ack.next + 1;
        } else if !is_reduced && !ack.is_recovering {
            self.grow(ack.bytes.0 as f64);
        }
    }

    /// Slow start below `ssthresh`, one packet a window above (RFC 5681 §3.1).
    fn grow(&mut self, acked: f64) {
        if self.window < self.ssthresh {
            self.window += acked;
        } else {
            self.window += self.packet * acked / self.window;
        }
        self.window = self.window.min(self.most);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "the law gives exactly these numbers")]

    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use crate::base::units::{Duration, Rate, Time};
    use crate::transport::fixture::ACK;

    fn flow() -> Box<dyn Controller> {
        let config = Config::read(&serde_json::json!({"initial_ssthresh": 10})).unwrap();
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
    fn alpha_averages_the_marked_share_and_a_mark_cuts_once_a_window() {
        let mut flow = flow();
        flow.on_ack(&ack(1, 11, false));
        // One window of one unmarked packet: alpha = 15/16; then one packet a window of growth.
        assert_eq!(gauges(&*flow), [10_100.0, 0.9375]);
        flow.on_ack(&ack(2, 12, true));
        let cut = 10_100.0 * (1.0 - 0.9375 / 2.0);
        assert_eq!(gauges(&*flow)[0], cut);
        flow.on_ack(&ack(3, 13, true));
        assert_eq!(gauges(&*flow)[0], cut, "one cut a window");
        flow.on_ack(&ack(11, 14, false));
        // Of three packets two were marked.
        assert!((gauges(&*flow)[1] - (0.9375 + (2.0 / 3.0 - 0.9375) / 16.0)).abs() < 1e-12);
    }

    #[test]
    fn the_last_packet_sent_before_a_cut_does_not_cut_again() {
        let mut flow = flow();
        flow.on_ack(&ack(2, 12, true));
        let cut = gauges(&*flow)[0];
        flow.on_ack(&ack(12, 12, true));
        assert_eq!(gauges(&*flow)[0], cut, "segment 11 left before the cut");
        flow.on_ack(&ack(13, 14, true));
        assert!(gauges(&*flow)[0] < cut, "segment 12 left after it");
    }

    #[test]
    fn losses_halve_and_timeouts_start_again_from_one_packet() {
        let mut flow = flow();
        let loss = |sign| Loss { now: Time::ZERO, flight: Bytes(8_000), lost: Bytes::ZERO, sign };
        flow.on_loss(&loss(CongestionSignal::Gap));
        assert_eq!(gauges(&*flow)[0], 4_000.0);
        flow.on_loss(&loss(CongestionSignal::Timeout));
        assert_eq!(gauges(&*flow)[0], 1_000.0);
    }
}

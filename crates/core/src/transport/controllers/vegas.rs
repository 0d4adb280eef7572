//! Vegas: keeps a few packets of each flow in queues, with one window update per RTT ([vegas94]).
//!
//! Where the paper is silent: ns-2's agent and Linux. A flow with window `w` sends at `w / RTT`; in an empty
//! network the rate would be `w / baseRTT`, with baseRTT the minimum of all RTTs. The difference times one of
//! the two RTTs estimates the flow's packets in queues:
//!
//! * original: `diff = w (RTT - baseRTT) / RTT`, the backlog. Flows that measure their base RTT keep alpha
//!   to beta packets each in the queue, on any path.
//! * Linux: `diff = w (RTT - baseRTT) / baseRTT`. With P packets in the pipe and q in the queue this is
//!   `q (1 + q / P)`: the same on long paths, and fewer packets in the queue on short paths.
//!
//! A flow that starts behind a standing queue overestimates its base RTT and gets a larger share.
//!
//! Left out: [vegas94] retransmits before three duplicate ACKs; loss recovery is that of other TCPs here.
//! Deviation: both variants use the minimum RTT of a round, as Linux does; ns-2 takes the mean and rounds
//! the difference to whole packets.

use super::{Ack, Controller, Loss, Mechanism, Path, Reliability, Transport};
use crate::base::schema::{Problem, defaults, positive, positive_fraction};
use crate::base::units::Duration;
use crate::model::packet::Format;
use crate::transport::blocks::tcp::window::{self, SlowStart, Window, WindowLaw};

crate::choices! {
    /// Variant of Vegas.
    pub enum Variant {
        /// As published: backlog relative to the current RTT. Slow start doubles every other RTT and
        /// compares in the RTTs between; it leaves 7/8 of the window (ns-2).
        Original = "original",
        /// As in Linux: backlog relative to the base RTT. Slow start doubles and compares every RTT;
        /// it leaves the packets in the pipe, and one more.
        Linux = "linux",
    }
}

crate::parameters! {
    /// TCP Vegas: one packet more or less per RTT, so that each flow keeps between alpha and beta
    /// packets in queues ([vegas94]).
    pub struct Config {
        /// Estimate of the packets in queues: `original` relative to the current RTT, with a slow start
        /// that doubles every other RTT ([vegas94]); `linux` relative to the base RTT, with a slow start
        /// that doubles every RTT.
        pub variant: Variant = Variant::Original;
        /// alpha: the window grows below this number of packets in queues ([vegas94] tries 1 and 2;
        /// ns-2: 1, Linux: 2).
        pub alpha: f64 = 2.0, where positive;
        /// beta: the window shrinks above this number of packets in queues ([vegas94] tries 3 and 4;
        /// ns-2: 3, Linux: 4).
        pub beta: f64 = 4.0, where positive;
        /// gamma: slow start ends above this number of packets in queues (ns-2 and Linux: 1).
        pub gamma: f64 = 1.0, where positive;
        /// Fraction by which a loss or mark reduces the window (Linux, as TCP: 0.5; ns-2: 0.25).
        pub decrease: f64 = 0.5, where positive_fraction;
        /// Initial congestion window, slow start and maximum window.
        pub window: Window = defaults();
        /// If true, packets are ECN-capable: routers may mark instead of drop (RFC 3168).
        pub ecn: bool = false;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::internet();
    }
    check |config: &Config| {
        if config.alpha > config.beta {
            let message = format!("must not be above beta, which is {}", config.beta);
            return Err(Problem::new("alpha", message));
        }
        Ok(())
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let law = Vegas {
            config: self.clone(),
            base_rtt: Duration(u64::MAX),
            round: RttRound::EMPTY,
            doubles: false,
            diff: 0.0,
        };
        window::controller(&self.window, law, path)
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        window::mechanism(&self.reliability, self.ecn)
    }
}

/// RTT samples that a round needs: fewer may all be of delayed ACKs (Linux).
const MIN_SAMPLES: u32 = 3;

/// Minimum window (ns-2, Linux).
const MIN_WINDOW: f64 = 2.0;

/// State of one flow; windows in packets.
struct Vegas {
    config: Config,
    /// Minimum of all RTTs (baseRTT).
    base_rtt: Duration,
    round: RttRound,
    /// True in a round in which slow start doubles the window.
    doubles: bool,
    /// Packets in queues (diff), by the last round with enough samples.
    diff: f64,
}

/// RTT samples of a round.
#[derive(Clone, Copy)]
struct RttRound {
    /// The round ends when this segment, the first one sent in it, is acknowledged.
    end: u32,
    min_rtt: Duration,
    samples: u32,
}

impl RttRound {
    /// Ends with the next ACK of new data.
    const EMPTY: Self = Self::ending_at(0);

    const fn ending_at(end: u32) -> Self {
        Self { end, min_rtt: Duration(u64::MAX), samples: 0 }
    }
}

/// Estimate at an ACK.
enum Backlog {
    /// The round is not over.
    Pending,
    /// The round is over, with too few samples.
    Unknown,
    /// The round is over, with this number of packets in queues.
    Queued(f64),
}

impl Vegas {
    /// Ends the round if it is over, and estimates the packets in queues.
    fn estimate(&mut self, cwnd: f64, ack: &Ack) -> Backlog {
        if ack.cumulative <= self.round.end {
            return Backlog::Pending;
        }
        let RttRound { min_rtt, samples, .. } =
            std::mem::replace(&mut self.round, RttRound::ending_at(ack.next));
        if samples < MIN_SAMPLES {
            return Backlog::Unknown;
        }
        let reference = match self.config.variant {
            Variant::Original => min_rtt,
            Variant::Linux => self.base_rtt,
        };
        // A coarse clock may measure an RTT of 0.
        let fraction = (min_rtt - self.base_rtt).seconds() / reference.seconds().max(1e-12);
        self.diff = cwnd * fraction;
        Backlog::Queued(self.diff)
    }

    /// Returns the window at the end of slow start.
    fn after_slow_start(&self, cwnd: f64) -> f64 {
        let window = match self.config.variant {
            Variant::Original => cwnd * 7.0 / 8.0,
            // w baseRTT / RTT and one packet.
            Variant::Linux => cwnd / (1.0 + self.diff / cwnd) + 1.0,
        };
        window.min(cwnd).max(MIN_WINDOW)
    }
}

impl WindowLaw for Vegas {
    fn on_ack(&mut self, ack: &Ack) {
        self.base_rtt = self.base_rtt.min(ack.rtt);
        self.round = if ack.is_recovering {
            RttRound::EMPTY
        } else {
            let min_rtt = self.round.min_rtt.min(ack.rtt);
            RttRound { min_rtt, samples: self.round.samples + 1, ..self.round }
        };
    }

    fn slow_start(&mut self, cwnd: f64, acked: f64, ack: &Ack) -> SlowStart {
        let doubles_every_round = self.config.variant == Variant::Linux;
        match self.estimate(cwnd, ack) {
            Backlog::Pending => {}
            Backlog::Queued(packets)
                if packets > self.config.gamma && (doubles_every_round || !self.doubles) =>
            {
                self.doubles = false;
                return SlowStart::Ends(self.after_slow_start(cwnd));
            }
            Backlog::Unknown | Backlog::Queued(_) => {
                self.doubles = doubles_every_round || !self.doubles;
            }
        }
        SlowStart::Grows(if self.doubles { acked } else { 0.0 })
    }

    fn increase(&mut self, cwnd: f64, acked: f64, ack: &Ack) -> f64 {
        let Config { alpha, beta, .. } = self.config;
        match self.estimate(cwnd, ack) {
            Backlog::Unknown => cwnd + acked / cwnd,
            Backlog::Queued(packets) if packets < alpha => cwnd + 1.0,
            Backlog::Queued(packets) if packets > beta => (cwnd - 1.0).max(MIN_WINDOW),
            Backlog::Pending | Backlog::Queued(_) => cwnd,
        }
    }

    fn decrease(&mut self, cwnd: f64, _loss: &Loss) -> f64 {
        (self.round, self.doubles) = (RttRound::EMPTY, false);
        (1.0 - self.config.decrease) * cwnd
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let base_rtt = if self.base_rtt.0 == u64::MAX { 0.0 } else { self.base_rtt.seconds() };
        vec![("base_rtt_s", base_rtt), ("queued_packets", self.diff)]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::base::schema::Parameter;
    use crate::base::units::Bytes;
    use crate::transport::controllers::CongestionSignal;
    use crate::transport::fixture::{ack, loss, path};

    /// Flow of packets of 960 B that always fills its window.
    struct Flow {
        controller: Box<dyn Controller>,
        acknowledged: u32,
    }

    fn vegas(config: &Value) -> Flow {
        let config = Config::read(config).unwrap();
        Flow { controller: config.controller(&path()), acknowledged: 0 }
    }

    impl Flow {
        fn window(&self) -> f64 {
            self.controller.gauges()[0].1 / 960.0
        }

        /// Plays rounds with these RTTs: all packets in flight are acknowledged one by one, and the window
        /// is filled again. Returns the windows.
        fn rounds(&mut self, rtts_us: &[u64]) -> Vec<f64> {
            let mut windows = Vec::new();
            for rtt in rtts_us {
                let end = self.acknowledged + self.window() as u32;
                while self.acknowledged < end {
                    self.acknowledged += 1;
                    let next = (self.acknowledged - 1 + self.window() as u32).max(end);
                    let rtt = Duration::from_micros(*rtt);
                    self.controller.on_ack(&Ack { rtt, ..ack(self.acknowledged, next) });
                }
                windows.push((self.window() * 1e3).round() / 1e3);
            }
            windows
        }

        fn lose(&mut self, signal: CongestionSignal) -> f64 {
            let flight = Bytes(self.window() as u64 * 960);
            self.controller.on_loss(&loss(signal, flight));
            self.window()
        }
    }

    fn assert_near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value} is not {expected}");
    }

    /// Flow in congestion avoidance from the start.
    fn avoiding(variant: &str, window: u32) -> Flow {
        vegas(&json!({
            "variant": variant, "window": { "initial": window, "initial_ssthresh": 1 },
        }))
    }

    #[test]
    fn slow_start_doubles_every_other_rtt_or_every_rtt() {
        let doublings = |variant| vegas(&json!({ "variant": variant })).rounds(&[100; 5]);
        assert_eq!(doublings("original"), [20.0, 20.0, 40.0, 40.0, 80.0]);
        assert_eq!(doublings("linux"), [20.0, 40.0, 80.0, 160.0, 320.0]);
    }

    #[test]
    fn slow_start_ends_above_gamma_with_the_window_of_the_variant() {
        // The ACK that ends a round counts as its last sample. The third round grows without a comparison;
        // the fourth is compared as the fifth begins.
        let mut flow = vegas(&json!({}));
        assert_eq!(flow.rounds(&[100, 100, 130, 130, 130]), [20.0, 20.0, 40.0, 40.0, 35.0]);
        let mut flow = vegas(&json!({ "gamma": 10 }));
        assert_eq!(flow.rounds(&[100, 100, 130, 130, 130])[3..], [40.0, 80.0], "40 * 30 / 130");
        // 32 of 40 packets are in the pipe for 100 us.
        let mut flow = vegas(&json!({ "variant": "linux" }));
        assert_eq!(flow.rounds(&[100, 125, 125]), [20.0, 40.0, 33.0]);
    }

    #[test]
    fn between_alpha_and_beta_the_window_is_constant() {
        // 41 packets in 100 us and more: original 41 (RTT - 100) / RTT, Linux 41 (RTT - 100) / 100.
        for (variant, rtt, change) in [
            ("original", 105, 1.0),
            ("original", 106, 0.0),
            ("original", 110, 0.0),
            ("original", 111, -1.0),
            ("linux", 104, 1.0),
            ("linux", 105, 0.0),
            ("linux", 109, 0.0),
            ("linux", 110, -1.0),
        ] {
            let mut flow = avoiding(variant, 40);
            // The first ACK ends an empty round, which adds a fraction of a packet as TCP does; the next
            // round has seen no queue.
            assert_eq!(flow.rounds(&[100, rtt]), [40.025, 41.025]);
            let windows = flow.rounds(&[rtt]);
            assert_eq!(windows, [41.025 + change], "{variant} at {rtt} us");
        }
    }

    #[test]
    fn the_window_may_shrink_below_the_end_of_slow_start_without_a_new_slow_start() {
        let mut flow = vegas(&json!({ "variant": "linux", "alpha": 0.5, "beta": 1 }));
        assert_eq!(flow.rounds(&[100, 125, 125]), [20.0, 40.0, 33.0]);
        let windows = flow.rounds(&[4_000; 40]);
        assert!(windows[39] < 3.0, "{windows:?}");
        let grown = flow.rounds(&[100; 4]);
        assert!(grown[3] < 8.0, "{grown:?}");
    }

    #[test]
    fn a_round_of_fewer_than_three_samples_grows_as_tcp() {
        let mut flow = avoiding("linux", 2);
        // 1 / w at the end of each, in spite of the delay.
        assert_eq!(flow.rounds(&[100, 900]), [2.5, 2.9]);
    }

    #[test]
    fn a_loss_reduces_the_window_and_samples_in_recovery_do_not_count() {
        assert_near(avoiding("original", 40).lose(CongestionSignal::DetectedLoss), 20.0, 1e-9);
        assert_near(
            vegas(&json!({ "decrease": 0.25 })).lose(CongestionSignal::DetectedLoss),
            7.5,
            1e-9,
        );
        assert_near(avoiding("original", 40).lose(CongestionSignal::Timeout), 1.0, 1e-9);
        let mut flow = avoiding("original", 40);
        flow.rounds(&[100]);
        let (at, rtt) = (flow.acknowledged, Duration::from_micros(900));
        for cumulative in at..at + 4 {
            let ack = ack(cumulative, at + 40);
            flow.controller.on_ack(&Ack { is_recovering: true, rtt, ..ack });
        }
        flow.controller.on_ack(&Ack { rtt, ..ack(at + 40, at + 40) });
        // One sample is not enough.
        assert_near(flow.window(), 40.05, 1e-3);
    }
}

//! Vegas: a window that keeps a few packets of each flow in queues, corrected once a round trip.
//!
//! Sources: [vegas94]; ns-2's agent and Linux for what the paper leaves open. A flow of window `w` in a
//! round trip of `RTT`, whose least ever is `base`, sends `w / RTT`, where an empty network would let it
//! send `w / base`. The difference, times one of the two, is its packets in queues:
//!
//! * original: `diff = w (RTT - base) / RTT`, which is what waits. Flows that know their base keep alpha
//!   to beta packets each in the queue, whatever the path.
//! * Linux: `diff = w (RTT - base) / base`. With P packets on the way and q in the queue that is `q (1 +
//!   q / P)`: the same on long paths, and less in the queue where a path holds few packets.
//!
//! A flow that starts behind a standing queue takes that for part of its base and gets more.
//!
//! Left out: [vegas94] sends again before three duplicate ACKs; losses are noticed and repaired here as
//! any TCP does it. Deviation: both variants judge by the least round-trip time of a round trip, as
//! Linux does, where ns-2 takes the mean, and ns-2 rounds the difference to whole packets.

use super::{Ack, Controller, Loss, Mechanism, Path, Reliability, Transport};
use crate::base::schema::{Problem, defaults, positive, positive_fraction};
use crate::base::units::Duration;
use crate::model::packet::Format;
use crate::transport::blocks::tcp::window::{self, Law, SlowStart, Window};

crate::choices! {
    /// Whose Vegas.
    pub enum Variant {
        /// As published: relative to the present round trip. Slow start doubles every other round trip and
        /// judges in those between; it leaves seven eighths of the window (ns-2).
        Original = "original",
        /// As Linux has it: relative to the least round trip. Slow start doubles every round trip and judges
        /// in each; it leaves what the path holds, and a packet.
        Linux = "linux",
    }
}

crate::parameters! {
    /// TCP Vegas: a packet more or less a round trip, so that each flow keeps between alpha and beta packets
    /// in queues ([vegas94]).
    pub struct Config {
        /// How the packets in queues are counted: `original` by the present round-trip time, with a slow
        /// start that doubles every other round trip ([vegas94]); `linux` by the least round-trip time,
        /// with one that doubles every round trip.
        pub variant: Variant = Variant::Original;
        /// alpha: with fewer packets in queues the window grows, in packets ([vegas94] tries 1 and 2; ns-2:
        /// 1, Linux: 2).
        pub alpha: f64 = 2.0, where positive;
        /// beta: with more packets in queues the window shrinks, in packets ([vegas94] tries 3 and 4; ns-2:
        /// 3, Linux: 4).
        pub beta: f64 = 4.0, where positive;
        /// gamma: with more packets in queues slow start is over, in packets (ns-2 and Linux: 1).
        pub gamma: f64 = 1.0, where positive;
        /// Share of the window that a loss or mark takes (Linux, as TCP: 0.5; ns-2: 0.25).
        pub decrease: f64 = 0.5, where positive_fraction;
        /// How the window begins and is bounded.
        pub window: Window = defaults();
        /// Whether routers may mark instead of dropping (RFC 3168).
        pub ecn: bool = false;
        /// How data is made reliable.
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
            base: Duration(u64::MAX),
            round: Round::EMPTY,
            is_growing: false,
            queued: 0.0,
        };
        window::controller(&self.window, law, path)
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        window::mechanism(&self.reliability, self.ecn)
    }
}

/// With fewer samples a round trip says nothing, for one delayed ACK may be all of them (Linux).
const SAMPLES: u32 = 3;

/// Windows are no smaller (ns-2, Linux).
const LEAST_WINDOW: f64 = 2.0;

/// The state of one flow; windows in packets.
struct Vegas {
    config: Config,
    /// The least round-trip time ever.
    base: Duration,
    round: Round,
    /// Whether this is a round trip in which slow start doubles the window.
    is_growing: bool,
    /// The flow's packets in queues, as the last round trip that told had them.
    queued: f64,
}

/// What a round trip has shown so far.
#[derive(Clone, Copy)]
struct Round {
    /// It ends when this segment, the first that was sent in it, is acknowledged.
    ends: u32,
    least: Duration,
    samples: u32,
}

impl Round {
    /// Over when anything is acknowledged.
    const EMPTY: Self = Self::until(0);

    const fn until(ends: u32) -> Self {
        Self { ends, least: Duration(u64::MAX), samples: 0 }
    }
}

/// What to make of an ACK.
enum Verdict {
    /// The round trip goes on.
    Wait,
    /// It is over and has had too few samples.
    Unknown,
    /// It is over and there were so many packets in queues.
    Queued(f64),
}

impl Vegas {
    /// Begins the next round trip if this one is over.
    fn judge(&mut self, window: f64, ack: &Ack) -> Verdict {
        if ack.cumulative <= self.round.ends {
            return Verdict::Wait;
        }
        let Round { least, samples, .. } =
            std::mem::replace(&mut self.round, Round::until(ack.next));
        if samples < SAMPLES {
            return Verdict::Unknown;
        }
        let whole = match self.config.variant {
            Variant::Original => least,
            Variant::Linux => self.base,
        };
        // A poor clock may measure nothing.
        let share = (least - self.base).seconds() / whole.seconds().max(1e-12);
        self.queued = window * share;
        Verdict::Queued(self.queued)
    }

    /// What slow start leaves when the queue is seen.
    fn after_slow_start(&self, window: f64) -> f64 {
        let left = match self.config.variant {
            Variant::Original => window * 7.0 / 8.0,
            // w base / RTT and a packet.
            Variant::Linux => window / (1.0 + self.queued / window) + 1.0,
        };
        left.min(window).max(LEAST_WINDOW)
    }
}

impl Law for Vegas {
    fn on_ack(&mut self, ack: &Ack) {
        self.base = self.base.min(ack.rtt);
        self.round = if ack.is_recovering {
            Round::EMPTY
        } else {
            let least = self.round.least.min(ack.rtt);
            Round { least, samples: self.round.samples + 1, ..self.round }
        };
    }

    fn slow_start(&mut self, window: f64, acked: f64, ack: &Ack) -> SlowStart {
        let doubles_always = self.config.variant == Variant::Linux;
        match self.judge(window, ack) {
            Verdict::Wait => {}
            Verdict::Queued(packets)
                if packets > self.config.gamma && (doubles_always || !self.is_growing) =>
            {
                self.is_growing = false;
                return SlowStart::Ends(self.after_slow_start(window));
            }
            Verdict::Unknown | Verdict::Queued(_) => {
                self.is_growing = doubles_always || !self.is_growing;
            }
        }
        SlowStart::Grows(if self.is_growing { acked } else { 0.0 })
    }

    fn increase(&mut self, window: f64, acked: f64, ack: &Ack) -> f64 {
        let Config { alpha, beta, .. } = self.config;
        match self.judge(window, ack) {
            Verdict::Unknown => window + acked / window,
            Verdict::Queued(packets) if packets < alpha => window + 1.0,
            Verdict::Queued(packets) if packets > beta => (window - 1.0).max(LEAST_WINDOW),
            Verdict::Wait | Verdict::Queued(_) => window,
        }
    }

    fn decrease(&mut self, window: f64, _loss: &Loss) -> f64 {
        (self.round, self.is_growing) = (Round::EMPTY, false);
        (1.0 - self.config.decrease) * window
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let base = if self.base.0 == u64::MAX { 0.0 } else { self.base.seconds() };
        vec![("base_rtt_s", base), ("queued_packets", self.queued)]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::base::schema::Parameter;
    use crate::base::units::{Bytes, Time};
    use crate::transport::controllers::CongestionSignal;
    use crate::transport::fixture::{ack, path};

    /// A flow of packets of 960 B that has sent all that its window lets go.
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

        /// Windows after round trips that each take so many microseconds: all that is in flight is
        /// acknowledged, one by one, and what the window lets go follows.
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

        fn lose(&mut self, sign: CongestionSignal) -> f64 {
            let flight = Bytes(self.window() as u64 * 960);
            self.controller.on_loss(&Loss { now: Time::ZERO, flight, lost: Bytes::ZERO, sign });
            self.window()
        }
    }

    fn assert_near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value} is not {expected}");
    }

    /// In congestion avoidance from the start.
    fn avoiding(variant: &str, window: u32) -> Flow {
        vegas(&json!({
            "variant": variant, "window": { "initial": window, "initial_ssthresh": 1 },
        }))
    }

    #[test]
    fn slow_start_doubles_every_other_round_trip_or_every_one() {
        let doublings = |variant| vegas(&json!({ "variant": variant })).rounds(&[100; 5]);
        assert_eq!(doublings("original"), [20.0, 20.0, 40.0, 40.0, 80.0]);
        assert_eq!(doublings("linux"), [20.0, 40.0, 80.0, 160.0, 320.0]);
    }

    #[test]
    fn slow_start_ends_above_gamma_and_leaves_what_its_variant_says() {
        // The ACK that ends a round trip counts as its last sample. The third round trip grows and is not
        // judged, the fourth is, as the fifth begins.
        let mut flow = vegas(&json!({}));
        assert_eq!(flow.rounds(&[100, 100, 130, 130, 130]), [20.0, 20.0, 40.0, 40.0, 35.0]);
        let mut flow = vegas(&json!({ "gamma": 10 }));
        assert_eq!(flow.rounds(&[100, 100, 130, 130, 130])[3..], [40.0, 80.0], "40 * 30 / 130");
        // Of 40 packets the path holds 32 in 100 us.
        let mut flow = vegas(&json!({ "variant": "linux" }));
        assert_eq!(flow.rounds(&[100, 125, 125]), [20.0, 40.0, 33.0]);
    }

    #[test]
    fn between_alpha_and_beta_the_window_stays() {
        // 41 packets in 100 us and some more: original 41 (RTT - 100) / RTT, Linux 41 (RTT - 100) / 100.
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
            // The first ACK ends an empty round trip, which adds a part of a packet as TCP does; the next
            // round trip has seen no queue.
            assert_eq!(flow.rounds(&[100, rtt]), [40.025, 41.025]);
            let windows = flow.rounds(&[rtt]);
            assert_eq!(windows, [41.025 + change], "{variant} at {rtt} us");
        }
    }

    #[test]
    fn it_may_shrink_below_where_slow_start_ended_and_stays_out_of_slow_start() {
        let mut flow = vegas(&json!({ "variant": "linux", "alpha": 0.5, "beta": 1 }));
        assert_eq!(flow.rounds(&[100, 125, 125]), [20.0, 40.0, 33.0]);
        let windows = flow.rounds(&[4_000; 40]);
        assert!(windows[39] < 3.0, "{windows:?}");
        let grown = flow.rounds(&[100; 4]);
        assert!(grown[3] < 8.0, "{grown:?}");
    }

    #[test]
    fn a_round_trip_of_fewer_than_three_samples_is_as_of_tcp() {
        let mut flow = avoiding("linux", 2);
        // 1 / w at the end of each, though the delay would ask for less.
        assert_eq!(flow.rounds(&[100, 900]), [2.5, 2.9]);
    }

    #[test]
    fn a_loss_takes_its_share_and_what_is_seen_in_recovery_does_not_count() {
        assert_near(avoiding("original", 40).lose(CongestionSignal::Gap), 20.0, 1e-9);
        assert_near(vegas(&json!({ "decrease": 0.25 })).lose(CongestionSignal::Gap), 7.5, 1e-9);
        assert_near(avoiding("original", 40).lose(CongestionSignal::Timeout), 1.0, 1e-9);
        let mut flow = avoiding("original", 40);
        flow.rounds(&[100]);
        let (at, rtt) = (flow.acknowledged, Duration::from_micros(900));
        for cumulative in at..at + 4 {
            let ack = ack(cumulative, at + 40);
            flow.controller.on_ack(&Ack { is_recovering: true, rtt, ..ack });
        }
        flow.controller.on_ack(&Ack { rtt, ..ack(at + 40, at + 40) });
        // One sample says nothing.
        assert_near(flow.window(), 40.05, 1e-3);
    }
}

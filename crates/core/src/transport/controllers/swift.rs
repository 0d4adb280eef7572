//! Swift: a window that follows a target delay, down to fractions of a packet ([swift20] §3, Algorithm 1).
//!
//! The target delay is higher for more hops, and for smaller windows: if many flows share a link, each has a
//! smaller window, and together they need a longer queue.
//!
//! Left out: the endpoint window, for the delay in end hosts, whose processing takes no time here. The delay
//! is the whole RTT, including propagation: the target delay has to exceed the RTT of an empty network, the
//! base RTT ([swift20] §3.5 adds to it per link).

use super::{
    Ack, Allowance, CongestionSignal, Controller, Loss, Mechanism, Path, Reliability, Transport,
};
use crate::base::schema::{Problem, positive, positive_fraction};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::graph::Extent;
use crate::model::packet::Format;
use crate::transport::blocks::path_scaled::WindowSize;

crate::parameters! {
    /// Swift: additive increase below a target delay, and a decrease in proportion to the excess delay;
    /// a window below one packet is paced ([swift20]). The target depends on the network: its defaults
    /// are our own choice, for links of 10 Gb/s.
    pub struct Config {
        /// Target delay for a window of `fs_max` packets or more and 0 hops; should exceed the RTT of
        /// an empty network (own choice: 20 us).
        pub base_target: Duration = Duration::from_micros(20), where positive;
        /// Addition to the target delay per link of the forward path (own choice: 3 us).
        pub hop_scaling: Duration = Duration::from_micros(3);
        /// If true, `base_target` is the distance of the target delay from the base RTT of the flow's path,
        /// which contains every link, and `hop_scaling` is not used (own choice: false).
        pub above_base_rtt: bool = false;
        /// Maximum addition to the target delay for small windows (own choice: 100 us).
        pub fs_range: Duration = Duration::from_micros(100);
        /// Window, in packets, at or below which the addition is `fs_range` (own choice: 0.1).
        pub fs_min: f64 = 0.1, where positive;
        /// Window, in packets, at or above which the addition is 0 (own choice: 100).
        pub fs_max: f64 = 100.0, where positive;
        /// Additive increase, in packets per RTT (own choice: 1).
        pub ai: f64 = 1.0, where positive;
        /// Multiplicative decrease factor: times the fraction of the delay above the target (own choice:
        /// 0.8).
        pub beta: f64 = 0.8, where positive_fraction;
        /// Maximum fraction of the window that one decrease takes (own choice: 0.5).
        pub max_mdf: f64 = 0.5, where positive_fraction;
        /// Initial window (RFC 6928: 10 packets).
        pub initial_cwnd: WindowSize = WindowSize::Packets(10), where positive;
        /// Minimum window, in packets ([swift20]: 0.001).
        pub min_cwnd: f64 = 0.001, where positive;
        /// Maximum window, in packets (own choice: 10000).
        pub max_cwnd: f64 = 10_000.0, where positive;
        /// Number of consecutive timeouts that reset the window to `min_cwnd` (own choice: 5).
        pub retransmit_reset: u32 = 5, where positive;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::selective_repeat();
    }
    check Config::check
}

impl Config {
    fn check(&self) -> Result<(), Problem> {
        let Self { fs_min, fs_max, min_cwnd, max_cwnd, initial_cwnd, .. } = *self;
        if fs_min >= fs_max {
            let message = format!("must be below fs_max, which is {fs_max}");
            return Err(Problem::new("fs_min", message));
        }
        if min_cwnd > max_cwnd {
            let message = format!("must not be above max_cwnd, which is {max_cwnd}");
            return Err(Problem::new("min_cwnd", message));
        }
        if let WindowSize::Packets(initial) = initial_cwnd
            && !(min_cwnd..=max_cwnd).contains(&f64::from(initial))
        {
            let message = format!("must be from min_cwnd to max_cwnd: {min_cwnd} to {max_cwnd}");
            return Err(Problem::new("initial_cwnd", message));
        }
        Ok(())
    }

    /// Returns the target delay of large windows on a path with this base RTT and number of links.
    fn least_target(&self, base_rtt: Duration, hops: u32) -> Duration {
        let path = if self.above_base_rtt { base_rtt } else { self.hop_scaling * u64::from(hops) };
        self.base_target + path
    }

    /// Returns the target delay, in seconds, for this window, in packets, with the target delay of large
    /// windows ([swift20] §3.5).
    fn target(&self, window: f64, least: Duration) -> f64 {
        let range = self.fs_range.seconds();
        let span = self.fs_min.powf(-0.5) - self.fs_max.powf(-0.5);
        let flow_scaling = range * (window.powf(-0.5) - self.fs_max.powf(-0.5)) / span;
        least.seconds() + flow_scaling.clamp(0.0, range)
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        Box::new(Swift {
            config: self.clone(),
            least_target: self.least_target(path.base_rtt, path.hops),
            packet: path.format.payload,
            packet_bits: path.format.on_wire(path.format.payload).bits(),
            line_rate: path.line_rate,
            cwnd: self.initial_cwnd.packets(path).clamp(self.min_cwnd, self.max_cwnd),
            rtt: path.base_rtt,
            last_decrease: None,
            retransmit_cnt: 0,
        })
    }

    /// Pacing applies only to windows below one packet.
    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism::paced_window(&self.reliability)
    }

    fn warnings(&self, extent: &Extent, format: &Format) -> Vec<String> {
        let serialisation = extent.slowest.transmit(format.on_wire(format.payload));
        let (base_rtt, target) = (extent.base_rtt(format), self.base_target);
        let least = self.least_target(base_rtt, extent.links);
        if serialisation > target {
            vec![format!(
                "a packet takes {serialisation} on the slowest link, longer than the base_target of \
                 {target}: windows may stay at min_cwnd although queues are empty"
            )]
        } else if least < base_rtt {
            vec![format!(
                "base_target is {target}, with hop_scaling {least}, below the base RTT of the longest \
                 path, {base_rtt}: windows shrink although queues are empty; give `above_base_rtt = true`"
            )]
        } else {
            Vec::new()
        }
    }
}

/// State of one flow.
struct Swift {
    config: Config,
    /// Target delay of large windows.
    least_target: Duration,
    /// Payload of a packet, and size of a full packet on the link.
    packet: Bytes,
    packet_bits: f64,
    line_rate: Rate,
    /// In packets.
    cwnd: f64,
    /// Last sample; the RTT of an empty network before the first sample.
    rtt: Duration,
    last_decrease: Option<Time>,
    retransmit_cnt: u32,
}

impl Swift {
    /// Multiplies the window by `factor`, at most once per RTT.
    fn decrease(&mut self, now: Time, factor: f64) {
        let can_decrease = self.last_decrease.is_none_or(|last| now.since(last) >= self.rtt);
        if can_decrease {
            self.set_cwnd(now, self.cwnd * factor);
        }
    }

    fn set_cwnd(&mut self, now: Time, cwnd: f64) {
        let before = self.cwnd;
        self.cwnd = cwnd.clamp(self.config.min_cwnd, self.config.max_cwnd);
        if self.cwnd < before {
            self.last_decrease = Some(now);
        }
    }
}

impl Controller for Swift {
    fn on_ack(&mut self, ack: &Ack) {
        self.rtt = ack.rtt;
        self.retransmit_cnt = 0;
        let Config { ai, beta, max_mdf, .. } = self.config;
        let (delay, target) = (ack.rtt.seconds(), self.config.target(self.cwnd, self.least_target));
        if delay < target {
            if ack.is_window_limited() {
                let acked = ack.bytes.bits() / self.packet.bits();
                let increase = ai * acked / self.cwnd.max(1.0);
                self.set_cwnd(ack.now, self.cwnd + increase);
            }
        } else {
            let excess = (delay - target) / delay;
            self.decrease(ack.now, (1.0 - beta * excess).max(1.0 - max_mdf));
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        match loss.signal {
            CongestionSignal::DetectedLoss | CongestionSignal::EcnMark => self.retransmit_cnt = 0,
            CongestionSignal::Timeout => self.retransmit_cnt += 1,
        }
        if self.retransmit_cnt >= self.config.retransmit_reset {
            self.set_cwnd(loss.now, self.config.min_cwnd);
        } else {
            self.decrease(loss.now, 1.0 - self.config.max_mdf);
        }
    }

    fn allowance(&self) -> Allowance {
        if self.cwnd >= 1.0 {
            // Rounding up half a byte lets through a packet that the window just holds.
            return Allowance::window(self.cwnd * self.packet.0 as f64 + 0.5);
        }
        // One packet every `rtt / cwnd`.
        let rate = self.packet_bits * self.cwnd / self.rtt.seconds().max(1e-12);
        let rate = Rate::from_bps(rate).min(self.line_rate);
        Allowance { rate: Some(rate), ..Allowance::window(self.packet.0 as f64) }
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let window = self.cwnd * self.packet.0 as f64;
        let target = self.config.target(self.cwnd, self.least_target);
        vec![("window_bytes", window), ("target_s", target), ("rtt_s", self.rtt.seconds())]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::base::schema::Parameter;
    use crate::transport::fixture::{ack, loss, path};

    /// Flow over two links, with a target delay of 26 us for large windows.
    fn swift(config: &Value) -> Box<dyn Controller> {
        Config::read(config).unwrap().controller(&Path { hops: 2, ..path() })
    }

    /// Plays an ACK at this time and returns the window in packets.
    fn receive_ack(flow: &mut dyn Controller, at_us: u64, rtt_us: u64) -> f64 {
        let now = Time::ZERO + Duration::from_micros(at_us);
        flow.on_ack(&Ack { now, rtt: Duration::from_micros(rtt_us), ..ack(1, 2) });
        flow.gauges()[0].1 / 960.0
    }

    fn lose(flow: &mut dyn Controller, at_us: u64, signal: CongestionSignal) -> f64 {
        let now = Time::ZERO + Duration::from_micros(at_us);
        flow.on_loss(&Loss { now, ..loss(signal, Bytes(960)) });
        flow.gauges()[0].1 / 960.0
    }

    fn assert_near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9 * expected, "{value} is not {expected}");
    }

    #[test]
    fn the_target_delay_follows_the_formula() {
        let config = Config::read(&json!({})).unwrap();
        let target_us =
            |window, hops| config.target(window, config.least_target(Duration::ZERO, hops)) * 1e6;
        // a = 100 us / (1 / sqrt(0.1) - 1 / sqrt(100)) = 32.6554 us, b = -3.26554 us.
        for (window, hops, by_hand) in [
            (1.0, 2, 20.0 + 6.0 + 32.655_43 - 3.265_543),
            (0.25, 2, 26.0 + 2.0 * 32.655_43 - 3.265_543),
            (25.0, 5, 35.0 + 32.655_43 / 5.0 - 3.265_543),
            (100.0, 2, 26.0),
            (1000.0, 2, 26.0),
            (0.1, 2, 126.0),
            (0.001, 2, 126.0),
            (100.0, 0, 20.0),
        ] {
            let target = target_us(window, hops);
            assert!((target - by_hand).abs() < 1e-4, "{target} is not {by_hand} at {window}");
        }
    }

    #[test]
    fn a_target_delay_below_the_serialisation_delay_gives_a_warning() {
        let config = Config::read(&json!({})).unwrap();
        let warnings = |mbps| {
            let extent = Extent::new(Duration::ZERO, [(Rate::from_mbps(mbps), 0)]);
            config.warnings(&extent, &path().format)
        };
        assert_eq!(warnings(400), [""; 0]);
        assert!(warnings(399)[0].contains("longer than the base_target of 20 us"));
    }

    #[test]
    fn a_target_delay_below_the_base_rtt_gives_a_warning_or_follows_it() {
        let config = |above| Config::read(&json!({ "above_base_rtt": above })).unwrap();
        // 1000 B and 40 B take 832 ns at 10 Gb/s; with two links the target is 26 us.
        let extent = |delay| Extent::new(Duration::from_nanos(delay), [(Rate::from_gbps(10), 2)]);
        let warnings = |above, delay| config(above).warnings(&extent(delay), &path().format);
        assert_eq!(warnings(false, 12_168), [""; 0]);
        let warning = &warnings(false, 12_169)[0];
        assert!(
            warning.starts_with("base_target is 20 us, with hop_scaling 26 us, below"),
            "{warning}"
        );
        assert!(warning.contains("26.002 us"), "{warning}");
        assert_eq!(warnings(true, 100_000), [""; 0]);
        // 100 us and 20 us.
        let mut flow = swift(&json!({ "above_base_rtt": true, "fs_range": "0 s" }));
        assert_near(flow.gauges()[1].1, 120e-6);
        assert_near(receive_ack(&mut *flow, 1_000, 119), 10.1);
        assert_near(receive_ack(&mut *flow, 2_000, 160), 10.1 * 0.8);
    }

    #[test]
    fn below_the_target_the_window_grows_by_one_packet_per_rtt() {
        let mut flow = swift(&json!({}));
        assert_near(receive_ack(&mut *flow, 10, 20), 10.1);
        assert_near(receive_ack(&mut *flow, 11, 20), 10.1 + 1.0 / 10.1);
        // Below a window of one packet the increase is `ai` per acknowledged packet.
        let mut flow = swift(&json!({ "initial_cwnd": 1, "ai": 0.25 }));
        assert_near(lose(&mut *flow, 1, CongestionSignal::DetectedLoss), 0.5);
        assert_near(receive_ack(&mut *flow, 10, 20), 0.75);
    }

    #[test]
    fn above_the_target_the_window_shrinks_by_the_excess_once_per_rtt() {
        let flat = json!({ "fs_range": "0 s" });
        let mut flow = swift(&flat);
        // (40 - 26) / 40 = 0.35, times 0.8.
        assert_near(receive_ack(&mut *flow, 100, 40), 7.2);
        assert_near(receive_ack(&mut *flow, 139, 40), 7.2);
        assert_near(receive_ack(&mut *flow, 140, 40), 7.2 * 0.72);
        // At most by a half.
        assert_near(receive_ack(&mut *flow, 10_000, 9_000), 7.2 * 0.36);
    }

    #[test]
    fn losses_take_max_mdf_and_consecutive_timeouts_reset_the_window() {
        let mut flow = swift(&json!({ "retransmit_reset": 3 }));
        assert_near(lose(&mut *flow, 1_000, CongestionSignal::DetectedLoss), 5.0);
        assert_near(lose(&mut *flow, 1_001, CongestionSignal::DetectedLoss), 5.0);
        assert_near(lose(&mut *flow, 2_000, CongestionSignal::Timeout), 2.5);
        assert_near(lose(&mut *flow, 3_000, CongestionSignal::Timeout), 1.25);
        assert_near(receive_ack(&mut *flow, 3_100, 20), 2.05);
        for _ in 0..2 {
            lose(&mut *flow, 4_000, CongestionSignal::Timeout);
        }
        assert_near(lose(&mut *flow, 4_001, CongestionSignal::Timeout), 0.001);
    }

    #[test]
    fn a_window_below_one_packet_sends_a_packet_every_rtt_over_window() {
        let mut flow = swift(&json!({ "initial_cwnd": 1 }));
        let whole = flow.allowance();
        assert_eq!((whole.window, whole.rate), (Bytes(960), None));
        receive_ack(&mut *flow, 1_000, 1_000);
        let paced = flow.allowance();
        // Half a packet of 8000 bits in a millisecond.
        assert_eq!((paced.window, paced.rate), (Bytes(960), Some(Rate::from_mbps(4))));
    }
}

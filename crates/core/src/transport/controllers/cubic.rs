//! CUBIC: the window is a cubic function of the time since the last loss (RFC 9438).
//!
//! Linux (`tcp_cubic.c`) differs from the RFC in three points ([`Variant::Linux`]). Left out of that variant:
//! integer arithmetic, and updates at most once per timer tick.

use super::{
    Ack, CongestionSignal, Controller, Loss, Mechanism, Path, Reliability, Restart, Transport,
    WindowReduction,
};
use crate::base::schema::{Problem, defaults, positive, positive_fraction};
use crate::base::units::{Duration, Time};
use crate::model::packet::Format;
use crate::transport::blocks::tcp::window::{self, Window, WindowLaw};
use crate::transport::endpoint::rtt::smooth;

crate::choices! {
    /// Variant of CUBIC.
    pub enum Variant {
        /// As in RFC 9438.
        Rfc = "rfc9438",
        /// As in Linux: until the first loss, and after a timeout, the window grows by at least 5 % per
        /// RTT; the Reno-friendly window grows by 8/15 packets per RTT throughout; and the window aims
        /// at the cubic function one minimum RTT ahead.
        Linux = "linux",
    }
}

crate::parameters! {
    /// CUBIC: after a loss the window returns quickly to its former value, stays near it, and then
    /// grows faster and faster; where TCP's window would be larger, CUBIC uses that (RFC 9438).
    pub struct Config {
        /// C, the scale of the cubic function, in packets per second cubed (RFC 9438 §4.1: 0.4).
        pub scale: f64 = 0.4, where positive;
        /// beta, the factor of the window's decrease at a loss (RFC 9438 §4.6: 0.7).
        pub beta: f64 = 0.7, where positive_fraction;
        /// If true, a flow with a loss before it regained its former window releases bandwidth to
        /// others (RFC 9438 §4.7).
        pub fast_convergence: bool = true;
        /// Rules of congestion avoidance: `rfc9438`; or `linux`, where the window grows by at least 5 %
        /// per RTT until the first loss and after a timeout, and the Reno-friendly window by 8/15
        /// packets per RTT also above its former maximum.
        pub variant: Variant = Variant::Rfc;
        /// Initial congestion window, slow start and maximum window. RFC 9438 §4.10 recommends
        /// `hystart`.
        pub window: Window = defaults();
        /// If true, packets are ECN-capable: routers may mark instead of drop (RFC 3168).
        pub ecn: bool = false;
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::internet();
    }
    check |config: &Config| {
        if config.beta >= 1.0 {
            return Err(Problem::new("beta", "must be below 1: a loss must reduce the window"));
        }
        Ok(())
    }
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let law = Cubic {
            scale: self.scale,
            beta: self.beta,
            fast_convergence: self.fast_convergence,
            variant: self.variant,
            rtt: None,
            min_rtt: Duration(u64::MAX),
            w_max: 0.0,
            cwnd_prior: f64::INFINITY,
            epoch: None,
        };
        window::controller(&self.window, law, path)
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        window::mechanism(&self.reliability, self.ecn)
    }
}

/// State of one flow; windows in packets.
struct Cubic {
    scale: f64,
    beta: f64,
    fast_convergence: bool,
    variant: Variant,
    /// Smoothed RTT.
    rtt: Option<Duration>,
    min_rtt: Duration,
    /// `W_max`, the window at the plateau; 0 before the first loss and after a timeout.
    w_max: f64,
    /// `cwnd_prior`, the window when ssthresh was last set: before the last loss, or at the end of a slow
    /// start without loss; infinite before.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
}

/// Epoch of congestion avoidance.
#[derive(Clone, Copy)]
struct Epoch {
    start: Time,
    /// Time of the last ACK.
    updated: Time,
    /// Window at the plateau.
    origin: f64,
    /// K, the time from the start to the plateau, in seconds.
    k: f64,
    /// `W_est`, the window of a Reno flow.
    w_est: f64,
}

/// Linux: alpha of the Reno-friendly region, the inverse of `beta_scale`.
const LINUX_ALPHA: f64 = 8.0 / 15.0;
/// Linux: minimum increase per packet acknowledged while the available bandwidth is unknown.
const LINUX_UNKNOWN_INCREASE: f64 = 1.0 / 20.0;
/// Linux: minimum increase in packets per window otherwise.
const LINUX_MIN_INCREASE: f64 = 1.0 / 100.0;
/// Linux: maximum increase per packet acknowledged.
const LINUX_MAX_INCREASE: f64 = 0.5;

impl Cubic {
    /// Starts an epoch (RFC 9438 §4.2). Without `W_max` it starts at the plateau (§4.8, §4.10).
    fn start_epoch(&mut self, cwnd: f64, now: Time) -> Epoch {
        let origin = self.w_max.max(cwnd);
        if self.variant == Variant::Rfc {
            self.w_max = origin;
        }
        // RFC 9438 §4.1.2: slow start ended without a loss.
        if self.cwnd_prior.is_infinite() {
            self.cwnd_prior = cwnd;
        }
        let k = ((origin - cwnd) / self.scale).cbrt();
        Epoch { start: now, updated: now, origin, k, w_est: cwnd }
    }

    /// alpha of the Reno-friendly region: the increase per RTT that gives both equal shares (RFC 9438 §4.3).
    fn reno_friendly_increase(&self, epoch: &Epoch) -> f64 {
        match self.variant {
            Variant::Linux => LINUX_ALPHA,
            Variant::Rfc if epoch.w_est < self.cwnd_prior => {
                3.0 * (1.0 - self.beta) / (1.0 + self.beta)
            }
            Variant::Rfc => 1.0,
        }
    }

    /// The cubic function, after this time since the start of the epoch.
    fn cubic(&self, epoch: &Epoch, after: Duration) -> f64 {
        self.scale * (after.seconds() - epoch.k).powi(3) + epoch.origin
    }

    /// Returns Linux's increase per packet acknowledged.
    fn linux_increase(&self, cwnd: f64, epoch: &Epoch, elapsed: Duration) -> f64 {
        let target = self.cubic(epoch, elapsed + self.min_rtt);
        let mut increase = (target - cwnd).max(LINUX_MIN_INCREASE) / cwnd;
        if self.w_max == 0.0 {
            increase = increase.max(LINUX_UNKNOWN_INCREASE);
        }
        increase.max((epoch.w_est - cwnd) / cwnd).min(LINUX_MAX_INCREASE)
    }
}

impl WindowLaw for Cubic {
    fn on_ack(&mut self, ack: &Ack) {
        self.rtt = Some(smooth(self.rtt, ack.rtt));
        self.min_rtt = self.min_rtt.min(ack.rtt);
    }

    fn on_restart(&mut self, restart: &Restart) {
        // RFC 9438 §4.2: a window that has been reduced grows in slow start, after which an epoch starts.
        if self.variant == Variant::Rfc && restart.reduction != WindowReduction::None {
            self.epoch = None;
        }
        if restart.idle > Duration::ZERO
            && let Some(epoch) = &mut self.epoch
        {
            // Linux (`cubictcp_cwnd_event`): t does not include idle times.
            epoch.start = restart.now.min(epoch.start + restart.idle);
            epoch.updated = restart.now;
        }
    }

    fn increase(&mut self, cwnd: f64, acked: f64, ack: &Ack) -> f64 {
        let mut epoch = self.epoch.unwrap_or_else(|| self.start_epoch(cwnd, ack.now));
        let since_update = ack.now - std::mem::replace(&mut epoch.updated, ack.now);
        if !ack.is_window_limited() {
            // RFC 9438 §5.8: t does not include the time in which the window does not limit the flow.
            epoch.start = epoch.start + since_update;
            self.epoch = Some(epoch);
            return cwnd;
        }
        epoch.w_est += self.reno_friendly_increase(&epoch) * acked / cwnd;
        self.epoch = Some(epoch);
        let elapsed = ack.now - epoch.start;
        if self.variant == Variant::Linux {
            return cwnd + self.linux_increase(cwnd, &epoch, elapsed) * acked;
        }
        if self.cubic(&epoch, elapsed) < epoch.w_est {
            return cwnd.max(epoch.w_est);
        }
        let rtt = self.rtt.unwrap_or(ack.rtt);
        let target = self.cubic(&epoch, elapsed + rtt).clamp(cwnd, 1.5 * cwnd);
        cwnd + (target - cwnd) / cwnd * acked
    }

    fn decrease(&mut self, cwnd: f64, loss: &Loss) -> f64 {
        self.epoch = None;
        self.cwnd_prior = cwnd;
        let converges_fast = self.fast_convergence && cwnd < self.w_max;
        self.w_max = match loss.signal {
            CongestionSignal::Timeout => 0.0,
            CongestionSignal::DetectedLoss | CongestionSignal::EcnMark if converges_fast => {
                cwnd * (1.0 + self.beta) / 2.0
            }
            CongestionSignal::DetectedLoss | CongestionSignal::EcnMark => cwnd,
        };
        self.beta * cwnd
    }

    fn on_repeated_timeout(&mut self) {
        (self.epoch, self.w_max) = (None, 0.0);
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("plateau_packets", self.w_max)]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use crate::base::units::Bytes;
    use crate::transport::fixture::{ack, loss, path};

    /// RTT in milliseconds.
    const RTT: u64 = 10;

    /// Flow of packets of 960 B that always fills its window.
    struct Flow {
        controller: Box<dyn Controller>,
        acknowledged: u32,
        now: Time,
    }

    fn cubic(config: &Value) -> Flow {
        let config = Config::read(config).unwrap();
        Flow { controller: config.controller(&path()), acknowledged: 0, now: Time::ZERO }
    }

    impl Flow {
        fn window(&self) -> f64 {
            self.controller.gauges()[0].1 / 960.0
        }

        /// Plays a round, in which all packets in flight are acknowledged. Returns the window.
        fn round(&mut self) -> f64 {
            self.now = self.now + Duration::from_millis(RTT);
            let end = self.acknowledged + self.window() as u32;
            while self.acknowledged < end {
                self.acknowledged += 1;
                let (now, rtt) = (self.now, Duration::from_millis(RTT));
                self.controller.on_ack(&Ack { now, rtt, ..ack(self.acknowledged, end) });
            }
            self.window()
        }

        fn lose(&mut self, signal: CongestionSignal) -> f64 {
            let flight = Bytes(self.window() as u64 * 960);
            self.controller.on_loss(&Loss { now: self.now, ..loss(signal, flight) });
            self.window()
        }
    }

    /// Packets that the window gains in a number of rounds.
    fn gain(flow: &mut Flow, rounds: usize) -> f64 {
        let before = flow.window();
        for _ in 0..rounds {
            flow.round();
        }
        flow.window() - before
    }

    fn assert_near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value} is not {expected}");
    }

    #[test]
    fn after_a_slow_start_without_loss_the_window_grows_as_renos() {
        // RFC 9438 §4.1.2 and §4.3: cwnd_prior is the window at the end of slow start, so alpha is 1. In 0.3
        // s the cubic function adds only 0.4 * 0.3^3 = 0.01 packets.
        let window = json!({ "initial": 100, "initial_ssthresh": 100 });
        let mut flow = cubic(&json!({ "window": window }));
        assert_near(gain(&mut flow, 30), 30.0, 0.5);
    }

    #[test]
    fn after_a_loss_the_window_grows_slower_than_renos_up_to_the_former_window() {
        let mut flow = cubic(&json!({ "scale": 1e-9, "window": { "initial": 20 } }));
        assert_near(flow.lose(CongestionSignal::DetectedLoss), 14.0, 1e-9);
        // alpha is 3 * 0.3 / 1.7 = 0.53 up to 20 packets, then 1. A round has whole packets only.
        assert_near(gain(&mut flow, 10), 5.3, 0.3);
        gain(&mut flow, 2);
        assert_near(gain(&mut flow, 20), 20.0, 1.0);
    }

    #[test]
    fn linux_grows_by_5_percent_per_rtt_until_the_first_loss() {
        let window = json!({ "initial": 100, "initial_ssthresh": 100 });
        let mut flow = cubic(&json!({ "variant": "linux", "window": window }));
        // One packet for each 20 acknowledged.
        assert_near(gain(&mut flow, 1), 5.0, 1e-9);
        assert_near(gain(&mut flow, 1), 5.25, 0.1);
        // After a loss the former window is known: 8/15 packets per RTT, with a lag of one RTT.
        let mut flow = cubic(&json!({ "variant": "linux", "scale": 1e-9, "window": window }));
        assert_near(flow.lose(CongestionSignal::DetectedLoss), 70.0, 1e-9);
        gain(&mut flow, 10);
        assert_near(gain(&mut flow, 15), 8.0, 0.1);
        // Also above the former window.
        gain(&mut flow, 60);
        assert!(flow.window() > 100.0);
        assert_near(gain(&mut flow, 15), 8.0, 0.1);
        // A timeout forgets it. Slow start ends at 70 % of the window.
        flow.lose(CongestionSignal::Timeout);
        gain(&mut flow, 7);
        let before = flow.window();
        assert_near(gain(&mut flow, 1) / before, 0.05, 0.002);
    }

    #[test]
    fn the_time_of_an_epoch_excludes_idle_times_of_a_connection() {
        let window = |idle_s: u64| {
            let mut flow = cubic(&json!({ "window": { "initial": 100 } }));
            flow.lose(CongestionSignal::DetectedLoss);
            flow.round();
            let idle = Duration::from_millis(1000 * idle_s);
            flow.now = flow.now + idle;
            let (now, reduction) = (flow.now, WindowReduction::None);
            flow.controller.on_restart(&Restart { now, idle, reduction });
            flow.round();
            flow.round()
        };
        // With the idle time, W_cubic is above 0.4 * (100 - 4.2)^3 packets (RFC 9438 §4.2).
        assert_near(window(100), window(0), 1e-6);
    }

    #[test]
    fn a_restart_from_the_initial_window_forgets_the_window_of_a_reno_flow() {
        let mut flow = cubic(&json!({ "window": { "initial": 200, "initial_ssthresh": 200 } }));
        flow.lose(CongestionSignal::DetectedLoss);
        gain(&mut flow, 20);
        let idle = Duration::from_millis(10_000);
        flow.now = flow.now + idle;
        let restart = Restart { now: flow.now, idle, reduction: WindowReduction::Initial };
        // Slow start ends at ssthresh, below the former window.
        flow.controller.on_restart(&restart);
        for _ in 0..8 {
            let before = flow.window();
            assert!(flow.round() <= 2.0 * before, "{} after {before}", flow.window());
        }
    }

    #[test]
    fn the_time_of_an_epoch_excludes_periods_in_which_the_window_does_not_limit_the_flow() {
        let window = |pause_s: u64| {
            let mut flow = Config { window: Window { initial: 100, ..defaults() }, ..defaults() }
                .controller(&path());
            let signal = CongestionSignal::DetectedLoss;
            let flight = Bytes(960 * 100);
            flow.on_loss(&loss(signal, flight));
            let mut now = Time::ZERO;
            let mut step = |seconds: u64, used_window| {
                now = now + Duration::from_millis(1000 * seconds);
                flow.on_ack(&Ack { now, used_window, ..ack(1, 2) });
            };
            step(1, None);
            (0..pause_s).for_each(|_| step(1, Some(Bytes::ZERO)));
            step(1, None);
            flow.gauges()[0].1
        };
        assert_eq!(window(0).to_bits(), window(50).to_bits());
    }
}

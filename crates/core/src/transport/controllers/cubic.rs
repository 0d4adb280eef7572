//! CUBIC: the window is a cubic function of the time since the last loss (RFC 9438).

use super::{Ack, CongestionSignal, Controller, Loss, Mechanism, Path, Reliability, Transport};
use crate::base::schema::{Problem, defaults, positive, positive_fraction};
use crate::base::units::{Duration, Time};
use crate::model::packet::Format;
use crate::transport::blocks::tcp::window::{self, Window, WindowLaw};
use crate::transport::endpoint::rtt::smooth;

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
            rtt: None,
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
    /// Smoothed RTT.
    rtt: Option<Duration>,
    /// `W_max`, the window at the plateau; 0 before the first loss and after a timeout.
    w_max: f64,
    /// `cwnd_prior`, the window before the last loss.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
}

/// Epoch of congestion avoidance.
#[derive(Clone, Copy)]
struct Epoch {
    start: Time,
    /// K, the time from the start to the plateau, in seconds.
    k: f64,
    /// `W_est`, the window of a Reno flow.
    w_est: f64,
}

impl Cubic {
    /// Starts an epoch (RFC 9438 §4.2). Without `W_max` it starts at the plateau (§4.8, §4.10).
    fn start_epoch(&mut self, cwnd: f64, now: Time) -> Epoch {
        self.w_max = self.w_max.max(cwnd);
        let k = ((self.w_max - cwnd) / self.scale).cbrt();
        Epoch { start: now, k, w_est: cwnd }
    }

    /// alpha of the Reno-friendly region: the increase per RTT that gives both equal shares (RFC 9438 §4.3).
    fn reno_friendly_increase(&self, epoch: &Epoch) -> f64 {
        if epoch.w_est < self.cwnd_prior {
            3.0 * (1.0 - self.beta) / (1.0 + self.beta)
        } else {
            1.0
        }
    }
}

impl WindowLaw for Cubic {
    fn on_ack(&mut self, ack: &Ack) {
        self.rtt = Some(smooth(self.rtt, ack.rtt));
    }

    fn increase(&mut self, cwnd: f64, acked: f64, ack: &Ack) -> f64 {
        let mut epoch = self.epoch.unwrap_or_else(|| self.start_epoch(cwnd, ack.now));
        epoch.w_est += self.reno_friendly_increase(&epoch) * acked / cwnd;
        self.epoch = Some(epoch);
        let cubic = |after: Duration| self.scale * (after.seconds() - epoch.k).powi(3) + self.w_max;
        let elapsed = ack.now - epoch.start;
        if cubic(elapsed) < epoch.w_est {
            return cwnd.max(epoch.w_est);
        }
        let rtt = self.rtt.unwrap_or(ack.rtt);
        let target = cubic(elapsed + rtt).clamp(cwnd, 1.5 * cwnd);
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

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("plateau_packets", self.w_max)]
    }
}

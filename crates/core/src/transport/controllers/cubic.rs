//! CUBIC: the window follows a cubic function of the time since the last loss (RFC 9438).

use super::{Ack, CongestionSignal, Controller, Loss, Mechanism, Path, Reliability, Transport};
use crate::base::schema::{Problem, defaults, positive, positive_fraction};
use crate::base::units::{Duration, Time};
use crate::model::packet::Format;
use crate::transport::blocks::tcp::window::{self, Law, Window};
use crate::transport::endpoint::rtt::smooth;

crate::parameters! {
    /// CUBIC: after a loss the window returns quickly to where it was, lingers, and then probes faster
    /// and faster; where TCP would do better, it does as TCP (RFC 9438).
    pub struct Config {
        /// C, how fast the window grows, in packets a second cubed (RFC 9438 §4.1: 0.4).
        pub scale: f64 = 0.4, where positive;
        /// beta, what a loss leaves of the window (RFC 9438 §4.6: 0.7).
        pub beta: f64 = 0.7, where positive_fraction;
        /// Whether a flow that lost before it was back gives way to others (RFC 9438 §4.7).
        pub fast_convergence: bool = true;
        /// How the window begins and is bounded. RFC 9438 §4.10 recommends `hystart`.
        pub window: Window = defaults();
        /// Whether routers may mark instead of dropping (RFC 3168).
        pub ecn: bool = false;
        /// How data is made reliable.
        pub reliability: Reliability = Reliability::internet();
    }
    check |config: &Config| {
        if config.beta >= 1.0 {
            return Err(Problem::new("beta", "must be below 1: a loss must cost something"));
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
            most: 0.0,
            prior: f64::INFINITY,
            epoch: None,
        };
        window::controller(&self.window, law, path)
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        window::mechanism(&self.reliability, self.ecn)
    }
}

/// The state of one flow; windows in packets.
struct Cubic {
    scale: f64,
    beta: f64,
    fast_convergence: bool,
    /// Smoothed round-trip time.
    rtt: Option<Duration>,
    /// `W_max`: the window that the cubic returns to; nothing if there was no loss that told.
    most: f64,
    /// The window before the last loss.
    prior: f64,
    epoch: Option<Epoch>,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy)]
struct Epoch {
    begun: Time,
    /// K: when the cubic is at its plateau, in seconds since then.
    plateau: f64,
    /// `W_est`: the window that TCP would have.
    friendly: f64,
}

impl Cubic {
    /// RFC 9438 §4.2; without a loss to return to, the cubic starts on its plateau (§4.8, §4.10).
    fn begin(&mut self, window: f64, now: Time) -> Epoch {
        self.most = self.most.max(window);
        let plateau = ((self.most - window) / self.scale).cbrt();
        Epoch { begun: now, plateau, friendly: window }
    }

    /// What TCP with this beta adds in a round trip, so that both share equally (RFC 9438 §4.3).
    fn friendly_increase(&self, epoch: &Epoch) -> f64 {
        if epoch.friendly < self.prior { 3.0 * (1.0 - self.beta) / (1.0 + self.beta) } else { 1.0 }
    }
}

impl Law for Cubic {
    fn on_ack(&mut self, ack: &Ack) {
        self.rtt = Some(smooth(self.rtt, ack.rtt));
    }

    fn increase(&mut self, window: f64, acked: f64, ack: &Ack) -> f64 {
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin(window, ack.now));
        epoch.friendly += self.friendly_increase(&epoch) * acked / window;
        self.epoch = Some(epoch);
        let cubic =
            |after: Duration| self.scale * (after.seconds() - epoch.plateau).powi(3) + self.most;
        let elapsed = ack.now - epoch.begun;
        if cubic(elapsed) < epoch.friendly {
            return window.max(epoch.friendly);
        }
        let rtt = self.rtt.unwrap_or(ack.rtt);
        let target = cubic(elapsed + rtt).clamp(window, 1.5 * window);
        window + (target - window) / window * acked
    }

    fn decrease(&mut self, window: f64, loss: &Loss) -> f64 {
        self.epoch = None;
        self.prior = window;
        let is_short = self.fast_convergence && window < self.most;
        self.most = match loss.sign {
            CongestionSignal::Timeout => 0.0,
            CongestionSignal::Gap | CongestionSignal::Mark if is_short => {
                window * (1.0 + self.beta) / 2.0
            }
            CongestionSignal::Gap | CongestionSignal::Mark => window,
        };
        self.beta * window
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        vec![("plateau_packets", self.most)]
    }
}

//! Patched TIMELY: the gradient says which way, the distance from a reference says how far.
//!
//! Source: [ecndelay16]. TIMELY feeds back only the gradient, so any split of the link between
//! flows is an equilibrium; the patch adds the absolute queueing delay, and with it one fixed
//! point:
//! `q* = C T_low + N delta T_low / beta`.

use super::timely::{Completion, Engine, Segments, check_thresholds};
use super::{Ack, Allowance, CachedPathState, Controller, Mechanism, Path, Reliability, Transport};
use crate::base::schema::{defaults, positive, positive_fraction};
use crate::base::units::{Bytes, Duration, Rate};
use crate::model::packet::Format;

crate::parameters! {
    /// Patched TIMELY: TIMELY with a fixed point, by feedback of the absolute delay ([ecndelay16]).
    pub struct Config {
        /// Weight of the newest difference in the moving average of round-trip differences
        /// ([ecndelay16]: 0.875).
        pub ewma_weight: f64 = 0.875, where positive_fraction;
        /// beta, how strongly the distance from the reference cuts the rate ([ecndelay16]: 0.008).
        pub beta: f64 = 0.008, where positive_fraction;
        /// delta, the additive increase of a step ([ecndelay16]: 10 Mb/s).
        pub delta: Rate = Rate::from_mbps(10), where positive;
        /// Below this the rate only rises; also the reference ([ecndelay16]: 50 us).
        pub t_low: Duration = Duration::from_micros(50), where positive;
        /// Above this the rate only falls ([ecndelay16]: 500 us).
        pub t_high: Duration = Duration::from_micros(500), where positive;
        /// The round-trip time that normalises the gradient ([ecndelay16]: 20 us).
        pub min_rtt: Duration = Duration::from_micros(20), where positive;
        /// Segments and their pacing.
        pub segments: Segments = defaults();
        /// How data is made reliable.
        pub reliability: Reliability = Reliability::patient();
    }
    check |timely| check_thresholds(timely.t_low, timely.t_high)
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let engine = Engine::new(&self.segments, self.ewma_weight, self.min_rtt, path);
        Box::new(PatchedTimely { config: self.clone(), engine })
    }

    fn mechanism(&self, format: &Format) -> Mechanism {
        self.segments.mechanism(&self.reliability, format)
    }

    fn segment(&self) -> Option<Bytes> {
        Some(self.segments.size)
    }
}

/// The state of one flow.
struct PatchedTimely {
    config: Config,
    engine: Engine,
}

/// The weight of the decrease: 0 for a clearly falling delay, 1 for a clearly rising one
/// ([ecndelay16]).
fn weight(gradient: f64) -> f64 {
    (2.0 * gradient + 0.5).clamp(0.0, 1.0)
}

impl Controller for PatchedTimely {
    fn on_ack(&mut self, ack: &Ack) {
        let Some(Completion { rtt, gradient }) = self.engine.complete(ack) else { return };
        let Config { beta, delta, .. } = self.config;
        let (t_low, t_high) = (self.config.t_low.seconds(), self.config.t_high.seconds());
        let (rate, delta) = (self.engine.rate, delta.bps());
        let wanted = if rtt < t_low {
            rate + delta
        } else if rtt > t_high {
            rate * (1.0 - beta * (1.0 - t_high / rtt))
        } else {
            // [ecndelay16], the patch.
            let (weight, error) = (weight(gradient), (rtt - t_low) / t_low);
            delta * (1.0 - weight) + rate * (1.0 - beta * weight * error)
        };
        self.engine.set_rate(wanted);
    }

    fn allowance(&self) -> Allowance {
        Allowance::rate(self.engine.rate)
    }

    fn memo(&self) -> Option<CachedPathState> {
        self.engine.memo()
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.engine.gauges()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "the law gives exactly these numbers")]

    use super::*;
    use crate::base::schema::Parameter;
    use crate::transport::controllers::timely::tests::{path, rates};

    #[test]
    fn the_weight_is_a_ramp_between_minus_and_plus_a_quarter() {
        assert_eq!(
            [-1.0, -0.25, 0.0, 0.125, 0.25, 1.0].map(weight),
            [0.0, 0.0, 0.5, 0.75, 1.0, 1.0]
        );
    }

    #[test]
    fn at_the_fixed_point_increase_and_decrease_cancel() {
        // One flow of 10 Gb/s: q*/C = T_low (1 + delta / (beta C)) = 50 us * 1.125.
        let mut config = Config::read(&serde_json::json!({})).unwrap();
        config.segments.start = crate::transport::controllers::timely::Start::LineRate;
        let mut path = path();
        path.line_rate = Rate::from_gbps(10);
        path.initial_rate = Some(Rate::from_gbps(5));
        let mut flow = config.controller(&path);
        // At half the line rate it takes twice the distance.
        assert_eq!(rates(&mut *flow, &[62.5]), [5000.0]);
        assert_eq!(rates(&mut *flow, &[40.0]), [5010.0]);
    }
}

//! Patched TIMELY: TIMELY with a fixed point, by feedback of the queueing delay besides its gradient
//! ([ecndelay16]).
//!
//! TIMELY feeds back only the gradient, so any division of the link between flows is an equilibrium. The
//! patch adds the absolute queueing delay, and with it one fixed point:
//! `q* = C T_low + N delta T_low / beta`.

use super::timely::{
    SegmentRate, SegmentSample, Segments, above_base_rtt, check_thresholds, published_delta,
    segment_base_rtt, threshold_warning,
};
use super::{
    Ack, Allowance, CachedRate, Controller, DesignRates, Mechanism, Path, Reliability, Transport,
};
use crate::base::schema::{defaults, positive, positive_fraction};
use crate::base::units::{Bytes, Duration};
use crate::model::graph::Extent;
use crate::model::packet::Format;
use crate::transport::blocks::path_scaled::FlowRate;

crate::parameters! {
    /// Patched TIMELY: TIMELY with a fixed point, by feedback of the absolute delay ([ecndelay16]).
    pub struct Config {
        /// Weight of the newest difference in the moving average of RTT differences ([ecndelay16]:
        /// 0.875).
        pub ewma_weight: f64 = 0.875, where positive_fraction;
        /// beta, the decrease factor for the distance from the reference ([ecndelay16]: 0.008).
        pub beta: f64 = 0.008, where positive_fraction;
        /// delta, the additive increase per segment ([ecndelay16]: 10 Mb/s).
        pub delta: FlowRate = FlowRate::from_mbps(10), where positive;
        /// `T_low`: the rate only rises below this RTT, which is also the reference ([ecndelay16]:
        /// 50 us).
        pub t_low: Duration = Duration::from_micros(50), where positive;
        /// `T_high`: the rate only falls above this RTT ([ecndelay16]: 500 us).
        pub t_high: Duration = Duration::from_micros(500), where positive;
        /// Minimum RTT, which normalises the gradient ([ecndelay16]: 20 us).
        pub min_rtt: Duration = Duration::from_micros(20), where positive;
        /// If true, the distances of `t_low` and `t_high` from `min_rtt` count from the base RTT of the
        /// flow's path instead, and `min_rtt` is at least that base RTT (own choice: false).
        pub above_base_rtt: bool = false;
        /// Segments and their pacing.
        pub segments: Segments = defaults();
        /// Loss recovery and retransmission timeouts.
        pub reliability: Reliability = Reliability::with_long_rto();
    }
    check |timely| check_thresholds(timely.t_low, timely.t_high)
}

impl Transport for Config {
    fn controller(&self, path: &Path) -> Box<dyn Controller> {
        let mut config = self.clone();
        if self.above_base_rtt {
            let shift = |rtt: Duration| above_base_rtt(rtt, self.min_rtt, path);
            (config.t_low, config.t_high) = (shift(self.t_low), shift(self.t_high));
            config.min_rtt = self.min_rtt.max(segment_base_rtt(path));
        }
        let control = SegmentRate::new(&self.segments, self.ewma_weight, config.min_rtt, path);
        Box::new(PatchedTimely { config, control })
    }

    fn design_rates(&self) -> Option<DesignRates> {
        published_delta(self.delta)
    }

    fn needs_lossless_network(&self) -> bool {
        true
    }

    fn takes_initial_rate(&self) -> bool {
        true
    }

    fn min_rate(&self) -> Option<(&'static str, FlowRate)> {
        Some(("segments.min_rate", self.segments.min_rate))
    }

    fn mechanism(&self, format: &Format) -> Mechanism {
        self.segments.mechanism(&self.reliability, format)
    }

    fn segment_size(&self) -> Option<Bytes> {
        Some(self.segments.size)
    }

    /// `t_low` is the reference: the rates of all flows fall in proportion to the RTT's distance from it.
    fn warnings(&self, extent: &Extent, format: &Format) -> Vec<String> {
        let warning = || threshold_warning(("t_low", self.t_low), extent, format);
        if self.above_base_rtt { Vec::new() } else { warning().into_iter().collect() }
    }
}

/// State of one flow.
struct PatchedTimely {
    config: Config,
    control: SegmentRate,
}

/// Weight of the decrease: 0 for a clearly falling RTT, 1 for a clearly rising RTT ([ecndelay16]).
fn weight(gradient: f64) -> f64 {
    (2.0 * gradient + 0.5).clamp(0.0, 1.0)
}

impl Controller for PatchedTimely {
    fn on_ack(&mut self, ack: &Ack) {
        let Some(SegmentSample { rtt, gradient }) = self.control.on_ack(ack) else { return };
        let Config { beta, delta, .. } = self.config;
        let (t_low, t_high) = (self.config.t_low.seconds(), self.config.t_high.seconds());
        let (rate, delta) = (self.control.rate, delta.bps(self.control.line_rate));
        let new_rate = if rtt < t_low {
            rate + delta
        } else if rtt > t_high {
            rate * (1.0 - beta * (1.0 - t_high / rtt))
        } else {
            // The patch of [ecndelay16].
            let (weight, error) = (weight(gradient), (rtt - t_low) / t_low);
            delta * (1.0 - weight) + rate * (1.0 - beta * weight * error)
        };
        self.control.set_rate(new_rate);
    }

    fn allowance(&self) -> Allowance {
        self.control.allowance()
    }

    fn cached_rate(&self) -> Option<CachedRate> {
        self.control.cached_rate()
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.control.gauges()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "the formulas give exactly these numbers")]

    use super::*;
    use crate::base::schema::Parameter;
    use crate::base::units::Rate;
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
        // At half the line rate the fixed point is at twice the distance.
        assert_eq!(rates(&mut *flow, &[62.5]), [5000.0]);
        assert_eq!(rates(&mut *flow, &[40.0]), [5010.0]);
    }
}

//! Patched TIMELY as a fluid: TIMELY with a fixed point.
//!
//! Source: [ecndelay16]. `q* = C T_low (1 + N delta / (beta C))`, whatever the delay.

use super::timely::{Meter, Reading, Sampling, check_thresholds};
use super::{Fluid, Law, Link, Variable, View};
use sojourn_core::base::schema::{defaults, positive, positive_fraction};
use sojourn_core::base::units::{Duration, Rate};

sojourn_core::parameters! {
    /// Patched TIMELY's fluid model ([ecndelay16]).
    pub struct Config {
        /// beta, how strongly the distance from the reference cuts the rate ([ecndelay16]: 0.008).
        pub beta: f64 = 0.008, where positive_fraction;
        /// delta, the additive increase of a sample ([ecndelay16]: 10 Mb/s).
        pub delta: Rate = Rate::from_mbps(10), where positive;
        /// Below this the rate only rises; also the reference ([ecndelay16]: 50 us).
        pub t_low: Duration = Duration::from_micros(50), where positive;
        /// Above this the rate only falls ([ecndelay16]: 500 us).
        pub t_high: Duration = Duration::from_micros(500), where positive;
        /// Slope of the decrease's weight by the gradient, which is 1/2 at a gradient of zero
        /// ([ecndelay16]: 2; its figure of phase margins was made with 0.5).
        pub weight_slope: f64 = 2.0, where positive;
        /// Measurement of RTTs.
        pub sampling: Sampling = defaults();
    }
    check |timely| check_thresholds(timely.t_low, timely.t_high)
}

impl Fluid for Config {
    fn open(&self, link: Link) -> Box<dyn Law> {
        let thresholds = [self.t_low.seconds(), self.t_high.seconds()];
        Box::new(PatchedTimely {
            meter: Meter::new(&self.sampling, link, thresholds[1]),
            thresholds: thresholds.map(|delay| link.capacity / 8.0 * delay),
            beta: self.beta,
            delta: self.delta.bps(),
            weight_slope: self.weight_slope,
        })
    }
}

struct PatchedTimely {
    meter: Meter,
    /// Queues in bytes; the lower is the reference.
    thresholds: [f64; 2],
    beta: f64,
    delta: f64,
    weight_slope: f64,
}

impl PatchedTimely {
    /// Returns the change of the rate by one sample.
    fn step(&self, now: &Reading) -> f64 {
        let [low, high] = self.thresholds;
        if now.queue < low {
            return self.delta;
        }
        if now.queue > high {
            return -self.beta * (1.0 - high / now.queue) * now.rate;
        }
        let weight = (self.weight_slope * now.gradient + 0.5).clamp(0.0, 1.0);
        (1.0 - weight) * self.delta - weight * self.beta * now.rate * (now.queue - low) / low
    }
}

impl Law for PatchedTimely {
    fn link(&self) -> Link {
        self.meter.link
    }

    fn own(&self) -> Vec<Variable> {
        self.meter.own()
    }

    fn start_flow(&self, rate: Option<f64>) -> Vec<f64> {
        self.meter.start_flow(rate)
    }

    fn rate(&self, view: &View<'_>, flow: usize) -> f64 {
        view.own(flow, 0)
    }

    fn derivative(&self, view: &View<'_>, change: &mut [f64]) {
        self.meter.derivative(view, change, |now| self.step(now));
    }

    fn longest_delay(&self) -> f64 {
        self.meter.longest_delay()
    }

    fn fixed_point(&self) -> Result<Vec<f64>, String> {
        let ([low, high], rate) = (self.thresholds, self.meter.link.fair_share());
        let queue = low * (1.0 + self.delta / (self.beta * rate));
        if queue > high {
            return Err(format!(
                "the queue would be {queue:.0} B: above what t_high stands for, which is {high:.0} B"
            ));
        }
        Ok(vec![queue, rate, 0.0])
    }
}

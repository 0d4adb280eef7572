//! XCP as a fluid: flows' rates, changed by what the router hands out a round trip earlier.
//!
//! Source: [xcp02] §3.5 and §4, with a constant round trip: every flow is given an equal share, and
//! gives in proportion to its rate. The queue is empty at the fixed point; the phase margin is that of
//! the linear analysis, which lets it be negative.

use super::{Fluid, Law, Link, Variable, View};
use sojourn_core::base::schema::{not_negative, positive, positive_fraction};

sojourn_core::parameters! {
    /// XCP's fluid model ([xcp02]).
    pub struct Config {
        /// Gain of the spare capacity ([xcp02]: 0.4).
        pub alpha: f64 = 0.4, where positive;
        /// Gain of the queue ([xcp02]: 0.226, which is alpha squared times the root of 2).
        pub beta: f64 = 0.226, where not_negative;
        /// Share of the traffic that is moved from flow to flow in a round trip ([xcp02]: 0.1).
        pub gamma: f64 = 0.1, where positive_fraction;
        /// Initial rate of a flow, as a share of the capacity; XCP does not define it.
        pub initial_share: f64 = 0.01, where positive_fraction;
    }
}

impl Fluid for Config {
    fn open(&self, link: Link) -> Box<dyn Law> {
        Box::new(Xcp { link, config: self.clone() })
    }
}

const RATE: usize = 0;

struct Xcp {
    link: Link,
    config: Config,
}

impl Law for Xcp {
    fn link(&self) -> Link {
        self.link
    }

    fn own(&self) -> Vec<Variable> {
        vec![self.link.rate("rate_bps")]
    }

    fn start_flow(&self, rate: Option<f64>) -> Vec<f64> {
        vec![rate.unwrap_or(self.config.initial_share * self.link.capacity)]
    }

    fn rate(&self, view: &View<'_>, flow: usize) -> f64 {
        view.own(flow, RATE)
    }

    fn derivative(&self, view: &View<'_>, change: &mut [f64]) {
        let Link { capacity, delay, .. } = self.link;
        let before = |flow| view.past_own(flow, RATE, delay);
        let input: f64 = view.flows().map(before).sum();
        let count = view.flows().count() as f64;
        let drain = view.past_queue(delay) * 8.0 / delay;
        // What is to change about all rates in a round trip, and what moves between them besides.
        let wanted = self.config.alpha * (capacity - input) - self.config.beta * drain;
        let shuffled = (self.config.gamma * input - wanted.abs()).max(0.0);
        let (given, taken) = (wanted.max(0.0) + shuffled, (-wanted).max(0.0) + shuffled);
        for flow in view.flows() {
            let share = given / count - taken * before(flow) / input;
            change[view.layout.place(flow, RATE)] = share / delay;
        }
    }

    fn longest_delay(&self) -> f64 {
        self.link.delay
    }

    fn fixed_point(&self) -> Result<Vec<f64>, String> {
        Ok(vec![0.0, self.link.fair_share()])
    }
}

//! RCP as a fluid: one rate, offered to all flows, which send at it a round trip later.
//!
//! Source: [rcp06] eq. 1 in the limit of short slots, with a constant round trip. The queue is empty at
//! the fixed point; the phase margin is that of the linear analysis, which lets it be negative.

use super::{Fluid, Law, Link, Variable, View};
use sojourn_core::base::schema::{not_negative, positive, positive_fraction};

sojourn_core::parameters! {
    /// RCP's fluid model ([rcp06]).
    pub struct Config {
        /// Gain of the spare capacity (authors' script for [rcp06] Fig. 12: 0.1).
        pub alpha: f64 = 0.1, where positive;
        /// Gain of the queue (authors' script for [rcp06] Fig. 12: 1).
        pub beta: f64 = 1.0, where not_negative;
        /// The first rate, as a share of the link's (authors' module: 5 %).
        pub initial_share: f64 = 0.05, where positive_fraction;
    }
}

impl Fluid for Config {
    fn open(&self, link: Link) -> Box<dyn Law> {
        Box::new(Rcp { link, config: self.clone() })
    }

    fn has_initial_rates(&self) -> bool {
        false
    }
}

const OFFERED: usize = 1;

struct Rcp {
    link: Link,
    config: Config,
}

impl Law for Rcp {
    fn link(&self) -> Link {
        self.link
    }

    fn shared(&self) -> Vec<Variable> {
        vec![self.link.queue(), self.link.rate("offered_bps")]
    }

    fn own(&self) -> Vec<Variable> {
        Vec::new()
    }

    fn start(&self) -> Vec<f64> {
        vec![0.0, self.config.initial_share * self.link.capacity]
    }

    fn start_flow(&self, _rate: Option<f64>) -> Vec<f64> {
        Vec::new()
    }

    fn rate(&self, view: &View<'_>, _flow: usize) -> f64 {
        view.past.value(OFFERED, self.link.delay)
    }

    fn derivative(&self, view: &View<'_>, change: &mut [f64]) {
        let Link { capacity, delay, .. } = self.link;
        let input: f64 = view.flows().map(|flow| self.rate(view, flow)).sum();
        let drain = view.queue() * 8.0 / delay;
        let wanted = self.config.alpha * (capacity - input) - self.config.beta * drain;
        change[OFFERED] = view.state[OFFERED] / delay * wanted / capacity;
    }

    fn longest_delay(&self) -> f64 {
        self.link.delay
    }

    fn fixed_point(&self) -> Result<Vec<f64>, String> {
        Ok(vec![0.0, self.link.fair_share()])
    }
}

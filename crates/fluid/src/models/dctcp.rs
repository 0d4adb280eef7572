//! DCTCP as a fluid: the window and alpha of each flow, and a threshold.
//!
//! Source: [dctcp11]. Marks are those of one constant round trip ago, in which the queue stands at the
//! threshold. A threshold has no slope, so the law has no fixed point but a limit cycle.

use super::{Fluid, Law, Link, Variable, View};
use sojourn_core::base::schema::{fraction, positive, positive_fraction};
use sojourn_core::base::units::Bytes;

sojourn_core::parameters! {
    /// DCTCP's fluid model ([dctcp11], after [dctcp10]).
    pub struct Config {
        /// g, the weight of the newest observation in alpha ([dctcp10] §3.1: 1/16).
        pub gain: f64 = 1.0 / 16.0, where positive_fraction;
        /// alpha at the start (RFC 8257 §3.3: 1).
        pub initial_alpha: f64 = 1.0, where fraction;
        /// K: everything is marked above this queue ([dctcp10]: 65 packets at 10 Gb/s).
        pub threshold: Bytes = Bytes(97_500), where positive;
        /// A packet; the window is never below one, and grows by one a round trip.
        pub packet: Bytes = Bytes(1_500), where positive;
    }
}

impl Fluid for Config {
    fn open(&self, link: Link) -> Box<dyn Law> {
        Box::new(Dctcp {
            link,
            gain: self.gain,
            initial_alpha: self.initial_alpha,
            threshold: self.threshold.0 as f64,
            packet: self.packet.0 as f64,
        })
    }
}

const WINDOW: usize = 0;
const ALPHA: usize = 1;

/// The law; bytes and seconds.
struct Dctcp {
    link: Link,
    gain: f64,
    initial_alpha: f64,
    threshold: f64,
    packet: f64,
}

impl Dctcp {
    /// The round trip when so much is queued.
    fn rtt(&self, queue: f64) -> f64 {
        self.link.delay + queue * 8.0 / self.link.capacity
    }
}

impl Law for Dctcp {
    fn link(&self) -> Link {
        self.link
    }

    fn own(&self) -> Vec<Variable> {
        let limits = [self.packet, f64::INFINITY];
        vec![
            Variable { name: "window_bytes", limits, scale: self.packet },
            Variable { name: "alpha", limits: [0.0, 1.0], scale: 0.1 },
        ]
    }

    fn start_flow(&self, rate: Option<f64>) -> Vec<f64> {
        let rate = rate.unwrap_or_else(|| self.link.fair_share());
        vec![(rate / 8.0 * self.link.delay).max(self.packet), self.initial_alpha]
    }

    fn rate(&self, view: &View<'_>, flow: usize) -> f64 {
        view.own(flow, WINDOW) * 8.0 / self.rtt(view.queue())
    }

    fn derivative(&self, view: &View<'_>, change: &mut [f64]) {
        let rtt = self.rtt(view.queue());
        let is_marked = view.past_queue(self.rtt(self.threshold)) > self.threshold;
        let p = f64::from(u8::from(is_marked));
        for flow in view.flows() {
            let [window, alpha] = [WINDOW, ALPHA].map(|at| view.own(flow, at));
            let place = view.layout.place(flow, 0);
            change[place + WINDOW] = (self.packet - window * alpha / 2.0 * p) / rtt;
            change[place + ALPHA] = self.gain * (p - alpha) / rtt;
        }
    }

    fn longest_delay(&self) -> f64 {
        self.rtt(self.threshold)
    }

    fn fixed_point(&self) -> Result<Vec<f64>, String> {
        Err("marks come all or none, so that windows cycle around the threshold".to_owned())
    }
}

//! TIMELY as a fluid: the rate and the RTT gradient of each flow.
//!
//! Source: [ecndelay16], after [timely15]. A flow takes a sample once a segment, but no more often than
//! every minimum RTT; hyper increase is left out, as it is there. With an increase at a gradient of zero
//! nothing ever rests; if that fell to the decrease, any split of the link would.

use super::{Fluid, Law, Link, Variable, View};
use sojourn_core::base::schema::{Problem, defaults, positive, positive_fraction};
use sojourn_core::base::units::{Bytes, Duration, Rate};

sojourn_core::parameters! {
    /// Measurement of RTTs by a flow of TIMELY or patched TIMELY.
    pub struct Sampling {
        /// Weight of the newest difference in the gradient ([ecndelay16]: 0.875).
        pub ewma_weight: f64 = 0.875, where positive_fraction;
        /// The RTT that normalises the gradient, and the least time between samples ([ecndelay16]:
        /// 20 us).
        pub min_rtt: Duration = Duration::from_micros(20), where positive;
        /// A segment, which gives one sample ([ecndelay16]: 16 KB).
        pub segment: Bytes = Bytes(16_000), where positive;
        /// A packet, whose transmission adds to the delay of feedback ([ecndelay16]: 1 KB).
        pub packet: Bytes = Bytes(1_000);
    }
}

sojourn_core::parameters! {
    /// TIMELY's fluid model ([ecndelay16], after [timely15]).
    pub struct Config {
        /// beta, the strength of a decrease ([timely15]: 0.8).
        pub beta: f64 = 0.8, where positive_fraction;
        /// delta, the additive increase of a sample ([timely15]: 10 Mb/s).
        pub delta: Rate = Rate::from_mbps(10), where positive;
        /// Below this the rate only rises ([timely15]: 50 us).
        pub t_low: Duration = Duration::from_micros(50), where positive;
        /// Above this the rate only falls ([timely15]: 500 us).
        pub t_high: Duration = Duration::from_micros(500), where positive;
        /// Measurement of RTTs.
        pub sampling: Sampling = defaults();
    }
    check |timely| check_thresholds(timely.t_low, timely.t_high)
}

/// The thresholds stand in order.
pub(super) fn check_thresholds(t_low: Duration, t_high: Duration) -> Result<(), Problem> {
    if t_low < t_high {
        return Ok(());
    }
    Err(Problem::new("t_low", format!("must be below t_high, which is {t_high}")))
}

impl Fluid for Config {
    fn open(&self, link: Link) -> Box<dyn Law> {
        let thresholds = [self.t_low.seconds(), self.t_high.seconds()];
        Box::new(Timely {
            meter: Meter::new(&self.sampling, link, thresholds[1]),
            thresholds: thresholds.map(|delay| link.capacity / 8.0 * delay),
            beta: self.beta,
            delta: self.delta.bps(),
        })
    }
}

const RATE: usize = 0;
const GRADIENT: usize = 1;

/// State of a flow: its rate, its RTT gradient, and the queue of its last sample in bytes.
pub(super) struct Reading {
    pub(super) rate: f64,
    pub(super) gradient: f64,
    pub(super) queue: f64,
}

/// Samples of TIMELY and of patched TIMELY: their times and values.
pub(super) struct Meter {
    pub(super) link: Link,
    ewma_weight: f64,
    min_rtt: f64,
    /// Bits.
    segment: f64,
    packet: f64,
    t_high: f64,
}

impl Meter {
    pub(super) fn new(sampling: &Sampling, link: Link, t_high: f64) -> Self {
        Self {
            link,
            ewma_weight: sampling.ewma_weight,
            min_rtt: sampling.min_rtt.seconds(),
            segment: sampling.segment.bits(),
            packet: sampling.packet.bits(),
            t_high,
        }
    }

    pub(super) fn own(&self) -> Vec<Variable> {
        let limits = [f64::NEG_INFINITY, f64::INFINITY];
        vec![self.link.rate("rate_bps"), Variable { name: "gradient", limits, scale: 0.1 }]
    }

    pub(super) fn start_flow(&self, rate: Option<f64>) -> Vec<f64> {
        vec![rate.unwrap_or_else(|| self.link.fair_share()), 0.0]
    }

    /// Sets all changes, where `step` is what a sample changes about the rate.
    pub(super) fn derivative(
        &self,
        view: &View<'_>,
        change: &mut [f64],
        step: impl Fn(&Reading) -> f64,
    ) {
        let capacity = self.link.capacity / 8.0;
        let feedback = view.queue() / capacity + self.packet / self.link.capacity + self.link.delay;
        let queue = view.past_queue(feedback);
        for flow in view.flows() {
            let [rate, gradient] = [RATE, GRADIENT].map(|at| view.own(flow, at));
            let interval = (self.segment / rate).max(self.min_rtt);
            let rise = (queue - view.past_queue(feedback + interval)) / (capacity * self.min_rtt);
            let place = view.layout.place(flow, 0);
            change[place + RATE] = step(&Reading { rate, gradient, queue }) / interval;
            change[place + GRADIENT] = self.ewma_weight * (rise - gradient) / interval;
        }
    }

    /// A queue ten times as long as the flows bear, and a flow at a hundredth of its share.
    pub(super) fn longest_delay(&self) -> f64 {
        let sample = 100.0 * self.segment / self.link.fair_share();
        10.0 * self.t_high + self.link.delay + sample.max(self.min_rtt)
    }
}

struct Timely {
    meter: Meter,
    /// Queues in bytes.
    thresholds: [f64; 2],
    beta: f64,
    delta: f64,
}

impl Law for Timely {
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
        view.own(flow, RATE)
    }

    fn derivative(&self, view: &View<'_>, change: &mut [f64]) {
        let [low, high] = self.thresholds;
        self.meter.derivative(view, change, |now| {
            if now.queue < low {
                self.delta
            } else if now.queue > high {
                -self.beta * (1.0 - high / now.queue) * now.rate
            } else if now.gradient <= 0.0 {
                self.delta
            } else {
                -self.beta * now.gradient * now.rate
            }
        });
    }

    fn longest_delay(&self) -> f64 {
        self.meter.longest_delay()
    }

    fn fixed_point(&self) -> Result<Vec<f64>, String> {
        Err("TIMELY feeds back only the gradient: where that is zero, rates still rise".to_owned())
    }
}

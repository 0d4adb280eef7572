//! DCQCN as a fluid: the current and target rates and alpha of each flow, and marks by its RED profile.
//!
//! Source: [ecndelay16]. Chances are per packet, so the law counts packets; hyper increase is left out,
//! as it is there. Marks are those of `delay` ago, whatever the queue: packets are marked as they leave.

use num_complex::Complex64;

use super::{Fluid, Law, Link, Loop, Variable, View};
use sojourn_core::base::schema::{Problem, positive, positive_fraction};
use sojourn_core::base::units::{Bytes, Duration, Rate};

sojourn_core::parameters! {
    /// DCQCN's fluid model ([ecndelay16], after [dcqcn15]).
    pub struct Config {
        /// g, the weight of the newest observation in alpha ([dcqcn15]: 1/256).
        pub gain: f64 = 1.0 / 256.0, where positive_fraction;
        /// tau, the least time between two notifications ([dcqcn15]: 50 us).
        pub notification_interval: Duration = Duration::from_micros(50), where positive;
        /// tau', after which alpha decays ([dcqcn15]: 55 us).
        pub alpha_timer: Duration = Duration::from_micros(55), where positive;
        /// T: the rate rises after every such time ([dcqcn15]: 55 us).
        pub rate_timer: Duration = Duration::from_micros(55), where positive;
        /// B: bytes sent between two increases by the byte counter ([dcqcn15]: 10 MB).
        pub byte_counter: Bytes = Bytes(10_000_000), where positive;
        /// F: stages of fast recovery ([dcqcn15]: 5).
        pub fast_recovery_stages: u32 = 5, where positive;
        /// `R_AI`, the step of additive increase ([dcqcn15]: 40 Mb/s).
        pub additive_increase: Rate = Rate::from_mbps(40), where positive;
        /// Up to this queue nothing is marked ([dcqcn15]: 5 KB).
        pub kmin: Bytes = Bytes(5_000);
        /// Above this queue everything is marked ([dcqcn15]: 200 KB; the published pictures over time
        /// have 2000 KB with a `pmax` of 10 %).
        pub kmax: Bytes = Bytes(200_000), where positive;
        /// Probability just below `kmax` ([dcqcn15]: 1 %).
        pub pmax: f64 = 0.01, where positive_fraction;
        /// A packet ([ecndelay16]: 1000 B).
        pub packet: Bytes = Bytes(1_000), where positive;
    }
    check |config| {
        if config.kmin >= config.kmax {
            let message = format!("must be below kmax, which is {}", config.kmax);
            return Err(Problem::new("kmin", message));
        }
        Ok(())
    }
}

impl Fluid for Config {
    fn open(&self, link: Link) -> Box<dyn Law> {
        let packet = self.packet.bits();
        Box::new(Dcqcn {
            link,
            packet,
            gain: self.gain,
            tau: self.notification_interval.seconds(),
            alpha_timer: self.alpha_timer.seconds(),
            timer: self.rate_timer.seconds(),
            counter: self.byte_counter.bits() / packet,
            stages: f64::from(self.fast_recovery_stages),
            increase: self.additive_increase.bps() / packet,
            kmin: self.kmin.0 as f64,
            kmax: self.kmax.0 as f64,
            pmax: self.pmax,
        })
    }
}

const RATE: usize = 0;
const TARGET: usize = 1;
const ALPHA: usize = 2;

/// The law; packets and seconds, unless stated otherwise.
struct Dcqcn {
    link: Link,
    /// Bits of a packet.
    packet: f64,
    gain: f64,
    tau: f64,
    alpha_timer: f64,
    /// T, B and F.
    timer: f64,
    counter: f64,
    stages: f64,
    /// `R_AI`.
    increase: f64,
    /// Bytes.
    kmin: f64,
    kmax: f64,
    pmax: f64,
}

/// Effect of marks with a probability on a flow at a rate ([ecndelay16]).
struct Events {
    /// a: the chance of a notification in an interval. Deviation of packets: a receiver that answers a
    /// mark at once waits for the interval from then on, and notifies less often than this.
    cut: f64,
    /// r (b + d): increases a second, by counter and timer.
    raises: f64,
    /// r (c + e): those of them that are additive.
    additive: f64,
}

impl Dcqcn {
    fn events(&self, p: f64, rate: f64) -> Events {
        if p <= 0.0 {
            let raises = rate / self.counter + 1.0 / self.timer;
            return Events { cut: 0.0, raises, additive: raises };
        }
        // For p = 1 this is minus infinity, and all below is as it should be.
        let unmarked = (-p).ln_1p();
        // A rise after `packets` in a row without a mark.
        let by = |packets: f64| {
            let raises = rate * p / (-packets * unmarked).exp_m1();
            (raises, raises * (self.stages * packets * unmarked).exp())
        };
        let (counter, timer) = (by(self.counter), by(self.timer * rate));
        Events {
            cut: -(self.tau * rate * unmarked).exp_m1(),
            raises: counter.0 + timer.0,
            additive: counter.1 + timer.1,
        }
    }

    /// The chance that alpha's timer sees a mark.
    fn seen(&self, p: f64, rate: f64) -> f64 {
        -(self.alpha_timer * rate * (-p).ln_1p()).exp_m1()
    }

    fn marking(&self, queue: f64) -> f64 {
        if queue > self.kmax {
            1.0
        } else {
            (self.pmax * (queue - self.kmin) / (self.kmax - self.kmin)).max(0.0)
        }
    }

    /// The queue, in bytes, at which packets are marked with a probability, were there no cliff.
    fn queue_at(&self, p: f64) -> f64 {
        self.kmin + p / self.pmax * (self.kmax - self.kmin)
    }

    /// p*: the marks that hold every flow at its fair share, by bisection; the ratio rises with p.
    fn fixed_marking(&self) -> f64 {
        let rate = self.link.fair_share() / self.packet;
        // [ecndelay16]: a^2 alpha / ((b + d)(c + e)) = tau^2 R_AI R.
        let wanted = self.tau * self.tau * self.increase / rate;
        let (mut low, mut high) = (1e-12_f64.ln(), 0.999_f64.ln());
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            let p = middle.exp();
            let Events { cut, raises, additive } = self.events(p, rate);
            let is_low = cut * cut * self.seen(p, rate) < wanted * raises * additive;
            *(if is_low { &mut low } else { &mut high }) = middle;
        }
        low.exp()
    }

    /// The target rate that rests where packets are marked with a probability.
    fn fixed_target(&self, p: f64) -> f64 {
        let rate = self.link.fair_share() / self.packet;
        let Events { cut, additive, .. } = self.events(p, rate);
        rate + additive * self.tau * self.increase / cut
    }
}

impl Law for Dcqcn {
    fn link(&self) -> Link {
        self.link
    }

    fn own(&self) -> Vec<Variable> {
        let alpha = Variable { name: "alpha", limits: [0.0, 1.0], scale: 0.1 };
        vec![self.link.rate("rate_bps"), self.link.rate("target_bps"), alpha]
    }

    fn start_flow(&self, rate: Option<f64>) -> Vec<f64> {
        let rate = rate.unwrap_or(self.link.capacity);
        vec![rate, rate, 1.0]
    }

    fn rate(&self, view: &View<'_>, flow: usize) -> f64 {
        view.own(flow, RATE)
    }

    fn derivative(&self, view: &View<'_>, change: &mut [f64]) {
        let delay = self.link.delay;
        // [ecndelay16]'s own integration takes everything for marked before the start.
        let p = if view.time < delay { 1.0 } else { self.marking(view.past_queue(delay)) };
        for flow in view.flows() {
            let [rate, target, alpha] = [RATE, TARGET, ALPHA].map(|at| view.own(flow, at));
            let before = view.past_own(flow, RATE, delay) / self.packet;
            let Events { cut, raises, additive } = self.events(p, before);
            let place = view.layout.place(flow, 0);
            let gap = target - rate;
            change[place + RATE] = -rate * alpha * cut / (2.0 * self.tau) + gap / 2.0 * raises;
            change[place + TARGET] = -gap * cut / self.tau + self.increase * self.packet * additive;
            change[place + ALPHA] = self.gain / self.alpha_timer * (self.seen(p, before) - alpha);
        }
    }

    fn longest_delay(&self) -> f64 {
        self.link.delay
    }

    fn fixed_point(&self) -> Result<Vec<f64>, String> {
        let p = self.fixed_marking();
        let (queue, kmax) = (self.queue_at(p), self.kmax);
        if queue > kmax {
            return Err(format!(
                "marks would have to come with probability {p:.4}, for which the queue would be \
                 {queue:.0} B: above kmax, which is {kmax} B, where everything is marked"
            ));
        }
        let (rate, target) = (self.link.fair_share(), self.fixed_target(p) * self.packet);
        if target > self.link.capacity {
            return Err("the target rate would be above the capacity".to_owned());
        }
        Ok(vec![queue, rate, target, self.seen(p, rate / self.packet)])
    }

    fn published_loop(&self) -> Option<Loop> {
        Some(published(self))
    }
}

/// The open loop as the authors of [ecndelay16] evaluated it for their figure of phase margins.
///
/// It is kept to hold our machinery against that figure, which it gives to the tenth of a degree. What
/// follows from the law itself differs by up to 70 degrees, for four reasons, the first two of which the
/// paper states. (1) They stand at p* of the cube-root formula, 20 to 60 % above the exact one. (2) They
/// expand the terms b to e to first order in p, which requires p B << 1; it is 5 to 1000. (3) Of the
/// raises' r (b + d), the slopes by the current and by the delayed rate are exchanged, and the slope of d
/// and e by the rate is left out. (4) The slope of the target rate by the current rate has a term
/// `R_AI (b + d)` too much. Where the two disagree about stability, integrating the law agrees with ours.
fn published(law: &Dcqcn) -> Loop {
    let flows = law.link.flows as f64;
    let (capacity, increase) = (law.link.capacity / law.packet, law.increase);
    let (rate, stages, gain) = (capacity / flows, law.stages, law.gain);
    // [ecndelay16]: p* to first order.
    let raises = 1.0 / law.counter + 1.0 / (law.timer * rate);
    let p = (increase * raises * raises / (law.alpha_timer * rate * rate)).cbrt();
    let alpha = law.seen(p, rate);
    let target = law.fixed_target(p);
    // Marks for a packet in the queue, from all flows.
    let slope = flows * law.pmax / (law.kmax - law.kmin) * law.packet / 8.0;

    // The slopes of the current rate by: delayed marks, the delayed and the current rate, the target.
    let gap = target - rate;
    let half = 0.5 + raises / 4.0;
    let by_marks = (-0.5 * rate * rate * alpha - half * rate * gap) * slope;
    let by_past = -0.5 * p * rate * alpha - rate * (raises / 2.0 - half * p);
    let by_rate = -0.5 * p * rate * alpha + gap * (raises / 2.0 - half * p);
    let by_target = rate * (raises / 2.0 - half * p);
    // The slopes of the target rate by: the current rate, the delayed rate, delayed marks.
    let shrink = 1.0 + 2.0 * stages + raises / 2.0;
    let target_by_rate = p * rate + raises * increase;
    let target_by_past = -p * gap + increase * (raises - shrink * p);
    let target_by_marks = -rate * (gap + shrink * increase) * slope;
    // Alpha's, through which delayed marks cut the rate.
    let through_alpha = -0.5 * p * rate * rate * gain * capacity * slope;

    let delay = law.link.delay;
    Box::new(move |s: Complex64| {
        let (of_alpha, of_target) = (flows * s + gain * capacity, s + p * rate);
        let delayed = of_alpha * of_target * (by_marks + by_past * s)
            + of_target * through_alpha
            + of_alpha * by_target * (target_by_past * s + target_by_marks);
        let direct = of_alpha * s * (of_target * (by_rate - s) + by_target * target_by_rate);
        // The authors' loop has the opposite sign, as the margin requires.
        delayed / direct * (-s * delay).exp()
    })
}

//! The integrator: Heun's method with a fixed step, and linear interpolation in a ring of
//! past states.
//!
//! The laws are discontinuous (thresholds, limits), so a method of higher order would gain nothing.

use super::law::{Law, Layout, Past, View};
use sojourn_core::base::units::{Duration, Rate, Time};
use sojourn_core::record::Samples;

/// Initial state and step of an integration.
#[derive(Clone, Copy, Debug)]
pub struct Course<'a> {
    /// Initial rate of each flow; a missing entry is the initial rate of the law.
    pub initial_rates: &'a [Rate],
    /// Start of each flow; a flow with a missing entry starts at 0.
    pub starts: &'a [Time],
    /// Duration of the integration.
    pub duration: Duration,
    /// Step of the integration.
    pub step: Duration,
    /// Time between samples; rounded to whole steps.
    pub interval: Duration,
}

/// Past states, one per step; the oldest are overwritten.
struct History {
    step: f64,
    states: Vec<f64>,
    width: usize,
    capacity: usize,
    /// Number of the newest state.
    newest: usize,
    /// Reference instant of delays.
    now: f64,
}

impl History {
    fn new(first: &[f64], step: f64, longest_delay: f64) -> Self {
        let capacity = (longest_delay / step).ceil() as usize + 3;
        let mut states = Vec::with_capacity(capacity * first.len());
        states.extend_from_slice(first);
        Self { step, states, width: first.len(), capacity, newest: 0, now: 0.0 }
    }

    fn push(&mut self, state: &[f64]) {
        self.newest += 1;
        if self.newest < self.capacity {
            self.states.extend_from_slice(state);
        } else {
            let at = self.newest % self.capacity * self.width;
            self.states[at..at + self.width].copy_from_slice(state);
        }
    }

    fn at(&self, number: usize, place: usize) -> f64 {
        self.states[number % self.capacity * self.width + place]
    }
}

impl Past for History {
    fn value(&self, place: usize, delay: f64) -> f64 {
        let oldest = (self.newest + 1).saturating_sub(self.capacity);
        // Before the start, the state is the initial state.
        let steps = ((self.now - delay) / self.step).clamp(oldest as f64, self.newest as f64);
        let before = steps as usize;
        let after = (before + 1).min(self.newest);
        let (low, high) = (self.at(before, place), self.at(after, place));
        low + (high - low) * (steps - before as f64)
    }
}

/// Limits of a variable, for all indices.
fn limits(law: &dyn Law, flows: usize) -> Vec<[f64; 2]> {
    let of = |variables: Vec<super::Variable>| {
        variables.into_iter().map(|variable| variable.limits).collect::<Vec<_>>()
    };
    let mut all = of(law.shared());
    all.extend(of(law.own()).repeat(flows));
    all
}

/// Integration of a law from its start to its end.
struct Run<'a> {
    law: &'a dyn Law,
    layout: Layout,
    limits: Vec<[f64; 2]>,
    active: Vec<bool>,
    state: Vec<f64>,
    history: History,
}

impl Run<'_> {
    /// Returns the derivatives at an instant, restricted to the limits.
    fn changes(&mut self, time: f64, state: &[f64], change: &mut [f64]) {
        change.fill(0.0);
        self.history.now = time;
        let (active, layout) = (&self.active, self.layout);
        self.law.changes(&View { time, state, past: &self.history, active, layout }, change);
        for ((change, value), [least, most]) in change.iter_mut().zip(state).zip(&self.limits) {
            if (value <= least && *change < 0.0) || (value >= most && *change > 0.0) {
                *change = 0.0;
            }
        }
    }

    /// Advances the state by one step.
    fn step(&mut self, time: f64, scratch: &mut [Vec<f64>; 4]) {
        let [first, second, ahead, state] = scratch;
        let step = self.history.step;
        state.clone_from(&self.state);
        self.changes(time, state, first);
        for (place, ahead) in ahead.iter_mut().enumerate() {
            let [least, most] = self.limits[place];
            *ahead = (state[place] + step * first[place]).clamp(least, most);
        }
        self.changes(time + step, ahead, second);
        for (place, value) in self.state.iter_mut().enumerate() {
            let [least, most] = self.limits[place];
            *value = (*value + step / 2.0 * (first[place] + second[place])).clamp(least, most);
        }
        self.history.push(&self.state);
    }

    /// Stores a sample of the queue, the other shared variables, and each flow's rate and variables.
    fn sample(&mut self, time: f64, probes: &[u32], samples: &mut Samples) {
        self.history.now = time;
        let (law, layout) = (self.law, self.layout);
        let (state, past, active) = (&self.state, &self.history, &self.active);
        let view = View { time, state, past, active, layout };
        let mut values = self.state[..layout.shared].to_vec();
        for (flow, is_active) in active.iter().enumerate() {
            values.push(if *is_active { law.rate(&view, flow) } else { 0.0 });
            let own = layout.place(flow, 0);
            values.extend(&state[own + has_rate(law)..own + layout.own]);
        }
        for (probe, value) in probes.iter().zip(values) {
            samples.time_s.push(time);
            samples.probe.push(*probe);
            samples.value.push(value);
        }
    }
}

/// Number of a flow's first variables that equal its rate, which is sampled once.
fn has_rate(law: &dyn Law) -> usize {
    usize::from(law.own().first().is_some_and(|variable| variable.name == "rate_bps"))
}

/// Returns the names of the samples, in order.
fn names(law: &dyn Law, flows: usize) -> Vec<String> {
    let mut names: Vec<String> =
        law.shared().into_iter().map(|variable| variable.name.to_owned()).collect();
    let own: Vec<_> = law.own().into_iter().skip(has_rate(law)).collect();
    for flow in 0..flows {
        names.push(format!("rate_bps flow {flow}"));
        names.extend(own.iter().map(|variable| format!("{} flow {flow}", variable.name)));
    }
    names
}

/// Integrates a law.
pub fn integrate(law: &dyn Law, course: &Course<'_>) -> Samples {
    let flows = law.link().flows;
    let mut state = law.start();
    for flow in 0..flows {
        state.extend(law.start_flow(course.initial_rates.get(flow).map(|rate| rate.bps())));
    }
    let whole = |span: Duration| (span.0 as f64 / course.step.0 as f64).round() as usize;
    let starts: Vec<usize> = (0..flows)
        .map(|i| course.starts.get(i).map_or(0, |start| whole(Duration(start.0))))
        .collect();
    let step = course.step.seconds();
    let mut scratch: [Vec<f64>; 4] = std::array::from_fn(|_| vec![0.0; state.len()]);
    let mut run = Run {
        law,
        layout: law.layout(),
        limits: limits(law, flows),
        active: vec![false; flows],
        history: History::new(&state, step, law.longest_delay()),
        state,
    };
    let mut samples = Samples::default();
    let probes: Vec<u32> = names(law, flows).into_iter().map(|name| samples.probe(name)).collect();
    let (steps, every) = (whole(course.duration), whole(course.interval).max(1));
    for number in 0..=steps {
        for (active, start) in run.active.iter_mut().zip(&starts) {
            *active = number >= *start;
        }
        let time = number as f64 * step;
        if number % every == 0 {
            run.sample(time, &probes, &mut samples);
        }
        if number < steps {
            run.step(time, &mut scratch);
        }
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_past_is_a_line_between_states_and_constant_before_the_start() {
        let mut history = History::new(&[1.0, 10.0], 0.5, 1.0);
        for number in 1..=20 {
            history.push(&[1.0 + f64::from(number), 10.0]);
        }
        history.now = 10.0;
        let at = |delay: f64| history.value(0, delay);
        assert_eq!([at(0.0), at(0.25), at(1.0)].map(|v| (v * 4.0) as u32), [84, 82, 76]);
        assert!((at(9.0) - 17.0).abs() < 1e-12, "only the last five states are kept");
        let young = History { now: 0.2, ..History::new(&[3.0], 0.5, 1.0) };
        assert!((young.value(0, 0.7) - 3.0).abs() < 1e-12);
    }
}

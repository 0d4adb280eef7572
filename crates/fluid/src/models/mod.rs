//! Fluid models: control laws as delay differential equations, without packets or chance.
//!
//! N flows share one link. Its queue is what they send above its capacity; their rates follow a law
//! that reads delayed values of the queue and, in some laws, of the rates. A fluid model shows where a law
//! leads on average, and how close to oscillation it is: its [fixed point](Law::fixed_point) and the
//! phase margin there. Left out: packets, the randomness of marks, losses, slow start, and queues
//! anywhere else.

pub mod dcqcn;
pub mod dctcp;
pub mod patched_timely;
pub mod rcp;
pub mod timely;
pub mod xcp;

use serde_json::{Value, json};

use crate::integrator::{Course, integrate};
use sojourn_core::base::schema::{
    CatalogueEntry, Parameter, Problem, own_fields, parse, positive, table_entry,
};
use sojourn_core::base::units::{Duration, Rate, Time};
use sojourn_core::record::Samples;

pub use crate::{Law, Layout, Link, Loop, Margin, Past, Variable, View, open_loop, phase_margin};

sojourn_core::family! {
    /// Every fluid model, by the name that it is given.
    pub enum Config as dyn Fluid named "fluid" { dcqcn, timely, patched_timely, dctcp, rcp, xcp }
}

/// A kind of fluid model.
pub trait Fluid {
    /// Its law for flows on a link.
    fn open(&self, link: Link) -> Box<dyn Law>;

    /// Returns true if each flow may have its own initial rate.
    fn has_initial_rates(&self) -> bool {
        true
    }
}

/// The most flows that a model may have.
const MOST_FLOWS: u32 = 10_000;
/// The most numbers that are kept of a variable of all flows: samples, or what a law remembers.
const MOST_NUMBERS: f64 = 1e8;

sojourn_core::parameters! {
    /// A fluid model: a control law, the flows and the link that it is to control, and how to
    /// integrate it. `sojourn.fluid` runs one, `sojourn run` does not.
    pub struct Setup {
        /// The control law.
        pub model: Config;
        /// Number of flows.
        pub flows: u32 = 2, where positive;
        /// Rate of the link that they share.
        pub capacity: Rate = Rate::from_gbps(10), where positive;
        /// Delay of the control loop besides queueing, which the laws of TIMELY and DCTCP add: from a
        /// change at the link to the rate that follows it.
        pub delay: Duration = Duration::from_micros(4), where positive;
        /// The rate at which each flow starts; an empty list takes what the law was designed for.
        pub initial_rates: Vec<Rate> = Vec::new();
        /// Start of each flow; with an empty list all start at 0.
        pub starts: Vec<Time> = Vec::new();
        /// For how long to integrate.
        pub duration: Duration = Duration::from_millis(100), where positive;
        /// The step of integration, at most the delay.
        pub step: Duration = Duration::from_micros(1), where positive;
        /// Time between samples; rounded to whole steps.
        pub interval: Duration = Duration::from_micros(100), where positive;
    }
    check |setup| check_setup(setup)
}

fn check_setup(setup: &Setup) -> Result<(), Problem> {
    let Setup { flows, capacity, delay, step, initial_rates, .. } = setup;
    let fail = |field: &str, message: String| Err(Problem::new(field, message));
    if *flows > MOST_FLOWS {
        return fail("flows", format!("must be at most {MOST_FLOWS}, not {flows}"));
    }
    let lists = [("initial_rates", initial_rates.len()), ("starts", setup.starts.len())];
    for (field, given) in lists {
        if given != 0 && given != *flows as usize {
            let message = format!("must have one a flow, which is {flows}, or none, not {given}");
            return fail(field, message);
        }
    }
    if !initial_rates.is_empty() && !setup.model.has_initial_rates() {
        let name = setup.model.name();
        let message = format!("must be left out: `{name}` gives all flows one rate");
        return fail("initial_rates", message);
    }
    if initial_rates.iter().any(|rate| !(1..=capacity.0).contains(&rate.0)) {
        let message = format!("must be above zero, and at most the capacity, which is {capacity}");
        return fail("initial_rates", message);
    }
    if step > delay {
        return fail("step", format!("must be at most the delay, which is {delay}"));
    }
    if setup.interval < *step {
        return fail("interval", format!("must be at least the step, which is {step}"));
    }
    let spans = [("interval", setup.duration, setup.interval), ("step", *delay, *step)];
    for (field, span, part) in spans {
        let numbers = span.seconds() / part.seconds() * f64::from(*flows);
        if numbers > MOST_NUMBERS {
            let message = format!(
                "{span} in parts of {part} for {flows} flows are {numbers:.0e} numbers to keep, of at \
                 most {MOST_NUMBERS:.0e}"
            );
            return fail(field, message);
        }
    }
    Ok(())
}

/// Result of a fluid model.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The queue and the flows' variables over time.
    pub samples: Samples,
    /// Everything else: the model, its fixed point and phase margin.
    pub summary: Value,
}

impl Setup {
    /// Reads a model from JSON.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        Self::read(&parse(text)?)
    }

    /// The law for these flows on this link.
    pub fn law(&self) -> Box<dyn Law> {
        self.model.open(Link {
            capacity: self.capacity.bps(),
            delay: self.delay.seconds(),
            flows: self.flows as usize,
        })
    }

    /// Integrates the model, and finds its fixed point and phase margin.
    pub fn run(&self) -> Outcome {
        let law = self.law();
        let mut summary = json!({ "setup": self.show() });
        match law.fixed_point() {
            Ok(point) => {
                let variables = law.shared().into_iter().chain(law.own());
                let named =
                    variables.zip(&point).map(|(of, value)| (of.name.to_owned(), json!(value)));
                summary["fixed_point"] = Value::Object(named.collect());
                summary["phase_margin"] = shown(phase_margin(&open_loop(&*law, &point)));
                let published = law.published_loop();
                summary["phase_margin_published"] =
                    shown(published.and_then(|it| phase_margin(&it)));
            }
            Err(reason) => summary["no_fixed_point"] = json!(reason),
        }
        let Self { initial_rates, starts, duration, step, interval, .. } = self;
        let (duration, step, interval) = (*duration, *step, *interval);
        let course = Course { initial_rates, starts, duration, step, interval };
        Outcome { samples: integrate(&*law, &course), summary }
    }
}

/// Returns the catalogue of fluid models: the common parameters first, then each model's own.
pub fn catalogue() -> Vec<CatalogueEntry> {
    let setup = table_entry("fluid", Setup::ABOUT, own_fields(Setup::entries()));
    std::iter::once(setup).chain(Config::catalogue()).collect()
}

/// A margin as plain data.
fn shown(margin: Option<Margin>) -> Value {
    margin.map_or(
        Value::Null,
        |Margin { degrees, frequency }| json!({ "degrees": degrees, "frequency_rad_s": frequency }),
    )
}

#[cfg(test)]
mod tests;

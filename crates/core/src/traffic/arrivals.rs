//! What a load means, and the Poisson arrivals that offer it.

use super::Context;
use crate::base::random::Random;
use crate::base::schema::Problem;
use crate::base::units::{Duration, Rate, Time};

crate::choices! {
    /// Which bytes a load counts.
    pub enum LoadCounts {
        /// Payload alone.
        Payload = "payload",
        /// Payload and headers: what the links carry if nothing is lost.
        Wire = "wire",
    }
}

/// A load that a scenario asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Share of the reference.
    pub(crate) share: f64,
    /// What a load of 1 offers, if not what the topology says.
    pub(crate) reference: Option<Rate>,
    /// Which bytes count.
    pub(crate) counts: LoadCounts,
    /// Whether more may be offered than the links can carry.
    pub(crate) allow_overload: bool,
    /// Mean payload of an arrival, in bytes.
    pub(crate) payload: f64,
    /// Mean number of packets of an arrival.
    pub(crate) packets: f64,
}

impl Load {
    /// Arrivals a second that offer the load, and the load in words; `what` arrives.
    pub(crate) fn arrivals(
        &self,
        context: &Context<'_>,
        what: &str,
    ) -> Result<(f64, String), Problem> {
        let wire = 8.0 * (self.payload + self.packets * context.format.header.0 as f64);
        let (counted, counts) = match self.counts {
            LoadCounts::Payload => (8.0 * self.payload, "payload"),
            LoadCounts::Wire => (wire, "payload and headers"),
        };
        let links = &context.graph.load;
        let reference = self.reference.unwrap_or(links.rate);
        let offered = self.share * reference.bps();
        let arrivals = offered / counted;
        let on_wire = arrivals * wire;
        if on_wire >= links.rate.bps() && !self.allow_overload {
            let message = format!(
                "{} of {reference} ({counts}) offers {} on the wire, headers included, but {} \
                 carries only {}; give less, or `allow_overload = true`",
                self.share,
                Rate::from_bps(on_wire),
                links.what,
                links.rate,
            );
            return Err(Problem::new("load", message));
        }
        let words = format!(
            "load {} of {reference} ({counts}) on {}: {} offered, {arrivals:.1} {what}/s",
            self.share,
            links.what,
            Rate::from_bps(offered),
        );
        Ok((arrivals, words))
    }
}

/// The instants of a renewal process: a Poisson process mostly, or a regular one.
#[derive(Clone, Debug)]
pub(crate) struct Instants {
    pub(crate) now: Time,
    pub(crate) gap: Gap,
}

/// The time from one instant to the next.
#[derive(Clone, Debug)]
pub(crate) enum Gap {
    /// Always the same, and none before the first.
    Regular(Duration),
    /// Exponential with this mean, in seconds.
    Poisson(f64, Random),
    /// Pareto with this least value, in seconds, and this shape.
    Pareto(f64, f64, Random),
}

impl Gap {
    /// Random with this mean, in seconds; exponential without a shape.
    pub(crate) fn random(mean: f64, shape: Option<f64>, random: Random) -> Self {
        match shape {
            None => Self::Poisson(mean, random),
            Some(shape) => Self::Pareto(mean * (shape - 1.0) / shape, shape, random),
        }
    }
}

impl Iterator for Instants {
    type Item = Time;

    fn next(&mut self) -> Option<Time> {
        match &mut self.gap {
            Gap::Regular(gap) => {
                let now = self.now;
                self.now = Time(now.0.saturating_add(gap.0));
                Some(now)
            }
            Gap::Poisson(mean, random) => {
                let gap = Duration::from_seconds(random.exponential(*mean));
                self.now = Time(self.now.0.saturating_add(gap.0));
                Some(self.now)
            }
            Gap::Pareto(least, shape, random) => {
                let gap = Duration::from_seconds(random.pareto(*least, *shape));
                self.now = Time(self.now.0.saturating_add(gap.0));
                Some(self.now)
            }
        }
    }
}

/// Stops after so many or at such a time; if neither is given, after one second.
pub(crate) fn bounded<T: Iterator<Item = Time>>(
    instants: T,
    start: Time,
    stop: Option<Time>,
    most: Option<u64>,
) -> impl Iterator<Item = Time> {
    let stop = stop.unwrap_or(match most {
        Some(_) => Time::NEVER,
        None => start + Duration::from_millis(1000),
    });
    let most = most.unwrap_or(u64::MAX);
    (0..most).zip(instants).map(|(_, instant)| instant).take_while(move |instant| *instant < stop)
}

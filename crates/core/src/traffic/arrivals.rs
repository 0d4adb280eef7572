//! Offered load and arrival processes.

use super::WorkloadContext;
use crate::base::random::Random;
use crate::base::schema::Problem;
use crate::base::units::{Duration, Rate, Time};

crate::choices! {
    /// Bytes that a load counts.
    pub enum LoadCounts {
        /// Payload only.
        Payload = "payload",
        /// Payload and headers: what the links carry if no packet is lost.
        Wire = "wire",
    }
}

/// Check of parameters that define what a load means, if arrivals follow from `other` instead of a load.
pub(crate) fn needs_load(
    reference: Option<Rate>,
    counts: LoadCounts,
    other: &str,
) -> Result<(), Problem> {
    let given =
        [("load_reference", reference.is_some()), ("load_counts", counts != LoadCounts::Wire)];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((field, _)) => {
            Err(Problem::new(field, format!("goes with `load`, not with `{other}`")))
        }
        None => Ok(()),
    }
}

/// Offered load of a workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfferedLoad {
    /// Fraction of the reference rate.
    pub(crate) fraction: f64,
    /// Rate that a load of 1 offers; if not given, the reference rate of the topology.
    pub(crate) reference: Option<Rate>,
    /// Bytes that count.
    pub(crate) counts: LoadCounts,
    /// If true, the offered load may exceed the capacity of the links.
    pub(crate) allow_overload: bool,
    /// Mean payload of an arrival, in bytes.
    pub(crate) mean_payload: f64,
    /// Mean number of packets of an arrival.
    pub(crate) mean_packets: f64,
    /// True if hosts send whatever their roles in the topology, so that only a part of the load is on a
    /// reference link between senders and receivers.
    pub(crate) ignores_roles: bool,
}

impl OfferedLoad {
    /// Mean size of an arrival on the link, headers included, in bits.
    pub(crate) fn wire_bits(&self, context: &WorkloadContext<'_>) -> f64 {
        8.0 * (self.mean_payload + self.mean_packets * context.format.header.0 as f64)
    }

    /// Returns the arrival rate per second and a description of the load. `what` names the
    /// arrivals, in the plural.
    pub(crate) fn arrival_rate(
        &self,
        context: &WorkloadContext<'_>,
        what: &str,
    ) -> Result<(f64, String), Problem> {
        let wire = self.wire_bits(context);
        let (counted, counts) = match self.counts {
            LoadCounts::Payload => (8.0 * self.mean_payload, "payload"),
            LoadCounts::Wire => (wire, "payload and headers"),
        };
        let links = &context.graph.load;
        let reference = self.reference.unwrap_or(links.rate);
        let offered = self.fraction * reference.bps();
        let rate = offered / counted;
        let on_wire = rate * wire;
        let is_among_all = self.ignores_roles && context.graph.senders.is_some();
        // What any two hosts offer to each link is checked for the whole workload.
        if on_wire >= links.rate.bps() && !self.allow_overload && !is_among_all {
            let message = format!(
                "{} of {reference} ({counts}) offers {} on the wire, headers included, but {} \
                 carries only {}; give less, or `allow_overload = true`",
                self.fraction,
                Rate::from_bps(on_wire),
                links.what,
                links.rate,
            );
            return Err(Problem::new("load", message));
        }
        // A computed load, such as 0.9 * 0.584, may be a rounding error from a short number.
        let fraction = (self.fraction * 1e6).round() / 1e6;
        let load = format!("load {fraction} of {reference} ({counts})");
        let offered = format!("{} offered", Rate::from_bps(offered));
        let description = if is_among_all {
            format!("{load}: {offered} among all hosts, a part of it on {}", links.what)
        } else {
            format!("{load} on {}: {offered}", links.what)
        };
        // Rates below one per second have two significant digits.
        let decimals = (1.0 - rate.log10()).ceil().clamp(1.0, 15.0) as usize;
        Ok((rate, format!("{description}, {rate:.decimals$} {what}/s")))
    }
}

/// A renewal process: an iterator over arrival times.
#[derive(Clone, Debug)]
pub(crate) struct ArrivalProcess {
    pub(crate) now: Time,
    pub(crate) inter_arrival: InterArrival,
}

/// Inter-arrival time distribution.
#[derive(Clone, Debug)]
pub(crate) enum InterArrival {
    /// Constant. The first arrival is at the start time.
    Constant(Duration),
    /// Exponential with this mean in seconds: a Poisson process.
    Exponential(f64, Random),
    /// Pareto with this minimum in seconds and this shape.
    Pareto(f64, f64, Random),
}

impl InterArrival {
    /// Returns a random inter-arrival time with this mean in seconds: Pareto with `shape`, or
    /// exponential if no shape is given.
    pub(crate) fn with_mean(mean: f64, shape: Option<f64>, random: Random) -> Self {
        match shape {
            None => Self::Exponential(mean, random),
            Some(shape) => Self::Pareto(mean * (shape - 1.0) / shape, shape, random),
        }
    }
}

impl Iterator for ArrivalProcess {
    type Item = Time;

    fn next(&mut self) -> Option<Time> {
        match &mut self.inter_arrival {
            InterArrival::Constant(gap) => {
                let now = self.now;
                self.now = Time(now.0.saturating_add(gap.0));
                Some(now)
            }
            InterArrival::Exponential(mean, random) => {
                let gap = Duration::from_seconds(random.exponential(*mean));
                self.now = Time(self.now.0.saturating_add(gap.0));
                Some(self.now)
            }
            InterArrival::Pareto(least, shape, random) => {
                let gap = Duration::from_seconds(random.pareto(*least, *shape));
                self.now = Time(self.now.0.saturating_add(gap.0));
                Some(self.now)
            }
        }
    }
}

/// End of an arrival process that [`limit_arrivals`] limits, unless the number of arrivals ends it.
pub(crate) fn arrivals_end(start: Time, stop: Option<Time>, max_arrivals: Option<u64>) -> Time {
    stop.unwrap_or(match max_arrivals {
        Some(_) => Time::NEVER,
        None => start + Duration::from_millis(1000),
    })
}

/// Number of arrivals below which their rate is undefined: the time from the first to the last is short.
pub(crate) const LEAST_ARRIVALS: usize = 10;

/// Returns the last arrival up to `limit`, or `None` if there are fewer than [`LEAST_ARRIVALS`].
pub(crate) fn last_of_many(arrivals: impl Iterator<Item = Time>, limit: Time) -> Option<Time> {
    let arrivals = arrivals.take_while(|arrival| *arrival <= limit);
    let (count, last) = arrivals.fold((0, Time::ZERO), |(count, _), arrival| (count + 1, arrival));
    (count >= LEAST_ARRIVALS).then_some(last)
}

/// Ends an arrival process after `max_arrivals` arrivals or at `stop`; if neither is given, one
/// second after `start`.
pub(crate) fn limit_arrivals<T: Iterator<Item = Time>>(
    arrivals: T,
    start: Time,
    stop: Option<Time>,
    max_arrivals: Option<u64>,
) -> impl Iterator<Item = Time> {
    let stop = arrivals_end(start, stop, max_arrivals);
    let max_arrivals = max_arrivals.unwrap_or(u64::MAX);
    (0..max_arrivals)
        .zip(arrivals)
        .map(|(_, arrival)| arrival)
        .take_while(move |arrival| *arrival < stop)
}

//! What a workload will ask for, roughly, before it is opened: so that what could never be held is refused.

use crate::base::units::{Bytes, Duration, Time};
use crate::model::flow::FlowSpec;

/// What a workload will ask for: a central estimate, or what is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkloadEstimate {
    /// Flows that start.
    pub flows: f64,
    /// Whether so many will start if time allows; otherwise the network says how many follow others.
    pub is_counted: bool,
    /// Payload of all that have a size, in bytes.
    pub payload: f64,
    /// Flows that are in progress together whatever the network does: those that start at one instant, those
    /// that do not end by themselves.
    pub together: f64,
    /// When the first starts.
    pub first: Time,
    /// When the last starts, or when the last of those stops that do not end by themselves.
    pub last: Time,
    /// What is written down before the run, in bytes.
    pub listed: f64,
}

impl WorkloadEstimate {
    /// Flows that are all drawn beforehand, of `payload` bytes together.
    pub(crate) fn listed(flows: f64, payload: f64, first: Time, last: Time) -> Self {
        let listed = flows * size_of::<FlowSpec>() as f64;
        Self { flows, is_counted: true, payload, together: 0.0, first, last, listed }
    }

    /// The same of which some do not end by themselves, but stop; or never do.
    pub(crate) fn lasting(self, flows: f64, stop: Option<Time>) -> Self {
        Self { together: flows, last: self.last.max(stop.unwrap_or(Time::NEVER)), ..self }
    }

    /// What arrives `rate` times a second, in batches of some flows with so much payload, until `stop` or so
    /// many batches have come; if neither is given, for one second.
    pub(crate) fn arriving(
        rate: f64,
        (flows, payload): (f64, f64),
        first: Time,
        stop: Option<Time>,
        most: Option<u64>,
    ) -> Self {
        let span = match (stop, most) {
            (Some(stop), _) => stop.since(first).seconds(),
            (None, Some(_)) => f64::INFINITY,
            (None, None) => 1.0,
        };
        let most = most.map_or(f64::INFINITY, |most| most as f64);
        let batches = (rate * span).min(most);
        Self {
            flows: batches * flows,
            is_counted: true,
            payload: batches * payload,
            together: flows,
            first,
            last: first + Duration::from_seconds(batches / rate),
            listed: 0.0,
        }
    }

    /// Both at once.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            flows: self.flows + other.flows,
            is_counted: self.is_counted && other.is_counted,
            payload: self.payload + other.payload,
            together: self.together + other.together,
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            listed: self.listed + other.listed,
        }
    }

    /// What of it starts before `limit`, if starts are even over time.
    pub(crate) fn until(self, limit: Time) -> Self {
        let span = self.last.since(self.first).seconds();
        if self.last <= limit || self.last == Time::NEVER || span <= 0.0 {
            return Self { last: self.last.min(limit), ..self };
        }
        let share = limit.since(self.first).seconds() / span;
        let (flows, payload) = (share * self.flows, share * self.payload);
        Self { flows: flows.max(self.together), payload, last: limit, ..self }
    }

    /// How many flows are in progress at most, roughly, in a network of so many `links` at its edge that
    /// carries `rate` bytes a second: all that does not end; of what comes faster than that, what is left
    /// over; otherwise what links that share fairly hold on average.
    pub(crate) fn live(&self, rate: f64, links: f64) -> f64 {
        let span = self.last.since(self.first).seconds();
        let load = if span > 0.0 { self.payload / span / rate } else { f64::INFINITY };
        let queued = if load < 0.95 {
            links * load / (1.0 - load)
        } else {
            self.flows * (1.0 - 0.95 / load)
        };
        self.flows.min(self.together + queued)
    }

    /// When it is over, roughly, in a network that carries `rate` bytes a second.
    pub(crate) fn ends(&self, rate: f64) -> Time {
        let takes = Duration::from_seconds(self.payload / rate);
        self.last.max(self.first + takes)
    }
}

/// The payload of so many flows.
pub(crate) fn payload(flows: f64, size: Option<Bytes>) -> f64 {
    flows * size.map_or(0.0, |size| size.0 as f64)
}

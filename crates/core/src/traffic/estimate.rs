//! Estimates the size of a workload before the run, to reject workloads that do not fit in memory.

use crate::base::units::{Bytes, Duration, Time};
use crate::model::flow::FlowSpec;

/// Estimated size of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkloadEstimate {
    /// Number of flows that start.
    pub flows: f64,
    /// True if the workload alone determines the number of flows; false if the number also depends
    /// on flow completion times (closed loop).
    pub is_fixed: bool,
    /// Total payload of all flows with a size, in bytes.
    pub payload: f64,
    /// Flows that are active at the same time whatever the network does: flows of one batch, and
    /// long-lived flows.
    pub concurrent: f64,
    /// Number of hosts whose links long-lived flows can fill.
    pub filled_hosts: f64,
    /// End of the last long-lived flow, if there is one; [`Time::NEVER`] without a stop.
    pub long_lived_end: Option<Time>,
    /// Start of the first flow.
    pub first: Time,
    /// Start of the last flow, or stop of the last long-lived flow, whichever is later.
    pub last: Time,
    /// Memory for flows that are generated before the run, in bytes.
    pub stored_bytes: f64,
    /// Flows that start only when other flows have ended, in the place of those, and their payload in bytes.
    pub dependent: [f64; 2],
}

impl WorkloadEstimate {
    /// Estimate for `flows` flows that are generated before the run, with a total `payload` in
    /// bytes.
    pub(crate) fn from_list(flows: f64, payload: f64, first: Time, last: Time) -> Self {
        let stored_bytes = flows * size_of::<FlowSpec>() as f64;
        Self {
            flows,
            is_fixed: true,
            payload,
            concurrent: 0.0,
            filled_hosts: 0.0,
            long_lived_end: None,
            first,
            last,
            stored_bytes,
            dependent: [0.0; 2],
        }
    }

    /// Marks `flows` of the flows as long-lived, ending at `stop`, or never if `stop` is not given. They can
    /// fill the links of `filled_hosts` hosts.
    pub(crate) fn with_long_lived(self, flows: f64, filled_hosts: f64, stop: Option<Time>) -> Self {
        let end = stop.unwrap_or(Time::NEVER);
        let last = self.last.max(end);
        Self { concurrent: flows, filled_hosts, long_lived_end: Some(end), last, ..self }
    }

    /// Estimate for batches that arrive `rate` times a second, each with a number of flows and a
    /// payload in bytes, until `stop` or until `max_batches` batches have arrived; if neither is
    /// given, for one second.
    pub(crate) fn from_rate(
        rate: f64,
        (flows, payload): (f64, f64),
        first: Time,
        stop: Option<Time>,
        max_batches: Option<u64>,
    ) -> Self {
        let span = match (stop, max_batches) {
            (Some(stop), _) => stop.since(first).seconds(),
            (None, Some(_)) => f64::INFINITY,
            (None, None) => 1.0,
        };
        let max_batches = max_batches.map_or(f64::INFINITY, |batches| batches as f64);
        let batches = (rate * span).min(max_batches);
        Self {
            flows: batches * flows,
            is_fixed: true,
            payload: batches * payload,
            concurrent: flows,
            filled_hosts: 0.0,
            long_lived_end: None,
            first,
            last: first + Duration::from_seconds(batches / rate),
            stored_bytes: 0.0,
            dependent: [0.0; 2],
        }
    }

    /// Keeps `connections` persistent connections between each of a number of pairs of hosts, which stay
    /// until the end of the run.
    pub(crate) fn with_connections(self, connections: Option<u32>, pairs: f64) -> Self {
        let open = f64::from(connections.unwrap_or(0)) * pairs;
        Self { concurrent: self.concurrent.max(open.min(self.flows)), ..self }
    }

    /// Combines two workloads that run at the same time.
    pub(crate) fn combined(self, other: Self) -> Self {
        Self {
            flows: self.flows + other.flows,
            is_fixed: self.is_fixed && other.is_fixed,
            payload: self.payload + other.payload,
            concurrent: self.concurrent + other.concurrent,
            filled_hosts: self.filled_hosts + other.filled_hosts,
            long_lived_end: self.long_lived_end.max(other.long_lived_end),
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            stored_bytes: self.stored_bytes + other.stored_bytes,
            dependent: [0, 1].map(|i| self.dependent[i] + other.dependent[i]),
        }
    }

    /// Keeps the flows that start before `limit`, assuming a uniform start rate.
    pub(crate) fn truncated(self, limit: Time) -> Self {
        let span = self.last.since(self.first).seconds();
        if self.last <= limit || self.last == Time::NEVER || span <= 0.0 {
            return Self { last: self.last.min(limit), ..self };
        }
        let share = limit.since(self.first).seconds() / span;
        let (flows, payload) = (share * self.flows, share * self.payload);
        let dependent = self.dependent.map(|number| share * number);
        Self { flows: flows.max(self.concurrent), payload, last: limit, dependent, ..self }
    }

    /// Estimates the peak number of live flows in a network with `links` access links that carries
    /// `rate` bytes a second: long-lived flows, plus the backlog of flows if the load exceeds
    /// capacity, or else the mean number of flows under processor sharing, ρ/(1 − ρ) per link.
    pub(crate) fn live_flows(&self, rate: f64, links: f64) -> f64 {
        let span = self.last.since(self.first).seconds();
        let [dependent, dependent_payload] = self.dependent;
        let (flows, payload) = (self.flows - dependent, self.payload - dependent_payload);
        let load = if span > 0.0 { payload / span / rate } else { f64::INFINITY };
        let queued =
            if load < 0.95 { links * load / (1.0 - load) } else { flows * (1.0 - 0.95 / load) };
        self.flows.min(self.concurrent + queued)
    }

    /// Estimates the end of the run in a network that carries `rate` bytes a second.
    pub(crate) fn end_time(&self, rate: f64) -> Time {
        let duration = Duration::from_seconds(self.payload / rate);
        self.last.max(self.first + duration)
    }
}

/// Returns the total payload of `flows` flows of one size, in bytes.
pub(crate) fn payload(flows: f64, size: Option<Bytes>) -> f64 {
    flows * size.map_or(0.0, |size| size.0 as f64)
}

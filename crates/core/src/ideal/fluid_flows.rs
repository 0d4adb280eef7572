//! State of a run of an ideal: fluid flows from their start to their record.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::arrivals::RoutedFlow;
use super::{FluidScheduler, IdealOutcome, IdealSetup};
use crate::base::run_control::Progress;
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::{self, FlowRecord, FlowSpec};
use crate::model::graph::LinkId;

/// Converts a time to a float, which is exact up to two and a half hours.
pub(crate) fn picoseconds(time: Time) -> f64 {
    if time == Time::NEVER { f64::INFINITY } else { time.0 as f64 }
}

/// Link state for an allocation, by [`LinkId`].
#[derive(Debug)]
pub struct FluidLinks {
    /// Link rates in bits per second.
    pub capacity: Vec<f64>,
    /// Number of active flows that cross each link.
    pub flows: Vec<u32>,
}

impl FluidLinks {
    /// Links of the given rates, without flows.
    pub(crate) fn new(rates: impl IntoIterator<Item = Rate>) -> Self {
        let capacity: Vec<f64> = rates.into_iter().map(Rate::bps).collect();
        Self { flows: vec![0; capacity.len()], capacity }
    }

    /// Adds a flow over the links of `route`. It has sent nothing and never ends.
    pub(crate) fn add_flow(&mut self, route: Vec<LinkId>) -> FluidFlow {
        let mut bottleneck = f64::INFINITY;
        for link in &route {
            self.flows[*link as usize] += 1;
            bottleneck = bottleneck.min(self.capacity[*link as usize]);
        }
        FluidFlow {
            links: route,
            rate: 0.0,
            bottleneck,
            record: 0,
            total: f64::INFINITY,
            sent: 0.0,
            stop: f64::INFINITY,
            lag: 0.0,
            latency: 0.0,
            intervals: [[0.0, 0.0]; 2],
            measured: [0.0, 0.0],
        }
    }
}

/// An active flow.
///
/// With rates in bits per second and times in picoseconds, amounts are in picobits. Rates and bytes
/// are then whole numbers, which floats add and subtract exactly.
#[derive(Debug)]
pub struct FluidFlow {
    /// Links of the path.
    pub links: Vec<LinkId>,
    /// Allocated rate in bits per second.
    pub rate: f64,
    /// Rate of the slowest link of the path.
    pub bottleneck: f64,
    /// Index of the flow record.
    pub(crate) record: usize,
    /// Total to send, headers included; infinite for a long-lived flow.
    pub(crate) total: f64,
    sent: f64,
    /// Time at which the flow stops sending; infinite if it does not.
    stop: f64,
    /// Time lost so far against service at the bottleneck rate.
    lag: f64,
    /// Ideal FCT minus the transmission time at the bottleneck: propagation, and store-and-forward
    /// of the last packet.
    latency: f64,
    /// Measured interval and that of long-lived flows, and the amounts sent in them.
    intervals: [[f64; 2]; 2],
    measured: [f64; 2],
}

/// Picobits per byte.
const BYTE: f64 = 8e12;

impl FluidFlow {
    /// Returns the amount left to send, headers included, in picobits; infinite for a long-lived
    /// flow.
    pub fn remaining(&self) -> f64 {
        self.total - self.sent
    }

    /// Returns the flow number, in order of start.
    pub fn number(&self) -> usize {
        self.record
    }

    /// Returns the time until the flow departs at its current rate.
    pub(crate) fn time_left(&self, now: f64) -> f64 {
        (self.remaining() / self.rate).min((self.stop - now).max(0.0))
    }

    /// Returns the amount left to send after `span` at the current rate.
    pub(crate) fn remaining_after(&self, span: f64) -> f64 {
        self.total - self.sent_after(span)
    }

    fn sent_after(&self, span: f64) -> f64 {
        // Rounding could exceed the total.
        (self.sent + self.rate * span).min(self.total)
    }

    /// Serves the flow from `now` for `span` at its current rate.
    pub(crate) fn advance(&mut self, now: f64, span: f64) {
        let rate = self.rate;
        assert!(
            (0.0..=self.bottleneck).contains(&rate),
            "flow {}: invalid rate {rate} b/s",
            self.record
        );
        self.sent = self.sent_after(span);
        for (measured, [from, to]) in self.measured.iter_mut().zip(self.intervals) {
            *measured += rate * ((now + span).min(to) - now.max(from)).max(0.0);
        }
        // The amount sent over the bottleneck rate is the time that the ideal FCT contains. The sum
        // never decreases and is exactly zero for an undisturbed flow, so no slowdown is below one.
        self.lag += span * (1.0 - self.rate / self.bottleneck);
    }

    /// Returns the amount that has reached the receiver `age` after the start, if the flow is not
    /// served after that time.
    ///
    /// The receiver sees data one `latency` after it was sent. Time lost since then counts as lost
    /// before, so the result is a lower bound; at the completion time it is the whole flow.
    fn received(&self, age: f64) -> f64 {
        ((age - self.latency - self.lag) * self.bottleneck).clamp(0.0, self.sent)
    }
}

/// State of a run.
pub(crate) struct FluidRun<'a> {
    pub(super) setup: IdealSetup<'a>,
    now: f64,
    links: FluidLinks,
    scheduler: Box<dyn FluidScheduler>,
    /// Number of active flows.
    active: usize,
    /// Times at which departed flows are delivered, and their records; `None` if no flow follows others.
    deliveries: Option<BinaryHeap<Reverse<(Time, usize)>>>,
    /// Route buffers of departed flows, for reuse.
    spare: Vec<Vec<LinkId>>,
    /// Places of records that were not kept, for reuse.
    unused: Vec<usize>,
    /// Number of flows so far.
    started: u64,
    /// Bytes that each link carried: of the whole run, and in the measured interval.
    carried: Vec<[f64; 2]>,
    /// Results without the bytes of links.
    outcome: IdealOutcome,
}

impl<'a> FluidRun<'a> {
    /// Returns a run that has not started. Its deliveries are returned if `has_followers`.
    pub(crate) fn new(
        setup: IdealSetup<'a>,
        scheduler: Box<dyn FluidScheduler>,
        has_followers: bool,
    ) -> Self {
        let links = FluidLinks::new(setup.graph.links.iter().map(|link| link.rate));
        Self {
            setup,
            now: 0.0,
            carried: vec![[0.0; 2]; setup.graph.links.len()],
            links,
            scheduler,
            active: 0,
            deliveries: has_followers.then(BinaryHeap::new),
            spare: Vec::new(),
            unused: Vec::new(),
            started: 0,
            outcome: IdealOutcome::default(),
        }
    }

    /// Serves the active flows, some of which may depart, until the next arrival or the end of the
    /// run. Stops at the first delivery before, if flows may follow it, and returns it.
    pub(crate) fn serve_until(&mut self, until: Time) -> Option<(FlowSpec, Time)> {
        loop {
            let first = self.deliveries.as_ref().and_then(|deliveries| deliveries.peek().copied());
            let delivery = first.filter(|Reverse((time, _))| *time <= until);
            let horizon = picoseconds(delivery.map_or(until, |Reverse((time, _))| time));
            if self.now < horizon
                && self.active > 0
                && self.should_continue()
                && let Some((mut flow, now)) = self.scheduler.serve(&self.links, self.now, horizon)
            {
                self.now = now;
                // Rounding may leave a small remainder, unless the flow stops.
                if flow.total.is_finite() && now < flow.stop {
                    flow.sent = flow.total;
                }
                self.complete_record(flow);
                continue;
            }
            if horizon.is_finite() {
                self.now = self.now.max(horizon);
            }
            let Reverse((time, record)) = delivery?;
            self.deliveries.as_mut()?.pop();
            return Some((self.outcome.records[record].spec, time));
        }
    }

    /// Reports the progress if requested; returns false if the run must stop.
    fn should_continue(&self) -> bool {
        let progress = || Progress {
            now: Time(self.now as u64),
            started: self.started,
            ended: self.started - self.active as u64,
            ..Progress::default()
        };
        self.setup.watch.poll(progress).is_ok()
    }

    /// Starts a flow.
    pub(crate) fn admit(&mut self, flow: &RoutedFlow<'_>) {
        let RoutedFlow { spec, links: path, ideal_fct: fct } = *flow;
        let format = self.setup.format;
        // Deliveries, after which flows start, are rounded to a picosecond.
        let is_due = self.now <= picoseconds(spec.start) + 1.0;
        assert!(is_due, "flow {} starts in the past", spec.id);
        let mut links = self.spare.pop().unwrap_or_default();
        links.extend_from_slice(path);
        // The latency of a long-lived flow is that of a full packet.
        let total = format.on_wire(spec.size.unwrap_or(format.payload)).0 as f64 * BYTE;

        let is_sized = spec.size.is_some();
        let mut flow = self.links.add_flow(links);
        flow.record = self.unused.pop().unwrap_or(self.outcome.records.len());
        let common = self.setup.common.unwrap_or_default();
        flow.intervals = [self.setup.measured, common].map(|bounds| bounds.map(picoseconds));
        flow.latency = fct.0 as f64 - total / flow.bottleneck;
        flow.stop = spec.stop.map_or(f64::INFINITY, picoseconds);
        if is_sized {
            flow.total = total;
        }
        let record = FlowRecord {
            outcome: if is_sized { flow::Outcome::Unfinished } else { flow::Outcome::LongLived },
            fct: None,
            acked: None,
            ideal_fct: if is_sized { fct } else { Duration::ZERO },
            delivered: Bytes::ZERO,
            retransmits: 0,
            timeouts: 0,
            lost: Some(0),
            reordering: Some(flow::Reordering::default()),
            spec,
        };
        match self.outcome.records.get_mut(flow.record) {
            Some(unused) => *unused = record,
            None => self.outcome.records.push(record),
        }
        self.scheduler.admit(flow, &self.links, self.now);
        self.active += 1;
        self.started += 1;
    }

    /// Completes the record of a flow that has departed.
    fn complete_record(&mut self, mut flow: FluidFlow) {
        self.active -= 1;
        for link in &flow.links {
            self.links.flows[*link as usize] -= 1;
            let [whole, measured] = &mut self.carried[*link as usize];
            *whole += flow.sent / BYTE;
            *measured += flow.measured[0] / BYTE;
        }
        let IdealSetup { format, limit, kept, .. } = self.setup;
        let record = &mut self.outcome.records[flow.record];
        let received = flow.received(picoseconds(limit) - picoseconds(record.spec.start));
        let last_arrival = Time((self.now + flow.latency).round() as u64);
        let end = if let Some(size) = record.spec.size {
            let fct = record.ideal_fct + Duration(flow.lag.round() as u64);
            if flow.sent >= flow.total && record.spec.start + fct <= limit {
                (record.outcome, record.fct) = (flow::Outcome::Finished, Some(fct));
                record.delivered = size;
                let delivered = record.spec.start + fct;
                if let Some(deliveries) = &mut self.deliveries {
                    deliveries.push(Reverse((delivered, flow.record)));
                }
                delivered
            } else {
                record.delivered = Bytes((received / flow.total * size.0 as f64) as u64);
                if self.now < flow.stop { limit } else { last_arrival }
            }
        } else {
            let goodput = format.payload.0 as f64 / (format.payload + format.header).0 as f64;
            record.delivered = Bytes((received / BYTE * goodput) as u64);
            let together = (flow.measured[1] / BYTE * goodput).round() as u64;
            self.outcome.common.push((record.spec.id, together));
            last_arrival
        };
        // A delivery reads the record of the flow that others follow.
        if self.deliveries.is_none() && !kept.includes(&record.spec) {
            self.outcome.totals.add(record);
            self.unused.push(flow.record);
        }
        self.outcome.end = self.outcome.end.max(end.min(limit));
        flow.links.clear();
        self.spare.push(flow.links);
    }

    /// Ends the run.
    pub(crate) fn close(mut self) -> IdealOutcome {
        for flow in self.scheduler.close(self.now) {
            self.complete_record(flow);
        }
        self.outcome.common.sort_unstable();
        self.unused.sort_unstable();
        while let Some(place) = self.unused.pop() {
            self.outcome.records.swap_remove(place);
        }
        for [whole, measured] in self.carried {
            self.outcome.link_bytes.push(whole);
            self.outcome.measured_bytes.push(measured);
        }
        self.outcome
    }
}

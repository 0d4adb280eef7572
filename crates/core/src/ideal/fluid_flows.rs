//! The state of an ideal's run: flows as fluid, from their start to their record.

use super::{Outcome, Service, Setting};
use crate::base::run_control::Progress;
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::{self, FlowRecord, FlowSpec};
use crate::model::graph::LinkId;
use crate::model::ideal_fct::ideal_fct;

/// The instant as a float, which is exact for two and a half hours.
pub(crate) fn picoseconds(time: Time) -> f64 {
    if time == Time::NEVER { f64::INFINITY } else { time.0 as f64 }
}

/// The links as an allocation sees them, by [`LinkId`].
#[derive(Debug)]
pub struct Links {
    /// Line rates in bits a second.
    pub capacity: Vec<f64>,
    /// How many active flows cross each link.
    pub flows: Vec<u32>,
}

impl Links {
    /// Links of the given rates, without flows.
    pub(crate) fn new(rates: impl IntoIterator<Item = Rate>) -> Self {
        let capacity: Vec<f64> = rates.into_iter().map(Rate::bps).collect();
        Self { flows: vec![0; capacity.len()], capacity }
    }

    /// Adds a flow over the links of `route` that has sent nothing and never ends.
    pub(crate) fn join(&mut self, route: Vec<LinkId>) -> Flow {
        let mut bottleneck = f64::INFINITY;
        for link in &route {
            self.flows[*link as usize] += 1;
            bottleneck = bottleneck.min(self.capacity[*link as usize]);
        }
        Flow {
            links: route,
            rate: 0.0,
            bottleneck,
            record: 0,
            wire: f64::INFINITY,
            sent: 0.0,
            stop: f64::INFINITY,
            lag: 0.0,
            latency: 0.0,
        }
    }
}

/// An active flow.
///
/// With rates in bits a second and times in picoseconds, amounts are in picobits: rates and bytes
/// are then whole numbers, which floats add and subtract exactly.
#[derive(Debug)]
pub struct Flow {
    /// The links it crosses.
    pub links: Vec<LinkId>,
    /// What the allocation gives it, in bits a second.
    pub rate: f64,
    /// Rate of its slowest link.
    pub bottleneck: f64,
    /// Index of its record.
    pub(crate) record: usize,
    /// All it has to send, headers included; infinite for a long-lived flow.
    pub(crate) wire: f64,
    sent: f64,
    /// When a long-lived flow leaves; never, for others.
    stop: f64,
    /// How far it is behind itself alone.
    lag: f64,
    /// Alone, how long the last of it is under way after the bottleneck could have sent everything.
    latency: f64,
}

/// Picobits in a byte.
const BYTE: f64 = 8e12;

impl Flow {
    /// What it has left to send, headers included, in picobits; infinite if it is long-lived.
    pub fn remaining(&self) -> f64 {
        self.wire - self.sent
    }

    /// Its number in order of start.
    pub fn number(&self) -> usize {
        self.record
    }

    /// The time until it leaves at its present rate.
    pub(crate) fn time_left(&self, now: f64) -> f64 {
        (self.remaining() / self.rate).min((self.stop - now).max(0.0))
    }

    /// What it will have left after a while at its present rate.
    pub(crate) fn remaining_after(&self, span: f64) -> f64 {
        self.wire - self.sent_after(span)
    }

    fn sent_after(&self, span: f64) -> f64 {
        // Rounding may carry it past its end.
        (self.sent + self.rate * span).min(self.wire)
    }

    /// Serves it for a while at its present rate.
    pub(crate) fn advance(&mut self, span: f64) {
        let rate = self.rate;
        assert!(
            (0.0..=self.bottleneck).contains(&rate),
            "flow {} cannot be served at {rate} b/s",
            self.record
        );
        self.sent = self.sent_after(span);
        // What it sends over its bottleneck's rate is the time it would have taken alone. The sum
        // never decreases and is exactly zero for an undisturbed flow, so that no slowdown is below
        // one.
        self.lag += span * (1.0 - self.rate / self.bottleneck);
    }

    /// What has reached the receiver `age` after the start, given that it is served no more then.
    ///
    /// The receiver sees what was sent a latency ago. Time that the flow lost since then counts as
    /// lost before, so this is at most what the receiver has; at the completion time it is
    /// everything.
    fn received(&self, age: f64) -> f64 {
        ((age - self.latency - self.lag) * self.bottleneck).clamp(0.0, self.sent)
    }
}

/// The state of a run.
pub(crate) struct State<'a> {
    setting: Setting<'a>,
    now: f64,
    links: Links,
    service: Box<dyn Service>,
    /// How many flows are active.
    active: usize,
    /// Routes of flows that left, to be used again.
    spare: Vec<Vec<LinkId>>,
    outcome: Outcome,
}

impl<'a> State<'a> {
    pub(crate) fn new(setting: Setting<'a>, service: Box<dyn Service>) -> Self {
        let links = Links::new(setting.graph.links.iter().map(|link| link.rate));
        let link_bytes = vec![0.0; links.capacity.len()];
        let outcome = Outcome { records: Vec::new(), link_bytes, end: Time::ZERO };
        Self { setting, now: 0.0, links, service, active: 0, spare: Vec::new(), outcome }
    }

    /// Serves the active flows, of which some may leave, until a flow comes or the run ends.
    pub(crate) fn serve_until(&mut self, until: f64) {
        while self.now < until && self.active > 0 && self.goes_on() {
            let Some((mut flow, now)) = self.service.serve(&self.links, self.now, until) else {
                break;
            };
            self.now = now;
            // Rounding may have left a little.
            if flow.wire.is_finite() {
                flow.sent = flow.wire;
            }
            self.settle(flow);
        }
        if until.is_finite() {
            self.now = self.now.max(until);
        }
    }

    /// Tells how far the run is, if that is asked for; says whether to go on.
    fn goes_on(&self) -> bool {
        let tell = || Progress {
            now: Time(self.now as u64),
            flows: (self.outcome.records.len() - self.active) as u64,
            hops: 0,
        };
        self.setting.watch.poll(tell).is_ok()
    }

    /// Lets a flow start, over the links that `route` appends for it.
    pub(crate) fn admit(
        &mut self,
        spec: FlowSpec,
        mut route: impl FnMut(&FlowSpec, &mut Vec<LinkId>),
    ) {
        let Setting { graph, format, .. } = self.setting;
        assert!(self.now <= picoseconds(spec.start), "flow {} starts in the past", spec.id);
        let mut links = self.spare.pop().unwrap_or_default();
        route(&spec, &mut links);
        assert!(!links.is_empty(), "flow {} has no route", spec.id);
        let hops = links.iter().map(|link| &graph.links[*link as usize]);
        let hops = hops.map(|link| (link.rate, link.delay));
        // The first packet of a long-lived flow is under way as long as any other.
        let size = spec.size.unwrap_or(format.payload);
        let (fct, wire) =
            (ideal_fct(hops, format, size).total(), format.on_wire(size).0 as f64 * BYTE);

        let is_sized = spec.size.is_some();
        let mut flow = self.links.join(links);
        flow.record = self.outcome.records.len();
        flow.latency = fct.0 as f64 - wire / flow.bottleneck;
        if is_sized {
            flow.wire = wire;
        } else {
            flow.stop = spec.stop.map_or(f64::INFINITY, picoseconds);
        }
        self.service.admit(flow, self.now);
        self.active += 1;
        self.outcome.records.push(FlowRecord {
            outcome: if is_sized { flow::Outcome::Unfinished } else { flow::Outcome::LongLived },
            fct: None,
            acked: None,
            ideal_fct: if is_sized { fct } else { Duration::ZERO },
            delivered: Bytes::ZERO,
            retransmits: 0,
            timeouts: 0,
            spec,
        });
    }

    /// Completes the record of a flow that is served no more.
    fn settle(&mut self, mut flow: Flow) {
        self.active -= 1;
        for link in &flow.links {
            self.links.flows[*link as usize] -= 1;
            self.outcome.link_bytes[*link as usize] += flow.sent / BYTE;
        }
        let Setting { format, limit, .. } = self.setting;
        let record = &mut self.outcome.records[flow.record];
        let received = flow.received(picoseconds(limit) - picoseconds(record.spec.start));
        let end = if let Some(size) = record.spec.size {
            let fct = record.ideal_fct + Duration(flow.lag.round() as u64);
            if flow.sent >= flow.wire && record.spec.start + fct <= limit {
                (record.outcome, record.fct) = (flow::Outcome::Finished, Some(fct));
                record.delivered = size;
                record.spec.start + fct
            } else {
                record.delivered = Bytes((received / flow.wire * size.0 as f64) as u64);
                limit
            }
        } else {
            let goodput = format.payload.0 as f64 / (format.payload + format.header).0 as f64;
            record.delivered = Bytes((received / BYTE * goodput) as u64);
            Time((self.now + flow.latency).round() as u64)
        };
        self.outcome.end = self.outcome.end.max(end.min(limit));
        flow.links.clear();
        self.spare.push(flow.links);
    }

    /// Ends the run.
    pub(crate) fn close(mut self) -> Outcome {
        for flow in self.service.close(self.now) {
            self.settle(flow);
        }
        self.outcome
    }
}

//! Fluid service: at every arrival and departure all active flows get new rates.

use super::{Flow, Links, Service};

/// A rule by which the active flows share the links.
pub trait Allocation {
    /// Sets the rate of every active flow; none above its bottleneck's. May sort the flows.
    fn allocate(&mut self, flows: &mut [Flow], links: &Links);
}

/// Flows that are served as an allocation says.
#[derive(Debug)]
pub(crate) struct Fluid<A> {
    allocation: A,
    active: Vec<Flow>,
}

impl<A: Allocation> Fluid<A> {
    pub(crate) fn new(allocation: A) -> Self {
        Self { allocation, active: Vec::new() }
    }

    fn advance(&mut self, span: f64) {
        for flow in &mut self.active {
            flow.advance(span);
        }
    }
}

impl<A: Allocation> Service for Fluid<A> {
    fn admit(&mut self, flow: Flow, _now: f64) {
        self.active.push(flow);
    }

    fn serve(&mut self, links: &Links, now: f64, until: f64) -> Option<(Flow, f64)> {
        self.allocation.allocate(&mut self.active, links);
        let times = self.active.iter().map(|flow| flow.time_left(now)).enumerate();
        let first = times.min_by(|a, b| a.1.total_cmp(&b.1));
        let leaving = first.filter(|(_, span)| span.is_finite() && now + span <= until);
        if let Some((index, span)) = leaving {
            self.advance(span);
            return Some((self.active.remove(index), now + span));
        }
        // Without an end only flows that never stop are left.
        if until.is_finite() {
            self.advance(until - now);
        }
        None
    }

    fn close(&mut self, _now: f64) -> Vec<Flow> {
        std::mem::take(&mut self.active)
    }
}

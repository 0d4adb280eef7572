//! Fluid scheduling by rate allocation: every arrival and departure changes the rates of all active
//! flows.

use super::{FluidFlow, FluidLinks, FluidScheduler};

/// A rate allocation policy.
pub trait Allocation {
    /// Sets the rate of every active flow, at most the rate of its bottleneck. May reorder the
    /// flows.
    fn allocate(&mut self, flows: &mut [FluidFlow], links: &FluidLinks);
}

/// Serves flows at the rates of an allocation.
#[derive(Debug)]
pub(crate) struct AllocationScheduler<A> {
    allocation: A,
    active: Vec<FluidFlow>,
}

impl<A: Allocation> AllocationScheduler<A> {
    pub(crate) fn new(allocation: A) -> Self {
        Self { allocation, active: Vec::new() }
    }

    fn advance(&mut self, now: f64, span: f64) {
        for flow in &mut self.active {
            flow.advance(now, span);
        }
    }
}

impl<A: Allocation> FluidScheduler for AllocationScheduler<A> {
    fn admit(&mut self, flow: FluidFlow, _links: &FluidLinks, _now: f64) {
        self.active.push(flow);
    }

    fn serve(&mut self, links: &FluidLinks, now: f64, until: f64) -> Option<(FluidFlow, f64)> {
        self.allocation.allocate(&mut self.active, links);
        let times = self.active.iter().map(|flow| flow.time_left(now)).enumerate();
        let first = times.min_by(|a, b| a.1.total_cmp(&b.1));
        let leaving = first.filter(|(_, span)| span.is_finite() && now + span <= until);
        if let Some((index, span)) = leaving {
            self.advance(now, span);
            return Some((self.active.remove(index), now + span));
        }
        // If `until` is infinite, only flows that never stop are left.
        if until.is_finite() {
            self.advance(now, until - now);
        }
        None
    }

    fn close(&mut self, _now: f64) -> Vec<FluidFlow> {
        std::mem::take(&mut self.active)
    }
}

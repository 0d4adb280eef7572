//! Ideal FCT: every flow is sent at line rate, whatever the others do.

use crate::ideal::allocation::AllocationScheduler;
use crate::ideal::{Allocation, FluidFlow, FluidLinks, FluidScheduler, Ideal};

crate::parameters! {
    /// Every flow is sent at line rate, without handshake or slow start, whatever the others do: a
    /// lower bound on the completion time of each flow, at any load. Links may carry more than their
    /// rate.
    pub struct Config {}
}

impl Ideal for Config {
    fn scheduler(&self, _links: usize) -> Box<dyn FluidScheduler> {
        Box::new(AllocationScheduler::new(Alone))
    }
}

#[derive(Debug)]
struct Alone;

impl Allocation for Alone {
    fn allocate(&mut self, flows: &mut [FluidFlow], _links: &FluidLinks) {
        for flow in flows {
            flow.rate = flow.bottleneck;
        }
    }
}

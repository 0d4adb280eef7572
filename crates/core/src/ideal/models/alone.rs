//! Every flow by itself.

use super::{Allocation, Flow, Ideal, Links, Service};
use crate::ideal::allocation::Fluid;

crate::parameters! {
    /// Every flow has the network to itself: a lower bound on any flow's completion time, at
    /// whatever load. Links may carry more than their rate.
    pub struct Config {}
}

impl Ideal for Config {
    fn open(&self, _links: usize) -> Box<dyn Service> {
        Box::new(Fluid::new(Alone))
    }
}

#[derive(Debug)]
struct Alone;

impl Allocation for Alone {
    fn allocate(&mut self, flows: &mut [Flow], _links: &Links) {
        for flow in flows {
            flow.rate = flow.bottleneck;
        }
    }
}

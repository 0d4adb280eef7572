//! Every host sends to another, and receives from another.

use super::{Context, Flows, Workload, WorkloadEstimate, payload, plain};
use crate::base::schema::{Problem, positive_if_given};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::flow::{FlowSpec, HostId};
use crate::traffic::host_pairs::Sides;

crate::parameters! {
    /// A random permutation: every host sends one flow to another host, and receives one.
    ///
    /// Where the topology tells senders from receivers, each sender has a random receiver, shared
    /// evenly.
    pub struct Config {
        /// Payload of each flow; if not given, they never finish.
        pub size: Option<Bytes> = None, where positive_if_given;
        /// When they may start.
        pub start: Time = Time::ZERO;
        /// Each starts at a random moment within this time, lest packets fall into step.
        pub jitter: Duration = Duration::ZERO;
        /// Name of the flows' class.
        pub class: String = "permutation".to_owned();
    }
}

impl Workload for Config {
    fn open(&self, context: &Context<'_>) -> Result<Flows, Problem> {
        let Sides { sources, targets } = Sides::of(context.graph)?;
        let mut pairs = context.random("pairs");
        let mut arrivals = context.random("arrivals");
        let mut shuffled: Vec<HostId> = targets.collect();
        // About one permutation in e leaves no host in its place; drawing again keeps all equally
        // likely.
        loop {
            pairs.shuffle(&mut shuffled);
            if sources.clone().zip(&shuffled).all(|(source, target)| source != *target) {
                break;
            }
        }
        let flow = |(source, target)| {
            let jitter = Duration(arrivals.below(self.jitter.0.saturating_add(1)));
            FlowSpec { size: self.size, ..plain(source, target, self.start + jitter) }
        };
        let flows = sources.zip(shuffled.into_iter().cycle()).map(flow).collect();
        Ok(Flows::of(vec![self.class.clone()], flows))
    }

    fn offer(&self, context: &Context<'_>) -> Result<WorkloadEstimate, Problem> {
        let flows = Sides::of(context.graph)?.sources.len() as f64;
        let last = self.start + self.jitter;
        let offer = WorkloadEstimate::listed(flows, payload(flows, self.size), self.start, last);
        Ok(if self.size.is_some() { offer } else { offer.lasting(flows, None) })
    }
}

//! Permutation traffic.

use crate::base::schema::{Problem, positive_if_given};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::flow::{FlowSpec, HostId};
use crate::traffic::estimate::payload;
use crate::traffic::host_pairs::HostRoles;
use crate::traffic::{FlowStream, Workload, WorkloadContext, WorkloadEstimate, flow_between};

crate::parameters! {
    /// A random permutation: every host sends one flow to another host and receives one flow.
    ///
    /// If the topology distinguishes senders from receivers, each sender has a random receiver, and
    /// the receivers have equally many senders (±1).
    pub struct Config {
        /// Payload per flow; if not given, flows never finish.
        pub size: Option<Bytes> = None, where positive_if_given;
        /// Earliest start.
        pub start: Time = Time::ZERO;
        /// Maximum of a uniform random delay added to each start, to avoid synchronised packets.
        pub jitter: Duration = Duration::ZERO;
        /// Name of the flow class.
        pub class: String = "permutation".to_owned();
    }
}

impl Workload for Config {
    fn generate(&self, context: &WorkloadContext<'_>) -> Result<FlowStream, Problem> {
        let HostRoles { sources, targets } = HostRoles::from_graph(context.graph)?;
        let mut pairs = context.random("pairs");
        let mut arrivals = context.random("arrivals");
        let mut shuffled: Vec<HostId> = targets.collect();
        // Rejection sampling keeps all derangements equally likely; about one permutation in e is a
        // derangement.
        loop {
            pairs.shuffle(&mut shuffled);
            if sources.clone().zip(&shuffled).all(|(source, target)| source != *target) {
                break;
            }
        }
        let flow = |(source, target)| {
            let jitter = Duration(arrivals.below(self.jitter.0.saturating_add(1)));
            FlowSpec { size: self.size, ..flow_between(source, target, self.start + jitter) }
        };
        let flows = sources.zip(shuffled.into_iter().cycle()).map(flow).collect();
        Ok(FlowStream::sorted(vec![self.class.clone()], flows))
    }

    fn estimate(&self, context: &WorkloadContext<'_>) -> Result<WorkloadEstimate, Problem> {
        let flows = HostRoles::from_graph(context.graph)?.sources.len() as f64;
        let last = self.start + self.jitter;
        let estimate =
            WorkloadEstimate::from_list(flows, payload(flows, self.size), self.start, last);
        let is_sized = self.size.is_some();
        Ok(if is_sized { estimate } else { estimate.with_long_lived(flows, flows, None) })
    }
}

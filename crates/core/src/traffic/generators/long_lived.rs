//! Long-lived flows between opposite hosts, with staggered starts.

use crate::base::schema::{Problem, positive_if_given};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::FlowSpec;
use crate::traffic::estimate::payload;
use crate::traffic::host_pairs::HostRoles;
use crate::traffic::{FlowStream, Workload, WorkloadContext, WorkloadEstimate, flow_between};

crate::parameters! {
    /// Flow i runs from host i to the opposite host: receiver i, or host i + n/2 (mod n) if all n
    /// hosts of the topology send and receive. Flows without a size never finish. In a mixed workload,
    /// the flows of every such part begin at host 0, so that two parts share ports of hosts.
    pub struct Config {
        /// Number of flows; if it exceeds the number of senders, senders have several flows. If not
        /// given, one per sender.
        pub flows: Option<u32> = None, where positive_if_given;
        /// Start of the first flow.
        pub start: Time = Time::ZERO;
        /// Time between the starts of consecutive flows.
        pub stagger: Duration = Duration::ZERO;
        /// Maximum of a uniform random delay added to each start, to avoid synchronised packets.
        pub jitter: Duration = Duration::ZERO;
        /// Time at which all flows stop sending.
        pub stop: Option<Time> = None;
        /// Payload per flow; if not given, flows send until `stop`.
        pub size: Option<Bytes> = None, where positive_if_given;
        /// Initial rate, for transports with one; if not given, the default of the transport.
        pub initial_rate: Option<Rate> = None, where positive_if_given;
        /// Name of the flow class.
        pub class: String = "long_lived".to_owned();
    }
    check |config| {
        if config.stop.is_some_and(|stop| stop <= config.start) {
            return Err(Problem::new("stop", format!("must be after `start`, {}", config.start)));
        }
        Ok(())
    }
}

impl Workload for Config {
    fn classes_with_initial_rate(&self) -> Vec<&str> {
        self.initial_rate.iter().map(|_| self.class.as_str()).collect()
    }

    fn generate(&self, context: &WorkloadContext<'_>) -> Result<FlowStream, Problem> {
        let roles = HostRoles::from_graph(context.graph)?;
        let senders = roles.sources.len() as u32;
        let mut arrivals = context.random("arrivals");
        let start = |i: u32| {
            let jitter = Duration(arrivals.below(self.jitter.0.saturating_add(1)));
            (self.start + self.stagger * u64::from(i) + jitter, i)
        };
        // Only starts are stored, since there may be millions of flows.
        let mut starts: Vec<_> = (0..self.flows.unwrap_or(senders)).map(start).collect();
        starts.sort_unstable();
        if let (Some(stop), Some((last, _))) = (self.stop, starts.last())
            && stop <= *last
        {
            let message = format!("the last flow would start at {last} and stop before");
            return Err(Problem::new("stagger", message));
        }
        let (size, stop, initial_rate) = (self.size, self.stop, self.initial_rate);
        let flows = starts.into_iter().map(move |(start, i)| {
            let source = i % senders;
            FlowSpec {
                size,
                stop,
                initial_rate,
                ..flow_between(source, roles.opposite(source), start)
            }
        });
        Ok(FlowStream::numbered(vec![self.class.clone()], flows))
    }

    fn estimate(&self, context: &WorkloadContext<'_>) -> Result<WorkloadEstimate, Problem> {
        let flows =
            self.flows.unwrap_or(HostRoles::from_graph(context.graph)?.sources.len() as u32);
        let last = self.start + self.stagger * u64::from(flows) + self.jitter;
        let flows = f64::from(flows);
        // Only starts are stored before the run.
        let stored_bytes = flows * size_of::<(Time, u32)>() as f64;
        let estimate =
            WorkloadEstimate::from_list(flows, payload(flows, self.size), self.start, last);
        let estimate = WorkloadEstimate { stored_bytes, ..estimate };
        let is_sized = self.size.is_some();
        Ok(if is_sized { estimate } else { estimate.with_long_lived(flows, flows, self.stop) })
    }
}

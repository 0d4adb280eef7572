//! Groups of flows that start at the same time.

use crate::base::schema::{Problem, positive, positive_if_given};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::flow::FlowSpec;
use crate::traffic::estimate::payload;
use crate::traffic::host_pairs::HostRoles;
use crate::traffic::{FlowStream, Workload, WorkloadContext, WorkloadEstimate, flow_between};

crate::parameters! {
    /// Rounds of flows from distinct senders to the opposite hosts. All flows of a round start at
    /// the same time.
    pub struct Config {
        /// Number of flows per round; if not given, one per sender.
        pub flows: Option<u32> = None, where positive_if_given;
        /// Payload per flow.
        pub size: Bytes, where positive;
        /// Start of the first round.
        pub start: Time = Time::ZERO;
        /// Time between rounds.
        pub interval: Duration = Duration::from_millis(10), where positive;
        /// Number of rounds.
        pub repeats: u32 = 1, where positive;
        /// Name of the flow class.
        pub class: String = "synchronised".to_owned();
    }
}

impl Workload for Config {
    fn generate(&self, context: &WorkloadContext<'_>) -> Result<FlowStream, Problem> {
        let roles = HostRoles::from_graph(context.graph)?;
        let senders = roles.sources.len() as u32;
        let count = self.flows.unwrap_or(senders);
        if count > senders {
            let message = format!("must be at most {senders}, the number of senders, not {count}");
            return Err(Problem::new("flows", message));
        }
        let Self { size, start, interval, repeats, .. } = *self;
        let starts = (0..repeats).map(move |round| start + interval * u64::from(round));
        let flows = starts.flat_map(move |start| {
            let roles = roles.clone();
            (0..count).map(move |source| flow_between(source, roles.opposite(source), start))
        });
        let flows =
            (0..).zip(flows).map(move |(id, flow)| FlowSpec { id, size: Some(size), ..flow });
        let classes = vec![self.class.clone()];
        Ok(FlowStream {
            classes,
            load: String::new(),
            has_deadlines: false,
            has_connections: false,
            flows: Box::new(flows),
            dependencies: None,
        })
    }

    fn estimate(&self, context: &WorkloadContext<'_>) -> Result<WorkloadEstimate, Problem> {
        let count =
            self.flows.unwrap_or(HostRoles::from_graph(context.graph)?.sources.len() as u32);
        let batch = (f64::from(count), payload(f64::from(count), Some(self.size)));
        let (rate, repeats) = (1.0 / self.interval.seconds(), u64::from(self.repeats));
        Ok(WorkloadEstimate::from_rate(rate, batch, self.start, None, Some(repeats)))
    }
}

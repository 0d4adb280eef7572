//! Flows between opposite hosts, started one after another.

use super::{Context, Flows, Workload, WorkloadEstimate, payload, plain};
use crate::base::schema::{Problem, positive_if_given};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::FlowSpec;
use crate::traffic::host_pairs::Sides;

crate::parameters! {
    /// One flow from each of the first hosts to the host opposite: sender i to receiver i, or half
    /// way round where the topology has no senders. Without a size the flows never finish.
    pub struct Config {
        /// How many flows; they go round the hosts again if there are more. If not given, one a
        /// sender.
        pub flows: Option<u32> = None, where positive_if_given;
        /// When the first starts.
        pub start: Time = Time::ZERO;
        /// How much later each starts than the one before.
        pub stagger: Duration = Duration::ZERO;
        /// Each starts at a random moment within this time after that, lest packets fall into step.
        pub jitter: Duration = Duration::ZERO;
        /// When they all stop sending.
        pub stop: Option<Time> = None;
        /// Payload of each; if not given, they send until they stop.
        pub size: Option<Bytes> = None, where positive_if_given;
        /// Rate at which a rate-based transport starts, instead of its own choice.
        pub initial_rate: Option<Rate> = None, where positive_if_given;
        /// Name of the flows' class.
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
    fn open(&self, context: &Context<'_>) -> Result<Flows, Problem> {
        let sides = Sides::of(context.graph)?;
        let senders = sides.sources.len() as u32;
        let mut arrivals = context.random("arrivals");
        let start = |i: u32| {
            let jitter = Duration(arrivals.below(self.jitter.0.saturating_add(1)));
            (self.start + self.stagger * u64::from(i) + jitter, i)
        };
        // Starts and nothing else: there may be millions.
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
            FlowSpec { size, stop, initial_rate, ..plain(source, sides.opposite(source), start) }
        });
        Ok(Flows::in_order(vec![self.class.clone()], flows))
    }

    fn offer(&self, context: &Context<'_>) -> Result<WorkloadEstimate, Problem> {
        let flows = self.flows.unwrap_or(Sides::of(context.graph)?.sources.len() as u32);
        let last = self.start + self.stagger * u64::from(flows) + self.jitter;
        let flows = f64::from(flows);
        // Of what is drawn beforehand, only starts are written down.
        let listed = flows * size_of::<(Time, u32)>() as f64;
        let offer = WorkloadEstimate::listed(flows, payload(flows, self.size), self.start, last);
        let offer = WorkloadEstimate { listed, ..offer };
        Ok(if self.size.is_some() { offer } else { offer.lasting(flows, self.stop) })
    }
}

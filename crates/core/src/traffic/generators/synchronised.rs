//! Flows that start together, again and again.

use super::{Context, Flows, Workload, WorkloadEstimate, payload, plain};
use crate::base::schema::{Problem, positive, positive_if_given};
use crate::base::units::{Bytes, Duration, Time};
use crate::model::flow::FlowSpec;
use crate::traffic::host_pairs::Sides;

crate::parameters! {
    /// Flows from distinct senders to the hosts opposite them, all started at the same instant, and
    /// that repeated.
    pub struct Config {
        /// How many flows start together; if not given, one a sender.
        pub flows: Option<u32> = None, where positive_if_given;
        /// Payload of each.
        pub size: Bytes, where positive;
        /// When the first start together.
        pub start: Time = Time::ZERO;
        /// How long until the next do.
        pub interval: Duration = Duration::from_millis(10), where positive;
        /// How many times they do.
        pub repeats: u32 = 1, where positive;
        /// Name of the flows' class.
        pub class: String = "synchronised".to_owned();
    }
}

impl Workload for Config {
    fn open(&self, context: &Context<'_>) -> Result<Flows, Problem> {
        let sides = Sides::of(context.graph)?;
        let senders = sides.sources.len() as u32;
        let count = self.flows.unwrap_or(senders);
        if count > senders {
            let message = format!("must be at most {senders}, the number of senders, not {count}");
            return Err(Problem::new("flows", message));
        }
        let Self { size, start, interval, repeats, .. } = *self;
        let starts = (0..repeats).map(move |round| start + interval * u64::from(round));
        let flows = starts.flat_map(move |start| {
            let sides = sides.clone();
            (0..count).map(move |source| plain(source, sides.opposite(source), start))
        });
        let flows =
            (0..).zip(flows).map(move |(id, flow)| FlowSpec { id, size: Some(size), ..flow });
        let classes = vec![self.class.clone()];
        Ok(Flows {
            classes,
            load: String::new(),
            has_deadlines: false,
            flows: Box::new(flows),
            sequel: None,
        })
    }

    fn offer(&self, context: &Context<'_>) -> Result<WorkloadEstimate, Problem> {
        let count = self.flows.unwrap_or(Sides::of(context.graph)?.sources.len() as u32);
        let batch = (f64::from(count), payload(f64::from(count), Some(self.size)));
        let (rate, repeats) = (1.0 / self.interval.seconds(), u64::from(self.repeats));
        Ok(WorkloadEstimate::arriving(rate, batch, self.start, None, Some(repeats)))
    }
}

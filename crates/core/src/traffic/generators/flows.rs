//! Flows written down one by one.

use super::{Classes, Context, Flows, Workload, WorkloadEstimate, payload, plain};
use crate::base::schema::{Problem, positive_if_given};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::FlowSpec;

crate::parameters! {
    /// One flow.
    pub struct Flow {
        /// Host that sends.
        pub source: u32;
        /// Host that receives.
        pub target: u32;
        /// Payload; if not given, the flow is long-lived and sends until it stops.
        pub size: Option<Bytes> = None, where positive_if_given;
        /// When it starts.
        pub start: Time = Time::ZERO;
        /// When it stops sending.
        pub stop: Option<Time> = None;
        /// Deadline, counted from the start.
        pub deadline: Option<Duration> = None, where positive_if_given;
        /// Rate at which a rate-based transport starts, instead of its own choice.
        pub initial_rate: Option<Rate> = None, where positive_if_given;
        /// Name of the flow's class.
        pub class: String = "flows".to_owned();
    }
    check |flow| {
        if flow.stop.is_some_and(|stop| stop <= flow.start) {
            return Err(Problem::new("stop", format!("must be after `start`, {}", flow.start)));
        }
        Ok(())
    }
}

crate::parameters! {
    /// Flows written down one by one, in any order; of at most 1024 classes.
    pub struct Config {
        /// The flows.
        pub flows: Vec<Flow>,
            where |flows| if flows.is_empty() { Err("one or more") } else { Ok(()) };
    }
}

impl Workload for Config {
    fn open(&self, context: &Context<'_>) -> Result<Flows, Problem> {
        let mut classes = Classes::default();
        let mut flows = Vec::new();
        for (i, flow) in self.flows.iter().enumerate() {
            let Flow { source, target, size, start, stop, deadline, initial_rate, .. } = *flow;
            context
                .check_ends(source, target)
                .map_err(|problem| problem.within(&format!("flows[{i}]")))?;
            let class = classes
                .index(&flow.class)
                .map_err(|problem| problem.within(&format!("flows[{i}]")))?;
            let plain = plain(source, target, start);
            flows.push(FlowSpec { size, stop, class, deadline, initial_rate, ..plain });
        }
        Ok(Flows::of(classes.names, flows))
    }

    fn offer(&self, _context: &Context<'_>) -> Result<WorkloadEstimate, Problem> {
        let starts = || self.flows.iter().map(|flow| flow.start);
        let first = starts().min().unwrap_or_default();
        let sizes = self.flows.iter().map(|flow| payload(1.0, flow.size));
        let last = starts().max().unwrap_or_default();
        let offer = WorkloadEstimate::listed(self.flows.len() as f64, sizes.sum(), first, last);
        let lasting = || self.flows.iter().filter(|flow| flow.size.is_none());
        // Of several that stop the last counts, and one that does not stop is later than all.
        let stop = lasting().map(|flow| flow.stop.unwrap_or(Time::NEVER)).max();
        let count = lasting().count() as f64;
        Ok(stop.map_or(offer, |stop| offer.lasting(count, Some(stop))))
    }
}

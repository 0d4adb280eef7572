//! Flows written down one by one.

use super::{Context, Flows, Workload, class_index, plain};
use crate::flow::FlowSpec;
use crate::parameters::{Problem, positive_if_given};
use crate::units::{Bytes, Duration, Rate, Time};

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
    /// Flows written down one by one, in any order.
    pub struct Config {
        /// The flows.
        pub flows: Vec<Flow>,
            where |flows| if flows.is_empty() { Err("one or more") } else { Ok(()) };
    }
}

impl Workload for Config {
    fn open(&self, context: &Context<'_>) -> Result<Flows, Problem> {
        let mut classes = Vec::new();
        let mut flows = Vec::new();
        for (i, flow) in self.flows.iter().enumerate() {
            let Flow { source, target, size, start, stop, deadline, initial_rate, .. } = *flow;
            context
                .check_ends(source, target)
                .map_err(|problem| problem.within(&format!("flows[{i}]")))?;
            let class = class_index(&mut classes, &flow.class);
            let plain = plain(source, target, start);
            flows.push(FlowSpec { size, stop, class, deadline, initial_rate, ..plain });
        }
        Ok(Flows::of(classes, flows))
    }
}

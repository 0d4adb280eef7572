//! An explicit list of flows.

use std::collections::BTreeSet;

use crate::base::schema::{Problem, positive_if_given};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::{Connection, FlowSpec};
use crate::traffic::estimate::payload;
use crate::traffic::hosts::{Host, HostNames};
use crate::traffic::{
    FlowClasses, FlowStream, Workload, WorkloadContext, WorkloadEstimate, flow_between,
};

crate::parameters! {
    /// One flow.
    pub struct Flow {
        /// Host that sends, by number or by name.
        pub source: Host;
        /// Host that receives, likewise.
        pub target: Host;
        /// Payload; if not given, the flow is long-lived and sends until `stop`.
        pub size: Option<Bytes> = None, where positive_if_given;
        /// Start time.
        pub start: Time = Time::ZERO;
        /// Time at which the flow stops sending.
        pub stop: Option<Time> = None;
        /// Deadline, relative to the start.
        pub deadline: Option<Duration> = None, where positive_if_given;
        /// Initial rate, for transports with one; if not given, the default of the transport.
        pub initial_rate: Option<Rate> = None, where positive_if_given;
        /// Number of the persistent connection from the source to the target that carries the flow, with all
        /// others of this number between them. If not given, the flow has a connection of its own.
        pub connection: Option<u32> = None;
        /// Name of the flow class.
        pub class: String = "flows".to_owned();
    }
    check |flow| {
        if flow.stop.is_some_and(|stop| stop <= flow.start) {
            return Err(Problem::new("stop", format!("must be after `start`, {}", flow.start)));
        }
        if flow.connection.is_some() && flow.size.is_none() {
            return Err(Problem::new("connection", "needs a flow with a `size`"));
        }
        Ok(())
    }
}

crate::parameters! {
    /// An explicit list of flows, in any order, with at most 1024 classes.
    pub struct Config {
        /// The flows.
        pub flows: Vec<Flow>,
            where |flows| if flows.is_empty() { Err("one or more") } else { Ok(()) };
    }
}

impl Workload for Config {
    fn generate(&self, context: &WorkloadContext<'_>) -> Result<FlowStream, Problem> {
        let mut classes = FlowClasses::default();
        let mut flows = Vec::new();
        let names = HostNames::new(context.graph);
        for (i, flow) in self.flows.iter().enumerate() {
            let Flow { size, start, stop, deadline, initial_rate, .. } = *flow;
            let place = |problem: Problem| problem.within(&format!("flows[{i}]"));
            let host = |field, host| {
                names.number(host).map_err(|problem: Problem| place(problem.within(field)))
            };
            let (source, target) = (host("source", &flow.source)?, host("target", &flow.target)?);
            names.check(source, target).map_err(place)?;
            let class = classes.index(&flow.class).map_err(place)?;
            let flow_between = flow_between(source, target, start);
            let connection = flow
                .connection
                .map(|number| Connection { number: u64::from(number), from_server: false });
            flows.push(FlowSpec {
                size,
                stop,
                class,
                deadline,
                initial_rate,
                connection,
                ..flow_between
            });
        }
        Ok(FlowStream::sorted(classes.names, flows))
    }

    fn classes_with_initial_rate(&self) -> Vec<&str> {
        let with_rate = self.flows.iter().filter(|flow| flow.initial_rate.is_some());
        with_rate.map(|flow| flow.class.as_str()).collect()
    }

    fn number(&self) -> Option<u64> {
        Some(self.flows.len() as u64)
    }

    fn estimate(&self, _context: &WorkloadContext<'_>) -> Result<WorkloadEstimate, Problem> {
        let starts = || self.flows.iter().map(|flow| flow.start);
        let first = starts().min().unwrap_or_default();
        let sizes = self.flows.iter().map(|flow| payload(1.0, flow.size));
        let last = starts().max().unwrap_or_default();
        let estimate =
            WorkloadEstimate::from_list(self.flows.len() as f64, sizes.sum(), first, last);
        let lasting = || self.flows.iter().filter(|flow| flow.size.is_none());
        // A long-lived flow without a stop time counts as the last.
        let stop = lasting().map(|flow| flow.stop.unwrap_or(Time::NEVER)).max();
        let hosts = |end: fn(&Flow) -> &Host| lasting().map(end).collect::<BTreeSet<_>>().len();
        let filled_hosts = hosts(|flow| &flow.source).min(hosts(|flow| &flow.target)) as f64;
        let count = lasting().count() as f64;
        Ok(stop.map_or(estimate, |stop| estimate.with_long_lived(count, filled_hosts, Some(stop))))
    }
}

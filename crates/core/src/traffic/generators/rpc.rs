//! Remote procedure calls of one kind.

use super::{Context, Flows, Workload, WorkloadEstimate};
use crate::base::random::Random;
use crate::base::schema::Problem;
use crate::base::units::{Bytes, Duration};
use crate::model::flow::Reply;
use crate::traffic::rpc_calls::{self, Call, Pattern};
use crate::traffic::sizes::{self, Distribution};

crate::parameters! {
    /// Remote procedure calls: a request, and a response once the request has been served. The time that
    /// counts is the caller's, `latency_s`: from the start of the request to the last byte of the response.
    pub struct Config {
        /// How large requests are.
        pub request: sizes::Config;
        /// How large responses are.
        pub response: sizes::Config;
        /// How long it takes to serve a request; any number is served at once.
        pub service: Duration = Duration::ZERO;
        /// Who calls whom, and when.
        pub pattern: Pattern;
        /// Name of the flows' classes, before `request` and `response`.
        pub class: String = "rpc".to_owned();
    }
}

impl Workload for Config {
    fn open(&self, context: &Context<'_>) -> Result<Flows, Problem> {
        let kind = self.calls(context)?;
        let classes = ["request", "response"].map(|part| format!("{} {part}", self.class));
        self.pattern
            .open(context, Box::new(kind), classes.to_vec())
            .map_err(|problem| problem.within("pattern"))
    }

    fn offer(&self, context: &Context<'_>) -> Result<WorkloadEstimate, Problem> {
        let kind = self.calls(context)?;
        self.pattern.offer(context, &kind).map_err(|problem| problem.within("pattern"))
    }
}

impl Config {
    fn calls(&self, context: &Context<'_>) -> Result<Rpc, Problem> {
        let open = |field: &str, sizes: &sizes::Config| {
            sizes.open(context.format).map_err(|problem| problem.within(field))
        };
        Ok(Rpc {
            request: open("request", &self.request)?,
            response: open("response", &self.response)?,
            service: self.service,
        })
    }
}

struct Rpc {
    request: Box<dyn Distribution>,
    response: Box<dyn Distribution>,
    service: Duration,
}

impl rpc_calls::Kind for Rpc {
    fn draw(&self, random: &mut Random) -> Call {
        let request = self.request.sample(random);
        let size = self.response.sample(random);
        Call { request, class: 0, reply: Reply { size, service: self.service, class: 1 } }
    }

    fn mean(&self) -> f64 {
        self.request.mean() + self.response.mean()
    }

    fn mean_packets(&self, payload: Bytes) -> f64 {
        self.request.mean_packets(payload) + self.response.mean_packets(payload)
    }

    fn service(&self) -> Duration {
        self.service
    }

    fn has_queue(&self) -> bool {
        false
    }
}

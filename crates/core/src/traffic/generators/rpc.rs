//! Remote procedure calls with one request and one response size distribution.

use crate::base::random::Random;
use crate::base::schema::Problem;
use crate::base::units::{Bytes, Duration, Time};
use crate::model::flow::Reply;
use crate::model::packet::Format;
use crate::traffic::rpc_calls::{self, Call, CallPattern};
use crate::traffic::sizes::{self, SizeDistribution};
use crate::traffic::{FlowStream, Workload, WorkloadContext, WorkloadEstimate, size_warnings};

crate::parameters! {
    /// Remote procedure calls: a request, and a response once the server has processed the request.
    /// The metric is the latency of the call, `latency_s`: from the start of the request to the
    /// last byte of the response.
    pub struct Config {
        /// Request size distribution.
        pub request: sizes::Config;
        /// Response size distribution.
        pub response: sizes::Config;
        /// Service time of a request; servers process any number of requests in parallel.
        pub service: Duration = Duration::ZERO;
        /// Clients, servers and times of the calls.
        pub pattern: CallPattern;
        /// Prefix of the class names, before `request` and `response`.
        pub class: String = "rpc".to_owned();
    }
}

impl Workload for Config {
    fn generate(&self, context: &WorkloadContext<'_>) -> Result<FlowStream, Problem> {
        let calls = self.call_distribution(context)?;
        let classes = ["request", "response"].map(|part| format!("{} {part}", self.class));
        self.pattern
            .generate(context, Box::new(calls), classes.to_vec())
            .map_err(|problem| problem.within("pattern"))
    }

    fn estimate(&self, context: &WorkloadContext<'_>) -> Result<WorkloadEstimate, Problem> {
        let calls = self.call_distribution(context)?;
        self.pattern.estimate(context, &calls).map_err(|problem| problem.within("pattern"))
    }

    fn last_arrival(
        &self,
        context: &WorkloadContext<'_>,
        limit: Time,
    ) -> Result<Option<Time>, Problem> {
        let calls = self.call_distribution(context)?;
        self.pattern
            .last_arrival(context, limit, &calls)
            .map_err(|problem| problem.within("pattern"))
    }

    fn default_end(&self) -> Option<Time> {
        self.pattern.default_end()
    }

    fn warnings(&self, format: &Format) -> Vec<String> {
        size_warnings(&[("request", &self.request), ("response", &self.response)], format)
    }
}

impl Config {
    fn call_distribution(&self, context: &WorkloadContext<'_>) -> Result<Rpc, Problem> {
        let open = |field: &str, sizes: &sizes::Config| {
            sizes.distribution(context.format).map_err(|problem| problem.within(field))
        };
        Ok(Rpc {
            request: open("request", &self.request)?,
            response: open("response", &self.response)?,
            service: self.service,
        })
    }
}

struct Rpc {
    request: Box<dyn SizeDistribution>,
    response: Box<dyn SizeDistribution>,
    service: Duration,
}

impl rpc_calls::CallDistribution for Rpc {
    fn sample(&self, random: &mut Random) -> Call {
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

    fn mean_service_time(&self) -> Duration {
        self.service
    }

    fn has_server_queue(&self) -> bool {
        false
    }
}

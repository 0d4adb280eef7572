//! Remote procedure calls with one request and one response size distribution.

use crate::base::random::Random;
use crate::base::schema::Problem;
use crate::base::units::{Bytes, Duration};
use crate::model::flow::Reply;
use crate::model::packet::Format;
use crate::traffic::rpc_calls::{Call, CallDistribution, CallPattern, CallWorkload};
use crate::traffic::sizes::{self, SizeDistribution};

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

impl CallWorkload for Config {
    fn pattern(&self) -> &CallPattern {
        &self.pattern
    }

    fn classes(&self) -> Vec<String> {
        ["request", "response"].map(|part| format!("{} {part}", self.class)).to_vec()
    }

    fn distribution(&self, format: &Format) -> Result<Box<dyn CallDistribution>, Problem> {
        let open = |field: &str, sizes: &sizes::Config| {
            sizes.distribution(format).map_err(|problem| problem.within(field))
        };
        Ok(Box::new(Rpc {
            request: open("request", &self.request)?,
            response: open("response", &self.response)?,
            service: self.service,
        }))
    }

    fn sizes(&self) -> Vec<(&'static str, &sizes::Config)> {
        vec![("request", &self.request), ("response", &self.response)]
    }
}

struct Rpc {
    request: Box<dyn SizeDistribution>,
    response: Box<dyn SizeDistribution>,
    service: Duration,
}

impl CallDistribution for Rpc {
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

//! Block storage: reads and writes on servers with one device each.

use crate::base::random::Random;
use crate::base::schema::{Problem, fraction, positive};
use crate::base::units::{Bytes, Duration};
use crate::model::flow::Reply;
use crate::model::packet::Format;
use crate::traffic::rpc_calls::{Call, CallDistribution, CallPattern, CallWorkload};
use crate::traffic::sizes::{self, SizeDistribution};

crate::parameters! {
    /// Storage: clients read and write blocks. A read is a small request and a block in response; a
    /// write is a block and a small acknowledgement. Every server has one device, which serves one
    /// block at a time in FIFO order. The metric is the latency of the call, `latency_s`, as the
    /// client sees it.
    pub struct Config {
        /// Fraction of calls that are reads; the others are writes.
        pub reads: f64 = 0.5, where fraction;
        /// Block size distribution.
        pub blocks: sizes::Config;
        /// Payload of a read request.
        pub read_request: Bytes = Bytes(256), where positive;
        /// Payload of the acknowledgement of a write.
        pub acknowledgement: Bytes = Bytes(64), where positive;
        /// Mean of the exponential service time of a block at the device.
        pub device_time: Duration = Duration::ZERO;
        /// Clients, servers and times of the calls.
        pub pattern: CallPattern;
    }
}

/// Class names, by class index.
const CLASSES: [&str; 4] = ["read request", "read response", "write request", "write response"];

impl CallWorkload for Config {
    fn pattern(&self) -> &CallPattern {
        &self.pattern
    }

    fn classes(&self) -> Vec<String> {
        CLASSES.map(str::to_owned).to_vec()
    }

    fn distribution(&self, format: &Format) -> Result<Box<dyn CallDistribution>, Problem> {
        let blocks =
            self.blocks.distribution(format).map_err(|problem| problem.within("blocks"))?;
        Ok(Box::new(Storage { blocks, config: self.clone() }))
    }

    fn sizes(&self) -> Vec<(&'static str, &sizes::Config)> {
        vec![("blocks", &self.blocks)]
    }
}

struct Storage {
    blocks: Box<dyn SizeDistribution>,
    config: Config,
}

impl CallDistribution for Storage {
    fn sample(&self, random: &mut Random) -> Call {
        let Config { reads, read_request, acknowledgement, device_time, .. } = self.config;
        let is_read = random.uniform() < reads;
        let block = self.blocks.sample(random);
        let service = Duration::from_seconds(random.exponential(device_time.seconds()));
        let reply = |size, class| Reply { size, service, class };
        if is_read {
            Call { request: read_request, class: 0, reply: reply(block, 1) }
        } else {
            Call { request: block, class: 2, reply: reply(acknowledgement, 3) }
        }
    }

    fn mean(&self) -> f64 {
        self.mean_packets(Bytes(1))
    }

    fn mean_packets(&self, payload: Bytes) -> f64 {
        let Config { reads, read_request, acknowledgement, .. } = self.config;
        let small = |bytes: Bytes| bytes.0.div_ceil(payload.0) as f64;
        self.blocks.mean_packets(payload)
            + reads * small(read_request)
            + (1.0 - reads) * small(acknowledgement)
    }

    fn mean_service_time(&self) -> Duration {
        self.config.device_time
    }

    fn has_server_queue(&self) -> bool {
        true
    }
}

//! Reads and writes of blocks that servers keep on devices.

use super::{Context, Flows, Workload, WorkloadEstimate};
use crate::base::random::Random;
use crate::base::schema::{Problem, fraction, positive};
use crate::base::units::{Bytes, Duration};
use crate::model::flow::Reply;
use crate::traffic::rpc_calls::{self, Call, Pattern};
use crate::traffic::sizes::{self, Distribution};

crate::parameters! {
    /// Storage: clients read and write blocks. A read is a small request and a block in return; a write
    /// is a block and a small acknowledgement. Every server has one device, which serves one block after
    /// another. The time that counts is the client's, `latency_s`.
    pub struct Config {
        /// Share of calls that read; the others write.
        pub reads: f64 = 0.5, where fraction;
        /// How large blocks are.
        pub blocks: sizes::Config;
        /// Payload of a request to read.
        pub read_request: Bytes = Bytes(256), where positive;
        /// Payload of the acknowledgement of a write.
        pub acknowledgement: Bytes = Bytes(64), where positive;
        /// Mean of the exponential time that a device takes for a block.
        pub device_time: Duration = Duration::ZERO;
        /// Which clients call which servers, and when.
        pub pattern: Pattern;
    }
}

/// The classes, in the order of their indices.
const CLASSES: [&str; 4] = ["read request", "read response", "write request", "write response"];

impl Workload for Config {
    fn open(&self, context: &Context<'_>) -> Result<Flows, Problem> {
        let classes = CLASSES.map(str::to_owned).to_vec();
        let kind = self.calls(context)?;
        self.pattern
            .open(context, Box::new(kind), classes)
            .map_err(|problem| problem.within("pattern"))
    }

    fn offer(&self, context: &Context<'_>) -> Result<WorkloadEstimate, Problem> {
        let kind = self.calls(context)?;
        self.pattern.offer(context, &kind).map_err(|problem| problem.within("pattern"))
    }
}

impl Config {
    fn calls(&self, context: &Context<'_>) -> Result<Storage, Problem> {
        let blocks =
            self.blocks.open(context.format).map_err(|problem| problem.within("blocks"))?;
        Ok(Storage { blocks, config: self.clone() })
    }
}

struct Storage {
    blocks: Box<dyn Distribution>,
    config: Config,
}

impl rpc_calls::Kind for Storage {
    fn draw(&self, random: &mut Random) -> Call {
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

    fn service(&self) -> Duration {
        self.config.device_time
    }

    fn has_queue(&self) -> bool {
        true
    }
}

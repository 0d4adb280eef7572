//! Constant flow size.

use super::{FlowSizes, SizeDistribution};
use crate::base::random::Random;
use crate::base::schema::{Problem, positive};
use crate::base::units::Bytes;
use crate::model::packet::Format;

crate::parameters! {
    /// Every flow has the same size.
    pub struct Config {
        /// Payload of a flow.
        pub size: Bytes, where positive;
    }
}

impl FlowSizes for Config {
    fn distribution(&self, _: &Format) -> Result<Box<dyn SizeDistribution>, Problem> {
        Ok(Box::new(self.clone()))
    }
}

impl SizeDistribution for Config {
    fn sample(&self, _: &mut Random) -> Bytes {
        self.size
    }

    fn mean_packets(&self, payload: Bytes) -> f64 {
        self.size.0.div_ceil(payload.0) as f64
    }
}

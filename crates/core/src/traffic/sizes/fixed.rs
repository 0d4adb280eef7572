//! Flows that are all alike.

use super::{Distribution, Sizes};
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

impl Sizes for Config {
    fn open(&self, _: &Format) -> Result<Box<dyn Distribution>, Problem> {
        Ok(Box::new(self.clone()))
    }
}

impl Distribution for Config {
    fn sample(&self, _: &mut Random) -> Bytes {
        self.size
    }

    fn mean_packets(&self, payload: Bytes) -> f64 {
        self.size.0.div_ceil(payload.0) as f64
    }
}

//! Exponential flow sizes.

use super::{FlowSizes, SizeDistribution, round_up};
use crate::base::random::Random;
use crate::base::schema::{Problem, positive};
use crate::base::units::Bytes;
use crate::model::packet::Format;

crate::parameters! {
    /// Exponential distribution, rounded up to whole bytes: a geometric distribution with exactly
    /// this mean.
    pub struct Config {
        /// Mean size.
        pub mean: Bytes, where positive;
    }
}

impl Config {
    /// Mean of the exponential variable before rounding.
    fn scale(&self) -> f64 {
        -1.0 / (-1.0 / self.mean.0 as f64).ln_1p()
    }
}

impl FlowSizes for Config {
    fn distribution(&self, _: &Format) -> Result<Box<dyn SizeDistribution>, Problem> {
        Ok(Box::new(self.clone()))
    }
}

impl SizeDistribution for Config {
    fn sample(&self, random: &mut Random) -> Bytes {
        round_up(random.exponential(self.scale()))
    }

    fn mean_packets(&self, payload: Bytes) -> f64 {
        // The memoryless property: each packet is followed by another with the same probability.
        -1.0 / (-(payload.0 as f64) / self.scale()).exp_m1()
    }
}

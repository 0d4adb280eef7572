//! Sizes without memory.

use super::{Distribution, Sizes, whole};
use crate::base::random::Random;
use crate::base::schema::{Problem, positive};
use crate::base::units::Bytes;
use crate::model::packet::Format;

crate::parameters! {
    /// Exponential sizes, in whole bytes: a geometric distribution that has exactly this mean.
    pub struct Config {
        /// Mean size.
        pub mean: Bytes, where positive;
    }
}

impl Config {
    /// Mean of the exponential variable that, rounded up to whole bytes, has the mean asked for.
    fn scale(&self) -> f64 {
        -1.0 / (-1.0 / self.mean.0 as f64).ln_1p()
    }
}

impl Sizes for Config {
    fn open(&self, _: &Format) -> Result<Box<dyn Distribution>, Problem> {
        Ok(Box::new(self.clone()))
    }
}

impl Distribution for Config {
    fn sample(&self, random: &mut Random) -> Bytes {
        whole(random.exponential(self.scale()))
    }

    fn mean_packets(&self, payload: Bytes) -> f64 {
        // A packet more is needed with the same probability each time.
        -1.0 / (-(payload.0 as f64) / self.scale()).exp_m1()
    }
}

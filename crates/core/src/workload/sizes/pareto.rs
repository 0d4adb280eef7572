//! Heavy-tailed sizes.

use super::{Distribution, Sizes, power_sum, whole};
use crate::packet::Format;
use crate::parameters::{Problem, positive};
use crate::random::Random;
use crate::units::Bytes;

crate::parameters! {
    /// Pareto sizes of a given mean, rounded up to whole bytes.
    pub struct Config {
        /// Mean size, before rounding.
        pub mean: Bytes, where positive;
        /// Shape; the smaller, the heavier the tail.
        pub shape: f64 = 1.2, where above_one;
    }
}

/// A shape that has a mean.
pub fn above_one(shape: &f64) -> Result<(), &'static str> {
    if *shape > 1.0 { Ok(()) } else { Err("above 1: otherwise there is no mean") }
}

impl Config {
    /// The smallest size, before rounding.
    fn scale(&self) -> f64 {
        self.mean.0 as f64 * (self.shape - 1.0) / self.shape
    }
}

impl Sizes for Config {
    fn open(&self, _: &Format) -> Result<Box<dyn Distribution>, Problem> {
        Ok(Box::new(self.clone()))
    }
}

impl Distribution for Config {
    fn sample(&self, random: &mut Random) -> Bytes {
        whole(self.scale() * (1.0 - random.uniform()).powf(-1.0 / self.shape))
    }

    fn mean_packets(&self, payload: Bytes) -> f64 {
        // The sum of the probabilities that more than n packets are needed, for n = 0, 1, …
        let scale = self.scale() / payload.0 as f64;
        let certain = scale.floor() + 1.0;
        certain + power_sum(self.shape, scale, certain, f64::INFINITY)
    }
}

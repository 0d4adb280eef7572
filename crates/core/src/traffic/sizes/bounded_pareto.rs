//! Heavy-tailed sizes between two bounds.

use super::{Distribution, Sizes, power_sum, whole};
use crate::base::random::Random;
use crate::base::schema::{Problem, positive};
use crate::base::units::Bytes;
use crate::model::packet::Format;

crate::parameters! {
    /// Pareto sizes cut off at a largest size, rounded up to whole bytes.
    pub struct Config {
        /// Smallest size.
        pub min: Bytes, where positive;
        /// Largest size.
        pub max: Bytes;
        /// Shape; the smaller, the heavier the tail.
        pub shape: f64 = 1.2, where positive;
    }
    check |config| {
        if config.max <= config.min {
            let message = format!("must be above `min`, {}, not {}", config.min, config.max);
            return Err(Problem::new("max", message));
        }
        Ok(())
    }
}

impl Config {
    /// The share of an unbounded Pareto distribution that lies beyond the largest size.
    fn cut(&self) -> f64 {
        (self.min.0 as f64 / self.max.0 as f64).powf(self.shape)
    }
}

impl Sizes for Config {
    fn open(&self, _: &Format) -> Result<Box<dyn Distribution>, Problem> {
        Ok(Box::new(self.clone()))
    }
}

impl Distribution for Config {
    fn sample(&self, random: &mut Random) -> Bytes {
        let beyond = 1.0 - random.uniform() * (1.0 - self.cut());
        whole(self.min.0 as f64 * beyond.powf(-1.0 / self.shape)).min(self.max)
    }

    fn mean_packets(&self, payload: Bytes) -> f64 {
        // The sum of the probabilities that more than n packets are needed, for n = 0, 1, …
        let (low, high) =
            (self.min.0 as f64 / payload.0 as f64, self.max.0 as f64 / payload.0 as f64);
        let (certain, most) = (low.floor() + 1.0, high.ceil());
        if certain >= most {
            return certain;
        }
        let beyond = power_sum(self.shape, low, certain, most);
        certain + (beyond - (most - certain) * self.cut()) / (1.0 - self.cut())
    }
}

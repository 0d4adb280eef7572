//! Sizes between two bounds, all equally likely.

use super::{Distribution, Sizes, packets_of_steps};
use crate::base::random::Random;
use crate::base::schema::{Problem, positive};
use crate::base::units::Bytes;
use crate::model::packet::Format;

crate::parameters! {
    /// Whole bytes between two bounds, all equally likely.
    pub struct Config {
        /// Smallest size.
        pub min: Bytes, where positive;
        /// Largest size.
        pub max: Bytes;
    }
    check |config| {
        if config.max < config.min {
            let message = format!("must be at least `min`, {}, not {}", config.min, config.max);
            return Err(Problem::new("max", message));
        }
        Ok(())
    }
}

impl Sizes for Config {
    fn open(&self, _: &Format) -> Result<Box<dyn Distribution>, Problem> {
        Ok(Box::new(self.clone()))
    }
}

impl Distribution for Config {
    fn sample(&self, random: &mut Random) -> Bytes {
        Bytes(self.min.0 + random.below(self.max.0 - self.min.0 + 1))
    }

    fn mean_packets(&self, payload: Bytes) -> f64 {
        let up_to = |size| packets_of_steps(size, Bytes(1), payload);
        let packets = up_to(self.max.0) - up_to(self.min.0 - 1);
        packets as f64 / (self.max.0 - self.min.0 + 1) as f64
    }
}

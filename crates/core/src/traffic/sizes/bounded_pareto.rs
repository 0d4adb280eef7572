//! Bounded Pareto flow sizes.

use super::{FlowSizes, SizeDistribution, power_sum, round_up};
use crate::base::random::Random;
use crate::base::schema::{Problem, positive};
use crate::base::units::Bytes;
use crate::model::packet::Format;

crate::parameters! {
    /// Bounded Pareto distribution, rounded up to whole bytes.
    pub struct Config {
        /// Minimum size.
        pub min: Bytes, where positive;
        /// Maximum size.
        pub max: Bytes;
        /// Shape parameter; the smaller, the heavier the tail.
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
    /// Probability that an unbounded Pareto variable exceeds the maximum size.
    fn mass_beyond_max(&self) -> f64 {
        (self.min.0 as f64 / self.max.0 as f64).powf(self.shape)
    }
}

impl FlowSizes for Config {
    fn distribution(&self, _: &Format) -> Result<Box<dyn SizeDistribution>, Problem> {
        Ok(Box::new(self.clone()))
    }
}

impl SizeDistribution for Config {
    fn sample(&self, random: &mut Random) -> Bytes {
        let beyond = 1.0 - random.uniform() * (1.0 - self.mass_beyond_max());
        round_up(self.min.0 as f64 * beyond.powf(-1.0 / self.shape)).min(self.max)
    }

    fn mean_packets(&self, payload: Bytes) -> f64 {
        // The mean is the sum over n = 0, 1, … of the probability that more than n packets are
        // needed.
        let (low, high) =
            (self.min.0 as f64 / payload.0 as f64, self.max.0 as f64 / payload.0 as f64);
        let (certain, most) = (low.floor() + 1.0, high.ceil());
        if certain >= most {
            return certain;
        }
        let beyond = power_sum(self.shape, low, certain, most);
        certain
            + (beyond - (most - certain) * self.mass_beyond_max()) / (1.0 - self.mass_beyond_max())
    }
}

//! Pareto flow sizes.

use super::{FlowSizes, SizeDistribution, power_sum, round_up};
use crate::base::random::Random;
use crate::base::schema::{Problem, has_mean, positive};
use crate::base::units::Bytes;
use crate::model::packet::Format;

crate::parameters! {
    /// Pareto distribution with a given mean, rounded up to whole bytes or packets.
    pub struct Config {
        /// Mean size before rounding.
        pub mean: Bytes, where positive;
        /// Shape parameter; the smaller, the heavier the tail.
        pub shape: f64 = 1.2, where has_mean;
        /// If true, sizes are rounded up to full packets ([rcp06]) instead of bytes.
        pub whole_packets: bool = false;
    }
}

impl FlowSizes for Config {
    fn distribution(&self, format: &Format) -> Result<Box<dyn SizeDistribution>, Problem> {
        Ok(Box::new(Pareto {
            scale: self.mean.0 as f64 * (self.shape - 1.0) / self.shape,
            shape: self.shape,
            unit: if self.whole_packets { format.payload } else { Bytes(1) },
        }))
    }
}

struct Pareto {
    /// Minimum size in bytes before rounding.
    scale: f64,
    shape: f64,
    /// Sizes are multiples of this unit.
    unit: Bytes,
}

impl Pareto {
    /// Returns the mean size in units of `unit`, rounded up.
    fn mean_units(&self, unit: Bytes) -> f64 {
        // The mean is the sum over n = 0, 1, … of the probability that more than n units are
        // needed.
        let scale = self.scale / unit.0 as f64;
        let certain = scale.floor() + 1.0;
        certain + power_sum(self.shape, scale, certain, f64::INFINITY)
    }
}

impl SizeDistribution for Pareto {
    fn sample(&self, random: &mut Random) -> Bytes {
        let size = random.pareto(self.scale, self.shape);
        Bytes(round_up(size / self.unit.0 as f64).0 * self.unit.0)
    }

    fn mean_packets(&self, payload: Bytes) -> f64 {
        if self.unit.0.is_multiple_of(payload.0) {
            self.mean_units(self.unit) * (self.unit.0 / payload.0) as f64
        } else {
            self.mean_units(payload)
        }
    }
}

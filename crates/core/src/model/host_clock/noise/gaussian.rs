//! Normally distributed noise.

use super::Noise;
use crate::base::random::Random;
use crate::base::units::Duration;

crate::parameters! {
    /// Normally distributed noise around zero. A measured RTT is never negative.
    pub struct Config {
        /// Standard deviation.
        pub deviation: Duration;
    }
}

impl Noise for Config {
    fn draw(&self, random: &mut Random) -> f64 {
        random.normal(0.0, self.deviation.seconds())
    }
}

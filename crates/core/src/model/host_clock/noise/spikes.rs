//! Rare long delays.

use super::Noise;
use crate::base::random::Random;
use crate::base::schema::fraction;
use crate::base::units::Duration;

crate::parameters! {
    /// Rare long delays, as of a busy host.
    pub struct Config {
        /// Probability that a measurement is delayed.
        pub probability: f64, where fraction;
        /// Delay.
        pub size: Duration;
    }
}

impl Noise for Config {
    fn draw(&self, random: &mut Random) -> f64 {
        if random.uniform() < self.probability { self.size.seconds() } else { 0.0 }
    }
}

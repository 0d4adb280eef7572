//! Uniformly distributed noise.

use super::Noise;
use crate::base::random::Random;
use crate::base::units::Duration;

crate::parameters! {
    /// Uniformly distributed noise from zero to a maximum, as in the experiment of [timely15] §6.1.
    pub struct Config {
        /// Maximum.
        pub most: Duration;
    }
}

impl Noise for Config {
    fn draw(&self, random: &mut Random) -> f64 {
        self.most.seconds() * random.uniform()
    }
}

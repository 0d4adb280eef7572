//! A rare long delay.

use super::Noise;
use crate::base::random::Random;
use crate::base::schema::fraction;
use crate::base::units::Duration;

crate::parameters! {
    /// Now and then a long delay, as when a host is busy with something else; otherwise nothing.
    pub struct Config {
        /// How likely a measurement is to be delayed.
        pub probability: f64, where fraction;
        /// By how much.
        pub size: Duration;
    }
}

impl Noise for Config {
    fn draw(&self, random: &mut Random) -> f64 {
        if random.uniform() < self.probability { self.size.seconds() } else { 0.0 }
    }
}

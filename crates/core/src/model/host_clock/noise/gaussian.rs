//! Normally distributed errors.

use super::Noise;
use crate::base::random::Random;
use crate::base::units::Duration;

crate::parameters! {
    /// Normally distributed errors around zero; no round-trip time is measured as less than nothing.
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

//! Any addition up to a bound, all as likely.

use super::Noise;
use crate::base::random::Random;
use crate::base::units::Duration;

crate::parameters! {
    /// Any addition from nothing to a bound, all as likely, as in the experiment of [timely15] §6.1.
    pub struct Config {
        /// The bound.
        pub most: Duration;
    }
}

impl Noise for Config {
    fn draw(&self, random: &mut Random) -> f64 {
        self.most.seconds() * random.uniform()
    }
}

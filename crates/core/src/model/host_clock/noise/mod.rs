//! What is added to measured round-trip times.

pub mod gaussian;
pub mod spikes;
pub mod uniform;

use crate::base::random::Random;

/// A kind of noise.
pub trait Noise {
    /// Draws an addition, in seconds, which may be negative.
    fn draw(&self, random: &mut Random) -> f64;
}

crate::family! {
    /// Every kind of noise, by the name a scenario gives it.
    pub enum Config as dyn Noise { uniform, gaussian, spikes }
}

//! Noise of measured RTTs.

pub mod gaussian;
pub mod spikes;
pub mod uniform;

use crate::base::random::Random;

/// Kind of noise.
pub trait Noise {
    /// Draws a value to add, in seconds, which may be negative.
    fn draw(&self, random: &mut Random) -> f64;
}

crate::family! {
    /// All kinds of noise by their names in scenarios.
    pub enum Config as dyn Noise named "rtt_noise" { uniform, gaussian, spikes }
}

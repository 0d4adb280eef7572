//! The ideal models, one file each.

pub mod alone;
pub mod max_min;
pub mod omniscient;
pub mod processor_sharing;
pub mod srpt;

use crate::ideal::Ideal;

crate::family! {
    /// Every ideal, by the name a scenario gives it.
    pub enum Config as dyn Ideal named "model" { alone, processor_sharing, srpt, max_min, omniscient }
}

#[cfg(test)]
mod tests;

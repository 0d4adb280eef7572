//! Entropy selectors: which path the next packet of a flow takes.

pub mod bitmap;
pub mod mixed;
pub mod oblivious;
pub mod path_scores;
pub mod plb;
pub mod reps;
pub mod reps_legacy;

use crate::base::random::Random;
use crate::base::schema::Bounds;
pub use crate::transport::selector::{
    Draw, EntropySelector, PathFeedback, Rounds, SelectorKind, ValueUse,
};

crate::family! {
    /// Entropy selectors, by their names in scenarios.
    pub enum Config as dyn SelectorKind named "entropy" {
        bitmap, mixed, oblivious, path_scores, plb, reps, reps_legacy,
    }
}

/// Number of entropy values of a flow, for parameters.
fn values() -> Bounds {
    Bounds::at_least(1.0).to(65_536.0)
}

#[cfg(test)]
mod tests;

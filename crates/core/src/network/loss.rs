//! Which packets a link loses, at its end.

use crate::graph::Loss;
use crate::random::Random;

/// What decides it.
#[derive(Debug)]
pub enum Losses {
    /// Nothing is lost.
    None,
    /// Each packet is, with this probability.
    Random(f64, Random),
    /// Every so many-th is: the period, and how many have come.
    Every(u64, u64),
}

impl Losses {
    /// The losses of a link of which `loss` is said; `stream` gives a random stream to those that draw.
    pub fn new(loss: Loss, stream: impl FnOnce() -> Random) -> Self {
        match loss {
            Loss::None => Self::None,
            Loss::Random(probability) => Self::Random(probability, stream()),
            Loss::Every(period) => Self::Every(period, 0),
        }
    }

    /// Whether anything is ever lost.
    pub fn are_possible(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether the packet that has come now is lost, unless it `is_protected`.
    pub fn take(&mut self, is_protected: bool) -> bool {
        let is_lost = match self {
            Self::None => false,
            Self::Random(probability, random) => !is_protected && random.uniform() < *probability,
            Self::Every(period, came) => {
                *came += 1;
                came.is_multiple_of(*period)
            }
        };
        is_lost && !is_protected
    }
}

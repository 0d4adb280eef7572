//! Pipeline of stages.

use super::{Algorithm, End, Message, Schedule, check_parts, part_of};
use crate::base::schema::{Problem, positive};
use crate::base::units::Bytes;

crate::parameters! {
    /// Each rank is a stage of a model that is trained with pipeline parallelism: micro-batches pass through
    /// the stages from first to last, and their gradients back. A stage computes before it passes on a
    /// micro-batch, on one at a time. It sends them one after another: the next starts when the
    /// previous one is acknowledged. The buffer of a rank holds the data of all micro-batches.
    pub struct Config {
        /// Number of micro-batches.
        pub micro_batches: u32 = 8, where positive;
    }
}

impl Algorithm for Config {
    fn schedule(&self, ranks: u32, size: Bytes) -> Result<Box<dyn Schedule>, Problem> {
        let micro_batches = u64::from(self.micro_batches);
        check_parts(size, micro_batches)?;
        Ok(Box::new(Pipeline { ranks: u64::from(ranks), micro_batches, size }))
    }

    fn computes(&self) -> bool {
        true
    }
}

/// Message number = step · micro-batches + micro-batch. Step k leads to stage k + 1; after the last stage,
/// steps lead back.
struct Pipeline {
    ranks: u64,
    micro_batches: u64,
    size: Bytes,
}

impl Schedule for Pipeline {
    fn messages(&self) -> u64 {
        2 * (self.ranks - 1) * self.micro_batches
    }

    fn first(&self) -> u64 {
        self.micro_batches
    }

    fn message(&self, number: u64) -> Message {
        let (step, micro_batch) = (number / self.micro_batches, number % self.micro_batches);
        let stage = |step: u64| step.min(2 * (self.ranks - 1) - step) as u32;
        Message {
            source: stage(step),
            target: stage(step + 1),
            size: part_of(self.size, self.micro_batches, micro_batch),
            step: step as u32,
            is_computed: true,
        }
    }

    fn counter(&self, number: u64, end: End) -> Option<u64> {
        let next = number + self.micro_batches;
        (end == End::Delivered && next < self.messages()).then_some(next)
    }
    fn follower(&self, number: u64) -> Option<u64> {
        Some(number + 1).filter(|next| self.is_follower(*next))
    }

    fn is_follower(&self, number: u64) -> bool {
        !number.is_multiple_of(self.micro_batches)
    }
}

//! Ring algorithm.

use super::{Algorithm, End, Message, Operation, Schedule, check_parts, part_of};
use crate::base::schema::{Problem, positive};
use crate::base::units::Bytes;

crate::parameters! {
    /// Each rank sends to the next one, in a ring. In each step of a reduce-scatter or an all-gather, of
    /// which there are `ranks` − 1, each rank passes on the part of the buffer that it has just received; an
    /// all-reduce consists of both. A part starts when the part of the previous step has arrived, so the
    /// ranks are not synchronised.
    pub struct Config {
        /// Operation.
        pub operation: Operation = Operation::AllReduce;
        /// Number of pieces of each part. A rank passes on each piece when it has arrived, so that ranks
        /// compute while they send; pieces that a rank sends at the same time share its port.
        pub chunks: u32 = 1, where positive;
    }
}

impl Algorithm for Config {
    fn schedule(&self, ranks: u32, size: Bytes) -> Result<Box<dyn Schedule>, Problem> {
        check_parts(size, u64::from(ranks) * u64::from(self.chunks))?;
        let [first, end] = self.operation.steps(ranks - 1);
        let [ranks, chunks] = [ranks, self.chunks].map(u64::from);
        let reduces = self.operation.reduces();
        Ok(Box::new(Ring { ranks, chunks, steps: u64::from(end - first), reduces, size }))
    }

    fn computes(&self) -> bool {
        self.operation.reduces()
    }
}

/// Message number = (step · chunks + chunk) · ranks + source.
struct Ring {
    ranks: u64,
    chunks: u64,
    steps: u64,
    /// True if ranks reduce the parts that they receive in the first `ranks` − 1 steps.
    reduces: bool,
    size: Bytes,
}

impl Schedule for Ring {
    fn messages(&self) -> u64 {
        self.steps * self.first()
    }

    fn first(&self) -> u64 {
        self.chunks * self.ranks
    }

    fn message(&self, number: u64) -> Message {
        let (source, step) = (number % self.ranks, number / self.first());
        let chunk = number / self.ranks % self.chunks;
        // The part that a rank sends in step 0 has the rank's number, and moves on by one in each step.
        let part = (source + self.ranks - step % self.ranks) % self.ranks;
        Message {
            source: source as u32,
            target: ((source + 1) % self.ranks) as u32,
            size: part_of(self.size, self.ranks * self.chunks, part * self.chunks + chunk),
            step: step as u32,
            is_computed: self.reduces && (1..self.ranks).contains(&step),
        }
    }

    fn counter(&self, number: u64, end: End) -> Option<u64> {
        let target = (number + 1) % self.ranks;
        let next = number - number % self.ranks + self.first() + target;
        (end == End::Delivered && next < self.messages()).then_some(next)
    }
}

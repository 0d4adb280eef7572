//! Recursive halving and doubling.

use super::{Algorithm, End, Message, Operation, Schedule, check_parts, part_of};
use crate::base::schema::Problem;
use crate::base::units::Bytes;

crate::parameters! {
    /// Pairs of ranks exchange data: in a reduce-scatter half of the buffer with the rank at half the number
    /// of ranks away, then a quarter with the rank at a quarter of it, and so on; in an all-gather the same
    /// in reverse. An all-reduce consists of both. A rank starts a step when it has received the data of
    /// the previous step, and its own are acknowledged. The number of ranks must be a power of two.
    pub struct Config {
        /// Operation.
        pub operation: Operation = Operation::AllReduce;
    }
}

impl Algorithm for Config {
    fn schedule(&self, ranks: u32, size: Bytes) -> Result<Box<dyn Schedule>, Problem> {
        if !ranks.is_power_of_two() {
            let message = format!("must be a power of two for halving_doubling, not {ranks}");
            return Err(Problem::new("ranks", message));
        }
        check_parts(size, u64::from(ranks))?;
        let halvings = ranks.ilog2();
        let [first, end] = self.operation.steps(halvings);
        Ok(Box::new(HalvingDoubling { ranks, halvings, first, end, size }))
    }

    fn computes(&self) -> bool {
        self.operation.reduces()
    }
}

/// Message number = step · ranks + source, where steps count from the operation's first.
struct HalvingDoubling {
    ranks: u32,
    halvings: u32,
    /// First step of the operation among those of an all-reduce.
    first: u32,
    /// End of its steps.
    end: u32,
    size: Bytes,
}

impl Schedule for HalvingDoubling {
    fn messages(&self) -> u64 {
        u64::from(self.end - self.first) * self.first()
    }

    fn first(&self) -> u64 {
        u64::from(self.ranks)
    }

    fn message(&self, number: u64) -> Message {
        let (source, step) = ((number % self.first()) as u32, (number / self.first()) as u32);
        let all = self.first + step;
        let halving = all.min(2 * self.halvings - 1 - all);
        // Distance of the ranks, and number of parts of the buffer that they exchange.
        let distance = self.ranks >> (halving + 1);
        let target = source ^ distance;
        // Halving: the half that the target keeps. Doubling: what the source has.
        let owner = if all < self.halvings { target } else { source };
        let size =
            part_of(self.size, u64::from(self.ranks / distance), u64::from(owner / distance));
        // What a rank has received by halving, it reduces before it sends the next message.
        let is_computed = step > 0 && all <= self.halvings;
        Message { source, target, size, step, is_computed }
    }

    fn counter(&self, number: u64, end: End) -> Option<u64> {
        let Message { source, target, step, .. } = self.message(number);
        let rank = if end == End::Sent { source } else { target };
        let next = u64::from(step + 1) * self.first() + u64::from(rank);
        (next < self.messages()).then_some(next)
    }

    fn released(&self, counter: u64, count: u32) -> Option<u64> {
        (count == 2).then_some(counter)
    }
}

//! Algorithms of collective operations: which rank sends which message to which, and in which order.

pub mod all_to_all;
pub mod halving_doubling;
pub mod pipeline;
pub mod ring;

use crate::base::schema::Problem;
use crate::base::units::Bytes;

/// Parameters of an algorithm.
pub trait Algorithm {
    /// Returns the schedule for a number of ranks, each with a buffer of `size` bytes.
    fn schedule(&self, ranks: u32, size: Bytes) -> Result<Box<dyn Schedule>, Problem>;

    /// Returns true if ranks compute: reduce what they have received, or train.
    fn computes(&self) -> bool;
}

/// Message between two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Rank that sends.
    pub source: u32,
    /// Rank that receives.
    pub target: u32,
    /// Payload.
    pub size: Bytes,
    /// Number of the step, from 0.
    pub step: u32,
    /// True if the source computes before it sends the message.
    pub is_computed: bool,
}

/// End of a message, at one of its ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The target has all data.
    Delivered,
    /// The source has the acknowledgement of all data.
    Sent,
}

/// Messages of a collective operation, and their order: a pure function of ranks and size.
///
/// Messages are numbered from 0. The first of them are due at the start of the job. Each other message is due
/// when a counter has its value, which the ends of messages at its source increment. The source of a due
/// message computes, if it must, and then sends the message: at once, or behind the message before it.
pub trait Schedule: Send {
    /// Returns the number of messages.
    fn messages(&self) -> u64;

    /// Returns the number of messages that are due at the start of the job, which have the lowest numbers.
    fn first(&self) -> u64;

    /// Returns a message.
    fn message(&self, number: u64) -> Message;

    /// Returns the counter that the end of a message increments, if messages wait for it.
    fn counter(&self, number: u64, end: End) -> Option<u64>;

    /// Returns the message that is due when a counter reaches a count. By default, a counter has the number
    /// of its message, which waits for one end.
    fn released(&self, counter: u64, count: u32) -> Option<u64> {
        (count == 1).then_some(counter)
    }

    /// Returns the message that its source sends behind this one: when it has the acknowledgement of all
    /// data. By default, messages are sent at once.
    fn follower(&self, _number: u64) -> Option<u64> {
        None
    }

    /// Returns true if a message is the follower of another.
    fn is_follower(&self, _number: u64) -> bool {
        false
    }
}

crate::family! {
    /// Every algorithm, by the name a scenario gives it.
    pub enum Config as dyn Algorithm named "algorithm" {
        ring, halving_doubling, all_to_all, pipeline,
    }
}

crate::choices! {
    /// Operation that an algorithm performs.
    pub enum Operation {
        /// Every rank gets the sum of the buffers of all ranks: a reduce-scatter, then an all-gather.
        AllReduce = "all_reduce",
        /// Every rank gets one part of the sum.
        ReduceScatter = "reduce_scatter",
        /// Every rank gets the parts of all ranks.
        AllGather = "all_gather",
    }
}

impl Operation {
    /// Returns true if ranks reduce what they have received.
    fn reduces(self) -> bool {
        self != Self::AllGather
    }

    /// Returns the first and the end of the steps of an all-reduce that the operation consists of; a half
    /// of it has `half` steps.
    fn steps(self, half: u32) -> [u32; 2] {
        match self {
            Self::AllReduce => [0, 2 * half],
            Self::ReduceScatter => [0, half],
            Self::AllGather => [half, 2 * half],
        }
    }
}

/// Returns the size of part `part` of `parts` of a buffer. The parts differ by at most one byte, and their
/// sum is the buffer.
fn part_of(size: Bytes, parts: u64, part: u64) -> Bytes {
    let start = |part: u64| (u128::from(size.0) * u128::from(part) / u128::from(parts)) as u64;
    Bytes(start(part + 1) - start(part))
}

/// Checks that each of `parts` parts of a buffer has a byte.
fn check_parts(size: Bytes, parts: u64) -> Result<(), Problem> {
    if size.0 < parts {
        let message = format!("must be at least {parts} B, a byte for each message, not {size}");
        return Err(Problem::new("size", message));
    }
    Ok(())
}

#[cfg(test)]
mod tests;

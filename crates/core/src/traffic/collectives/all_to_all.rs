//! All-to-all exchange.

use super::{Algorithm, End, Message, Schedule, check_parts, part_of};
use crate::base::schema::{Problem, positive};
use crate::base::units::Bytes;

crate::parameters! {
    /// Each rank sends one part of its buffer to each other rank: first to the next rank, then to the one
    /// after it, and so on, with `window` messages at a time. When one of a rank's messages is acknowledged,
    /// its next one starts.
    pub struct Config {
        /// Number of messages that a rank sends at the same time.
        pub window: u32 = 8, where positive;
    }
}

impl Algorithm for Config {
    fn schedule(&self, ranks: u32, size: Bytes) -> Result<Box<dyn Schedule>, Problem> {
        check_parts(size, u64::from(ranks))?;
        let window = u64::from(self.window.min(ranks - 1));
        Ok(Box::new(AllToAll { ranks: u64::from(ranks), window, size }))
    }

    fn computes(&self) -> bool {
        false
    }
}

/// Message number = step · ranks + source. Counters have the numbers of ranks.
struct AllToAll {
    ranks: u64,
    window: u64,
    size: Bytes,
}

impl Schedule for AllToAll {
    fn messages(&self) -> u64 {
        self.ranks * (self.ranks - 1)
    }

    fn first(&self) -> u64 {
        self.window * self.ranks
    }

    fn message(&self, number: u64) -> Message {
        let (source, step) = (number % self.ranks, number / self.ranks);
        let target = (source + 1 + step) % self.ranks;
        Message {
            source: source as u32,
            target: target as u32,
            size: part_of(self.size, self.ranks, target),
            step: step as u32,
            is_computed: false,
        }
    }

    fn counter(&self, number: u64, end: End) -> Option<u64> {
        (end == End::Sent).then_some(number % self.ranks)
    }

    fn released(&self, rank: u64, count: u32) -> Option<u64> {
        let next = (self.window - 1 + u64::from(count)) * self.ranks + rank;
        (next < self.messages()).then_some(next)
    }
}

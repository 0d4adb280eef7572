//! Partitions of a run on several threads, and the messages between them.

pub(super) mod messages;
pub(super) mod threads;

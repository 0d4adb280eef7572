//! Building blocks of queue disciplines.

pub mod calendar_queue;
pub mod class_scheduler;
pub mod deficit_round_robin;
#[cfg(test)]
pub(crate) mod fixture;
pub mod flow_queues;
pub mod linked_lists;
pub mod marking;
pub mod priority_store;
pub mod tail_drop;
pub mod winner_tree;

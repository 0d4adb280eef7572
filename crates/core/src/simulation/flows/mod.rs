//! Flows in progress: their two ends, from the start to the flow record.

pub(super) mod connections;
pub(super) mod ends;
pub(super) mod finish;
pub(super) mod receive;
pub(super) mod send;
pub(super) mod start;
pub(super) mod table;

//! Workloads: which flows start when, between whom, and how large they are.

pub mod flows;
pub mod incast;
pub mod long_lived;
pub mod mixed;
pub mod permutation;
pub mod poisson;
pub mod rpc;
pub mod storage;
pub mod synchronised;
pub mod trace;

pub use crate::traffic::{Context, Dependencies, Flows, WorkloadEstimate};

use crate::base::schema::Problem;
use crate::traffic::estimate::payload;
use crate::traffic::{Classes, plain};

/// A kind of workload.
pub trait Workload {
    /// Opens the stream of its flows.
    fn open(&self, context: &Context<'_>) -> Result<Flows, Problem>;

    /// What that will be, roughly, without opening it.
    fn offer(&self, context: &Context<'_>) -> Result<WorkloadEstimate, Problem>;
}

crate::family! {
    /// Every workload, by the name a scenario gives it.
    pub enum Config as dyn Workload {
        poisson, incast, permutation, synchronised, long_lived, rpc, storage, flows, trace, mixed,
    }
}

#[cfg(test)]
mod tests;

//! Topologies: the networks that a scenario may name.

pub mod clos;
pub mod dumbbell;
pub mod fat_tree;
pub mod graph;
pub mod leaf_spine;
pub mod link;
pub mod parking_lot;
pub mod star;

pub use crate::model::graph::{
    Bursts, DelayTrace, Graph, Link, LinkId, LoadReference, Loss, NodeId, Paths, RateTrace,
};

use crate::base::schema::Problem;

/// A kind of network.
pub trait Topology {
    /// The network, in which every host reaches every other; what is drawn of it comes from the run's
    /// seed.
    fn graph(&self, seed: u64) -> Result<Graph, Problem>;
}

crate::family! {
    /// Every topology, by the name a scenario gives it.
    pub enum Config as dyn Topology {
        link, dumbbell, star, parking_lot, leaf_spine, fat_tree, clos, graph,
    }
}

/// Some nodes of a kind, but not so many that the network could not be held.
pub fn some(number: &u32) -> Result<(), &'static str> {
    if (1..=MOST_HOSTS).contains(number) { Ok(()) } else { Err("from 1 to 65536") }
}

/// As many hosts as a fat-tree of 64-port switches has.
const MOST_HOSTS: u32 = 1 << 16;

#[cfg(test)]
mod tests;

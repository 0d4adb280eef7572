//! The topologies, one file each.

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

use crate::base::schema::{Bounds, Problem};

/// Parameters of a topology.
pub trait Topology {
    /// Returns the network, in which every host can reach every other host. Random values are drawn
    /// from `seed`.
    fn graph(&self, seed: u64) -> Result<Graph, Problem>;
}

crate::family! {
    /// Every topology, by the name a scenario gives it.
    pub enum Config as dyn Topology named "topology" {
        link, dumbbell, star, parking_lot, leaf_spine, fat_tree, clos, graph,
    }
}

/// A number of nodes: at least one, and few enough for the memory.
pub fn positive_count() -> Bounds {
    Bounds::at_least(1.0).to(f64::from(MAX_HOSTS))
}

/// Number of hosts in a fat-tree of 64-port switches.
const MAX_HOSTS: u32 = 1 << 16;

#[cfg(test)]
mod tests;

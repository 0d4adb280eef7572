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
    Bursts, DelayTrace, Extent, Graph, Link, LinkId, LoadReference, Loss, NodeId, Paths, RateTrace,
};

use crate::base::schema::{Bounds, File, Problem};
use crate::base::units::{Duration, Rate};

/// Parameters of a topology.
pub trait Topology {
    /// Returns the network, in which every host can reach every other host. Random values are drawn
    /// from `seed`.
    fn graph(&self, seed: u64) -> Result<Graph, Problem>;

    /// Returns the longest delay and the range of rates of the network, without building it. Errors are
    /// those of files, as in [`graph`](Self::graph).
    fn extent(&self) -> Result<Extent, Problem>;
}

crate::family! {
    /// Every topology, by the name a scenario gives it.
    pub enum Config as dyn Topology named "topology" {
        link, dumbbell, star, parking_lot, leaf_spine, fat_tree, clos, graph,
    }
    known_as {
        "point_to_point" => link, "rack" => star, "single_switch" => star, "spine_leaf" => leaf_spine,
        "two_tier" => leaf_spine, "three_tier" => clos,
    }
}

/// A number of nodes or links of one kind: at least one, at most `MAX_HOSTS`.
pub fn positive_count() -> Bounds {
    Bounds::at_least(1.0).to(f64::from(MAX_HOSTS))
}

/// Returns the rate and the shortest delay of a link with these values, or instead with those of the files
/// `rate_trace` and `delay_trace`.
fn varying(
    (rate, rates): (Rate, Option<&File>),
    (delay, delays): (Duration, Option<&File>),
) -> Result<(Rate, Duration), Problem> {
    let rates = rates.map(|file| RateTrace::read("rate_trace", file)).transpose()?;
    let delays = delays.map(|file| DelayTrace::read("delay_trace", file)).transpose()?;
    let rate = rates.map_or(rate, |trace| trace.largest());
    Ok((rate, delays.map_or(delay, |trace| trace.least())))
}

/// Sets what may vary on a link: its losses, which are one of `losses` or those of the file `losses`, and its
/// rate and delay by the files `rate_trace` and `delay_trace`.
fn set_varying<const N: usize>(
    graph: &mut Graph,
    link: LinkId,
    losses: [(&str, Loss); N],
    [chosen, rates, delays]: [Option<&File>; 3],
) -> Result<(), Problem> {
    let chosen = chosen.map_or(Ok(Loss::None), |file| Loss::chosen("losses", file))?;
    graph.links[link as usize].loss = Loss::one_of(losses.into_iter().chain([("losses", chosen)]))?;
    if let Some(file) = rates {
        graph.follow(link, RateTrace::read("rate_trace", file)?);
    }
    if let Some(file) = delays {
        graph.delay_by(link, DelayTrace::read("delay_trace", file)?);
    }
    Ok(())
}

/// Largest number of hosts, and of links between two tiers: twice a fat-tree of 128-port switches.
const MAX_HOSTS: u32 = 1 << 20;

#[cfg(test)]
mod tests;

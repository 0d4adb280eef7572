//! The list of load balancers: one file for each.

use super::LoadBalancerKind;

pub mod conga;
pub mod flowlets;
pub mod random_next_hop;
pub mod shortest_queue;
pub mod weighted_ecmp;

crate::family! {
    /// Load balancer, by its name in scenarios.
    pub enum Config as dyn LoadBalancerKind named "load_balancer" {
        conga, flowlets, random_next_hop, shortest_queue, weighted_ecmp,
    }
    known_as {
        "letflow" => flowlets, "drill" => shortest_queue, "adaptive_routing" => shortest_queue,
        "wcmp" => weighted_ecmp,
    }
}

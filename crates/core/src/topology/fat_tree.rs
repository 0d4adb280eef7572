//! Fat-tree: three tiers of equal switches with full bisection bandwidth.

use super::{Extent, Graph, LoadReference, Topology};
use crate::base::schema::{Bounds, Problem, positive};
use crate::base::units::{Duration, Rate};

crate::parameters! {
    /// A fat-tree of switches with k ports each [fattree08].
    ///
    /// It has k pods of k/2 edge and k/2 aggregation switches, (k/2)² core switches and k³/4 hosts:
    /// 1024 for k = 16. Hosts `host0` … are numbered edge by edge; switches are `edge<pod>_<i>`,
    /// `aggregation<pod>_<i>` and `core<i>`. A load of 1 is the total rate of the access links.
    pub struct Config {
        /// Number of ports per switch.
        pub k: u32 = 4, where even_ports;
        /// Rate of every link.
        pub rate: Rate = Rate::from_gbps(10), where positive;
        /// Propagation delay of every link.
        pub delay: Duration = Duration::from_micros(1);
    }
}

/// A number of ports of which half can be uplinks and half downlinks.
pub fn even_ports() -> Bounds {
    Bounds::at_least(2.0).to(128.0).multiple_of(2)
}

impl Topology for Config {
    fn graph(&self, _seed: u64) -> Result<Graph, Problem> {
        let half = self.k / 2;
        let mut graph = Graph::new(LoadReference::pending());
        let cores: Vec<_> =
            (0..half * half).map(|i| graph.add_switch(format!("core{i}"))).collect();
        for pod in 0..self.k {
            let mut tier = |name| -> Vec<_> {
                (0..half).map(|i| graph.add_switch(format!("{name}{pod}_{i}"))).collect()
            };
            let (edges, aggregations) = (tier("edge"), tier("aggregation"));
            // Aggregation switch i of every pod has links to the i-th group of k/2 core switches.
            for (&aggregation, group) in aggregations.iter().zip(cores.chunks(half as usize)) {
                for &core in group {
                    graph.connect(aggregation, core, self.rate, self.delay);
                }
            }
            for &edge in &edges {
                for &aggregation in &aggregations {
                    graph.connect(edge, aggregation, self.rate, self.delay);
                }
                for _ in 0..half {
                    let host = graph.add_host(format!("host{}", graph.hosts.len()));
                    graph.connect(host, edge, self.rate, self.delay);
                }
            }
        }
        Ok(graph.loaded_by_hosts())
    }

    fn extent(&self) -> Result<Extent, Problem> {
        Ok(Extent::new(self.delay * 6, [(self.rate, 6)]))
    }
}

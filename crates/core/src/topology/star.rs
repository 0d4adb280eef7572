//! Star: hosts around one switch.

use super::{Extent, Graph, LoadReference, MAX_HOSTS, Topology};
use crate::base::schema::{Bounds, Problem, positive};
use crate::base::units::{Duration, Rate};

crate::parameters! {
    /// Hosts `host0` … on one switch. A load of 1 is the total rate of the access links.
    pub struct Config {
        /// Number of hosts.
        pub hosts: u32 = 16, where two_or_more;
        /// Rate of every link.
        pub rate: Rate = Rate::from_gbps(10), where positive;
        /// Propagation delay of every link.
        pub delay: Duration = Duration::from_micros(1);
    }
}

/// A number of hosts: at least two, and few enough for the memory.
pub fn two_or_more() -> Bounds {
    Bounds::at_least(2.0).to(f64::from(MAX_HOSTS))
}

impl Topology for Config {
    fn graph(&self, _seed: u64) -> Result<Graph, Problem> {
        let mut graph = Graph::new(LoadReference::pending());
        let switch = graph.add_switch("switch");
        for i in 0..self.hosts {
            let host = graph.add_host(format!("host{i}"));
            graph.connect(host, switch, self.rate, self.delay);
        }
        Ok(graph.loaded_by_hosts())
    }

    fn extent(&self) -> Result<Extent, Problem> {
        Ok(Extent::new(self.delay * 2, [(self.rate, 2)]))
    }
}

//! Leaf-spine: two tiers of switches, with a link from every leaf to every spine.

use super::{Extent, Graph, LoadReference, MAX_HOSTS, Topology, positive_count};
use crate::base::schema::{Problem, positive};
use crate::base::units::{Duration, Rate};

crate::parameters! {
    /// Leaf switches with hosts; every leaf has a link to every spine switch.
    ///
    /// Hosts `host0` … are numbered leaf by leaf; switches are `leaf0` … and `spine0` …. A load of
    /// 1 is the total rate of the access links. The default sizes and rates are those of the fabric
    /// in [pfabric13]; its delays are `host_delay = "2.7 us"` (0.2 us propagation and 2.5 us in the
    /// host) and `fabric_delay = "200 ns"`.
    pub struct Config {
        /// Number of leaf switches.
        pub leaves: u32 = 9, where positive_count;
        /// Number of hosts per leaf.
        pub hosts_per_leaf: u32 = 16, where positive_count;
        /// Number of spine switches.
        pub spines: u32 = 4, where positive_count;
        /// Rate of the access links.
        pub host_rate: Rate = Rate::from_gbps(10), where positive;
        /// Rate of the fabric links between leaves and spines.
        pub fabric_rate: Rate = Rate::from_gbps(40), where positive;
        /// Propagation delay of the access links, including delay in the host.
        pub host_delay: Duration = Duration::from_micros(1);
        /// Propagation delay of the fabric links between leaves and spines.
        pub fabric_delay: Duration = Duration::from_micros(1);
    }
    check |config| {
        let (leaves, most) = (u64::from(config.leaves), u64::from(MAX_HOSTS));
        let check = |field, links: u64| {
            let message = format!("gives {links} links with {leaves} leaves; at most {most}");
            if links <= most { Ok(()) } else { Err(Problem::new(field, message)) }
        };
        check("hosts_per_leaf", leaves * u64::from(config.hosts_per_leaf))?;
        check("spines", leaves * u64::from(config.spines))?;
        if config.leaves * config.hosts_per_leaf < 2 {
            return Err(Problem::new("hosts_per_leaf", "gives one host; at least two are required"));
        }
        Ok(())
    }
}

impl Topology for Config {
    fn graph(&self, _seed: u64) -> Result<Graph, Problem> {
        let mut graph = Graph::new(LoadReference::pending());
        let spines: Vec<_> =
            (0..self.spines).map(|i| graph.add_switch(format!("spine{i}"))).collect();
        for leaf in 0..self.leaves {
            let switch = graph.add_switch(format!("leaf{leaf}"));
            for &spine in &spines {
                graph.connect(switch, spine, self.fabric_rate, self.fabric_delay);
            }
            for i in 0..self.hosts_per_leaf {
                let host = graph.add_host(format!("host{}", leaf * self.hosts_per_leaf + i));
                graph.connect(host, switch, self.host_rate, self.host_delay);
            }
        }
        Ok(graph.loaded_by_hosts())
    }

    fn extent(&self) -> Result<Extent, Problem> {
        let (between, links) =
            if self.leaves > 1 { (self.fabric_delay, 2) } else { (Duration::ZERO, 0) };
        let delay = (self.host_delay + between) * 2;
        Ok(Extent::new(delay, [(self.host_rate, 2), (self.fabric_rate, links)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use crate::base::units::Bytes;
    use crate::topology::Paths;
    use serde_json::json;

    #[test]
    fn pfabric_delays_give_its_rtt() {
        let delays = json!({"host_delay": "2.7 us", "fabric_delay": "200 ns"});
        let graph = Config::read(&delays).unwrap().graph(1).unwrap();
        assert_eq!(graph.load.rate, Rate::from_gbps(1440));
        let mut paths = Paths::new(&graph);
        // One packet of 1500 bytes with store-and-forward: 8.8 us between racks, 7.8 us within a
        // rack.
        let mut one_way = |target, bytes| {
            let mut links = Vec::new();
            paths.append(0, target, 0, &mut links);
            links.iter().fold(Duration::ZERO, |sum, &link| {
                let link = &graph.links[link as usize];
                sum + link.delay + link.rate.transmit(Bytes(bytes))
            })
        };
        assert_eq!(one_way(143, 1500), Duration::from_nanos(8_800));
        assert_eq!(one_way(15, 1500), Duration::from_nanos(7_800));
        assert_eq!(one_way(143, 1500) + one_way(143, 40), Duration::from_nanos(14_680));
        assert_eq!(one_way(15, 1500) + one_way(15, 40), Duration::from_nanos(13_264));
        assert_eq!((paths.count(0, 143), paths.count(0, 15)), (4, 1));
    }
}

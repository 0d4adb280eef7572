//! Two tiers of switches, every leaf wired to every spine.

use super::{Graph, LoadReference, MOST_HOSTS, Topology, some};
use crate::base::schema::{Problem, positive};
use crate::base::units::{Duration, Rate};

crate::parameters! {
    /// Leaf switches with hosts, each leaf wired to every spine switch.
    ///
    /// Hosts `host0` … are numbered leaf by leaf; switches are `leaf0` … and `spine0` …. A load of
    /// 1 is the rate of all hosts' access links together. The defaults have the shape and rates of
    /// the fabric in [pfabric13]; its delays are `host_delay = "2.7 us"` (0.2 us of cable and 2.5
    /// us in the host) and `fabric_delay = "200 ns"`.
    pub struct Config {
        /// Number of leaf switches.
        pub leaves: u32 = 9, where some;
        /// Number of hosts on each leaf.
        pub hosts_per_leaf: u32 = 16, where some;
        /// Number of spine switches.
        pub spines: u32 = 4, where some;
        /// Rate of the hosts' cables.
        pub host_rate: Rate = Rate::from_gbps(10), where positive;
        /// Rate of the cables between leaves and spines.
        pub fabric_rate: Rate = Rate::from_gbps(40), where positive;
        /// Propagation delay of the hosts' cables, with what the host itself adds.
        pub host_delay: Duration = Duration::from_micros(1);
        /// Propagation delay of the cables between leaves and spines.
        pub fabric_delay: Duration = Duration::from_micros(1);
    }
    check |config| {
        let (leaves, most) = (u64::from(config.leaves), u64::from(MOST_HOSTS));
        let within = |field, cables: u64| {
            let message = format!("makes {cables} cables with {leaves} leaves; at most {most}");
            if cables <= most { Ok(()) } else { Err(Problem::new(field, message)) }
        };
        within("hosts_per_leaf", leaves * u64::from(config.hosts_per_leaf))?;
        within("spines", leaves * u64::from(config.spines))?;
        if config.leaves * config.hosts_per_leaf < 2 {
            return Err(Problem::new("hosts_per_leaf", "makes one host; there must be two or more"));
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use crate::base::units::Bytes;
    use crate::topology::Paths;
    use serde_json::json;

    #[test]
    fn the_pieces_of_pfabrics_round_trip_add_up() {
        let delays = json!({"host_delay": "2.7 us", "fabric_delay": "200 ns"});
        let graph = Config::read(&delays).unwrap().graph(1).unwrap();
        assert_eq!(graph.load.rate, Rate::from_gbps(1440));
        let mut paths = Paths::new(&graph);
        // One packet of 1500 bytes stored and forwarded: 8.8 us between racks, 7.8 us within one.
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

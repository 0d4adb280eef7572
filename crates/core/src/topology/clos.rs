//! Three-tier Clos network.

use super::{Extent, Graph, LoadReference, MAX_HOSTS, Topology, positive_count};
use crate::base::schema::{Problem, positive};
use crate::base::units::{Duration, Rate};

crate::parameters! {
    /// A three-tier Clos network: pods of edge and aggregation switches, joined by core switches.
    ///
    /// Within a pod every edge switch has a link to every aggregation switch. The core switches are
    /// divided into equal groups: aggregation switch i of every pod has links to group i. Hosts
    /// `host0` … are numbered edge by edge; switches are `edge<pod>_<i>`, `aggregation<pod>_<i>`
    /// and `core<i>`. A load of 1 is the total rate of the access links. The defaults give 256
    /// hosts without oversubscription.
    pub struct Config {
        /// Number of pods.
        pub pods: u32 = 4, where positive_count;
        /// Number of edge switches per pod.
        pub edges_per_pod: u32 = 4, where positive_count;
        /// Number of hosts per edge switch.
        pub hosts_per_edge: u32 = 16, where positive_count;
        /// Number of aggregation switches per pod.
        pub aggregations_per_pod: u32 = 4, where positive_count;
        /// Number of core switches, a multiple of `aggregations_per_pod`.
        pub cores: u32 = 16, where positive_count;
        /// Rate of the access links.
        pub host_rate: Rate = Rate::from_gbps(10), where positive;
        /// Rate of the links within pods.
        pub fabric_rate: Rate = Rate::from_gbps(40), where positive;
        /// Rate of the links between pods and core switches.
        pub core_rate: Rate = Rate::from_gbps(40), where positive;
        /// Propagation delay of the access links, including delay in the host.
        pub host_delay: Duration = Duration::from_micros(1);
        /// Propagation delay of the links within pods.
        pub fabric_delay: Duration = Duration::from_micros(1);
        /// Propagation delay of the links between pods and core switches.
        pub core_delay: Duration = Duration::from_micros(1);
    }
    check |config| {
        let product = |numbers: [u32; 3]| numbers.into_iter().map(u64::from).product::<u64>();
        let Config { pods, edges_per_pod, hosts_per_edge, aggregations_per_pod, cores, .. } = *config;
        let most = u64::from(MAX_HOSTS);
        for (field, links) in [
            ("hosts_per_edge", product([pods, edges_per_pod, hosts_per_edge])),
            ("aggregations_per_pod", product([pods, edges_per_pod, aggregations_per_pod])),
            ("cores", product([pods, cores, 1])),
        ] {
            if links > most {
                let message = format!("gives {links} links with {pods} pods; at most {most}");
                return Err(Problem::new(field, message));
            }
        }
        if pods * edges_per_pod * hosts_per_edge < 2 {
            return Err(Problem::new("hosts_per_edge", "gives one host; at least two are required"));
        }
        if !cores.is_multiple_of(aggregations_per_pod) {
            let number = aggregations_per_pod;
            let message = format!("must be a multiple of aggregations_per_pod, which is {number}");
            return Err(Problem::new("cores", message));
        }
        Ok(())
    }
}

impl Topology for Config {
    fn graph(&self, _seed: u64) -> Result<Graph, Problem> {
        let mut graph = Graph::new(LoadReference::pending());
        let cores: Vec<_> = (0..self.cores).map(|i| graph.add_switch(format!("core{i}"))).collect();
        let group = (self.cores / self.aggregations_per_pod) as usize;
        for pod in 0..self.pods {
            let mut tier = |name, number| -> Vec<_> {
                (0..number).map(|i| graph.add_switch(format!("{name}{pod}_{i}"))).collect()
            };
            let edges = tier("edge", self.edges_per_pod);
            let aggregations = tier("aggregation", self.aggregations_per_pod);
            for (&aggregation, cores) in aggregations.iter().zip(cores.chunks(group)) {
                for &core in cores {
                    graph.connect(aggregation, core, self.core_rate, self.core_delay);
                }
            }
            for &edge in &edges {
                for &aggregation in &aggregations {
                    graph.connect(edge, aggregation, self.fabric_rate, self.fabric_delay);
                }
                for _ in 0..self.hosts_per_edge {
                    let host = graph.add_host(format!("host{}", graph.hosts.len()));
                    graph.connect(host, edge, self.host_rate, self.host_delay);
                }
            }
        }
        Ok(graph.loaded_by_hosts())
    }

    fn extent(&self) -> Result<Extent, Problem> {
        let (mut delay, mut fabric, mut core) = (self.host_delay, 0, 0);
        if self.pods > 1 || self.edges_per_pod > 1 {
            delay += self.fabric_delay;
            fabric = 2;
        }
        if self.pods > 1 {
            delay += self.core_delay;
            core = 2;
        }
        let rates = [(self.host_rate, 2), (self.fabric_rate, fabric), (self.core_rate, core)];
        Ok(Extent::new(delay * 2, rates))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::{Parameter, defaults};
    use crate::topology::{LinkId, Paths};
    use serde_json::json;

    fn path(graph: &Graph, target: u32, choice: u64) -> Vec<String> {
        let mut links: Vec<LinkId> = Vec::new();
        Paths::new(graph).append(0, target, choice, &mut links);
        links.iter().map(|link| graph.link_name(*link)).collect()
    }

    #[test]
    fn default_has_256_hosts_without_oversubscription() {
        let graph = defaults::<Config>().graph(1).unwrap();
        assert_eq!(graph.hosts.len(), 256);
        assert_eq!(graph.nodes.len(), 256 + 4 * (4 + 4) + 16);
        assert_eq!(graph.links.len(), 2 * (256 + 4 * 4 * 4 + 4 * 16));
        assert_eq!(graph.load.rate, Rate::from_gbps(2_560));
        let upwards = |from: &str, to: &str| -> u64 {
            let starts = |node: u32, name| graph.nodes[node as usize].name.starts_with(name);
            let links = graph.links.iter();
            links.filter(|l| starts(l.from, from) && starts(l.to, to)).map(|l| l.rate.0).sum()
        };
        let tiers = [("host", "edge"), ("edge", "aggregation"), ("aggregation", "core")];
        assert_eq!(tiers.map(|(from, to)| upwards(from, to)), [graph.load.rate.0; 3]);
    }

    #[test]
    fn paths_use_every_aggregation_switch_within_a_pod_and_every_core_switch_between_pods() {
        let graph = defaults::<Config>().graph(1).unwrap();
        let mut paths = Paths::new(&graph);
        // Same edge switch, same pod, another pod.
        assert_eq!([1, 16, 64].map(|target| paths.count(0, target)), [1, 4, 16]);
        assert_eq!([1, 16, 64].map(|target| path(&graph, target, 0).len()), [2, 4, 6]);
        assert_eq!(
            path(&graph, 255, 7),
            [
                "host0->edge0_0",
                "edge0_0->aggregation0_1",
                "aggregation0_1->core7",
                "core7->aggregation3_1",
                "aggregation3_1->edge3_3",
                "edge3_3->host255",
            ]
        );
    }

    #[test]
    fn tiers_have_their_own_rates_and_delays() {
        let table = json!({
            "host_rate": "1 Gbps", "fabric_rate": "2 Gbps", "core_rate": "3 Gbps",
            "host_delay": "1 us", "fabric_delay": "2 us", "core_delay": "3 us",
        });
        let graph = Config::read(&table).unwrap().graph(1).unwrap();
        for (id, link) in (0..).zip(&graph.links) {
            let name = graph.link_name(id);
            let tier = if name.contains("core") { 3 } else { 2 - u64::from(name.contains("host")) };
            let expected = (Rate::from_gbps(tier), Duration::from_micros(tier));
            assert_eq!((link.rate, link.delay), expected, "{name}");
        }
    }

    #[test]
    fn invalid_sizes_are_rejected() {
        let error = |value| Config::read(&value).unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                error(json!({"pods": 0})),
                error(json!({"cores": 6})),
                error(json!({"pods": 1_000_000})),
                error(json!({"hosts_per_edge": 1, "edges_per_pod": 1_000_000})),
                error(json!({"hosts_per_edge": 1, "cores": 1_000_000})),
                error(json!({"pods": 1, "edges_per_pod": 1, "hosts_per_edge": 1})),
            ]
            .join("\n")
        );
    }
}

//! Tests of the load on links: by hand, and against the routes of many flows.

use super::*;
use crate::base::random::Random;
use crate::base::schema::Parameter;
use crate::base::units::Duration;
use crate::network::routes::{Routes, Routing};
use crate::topology;
use crate::traffic::host_pairs::PairSampler;
use serde_json::{Value, json};

fn graph(topology: &Value) -> Graph {
    topology::Config::read(topology).unwrap().graph(1).unwrap()
}

/// Demand of a rate in Gb/s.
fn demand(gbps: f64, pairs: DemandPairs) -> Demand {
    let (start, end) = (Time::ZERO, Time::NEVER);
    Demand { field: String::new(), bps: gbps * 1e9, pairs, start, end, may_exceed: false }
}

fn of_rule(rule: HostPairs, graph: &Graph) -> DemandPairs {
    DemandPairs::of_rule(rule, None, graph).unwrap().remove(0).1
}

/// Load in Mb/s of the link with this name.
fn mbps(graph: &Graph, loads: &[f64], name: &str) -> u64 {
    let id = (0..graph.links.len()).find(|id| graph.link_name(*id as LinkId) == name).unwrap();
    (loads[id] / 1e6).round() as u64
}

#[test]
fn uplinks_carry_what_leaves_a_rack() {
    // Of 360 Gb/s a half begins in each rack, and 8 of 15 targets are in the other: 96 Gb/s.
    let graph = graph(&json!({
        "kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 8, "spines": 1, "host_rate": "25 Gbps",
    }));
    let all = demand(360.0, of_rule(HostPairs::Topology, &graph));
    let loads = highest_loads(&[all], &graph, Split::Paths);
    let names = ["leaf0->spine0", "spine0->leaf0", "host3->leaf0", "leaf1->host15"];
    assert_eq!(names.map(|name| mbps(&graph, &loads, name)), [96_000, 96_000, 22_500, 22_500]);
    // Opposite hosts are in different racks.
    let opposite = demand(360.0, of_rule(HostPairs::Opposite, &graph));
    let loads = highest_loads(&[opposite], &graph, Split::Paths);
    assert_eq!(mbps(&graph, &loads, "leaf0->spine0"), 180_000);
}

#[test]
fn one_target_receives_all() {
    let graph = graph(&json!({ "kind": "star", "hosts": 5 }));
    let mut roles = HostRoles::from_graph(&graph).unwrap();
    roles.targets = 2..3;
    let loads = highest_loads(&[demand(8.0, DemandPairs::All(roles))], &graph, Split::Paths);
    let names = ["switch->host2", "host0->switch", "host2->switch", "switch->host0"];
    assert_eq!(names.map(|name| mbps(&graph, &loads, name)), [8_000, 2_000, 0, 0]);
}

#[test]
fn hop_by_hop_and_by_paths_unequal_branches_differ() {
    // From `s` one path leads over `t`, and two over `u`.
    let text = "from,to,rate,delay\na,s,1 Gbps,1 us\ns,t,1 Gbps,1 us\ns,u,1 Gbps,1 us\n\
                t,v,1 Gbps,1 us\nu,v,1 Gbps,1 us\nu,v,1 Gbps,1 us\nv,b,1 Gbps,1 us\n";
    let graph = graph(&json!({ "kind": "graph", "file": { "name": "n", "text": text } }));
    let share = |split| {
        let pairs = DemandPairs::Listed(vec![(0, 1)]);
        let loads = highest_loads(&[demand(1.2, pairs)], &graph, split);
        ["a->s", "s->t", "s->u", "t->v"].map(|name| mbps(&graph, &loads, name))
    };
    assert_eq!(share(Split::NextHops), [1_200, 600, 600, 600]);
    assert_eq!(share(Split::Paths), [1_200, 400, 800, 400]);
}

#[test]
fn demands_add_up_while_both_last() {
    let graph = graph(&json!({ "kind": "link" }));
    let ms = |ms| Time::ZERO + Duration::from_millis(ms);
    let from = |start, end, gbps| {
        let pairs = of_rule(HostPairs::Topology, &graph);
        Demand { start: ms(start), end: ms(end), ..demand(gbps, pairs) }
    };
    let most = |demands: &[Demand]| {
        mbps(&graph, &highest_loads(demands, &graph, Split::Paths), "left->right")
    };
    assert_eq!(most(&[from(0, 5, 3.0), from(5, 9, 4.0)]), 4_000);
    assert_eq!(most(&[from(0, 6, 3.0), from(5, 9, 4.0), from(9, 12, 6.5)]), 7_000);
    assert_eq!(most(&[]), 0);
}

#[test]
fn all_pairs_load_links_as_the_same_pairs_in_a_list() {
    let text = "from,to,rate,delay\na,s,1 Gbps,1 us\nb,s,1 Gbps,1 us\nc,t,1 Gbps,1 us\n\
                d,u,1 Gbps,1 us\ns,v,1 Gbps,1 us\nt,v,1 Gbps,1 us\nu,v,1 Gbps,1 us\n\
                s,w,1 Gbps,1 us\nt,w,1 Gbps,1 us\nu,w,1 Gbps,1 us\ns,v,1 Gbps,1 us\n\
                t,v,1 Gbps,1 us\ne,u,1 Gbps,1 us\ne,w,1 Gbps,1 us\n";
    let file = json!({ "name": "n", "text": text });
    let topologies = [
        json!({ "kind": "fat_tree", "k": 4 }),
        json!({ "kind": "leaf_spine", "leaves": 3, "hosts_per_leaf": 2, "spines": 2 }),
        json!({ "kind": "clos", "pods": 3, "edges_per_pod": 2, "hosts_per_edge": 3, "cores": 4 }),
        json!({ "kind": "graph", "file": file, "hosts": ["a", "b", "c", "d", "e"] }),
    ];
    for topology in topologies {
        let graph = graph(&topology);
        for (sources, targets) in [(0, 0), (1, 0), (0, 2)] {
            let hosts = graph.host_count();
            let roles = HostRoles { sources: sources..hosts, targets: targets..hosts };
            let both =
                roles.sources.clone().flat_map(|one| (targets..hosts).map(move |to| (one, to)));
            let listed = DemandPairs::Listed(both.filter(|(one, other)| one != other).collect());
            for split in [Split::NextHops, Split::Paths] {
                let all =
                    highest_loads(&[demand(1.0, DemandPairs::All(roles.clone()))], &graph, split);
                let listed = highest_loads(&[demand(1.0, listed.clone())], &graph, split);
                for (all, listed) in all.iter().zip(listed) {
                    assert!((all - listed).abs() <= 1e-9 * listed, "{topology}: {all}, {listed}");
                }
            }
        }
    }
}

#[test]
fn loads_are_those_of_the_routes_of_many_flows() {
    let text = "from,to,rate,delay\na,s,1 Gbps,1 us\nb,s,1 Gbps,1 us\nc,t,1 Gbps,1 us\n\
                d,u,1 Gbps,1 us\ns,t,1 Gbps,1 us\nt,u,1 Gbps,1 us\nu,s,1 Gbps,1 us\n\
                s,t,1 Gbps,1 us\nd,t,1 Gbps,1 us\ns,v,1 Gbps,1 us\nv,u,1 Gbps,1 us\n";
    let file = json!({ "name": "n", "text": text });
    let topologies = [
        json!({ "kind": "fat_tree", "k": 4 }),
        json!({ "kind": "dumbbell", "senders": 3, "receivers": 2 }),
        json!({ "kind": "parking_lot" }),
        json!({ "kind": "graph", "file": file, "hosts": ["a", "b", "c", "d"] }),
    ];
    for topology in topologies {
        let graph = graph(&topology);
        for rule in [HostPairs::Topology, HostPairs::Any, HostPairs::Opposite] {
            for routing in [Routing::FlowHash, Routing::Ecmp] {
                let mut pairs = PairSampler::new(rule, None, &graph).unwrap();
                let mut random = Random::new(1, "pairs");
                let mut routes = Routes::new(&graph, routing, 1, (0, 1));
                let mut flows = vec![0_u32; graph.links.len()];
                for flow in 0..20_000 {
                    let (source, target) = pairs.sample(&mut random);
                    let route = routes.allocate(source, target, flow);
                    let links = routes.links(route).next().unwrap();
                    for link in links {
                        flows[*link as usize] += 1;
                    }
                    routes.release(route);
                }
                let loads = Fabric::new(&graph, routing.split())
                    .loads(&Demand { bps: 1.0, ..demand(1.0, of_rule(rule, &graph)) });
                for (id, (share, flows)) in loads.iter().zip(&flows).enumerate() {
                    let drawn = f64::from(*flows) / 20_000.0;
                    let name = graph.link_name(id as LinkId);
                    // Four standard deviations of a share of 20 000 flows.
                    let case = format!("{topology} {rule:?} {routing:?} {name}: {share} {drawn}");
                    assert!((share - drawn).abs() < 0.015, "{case}");
                }
            }
        }
    }
}

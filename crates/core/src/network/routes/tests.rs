//! Tests of routes and path selection.

use super::*;
use crate::base::schema::Parameter;
use crate::topology;
use serde_json::json;

/// Two leaves with two hosts each, and four spines: four paths between hosts of different leaves.
fn graph() -> Graph {
    let config = json!({ "kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 2, "spines": 4 });
    topology::Config::read(&config).unwrap().graph(1).unwrap()
}

fn routes(graph: &Graph, routing: Routing) -> Routes {
    Routes::new(graph, routing, 5, (0, 1))
}

fn first_path(routes: &Routes, route: Route) -> Vec<LinkId> {
    routes.links(route).next().unwrap().to_vec()
}

/// The cable from the first leaf to a spine, as its link with the even number.
fn cable(graph: &Graph, spine: usize) -> LinkId {
    let name = format!("leaf0->spine{spine}");
    (0..graph.links.len() as LinkId).find(|link| graph.link_name(*link) == name).unwrap() & !1
}

#[test]
fn the_reverse_route_takes_the_same_cables_backwards() {
    let graph = graph();
    let mut routes = routes(&graph, Routing::FlowHash);
    let route = routes.allocate(0, 3, 17);
    let [forward, reverse] = route.both().map(|route| first_path(&routes, route));
    assert_eq!(forward.len(), 4);
    let backwards: Vec<LinkId> = forward.iter().rev().map(|link| link ^ 1).collect();
    assert_eq!(reverse, backwards);
    let names: Vec<String> = forward.iter().map(|link| graph.link_name(*link)).collect();
    assert!(names[0] == "host0->leaf0" && names[3] == "leaf1->host3", "{names:?}");
}

#[test]
fn a_packet_that_turns_back_takes_the_links_of_its_path_to_its_host() {
    let graph = graph();
    let mut routes = routes(&graph, Routing::SprayRandom);
    let route = routes.allocate(0, 3, 17);
    for path in 0..route.paths {
        let first = route.first + path * route.stride;
        assert_eq!(route.turning_point(first), None, "at the port of its host");
        for hops in 1..route.stride - 1 {
            let mut position = route.turning_point(first + hops).unwrap();
            for hop in (0..hops).rev() {
                assert_eq!(routes.link(position), routes.link(first + hop) ^ 1);
                position += 1;
            }
            assert_eq!(routes.link(position), END);
        }
    }
    assert_eq!(route.turning_point(route.first + route.paths * route.stride), None);
}

#[test]
fn a_flow_from_the_server_of_a_connection_takes_the_reverse_path() {
    let graph = graph();
    for routing in [Routing::FlowHash, Routing::Ecmp] {
        let mut routes = routes(&graph, routing);
        for number in 0..20 {
            let there = routes.allocate(0, 3, number).both().map(|it| first_path(&routes, it));
            let key = PathKey { number, is_reversed: true };
            let back = routes.allocate(3, 0, key).both().map(|it| first_path(&routes, it));
            assert_eq!(there, [back[1].clone(), back[0].clone()], "{routing:?}");
        }
    }
}

#[test]
fn flows_spread_evenly_over_equal_cost_paths() {
    let graph = graph();
    let mut routes = routes(&graph, Routing::FlowHash);
    let mut flows = BTreeMap::new();
    for flow in 0..1_000 {
        let route = routes.allocate(0, 2, flow);
        *flows.entry(first_path(&routes, route)).or_insert(0_i32) += 1;
        routes.release(route);
    }
    assert_eq!(flows.len(), 4);
    assert!(flows.values().all(|count| (count - 250).abs() < 60), "{flows:?}");
}

#[test]
fn memory_of_released_routes_is_reused() {
    let graph = graph();
    let mut routes = routes(&graph, Routing::FlowHash);
    let route = routes.allocate(0, 2, 1);
    routes.release(route);
    let len = routes.hops.len();
    assert_eq!(routes.allocate(1, 3, 2), route);
    assert_eq!(routes.hops.len(), len);
    assert_ne!(routes.allocate(1, 0, 3).stride, route.stride, "hosts of one leaf");
}

#[test]
fn only_flows_on_an_avoided_path_are_rerouted_and_spread_over_all_detours() {
    let graph = graph();
    let mut routes = routes(&graph, Routing::FlowHash);
    let before: Vec<Route> = (0..1_000).map(|flow| routes.allocate(0, 2, flow)).collect();
    let paths: Vec<Vec<LinkId>> = before.iter().map(|route| first_path(&routes, *route)).collect();
    let avoided = [cable(&graph, 0), cable(&graph, 1)];
    for cable in avoided {
        routes.set_avoided(cable, true);
    }
    routes.converge(&graph);
    // With four paths and two detours, the hash of all flows of one path selects one detour.
    let mut detours = BTreeMap::new();
    for (flow, (route, path)) in (0..).zip(before.iter().zip(&paths)) {
        let is_avoided = path.iter().any(|link| avoided.contains(&(link & !1)));
        let detour = routes.reroute(*route, 0, 2, flow);
        assert_eq!(detour.is_some(), is_avoided);
        if let Some(detour) = detour {
            let detour = first_path(&routes, detour);
            assert!(detour.iter().all(|link| !avoided.contains(&(link & !1))));
            *detours.entry((path.clone(), detour)).or_insert(0_u32) += 1;
        }
    }
    assert_eq!(detours.len(), 4, "each avoided path has flows on both detours");
    assert!(detours.values().all(|count| (90..160).contains(count)), "{detours:?}");
    for cable in avoided {
        routes.set_avoided(cable, false);
    }
    routes.converge(&graph);
    for (flow, path) in (0..).zip(&paths) {
        let route = routes.allocate(0, 2, flow);
        assert_eq!(&first_path(&routes, route), path, "the first choice again");
        routes.release(route);
    }
}

#[test]
fn a_flow_without_a_detour_keeps_its_path() {
    let graph = graph();
    let mut routes = routes(&graph, Routing::FlowHash);
    let route = routes.allocate(0, 2, 1);
    (0..4).for_each(|spine| routes.set_avoided(cable(&graph, spine), true));
    routes.converge(&graph);
    assert_eq!(routes.reroute(route, 0, 2, 1), None);
}

#[test]
fn sprayed_packets_take_the_paths_in_turn() {
    let graph = graph();
    let mut routes = routes(&graph, Routing::SprayRoundRobin);
    let route = routes.allocate(0, 2, 1);
    assert_eq!(
        (route.paths, routes.allocate(0, 2, 9)),
        (4, route),
        "a pair of hosts has one route"
    );
    let [mut forward, mut reverse] = routes.selectors(route, 1);
    let starts: Vec<u32> = (0..8).map(|_| forward.start()).collect();
    let all: BTreeSet<u32> = starts[..4].iter().copied().collect();
    assert_eq!((all.len(), &starts[..4]), (4, &starts[4..]));
    assert!(reverse.start() > *all.last().unwrap(), "the reverse paths stand behind");
    routes.set_avoided(cable(&graph, 2), true);
    routes.converge(&graph);
    let detour = routes.reroute(route, 0, 2, 1).unwrap();
    assert_eq!(detour.paths, 3);
    forward.set_route(detour);
    let links: BTreeSet<LinkId> = (0..3).map(|_| routes.link(forward.start() + 1)).collect();
    assert!(links.len() == 3 && !links.contains(&cable(&graph, 2)));
}

#[test]
fn random_spraying_is_repeatable_and_takes_all_paths() {
    let graph = graph();
    let mut routes = routes(&graph, Routing::SprayRandom);
    let route = routes.allocate(0, 2, 1);
    let sequence = || {
        let [mut forward, _] = routes.selectors(route, 1);
        (0..100).map(|_| forward.start()).collect::<Vec<u32>>()
    };
    assert_eq!(sequence(), sequence());
    assert_eq!(sequence().into_iter().collect::<BTreeSet<u32>>().len(), 4);
}

#[test]
fn partitions_have_the_same_routes_at_the_same_positions() {
    let graph = graph();
    let mut parts = [0, 1].map(|part| Routes::new(&graph, Routing::FlowHash, 5, (part, 2)));
    let [first, second] = &mut parts;
    let flows = [first.allocate(0, 2, 1), second.allocate(1, 3, 2), first.allocate(2, 1, 3)];
    let changes = [first.take_changes(), second.take_changes()];
    first.apply(&changes[1]);
    second.apply(&changes[0]);
    for route in flows {
        assert_eq!(first_path(first, route), first_path(second, route));
    }
    assert!(first.take_changes().is_empty());
}

/// A fat-tree of 16 hosts: hosts 0 to 3 are in the first pod.
fn fat_tree() -> Graph {
    topology::Config::read(&json!({ "kind": "fat_tree", "k": 4 })).unwrap().graph(1).unwrap()
}

/// Number of flows on each link whose name begins with `prefix`, of 4000 flows that leave the first pod.
fn flows_by_link(graph: &Graph, routes: &mut Routes, prefix: &str) -> BTreeMap<String, u32> {
    let mut flows = BTreeMap::new();
    for flow in 0..4_000 {
        let (source, target) = ((flow % 4) as HostId, 4 + (flow / 4 % 12) as HostId);
        let route = routes.allocate(source, target, flow);
        for link in first_path(routes, route) {
            let name = graph.link_name(link);
            if name.starts_with(prefix) {
                *flows.entry(name).or_insert(0) += 1;
            }
        }
        routes.release(route);
    }
    flows
}

fn avoid(graph: &Graph, routes: &mut Routes, name: &str) {
    let mut links = 0..graph.links.len() as LinkId;
    let link = links.find(|link| graph.link_name(*link) == name).unwrap();
    routes.set_avoided(link & !1, true);
    routes.converge(graph);
}

#[test]
fn each_switch_divides_flows_equally_among_its_next_hops() {
    let graph = fat_tree();
    let mut routes = routes(&graph, Routing::Ecmp);
    // Each of the two edge switches to two aggregation switches, and each of these to two core switches.
    for prefix in ["edge0_", "aggregation0_"] {
        let mut flows = flows_by_link(&graph, &mut routes, prefix);
        flows.retain(|name, _| !name.contains("->host") && !name.contains("->edge"));
        assert_eq!(flows.len(), 4, "{flows:?}");
        assert!(flows.values().all(|count| count.abs_diff(1_000) < 120), "{flows:?}");
    }
}

#[test]
fn hop_by_hop_the_cable_beside_a_failed_one_carries_half_of_the_pod() {
    let graph = fat_tree();
    // By hand: 1/2 of the flows reach each aggregation switch; the first has one core switch left.
    let shares = |routing| {
        let mut routes = routes(&graph, routing);
        avoid(&graph, &mut routes, "aggregation0_0->core0");
        let flows = flows_by_link(&graph, &mut routes, "aggregation0_");
        let up = flows.into_iter().filter(|(name, _)| name.contains("->core"));
        up.map(|(_, count)| f64::from(count) / 4_000.0).collect::<Vec<_>>()
    };
    let is_near = |shares: &[f64], expected: [f64; 3]| {
        shares.iter().zip(expected).all(|(share, near)| (share - near).abs() < 0.03)
    };
    let ecmp = shares(Routing::Ecmp);
    assert!(ecmp.len() == 3 && is_near(&ecmp, [0.5, 0.25, 0.25]), "{ecmp:?}");
    let by_path = shares(Routing::FlowHash);
    assert!(by_path.len() == 3 && is_near(&by_path, [1.0 / 3.0; 3]), "{by_path:?}");
}

#[test]
fn equal_seeds_leave_half_of_the_links_to_core_switches_unused() {
    // An aggregation switch has only flows for which the hash chose it, and so chooses one core switch.
    let graph = fat_tree();
    let mut routes = routes(&graph, Routing::EcmpEqualSeeds);
    let mut flows = flows_by_link(&graph, &mut routes, "aggregation0_");
    flows.retain(|name, _| name.contains("->core"));
    let names: Vec<&str> = flows.keys().map(String::as_str).collect();
    assert_eq!(names, ["aggregation0_0->core0", "aggregation0_1->core3"]);
    assert!(flows.values().all(|count| count.abs_diff(2_000) < 120), "{flows:?}");
}

#[test]
fn after_a_failure_flows_are_hashed_again_and_return_with_the_cable() {
    let graph = graph();
    let mut routes = routes(&graph, Routing::Ecmp);
    let before: Vec<Route> = (0..1_000).map(|flow| routes.allocate(0, 2, flow)).collect();
    let paths: Vec<Vec<LinkId>> = before.iter().map(|route| first_path(&routes, *route)).collect();
    let failed = cable(&graph, 1);
    routes.set_avoided(failed, true);
    routes.converge(&graph);
    let mut moved = [0_u32, 0];
    for (flow, (route, path)) in (0..).zip(before.iter().zip(&paths)) {
        let is_avoided = path.iter().any(|link| link & !1 == failed);
        if let Some(detour) = routes.reroute(*route, 0, 2, flow) {
            assert!(first_path(&routes, detour).iter().all(|link| link & !1 != failed));
            moved[usize::from(is_avoided)] += 1;
        } else {
            assert!(!is_avoided, "a flow stays on the failed cable");
        }
    }
    // The regions of the hash are quarters, then thirds. The failed cable had the second quarter; of the
    // flows on other cables, those with a hash from 2/3 to 3/4 change: 1/12 of all.
    assert!(moved[1].abs_diff(250) < 50 && moved[0].abs_diff(83) < 35, "{moved:?}");
    routes.set_avoided(failed, false);
    routes.converge(&graph);
    for (flow, path) in (0..).zip(&paths) {
        let route = routes.allocate(0, 2, flow);
        assert_eq!(&first_path(&routes, route), path, "the first choice again");
        routes.release(route);
    }
}

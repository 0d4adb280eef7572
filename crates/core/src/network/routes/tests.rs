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

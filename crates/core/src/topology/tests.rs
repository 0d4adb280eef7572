//! Properties that hold for every topology.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Config, Extent, Graph, LinkId, Paths};
use crate::base::schema::{Parameter, defaults};
use crate::base::units::{Bytes, Duration};
use crate::model::flow::HostId;
use crate::model::packet::Format;

/// Small networks of one topology, in different sizes.
fn example(kind: &str, a: u32, b: u32) -> Graph {
    config(kind, a, b).graph(1).unwrap()
}

/// Parameters of the small networks.
fn config(kind: &str, a: u32, b: u32) -> Config {
    let rest = match kind {
        "link" => json!({}),
        "dumbbell" => json!({"senders": a, "receivers": b}),
        "star" => json!({"hosts": a + 1}),
        "parking_lot" => json!({"bottlenecks": a}),
        "leaf_spine" => json!({"leaves": a + 1, "hosts_per_leaf": b, "spines": a}),
        "fat_tree" => json!({"k": 2 * (1 + a % 3)}),
        "clos" => json!({
            "pods": b, "edges_per_pod": 2, "hosts_per_edge": a, "aggregations_per_pod": a,
            "cores": a * b,
        }),
        "graph" => json!({"file": {"name": "random.csv", "text": ring(a, b)}}),
        other => panic!("no example of `{other}`"),
    };
    let mut table = rest;
    table["kind"] = Value::from(kind);
    Config::read(&table).unwrap()
}

/// A ring of switches with chords, parallel links and hosts.
fn ring(a: u32, b: u32) -> String {
    use std::fmt::Write;
    let mut text = "from,to,rate,delay\n".to_owned();
    let switches = a + 2;
    for i in 0..switches {
        let (next, chord) = ((i + 1) % switches, (i + b) % switches);
        writeln!(text, "s{i},s{next},1 Gbps,1 us\ns{i},h{i},1 Gbps,1 us").unwrap();
        if chord != i {
            writeln!(text, "s{i},s{chord},2 Gbps,1 us").unwrap();
        }
    }
    text
}

/// Hop count and number of the shortest paths, by exhaustive search.
fn shortest_paths(graph: &Graph, source: HostId, target: HostId) -> (usize, u64) {
    let (start, end) = (graph.hosts[source as usize], graph.hosts[target as usize]);
    let mut frontier = vec![start];
    for hops in 1..=graph.nodes.len() {
        let step = |&node: &u32| graph.links.iter().filter(move |link| link.from == node);
        frontier = frontier.iter().flat_map(step).map(|link| link.to).collect();
        frontier.retain(|&node| node == end || !graph.nodes[node as usize].is_host);
        let found = frontier.iter().filter(|&&node| node == end).count();
        if found > 0 {
            return (hops, found as u64);
        }
    }
    panic!("no path from {source} to {target}");
}

/// Asserts that consecutive links join, from `source` to `target`.
fn assert_joined(graph: &Graph, source: HostId, target: HostId, links: &[LinkId]) {
    let mut node = graph.hosts[source as usize];
    for &link in links {
        assert_eq!(graph.links[link as usize].from, node);
        node = graph.links[link as usize].to;
    }
    assert_eq!(node, graph.hosts[target as usize]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn paths_are_joined_shortest_distinct_and_complete(
        kind in prop::sample::select(Config::NAMES), a in 1_u32..4, b in 1_u32..4, pick: [u16; 2],
    ) {
        let graph = example(kind, a, b);
        let hosts = graph.host_count();
        let source = u32::from(pick[0]) % hosts;
        let target = (source + 1 + u32::from(pick[1]) % (hosts - 1)) % hosts;
        let mut paths = Paths::new(&graph);
        let (hops, number) = shortest_paths(&graph, source, target);
        prop_assert_eq!(paths.count(source, target), number);
        prop_assert_eq!(paths.count(target, source), number);
        let path = |paths: &mut Paths, source, target, choice| {
            let mut links = Vec::new();
            paths.append(source, target, choice, &mut links);
            links
        };
        let forward: Vec<_> = (0..number).map(|i| path(&mut paths, source, target, i)).collect();
        let mut reverse: Vec<_> = (0..number).map(|i| path(&mut paths, target, source, i)).collect();
        let mut reversed = Vec::new();
        for links in &forward {
            prop_assert_eq!(links.len(), hops);
            assert_joined(&graph, source, target, links);
            reversed.push(links.iter().rev().map(|link| link ^ 1).collect::<Vec<_>>());
        }
        // As sets, the reverse paths are the forward paths reversed, without duplicates.
        reversed.sort();
        reverse.sort();
        prop_assert!(reverse.windows(2).all(|pair| pair[0] != pair[1]));
        prop_assert_eq!(reversed, reverse);
    }

    #[test]
    fn links_are_full_duplex_and_names_are_unique(
        kind in prop::sample::select(Config::NAMES), a in 1_u32..4, b in 1_u32..4,
    ) {
        let graph = example(kind, a, b);
        for duplex in graph.links.chunks(2) {
            prop_assert_eq!((duplex[0].from, duplex[0].to), (duplex[1].to, duplex[1].from));
        }
        let mut names: Vec<_> = graph.nodes.iter().map(|node| &node.name).collect();
        names.sort();
        names.dedup();
        prop_assert_eq!(names.len(), graph.nodes.len());
        prop_assert!(graph.hosts.iter().all(|&host| graph.nodes[host as usize].is_host));
        let hosts = graph.host_count();
        prop_assert!(graph.senders.is_none_or(|senders| 0 < senders && senders < hosts));
        prop_assert!(graph.load.rate.0 > 0 && !graph.load.what.is_empty());
    }
}

#[test]
fn extents_are_those_of_the_graphs() {
    for kind in Config::NAMES {
        for (a, b) in (1..4).flat_map(|a| (1..4).map(move |b| (a, b))) {
            let config = config(kind, a, b);
            assert_eq!(
                config.extent().unwrap(),
                config.graph(1).unwrap().extent(),
                "{kind} {a} {b}"
            );
        }
    }
    let table = |rows: &str| json!({"name": "table", "text": rows});
    let rates = table("time_s,rate_bps\n0,2e9\n1,7e9\n");
    let delays = table("time_s,delay_s\n0,0.02\n1.5,0.005\n2,0.03\n");
    for distinct in [
        json!({"kind": "link", "rate": "3 Gbps", "delay": "7 ms"}),
        json!({"kind": "link", "rate_trace": rates, "delay_trace": delays}),
        json!({"kind": "dumbbell", "delay": "7 us", "bottleneck_delay": "9 us",
               "bottleneck_rate": "1 Gbps"}),
        json!({"kind": "dumbbell", "rate_trace": rates, "delay_trace": delays}),
        json!({"kind": "star", "rate": "3 Gbps", "delay": "7 us"}),
        json!({"kind": "parking_lot", "access_rate": "1 Gbps", "access_delay": "11 us"}),
        json!({"kind": "leaf_spine", "host_delay": "2 us", "fabric_delay": "3 us"}),
        json!({"kind": "fat_tree", "delay": "3 us"}),
        json!({"kind": "clos", "host_rate": "1 Gbps", "core_rate": "7 Gbps", "host_delay": "2 us",
               "fabric_delay": "3 us", "core_delay": "5 us"}),
    ] {
        let config = Config::read(&distinct).unwrap();
        assert_eq!(config.extent().unwrap(), config.graph(1).unwrap().extent(), "{distinct}");
    }
}

#[test]
fn the_base_rtt_is_that_of_a_packet_and_its_ack_over_the_longest_path() {
    let fabric = json!({"kind": "leaf_spine", "host_rate": "10 Gbps", "fabric_rate": "40 Gbps",
                        "host_delay": "2 us", "fabric_delay": "3 us"});
    let format = Format { payload: Bytes(960), header: Bytes(40), ack: Bytes(40), ..defaults() };
    // 1000 B and 40 B take 0.8 us and 32 ns at 10 Gb/s, a quarter at 40 Gb/s; two links of each, and 20 us of
    // propagation delay.
    let base_rtt = Config::read(&fabric).unwrap().extent().unwrap().base_rtt(&format);
    assert_eq!(base_rtt, Duration::from_nanos(20_000 + 2 * (832 + 208)));
}

#[test]
fn extents_bound_random_delays_and_report_unreadable_files() {
    let table =
        json!({"kind": "dumbbell", "senders": 50, "delay": "5 ms", "longest_delay": "15 ms"});
    let config = Config::read(&table).unwrap();
    let [bound, drawn] = [config.extent().unwrap(), config.graph(1).unwrap().extent()];
    assert_eq!(bound.longest_delay, Duration::from_millis(15 + 5 + 5));
    assert!(drawn.longest_delay <= bound.longest_delay, "{drawn:?}");
    assert_eq!(Extent { longest_delay: bound.longest_delay, ..drawn }, bound);
    let mut table = json!({"kind": "link", "delay_trace": {"name": "empty", "text": ""}});
    let config = Config::read(&table).unwrap();
    assert_eq!(config.extent().unwrap_err(), config.graph(1).unwrap_err());
    table["delay"] = json!("1 ms");
    let problem = Config::read(&table).unwrap_err().to_string();
    assert!(problem.contains("delay: must be omitted"), "{problem}");
}

#[test]
fn the_extent_of_a_graph_has_the_slowest_of_its_shortest_paths() {
    // From `a` to `d` there are two paths of three hops, 4 us and 12 us, and a longer one of 201 us. Back
    // the delays are zero. The hosts `a` and `b` are 5 us apart.
    let text = "from,to,rate,delay,reverse_delay\na,s,1 Gbps,1 us,0 us\nb,s,2 Gbps,4 us,4 us\n\
                s,t,3 Gbps,2 us,0 us\ns,t,3 Gbps,10 us,0 us\nt,d,4 Gbps,1 us,0 us\n\
                s,u,9 Gbps,100 us,0 us\nu,t,9 Gbps,100 us,0 us\n";
    let extent = |rest: Value| {
        let mut table = rest;
        table["kind"] = Value::from("graph");
        table["file"] = json!({"name": "net.csv", "text": text});
        Config::read(&table).unwrap().extent().unwrap()
    };
    let us = Duration::from_micros;
    let of_pair = |hosts: Value| extent(json!({ "hosts": hosts })).longest_delay;
    assert_eq!([json!(["a", "d"]), json!(["a", "b"])].map(of_pair), [us(12), us(5)]);
    let all = extent(json!({}));
    assert_eq!(
        (all.longest_delay, all.slowest.0, all.fastest.0),
        (us(15), 1_000_000_000, 9_000_000_000)
    );
    // Only `d` sends: 0 us to `t`, 0 us to `s`, and 4 us to `b`.
    let sender = extent(json!({"hosts": ["d", "a", "b"], "senders": 1}));
    assert_eq!(sender.longest_delay, us(4));
}

#[test]
fn defaults_give_a_network() {
    for kind in Config::NAMES.iter().filter(|kind| **kind != "graph") {
        assert!(Config::read(&json!(kind)).unwrap().graph(1).is_ok(), "{kind}");
    }
}

#[test]
fn sender_delays_are_random_and_depend_on_the_seed() {
    let table =
        json!({"kind": "dumbbell", "senders": 400, "delay": "5 ms", "longest_delay": "15 ms"});
    let dumbbell = Config::read(&table).unwrap();
    let delays = |seed| -> Vec<Duration> {
        let links = dumbbell.graph(seed).unwrap().links;
        // Access links of senders follow the bottleneck; both directions have the same delay.
        assert!(links.chunks(2).all(|duplex| duplex[0].delay == duplex[1].delay));
        links[2..802].iter().step_by(2).map(|link| link.delay).collect()
    };
    let drawn = delays(1);
    let (least, most) = (Duration::from_millis(5), Duration::from_millis(15));
    assert!(drawn.iter().all(|delay| (least..=most).contains(delay)));
    let mean = drawn.iter().map(|delay| delay.seconds()).sum::<f64>() / 400.0;
    assert!((mean - 0.010).abs() < 0.0005, "{mean}");
    assert!(drawn == delays(1) && drawn != delays(2));
}

#[test]
fn fat_tree_of_1024_hosts_has_64_paths_between_pods() {
    let graph = Config::read(&json!({"kind": "fat_tree", "k": 16})).unwrap().graph(1).unwrap();
    let mut paths = Paths::new(&graph);
    assert_eq!((graph.hosts.len(), graph.nodes.len(), graph.links.len()), (1024, 1344, 6144));
    // Same edge switch, same pod, another pod.
    assert_eq!([1, 8, 1023].map(|target| paths.count(0, target)), [1, 8, 64]);
    let total: u64 = (1..1024).map(|target| paths.count(0, target)).sum();
    assert_eq!(total, 7 + 56 * 8 + 960 * 64);
    // The edge switches of a pod are twins, and so are the eight core switches of an aggregation switch.
    let (tables, twins) = (16.0, 16.0 * (1.0 + 8.0) + 8.0);
    assert!((paths.table_bytes(1024.0) - tables * twins * 16.0).abs() < 1.0);
}

#[test]
fn no_path_crosses_a_host() {
    let text = "from,to,rate,delay\na,b,1 Gbps,1 us\nb,c,1 Gbps,1 us\n";
    let file = json!({"name": "row.csv", "text": text});
    let table = json!({"kind": "graph", "file": file, "hosts": ["a", "b", "c"]});
    let problem = Config::read(&table).unwrap().graph(1).unwrap_err();
    assert!(problem.message.contains("no path between the hosts `a` and `c`"), "{problem}");
}

#[test]
fn paths_avoid_hosts_at_equal_distance() {
    // From `a` to `b` both paths, through host `h` and through switch `s3`, have four hops.
    let text = "from,to,rate,delay\ns1,h,1 Gbps,1 us\nh,s2,1 Gbps,1 us\ns1,s3,1 Gbps,1 us\n\
                s3,s2,1 Gbps,1 us\na,s1,1 Gbps,1 us\nb,s2,1 Gbps,1 us\n";
    let file = json!({"name": "round.csv", "text": text});
    let table = json!({"kind": "graph", "file": file, "hosts": ["a", "b", "h"]});
    let graph = Config::read(&table).unwrap().graph(1).unwrap();
    let mut paths = Paths::new(&graph);
    let mut links = Vec::new();
    paths.append(0, 1, 0, &mut links);
    let names: Vec<_> = links.iter().map(|link| graph.link_name(*link)).collect();
    assert_eq!(names, ["a->s1", "s1->s3", "s3->s2", "s2->b"]);
    assert_eq!(paths.count(0, 1), 1);
}

#[test]
fn invalid_sizes_are_rejected() {
    let error = |value| Config::read(&value).unwrap_err().to_string();
    insta::assert_snapshot!(
        [
            error(json!({"kind": "dumbbell", "senders": 0})),
            error(json!({"kind": "star", "hosts": 1})),
            error(json!({"kind": "fat_tree", "k": 5})),
            error(json!({"kind": "leaf_spine", "leaves": 1_000_000, "spines": 1})),
            error(json!({"kind": "dumbbell", "rate": "0 bps"})),
            error(json!({"kind": "dumbbell", "delay": "5 ms", "longest_delay": "4 ms"})),
            error(json!({"kind": "dumbell"})),
        ]
        .join("\n")
    );
}

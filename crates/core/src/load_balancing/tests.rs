//! Tests of the load balancers at one switch.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::policies::Config;
use super::{LoadBalancer, NextHops, Overlay, SwitchInfo};
use crate::base::random::Random;
use crate::base::schema::{Parameter, defaults};
use crate::base::units::{Duration, Rate, Time};
use crate::model::graph::{Graph, LinkId, LoadReference};
use crate::model::packet::{FlowNumber, Format, Kind};

const LINKS: [LinkId; 4] = [2, 4, 6, 9];

fn build(config: &Value) -> Box<dyn LoadBalancer> {
    let graph = Graph::new(LoadReference { rate: Rate::default(), what: String::new() });
    let switch = SwitchInfo { graph: &graph, node: 0, links: &[] };
    Config::read(config).unwrap().build(&switch, Random::new(1, "load_balancer"))
}

/// Returns the choice for a packet at a time, by queues of these bytes.
fn choose(
    balancer: &mut dyn LoadBalancer,
    (flow, kind): (FlowNumber, Kind),
    at: Duration,
    queues: [u64; 4],
) -> usize {
    let backlog = |link| queues[LINKS.iter().position(|other| *other == link).expect("a next hop")];
    choose_among(balancer, (flow, kind), at, &LINKS, backlog)
}

/// Returns the choice among `links` for a packet at a time.
fn choose_among(
    balancer: &mut dyn LoadBalancer,
    (flow, kind): (FlowNumber, Kind),
    at: Duration,
    links: &[LinkId],
    mut backlog: impl FnMut(LinkId) -> u64,
) -> usize {
    let format: Format = defaults();
    let packet = format.control(kind, flow, Time::ZERO);
    let backlog = &mut backlog;
    let now = Time::ZERO + at;
    let (is_first, is_last, overlay) = (true, false, None);
    let next_hops = &mut NextHops { now, links, is_first, is_last, overlay, backlog };
    balancer.choose(&packet, next_hops)
}

/// Returns how often each next hop was chosen for packets of one flow with this gap between them.
fn counts(config: &Value, packets: u64, gap: Duration, queues: [u64; 4]) -> BTreeMap<usize, u64> {
    let balancer = &mut *build(config);
    let mut counts = BTreeMap::new();
    for number in 0..packets {
        let at = Duration(gap.0 * number);
        *counts.entry(choose(balancer, (7, Kind::Data), at, queues)).or_default() += 1;
    }
    counts
}

#[test]
fn a_flowlet_keeps_its_next_hop_and_the_next_draws_a_new_one() {
    let flowlets = json!({ "kind": "flowlets", "gap": "10 us" });
    let counts = |gap_ns| counts(&flowlets, 4000, Duration::from_nanos(gap_ns), [0; 4]);
    assert_eq!(counts(10_000).len(), 1, "a gap of 10 us does not end a flowlet");
    let apart = counts(10_001);
    assert!(
        apart.len() == 4 && apart.values().all(|count| count.abs_diff(1000) < 120),
        "{apart:?}"
    );
}

#[test]
fn data_and_answers_of_many_flows_are_separate_flowlets() {
    let balancer = &mut *build(&json!("flowlets"));
    let keys: Vec<_> = (0..200).flat_map(|flow| [(flow, Kind::Data), (flow, Kind::Ack)]).collect();
    let mut round = |at_us| -> Vec<usize> {
        let at = Duration::from_micros(at_us);
        keys.iter().map(|key| choose(balancer, *key, at, [0; 4])).collect()
    };
    let first = round(0);
    assert_eq!(round(500), first);
    assert!(first.chunks(2).any(|pair| pair[0] != pair[1]));
    assert_ne!(round(1001), first);
}

#[test]
fn weights_of_flows_follow_the_rates_of_links() {
    let mut graph = Graph::new(LoadReference { rate: Rate::default(), what: String::new() });
    let [one, other] = ["one", "other"].map(|name| graph.add_switch(name));
    for gbps in [10, 40, 10, 10, 40] {
        graph.connect(one, other, Rate::from_gbps(gbps), Duration::ZERO);
    }
    let config = Config::read(&json!("weighted_ecmp")).unwrap();
    let switch = SwitchInfo { graph: &graph, node: one, links: &[0, 2, 4, 6, 8] };
    let balancer = &mut *config.build(&switch, Random::new(1, "load_balancer"));
    let links = [0, 2, 8];
    let mut counts = [0_u32; 3];
    for flow in 0..6000 {
        let mut choose =
            |queued| choose_among(balancer, (flow, Kind::Data), Duration::ZERO, &links, |_| queued);
        let choice = choose(0);
        assert_eq!(choose(9), choice);
        counts[choice] += 1;
    }
    let expected = [1, 4, 4].map(|weight| weight * 6000 / 9);
    assert!(counts.iter().zip(expected).all(|(count, near)| count.abs_diff(near) < 120));
}

#[test]
fn flows_take_other_next_hops_with_another_seed() {
    let mut graph = Graph::new(LoadReference { rate: Rate::default(), what: String::new() });
    let [one, other] = ["one", "other"].map(|name| graph.add_switch(name));
    for _ in LINKS {
        graph.connect(one, other, Rate::from_gbps(10), Duration::ZERO);
    }
    let links = [0, 2, 4, 6];
    // Packets of CONGA that have crossed a link between switches take one of the cables to their leaf.
    for (kind, overlay) in [("weighted_ecmp", None), ("conga", Some(Overlay::default()))] {
        let config = Config::read(&json!(kind)).unwrap();
        let choices = |seed| -> Vec<usize> {
            let switch = SwitchInfo { graph: &graph, node: one, links: &links };
            let balancer = &mut *config.build(&switch, Random::new(seed, "load_balancer"));
            let choose = |flow| {
                let packet = defaults::<Format>().control(Kind::Data, flow, Time::ZERO);
                let next_hops = &mut NextHops {
                    now: Time::ZERO,
                    links: &links,
                    is_first: false,
                    is_last: false,
                    overlay,
                    backlog: &mut |_| 0,
                };
                balancer.choose(&packet, next_hops)
            };
            (0..1000).map(choose).collect()
        };
        assert_eq!(choices(1), choices(1));
        let [one, other] = [1, 2].map(choices);
        let alike = one.iter().zip(&other).filter(|(one, other)| one == other).count();
        assert!(alike.abs_diff(250) < 60, "{kind}: {alike} of 1000 flows choose alike");
    }
}

#[test]
fn random_next_hops_have_equal_shares() {
    let counts = counts(&json!("random_next_hop"), 4000, Duration::ZERO, [0, 9, 0, 9]);
    assert!(counts.len() == 4 && counts.values().all(|count| count.abs_diff(1000) < 120));
}

#[test]
fn the_shortest_queue_is_chosen_and_ties_are_broken_at_random() {
    let shortest = |queues| counts(&json!("shortest_queue"), 1000, Duration::ZERO, queues);
    assert_eq!(shortest([3, 1, 2, 5]), [(1, 1000)].into());
    let ties = shortest([3, 1, 1, 5]);
    assert!(ties.len() == 2 && ties.values().all(|count| count.abs_diff(500) < 80), "{ties:?}");
}

#[test]
fn two_samples_miss_the_shortest_queue_unless_it_is_remembered() {
    let drill = |memory| {
        let config = json!({ "kind": "shortest_queue", "samples": 2, "memory": memory });
        counts(&config, 4000, Duration::ZERO, [3, 1, 2, 5])[&1]
    };
    // Two samples with replacement contain one of four next hops with probability 1 - (3/4)^2.
    assert!(drill(0).abs_diff(1750) < 150, "{}", drill(0));
    assert!(drill(1) > 3980, "{}", drill(1));
}

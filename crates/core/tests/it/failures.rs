//! Link failures and recoveries: lost packets, the times and paths of rerouted traffic, computed by
//! hand, and equality of all engines.

use crate::common::{
    assert_near, count, flows, graph, link, run, run_with_all_engines, try_run, with,
};
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// Hosts `a` and `b`, each on a switch, and two paths between the switches: over `u`, and a longer
/// one over `v` and `w`. A packet of 1000 B takes 10 us of transmission and 10 us of propagation on
/// every link.
fn ring() -> Value {
    graph(
        "a,s,800 Mbps,10 us,,\nb,t,800 Mbps,10 us,,\ns,u,800 Mbps,10 us,,\nu,t,800 Mbps,10 us,,\n\
         s,v,800 Mbps,10 us,,\nv,w,800 Mbps,10 us,,\nw,t,800 Mbps,10 us,,\n",
    )
}

/// Hosts on two leaves with `spines` spines between them; every link has a delay of 1 us.
fn fabric(spines: u32) -> Value {
    json!({
        "kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 4, "spines": spines,
        "host_rate": "10 Gbps", "fabric_rate": "10 Gbps",
    })
}

/// One flow sends `packets` packets back to back, and retransmits the lost ones 10 ms later.
fn scenario(topology: &Value, packets: u64) -> Value {
    json!({
        "topology": topology,
        "packet": { "payload": "960 B", "header": "40 B" },
        "transport": {
            "kind": "constant_rate",
            "reliability": { "duplicate_acks": "none", "fixed_rto": "10 ms" },
        },
        "workload": flows(&[(0.0, 0, 1, 960 * packets)]),
        "convergence": "1 ms",
        "time_limit": "1 s",
    })
}

fn failing(count: u64, failures: &Value) -> Results {
    run(&with(&scenario(&ring(), count), json!({ "failures": failures })))
}

/// Returns a packet count of a link.
fn packets(results: &Results, name: &str, what: &str) -> u64 {
    link(results, name, what) as u64
}

fn fct_us(results: &Results) -> f64 {
    results.flows.fct_s[0] * 1e6
}

#[test]
fn packets_on_and_into_a_failed_link_are_lost() {
    // Packet k arrives at `u` at 40 us + 10 us * k, and at `b` 40 us later.
    let none = failing(20, &json!([]));
    assert_near(fct_us(&none), 80.0 + 190.0, 1e-9, "without failures");
    let span = json!([{ "link": "s->u", "fails": "55 us", "returns": "85 us" }]);
    let results = failing(20, &span);
    // The packets due at 60, 70 and 80 us; the packet due at 90 us is in flight when the link
    // recovers, and the one due at 100 us is in transmission.
    assert_eq!(packets(&results, "s->u", "losses"), 5);
    assert_eq!(count(&results, "losses"), 5);
    assert_eq!((&*results.flows.retransmits, count(&results, "drops")), (&[5][..], 0));
}

#[test]
fn packet_that_arrives_at_the_time_of_the_failure_is_lost() {
    let lost = |fails: &str| {
        let failures = json!([{ "link": "u->s", "fails": fails, "returns": "1 ms" }]);
        packets(&failing(3, &failures), "s->u", "losses")
    };
    // The packets arrive at 40, 50 and 60 us.
    assert_eq!(["40 us", "40.001 us", "60 us", "60.001 us"].map(lost), [3, 2, 1, 0]);
}

#[test]
fn flows_are_rerouted_after_convergence_and_return() {
    let failures = json!([{ "link": "s->u", "fails": "1.005 ms", "returns": "5.005 ms" }]);
    let results = failing(1000, &failures);
    // Packet k leaves `a` at 10 us * k: packets 201 to 600, from 2.005 to 6.005 ms, take the path
    // over `v`.
    assert_eq!(packets(&results, "s->v", "packets"), 400);
    assert_eq!(packets(&results, "w->t", "packets"), 400);
    // ACKs take it too, from 100 us after a packet has left `a` for that path: ACKs of packets 201
    // to 590.
    assert_eq!(packets(&results, "v->s", "packets"), 390);
    // A packet takes 40 us to `u`: 97 is the first lost packet, and 200 the last.
    assert_eq!(packets(&results, "s->u", "losses"), 104);
    assert_eq!(&*results.flows.retransmits, [104]);
    assert_eq!(count(&results, "finished"), 1);
}

#[test]
fn flows_to_unreachable_hosts_wait_for_the_link() {
    let failures = json!([{ "link": "b->t", "fails": "105 us", "returns": "12 ms" }]);
    let results = failing(20, &failures);
    // Packets arrive at 80 us + 10 us * k: three before the failure, and the ACK of the third is
    // lost. The others are sent into the failed link, including retransmissions after 10 ms; 10 ms
    // later the link has recovered.
    assert_eq!(packets(&results, "b->t", "losses"), 1);
    assert_eq!(packets(&results, "t->b", "losses"), 17 + 18);
    assert_eq!(&*results.flows.retransmits, [18 + 18]);
    assert_eq!(count(&results, "timeouts"), 2);
    let never = failing(20, &json!([{ "link": "b->t", "fails": "105 us" }]));
    assert_eq!(count(&never, "unfinished"), 1);
    assert_eq!(never.flows.delivered_bytes, [3 * 960]);
    assert_eq!(never.summary["stuck"], json!([]));
    assert_eq!(never.summary["simulated_s"], json!(1.0));
}

#[test]
fn flows_that_start_during_a_failure_take_a_working_path() {
    let failures = json!([{ "link": "s->u", "fails": "10 us", "returns": "900 ms" }]);
    let later = json!({ "workload": flows(&[(0.01, 0, 1, 960)]), "failures": failures });
    let results = run(&with(&scenario(&ring(), 1), later));
    assert_near(fct_us(&results), 100.0, 1e-9, "five hops");
    assert_near(results.flows.slowdown[0], 1.0, 1e-9, "no other flow on its path");
}

/// Packets over each spine, from `leaf0`.
fn over_spines(results: &Results, spines: u32) -> Vec<u64> {
    (0..spines).map(|i| packets(results, &format!("leaf0->spine{i}"), "packets")).collect()
}

#[test]
fn only_flows_on_a_failed_path_are_rerouted() {
    let all: Vec<_> = (0..64).map(|i| (0.0, i % 4, 4 + i / 4 % 4, 960)).collect();
    let later: Vec<_> = (0..64).map(|i| (0.1, i % 4, 4 + i / 4 % 4, 960)).collect();
    let base = scenario(&fabric(4), 1);
    let of = |workload: &[(f64, u32, u32, u64)], failures: Value| {
        let change = json!({ "workload": flows(workload), "failures": failures });
        over_spines(&run(&with(&base, change)), 4)
    };
    let before = of(&all, json!([]));
    assert_eq!(before.iter().sum::<u64>(), 64);
    let down = json!([{ "switch": "spine1", "fails": "10 ms" }]);
    let after = of(&later, down);
    assert_eq!((after[1], after.iter().sum::<u64>()), (0, 64));
    // Flows over the other spines keep their paths; flows over the failed spine spread over all
    // others.
    for spine in [0, 2, 3] {
        assert!(after[spine] > before[spine], "{before:?} {after:?}");
    }
    let back = json!([{ "switch": "spine1", "fails": "10 ms", "returns": "20 ms" }]);
    assert_eq!(of(&later, back), before);
}

#[test]
fn a_flow_that_a_pdq_router_paused_is_served_on_its_new_path() {
    // Both flows cross spine 0; its router pauses one, which then has a path over spine 1.
    let flow = |source: u32| json!({ "source": source, "target": source + 2, "size": "20 MB" });
    let results = run(&json!({
        "topology": with(&fabric(2), json!({ "hosts_per_leaf": 2 })),
        "transport": "pdq",
        "workload": { "kind": "flows", "flows": [flow(0), flow(1)] },
        "failures": [{ "link": "leaf0->spine0", "fails": "3 ms" }],
        "convergence": "1 ms",
        "seed": 1,
    }));
    let mut fcts: Vec<_> = results.flows.fct_s.iter().map(|fct| fct * 1e3).collect();
    fcts.sort_by(f64::total_cmp);
    // One after the other over spine 1, 16.6 ms each, and 1 ms without a path.
    assert!(fcts[0] < 18.5 && fcts[1] < 35.5, "{fcts:?}");
}

#[test]
fn sprayed_packets_avoid_failed_links_until_recovery() {
    for routing in ["spray_round_robin", "spray_random"] {
        let failures = json!([{ "link": "leaf0->spine2", "fails": "1 ms", "returns": "2 ms" }]);
        let change = json!({
            "routing": routing, "failures": failures, "convergence": "0 s",
            "workload": flows(&[(0.0, 0, 4, 960 * 4000)]),
        });
        // One packet starts every 0.8 us; 1250 while two spines are up, and 2750 before or after.
        let packets = over_spines(&run(&with(&scenario(&fabric(3), 1), change)), 3);
        let exact = routing == "spray_round_robin";
        for (packets, expected) in packets.iter().zip([1541.7, 1541.7, 916.7]) {
            let most = if exact { 4.0 } else { 150.0 };
            assert!((*packets as f64 - expected).abs() < most, "{routing}: {packets:?}");
        }
    }
}

#[test]
fn link_failure_resets_the_pause_state_of_both_ends() {
    // `b` receives at a tenth of the rate of `a`, so `s` pauses `a`; then their link fails for a
    // while.
    let topology = graph("a,s,10 Gbps,1 us,,\nb,s,1 Gbps,1 us,,\n");
    let base = json!({
        "topology": topology, "transport": "constant_rate", "convergence": "1 us",
        "switch": { "shared_buffer": "100 KB", "pause": {} },
        "workload": flows(&[(0.0, 0, 1, 500_000)]), "time_limit": "1 s",
    });
    let whole = run(&base);
    assert!(packets(&whole, "a->s", "pauses") > 1);
    assert_eq!(count(&whole, "drops"), 0);
    for fails in (100..200).step_by(7) {
        for lasts in [1, 30, 700] {
            let failures = json!([{
                "link": "a->s", "fails": format!("{fails} us"),
                "returns": format!("{} us", fails + lasts),
            }]);
            let results = run(&with(&base, json!({ "failures": failures })));
            assert_eq!(count(&results, "finished"), 1, "{fails} {lasts}");
            assert!(packets(&results, "a->s", "losses") > 0, "{fails} {lasts}");
        }
    }
}

#[test]
fn listed_losses_and_failure_losses_are_counted_separately() {
    let topology = json!({
        "kind": "link", "rate": "800 Mbps", "delay": "10 us",
        "losses": { "name": "losses.csv", "text": "flow,segment,time\n0,2,1\n0,900,1\n" },
    });
    let failures = json!([{ "link": "right->left", "fails": "100 us", "returns": "130 us" }]);
    let results = run(&with(&scenario(&topology, 20), json!({ "failures": failures })));
    assert!(packets(&results, "left->right", "losses") > 2);
    let warnings = results.summary["warnings"].to_string();
    assert!(warnings.contains("1 of the 2 packets"), "{warnings}");
}

#[test]
fn errors_name_the_failure() {
    let failures = json!([
        { "link": "s->u", "fails": "1 s" },
        { "link": "s->x", "fails": "1 s" },
    ]);
    let problem = try_run(&with(&scenario(&ring(), 1), json!({ "failures": failures })));
    assert_eq!(
        problem.unwrap_err(),
        "failures[1].link: there is no link `s->x`; did you mean `s->a`? (links are named `from->to`)"
    );
}

#[test]
fn detours_longer_than_telemetry_are_an_error() {
    // Host `a` is at switch 0 and `b` at switch 1 of a ring.
    let ring = |switches: u32| {
        let cable = |i| format!("s{i},s{},800 Mbps,10 us,,\n", (i + 1) % switches);
        let cables: String = (0..switches).map(cable).collect();
        graph(&format!("a,s0,800 Mbps,10 us,,\nb,s1,800 Mbps,10 us,,\n{cables}"))
    };
    let failures = json!([{ "link": "s0->s1", "fails": "1 ms" }]);
    let after = |switches, transport: Value| {
        let whole = with(&scenario(&ring(switches), 10), json!({ "transport": null }));
        try_run(&with(&whole, json!({ "transport": transport, "failures": failures })))
    };
    assert!(after(8, json!("hpcc")).is_ok());
    assert_eq!(
        after(12, json!("hpcc")).unwrap_err(),
        "failures: must leave paths of up to 8 switches, not 12 from 2 ms on: telemetry of `hpcc`"
    );
    // A digest has the size of one number.
    let pint = json!({ "kind": "hpcc", "pint": {} });
    assert!(after(12, pint).is_ok());
    assert!(after(12, json!("dctcp")).is_ok());
}

#[test]
fn ideals_reject_failures() {
    let failures = json!([{ "link": "s->u", "fails": "1 s" }]);
    let ideal = with(&scenario(&ring(), 1), json!({ "model": "max_min", "failures": failures }));
    let problem = try_run(&ideal).unwrap_err();
    assert!(problem.starts_with("failures: must be empty"), "{problem}");
}

#[test]
fn all_engines_agree() {
    let flows: Vec<_> =
        (0..40).map(|i| (f64::from(i) * 5e-5, i % 8, (i * 3 + 1) % 8, 90_000)).collect();
    let failures = json!([
        { "switch": "spine1", "fails": "300 us", "returns": "900 us" },
        { "link": "host3->leaf0", "fails": "500 us", "returns": "700 us" },
        { "link": "leaf1->spine0", "fails": "1.2 ms", "returns": "1.7 ms" },
    ]);
    for routing in ["flow_hash", "ecmp", "spray_round_robin"] {
        let scenario = json!({
            "topology": fabric(3), "routing": routing, "transport": "dctcp",
            "workload": crate::common::flows(&flows), "failures": failures, "convergence": "200 us",
            "switch": { "shared_buffer": "2 MB", "pause": {} }, "account": true,
        });
        let counts = &run_with_all_engines(&scenario)["counts"];
        assert_eq!(counts["finished"], json!(40));
        assert!(counts["losses"].as_u64().unwrap() >= 20, "{counts}");
    }
}

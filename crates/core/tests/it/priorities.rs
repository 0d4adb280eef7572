//! pFabric and PDQ against times computed by hand, on the fabric of [pfabric13].

use std::fmt::Write;

use crate::common::{assert_near, count, link, mean, run, with};
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// Payload of a packet, which with its header takes 1.2 us at 10 Gb/s.
const PAYLOAD: u64 = 1460;
const PACKET_US: f64 = 1.2;
/// RTT of a packet between racks and its ACK: 11.6 us of propagation, a packet on two links of 10
/// Gb/s and two of 40, and an ACK of 40 B on the same links: 2 (1.2 + 0.3) + 2 (0.032 + 0.008).
const ROUND_TRIP_US: f64 = 14.68;
/// FCT of a flow between racks minus the transmission at its host: 5.8 us of propagation, and its
/// last packet on the other three links, 2 * 0.3 + 1.2.
const BETWEEN_RACKS_US: f64 = 7.6;
/// The same within a rack: 5.4 us, and the last packet on one more link.
const WITHIN_RACK_US: f64 = 6.6;

/// The fabric of [pfabric13]: 144 hosts, of which 0 to 15 are in one rack.
fn fabric(transport: &str) -> Value {
    json!({
        "topology": { "kind": "leaf_spine", "host_delay": "2.7 us", "fabric_delay": "200 ns" },
        "packet": { "payload": "1460 B", "header": "40 B", "ack": "40 B" },
        "routing": if transport == "pdq" { "flow_hash" } else { "spray_round_robin" },
        "transport": { "kind": transport },
    })
}

/// Hosts on one switch, with the delays of the fabric's hosts.
fn star(transport: &str) -> Value {
    let star = json!({ "topology": { "kind": "star", "hosts": 8, "delay": "2.7 us" } });
    let fabric = with(&fabric(transport), json!({ "topology": null }));
    with(&fabric, star)
}

/// A workload of flows, each with start in microseconds, source, target and packets.
fn packets(of: &[(f64, u32, u32, u64)]) -> Value {
    let no_deadlines = |(start, source, target, count)| (start, source, target, count, None);
    packets_with_deadlines(&of.iter().copied().map(no_deadlines).collect::<Vec<_>>())
}

/// The same with deadlines, in microseconds from the start.
fn packets_with_deadlines(of: &[(f64, u32, u32, u64, Option<f64>)]) -> Value {
    let mut text = "start_s,source,target,size_bytes,deadline_s\n".to_owned();
    for (start, source, target, count, deadline) in of {
        let deadline = deadline.map_or(String::new(), |deadline| format!("{deadline}e-6"));
        let bytes = count * PAYLOAD;
        writeln!(text, "{start}e-6,{source},{target},{bytes},{deadline}").unwrap();
    }
    json!({ "workload": { "kind": "trace", "file": { "name": "flows.csv", "text": text } } })
}

/// FCTs in microseconds.
fn fcts(results: &Results) -> Vec<f64> {
    assert_eq!(
        count(results, "finished"),
        count(results, "flows"),
        "{:?}",
        results.summary["stuck"]
    );
    results.flows.fct_s.iter().map(|seconds| seconds * 1e6).collect()
}

/// Asserts equality of two times in microseconds, to the picosecond.
fn assert_time(us: f64, expected: f64, what: &str) {
    assert!((us - expected).abs() < 1e-6, "{what}: {us:.6} us, not {expected:.6}");
}

/// RTT of a SYN of 40 B and its answer between racks: 11.6 us of propagation, and each packet on
/// two links of 10 Gb/s and two of 40.
const SYN_US: f64 = 11.6 + 2.0 * (2.0 * 0.032 + 2.0 * 0.008);

// Lone flows.

#[test]
fn single_pfabric_flow_runs_at_line_rate_except_before_its_first_ack() {
    for (spray, target, latency) in [
        ("spray_round_robin", 143, BETWEEN_RACKS_US),
        ("spray_random", 143, BETWEEN_RACKS_US),
        ("flow_hash", 16, BETWEEN_RACKS_US),
        ("spray_round_robin", 15, WITHIN_RACK_US),
    ] {
        // The first window of 12 packets takes 14.4 us. The first ACK arrives after 14.68 us
        // between racks, and after 13.264 us within one. From then on two packets are sent per ACK.
        let gap = if latency > WITHIN_RACK_US { ROUND_TRIP_US - 12.0 * PACKET_US } else { 0.0 };
        for size in [1, 2, 6, 12, 13, 23, 24, 53, 500, 5000] {
            let flow = packets(&[(0.0, 0, target, size)]);
            let results = run(&with(&with(&fabric("pfabric"), flow), json!({ "routing": spray })));
            let what = format!("{size} packets to {target} by {spray}");
            let waits = if size > 12 { gap } else { 0.0 };
            assert_time(fcts(&results)[0], size as f64 * PACKET_US + latency + waits, &what);
            assert_eq!((count(&results, "timeouts"), count(&results, "drops")), (0, 0), "{what}");
        }
    }
}

#[test]
fn single_pdq_flow_takes_the_rtt_of_its_syn_plus_its_ideal_fct() {
    // Within a rack the SYN and its answer cross two links of 10 Gb/s each.
    for (target, latency, syn) in
        [(143, BETWEEN_RACKS_US, SYN_US), (15, WITHIN_RACK_US, 10.8 + 2.0 * 2.0 * 0.032)]
    {
        for size in [1, 2, 12, 53, 500, 5000] {
            let flow = packets(&[(0.0, 0, target, size)]);
            let results = run(&with(&fabric("pdq"), flow));
            let what = format!("{size} packets to {target}");
            assert_time(fcts(&results)[0], syn + size as f64 * PACKET_US + latency, &what);
        }
    }
}

// Preemption.

/// Three flows from three hosts to one, given by start in microseconds and packets; over a star of
/// links of 10 Gb/s, and from three racks to a fourth.
fn three_flows(flows: [(f64, u64); 3]) -> [(Value, f64); 2] {
    let from = |hosts: [u32; 3]| {
        let list: Vec<_> =
            hosts.iter().zip(flows).map(|(host, (start, n))| (start, *host, 0, n)).collect();
        packets(&list)
    };
    [
        // FCT minus the transmission time, in microseconds.
        (with(&star("pfabric"), from([1, 2, 3])), WITHIN_RACK_US),
        (with(&fabric("pfabric"), from([16, 32, 48])), BETWEEN_RACKS_US),
    ]
}

/// Maximum blocking time of the highest priority: a packet in transmission, and across the fabric a
/// packet of each other flow on a link of 40 Gb/s.
const BLOCKED_US: f64 = PACKET_US + 2.0 * 0.3;

/// Maximum waiting time of the shortest of several long flows: the packets that arrive at the same
/// time, and one packet that is sent when its first window ends early.
const TWICE_BLOCKED_US: f64 = BLOCKED_US + PACKET_US;

#[test]
fn three_short_flows_finish_in_order_of_size_as_in_theory() {
    // Starts, packets, and completion times at the shared link.
    let together = ([(0.0, 12), (0.0, 6), (0.0, 3)], [21.0 * 1.2, 9.0 * 1.2, 3.0 * 1.2]);
    // The first flow has sent for 3 us, and the second, of 7.2 us, for 3 more, when the third
    // starts, of 3.6 us. It ends at 9.6 us, the second at 9.6 + 4.2, and the first at 25.2.
    let staggered = ([(0.0, 12), (3.0, 6), (6.0, 3)], [25.2, 13.8, 9.6]);
    for (starts, ends) in [together, staggered] {
        for (scenario, latency) in three_flows(starts) {
            for model in ["srpt", "omniscient"] {
                let ideal = fcts(&run(&with(&scenario, json!({ "model": model }))));
                for i in 0..3 {
                    assert_time(ideal[i], ends[i] - starts[i].0 + latency, model);
                }
            }
            for priority in ["remaining_size", "size"] {
                let results =
                    run(&with(&scenario, json!({ "transport": { "priority": priority } })));
                let what = format!("{priority}, {starts:?}");
                let late: Vec<f64> =
                    (0..3).map(|i| fcts(&results)[i] - (ends[i] - starts[i].0 + latency)).collect();
                assert!(
                    late.iter().all(|late| (-1e-6..=BLOCKED_US).contains(late)),
                    "{what}: {late:?}"
                );
                // The link is never idle.
                assert_time(late[0], 0.0, &what);
                assert_eq!(count(&results, "timeouts") + count(&results, "drops"), 0, "{what}");
            }
        }
    }
}

#[test]
fn packets_keep_the_priority_of_their_transmission() {
    // When the second flow starts, four packets of the first are left, and all twelve carry the
    // size of the flow: pFabric serves the six packets first. SRPT would serve the four.
    let starts = [(0.0, 12), (9.6, 6), (100.0, 1)];
    for (scenario, latency) in three_flows(starts) {
        let srpt = fcts(&run(&with(&scenario, json!({ "model": "srpt" }))));
        assert_time(srpt[0], 14.4 + latency, "SRPT, the first");
        assert_time(srpt[1], 21.6 - 9.6 + latency, "SRPT, the second");
        for priority in ["remaining_size", "size", "bytes_sent"] {
            let fcts =
                fcts(&run(&with(&scenario, json!({ "transport": { "priority": priority } }))));
            assert_time(fcts[0], 21.6 + latency, &format!("{priority}, the first"));
            let late = fcts[1] - (7.2 + latency);
            assert!((-1e-6..=BLOCKED_US).contains(&late), "{priority}, the second: {late}");
        }
    }
}

#[test]
fn priority_by_bytes_sent_resembles_processor_sharing() {
    // Nine packets of three flows, six more of two, and six of the last.
    for (scenario, latency) in three_flows([(0.0, 12), (0.0, 6), (0.0, 3)]) {
        let scenario = with(&scenario, json!({ "transport": { "priority": "bytes_sent" } }));
        let fcts = fcts(&run(&scenario));
        for (fct, (most, turn)) in fcts.iter().zip([(21.0, 0.0), (15.0, 1.0), (9.0, 2.0)]) {
            // The position of a flow in its last round depends on ties.
            let range =
                (most - turn) * PACKET_US + latency - 1e-6..=most * PACKET_US + latency + 0.6;
            assert!(range.contains(fct), "{fct} of {range:?}");
        }
        let sharing = run(&with(&scenario, json!({ "model": "processor_sharing" })));
        for (fct, sharing) in fcts.iter().zip(&sharing.flows.fct_s) {
            assert!((fct - sharing * 1e6).abs() <= 2.0 * PACKET_US + 0.6, "{fct} {sharing}");
        }
    }
}

/// Asserts that a time in microseconds is at most `most` above `expected`.
fn assert_late(us: f64, expected: f64, most: f64, what: &str) {
    let late = us - expected;
    assert!((-1e-6..=most + 1e-6).contains(&late), "{what}: {late:.6} us late, of {most:.3}");
}

/// FCTs of flows of 1000, 2000 and 3000 packets from three racks to one host, by start.
fn long_flows(transport: &str, starts: [f64; 3]) -> Vec<(f64, f64)> {
    let mut list: Vec<_> = starts
        .iter()
        .zip([1, 2, 3])
        .map(|(start, n)| (*start, 16 * n, 0, 1000 * u64::from(n)))
        .collect();
    list.sort_by(|a: &(f64, u32, u32, u64), b| a.0.total_cmp(&b.0));
    let scenario = with(&fabric(transport), packets(&list));
    let srpt = with(&scenario, json!({ "model": "srpt", "routing": "flow_hash" }));
    let (results, srpt) = (run(&scenario), run(&srpt));
    let mut flows: Vec<_> =
        results.flows.size_bytes.iter().zip(fcts(&results).into_iter().zip(fcts(&srpt))).collect();
    flows.sort_by_key(|(size, _)| **size);
    flows.into_iter().map(|(_, times)| times).collect()
}

/// Starts of three long flows: together, the shortest first, and the longest first.
const STARTS: [[f64; 3]; 3] = [[0.0; 3], [0.0, 100.0, 200.0], [200.0, 100.0, 0.0]];

#[test]
fn long_pfabric_flows_finish_in_order_and_each_hand_over_costs_a_slow_start() {
    // A waiting flow sends a probe every 45 us, gets the answer one RTT later, and then sends one
    // packet per RTT, two, three … up to the 12.2 that fill it: 1.2 us for each missing packet.
    let lacking: f64 = (1..=12).map(|window| ROUND_TRIP_US / PACKET_US - f64::from(window)).sum();
    let hand_over = 45.0 + ROUND_TRIP_US + lacking * PACKET_US;
    for starts in STARTS {
        let flows = long_flows("pfabric", starts);
        for (i, (fct, srpt)) in flows.into_iter().enumerate() {
            let most = TWICE_BLOCKED_US + i as f64 * hand_over;
            assert_late(fct, srpt, most, &format!("{starts:?}, flow {i}"));
        }
    }
}

#[test]
fn long_pdq_flows_finish_in_order_and_each_hand_over_costs_two_rtts() {
    for starts in STARTS {
        let flows = long_flows("pdq", starts);
        for (i, (fct, srpt)) in flows.into_iter().enumerate() {
            let what = format!("{starts:?}, flow {i}");
            let expected = srpt + SYN_US;
            // The last flow ends when all have been served: two hand-overs. An earlier flow may
            // lose more time to lower priorities: one RTT until they are paused, another to resume
            // after another flow was admitted by mistake, and their queue drains at the rate of the
            // first.
            let most = if i == 2 { 4.0 } else { 8.0 } * ROUND_TRIP_US;
            assert_late(fct, expected, most, &what);
        }
    }
    let (alone, srpt) = long_flows("pdq", STARTS[1])[0];
    assert_late(alone, srpt + SYN_US, 2.0 * ROUND_TRIP_US, "the first, with others waiting");
}

// PDQ.

/// FCTs in microseconds of data mining flows below 200 KB on an idle fabric under PDQ, as receivers
/// and as senders measure them, and both without the SYN.
fn idle_times() -> Vec<[f64; 4]> {
    // The published distribution up to 136 packets, where its CDF is 0.8 + 0.1 * 129 / 260.
    let below = 0.8 + 0.1 * 129.0 / 260.0;
    let mut text = "packets,cumulative\n".to_owned();
    for (packets, share) in [(1, 0.5), (2, 0.6), (3, 0.7), (7, 0.8), (136, below)] {
        writeln!(text, "{packets},{}", share / below).unwrap();
    }
    let results = run(&with(
        &fabric("pdq"),
        json!({ "workload": {
            "kind": "poisson", "load": 0.002, "flows": 20_000,
            "sizes": { "kind": "empirical", "file": { "name": "small.csv", "text": text } },
        } }),
    ));
    assert_eq!(count(&results, "finished"), 20_000);
    let flows = &results.flows;
    let of = |i: usize| {
        // The reverse path of an ACK: the propagation, and 40 B on two links of 10 Gb/s and two of
        // 40, or on two of 10.
        let is_local = flows.source[i] / 16 == flows.target[i] / 16;
        let back = if is_local { 5.4 + 0.064 } else { 5.8 + 0.08 };
        let alone = flows.ideal_fct_s[i] * 1e6;
        [flows.fct_s[i] * 1e6, flows.acked_s[i] * 1e6, alone, alone + back]
    };
    (0..20_000).map(of).collect()
}

#[test]
fn pdq_syn_on_an_idle_fabric_misses_as_many_deadlines_as_published() {
    let times = idle_times();
    for (mean_us, at_sender, at_receiver) in
        [(100.0, 0.229, 0.185), (500.0, 0.051, 0.040), (1000.0, 0.026, 0.021)]
    {
        // A deadline is exponential, but at least 1.25 times the ideal FCT: the probability that it
        // is shorter than the FCT.
        let chance = |taken: f64, alone: f64| {
            if 1.25 * alone < taken { 1.0 - (-taken / mean_us).exp() } else { 0.0 }
        };
        let sender = mean(times.iter().map(|[_, taken, _, alone]| chance(*taken, *alone)));
        let receiver = mean(times.iter().map(|[taken, _, alone, _]| chance(*taken, *alone)));
        assert_near(sender, at_sender, 0.02, &format!("late at the sender, mean of {mean_us} us"));
        assert_near(
            receiver,
            at_receiver,
            0.03,
            &format!("late at the receiver, mean of {mean_us} us"),
        );
    }
}

#[test]
fn earliest_deadline_goes_first_for_any_sizes() {
    for starts in [[0.0, 0.0], [0.0, 50.0], [50.0, 0.0]] {
        let large = (starts[0], 16, 0, 500, Some(800.0));
        let small = (starts[1], 32, 0, 100, Some(2000.0));
        let list = if starts[0] <= starts[1] { [large, small] } else { [small, large] };
        let results = run(&with(&fabric("pdq"), packets_with_deadlines(&list)));
        for (fct, size) in fcts(&results).into_iter().zip(&results.flows.size_bytes) {
            let (served, start) = if *size == 500 * PAYLOAD { (500, 0) } else { (600, 1) };
            let expected = SYN_US + f64::from(served) * PACKET_US + BETWEEN_RACKS_US;
            // The link is idle until the first flow starts; the small flow ends when both have been
            // served.
            let start = if served == 500 { 0.0 } else { starts[start] };
            assert_late(
                fct,
                expected - start,
                2.0 * ROUND_TRIP_US,
                &format!("{starts:?}, {served}"),
            );
        }
    }
}

#[test]
fn flow_that_cannot_meet_its_deadline_releases_its_bandwidth() {
    // Each flow takes 600 us of the link; the first two have deadlines, of which only one can be
    // met.
    let list =
        [(0.0, 16, 0, 500, Some(700.0)), (0.0, 32, 0, 500, Some(900.0)), (0.0, 48, 0, 500, None)];
    let outcomes = |early_termination: bool| {
        let change = json!({ "transport": { "early_termination": early_termination } });
        run(&with(&with(&fabric("pdq"), packets_with_deadlines(&list)), change)).flows
    };
    let (with, without) = (outcomes(true), outcomes(false));
    // As above, flows before the last may lose more time.
    let served =
        |flows: f64, late: f64| (SYN_US + flows * 600.0 + BETWEEN_RACKS_US, late * ROUND_TRIP_US);
    assert_eq!(with.outcome, [0, 3, 0], "finished, terminated, finished");
    assert!(with.fct_s[1].is_nan() && with.delivered_bytes[1] < 50 * PAYLOAD, "a few RTTs");
    assert_eq!(without.outcome, [0, 0, 0]);
    assert!(with.fct_s[0] < 700e-6 && without.fct_s[0] < 700e-6 && without.fct_s[1] > 900e-6);
    for (fct, (expected, most)) in [
        (with.fct_s[2], served(2.0, 4.0)),
        (without.fct_s[1], served(2.0, 8.0)),
        (without.fct_s[2], served(3.0, 4.0)),
    ] {
        assert_late(fct * 1e6, expected, most, "who comes after");
    }
}

/// PDQ on one link of 10 Gb/s and 5 us.
fn on_link(loss: Value, list: &[(f64, u32, u32, u64)]) -> Value {
    let link = with(&json!({ "kind": "link", "delay": "5 us" }), loss);
    let base = with(&fabric("pdq"), json!({ "topology": null }));
    with(&with(&base, json!({ "topology": link })), packets(list))
}

#[test]
fn pdq_lost_syn_costs_its_timeout() {
    // The first flow sends a SYN, a hundred packets and a FIN; the SYN of the second is packet 103.
    let list = [(0.0, 0, 1, 100), (200.0, 0, 1, 90)];
    for (loss, time_out) in [(json!({}), 0.0), (json!({ "loss_every": 103 }), 1000.0)] {
        let results = run(&on_link(loss, &list));
        let fcts = fcts(&results);
        // The RTT of the SYN, 10 us and 2 * 32 ns, then the packets, and 5 us.
        assert_time(fcts[0], 10.064 + 120.0 + 5.0, "the first");
        assert_time(fcts[1], time_out + 10.064 + 108.0 + 5.0, "the second");
        assert_eq!(count(&results, "losses"), u64::from(time_out > 0.0));
    }
}

#[test]
fn pdq_lost_fin_delays_other_flows_for_fifty_rtts() {
    // The lossy link is before the port that the flows share. Without Early Start, a flow whose FIN
    // was lost delays the next flow.
    let scenario = with(
        &with(&fabric("pdq"), json!({ "topology": null })),
        json!({
            "topology": {
                "kind": "dumbbell", "senders": 2, "receivers": 1, "bottleneck_rate": "40 Gbps",
                "delay": "1 us", "loss": 0.02,
            },
            "router": { "kind": "pdq", "early_start": 0.0 },
        }),
    );
    let scenario = with(&scenario, packets(&[(0.0, 0, 2, 20), (10.0, 1, 2, 30)]));
    // A SYN over two links of 10 Gb/s and one of 40 and back, the same for a packet, and 6 us.
    let round_trip = 6.0 + 2.0 * 1.2 + 0.3 + 2.0 * 0.032 + 0.008;
    let mut held_back = Vec::new();
    for seed in 1..=400 {
        let results = run(&with(&scenario, json!({ "seed": seed })));
        let fct = fcts(&results)[1];
        let is_only_loss = count(&results, "losses") == 1;
        if is_only_loss && count(&results, "timeouts") + count(&results, "retransmits") == 0 {
            held_back.push((fct / round_trip).round());
        }
    }
    let most = held_back.into_iter().fold(0.0, f64::max);
    assert!((50.0..65.0).contains(&most), "{most} RTTs");
}

#[test]
fn pdq_flows_finish_despite_losses() {
    for (loss, most_us) in [(0.01, 8e3), (0.1, 100e3), (0.3, 2e6)] {
        for seed in 1..=5 {
            let list: Vec<_> = (0..40)
                .map(|i| (10.0 * f64::from(i), i % 4, 4, 20 + u64::from(i * 7 % 40)))
                .collect();
            let dumbbell = json!({
                "kind": "dumbbell", "senders": 4, "receivers": 1, "delay": "2 us",
                "loss": loss, "ack_loss": loss,
            });
            let base = with(&fabric("pdq"), json!({ "topology": null }));
            let scenario = with(&base, json!({ "seed": seed, "topology": dumbbell }));
            let slowest =
                fcts(&run(&with(&scenario, packets(&list)))).into_iter().fold(0.0, f64::max);
            assert!(slowest < most_us, "{slowest} us at a loss of {loss}, seed {seed}");
        }
    }
}

#[test]
fn pdq_long_flow_resumes_after_more_critical_flows() {
    // Ten short flows arrive at about the rate at which the link serves them. Each interrupts the long flow,
    // which costs the link at most an RTT.
    for interval in [50.0, 55.0, 60.0, 65.0, 70.0] {
        let mut list = vec![(0.0, 16, 0, 500)];
        list.extend((0..10).map(|i| (20.0 + interval * f64::from(i), 32 + i, 0, 50)));
        let results = run(&with(&fabric("pdq"), packets(&list)));
        let all = SYN_US + 1000.0 * PACKET_US + BETWEEN_RACKS_US;
        let what = format!("the long one ends last, with others every {interval} us");
        assert_late(fcts(&results)[0], all, 10.0 * ROUND_TRIP_US, &what);
    }
}

#[test]
fn pdq_paused_flow_probes_every_rtt_or_less_often_far_down_the_list() {
    // One flow sends and one waits, for 1900 us.
    let list = [(0.0, 16, 0, 2000), (100.0, 32, 0, 2500)];
    let limit = json!({ "time_limit": "2 ms" });
    let results = run(&with(&with(&fabric("pdq"), packets(&list)), limit));
    let probes = control(&results, "host32->leaf2");
    // Except for data that it sends when it is admitted by mistake.
    assert_near(probes, 1900.0 / ROUND_TRIP_US, 0.06, "probes of one");
    // Twenty senders of 1 Gb/s over 10: ten send, and the list has room for twenty. Waiting flows
    // are at positions 10 to 19, and send a probe every 2 to 3.8 RTTs instead of every RTT.
    let mut text = "from,to,rate,delay\nr,b,10 Gbps,20 us\n".to_owned();
    (0..20).for_each(|i| writeln!(text, "h{i},r,1 Gbps,20 us").unwrap());
    let list: Vec<_> = (0..20).map(|i| (0.0, i + 1, 0, 5000 + 100 * u64::from(i))).collect();
    let graph = json!({ "kind": "graph", "file": { "name": "many.csv", "text": text } });
    let base = with(&fabric("pdq"), json!({ "topology": null }));
    let base = with(&with(&base, json!({ "topology": graph })), packets(&list));
    let probes = |suppressed: bool| {
        let router = json!({ "kind": "pdq", "suppressed_probing": suppressed });
        let results = run(&with(&base, json!({ "time_limit": "20 ms", "router": router })));
        control(&results, "r->b")
    };
    let (suppressed, all) = (probes(true), probes(false));
    assert!(suppressed < 0.7 * all, "{suppressed} of {all}");
}

/// Number of control packets that a link has carried.
fn control(results: &Results, name: &str) -> f64 {
    // Control packets have 40 B, data packets 1500 B.
    (1500.0 * link(results, name, "packets") - link(results, name, "bytes")) / 1460.0
}

// pFabric.

#[test]
fn pfabric_starved_flow_retransmits_four_packets_and_then_probes() {
    // The second flow waits for 1200 us, and the timeout of 45 us expires repeatedly, from a window
    // of 12 packets on.
    let list = [(0.0, 16, 0, 1000), (0.0, 32, 0, 2000)];
    let base = with(&fabric("pfabric"), packets(&list));
    for (probe_after, again) in [(json!(5), 4), (json!(20), 19), (json!("none"), 26)] {
        let scenario = with(&base, json!({ "transport": { "probe_after": probe_after } }));
        let starved = run(&with(&scenario, json!({ "time_limit": "1200 us" })));
        assert_eq!(starved.flows.timeouts, [0, 26], "1200 / 45");
        assert_eq!(starved.flows.retransmits, [0, again], "{probe_after}");
        let probes = control(&starved, "host32->leaf2");
        assert_eq!(probes as u32, 26 - again, "{probe_after}");
        // Then the flow resumes.
        let served = 3000.0 * PACKET_US + BETWEEN_RACKS_US;
        assert_late(fcts(&run(&scenario))[1], served, 142.0, "the starved flow");
    }
}

#[test]
fn pfabric_probe_has_the_priority_of_its_flow() {
    // If the probe were served at once, data of its flow would be served with it, and the best flow
    // would wait each time.
    let list = [(0.0, 16, 0, 1000), (0.0, 32, 0, 2000), (0.0, 48, 0, 3000)];
    for priority in ["remaining_size", "size"] {
        let transport = json!({ "transport": { "priority": priority } });
        let results = run(&with(&with(&fabric("pfabric"), packets(&list)), transport));
        let alone = 1000.0 * PACKET_US + BETWEEN_RACKS_US;
        assert_late(fcts(&results)[0], alone, TWICE_BLOCKED_US, priority);
    }
}

#[test]
fn pfabric_without_starvation_prevention_reorders_but_loses_nothing() {
    // A window that fills the NIC queue: later packets carry a smaller remaining size.
    let flow = packets(&[(0.0, 0, 143, 300)]);
    let base = with(&with(&fabric("pfabric"), flow), json!({ "routing": "flow_hash" }));
    for (prevents, duplicate_acks) in
        [(true, json!("none")), (true, json!(3)), (false, json!("none")), (false, json!(3))]
    {
        let results = run(&with(
            &base,
            json!({
                "host_queue": { "kind": "pfabric", "starvation_prevention": prevents },
                "transport": {
                    "initial_window": 23, "reliability": { "duplicate_acks": duplicate_acks },
                },
            }),
        ));
        let what = format!("{prevents}, {duplicate_acks}");
        let fct = fcts(&results)[0];
        if prevents {
            assert_time(fct, 300.0 * PACKET_US + BETWEEN_RACKS_US, &what);
        }
        assert_eq!(count(&results, "retransmits") == 0, prevents, "{what}");
        assert_eq!((count(&results, "drops"), count(&results, "losses")), (0, 0), "{what}");
        assert_eq!(results.flows.delivered_bytes, [300 * PAYLOAD], "{what}");
    }
}

#[test]
fn feasible_deadlines_go_first_and_infeasible_ones_last() {
    // All at once: not even the last packet of the fourth flow could meet its deadline.
    let list = [
        (0.0, 1, 0, 12, Some(60.0)),
        (0.0, 2, 0, 6, Some(70.0)),
        (0.0, 3, 0, 3, None),
        (0.0, 4, 0, 2, Some(1.0)),
    ];
    for (deadlines, served) in [("ignored", [23, 11, 5, 2]), ("first", [12, 18, 21, 23])] {
        let transport = json!({ "transport": { "deadlines": deadlines } });
        let fcts =
            fcts(&run(&with(&with(&star("pfabric"), packets_with_deadlines(&list)), transport)));
        for (fct, served) in fcts.into_iter().zip(served) {
            let expected = f64::from(served) * PACKET_US + WITHIN_RACK_US;
            assert_late(fct, expected, PACKET_US, &format!("{deadlines}, {served} packets"));
        }
    }
}

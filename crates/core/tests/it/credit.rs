//! Receiver-driven transports: times of single flows by hand, shares of a receiver, and flows whose credits
//! are lost.

use crate::accounts::breakdowns;
use crate::common::{count, flows, graph, link, run, run_with_all_engines, with};
use serde_json::{Value, json};
use sojourn_core::run::Results;

/// A fabric of 10 and 40 Gb/s with 2.7 us on the hosts' links and 0.2 us on the others, and packets of
/// 1460 + 40 bytes: 14.68 us from a packet's transmission to its ACK, between racks.
fn fabric(transport: &Value, rows: &[(f64, u32, u32, u64)]) -> Value {
    json!({
        "topology": {
            "kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 3, "spines": 2,
            "host_delay": "2.7 us", "fabric_delay": "200 ns",
        },
        "packet": { "payload": "1460 B", "header": "40 B", "ack": "40 B" },
        "routing": "spray_round_robin",
        "transport": transport,
        "workload": flows(rows),
        "time_limit": "1 s",
    })
}

/// Time of a full packet at 10 Gb/s and of a control packet, in microseconds.
const PACKET: f64 = 1.2;
const CONTROL: f64 = 0.032;
/// Time of a control packet and of a full packet from host to host, between racks.
const CONTROL_ONE_WAY: f64 = 5.88;
const PACKET_ONE_WAY: f64 = 8.8;

/// pHost with the constants of its authors, scaled to the RTT of the fabric.
fn phost() -> Value {
    json!({
        "kind": "phost", "free_tokens": 25, "short_flow": 25, "window": 25, "resend_timeout": 28,
        "window_timeout": 78,
    })
}

/// FCTs in microseconds.
fn fcts(results: &Results) -> Vec<f64> {
    results.flows.fct_s.iter().map(|fct| fct * 1e6).collect()
}

fn assert_close(value: f64, expected: f64, what: &str) {
    assert!((value - expected).abs() < 1e-4, "{what}: {value}, not {expected}");
}

#[test]
fn phost_flow_alone_takes_the_time_of_its_packets_and_of_its_request() {
    let request = 2.0 * CONTROL_ONE_WAY;
    for (packets, request) in [(1, CONTROL), (25, CONTROL), (26, request), (500, request)] {
        let results = run(&fabric(&phost(), &[(0.0, 0, 3, packets * 1460)]));
        let expected = request + 14.68 + PACKET * (packets - 1) as f64;
        assert_close(results.flows.acked_s[0] * 1e6, expected, &format!("{packets} packets"));
    }
}

#[test]
fn phost_host_that_receives_two_flows_serves_the_shorter_first() {
    let rows = [(0.0, 0, 3, 1000 * 1460), (0.0, 1, 3, 900 * 1460)];
    let fcts = fcts(&run(&fabric(&phost(), &rows)));
    let alone = |packets: f64| 2.0 * CONTROL_ONE_WAY + PACKET_ONE_WAY + PACKET * (packets - 1.0);
    // The first token may go to the flow that is announced first.
    assert!((alone(900.0)..alone(902.0)).contains(&fcts[1]), "{fcts:?}");
    // The link is busy to the end, apart from the wait of a window timeout.
    assert!((alone(1900.0)..alone(1900.0) + 80.0 * PACKET).contains(&fcts[0]), "{fcts:?}");
}

#[test]
fn phost_serves_the_shorter_flow_first_although_clocks_of_hosts_differ() {
    // Each sender is up to 0.1 % slower than the receiver, so that it cannot spend a token per packet time.
    for slower in [0.9999, 0.999] {
        let results = run(&json!({
            "topology": { "kind": "star", "hosts": 3, "rate": "10 Gbps" },
            "degraded_links": [
                { "link": "host0->switch", "share": slower }, { "link": "host1->switch", "share": slower },
            ],
            "transport": "phost",
            "workload": flows(&[(0.0, 0, 2, 4_000_000), (100e-6, 1, 2, 1_000_000)]),
        }));
        assert!(results.flows.slowdown[1] < 1.05, "{:?}", results.flows.slowdown);
    }
}

#[test]
fn homa_serves_one_of_equal_messages_first_whichever_arrives_first() {
    for (first, second) in [("1 us", "900 ns"), ("900 ns", "1 us")] {
        let rows = format!("a,s,10 Gbps,{first},,\nb,s,10 Gbps,{second},,\ns,c,10 Gbps,1 us,,\n");
        let results = run(&json!({
            "topology": graph(&rows), "transport": "homa",
            "workload": flows(&[(0.0, 0, 2, 2_000_000), (0.0, 1, 2, 2_000_000)]),
        }));
        let [one, other] = [0, 1].map(|flow| results.flows.slowdown[flow]);
        assert!(one.min(other) < 1.05 && one.max(other) > 1.95, "{one} and {other}");
    }
}

#[test]
fn homa_message_alone_is_never_idle_if_its_grants_cover_the_rtt() {
    // A grant takes 5.88 us to its sender, its data 8.8 us: 12.2 packets.
    for (kilobytes, is_covered) in [("19500 B", true), ("18000 B", false)] {
        let homa = json!({ "kind": "homa", "rtt_bytes": kilobytes });
        let results = run(&fabric(&homa, &[(0.0, 0, 3, 1_000_000)]));
        let idle = results.flows.fct_s[0] - results.flows.ideal_fct_s[0];
        assert_eq!(idle.abs() < 1e-12, is_covered, "{kilobytes}: idle for {idle} s");
    }
}

#[test]
fn homa_grants_the_shorter_messages_first() {
    let rows = [(0.0, 0, 3, 100_000), (0.0, 1, 3, 50_000), (0.0, 2, 3, 2_000_000)];
    for overcommitment in [1, 2] {
        let homa = json!({
            "kind": "homa", "rtt_bytes": "20 KB", "overcommitment": overcommitment,
        });
        let results = run(&fabric(&homa, &rows));
        let fcts = fcts(&results);
        // Behind 20 KB of each message that are not granted.
        let most = results.flows.ideal_fct_s[1] * 1e6 + 45.0;
        assert!(fcts[1] < most && fcts[1] < fcts[0] && fcts[0] < fcts[2], "{fcts:?}");
        // The link is busy until all have arrived.
        let packets = f64::from(2_150_000_u32).div_euclid(1460.0);
        assert!(fcts[2] < PACKET * packets + 40.0, "{overcommitment}: {fcts:?}");
    }
}

#[test]
fn homa_host_that_sends_several_messages_sends_the_shortest_first() {
    let homa = json!({ "kind": "homa", "rtt_bytes": "20 KB" });
    // The last two have one packet each.
    let rows = [(0.0, 0, 3, 1_000_000), (100e-6, 0, 4, 1_460), (100e-6, 0, 5, 85)];
    let results = run(&fabric(&homa, &rows));
    let wait = (results.flows.fct_s[1] - results.flows.ideal_fct_s[1]) * 1e6;
    // The 84th packet of the first message leaves after 100.8 us, and 125 B on the link take 0.1 us.
    assert_close(wait, 0.8 + 0.1, "wait");
}

#[test]
fn homa_message_with_retransmissions_keeps_the_priority_of_its_grants() {
    // The long message loses packets, and is granted again when the short one starts.
    let homa = json!({ "kind": "homa", "rtt_bytes": "20 KB", "resend_interval": "1 ms" });
    let rows = [(0.0, 0, 3, 10_000_000), (3e-3, 1, 3, 500_000)];
    let failure = json!({ "link": "host0->leaf0", "fails": "100 us", "returns": "130 us" });
    let results = run(&with(&fabric(&homa, &rows), json!({ "failures": [failure] })));
    assert!(results.flows.retransmits[0] > 0);
    let wait = (results.flows.fct_s[1] - results.flows.ideal_fct_s[1]) * 1e6;
    // Behind what the long message had been granted before.
    assert!(wait < 40.0, "{wait} us");
}

#[test]
fn an_idle_host_with_a_slow_link_slows_no_flow_of_others() {
    for transport in ["homa", "ndp", "phost"] {
        for slow in ["100 Gbps", "10 Gbps", "1 Gbps"] {
            let links = format!(
                "from,to,rate,delay\na,s,100 Gbps,2 us\nb,s,100 Gbps,2 us\nidle,s,{slow},2 us\n"
            );
            let results = run(&json!({
                "environment": "lossy_datacentre",
                "topology": { "kind": "graph", "file": { "name": "links.csv", "text": links } },
                "transport": transport,
                "workload": flows(&[(0.0, 0, 1, 10_000_000)]),
            }));
            let slowdown = results.flows.slowdown[0];
            assert!(slowdown < 1.02, "{transport}: {slowdown} beside {slow}");
        }
    }
}

/// A flow to a host, a link of which has a tenth of its rate.
fn beside_a_slow_link(transport: &str, slow: &str) -> Results {
    run(&json!({
        "topology": { "kind": "star", "hosts": 3, "rate": "10 Gbps" },
        "degraded_links": [{ "link": slow, "share": 0.1 }],
        "transport": transport,
        "workload": flows(&[(0.0, 0, 1, 2_000_000)]),
    }))
}

#[test]
fn credits_are_as_fast_as_the_link_on_which_data_arrives() {
    for transport in ["homa", "ndp", "phost", "expresspass"] {
        // An ACK or credit of 40 to 84 B for a packet of 1500 takes up to 0.6 of the slow link.
        let slowdown = beside_a_slow_link(transport, "host1->switch").flows.slowdown[0];
        assert!(slowdown < 1.15, "{transport}: {slowdown}");
    }
    let results = beside_a_slow_link("ndp", "switch->host1");
    assert!(count(&results, "trims") < 50, "{} trims", count(&results, "trims"));
    // Credits and the data that they permit take turns at the rate of the data's link.
    let results = beside_a_slow_link("expresspass", "switch->host1");
    let queue = link(&results, "switch->host1", "queue_max_bytes");
    assert!(queue < 20.0 * 1500.0, "{queue} B");
}

#[test]
fn ndp_host_serves_its_flows_in_turns() {
    let rows = [(0.0, 0, 1, 2_000_000), (0.0, 0, 2, 1_000_000)];
    let results = run(&json!({
        "topology": { "kind": "star", "hosts": 3, "rate": "10 Gbps", "delay": "2 us" },
        "transport": "ndp",
        "workload": flows(&rows),
    }));
    // Of 1500-byte packets with 1448 bytes: the shorter one has half of the link until it ends.
    let megabyte = 1e6 / 1448.0 * PACKET;
    for (fct, megabytes) in results.flows.fct_s.iter().zip([3.0, 2.0]) {
        assert!((0.98..1.03).contains(&(fct * 1e6 / (megabytes * megabyte))), "{fct}");
    }
}

/// NDP on a star of 100 Gb/s and 1 us per link, with packets of 4096 + 64 bytes and control packets of 64.
fn ndp(window: u32, rows: &[(f64, u32, u32, u64)]) -> Value {
    json!({
        "topology": { "kind": "star", "hosts": 34, "rate": "100 Gbps", "delay": "1 us" },
        "packet": { "payload": "4096 B", "header": "64 B", "ack": "64 B" },
        "switch": { "control_priority": false },
        "queue": { "kind": "composite", "capacity": "6 packets" },
        "transport": { "kind": "ndp", "initial_window": window, "pull_rate": 0.99 },
        "workload": flows(rows),
    })
}

/// Times of a packet and of a control packet at 100 Gb/s, in microseconds.
const LARGE: f64 = 0.3328;
const SMALL: f64 = 0.00512;

#[test]
fn ndp_flow_alone_starts_at_line_rate_and_continues_at_the_pace_of_pulls() {
    let base_rtt = 2.0 * (LARGE + 1.0 + SMALL + 1.0);
    for (window, packets) in [(43, 1), (43, 43), (14, 100)] {
        let results = run(&ndp(window, &[(0.0, 0, 1, packets * 4096)]));
        let whole = 2.0 * (LARGE + 1.0);
        let at_line_rate = whole + LARGE * (packets - 1) as f64;
        let pulled = base_rtt + whole + LARGE / 0.99 * (packets as f64 - f64::from(window) - 1.0);
        let expected = if packets > u64::from(window) { pulled } else { at_line_rate };
        assert_close(fcts(&results)[0], expected, &format!("{packets} packets"));
    }
}

#[test]
fn ndp_incast_fills_the_receivers_link_with_pulled_packets() {
    let of = |packets: u64| {
        let rows: Vec<_> = (0..32).map(|source| (0.0, source, 33, packets * 4096)).collect();
        run(&ndp(16, &rows))
    };
    let (short, long) = (of(32), of(128));
    // All but about a window, which the link carries meanwhile, is trimmed and sent again by pulls.
    for results in [&short, &long] {
        assert_eq!(count(results, "timeouts") + count(results, "drops"), 0);
        let trims = count(results, "trims");
        assert_eq!(trims, count(results, "retransmits"));
        assert!((31 * 16 - 8..=31 * 16 + 8).contains(&trims), "{trims} trims");
    }
    let last = |results: &Results| fcts(results).into_iter().fold(0.0, f64::max);
    let pulled = 32.0 * 96.0 * LARGE / 0.99;
    let took = last(&long) - last(&short);
    assert!((took / pulled - 1.0).abs() < 1e-3, "{took} us for {pulled} us of pulled packets");
    // Flows have equal shares of pulls, some of which replace trimmed packets.
    let first = fcts(&long).into_iter().fold(f64::INFINITY, f64::min);
    assert!(first > 0.9 * last(&long), "{first} us and {} us", last(&long));
}

/// Four receivers pull at twenty times the rate of the link that their flows share, so that switches trim
/// most packets: data keeps what ten headers per packet leave of the link.
#[test]
fn headers_leave_data_its_share_of_a_slow_link() {
    let rows: Vec<_> = (0..4).map(|source| (0.0, source, 4 + source, 100_000)).collect();
    let scenario = json!({
        "topology": {
            "kind": "dumbbell", "senders": 4, "receivers": 4, "rate": "1 Gbps",
            "bottleneck_rate": "50 Mbps", "delay": "1 us",
        },
        "packet": { "payload": "1000 B", "header": "40 B", "ack": "64 B" },
        "switch": { "control_priority": false },
        "routing": "spray_random",
        "queue": "composite",
        "transport": "ndp",
        "workload": flows(&rows),
    });
    let data = 400.0 * 1040.0 * 8.0 / 50.0;
    let share = 1040.0 / (1040.0 + 10.0 * 64.0);
    let took = fcts(&run(&scenario)).into_iter().fold(0.0, f64::max);
    assert!(took < 1.02 * data / share, "{took} us for {data} us of data");
}

#[test]
fn headers_that_return_to_their_senders_replace_timeouts() {
    let rows: Vec<_> = (0..32).map(|source| (0.0, source, 33, 64 * 4096)).collect();
    let star = ndp(16, &rows);
    let fabric = json!({ "kind": "leaf_spine", "leaves": 6, "hosts_per_leaf": 6, "spines": 3 });
    let fabric = with(
        &with(&star, json!({ "topology": null })),
        json!({ "topology": fabric, "routing": "spray_random" }),
    );
    for network in [star, fabric] {
        let of = |returns_headers: bool| {
            let queue = json!({
                "kind": "composite", "capacity": "6 packets", "header_capacity": "40 packets",
                "returns_headers": returns_headers,
            });
            with(&network, json!({ "queue": queue }))
        };
        let (returned, lost) = (run(&of(true)), run(&of(false)));
        let counts = |results: &Results| {
            ["returns", "drops", "timeouts"].map(|name| count(results, name) > 0)
        };
        assert_eq!(counts(&returned), [true, false, false], "{}", returned.summary["counts"]);
        assert_eq!(counts(&lost), [false, true, true]);
        let last = |results: &Results| fcts(results).into_iter().fold(0.0, f64::max);
        assert!(last(&returned) < last(&lost), "{} us, {} us", last(&returned), last(&lost));
        run_with_all_engines(&with(&of(true), json!({ "account": true })));
    }
}

#[test]
fn trimmed_packets_of_a_transport_without_pulls_are_lost() {
    let rows: Vec<_> = (0..8).map(|source| (0.0, source, 33, 50 * 4096)).collect();
    let scenario = with(&ndp(43, &rows), json!({ "transport": "dctcp" }));
    let results = run(&scenario);
    assert!(count(&results, "trims") > 0 && count(&results, "drops") == 0);
    assert_eq!(count(&results, "unfinished"), 0);
}

#[test]
fn waits_for_credit_are_a_part_of_the_fct_breakdown() {
    let scenario = fabric(&phost(), &[(0.0, 0, 3, 100 * 1460)]);
    let flow = &breakdowns(&scenario)[0];
    // The first token takes 11.76 us, and each of the others comes a packet time later.
    assert_eq!(flow["credit_sender_ps"], 11_760_000 + 99 * 1_200_000, "{flow:?}");
    run_with_all_engines(&with(&scenario, json!({ "account": true, "account_flows": [0] })));
}

#[test]
fn all_flows_finish_although_requests_credits_data_and_acks_are_lost() {
    let rows: Vec<_> = (0..60_u32)
        .map(|i| {
            let size = [1, 1460, 14_600, 60_000, 400_000][i as usize % 5];
            (f64::from(i / 6) * 30e-6, i % 3, 3 + i / 3 % 3, size)
        })
        .collect();
    for kind in ["expresspass", "homa", "phost", "ndp"] {
        for loss in [0.02, 0.2] {
            for seed in 0..4 {
                let scenario = json!({
                    "seed": seed,
                    "topology": {
                        "kind": "dumbbell", "senders": 3, "receivers": 3, "loss": loss,
                        "ack_loss": loss,
                    },
                    "transport": { "kind": kind, "reliability": { "max_rto": "20 ms" } },
                    "workload": flows(&rows),
                    "failures": [{ "link": "left->right", "fails": "200 us", "returns": "230 us" }],
                    "time_limit": "20 s",
                });
                let results = run(&scenario);
                assert_eq!(count(&results, "unfinished"), 0, "{kind}, {loss}, seed {seed}");
                if seed == 0 {
                    run_with_all_engines(&scenario);
                }
            }
        }
    }
}

#[test]
fn phost_flows_finish_behind_a_bottleneck_that_is_much_slower_than_their_hosts() {
    // The tokens of three flows at constant intervals would fill the reverse path, whose data would never
    // depart: 40 bytes take 6.4 us, and each flow has a token every 7.5 us.
    let rows: Vec<_> = (0..6).map(|i| (0.0, i, (i + 3) % 6, 1001)).collect();
    let scenario = json!({
        "topology": {
            "kind": "dumbbell", "senders": 3, "receivers": 3, "bottleneck_rate": "50 Mbps",
        },
        "transport": { "kind": "phost", "free_tokens": 0 },
        "packet": { "ack": "40 B" },
        "workload": flows(&rows),
        "time_limit": "1 s",
    });
    let results = run(&scenario);
    assert_eq!(count(&results, "unfinished"), 0);
    assert!(count(&results, "packets") < 500, "{}", count(&results, "packets"));
}

#[test]
fn homa_sends_the_bytes_of_a_time_at_the_line_rate_without_grants() {
    // 10 us at 10 Gb/s are 12 500 bytes, or nine packets; the grants take longer than that.
    let fcts = |rtt_bytes: &str, packets: u64| {
        let homa = json!({ "kind": "homa", "rtt_bytes": rtt_bytes });
        let flows = run(&fabric(&homa, &[(0.0, 0, 3, packets * 1460)])).flows;
        (flows.fct_s, flows.ideal_fct_s)
    };
    let (fct, ideal_fct) = fcts("10 us", 9);
    assert_eq!(fct, ideal_fct);
    let (fct, ideal_fct) = fcts("10 us", 10);
    assert!(fct[0] > ideal_fct[0]);
    assert_eq!(fcts("10 us", 100), fcts("9 packets", 100));
}

#[test]
fn a_slow_sender_needs_no_requests_of_a_fast_receiver() {
    // An RTT at 100 Gb/s is more than the message; the sender, at 10 Gb/s, needs grants or tokens.
    let links = "from,to,rate,delay\ns,switch,10 Gbps,2 us\nr,switch,100 Gbps,2 us\n";
    let file = json!({ "name": "links.csv", "text": links });
    for transport in [
        json!({ "kind": "homa", "rtt_bytes": "10 us" }),
        json!({ "kind": "phost", "free_tokens": 0 }),
    ] {
        let results = run(&json!({
            "topology": { "kind": "graph", "file": file, "hosts": ["s", "r"] },
            "transport": transport,
            "packet": { "payload": "1460 B", "header": "40 B", "ack": "40 B" },
            "workload": flows(&[(0.0, 0, 1, 20 * 1460), (0.02, 0, 1, 1000 * 1460)]),
            "time_limit": "1 s",
        }));
        // pHost's first packet waits for a token, for 8 us.
        for (fct, ideal) in results.flows.fct_s.iter().zip(&results.flows.ideal_fct_s) {
            assert!(fct - ideal < 8.2e-6, "{transport}: {fct} s, alone {ideal} s");
        }
        assert_eq!(count(&results, "retransmits"), 0, "{transport}");
    }
}

#[test]
fn homas_short_last_packets_may_overtake_others() {
    // Both packets of a message are alone at the last hop if the short one arrives first.
    let results = run(&json!({
        "topology": "leaf_spine",
        "transport": "homa",
        "environment": "lossy_datacentre",
        "workload": {
            "kind": "poisson", "load": 0.5, "flows": 2000,
            "sizes": { "kind": "exponential", "mean": "20 KB" },
        },
    }));
    let least = results.flows.slowdown.iter().copied().fold(f64::INFINITY, f64::min);
    assert!((0.999_999..1.01).contains(&least), "{least}");
}

#[test]
fn unbounded_flows_are_granted_too() {
    for kind in ["expresspass", "homa", "phost", "ndp"] {
        let scenario = json!({
            "topology": { "kind": "dumbbell", "senders": 2, "receivers": 2 },
            "transport": kind,
            "workload": { "kind": "long_lived", "stop": "2 ms" },
            "time_limit": "4 ms",
        });
        let delivered = run(&scenario).flows.delivered_bytes;
        // 2 ms of 10 Gb/s are 2.5 MB, of which headers take 4 %.
        assert!(delivered.iter().sum::<u64>() > 2_000_000, "{kind}: {delivered:?}");
    }
}

/// Two flows to one host, one after the other, whose transport grants one message at a time.
fn one_after_the_other(topology: &Value, seed: u32) -> Value {
    json!({
        "topology": topology, "time_limit": "1 s", "seed": seed,
        "transport": { "kind": "homa", "overcommitment": 1, "resend_interval": "50 ms" },
        "workload": { "kind": "flows", "flows": [
            { "source": 0, "target": 2, "stop": "1 ms" },
            { "source": 1, "target": 2, "start": "0.1 ms", "stop": "20 ms" },
        ] },
    })
}

#[test]
fn the_end_of_a_stopped_flow_gives_its_credit_to_others() {
    let star = json!({ "kind": "star", "hosts": 3, "rate": "10 Gbps", "delay": "1 us" });
    let delivered = run(&one_after_the_other(&star, 1)).flows.delivered_bytes;
    // 19 ms of 10 Gb/s are 23.75 MB, of which headers take 3.5 %.
    assert!(delivered[1] > 22_500_000, "{delivered:?}");
}

#[test]
fn a_lost_fin_starves_no_other_flow() {
    let lossy = json!({
        "kind": "dumbbell", "senders": 2, "receivers": 1, "rate": "10 Gbps", "delay": "1 us", "loss": 0.05,
    });
    // In these the first FIN is lost.
    for seed in [8, 16] {
        let scenario = with(
            &one_after_the_other(&lossy, seed),
            json!({ "transport": { "resend_interval": "1 ms" }, "time_limit": "20 ms" }),
        );
        run_with_all_engines(&scenario);
        let delivered = run(&scenario).flows.delivered_bytes;
        assert!(delivered[1] > 500_000, "seed {seed}: {delivered:?}");
    }
}

#[test]
fn losses_of_unbounded_flows_are_repaired() {
    let lossy = |kind: &str, flows: u32, loss: f64, ack_loss: f64, seed: u32| {
        let results = run(&json!({
            "topology": {
                "kind": "dumbbell", "senders": 1, "receivers": 1, "loss": loss, "ack_loss": ack_loss,
            },
            "transport": kind,
            "workload": { "kind": "long_lived", "flows": flows, "stop": "5 ms" },
            "time_limit": "10 s",
            "seed": seed,
        }));
        let ended_s = results.summary["simulated_s"].as_f64().unwrap();
        (count(&results, "losses"), count(&results, "retransmits"), ended_s)
    };
    for kind in ["expresspass", "phost"] {
        let (losses, retransmits, ended_s) = lossy(kind, 4, 0.01, 0.0, 1);
        assert!(losses > 50 && retransmits >= losses, "{kind}: {retransmits} for {losses}");
        assert!(ended_s < 6e-3, "{kind}: until {ended_s} s, after a timeout");
        // The last packet, its ACK and the FIN are lost, too, in some of the flows.
        for seed in 1..=10 {
            let (.., ended_s) = lossy(kind, 10, 0.1, 0.1, seed);
            assert!(ended_s < 2.0, "{kind}, seed {seed}: credits until {ended_s} s");
        }
    }
}

#[test]
fn a_host_serves_its_flows_although_others_end_with_a_duplicate_in_its_paused_port() {
    // Every host sends three flows over a tenth of its rate. Requests after 200 us name data that waits in
    // the paused port, and is sent again.
    let rows: Vec<_> =
        (0..30).map(|i| (f64::from(i) * 1e-6, i % 10, 10 + i / 10 % 2, 20_000)).collect();
    let results = run(&json!({
        "topology": {
            "kind": "dumbbell", "senders": 10, "receivers": 2, "rate": "10 Gbps",
            "bottleneck_rate": "1 Gbps",
        },
        "transport": {
            "kind": "ndp", "reliability": { "initial_rto": "200 us", "min_rto": "200 us" },
        },
        "queue": "drop_tail",
        "switch": { "shared_buffer": "120 KB", "pause": { "headroom": "6 KB" } },
        "workload": flows(&rows),
        "time_limit": "1 s",
    }));
    let names = ["drops", "unfinished"];
    assert_eq!(names.map(|name| count(&results, name)), [0, 0]);
    assert!(["pauses", "retransmits"].iter().all(|name| count(&results, name) > 0));
    let last = results.flows.fct_s.iter().fold(0.0, |a: f64, b| a.max(*b));
    assert!(last < 1.5 * 600_000.0 * 8e-9, "{last} s, not much longer than the bottleneck takes");
}

#[test]
fn parameters_without_effect_and_more_priorities_than_switches_have_give_a_warning() {
    let warnings = |transport: Value, shared: Value| {
        let results = run(&json!({
            "environment": "lossy_datacentre", "topology": "star", "transport": transport,
            "reliability": shared, "workload": flows(&[(0.0, 0, 1, 20_000)]),
        }));
        results.summary["warnings"].to_string()
    };
    let unused = "no effect of recovery, delayed_ack under";
    let shared = json!({ "recovery": "new_reno", "delayed_ack": "1 ms" });
    for kind in ["expresspass", "homa", "ndp", "phost"] {
        assert!(warnings(json!(kind), shared.clone()).contains(unused), "{kind}");
        let none = warnings(json!(kind), json!({ "handshake": true }));
        assert!(!none.contains("no effect"), "{kind}: {none}");
    }
    assert!(!warnings(json!("dctcp"), shared).contains(unused));

    let pias = |thresholds: u32| {
        let thresholds: Vec<_> = (1..=thresholds).collect();
        warnings(json!({ "kind": "pias", "thresholds": thresholds }), json!({}))
    };
    assert!(pias(8).contains("queues have 9 priorities, and switches 8 (IEEE 802.1Q)"));
    assert!(!pias(7).contains("IEEE 802.1Q"));
}

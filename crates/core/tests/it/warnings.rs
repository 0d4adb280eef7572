//! Warnings of runs: each appears for what it names, and not without it.

use serde_json::{Value, json};

use crate::common::{graph, run, with};

fn warnings(scenario: &Value) -> Vec<String> {
    let summary = run(scenario).summary;
    summary["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap().into())
        .collect()
}

/// Asserts that a run has one warning with `words`, and that it has none after a change.
fn assert_warns(scenario: &Value, words: &str, remedy: Value) {
    let found: Vec<String> = warnings(scenario);
    let matching = found.iter().filter(|line| line.contains(words)).count();
    assert_eq!(matching, 1, "{words}: {found:?}");
    let found = warnings(&with(scenario, remedy));
    assert!(!found.iter().any(|line| line.contains(words)), "{words}: {found:?}");
}

/// 64 flows of 256 KB into one host: 16 MB at once.
fn incast() -> Value {
    json!({
        "topology": { "kind": "star", "hosts": 65 }, "transport": "dcqcn", "time_limit": "100 ms",
        "workload": {
            "kind": "incast", "fan_in": 64, "size": "256 KB", "target": 0, "interval": "1 s",
            "events": 1,
        },
    })
}

#[test]
fn queues_without_a_limit_that_grow() {
    let words = "queues have no limit, and the longest reached";
    assert_warns(&incast(), words, json!({ "queue": { "kind": "drop_tail", "capacity": "9 MB" } }));
    assert_warns(&incast(), words, json!({ "switch": { "shared_buffer": "9 MB" } }));
    assert_warns(&incast(), words, json!({ "workload": { "size": "1 KB" } }));
}

#[test]
fn hosts_whose_flows_wait_behind_each_other() {
    let scenario = json!({
        "topology": { "kind": "dumbbell", "senders": 1, "receivers": 1, "rate": "10 Mbps" },
        "transport": "cubic", "time_limit": "5 s",
        "queue": { "kind": "drop_tail", "capacity": "100 packets" },
        "workload": { "kind": "flows", "flows": [{ "source": 0, "target": 1, "size": "4 MB" }] },
    });
    let words = "a host's own queue reached";
    let limited = json!({ "transport": { "kind": "cubic", "window": { "max": 20 } } });
    assert_warns(&scenario, words, limited);
    assert_warns(&scenario, words, json!({ "host": { "service": "fair" } }));
}

#[test]
fn long_lived_classes_that_share_the_ports_of_hosts() {
    let part = |class: &str| json!({ "kind": "long_lived", "class": class, "flows": 1 });
    let scenario = json!({
        "topology": { "kind": "dumbbell", "senders": 2, "receivers": 2, "rate": "1 Gbps" },
        "transport": "dctcp", "time_limit": "5 ms",
        "workload": { "kind": "mixed", "parts": [part("a"), part("b")] },
    });
    let words = "long-lived flows of classes a, b start at the same hosts";
    assert_warns(&scenario, words, json!({ "topology": { "bottleneck_rate": "900 Mbps" } }));
    let mut two = part("b");
    two["flows"] = json!(2);
    assert_warns(&scenario, words, json!({ "workload": { "parts": [part("a"), two] } }));
    let mut first = part("a");
    first["stop"] = json!("1 ms");
    let mut second = part("b");
    second["start"] = json!("1 ms");
    assert_warns(&scenario, words, json!({ "workload": { "parts": [first, second] } }));
}

#[test]
fn timeouts_that_expire_before_an_ack_can_arrive() {
    let scenario = json!({
        "topology": { "kind": "link", "rate": "20 Mbps", "delay": "50 ms" },
        "transport": "fast", "time_limit": "5 s",
        "workload": { "kind": "flows", "flows": [{ "source": 0, "target": 1, "size": "1 KB" }] },
    });
    let words = "transport.reliability.initial_rto is 10 ms, below the base RTT";
    assert_warns(&scenario, words, json!({ "reliability": { "initial_rto": "1 s" } }));
    assert_warns(&scenario, words, json!({ "environment": "internet" }));
}

#[test]
fn the_base_rtt_follows_rate_traces() {
    let rate_trace = |link: &str| {
        let rates = json!({ "name": "rates.csv", "text": "time_s,rate_bps\n0,1e5\n" });
        json!({ "link": link, "file": rates })
    };
    let links = ["host0->switch", "switch->host0", "host1->switch", "switch->host1"];
    let scenario = |rate: &str| {
        json!({
            "topology": { "kind": "star", "hosts": 2, "rate": rate },
            "transport": "dctcp", "time_limit": "5 s",
            "workload": { "kind": "flows", "flows": [{ "source": 0, "target": 1, "size": "1 KB" }] },
        })
    };
    let traced = with(&scenario("10 Gbps"), json!({ "rate_traces": links.map(rate_trace) }));
    let words = "transport.reliability.initial_rto is 10 ms, below the base RTT";
    assert_warns(&traced, words, json!({ "rate_traces": [] }));
    let timeout = |scenario: &Value| {
        warnings(scenario).into_iter().find(|line| line.contains(words)).expect("a warning")
    };
    assert_eq!(timeout(&traced), timeout(&scenario("100 Kbps")));
}

#[test]
fn flows_that_would_start_after_the_time_limit() {
    let flow = |start: &str| json!({ "source": 0, "target": 1, "size": "1 KB", "start": start });
    let scenario = json!({
        "topology": "star", "transport": "dctcp", "time_limit": "1 s",
        "workload": { "kind": "flows", "flows": [flow("0 s"), flow("2 s"), flow("3 s")] },
    });
    let words = "1 of 3 flows started before time_limit = 1 s";
    assert_warns(&scenario, words, json!({ "time_limit": "4 s" }));
    let rows = "start_s,source,target,size_bytes\n0,0,1,1000\n2,0,1,1000\n3,1,0,1000\n";
    let file = json!({ "name": "f.csv", "text": rows });
    let random = json!({ "kind": "poisson", "load": 0.1, "flows": 9, "stop": "1 ns",
        "sizes": { "kind": "fixed", "size": "1 KB" } });
    let mut stopped = scenario.clone();
    stopped["workload"] = random;
    let found = warnings(&stopped);
    assert!(!found.iter().any(|line| line.contains("time_limit")), "{found:?}");
    let mut trace = scenario;
    trace["workload"] = json!({ "kind": "trace", "file": file });
    assert_warns(&trace, words, json!({ "time_limit": "4 s" }));
}

#[test]
fn grants_that_cannot_fill_a_path() {
    let scenario = json!({
        "topology": { "kind": "star", "hosts": 3, "delay": "20 us" }, "transport": "homa",
        "time_limit": "100 ms",
        "workload": { "kind": "flows", "flows": [{ "source": 0, "target": 1, "size": "1 MB" }] },
    });
    let words = "a message alone cannot fill its path";
    assert_warns(
        &scenario,
        words,
        json!({ "transport": { "kind": "homa", "rtt_bytes": "110 KB" } }),
    );
    assert_warns(
        &scenario,
        words,
        json!({ "transport": { "kind": "homa", "rtt_bytes": "85 us" } }),
    );
    assert_warns(&scenario, words, json!({ "environment": "lossy_datacentre" }));
}

#[test]
fn retransmissions_without_losses() {
    let scenario = json!({
        "topology": "leaf_spine", "transport": "dcqcn", "routing": "spray_random",
        "time_limit": "100 ms", "workload": { "kind": "permutation", "size": "1 MB" },
    });
    let words = "retransmissions, but only 0 packets were lost";
    assert_warns(&scenario, words, json!({ "routing": "flow_hash" }));
    assert_warns(&scenario, words, json!({ "environment": "lossless_datacentre" }));
}

#[test]
fn telemetry_that_headers_do_not_contain() {
    let flow = json!({ "source": 0, "target": 1, "size": "10 KB" });
    let scenario = json!({
        "topology": { "kind": "star", "hosts": 2 }, "transport": "hpcc", "time_limit": "1 ms",
        "environment": "lossless_datacentre", "workload": { "kind": "flows", "flows": [flow] },
    });
    let words = "headers of packets do not contain the telemetry that it collects; for telemetry of 5 hops \
                 ([hpcc19]: 42 B) give `packet.header = \"104 B\"` and `packet.ack = \"108 B\"`";
    assert_warns(&scenario, words, json!({ "packet": { "header": "104 B", "ack": "108 B" } }));
    let words = "do not contain the telemetry that it collects";
    for remedy in [
        json!({ "packet": { "header": "104 B" } }),
        json!({ "transport": "theta_powertcp" }),
        json!({ "transport": "dcqcn" }),
    ] {
        assert_warns(&scenario, words, remedy);
    }
    let remedy = json!({ "packet": { "header": "64 B", "ack": "68 B" } });
    let digest = with(&scenario, json!({ "transport": { "kind": "hpcc", "pint": {} } }));
    assert_warns(&digest, "for a digest ([hpcc19]: 2 B) give `packet.header = \"64 B\"`", remedy);
    let paper = with(&scenario, json!({ "environment": "paper", "transport": "powertcp" }));
    assert_warns(&paper, words, json!({ "packet": { "header": "82 B" } }));
}

#[test]
fn go_back_n_in_a_class_that_is_dropped() {
    let flow = |source: usize| {
        let class = ["rdma", "tcp"][source % 2];
        json!({ "source": source, "target": 0, "size": "2 MB", "class": class })
    };
    let scenario = json!({
        "topology": { "kind": "star", "hosts": 7, "rate": "100 Gbps" }, "time_limit": "3 ms",
        "environment": "lossless_datacentre", "transport": "dcqcn", "transports": { "tcp": "cubic" },
        "traffic_classes": { "rdma": 3, "tcp": 1 },
        "switch": { "shared_buffer": "1 MB", "pause": { "classes": [3] } },
        "workload": { "kind": "flows", "flows": (1..7).map(flow).collect::<Vec<_>>() },
    });
    let own = json!({ "kind": "cubic", "reliability": { "recovery": "go_back_n" } });
    let own = with(&scenario, json!({ "transports": { "tcp": own } }));
    let words =
        "transports.tcp: go-back-N sends all data again from a loss on, and traffic class 1 is";
    assert_warns(&own, words, json!({ "transports": { "tcp": "cubic" } }));
}

#[test]
fn links_that_are_offered_more_than_they_carry() {
    let sizes = json!({ "kind": "fixed", "size": "100 KB" });
    let scenario = json!({
        "topology": {
            "kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 8, "spines": 1,
            "host_rate": "25 Gbps", "fabric_rate": "40 Gbps",
        },
        "transport": "dctcp", "time_limit": "1 ms",
        "workload": {
            "kind": "poisson", "load": 0.9, "sizes": sizes, "flows": 200, "allow_overload": true,
        },
    });
    let words =
        "the workload offers 96 Gbps to leaf0->spine0 in the mean, which carries only 40 Gbps";
    assert_warns(&scenario, words, json!({ "workload": { "load": 0.3 } }));
    let mut incast = incast();
    // 64 flows of 256 KB in 1 ms are 135 Gb/s with headers; one event has no rate.
    incast["workload"]["interval"] = json!("1 ms");
    incast["workload"]["events"] = json!(2);
    assert_warns(&incast, "to switch->host0 in the mean", json!({ "workload": { "events": 1 } }));
    assert_warns(
        &incast,
        "to switch->host0 in the mean",
        json!({ "workload": { "interval": "1 s" } }),
    );
}

#[test]
fn arrivals_into_an_empty_network_that_end_by_default() {
    let sizes = json!({ "kind": "fixed", "size": "20 KB" });
    let poisson = json!({
        "topology": { "kind": "dumbbell", "rate": "100 Mbps" }, "transport": "dctcp",
        "time_limit": "100 ms", "workload": { "kind": "poisson", "load": 0.5, "sizes": sizes },
    });
    let words = "the network starts empty, and all flows of the first 100 ms count";
    for remedy in [
        json!({ "workload": { "stop": "100 ms" } }),
        json!({ "workload": { "flows": 10 } }),
        json!({ "warm_up": "10 ms" }),
    ] {
        assert_warns(&poisson, words, remedy.clone());
        assert_warns(&with(&poisson, json!({ "model": "srpt" })), words, remedy);
    }
    let mut calls = poisson;
    calls["workload"] = json!({
        "kind": "rpc", "request": sizes, "response": sizes, "pattern": { "load": 0.5 },
    });
    assert_warns(&calls, words, json!({ "workload": { "pattern": { "calls": 10 } } }));
    assert_warns(&calls, words, json!({ "workload": { "pattern": { "stop": "1 ms" } } }));
}

/// Two flows of a transport into one host of a star.
fn at_rate(rate: &str, transport: &str, changes: Value) -> Value {
    let flow = |source: u32| json!({ "source": source, "target": 0, "size": "10 KB" });
    let scenario = json!({
        "topology": { "kind": "star", "hosts": 3, "rate": rate }, "transport": transport,
        "workload": { "kind": "flows", "flows": [flow(1), flow(2)] },
    });
    with(&scenario, changes)
}

#[test]
fn parameters_of_other_rates() {
    let words = "parameters designed for other rates";
    let with_rate = |rate: &str| json!({ "topology": { "rate": rate } });
    // DCQCN's are for 40 Gb/s, the others' for 10 Gb/s; a factor of 4 is far.
    assert_warns(&at_rate("10 Gbps", "dcqcn", json!({})), words, with_rate("11 Gbps"));
    for kind in ["timely", "patched_timely", "pfabric"] {
        assert_warns(&at_rate("40 Gbps", kind, json!({})), words, with_rate("39 Gbps"));
    }
    // [dctcp10] has 20 packets at 1 Gb/s, and 65 at 10 Gb/s; other thresholds are chosen for the network.
    let dctcp = |rate: &str, threshold: &str| {
        let queue = json!({ "kind": "ecn_threshold", "threshold": threshold });
        at_rate(rate, "dctcp", json!({ "queue": queue }))
    };
    assert_warns(&dctcp("100 Gbps", "20 packets"), words, with_rate("100 Mbps"));
    let in_time = json!({ "queue": { "threshold": "24 us" } });
    assert_warns(&dctcp("100 Gbps", "20 packets"), words, in_time);
    assert_warns(&dctcp("1 Gbps", "97.5 KB"), words, with_rate("10 Gbps"));
    let chosen = json!({ "queue": { "threshold": "12 KB" } });
    assert_warns(&dctcp("100 Gbps", "65 packets"), words, chosen);
    assert_warns(&at_rate("100 Gbps", "pias", json!({})), words, with_rate("10 Gbps"));

    let lines = warnings(&at_rate("200 Gbps", "dcqcn", json!({})));
    let line = "parameters designed for other rates: dcqcn_red.kmax, for 40 Gbps, is used at 200 Gbps; \
                transport.additive_increase, for 40 Gbps, is used at 200 Gbps; give them relative to the \
                link, as data-centre environments do";
    assert!(lines.iter().any(|found| found == line), "{lines:?}");
    for kind in ["dcqcn", "timely", "patched_timely", "pfabric", "dctcp", "pias"] {
        let environment = json!({ "environment": "lossless_datacentre" });
        let found = warnings(&at_rate("400 Gbps", kind, environment));
        assert!(!found.iter().any(|line| line.contains(words)), "{kind}: {found:?}");
    }
}

#[test]
fn targets_below_the_base_rtt() {
    // The base RTT is 400 us and two packets and ACKs of 10 Gb/s.
    for (kind, field) in [("swift", "base_target"), ("patched_timely", "t_low")] {
        let far = json!({ "topology": { "delay": "100 us" } });
        let scenario = at_rate("10 Gbps", kind, far);
        let words = format!("transport: {field} is");
        assert_warns(&scenario, &words, json!({ "topology": { "delay": "2 us" } }));
        let above =
            with(&scenario, json!({ "transport": { "kind": kind, "above_base_rtt": true } }));
        assert!(!warnings(&above).iter().any(|line| line.contains(&words)));
    }
}

#[test]
fn sizes_whose_unit_is_a_guess() {
    let sizes = json!({ "name": "sizes.tcl", "text": "70 1 0\n70 1 0.25\n150 1 0.75\n1500 1 1\n" });
    let scenario = json!({
        "topology": { "kind": "star", "hosts": 4 }, "transport": "dctcp", "time_limit": "100 ms",
        "workload": {
            "kind": "poisson", "load": 0.1, "flows": 10,
            "sizes": { "kind": "empirical", "file": sizes },
        },
    });
    let words = "workload.sizes: the first of three columns of sizes.tcl counts packets";
    assert_warns(&scenario, words, json!({ "workload": { "sizes": { "unit": "bytes" } } }));
    let parts = json!({ "workload": { "kind": "mixed", "parts": [scenario["workload"]] } });
    let words = "workload.parts[0].sizes: the first of three columns";
    let mixed = with(&json!({ "topology": scenario["topology"], "transport": "dctcp" }), parts);
    let remedy = json!({ "workload": { "kind": "mixed", "parts": [
        { "kind": "permutation", "size": "1 KB" },
    ] } });
    assert_warns(&mixed, words, remedy);
}

#[test]
fn hosts_with_several_links_under_transports_that_serve_one() {
    let topology =
        graph("a,s,10 Gbps,1 us,,\na,t,10 Gbps,1 us,,\nb,s,10 Gbps,1 us,,\nb,t,10 Gbps,1 us,,\n");
    let scenario = json!({
        "topology": with(&topology, json!({ "hosts": ["a", "b"] })),
        "transport": "ndp",
        "workload": { "kind": "flows", "flows": [{ "source": 0, "target": 1, "size": "10 KB" }] },
    });
    assert_warns(&scenario, "such as a, sends and receives", json!({ "transport": "dctcp" }));
}

/// Flows of DCTCP and of another transport through one port of a dumbbell.
fn beside_dctcp(other: &str) -> Value {
    let flow = |host: u32, class: &str| {
        let target = host + 2;
        json!({ "source": host, "target": target, "size": "10 MB", "class": class })
    };
    json!({
        "topology": {
            "kind": "dumbbell", "senders": 2, "receivers": 2, "rate": "40 Gbps",
            "bottleneck_rate": "10 Gbps", "delay": "10 us",
        },
        "transport": "dctcp", "transports": { "other": other }, "time_limit": "1 s",
        "workload": { "kind": "flows", "flows": [flow(0, "dctcp"), flow(1, "other")] },
    })
}

#[test]
fn queues_that_mark_packets_of_one_transport_and_accept_those_of_another() {
    let words = "queues mark packets of dctcp above the threshold, but accept those of cubic,";
    let dropping = json!({ "queue": { "kind": "ecn_threshold", "drops_non_ect": true } });
    assert_warns(&beside_dctcp("cubic"), words, dropping.clone());
    assert_warns(&beside_dctcp("cubic"), words, json!({ "traffic_classes": { "other": 1 } }));
    assert_warns(&beside_dctcp("cubic"), words, json!({ "transports": { "other": "dcqcn" } }));
    // A switch that drops where it marks leaves most of the link to DCTCP; one that does not, to CUBIC.
    let finished = |scenario: &Value| run(scenario).flows.fct_s;
    let (kept, dropped) = (beside_dctcp("cubic"), with(&beside_dctcp("cubic"), dropping));
    let (kept, dropped) = (finished(&kept), finished(&dropped));
    assert!(kept[0] > kept[1] && dropped[0] < dropped[1], "{kept:?} {dropped:?}");
}

#[test]
fn queues_that_lack_what_a_transport_was_designed_for() {
    let marking = json!({ "queue": "ecn_threshold" });
    let dropping = json!({ "queue": "drop_tail" });
    for (kind, field) in [("cubic", "transports.other"), ("dctcp", "transport")] {
        let scenario = with(&beside_dctcp("dcqcn"), json!({ "transport": kind }));
        let words = format!("{field}: `");
        let words = words + if kind == "dctcp" { kind } else { "dcqcn" };
        let words = words + "` was designed for queues that mark packets, and these do not;";
        assert_warns(&with(&scenario, dropping.clone()), &words, marking.clone());
    }
    let words =
        "transports.other: `expresspass` was designed for queues that limit the rate of credits";
    assert_warns(&beside_dctcp("expresspass"), words, json!({ "queue": "credit_shaper" }));
}

#[test]
fn queues_that_ignore_the_priorities_of_packets() {
    for kind in ["homa", "pfabric"] {
        let scenario = with(&beside_dctcp(kind), json!({ "queue": "ecn_threshold" }));
        let words =
            format!("transports.other: `{kind}` gives packets priorities, but these queues ignore");
        let queue = json!({ "kind": "pfabric", "capacity": "1 MB" });
        assert_warns(&scenario, &words, json!({ "queue": queue }));
    }
}

#[test]
fn trimmed_packets_whose_headers_the_transport_does_not_read() {
    let scenario = json!({
        "topology": { "kind": "star", "hosts": 9 }, "transport": "dctcp", "queue": "composite",
        "workload": { "kind": "incast", "fan_in": 8, "size": "100 KB", "events": 1, "interval": "1 s" },
        "time_limit": "1 s",
    });
    let words = "takes them for lost, since it does not read their headers;";
    assert_warns(&scenario, words, json!({ "transport": "ndp" }));
}

#[test]
fn queues_that_do_not_mark_packets_of_transports_with_ecn() {
    let ecn = |kind: &str| json!({ "kind": kind, "ecn": true });
    let scenario = |queue: Value| {
        json!({
            "topology": { "kind": "link", "rate": "20 Mbps", "delay": "5 ms" },
            "transport": ecn("cubic"), "queue": queue, "time_limit": "1 s",
            "workload": { "kind": "flows", "flows": [{ "source": 0, "target": 1, "size": "1 KB" }] },
        })
    };
    let words = "transport: `cubic` uses ECN, but these queues do not mark packets;";
    let marking = json!({ "queue": { "kind": "codel", "law": { "ecn": true } } });
    assert_warns(&scenario(json!("codel")), words, marking);
    assert_warns(&scenario(json!("drop_tail")), words, json!({ "transport": "cubic" }));
    assert_warns(&scenario(json!("drop_tail")), words, json!({ "queue": { "kind": "red" } }));
}

#[test]
fn flows_to_sample_and_to_record_that_a_run_lacks() {
    let scenario = json!({
        "topology": "star", "transport": "dctcp", "time_limit": "1 s", "account": true,
        "samples": { "interval": "1 us", "flows": [0, 1000, 2000] },
        "record": { "flows": [0, 1000] },
        "workload": { "kind": "flows", "flows": [{ "source": 0, "target": 1, "size": "100 KB" }] },
    });
    let words = "samples.flows: not sampled: flow 1000, 2000; flows started: 1";
    assert_warns(&scenario, words, json!({ "samples": { "flows": [0] } }));
    let words = "record.flows: not recorded: flow 1000; flows started: 1";
    assert_warns(&scenario, words, json!({ "record": { "flows": [0] } }));
}

/// Two hosts that send to a third at line rate, whose switch pauses them.
fn paused_senders() -> Value {
    json!({
        "topology": { "kind": "star", "hosts": 3, "rate": "100 Gbps", "delay": "1 us" },
        "transport": { "kind": "constant_rate", "rate": "100 Gbps" },
        "switch": { "shared_buffer": "1 MB", "pause": {} },
        "time_limit": "20 ms",
        "workload": {
            "kind": "flows",
            "flows": [
                { "source": 1, "target": 0, "size": "10 MB" },
                { "source": 2, "target": 0, "size": "10 MB" },
            ],
        },
    })
}

#[test]
fn paused_classes_that_drop_for_lack_of_headroom() {
    let scenario =
        with(&paused_senders(), json!({ "switch": { "pause": { "headroom": "5 KB" } } }));
    // 2 us at 100 Gb/s, the packet before the frame, the frame, and two packets.
    let words = "headroom` is 5 KB, and up to 28.184 KB";
    assert_warns(&scenario, words, json!({ "switch": { "pause": { "headroom": "40 KB" } } }));
}

#[test]
fn pauses_that_end_before_their_frames_are_repeated() {
    // Frames wait up to 0.9 us for a packet on the reverse links, longer than a pause of 0.5 us.
    let host = |name| format!("{name},s,100 Gbps,5 us,10 Gbps,\n");
    let slow_back = graph(&["h0", "h1", "h2"].map(host).concat());
    let flow = |source, target| json!({ "source": source, "target": target, "size": "2 MB" });
    let mut scenario = with(
        &paused_senders(),
        json!({
            "switch": { "shared_buffer": "2 MB", "pause": { "quanta": 100 } },
            "workload": { "flows": [flow(0, 2), flow(1, 2), flow(2, 0), flow(2, 1)] },
        }),
    );
    scenario["topology"] = slow_back;
    let words = "`switch.pause.quanta` is 100, and pauses ended before";
    assert_warns(&scenario, words, json!({ "switch": { "pause": { "quanta": 1_000 } } }));
}

#[test]
fn pauses_that_leave_no_time_to_mark() {
    let queue = |threshold: &str| json!({ "kind": "ecn_threshold", "threshold": threshold });
    let marks = json!({ "transport": "dcqcn", "queue": queue("900 KB") });
    let scenario = with(&paused_senders(), marks);
    assert_warns(&scenario, "no packet was marked", json!({ "queue": queue("50 KB") }));
}

#[test]
fn packets_that_are_dropped_before_the_marking_threshold() {
    let queue = |threshold: &str, capacity: &str| {
        let limits = json!({ "threshold": threshold, "capacity": capacity });
        with(&json!({ "kind": "ecn_threshold" }), limits)
    };
    let scenario = json!({
        "environment": "paper", "transport": "dctcp", "time_limit": "5 ms",
        "topology": {
            "kind": "dumbbell", "senders": 2, "receivers": 2, "rate": "100 Gbps",
            "bottleneck_delay": "20 us",
        },
        "queue": queue("none", "250 packets"),
        "workload": { "kind": "long_lived" },
    });
    // K is 65 packets of 1500 B at 10 Gb/s.
    let words = "marks from 975 KB on; give a lower `queue.threshold`";
    assert_warns(&scenario, words, json!({ "queue": queue("none", "2500 packets") }));
    assert_warns(&scenario, words, json!({ "queue": queue("65 packets", "250 packets") }));
    assert_warns(&scenario, words, json!({ "transport": "tcp" }));
}

#[test]
fn rate_traces_with_peaks() {
    let scenario = |opportunities: &str| {
        let trace = json!({ "name": "trace", "text": opportunities });
        json!({
            "topology": { "kind": "link", "delay": "20 ms", "rate_trace": trace },
            "transport": "cubic", "time_limit": "100 ms", "workload": { "kind": "long_lived" },
        })
    };
    // Both carry 12 Mb/s.
    let bursts = scenario(&"10\n".repeat(10));
    let words = "the peak of its rate trace, 120 Mbps, and the mean is 12 Mbps";
    assert_warns(&bursts, words, json!({ "topology": scenario("1\n")["topology"] }));
}

#[test]
fn lowest_rates_at_the_line_rate() {
    for (transport, field) in [
        (json!({ "kind": "dcqcn", "min_rate": "10 Gbps" }), "transport.min_rate"),
        (json!({ "kind": "hpcc", "min_rate": "100 %" }), "transport.min_rate"),
        (
            json!({ "kind": "timely", "segments": { "min_rate": "40 Gbps" } }),
            "transport.segments.min_rate",
        ),
    ] {
        let mut scenario = incast();
        scenario["transport"] = transport;
        let words = format!("{field} is not below 10 Gbps, the rate of hosts");
        assert_warns(
            &scenario,
            &words,
            json!({ "topology": { "rate": "100 Gbps" }, "transport": "dcqcn" }),
        );
    }
}

#[test]
fn minimum_rates_of_many_flows_above_the_rate_of_a_link() {
    let long_lived = json!({ "kind": "long_lived" });
    let incast = json!({ "kind": "incast", "fan_in": 128, "size": "1 MB", "interval": "1 ms" });
    let dumbbell = json!({ "kind": "dumbbell", "senders": 64, "bottleneck_rate": "2500 Mbps" });
    let star = json!({ "kind": "star", "hosts": 129 });
    for (topology, workload, words) in [
        (dumbbell, long_lived, "64 flows at their minimum rate offer 2.56 times"),
        (star, incast, "128 flows at their minimum rate offer 1.28 times"),
    ] {
        let class = workload["kind"].as_str().unwrap().to_owned();
        let scenario = json!({
            "environment": "lossless_datacentre", "transport": { "kind": "dcqcn" },
            "topology": topology, "workload": workload, "time_limit": "10 us",
        });
        assert_warns(&scenario, words, json!({ "transport": { "min_rate": "10 Mbps" } }));
        assert_warns(&scenario, words, json!({ "transports": { class: "tcp" } }));
    }
}

#[test]
fn failures_on_paths_of_which_others_exist() {
    let scenario = |topology: Value, link: &str| {
        json!({
            "topology": topology, "transport": "dctcp", "time_limit": "1 ms",
            "failures": [{ "link": link, "fails": "100 us" }],
            "workload": crate::common::flows(&[(0.0, 0, 1, 1_000)]),
        })
    };
    let several =
        scenario(json!({ "kind": "leaf_spine", "leaves": 2, "spines": 2 }), "leaf0->spine0");
    let one = scenario(json!({ "kind": "dumbbell" }), "left->right");
    let words = "are lost until routes avoid it";
    assert_warns(&several, words, json!({ "convergence": "1 us" }));
    assert!(!warnings(&one).iter().any(|line| line.contains(words)), "no route avoids the link");
}

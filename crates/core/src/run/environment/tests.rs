//! Tests of environments.

use serde_json::{Value, json};

use super::*;
use crate::base::run_control::RunControl;
use crate::run::Prepared;
use crate::run::scenario::Scenario;

const NAMED: [&str; 3] = ["internet", "lossy_datacentre", "lossless_datacentre"];

/// Returns the complete scenario of a transport on a topology, with changes.
fn complete(topology: &Value, transport: &Value, changes: &Value) -> Value {
    let flow = json!({ "source": 0, "target": 1, "size": "1 MB", "deadline": "1 s" });
    let mut scenario = json!({
        "topology": topology, "transport": transport,
        "workload": { "kind": "flows", "flows": [flow] },
    });
    add_defaults(&mut scenario, changes);
    Scenario::parse(&scenario.to_string()).unwrap_or_else(|it| panic!("{transport}: {it}")).show()
}

fn on_a_star(transport: &Value, changes: &Value) -> Value {
    complete(&json!("star"), transport, changes)
}

#[test]
fn every_transport_runs_in_every_environment_and_reads_back() {
    let long = json!({ "kind": "dumbbell", "bottleneck_delay": "20 ms" });
    for environment in NAMED {
        for topology in [json!("star"), json!("link"), json!("leaf_spine"), long.clone()] {
            for kind in controllers::Config::built_in() {
                let scenario =
                    complete(&topology, &json!(kind), &json!({ "environment": environment }));
                assert_eq!(scenario["environment"], environment);
                let again = Scenario::parse(&scenario.to_string()).unwrap().show();
                assert_eq!(again, scenario, "{kind} in {environment}");
            }
        }
    }
}

#[test]
fn only_what_belongs_to_the_law_differs_between_transports() {
    for environment in NAMED {
        let reliability = |kind: &str| {
            let mut scenario = on_a_star(&json!(kind), &json!({ "environment": environment }));
            endpoint(&mut scenario["transport"])["reliability"].clone()
        };
        let common = reliability("dctcp");
        for kind in controllers::Config::built_in() {
            let own = law(&json!(kind)).unwrap().own_reliability();
            let options = linux::recovery_options(Recovery::Rack, &json!("1 s"));
            for (field, value) in reliability(kind).as_object().unwrap() {
                let is_option = options.get(field).is_some() || field == SACK_BLOCKS;
                let follows_recovery = own.contains(&RECOVERY) && is_option;
                let is_own = own.contains(&field.as_str()) || follows_recovery;
                assert!(is_own || *value == common[field], "{environment}, {kind}: {field}");
            }
        }
    }
}

#[test]
fn a_transport_in_python_with_credits_detects_losses_at_the_receiver() {
    let recovery = |scheduler: &str| {
        let controller = json!({ "name": "own.py:Own", "text": "" });
        let own =
            json!({ "kind": "python", "controller": controller, "credit_scheduler": scheduler });
        let scenario = on_a_star(&own, &json!({ "environment": "lossy_datacentre" }));
        scenario["transport"]["reliability"]["recovery"].clone()
    };
    assert_eq!(recovery("none"), "rack");
    assert_eq!(recovery("Tokens"), "selective_repeat");
}

#[test]
fn the_environment_follows_the_network_and_what_transports_need() {
    let chosen = |topology: &Value, transport: &str| {
        complete(topology, &json!(transport), &json!({ "environment": "automatic" }))["environment"]
            .clone()
    };
    let long = json!({ "kind": "link", "delay": "500 us" });
    let short = json!({ "kind": "link", "delay": "499 us" });
    assert_eq!(chosen(&long, "timely"), "internet");
    assert_eq!(chosen(&short, "timely"), "lossless_datacentre");
    assert_eq!(chosen(&short, "cubic"), "lossy_datacentre");
    // A packet of 1500 B and its ACK take 1.2 ms.
    let slow = json!({ "kind": "link", "rate": "10 Mbps", "delay": "50 us" });
    assert_eq!(chosen(&slow, "cubic"), "internet");
    let mixed = json!({
        "environment": "automatic",
        "transports": { "bulk": "dcqcn" },
        "workload": { "kind": "permutation", "class": "bulk" },
    });
    let mut scenario = json!({ "topology": "star", "transport": "dctcp" });
    add_defaults(&mut scenario, &mixed);
    let scenario = Scenario::parse(&scenario.to_string()).unwrap().show();
    assert_eq!(scenario["environment"], "lossless_datacentre");
    assert_eq!(scenario["transport"]["reliability"]["recovery"], "go_back_n");
}

#[test]
fn transports_that_switches_drop_beside_paused_ones_recover_as_linux_hosts() {
    let recoveries = |changes: Value| {
        let mut scenario = json!({
            "topology": "star", "environment": "lossless_datacentre", "transport": "cubic",
            "transports": { "rdma": "dcqcn" }, "traffic_classes": { "rdma": 3, "tcp": 1 },
            "switch": { "pause": { "classes": [3] } },
            "workload": { "kind": "mixed", "parts": [
                { "kind": "permutation", "class": "rdma" }, { "kind": "permutation", "class": "tcp" },
            ] },
        });
        for (field, value) in changes.as_object().unwrap() {
            scenario[field] = value.clone();
        }
        let scenario = Scenario::parse(&scenario.to_string()).unwrap().show();
        let recovery = |transport: &Value| transport["reliability"]["recovery"].clone();
        let by_class = scenario["transports"].as_object().unwrap().values().map(recovery);
        std::iter::once(recovery(&scenario["transport"])).chain(by_class).collect::<Vec<_>>()
    };
    assert_eq!(recoveries(json!({})), ["rack", "go_back_n"]);
    let exchanged = json!({ "transport": "dcqcn", "transports": { "tcp": "cubic" } });
    assert_eq!(recoveries(exchanged), ["go_back_n", "rack"]);
    // Classes without a number are in 0.
    assert_eq!(recoveries(json!({ "traffic_classes": { "rdma": 3 } })), ["rack", "go_back_n"]);
    let exchanged = json!({
        "transport": "dcqcn", "transports": { "tcp": "cubic" }, "traffic_classes": { "tcp": 1 },
        "switch": { "pause": { "classes": [0] } },
    });
    assert_eq!(recoveries(exchanged), ["go_back_n", "rack"]);
    for paused in [json!({ "pause": { "classes": [1, 3] } }), json!({ "pause": {} }), json!({})] {
        assert_eq!(recoveries(json!({ "switch": paused })), ["go_back_n", "go_back_n"]);
    }
    let own = json!({ "transport": { "kind": "cubic", "reliability": { "recovery": "reno" } } });
    assert_eq!(recoveries(own), ["reno", "go_back_n"]);
    let switch = json!({ "shared_buffer": "9 MB", "pause": { "classes": [3] } });
    let internet = recoveries(json!({ "environment": "internet", "switch": switch }));
    assert_eq!(internet, ["rack", "rack"]);
}

#[test]
fn laws_are_those_of_todays_hosts() {
    let law = |environment: &str, kind: &str| {
        on_a_star(&json!(kind), &json!({ "environment": environment }))["transport"].clone()
    };
    for environment in ["internet", "lossy_datacentre"] {
        assert_eq!(law(environment, "cubic")["variant"], "linux");
        assert_eq!(law(environment, "vegas")["variant"], "linux");
        assert_eq!(law(environment, "high_speed_tcp")["decrease"], "table");
        assert_eq!(law(environment, "bbr3")["offload_quanta"], 3);
        assert_eq!(law(environment, "dctcp")["min_window"], 2);
        assert_eq!(law(environment, "d2tcp")["dctcp"]["min_window"], 2);
    }
    assert_eq!(law("internet", "jump_start")["syn_window"], "65.535 KB");
    assert_eq!(law("lossy_datacentre", "jump_start")["syn_window"], "none");
    assert_eq!(law("internet", "quick_start")["limit_ssthresh"], true);
    assert_eq!(law("lossless_datacentre", "cubic")["variant"], "rfc9438");
}

#[test]
fn papers_have_the_declared_defaults() {
    for kind in controllers::Config::built_in() {
        let scenario = on_a_star(&json!(kind), &json!({ "environment": "paper" }));
        assert_eq!(scenario["transport"], law(&json!(kind)).unwrap().show(), "{kind}");
    }
}

#[test]
fn flows_of_every_transport_share_their_host_in_turn_and_tcp_validates_its_window() {
    for (environment, validates) in NAMED.into_iter().zip([true, true, false]) {
        // Connections end only in the Internet's.
        let cached_rtt = if environment == "internet" { "linux" } else { "none" };
        for kind in controllers::Config::built_in() {
            let mut scenario = on_a_star(&json!(kind), &json!({ "environment": environment }));
            assert_eq!(scenario["host"]["service"], "fair", "{kind} in {environment}");
            let reliability = &endpoint(&mut scenario["transport"])["reliability"];
            assert_eq!(reliability["window_validation"], validates, "{kind} in {environment}");
            let restart = if validates { "halving" } else { "none" };
            assert_eq!(reliability["idle_restart"], restart, "{kind} in {environment}");
            assert_eq!(reliability["cached_rtt"], cached_rtt, "{kind} in {environment}");
            assert_eq!(reliability["cached_ssthresh"], false, "{kind} in {environment}");
        }
    }
}

#[test]
fn explicit_values_stay() {
    let own = json!({ "kind": "cubic", "reliability": { "min_rto": "3 ms" } });
    let changes = json!({
        "environment": "internet",
        "reliability": { "min_rto": "4 ms", "max_rto": "7 s", "recovery": "new_reno" },
        "packet": { "payload": "500 B" },
        "host": { "service": "fifo" },
        "queue": { "kind": "drop_tail", "capacity": "none" },
    });
    let scenario = on_a_star(&own, &changes);
    let reliability = &scenario["transport"]["reliability"];
    assert_eq!(reliability["min_rto"], "3 ms");
    assert_eq!(reliability["max_rto"], "7 s");
    // Options of RACK do not go with another recovery.
    assert_eq!(reliability["recovery"], "new_reno");
    assert_eq!(reliability["undo"], false);
    assert_eq!(reliability["handshake"], true);
    assert_eq!(scenario["packet"]["payload"], "500 B");
    assert_eq!(scenario["host"]["service"], "fifo");
    assert_eq!(scenario["packet"]["header"], "52 B");
    assert_eq!(scenario["queue"]["capacity"], "none");
}

#[test]
fn every_loss_recovery_may_be_chosen() {
    for environment in NAMED {
        for recovery in ["selective_repeat", "rack", "new_reno", "reno", "go_back_n"] {
            let changes =
                json!({ "environment": environment, "reliability": { "recovery": recovery } });
            let scenario = on_a_star(&json!("tcp"), &changes);
            assert_eq!(scenario["transport"]["reliability"]["recovery"], recovery);
        }
    }
}

#[test]
fn sprayed_packets_that_overtake_others_are_not_taken_for_lost() {
    let changes = json!({ "environment": "lossless_datacentre", "routing": "spray_random" });
    let reliability = &on_a_star(&json!("dcqcn"), &changes)["transport"]["reliability"];
    assert_eq!(reliability["recovery"], "selective_repeat");
    assert_eq!(reliability["duplicate_acks"], "none");
}

#[test]
fn switches_of_data_centres_hash_hop_by_hop() {
    let routing = |topology: &str, environment: &str, given: &Value| {
        let mut changes = json!({ "environment": environment });
        add_defaults(&mut changes, given);
        complete(&json!(topology), &json!("pdq"), &changes)["routing"].clone()
    };
    for environment in ["lossy_datacentre", "lossless_datacentre"] {
        assert_eq!(routing("leaf_spine", environment, &json!({})), "ecmp");
        let given = json!({ "routing": "flow_hash" });
        assert_eq!(routing("leaf_spine", environment, &given), "flow_hash");
        assert_eq!(routing("link", environment, &json!({})), "flow_hash");
    }
    assert_eq!(routing("leaf_spine", "paper", &json!({})), "flow_hash");
}

#[test]
fn packets_are_sprayed_if_all_transports_were_designed_for_that() {
    let routing = |topology: &str, transport: &str, changes: &Value| {
        complete(&json!(topology), &json!(transport), changes)["routing"].clone()
    };
    for environment in NAMED {
        let changes = json!({ "environment": environment });
        for kind in controllers::Config::built_in() {
            let is_sprayed = routing("leaf_spine", kind, &changes) == "entropy";
            assert_eq!(is_sprayed, ["ndp", "uet"].contains(&kind), "{kind} in {environment}");
        }
        assert_eq!(routing("link", "ndp", &changes), "flow_hash");
        let beside = |other: &str| {
            let mut changes = changes.clone();
            add_defaults(&mut changes, &json!({ "transports": { "flows": other } }));
            routing("leaf_spine", "ndp", &changes) == "entropy"
        };
        assert!(beside("uet") && !beside("dctcp"), "{environment}");
        let given = json!({ "environment": environment, "routing": "ecmp" });
        assert_eq!(routing("leaf_spine", "uet", &given), "ecmp");
    }
    assert_eq!(routing("leaf_spine", "ndp", &json!({ "environment": "paper" })), "flow_hash");
}

/// Returns the queues at switches and at hosts of a transport on a star.
fn queues(transport: &str, changes: &Value) -> [Value; 2] {
    let scenario = Scenario::parse(&on_a_star(&json!(transport), changes).to_string()).unwrap();
    scenario.queues(scenario.transport.as_ref().unwrap()).map(|queue| queue.show())
}

#[test]
fn thresholds_and_rates_of_data_centres_follow_the_link() {
    for environment in ["lossy_datacentre", "lossless_datacentre"] {
        let changes = json!({ "environment": environment });
        for kind in ["dctcp", "d2tcp", "pias"] {
            for queue in queues(kind, &changes) {
                assert_eq!(queue["threshold"], "24 us", "{kind}");
                assert_eq!(queue["least_threshold"], "97.5 KB", "{kind}");
            }
        }
        let red = |queue: &Value| ["kmin", "kmax", "pmax"].map(|field| queue[field].clone());
        let scaled = [json!("32 us"), json!("128 us"), json!(0.2)];
        assert_eq!(red(&queues("dcqcn", &changes)[0]), scaled);
        let given = |queue: Value| {
            let changes = json!({ "environment": environment, "queue": queue });
            queues("dcqcn", &changes)[0].clone()
        };
        assert_eq!(red(&given(json!("dcqcn_red"))), scaled);
        let own = [json!("5 KB"), json!("9 KB"), json!(0.01)];
        assert_eq!(red(&given(json!({ "kind": "dcqcn_red", "kmax": "9 KB" }))), own);
        assert_eq!(given(json!("strict_priority"))["threshold"], "none");

        let law = |kind: &str| on_a_star(&json!(kind), &changes)["transport"].clone();
        assert_eq!(law("dcqcn")["additive_increase"], "0.02 %");
        assert_eq!(law("dcqcn")["hyper_increase"], "0.2 %");
        assert_eq!(law("dcqcn")["min_rate"], "1 %");
        for kind in ["timely", "patched_timely"] {
            assert_eq!(law(kind)["delta"], "0.1 %");
            assert_eq!(law(kind)["segments"]["min_rate"], "1 %");
        }
        for kind in ["swift", "timely", "patched_timely"] {
            assert_eq!(law(kind)["above_base_rtt"], true);
        }
        // Targets that a scenario gives are absolute.
        for own in [
            json!({ "kind": "swift", "base_target": "50 us" }),
            json!({ "kind": "timely", "t_high": "1 ms" }),
        ] {
            assert_eq!(on_a_star(&own, &changes)["transport"]["above_base_rtt"], false, "{own}");
        }
        // So is an additive increase.
        assert_eq!(law("hpcc")["least_increase"], "80 B");
        let own = json!({ "kind": "hpcc", "additive_increase": "1 Mbps" });
        assert_eq!(on_a_star(&own, &changes)["transport"]["least_increase"], "0 B");
        // Queues of pHost have products of the link; a given capacity stays.
        let given = |queue: Value| {
            let changes = json!({ "environment": environment, "queue": queue });
            queues("phost", &changes)[0]["capacity"].clone()
        };
        assert_eq!(given(json!({ "classes": 4 })), "6.3 BDP");
        assert_eq!(given(json!({ "capacity": "9 KB" })), "9 KB");
    }
    for environment in ["paper", "internet"] {
        let changes = json!({ "environment": environment });
        assert_eq!(queues("dctcp", &changes)[0]["threshold"], "none");
        assert_eq!(queues("pias", &changes)[0]["threshold"], "65 packets");
        assert_eq!(queues("dcqcn", &changes)[0]["kmin"], "5 KB");
    }
}

#[test]
fn red_counts_full_packets_except_in_paper() {
    let mean = |environment: &str, queue: Value| {
        let changes = json!({ "environment": environment, "queue": queue });
        queues("tcp", &changes)[0]["mean_packet"].clone()
    };
    for (environment, full) in NAMED.into_iter().zip(["1.5 KB", "1.5 KB", "1.086 KB"]) {
        assert_eq!(mean(environment, json!("red")), full, "{environment}");
        let given = json!({ "kind": "red", "mean_packet": "500 B" });
        assert_eq!(mean(environment, given), "500 B", "{environment}");
    }
    assert_eq!(mean("paper", json!("red")), "1 KB");
}

#[test]
fn routers_of_data_centres_start_with_the_base_rtt() {
    let router = |transport: &str, changes: Value| {
        let mut changes = changes;
        changes["environment"] = json!("lossy_datacentre");
        on_a_star(&json!(transport), &changes)["router"].clone()
    };
    let rcp = router("rcp", json!({}));
    assert_eq!(rcp["preset"], "as_xcp");
    let rtt = Duration::read(&rcp["initial_rtt"]).unwrap();
    assert!(rtt > Duration::from_micros(4) && rtt < Duration::from_micros(10), "{rtt}");
    assert_eq!(router("rcp", json!({ "router": "rcp" })), rcp);
    assert_eq!(router("pdq", json!({}))["initial_rtt"], rcp["initial_rtt"]);
    assert_eq!(router("xcp", json!({}))["initial_interval"], rcp["initial_rtt"]);
    let own = json!({ "router": { "kind": "rcp", "initial_rtt": "1 ms" } });
    assert_eq!(router("rcp", own)["initial_rtt"], "1 ms");
    assert_eq!(router("dctcp", json!({})), "none");
}

#[test]
fn pfabric_follows_the_bandwidth_delay_product() {
    for environment in ["lossy_datacentre", "lossless_datacentre"] {
        let packet = json!({ "payload": "960 B", "header": "40 B", "ack": "40 B" });
        let changes = json!({ "environment": environment, "packet": packet });
        let law = on_a_star(&json!("pfabric"), &changes)["transport"].clone();
        assert_eq!([&law["initial_window"], &law["max_window"]], ["1 BDP", "2 BDP"]);
        // Two links of 10 Gb/s and 1 us: 2 us and 832 ns each, times three.
        assert_eq!(law["reliability"]["fixed_rto"], "16.992 us");
        for queue in queues("pfabric", &changes) {
            assert_eq!(queue["capacity"], "2 BDP");
        }
        let own = json!({ "kind": "pfabric", "reliability": { "fixed_rto": "45 us" } });
        assert_eq!(on_a_star(&own, &changes)["transport"]["reliability"]["fixed_rto"], "45 us");
    }
    let changes = json!({ "environment": "internet" });
    assert_eq!(on_a_star(&json!("pfabric"), &changes)["transport"]["initial_window"], 12);
}

#[test]
fn every_discipline_without_a_limit_gets_one() {
    for kind in disciplines::Config::NAMES {
        let Ok(declared) = disciplines::Config::read(&json!({ "kind": kind })) else { continue };
        let mut queue = json!(kind);
        add_capacity(&mut queue, &json!("15 KB"));
        let limited = disciplines::Config::read(&queue).unwrap();
        let has_capacity = declared.show().get("capacity").is_some();
        assert!(limited.capacity().is_some() || !has_capacity, "{kind}");
    }
}

#[test]
fn queues_on_the_internet_have_the_product_of_their_link_or_manage_their_length() {
    for (kind, capacity) in
        [("drop_tail", "1 BDP, at least 10 packets"), ("codel", "1000 packets"), ("red", "none")]
    {
        for (queue, expected) in [
            (json!({ "kind": kind }), capacity),
            (json!({ "kind": kind, "capacity": "9 KB" }), "9 KB"),
        ] {
            let changes = json!({ "environment": "internet", "queue": queue });
            let scenario = on_a_star(&json!("cubic"), &changes);
            assert_eq!(scenario["queue"]["capacity"], expected, "{kind}");
        }
    }
}

#[test]
fn a_switch_drops_or_pauses() {
    let switch = |environment: &str, given: &Value| {
        on_a_star(&json!("dctcp"), &json!({ "environment": environment, "switch": given }))["switch"].clone()
    };
    assert_eq!(switch("lossy_datacentre", &json!({}))["shared_buffer"], "12 MB");
    assert_eq!(switch("lossy_datacentre", &json!({}))["pause"], "none");
    assert_ne!(switch("lossless_datacentre", &json!({}))["pause"], "none");
    assert_eq!(switch("lossless_datacentre", &json!({ "alpha": 2.0 }))["pause"], "none");
    assert_eq!(switch("lossy_datacentre", &json!({ "pause": {} }))["alpha"], "none");
    assert_eq!(switch("lossless_datacentre", &json!({ "shared_buffer": "none" }))["pause"], "none");
}

#[test]
fn the_catalogue_lists_the_values_of_each_environment() {
    let entries = catalogue::catalogue();
    assert_eq!(entries.iter().map(|it| it.name).collect::<Vec<_>>(), NAMED);
    for environment in &entries {
        assert!(!environment.about.is_empty(), "{}", environment.name);
        for entry in &environment.entries {
            let is_declared = entry.about.starts_with("In `paper`: ");
            assert!(is_declared || entry.name == "queue.capacity", "{}", entry.name);
        }
    }
    let value = |environment: usize, name: &str| {
        let entry = entries[environment].entries.iter().find(|entry| entry.name == name);
        entry.unwrap_or_else(|| panic!("{name}")).clone()
    };
    assert_eq!(value(0, "reliability.min_rto").default, Some(json!("200 ms")));
    assert_eq!(value(0, "queue.capacity").default, Some(json!("1 BDP, at least 10 packets")));
    assert_eq!(value(0, "queue.codel.capacity").default, Some(json!("1000 packets")));
    assert_eq!(value(2, "switch.pause.alpha_by_rate").default, Some(json!(true)));
    assert_eq!(
        value(1, "switch.shared_buffer").default,
        Some(json!("12 MB (10 Gb/s), 32 MB (100 Gb/s)"))
    );
    assert_eq!(value(2, "packet.header").default, Some(json!("62 B")));
    assert_eq!(value(1, "cubic.window.hystart").default, Some(json!("linux")));
}

#[test]
fn a_smaller_minimum_rto_limits_the_margin_and_the_probe_timer() {
    let reliability = |environment: &str, min_rto: &str| {
        let transport = json!({ "kind": "tcp", "reliability": { "min_rto": min_rto } });
        let changes = json!({ "environment": environment, "transport": transport });
        on_a_star(&transport, &changes)["transport"]["reliability"].clone()
    };
    for (environment, min_rto, expected) in [
        ("internet", "50 ms", ["50 ms", "50 ms"]),
        ("internet", "1 s", ["200 ms", "1 s"]),
        ("lossy_datacentre", "100 us", ["100 us", "100 us"]),
    ] {
        let reliability = reliability(environment, min_rto);
        let margin_and_probe = ["timer_granularity", "tail_probe"].map(|name| &reliability[name]);
        assert_eq!(margin_and_probe, expected, "{environment}: {min_rto}");
    }
}

#[test]
fn errors_name_the_field() {
    let problem = |changes: &Value| {
        let mut scenario =
            json!({ "topology": "star", "transport": "tcp", "workload": "permutation" });
        add_defaults(&mut scenario, changes);
        Scenario::parse(&scenario.to_string()).unwrap_err().to_string()
    };
    let line = problem(&json!({ "environment": "internett" }));
    assert!(line.starts_with("environment: expected one of \"automatic\", \"paper\""), "{line}");
    let line = problem(&json!({ "reliability": { "min_rtt": "1 s" } }));
    assert!(line.starts_with("reliability.min_rtt: unknown field"), "{line}");
    let line = problem(&json!({ "reliability": { "min_rto": "soon" } }));
    assert!(line.contains("min_rto: expected"), "{line}");
}

#[test]
fn queues_have_a_limit() {
    for environment in NAMED {
        for kind in controllers::Config::built_in() {
            let changes = json!({ "environment": environment });
            let scenario = on_a_star(&json!(kind), &changes);
            let scenario = Scenario::parse(&scenario.to_string()).unwrap();
            let [queue, _] = scenario.queues(scenario.transport.as_ref().unwrap());
            assert!(
                queue.capacity().is_some() || scenario.switch.shared_buffer.is_some(),
                "{kind} in {environment}"
            );
        }
    }
}

/// Returns the FCTs in seconds of the flows of a scenario.
fn fcts(scenario: &Value) -> Vec<f64> {
    let scenario = Scenario::parse(&scenario.to_string()).unwrap();
    Prepared::new(scenario).run(1, &RunControl::default()).unwrap().flows.fct_s
}

#[test]
fn a_flow_alone_fills_its_path_at_any_rate_and_distance() {
    for (gbps, delay) in [(10, "1 us"), (25, "2 us"), (100, "30 us")] {
        let flow = json!({ "source": 0, "target": 1, "size": "20 MB" });
        for transport in [
            json!("ndp"),
            json!("phost"),
            json!("homa"),
            json!("uet"),
            json!({ "kind": "uet", "control": "rccc" }),
            json!({ "kind": "uet", "control": "both" }),
            json!({ "kind": "uet", "trimming": false }),
        ] {
            let scenario = json!({
                "topology": { "kind": "star", "hosts": 2, "rate": format!("{gbps} Gbps"), "delay": delay },
                "transport": transport,
                "workload": { "kind": "flows", "flows": [flow] },
            });
            let times = fcts(&scenario)[0] / (8.0 * 20e6 / (1e9 * f64::from(gbps)));
            assert!(times < 1.2, "{transport} at {gbps} Gb/s and {delay}: {times}");
        }
    }
}

#[test]
fn powertcp_is_fair_to_flows_that_start_together() {
    for kind in ["powertcp", "theta_powertcp"] {
        let flow = |source: u32| json!({ "source": source, "target": 0, "size": "10 MB" });
        let scenario = json!({
            "topology": { "kind": "star", "hosts": 9, "rate": "100 Gbps", "delay": "5 us" },
            "transport": kind,
            "workload": { "kind": "flows", "flows": (1..9).map(flow).collect::<Vec<_>>() },
        });
        let mut times = fcts(&scenario);
        times.sort_by(f64::total_cmp);
        assert!(times[7] < 1.1 * times[0], "{kind}: {times:?}");
    }
}

#[test]
fn parameters_alone_change_the_queue_that_a_transport_was_designed_for() {
    for environment in NAMED.into_iter().chain(["paper"]) {
        for kind in controllers::Config::built_in() {
            let queue = |changes: Value| {
                let changes = with_environment(changes, environment);
                let scenario = on_a_star(&json!(kind), &changes);
                let scenario = Scenario::parse(&scenario.to_string()).unwrap();
                let [queue, _] = scenario.queues(scenario.transport.as_ref().unwrap());
                queue.show()
            };
            let mut expected = queue(json!({}));
            if expected.get("capacity").is_none() {
                continue;
            }
            expected["capacity"] = json!("50 KB");
            let changed = queue(json!({ "queue": { "capacity": "50 KB" } }));
            assert_eq!(changed, expected, "{kind} in {environment}");
        }
    }
    let two = json!({
        "topology": "star", "transport": "dctcp", "workload": "permutation",
        "transports": { "a": "swift" }, "queue": { "capacity": "50 KB" },
    });
    let problem = Scenario::parse(&two.to_string()).unwrap_err().to_string();
    assert_eq!(
        problem,
        "queue.kind: missing; of the default queues, that of dctcp is `ecn_threshold`, that of swift is \
         `drop_tail`: give `queue.kind`"
    );
}

fn with_environment(mut changes: Value, environment: &str) -> Value {
    changes["environment"] = json!(environment);
    changes
}

#[test]
fn the_initial_rto_exceeds_the_base_rtt() {
    let rto = |delay: &str| {
        let topology = json!({ "kind": "star", "delay": delay });
        let changes = json!({ "environment": "lossy_datacentre" });
        let scenario = complete(&topology, &json!("dctcp"), &changes);
        scenario["transport"]["reliability"]["initial_rto"].clone()
    };
    assert_eq!(rto("2 us"), "10 ms");
    let rto = Duration::read(&rto("10 ms")).unwrap();
    assert!(Duration::from_millis(80) < rto && rto < Duration::from_millis(81), "{rto}");
}

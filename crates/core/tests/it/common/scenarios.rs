//! Random scenarios over all components, each drawn from a seed.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Value, json};
use sojourn_core::base::random::Random;
use sojourn_core::base::schema::Parameter;
use sojourn_core::topology;
use sojourn_core::traffic::collectives;
use sojourn_core::transport::controllers;

use super::disciplines::{discipline, keep_credits_with_data};
use super::paths::{balance_loads, choose_paths};
use super::receiver_driven::set_credit;
use super::with;

/// Returns one of the choices.
pub(super) fn pick<T: Clone>(random: &mut Random, choices: &[T]) -> T {
    choices[random.below(choices.len() as u64) as usize].clone()
}

/// A topology and its number of hosts.
fn network(random: &mut Random) -> (Value, u32) {
    let rate = pick(random, &["100 Mbps", "1 Gbps", "10 Gbps", "97 Gbps"]);
    let slower = pick(random, &["50 Mbps", "1 Gbps", "7 Gbps"]);
    let delay = pick(random, &["0 ns", "300 ns", "1 us", "50 us"]);
    let loss = pick(random, &[0.0, 0.0, 0.01, 0.1]);
    match pick(random, topology::Config::NAMES) {
        "link" => {
            let link = json!({
                "kind": "link", "rate": slower, "delay": delay,
                "loss": loss, "ack_loss": pick(random, &[0.0, 0.05]),
            });
            (with(&with(&link, losses(random, loss)), rates(random)), 2)
        }
        "dumbbell" => {
            let dumbbell = json!({
                "kind": "dumbbell", "senders": 3, "receivers": 2, "rate": rate, "delay": delay,
                "bottleneck_rate": slower, "loss": loss, "ack_loss": pick(random, &[0.0, 0.05]),
            });
            (with(&with(&dumbbell, losses(random, loss)), rates(random)), 5)
        }
        "star" => (json!({ "kind": "star", "hosts": 5, "rate": rate, "delay": delay }), 5),
        "parking_lot" => (json!({ "kind": "parking_lot", "rate": rate, "delay": delay }), 4),
        "leaf_spine" => {
            (json!({ "kind": "leaf_spine", "leaves": 3, "hosts_per_leaf": 2, "spines": 2 }), 6)
        }
        "fat_tree" => (json!({ "kind": "fat_tree", "k": 4, "rate": rate, "delay": delay }), 16),
        "clos" => (
            json!({
                "kind": "clos", "pods": 2, "edges_per_pod": 2, "hosts_per_edge": 2,
                "aggregations_per_pod": 2, "cores": 4, "host_rate": rate, "core_delay": delay,
            }),
            8,
        ),
        "graph" => {
            let bursts = pick(random, &[",", "0.02,0.3"]);
            let text = format!(
                "from,to,rate,delay,loss,reverse_rate,reverse_delay,enter,leave\n\
                 a,s,{rate},{delay},{loss},{slower},1 us,,\n\
                 b,s,{slower},1 us,0,{rate},{delay},,\n\
                 s,t,{rate},{delay},0,{slower},2 us,{bursts}\n\
                 s,t,{slower},{delay},0,{slower},2 us,,\nt,c,1 Gbps,0 ns,0,1 Gbps,0 ns,,\n"
            );
            (json!({ "kind": "graph", "file": { "name": "graph.csv", "text": text } }), 3)
        }
        other => panic!("add a generator of a random `{other}` here"),
    }
}

/// Listed or bursty losses, or none, if there are no random losses.
fn losses(random: &mut Random, loss: f64) -> Value {
    match random.below(3) {
        0 if loss == 0.0 => {
            let mut text = "flow,segment,time\n".to_owned();
            for flow in 0..5 {
                let (segment, copies) = (random.below(20), random.below(3) + 1);
                (1..=copies).for_each(|time| writeln!(text, "{flow},{segment},{time}").unwrap());
            }
            json!({ "losses": { "name": "losses.csv", "text": text } })
        }
        1 if loss == 0.0 => {
            json!({ "bursts": { "enter": 0.02, "leave": pick(random, &[0.2, 1.0]), "loss_bad": 0.7 } })
        }
        _ => json!({}),
    }
}

/// A rate trace, or null.
fn rates(random: &mut Random) -> Value {
    let mut text = String::new();
    match random.below(4) {
        0 => {
            text += "time_s,rate_bps\n";
            for half_ms in 0..random.below(40) {
                let rate = pick(random, &["0", "3e7", "1e9", "8.1e9"]);
                writeln!(text, "{},{rate}", half_ms as f64 * 5e-4).unwrap();
            }
            text += "0.02,4e8\n";
            // The first row must be at time 0.
            text = text.replace("rate_bps\n0.02", "rate_bps\n0");
        }
        1 => {
            for ms in 0..=random.below(4) + 1 {
                let packets = if ms == 1 { 40 } else { random.below(30) };
                (0..packets).for_each(|_| writeln!(text, "{ms}").unwrap());
            }
        }
        _ => return json!({}),
    }
    json!({ "rate_trace": { "name": "rates", "text": text } })
}

/// A delay trace.
fn delays(random: &mut Random) -> Value {
    let mut text = "time_s,delay_s\n".to_owned();
    for half_ms in 0..=random.below(40) {
        let delay = pick(random, &["0", "3e-7", "5e-5", "0.002"]);
        writeln!(text, "{},{delay}", half_ms as f64 * 5e-4).unwrap();
    }
    json!({ "name": "delays", "text": text })
}

fn switch(random: &mut Random) -> Value {
    match random.below(5) {
        0 => json!({ "control_priority": true }),
        1 => json!({ "shared_buffer": "20 KB" }),
        2 => json!({ "shared_buffer": "60 KB", "alpha": 0.5, "control_priority": true }),
        3 => {
            json!({ "shared_buffer": "20 MB", "pause": { "alpha": pick(random, &[0.001, 0.125]) } })
        }
        _ => json!({}),
    }
}

fn workload(random: &mut Random, hosts: u32) -> Value {
    let mut text = "start_s,source,target,size_bytes,deadline_s\n".to_owned();
    let mut start = 0.0;
    for i in 0..=random.below(20) {
        let source = random.below(u64::from(hosts));
        let target = (source + 1 + random.below(u64::from(hosts) - 1)) % u64::from(hosts);
        let size = pick(random, &[1, 999, 1000, 1001, 20_000, 150_000]);
        // At least one flow has a deadline, for transports that require deadlines.
        let deadline = if i == 0 { "0.01" } else { pick(random, &["", "0.0001", "0.001", "0.1"]) };
        writeln!(text, "{start:.12},{source},{target},{size},{deadline}").unwrap();
        let gap = pick(random, &[0.0, 1e-5, 1e-3]);
        start += random.exponential(gap);
    }
    let trace = json!({ "kind": "trace", "file": { "name": "flows.csv", "text": text } });
    // With a few RPCs or collective operations at the same time.
    let sizes = json!({ "kind": "uniform", "min": "1 B", "max": "20 KB" });
    let calls = pick(random, &[json!({ "load": 0.1 }), json!({ "outstanding": 2 })]);
    let mut pattern = calls;
    pattern["calls"] = json!(10);
    pattern["allow_overload"] = json!(true);
    pattern["peers"] = pick(random, &[json!("none"), json!(1)]);
    match random.below(5) {
        0 => {
            let algorithm = pick(random, collectives::Config::NAMES);
            let mut collective = json!({
                "kind": "collective", "algorithm": algorithm, "ranks": 2, "size": "90 KB",
                "placement": pick(random, &["packed", "rail_aligned", "random"]),
                "compute": pick(random, &["0 s", "3 us"]), "jitter": pick(random, &["0 s", "3 us"]),
            });
            if algorithm == "all_to_all" {
                collective["compute"] = json!("0 s");
            }
            json!({ "kind": "mixed", "parts": [trace, collective] })
        }
        1 => {
            let rpc = json!({
                "kind": "rpc", "request": sizes, "response": sizes, "pattern": pattern,
            });
            json!({ "kind": "mixed", "parts": [trace, rpc] })
        }
        2 => {
            let storage = json!({
                "kind": "storage", "blocks": sizes, "device_time": "30 us", "pattern": pattern,
            });
            json!({ "kind": "mixed", "parts": [trace, storage] })
        }
        _ => trace,
    }
}

fn host(random: &mut Random) -> Value {
    let noise = pick(
        random,
        &[
            json!({ "kind": "uniform", "most": "50 us" }),
            json!({ "kind": "gaussian", "deviation": "20 us" }),
            json!({ "kind": "spikes", "probability": 0.1, "size": "1 ms" }),
            json!("none"),
            json!("none"),
            json!("none"),
        ],
    );
    json!({
        "stamps": pick(random, &["handed", "wire"]),
        "clock_granularity": pick(random, &["0 ns", "0 ns", "1 us"]),
        "rtt_noise": noise,
    })
}

fn transport(random: &mut Random, reliability: &Value) -> Value {
    let kind = pick(random, &controllers::Config::built_in().collect::<Vec<_>>());
    let dctcp = json!({ "reliability": reliability });
    let mut transport = match kind {
        "d2tcp" | "pias" => json!({ "kind": kind, "dctcp": dctcp }),
        _ => json!({ "kind": kind, "reliability": reliability }),
    };
    if kind == "d2tcp" || kind == "d3" {
        transport["early_termination"] = json!(random.below(2) == 0);
    }
    if kind == "tcp" || kind.ends_with("_tcp") || kind == "cubic" || kind == "vegas" {
        transport["ecn"] = json!(random.below(2) == 0);
        transport["window"] = json!({
            "initial": pick(random, &[1, 10]),
            "hystart": pick(random, &["none", "plus_plus", "linux"]),
            "count_limit": pick(random, &[1, 1000]),
            "max_ssthresh": pick(random, &[json!("none"), json!(8)]),
        });
    }
    if kind == "fast" && random.below(2) == 0 {
        transport["segments"] = json!({ "pacing": pick(random, &["per_packet", "per_burst"]) });
    }
    if kind == "vegas" {
        transport["variant"] = pick(random, &["original", "linux"]).into();
    }
    if kind == "swift" {
        // Where the link or a delayed ACK exceeds the target delay, the window falls to the
        // minimum.
        transport["min_cwnd"] = json!(0.1);
    }
    if kind == "bbr" || kind == "bbr3" {
        transport["unpaced"] = pick(random, &[json!(0), json!(10)]);
    }
    if kind == "bbr" {
        transport["policer"] = json!(random.below(2) == 0);
        transport["aggregation"] = json!(random.below(2) == 0);
    }
    if kind == "constant_rate" {
        transport["window"] = pick(random, &["none", "30 KB"]).into();
    }
    set_credit(random, &mut transport);
    if kind == "pfabric" {
        transport["priority"] = pick(random, &["remaining_size", "size", "bytes_sent"]).into();
        transport["thresholds"] = pick(random, &[json!([]), json!([3, 20])]);
        transport["reliability"]["fixed_rto"] = pick(random, &["none", "45 us", "2 ms"]).into();
        transport["probe_after"] = pick(random, &[json!("none"), json!(2), json!(5)]);
    }
    transport
}

/// Loss recovery parameters.
fn reliability(random: &mut Random, duplicate_acks: &Value) -> Value {
    let mut reliability = json!({
        "recovery": pick(random, &["selective_repeat", "rack", "new_reno", "reno", "go_back_n"]),
        "tail_probe": pick(random, &["none", "200 ms", "20 us"]),
        "proportional_reduction": random.below(2) == 0,
        "rescue": random.below(2) == 0,
        "sack_blocks": pick(random, &[1, 3]),
        "single_reduction": random.below(2) == 0,
        "undo": random.below(2) == 0,
        "duplicate_sack": random.below(2) == 0,
        "frto": random.below(2) == 0,
        "accurate_ecn": random.below(2) == 0,
        "accurate_ecn_option": random.below(2) == 0,
        "quick_acks": pick(random, &[0, 5]),
        "forgiven_syns": random.below(2),
        "linear_syns": pick(random, &[0, 4]),
        "syn_fallback_rto": pick(random, &["none", "15 ms"]),
        "duplicate_acks": duplicate_acks,
        "handshake": random.below(2) == 0,
        "initial_rto": "10 ms",
        "min_rto": "10 ms",
        "max_rto": "50 ms",
        "timestamps": random.below(2) == 0,
        "clock_granularity": pick(random, &["0 s", "2 ms"]),
        "delayed_ack": pick(random, &["none", "none", "1 ms"]),
        "sack_compression": pick(random, &["none", "none", "20 us", "1 ms"]),
        "timer_tick": pick(random, &["0 s", "4 ms", "30 us"]),
        "receive_window": pick(random, &[json!("none"), json!(1), json!(20)]),
    });
    if reliability["recovery"] != "selective_repeat" && reliability["recovery"] != "rack" {
        reliability["tail_probe"] = json!("none");
        reliability["proportional_reduction"] = json!(false);
        reliability["duplicate_sack"] = json!(false);
        reliability["sack_blocks"] = json!(1);
        reliability["sack_compression"] = json!("none");
    }
    if reliability["recovery"] != "selective_repeat" {
        reliability["rescue"] = json!(false);
    }
    if reliability["recovery"] != "rack" {
        reliability["undo"] = json!(false);
    }
    if reliability["undo"] == false {
        reliability["frto"] = json!(false);
    }
    reliability
}

/// Sets the loss recovery parameters that the transport requires.
fn meet_requirements(transport: &mut Value) {
    let kind = transport["kind"].as_str().unwrap().to_owned();
    let kind = kind.as_str();
    // Transports that extend DCTCP have that of DCTCP.
    let Some(reliability) = transport.get_mut("reliability") else { return };
    if ["fair_share", "hpcc", "powertcp", "pcp"].contains(&kind) {
        reliability["delayed_ack"] = json!("none");
        reliability["sack_compression"] = json!("none");
    }
    if ["jump_start", "quick_start", "pcp"].contains(&kind) {
        reliability["handshake"] = json!(true);
    }
    // One ACK for up to 16 packets.
    if ["dcqcn", "timely", "patched_timely"].contains(&kind) && reliability["receive_window"] == 1 {
        reliability["receive_window"] = json!(20);
    }
    if ["expresspass", "homa", "ndp", "phost", "uet"].contains(&kind) {
        reliability["receive_window"] = json!("none");
    }
}

/// Returns the scenario of a seed.
pub fn scenario(seed: u64) -> Value {
    let random = &mut Random::new(seed, "scenario");
    let (topology, hosts) = network(random);
    let mut routing =
        pick(random, &["flow_hash", "flow_hash", "spray_round_robin", "spray_random"]);
    let duplicate_acks = if routing == "flow_hash" { json!(3) } else { json!("none") };
    let reliability = reliability(random, &duplicate_acks);
    let mut transport = transport(random, &reliability);
    let fixed_path = ["expresspass", "fair_share", "pdq", "hpcc", "powertcp"];
    if fixed_path.iter().any(|kind| transport["kind"] == *kind) {
        routing = "flow_hash";
    }
    meet_requirements(&mut transport);
    let is_slow = topology.to_string().contains("Mbps") || topology["rate_trace"].is_object();
    if is_slow && transport["reliability"]["fixed_rto"] == "45 us" {
        // A packet takes longer than a shorter RTO. Retransmissions would arrive faster than they
        // depart, and an unlimited queue would grow forever.
        transport["reliability"]["fixed_rto"] = "2 ms".into();
    }
    let mut scenario = json!({
        "seed": seed,
        "topology": topology.clone(),
        "workload": workload(random, hosts),
        "transport": transport,
        "switch": if topology["kind"] == "link" { json!({}) } else { switch(random) },
        "routing": routing,
        "packet": { "syn": pick(random, &["none", "60 B"]), "sack": random.below(2) == 0, "credit": "84 B" },
        "time_limit": "20 s",
        "host": host(random),
        "samples": { "interval": "1 ms", "flows": [0], "rtts": true, "rtt_flows": [0] },
    });
    if random.below(2) == 0 {
        scenario["queue"] = discipline(random);
    }
    let link = link_name(&scenario, random);
    scenario["samples"]["queues"] = json!([link]);
    scenario["samples"]["links"] = json!([link]);
    limit_priorities(&mut scenario, "queue");
    // D3 routers keep per-flow state, so the flows must not change paths.
    if scenario["transport"]["kind"] == "d3" {
        scenario["routing"] = json!("flow_hash");
    }
    let asks_routers =
        controllers::Config::read(&scenario["transport"]).unwrap().router().is_some();
    if let Some(class) = response_class(&scenario["workload"])
        && !asks_routers
    {
        let beside = pick(random, &["tcp", "dctcp", "pcp", "timely"]);
        // As for other transports: five consecutive SYN losses would otherwise exceed the time
        // limit.
        let rto =
            ["initial_rto", "min_rto", "max_rto"].map(|name| (name, reliability[name].clone()));
        let mut patience: Value = rto.into_iter().collect();
        patience["duplicate_acks"] = duplicate_acks;
        scenario["transports"] = json!({ class: { "kind": beside, "reliability": patience } });
    }
    if random.below(3) == 0 {
        let numbers = [0, 1, 7].map(|number| json!(number));
        let response = response_class(&scenario["workload"]).unwrap_or("trace");
        scenario["traffic_classes"] = json!({
            response: pick(random, &numbers), "trace": pick(random, &numbers),
        });
        let is_lossy = random.below(2) == 0;
        if is_lossy && scenario["switch"].get("pause").is_some() {
            scenario["switch"]["pause"]["classes"] = json!([scenario["traffic_classes"]["trace"]]);
        }
    }
    if ["link", "dumbbell"].contains(&scenario["topology"]["kind"].as_str().unwrap_or_default())
        && random.below(4) == 0
    {
        let topology = scenario["topology"].as_object_mut().unwrap();
        topology.insert("delay_trace".to_owned(), delays(random));
        if topology["kind"] == "link" {
            topology.remove("delay");
        }
    }
    if random.below(3) == 0 {
        scenario["failures"] = failures(random, &scenario["topology"]);
        scenario["convergence"] = pick(random, &["0 s", "7 us", "300 us", "20 ms"]).into();
        if scenario["failures"].to_string().contains("none") {
            // Cut off, a sender that polls once per RTT would do so 10^8 times in 20 seconds.
            scenario["time_limit"] = json!("1 s");
        }
    }
    share_hosts(&mut scenario, seed);
    delay_hosts(&mut scenario, seed);
    share_connections(&mut scenario, seed);
    cache_path_values(&mut scenario, seed);
    expire_pauses(&mut scenario, seed);
    balance_loads(&mut scenario, seed);
    keep_credits_with_data(&mut scenario);
    choose_paths(&mut scenario, seed);
    scenario
}

/// Lets pauses expire, and links lose their frames, in half of the scenarios with pauses.
fn expire_pauses(scenario: &mut Value, seed: u64) {
    let random = &mut Random::new(seed, "scenario/quanta");
    if let Some(pause) = scenario["switch"].get_mut("pause")
        && random.below(2) == 0
    {
        pause["quanta"] = pick(random, &[20, 300, 65_535]).into();
    }
}

/// Maps the priorities of pFabric, which are unbounded, to the classes of a queue that has classes.
fn limit_priorities(scenario: &mut Value, queue: &str) {
    if scenario["transport"]["kind"] == "pfabric" && scenario[queue]["kind"] == "strict_priority" {
        scenario["transport"]["thresholds"] = json!([2, 50]);
    }
}

/// Sets how flows share their host's port, its queue, and whether unused windows grow.
fn share_hosts(scenario: &mut Value, seed: u64) {
    let random = &mut Random::new(seed, "scenario/hosts");
    if random.below(2) == 0 {
        scenario["host"]["service"] =
            pick(random, &[json!("fair"), json!("fair"), json!("round_robin")]);
        scenario["host"]["flow_limit"] = pick(random, &[json!(1), json!(2), json!(7)]);
        if random.below(3) == 0 {
            scenario["host_queue"] = discipline(random);
            limit_priorities(scenario, "host_queue");
        }
    }
    reliability_of(scenario)["window_validation"] = json!(random.below(2) == 0);
}

/// Delays packets of hosts at random in an eighth of the scenarios.
fn delay_hosts(scenario: &mut Value, seed: u64) {
    let random = &mut Random::new(seed, "scenario/jitter");
    let has_hosts = scenario["topology"]["kind"] != "link";
    if random.below(8) == 0 && has_hosts && scenario["switch"].get("pause").is_none() {
        scenario["host"]["jitter"] = pick(random, &["1 us", "600 us"]).into();
    }
}

/// Returns the reliability of the transport, or of the transport that it extends.
fn reliability_of(scenario: &mut Value) -> &mut Value {
    let transport = &mut scenario["transport"];
    let transport =
        if transport.get("dctcp").is_some() { &mut transport["dctcp"] } else { transport };
    &mut transport["reliability"]
}

/// Selects the path values that finished flows cache for later ones.
fn cache_path_values(scenario: &mut Value, seed: u64) {
    let random = &mut Random::new(seed, "scenario/path_values");
    let reliability = reliability_of(scenario);
    reliability["cached_rtt"] = pick(random, &["none", "linux", "rfc9040"]).into();
    reliability["cached_ssthresh"] = json!(random.below(2) == 0);
}

/// Lets flows share persistent connections, in a quarter of the scenarios whose transports can.
fn share_connections(scenario: &mut Value, seed: u64) {
    let random = &mut Random::new(seed, "scenario/connections");
    let transport = controllers::Config::read(&scenario["transport"]).unwrap();
    if random.below(4) > 0 || transport.needs_own_connection() {
        return;
    }
    let connections = json!(pick(random, &[1, 1, 2]));
    if scenario["workload"]["parts"].is_array() {
        scenario["workload"]["parts"][0]["connections"] = connections.clone();
        if scenario["workload"]["parts"][1]["pattern"].is_object() {
            scenario["workload"]["parts"][1]["pattern"]["connections"] = connections;
        }
    } else {
        scenario["workload"]["connections"] = connections;
    }
    scenario["transport"]["reliability"]["idle_restart"] =
        pick(random, &["none", "halving", "initial"]).into();
    // Requests to read and to write share a connection, and so do the responses.
    for field in ["transports", "traffic_classes"] {
        scenario.as_object_mut().map(|scenario| scenario.remove(field));
    }
    if let Some(pause) = scenario["switch"].get_mut("pause").and_then(Value::as_object_mut) {
        pause.remove("classes");
    }
}

/// Returns true if flows share persistent connections.
pub fn has_connections(scenario: &Value) -> bool {
    scenario["workload"].to_string().contains("connections")
}

/// Links that fail once or twice and recover, or do not recover with probability 0.1; or all links
/// of a switch.
fn failures(random: &mut Random, topology: &Value) -> Value {
    let graph = topology::Config::read(topology).unwrap().graph(1).unwrap();
    let span = |random: &mut Random, at: f64| {
        let mean = pick(random, &[3e-6, 1e-4, 3e-3]);
        at + 1e-9 + random.exponential(mean)
    };
    let mut failures = Vec::new();
    let mut fail = |random: &mut Random, what: &str, name: &str| {
        let mut at = 0.0;
        for _ in 0..=random.below(2) {
            let fails = span(random, at);
            let returns = span(random, fails);
            let ns = |at: f64| format!("{:.3} ns", at * 1e9);
            failures.push(json!({ what: name, "fails": ns(fails), "returns": ns(returns) }));
            at = returns;
        }
        if random.below(10) == 0
            && let Some(last) = failures.last_mut()
        {
            last["returns"] = json!("none");
        }
    };
    let switches: Vec<_> = graph.nodes.iter().filter(|node| !node.is_host).collect();
    if random.below(4) == 0 && !switches.is_empty() {
        let switch = pick(random, &switches);
        fail(random, "switch", &switch.name);
    } else {
        let mut names = BTreeSet::new();
        for _ in 0..=random.below(3) {
            let duplex_link = random.below(graph.links.len() as u64 / 2) as u32;
            let name = graph.link_name(2 * duplex_link);
            if names.insert(name.clone()) {
                fail(random, "link", &name);
            }
        }
    }
    json!(failures)
}

/// Returns the name of a link.
fn link_name(scenario: &Value, random: &mut Random) -> String {
    let graph = topology::Config::read(&scenario["topology"]).unwrap().graph(1).unwrap();
    graph.link_name(random.below(graph.links.len() as u64) as u32)
}

/// Returns the class of RPC responses, if any.
fn response_class(workload: &Value) -> Option<&'static str> {
    Some(match workload["parts"][1]["kind"].as_str()? {
        "rpc" => "rpc response",
        "storage" => "read response",
        _ => "collective",
    })
}

//! Defaults of Linux's TCP for scenarios with `host.kernel = "linux"`.
//!
//! They are added to the plain data before the scenario is read: explicit values stay, and the complete
//! scenario contains all of them.
//!
//! Source: Linux 6.18, as measured (docs/validation.md), and its source code where it is cited.

use serde_json::{Value, json};

use super::{add_defaults, kind};
use crate::base::schema::{Problem, did_you_mean};
use crate::transport::Recovery;

/// Transports of this simulator that the Linux kernel has.
const LINUX: [&str; 8] =
    ["tcp", "cubic", "bbr", "bbr3", "dctcp", "vegas", "high_speed_tcp", "scalable_tcp"];

/// Adds the defaults of `host.kernel` to a scenario.
pub fn apply(scenario: &mut Value) -> Result<(), Problem> {
    if scenario["host"]["kernel"] != "linux" {
        return Ok(());
    }
    add_defaults(scenario, &json!({ "packet": packets() }));
    if let Some(transport) = scenario.get_mut("transport") {
        *transport = with_linux(transport).map_err(|problem| problem.within("transport"))?;
    }
    let transports = scenario.get_mut("transports").and_then(Value::as_object_mut);
    for (class, transport) in transports.into_iter().flatten() {
        let locate = |problem: Problem| problem.within(class).within("transports");
        *transport = with_linux(transport).map_err(locate)?;
    }
    Ok(())
}

/// Returns a transport with Linux's defaults added. Values that do not name a transport stay unchanged, as
/// does QUIC, which is not part of the kernel.
fn with_linux(given: &Value) -> Result<Value, Problem> {
    let Some(kind) = kind(given).filter(|kind| *kind != "quic") else {
        return Ok(given.clone());
    };
    if !LINUX.contains(&kind) {
        let hint = did_you_mean(kind, LINUX);
        let names = LINUX.join(", ");
        let message =
            format!("Linux has no `{kind}`{hint} (host.kernel = \"linux\" is for {names})");
        return Err(Problem::new("", message));
    }
    let mut transport = if given.is_string() { json!({ "kind": kind }) } else { given.clone() };
    add_defaults(&mut transport, &linux(kind));
    Ok(transport)
}

/// Returns packets of 1500 B with timestamps, and with the options of SYNs and SACKs.
pub(super) fn packets() -> Value {
    json!({ "payload": "1448 B", "header": "52 B", "ack": "52 B", "syn": "60 B", "sack": true })
}

/// Returns all of Linux's parameters of a transport.
fn linux(kind: &str) -> Value {
    let mut transport = parameters(kind);
    let mut reliability = reliability();
    let options = recovery_options(Recovery::Rack, &reliability["min_rto"]);
    add_defaults(&mut reliability, &options);
    add_defaults(&mut transport, &json!({ "reliability": reliability }));
    transport
}

/// Returns the handshake, the kind of loss recovery and the timers: `net/ipv4/tcp_input.c` and
/// `tcp_timer.c`, with default system settings.
pub(super) fn reliability() -> Value {
    json!({
        "recovery": "rack",
        "handshake": true,
        "timestamps": true,
        "initial_rto": "1 s",
        // SRTT + max(200 ms, 4 RTTVAR).
        "min_rto": "200 ms",
        "timer_granularity": "200 ms",
        // CONFIG_HZ=250, as the kernel had that was measured.
        "timer_tick": "4 ms",
        "max_rto": "120 s",
        "forgiven_syns": 1,
        "linear_syns": 4,
    })
}

/// Returns the options of a kind of loss recovery: `net/ipv4/tcp_input.c` and `tcp_recovery.c`, and for the
/// SACK scoreboard, which Linux replaced by RACK, RFC 6675. A tail loss probe of a single segment waits for
/// the minimum RTO.
pub(super) fn recovery_options(recovery: Recovery, min_rto: &Value) -> Value {
    match recovery {
        Recovery::Rack => json!({
            "tail_probe": min_rto,
            "proportional_reduction": true,
            "undo": true,
            "duplicate_sack": true,
            "frto": true,
        }),
        Recovery::SelectiveRepeat => json!({ "duplicate_sack": true, "rescue": true }),
        Recovery::NewReno | Recovery::Reno | Recovery::GoBackN => json!({}),
    }
}

/// Returns the parameters of a transport's law: `tcp_cubic.c`, `tcp_bbr.c`, `tcp_dctcp.c`, `tcp_vegas.c` and
/// `tcp_highspeed.c`; for `bbr3` those of [bbr26].
fn parameters(kind: &str) -> Value {
    match kind {
        "bbr" => json!({ "quanta": 6, "unpaced": 10, "policer": true, "aggregation": true }),
        "bbr3" => json!({ "unpaced": 10, "aggregation": true, "offload_quanta": 3 }),
        "dctcp" => json!({ "min_window": 2 }),
        "cubic" => json!({ "window": { "count_limit": ALL, "hystart": "linux" } }),
        "vegas" => json!({ "variant": "linux", "window": { "count_limit": ALL } }),
        "high_speed_tcp" => json!({
            "increase": "table", "decrease": "table", "window": { "count_limit": ALL },
        }),
        "tcp" | "scalable_tcp" => json!({ "window": { "count_limit": ALL } }),
        _ => json!({}),
    }
}

/// Returns the parameters of a law in an environment of Linux hosts: also of those that extend DCTCP, and
/// in CUBIC Linux's rules of congestion avoidance. `host.kernel` leaves the latter out: with them flows of
/// the validation's case `pareto` have more timeouts, and differ more from the kernel's.
pub(super) fn law(kind: &str) -> Value {
    let mut law = parameters(kind);
    match kind {
        "cubic" => law["variant"] = json!("linux"),
        "d2tcp" | "pias" => law["dctcp"] = parameters("dctcp"),
        _ => {}
    }
    law
}

/// More packets than an ACK ever acknowledges.
const ALL: u32 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::schema::Parameter;
    use crate::run::scenario::Scenario;

    fn read(transport: &Value, host: &Value) -> Result<Scenario, Problem> {
        let scenario = json!({
            "environment": "paper", "topology": "star", "transport": transport, "host": host,
            "workload": "permutation",
        });
        Scenario::parse(&scenario.to_string())
    }

    fn shown(transport: &Value, host: &Value) -> Value {
        Parameter::show(&read(transport, host).unwrap())
    }

    const KERNEL: fn() -> Value = || json!({ "kernel": "linux" });

    #[test]
    fn complete_scenarios_contain_the_defaults_and_read_back() {
        for kind in LINUX {
            let scenario = shown(&json!(kind), &KERNEL());
            assert_eq!(scenario["transport"]["reliability"]["recovery"], "rack", "{kind}");
            assert_eq!(scenario["packet"]["payload"], "1.448 KB", "{kind}");
            let again = Scenario::parse(&scenario.to_string()).unwrap();
            assert_eq!(Parameter::show(&again), scenario, "{kind}");
        }
        let plain = shown(&json!("cubic"), &json!({}));
        assert_eq!(plain["transport"]["reliability"]["recovery"], "selective_repeat");
        assert_ne!(plain["packet"]["payload"], "1.448 KB");
    }

    #[test]
    fn the_kernel_leaves_cubic_to_the_rfc_in_congestion_avoidance() {
        assert_eq!(shown(&json!("cubic"), &KERNEL())["transport"]["variant"], "rfc9438");
        assert_eq!(shown(&json!("vegas"), &KERNEL())["transport"]["variant"], "linux");
    }

    /// Returns the keys of all values in a table, recursively.
    fn keys(table: &Value) -> Vec<String> {
        let of = |(key, value): (&String, &Value)| {
            if value.is_object() { keys(value) } else { vec![key.clone()] }
        };
        table.as_object().unwrap().iter().flat_map(of).collect()
    }

    #[test]
    fn the_catalogue_lists_the_transports_and_parameters() {
        let entries = crate::model::host_clock::Config::entries();
        let kernel = entries.iter().find(|entry| entry.name == "kernel").unwrap();
        for kind in LINUX {
            assert!(kernel.about.contains(&format!("`{kind}`")), "{kind}");
            for key in keys(&linux(kind)).iter().chain(&keys(&packets())) {
                assert!(kernel.about.contains(key), "{kind}: {key}");
            }
        }
    }

    #[test]
    fn explicit_values_stay() {
        let own = json!({
            "kind": "cubic", "window": { "hystart": "none" }, "reliability": { "tail_probe": "none" },
        });
        let scenario = shown(&own, &KERNEL());
        assert_eq!(scenario["transport"]["window"]["hystart"], "none");
        assert_eq!(scenario["transport"]["window"]["count_limit"], ALL);
        assert_eq!(scenario["transport"]["reliability"]["tail_probe"], "none");
        assert_eq!(scenario["transport"]["reliability"]["recovery"], "rack");
    }

    #[test]
    fn transports_that_the_kernel_does_not_have_are_rejected() {
        let problem = read(&json!("cubik"), &KERNEL()).unwrap_err();
        assert!(
            problem
                .to_string()
                .starts_with("transport: Linux has no `cubik`; did you mean `cubic`?")
        );
        let problem = read(&json!("timely"), &KERNEL()).unwrap_err();
        assert!(problem.to_string().starts_with("transport: Linux has no `timely` (host.kernel"));
    }
}

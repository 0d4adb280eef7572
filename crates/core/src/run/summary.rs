//! The summary of a run, as plain data.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::VERSION;
use crate::base::schema::Parameter;
use crate::base::units::{Duration, Time};
use crate::ideal::IdealOutcome;
use crate::model::flow::Outcome;
use crate::model::graph::{Graph, Link, LinkId};
use crate::network::port::Port;
use crate::network::port::counters::PortTotals;
use crate::network::port::pause_state::PauseState;
use crate::network::switch::pause_watchdog::Deadlock;
use crate::record::link_columns::{LinkColumns, NamedColumns};
use crate::record::recording::KeptFlow;
use crate::record::rtts::Histogram;
use crate::record::{FlowColumns, Record};
use crate::run::scenario::{Engine, Scenario};
use crate::schedule::WindowPlan;
use crate::simulation::Simulation;
use crate::simulation::common_interval::BytesInInterval;
use crate::traffic::Job;
use crate::transport::controllers;

/// Execution of a run by the packet simulator.
pub(super) struct Execution {
    /// The plan of windows; `None` if it went event by event.
    pub(super) windows: Option<WindowPlan>,
    /// Number of the network's partitions.
    pub(super) partitions: usize,
    /// Number of threads.
    pub(super) threads: usize,
}

impl Scenario {
    /// Summarizes a run of the packet simulator.
    pub(super) fn simulation_summary(
        &self,
        graph: &Graph,
        transport: &controllers::Config,
        simulation: &Simulation<'_>,
        execution: &Execution,
    ) -> Value {
        let Simulation { network, recorder, totals, stuck, deadlocks, .. } = simulation;
        let (classes, load) = (simulation.classes(), simulation.load());
        let sum = |count: fn(&Port) -> u64| network.ports().iter().map(count).sum::<u64>();
        let data_hops = sum(|port| port.counters.data);
        let has_dependencies = simulation.has_dependencies();
        let ended = totals.ended;
        let mut summary =
            self.summary(graph, &recorder.records, ended, load, stuck, has_dependencies);
        add_measured_until(&mut summary, simulation.measured_until(), classes);
        if let Some(rtts) = &recorder.rtts {
            summary["rtts"] = rtt_histograms(rtts, classes);
        }
        let router = self.effective_router();
        summary["router"] = router.as_ref().map_or(Value::Null, Parameter::show);
        let queues = self.queues_by_traffic_class(transport, network.traffic(), classes);
        summary["warnings"] = self.warnings(graph, simulation, &queues);
        summary["queues"] = self.show_queues(graph, network.traffic(), &queues);
        merge(
            &mut summary["counts"],
            json!({
                "packets": totals.packets,
                "packet_hops": {
                    "data": data_hops,
                    "ack": sum(|port| port.counters.departed) - data_hops,
                },
                "drops": sum(|port| port.counters.dropped_others()),
                "credit_drops": sum(|port| u64::from(port.counters.dropped_credits)),
                "losses": sum(|port| port.counters.lost),
                "marks": sum(|port| port.counters.marked),
                "trims": sum(|port| port.counters.trimmed),
                "returns": network.returned(),
                "pauses": sum(|port| port.pauses().iter().map(|pauses| pauses.count).sum()),
            }),
        );
        let deadlock = |deadlock: &Deadlock| {
            let links = deadlock.names(network.traffic(), graph);
            json!({ "links": links, "since_s": deadlock.since.seconds() })
        };
        summary["deadlocks"] = deadlocks.iter().map(deadlock).collect();
        summary["memory"] = json!({
            "bytes_per_live_flow": Simulation::BYTES_PER_LIVE_FLOW,
            "bytes_per_idle_flow": Simulation::BYTES_PER_IDLE_FLOW,
            "live_flows_max": totals.live_flows_max,
        });
        summary["engine"] = match &execution.windows {
            None => json!({ "kind": Engine::Events.show() }),
            Some(plan) => json!({
                "kind": Engine::Windows.show(),
                "window_s": plan.window.seconds(),
                "groups": plan.groups(),
                "windows": totals.windows,
                "parts": execution.partitions,
                "balance": ratio(totals.events, execution.partitions as u64 * totals.critical),
                "threads": execution.threads,
            }),
        };
        summary["engine"]["events"] = json!(totals.events);
        set_measured(&mut summary, simulation.measured.bounds(ended));
        summary["long_lived"] = show_long_lived(simulation.common.bytes(ended));
        if let Some(record) = &recorder.record {
            summary["record"] = record_summary(graph, record);
        }
        summary
    }

    /// Summarizes what runs of every model have. With `has_dependencies` the traffic has no load beforehand:
    /// the transport or the ideal decides when dependent flows start.
    pub(super) fn summary(
        &self,
        graph: &Graph,
        flows: &FlowColumns,
        ended: Time,
        load: &str,
        stuck: &[String],
        has_dependencies: bool,
    ) -> Value {
        let totals = &flows.totals;
        let realised_bps = if has_dependencies {
            None
        } else {
            flows.offered_bps(|size| self.packet.on_wire(size))
        };
        let context = self.workload_context(graph);
        // The workload was checked when its flows were generated.
        let jobs = self.workload.jobs(&context).unwrap_or_default();
        let job = |job: &Job| {
            json!({
                "class": job.class,
                "ranks": job.ranks,
                "messages": job.messages,
                "steps": job.steps,
                "payload_bytes": job.payload.0,
                "start_s": job.start.seconds(),
                "compute_s": job.compute.seconds(),
                "computed_steps": [job.computed.start, job.computed.end],
                "bound_s": job.bound.seconds(),
            })
        };
        json!({
            "version": VERSION,
            "seed": self.seed,
            "scenario": self.show(),
            "load": load,
            "load_reference": { "rate_bps": graph.load.rate.0, "what": graph.load.what },
            "realised_load": realised_bps.map(|bps| bps / graph.load.rate.bps()),
            "load_by_tier": self.load_by_tier(graph),
            "simulated_s": ended.seconds(),
            "counts": {
                "flows": totals.flows(),
                "finished": totals.count(Outcome::Finished),
                "unfinished": totals.count(Outcome::Unfinished),
                "long_lived": totals.count(Outcome::LongLived),
                "terminated": totals.count(Outcome::Terminated),
                "retransmits": totals.retransmits,
                "timeouts": totals.timeouts,
                "reordered": totals.reordered,
            },
            "stuck": stuck,
            "jobs": jobs.iter().map(job).collect::<Value>(),
        })
    }
}

/// Adds the interval in which counters of links are measured, if it is a part of the run.
pub(super) fn set_measured(summary: &mut Value, measured: Option<[Time; 2]>) {
    if let Some([from, to]) = measured {
        summary["measured"] = json!({ "from_s": from.seconds(), "to_s": to.seconds() });
    }
}

/// Summarizes the records of flows.
fn record_summary(graph: &Graph, record: &Record) -> Value {
    let names = |links: &[LinkId]| -> Value {
        links.iter().map(|link| Value::from(graph.link_name(*link))).collect()
    };
    let flow = |flow: &KeptFlow| {
        json!({
            "flow": flow.flow,
            "why": flow.why,
            "forward": names(&flow.paths[0]),
            "reverse": names(&flow.paths[1]),
            "packets": flow.packets,
            "rows": flow.rows,
            "every": flow.every,
            "every_lost": flow.every_lost,
            "has_chain": flow.has_chain,
        })
    };
    json!({ "bin_ps": record.series.bin_ps, "flows": record.flows.iter().map(flow).collect::<Vec<_>>() })
}

/// Returns histograms of round-trip times by class, without empty bins.
fn rtt_histograms(rtts: &[Histogram], classes: &[String]) -> Value {
    let histogram = |(rtts, class): (&Histogram, &String)| {
        let seconds = |edge: fn(&(Duration, Duration, u64)) -> Duration| -> Vec<f64> {
            rtts.bins().map(|bin| edge(&bin).seconds()).collect()
        };
        json!({
            "class": class,
            "lower_s": seconds(|bin| bin.0),
            "upper_s": seconds(|bin| bin.1),
            "count": rtts.bins().map(|bin| bin.2).collect::<Vec<u64>>(),
        })
    };
    rtts.iter().zip(classes).map(histogram).collect()
}

/// Returns `part / whole`, or 1 if `whole` is 0.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// Shows the interval in which all long-lived flows send, and the payload of each in it; null if there is
/// none.
pub(super) fn show_long_lived(common: Option<BytesInInterval>) -> Value {
    common.map_or(Value::Null, |([from, to], bytes)| {
        let (flows, bytes): (Vec<_>, Vec<_>) = bytes.into_iter().unzip();
        json!({ "from_s": from.seconds(), "to_s": to.seconds(), "flows": flows, "bytes": bytes })
    })
}

/// Adds the starts from which flows are no longer measured, by class.
pub(super) fn add_measured_until(summary: &mut Value, ends: Vec<(u16, Time)>, classes: &[String]) {
    let mut by_class = BTreeMap::new();
    for (class, end) in ends {
        let earliest = by_class.entry(&classes[usize::from(class)]).or_insert(end);
        *earliest = end.min(*earliest);
    }
    let shown = by_class.into_iter().map(|(class, end)| (class.clone(), json!(end.seconds())));
    summary["measured_until_s"] = Value::Object(shown.collect());
}

/// Appends the fields of `more`.
fn merge(table: &mut Value, more: Value) {
    if let (Value::Object(table), Value::Object(more)) = (table, more) {
        table.extend(more);
    }
}

/// Returns the counters of all links.
pub(super) fn link_columns(graph: &Graph, simulation: &Simulation<'_>) -> LinkColumns {
    let Simulation { network, totals, measured, .. } = simulation;
    let ended = totals.ended;
    let ports = network.ports();
    let classes = (0..).zip(&network.traffic().numbers).map(|(class, number)| {
        let pauses = pause_columns(ports, |port| port.pauses()[class]);
        (*number, pauses)
    });
    let census = |port: &Port| {
        port.priority_counts().map(|counts| [counts.arrived.clone(), counts.dropped.clone()])
    };
    let has_census = ports.iter().any(|port| port.priority_counts().is_some());
    let has_classes = ports.iter().any(|port| port.pauses().len() > 1);
    LinkColumns {
        name: graph.link_names(),
        whole: counter_columns(graph, ports, ended.since(Time::ZERO)),
        measured: measured.bounds(ended).map_or_else(Vec::new, |bounds| {
            let of_link = |(id, port)| measured.of_link(id, port, ended);
            let totals = (0..).zip(ports).map(of_link).collect::<Vec<_>>();
            measured_columns(&graph.links, &totals, bounds)
        }),
        classes: if has_classes { classes.collect() } else { Vec::new() },
        census: if has_census { ports.iter().map(census).collect() } else { Vec::new() },
    }
}

/// Returns the counters of all links in a run of an ideal, and those in the measured interval.
pub(super) fn ideal_link_columns(
    graph: &Graph,
    outcome: &IdealOutcome,
    measured: Option<[Time; 2]>,
) -> LinkColumns {
    let counters = |bytes: &[f64], span: Duration| {
        let utilisation = |(bytes, link): (&f64, &Link)| {
            let seconds = span.seconds();
            if seconds > 0.0 { bytes * 8.0 / link.rate.bps() / seconds } else { 0.0 }
        };
        vec![
            ("bytes", bytes.iter().map(|bytes| bytes.round() as u64).collect()),
            ("utilisation", bytes.iter().zip(&graph.links).map(utilisation).collect()),
        ]
    };
    let mut whole: NamedColumns =
        vec![("rate_bps", graph.links.iter().map(|link| link.rate.0).collect())];
    whole.extend(counters(&outcome.link_bytes, outcome.end.since(Time::ZERO)));
    let measured = measured.map(|[from, to]| counters(&outcome.measured_bytes, to - from));
    LinkColumns {
        name: graph.link_names(),
        whole,
        measured: measured.unwrap_or_default(),
        ..LinkColumns::default()
    }
}

/// Returns the counters of ports in a run that lasted for `elapsed`.
fn counter_columns(graph: &Graph, ports: &[Port], elapsed: Duration) -> NamedColumns {
    let count = |count: fn(&Port) -> u64| ports.iter().map(count).collect();
    let seconds = elapsed.seconds();
    let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
    let utilisation = |(port, Link { rate, trace, .. }): (&Port, &Link)| {
        let carried = port.counters.bytes as f64 * 8.0;
        trace.as_ref().map_or_else(
            || per_second(carried / rate.bps()),
            |trace| carried / trace.bits(Time::ZERO + elapsed).max(1.0),
        )
    };
    let mean = |port: &Port| per_second(port.counters.queue_area as f64 / 1e12);
    let mut columns = vec![
        ("rate_bps", graph.links.iter().map(|link| link.rate.0).collect()),
        ("utilisation", ports.iter().zip(&graph.links).map(utilisation).collect()),
        ("bytes", count(|port| port.counters.bytes)),
        ("packets", count(|port| port.counters.departed)),
        ("drops", count(|port| port.counters.dropped_others())),
        ("credit_drops", count(|port| u64::from(port.counters.dropped_credits))),
        ("losses", count(|port| port.counters.lost)),
        ("marks", count(|port| port.counters.marked)),
        ("trims", count(|port| port.counters.trimmed)),
        ("trimmed_bytes", count(|port| port.counters.trimmed_bytes)),
    ];
    columns.extend(pause_columns(ports, |port| PauseState::of_all(port.pauses())));
    columns.push(("queue_mean_bytes", ports.iter().map(mean).collect()));
    columns.push(("queue_max_bytes", count(|port| port.counters.queue_max)));
    columns
}

/// Returns the pauses of ports.
fn pause_columns(ports: &[Port], of_port: impl Fn(&Port) -> PauseState) -> NamedColumns {
    let seconds = |duration: fn(&PauseState) -> Duration| {
        ports.iter().map(|port| duration(&of_port(port)).seconds()).collect()
    };
    vec![
        ("pauses", ports.iter().map(|port| of_port(port).count).collect()),
        ("paused_s", seconds(|pauses| pauses.total)),
        ("longest_pause_s", seconds(|pauses| pauses.longest)),
    ]
}

/// Returns the counters of links in the measured interval.
fn measured_columns(links: &[Link], totals: &[PortTotals], [from, to]: [Time; 2]) -> NamedColumns {
    let seconds = (to - from).seconds();
    let count = |count: fn(&PortTotals) -> u64| totals.iter().map(count).collect();
    let utilisation = |(totals, link): (&PortTotals, &Link)| {
        let capacity = link.trace.as_ref().map_or_else(
            || link.rate.bps() * seconds,
            |trace| (trace.bits(to) - trace.bits(from)).max(1.0),
        );
        totals.bytes as f64 * 8.0 / capacity
    };
    let mean = |totals: &PortTotals| totals.queue_area as f64 / 1e12 / seconds;
    vec![
        ("utilisation", totals.iter().zip(links).map(utilisation).collect()),
        ("bytes", count(|totals| totals.bytes)),
        ("packets", count(|totals| totals.departed)),
        ("drops", count(|totals| totals.dropped)),
        ("credit_drops", count(|totals| totals.dropped_credits)),
        ("marks", count(|totals| totals.marked)),
        ("pauses", count(|totals| totals.pauses)),
        ("queue_mean_bytes", totals.iter().map(mean).collect()),
    ]
}

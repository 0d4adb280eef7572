//! Warnings of a run: assumptions that decide its result without having been made by the user.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::base::schema::Parameter;
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::HostId;
use crate::model::graph::{Extent, Failure, Graph, Link, LinkId};
use crate::network::link::loss;
use crate::network::port::counters::Counters;
use crate::network::switch::pause_watchdog;
use crate::queueing::{DesignRates, Priorities, disciplines};
use crate::record::Recorder;
use crate::run::scenario::{DEFAULT_CONVERGENCE, Scenario};
use crate::simulation::Simulation;
use crate::traffic::demand::{Demand, DemandPairs};
use crate::traffic::generators::{self, long_lived};
use crate::traffic::host_pairs::HostRoles;
use crate::transport::{Mechanism, Reliability, controllers};

/// Ratio of the peak to the mean of a link's rate from which on it is worth a warning.
const PEAK: u64 = 3;

/// Number of retransmissions above which those without a loss are worth a warning.
const MANY_RETRANSMISSIONS: u64 = 100;

/// Telemetry headers of [hpcc19]'s simulator: that of 5 hops, and a digest (PINT).
const TELEMETRY_HEADER: Bytes = Bytes(42);
const DIGEST_HEADER: Bytes = Bytes(2);

/// Number of priorities of Ethernet switches.
const SWITCH_PRIORITIES: u32 = 8;

/// Ratio of rates from which on parameters designed for one do not suit the other.
const FAR: u64 = 4;

impl Scenario {
    /// Returns the warnings of a run of the packet simulator, whose queues at switches and at hosts are
    /// `queues`, by traffic class.
    pub(super) fn warnings(
        &self,
        graph: &Graph,
        simulation: &Simulation<'_>,
        queues: &[[disciplines::Config; 2]],
    ) -> Value {
        let Simulation { network, totals, deadlocks, .. } = simulation;
        let flows = simulation.recorder.records.totals.flows();
        let router = self.effective_router().and_then(|router| router.warning());
        let pauses =
            pause_watchdog::warning(network, graph, deadlocks, totals.ended, self.time_limit);
        let losses = loss::warnings(graph, network.ports());
        let extent = self.extent().ok();
        router
            .into_iter()
            .chain(self.transport_warnings(extent))
            .chain(self.unused_recovery_warnings())
            .chain(priorities_warning(queues))
            .chain(self.min_rate_warnings(graph))
            .chain(self.crowding_warning(graph))
            .chain(self.telemetry_warning(extent))
            .chain(self.rate_warning(graph, queues))
            .chain(peak_warning(graph))
            .chain(self.workload_warnings())
            .chain(self.shared_port_warning(graph))
            .chain(self.several_links_warning(graph))
            .chain(self.timeout_warnings(extent))
            .chain(self.queue_warnings(graph, simulation, queues))
            .chain(self.phase_warning(graph, simulation, queues))
            .chain(self.trimming_warnings(simulation))
            .chain(self.queue_kind_warnings(simulation, queues))
            .chain(self.marking_warning(graph, simulation, queues))
            .chain(self.go_back_n_warnings(simulation))
            .chain(self.headroom_warning(graph, simulation))
            .chain(retransmission_warning(simulation))
            .chain(self.convergence_warning(graph))
            .chain(self.empty_recording_warnings(&simulation.recorder, flows))
            .chain(self.shared_warnings(graph, flows))
            .chain(pauses)
            .chain(losses)
            .collect()
    }

    /// Returns the warnings of a run of an ideal with `flows` flows, and that of the ideal itself.
    pub(super) fn ideal_warnings(
        &self,
        graph: &Graph,
        flows: u64,
        of_ideal: Option<String>,
    ) -> Value {
        let shared = self.shared_warnings(graph, flows);
        shared.chain(self.one_path_warning()).chain(of_ideal).collect()
    }

    /// Returns the warnings of runs of every model, of which `flows` flows have started.
    fn shared_warnings(&self, graph: &Graph, flows: u64) -> impl Iterator<Item = String> {
        (self.overload_warning(graph).into_iter())
            .chain(self.empty_start_warning())
            .chain(self.late_flows_warning(flows))
            .chain(self.kept_records_warning(flows))
    }

    /// Warns of flows to sample and to record that are not in the results, when `started` flows have started.
    fn empty_recording_warnings(
        &self,
        recorder: &Recorder,
        started: u64,
    ) -> impl Iterator<Item = String> {
        let is_sampled = |flow: &u64| recorder.samples.has_flow(*flow);
        let is_recorded = |flow: &u64| {
            let mut recorded = recorder.record.iter().flat_map(|record| &record.flows);
            recorded.any(|kept| kept.flow == *flow)
        };
        let lacking = |field: &str, done: &str, flows: &[u64], has: &dyn Fn(&u64) -> bool| {
            let lacking: Vec<_> =
                flows.iter().filter(|flow| !has(flow)).map(u64::to_string).collect();
            let lacking = (!lacking.is_empty()).then(|| lacking.join(", "))?;
            Some(format!("{field}: not {done}: flow {lacking}; flows started: {started}"))
        };
        let samples = self
            .samples
            .as_ref()
            .and_then(|samples| lacking("samples.flows", "sampled", &samples.flows, &is_sampled));
        let record = self
            .record
            .as_ref()
            .and_then(|record| lacking("record.flows", "recorded", &record.flows, &is_recorded));
        samples.into_iter().chain(record)
    }

    /// Warns of random arrivals into an empty network that end by default, all of which count.
    fn empty_start_warning(&self) -> Option<String> {
        let end = self.workload.default_end().filter(|_| self.warm_up == Time::ZERO)?;
        let end = end.min(self.time_limit).since(Time::ZERO);
        Some(format!(
            "the network starts empty, and all flows of the first {end} count: completion times are below \
             those of the steady state; give the workload `stop`, and the scenario `warm_up`"
        ))
    }

    /// Warns of flows of a list that would start after the time limit, when `started` flows have started.
    fn late_flows_warning(&self, started: u64) -> Option<String> {
        let number = self.workload.number().filter(|number| started < *number)?;
        Some(format!(
            "workload: {started} of {number} flows started before time_limit = {}: the others are not part \
             of this run",
            self.time_limit.since(Time::ZERO)
        ))
    }

    /// Warns of tables that count a part of the flows, of which there are `all`.
    fn kept_records_warning(&self, all: u64) -> Option<String> {
        let one_in = self.flows_per_record;
        (one_in > 1).then(|| {
            format!("flows_per_record = {one_in}: tables are of one flow in {one_in}, of {all}")
        })
    }

    /// Warns of an ideal whose flows take one path each where packets of a flow would take several.
    fn one_path_warning(&self) -> Option<String> {
        self.routing.sprays().then(|| {
            "routing: flows of an ideal take one path each, by ECMP; packets that take several paths may \
             finish sooner"
                .to_owned()
        })
    }

    /// Warns of absolute parameters that were designed for links of other rates.
    fn rate_warning(&self, graph: &Graph, queues: &[[disciplines::Config; 2]]) -> Option<String> {
        let rates = |at_host: bool| {
            let there = graph.links.iter().filter(move |link| graph.is_from_host(link) == at_host);
            there.map(|link| link.rate)
        };
        let queues = queues.iter().filter_map(|[switch, _]| {
            switch.design_rates().map(|design| (switch.name().to_owned(), design, false))
        });
        let transports = self
            .all_transports()
            .filter_map(|(field, law)| law.design_rates().map(|design| (field, design, true)));
        let differs = |(owner, design, at_host): (String, DesignRates, bool)| {
            let is_far = |rate: &Rate| {
                rate.0 >= FAR.saturating_mul(design.most.0)
                    || rate.0.saturating_mul(FAR) <= design.least.0
            };
            let used = rates(at_host).find(is_far)?;
            let (field, designed) = (design.field, design.most);
            Some(format!("{owner}.{field}, for {designed}, is used at {used}"))
        };
        let all: Vec<String> = queues.chain(transports).filter_map(differs).collect();
        (!all.is_empty()).then(|| {
            let all = all.join("; ");
            format!(
                "parameters designed for other rates: {all}; give them relative to the link, as data-centre \
                 environments do"
            )
        })
    }

    /// Warns of parameters of transports that do not suit the network.
    fn transport_warnings(&self, extent: Option<Extent>) -> impl Iterator<Item = String> {
        self.all_transports().flat_map(move |(field, transport)| {
            let warnings = extent.map(|extent| transport.warnings(&extent, &self.packet));
            let lines = warnings.unwrap_or_default().into_iter();
            lines.map(move |line| format!("{field}: {line}"))
        })
    }

    /// Warns of parameters of loss recovery by ACKs under transports whose receivers detect losses.
    fn unused_recovery_warnings(&self) -> impl Iterator<Item = String> {
        self.all_transports().filter_map(|(field, transport)| {
            let is_credited = !transport.has_own_stack()
                && transport.mechanism(&self.packet).credit.replaces_acks();
            let shown = transport.show();
            let given = &shown["reliability"];
            let default = Reliability::selective_repeat().show();
            let is_given = |name: &&str| is_credited && given[name] != default[name];
            let unused: Vec<_> =
                Mechanism::UNUSED_WITH_CREDIT.iter().copied().filter(is_given).collect();
            (!unused.is_empty()).then(|| {
                format!(
                    "{field}.reliability: no effect of {} under `{}`, whose receivers detect losses",
                    unused.join(", "),
                    transport.title()
                )
            })
        })
    }

    /// Warns of transports that cannot reduce their rates below that of a host.
    fn min_rate_warnings(&self, graph: &Graph) -> impl Iterator<Item = String> {
        let hosts = graph.links.iter().filter(|link| graph.is_from_host(link));
        let slowest = hosts.map(|link| link.rate).min();
        self.all_transports().filter_map(move |(field, transport)| {
            let ((name, min_rate), line_rate) = (transport.min_rate()?, slowest?);
            let cannot_reduce = min_rate.bps(line_rate.bps()) >= line_rate.bps();
            cannot_reduce.then(|| {
                format!(
                    "{field}.{name} is not below {line_rate}, the rate of hosts: senders cannot reduce their \
                     rates"
                )
            })
        })
    }

    /// Warns of flows that send at once, and whose minimum rates together exceed the rate of a link.
    fn crowding_warning(&self, graph: &Graph) -> Option<String> {
        let from_hosts = graph.links.iter().filter(|link| graph.is_from_host(link));
        let slowest = from_hosts.map(|link| link.rate).min()?.bps();
        let parts = match &self.workload {
            generators::Config::mixed(mixed) => &mixed.parts[..],
            other => std::slice::from_ref(other),
        };
        let (field, (flows, link, times)) = parts.iter().find_map(|part| {
            let class = match part {
                generators::Config::incast(incast) => &incast.class,
                other => &other.as_long_lived()?.class,
            };
            let (field, transport) = self.transport_of(class)?;
            let (name, rate) = transport.min_rate()?;
            Some((format!("{field}.{name}"), self.crowd(part, rate.bps(slowest), graph)?))
        })?;
        Some(format!(
            "{field}: {flows} flows at their minimum rate offer {times:.2} times the rate of {link}: its \
             queue grows, or pauses do not end, whatever the transport decides; give a lower minimum rate"
        ))
    }

    /// Returns the transport of a class, and the field that names it.
    fn transport_of(&self, class: &str) -> Option<(String, &controllers::Config)> {
        let own = self.transports.get(class).map(|own| (format!("transports.{class}"), own));
        own.or_else(|| self.transport.as_ref().map(|main| ("transport".to_owned(), main)))
    }

    /// Returns the number of flows of a part of the workload that send at once, a link that cannot carry them
    /// at this rate in bits per second, and their rate as a multiple of its own.
    fn crowd(
        &self,
        part: &generators::Config,
        bps: f64,
        graph: &Graph,
    ) -> Option<(u32, String, f64)> {
        if let generators::Config::incast(incast) = part {
            let to_hosts = graph.links.iter().filter(|link| graph.is_to_host(link));
            let receiver = to_hosts.map(|link| link.rate).min()?;
            let times = f64::from(incast.fan_in) * bps / receiver.bps();
            return (times > 1.0).then_some((incast.fan_in, "a receiver".to_owned(), times));
        }
        let roles = HostRoles::from_graph(graph).ok()?;
        let senders = roles.sources.len() as HostId;
        let flows = part.as_long_lived()?.flows.unwrap_or(senders);
        let pair = |flow| (flow % senders, roles.opposite(flow % senders));
        let demand = Demand {
            field: String::new(),
            bps: f64::from(flows) * bps,
            pairs: DemandPairs::Listed((0..flows).map(pair).collect()),
            start: Time::ZERO,
            end: Time::NEVER,
            may_exceed: true,
        };
        let offer = self.overload(&[demand], graph)?;
        Some((flows, graph.link_name(offer.link), offer.share()))
    }

    /// Warns of telemetry in packets that have the environment's headers, which do not contain any.
    fn telemetry_warning(&self, extent: Option<Extent>) -> Option<String> {
        let format = self.environment.format(&extent?);
        let has_default = format.header == self.packet.header;
        let collects = |transport: &controllers::Config| {
            !transport.has_own_stack()
                && transport.mechanism(&self.packet).signalling.collects_telemetry()
        };
        let mut transports = self.all_transports().filter(|_| has_default);
        let (field, transport) = transports.find(|(_, transport)| collects(transport))?;
        let (contents, size) = match transport.digest(Duration::ZERO) {
            Some(_) => ("a digest", DIGEST_HEADER),
            None => ("telemetry of 5 hops", TELEMETRY_HEADER),
        };
        Some(format!(
            "{field}: headers of packets do not contain the telemetry that it collects; for {contents} \
             ([hpcc19]: {size}) give `packet.header = \"{}\"` and `packet.ack = \"{}\"`, for all schemes \
             alike",
            format.header + size,
            format.ack + size
        ))
    }

    /// Warns of hosts with several links under a transport that serves a host as if it had one.
    fn several_links_warning(&self, graph: &Graph) -> Option<String> {
        let mut first = BTreeSet::new();
        let mut hosts = graph.links.iter().filter(|link| graph.is_from_host(link));
        let host = hosts.find(|link| !first.insert(link.from))?.from;
        let takes_turns =
            |transport: &controllers::Config| transport.mechanism(&self.packet).turns.is_some();
        let (field, _) = self.all_transports().find(|(_, transport)| takes_turns(transport))?;
        let name = &graph.nodes[host as usize].name;
        Some(format!(
            "{field}: flows of a host take turns, and its credits have the pace of one link: a host with \
             several, such as {name}, sends and receives about as much as with one"
        ))
    }

    /// Warns of failures during which routes do not change, or change only after the default delay. In a
    /// tree, no other routes exist.
    fn convergence_warning(&self, graph: &Graph) -> Option<String> {
        let is_tree = graph.links.len() / 2 < graph.nodes.len();
        if is_tree {
            return None;
        }
        let convergence = self.convergence;
        let is_short = |failure: &&Failure| {
            failure.returns.is_some_and(|returns| returns < failure.fails + convergence)
        };
        if let Some(failure) = self.failures.iter().find(is_short) {
            let name = failure.link.as_ref().or(failure.switch.as_ref())?;
            return Some(format!(
                "failures: {name} returns before routes avoid it, after convergence = {convergence}: packets \
                 on it are lost meanwhile"
            ));
        }
        let is_default = !self.failures.is_empty() && convergence == DEFAULT_CONVERGENCE;
        is_default.then(|| {
            format!(
                "failures: packets on a failed cable are lost until routes avoid it, after {convergence} by \
                 default; give `convergence`"
            )
        })
    }

    /// Warns of the workload's assumptions.
    fn workload_warnings(&self) -> impl Iterator<Item = String> {
        let warnings = self.workload.warnings(&self.packet);
        warnings.into_iter().map(|warning| format!("workload.{warning}"))
    }

    /// Warns of long-lived flows of several classes that share the ports of their hosts, if no other link
    /// could be overloaded by these hosts.
    fn shared_port_warning(&self, graph: &Graph) -> Option<String> {
        let generators::Config::mixed(mixed) = &self.workload else { return None };
        let parts: Vec<_> =
            mixed.parts.iter().filter_map(generators::Config::as_long_lived).collect();
        let precedes = |one: &long_lived::Config, other: &long_lived::Config| {
            one.stop.is_some_and(|stop| stop <= other.start)
        };
        let overlap = |one: &long_lived::Config, other: &long_lived::Config| {
            one.class != other.class && !precedes(one, other) && !precedes(other, one)
        };
        let is_beside =
            |part: &&&long_lived::Config| parts.iter().any(|other| overlap(part, other));
        let parts: Vec<_> = parts.iter().filter(is_beside).collect();
        let classes: BTreeSet<&str> = parts.iter().map(|part| &*part.class).collect();
        let roles = HostRoles::from_graph(graph).ok().filter(|_| classes.len() > 1)?;
        let senders = roles.sources.len() as HostId;
        let most = parts.iter().map(|part| part.flows.unwrap_or(senders).min(senders)).max()?;
        let hosts: BTreeMap<_, HostId> = graph.hosts.iter().copied().zip(0..most).collect();
        let mut hosts_by_rate: BTreeMap<Rate, Vec<(HostId, HostId)>> = BTreeMap::new();
        for link in graph.links.iter().filter(|link| graph.is_from_host(link)) {
            if let Some(&host) = hosts.get(&link.from) {
                hosts_by_rate.entry(link.rate).or_default().push((host, roles.opposite(host)));
            }
        }
        let demand = |(rate, pairs): (Rate, Vec<_>)| Demand {
            field: String::new(),
            bps: rate.bps() * pairs.len() as f64,
            pairs: DemandPairs::Listed(pairs),
            start: Time::ZERO,
            end: Time::NEVER,
            may_exceed: true,
        };
        let demands: Vec<_> = hosts_by_rate.into_iter().map(demand).collect();
        self.overload(&demands, graph).is_none().then(|| {
            let classes = classes.into_iter().collect::<Vec<_>>().join(", ");
            format!(
                "long-lived flows of classes {classes} start at the same hosts, whose ports divide their \
                 rates among them; they do not compete in the network"
            )
        })
    }

    /// Warns of timeouts that expire before the first ACK can arrive.
    fn timeout_warnings(&self, extent: Option<Extent>) -> impl Iterator<Item = String> {
        let base_rtt = extent.map(|extent| extent.base_rtt(&self.packet)).unwrap_or_default();
        self.all_transports().filter_map(move |(field, transport)| {
            if transport.has_own_stack() {
                return None;
            }
            let reliability = transport.mechanism(&self.packet).reliability;
            let (name, rto) = match reliability.fixed_rto {
                Some(rto) => ("fixed_rto", rto),
                None => ("initial_rto", reliability.initial_rto),
            };
            (rto < base_rtt).then(|| {
                format!(
                    "{field}.reliability.{name} is {rto}, below the base RTT of the longest path, \
                     {base_rtt}: timeouts expire before ACKs can arrive; give a longer \
                     `reliability.{name}`"
                )
            })
        })
    }
}

/// Warns of a link whose rate has a peak far above its mean, such as the milliseconds of a Mahimahi trace.
fn peak_warning(graph: &Graph) -> Option<String> {
    let of_link = |(id, link): (LinkId, &Link)| {
        let mean = link.trace.as_ref()?.mean();
        (link.rate.0 >= PEAK * mean.0).then(|| {
            format!(
                "{}: its queue and the ideal FCT use the peak of its rate trace, {}, and the mean is \
                 {mean}; give `queue.capacity`, and compare FCTs, not slowdowns",
                graph.link_name(id),
                link.rate
            )
        })
    };
    (0..).zip(&graph.links).find_map(of_link)
}

/// Warns of more priorities than switches have.
fn priorities_warning(queues: &[[disciplines::Config; 2]]) -> Option<String> {
    let classes = |queue: &disciplines::Config| match queue.priorities() {
        Some(Priorities::Classes(classes)) => classes,
        _ => 0,
    };
    let most = queues.iter().flatten().map(classes).max()?;
    (most > SWITCH_PRIORITIES).then(|| {
        format!("queues have {most} priorities, and switches {SWITCH_PRIORITIES} (IEEE 802.1Q)")
    })
}

/// Warns of retransmissions of packets that were not lost.
fn retransmission_warning(simulation: &Simulation<'_>) -> Option<String> {
    let ports = simulation.network.ports();
    let of_port = |Counters { dropped, lost, trimmed, .. }: &Counters| dropped + lost + trimmed;
    let lost: u64 = ports.iter().map(|port| of_port(&port.counters)).sum();
    let retransmits = simulation.recorder.records.totals.retransmits;
    (retransmits > MANY_RETRANSMISSIONS && retransmits > 2 * lost).then(|| {
        format!(
            "{retransmits} retransmissions, but only {lost} packets were lost: packets that were \
             late were taken for lost, or data were repeated with a lost packet"
        )
    })
}

//! Construction of a run's objects from a scenario: graph, workload, network and simulation.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::base::random::Random;
use crate::base::schema::{Parameter, Problem, did_you_mean};
use crate::base::units::{Duration, Rate, Time};
use crate::model::flow_totals::KeptRecords;
use crate::model::graph::{Change, Graph, LinkId};
use crate::model::host_clock::Stamps;
use crate::model::telemetry::Digest;
use crate::network::Network;
use crate::network::breakdown::packet_log::PacketLog;
use crate::network::link::loss::Losses;
use crate::network::port::{Passing, Port, PortConfig};
use crate::network::switch::pause_timers::PauseTimers;
use crate::network::switch::shared_buffer::Buffers;
use crate::network::switch::traffic_classes::{Number, TrafficClasses};
use crate::queueing::{LinkScale, disciplines};
use crate::record::Recorder;
use crate::record::recording::Recording;
use crate::router::{self, PortInfo};
use crate::run::scenario::{Engine, Model, Scenario};
use crate::schedule::{Partition, WindowPlan};
use crate::simulation::common_interval::CommonInterval;
use crate::simulation::measured_interval::MeasuredInterval;
use crate::simulation::{Simulation, SimulationSetup, Transports};
use crate::traffic::{FlowStream, WorkloadContext};
use crate::transport::controllers;

/// Checks that every class that `field` names is a class of some flow.
fn check_classes<'a>(
    field: &str,
    mut named: impl Iterator<Item = &'a str>,
    classes: &[String],
) -> Result<(), Problem> {
    let Some(class) = named.find(|class| !classes.iter().any(|existing| existing == class)) else {
        return Ok(());
    };
    let hint = did_you_mean(class, classes.iter().map(String::as_str));
    let message = format!("no flow has the class `{class}`{hint} ({})", classes.join(", "));
    Err(Problem::new(field, message))
}

/// Parts of a network that all its ports share.
struct NetworkParts {
    traffic: TrafficClasses,
    buffers: Option<Buffers>,
    pause_timers: Option<PauseTimers>,
    /// The queues at switches and at hosts, by traffic class.
    queues: Vec<[disciplines::Config; 2]>,
    router: Option<router::Config>,
    /// True for links that begin at a host.
    from_host: Vec<bool>,
    passing: Passing,
    is_awaited: bool,
    /// True if packets of a transport collect telemetry.
    has_telemetry: bool,
    /// Digest that packets of a transport collect.
    digest: Option<Digest>,
    /// Base RTT of the longest path.
    base_rtt: Duration,
}

impl Scenario {
    /// Builds the graph.
    pub(super) fn graph(&self) -> Result<Graph, Problem> {
        let mut graph =
            self.topology.graph(self.seed).map_err(|problem| problem.within("topology"))?;
        graph.follow_all(&self.rate_traces).map_err(|problem| problem.within("rate_traces"))?;
        graph.degrade(&self.degraded_links).map_err(|problem| problem.within("degraded_links"))?;
        graph.slow_hosts(self.host.rate_tolerance);
        if matches!(self.model, Model::Ideal(_))
            && let Some(link) =
                graph.links.iter().find(|link| link.trace.is_some() || link.delays.is_some())
        {
            let field = match link.trace {
                Some(_) if !self.rate_traces.is_empty() => "rate_traces",
                Some(_) => "topology.rate_trace",
                None => "topology.delay_trace",
            };
            let message = "must be left out: an ideal shares out rates of links that do not change";
            return Err(Problem::new(field, message));
        }
        Ok(graph)
    }

    /// Returns the base RTT of the network's longest path.
    fn base_rtt(&self) -> Duration {
        let extent = self.extent();
        extent.map(|extent| extent.base_rtt(&self.packet)).unwrap_or_default()
    }

    /// Returns the changes of the network's links, in order of time.
    pub(super) fn changes(&self, graph: &Graph) -> Result<Vec<Change>, Problem> {
        let changes = Change::all(&self.failures, self.convergence, graph);
        changes.map_err(|problem| problem.within("failures"))
    }

    /// Returns the inputs of the workload.
    pub(super) fn workload_context<'a>(&'a self, graph: &'a Graph) -> WorkloadContext<'a> {
        WorkloadContext {
            graph,
            format: &self.packet,
            seed: self.seed,
            takes_one_path: self.routing.takes_one_path(),
        }
    }

    /// Opens the workload.
    pub(super) fn flows(&self, graph: &Graph) -> Result<FlowStream, Problem> {
        let context = self.workload_context(graph);
        let flows =
            self.workload.generate(&context).map_err(|problem| problem.within("workload"))?;
        let classes = &flows.classes;
        check_classes("transports", self.transports.keys().map(String::as_str), classes)?;
        check_classes("traffic_classes", self.traffic_classes.keys().map(String::as_str), classes)?;
        for (field, queue) in [("queue", &self.queue), ("host_queue", &self.host_queue)] {
            let weighed = queue.as_ref().map(|queue| queue.weighted_classes()).unwrap_or_default();
            check_classes(&format!("{field}.weights"), weighed.into_iter(), classes)?;
        }
        if flows.has_connections {
            self.check_connections()?;
        }
        self.check_initial_rates()?;
        let mut transports = self.all_transports();
        let with_deadlines = transports.find(|(_, transport)| transport.needs_deadlines());
        match with_deadlines {
            Some((_, transport)) if !flows.has_deadlines => {
                let name = transport.title();
                let message =
                    format!("no flow has a deadline, and this `{name}` is made for deadlines");
                Err(Problem::new("workload", message))
            }
            _ => Ok(flows),
        }
    }

    /// Checks that the transports of flows with an initial rate begin at it.
    fn check_initial_rates(&self) -> Result<(), Problem> {
        for class in self.workload.classes_with_initial_rate() {
            let transport = self.transports.get(class).or(self.transport.as_ref());
            if let Some(transport) = transport.filter(|transport| !transport.takes_initial_rate()) {
                let name = transport.title();
                let message = format!("class `{class}`: `{name}` takes no `initial_rate`");
                return Err(Problem::new("workload", message));
            }
        }
        Ok(())
    }

    /// Checks that flows can share persistent connections.
    fn check_connections(&self) -> Result<(), Problem> {
        let mut transports = self.all_transports();
        match transports.find(|(_, transport)| transport.needs_own_connection()) {
            Some((field, transport)) => {
                let name = transport.title();
                let message =
                    format!("`{name}` needs a connection for every flow: no `connections`");
                Err(Problem::new(field, message))
            }
            None => Ok(()),
        }
    }

    /// Finds every problem that does not need a run. A port is built for each kind of link, not for each
    /// link.
    pub(super) fn check_on(&self, graph: &Graph) -> Result<(), Problem> {
        let flows = self.flows(graph)?;
        self.check_link_loads(graph)?;
        self.check_detours(graph)?;
        if let Some(transport) = &self.transport {
            let parts = self.network_parts(graph, transport, &flows.classes)?;
            let mut kinds = BTreeSet::new();
            for (id, link) in graph.links.iter().enumerate() {
                if kinds.insert((link.rate, parts.from_host[id])) {
                    drop(self.port(graph, &parts, id));
                }
            }
        }
        self.recorder(graph)?;
        self.packet_log(graph)?;
        Ok(())
    }

    /// Returns the number of flows that the workload is expected to start.
    fn expected_flows(&self, graph: &Graph) -> f64 {
        let context = self.workload_context(graph);
        let estimate = self.workload.estimate_until(&context, self.time_limit);
        estimate.map_or(f64::INFINITY, |estimate| estimate.flows)
    }

    /// Returns the empty log of packets, if they are recorded.
    fn packet_log(&self, graph: &Graph) -> Result<Option<PacketLog>, Problem> {
        let flows = || self.expected_flows(graph);
        let log = self.record.as_ref().map(|config| config.packet_log(graph, flows()));
        log.transpose().map_err(|problem| problem.within("record"))
    }

    /// Returns the choice of the flows whose records are kept.
    pub(super) fn kept_records(&self) -> KeptRecords {
        KeptRecords { one_in: self.flows_per_record }
    }

    fn recorder(&self, graph: &Graph) -> Result<Recorder, Problem> {
        let mut recorder = Recorder::new(self.samples.as_ref(), self.warm_up, graph)
            .map_err(|problem| problem.within("samples"))?;
        recorder.records.kept = self.kept_records();
        Ok(recorder)
    }

    /// Prepares the construction of a network for flows of these classes.
    fn network_parts(
        &self,
        graph: &Graph,
        transport: &controllers::Config,
        classes: &[String],
    ) -> Result<NetworkParts, Problem> {
        let mut traffic = TrafficClasses::new(&self.traffic_classes, classes);
        if let Some(number) = traffic.set_weights(&self.class_weights) {
            let message = format!("no flow is in traffic class {number} ({})", traffic.list());
            return Err(Problem::new("class_weights", message));
        }
        let buffers = Buffers::new(&self.switch, graph, &self.packet, &traffic);
        let buffers = buffers.map_err(|problem| problem.within("switch"))?;
        let pause_timers = PauseTimers::new(&self.switch, graph, self.packet.longest(), &traffic);
        if buffers.is_some() && graph.hosts_are_routers {
            let message = "must be left out: this topology has no switch";
            return Err(Problem::new("switch.shared_buffer", message));
        }
        if self.host.jitter > Duration::ZERO && graph.hosts_are_routers {
            let message = "must be left out: this topology has no links from hosts";
            return Err(Problem::new("host.jitter", message));
        }
        let router = self.effective_router();
        if let Some(router) = &router
            && graph.links.len() > router.max_links()
        {
            let (most, links) = (router.max_links(), graph.links.len());
            let message =
                format!("`{}` serves networks of up to {most} links, not {links}", router.name());
            return Err(Problem::new("router", message));
        }
        let queues = self.queues_by_traffic_class(transport, &traffic, classes);
        // Limited credits wait with data, because they would pass the shaper with control packets.
        let limits_credits = queues.iter().flatten().any(disciplines::Config::limits_credits);
        let control_priority =
            self.switch.control_priority.or_else(|| limits_credits.then_some(false));
        let mechanisms =
            || self.all_transports().map(|(_, transport)| transport.mechanism(&self.packet));
        let base_rtt = self.base_rtt();
        Ok(NetworkParts {
            queues,
            from_host: graph.links.iter().map(|link| graph.is_from_host(link)).collect(),
            passing: self.switch.passing(control_priority),
            is_awaited: self.host.port_share().flow_limit.is_some()
                || mechanisms()
                    .any(|mechanism| mechanism.pacing.is_some() || mechanism.turns.is_some()),
            has_telemetry: mechanisms().any(|mechanism| mechanism.signalling.collects_telemetry()),
            digest: self.digest(base_rtt)?,
            base_rtt,
            traffic,
            buffers,
            pause_timers,
            router,
        })
    }

    /// Returns the digest that packets collect. Ports have one average.
    fn digest(&self, base_rtt: Duration) -> Result<Option<Digest>, Problem> {
        let mut digests = self
            .all_transports()
            .filter_map(|(field, transport)| Some((field, transport.digest(base_rtt)?)));
        let first = digests.next().map(|(_, digest)| digest);
        match digests.find(|(_, digest)| Some(*digest) != first) {
            Some((field, _)) => {
                let message = "must be that of the other transports, since ports have one average";
                Err(Problem::new(format!("{field}.pint"), message))
            }
            None => Ok(first),
        }
    }

    /// Builds the port of a link.
    fn port(&self, graph: &Graph, parts: &NetworkParts, id: usize) -> Port {
        let NetworkParts {
            queues,
            router,
            from_host,
            passing,
            is_awaited,
            traffic,
            base_rtt,
            digest,
            ..
        } = parts;
        let (link, from_host) = (&graph.links[id], from_host[id]);
        let random = |purpose| Random::new(self.seed, &format!("{purpose}/{id}"));
        let info = PortInfo { link: id as LinkId, rate: link.rate };
        let router = router.as_ref().map(|router| router.build(info, random("router")));
        let queue = |[at_switch, at_host]: &[disciplines::Config; 2]| {
            let scale = LinkScale {
                rate: link.rate,
                opposite_rate: graph.opposite_rate(id as LinkId),
                base_rtt: *base_rtt,
                packet: self.packet.full(),
                is_last_hop: graph.is_to_host(link),
            };
            if from_host { at_host.build(scale) } else { at_switch.build(scale) }
        };
        let config = PortConfig {
            passing: match self.host.control_priority {
                Some(is_first) if from_host => self.switch.passing(Some(is_first)),
                _ => *passing,
            },
            // Pacing, and turns, depend on when the host's port has sent a packet.
            is_awaited: from_host && *is_awaited,
            stamps: from_host && self.host.stamps == Stamps::Wire,
            keeps_account: self.account,
            has_telemetry: !from_host && parts.has_telemetry,
            time_unit: self.packet.time_unit,
        };
        let losses = Losses::new(&link.loss, || random("loss"));
        let queues = queues.iter().map(queue).collect();
        let (weights, stream) = (&traffic.weights, random("port"));
        let mut port = Port::new(link, queues, weights, router, config, stream, losses);
        if from_host && self.host.jitter > Duration::ZERO {
            port.set_jitter(self.host.jitter, random("jitter"));
        }
        if let Some(digest) = *digest {
            port.set_digest(digest, random("digest"));
        }
        port
    }

    /// Builds the network for flows of these classes.
    fn network(
        &self,
        graph: &Graph,
        transport: &controllers::Config,
        classes: &[String],
        partition: &Partition,
    ) -> Result<Network, Problem> {
        let parts = self.network_parts(graph, transport, classes)?;
        let ports = (0..graph.links.len()).map(|id| self.port(graph, &parts, id)).collect();
        let of_partitions = (partition.number, partition.count);
        let routes = self.routing.routes(graph, self.seed, of_partitions);
        let NetworkParts { from_host, buffers, pause_timers, traffic, passing, is_awaited, .. } =
            parts;
        let mut network =
            Network::new(ports, from_host, routes, buffers, traffic, passing, is_awaited);
        network.set_pause_timers(pause_timers);
        network.set_load_balancers(self.routing.load_balancers(graph, self.seed)?);
        if self.account {
            network.keep_records(self.packet_log(graph)?);
        }
        Ok(network)
    }

    /// Returns the transports of flows of `classes` with the fields that name them, by traffic class.
    pub(super) fn transports_by_traffic_class<'a>(
        &'a self,
        main: &'a controllers::Config,
        traffic: &TrafficClasses,
        classes: &[String],
    ) -> Vec<BTreeMap<String, &'a controllers::Config>> {
        let mut found = vec![BTreeMap::new(); traffic.numbers.len()];
        for (class, name) in classes.iter().enumerate() {
            let (field, transport) = match self.transports.get(name) {
                Some(transport) => (format!("transports.{name}"), transport),
                None => ("transport".to_owned(), main),
            };
            found[usize::from(traffic.of_flows(class))].insert(field, transport);
        }
        found
    }

    /// Returns the effective queues at switches and at hosts, by traffic class.
    pub(super) fn queues_by_traffic_class(
        &self,
        main: &controllers::Config,
        traffic: &TrafficClasses,
        classes: &[String],
    ) -> Vec<[disciplines::Config; 2]> {
        let members = self.transports_by_traffic_class(main, traffic, classes);
        let queues = |transports: &BTreeMap<String, &controllers::Config>| {
            let mut transports = transports.values().copied();
            let first = transports.next().unwrap_or(main);
            let has_one_transport =
                traffic.numbers.len() > 1 && transports.all(|other| other == first);
            self.queues(if has_one_transport { first } else { main })
        };
        members.iter().map(queues).collect()
    }

    /// Returns the queues in force of a scenario without a run; none in an ideal.
    pub(super) fn queues_on(&self, graph: &Graph) -> Result<Value, Problem> {
        let Some(transport) = &self.transport else { return Ok(json!([])) };
        let parts = self.network_parts(graph, transport, &self.flows(graph)?.classes)?;
        Ok(self.show_queues(graph, &parts.traffic, &parts.queues))
    }

    /// Shows the queues of each traffic class: their parameters, and capacities and thresholds of ports at
    /// links of each rate.
    pub(super) fn show_queues(
        &self,
        graph: &Graph,
        traffic: &TrafficClasses,
        queues: &[[disciplines::Config; 2]],
    ) -> Value {
        let mut links = BTreeMap::<(bool, Rate), u32>::new();
        for (id, link) in graph.links.iter().enumerate() {
            let rate = graph.nominal_rate(id as LinkId);
            *links.entry((graph.is_from_host(link), rate)).or_default() += 1;
        }
        let (base_rtt, packet) = (self.base_rtt(), self.packet.full());
        let show = |(class, [switch, host]): (&Number, &[disciplines::Config; 2])| {
            let ports = links.iter().map(|((is_host, rate), count)| {
                let (at, queue) = if *is_host { ("host", host) } else { ("switch", switch) };
                let [rate, opposite_rate] = [*rate; 2];
                let scale = LinkScale { rate, opposite_rate, base_rtt, packet, is_last_hop: false };
                let capacity = scale.limit(queue.capacity());
                let capacity =
                    capacity.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
                let mut port = json!({
                    "at": at, "rate_bps": rate.0, "links": count, "capacity": capacity,
                });
                for (name, limit) in queue.thresholds(scale) {
                    port[name] = limit.to_string().into();
                }
                port
            });
            let ports: Vec<Value> = ports.collect();
            json!({ "class": class, "switch": switch.show(), "host": host.show(), "ports": ports })
        };
        traffic.numbers.iter().zip(queues).map(show).collect()
    }

    /// Returns the plan of windows, or `None` if the run goes event by event.
    pub(super) fn window_plan(&self, graph: &Graph) -> Option<WindowPlan> {
        let worthwhile = || WindowPlan::worthwhile(graph, self.packet.full());
        match self.engine {
            None => worthwhile(),
            Some(Engine::Events) => None,
            Some(Engine::Windows) => {
                Some(worthwhile().unwrap_or_else(|| WindowPlan::finest(graph)))
            }
        }
    }

    /// Returns the interval in which counters of links are measured: from the end of the warm-up to the last
    /// arrival, or to the end of the run if flows do not arrive at a mean rate or long-lived flows send for
    /// longer.
    pub(super) fn measured_interval(&self, graph: &Graph) -> Result<MeasuredInterval, Problem> {
        let context = self.workload_context(graph);
        let last = self.workload.last_arrival(&context, self.time_limit);
        let last = last.map_err(|problem| problem.within("workload"))?;
        let estimate = self.workload.estimate(&context);
        let estimate = estimate.map_err(|problem| problem.within("workload"))?;
        let outlasts = |last| estimate.long_lived_end.is_some_and(|end| end > last);
        let end = last.filter(|last| *last > self.warm_up && !outlasts(*last));
        let end = end.unwrap_or(Time::NEVER);
        Ok(MeasuredInterval::new([self.warm_up, end]))
    }

    /// Returns the interval in which all long-lived flows that start within the time limit send: from the
    /// last start, or the end of the warm-up, to the first stop; none if they never send together.
    pub(super) fn common_interval(&self, graph: &Graph) -> Result<Option<[Time; 2]>, Problem> {
        let context = self.workload_context(graph);
        let estimate = self.workload.estimate(&context);
        if estimate.map_err(|problem| problem.within("workload"))?.long_lived_end.is_none() {
            return Ok(None);
        }
        let started = self.flows(graph)?.flows.take_while(|flow| flow.start < self.time_limit);
        let long_lived = started.filter(|flow| flow.size.is_none());
        let [from, to] = long_lived.fold([self.warm_up, Time::NEVER], |[from, to], flow| {
            [from.max(flow.start), to.min(flow.stop.unwrap_or(Time::NEVER))]
        });
        Ok((from < to.min(self.time_limit)).then_some([from, to]))
    }

    /// Builds the simulation of one partition.
    pub(super) fn simulation<'a>(
        &'a self,
        graph: &'a Graph,
        windows: Option<WindowPlan>,
        partition: Partition,
        transport: &'a controllers::Config,
        measured: MeasuredInterval,
        common: Option<[Time; 2]>,
    ) -> Result<Simulation<'a>, Problem> {
        let flows = self.flows(graph)?;
        let mut network = self.network(graph, transport, &flows.classes, &partition)?;
        let changes = self.changes(graph)?;
        for link in changes.iter().flat_map(|change| [change.cable, change.cable ^ 1]) {
            network.may_fail(link);
        }
        let mut recorder = self.recorder(graph)?;
        recorder.chained_flows.clone_from(&self.account_flows);
        recorder.recording = self.record.as_ref().map(|config| {
            Box::new(Recording::new(config, graph.links.len(), self.expected_flows(graph)))
        });
        let setup = SimulationSetup {
            graph,
            window_plan: windows,
            partition,
            link_changes: changes,
            transports: Transports::new(
                transport,
                &self.transports,
                &flows.classes,
                &self.packet,
                self.host.port_share(),
                self.effective_entropy(),
                self.base_rtt(),
            ),
            host_clock: &self.host,
            format: &self.packet,
            seed: self.seed,
            measured,
            common: CommonInterval::new(common),
        };
        Ok(Simulation::new(setup, network, flows, recorder))
    }

    /// Checks that controllers and stacks that do not come with the core have been provided.
    pub(super) fn check_complete(&self) -> Result<(), Problem> {
        for (field, transport) in self.all_transports() {
            if let controllers::Config::python(config) = transport
                && config.controller.maker.is_none()
            {
                let message = "is written in Python, and runs from there only";
                return Err(Problem::new(format!("{field}.controller"), message));
            }
            if transport.has_own_stack() && transport.stack().is_none() {
                let name = transport.name();
                let message =
                    format!("`{name}` is not in this build: `make build FEATURES={name}`");
                return Err(Problem::new(field, message));
            }
        }
        Ok(())
    }
}

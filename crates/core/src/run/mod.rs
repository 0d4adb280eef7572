//! Runs a scenario: builds what it names, lets the model work, and hands over columns and a
//! summary.

pub mod estimate;
pub mod linux_defaults;
pub mod scenario;
use serde_json::{Value, json};

use crate::VERSION;
use crate::base::random::Random;
use crate::base::run_control::{Progress, RunControl};
use crate::base::schema::{Parameter, Problem, did_you_mean};
use crate::base::units::{Bytes, Duration, Time};
use crate::ideal::{self, Ideal, IdealSetup};
use crate::model::flow::{FlowRecord, FlowSpec, Outcome};
use crate::model::graph::{Change, Graph, Link, LinkId};
use crate::model::host_clock::Stamps;
use crate::network::Network;
use crate::network::link::loss::{self, Losses};
use crate::network::port::pause_state::PauseState;
use crate::network::port::{Port, PortConfig};
use crate::network::routes::Routes;
use crate::network::switch::pause_watchdog::{self, Deadlock};
use crate::network::switch::shared_buffer::Buffers;
use crate::network::switch::traffic_classes::{Number, TrafficClasses};
use crate::queueing::disciplines;
use crate::record::rtts::Histogram;
use crate::record::{Breakdowns, Chains, FlowColumns, Recorder, Samples};
use crate::router::PortInfo;
use crate::run::scenario::{Engine, Model, Scenario};
use crate::schedule::{Partition, WindowPlan};
use crate::simulation::{self, Simulation, Transports, run_on_threads};
use crate::traffic::{FlowStream, WorkloadContext};
use crate::transport::controllers;

/// What a run gives.
#[derive(Clone, Debug)]
pub struct Results {
    /// The flows.
    pub flows: FlowColumns,
    /// Names of the classes.
    pub classes: Vec<String>,
    /// The samples.
    pub samples: Samples,
    /// The accounts of flows that have finished, if the scenario asks for them.
    pub account: Option<Breakdowns>,
    /// The chains of causes of the flows of which the scenario asks for them.
    pub chains: Chains,
    /// Everything else: scenario, counts, links, what is stuck.
    pub summary: Value,
}

/// A thread has at least so many groups of nodes to serve: with fewer it waits more than it works.
const GROUPS_A_THREAD: usize = 32;

/// Checks that what is said of some classes of flows is said of such as there are.
fn check_classes<'a>(
    field: &str,
    mut named: impl Iterator<Item = &'a str>,
    classes: &[String],
) -> Result<(), Problem> {
    let Some(class) = named.find(|class| !classes.iter().any(|known| known == class)) else {
        return Ok(());
    };
    let hint = did_you_mean(class, classes.iter().map(String::as_str));
    let message = format!("no flow has the class `{class}`{hint} ({})", classes.join(", "));
    Err(Problem::new(field, message))
}

impl Scenario {
    /// Builds the network.
    pub fn graph(&self) -> Result<Graph, Problem> {
        let graph = self.topology.graph(self.seed).map_err(|problem| problem.within("topology"))?;
        if matches!(self.model, Model::Ideal(_))
            && let Some(link) =
                graph.links.iter().find(|link| link.trace.is_some() || link.delays.is_some())
        {
            let field = if link.trace.is_some() { "rate_trace" } else { "delay_trace" };
            let message = "must be left out: an ideal shares out rates of links that do not change";
            return Err(Problem::new(format!("topology.{field}"), message));
        }
        Ok(graph)
    }

    /// What happens to the network's links, in order of time.
    fn changes(&self, graph: &Graph) -> Result<Vec<Change>, Problem> {
        let changes = Change::all(&self.failures, self.convergence, graph);
        changes.map_err(|problem| problem.within("failures"))
    }

    /// Opens the workload.
    fn flows(&self, graph: &Graph) -> Result<FlowStream, Problem> {
        let context = WorkloadContext { graph, format: &self.packet, seed: self.seed };
        let flows = self.workload.generate(&context).map_err(|problem| problem.within("workload"))?;
        if matches!(self.model, Model::Ideal(_)) {
            refuse_sequel(&flows, "an ideal takes")?;
        }
        let classes = &flows.classes;
        check_classes("transports", self.transports.keys().map(String::as_str), classes)?;
        check_classes("traffic_classes", self.traffic_classes.keys().map(String::as_str), classes)?;
        for (field, queue) in [("queue", &self.queue), ("host_queue", &self.host_queue)] {
            let weighed = queue.as_ref().map(|queue| queue.weighted_classes()).unwrap_or_default();
            check_classes(&format!("{field}.weights"), weighed.into_iter(), classes)?;
        }
        let mut transports = self.all_transports();
        let lacking = transports.find(|(_, transport)| transport.needs_deadlines());
        match lacking {
            Some((_, transport)) if !flows.has_deadlines => {
                let name = transport.name();
                let message =
                    format!("no flow has a deadline, and this `{name}` is made for deadlines");
                Err(Problem::new("workload", message))
            }
            _ => Ok(flows),
        }
    }

    /// The workload as flows that have not run; refused if it needs more than so many bytes of `memory`.
    pub fn trace(&self, memory: Option<u64>) -> Result<(FlowColumns, Vec<String>), Problem> {
        let graph = self.graph()?;
        self.check_size(&graph, memory)?;
        let flows = self.flows(&graph)?;
        refuse_sequel(&flows, "a trace holds")?;
        let mut columns = FlowColumns::default();
        for spec in flows.flows.take_while(|spec| spec.start <= self.time_limit) {
            columns.push(&untouched(spec));
        }
        Ok((columns, flows.classes))
    }

    /// Checks all that can be checked without running; refused if that needs more than so many bytes of
    /// `memory`.
    pub fn check(&self, memory: Option<u64>) -> Result<(), Problem> {
        let graph = self.graph()?;
        self.check_size(&graph, memory)?;
        let flows = self.flows(&graph)?;
        self.changes(&graph)?;
        if let Some(transport) = &self.transport {
            self.network(&graph, transport, &flows.classes, &Partition::whole(&graph))?;
        }
        Recorder::new(self.samples.as_ref(), self.warm_up, &graph)
            .map_err(|problem| problem.within("samples"))?;
        Ok(())
    }

    /// Runs until every flow has finished or the time limit is reached; `watch` may ask for a stop.
    pub fn run(&self, watch: &RunControl) -> Result<Results, Problem> {
        self.run_on(1, watch)
    }

    /// Does the same on so many threads, if the network can be served in windows: more than one are for one
    /// large run on idle cores. The results are the same to the bit.
    pub fn run_on(&self, threads: u32, watch: &RunControl) -> Result<Results, Problem> {
        let threads = if threads > 1 {
            let groups = self.cut(&self.graph()?).map_or(0, |cut| cut.groups());
            threads.min((groups / GROUPS_A_THREAD) as u32).max(1)
        } else {
            1
        };
        self.run_in_parts(threads, threads, watch)
    }

    /// Does the same with the network dealt out to so many parts, of which each thread serves some.
    pub fn run_in_parts(
        &self,
        parts: u32,
        threads: u32,
        watch: &RunControl,
    ) -> Result<Results, Problem> {
        let graph = self.graph()?;
        match (&self.model, &self.transport) {
            (Model::Packet, Some(transport)) => {
                self.simulate(&graph, transport, [parts, threads], watch)
            }
            (Model::Packet, None) => unreachable!("a scenario is checked when it is parsed"),
            (Model::Ideal(ideal), _) => self.idealise(&graph, &**ideal, watch),
        }
    }

    /// Builds the network, for flows of these classes.
    fn network(
        &self,
        graph: &Graph,
        transport: &controllers::Config,
        classes: &[String],
        part: &Partition,
    ) -> Result<Network, Problem> {
        let packet = self.packet.full().max(self.packet.ack);
        let traffic = TrafficClasses::new(&self.traffic_classes, classes);
        let buffers = Buffers::new(&self.switch, graph, packet, &traffic);
        let buffers = buffers.map_err(|problem| problem.within("switch"))?;
        if buffers.is_some() && graph.hosts_are_routers {
            let message = "must be left out: this topology has no switch";
            return Err(Problem::new("switch.shared_buffer", message));
        }
        let control_priority = self.switch.control_priority || self.switch.pause.is_some();
        let queues = self.queues_by_traffic_class(transport, &traffic, classes);
        let from_host: Vec<bool> =
            graph.links.iter().map(|link| graph.is_from_host(link)).collect();
        let router = self.router_in_force();
        if let Some(router) = &router
            && graph.links.len() > router.max_links()
        {
            let (most, links) = (router.max_links(), graph.links.len());
            let message =
                format!("`{}` serves networks of up to {most} links, not {links}", router.name());
            return Err(Problem::new("router", message));
        }
        let mut transports = self.all_transports();
        let is_paced =
            transports.any(|(_, transport)| transport.mechanism(&self.packet).pacing.is_some());
        let port = |link: usize| {
            let rate = graph.links[link].rate;
            let place = PortInfo { link: link as LinkId, rate };
            let random = |purpose| Random::new(self.seed, &format!("{purpose}/{link}"));
            let router = router.as_ref().map(|router| router.build(place, random("router")));
            let behaviour = |[at_switch, at_host]: &[disciplines::Config; 2]| {
                if from_host[link] { at_host.build(rate) } else { at_switch.build(rate) }
            };
            let behaviours = queues.iter().map(behaviour).collect();
            // Senders that pace want to know when their hosts have sent.
            let is_awaited = from_host[link] && is_paced;
            let stamps = from_host[link] && self.host.stamps == Stamps::Wire;
            let keeps_account = self.account;
            let service =
                PortConfig { control_first: control_priority, is_awaited, stamps, keeps_account };
            let losses = Losses::new(&graph.links[link].loss, || random("loss"));
            Port::new(&graph.links[link], behaviours, router, service, random("port"), losses)
        };

        let ports = (0..graph.links.len()).map(port).collect();
        let routes = Routes::new(graph, self.routing, self.seed, (part.number, part.parts));
        let mut network =
            Network::new(ports, from_host, routes, buffers, traffic, control_priority, is_paced);
        network.records = self.account.then(Box::default);
        Ok(network)
    }

    /// The queues in force at switches and at hosts, by traffic class.
    fn queues_by_traffic_class(
        &self,
        most: &controllers::Config,
        traffic: &TrafficClasses,
        classes: &[String],
    ) -> Vec<[disciplines::Config; 2]> {
        let of = |index: usize| {
            let flows = classes.iter().enumerate();
            let mine = flows.filter(|(class, _)| usize::from(traffic.of_flows(*class)) == index);
            let mut transports = mine.map(|(_, name)| self.transports.get(name).unwrap_or(most));
            let first = transports.next().unwrap_or(most);
            let is_alone = traffic.numbers.len() > 1 && transports.all(|other| other == first);
            self.queues(if is_alone { first } else { most })
        };
        (0..traffic.numbers.len()).map(of).collect()
    }

    /// How the network is cut, if it is to be served in windows.
    fn cut(&self, graph: &Graph) -> Option<WindowPlan> {
        let worthwhile = || WindowPlan::worthwhile(graph, self.packet.full());
        match self.engine {
            None => worthwhile(),
            Some(Engine::Events) => None,
            Some(Engine::Windows) => {
                Some(worthwhile().unwrap_or_else(|| WindowPlan::finest(graph)))
            }
        }
    }

    /// Builds a part of the simulation.
    fn simulation<'a>(
        &'a self,
        graph: &'a Graph,
        cut: Option<WindowPlan>,
        part: Partition,
        transport: &'a controllers::Config,
    ) -> Result<Simulation<'a>, Problem> {
        let flows = self.flows(graph)?;
        let mut network = self.network(graph, transport, &flows.classes, &part)?;
        let changes = self.changes(graph)?;
        for link in changes.iter().flat_map(|change| [change.cable, change.cable ^ 1]) {
            network.ports[link as usize].may_fail();
        }
        let mut recorder = Recorder::new(self.samples.as_ref(), self.warm_up, graph)
            .map_err(|p| p.within("samples"))?;
        recorder.chained.clone_from(&self.account_flows);
        let (host, format, seed) = (&self.host, &self.packet, self.seed);
        let stacks = Transports::new(transport, &self.transports, &flows.classes, format);
        let setting =
            simulation::SimulationSetup { graph, cut, part, changes, stacks, host, format, seed };
        Ok(Simulation::new(setting, network, flows, recorder))
    }

    /// Checks that what runs flows, but does not come with the core, has been given.
    fn check_complete(&self) -> Result<(), Problem> {
        for (field, transport) in self.all_transports() {
            if matches!(transport, controllers::Config::python(it) if it.controller.maker.is_none())
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

    fn simulate(
        &self,
        graph: &Graph,
        transport: &controllers::Config,
        [parts, threads]: [u32; 2],
        watch: &RunControl,
    ) -> Result<Results, Problem> {
        self.check_complete()?;
        // Both ends of such a flow are in one place.
        let has_own_stack = self.all_transports().any(|(_, transport)| transport.has_own_stack());
        let cut = self.cut(graph);
        let parts = match &cut {
            Some(cut) if parts > 1 && !has_own_stack => Partition::deal(graph, cut, parts),
            _ => vec![Partition::whole(graph)],
        };
        let (shares, count) = (parts.len(), parts.len().min(threads as usize));
        let simulation = |part| self.simulation(graph, cut.clone(), part, transport);
        let mut simulations: Vec<_> =
            parts.into_iter().map(simulation).collect::<Result<_, _>>()?;
        let simulation = match simulations.pop() {
            Some(mut alone) if simulations.is_empty() => {
                alone.run(self.time_limit, watch)?;
                alone
            }
            last => {
                simulations.extend(last);
                run_on_threads(simulations, count, self.time_limit, watch)?
            }
        };
        let (load, has_sequel) = (simulation.load().to_owned(), simulation.has_sequel());
        let classes = simulation.classes().to_vec();
        let Simulation { network, recorder, totals, stuck, deadlocks, .. } = simulation;
        let sum = |count: fn(&Port) -> u64| network.ports.iter().map(count).sum::<u64>();
        let data = sum(|port| port.counters.data);
        let queues = self.queues_by_traffic_class(transport, &network.traffic, &classes);
        let mut summary = self.summary(graph, &recorder.records, totals.ended, &load, &stuck);
        if has_sequel {
            // When flows start that follow others is the transport's doing.
            summary["realised_load"] = Value::Null;
        }
        let router = self.router_in_force();
        if let Some(rtts) = &recorder.rtts {
            summary["rtts"] = show_rtts(rtts, &classes);
        }
        summary["router"] = router.as_ref().map_or(Value::Null, Parameter::show);
        let slowest = graph.links.iter().map(|link| link.rate).min().unwrap_or_default();
        let of_router = router.iter().filter_map(|router| router.warning());
        let of_pauses =
            pause_watchdog::warning(&network, graph, &deadlocks, totals.ended, self.time_limit);
        let of_transports = self
            .all_transports()
            .filter_map(|(_, transport)| transport.warning(slowest, &self.packet));
        let of_losses = loss::warnings(graph, &network.ports);
        let warnings = of_router.chain(of_transports).chain(of_pauses).chain(of_losses);
        summary["warnings"] = warnings.collect();
        let number = network.traffic.numbers.iter();
        let of_class = |(class, [switch, host]): (&Number, &[disciplines::Config; 2])| {
            let (switch, host) = (switch.show(), host.show());
            json!({ "class": class, "switch": switch, "host": host })
        };
        summary["queues"] = number.zip(&queues).map(of_class).collect();
        merge(
            &mut summary["counts"],
            json!({
                "packets": totals.packets,
                "packet_hops": { "data": data, "ack": sum(|port| port.counters.departed) - data },
                "events": totals.events,
                "drops": sum(|port| port.counters.dropped),
                "losses": sum(|port| port.counters.lost),
                "marks": sum(|port| port.counters.marked),
                "pauses": sum(|port| port.pauses().iter().map(|pauses| pauses.count).sum()),
            }),
        );
        let of_deadlock = |deadlock: &Deadlock| {
            let links = deadlock.names(&network.traffic, graph);
            let since = deadlock.since.seconds();
            json!({ "links": links, "since_s": since })
        };
        summary["deadlocks"] = deadlocks.iter().map(of_deadlock).collect();
        summary["memory"] = json!({
            "bytes_per_live_flow": Simulation::BYTES_PER_LIVE_FLOW,
            "bytes_per_idle_flow": Simulation::BYTES_PER_IDLE_FLOW,
            "live_flows_max": totals.live_flows_max,
        });
        summary["engine"] = match &cut {
            None => json!({ "kind": Engine::Events.show() }),
            Some(cut) => json!({
                "kind": Engine::Windows.show(),
                "window_s": cut.window.seconds(),
                "groups": cut.groups(),
                "windows": totals.windows,
                "parts": shares,
                "balance": share(totals.events, shares as u64 * totals.critical),
                "threads": count,
            }),
        };
        let elapsed = totals.ended.since(Time::ZERO);
        let numbers = &network.traffic.numbers;
        let link =
            |(id, port): (usize, &Port)| describe(graph, id as LinkId, port, numbers, elapsed);
        summary["links"] = network.ports.iter().enumerate().map(link).collect();
        let Recorder { records: flows, samples, accounts, chains, .. } = recorder;
        let account = self.account.then_some(accounts);
        Ok(Results { flows, classes, samples, account, chains, summary })
    }

    fn idealise(
        &self,
        graph: &Graph,
        ideal: &dyn Ideal,
        watch: &RunControl,
    ) -> Result<Results, Problem> {
        let FlowStream { flows, load, classes, .. } = self.flows(graph)?;
        let mut routes = Routes::new(graph, self.routing, self.seed, (0, 1));
        let setting = IdealSetup { graph, format: &self.packet, limit: self.time_limit, watch };
        let route = |spec: &FlowSpec, links: &mut Vec<LinkId>| {
            let there = routes.way(spec.source, spec.target, spec.id);
            links.extend(routes.links(there).next().unwrap_or_default());
            routes.release(there);
        };
        let flows = flows.take_while(|_| !watch.is_stopped());
        let outcome = ideal::run(ideal, setting, flows, route);
        watch.poll(Progress::default)?;
        let flows = columns(&outcome.records);
        let mut summary = self.summary(graph, &flows, outcome.end, &load, &[]);
        let elapsed = outcome.end.seconds();
        summary["links"] = (0..graph.links.len())
            .map(|id| {
                let (bytes, rate) = (outcome.link_bytes[id], graph.links[id].rate);
                let share = if elapsed > 0.0 { bytes * 8.0 / rate.bps() / elapsed } else { 0.0 };
                json!({
                    "name": graph.link_name(id as LinkId),
                    "rate_bps": rate.0,
                    "bytes": bytes.round() as u64,
                    "utilisation": share,
                })
            })
            .collect();
        let (samples, chains) = (Samples::default(), Chains::default());
        Ok(Results { flows, classes, samples, account: None, chains, summary })
    }

    /// What every model has to say about a run.
    fn summary(
        &self,
        graph: &Graph,
        flows: &FlowColumns,
        ended: Time,
        load: &str,
        stuck: &[String],
    ) -> Value {
        let sum = |column: &[u32]| column.iter().map(|count| u64::from(*count)).sum::<u64>();
        json!({
            "version": VERSION,
            "seed": self.seed,
            "scenario": self.show(),
            "load": load,
            "load_reference": { "rate_bps": graph.load.rate.0, "what": graph.load.what },
            "realised_load": flows
                .offered_bps(|size| self.packet.on_wire(size))
                .map(|bps| bps / graph.load.rate.bps()),
            "simulated_s": ended.seconds(),
            "counts": {
                "flows": flows.flow.len(),
                "finished": flows.count(Outcome::Finished),
                "unfinished": flows.count(Outcome::Unfinished),
                "long_lived": flows.count(Outcome::LongLived),
                "terminated": flows.count(Outcome::Terminated),
                "retransmits": sum(&flows.retransmits),
                "timeouts": sum(&flows.timeouts),
            },
            "stuck": stuck,
        })
    }
}

/// Ideals and traces need to know all flows beforehand.
fn refuse_sequel(flows: &FlowStream, who: &str) -> Result<(), Problem> {
    if flows.dependencies.is_some() {
        let message =
            format!("{who} only flows that start by themselves, but here some follow others");
        return Err(Problem::new("workload", message));
    }
    Ok(())
}

/// Round-trip times by class, in the bins that are not empty.
fn show_rtts(rtts: &[Histogram], classes: &[String]) -> Value {
    let of_class = |(rtts, class): (&Histogram, &String)| {
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
    rtts.iter().zip(classes).map(of_class).collect()
}

/// A share of something; all of it, if there is nothing.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

fn merge(table: &mut Value, more: Value) {
    if let (Value::Object(table), Value::Object(more)) = (table, more) {
        table.extend(more);
    }
}

fn columns(records: &[FlowRecord]) -> FlowColumns {
    let mut columns = FlowColumns::default();
    for record in records {
        columns.push(record);
    }
    columns
}

/// The record of a flow that has not run.
fn untouched(spec: FlowSpec) -> FlowRecord {
    let outcome = if spec.size.is_some() { Outcome::Unfinished } else { Outcome::LongLived };
    FlowRecord {
        spec,
        outcome,
        fct: None,
        acked: None,
        ideal_fct: Duration::ZERO,
        delivered: Bytes::ZERO,
        retransmits: 0,
        timeouts: 0,
    }
}

/// What passed over a link, and the pauses of its traffic classes, of which these are the numbers.
fn describe(
    graph: &Graph,
    id: LinkId,
    port: &Port,
    numbers: &[Number],
    elapsed: Duration,
) -> Value {
    let (counters, pauses) = (&port.counters, PauseState::of_all(port.pauses()));
    let Link { rate, trace, .. } = &graph.links[id as usize];
    let seconds = elapsed.seconds();
    let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
    let carried = counters.bytes as f64 * 8.0;
    let utilisation = trace.as_ref().map_or_else(
        || per_second(carried / rate.bps()),
        |trace| carried / trace.bits(Time::ZERO + elapsed).max(1.0),
    );
    let mut link = json!({
        "name": graph.link_name(id),
        "rate_bps": rate.0,
        "utilisation": utilisation,
        "bytes": counters.bytes,
        "packets": counters.departed,
        "drops": counters.dropped,
        "losses": counters.lost,
        "marks": counters.marked,
        "pauses": pauses.count,
        "paused_s": pauses.total.seconds(),
        "longest_pause_s": pauses.longest.seconds(),
        "queue_mean_bytes": per_second(counters.queue_area as f64 / 1e12),
        "queue_max_bytes": counters.queue_max,
    });
    if port.pauses().len() > 1 {
        let of_class = |(number, pauses): (&Number, &PauseState)| {
            json!({
                "class": number,
                "pauses": pauses.count,
                "paused_s": pauses.total.seconds(),
                "longest_pause_s": pauses.longest.seconds(),
            })
        };
        link["classes"] = numbers.iter().zip(port.pauses()).map(of_class).collect();
    }
    if let Some(priority_counts) = port.priority_counts() {
        link["priority_counts"] =
            json!({ "arrived": priority_counts.arrived, "dropped": priority_counts.dropped });
    }
    link
}

//! Pending flows and the start of flows.

use rustc_hash::FxHashMap;

use super::connections::StreamFlows;
use super::ends::{PacketCounts, ReceiverEnd, SenderEnd, SharedState};
use crate::base::random::{Random, mix};
use crate::base::schema::Problem;
use crate::base::units::{Rate, Time};
use crate::model::flow::{FlowSpec, HostId};
use crate::model::graph::{Graph, LinkId};
use crate::model::packet::FlowNumber;
use crate::network::routes::{PathSelector, Route};
use crate::record::rtts::{RttProbes, RttTrace};
use crate::router::FlowInfo;
use crate::schedule::{Event, Partition, Scheduler};
use crate::simulation::Simulation;
use crate::simulation::partitions::messages::FlowOpened;
use crate::traffic::{Dependencies, FlowStream};
use crate::transport::Path;
use crate::transport::endpoint::breakdown::SenderBreakdown;
use crate::transport::endpoint::receiver::Receiver;
use crate::transport::endpoint::sender::Sender;
use crate::transport::selector::ValueUse;

/// Flows that have not started. A flow is announced when its start event is scheduled.
pub(in crate::simulation) struct PendingFlows {
    /// Names of the workload's classes.
    pub(in crate::simulation) classes: Vec<String>,
    /// Description of the workload's load.
    pub(in crate::simulation) load: String,
    flows: Box<dyn Iterator<Item = FlowSpec> + Send>,
    /// First flow of the workload that is not announced.
    next: Option<FlowSpec>,
    /// Start of the last announced flow of the workload.
    announced_until: Time,
    /// Announced flows by number.
    announced: FxHashMap<FlowNumber, FlowSpec>,
    dependencies: Option<Box<dyn Dependencies>>,
    /// Flows that follow the one that has just ended; empty between events.
    following: Vec<FlowSpec>,
    /// `measured_until` of other partitions, at the end of the run.
    measured_by_others: Vec<(u16, Time)>,
}

impl PendingFlows {
    /// Takes the flows of a workload that start in a partition.
    pub(in crate::simulation) fn new(
        workload: FlowStream,
        partition: &Partition,
        graph: &Graph,
    ) -> Self {
        let FlowStream { classes, load, flows, dependencies, .. } = workload;
        let is_local: Vec<bool> = graph.hosts.iter().map(|host| partition.owns(*host)).collect();
        let is_local = move |spec: &FlowSpec| is_local[spec.source as usize];
        let mut flows: Box<dyn Iterator<Item = FlowSpec> + Send> =
            if partition.has_others() { Box::new(flows.filter(is_local)) } else { flows };
        let next = flows.next();
        let (announced_until, announced) = (Time::ZERO, FxHashMap::default());
        Self {
            classes,
            load,
            flows,
            next,
            announced_until,
            announced,
            dependencies,
            following: Vec::new(),
            measured_by_others: Vec::new(),
        }
    }

    /// Returns true if all flows have started.
    pub(in crate::simulation) fn is_empty(&self) -> bool {
        self.next.is_none() && self.announced.is_empty()
    }

    /// Returns true if flows depend on others.
    pub(in crate::simulation) fn has_dependencies(&self) -> bool {
        self.dependencies.is_some()
    }

    /// Returns classes and the start from which their flows are no longer measured.
    pub(in crate::simulation) fn measured_until(&self) -> Vec<(u16, Time)> {
        let of_others = self.measured_by_others.iter().copied();
        let own = self.dependencies.as_ref().map(|dependencies| dependencies.measured_until());
        of_others.chain(own.into_iter().flatten()).collect()
    }

    /// Takes over, at the end of the run, what another partition measures, and flows that have not started in
    /// it: one of the workload stands for all.
    pub(in crate::simulation) fn absorb(&mut self, other: &mut Self) {
        self.measured_by_others.extend(other.measured_until());
        self.next = self.next.take().or(other.next.take());
        self.announced.extend(other.announced.drain());
    }

    /// Takes the workload's next flow. At the end of the workload, frees its memory.
    fn advance(&mut self) {
        self.next = self.flows.next();
        if self.next.is_none() {
            self.flows = Box::new(std::iter::empty());
        }
    }

    /// Announces the next flows of the workload, all that start at the same time, after the previous ones
    /// have started.
    pub(in crate::simulation) fn announce_next(
        &mut self,
        scheduler: &mut Scheduler,
    ) -> Result<(), Problem> {
        let Some(next) = self.next.as_ref().filter(|_| scheduler.now() >= self.announced_until)
        else {
            return Ok(());
        };
        self.announced_until = next.start;
        while let Some(spec) = self.next.take_if(|next| next.start == self.announced_until) {
            self.advance();
            self.announce(spec, scheduler)?;
        }
        Ok(())
    }

    /// Start of the first flow that is not announced, or [`Time::NEVER`].
    pub(in crate::simulation) fn next_start(&self) -> Time {
        self.next.as_ref().map_or(Time::NEVER, |next| next.start)
    }

    /// Announces all flows of the workload that start before `end`, each at its host.
    pub(in crate::simulation) fn announce_before(
        &mut self,
        end: Time,
        graph: &Graph,
        scheduler: &mut Scheduler,
    ) -> Result<(), Problem> {
        self.announced_until = Time::NEVER;
        while let Some(spec) = self.next.take_if(|next| next.start < end) {
            self.advance();
            scheduler.enter(graph.hosts[spec.source as usize]);
            self.announce(spec, scheduler)?;
        }
        Ok(())
    }

    /// Announces a flow.
    fn announce(&mut self, spec: FlowSpec, scheduler: &mut Scheduler) -> Result<(), Problem> {
        let number = FlowNumber::try_from(spec.id).ok().filter(|number| *number < FlowNumber::MAX);
        let Some(number) = number else {
            let message =
                format!("flow {}: there may be no more than {}", spec.id, FlowNumber::MAX);
            return Err(Problem::new("workload", message));
        };
        scheduler.push(spec.start, Event::FlowStart(number));
        self.announced.insert(number, spec);
        Ok(())
    }

    /// Announces the flows that follow the delivery of another.
    pub(in crate::simulation) fn on_delivery(
        &mut self,
        delivered: &FlowSpec,
        scheduler: &mut Scheduler,
    ) -> Result<(), Problem> {
        let Some(dependencies) = &mut self.dependencies else { return Ok(()) };
        dependencies.on_delivery(delivered, scheduler.now(), &mut self.following);
        self.announce_following(delivered.target, scheduler)
    }

    /// Announces the flows that follow the end of a sender.
    pub(in crate::simulation) fn on_sent(
        &mut self,
        sent: &FlowSpec,
        scheduler: &mut Scheduler,
    ) -> Result<(), Problem> {
        let Some(dependencies) = &mut self.dependencies else { return Ok(()) };
        dependencies.on_sent(sent, scheduler.now(), &mut self.following);
        self.announce_following(sent.source, scheduler)
    }

    /// Announces the flows in `following`. Events go to the queue of the current node, which is their source.
    fn announce_following(
        &mut self,
        source: HostId,
        scheduler: &mut Scheduler,
    ) -> Result<(), Problem> {
        let mut following = std::mem::take(&mut self.following);
        for spec in following.drain(..) {
            debug_assert_eq!(spec.source, source, "source of flow {}", spec.id);
            self.announce(spec, scheduler)?;
        }
        self.following = following;
        Ok(())
    }
}

impl Simulation<'_> {
    /// Starts a flow.
    pub(in crate::simulation) fn on_flow_start(
        &mut self,
        number: FlowNumber,
    ) -> Result<(), Problem> {
        self.pending_flows.announce_next(&mut self.scheduler)?;
        let spec = self.pending_flows.announced.remove(&number);
        self.start_flow(spec.unwrap_or_else(|| unreachable!("every flow starts once")), number)
    }

    fn start_flow(&mut self, spec: FlowSpec, number: FlowNumber) -> Result<(), Problem> {
        let (graph, format, now) = (self.graph, &self.format, self.scheduler.now());
        if let Some(size) = spec.size
            && format.packets(size) >= u64::from(u32::MAX)
        {
            let message = format!("flow {}: {size} are more than {} packets", spec.id, u32::MAX);
            return Err(Problem::new("workload", message));
        }
        let connection = spec.connection_key();
        if let Some(slot) = connection.and_then(|key| self.connections.get(&key).copied()) {
            return self.append_flow(slot, spec);
        }
        let route = self.network.routes_mut().allocate(spec.source, spec.target, spec.path_key());
        let [_, reverse] = route.both();
        let routes = self.network.routes();
        // The window of a sprayed flow is to fill the slowest of its paths.
        let time = |route, bytes| routes.longest_packet_time(graph, route, format, bytes);
        let transport = self.transports.of_class(spec.class);
        let mut cached_state =
            self.path_states.get(&(spec.source, spec.target)).copied().unwrap_or_default();
        if !transport.mechanism.reliability.cached_ssthresh {
            cached_state.ssthresh = None;
        }
        let base_rtt = time(route, format.full()) + time(reverse, format.ack);
        let line_rate = routes.line_rate(graph, route);
        let path = Path {
            flow: spec.id,
            line_rate,
            max_pacing_rate: if graph.hosts_are_routers { Rate(u64::MAX) } else { line_rate },
            base_rtt,
            longest_rtt: self.transports.base_rtt.max(base_rtt),
            hops: routes.links(route).next().map_or(0, <[LinkId]>::len) as u32,
            format: format.clone(),
            other_flows: self.active_senders[spec.source as usize],
            initial_rate: spec.initial_rate,
            size: spec.size,
            start: now,
            deadline: spec.deadline.map_or(Time::NEVER, |deadline| now + deadline),
            stamps: self.stamps,
            seed: mix(self.seed ^ mix(spec.id)),
            cached_state,
        };
        let [forward, _] = self.path_selectors(route, spec.id);
        let keeps_breakdown = self.network.records().is_some();
        let trace = self.recorder.trace(spec.id);
        let ends = transport.config.stack().map(|stack| stack.connect(&path));
        let [source, target] = ends.map_or([None, None], |ends| ends.map(Some));
        let mut sender = Sender::new(spec.size, &transport.mechanism, format, now);
        if let Some((_, _, _, from_server)) = connection {
            sender.begin_stream(from_server);
        }
        if let Some(rtt) = cached_state.rtt {
            sender.use_cached_rtt(rtt);
        }
        let mut sender_end = SenderEnd {
            number,
            class: spec.class,
            is_stream: connection.is_some(),
            awaits_turn: false,
            closed_at: Time::NEVER,
            controller: transport.config.controller(&path),
            packets: PacketCounts::default(),
            wake_at: Time::NEVER,
            stop_at: spec.stop.unwrap_or(Time::NEVER),
            forward,
            entropy: self
                .transports
                .entropy
                .map(|kind| kind.build(Random::new(path.seed, "entropy"), forward.paths())),
            sender,
            // A flow without a size has no FCT.
            breakdown: (keeps_breakdown && spec.size.is_some())
                .then(|| Box::new(SenderBreakdown::new(now, self.recorder.chain_bound(spec.id)))),
            external_stack: source,
        };
        if sender_end.is_stream
            && let Some(breakdown) = &mut sender_end.breakdown
        {
            breakdown.begin_stream(sender_end.sender.stream_end());
        }
        let flow_info =
            FlowInfo { flow: spec.id, deadline: path.deadline, line_rate: path.line_rate };
        let is_traced = trace.is_some();
        let opened = FlowOpened { number, spec, flow_info, route, is_traced };
        self.active_senders[spec.source as usize] += 1;
        let slot = self.insert_flow(&opened, Some(sender_end), trace);
        self.live_flow_count.record(now, 1);
        self.local_flows += 1;
        if self.partition.has_others() {
            self.partition_links.news.opened.push(opened);
        }
        if let Some(key) = connection {
            self.connections.insert(key, slot);
        }
        if target.is_some() {
            self.attach_stack(slot, target);
            self.send_datagrams(slot);
        } else {
            self.try_send(slot);
        }
        Ok(())
    }

    /// Returns the path selection of a flow's packets and of their answers.
    fn path_selectors(&self, route: Route, flow: u64) -> [PathSelector; 2] {
        let [forward, reverse] = self.network.routes().selectors(route, flow);
        match self.transports.entropy.map(|kind| kind.value_use()) {
            Some(ValueUse::Number) => [forward.with_numbers(), reverse],
            Some(ValueUse::OnePath) => [forward, reverse.with_one_path()],
            Some(ValueUse::Hash) | None => [forward, reverse],
        }
    }

    /// Adds what this partition needs of a flow that has started in another one.
    pub(in crate::simulation) fn start_remote_flow(&mut self, opened: &FlowOpened) {
        let is_target = self.partition.owns(self.graph.hosts[opened.spec.target as usize]);
        if is_target || self.network.tracks_flows() {
            let is_followed = is_target && opened.is_traced;
            let trace = is_followed.then(|| Box::new(RttTrace::new(RttProbes::default())));
            let slot = self.insert_flow(opened, None, trace);
            if is_followed {
                self.flows.traced_receivers.push(slot);
            }
        }
    }

    /// Inserts a flow with the ends that are in this partition.
    fn insert_flow(
        &mut self,
        opened: &FlowOpened,
        sender_end: Option<SenderEnd>,
        trace: Option<Box<RttTrace>>,
    ) -> usize {
        let &FlowOpened { number, spec, flow_info, route, .. } = opened;
        let transport = self.transports.of_class(spec.class);
        let is_stream = spec.connection.is_some();
        let receiver_end = || ReceiverEnd {
            number,
            class: spec.class,
            is_traced: trace.is_some(),
            is_stream,
            packets: PacketCounts::default(),
            respond_at: Time::NEVER,
            delivered: 0,
            expected: spec.size.filter(|_| !is_stream).map_or(u64::MAX, |size| size.0),
            receiver: Receiver::new(&transport.mechanism),
            reverse: self.path_selectors(route, spec.id)[1],
            completed_at: Time::NEVER,
            credit_scheduler: self.scheduler_of(&spec),
            breakdown: self.network.records().map(|_| Box::default()),
            external_stack: None,
        };
        let is_target = self.partition.owns(self.graph.hosts[spec.target as usize]);
        let receiver_end = is_target.then(receiver_end);
        let name = &self.pending_flows.classes[usize::from(spec.class)];
        let slot = self.network.register_flow(number, flow_info, spec.class, name, route) as usize;
        let keeps_breakdown = self.network.records().is_some();
        let has_sender = sender_end.is_some();
        let stream = spec.size.filter(|_| is_stream && (has_sender || is_target)).map(|size| {
            let end = self.format.packets(size) as u32;
            Box::new(StreamFlows::new(spec, end, keeps_breakdown, !has_sender))
        });
        let shared = SharedState {
            spec,
            route,
            lost: 0,
            trace,
            gauges: (has_sender && !is_stream && self.recorder.is_candidate(spec.id))
                .then(Box::default),
            remote_receiver: None,
            datagrams: None,
            stream,
        };
        self.flows.insert(slot, sender_end, receiver_end, shared);
        slot
    }

    /// Handles the delivery of all payload of a flow.
    pub(in crate::simulation) fn on_complete(&mut self, slot: usize) -> Result<(), Problem> {
        let Some(shared) = &self.flows.shared[slot] else { return Ok(()) };
        self.pending_flows.on_delivery(&shared.spec, &mut self.scheduler)
    }
}

/// Number of concurrent flows.
#[derive(Debug, Default)]
pub(in crate::simulation) struct LiveFlowCount {
    now: usize,
    /// Maximum. Flows that end when others start are not counted together.
    pub(in crate::simulation) max: usize,
    /// Changes since the last update.
    changes: Vec<(Time, i8)>,
}

impl LiveFlowCount {
    /// Adds a change of the number of flows at a time.
    pub(in crate::simulation) fn record(&mut self, time: Time, change: i8) {
        self.changes.push((time, change));
    }

    /// Merges the changes of another partition.
    pub(in crate::simulation) fn merge(&mut self, other: &mut Self) {
        self.changes.append(&mut other.changes);
    }

    /// Applies all changes. Later changes must not have earlier times.
    pub(in crate::simulation) fn update(&mut self) {
        self.changes.sort_unstable();
        for (_, change) in self.changes.drain(..) {
            self.now = self.now.saturating_add_signed(isize::from(change));
            self.max = self.max.max(self.now);
        }
    }
}

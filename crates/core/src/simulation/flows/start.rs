//! Flows that are yet to start, and how a flow starts.

use std::collections::BTreeMap;

use super::ends::{ReceiverEnd, SenderEnd, Shared, Tally};
use crate::base::random::mix;
use crate::base::schema::Problem;
use crate::base::units::Time;
use crate::model::flow::FlowSpec;
use crate::model::graph::{Graph, LinkId};
use crate::model::packet::FlowNumber;
use crate::record::rtts::{Probes, Trace};
use crate::router::FlowInfo;
use crate::schedule::{Event, Partition, Scheduler};
use crate::simulation::Simulation;
use crate::simulation::partitions::messages::FlowOpened;
use crate::traffic::{Dependencies, FlowStream};
use crate::transport::Path;
use crate::transport::endpoint::breakdown::SenderBreakdown;
use crate::transport::endpoint::receiver::Receiver;
use crate::transport::endpoint::sender::Sender;

/// Flows that are yet to start.
pub(in crate::simulation) struct PendingFlows {
    /// Names of the classes of flows.
    pub(in crate::simulation) classes: Vec<String>,
    /// What load this is, for people.
    pub(in crate::simulation) load: String,
    flows: Box<dyn Iterator<Item = FlowSpec> + Send>,
    /// The first flow of the workload that is not announced.
    next: Option<FlowSpec>,
    /// When the last of the workload's flows that are announced start.
    announced: Time,
    /// Flows that are announced, by number: each has an event.
    waiting: BTreeMap<FlowNumber, FlowSpec>,
    sequel: Option<Box<dyn Dependencies>>,
}

impl PendingFlows {
    /// Those of a workload that start at the hosts of a part of the run.
    pub(in crate::simulation) fn new(
        workload: FlowStream,
        part: &Partition,
        graph: &Graph,
    ) -> Self {
        let FlowStream { classes, load, flows, dependencies: sequel, .. } = workload;
        let is_own: Vec<bool> = graph.hosts.iter().map(|host| part.owns(*host)).collect();
        let is_own = move |spec: &FlowSpec| is_own[spec.source as usize];
        let mut flows: Box<dyn Iterator<Item = FlowSpec> + Send> =
            if part.has_others() { Box::new(flows.filter(is_own)) } else { flows };
        let next = flows.next();
        let (announced, waiting) = (Time::ZERO, BTreeMap::new());
        Self { classes, load, flows, next, announced, waiting, sequel }
    }

    /// Whether no flow is yet to start.
    pub(in crate::simulation) fn is_empty(&self) -> bool {
        self.next.is_none() && self.waiting.is_empty()
    }

    /// Whether flows follow others.
    pub(in crate::simulation) fn has_sequel(&self) -> bool {
        self.sequel.is_some()
    }

    /// Takes the workload's next flow. When there is none the workload is over, and its memory given back.
    fn advance(&mut self) {
        self.next = self.flows.next();
        if self.next.is_none() {
            self.flows = Box::new(std::iter::empty());
        }
    }

    /// Announces the workload's next flows, all that start together, when those before have started.
    pub(in crate::simulation) fn announce_next(
        &mut self,
        scheduler: &mut Scheduler,
    ) -> Result<(), Problem> {
        let Some(next) = self.next.as_ref().filter(|_| scheduler.now() >= self.announced) else {
            return Ok(());
        };
        self.announced = next.start;
        while let Some(spec) = self.next.take_if(|next| next.start == self.announced) {
            self.advance();
            self.announce(spec, scheduler)?;
        }
        Ok(())
    }

    /// When the first flow starts that is not announced; never, if there is none.
    pub(in crate::simulation) fn next_start(&self) -> Time {
        self.next.as_ref().map_or(Time::NEVER, |next| next.start)
    }

    /// Announces all flows of the workload that start before `ends`, each at its host.
    pub(in crate::simulation) fn announce_before(
        &mut self,
        ends: Time,
        graph: &Graph,
        scheduler: &mut Scheduler,
    ) -> Result<(), Problem> {
        self.announced = Time::NEVER;
        while let Some(spec) = self.next.take_if(|next| next.start < ends) {
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
        scheduler.push(spec.start, Event::Start(number));
        self.waiting.insert(number, spec);
        Ok(())
    }

    /// Announces the flow that follows one which has been delivered, if one does.
    pub(in crate::simulation) fn follow(
        &mut self,
        ended: &FlowSpec,
        scheduler: &mut Scheduler,
    ) -> Result<(), Problem> {
        let next =
            self.sequel.as_mut().and_then(|sequel| sequel.on_delivery(ended, scheduler.now()));
        next.map_or(Ok(()), |spec| self.announce(spec, scheduler))
    }
}

impl Simulation<'_> {
    /// A flow starts.
    pub(in crate::simulation) fn start(&mut self, number: FlowNumber) -> Result<(), Problem> {
        self.upcoming.announce_next(&mut self.scheduler)?;
        let spec = self.upcoming.waiting.remove(&number);
        self.open(spec.unwrap_or_else(|| unreachable!("every flow starts once")), number)
    }

    fn open(&mut self, spec: FlowSpec, number: FlowNumber) -> Result<(), Problem> {
        let there = self.network.routes_mut().allocate(spec.source, spec.target, spec.id);
        let [_, back] = there.both();
        let (graph, format, now) = (self.graph, &self.format, self.scheduler.now());
        if let Some(size) = spec.size
            && format.packets(size) >= u64::from(u32::MAX)
        {
            let message = format!("flow {}: {size} are more than {} packets", spec.id, u32::MAX);
            return Err(Problem::new("workload", message));
        }
        let routes = self.network.routes();
        let ideal_fct = |size| routes.ideal_fct(graph, [there].into_iter(), format, size).total();
        let path = Path {
            flow: spec.id,
            line_rate: routes.line_rate(graph, there),
            base_rtt: ideal_fct(format.payload) + routes.packet_time(graph, back, format.ack),
            hops: routes.links(there).next().map_or(0, <[LinkId]>::len) as u32,
            format: format.clone(),
            other_flows: self.sending[spec.source as usize],
            initial_rate: spec.initial_rate,
            size: spec.size,
            start: now,
            deadline: spec.deadline.map_or(Time::NEVER, |deadline| now + deadline),
            stamps: self.stamps,
            seed: mix(self.seed ^ mix(spec.id)),
            cached_state: self.memos.get(&(spec.source, spec.target)).copied(),
        };
        let keeps_account = self.network.records().is_some();
        let stack = self.stacks.of(spec.class);
        let trace = self.recorder.trace(spec.id);
        let ends = stack.transport.stack().map(|outside| outside.connect(&path));
        let [source, target] = ends.map_or([None, None], |ends| ends.map(Some));
        let sending = SenderEnd {
            number,
            class: spec.class,
            closed: Time::NEVER,
            controller: stack.transport.controller(&path),
            tally: Tally::default(),
            wakes: Time::NEVER,
            stops: spec.stop.unwrap_or(Time::NEVER),
            there: routes.selectors(there, spec.id)[0],
            sender: Sender::new(spec.size, &stack.mechanism, format, now),
            // Of a flow without end there is nothing to divide.
            ledger: (keeps_account && spec.size.is_some()).then(|| {
                Box::new(SenderBreakdown::new(now, self.recorder.chained.contains(&spec.id)))
            }),
            stack: source,
        };
        let flow_info =
            FlowInfo { flow: spec.id, deadline: path.deadline, line_rate: path.line_rate };
        let is_traced = trace.is_some();
        let opened = FlowOpened { number, spec, flow_info, there, is_traced };
        self.sending[spec.source as usize] += 1;
        let place = self.put(&opened, Some(sending), trace);
        self.population.note(now, 1);
        self.live += 1;
        if self.part.has_others() {
            self.abroad.news.opened.push(opened);
        }
        if target.is_some() {
            self.give(place, target);
            self.send_datagrams(place);
        } else {
            self.try_send(place);
        }
        Ok(())
    }

    /// Takes in what is here of a flow that has started in another part of the run.
    pub(in crate::simulation) fn adopt(&mut self, opened: &FlowOpened) {
        let is_target = self.part.owns(self.graph.hosts[opened.spec.target as usize]);
        if is_target || self.network.tracks_flows() {
            let is_followed = is_target && opened.is_traced;
            let trace = is_followed.then(|| Box::new(Trace::new(Probes::default())));
            let place = self.put(opened, None, trace);
            if is_followed {
                self.flows.followed.push(place);
            }
        }
    }

    /// Gives a flow a place, with its receiver if that is here.
    fn put(
        &mut self,
        opened: &FlowOpened,
        sending: Option<SenderEnd>,
        trace: Option<Box<Trace>>,
    ) -> usize {
        let &FlowOpened { number, spec, flow_info, there, .. } = opened;
        let stack = self.stacks.of(spec.class);
        let receiving = || ReceiverEnd {
            number,
            class: spec.class,
            is_traced: trace.is_some(),
            tally: Tally::default(),
            responds: Time::NEVER,
            delivered: 0,
            awaited: spec.size.map_or(u64::MAX, |size| size.0),
            receiver: Receiver::new(&stack.mechanism),
            back: self.network.routes().selectors(there, spec.id)[1],
            completed: Time::NEVER,
            receipt: self.network.records().map(|_| Box::default()),
            stack: None,
        };
        let is_target = self.part.owns(self.graph.hosts[spec.target as usize]);
        let receiving = is_target.then(receiving);
        let name = &self.upcoming.classes[usize::from(spec.class)];
        let place = self.network.register_flow(number, flow_info, spec.class, name, there) as usize;
        let shared = Shared { spec, there, lost: 0, trace, far: None, datagrams: None };
        self.flows.put(place, sending, receiving, shared);
        place
    }

    /// The payload of the flow in a place has all come.
    pub(in crate::simulation) fn complete(&mut self, place: usize) -> Result<(), Problem> {
        let Some(shared) = &self.flows.shared[place] else { return Ok(()) };
        self.upcoming.follow(&shared.spec, &mut self.scheduler)
    }
}

/// How many flows there are at a time.
#[derive(Debug, Default)]
pub(in crate::simulation) struct LiveFlowCount {
    now: usize,
    /// Most of them at a time: of those that start when others end, the others have ended.
    pub(in crate::simulation) most: usize,
    /// What has changed since it was last counted.
    changes: Vec<(Time, i8)>,
}

impl LiveFlowCount {
    /// One more flow from then on, or one less.
    pub(in crate::simulation) fn note(&mut self, time: Time, change: i8) {
        self.changes.push((time, change));
    }

    /// Takes over what another has noted.
    pub(in crate::simulation) fn absorb(&mut self, other: &mut Self) {
        self.changes.append(&mut other.changes);
    }

    /// Counts; what is noted later must not have happened before what was noted until now.
    pub(in crate::simulation) fn count(&mut self) {
        self.changes.sort_unstable();
        for (_, change) in self.changes.drain(..) {
            self.now = self.now.saturating_add_signed(isize::from(change));
            self.most = self.most.max(self.now);
        }
    }
}

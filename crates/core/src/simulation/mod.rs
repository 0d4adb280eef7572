//! The packet simulator: one loop over eight kinds of event.
//!
//! It only moves things between the network, the flows, the workload and the recorder; what to send is the
//! transports' business, and who waits for whom the network's.

mod followers;
mod sampling;
mod sending;
mod stacks;
mod stuck;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

pub use self::stacks::Stacks;

use self::followers::Followers;
use crate::agenda::{Agenda, Event};
use crate::demand::Flows;
use crate::endpoint::receiver::{Answer, Receiver, Reply};
use crate::endpoint::sender::Sender;
use crate::endpoint::{Controller, Memo, Path};
use crate::flow::{Columns, FlowRecord, FlowSpec, HostId, Outcome};
use crate::graph::{Graph, LinkId};
use crate::host::{self, Clock, Stamps};
use crate::network::Network;
use crate::network::routes::Way;
use crate::network::watchdog::{self, Deadlock};
use crate::packet::{Flags, FlowSlot, Format, Header, Kind, Packet};
use crate::parameters::Problem;
use crate::random::{Random, mix};
use crate::record::Recorder;
use crate::record::rtts::Trace;
use crate::router::About;
use crate::units::{Bytes, Duration, Time};

/// A flow in progress.
///
/// What every data packet touches at its receiver stands first, and then what ACKs touch at the sender: with
/// thousands of flows none of it is in a near cache (docs/performance.md).
#[repr(C, align(64))]
struct Flow {
    /// How long after its start the sender had nothing left to do.
    closed: Option<Duration>,
    controller: Box<dyn Controller>,
    /// Packets of the flow, of any kind: put into the network, taken out, lost in it.
    packets: Tally,
    delivered: u64,
    /// When its one pending [`Event::Wake`] that counts comes; others are stale and ignored.
    wakes: Time,
    /// Follows its packets there and back, if that is asked for.
    trace: Option<Box<Trace>>,
    receiver: Receiver,
    sender: Sender,
    there: Way,
    back: Way,
    /// When a long-lived flow stops; [`Time::NEVER`] otherwise.
    stops: Time,
    spec: FlowSpec,
    ideal_fct: Duration,
    fct: Option<Duration>,
}

impl Flow {
    /// Arranges for the flow to be woken at `deadline`, unless it will be before.
    fn wake_by(&mut self, deadline: Time, slot: FlowSlot, agenda: &mut Agenda) {
        if deadline < self.wakes {
            self.wakes = deadline.max(agenda.now());
            agenda.push(self.wakes, Event::Wake(slot));
        }
    }
}

/// Packets of a flow, counted at the network's edge.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    sent: u64,
    delivered: u64,
    lost: u64,
}

impl Tally {
    fn in_network(self) -> u64 {
        self.sent - self.delivered - self.lost
    }
}

/// What a run counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Events handled.
    pub events: u64,
    /// Packets put into the network.
    pub packets: u64,
    /// Most flows in progress at a time.
    pub live_flows_max: usize,
    /// When the last event happened.
    pub ended: Time,
}

/// What a run is given besides its network, its flows and its recorder.
pub struct Setting<'a> {
    /// The network as a graph.
    pub graph: &'a Graph,
    /// The transports.
    pub stacks: Stacks<'a>,
    /// How hosts measure.
    pub host: &'a host::Config,
    /// Sizes of packets.
    pub format: &'a Format,
    /// Seed of all random streams.
    pub seed: u64,
}

/// The state of a run.
pub struct Simulation<'a> {
    graph: &'a Graph,
    stacks: Stacks<'a>,
    format: Format,
    agenda: Agenda,
    /// The network.
    pub network: Network,
    flows: Vec<Option<Flow>>,
    free: Vec<FlowSlot>,
    /// How many slots hold flows.
    live: usize,
    upcoming: Option<FlowSpec>,
    workload: Flows,
    /// Flows that follow others and are yet to start.
    followers: Followers,
    /// Flows in progress, by host that sends.
    sending: Vec<u32>,
    /// What flows have left for later ones, by source and target.
    memos: BTreeMap<(HostId, HostId), Memo>,
    seed: u64,
    spray: Random,
    /// Measures round-trip times.
    clock: Clock,
    stamps: Stamps,
    /// What is recorded.
    pub recorder: Recorder,
    /// What is counted.
    pub totals: Totals,
    /// Flows that could not finish, and why.
    pub stuck: Vec<String>,
    /// Links whose pauses cannot end.
    pub deadlocks: Vec<Deadlock>,
}

impl<'a> Simulation<'a> {
    /// A simulation that has not started.
    pub fn new(
        setting: Setting<'a>,
        network: Network,
        workload: Flows,
        recorder: Recorder,
    ) -> Self {
        let Setting { graph, stacks, host, format, seed } = setting;
        Self {
            graph,
            stacks,
            format: format.clone(),
            agenda: Agenda::default(),
            network,
            flows: Vec::new(),
            free: Vec::new(),
            live: 0,
            upcoming: None,
            workload,
            followers: Followers::default(),
            sending: vec![0; graph.hosts.len()],
            memos: BTreeMap::new(),
            seed,
            spray: Random::new(seed, "routing/spray"),
            clock: Clock::new(host, Random::new(seed, "host/clock")),
            stamps: host.stamps,
            recorder,
            totals: Totals::default(),
            stuck: Vec::new(),
            deadlocks: Vec::new(),
        }
    }

    /// Runs until every flow has finished, `limit` is reached or `stop` is set.
    pub fn run(&mut self, limit: Time, stop: &AtomicBool) -> Result<(), Problem> {
        self.await_next_flow();
        self.network.start_routers(&mut self.agenda);
        if self.recorder.is_sampling() {
            self.agenda.push(Time::ZERO, Event::Sample);
        }
        if let Some(period) = self.network.watchdog() {
            self.agenda.push(Time::ZERO + period, Event::Watch);
        }
        while let Some((now, event)) = self.agenda.pop() {
            if now > limit {
                break;
            }
            self.totals.events += 1;
            self.totals.ended = now;
            match event {
                Event::Start => self.start_next()?,
                Event::Follow(place) => self.start_follower(place)?,
                Event::Arrive(link) => self.arrive(link),
                Event::Ready(link) => self.network.ready(link, &mut self.agenda),
                Event::Tick(link) => self.network.tick(link, &mut self.agenda),
                Event::Wake(slot) => self.wake(slot),
                Event::Sample => self.sample(),
                Event::Watch => {
                    self.watch();
                    if !self.deadlocks.is_empty() {
                        break;
                    }
                }
            }
            if self.network.has_news() {
                self.hear_of_departures();
            }
            if self.live == 0 && self.is_over() {
                break;
            }
            let is_interrupted =
                self.totals.events.is_multiple_of(65_536) && stop.load(Ordering::Relaxed);
            if is_interrupted {
                return Err(Problem::new("", "interrupted"));
            }
        }
        self.close(limit);
        Ok(())
    }

    fn await_next_flow(&mut self) {
        self.upcoming = self.workload.flows.next();
        if let Some(spec) = &self.upcoming {
            self.agenda.push(spec.start, Event::Start);
        }
    }

    fn start_next(&mut self) -> Result<(), Problem> {
        if let Some(spec) = self.upcoming.take() {
            self.start_flow(spec)?;
        }
        self.await_next_flow();
        Ok(())
    }

    fn start_follower(&mut self, place: u32) -> Result<(), Problem> {
        let spec = self.followers.take(place);
        self.start_flow(spec)
    }

    /// A flow has been delivered: awaits the one that follows it, if one does.
    fn await_follower(&mut self, slot: FlowSlot) {
        if let (Some(sequel), Some(ended)) = (&mut self.workload.sequel, &self.flows[slot as usize])
            && let Some(spec) = sequel.after(&ended.spec, self.agenda.now())
        {
            let start = spec.start;
            self.agenda.push(start, Event::Follow(self.followers.put(spec)));
        }
    }

    fn start_flow(&mut self, spec: FlowSpec) -> Result<(), Problem> {
        let (flow, about) = self.open(spec)?;
        let (class, ways) = (flow.spec.class, [flow.there, flow.back]);
        let slot = if let Some(slot) = self.free.pop() {
            self.flows[slot as usize] = Some(flow);
            slot
        } else {
            self.flows.push(Some(flow));
            self.flows.len() as FlowSlot - 1
        };
        self.network.introduce(slot, about);
        self.network.traffic.classify(slot, class);
        self.network.weigh(slot, &self.workload.classes[usize::from(class)], ways);
        self.live += 1;
        self.totals.live_flows_max = self.totals.live_flows_max.max(self.live);
        self.pump(slot);
        Ok(())
    }

    /// Prepares a flow that starts now, and what routers may know of it.
    fn open(&mut self, spec: FlowSpec) -> Result<(Flow, About), Problem> {
        let (there, back) = self.network.routes.ways(spec.source, spec.target, spec.id);
        let (graph, format, now) = (self.graph, &self.format, self.agenda.now());
        if let Some(size) = spec.size
            && format.packets(size) >= u64::from(u32::MAX)
        {
            let message = format!("flow {}: {size} are more than {} packets", spec.id, u32::MAX);
            return Err(Problem::new("workload", message));
        }
        let routes = &self.network.routes;
        let time_alone = |size| routes.time_alone(graph, there, format, size);
        let path = Path {
            line_rate: routes.line_rate(graph, there),
            base_rtt: time_alone(format.payload) + routes.packet_time(graph, back, format.ack),
            hops: routes.links(there).next().map_or(0, <[LinkId]>::len) as u32,
            format: format.clone(),
            others: self.sending[spec.source as usize],
            initial_rate: spec.initial_rate,
            size: spec.size,
            start: now,
            deadline: spec.deadline.map_or(Time::NEVER, |deadline| now + deadline),
            stamps: self.stamps,
            seed: mix(self.seed ^ mix(spec.id)),
            memo: self.memos.get(&(spec.source, spec.target)).copied(),
        };
        let about = About { flow: spec.id, deadline: path.deadline, line_rate: path.line_rate };
        let ideal_fct = spec.size.map_or(Duration::ZERO, time_alone);
        self.sending[spec.source as usize] += 1;
        let stack = self.stacks.of(spec.class);
        let flow = Flow {
            sender: Sender::new(spec.size, &stack.mechanism, format, now),
            receiver: Receiver::new(&stack.mechanism),
            controller: stack.transport.controller(&path),
            there,
            back,
            wakes: Time::NEVER,
            stops: spec.stop.unwrap_or(Time::NEVER),
            ideal_fct,
            fct: None,
            delivered: 0,
            closed: None,
            packets: Tally::default(),
            trace: self.recorder.trace(spec.id),
            spec,
        };
        Ok((flow, about))
    }

    fn wake(&mut self, slot: FlowSlot) {
        let now = self.agenda.now();
        let Some(flow) = &mut self.flows[slot as usize] else { return };
        if flow.wakes != now {
            return;
        }
        flow.wakes = Time::NEVER;
        if flow.stops <= now {
            flow.stops = Time::NEVER;
            flow.sender.stop();
        }
        if flow.controller.next_timer() <= now {
            flow.controller.on_timer(now);
        }
        flow.sender.on_time(now, &mut *flow.controller);
        let reply = flow.receiver.on_time(now);
        self.reply(slot, reply);
        self.pump(slot);
        self.release_if_over(slot);
    }

    fn arrive(&mut self, link: LinkId) {
        let Some(packet) = self.network.arrive(link, &mut self.agenda) else { return };
        let Some(flow) = &mut self.flows[packet.flow as usize] else {
            unreachable!("a flow stays until its last packet has left the network")
        };
        flow.packets.delivered += 1;
        match packet.kind {
            Kind::Data => self.receive(&packet),
            Kind::Fin => self.release_if_over(packet.flow),
            Kind::Syn => self.echo(&packet, Kind::SynAck),
            Kind::Probe => self.echo(&packet, Kind::ProbeAck),
            Kind::SynAck | Kind::ProbeAck | Kind::Ack | Kind::Nack | Kind::Cnp => {
                self.hear(&packet);
                self.pump(packet.flow);
                self.release_if_over(packet.flow);
            }
            Kind::Pause | Kind::Resume => unreachable!("the network keeps pause frames to itself"),
        }
    }

    /// Tells a sender what its receiver says.
    fn hear(&mut self, packet: &Packet) {
        let now = self.agenda.now();
        let rtt = self.clock.measure(packet.sent_at, now);
        if self.recorder.wants_rtts() && packet.kind.is_acknowledgement() {
            self.note_rtt(packet, rtt);
        }
        let Some(flow) = &mut self.flows[packet.flow as usize] else { return };
        match packet.kind {
            Kind::Cnp => flow.controller.on_notification(now),
            Kind::SynAck => flow.sender.on_syn_ack(now, packet, rtt, &mut *flow.controller),
            _ => flow.sender.on_ack(now, packet, rtt, &mut *flow.controller),
        }
    }

    /// Takes in a data packet that has reached its receiver.
    fn receive(&mut self, packet: &Packet) {
        let (now, slot) = (self.agenda.now(), packet.flow);
        let Some(flow) = &mut self.flows[slot as usize] else { return };
        let reply = flow.receiver.on_data(now, packet);
        if let (Some(trace), Some(answer)) = (&mut flow.trace, &reply.ack) {
            trace.on_answer(answer.sent_at, now, packet.bytes, answer.cumulative);
        }
        flow.wake_by(flow.receiver.deadline(), slot, &mut self.agenda);
        let mut is_delivered = false;
        if reply.is_new {
            flow.delivered += u64::from(packet.bytes) - self.format.header.0;
            is_delivered = flow.spec.size.is_some_and(|size| size.0 == flow.delivered);
        }
        if is_delivered {
            flow.fct = Some(now - flow.spec.start);
        }
        // A sender that has given up awaits no answer.
        let may_be_over = flow.closed.is_some() && reply.ack.is_none() && !reply.notification;
        if is_delivered {
            self.await_follower(slot);
        }
        self.reply(slot, reply);
        if may_be_over {
            self.release_if_over(slot);
        }
    }

    /// Sends what a flow's receiver has to say.
    fn reply(&mut self, slot: FlowSlot, reply: Reply) {
        if let Some(answer) = reply.ack {
            self.answer(slot, answer);
        }
        if reply.notification {
            self.send_back(self.format.control(Kind::Cnp, slot, self.agenda.now()));
        }
    }

    /// What an answer tells of a flow's packet: how long it took, or what routers wrote into it.
    fn feedback(&self, slot: FlowSlot, sent_at: Time, written: f32) -> f32 {
        let Some(flow) = &self.flows[slot as usize] else { return written };
        if self.stacks.of(flow.spec.class).mechanism.tells_delay {
            self.clock.delay(sent_at, self.agenda.now())
        } else {
            written
        }
    }

    /// Sends back what routers wrote into a packet without payload, or how long it took.
    fn echo(&mut self, packet: &Packet, kind: Kind) {
        let feedback = self.feedback(packet.flow, packet.sent_at, packet.header().feedback());
        let header = Header::Ack { block: (0, 0), feedback };
        let answer = self.format.control(kind, packet.flow, packet.sent_at);
        self.send_back(answer.saying(header));
    }

    /// Sends an acknowledgement back.
    fn answer(&mut self, slot: FlowSlot, answer: Answer) {
        let Answer { kind, cumulative, block, sent_at, marked, feedback } = answer;
        let plain = Packet {
            sequence: cumulative,
            flags: Flags::NONE.with_if(Flags::MARKED, marked),
            ..self.format.control(kind, slot, sent_at)
        };
        let feedback = self.feedback(slot, sent_at, feedback);
        self.send_back(plain.saying(Header::Ack { block, feedback }));
    }

    /// Sends a packet back from its flow's receiver.
    fn send_back(&mut self, packet: Packet) {
        let Some(flow) = &mut self.flows[packet.flow as usize] else { return };
        flow.packets.sent += 1;
        let next_hop = flow.back.start(&mut self.spray);
        self.network.send(Packet { next_hop, ..packet }, &mut self.agenda);
    }

    /// Tells flows that their packets were lost, or have left their hosts.
    fn hear_of_departures(&mut self) {
        while let Some(slot) = self.network.losses.pop() {
            if let Some(flow) = &mut self.flows[slot as usize] {
                flow.packets.lost += 1;
            }
            self.release_if_over(slot);
        }
        while let Some(departure) = self.network.departures.pop() {
            if let Some(flow) = &mut self.flows[departure.flow as usize]
                && flow.sender.on_departure(departure.ends)
            {
                self.pump(departure.flow);
                self.release_if_over(departure.flow);
            }
        }
    }

    /// Ends a flow whose sender is done and whose packets have all left the network.
    fn release_if_over(&mut self, slot: FlowSlot) {
        let Some(flow) = &mut self.flows[slot as usize] else { return };
        if !flow.sender.is_done() {
            return;
        }
        if flow.closed.is_none() {
            flow.closed = Some(self.agenda.now() - flow.spec.start);
            self.sending[flow.spec.source as usize] -= 1;
            if let Some(memo) = flow.controller.memo() {
                self.memos.insert((flow.spec.source, flow.spec.target), memo);
            }
        }
        if flow.packets.in_network() == 0 {
            self.record(slot);
            self.free.push(slot);
        }
    }

    /// Writes a flow's record and forgets the flow.
    fn record(&mut self, slot: FlowSlot) {
        let Some(flow) = self.flows[slot as usize].take() else { return };
        self.network.routes.give_back(flow.there);
        self.live -= 1;
        self.totals.packets += flow.packets.sent;
        let outcome = match (flow.spec.size, flow.fct) {
            (None, _) => Outcome::LongLived,
            (Some(_), Some(_)) => Outcome::Finished,
            (Some(_), None) if flow.sender.has_given_up() => Outcome::Terminated,
            (Some(_), None) => Outcome::Unfinished,
        };
        self.recorder.records.push(&FlowRecord {
            spec: flow.spec,
            outcome,
            fct: flow.fct,
            // Of a flow that ends otherwise its sender does not learn that all has arrived.
            acked: flow.closed.filter(|_| outcome == Outcome::Finished),
            ideal_fct: flow.ideal_fct,
            delivered: Bytes(flow.delivered),
            retransmits: flow.sender.retransmits,
            timeouts: flow.sender.timeouts,
        });
    }

    /// Looks for a deadlock, and arranges to look again.
    fn watch(&mut self) {
        let now = self.agenda.now();
        self.deadlocks = watchdog::watch(&self.network, now);
        if let Some(period) = self.network.watchdog() {
            self.agenda.push(now + period, Event::Watch);
        }
    }

    /// Whether nothing is left to happen: what events remain are stale.
    fn is_over(&self) -> bool {
        self.live == 0
            && self.upcoming.is_none()
            && self.followers.is_empty()
            && self.network.pause_frames == 0
    }

    /// Records what is left and checks that nothing has leaked.
    fn close(&mut self, limit: Time) {
        self.hear_of_departures();
        if !self.is_over() && self.deadlocks.is_empty() {
            self.totals.ended = limit;
        }
        let now = self.totals.ended;
        // Before ports close, which ends their pauses.
        self.deadlocks = watchdog::deadlocks(&self.network);
        let traffic = &self.network.traffic;
        let told = self.deadlocks.iter().map(|deadlock| deadlock.explain(traffic, self.graph));
        self.stuck.extend(told);
        self.explain_stuck(now);
        let in_network: u64 =
            self.flows.iter().flatten().map(|flow| flow.packets.in_network()).sum();
        let in_ports: u64 = self.network.ports.iter_mut().map(|port| port.close(now)).sum();
        assert_eq!(
            in_ports,
            in_network + self.network.pause_frames,
            "flows and ports disagree on the packets in the network"
        );
        for slot in 0..self.flows.len() as FlowSlot {
            self.record(slot);
        }
        self.recorder.records.sort();
        self.network.assert_buffers();
    }

    /// Names of the workload's classes.
    pub fn classes(&self) -> &[String] {
        &self.workload.classes
    }

    /// What a flow in progress takes in memory, besides its controller.
    pub const BYTES_PER_LIVE_FLOW: usize = size_of::<Option<Flow>>();
    /// What a flow that has ended takes in memory.
    pub const BYTES_PER_IDLE_FLOW: usize = Columns::BYTES_PER_FLOW;
}

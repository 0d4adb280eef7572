//! The packet simulator: nine kinds of event, taken from one queue or in windows.
//!
//! It only moves things between the network, the flows, the workload and the recorder; what to send is the
//! transports' business, and who waits for whom the network's.

mod diagnosis;
mod external_stacks;
mod flows;
mod link_changes;
mod partitions;
mod sampling;
mod transports;
mod window_loop;

use std::collections::{BTreeMap, VecDeque};

pub use self::partitions::threads::run_on_threads;
pub use self::transports::Transports;

use self::flows::ends::LiveFlows;
use self::flows::start::{LiveFlowCount, PendingFlows};
use self::partitions::messages::PartitionLinks;
use crate::base::run_control::{Progress, RunControl};
use crate::base::schema::Problem;
use crate::base::units::Time;
use crate::model::flow::HostId;
use crate::model::graph::{Change, Graph, LinkId};
use crate::model::host_clock::{self, Clocks, Stamps};
use crate::model::packet::{FlowNumber, Format, Kind, Packet};
use crate::network::Network;
use crate::network::routes::Route;
use crate::network::switch::pause_watchdog::Deadlock;
use crate::record::{FlowColumns, Recorder};
use crate::schedule::{Event, Partition, Scheduler, WindowPlan};
use crate::traffic::FlowStream;
use crate::transport::CachedPathState;

/// What a run counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunTotals {
    /// Events handled.
    pub events: u64,
    /// Windows served.
    pub windows: u64,
    /// Of each window the events of the part that had most, added up: with a thread for each part no run is
    /// shorter than that.
    pub critical: u64,
    /// Packets put into the network.
    pub packets: u64,
    /// Most flows in progress at a time.
    pub live_flows_max: usize,
    /// When the run was over: the last flow had ended and the last pause frame been obeyed, or time was up.
    pub ended: Time,
}

/// What a run is given besides its network, its flows and its recorder.
pub struct SimulationSetup<'a> {
    /// The network as a graph.
    pub graph: &'a Graph,
    /// How it is cut, if it is to be served in windows; otherwise by events.
    pub cut: Option<WindowPlan>,
    /// Which part of the run this is.
    pub part: Partition,
    /// What happens to its links, in order of time.
    pub changes: Vec<Change>,
    /// The transports.
    pub stacks: Transports<'a>,
    /// How hosts measure.
    pub host: &'a host_clock::Config,
    /// Sizes of packets.
    pub format: &'a Format,
    /// Seed of all random streams.
    pub seed: u64,
}

/// The state of a run.
pub struct Simulation<'a> {
    graph: &'a Graph,
    stacks: Transports<'a>,
    format: Format,
    scheduler: Scheduler,
    /// The network.
    pub network: Network,
    flows: LiveFlows,
    /// How many flows have senders here that are not over.
    live: usize,
    /// How many events had been handled when the window began.
    events_before: u64,
    /// What comes to a group in a window, kept for its memory.
    arrivals: Vec<u64>,
    /// Places of flows that may have ended since that was last looked at, and when a packet of theirs was
    /// lost, if that is why.
    leaving: Vec<(Time, usize)>,
    population: LiveFlowCount,
    upcoming: PendingFlows,
    /// What is yet to happen to links.
    changes: VecDeque<Change>,
    /// The ways that flows in progress took before the present ones, if they have been led another way.
    former: BTreeMap<FlowNumber, Vec<Route>>,
    /// Which part of the run this is, and what it has for the others.
    part: Partition,
    abroad: PartitionLinks,
    /// Flows in progress, by host that sends.
    sending: Vec<u32>,
    /// What flows have left for later ones, by source and target.
    memos: BTreeMap<(HostId, HostId), CachedPathState>,
    seed: u64,
    /// Measure round-trip times.
    clocks: Clocks,
    stamps: Stamps,
    /// What is recorded.
    pub recorder: Recorder,
    /// What is counted.
    pub totals: RunTotals,
    /// Flows that could not finish, and why.
    pub stuck: Vec<String>,
    /// Links whose pauses cannot end.
    pub deadlocks: Vec<Deadlock>,
}

impl<'a> Simulation<'a> {
    /// A simulation that has not started.
    pub fn new(
        setting: SimulationSetup<'a>,
        mut network: Network,
        workload: FlowStream,
        recorder: Recorder,
    ) -> Self {
        let SimulationSetup { graph, cut, part, changes, stacks, host, format, seed } = setting;
        let abroad = PartitionLinks::new(&part, graph, &mut network);
        Self {
            graph,
            stacks,
            format: format.clone(),
            scheduler: Scheduler::new(cut, &part, graph),
            network,
            flows: LiveFlows::default(),
            events_before: 0,
            arrivals: Vec::new(),
            leaving: Vec::new(),
            population: LiveFlowCount::default(),
            live: 0,
            upcoming: PendingFlows::new(workload, &part, graph),
            changes: changes.into(),
            former: BTreeMap::new(),
            abroad,
            part,
            sending: vec![0; graph.hosts.len()],
            memos: BTreeMap::new(),
            seed,
            clocks: Clocks::new(host, graph.host_count(), seed),
            stamps: host.stamps,
            recorder,
            totals: RunTotals::default(),
            stuck: Vec::new(),
            deadlocks: Vec::new(),
        }
    }

    /// Runs until every flow has finished, `limit` is reached or `watch` asks for a stop.
    pub fn run(&mut self, limit: Time, watch: &RunControl) -> Result<(), Problem> {
        self.start_routers();
        if self.scheduler.groups().is_some() {
            self.run_in_windows(limit, watch)?;
        } else {
            self.run_by_events(limit, watch)?;
        }
        self.close(limit);
        Ok(())
    }

    /// Starts the clocks of all routers.
    fn start_routers(&mut self) {
        for (id, link) in (0..).zip(&self.graph.links) {
            let tick = self.network.first_tick(id);
            if tick < Time::NEVER && self.part.owns(link.from) {
                self.scheduler.enter(link.from);
                self.scheduler.push(tick, Event::Tick(id));
            }
        }
    }

    fn run_by_events(&mut self, limit: Time, watch: &RunControl) -> Result<(), Problem> {
        self.upcoming.announce_next(&mut self.scheduler)?;
        if self.recorder.is_sampling() {
            self.scheduler.push(Time::ZERO, Event::Sample);
        }
        if let Some(period) = self.network.watchdog() {
            self.scheduler.push(Time::ZERO + period, Event::RunControl);
        }
        if let Some(first) = self.next_change() {
            self.scheduler.push(first, Event::Change);
        }
        let mut instant = Time::ZERO;
        while let Some((now, event)) = self.scheduler.pop() {
            if now > instant {
                self.end_instant();
                self.population.count();
                instant = now;
                if now > limit || self.is_over() {
                    break;
                }
            }
            self.handle(event)?;
            if !self.deadlocks.is_empty() {
                break;
            }
            if self.totals.events.is_multiple_of(65_536) {
                watch.poll(|| self.progress())?;
            }
        }
        Ok(())
    }

    /// How far this part of the run is.
    fn progress(&self) -> Progress {
        let departed = self.network.ports().iter().map(|port| port.counters.departed);
        Progress {
            now: self.scheduler.now(),
            flows: self.recorder.records.flow.len() as u64,
            hops: departed.sum(),
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), Problem> {
        self.totals.events += 1;
        match event {
            Event::Start(number) => self.start(number)?,
            Event::Arrive(link) => {
                let packet = self.network.arrive(link, &mut self.scheduler);
                self.on_arrival(packet, link)?;
            }
            Event::Ready(link) => self.network.ready(link, &mut self.scheduler),
            Event::Tick(link) => self.network.tick(link, &mut self.scheduler),
            Event::Respond(number) => self.respond(number),
            Event::Wake(number) => self.wake(number),
            Event::Sample => {
                if let Some(next) = self.sample() {
                    self.scheduler.push(next, Event::Sample);
                }
            }
            Event::RunControl => {
                if let Some(next) = window_loop::watch(&mut [&mut *self]) {
                    self.scheduler.push(next, Event::RunControl);
                }
            }
            Event::Change => {
                self.change();
                if let Some(next) = self.next_change() {
                    self.scheduler.push(next, Event::Change);
                }
            }
        }
        self.process_departures();
        Ok(())
    }

    /// A packet has come to the end of a link.
    fn on_arrival(&mut self, packet: Packet, link: LinkId) -> Result<(), Problem> {
        if let Some(mut packet) = self.network.forward(packet, link, &mut self.scheduler) {
            let keeps_account = self.network.records().is_some();
            if keeps_account {
                self.network.begin_delivery(&mut packet);
            }
            self.deliver(&packet)?;
            if keeps_account {
                self.network.end_delivery();
            }
        }
        Ok(())
    }

    /// A packet has come to the end of its way.
    fn deliver(&mut self, packet: &Packet) -> Result<(), Problem> {
        let Some(place) = self.network.slot(packet.flow) else {
            unreachable!("a flow stays until its last packet has left the network")
        };
        let place = place as usize;
        match packet.kind {
            Kind::Data => self.receive(packet, place)?,
            Kind::Datagram => self.receive_datagram(packet, place)?,
            Kind::Return => self.receive_return_datagram(packet, place),
            Kind::Fin => self.take_leave(place),
            Kind::Syn => self.echo(packet, place, Kind::SynAck),
            Kind::Probe => self.echo(packet, place, Kind::ProbeAck),
            Kind::SynAck | Kind::ProbeAck | Kind::Ack | Kind::Nack | Kind::Cnp => {
                self.hear(packet, place);
            }
            Kind::Pause | Kind::Resume => unreachable!("the network keeps pause frames to itself"),
        }
        Ok(())
    }

    /// Names of the workload's classes.
    pub fn classes(&self) -> &[String] {
        &self.upcoming.classes
    }

    /// What load the workload is, for people.
    pub fn load(&self) -> &str {
        &self.upcoming.load
    }

    /// Whether flows of the workload follow others.
    pub fn has_sequel(&self) -> bool {
        self.upcoming.has_sequel()
    }

    /// What a flow in progress takes in memory, besides its controller.
    pub const BYTES_PER_LIVE_FLOW: usize = LiveFlows::BYTES;
    /// What a flow that has ended takes in memory.
    pub const BYTES_PER_IDLE_FLOW: usize = FlowColumns::BYTES_PER_FLOW;
}

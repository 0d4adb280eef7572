//! Packet simulator: state of a run, driven by the event loop or by the window loop.
//!
//! The simulation connects the network, flows, workload and recorder. Transports decide what to send, and the
//! network decides which packets wait.

pub mod common_interval;
mod credit;
mod diagnosis;
mod event_loop;
mod external_stacks;
mod flows;
mod host_turns;
mod link_changes;
pub mod measured_interval;
mod partitions;
mod sampling;
mod transports;
mod window_loop;

use std::collections::{BTreeMap, VecDeque};

pub use self::partitions::threads::run_on_threads;
pub use self::transports::Transports;

use self::common_interval::CommonInterval;
use self::credit::CreditSchedulers;
use self::flows::ends::LiveFlows;
use self::flows::start::{LiveFlowCount, PendingFlows};
use self::host_turns::HostTurns;
use self::measured_interval::MeasuredInterval;
use self::partitions::messages::PartitionLinks;
use crate::base::run_control::RunControl;
use crate::base::schema::Problem;
use crate::base::units::Time;
use crate::model::flow::{ConnectionKey, HostId};
use crate::model::graph::{Change, Graph};
use crate::model::host_clock::{self, Clocks, Stamps};
use crate::model::packet::{FlowNumber, Format};
use crate::network::Network;
use crate::network::read_ahead::ReadAhead;
use crate::network::routes::Route;
use crate::network::switch::pause_watchdog::Deadlock;
use crate::record::{FlowColumns, Recorder};
use crate::schedule::{Event, Partition, Scheduler, WindowPlan};
use crate::traffic::FlowStream;
use crate::transport::CachedPathState;

/// Counters of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunTotals {
    /// Events handled.
    pub events: u64,
    /// Windows completed.
    pub windows: u64,
    /// Sum over windows of the largest number of events in a partition: a lower bound of the run time with a
    /// thread per partition, in events.
    pub critical: u64,
    /// Packets sent by flows.
    pub packets: u64,
    /// Maximum number of concurrent flows.
    pub live_flows_max: usize,
    /// End of the run: the last flow and the last pause ended and the last pause frame took effect, or the
    /// time limit.
    pub ended: Time,
}

/// Inputs of a run besides its network, flows and recorder.
pub struct SimulationSetup<'a> {
    /// Network graph.
    pub graph: &'a Graph,
    /// Groups of nodes for the window loop; `None` for the event loop.
    pub window_plan: Option<WindowPlan>,
    /// Partition that this simulation runs.
    pub partition: Partition,
    /// Link changes in order of time.
    pub link_changes: Vec<Change>,
    /// Transports.
    pub transports: Transports<'a>,
    /// Clocks of hosts.
    pub host_clock: &'a host_clock::Config,
    /// Packet sizes.
    pub format: &'a Format,
    /// Seed of all random streams.
    pub seed: u64,
    /// Interval in which counters of links are measured.
    pub measured: MeasuredInterval,
    /// Interval in which all long-lived flows send.
    pub common: CommonInterval,
}

/// State of a run, or of one partition of it.
pub struct Simulation<'a> {
    graph: &'a Graph,
    transports: Transports<'a>,
    format: Format,
    scheduler: Scheduler,
    /// Network.
    pub network: Network,
    flows: LiveFlows,
    /// Flows in progress whose senders are in this partition.
    local_flows: usize,
    /// Value of `totals.events` at the start of the window.
    events_before_window: u64,
    /// Arrivals at a group in a window; a field for reuse of its memory.
    arrivals: Vec<u64>,
    /// State that is read ahead.
    ahead: ReadAhead,
    /// Slots of flows that may have ended in this instant, each with the time of a packet loss if that is the
    /// cause.
    end_candidates: Vec<(Time, usize)>,
    live_flow_count: LiveFlowCount,
    pending_flows: PendingFlows,
    /// Pending link changes.
    link_changes: VecDeque<Change>,
    /// Previous routes of flows that have been rerouted.
    former_routes: BTreeMap<FlowNumber, Vec<Route>>,
    /// Partition that this simulation runs, and its links to others.
    partition: Partition,
    partition_links: PartitionLinks,
    /// Flows in progress by source.
    active_senders: Vec<u32>,
    credit_schedulers: CreditSchedulers,
    host_turns: HostTurns,
    /// Slots of the open persistent connections.
    connections: BTreeMap<ConnectionKey, usize>,
    /// Path state that finished flows left for later ones, by source and target (RFC 9040).
    path_states: BTreeMap<(HostId, HostId), CachedPathState>,
    seed: u64,
    /// Clocks that measure RTTs.
    clocks: Clocks,
    stamps: Stamps,
    /// Recorder of results.
    pub recorder: Recorder,
    /// Counters of links in the measured interval.
    pub measured: MeasuredInterval,
    /// Bytes of long-lived flows in the interval in which all of them send.
    pub common: CommonInterval,
    /// Counters.
    pub totals: RunTotals,
    /// Flows that could not finish, and the reason.
    pub stuck: Vec<String>,
    /// Links whose pauses cannot end.
    pub deadlocks: Vec<Deadlock>,
}

impl<'a> Simulation<'a> {
    /// Returns a simulation that has not started.
    pub fn new(
        setup: SimulationSetup<'a>,
        mut network: Network,
        workload: FlowStream,
        recorder: Recorder,
    ) -> Self {
        let SimulationSetup {
            graph,
            window_plan,
            partition,
            link_changes,
            transports,
            host_clock,
            format,
            seed,
            measured,
            common,
        } = setup;
        let partition_links = PartitionLinks::new(&partition, graph, &mut network);
        Self {
            graph,
            transports,
            format: format.clone(),
            scheduler: Scheduler::new(window_plan, &partition, graph),
            network,
            flows: LiveFlows::default(),
            events_before_window: 0,
            arrivals: Vec::new(),
            ahead: ReadAhead::default(),
            end_candidates: Vec::new(),
            live_flow_count: LiveFlowCount::default(),
            local_flows: 0,
            pending_flows: PendingFlows::new(workload, &partition, graph),
            link_changes: link_changes.into(),
            former_routes: BTreeMap::new(),
            partition_links,
            partition,
            active_senders: vec![0; graph.hosts.len()],
            credit_schedulers: CreditSchedulers::default(),
            host_turns: HostTurns::default(),
            connections: BTreeMap::new(),
            path_states: BTreeMap::new(),
            seed,
            clocks: Clocks::new(host_clock, graph.host_count(), seed),
            stamps: host_clock.stamps,
            recorder,
            measured,
            common,
            totals: RunTotals::default(),
            stuck: Vec::new(),
            deadlocks: Vec::new(),
        }
    }

    /// Runs until every flow has finished, `limit` is reached or `control` requests a stop.
    pub fn run(&mut self, limit: Time, control: &RunControl) -> Result<(), Problem> {
        self.start_routers();
        if self.scheduler.node_queues().is_some() {
            self.run_in_windows(limit, control)?;
        } else {
            self.run_by_events(limit, control)?;
        }
        self.close(limit);
        Ok(())
    }

    /// Schedules the first tick of all routers.
    fn start_routers(&mut self) {
        for (id, link) in (0..).zip(&self.graph.links) {
            let tick = self.network.first_tick(id);
            if tick < Time::NEVER && self.partition.owns(link.from) {
                self.scheduler.enter(link.from);
                self.scheduler.push(tick, Event::Tick(id));
            }
        }
    }

    /// Names of the workload's classes.
    pub fn classes(&self) -> &[String] {
        &self.pending_flows.classes
    }

    /// Description of the workload's load.
    pub fn load(&self) -> &str {
        &self.pending_flows.load
    }

    /// Returns true if flows of the workload depend on others.
    pub fn has_dependencies(&self) -> bool {
        self.pending_flows.has_dependencies()
    }

    /// Returns classes and the start from which their flows are no longer measured.
    pub fn measured_until(&self) -> Vec<(u16, Time)> {
        self.pending_flows.measured_until()
    }

    /// Memory of a flow in progress, without its controller.
    pub const BYTES_PER_LIVE_FLOW: usize = LiveFlows::BYTES;
    /// Memory of a finished flow.
    pub const BYTES_PER_IDLE_FLOW: usize = FlowColumns::BYTES_PER_FLOW;
}

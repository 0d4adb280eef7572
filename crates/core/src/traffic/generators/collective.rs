//! Collective operations: jobs whose messages wait for each other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use crate::base::schema::{Problem, positive};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::{FlowSpec, HostId};
use crate::model::graph::{Graph, Link, LinkId, NodeId, Paths};
use crate::model::ideal_fct::{bound_of_cuts, ideal_fct};
use crate::traffic::collectives::{self, End, Message, Schedule};
use crate::traffic::{
    Dependencies, FlowStream, Job, MAX_CLASSES, Workload, WorkloadContext, WorkloadEstimate,
    flow_between,
};

crate::choices! {
    /// Rule that assigns hosts to ranks. Jobs take hosts one after another, in this order.
    pub enum Placement {
        /// By number: ranks fill the hosts of a switch before those of the next.
        Packed = "packed",
        /// By position at their switch: ranks with successive numbers lie at successive switches, and a job
        /// with a rank at each switch has the same position (the rail) everywhere.
        RailAligned = "rail_aligned",
        /// In random order.
        Random = "random",
    }
}

crate::parameters! {
    /// Collective operations, as in distributed training: jobs of several ranks, each at a host of its own,
    /// that exchange a buffer in steps. A message starts when its rank has received, or has sent, those that
    /// it depends on. Flow records have the `step` of each message; a job has a class of its own.
    pub struct Config {
        /// Algorithm.
        pub algorithm: collectives::Config;
        /// Number of ranks of a job, two or more.
        pub ranks: u32, where positive;
        /// Size of the buffer of each rank.
        pub size: Bytes, where positive;
        /// Number of jobs that run side by side.
        pub jobs: u32 = 1, where positive;
        /// Assignment of hosts to ranks.
        pub placement: Placement = Placement::Packed;
        /// Time that a rank computes before it sends a message, on one at a time: to reduce a piece that it
        /// has received, in a reduce-scatter and before the first step of the all-gather of an all-reduce; or
        /// to train on a micro-batch, at each stage of a pipeline. An all-gather only copies. The reduction
        /// of a piece that no message follows is not part of the job.
        pub compute: Duration = Duration::ZERO;
        /// Earliest start.
        pub start: Time = Time::ZERO;
        /// Maximum of a uniform random delay of the start of each rank.
        pub jitter: Duration = Duration::ZERO;
        /// Name of the flow class; with several jobs, their number is appended, from 1.
        pub class: String = "collective".to_owned();
    }
    check |config| {
        if config.ranks < 2 {
            return Err(Problem::new("ranks", "must be 2 or more"));
        }
        if config.jobs as usize > MAX_CLASSES {
            let message = format!("must be at most {MAX_CLASSES}, because each has a class of its own");
            return Err(Problem::new("jobs", message));
        }
        if config.compute > Duration::ZERO && !config.algorithm.computes() {
            return Err(Problem::new("compute", "must be 0 where ranks do not reduce what they receive"));
        }
        let messages = config.schedule()?.messages().saturating_mul(config.jobs.into());
        if messages > MAX_MESSAGES {
            let message = format!("{messages} messages; there may be no more than {MAX_MESSAGES}");
            return Err(Problem::new("algorithm", message));
        }
        Ok(())
    }
}

/// Limit of the messages of all jobs, which needs some 20 GB for flow records.
const MAX_MESSAGES: u64 = 100_000_000;

impl Workload for Config {
    fn generate(&self, context: &WorkloadContext<'_>) -> Result<FlowStream, Problem> {
        let schedule = self.schedule()?;
        let state = |(hosts, starts)| JobState::new(&*schedule, hosts, starts, self.compute);
        let states =
            self.place(context)?.into_iter().zip(self.starts(context)).map(state).collect();
        let mut jobs = Jobs { schedule, states };
        let mut flows = Vec::new();
        for job in 0..jobs.states.len() {
            let first = 0..jobs.schedule.first();
            flows.extend(first.filter_map(|number| jobs.start(job, number, Time::ZERO)));
        }
        flows.sort_by_key(|flow| (flow.start, flow.id));
        let dependencies: Option<Box<dyn Dependencies>> = Some(Box::new(jobs));
        let stream = FlowStream::numbered(self.classes(), std::iter::empty());
        Ok(FlowStream { flows: Box::new(flows.into_iter()), dependencies, ..stream })
    }

    fn estimate(&self, _context: &WorkloadContext<'_>) -> Result<WorkloadEstimate, Problem> {
        let schedule = self.schedule()?;
        let jobs = f64::from(self.jobs);
        let flows = jobs * schedule.messages() as f64;
        let first = (0..schedule.first()).filter(|number| !schedule.is_follower(*number)).count();
        let first = jobs * first as f64;
        let payload = jobs * messages(&*schedule).map(|message| message.size.0 as f64).sum::<f64>();
        let estimate = WorkloadEstimate::from_list(flows, payload, self.start, self.start);
        let stored_bytes = first * size_of::<FlowSpec>() as f64 + flows * size_of::<u32>() as f64;
        let dependent = [flows - first, payload * (1.0 - first / flows)];
        Ok(WorkloadEstimate { stored_bytes, dependent, ..estimate })
    }

    fn jobs(&self, context: &WorkloadContext<'_>) -> Result<Vec<Job>, Problem> {
        let schedule = self.schedule()?;
        let steps = messages(&*schedule).map(|message| message.step + 1).max().unwrap_or(0);
        let computed = || messages(&*schedule).filter(|message| message.is_computed);
        let first_computed = computed().map(|message| message.step).min();
        let end_computed = computed().map(|message| message.step + 1).max();
        // Ranks that wait for no message.
        let begin: Vec<usize> =
            (0..schedule.first()).map(|number| schedule.message(number).source as usize).collect();
        let job = |((class, hosts), starts): ((String, Vec<HostId>), Vec<Time>)| Job {
            class,
            ranks: self.ranks,
            messages: schedule.messages(),
            steps,
            payload: Bytes(messages(&*schedule).map(|message| message.size.0).sum()),
            start: begin.iter().map(|rank| starts[*rank]).min().unwrap_or(self.start),
            compute: self.compute,
            computed: first_computed.unwrap_or(0)..end_computed.unwrap_or(0),
            bound: self.bound(context, &*schedule, hosts),
        };
        let hosts = self.classes().into_iter().zip(self.place(context)?);
        Ok(hosts.zip(self.starts(context)).map(job).collect())
    }
}

/// Returns all messages of a schedule.
fn messages(schedule: &dyn Schedule) -> impl Iterator<Item = Message> + '_ {
    (0..schedule.messages()).map(|number| schedule.message(number))
}

impl Config {
    fn schedule(&self) -> Result<Box<dyn Schedule>, Problem> {
        self.algorithm.schedule(self.ranks, self.size)
    }

    /// Returns the name of each job's class.
    fn classes(&self) -> Vec<String> {
        match self.jobs {
            1 => vec![self.class.clone()],
            jobs => (1..=jobs).map(|job| format!("{} {job}", self.class)).collect(),
        }
    }

    /// Returns the start of each rank of each job.
    fn starts(&self, context: &WorkloadContext<'_>) -> Vec<Vec<Time>> {
        let mut jitter = context.random("jitter");
        let mut start = || self.start + Duration(jitter.below(self.jitter.0.saturating_add(1)));
        (0..self.jobs).map(|_| (0..self.ranks).map(|_| start()).collect()).collect()
    }

    /// Returns the hosts of each job, by rank.
    fn place(&self, context: &WorkloadContext<'_>) -> Result<Vec<Vec<HostId>>, Problem> {
        let WorkloadContext { graph, .. } = context;
        let (ranks, all) = (self.ranks as usize, graph.hosts.len());
        if ranks.saturating_mul(self.jobs as usize) > all {
            let message = format!(
                "{} jobs of {ranks} ranks need a host for each rank; there are {all}",
                self.jobs
            );
            return Err(Problem::new("ranks", message));
        }
        let mut hosts: Vec<HostId> = (0..graph.host_count()).collect();
        match self.placement {
            Placement::Packed => {}
            Placement::RailAligned => {
                let positions = positions(graph);
                hosts.sort_by_key(|host| (positions[*host as usize], *host));
            }
            Placement::Random => context.random("placement").shuffle(&mut hosts),
        }
        Ok(hosts.chunks(ranks).take(self.jobs as usize).map(<[HostId]>::to_vec).collect())
    }

    /// Returns a lower bound on the duration of a job on these hosts: the larger of its duration if every
    /// message has its ideal FCT, and of the time that a host's links need for all messages of its rank.
    fn bound(
        &self,
        context: &WorkloadContext<'_>,
        schedule: &dyn Schedule,
        hosts: Vec<HostId>,
    ) -> Duration {
        let places = hosts.clone();
        let mut times = MessageTimes::new(context);
        let mut times_of = |Message { source, target, size, .. }: Message| {
            times.of([source, target].map(|rank| places[rank as usize]), size)
        };
        let rates = access_rates(context.graph);
        let rates: Vec<_> = hosts.iter().map(|host| rates[*host as usize].0).collect();
        // Bytes that each rank sends, and the least time of a message after it has left its host.
        let mut sent = vec![(Bytes::ZERO, Duration(u64::MAX)); rates.len()];
        for message in messages(schedule) {
            let (bytes, latency) = &mut sent[message.source as usize];
            *bytes += context.format.on_wire(message.size);
            *latency = (*latency).min(times_of(message)[1]);
        }
        let busy = rates.iter().zip(sent).filter(|(_, (bytes, _))| bytes.0 > 0);
        let busiest = busy.map(|(rate, (bytes, latency))| rate.transmit(bytes) + latency).max();
        let mut fct = |message| times_of(message)[0];

        let starts = vec![Time::ZERO; hosts.len()];
        let mut state = JobState::new(schedule, hosts, starts, self.compute);
        let mut ends = BinaryHeap::new();
        let mut end = |(number, start)| Reverse((start + fct(schedule.message(number)), number));
        for number in 0..schedule.first() {
            ends.extend(state.start(schedule, number, Time::ZERO).map(&mut end));
        }
        let mut last = Time::ZERO;
        while let Some(Reverse((now, number))) = ends.pop() {
            last = now;
            for reached in [End::Delivered, End::Sent] {
                let starts = state.on_end(schedule, number, reached, now);
                ends.extend(starts.into_iter().flatten().map(&mut end));
            }
        }
        (last - Time::ZERO).max(busiest.unwrap_or_default())
    }
}

/// Lower bounds on the times of messages between hosts of an idle network.
struct MessageTimes<'a> {
    context: WorkloadContext<'a>,
    paths: Paths,
    rates: Vec<(Rate, u32)>,
    /// Ideal FCT of each message, and its time after it has left its host, by hosts and size.
    known: FxHashMap<([HostId; 2], u64), [Duration; 2]>,
}

impl<'a> MessageTimes<'a> {
    fn new(context: &WorkloadContext<'a>) -> Self {
        let (paths, rates) = (Paths::new(context.graph), access_rates(context.graph));
        Self { context: *context, paths, rates, known: FxHashMap::default() }
    }

    fn of(&mut self, hosts: [HostId; 2], size: Bytes) -> [Duration; 2] {
        if let Some(times) = self.known.get(&(hosts, size.0)) {
            return *times;
        }
        let times = self.find(hosts, size);
        self.known.insert((hosts, size.0), times);
        times
    }

    fn find(&mut self, hosts: [HostId; 2], size: Bytes) -> [Duration; 2] {
        let WorkloadContext { graph, format, takes_one_path, .. } = self.context;
        let hop = |link: &LinkId| {
            let Link { rate, delay, .. } = graph.links[*link as usize];
            (rate, delay)
        };
        let [source, target] = hosts;
        let mut links = Vec::new();
        self.paths.append(source, target, 0, &mut links);
        let one = ideal_fct(links.iter().map(hop), format, size);
        let rate = hop(&links[0]).0;
        let has_several = hosts.iter().any(|host| self.rates[*host as usize].1 > 1);
        let is_slower = links.iter().any(|link| hop(link).0 < rate);
        let mut fct = one.total();
        let mut propagation = one.propagation;
        // Of the paths between hosts with one link each, one stands for all, unless they carry less than
        // that link each.
        if has_several || is_slower && !takes_one_path {
            let hops = links.len();
            links.clear();
            self.paths.append_all(source, target, LinkId::MAX, &mut links);
            let all = links.chunks_exact(hops + 1).map(|path| &path[..hops]);
            let each = all.clone().map(|path| ideal_fct(path.iter().map(hop), format, size));
            propagation = each.clone().map(|fct| fct.propagation).min().unwrap_or_default();
            fct = if takes_one_path || format.packets(size) == 1 {
                each.map(|fct| fct.total()).min().unwrap_or_default()
            } else {
                bound_of_cuts(all, hop, format, size)
            };
        }
        let transmission = rate.transmit(format.on_wire(size));
        let after = Duration(fct.0.saturating_sub(transmission.0));
        [fct, if has_several { propagation } else { after }]
    }
}

/// Returns the rate of all links of each host to its switches together, and their number.
fn access_rates(graph: &Graph) -> Vec<(Rate, u32)> {
    let mut of_node = vec![(Rate(0), 0); graph.nodes.len()];
    for link in &graph.links {
        let (rate, count) = &mut of_node[link.from as usize];
        *rate = Rate(rate.0.saturating_add(link.rate.0));
        *count += 1;
    }
    graph.hosts.iter().map(|host| of_node[*host as usize]).collect()
}

/// Returns the link of each host to its switch, the first if there are several.
fn access_links(graph: &Graph) -> Vec<&Link> {
    let mut first = vec![None; graph.nodes.len()];
    for link in graph.links.iter().rev() {
        first[link.from as usize] = Some(link);
    }
    let of_host = |host: &NodeId| first[*host as usize];
    let links = graph.hosts.iter().map(of_host);
    links.map(|link| link.unwrap_or_else(|| unreachable!("every host has a link"))).collect()
}

/// Returns the position of each host among those at its switch.
fn positions(graph: &Graph) -> Vec<u32> {
    let mut hosts_at = vec![0; graph.nodes.len()];
    let position = |link: &Link| {
        let count = &mut hosts_at[link.to as usize];
        *count += 1;
        *count - 1
    };
    access_links(graph).into_iter().map(position).collect()
}

/// State of a job. A rank's entries change only at its host, so partitions need not exchange them.
struct JobState {
    /// Host of each rank.
    hosts: Vec<HostId>,
    /// Value of each counter of the schedule.
    counts: Vec<u32>,
    /// Time from which each rank is not computing; at first the start of the rank.
    idle_from: Vec<Time>,
    compute: Duration,
    /// Followers of which one of two times is known: that from which the source may send the message, and
    /// that at which it has sent the one before.
    waiting: FxHashMap<u64, Time>,
}

/// Message and its start.
type Start = (u64, Time);

impl JobState {
    fn new(
        schedule: &dyn Schedule,
        hosts: Vec<HostId>,
        idle_from: Vec<Time>,
        compute: Duration,
    ) -> Self {
        let counts = vec![0; schedule.messages() as usize];
        Self { hosts, counts, idle_from, compute, waiting: FxHashMap::default() }
    }

    /// Returns the start of a message that is due at `now`, unless it waits for the one before it.
    fn start(&mut self, schedule: &dyn Schedule, number: u64, now: Time) -> Option<Start> {
        let message = schedule.message(number);
        let idle_from = &mut self.idle_from[message.source as usize];
        let mut ready = now.max(*idle_from);
        if message.is_computed {
            ready = ready + self.compute;
            *idle_from = ready;
        }
        if schedule.is_follower(number) { self.meet(number, ready) } else { Some((number, ready)) }
    }

    /// Returns the start of a follower: the later of two times, at the second call with one of them.
    fn meet(&mut self, number: u64, time: Time) -> Option<Start> {
        let Some(other) = self.waiting.remove(&number) else {
            self.waiting.insert(number, time);
            return None;
        };
        Some((number, time.max(other)))
    }

    /// Returns the messages that may start after the end of a message: the one that is due, and the follower.
    fn on_end(
        &mut self,
        schedule: &dyn Schedule,
        number: u64,
        end: End,
        now: Time,
    ) -> [Option<Start>; 2] {
        let due = schedule.counter(number, end).and_then(|counter| {
            let count = &mut self.counts[counter as usize];
            *count += 1;
            schedule.released(counter, *count)
        });
        let due = due.and_then(|number| self.start(schedule, number, now));
        let follower = if end == End::Sent { schedule.follower(number) } else { None };
        [due, follower.and_then(|number| self.meet(number, now))]
    }
}

/// Jobs of equal schedules. Flow number = job · messages + message.
struct Jobs {
    schedule: Box<dyn Schedule>,
    states: Vec<JobState>,
}

impl Jobs {
    /// Returns the flow of a message that is due at `now`, unless it waits for the one before it.
    fn start(&mut self, job: usize, number: u64, now: Time) -> Option<FlowSpec> {
        let start = self.states[job].start(&*self.schedule, number, now)?;
        Some(self.flow(job, start))
    }

    /// Returns the flow of a message.
    fn flow(&self, job: usize, (number, start): Start) -> FlowSpec {
        let message = self.schedule.message(number);
        let hosts = &self.states[job].hosts;
        let [source, target] = [message.source, message.target].map(|rank| hosts[rank as usize]);
        FlowSpec {
            id: job as u64 * self.schedule.messages() + number,
            size: Some(message.size),
            class: job as u16,
            step: Some(message.step),
            ..flow_between(source, target, start)
        }
    }

    fn on_end(&mut self, flow: &FlowSpec, end: End, now: Time, next: &mut Vec<FlowSpec>) {
        let messages = self.schedule.messages();
        let (job, number) = ((flow.id / messages) as usize, flow.id % messages);
        let starts = self.states[job].on_end(&*self.schedule, number, end, now);
        next.extend(starts.into_iter().flatten().map(|start| self.flow(job, start)));
    }
}

impl Dependencies for Jobs {
    fn on_delivery(&mut self, delivered: &FlowSpec, now: Time, next: &mut Vec<FlowSpec>) {
        self.on_end(delivered, End::Delivered, now, next);
    }

    fn on_sent(&mut self, sent: &FlowSpec, now: Time, next: &mut Vec<FlowSpec>) {
        self.on_end(sent, End::Sent, now, next);
    }
}

//! Remote procedure calls: a request, and a response once the server has processed the request.
//!
//! Call k consists of flow 2k, the request, and flow 2k + 1, the response. All random values of a
//! call are drawn when its request is drawn, and in a closed loop each caller has its own random
//! stream. Every transport therefore sees the same calls, whatever their completion times.

use super::arrivals::{
    ArrivalProcess, InterArrival, LoadCounts, OfferedLoad, arrivals_end, last_of_many,
    limit_arrivals, needs_load,
};
use super::by_distance::shares_of_one;
use super::host_pairs::{HostPairs, HostRoles, PairSampler};
use super::{
    Dependencies, FlowStream, Workload, WorkloadContext, WorkloadEstimate, connection_in_turn,
    flow_between, size_warnings, sizes,
};
use crate::base::random::Random;
use crate::base::schema::{Problem, positive_if_given};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::{Connection, FlowSpec, HostId, Reply};
use crate::model::graph::Paths;
use crate::model::packet::Format;

crate::parameters! {
    /// Call pattern: either an open loop, in which calls arrive as a Poisson process that offers a
    /// load, or a closed loop, in which each client keeps a number of calls outstanding.
    pub struct CallPattern {
        /// Open loop: offered rate of requests and responses together, as a fraction of
        /// `load_reference`. Calls arrive as a Poisson process.
        pub load: Option<f64> = None, where positive_if_given;
        /// Rate that a load of 1 offers; if not given, the reference rate of the topology.
        pub load_reference: Option<Rate> = None, where positive_if_given;
        /// Bytes that the load counts.
        pub load_counts: LoadCounts = LoadCounts::Wire;
        /// If true, calls may exceed the reference rate of the topology, and what servers process.
        pub allow_overload: bool = false;
        /// Closed loop: number of outstanding calls per client. Replaces `load`.
        pub outstanding: Option<u32> = None, where positive_if_given;
        /// Closed loop: mean of the exponential think time between a response and the next request.
        pub think: Duration = Duration::ZERO;
        /// Rule that selects the client and server of a call.
        pub pairs: HostPairs = HostPairs::Topology;
        /// For `pairs = "by_distance"`: share of the calls to each distance that occurs between hosts,
        /// from the nearest on. In a Clos network: below the same edge switch, in the same pod,
        /// beyond.
        pub shares: Option<Vec<f64>> = None, where |shares| shares_of_one(shares.as_deref());
        /// Number of servers per client, drawn from the servers that `pairs` allows; each call goes
        /// to a uniformly random one of them. If not given, all of them.
        pub peers: Option<u32> = None, where positive_if_given;
        /// Time of the first arrival.
        pub start: Time = Time::ZERO;
        /// Time after which no call starts; if neither `stop` nor `calls` is given, one second
        /// after `start`.
        pub stop: Option<Time> = None;
        /// Number of persistent connections between a client and a server, on which request and response
        /// take opposite directions. The calls of an open loop use them in turn, and each outstanding call
        /// of a closed loop always the same. If not given, every flow has a connection of its own.
        pub connections: Option<u32> = None, where positive_if_given;
        /// Maximum number of calls. Each caller of a closed loop makes an equal part of them, and
        /// statistics end with the first caller: slower ones alone have other latencies.
        pub calls: Option<u64> = None, where positive_if_given;
    }
    check |pattern| {
        if pattern.load.is_some() == pattern.outstanding.is_some() {
            return Err(Problem::new("load", "give either `load` or `outstanding`"));
        }
        if pattern.load.is_some() && pattern.think > Duration::ZERO {
            return Err(Problem::new("think", "goes with `outstanding`, not with `load`"));
        }
        if pattern.outstanding.is_some() {
            needs_load(pattern.load_reference, pattern.load_counts, "outstanding")?;
        }
        if pattern.shares.is_some() && pattern.peers.is_some() {
            return Err(Problem::new("peers", "does not go with `shares`"));
        }
        Ok(())
    }
}

/// Random values of a call: its request and its reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// Payload of the request.
    pub(crate) request: Bytes,
    /// Class index of the request.
    pub(crate) class: u16,
    pub(crate) reply: Reply,
}

/// Distribution of calls.
pub(crate) trait CallDistribution: Send {
    /// Draws a call.
    fn sample(&self, random: &mut Random) -> Call;

    /// Mean payload of request and response together, in bytes.
    fn mean(&self) -> f64;

    /// Mean number of packets of request and response together.
    fn mean_packets(&self, payload: Bytes) -> f64;

    /// Mean service time of a request at the server.
    fn mean_service_time(&self) -> Duration;

    /// True if a server processes one request at a time, in FIFO order.
    fn has_server_queue(&self) -> bool;
}

/// Workload of calls.
pub(crate) trait CallWorkload {
    /// Returns the clients, servers and times of the calls.
    fn pattern(&self) -> &CallPattern;

    /// Returns the names of the classes, by class index.
    fn classes(&self) -> Vec<String>;

    /// Returns the distribution of the calls.
    fn distribution(&self, format: &Format) -> Result<Box<dyn CallDistribution>, Problem>;

    /// Returns the size distributions, each with its field.
    fn sizes(&self) -> Vec<(&'static str, &sizes::Config)>;
}

impl<T: CallWorkload> Workload for T {
    fn generate(&self, context: &WorkloadContext<'_>) -> Result<FlowStream, Problem> {
        let calls = self.distribution(context.format)?;
        let flows = self.pattern().generate(context, calls, self.classes());
        flows.map_err(|problem| problem.within("pattern"))
    }

    fn estimate(&self, context: &WorkloadContext<'_>) -> Result<WorkloadEstimate, Problem> {
        let calls = self.distribution(context.format)?;
        self.pattern().estimate(context, &*calls).map_err(|problem| problem.within("pattern"))
    }

    fn last_arrival(
        &self,
        context: &WorkloadContext<'_>,
        limit: Time,
    ) -> Result<Option<Time>, Problem> {
        let calls = self.distribution(context.format)?;
        let last = self.pattern().last_arrival(context, limit, &*calls);
        last.map_err(|problem| problem.within("pattern"))
    }

    fn default_end(&self) -> Option<Time> {
        self.pattern().default_end()
    }

    fn warnings(&self, format: &Format) -> Vec<String> {
        size_warnings(&self.sizes(), format)
    }
}

impl CallPattern {
    /// Generates calls that are drawn from a distribution.
    fn generate(
        &self,
        context: &WorkloadContext<'_>,
        calls: Box<dyn CallDistribution>,
        classes: Vec<String>,
    ) -> Result<FlowStream, Problem> {
        let pairs = PairSampler::new(self.pairs, self.shares.as_deref(), context.graph)?;
        let pairs = pairs.with_peers(self.peers, context.random("peers"));
        let servers = Servers::new(calls.has_server_queue(), context);
        let (load, flows, dependencies): (_, Box<dyn Iterator<Item = FlowSpec> + Send>, _) =
            if let Some(fraction) = self.load {
                let (rate, load) = self.call_rate(context, &pairs, fraction, &*calls)?;
                let requests = self.open_loop(context, pairs, calls, 1.0 / rate);
                (load, Box::new(requests), CallDependencies { servers, closed_loop: None })
            } else {
                let class_count = classes.len() as u16;
                let (closed_loop, requests) = self.closed_loop(context, pairs, calls, class_count);
                let dependencies = CallDependencies { servers, closed_loop: Some(closed_loop) };
                (String::new(), Box::new(requests.into_iter()), dependencies)
            };
        let dependencies: Option<Box<dyn Dependencies>> = Some(Box::new(dependencies));
        Ok(FlowStream {
            classes,
            load,
            has_deadlines: false,
            has_connections: self.connections.is_some(),
            flows,
            dependencies,
        })
    }

    /// Estimates the size of the workload. For a closed loop, the estimate is the number of calls
    /// that the network and the servers can process without queueing.
    fn estimate(
        &self,
        context: &WorkloadContext<'_>,
        calls: &dyn CallDistribution,
    ) -> Result<WorkloadEstimate, Problem> {
        let call = (2.0, calls.mean());
        let pairs = PairSampler::new(self.pairs, self.shares.as_deref(), context.graph)?;
        // A connection is a flow in each direction.
        let streams = 2.0 * pairs.max_pairs(self.peers);
        if let Some(fraction) = self.load {
            let (rate, _) = self.call_rate(context, &pairs, fraction, calls)?;
            let estimate =
                WorkloadEstimate::from_rate(rate, call, self.start, self.stop, self.calls);
            return Ok(estimate.with_connections(self.connections, streams));
        }
        let roles = pairs.roles;
        let callers = f64::from(self.outstanding.unwrap_or(1)) * roles.sources.len() as f64;
        let service = calls.mean_service_time().seconds();
        let cycle = self.think.seconds() + service + round_trip(context, &roles).seconds();
        let mut rate = (callers / cycle).min(context.graph.load.rate.bps() / 8.0 / calls.mean());
        if calls.has_server_queue() {
            rate = rate.min(roles.targets.len() as f64 / service);
        }
        let estimate = WorkloadEstimate::from_rate(rate, call, self.start, self.stop, self.calls);
        let bytes_per_caller = size_of::<(HostId, Random)>() + size_of::<FlowSpec>();
        let is_fixed = self.calls.is_some() && self.stop.is_none();
        let flows = estimate.flows.max(callers);
        let estimate = WorkloadEstimate {
            flows,
            is_fixed,
            concurrent: callers,
            stored_bytes: callers * bytes_per_caller as f64,
            ..estimate
        };
        Ok(estimate.with_connections(self.connections, streams))
    }

    /// Returns the last call of an open loop, if it has many.
    fn last_arrival(
        &self,
        context: &WorkloadContext<'_>,
        limit: Time,
        calls: &dyn CallDistribution,
    ) -> Result<Option<Time>, Problem> {
        let Some(fraction) = self.load else { return Ok(None) };
        let pairs = PairSampler::new(self.pairs, self.shares.as_deref(), context.graph)?;
        let (rate, _) = self.call_rate(context, &pairs, fraction, calls)?;
        Ok(last_of_many(self.arrivals(context, 1.0 / rate), limit))
    }

    /// Returns the end of the calls of an open loop if it is a default.
    fn default_end(&self) -> Option<Time> {
        let has_default = self.load.is_some() && self.stop.is_none() && self.calls.is_none();
        has_default.then(|| arrivals_end(self.start, None, None))
    }

    /// Returns the arrivals of calls of an open loop.
    fn arrivals(
        &self,
        context: &WorkloadContext<'_>,
        mean_inter_arrival: f64,
    ) -> impl Iterator<Item = Time> + Send + use<> {
        let inter_arrival =
            InterArrival::Exponential(mean_inter_arrival, context.random("arrivals"));
        let arrivals = ArrivalProcess { now: self.start, inter_arrival };
        limit_arrivals(arrivals, self.start, self.stop, self.calls)
    }

    /// Returns the number of calls per second of an open loop, and a description of the load.
    fn call_rate(
        &self,
        context: &WorkloadContext<'_>,
        pairs: &PairSampler,
        fraction: f64,
        calls: &dyn CallDistribution,
    ) -> Result<(f64, String), Problem> {
        let load = OfferedLoad {
            fraction,
            reference: self.load_reference,
            counts: self.load_counts,
            allow_overload: self.allow_overload,
            mean_payload: calls.mean(),
            mean_packets: calls.mean_packets(context.format.payload),
            ignores_roles: self.pairs.ignores_roles(),
        };
        let (rate, description) = load.arrival_rate(context, "calls")?;
        if !calls.has_server_queue() || calls.mean_service_time() == Duration::ZERO {
            return Ok((rate, description));
        }
        let at_server = rate / f64::from(pairs.max_targets());
        let served = 1.0 / calls.mean_service_time().seconds();
        let utilisation = at_server / served;
        if utilisation >= 1.0 && !self.allow_overload {
            let message = format!(
                "offers {at_server:.1} calls/s to each server in the mean, which processes only \
                 {served:.1} calls/s: {utilisation:.2} times its rate; give less, or \
                 `allow_overload = true`"
            );
            return Err(Problem::new("load", message));
        }
        Ok((rate, format!("{description}, utilisation of servers {utilisation:.2}")))
    }

    /// Returns the requests of an open loop.
    fn open_loop(
        &self,
        context: &WorkloadContext<'_>,
        mut pairs: PairSampler,
        calls: Box<dyn CallDistribution>,
        mean_inter_arrival: f64,
    ) -> impl Iterator<Item = FlowSpec> + Send + use<> {
        let mut pair_stream = context.random("pairs");
        let mut call_stream = context.random("calls");
        let connections = self.connections;
        (0..).zip(self.arrivals(context, mean_inter_arrival)).map(move |(number, start)| {
            let (source, target) = pairs.sample(&mut pair_stream);
            let connection = connection_in_turn(connections, number);
            let flow = FlowSpec { connection, ..flow_between(source, target, start) };
            request(number, calls.sample(&mut call_stream), flow)
        })
    }

    /// Returns a closed loop and the first requests of its callers.
    fn closed_loop(
        &self,
        context: &WorkloadContext<'_>,
        pairs: PairSampler,
        calls: Box<dyn CallDistribution>,
        class_count: u16,
    ) -> (ClosedLoop, Vec<FlowSpec>) {
        let outstanding = self.outstanding.unwrap_or(1);
        let clients = pairs.roles.sources.clone();
        let sources = clients.flat_map(|client| (0..outstanding).map(move |_| client));
        let callers = sources.enumerate().map(|(i, source)| {
            let random = context.random(&format!("caller/{i}"));
            (source, random)
        });
        let mut closed_loop = ClosedLoop {
            callers: callers.collect(),
            outstanding: u64::from(outstanding),
            connections: self.connections,
            pairs,
            calls,
            think: self.think,
            stop: arrivals_end(self.start, self.stop, self.calls),
            max_calls: self.calls.unwrap_or(u64::MAX),
            class_count,
            first_end: Time::NEVER,
        };
        let first = 0..closed_loop.callers.len() as u64;
        let mut requests: Vec<_> =
            first.filter_map(|number| closed_loop.next_request(number, self.start)).collect();
        requests.sort_by_key(|request| request.start);
        (closed_loop, requests)
    }
}

/// Round-trip propagation delay between the first host and the host opposite it.
fn round_trip(context: &WorkloadContext<'_>, roles: &HostRoles) -> Duration {
    let (source, mut links) = (roles.sources.start, Vec::new());
    Paths::new(context.graph).append(source, roles.opposite(source), 0, &mut links);
    let delays = links.iter().map(|link| context.graph.links[*link as usize].delay.0);
    // The minimum stands for transmission times, which are not counted here.
    Duration(2 * delays.sum::<u64>()).max(Duration::from_nanos(100))
}

/// Returns the request of a call.
fn request(number: u64, call: Call, flow: FlowSpec) -> FlowSpec {
    let Call { request, class, reply } = call;
    FlowSpec { id: 2 * number, size: Some(request), class, reply: Some(reply), ..flow }
}

/// Callers that send their next request when the response arrives.
struct ClosedLoop {
    /// Host and random stream of each caller. Call k belongs to caller k mod n.
    callers: Vec<(HostId, Random)>,
    /// Callers of each host.
    outstanding: u64,
    /// Persistent connections between a caller's host and a server.
    connections: Option<u32>,
    pairs: PairSampler,
    calls: Box<dyn CallDistribution>,
    think: Duration,
    stop: Time,
    max_calls: u64,
    /// Number of classes of requests and responses.
    class_count: u16,
    /// Time at which a caller would have made the first call that `max_calls` prevented.
    first_end: Time,
}

impl ClosedLoop {
    /// Returns the request of call `number`, or none if the loop has ended. The think time of its
    /// caller begins at `now`.
    fn next_request(&mut self, number: u64, now: Time) -> Option<FlowSpec> {
        let caller = (number % self.callers.len() as u64) as usize;
        let (source, random) = &mut self.callers[caller];
        let think = Duration::from_seconds(random.exponential(self.think.seconds()));
        let start = now + think;
        if start >= self.stop {
            return None;
        }
        if number >= self.max_calls {
            // A caller without any call has not ended.
            if number >= self.callers.len() as u64 {
                self.first_end = self.first_end.min(start);
            }
            return None;
        }
        let target = self.pairs.sample_target(*source, random);
        let connection = connection_in_turn(self.connections, caller as u64 % self.outstanding);
        let flow = FlowSpec { connection, ..flow_between(*source, target, start) };
        Some(request(number, self.calls.sample(random), flow))
    }
}

/// Service times at the servers.
struct Servers {
    /// Time at which each server becomes idle; none if servers process all requests in parallel.
    idle_from: Option<Vec<Time>>,
}

impl Servers {
    fn new(has_queue: bool, context: &WorkloadContext<'_>) -> Self {
        Self { idle_from: has_queue.then(|| vec![Time::ZERO; context.graph.hosts.len()]) }
    }

    fn completion_time(&mut self, server: HostId, service: Duration, now: Time) -> Time {
        let Some(idle_from) = &mut self.idle_from else { return now + service };
        let idle_from = &mut idle_from[server as usize];
        *idle_from = (*idle_from).max(now) + service;
        *idle_from
    }
}

/// A request is followed by its response; in a closed loop, a response is followed by the next
/// request of the caller.
struct CallDependencies {
    servers: Servers,
    closed_loop: Option<ClosedLoop>,
}

impl Dependencies for CallDependencies {
    fn on_delivery(&mut self, delivered: &FlowSpec, now: Time, next: &mut Vec<FlowSpec>) {
        let Some(Reply { size, service, class }) = delivered.reply else {
            let Some(closed_loop) = &mut self.closed_loop else { return };
            let call = delivered.id / 2 + closed_loop.callers.len() as u64;
            next.extend(closed_loop.next_request(call, now));
            return;
        };
        let start = self.servers.completion_time(delivered.target, service, now);
        next.push(FlowSpec {
            id: delivered.id + 1,
            size: Some(size),
            class,
            called: Some(delivered.start),
            connection: delivered
                .connection
                .map(|connection| Connection { from_server: true, ..connection }),
            ..flow_between(delivered.target, delivered.source, start)
        });
    }

    fn measured_until(&self) -> Vec<(u16, Time)> {
        let ended = self.closed_loop.as_ref().filter(|calls| calls.first_end < Time::NEVER);
        ended.map_or_else(Vec::new, |calls| {
            (0..calls.class_count).map(|class| (class, calls.first_end)).collect()
        })
    }
}

//! Remote procedure calls: a request, and a response once the request has been served.
//!
//! Call k is the flows 2k, its request, and 2k + 1, its response. All that is drawn of a call is drawn when
//! its request is, and in a closed loop every caller draws from a stream of its own: so every transport sees
//! the same calls, whatever it makes of their times.

use super::arrivals::{Gap, Instants, Load, LoadCounts, bounded};
use super::host_pairs::{Ends, Pairs, Sides};
use super::{Context, Dependencies, Flows, WorkloadEstimate, plain};
use crate::base::random::Random;
use crate::base::schema::{Problem, positive_if_given};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::{FlowSpec, HostId, Reply};
use crate::model::graph::Paths;

crate::parameters! {
    /// Who calls whom, and when: either calls come at random and offer a load, or every client has some
    /// in progress and makes the next when one is answered.
    pub struct Pattern {
        /// Offered rate of requests and responses together, as a share of `load_reference`: calls then
        /// come as a Poisson process.
        pub load: Option<f64> = None, where positive_if_given;
        /// What a load of 1 offers; if not given, the topology's own reference.
        pub load_reference: Option<Rate> = None, where positive_if_given;
        /// Which bytes the load counts.
        pub load_counts: LoadCounts = LoadCounts::Wire;
        /// Whether more may be offered than the topology's reference carries.
        pub allow_overload: bool = false;
        /// How many calls every client has in progress, instead of a load.
        pub outstanding: Option<u32> = None, where positive_if_given;
        /// Mean of the exponential time from a response to the next request, with `outstanding`.
        pub think: Duration = Duration::ZERO;
        /// Who calls whom.
        pub pairs: Pairs = Pairs::Topology;
        /// How many servers each client has, drawn from those that `pairs` allows, of which it calls one as
        /// often as another; none for all of them.
        pub peers: Option<u32> = None, where positive_if_given;
        /// When calls begin.
        pub start: Time = Time::ZERO;
        /// When they stop; if neither this nor `calls` is given, one second after `start`.
        pub stop: Option<Time> = None;
        /// How many calls there are at most.
        pub calls: Option<u64> = None, where positive_if_given;
    }
    check |pattern| {
        match (pattern.load, pattern.outstanding) {
            (Some(_), Some(_)) | (None, None) => {
                Err(Problem::new("load", "give either `load` or `outstanding`"))
            }
            (Some(_), None) if pattern.think > Duration::ZERO => {
                Err(Problem::new("think", "goes with `outstanding`, not with `load`"))
            }
            _ => Ok(()),
        }
    }
}

/// What is drawn of a call: its request and what answers it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// Payload of the request.
    pub(crate) request: Bytes,
    /// Index of the request's class.
    pub(crate) class: u16,
    pub(crate) reply: Reply,
}

/// A kind of calls.
pub(crate) trait Kind: Send {
    /// Draws one.
    fn draw(&self, random: &mut Random) -> Call;

    /// Mean payload of request and response together, in bytes.
    fn mean(&self) -> f64;

    /// Mean number of packets of both.
    fn mean_packets(&self, payload: Bytes) -> f64;

    /// How long a server takes for a request, on average.
    fn service(&self) -> Duration;

    /// Whether a server serves one request at a time, in the order in which they come.
    fn has_queue(&self) -> bool;
}

impl Pattern {
    /// Opens the stream of calls of a kind.
    pub(crate) fn open(
        &self,
        context: &Context<'_>,
        kind: Box<dyn Kind>,
        classes: Vec<String>,
    ) -> Result<Flows, Problem> {
        let ends = Ends::new(self.pairs, context.graph)?;
        let ends = ends.with_peers(self.peers, context.random("peers"));
        let servers = Servers::new(kind.has_queue(), context);
        let (load, flows, sequel): (_, Box<dyn Iterator<Item = FlowSpec> + Send>, _) =
            if let Some(share) = self.load {
                let (arrivals, load) = self.arrivals(context, share, &*kind)?;
                let requests = self.open_loop(context, ends, kind, 1.0 / arrivals);
                (load, Box::new(requests), Calls { servers, callers: None })
            } else {
                let (callers, requests) = self.closed_loop(context, ends, kind);
                let sequel = Calls { servers, callers: Some(callers) };
                (String::new(), Box::new(requests.into_iter()), sequel)
            };
        let sequel: Option<Box<dyn Dependencies>> = Some(Box::new(sequel));
        Ok(Flows { classes, load, has_deadlines: false, flows, sequel })
    }

    /// What will be asked for, roughly. In a closed loop that is as many calls as the network and the servers
    /// can take, if nobody waits in a queue.
    pub(crate) fn offer(
        &self,
        context: &Context<'_>,
        kind: &dyn Kind,
    ) -> Result<WorkloadEstimate, Problem> {
        let call = (2.0, kind.mean());
        if let Some(share) = self.load {
            let (rate, _) = self.arrivals(context, share, kind)?;
            return Ok(WorkloadEstimate::arriving(rate, call, self.start, self.stop, self.calls));
        }
        let sides = Ends::new(self.pairs, context.graph)?.sides;
        let callers = f64::from(self.outstanding.unwrap_or(1)) * sides.sources.len() as f64;
        let service = kind.service().seconds();
        let turn = self.think.seconds() + service + round_trip(context, &sides).seconds();
        let mut rate = (callers / turn).min(context.graph.load.rate.bps() / 8.0 / kind.mean());
        if kind.has_queue() {
            rate = rate.min(sides.targets.len() as f64 / service);
        }
        let offer = WorkloadEstimate::arriving(rate, call, self.start, self.stop, self.calls);
        let each = size_of::<(HostId, Random)>() + size_of::<FlowSpec>();
        let is_counted = self.calls.is_some() && self.stop.is_none();
        let flows = offer.flows.max(callers);
        Ok(WorkloadEstimate {
            flows,
            is_counted,
            together: callers,
            listed: callers * each as f64,
            ..offer
        })
    }

    fn arrivals(
        &self,
        context: &Context<'_>,
        share: f64,
        kind: &dyn Kind,
    ) -> Result<(f64, String), Problem> {
        let load = Load {
            share,
            reference: self.load_reference,
            counts: self.load_counts,
            allow_overload: self.allow_overload,
            payload: kind.mean(),
            packets: kind.mean_packets(context.format.payload),
        };
        load.arrivals(context, "calls")
    }

    /// Requests that come at random.
    fn open_loop(
        &self,
        context: &Context<'_>,
        mut ends: Ends,
        kind: Box<dyn Kind>,
        mean_gap: f64,
    ) -> impl Iterator<Item = FlowSpec> + Send + use<> {
        let gap = Gap::Poisson(mean_gap, context.random("arrivals"));
        let instants = Instants { now: self.start, gap };
        let mut pairs = context.random("pairs");
        let mut calls = context.random("calls");
        (0..).zip(bounded(instants, self.start, self.stop, self.calls)).map(move |(number, at)| {
            let (source, target) = ends.draw(&mut pairs);
            request(number, kind.draw(&mut calls), plain(source, target, at))
        })
    }

    /// Those who call again when they are answered, and their first requests.
    fn closed_loop(
        &self,
        context: &Context<'_>,
        ends: Ends,
        kind: Box<dyn Kind>,
    ) -> (Callers, Vec<FlowSpec>) {
        let each = self.outstanding.unwrap_or(1);
        let clients = ends.sides.sources.clone();
        let sources = clients.flat_map(|client| (0..each).map(move |_| client));
        let streams = sources.enumerate().map(|(i, source)| {
            let random = context.random(&format!("caller/{i}"));
            (source, random)
        });
        let mut callers = Callers {
            streams: streams.collect(),
            ends,
            kind,
            think: self.think,
            stop: match (self.stop, self.calls) {
                (Some(stop), _) => stop,
                (None, Some(_)) => Time::NEVER,
                (None, None) => self.start + Duration::from_millis(1000),
            },
            most: self.calls.unwrap_or(u64::MAX),
        };
        let first = 0..callers.streams.len() as u64;
        let mut requests: Vec<_> =
            first.filter_map(|number| callers.call(number, self.start)).collect();
        requests.sort_by_key(|request| request.start);
        (callers, requests)
    }
}

/// Propagation there and back between the first host and the one opposite it.
fn round_trip(context: &Context<'_>, sides: &Sides) -> Duration {
    let (source, mut links) = (sides.sources.start, Vec::new());
    Paths::new(context.graph).append(source, sides.opposite(source), 0, &mut links);
    let delays = links.iter().map(|link| context.graph.links[*link as usize].delay.0);
    // Without delays it is not nothing: packets need time too.
    Duration(2 * delays.sum::<u64>()).max(Duration::from_nanos(100))
}

/// The request of a call.
fn request(number: u64, call: Call, plain: FlowSpec) -> FlowSpec {
    let Call { request, class, reply } = call;
    FlowSpec { id: 2 * number, size: Some(request), class, reply: Some(reply), ..plain }
}

/// Those who call again when they are answered.
struct Callers {
    /// The host of each caller and its random stream. The calls of one are as many numbers apart as there
    /// are callers.
    streams: Vec<(HostId, Random)>,
    ends: Ends,
    kind: Box<dyn Kind>,
    think: Duration,
    stop: Time,
    most: u64,
}

impl Callers {
    /// The request of call `number`, whose caller may call from `now` on.
    fn call(&mut self, number: u64, now: Time) -> Option<FlowSpec> {
        let caller = (number % self.streams.len() as u64) as usize;
        let (source, random) = &mut self.streams[caller];
        let think = Duration::from_seconds(random.exponential(self.think.seconds()));
        let start = now + think;
        if number >= self.most || start >= self.stop {
            return None;
        }
        let target = self.ends.target(*source, random);
        Some(request(number, self.kind.draw(random), plain(*source, target, start)))
    }
}

/// When servers have served what they are asked.
struct Servers {
    /// When each is free; none if they serve everything at once.
    free: Option<Vec<Time>>,
}

impl Servers {
    fn new(has_queue: bool, context: &Context<'_>) -> Self {
        Self { free: has_queue.then(|| vec![Time::ZERO; context.graph.hosts.len()]) }
    }

    fn serve(&mut self, server: HostId, service: Duration, now: Time) -> Time {
        let Some(free) = &mut self.free else { return now + service };
        let free = &mut free[server as usize];
        *free = (*free).max(now) + service;
        *free
    }
}

/// What follows a request: its response. What follows a response: the caller's next request, if its callers
/// wait for responses.
struct Calls {
    servers: Servers,
    callers: Option<Callers>,
}

impl Dependencies for Calls {
    fn after(&mut self, ended: &FlowSpec, now: Time) -> Option<FlowSpec> {
        let Some(Reply { size, service, class }) = ended.reply else {
            let callers = self.callers.as_mut()?;
            return callers.call(ended.id / 2 + callers.streams.len() as u64, now);
        };
        let start = self.servers.serve(ended.target, service, now);
        Some(FlowSpec {
            id: ended.id + 1,
            size: Some(size),
            class,
            called: Some(ended.start),
            ..plain(ended.target, ended.source, start)
        })
    }
}

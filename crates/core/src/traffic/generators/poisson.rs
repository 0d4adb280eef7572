//! Poisson flow arrivals.

use crate::base::random::Random;
use crate::base::schema::{Problem, has_mean_if_given, not_negative, positive, positive_if_given};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::FlowSpec;
use crate::model::graph::{Graph, Paths};
use crate::model::ideal_fct::ideal_fct;
use crate::model::packet::Format;
use crate::traffic::arrivals::{
    ArrivalProcess, InterArrival, LoadCounts, OfferedLoad, arrivals_end, last_of_many,
    limit_arrivals,
};
use crate::traffic::by_distance::shares_of_one;
use crate::traffic::demand::{Demand, DemandPairs};
use crate::traffic::host_pairs::{HostPairs, PairSampler};
use crate::traffic::sizes;
use crate::traffic::{
    FlowStream, Workload, WorkloadContext, WorkloadEstimate, connection_in_turn, flow_between,
    size_warnings,
};

crate::parameters! {
    /// Exponentially distributed deadlines, as in [d311] and [pdq12].
    pub struct Deadlines {
        /// Mean of the exponential distribution, before the minimum is applied.
        pub mean: Duration, where positive;
        /// Minimum deadline; shorter deadlines are raised to it.
        pub minimum: Duration = Duration::ZERO;
        /// Minimum deadline as a multiple of the ideal FCT of the flow on its first path; 1.25 in
        /// [pfabric13].
        pub minimum_slowdown: f64 = 0.0, where not_negative;
        /// Only flows smaller than this have a deadline; if not given, all flows.
        pub below: Option<Bytes> = None;
    }
}

crate::parameters! {
    /// Flows that arrive as a Poisson process with an offered load, or in bursts if `gap_shape` is
    /// given.
    ///
    /// Arrivals, sizes, host pairs and deadlines have separate random streams. With the same seed,
    /// a different load changes only the inter-arrival times, and every transport sees the same
    /// flows.
    pub struct Config {
        /// Offered rate, as a fraction of `load_reference`.
        pub load: f64, where positive;
        /// Rate that a load of 1 offers; if not given, the reference rate of the topology.
        pub load_reference: Option<Rate> = None, where positive_if_given;
        /// Bytes that the load counts.
        pub load_counts: LoadCounts = LoadCounts::Wire;
        /// If true, the offered load may exceed the reference rate of the topology, and links may be
        /// offered more than they carry.
        pub allow_overload: bool = false;
        /// Shape of Pareto inter-arrival times, with the mean that the load requires; if not given,
        /// inter-arrival times are exponential. Below 2 the variance is infinite, and the load of a
        /// run (`realised_load` in the summary) differs from `load`.
        pub gap_shape: Option<f64> = None, where has_mean_if_given;
        /// Flow size distribution.
        pub sizes: sizes::Config;
        /// Rule that selects the source and target of a flow.
        pub pairs: HostPairs = HostPairs::Topology;
        /// For `pairs = "by_distance"`: share of the flows to each distance that occurs between hosts,
        /// from the nearest on. In a Clos network: below the same edge switch, in the same pod,
        /// beyond.
        pub shares: Option<Vec<f64>> = None, where |shares| shares_of_one(shares.as_deref());
        /// Start of the arrival process.
        pub start: Time = Time::ZERO;
        /// Time after which no flow arrives; if neither `stop` nor `flows` is given, one second
        /// after `start`.
        pub stop: Option<Time> = None;
        /// Maximum number of flows.
        pub flows: Option<u64> = None, where positive_if_given;
        /// Number of persistent connections from each source to each target, which flows use in turn. If not
        /// given, every flow has a connection of its own.
        pub connections: Option<u32> = None, where positive_if_given;
        /// Deadlines of the flows, if any.
        pub deadlines: Option<Deadlines> = None;
        /// Name of the flow class.
        pub class: String = "poisson".to_owned();
    }
}

impl Workload for Config {
    fn generate(&self, context: &WorkloadContext<'_>) -> Result<FlowStream, Problem> {
        let (sizes, load) = self.sizes_and_load(context)?;
        let (rate, load) = load.arrival_rate(context, "flows")?;
        let mut pairs = PairSampler::new(self.pairs, self.shares.as_deref(), context.graph)?;
        let mut pair_stream = context.random("pairs");
        let mut size_stream = context.random("sizes");
        let mut deadlines =
            self.deadlines.as_ref().map(|deadlines| DeadlineSampler::new(deadlines, context));
        let connections = self.connections;
        let flows = (0..).zip(self.arrivals(rate, context)).map(move |(id, start)| {
            let (source, target) = pairs.sample(&mut pair_stream);
            let size = sizes.sample(&mut size_stream);
            let connection = connection_in_turn(connections, id);
            let flow = flow_between(source, target, start);
            let mut spec = FlowSpec { id, size: Some(size), connection, ..flow };
            spec.deadline = deadlines.as_mut().and_then(|deadlines| deadlines.sample(&spec, size));
            spec
        });
        Ok(FlowStream {
            classes: vec![self.class.clone()],
            load,
            has_deadlines: self.deadlines.is_some(),
            has_connections: connections.is_some(),
            flows: Box::new(flows),
            dependencies: None,
        })
    }

    fn number(&self) -> Option<u64> {
        // A `stop` may end arrivals before.
        self.flows.filter(|_| self.stop.is_none())
    }

    fn estimate(&self, context: &WorkloadContext<'_>) -> Result<WorkloadEstimate, Problem> {
        let (_, load) = self.sizes_and_load(context)?;
        let (rate, _) = load.arrival_rate(context, "flows")?;
        let flow = (1.0, load.mean_payload);
        let pairs =
            PairSampler::new(self.pairs, self.shares.as_deref(), context.graph)?.max_pairs(None);
        let estimate = WorkloadEstimate::from_rate(rate, flow, self.start, self.stop, self.flows);
        Ok(estimate.with_connections(self.connections, pairs))
    }

    fn demands(&self, context: &WorkloadContext<'_>) -> Result<Vec<Demand>, Problem> {
        let groups = DemandPairs::of_rule(self.pairs, self.shares.as_deref(), context.graph)?;
        let (_, load) = self.sizes_and_load(context)?;
        let (rate, _) = load.arrival_rate(context, "flows")?;
        let demand = |(share, pairs)| Demand {
            field: "load".to_owned(),
            bps: share * rate * load.wire_bits(context),
            pairs,
            start: self.start,
            end: arrivals_end(self.start, self.stop, self.flows),
            may_exceed: self.allow_overload,
        };
        Ok(groups.into_iter().map(demand).collect())
    }

    fn last_arrival(
        &self,
        context: &WorkloadContext<'_>,
        limit: Time,
    ) -> Result<Option<Time>, Problem> {
        let (_, load) = self.sizes_and_load(context)?;
        let (rate, _) = load.arrival_rate(context, "flows")?;
        Ok(last_of_many(self.arrivals(rate, context), limit))
    }

    fn default_end(&self) -> Option<Time> {
        let has_default = self.stop.is_none() && self.flows.is_none();
        has_default.then(|| arrivals_end(self.start, None, None))
    }

    fn warnings(&self, format: &Format) -> Vec<String> {
        size_warnings(&[("sizes", &self.sizes)], format)
    }
}

impl Config {
    fn arrivals(
        &self,
        rate: f64,
        context: &WorkloadContext<'_>,
    ) -> impl Iterator<Item = Time> + Send + use<> {
        let inter_arrival =
            InterArrival::with_mean(1.0 / rate, self.gap_shape, context.random("arrivals"));
        let arrivals = ArrivalProcess { now: self.start, inter_arrival };
        limit_arrivals(arrivals, self.start, self.stop, self.flows)
    }

    fn sizes_and_load(
        &self,
        context: &WorkloadContext<'_>,
    ) -> Result<(Box<dyn sizes::SizeDistribution>, OfferedLoad), Problem> {
        let sizes =
            self.sizes.distribution(context.format).map_err(|problem| problem.within("sizes"))?;
        let load = OfferedLoad {
            fraction: self.load,
            reference: self.load_reference,
            counts: self.load_counts,
            allow_overload: self.allow_overload,
            mean_payload: sizes.mean(),
            mean_packets: sizes.mean_packets(context.format.payload),
            ignores_roles: self.pairs.ignores_roles(),
        };
        Ok((sizes, load))
    }
}

/// Draws the deadlines of flows.
struct DeadlineSampler {
    deadlines: Deadlines,
    random: Random,
    paths: Paths,
    graph: Graph,
    format: Format,
}

impl DeadlineSampler {
    fn new(deadlines: &Deadlines, context: &WorkloadContext<'_>) -> Self {
        Self {
            deadlines: deadlines.clone(),
            random: context.random("deadlines"),
            paths: Paths::new(context.graph),
            graph: context.graph.clone(),
            format: context.format.clone(),
        }
    }

    fn sample(&mut self, flow: &FlowSpec, size: Bytes) -> Option<Duration> {
        // Drawn for every flow, so that `below` does not change the deadlines of other flows.
        let sampled = self.random.exponential(self.deadlines.mean.seconds());
        let Deadlines { minimum, minimum_slowdown, below, .. } = self.deadlines;
        if below.is_some_and(|below| size >= below) {
            return None;
        }
        let mut deadline = Duration::from_seconds(sampled).max(minimum);
        if minimum_slowdown > 0.0 {
            let ideal_s = self.ideal_fct(flow, size).seconds();
            deadline = deadline.max(Duration::from_seconds(minimum_slowdown * ideal_s));
        }
        Some(deadline)
    }

    /// Returns the ideal FCT of the flow.
    fn ideal_fct(&mut self, flow: &FlowSpec, size: Bytes) -> Duration {
        let mut path = Vec::new();
        self.paths.append(flow.source, flow.target, 0, &mut path);
        let hop = |link| {
            let link = &self.graph.links[link as usize];
            (link.rate, link.delay)
        };
        ideal_fct(path.into_iter().map(hop), &self.format, size).total()
    }
}

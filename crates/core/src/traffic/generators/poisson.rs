//! Flows that arrive at random and know nothing of each other.

use super::{Context, Flows, Workload, WorkloadEstimate, plain};
use crate::base::random::Random;
use crate::base::schema::{Problem, has_mean_if_given, not_negative, positive, positive_if_given};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::FlowSpec;
use crate::model::graph::{Graph, Paths};
use crate::model::ideal_fct::ideal_fct;
use crate::model::packet::Format;
use crate::traffic::arrivals::{Gap, Instants, Load, LoadCounts, bounded};
use crate::traffic::host_pairs::{Ends, Pairs};
use crate::traffic::sizes;

crate::parameters! {
    /// Deadlines drawn from an exponential distribution, as in [d311] and [pdq12].
    pub struct Deadlines {
        /// Mean, before anything that is drawn too short is made longer.
        pub mean: Duration, where positive;
        /// Shortest deadline: what is drawn below becomes this.
        pub minimum: Duration = Duration::ZERO;
        /// Shortest deadline as a multiple of what the flow takes alone in the network, on the first
        /// of its paths; 1.25 in [pfabric13].
        pub minimum_slowdown: f64 = 0.0, where not_negative;
        /// Only flows smaller than this have a deadline; if not given, all have.
        pub below: Option<Bytes> = None;
    }
}

crate::parameters! {
    /// Flows arrive as a Poisson process that offers a load, or in bursts if `gap_shape` says so.
    ///
    /// Arrivals, sizes, pairs and deadlines come from random streams of their own: under one seed a
    /// changed load moves the same flows closer together, and every scheme sees the same flows.
    pub struct Config {
        /// Offered rate, as a share of `load_reference`.
        pub load: f64, where positive;
        /// What a load of 1 offers; if not given, the topology's own reference.
        pub load_reference: Option<Rate> = None, where positive_if_given;
        /// Which bytes the load counts.
        pub load_counts: LoadCounts = LoadCounts::Wire;
        /// Whether more may be offered than the topology's reference carries.
        pub allow_overload: bool = false;
        /// Shape of the Pareto distribution of the gaps between arrivals, whose mean is that of the load; if
        /// not given, gaps are exponential. Below 2 their variance is infinite, and what a run realises
        /// of the load (`realised_load` of the summary) differs from what was asked for.
        pub gap_shape: Option<f64> = None, where has_mean_if_given;
        /// How large flows are.
        pub sizes: sizes::Config;
        /// Between whom they run.
        pub pairs: Pairs = Pairs::Topology;
        /// When arrivals begin.
        pub start: Time = Time::ZERO;
        /// When arrivals stop; if neither this nor `flows` is given, one second after `start`.
        pub stop: Option<Time> = None;
        /// How many flows there are at most.
        pub flows: Option<u64> = None, where positive_if_given;
        /// Deadlines of the flows, if they have any.
        pub deadlines: Option<Deadlines> = None;
        /// Name of the flows' class.
        pub class: String = "poisson".to_owned();
    }
}

impl Workload for Config {
    fn open(&self, context: &Context<'_>) -> Result<Flows, Problem> {
        let (sizes, load) = self.sizes_and_load(context)?;
        let (arrivals, load) = load.arrivals(context, "flows")?;
        let mut ends = Ends::new(self.pairs, context.graph)?;
        let mut pair_stream = context.random("pairs");
        let mut size_stream = context.random("sizes");
        let mut deadlines =
            self.deadlines.as_ref().map(|deadlines| DrawnDeadlines::new(deadlines, context));
        let gap = Gap::random(1.0 / arrivals, self.gap_shape, context.random("arrivals"));
        let instants = Instants { now: self.start, gap };
        let flows = (0..).zip(bounded(instants, self.start, self.stop, self.flows));
        let flows = flows.map(move |(id, start)| {
            let (source, target) = ends.draw(&mut pair_stream);
            let size = sizes.sample(&mut size_stream);
            let mut spec = FlowSpec { id, size: Some(size), ..plain(source, target, start) };
            spec.deadline = deadlines.as_mut().and_then(|deadlines| deadlines.draw(&spec, size));
            spec
        });
        Ok(Flows {
            classes: vec![self.class.clone()],
            load,
            has_deadlines: self.deadlines.is_some(),
            flows: Box::new(flows),
            sequel: None,
        })
    }

    fn offer(&self, context: &Context<'_>) -> Result<WorkloadEstimate, Problem> {
        let (_, load) = self.sizes_and_load(context)?;
        let (arrivals, _) = load.arrivals(context, "flows")?;
        Ok(WorkloadEstimate::arriving(
            arrivals,
            (1.0, load.payload),
            self.start,
            self.stop,
            self.flows,
        ))
    }
}

impl Config {
    fn sizes_and_load(
        &self,
        context: &Context<'_>,
    ) -> Result<(Box<dyn sizes::Distribution>, Load), Problem> {
        let sizes = self.sizes.open(context.format).map_err(|problem| problem.within("sizes"))?;
        let load = Load {
            share: self.load,
            reference: self.load_reference,
            counts: self.load_counts,
            allow_overload: self.allow_overload,
            payload: sizes.mean(),
            packets: sizes.mean_packets(context.format.payload),
        };
        Ok((sizes, load))
    }
}

/// Draws one deadline after another.
struct DrawnDeadlines {
    deadlines: Deadlines,
    random: Random,
    paths: Paths,
    graph: Graph,
    format: Format,
}

impl DrawnDeadlines {
    fn new(deadlines: &Deadlines, context: &Context<'_>) -> Self {
        Self {
            deadlines: deadlines.clone(),
            random: context.random("deadlines"),
            paths: Paths::new(context.graph),
            graph: context.graph.clone(),
            format: context.format.clone(),
        }
    }

    fn draw(&mut self, flow: &FlowSpec, size: Bytes) -> Option<Duration> {
        // Drawn for every flow, so that who has a deadline does not move the others'.
        let drawn = self.random.exponential(self.deadlines.mean.seconds());
        let Deadlines { minimum, minimum_slowdown, below, .. } = self.deadlines;
        if below.is_some_and(|below| size >= below) {
            return None;
        }
        let mut deadline = Duration::from_seconds(drawn).max(minimum);
        if minimum_slowdown > 0.0 {
            let ideal_s = self.ideal_fct(flow, size).seconds();
            deadline = deadline.max(Duration::from_seconds(minimum_slowdown * ideal_s));
        }
        Some(deadline)
    }

    /// What the flow takes if it meets nobody.
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

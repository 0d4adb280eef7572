//! Incast: many hosts send to one host at the same time.

use crate::base::random::Random;
use crate::base::schema::{Problem, positive, positive_if_given};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::{FlowSpec, HostId};
use crate::traffic::arrivals::{
    ArrivalProcess, InterArrival, LoadCounts, OfferedLoad, arrivals_end, last_of_many,
    limit_arrivals, needs_load,
};
use crate::traffic::by_distance::{TargetsByDistance, shares_of_one};
use crate::traffic::demand::{Demand, DemandPairs};
use crate::traffic::estimate::payload;
use crate::traffic::host_pairs::HostRoles;
use crate::traffic::hosts::{Host, HostNames};
use crate::traffic::{FlowStream, Workload, WorkloadContext, WorkloadEstimate, flow_between};

crate::parameters! {
    /// Incast events: in each event, `fan_in` random distinct hosts send to one receiver at the
    /// same time. Events are periodic, or arrive as a Poisson process that offers a load.
    pub struct Config {
        /// Number of senders per event (fan-in).
        pub fan_in: u32, where positive;
        /// Payload per sender.
        pub size: Bytes, where positive;
        /// Host that receives, by number or by name; if not given, a random host in each event.
        pub target: Option<Host> = None;
        /// Share of the senders at each distance from the receiver, as in `poisson`; if not given,
        /// all hosts are equally likely.
        pub shares: Option<Vec<f64>> = None, where |shares| shares_of_one(shares.as_deref());
        /// Time between events.
        pub interval: Option<Duration> = None, where positive_if_given;
        /// Offered rate, as a fraction of `load_reference`; instead of `interval`.
        pub load: Option<f64> = None, where positive_if_given;
        /// Rate that a load of 1 offers; if not given, the reference rate of the topology.
        pub load_reference: Option<Rate> = None, where positive_if_given;
        /// Bytes that the load counts.
        pub load_counts: LoadCounts = LoadCounts::Wire;
        /// If true, the offered load may exceed the reference rate of the topology, and links may be
        /// offered more than they carry.
        pub allow_overload: bool = false;
        /// Start of the event process.
        pub start: Time = Time::ZERO;
        /// Time after which no event starts; if neither `stop` nor `events` is given, one second
        /// after `start`.
        pub stop: Option<Time> = None;
        /// Maximum number of events.
        pub events: Option<u64> = None, where positive_if_given;
        /// Name of the flow class.
        pub class: String = "incast".to_owned();
    }
    check |config| {
        if config.interval.is_some() == config.load.is_some() {
            return Err(Problem::new("interval", "give either `interval` or `load`"));
        }
        if config.interval.is_some() {
            needs_load(config.load_reference, config.load_counts, "interval")?;
        }
        Ok(())
    }
}

impl Workload for Config {
    fn generate(&self, context: &WorkloadContext<'_>) -> Result<FlowStream, Problem> {
        let mut events = IncastEvents::new(self, context)?;
        let (inter_arrival, load) = self.inter_arrival(context)?;
        let mut pairs = context.random("pairs");
        let flows =
            self.arrivals(inter_arrival).flat_map(move |start| events.flows(start, &mut pairs));
        let size = Some(self.size);
        let flows = (0..).zip(flows).map(move |(id, flow)| FlowSpec { id, size, ..flow });
        Ok(FlowStream {
            classes: vec![self.class.clone()],
            load,
            has_deadlines: false,
            has_connections: false,
            flows: Box::new(flows),
            dependencies: None,
        })
    }

    fn estimate(&self, context: &WorkloadContext<'_>) -> Result<WorkloadEstimate, Problem> {
        let gap = match self.inter_arrival(context)?.0 {
            InterArrival::Constant(gap) => gap.seconds(),
            InterArrival::Exponential(mean, _) | InterArrival::Pareto(mean, ..) => mean,
        };
        let flows = f64::from(self.fan_in);
        let batch = (flows, payload(flows, Some(self.size)));
        Ok(WorkloadEstimate::from_rate(1.0 / gap, batch, self.start, self.stop, self.events))
    }

    fn last_arrival(
        &self,
        context: &WorkloadContext<'_>,
        limit: Time,
    ) -> Result<Option<Time>, Problem> {
        Ok(last_of_many(self.arrivals(self.inter_arrival(context)?.0), limit))
    }

    fn demands(&self, context: &WorkloadContext<'_>) -> Result<Vec<Demand>, Problem> {
        if (self.interval.is_some() && self.events == Some(1)) || self.shares.is_some() {
            // One event has no rate, and senders by distance have no closed form.
            return Ok(Vec::new());
        }
        let mut roles = HostRoles::from_graph(context.graph)?;
        if let Some(target) = self.target(context)? {
            roles.targets = target..target + 1;
        }
        let load = self.offered_load(context, self.load.unwrap_or_default());
        let rate = match self.interval {
            Some(interval) => 1.0 / interval.seconds(),
            None => load.arrival_rate(context, "events")?.0,
        };
        Ok(vec![Demand {
            field: if self.interval.is_some() { "interval" } else { "load" }.to_owned(),
            bps: rate * load.wire_bits(context),
            pairs: DemandPairs::All(roles),
            start: self.start,
            end: arrivals_end(self.start, self.stop, self.events),
            // Periodic events may be few, so that their rate is not a load.
            may_exceed: self.allow_overload || self.interval.is_some(),
        }])
    }
}

impl Config {
    /// Returns the number of the host that receives, if it is given.
    fn target(&self, context: &WorkloadContext<'_>) -> Result<Option<HostId>, Problem> {
        let number = |host| HostNames::new(context.graph).number(host);
        let target = self.target.as_ref().map(number).transpose();
        target.map_err(|problem| problem.within("target"))
    }

    fn arrivals(&self, inter_arrival: InterArrival) -> impl Iterator<Item = Time> + Send + use<> {
        let arrivals = ArrivalProcess { now: self.start, inter_arrival };
        limit_arrivals(arrivals, self.start, self.stop, self.events)
    }

    /// Offered load as a fraction of the reference, with the flows of an event as one arrival.
    fn offered_load(&self, context: &WorkloadContext<'_>, fraction: f64) -> OfferedLoad {
        let flows = f64::from(self.fan_in);
        OfferedLoad {
            fraction,
            reference: self.load_reference,
            counts: self.load_counts,
            allow_overload: self.allow_overload,
            mean_payload: flows * self.size.0 as f64,
            mean_packets: flows * context.format.packets(self.size) as f64,
            ignores_roles: false,
        }
    }

    fn inter_arrival(
        &self,
        context: &WorkloadContext<'_>,
    ) -> Result<(InterArrival, String), Problem> {
        match (self.interval, self.load) {
            (Some(interval), _) => Ok((InterArrival::Constant(interval), String::new())),
            (None, Some(load)) => {
                let load = self.offered_load(context, load);
                let (events, load) = load.arrival_rate(context, "events")?;
                Ok((InterArrival::Exponential(1.0 / events, context.random("arrivals")), load))
            }
            (None, None) => unreachable!("checked when the scenario is read"),
        }
    }
}

/// Generates the flows of incast events.
struct IncastEvents {
    roles: HostRoles,
    target: Option<HostId>,
    fan_in: usize,
    by_distance: Option<TargetsByDistance>,
}

impl IncastEvents {
    fn new(config: &Config, context: &WorkloadContext<'_>) -> Result<Self, Problem> {
        let roles = HostRoles::from_graph(context.graph)?;
        let target = config.target(context)?;
        if let Some(target) = target.filter(|target| !roles.targets.contains(target)) {
            let (first, last) = (roles.targets.start, roles.targets.end - 1);
            let message =
                format!("host {target} is not a receiver; receivers are hosts {first} to {last}");
            return Err(Problem::new("target", message));
        }
        let fan_in = config.fan_in as usize;
        let target_may_send = roles.sources.contains(&roles.targets.start);
        let most = roles.sources.len() - usize::from(target_may_send);
        if fan_in > most {
            let message =
                format!("must be at most {most}, the number of possible senders, not {fan_in}");
            return Err(Problem::new("fan_in", message));
        }
        let shares = config.shares.as_ref();
        let mut by_distance =
            shares.map(|shares| TargetsByDistance::new(shares, context.graph)).transpose()?;
        if let Some(hosts) = &mut by_distance {
            hosts.check_distinct(fan_in)?;
        }
        Ok(Self { roles, target, fan_in, by_distance })
    }

    fn flows(&mut self, start: Time, random: &mut Random) -> Vec<FlowSpec> {
        let targets = &self.roles.targets;
        // Drawn even if the target is fixed, so that the senders do not depend on `target`.
        let random_target = targets.start + random.below(targets.len() as u64) as HostId;
        let target = self.target.unwrap_or(random_target);
        let sources = match &mut self.by_distance {
            Some(hosts) => hosts.sample_distinct(target, self.fan_in, random),
            None => self.distinct_sources(target, random),
        };
        sources.into_iter().map(|source| flow_between(source, target, start)).collect()
    }

    fn distinct_sources(&self, target: HostId, random: &mut Random) -> Vec<HostId> {
        let mut sources: Vec<_> =
            self.roles.sources.clone().filter(|source| *source != target).collect();
        for i in 0..self.fan_in {
            let other = i + random.below((sources.len() - i) as u64) as usize;
            sources.swap(i, other);
        }
        sources.truncate(self.fan_in);
        sources
    }
}

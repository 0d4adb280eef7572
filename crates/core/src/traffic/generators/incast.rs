//! Many hosts that answer one at the same instant.

use super::{Context, Flows, Workload, WorkloadEstimate, payload, plain};
use crate::base::random::Random;
use crate::base::schema::{Problem, positive, positive_if_given};
use crate::base::units::{Bytes, Duration, Rate, Time};
use crate::model::flow::{FlowSpec, HostId};
use crate::traffic::arrivals::{Gap, Instants, Load, LoadCounts, bounded};
use crate::traffic::host_pairs::Sides;

crate::parameters! {
    /// Events in which random distinct hosts all send to one at the same instant: at a fixed
    /// interval, or as a Poisson process that offers a load.
    pub struct Config {
        /// How many hosts send in an event.
        pub fan_in: u32, where positive;
        /// Payload that each of them sends.
        pub size: Bytes, where positive;
        /// Host that receives; if not given, a random one in each event.
        pub target: Option<u32> = None;
        /// Time from one event to the next.
        pub interval: Option<Duration> = None, where positive_if_given;
        /// Offered rate, as a share of `load_reference`; instead of `interval`.
        pub load: Option<f64> = None, where positive_if_given;
        /// What a load of 1 offers; if not given, the topology's own reference.
        pub load_reference: Option<Rate> = None, where positive_if_given;
        /// Which bytes the load counts.
        pub load_counts: LoadCounts = LoadCounts::Wire;
        /// Whether more may be offered than the topology's reference carries.
        pub allow_overload: bool = false;
        /// When events begin.
        pub start: Time = Time::ZERO;
        /// When events stop; if neither this nor `events` is given, one second after `start`.
        pub stop: Option<Time> = None;
        /// How many events there are at most.
        pub events: Option<u64> = None, where positive_if_given;
        /// Name of the flows' class.
        pub class: String = "incast".to_owned();
    }
    check |config| {
        if config.interval.is_some() == config.load.is_some() {
            return Err(Problem::new("interval", "give either `interval` or `load`"));
        }
        Ok(())
    }
}

impl Workload for Config {
    fn open(&self, context: &Context<'_>) -> Result<Flows, Problem> {
        let event = Event::new(self, context)?;
        let (gap, load) = self.gap(context)?;
        let instants = Instants { now: self.start, gap };
        let mut pairs = context.random("pairs");
        let flows = bounded(instants, self.start, self.stop, self.events)
            .flat_map(move |start| event.flows(start, &mut pairs));
        let size = Some(self.size);
        let flows = (0..).zip(flows).map(move |(id, flow)| FlowSpec { id, size, ..flow });
        Ok(Flows {
            classes: vec![self.class.clone()],
            load,
            has_deadlines: false,
            flows: Box::new(flows),
            sequel: None,
        })
    }

    fn offer(&self, context: &Context<'_>) -> Result<WorkloadEstimate, Problem> {
        let gap = match self.gap(context)?.0 {
            Gap::Regular(gap) => gap.seconds(),
            Gap::Poisson(mean, _) | Gap::Pareto(mean, ..) => mean,
        };
        let flows = f64::from(self.fan_in);
        let batch = (flows, payload(flows, Some(self.size)));
        Ok(WorkloadEstimate::arriving(1.0 / gap, batch, self.start, self.stop, self.events))
    }
}

impl Config {
    fn gap(&self, context: &Context<'_>) -> Result<(Gap, String), Problem> {
        let responses = f64::from(self.fan_in);
        match (self.interval, self.load) {
            (Some(interval), _) => Ok((Gap::Regular(interval), String::new())),
            (None, Some(load)) => {
                let load = Load {
                    share: load,
                    reference: self.load_reference,
                    counts: self.load_counts,
                    allow_overload: self.allow_overload,
                    payload: responses * self.size.0 as f64,
                    packets: responses * context.format.packets(self.size) as f64,
                };
                let (events, load) = load.arrivals(context, "events")?;
                Ok((Gap::Poisson(1.0 / events, context.random("arrivals")), load))
            }
            (None, None) => unreachable!("checked when it is read"),
        }
    }
}

/// Who takes part in an event.
struct Event {
    sides: Sides,
    target: Option<HostId>,
    fan_in: usize,
}

impl Event {
    fn new(config: &Config, context: &Context<'_>) -> Result<Self, Problem> {
        let sides = Sides::of(context.graph)?;
        if let Some(target) = config.target.filter(|target| !sides.targets.contains(target)) {
            let (first, last) = (sides.targets.start, sides.targets.end - 1);
            let message = format!("no host {target} receives; those are {first} to {last}");
            return Err(Problem::new("target", message));
        }
        let fan_in = config.fan_in as usize;
        let target_may_send = sides.sources.contains(&sides.targets.start);
        let most = sides.sources.len() - usize::from(target_may_send);
        if fan_in > most {
            let message = format!("must be at most {most}, the hosts that can send, not {fan_in}");
            return Err(Problem::new("fan_in", message));
        }
        Ok(Self { sides, target: config.target, fan_in })
    }

    fn flows(&self, start: Time, random: &mut Random) -> Vec<FlowSpec> {
        let targets = &self.sides.targets;
        // Drawn even if it is fixed, so that fixing it leaves the senders as they are.
        let drawn = targets.start + random.below(targets.len() as u64) as HostId;
        let target = self.target.unwrap_or(drawn);
        let mut sources: Vec<_> =
            self.sides.sources.clone().filter(|source| *source != target).collect();
        for i in 0..self.fan_in {
            let other = i + random.below((sources.len() - i) as u64) as usize;
            sources.swap(i, other);
        }
        sources.truncate(self.fan_in);
        sources.into_iter().map(|source| plain(source, target, start)).collect()
    }
}

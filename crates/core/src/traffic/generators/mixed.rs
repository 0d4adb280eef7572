//! A superposition of several workloads.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::base::random::mix;
use crate::base::schema::Problem;
use crate::base::units::Time;
use crate::model::flow::{Connection, FlowSpec, Reply};
use crate::model::packet::Format;
use crate::traffic::{
    Demand, Dependencies, FlowClasses, FlowStream, Job, Workload, WorkloadContext, WorkloadEstimate,
};

crate::parameters! {
    /// Several workloads at the same time, such as incast over background traffic.
    pub struct Config {
        /// The workloads. Each has its own random streams.
        pub parts: Vec<super::Config>,
            where |parts| if parts.is_empty() { Err("one or more") } else { Ok(()) };
    }
}

impl Workload for Config {
    fn generate(&self, context: &WorkloadContext<'_>) -> Result<FlowStream, Problem> {
        let mut classes = FlowClasses::default();
        let mut loads = Vec::new();
        let mut parts = Vec::new();
        let mut dependencies = Vec::new();
        let (mut has_deadlines, mut has_connections) = (false, false);
        for (i, part) in self.parts.iter().enumerate() {
            let within = |problem: Problem| problem.within(&format!("parts[{i}]"));
            let stream = part.generate(&part_context(context, i)).map_err(within)?;
            let indices = stream.classes.iter().map(|name| classes.index(name));
            let indices: Vec<u16> = indices.collect::<Result<_, _>>().map_err(within)?;
            let ids = IdMap { part: i as u64, parts: self.parts.len() as u64, classes: indices };
            has_deadlines |= stream.has_deadlines;
            has_connections |= stream.has_connections;
            loads.extend(Some(stream.load).filter(|load| !load.is_empty()));
            dependencies
                .push(PartDependencies { ids: ids.clone(), dependencies: stream.dependencies });
            parts.push(PartStream { ids, flows: stream.flows, next: None });
        }
        let has_dependencies =
            dependencies.iter().any(|part: &PartDependencies| part.dependencies.is_some());
        let flows = (0..).zip(MergedStream::new(parts));
        // With dependencies, each part has its own flow IDs, because flows that start later need
        // unique IDs too.
        let flows = flows
            .map(move |(id, flow)| if has_dependencies { flow } else { FlowSpec { id, ..flow } });
        Ok(FlowStream {
            classes: classes.names,
            load: loads.join("; "),
            has_deadlines,
            has_connections,
            flows: Box::new(flows),
            dependencies: if has_dependencies {
                Some(Box::new(MixedDependencies(dependencies)))
            } else {
                None
            },
        })
    }

    fn estimate(&self, context: &WorkloadContext<'_>) -> Result<WorkloadEstimate, Problem> {
        self.estimate_until(context, Time::NEVER)
    }

    /// Each part is truncated on its own, because parts start and stop at different times.
    fn estimate_until(
        &self,
        context: &WorkloadContext<'_>,
        limit: Time,
    ) -> Result<WorkloadEstimate, Problem> {
        let estimates = self.parts.iter().enumerate().map(|(i, part)| {
            let estimate = part.estimate_until(&part_context(context, i), limit);
            estimate.map_err(|problem| problem.within(&format!("parts[{i}]")))
        });
        let sum = estimates.reduce(|all, estimate| Ok(all?.combined(estimate?)));
        sum.unwrap_or_else(|| unreachable!("`parts` is not empty"))
    }

    fn demands(&self, context: &WorkloadContext<'_>) -> Result<Vec<Demand>, Problem> {
        let mut demands = Vec::new();
        for (i, part) in self.parts.iter().enumerate() {
            let part_name = format!("parts[{i}]");
            let of_part = part.demands(&part_context(context, i));
            let of_part = of_part.map_err(|problem| problem.within(&part_name))?;
            let named = |demand: Demand| Demand {
                field: format!("{part_name}.{}", demand.field),
                ..demand
            };
            demands.extend(of_part.into_iter().map(named));
        }
        Ok(demands)
    }

    fn last_arrival(
        &self,
        context: &WorkloadContext<'_>,
        limit: Time,
    ) -> Result<Option<Time>, Problem> {
        let mut last = None;
        for (i, part) in self.parts.iter().enumerate() {
            let of_part = part.last_arrival(&part_context(context, i), limit);
            last = last.max(of_part.map_err(|problem| problem.within(&format!("parts[{i}]")))?);
        }
        Ok(last)
    }

    fn default_end(&self) -> Option<Time> {
        self.parts.iter().filter_map(|part| part.default_end()).max()
    }

    fn classes_with_initial_rate(&self) -> Vec<&str> {
        self.parts.iter().flat_map(|part| part.classes_with_initial_rate()).collect()
    }

    fn jobs(&self, context: &WorkloadContext<'_>) -> Result<Vec<Job>, Problem> {
        let mut jobs = Vec::new();
        for (i, part) in self.parts.iter().enumerate() {
            let of_part = part.jobs(&part_context(context, i));
            jobs.extend(of_part.map_err(|problem| problem.within(&format!("parts[{i}]")))?);
        }
        Ok(jobs)
    }

    fn warnings(&self, format: &Format) -> Vec<String> {
        let of_part = |(i, part): (usize, &super::Config)| {
            part.warnings(format).into_iter().map(move |warning| format!("parts[{i}].{warning}"))
        };
        self.parts.iter().enumerate().flat_map(of_part).collect()
    }
}

/// Returns the inputs of a part, with a seed of its own.
fn part_context<'a>(context: &WorkloadContext<'a>, number: usize) -> WorkloadContext<'a> {
    WorkloadContext { seed: mix(context.seed ^ mix(number as u64)), ..*context }
}

/// Maps flow IDs and class indices of one part to those of the whole workload.
#[derive(Clone)]
struct IdMap {
    part: u64,
    parts: u64,
    /// Class index in the whole workload, by class index in the part.
    classes: Vec<u16>,
}

impl IdMap {
    /// Converts a flow of the part to a flow of the whole workload.
    fn to_global(&self, flow: FlowSpec) -> FlowSpec {
        let global = |class: u16| self.classes[usize::from(class)];
        FlowSpec {
            id: flow.id * self.parts + self.part,
            class: global(flow.class),
            reply: flow.reply.map(|reply| Reply { class: global(reply.class), ..reply }),
            connection: flow.connection.map(|connection| Connection {
                number: connection.number * self.parts + self.part,
                ..connection
            }),
            ..flow
        }
    }

    /// Converts a flow of the whole workload to a flow of the part.
    fn to_local(&self, flow: &FlowSpec) -> FlowSpec {
        let local = |class: u16| {
            self.classes.iter().position(|renamed| *renamed == class).unwrap_or_default() as u16
        };
        FlowSpec {
            id: flow.id / self.parts,
            class: local(flow.class),
            reply: flow.reply.map(|reply| Reply { class: local(reply.class), ..reply }),
            connection: flow.connection.map(|connection| Connection {
                number: connection.number / self.parts,
                ..connection
            }),
            ..*flow
        }
    }
}

struct PartStream {
    ids: IdMap,
    flows: Box<dyn Iterator<Item = FlowSpec> + Send>,
    /// The next flow of the part.
    next: Option<FlowSpec>,
}

/// Dependencies between the flows of one part.
struct PartDependencies {
    ids: IdMap,
    dependencies: Option<Box<dyn Dependencies>>,
}

/// Dependencies between the flows of all parts.
struct MixedDependencies(Vec<PartDependencies>);

impl Dependencies for MixedDependencies {
    fn on_delivery(&mut self, delivered: &FlowSpec, now: Time, next: &mut Vec<FlowSpec>) {
        self.of_part(delivered, next, |part, flow, next| part.on_delivery(flow, now, next));
    }

    fn on_sent(&mut self, sent: &FlowSpec, now: Time, next: &mut Vec<FlowSpec>) {
        self.of_part(sent, next, |part, flow, next| part.on_sent(flow, now, next));
    }

    fn measured_until(&self) -> Vec<(u16, Time)> {
        let of_part = |part: &PartDependencies| {
            let until = part.dependencies.as_ref().map(|of_part| of_part.measured_until());
            let global = |(class, until)| (part.ids.classes[usize::from(class)], until);
            until.into_iter().flatten().map(global).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of_part).collect()
    }
}

impl MixedDependencies {
    /// Starts the flows that follow a flow in its part.
    fn of_part(
        &mut self,
        flow: &FlowSpec,
        next: &mut Vec<FlowSpec>,
        start: impl FnOnce(&mut dyn Dependencies, &FlowSpec, &mut Vec<FlowSpec>),
    ) {
        let part = (flow.id % self.0.len() as u64) as usize;
        let PartDependencies { ids, dependencies } = &mut self.0[part];
        let Some(dependencies) = dependencies else { return };
        let first = next.len();
        start(&mut **dependencies, &ids.to_local(flow), next);
        for flow in &mut next[first..] {
            *flow = ids.to_global(*flow);
        }
    }
}

/// Merges the flows of all parts by start; ties go to the first part.
struct MergedStream {
    parts: Vec<PartStream>,
    /// Start of the next flow of each part.
    starts: BinaryHeap<Reverse<(Time, usize)>>,
}

impl MergedStream {
    fn new(parts: Vec<PartStream>) -> Self {
        let number = parts.len();
        let mut merged = Self { parts, starts: BinaryHeap::with_capacity(number) };
        for part in 0..number {
            merged.pop_from(part);
        }
        merged
    }

    /// Returns the next flow of a part and prepares the one after it.
    fn pop_from(&mut self, number: usize) -> Option<FlowSpec> {
        let part = &mut self.parts[number];
        let flow = std::mem::replace(&mut part.next, part.flows.next());
        self.starts.extend(part.next.iter().map(|next| Reverse((next.start, number))));
        flow.map(|flow| part.ids.to_global(flow))
    }
}

impl Iterator for MergedStream {
    type Item = FlowSpec;

    fn next(&mut self) -> Option<FlowSpec> {
        let Reverse((_, number)) = self.starts.pop()?;
        self.pop_from(number)
    }
}

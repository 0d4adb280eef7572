//! Several workloads at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Classes, Context, Dependencies, Flows, Workload, WorkloadEstimate};
use crate::base::random::mix;
use crate::base::schema::Problem;
use crate::base::units::Time;
use crate::model::flow::{FlowSpec, Reply};

crate::parameters! {
    /// Several workloads at once, such as an incast over a background.
    pub struct Config {
        /// The workloads; each draws from random streams of its own.
        pub parts: Vec<super::Config>,
            where |parts| if parts.is_empty() { Err("one or more") } else { Ok(()) };
    }
}

impl Workload for Config {
    fn open(&self, context: &Context<'_>) -> Result<Flows, Problem> {
        let mut classes = Classes::default();
        let mut loads = Vec::new();
        let mut parts = Vec::new();
        let mut sequels = Vec::new();
        let mut has_deadlines = false;
        for (i, part) in self.parts.iter().enumerate() {
            let within = |problem: Problem| problem.within(&format!("parts[{i}]"));
            let opened = part.open(&of_part(context, i)).map_err(within)?;
            let renamed = opened.classes.iter().map(|name| classes.index(name));
            let renamed: Vec<u16> = renamed.collect::<Result<_, _>>().map_err(within)?;
            let outer = Outer { part: i as u64, parts: self.parts.len() as u64, classes: renamed };
            has_deadlines |= opened.has_deadlines;
            loads.extend(Some(opened.load).filter(|load| !load.is_empty()));
            sequels.push(Follower { outer: outer.clone(), sequel: opened.sequel });
            parts.push(Part { outer, flows: opened.flows, next: None });
        }
        let has_sequels = sequels.iter().any(|part: &Follower| part.sequel.is_some());
        let flows = (0..).zip(Merged::new(parts));
        // What follows others later is numbered too: then every part has numbers of its own.
        let flows =
            flows.map(move |(id, flow)| if has_sequels { flow } else { FlowSpec { id, ..flow } });
        Ok(Flows {
            classes: classes.names,
            load: loads.join("; "),
            has_deadlines,
            flows: Box::new(flows),
            sequel: if has_sequels { Some(Box::new(Followers(sequels))) } else { None },
        })
    }

    fn offer(&self, context: &Context<'_>) -> Result<WorkloadEstimate, Problem> {
        let offers = self.parts.iter().enumerate().map(|(i, part)| {
            let offer = part.offer(&of_part(context, i));
            offer.map_err(|problem| problem.within(&format!("parts[{i}]")))
        });
        let both = |all: Option<WorkloadEstimate>, offer: Result<WorkloadEstimate, Problem>| {
            let offer = offer?;
            Ok(Some(all.map_or(offer, |all| all.and(offer))))
        };
        let all = offers.into_iter().try_fold(None, both)?;
        Ok(all.unwrap_or_else(|| unreachable!("one or more, as the rule says")))
    }
}

/// What a part may know of the run: it draws from random streams of its own.
fn of_part<'a>(context: &Context<'a>, number: usize) -> Context<'a> {
    Context { seed: mix(context.seed ^ mix(number as u64)), ..*context }
}

/// How a part's numbers of flows and classes are told from those of other parts.
#[derive(Clone)]
struct Outer {
    part: u64,
    parts: u64,
    /// The part's classes among all classes.
    classes: Vec<u16>,
}

impl Outer {
    /// A flow of the part as one of all.
    fn outward(&self, flow: FlowSpec) -> FlowSpec {
        let renamed = |class: u16| self.classes[usize::from(class)];
        FlowSpec {
            id: flow.id * self.parts + self.part,
            class: renamed(flow.class),
            reply: flow.reply.map(|reply| Reply { class: renamed(reply.class), ..reply }),
            ..flow
        }
    }

    /// The same as the part knows it.
    fn inward(&self, flow: &FlowSpec) -> FlowSpec {
        let own = |class: u16| {
            self.classes.iter().position(|renamed| *renamed == class).unwrap_or_default() as u16
        };
        FlowSpec {
            id: flow.id / self.parts,
            class: own(flow.class),
            reply: flow.reply.map(|reply| Reply { class: own(reply.class), ..reply }),
            ..*flow
        }
    }
}

struct Part {
    outer: Outer,
    flows: Box<dyn Iterator<Item = FlowSpec> + Send>,
    /// Its first flow that has not been taken.
    next: Option<FlowSpec>,
}

/// What follows the flows of one part.
struct Follower {
    outer: Outer,
    sequel: Option<Box<dyn Dependencies>>,
}

/// What follows the flows of all parts.
struct Followers(Vec<Follower>);

impl Dependencies for Followers {
    fn after(&mut self, ended: &FlowSpec, now: Time) -> Option<FlowSpec> {
        let part = (ended.id % self.0.len() as u64) as usize;
        let Follower { outer, sequel } = &mut self.0[part];
        let next = sequel.as_mut()?.after(&outer.inward(ended), now)?;
        Some(outer.outward(next))
    }
}

/// The flows of all parts by start; of those that start together, the first part's first.
struct Merged {
    parts: Vec<Part>,
    /// When the next flow of each part starts.
    starts: BinaryHeap<Reverse<(Time, usize)>>,
}

impl Merged {
    fn new(parts: Vec<Part>) -> Self {
        let number = parts.len();
        let mut merged = Self { parts, starts: BinaryHeap::with_capacity(number) };
        for part in 0..number {
            merged.take_from(part);
        }
        merged
    }

    /// Takes the next flow of a part, behind which the one after it comes up.
    fn take_from(&mut self, number: usize) -> Option<FlowSpec> {
        let part = &mut self.parts[number];
        let flow = std::mem::replace(&mut part.next, part.flows.next());
        self.starts.extend(part.next.iter().map(|next| Reverse((next.start, number))));
        flow.map(|flow| part.outer.outward(flow))
    }
}

impl Iterator for Merged {
    type Item = FlowSpec;

    fn next(&mut self) -> Option<FlowSpec> {
        let Reverse((_, number)) = self.starts.pop()?;
        self.take_from(number)
    }
}

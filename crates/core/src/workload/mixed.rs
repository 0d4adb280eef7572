//! Several workloads at once.

use std::iter::Peekable;

use super::{Context, Flows, Sequel, Workload, class_index};
use crate::flow::{FlowSpec, Reply};
use crate::parameters::Problem;
use crate::random::mix;
use crate::units::Time;

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
        let mut classes = Vec::new();
        let mut loads = Vec::new();
        let mut parts = Vec::new();
        let mut sequels = Vec::new();
        let mut has_deadlines = false;
        for (i, part) in self.parts.iter().enumerate() {
            let context = Context { seed: mix(context.seed ^ mix(i as u64)), ..*context };
            let opened = part.open(&context);
            let opened = opened.map_err(|problem| problem.within(&format!("parts[{i}]")))?;
            let renamed: Vec<u16> =
                opened.classes.iter().map(|name| class_index(&mut classes, name)).collect();
            let outer = Outer { part: i as u64, parts: self.parts.len() as u64, classes: renamed };
            has_deadlines |= opened.has_deadlines;
            loads.extend(Some(opened.load).filter(|load| !load.is_empty()));
            sequels.push(Follower { outer: outer.clone(), sequel: opened.sequel });
            parts.push(Part { outer, flows: opened.flows.peekable() });
        }
        let has_sequels = sequels.iter().any(|part: &Follower| part.sequel.is_some());
        let flows = (0..).zip(Merged { parts });
        // What follows others later is numbered too: then every part has numbers of its own.
        let flows =
            flows.map(move |(id, flow)| if has_sequels { flow } else { FlowSpec { id, ..flow } });
        Ok(Flows {
            classes,
            load: loads.join("; "),
            has_deadlines,
            flows: Box::new(flows),
            sequel: if has_sequels { Some(Box::new(Followers(sequels))) } else { None },
        })
    }
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
    flows: Peekable<Box<dyn Iterator<Item = FlowSpec> + Send>>,
}

/// What follows the flows of one part.
struct Follower {
    outer: Outer,
    sequel: Option<Box<dyn Sequel>>,
}

/// What follows the flows of all parts.
struct Followers(Vec<Follower>);

impl Sequel for Followers {
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
}

impl Iterator for Merged {
    type Item = FlowSpec;

    fn next(&mut self) -> Option<FlowSpec> {
        let starts = self.parts.iter_mut().map(|part| part.flows.peek().map(|flow| flow.start));
        let first = starts.enumerate().filter_map(|(i, start)| Some((start?, i))).min();
        let part = &mut self.parts[first?.1];
        let flow = part.flows.next()?;
        Some(part.outer.outward(flow))
    }
}

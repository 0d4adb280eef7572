//! Several workloads at once.

use std::iter::Peekable;

use super::{Context, Flows, Workload, class_index};
use crate::flow::FlowSpec;
use crate::parameters::Problem;
use crate::random::mix;

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
        let mut has_deadlines = false;
        for (i, part) in self.parts.iter().enumerate() {
            let context = Context { seed: mix(context.seed ^ mix(i as u64)), ..*context };
            let opened = part.open(&context);
            let opened = opened.map_err(|problem| problem.within(&format!("parts[{i}]")))?;
            let renamed =
                opened.classes.iter().map(|name| class_index(&mut classes, name)).collect();
            has_deadlines |= opened.has_deadlines;
            loads.extend(Some(opened.load).filter(|load| !load.is_empty()));
            parts.push(Part { classes: renamed, flows: opened.flows.peekable() });
        }
        let flows = (0..).zip(Merged { parts }).map(|(id, flow)| FlowSpec { id, ..flow });
        Ok(Flows { classes, load: loads.join("; "), has_deadlines, flows: Box::new(flows) })
    }
}

struct Part {
    /// The part's classes among all classes.
    classes: Vec<u16>,
    flows: Peekable<Box<dyn Iterator<Item = FlowSpec> + Send>>,
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
        Some(FlowSpec { class: part.classes[flow.class as usize], ..flow })
    }
}

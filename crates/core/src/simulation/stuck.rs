//! Why a run ends with flows that have not.

use super::Simulation;
use crate::flow::FlowSpec;
use crate::routes::Way;
use crate::units::{Bytes, Time};

impl Simulation<'_> {
    /// Says which flows are unfinished, and what they wait for.
    pub(super) fn explain_stuck(&mut self, now: Time) {
        const MOST: usize = 10;
        let unfinished = self.flows.iter().flatten();
        let unfinished = unfinished.filter(|flow| flow.spec.size.is_some() && flow.fct.is_none());
        let paused = |way: Way| {
            let mut links = self.network.routes.links(way).flatten();
            links.find(|link| self.network.ports[**link as usize].pauses().is_on()).copied()
        };
        for flow in unfinished.clone().take(MOST) {
            let FlowSpec { id, source, target, size, start, .. } = &flow.spec;
            let why = match paused(flow.there) {
                Some(link) => format!("link {} is paused", self.graph.link_name(link)),
                None if flow.sender.timeouts > 0 => format!(
                    "{} time-outs, the next after {}",
                    flow.sender.timeouts,
                    flow.sender.timeout()
                ),
                None => "still sending".to_owned(),
            };
            self.stuck.push(format!(
                "flow {id} ({} to {}) has {} of {} after {}: {why}",
                self.graph.host_name(*source),
                self.graph.host_name(*target),
                Bytes(flow.delivered),
                size.unwrap_or_default(),
                now.since(*start),
            ));
        }
        let more = unfinished.count().saturating_sub(MOST);
        if more > 0 {
            self.stuck.push(format!("and {more} more"));
        }
    }
}

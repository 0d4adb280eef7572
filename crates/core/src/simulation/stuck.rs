//! Why a run ends with flows that have not.

use super::Simulation;
use crate::flow::FlowSpec;
use crate::network::Network;
use crate::network::routes::Way;
use crate::packet::FlowSlot;
use crate::units::{Bytes, Time};

impl Simulation<'_> {
    /// Says which flows are unfinished, and what they wait for.
    pub(super) fn explain_stuck(&mut self, now: Time) {
        const MOST: usize = 10;
        let flows = (0..).zip(&self.flows).filter_map(|(slot, flow)| Some((slot, flow.as_ref()?)));
        let unfinished = flows.filter(|(_, flow)| flow.spec.size.is_some() && flow.fct.is_none());
        let Network { ports, routes, traffic, .. } = &self.network;
        let paused = |way: Way, slot: FlowSlot| {
            let class = usize::from(traffic.of(slot));
            let mut links = routes.links(way).flatten();
            links.find(|link| ports[**link as usize].pauses()[class].is_on()).copied()
        };
        for (slot, flow) in unfinished.clone().take(MOST) {
            let FlowSpec { id, source, target, size, start, .. } = &flow.spec;
            let why = match paused(flow.there, slot) {
                Some(link) => {
                    let lane = traffic.lane(link, slot);
                    format!("link {} is paused", traffic.name(lane, self.graph))
                }
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

//! Which flows nothing will ever move again, and why. A flow that is still sending when the run's time is up
//! is none of them: it is only unfinished.

use super::Simulation;
use crate::base::units::{Bytes, Time};
use crate::model::flow::FlowSpec;
use crate::model::graph::LinkId;
use crate::network::switch::pause_watchdog;

impl Simulation<'_> {
    /// Says which flows are stuck, and what they wait for in vain.
    pub(super) fn explain_stuck(&mut self, now: Time) {
        const MOST: usize = 10;
        let (routes, traffic) = (self.network.routes(), self.network.traffic());
        let never_resumed = pause_watchdog::never_resumed(&self.network);
        let mut more = 0;
        for (number, place) in self.network.flows() {
            let place = place as usize;
            let (Some(sending), Some(receiving), Some(shared)) = (
                &self.flows.senders[place],
                &self.flows.receivers[place],
                &self.flows.shared[place],
            ) else {
                continue;
            };
            let FlowSpec { id, source, target, size, start, .. } = &shared.spec;
            if size.is_none() || receiving.completed < Time::NEVER {
                continue;
            }
            let is_paused = |link: &&LinkId| {
                let lane = traffic.lane(**link, number) as usize;
                never_resumed.get(lane).is_some_and(|is_paused| *is_paused)
            };
            let why = if let Some(link) = routes.links(shared.there).flatten().find(is_paused) {
                let lane = traffic.lane(*link, number);
                format!("link {} is paused for ever", traffic.name(lane, self.graph))
            } else if sending.wakes == Time::NEVER && self.flows.is_over(place) {
                "its sender waits for what will not come".to_owned()
            } else {
                continue;
            };
            if self.stuck.len() >= MOST {
                more += 1;
                continue;
            }
            self.stuck.push(format!(
                "flow {id} ({} to {}) has {} of {} after {}: {why}",
                self.graph.host_name(*source),
                self.graph.host_name(*target),
                Bytes(receiving.delivered),
                size.unwrap_or_default(),
                now.since(*start),
            ));
        }
        if more > 0 {
            self.stuck.push(format!("and {more} more"));
        }
    }
}

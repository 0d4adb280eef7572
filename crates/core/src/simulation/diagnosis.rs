//! Stuck flows: flows that can never finish, and the reason. A flow that is still sending at the time limit
//! is unfinished, not stuck.

use super::Simulation;
use crate::base::units::{Bytes, Time};
use crate::model::flow::FlowSpec;
use crate::model::graph::LinkId;
use crate::network::switch::pause_watchdog;

impl Simulation<'_> {
    /// Records which flows are stuck, and what blocks them.
    pub(super) fn explain_stuck(&mut self, now: Time) {
        const MOST: usize = 10;
        let (routes, traffic) = (self.network.routes(), self.network.traffic());
        let never_resumed = pause_watchdog::never_resumed(&self.network);
        let mut more = 0;
        for (number, slot) in self.network.flows() {
            let slot = slot as usize;
            let (Some(sender_end), Some(receiver_end), Some(shared)) =
                (&self.flows.senders[slot], &self.flows.receivers[slot], &self.flows.shared[slot])
            else {
                continue;
            };
            let mut receiving = (&shared.spec, 0);
            if let Some(stream) = &shared.stream {
                let Some(flow) = stream.receiving() else { continue };
                receiving = flow;
            }
            let (FlowSpec { id, source, target, size, start, .. }, before) = receiving;
            if size.is_none() || receiver_end.completed_at < Time::NEVER {
                continue;
            }
            let is_paused = |link: &&LinkId| {
                let lane = traffic.lane(**link, number) as usize;
                never_resumed.get(lane).is_some_and(|is_paused| *is_paused)
            };
            let why = if let Some(link) = routes.links(shared.route).flatten().find(is_paused) {
                let lane = traffic.lane(*link, number);
                format!("link {} is paused for ever", traffic.name(lane, self.graph))
            } else if sender_end.wake_at == Time::NEVER && self.flows.is_over(slot) {
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
                Bytes(receiver_end.delivered - before),
                size.unwrap_or_default(),
                now.since(*start),
            ));
        }
        if more > 0 {
            self.stuck.push(format!("and {more} more"));
        }
    }
}

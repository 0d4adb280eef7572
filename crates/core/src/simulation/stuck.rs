//! Why a run ends with flows that have not.

use super::Simulation;
use crate::flow::FlowSpec;
use crate::network::Network;
use crate::network::routes::Way;
use crate::packet::FlowNumber;
use crate::units::{Bytes, Time};

impl Simulation<'_> {
    /// Says which flows are unfinished, and what they wait for.
    pub(super) fn explain_stuck(&mut self, now: Time) {
        const MOST: usize = 10;
        let Network { ports, routes, traffic, directory, .. } = &self.network;
        let unfinished = directory.all().filter_map(|(number, place)| {
            let place = place as usize;
            let (sending, receiving) =
                (self.flows.senders[place].as_ref()?, self.flows.receivers[place].as_ref()?);
            let shared = self.flows.shared[place].as_ref()?;
            let is_unfinished = shared.spec.size.is_some() && receiving.completed == Time::NEVER;
            is_unfinished.then_some((number, sending, receiving, shared))
        });
        let unfinished: Vec<_> = unfinished.collect();
        let paused = |way: Way, flow: FlowNumber| {
            let class = usize::from(traffic.of(flow));
            let mut links = routes.links(way).flatten();
            links.find(|link| ports[**link as usize].pauses()[class].is_on()).copied()
        };
        for (number, sending, receiving, shared) in unfinished.iter().take(MOST) {
            let FlowSpec { id, source, target, size, start, .. } = &shared.spec;
            let why = match paused(shared.there, *number) {
                Some(link) => {
                    let lane = traffic.lane(link, *number);
                    format!("link {} is paused", traffic.name(lane, self.graph))
                }
                None if sending.sender.timeouts > 0 => format!(
                    "{} time-outs, the next after {}",
                    sending.sender.timeouts,
                    sending.sender.timeout()
                ),
                None => "still sending".to_owned(),
            };
            self.stuck.push(format!(
                "flow {id} ({} to {}) has {} of {} after {}: {why}",
                self.graph.host_name(*source),
                self.graph.host_name(*target),
                Bytes(receiving.delivered),
                size.unwrap_or_default(),
                now.since(*start),
            ));
        }
        let more = unfinished.len().saturating_sub(MOST);
        if more > 0 {
            self.stuck.push(format!("and {more} more"));
        }
    }
}

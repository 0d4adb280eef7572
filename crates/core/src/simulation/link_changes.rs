//! Link failures and recoveries during a run, and the rerouting of flows.

use super::Simulation;
use crate::base::units::Time;
use crate::model::graph::{Change, LinkState};
use crate::model::packet::FlowNumber;
use crate::network::routes::Route;

impl Simulation<'_> {
    /// Returns the time of the next link change.
    pub(super) fn next_link_change(&self) -> Option<Time> {
        self.link_changes.front().map(|change| change.at)
    }

    /// Applies all link changes that are due. Every partition does, because each has its own network and all
    /// must have the same routes.
    pub(super) fn apply_link_changes(&mut self) {
        let now = self.scheduler.now();
        let mut has_new_routes = false;
        while let Some(&Change { at, cable, turn }) = self.link_changes.front()
            && at <= now
        {
            self.link_changes.pop_front();
            match turn {
                LinkState::Fails | LinkState::Returns => {
                    for link in [cable, cable ^ 1] {
                        self.scheduler.enter(self.graph.links[link as usize].from);
                        self.network.set_link_state(
                            link,
                            turn == LinkState::Fails,
                            &mut self.scheduler,
                        );
                        self.process_departures();
                    }
                }
                LinkState::IsAvoided | LinkState::IsTaken => {
                    self.network.routes_mut().set_avoided(cable, turn == LinkState::IsAvoided);
                    has_new_routes = true;
                }
            }
        }
        if has_new_routes {
            self.network.routes_mut().converge(self.graph);
            self.reroute_flows();
        }
    }

    /// Reroutes all flows whose senders are in this partition.
    fn reroute_flows(&mut self) {
        let all: Vec<_> = self.network.flows().collect();
        for (number, slot) in all {
            let slot = slot as usize;
            let (Some(_), Some(shared)) = (&self.flows.senders[slot], &self.flows.shared[slot])
            else {
                continue;
            };
            let (spec, route) = (&shared.spec, shared.route);
            let routes = self.network.routes_mut();
            if let Some(route) = routes.reroute(route, spec.source, spec.target, spec.path_key()) {
                self.set_route(number, route);
                if self.partition.has_others() {
                    self.partition_links.news.rerouted.push((number, route));
                }
            }
        }
        if self.partition.has_others() {
            self.partition_links.news.routes = self.network.routes_mut().take_changes();
        }
    }

    /// Sets the route of a flow, if the flow is in this partition, for packets that have not left their
    /// hosts.
    pub(super) fn set_route(&mut self, number: FlowNumber, route: Route) {
        let Some(slot) = self.network.slot(number) else { return };
        let slot = slot as usize;
        let Some(shared) = &mut self.flows.shared[slot] else { return };
        let former_routes = std::mem::replace(&mut shared.route, route);
        self.former_routes.entry(number).or_default().push(former_routes);
        let [forward, reverse] = self.network.routes().of_packets(route, shared.spec.id);
        if let Some(sender_end) = &mut self.flows.senders[slot] {
            sender_end.forward.set_route(forward);
        }
        if let Some(receiver_end) = &mut self.flows.receivers[slot] {
            receiver_end.reverse.set_route(reverse);
        }
        let name = &self.pending_flows.classes[usize::from(shared.spec.class)];
        self.network.set_route(number, name, route);
    }
}

//! Links that fail and come back during a run, and flows that go other ways then.

use super::Simulation;
use crate::base::units::Time;
use crate::model::graph::{Change, LinkState};
use crate::model::packet::FlowNumber;
use crate::network::routes::Route;

impl Simulation<'_> {
    /// When something happens to a link next, if anything does.
    pub(super) fn next_change(&self) -> Option<Time> {
        self.changes.front().map(|change| change.at)
    }

    /// Does all that happens to links now. Every part of a run does: each has its own of the network, and
    /// all must know the same ways through it.
    pub(super) fn change(&mut self) {
        let now = self.scheduler.now();
        let mut is_news = false;
        while let Some(&Change { at, cable, turn }) = self.changes.front()
            && at <= now
        {
            self.changes.pop_front();
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
                    is_news = true;
                }
            }
        }
        if is_news {
            self.network.routes_mut().converge(self.graph);
            self.set_routes_again();
        }
    }

    /// Finds new ways for all flows whose senders are here.
    fn set_routes_again(&mut self) {
        let all: Vec<_> = self.network.flows().collect();
        for (number, place) in all {
            let place = place as usize;
            let (Some(_), Some(shared)) = (&self.flows.senders[place], &self.flows.shared[place])
            else {
                continue;
            };
            let (spec, there) = (&shared.spec, shared.there);
            let routes = self.network.routes_mut();
            if let Some(there) = routes.reroute(there, spec.source, spec.target, spec.id) {
                self.set_route(number, there);
                if self.part.has_others() {
                    self.abroad.news.led.push((number, there));
                }
            }
        }
        if self.part.has_others() {
            self.abroad.news.routes = self.network.routes_mut().take_changes();
        }
    }

    /// The packets of a flow, if it is known here, go another way from now on: those that are yet to leave
    /// their hosts.
    pub(super) fn set_route(&mut self, number: FlowNumber, there: Route) {
        let Some(place) = self.network.slot(number) else { return };
        let place = place as usize;
        let Some(shared) = &mut self.flows.shared[place] else { return };
        let former = std::mem::replace(&mut shared.there, there);
        self.former.entry(number).or_default().push(former);
        let [_, back] = there.both();
        if let Some(sending) = &mut self.flows.senders[place] {
            sending.there.set_route(there);
        }
        if let Some(receiving) = &mut self.flows.receivers[place] {
            receiving.back.set_route(back);
        }
        let name = &self.upcoming.classes[usize::from(shared.spec.class)];
        self.network.set_route(number, name, there);
    }
}

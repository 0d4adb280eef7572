//! What the parts of a run tell each other between windows, when several threads share it.
//!
//! A packet needs a window at least from one part to another, and so does everything that follows from a
//! packet: so what is told between windows is in time.

use crate::base::units::Time;
use crate::model::flow::FlowSpec;
use crate::model::graph::{Graph, Link, LinkId};
use crate::model::packet::FlowNumber;
use crate::network::outbox::PacketLoss;
use crate::network::routes::Route;
use crate::network::{Network, Shipment};
use crate::record::rtts::Answered;
use crate::router::FlowInfo;
use crate::schedule::Partition;
use crate::simulation::Simulation;
use crate::simulation::flows::ends::ReceiverFinal;

/// What has happened in a part.
#[derive(Default)]
pub(in crate::simulation) struct PartitionNews {
    /// Routes that were written, and where.
    pub(in crate::simulation) routes: Vec<(u32, Vec<LinkId>)>,
    /// Flows that have started.
    pub(in crate::simulation) opened: Vec<FlowOpened>,
    /// Flows whose senders have closed.
    pub(in crate::simulation) closed: Vec<FlowNumber>,
    /// Flows that go another way there now.
    pub(in crate::simulation) led: Vec<(FlowNumber, Route)>,
    /// Flows of which a packet was lost, and when.
    lost: Vec<PacketLoss>,
    /// What receivers have answered of flows that are followed.
    answered: Vec<(FlowNumber, Vec<Answered>)>,
}

/// A flow that has started.
#[derive(Clone, Copy)]
pub(in crate::simulation) struct FlowOpened {
    pub(in crate::simulation) number: FlowNumber,
    pub(in crate::simulation) spec: FlowSpec,
    pub(in crate::simulation) flow_info: FlowInfo,
    pub(in crate::simulation) there: Route,
    pub(in crate::simulation) is_traced: bool,
}

/// What a part of a run has for the others, and from them.
pub(in crate::simulation) struct PartitionLinks {
    /// The links that lead to other parts, and to which.
    links: Vec<(LinkId, u32)>,
    /// Packets for other parts and from them, by part.
    pub(in crate::simulation) outboxes: Vec<Shipment>,
    pub(in crate::simulation) inboxes: Vec<Shipment>,
    /// When the first of the packets for other parts gets there, or may start on its way.
    pub(in crate::simulation) next: Time,
    pub(in crate::simulation) news: PartitionNews,
    /// Flows that have ended.
    pub(in crate::simulation) ended: Vec<FlowNumber>,
}

impl PartitionLinks {
    /// Of a part of a run; its links to others are cut off in its network.
    pub(in crate::simulation) fn new(
        part: &Partition,
        graph: &Graph,
        network: &mut Network,
    ) -> Self {
        let leaves = |link: &Link| part.owns(link.from) && !part.owns(link.to);
        let links = (0..).zip(&graph.links).filter(|(_, link)| leaves(link));
        let links: Vec<(LinkId, u32)> = links.map(|(id, link)| (id, part.of(link.to))).collect();
        for (link, _) in &links {
            network.cut(*link);
        }
        let boxes = || (0..part.parts).map(|_| Shipment::default()).collect();
        Self {
            links,
            outboxes: boxes(),
            inboxes: boxes(),
            next: Time::NEVER,
            news: PartitionNews::default(),
            ended: Vec::new(),
        }
    }
}

impl Simulation<'_> {
    /// Takes in the packets that were sent here in the last window.
    pub(in crate::simulation) fn unpack(&mut self) {
        for inbox in &mut self.abroad.inboxes {
            self.network.import(inbox, &mut self.scheduler);
        }
    }

    /// Hands over what has started by `ends` on its way to other parts, and gathers what there is to tell
    /// them.
    pub(in crate::simulation) fn pack(&mut self, ends: Time) {
        let Self { abroad, network, flows, .. } = self;
        let PartitionLinks { links, outboxes, news, next, .. } = abroad;
        *next = Time::NEVER;
        for (link, part) in links {
            let first = network.export(*link, ends, &mut outboxes[*part as usize]);
            *next = first.min(*next);
        }
        news.routes = network.routes_mut().take_changes();
        news.lost.extend(network.losses());
        for place in &flows.followed {
            let shared = flows.shared[*place].as_mut();
            if let (Some(receiving), Some(trace)) =
                (&flows.receivers[*place], shared.and_then(|shared| shared.trace.as_mut()))
            {
                news.answered.push((receiving.number, trace.take_answers()));
            }
        }
    }

    /// Takes in what another part tells.
    pub(in crate::simulation) fn learn(&mut self, news: &PartitionNews) {
        self.network.routes_mut().apply(&news.routes);
        for opened in &news.opened {
            self.adopt(opened);
        }
        for (number, there) in &news.led {
            self.set_route(*number, *there);
        }
        let place = |number: &FlowNumber| self.network.slot(*number).map(|slot| slot as usize);
        for number in &news.closed {
            if let Some(place) =
                place(number).filter(|place| self.flows.receivers[*place].is_some())
            {
                self.flows.farewells.push(place);
            }
        }
        for (number, answers) in &news.answered {
            if let Some(place) = place(number)
                && self.flows.senders[place].is_some()
                && let Some(shared) = &mut self.flows.shared[place]
                && let Some(trace) = &mut shared.trace
            {
                trace.add_answers(answers);
            }
        }
        self.network.add_losses(&news.lost);
    }

    /// What the receivers say whose senders have closed in other parts: told last, when each part knows which
    /// those are.
    pub(in crate::simulation) fn farewells(&self) -> Vec<(FlowNumber, ReceiverFinal)> {
        let receivers = self.flows.farewells.iter().map(|place| &self.flows.receivers[*place]);
        receivers.flatten().map(|receiving| (receiving.number, receiving.final_state())).collect()
    }

    /// Takes in what receivers in another part say.
    pub(in crate::simulation) fn part_from(&mut self, farewells: &[(FlowNumber, ReceiverFinal)]) {
        for (number, farewell) in farewells {
            if let Some(place) = self.network.slot(*number).map(|slot| slot as usize)
                && self.flows.senders[place].is_some()
                && let Some(shared) = &mut self.flows.shared[place]
            {
                shared.far = Some(Box::new(farewell.clone()));
                self.leaving.push((Time::ZERO, place));
            }
        }
    }

    /// Forgets a flow of another part that has ended.
    pub(in crate::simulation) fn forget(&mut self, number: FlowNumber) {
        let Some(place) = self.network.slot(number) else { return };
        let place = place as usize;
        self.flows.farewells.retain(|of| *of != place);
        self.flows.followed.retain(|of| *of != place);
        self.flows.receivers[place] = None;
        if let Some(shared) = self.flows.shared[place].take() {
            let former = self.former.remove(&number).unwrap_or_default();
            self.network.unregister_flow(number, former.into_iter().chain([shared.there]));
        }
    }

    /// Takes over all that another part of the run has, which is over.
    pub(in crate::simulation) fn absorb(&mut self, mut other: Self) {
        let others = other.part.number;
        let Self { graph, network, part, .. } = self;
        network.absorb(&mut other.network, graph, |node| part.of(node) == others);
        for (number, place) in other.network.flows() {
            let own = network.slot_or_join(number);
            self.flows.absorb(own as usize, &mut other.flows, place as usize);
        }
        self.live += other.live;
        self.totals.events += other.totals.events;
        self.totals.packets += other.totals.packets;
        self.totals.ended = self.totals.ended.max(other.totals.ended);
        self.recorder.absorb(other.recorder);
    }
}

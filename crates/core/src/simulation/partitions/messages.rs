//! Messages between the partitions of a run on several threads, exchanged between windows.
//!
//! A packet takes at least a window from one partition to another, and so does every effect of a packet.
//! Hence messages between windows are in time.

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
use crate::simulation::flows::connections::{FlowAppended, FlowCompleted};
use crate::simulation::flows::ends::ReceiverFinal;

/// News of a partition since the last exchange.
#[derive(Default)]
pub(in crate::simulation) struct PartitionNews {
    /// New routes and their indices.
    pub(in crate::simulation) routes: Vec<(u32, Vec<LinkId>)>,
    /// Flows that have started.
    pub(in crate::simulation) opened: Vec<FlowOpened>,
    /// Flows that were appended to byte streams, and flows of byte streams that are complete.
    pub(in crate::simulation) appended: Vec<FlowAppended>,
    pub(in crate::simulation) completed: Vec<FlowCompleted>,
    /// Flows whose senders have closed.
    pub(in crate::simulation) closed: Vec<FlowNumber>,
    /// Flows that have been rerouted.
    pub(in crate::simulation) rerouted: Vec<(FlowNumber, Route)>,
    /// Flows that lost a packet, and the times of the losses.
    lost: Vec<PacketLoss>,
    /// Answers of receivers to traced flows.
    answered: Vec<(FlowNumber, Vec<Answered>)>,
}

/// A flow that has started.
#[derive(Clone, Copy)]
pub(in crate::simulation) struct FlowOpened {
    pub(in crate::simulation) number: FlowNumber,
    pub(in crate::simulation) spec: FlowSpec,
    pub(in crate::simulation) flow_info: FlowInfo,
    pub(in crate::simulation) route: Route,
    pub(in crate::simulation) is_traced: bool,
}

/// Links between a partition and the others, and messages in both directions.
pub(in crate::simulation) struct PartitionLinks {
    /// Links to other partitions, each with the partition at its end.
    links: Vec<(LinkId, u32)>,
    /// Packets to other partitions and from them, by partition.
    pub(in crate::simulation) outboxes: Vec<Shipment>,
    pub(in crate::simulation) inboxes: Vec<Shipment>,
    /// Time of the first arrival in another partition, or of the next start of a transmission to one.
    pub(in crate::simulation) next_arrival: Time,
    pub(in crate::simulation) news: PartitionNews,
    /// Flows that have ended.
    pub(in crate::simulation) ended: Vec<FlowNumber>,
    /// Flows that have ended and are no longer recorded.
    pub(in crate::simulation) forgotten: Vec<FlowNumber>,
    /// Byte streams that have become idle.
    pub(in crate::simulation) idle: Vec<FlowNumber>,
}

impl PartitionLinks {
    /// Finds the links to other partitions and cuts them off in the partition's network.
    pub(in crate::simulation) fn new(
        partition: &Partition,
        graph: &Graph,
        network: &mut Network,
    ) -> Self {
        let leaves = |link: &Link| partition.owns(link.from) && !partition.owns(link.to);
        let links = (0..).zip(&graph.links).filter(|(_, link)| leaves(link));
        let links: Vec<(LinkId, u32)> =
            links.map(|(id, link)| (id, partition.owner(link.to))).collect();
        for (link, _) in &links {
            network.cut(*link);
        }
        let boxes = || (0..partition.count).map(|_| Shipment::default()).collect();
        Self {
            links,
            outboxes: boxes(),
            inboxes: boxes(),
            next_arrival: Time::NEVER,
            news: PartitionNews::default(),
            ended: Vec::new(),
            forgotten: Vec::new(),
            idle: Vec::new(),
        }
    }
}

impl Simulation<'_> {
    /// Imports the packets that other partitions sent in the last window.
    pub(in crate::simulation) fn import_packets(&mut self) {
        for inbox in &mut self.partition_links.inboxes {
            self.network.import(inbox, &mut self.scheduler);
        }
    }

    /// Exports the packets whose transmission to another partition started by `end`, and collects news.
    pub(in crate::simulation) fn export_packets(&mut self, end: Time) {
        let Self { partition_links, network, flows, .. } = self;
        let PartitionLinks { links, outboxes, news, next_arrival, .. } = partition_links;
        *next_arrival = Time::NEVER;
        for (link, partition) in links {
            let first = network.export(*link, end, &mut outboxes[*partition as usize]);
            *next_arrival = first.min(*next_arrival);
        }
        news.routes = network.routes_mut().take_changes();
        news.lost.extend(network.losses());
        for slot in &flows.traced_receivers {
            let shared = flows.shared[*slot].as_mut();
            if let (Some(receiver_end), Some(trace)) =
                (&flows.receivers[*slot], shared.and_then(|shared| shared.trace.as_mut()))
            {
                news.answered.push((receiver_end.number, trace.take_answers()));
            }
        }
    }

    /// Applies the news of another partition.
    pub(in crate::simulation) fn apply_news(&mut self, news: &PartitionNews) {
        self.network.routes_mut().apply(&news.routes);
        for opened in &news.opened {
            self.start_remote_flow(opened);
        }
        for appended in &news.appended {
            self.append_remote_flow(appended);
        }
        for completed in &news.completed {
            self.complete_remote_flow(completed);
        }
        for (number, route) in &news.rerouted {
            self.set_route(*number, *route);
        }
        let slot_of = |number: &FlowNumber| self.network.slot(*number).map(|p| p as usize);
        for number in &news.closed {
            if let Some(slot) = slot_of(number).filter(|slot| self.flows.receivers[*slot].is_some())
            {
                self.flows.closing_receivers.push(slot);
            }
        }
        for (number, answers) in &news.answered {
            if let Some(slot) = slot_of(number)
                && self.flows.senders[slot].is_some()
                && let Some(shared) = &mut self.flows.shared[slot]
                && let Some(trace) = &mut shared.trace
            {
                trace.add_answers(answers);
            }
        }
        self.network.add_losses(&news.lost);
    }

    /// Final states of receivers whose senders have closed in other partitions. Exchanged after the news,
    /// which name these flows.
    pub(in crate::simulation) fn receiver_finals(&self) -> Vec<(FlowNumber, ReceiverFinal)> {
        let receivers =
            self.flows.closing_receivers.iter().map(|slot| &self.flows.receivers[*slot]);
        receivers
            .flatten()
            .map(|receiver_end| (receiver_end.number, receiver_end.final_state()))
            .collect()
    }

    /// Applies the final states of receivers in another partition.
    pub(in crate::simulation) fn apply_receiver_finals(
        &mut self,
        finals: &[(FlowNumber, ReceiverFinal)],
    ) {
        for (number, final_state) in finals {
            if let Some(slot) = self.network.slot(*number).map(|slot| slot as usize)
                && self.flows.senders[slot].is_some()
                && let Some(shared) = &mut self.flows.shared[slot]
            {
                shared.remote_receiver = Some(Box::new(final_state.clone()));
                self.end_candidates.push((Time::ZERO, slot));
            }
        }
    }

    /// Removes a flow of another partition that has ended.
    pub(in crate::simulation) fn remove_remote_flow(&mut self, number: FlowNumber) {
        let Some(slot) = self.network.slot(number) else { return };
        let slot = slot as usize;
        self.flows.closing_receivers.retain(|other| *other != slot);
        self.flows.traced_receivers.retain(|other| *other != slot);
        self.flows.receivers[slot] = None;
        if let Some(shared) = self.flows.shared[slot].take() {
            let former_routes = self.former_routes.remove(&number).unwrap_or_default();
            self.network.unregister_flow(number, former_routes.into_iter().chain([shared.route]));
        }
    }

    /// Merges another partition at the end of the run.
    pub(in crate::simulation) fn merge(&mut self, mut other: Self) {
        let other_number = other.partition.number;
        let Self { graph, network, partition, .. } = self;
        let is_other = |node| partition.owner(node) == other_number;
        network.absorb(&mut other.network, graph, is_other);
        self.pending_flows.absorb(&mut other.pending_flows);
        self.common.absorb(&other.common);
        self.measured.absorb(&other.measured, |link| is_other(graph.links[link].from));
        for (number, slot) in other.network.flows() {
            let own_slot = network.slot_or_join(number);
            // The partition of the sender is the first that a change of the route reaches.
            if other.flows.senders[slot as usize].is_some()
                && let Some(routes) = other.former_routes.remove(&number)
            {
                self.former_routes.insert(number, routes);
            }
            self.flows.merge(own_slot as usize, &mut other.flows, slot as usize);
        }
        self.local_flows += other.local_flows;
        self.totals.events += other.totals.events;
        self.totals.packets += other.totals.packets;
        self.totals.ended = self.totals.ended.max(other.totals.ended);
        self.recorder.merge(other.recorder);
    }
}

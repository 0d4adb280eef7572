//! End of flows and of the run.

use std::cmp::Reverse;

use super::ends::ReceiverFinal;
use crate::base::units::{Bytes, Duration, Time};
use crate::breakdown::chain::ChainInterval;
use crate::model::flow::{FlowRecord, FlowSpec, Outcome, Reordering};
use crate::model::graph::LinkId;
use crate::model::ideal_fct::{self, IdealFct, Order};
use crate::model::packet::FlowNumber;
use crate::network::outbox::PacketLoss;
use crate::network::routes::Route;
use crate::network::switch::pause_watchdog;
use crate::record::gauges::GaugeLog;
use crate::record::recording::RecordedFlow;
use crate::simulation::Simulation;

/// Flow that has ended, or is in progress at the end of the run.
#[derive(Clone, Copy)]
pub(in crate::simulation) struct EndedFlow {
    pub(in crate::simulation) spec: FlowSpec,
    pub(in crate::simulation) outcome: Outcome,
    /// Time at which the receiver had all payload.
    pub(in crate::simulation) completed: Option<Time>,
    /// Time at which the sender had the acknowledgement of all payload.
    pub(in crate::simulation) acked: Option<Time>,
    pub(in crate::simulation) ideal_fct: Duration,
    pub(in crate::simulation) delivered: Bytes,
    /// Retransmissions and timeouts.
    pub(in crate::simulation) counts: (u32, u32),
    /// Packets that the network lost; `None` on a persistent connection.
    pub(in crate::simulation) lost: Option<u32>,
    /// Order of arrivals; `None` on a persistent connection and with an external stack.
    pub(in crate::simulation) reordering: Option<Reordering>,
}

impl Simulation<'_> {
    /// Closes a sender that has nothing left to do.
    pub(in crate::simulation) fn close_sender(&mut self, slot: usize) {
        let (Some(sender_end), Some(shared)) =
            (&mut self.flows.senders[slot], &mut self.flows.shared[slot])
        else {
            return;
        };
        if sender_end.closed_at == Time::NEVER {
            sender_end.closed_at = self.scheduler.now();
            if let Some(gauges) = &mut shared.gauges {
                gauges.close(sender_end.closed_at);
            }
            let (source, target) = (shared.spec.source, shared.spec.target);
            let announced = self.pending_flows.on_sent(&shared.spec, &mut self.scheduler);
            announced.unwrap_or_else(|problem| {
                unreachable!("the numbers of a trace are few: {problem}")
            });
            self.active_senders[source as usize] -= 1;
            let cached = self.path_states.get(&(source, target)).copied().unwrap_or_default();
            let path_state = sender_end.update_cached_state(cached);
            if path_state != cached {
                self.path_states.insert((source, target), path_state);
            }
            if let (Some(breakdown), Some(records)) =
                (&mut sender_end.breakdown, self.network.records_mut())
            {
                breakdown.release(&mut records.accounts);
            }
            if !self.partition.owns(self.graph.hosts[target as usize]) {
                self.partition_links.news.closed.push(sender_end.number);
            }
        }
        self.end_candidates.push((Time::ZERO, slot));
    }

    /// Notes that a flow may have ended, if its sender is closed. `lost_at` is the time of a packet loss, if
    /// that is the cause.
    pub(in crate::simulation) fn note_possible_end(&mut self, slot: usize, lost_at: Time) {
        let sender_end = &self.flows.senders[slot];
        if sender_end.as_ref().is_some_and(|sender_end| sender_end.closed_at < Time::NEVER) {
            self.end_candidates.push((lost_at, slot));
        }
    }

    /// Records the flows that have ended. Called at the end of an instant, so that the result does not depend
    /// on which end of a flow was handled last.
    pub(in crate::simulation) fn record_ended_flows(&mut self) {
        while let Some(PacketLoss { flow, time }) = self.network.pop_loss() {
            let Some(slot) = self.network.slot(flow) else { continue };
            let slot = slot as usize;
            if self.flows.senders[slot].is_some()
                && let Some(shared) = &mut self.flows.shared[slot]
            {
                shared.lost += 1;
            }
            self.note_possible_end(slot, time);
        }
        // The latest loss of a flow must be popped first, because it determines when the flow ended.
        self.end_candidates.sort_unstable();
        while let Some((lost_at, slot)) = self.end_candidates.pop() {
            if self.flows.is_over(slot) {
                self.record_flow(slot, lost_at);
            }
        }
    }

    /// Returns true if no flow is pending or in progress. Remaining events are stale.
    pub(in crate::simulation) fn is_over(&self) -> bool {
        self.local_flows == 0 && self.network.open_pauses() == 0 && self.pending_flows.is_empty()
    }

    /// Records a flow and removes it. The flow ended when its sender closed, when one of its ends last
    /// received a packet, or when its last packet was lost.
    fn record_flow(&mut self, slot: usize, lost_at: Time) {
        if self.flows.senders[slot].as_ref().is_some_and(|sender_end| sender_end.is_stream) {
            return self.note_idle(slot, lost_at);
        }
        let Some((sender_end, ReceiverFinal { state: receiver, completion }, shared)) =
            self.flows.remove(slot)
        else {
            return;
        };
        let spec = shared.spec;
        let completed = Some(receiver.completed_at).filter(|time| *time < Time::NEVER);
        let closed = Some(sender_end.closed_at).filter(|time| *time < Time::NEVER);
        let outcome = match (spec.size, completed) {
            (None, _) => Outcome::LongLived,
            (Some(_), Some(_)) => Outcome::Finished,
            (Some(_), None) if sender_end.sender.is_terminated() => Outcome::Terminated,
            (Some(_), None) => Outcome::Unfinished,
        };
        let (forward, reverse) = (sender_end.packets, receiver.packets);
        self.totals.packets += forward.sent + reverse.sent;
        if let Some(closed) = closed {
            let ended = closed.max(forward.last_received).max(reverse.last_received).max(lost_at);
            self.live_flow_count.record(ended, -1);
            self.totals.ended = self.totals.ended.max(ended);
        }
        let former_routes = self.former_routes.remove(&sender_end.number).unwrap_or_default();
        let routes_used = || former_routes.iter().copied().chain([shared.route]);
        let ideal = self.ideal_fct_of(&spec, &routes_used(), completed);
        let mut chain = None;
        if let (Some(completed), Some(breakdown)) = (completed, &sender_end.breakdown) {
            let completion = completion.map(|completion| *completion).unwrap_or_default();
            chain =
                self.recorder.record_breakdown(&spec, completed, breakdown, &completion, &ideal);
        }
        let ended = completed.or(closed).unwrap_or(self.totals.ended);
        let gauges = shared.gauges.map(|gauges| *gauges).unwrap_or_default();
        self.select_recorded(&spec, ended, &ideal, shared.route, (chain, gauges));
        self.network.unregister_flow(sender_end.number, routes_used());
        routes_used().for_each(|route| self.network.routes_mut().release(route));
        self.local_flows -= 1;
        if self.partition.has_others() {
            self.partition_links.ended.push(sender_end.number);
        }
        // Only the sender of a finished flow receives an acknowledgement of all payload.
        let acked = closed.filter(|_| outcome == Outcome::Finished);
        let of_sender = || (sender_end.sender.retransmits, sender_end.sender.timeouts);
        let counts = sender_end
            .external_stack
            .as_ref()
            .map_or_else(of_sender, |end| end.retransmits_and_timeouts());
        let delivered = Bytes(receiver.delivered);
        let lost = Some(shared.lost as u32);
        let reordering = receiver.reordering;
        self.record(EndedFlow {
            spec,
            outcome,
            completed,
            acked,
            ideal_fct: ideal.total(),
            delivered,
            counts,
            lost,
            reordering,
        });
    }

    /// Adds a flow that has ended, or the run, to the selection of recorded flows, if it is a candidate.
    pub(in crate::simulation) fn select_recorded(
        &mut self,
        spec: &FlowSpec,
        ended: Time,
        ideal: &IdealFct,
        route: Route,
        (chain, gauges): (Option<(Duration, Vec<ChainInterval>)>, GaugeLog),
    ) {
        let Some(recording) = &mut self.recorder.recording else { return };
        if !recording.is_candidate(spec.id) {
            if self.network.logs_all_flows() {
                self.forget_packets(spec.id as FlowNumber);
            }
            return;
        }
        let links = |way| {
            let mut links: Vec<LinkId> = Vec::new();
            for link in self.network.routes().links(way).flatten() {
                if !links.contains(link) {
                    links.push(*link);
                }
            }
            links
        };
        let dropped = recording.add(RecordedFlow {
            flow: spec.id,
            size: spec.size,
            excess: ended.since(spec.start + ideal.total()),
            paths: route.both().map(links),
            chain,
            gauges,
        });
        for flow in dropped {
            self.forget_packets(flow as FlowNumber);
        }
    }

    /// Drops the packets of a flow that has ended and is not kept, in all partitions.
    fn forget_packets(&mut self, flow: FlowNumber) {
        self.network.forget_packets(flow);
        if self.partition.has_others() {
            self.partition_links.forgotten.push(flow);
        }
    }

    /// Records a flow.
    pub(in crate::simulation) fn record(&mut self, flow: EndedFlow) {
        let EndedFlow {
            spec,
            outcome,
            completed,
            acked,
            ideal_fct,
            delivered,
            counts,
            lost,
            reordering,
        } = flow;
        let (retransmits, timeouts) = counts;
        self.recorder.records.push(&FlowRecord {
            outcome,
            fct: completed.map(|completed| completed - spec.start),
            acked: acked.map(|acked| acked - spec.start),
            ideal_fct,
            delivered,
            retransmits,
            timeouts,
            lost,
            reordering,
            spec,
        });
    }

    /// Returns the ideal FCT of a flow whose packets took these routes.
    pub(in crate::simulation) fn ideal_fct_of(
        &self,
        spec: &FlowSpec,
        routes_used: &(impl Iterator<Item = Route> + Clone),
        completed: Option<Time>,
    ) -> IdealFct {
        let Some(size) = spec.size else { return IdealFct::default() };
        let routes = self.network.routes();
        let bound = |order| {
            let paths = routes_used.clone().flat_map(|route| routes.links(route));
            ideal_fct::over_paths(self.graph, paths, &self.format, size, order)
        };
        let in_order = bound(if routes.takes_one_path() { Order::OfFlow } else { Order::OfPath });
        // The bound of packets in order is exact for a flow alone in the network, and the same for all
        // transports. Only a flow that was faster, because its short last packet overtook others, has the
        // lower bound without order.
        let is_faster = completed.is_some_and(|at| at.since(spec.start) < in_order.total());
        // Packets of a rerouted flow may be queued on its former paths while others take the new one.
        let is_in_order = self.transports.of_class(spec.class).config.keeps_order()
            && routes_used.clone().nth(1).is_none();
        if is_faster && !is_in_order { bound(Order::None) } else { in_order }
    }

    /// Records the remaining flows and checks that all packets are accounted for.
    pub(in crate::simulation) fn close(&mut self, limit: Time) {
        self.end_common_interval();
        self.record_ended_flows();
        self.live_flow_count.update();
        if let Some(records) = self.network.records()
            && self.is_over()
            && !self.partition.has_others()
        {
            records.assert_empty();
        }
        if self.is_over() {
            self.network.assert_no_options();
            self.network.assert_no_telemetry();
            self.network.assert_no_overlays();
        }
        self.totals.ended = match self.deadlocks.is_empty() {
            true if self.is_over() => self.totals.ended.max(self.network.last_frame()),
            true => limit,
            false => self.scheduler.now(),
        };
        self.totals.live_flows_max = self.live_flow_count.max;
        let now = self.totals.ended;
        // Before ports close, which ends their pauses.
        self.deadlocks = pause_watchdog::deadlocks(&self.network);
        let traffic = self.network.traffic();
        let explanations =
            self.deadlocks.iter().map(|deadlock| deadlock.explain(traffic, self.graph));
        self.stuck.extend(explanations);
        self.explain_stuck(now);
        let mut remaining: Vec<usize> =
            self.network.flows().map(|(_, slot)| slot as usize).collect();
        // In descending order, so that the memory of flows is freed while their records grow.
        remaining.sort_unstable_by_key(|slot| Reverse(*slot));
        let in_network: u64 = remaining.iter().map(|slot| self.flows.in_network(*slot)).sum();
        let in_ports: u64 = self.network.close(now);
        assert_eq!(
            in_ports,
            in_network + self.network.pause_frames(),
            "flows and ports disagree on the packets in the network"
        );
        for slot in remaining {
            self.close_connection(slot);
            self.record_flow(slot, Time::ZERO);
            self.flows.truncate(slot);
        }
        let log = self.network.take_log();
        self.recorder.close(log, self.network.ports_mut(), now);
    }
}

#[cfg(test)]
mod tests;

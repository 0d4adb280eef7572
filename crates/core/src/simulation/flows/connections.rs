//! Flows on persistent connections.
//!
//! In the network a connection is a flow in each direction, with the number of the first flow that it
//! carries in that direction: a byte stream of one sender and one receiver, which stays until the end of
//! the run. A flow that starts later is appended to the stream. It completes when the receiver has all data
//! up to its end, in order, and it is recorded when its sender has the acknowledgement.
//!
//! If the ends of a stream are in different partitions, each has a list of its flows. Messages between
//! windows carry the flows that the sender appends and the times at which they complete: before the packets
//! and ACKs that they precede, which take at least a window.

use std::collections::VecDeque;

use super::ends::SenderEnd;
use super::finish::EndedFlow;
use crate::base::schema::Problem;
use crate::base::units::{Bytes, Duration, Time};
use crate::breakdown::Completion;
use crate::breakdown::chain::ChainInterval;
use crate::model::flow::{FlowSpec, Outcome};
use crate::model::ideal_fct::IdealFct;
use crate::model::packet::FlowNumber;
use crate::record::Recorder;
use crate::record::gauges::GaugeLog;
use crate::simulation::Simulation;

/// Flow that a byte stream carries.
struct StreamFlow {
    spec: FlowSpec,
    /// End of its segments.
    end: u32,
    /// Time at which all payload had been received, in order; [`Time::NEVER`] before.
    completed_at: Time,
    /// FCT breakdown at the receiver, if it is kept.
    breakdown: Option<StreamFlowBreakdown>,
}

impl StreamFlow {
    fn new(spec: FlowSpec, [begin, end]: [u32; 2], keeps_breakdown: bool) -> Self {
        let breakdown =
            keeps_breakdown.then(|| StreamFlowBreakdown::Arriving { missing: end - begin });
        Self { spec, end, completed_at: Time::NEVER, breakdown }
    }
}

/// FCT breakdown of a flow of a byte stream at the receiver.
#[derive(Clone)]
pub(in crate::simulation) enum StreamFlowBreakdown {
    /// Some segments have not arrived.
    Arriving {
        /// Number of these segments.
        missing: u32,
    },
    /// All segments have arrived, the last one at this time. The flow is complete when all earlier flows are.
    Arrived(Time, Box<Completion>),
}

/// Flows of a byte stream that are not acknowledged, in order. The receiver's end writes the times at which
/// they complete; the sender's end reads them after an ACK.
pub(in crate::simulation) struct StreamFlows {
    flows: VecDeque<StreamFlow>,
    /// Number of these flows that are complete.
    complete: usize,
    /// Payload of the flows that are recorded.
    recorded: u64,
    /// Retransmissions and timeouts that records of flows contain.
    counted: (u32, u32),
    /// True if no flow is in progress and none of the stream's packets is in the network.
    is_idle: bool,
    /// True if the sender is in another partition.
    has_remote_sender: bool,
}

/// Flow that was appended to a byte stream whose receiver is in another partition.
#[derive(Clone, Copy)]
pub(in crate::simulation) struct FlowAppended {
    number: FlowNumber,
    spec: FlowSpec,
    /// Begin and end of its segments.
    segments: [u32; 2],
}

/// Completion of the first incomplete flow of a byte stream whose sender is in another partition.
#[derive(Clone)]
pub(in crate::simulation) struct FlowCompleted {
    number: FlowNumber,
    at: Time,
    breakdown: Option<StreamFlowBreakdown>,
}

impl StreamFlows {
    /// Returns a byte stream with its first flow, which ends at segment `end`.
    pub(in crate::simulation) fn new(
        spec: FlowSpec,
        end: u32,
        keeps_breakdown: bool,
        has_remote_sender: bool,
    ) -> Self {
        Self {
            flows: VecDeque::from([StreamFlow::new(spec, [0, end], keeps_breakdown)]),
            complete: 0,
            recorded: 0,
            counted: (0, 0),
            is_idle: false,
            has_remote_sender,
        }
    }

    /// Number of flows in progress whose sender is in this partition.
    pub(in crate::simulation) fn in_progress(&self) -> usize {
        if self.has_remote_sender { 0 } else { self.flows.len() }
    }

    /// First flow that the receiver does not have completely, and payload of the flows before it.
    pub(in crate::simulation) fn receiving(&self) -> Option<(&FlowSpec, u64)> {
        let before = self.flows.iter().take(self.complete);
        let before: u64 = before.filter_map(|flow| flow.spec.size).map(|size| size.0).sum();
        Some((&self.flows.get(self.complete)?.spec, self.recorded + before))
    }

    /// Updates the FCT breakdown of the flow that a new segment belongs to. `finish` returns the breakdown of
    /// the segment's transmission.
    pub(in crate::simulation) fn on_segment(
        &mut self,
        now: Time,
        sequence: u32,
        finish: impl FnOnce() -> Option<Completion>,
    ) {
        let index = self.flows.partition_point(|flow| flow.end <= sequence);
        let flow = self.flows.get_mut(index).and_then(|flow| flow.breakdown.as_mut());
        let Some(breakdown) = flow else { return };
        if let StreamFlowBreakdown::Arriving { missing } = breakdown {
            *missing -= 1;
            if *missing == 0 {
                *breakdown =
                    StreamFlowBreakdown::Arrived(now, Box::new(finish().unwrap_or_default()));
            }
        }
    }

    /// Takes the first flow. Returns it with its part of `counts`, the retransmissions and timeouts of the
    /// stream: those since the flow before it was taken.
    fn pop(&mut self, counts: (u32, u32)) -> Option<(StreamFlow, (u32, u32))> {
        let flow = self.flows.pop_front()?;
        self.complete = self.complete.saturating_sub(1);
        self.recorded += flow.spec.size.unwrap_or_default().0;
        let (retransmits, timeouts) = std::mem::replace(&mut self.counted, counts);
        Some((flow, (counts.0 - retransmits, counts.1 - timeouts)))
    }
}

/// Records the FCT breakdown of a complete flow of a byte stream, if it is kept.
fn record_breakdown(
    recorder: &mut Recorder,
    flow: &StreamFlow,
    sender_end: &SenderEnd,
    ideal: &IdealFct,
) -> Option<(Duration, Vec<ChainInterval>)> {
    let Some(StreamFlowBreakdown::Arrived(arrived_at, completion)) = &flow.breakdown else {
        return None;
    };
    let (spec, completed_at) = (&flow.spec, flow.completed_at);
    let completion = Completion { connection: completed_at - *arrived_at, ..**completion };
    let breakdown = sender_end.breakdown.as_ref()?;
    recorder.record_breakdown(spec, completed_at, breakdown, &completion, ideal)
}

impl Simulation<'_> {
    /// Starts a flow on an open connection.
    pub(in crate::simulation) fn append_flow(
        &mut self,
        slot: usize,
        spec: FlowSpec,
    ) -> Result<(), Problem> {
        let now = self.scheduler.now();
        let (Some(sender_end), Some(shared)) =
            (&mut self.flows.senders[slot], &mut self.flows.shared[slot])
        else {
            return Ok(());
        };
        let (Some(stream), Some(size)) = (&mut shared.stream, spec.size) else { return Ok(()) };
        let [first, class] = [shared.spec.class, spec.class];
        let transport = |class| self.transports.of_class(class).config;
        let traffic = |class| self.network.traffic().of_flows(usize::from(class));
        if !std::ptr::eq(transport(first), transport(class)) || traffic(first) != traffic(class) {
            let [first, class] =
                [first, class].map(|class| &self.pending_flows.classes[usize::from(class)]);
            let message = format!(
                "`{class}` and `{first}` share a connection, and must have the same transport and traffic \
                 class"
            );
            return Err(Problem::new("workload", message));
        }
        if !sender_end.sender.can_append(size, &self.format) {
            let message = format!("flow {}: its connection has sent {} packets", spec.id, u32::MAX);
            return Err(Problem::new("workload", message));
        }
        let number = sender_end.number;
        if sender_end.closed_at < Time::NEVER {
            sender_end.closed_at = Time::NEVER;
            self.active_senders[spec.source as usize] += 1;
            shared.remote_receiver = None;
            self.partition_links.news.closed.retain(|closed| *closed != number);
        }
        if std::mem::take(&mut stream.is_idle) {
            self.local_flows += 1;
        }
        let begin = sender_end.sender.stream_end();
        sender_end.sender.append(size, &self.format, now, &mut *sender_end.controller);
        let end = sender_end.sender.stream_end();
        if self.flows.receivers[slot].is_none() {
            let segments = [begin, end];
            self.partition_links.news.appended.push(FlowAppended { number, spec, segments });
        }
        let records = self.network.records_mut();
        stream.flows.push_back(StreamFlow::new(spec, [begin, end], records.is_some()));
        if let (Some(breakdown), Some(records)) = (&mut sender_end.breakdown, records) {
            let most = self.recorder.chain_bound(spec.id);
            breakdown.append(now, end, most, &mut records.accounts);
        }
        self.live_flow_count.record(now, 1);
        self.try_send(slot);
        Ok(())
    }

    /// Completes the flows of a byte stream whose data the receiver has.
    pub(in crate::simulation) fn complete_stream_flows(
        &mut self,
        slot: usize,
    ) -> Result<(), Problem> {
        let (Some(receiver_end), Some(shared)) =
            (&self.flows.receivers[slot], &mut self.flows.shared[slot])
        else {
            return Ok(());
        };
        let Some(stream) = &mut shared.stream else { return Ok(()) };
        let received = receiver_end.receiver.cumulative();
        while let Some(flow) = stream.flows.get_mut(stream.complete)
            && flow.end <= received
        {
            let now = self.scheduler.now();
            flow.completed_at = now;
            stream.complete += 1;
            self.pending_flows.on_delivery(&flow.spec, &mut self.scheduler)?;
            if stream.has_remote_sender
                && let Some((StreamFlow { breakdown, .. }, _)) = stream.pop((0, 0))
            {
                let number = receiver_end.number;
                let completed = FlowCompleted { number, at: now, breakdown };
                self.partition_links.news.completed.push(completed);
            }
        }
        Ok(())
    }

    /// Appends a flow to a byte stream whose receiver is in this partition and whose sender is not.
    pub(in crate::simulation) fn append_remote_flow(&mut self, appended: &FlowAppended) {
        let Some(slot) = self.network.slot(appended.number) else { return };
        let slot = slot as usize;
        if self.flows.receivers[slot].is_some()
            && let Some(shared) = &mut self.flows.shared[slot]
            && let Some(stream) = &mut shared.stream
        {
            let keeps_breakdown = self.network.records().is_some();
            let flow = StreamFlow::new(appended.spec, appended.segments, keeps_breakdown);
            stream.flows.push_back(flow);
            self.flows.closing_receivers.retain(|other| *other != slot);
        }
    }

    /// Completes a flow of a byte stream whose sender is in this partition and whose receiver is not.
    pub(in crate::simulation) fn complete_remote_flow(&mut self, completed: &FlowCompleted) {
        let Some(slot) = self.network.slot(completed.number) else { return };
        let slot = slot as usize;
        if self.flows.senders[slot].is_some()
            && let Some(shared) = &mut self.flows.shared[slot]
            && let Some(stream) = &mut shared.stream
            && let Some(flow) = stream.flows.get_mut(stream.complete)
        {
            (flow.completed_at, flow.breakdown) = (completed.at, completed.breakdown.clone());
            stream.complete += 1;
        }
    }

    /// Ends the exchange of the final state of a byte stream's receiver, because the stream is idle.
    pub(in crate::simulation) fn end_closing(&mut self, number: FlowNumber) {
        if let Some(slot) = self.network.slot(number) {
            self.flows.closing_receivers.retain(|other| *other != slot as usize);
        }
    }

    /// Records the flows of a byte stream that are acknowledged.
    pub(in crate::simulation) fn record_acknowledged_flows(&mut self, slot: usize) {
        let now = self.scheduler.now();
        while let (Some(sender_end), Some(shared)) =
            (&self.flows.senders[slot], &mut self.flows.shared[slot])
            && let Some(stream) = &mut shared.stream
            && let Some(first) = stream.flows.front()
            && first.end <= sender_end.sender.cumulative()
        {
            let counts = (sender_end.sender.retransmits, sender_end.sender.timeouts);
            let (number, route) = (sender_end.number, shared.route);
            let Some((flow, counts)) = stream.pop(counts) else { return };
            let (spec, completed_at) = (flow.spec, flow.completed_at);
            self.live_flow_count.record(now, -1);
            let former_routes = self.former_routes.get(&number).map_or(&[][..], Vec::as_slice);
            let routes_used = former_routes.iter().copied().chain([route]);
            let ideal = self.ideal_fct_of(&spec, &routes_used, Some(completed_at));
            let chain = self.flows.senders[slot].as_ref().and_then(|sender_end| {
                record_breakdown(&mut self.recorder, &flow, sender_end, &ideal)
            });
            self.select_recorded(&spec, completed_at, &ideal, route, (chain, GaugeLog::default()));
            self.record(EndedFlow {
                outcome: Outcome::Finished,
                completed: Some(completed_at),
                acked: Some(now),
                ideal_fct: ideal.total(),
                delivered: spec.size.unwrap_or_default(),
                counts,
                lost: None,
                reordering: None,
                spec,
            });
        }
    }

    /// Notes that a byte stream is idle, if it is. The last packet loss was at `lost_at`.
    pub(in crate::simulation) fn note_idle(&mut self, slot: usize, lost_at: Time) {
        let receiver = self.flows.receiver_state(slot);
        let (Some(sender_end), Some(receiver), Some(shared)) =
            (&self.flows.senders[slot], receiver, &mut self.flows.shared[slot])
        else {
            return;
        };
        let Some(stream) = &mut shared.stream else { return };
        let closed_at = sender_end.closed_at;
        if closed_at == Time::NEVER {
            return;
        }
        let [forward, reverse] = [sender_end.packets, receiver.packets];
        let ended = closed_at.max(forward.last_received).max(reverse.last_received).max(lost_at);
        self.totals.ended = self.totals.ended.max(ended);
        if !std::mem::replace(&mut stream.is_idle, true) {
            self.local_flows -= 1;
            if self.partition.has_others() {
                self.partition_links.idle.push(sender_end.number);
            }
        }
    }

    /// Closes a persistent connection at the end of the run, and records the flows that are in progress.
    pub(in crate::simulation) fn close_connection(&mut self, slot: usize) {
        if !self.flows.senders[slot].as_ref().is_some_and(|sender_end| sender_end.is_stream) {
            return;
        }
        let Some((sender_end, receiver, shared)) = self.flows.remove(slot) else { return };
        let Some(mut stream) = shared.stream else { return };
        self.totals.packets += sender_end.packets.sent + receiver.state.packets.sent;
        self.local_flows -= usize::from(!stream.is_idle);
        let former_routes = self.former_routes.remove(&sender_end.number).unwrap_or_default();
        let routes_used = || former_routes.iter().copied().chain([shared.route]);
        let counts = (sender_end.sender.retransmits, sender_end.sender.timeouts);
        let mut delivered = receiver.state.delivered - stream.recorded;
        while let Some((flow, counts)) = stream.pop(counts) {
            let (spec, completed_at) = (flow.spec, flow.completed_at);
            let completed = Some(completed_at).filter(|time| *time < Time::NEVER);
            let ideal = self.ideal_fct_of(&spec, &routes_used(), completed);
            let chain = completed
                .and_then(|_| record_breakdown(&mut self.recorder, &flow, &sender_end, &ideal));
            let ended = completed.unwrap_or(self.totals.ended);
            self.select_recorded(&spec, ended, &ideal, shared.route, (chain, GaugeLog::default()));
            let of_flow = delivered.min(spec.size.unwrap_or_default().0);
            delivered -= of_flow;
            self.record(EndedFlow {
                outcome: completed.map_or(Outcome::Unfinished, |_| Outcome::Finished),
                completed,
                acked: None,
                ideal_fct: ideal.total(),
                delivered: Bytes(of_flow),
                counts,
                lost: None,
                reordering: None,
                spec,
            });
        }
        self.network.unregister_flow(sender_end.number, routes_used());
    }
}
